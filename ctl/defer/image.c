// SPDX-License-Identifier: GPL-2.0-only
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"

#define SIZE_MAX_FILE	(1UL << 30)	/* bytes */

#define fail(img, ...)	image_fail((img)->error, sizeof((img)->error), __VA_ARGS__)

int image_fail(char *error, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return -1;
}

void *image_grow(void *array, unsigned int *nr, size_t size)
{
	void **p = array, *more;

	if (!(*nr & (*nr - 1))) {
		more = reallocarray(*p, *nr ? 2 * (size_t)*nr : 1, size);
		if (!more)
			return NULL;
		*p = more;
	}
	memset((char *)*p + *nr * size, 0, size);
	return (char *)*p + (*nr)++ * size;
}

static int add_name(struct image_name **names, unsigned int *nr, uint64_t address,
		    const char *name)
{
	struct image_name *n = image_grow(names, nr, sizeof(*n));

	if (!n)
		return -1;
	n->address = address;
	n->name = name;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct image_name *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *find_name(const struct image_name *names, unsigned int nr,
			     uint64_t address)
{
	const struct image_name key = { .address = address }, *found;

	found = nr ? bsearch(&key, names, nr, sizeof(*names), by_address) : NULL;
	return found ? found->name : NULL;
}

const char *image_slot(const struct image *img, uint64_t slot)
{
	return find_name(img->slots, img->nr_slots, slot);
}

const char *image_symbol(const struct image *img, uint64_t address)
{
	return find_name(img->symbols, img->nr_symbols, address);
}

const char *image_stub(const struct image *img, uint64_t address)
{
	return find_name(img->stubs, img->nr_stubs, address);
}

const uint8_t *image_bytes(const struct image *img, uint64_t address, size_t *len)
{
	unsigned int i;

	for (i = 0; i < img->nr_segments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (address >= s->start && address < s->end) {
			*len = s->end - address;
			return s->bytes + (address - s->start);
		}
	}
	return NULL;
}

const struct image_function *image_function(const struct image *img, uint64_t address)
{
	unsigned int low = 0, high = img->nr_functions, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (address < img->functions[mid].start)
			high = mid;
		else if (address >= img->functions[mid].end)
			low = mid + 1;
		else
			return &img->functions[mid];
	}
	return NULL;
}

static int read_segments(struct image *img)
{
	struct image_segment *s;
	size_t n, i;
	GElf_Phdr p;

	if (elf_getphdrnum(img->elf, &n))
		return fail(img, "its program headers cannot be read: %s", elf_errmsg(-1));
	for (i = 0; i < n; i++) {
		if (!gelf_getphdr(img->elf, (int)i, &p) || p.p_type != PT_LOAD)
			continue;
		if (p.p_offset > img->size || p.p_filesz > img->size - p.p_offset ||
		    p.p_vaddr + p.p_filesz < p.p_vaddr)
			return fail(img, "segment %zu lies outside of the file: is it whole?", i);
		s = image_grow(&img->segments, &img->nr_segments, sizeof(*s));
		if (!s)
			return fail(img, "out of memory");
		s->start = p.p_vaddr;
		s->end = p.p_vaddr + p.p_filesz;
		s->bytes = (const uint8_t *)img->map + p.p_offset;
		s->executable = p.p_flags & PF_X;
	}
	return 0;
}

static void read_build_id(struct image *img, Elf_Data *data)
{
	size_t off = 0, name, desc, i;
	GElf_Nhdr note;

	while ((off = gelf_getnote(data, off, &note, &name, &desc)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    note.n_descsz > (sizeof(img->build_id) - 1) / 2 ||
		    memcmp((char *)data->d_buf + name, "GNU", 4))
			continue;
		for (i = 0; i < note.n_descsz; i++)
			sprintf(img->build_id + 2 * i, "%02x",
				((uint8_t *)data->d_buf)[desc + i]);
	}
}

static int read_symbols(struct image *img, const GElf_Shdr *section, Elf_Data *data)
{
	size_t n = section->sh_entsize ? section->sh_size / section->sh_entsize : 0, i;
	const char *name;
	GElf_Sym sym;

	for (i = 0; i < n; i++) {
		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(img->elf, section->sh_link, sym.st_name);
		if (name && *name &&
		    add_name(&img->symbols, &img->nr_symbols, sym.st_value, name))
			return fail(img, "out of memory");
	}
	return 0;
}

static int read_relocations(struct image *img, const GElf_Shdr *section, Elf_Data *data)
{
	size_t n = section->sh_entsize ? section->sh_size / section->sh_entsize : 0, i;
	Elf_Scn *symbols = elf_getscn(img->elf, section->sh_link);
	Elf_Data *table = symbols ? elf_getdata(symbols, NULL) : NULL;
	const char *name;
	GElf_Shdr head;
	GElf_Rela rela;
	GElf_Sym sym;

	if (!table || !gelf_getshdr(symbols, &head))
		return 0;
	for (i = 0; i < n; i++) {
		if (!gelf_getrela(data, (int)i, &rela) ||
		    (GELF_R_TYPE(rela.r_info) != R_X86_64_JUMP_SLOT &&
		     GELF_R_TYPE(rela.r_info) != R_X86_64_GLOB_DAT) ||
		    !gelf_getsym(table, (int)GELF_R_SYM(rela.r_info), &sym))
			continue;
		name = elf_strptr(img->elf, head.sh_link, sym.st_name);
		if (name && *name &&
		    add_name(&img->slots, &img->nr_slots, rela.r_offset, name))
			return fail(img, "out of memory");
	}
	return 0;
}

/* Read a pointer of .eh_frame; return 0 for an encoding that x86-64's compilers do not use. */
static uint64_t frame_pointer(uint8_t encoding, const uint8_t *p, const uint8_t *end,
			      uint64_t at, unsigned int *size)
{
	uint64_t value = 0;
	int32_t narrow;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*size = 8;
		if (end - p < 8)
			return 0;
		memcpy(&value, p, 8);
		break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		*size = 4;
		if (end - p < 4)
			return 0;
		memcpy(&narrow, p, 4);
		value = (encoding & 0x0f) == DW_EH_PE_sdata4 ? (uint64_t)narrow : (uint32_t)narrow;
		break;
	default:
		return 0;
	}
	return (encoding & 0x70) == DW_EH_PE_pcrel ? value + at : value;
}

/* Return the encoding of pointers in the FDEs of a CIE. */
static uint8_t cie_encoding(const Dwarf_CIE *cie)
{
	const char *augmentation = cie->augmentation;
	const uint8_t *p = cie->augmentation_data, *end;

	if (*augmentation++ != 'z' || !p)
		return DW_EH_PE_absptr;
	end = p + cie->augmentation_data_size;
	for (; *augmentation && p < end; augmentation++) {
		if (*augmentation == 'R')
			return *p;
		if (*augmentation == 'L')
			p++;
		else if (*augmentation == 'P')
			p += 1 + ((*p & 0x0f) == DW_EH_PE_sdata4 ||
				  (*p & 0x0f) == DW_EH_PE_udata4 ? 4 : 8);
	}
	return DW_EH_PE_absptr;
}

static int add_function(struct image *img, uint64_t start, uint64_t end)
{
	struct image_function *f;
	size_t len;

	/* Of the linker's stubs there is no call to be found. */
	if (end <= start || !image_bytes(img, start, &len) || len < end - start)
		return 0;
	f = image_grow(&img->functions, &img->nr_functions, sizeof(*f));
	if (!f)
		return fail(img, "out of memory");
	f->start = start;
	f->end = end;
	return 0;
}

static int read_frames(struct image *img, const GElf_Shdr *section, Elf_Data *data)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(img->elf, NULL);
	const uint8_t *base = data->d_buf, *end = base + data->d_size;
	Dwarf_Off off = 0, next;
	uint8_t encoding = DW_EH_PE_absptr;
	Dwarf_Off cie = (Dwarf_Off)-1;
	Dwarf_CFI_Entry entry, head;
	unsigned int size;
	uint64_t start;
	int ret;

	while (!(ret = dwarf_next_cfi(ident, data, true, off, &next, &entry))) {
		if (dwarf_cfi_cie_p(&entry)) {
			off = next;
			continue;
		}
		if (entry.fde.CIE_pointer != cie) {
			Dwarf_Off behind;

			cie = entry.fde.CIE_pointer;
			if (dwarf_next_cfi(ident, data, true, cie, &behind, &head) ||
			    !dwarf_cfi_cie_p(&head))
				return fail(img, ".eh_frame is damaged");
			encoding = cie_encoding(&head.cie);
		}
		start = frame_pointer(encoding, entry.fde.start, end,
				      section->sh_addr + (uint64_t)(entry.fde.start - base),
				      &size);
		if (start && add_function(img, start,
					  start + frame_pointer(encoding & 0x0f,
								entry.fde.start + size, end,
								0, &size)))
			return -1;
		if (next == (Dwarf_Off)-1)
			break;
		off = next;
	}
	return ret < 0 ? fail(img, ".eh_frame is damaged: %s", dwarf_errmsg(-1)) : 0;
}

/* Find the stubs: [endbr64] [bnd] jmp *slot(%rip). */
static int find_stubs(struct image *img, const struct image_segment *s)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t bnd = 0xf2;
	const char *name;
	uint64_t at;
	int32_t off;
	size_t k, n;

	for (k = 0; s->executable && k + 6 <= s->end - s->start; k++) {
		if (s->bytes[k] != 0xff || s->bytes[k + 1] != 0x25)
			continue;
		memcpy(&off, s->bytes + k + 2, sizeof(off));
		at = s->start + k;
		name = image_slot(img, at + 6 + (uint64_t)(int64_t)off);
		if (!name)
			continue;
		n = k && s->bytes[k - 1] == bnd;
		if (k >= n + sizeof(endbr64) &&
		    !memcmp(s->bytes + k - n - sizeof(endbr64), endbr64, sizeof(endbr64)))
			n += sizeof(endbr64);
		if (add_name(&img->stubs, &img->nr_stubs, at - n, name))
			return fail(img, "out of memory");
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct image_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Sort the functions, cut those that overlap, and name them. */
static void order_functions(struct image *img)
{
	struct image_function *f = img->functions;
	unsigned int i, n = 0;

	if (!img->nr_functions)
		return;
	qsort(f, img->nr_functions, sizeof(*f), by_start);
	for (i = 0; i < img->nr_functions; i++) {
		if (n && f[i].start == f[n - 1].start)
			continue;
		if (n && f[n - 1].end > f[i].start)
			f[n - 1].end = f[i].start;
		f[n++] = f[i];
	}
	img->nr_functions = n;
	for (i = 0; i < n; i++) {
		f[i].name = image_symbol(img, f[i].start);
		img->code_bytes += f[i].end - f[i].start;
	}
}

static int read_section(struct image *img, Elf_Scn *scn, size_t names)
{
	const char *name;
	Elf_Data *data;
	GElf_Shdr head;

	if (!gelf_getshdr(scn, &head) || head.sh_type == SHT_NOBITS)
		return 0;
	name = elf_strptr(img->elf, names, head.sh_name);
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf || !name)
		return 0;
	switch (head.sh_type) {
	case SHT_NOTE:
		read_build_id(img, data);
		return 0;
	case SHT_SYMTAB:
	case SHT_DYNSYM:
		return read_symbols(img, &head, data);
	case SHT_RELA:
		return read_relocations(img, &head, data);
	default:
		return strcmp(name, ".eh_frame") ? 0 : read_frames(img, &head, data);
	}
}

static int read_elf(struct image *img)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr head;
	unsigned int i;
	size_t names;

	img->elf = elf_memory(img->map, img->size);
	if (!img->elf || elf_kind(img->elf) != ELF_K_ELF || !gelf_getehdr(img->elf, &head))
		return fail(img, "it is not an ELF file");
	if (head.e_machine != EM_X86_64 || gelf_getclass(img->elf) != ELFCLASS64)
		return fail(img, "it is not for x86-64, the only processor that is known");
	if (head.e_type != ET_EXEC && head.e_type != ET_DYN)
		return fail(img, "it is neither a program nor a shared library; link it first");
	img->pie = head.e_type == ET_DYN;
	if (read_segments(img))
		return -1;
	if (elf_getshdrstrndx(img->elf, &names))
		return fail(img, "it has no section headers, by which its functions are found");
	while ((scn = elf_nextscn(img->elf, scn)))
		if (read_section(img, scn, names))
			return -1;
	if (img->nr_slots)
		qsort(img->slots, img->nr_slots, sizeof(*img->slots), by_address);
	if (img->nr_symbols)
		qsort(img->symbols, img->nr_symbols, sizeof(*img->symbols), by_address);
	for (i = 0; i < img->nr_segments; i++)
		if (find_stubs(img, &img->segments[i]))
			return -1;
	if (img->nr_stubs)
		qsort(img->stubs, img->nr_stubs, sizeof(*img->stubs), by_address);
	order_functions(img);
	return 0;
}

int image_file(const char *path, size_t *size, char *error, size_t error_size)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		snprintf(error, error_size, "%s", strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		snprintf(error, error_size, "it is not a file");
	} else if (!st.st_size || (uint64_t)st.st_size > SIZE_MAX_FILE) {
		snprintf(error, error_size, "its size is %jd bytes; 1 to %lu are read",
			 (intmax_t)st.st_size, SIZE_MAX_FILE);
	} else {
		*size = (size_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

int image_open(struct image *img, const char *path)
{
	int fd;

	memset(img, 0, sizeof(*img));
	elf_version(EV_CURRENT);
	fd = image_file(path, &img->size, img->error, sizeof(img->error));
	if (fd < 0)
		return -1;
	/* libelf converts in place: the copy is private. */
	img->map = mmap(NULL, img->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	if (img->map == MAP_FAILED) {
		img->map = NULL;
		return fail(img, "%s", strerror(errno));
	}
	return read_elf(img);
}

int image_name(struct image *img, uint64_t address, const char *name)
{
	struct image_function *f;
	unsigned int i;

	if (add_name(&img->symbols, &img->nr_symbols, address, name))
		return fail(img, "out of memory");
	for (i = img->nr_symbols - 1; i && img->symbols[i - 1].address > address; i--)
		img->symbols[i] = img->symbols[i - 1];
	img->symbols[i] = (struct image_name){ .address = address, .name = name };
	f = (struct image_function *)image_function(img, address);
	if (f && f->start == address && !f->name)
		f->name = name;
	return 0;
}

void image_close(struct image *img)
{
	free(img->segments);
	free(img->functions);
	free(img->slots);
	free(img->symbols);
	free(img->stubs);
	if (img->elf)
		elf_end(img->elf);
	if (img->map)
		munmap(img->map, img->size);
	memset(img, 0, sizeof(*img));
}

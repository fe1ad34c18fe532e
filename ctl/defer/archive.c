// SPDX-License-Identifier: GPL-2.0-only
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive.h"

#define MEMBERS		4096u
#define SECTIONS	65536u

#define fail(a, ...)	image_fail((a)->error, sizeof((a)->error), __VA_ARGS__)

/* Bytes before and behind a relocation that linkers may change with it. */
struct reach {
	unsigned int before, behind;
};

/**
 * struct archive_symbol - a global symbol that the archive defines in a section of code
 * @name: its name
 * @sig: number of the section
 * @value: where it is in the section
 */
struct archive_symbol {
	const char *name;
	unsigned int sig;
	uint64_t value;
};

/* Numbers of the signatures of a member's sections, and 1; 0: it has none. */
struct member {
	Elf *elf;
	unsigned int *sig_of;
	size_t nr_sections;
};

static Elf *elf_of(const struct archive *a, unsigned int member)
{
	return a->members[member];
}

static int add_section(struct archive *a, const GElf_Shdr *head, const Elf_Data *data)
{
	struct signature *sig = image_grow(&a->sigs, &a->nr, sizeof(*sig));

	if (!sig)
		return fail(a, "out of memory");
	if (a->nr > SECTIONS)
		return fail(a, "it has more than %u sections of code", SECTIONS);
	sig->len = head->sh_size;
	sig->bytes = malloc(sig->len);
	sig->mask = malloc(sig->len);
	if (!sig->bytes || !sig->mask)
		return fail(a, "out of memory");
	memcpy(sig->bytes, data->d_buf, sig->len);
	memset(sig->mask, 0xff, sig->len);
	return 0;
}

static int read_code(struct archive *a, struct member *m)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr head;

	while ((scn = elf_nextscn(m->elf, scn))) {
		if (!gelf_getshdr(scn, &head) || head.sh_type != SHT_PROGBITS || !head.sh_size ||
		    !(head.sh_flags & SHF_EXECINSTR) ||
		    head.sh_flags & (SHF_GROUP | SHF_COMPRESSED))
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf || data->d_size < head.sh_size)
			return fail(a, "a section lies outside of the file: is it whole?");
		if (add_section(a, &head, data))
			return -1;
		m->sig_of[elf_ndxscn(scn)] = a->nr;
	}
	return 0;
}

static Elf_Data *symbol_table(const struct member *m, GElf_Shdr *head)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(m->elf, scn)))
		if (gelf_getshdr(scn, head) && head->sh_type == SHT_SYMTAB)
			return elf_getdata(scn, NULL);
	return NULL;
}

static unsigned int sig_of(const struct member *m, size_t section)
{
	return section < m->nr_sections ? m->sig_of[section] : 0;
}

static int add_symbol(struct archive *a, const char *name, unsigned int sig, uint64_t value)
{
	struct archive_symbol *symbol = image_grow(&a->symbols, &a->nr_symbols, sizeof(*symbol));

	if (!symbol)
		return fail(a, "out of memory");
	*symbol = (struct archive_symbol){ .name = name, .sig = sig, .value = value };
	return 0;
}

static int read_names(struct archive *a, const struct member *m,
		      bool (*wanted)(const char *name))
{
	struct signature_name *n;
	struct signature *sig;
	const char *name;
	Elf_Data *table;
	GElf_Shdr head;
	GElf_Sym sym;
	int i;

	table = symbol_table(m, &head);
	for (i = 0; table && gelf_getsym(table, i, &sym); i++) {
		if (GELF_ST_BIND(sym.st_info) != STB_GLOBAL || !sig_of(m, sym.st_shndx))
			continue;
		name = elf_strptr(m->elf, head.sh_link, sym.st_name);
		sig = &a->sigs[sig_of(m, sym.st_shndx) - 1];
		if (!name || !*name || sym.st_value >= sig->len)
			continue;
		if (add_symbol(a, name, sig_of(m, sym.st_shndx) - 1, sym.st_value))
			return -1;
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !wanted(name))
			continue;
		n = image_grow(&sig->names, &sig->nr_names, sizeof(*n));
		if (!n)
			return fail(a, "out of memory");
		n->offset = sym.st_value;
		n->name = name;
	}
	return 0;
}

/* ---- relocations ---- */

/*
 * A linker may put another instruction in place of one that reads the address of a symbol, or of a
 * variable of the thread, from the global offset table (x86-64 psABI, B.2 and 11.2).
 */
static struct reach reach_of(unsigned int type)
{
	switch (type) {
	case R_X86_64_NONE:
		return (struct reach){ 0, 0 };
	case R_X86_64_64:
	case R_X86_64_PC64:
		return (struct reach){ 0, 8 };
	case R_X86_64_32:
	case R_X86_64_32S:
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_DTPOFF32:
	case R_X86_64_TPOFF32:
	case R_X86_64_GOTPCREL:
		return (struct reach){ 0, 4 };
	case R_X86_64_GOTPCRELX:
		return (struct reach){ 2, 4 };
	case R_X86_64_REX_GOTPCRELX:
	case R_X86_64_GOTTPOFF:
		return (struct reach){ 3, 4 };
	case R_X86_64_TLSLD:
		return (struct reach){ 3, 10 };
	default:
		/* R_X86_64_TLSGD changes the most, and others change less. */
		return (struct reach){ 4, 12 };
	}
}

static void mask(struct signature *sig, uint64_t offset, unsigned int type)
{
	struct reach reach = reach_of(type);
	uint64_t from = offset < reach.before ? 0 : offset - reach.before;
	uint64_t to = offset + reach.behind;

	if (!reach.behind)
		return;
	if (to > sig->len)
		to = sig->len;
	memset(sig->mask + from, 0, to - from);
}

static int by_name(const void *a, const void *b)
{
	const struct archive_symbol *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Find where a symbol is; return false if no section of the archive surely has it. */
static bool resolve(const struct archive *a, const struct member *m, const GElf_Shdr *symbols,
		    const GElf_Sym *sym, unsigned int *sig, uint64_t *value)
{
	struct archive_symbol key, *found;

	*value = sym->st_value;
	*sig = sig_of(m, sym->st_shndx) - 1;
	if (GELF_ST_BIND(sym->st_info) == STB_WEAK)
		return false;
	if (sym->st_shndx != SHN_UNDEF)
		return sig_of(m, sym->st_shndx);
	key.name = elf_strptr(m->elf, symbols->sh_link, sym->st_name);
	found = key.name && a->nr_symbols ?
		bsearch(&key, a->symbols, a->nr_symbols, sizeof(key), by_name) : NULL;
	if (!found)
		return false;
	*sig = found->sig;
	*value = found->value;
	return true;
}

/* A distance within the section is known; one to another section is to be compared. */
static int add_distance(struct archive *a, unsigned int from, unsigned int to, uint64_t offset,
			uint32_t value)
{
	struct signature *sig = &a->sigs[from];
	struct signature_ref *ref;

	if (from == to) {
		value -= (uint32_t)offset;
		memcpy(sig->bytes + offset, &value, sizeof(value));
		memset(sig->mask + offset, 0xff, sizeof(value));
		return 0;
	}
	ref = image_grow(&sig->refs, &sig->nr_refs, sizeof(*ref));
	if (!ref)
		return fail(a, "out of memory");
	ref->offset = offset;
	ref->target = to;
	ref->value = value - (uint32_t)offset;
	return 0;
}

/* Read the relocations of a section, whose distances are known once all others are masked. */
static int read_section_relocations(struct archive *a, const struct member *m,
				    const GElf_Shdr *section, Elf_Data *data, bool distances)
{
	unsigned int from = sig_of(m, section->sh_info) - 1, to, type;
	Elf_Scn *scn = elf_getscn(m->elf, section->sh_link);
	Elf_Data *table = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Shdr symbols;
	uint64_t value;
	GElf_Rela rela;
	GElf_Sym sym;
	int i;

	if (!table || !gelf_getshdr(scn, &symbols))
		return fail(a, "relocations have no symbols");
	for (i = 0; gelf_getrela(data, i, &rela); i++) {
		type = GELF_R_TYPE(rela.r_info);
		if (rela.r_offset >= a->sigs[from].len)
			return fail(a, "a relocation lies outside of its section");
		if (!distances) {
			mask(&a->sigs[from], rela.r_offset, type);
			continue;
		}
		if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) ||
		    a->sigs[from].len - rela.r_offset < sizeof(uint32_t) ||
		    !gelf_getsym(table, (int)GELF_R_SYM(rela.r_info), &sym) ||
		    !resolve(a, m, &symbols, &sym, &to, &value))
			continue;
		value += (uint64_t)rela.r_addend;
		if (add_distance(a, from, to, rela.r_offset, (uint32_t)value))
			return -1;
	}
	return 0;
}

static int read_relocations(struct archive *a, const struct member *m, bool distances)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr head;

	while ((scn = elf_nextscn(m->elf, scn))) {
		if (!gelf_getshdr(scn, &head) || head.sh_type != SHT_RELA ||
		    !sig_of(m, head.sh_info))
			continue;
		data = elf_getdata(scn, NULL);
		if (!data)
			return fail(a, "relocations lie outside of the file: is it whole?");
		if (read_section_relocations(a, m, &head, data, distances))
			return -1;
	}
	return 0;
}

/* ---- members ---- */

static bool is_object(Elf *elf)
{
	GElf_Ehdr head;

	return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &head) &&
	       head.e_machine == EM_X86_64 && gelf_getclass(elf) == ELFCLASS64 &&
	       head.e_type == ET_REL;
}

static int add_member(struct archive *a, Elf *elf)
{
	void **member;

	if (!is_object(elf)) {
		elf_end(elf);
		return 0;
	}
	member = image_grow(&a->members, &a->nr_members, sizeof(*member));
	if (!member) {
		elf_end(elf);
		return fail(a, "out of memory");
	}
	*member = elf;
	return a->nr_members > MEMBERS ? fail(a, "it has more than %u members", MEMBERS) : 0;
}

static int read_members(struct archive *a, int fd)
{
	/* libelf converts in place: its copy is private. */
	Elf *all = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL), *elf;
	int ret = 0;

	if (!all)
		return fail(a, "it cannot be read: %s", elf_errmsg(-1));
	if (elf_kind(all) != ELF_K_AR)
		return add_member(a, all);
	while (!ret && (elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, all))) {
		Elf_Cmd next = elf_next(elf);

		ret = add_member(a, elf);
		if (next == ELF_C_NULL)
			break;
	}
	elf_end(all);
	return ret;
}

static int read_code_and_names(struct archive *a, struct member *members,
			       bool (*wanted)(const char *name))
{
	unsigned int i;

	for (i = 0; i < a->nr_members; i++) {
		struct member *m = &members[i];

		m->elf = elf_of(a, i);
		if (elf_getshdrnum(m->elf, &m->nr_sections))
			return fail(a, "a member has no section headers");
		m->sig_of = calloc(m->nr_sections + 1, sizeof(*m->sig_of));
		if (!m->sig_of)
			return fail(a, "out of memory");
		if (read_code(a, m) || read_names(a, m, wanted))
			return -1;
	}
	if (a->nr_symbols)
		qsort(a->symbols, a->nr_symbols, sizeof(*a->symbols), by_name);
	return 0;
}

static int read_all(struct archive *a, struct member *members, bool (*wanted)(const char *name))
{
	unsigned int i;

	if (read_code_and_names(a, members, wanted))
		return -1;
	for (i = 0; i < a->nr_members; i++)
		if (read_relocations(a, &members[i], false) ||
		    read_relocations(a, &members[i], true))
			return -1;
	return a->nr ? 0 : fail(a, "it has no code for x86-64: is it libcudart_static.a?");
}

static int read_file(struct archive *a, int fd, bool (*wanted)(const char *name))
{
	struct member *members;
	unsigned int i;
	int ret;

	if (read_members(a, fd))
		return -1;
	members = calloc(a->nr_members + 1, sizeof(*members));
	if (!members)
		return fail(a, "out of memory");
	ret = read_all(a, members, wanted);
	for (i = 0; i < a->nr_members; i++)
		free(members[i].sig_of);
	free(members);
	return ret;
}

int archive_open(struct archive *a, const char *path, bool (*wanted)(const char *name))
{
	size_t size;
	int fd, ret;

	memset(a, 0, sizeof(*a));
	elf_version(EV_CURRENT);
	fd = image_file(path, &size, a->error, sizeof(a->error));
	if (fd < 0)
		return -1;
	ret = read_file(a, fd, wanted);
	/* All that is needed of the file has been read or mapped. */
	close(fd);
	return ret;
}

void archive_close(struct archive *a)
{
	unsigned int i;

	for (i = 0; i < a->nr; i++) {
		free(a->sigs[i].bytes);
		free(a->sigs[i].mask);
		free(a->sigs[i].names);
		free(a->sigs[i].refs);
	}
	free(a->sigs);
	free(a->symbols);
	for (i = 0; i < a->nr_members; i++)
		elf_end(a->members[i]);
	free(a->members);
	memset(a, 0, sizeof(*a));
}

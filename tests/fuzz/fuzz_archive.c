// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the search for functions of an archive in a program.  The input is the program's code and
 * the archive: two bytes with the length of the first, and both.
 */
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive.h"
#include "fuzz.h"

#define START	0x400000u

static bool wanted(const char *name)
{
	return *name == 'c';
}

/* A section that is surely there has the bytes that linkers do not change. */
static void check_sure(const struct signature *sig, const struct image *img)
{
	const uint8_t *code;
	size_t len, i;

	code = image_bytes(img, sig->places[0], &len);
	FUZZ_ASSERT(code && len >= sig->len);
	for (i = 0; i < sig->len; i++)
		FUZZ_ASSERT(!((code[i] ^ sig->bytes[i]) & sig->mask[i]));
	for (i = 0; i < sig->nr_names; i++)
		FUZZ_ASSERT(sig->names[i].offset < sig->len && *sig->names[i].name == 'c');
}

static void find(struct archive *a, const uint8_t *code, size_t len)
{
	struct image_segment segment = { .start = START, .end = START + len, .bytes = code,
					 .executable = true };
	const struct image img = { .segments = &segment, .nr_segments = 1 };
	const struct signature *doubtful;
	unsigned int i;

	signatures_find(a->sigs, a->nr, &img);
	for (i = 0; i < a->nr; i++) {
		FUZZ_ASSERT(a->sigs[i].nr_places <= a->sigs[i].nr_seen);
		if (signature_sure(&a->sigs[i]))
			check_sure(&a->sigs[i], &img);
	}
	doubtful = signatures_doubtful(a->sigs, a->nr);
	FUZZ_ASSERT(!doubtful || (doubtful->nr_names && doubtful->nr_seen));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct archive a;
	uint8_t *code;
	char name[64];
	size_t len;
	int fd, ret;

	if (size < 2)
		return 0;
	len = data[0] | (size_t)data[1] << 8;
	if (size - 2 < len)
		return 0;
	/* Behind it is nothing, where a sanitizer looks. */
	code = malloc(len ? len : 1);
	fd = memfd_create("archive", MFD_CLOEXEC);
	FUZZ_ASSERT(code && fd >= 0);
	memcpy(code, data + 2, len);
	FUZZ_ASSERT(write(fd, data + 2 + len, size - 2 - len) == (ssize_t)(size - 2 - len));
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ret = archive_open(&a, name, wanted);
	FUZZ_ASSERT(!ret == !*a.error);
	if (!ret)
		find(&a, code, len);
	archive_close(&a);
	close(fd);
	free(code);
	return 0;
}

/* ---- seeds ---- */

#define CODE	48u	/* bytes of a section */

/* An object file: three sections of code with a function each, of which each calls the next. */
struct object {
	Elf64_Ehdr head;
	uint8_t code[3][CODE];
	Elf64_Rela relocations[4];
	Elf64_Sym symbols[5];
	char strings[32];
	Elf64_Shdr sections[8];
};

static Elf64_Shdr relocations_of(unsigned int section, unsigned int first, unsigned int nr)
{
	return (Elf64_Shdr){ .sh_type = SHT_RELA, .sh_link = 6, .sh_info = section,
			     .sh_offset = offsetof(struct object, relocations) +
					  first * sizeof(Elf64_Rela),
			     .sh_size = nr * sizeof(Elf64_Rela), .sh_entsize = sizeof(Elf64_Rela) };
}

static void make_object(struct object *o)
{
	static const char strings[] = "\0cudaOne\0cudaTwo\0cudaSix\0other";
	static const unsigned char symbols[] = { 1, 2, 4, 3 };
	const Elf64_Shdr code = { .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				  .sh_size = CODE, .sh_addralign = 16 };
	unsigned int i;

	memset(o, 0, sizeof(*o));
	memcpy(o->head.e_ident, ELFMAG, SELFMAG);
	o->head.e_ident[EI_CLASS] = ELFCLASS64;
	o->head.e_ident[EI_DATA] = ELFDATA2LSB;
	o->head.e_ident[EI_VERSION] = o->head.e_version = EV_CURRENT;
	o->head.e_type = ET_REL;
	o->head.e_machine = EM_X86_64;
	o->head.e_ehsize = sizeof(o->head);
	o->head.e_shentsize = sizeof(*o->sections);
	o->head.e_shnum = 8;
	o->head.e_shoff = offsetof(struct object, sections);
	for (i = 0; i < 3 * CODE; i++)
		o->code[i / CODE][i % CODE] = (uint8_t)(i * 37 + 11);
	/* A distance within the section, one to the next, and one that the linker knows. */
	for (i = 0; i < 4; i++)
		o->relocations[i] = (Elf64_Rela) {
			.r_offset = 4 + 12 * (i % 3), .r_addend = -4,
			.r_info = ELF64_R_INFO((unsigned long)symbols[i],
					       i == 2 ? R_X86_64_REX_GOTPCRELX : R_X86_64_PLT32),
		};
	for (i = 1; i < 5; i++)
		o->symbols[i] = (Elf64_Sym) {
			.st_name = 8 * i - 7,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, i < 4 ? STT_FUNC : STT_NOTYPE),
			.st_shndx = (uint16_t)(i < 4 ? i : SHN_UNDEF),
		};
	memcpy(o->strings, strings, sizeof(strings));
	for (i = 0; i < 3; i++) {
		o->sections[1 + i] = code;
		o->sections[1 + i].sh_offset = offsetof(struct object, code) + i * CODE;
	}
	o->sections[4] = relocations_of(1, 0, 3);
	o->sections[5] = relocations_of(2, 3, 1);
	o->sections[6] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_link = 7, .sh_info = 1,
				       .sh_offset = offsetof(struct object, symbols),
				       .sh_size = sizeof(o->symbols),
				       .sh_entsize = sizeof(*o->symbols) };
	o->sections[7] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_size = sizeof(o->strings),
				       .sh_offset = offsetof(struct object, strings) };
}

/* The sections as a linker puts them into a program, one behind the other. */
static void link_object(const struct object *o, uint8_t code[3 * CODE])
{
	const int32_t to[] = { 0, CODE, 0x1000, 2 * CODE };
	unsigned int i;

	memcpy(code, o->code, sizeof(o->code));
	for (i = 0; i < 4; i++) {
		unsigned int at = (unsigned int)o->relocations[i].r_offset + (i < 3 ? 0 : CODE);
		int32_t distance = to[i] - 4 - (int32_t)at;

		memcpy(code + at, &distance, sizeof(distance));
	}
}

/* Write a seed: code of the program, and the archive. */
static void seed(const char *dir, const char *name, const uint8_t *code, size_t len,
		 const void *archive, size_t size)
{
	uint8_t data[2 + len + size];

	data[0] = (uint8_t)len;
	data[1] = (uint8_t)(len >> 8);
	memcpy(data + 2, code, len);
	memcpy(data + 2 + len, archive, size);
	fuzz_seed(dir, name, data, sizeof(data));
}

/*
 * The second section is a jump to the third.  The program has more such jumps than places are kept
 * of, and not what the one goes to that the first section calls.
 */
static void seed_crowded(const char *dir)
{
	uint8_t code[CODE + 5 * 80], whole[3 * CODE];
	struct object o;
	unsigned int i;

	make_object(&o);
	link_object(&o, whole);
	memset(code, 0, sizeof(code));
	memcpy(code, whole, CODE);
	for (i = CODE; i < sizeof(code); i += 5)
		code[i] = 0xe9;
	o.code[1][0] = 0xe9;
	o.sections[2].sh_size = 5;
	o.relocations[3].r_offset = 1;
	seed(dir, "crowded", code, sizeof(code), &o, sizeof(o));
}

static void seeds(const char *dir)
{
	static const char ar[] = "!<arch>\none.o/          0           0     0     644     ";
	uint8_t code[6 * CODE], archive[sizeof(ar) + 16 + sizeof(struct object)];
	struct object o;
	size_t n;

	make_object(&o);
	link_object(&o, code);
	link_object(&o, code + 3 * CODE);
	seed(dir, "object", code, 3 * CODE, &o, sizeof(o));
	n = (size_t)sprintf((char *)archive, "%s%-10zu`\n", ar, sizeof(o));
	memcpy(archive + n, &o, sizeof(o));
	seed(dir, "archive", code, 3 * CODE, archive, n + sizeof(o));
	/* Twice in the program. */
	seed(dir, "twice", code, sizeof(code), &o, sizeof(o));
	seed_crowded(dir);
}

FUZZ_SEEDS(seeds)

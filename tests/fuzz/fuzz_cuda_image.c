// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz what reads images of CUDA's code: PTX, cubins and fat binaries, by a program's own front end
 * and by the process that mgpu-remoted has for it.
 */
#include <elf.h>

#include "fuzz.h"
#include "cuda_api.h"

static bool found(void *arg, const char *name, const struct cuda_param *params, unsigned int nr)
{
	unsigned int *kernels = arg;

	FUZZ_ASSERT(nr <= CUDA_PARAMS);
	for (unsigned int i = 0; i < nr; i++)
		(void)((const volatile struct cuda_param *)params)[i];
	FUZZ_ASSERT(strlen(name) < SIZE_MAX);
	return ++*kernels < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int kernels = 0;
	uint8_t *image;
	uint64_t len;

	/* Behind it is nothing, where a sanitizer looks. */
	image = malloc(size ? size : 1);
	FUZZ_ASSERT(image);
	memcpy(image, data, size);
	len = cuda_image_len(image, size);
	if (len && len <= size) {
		cuda_image_kernels(image, len, found, &kernels);
		/* Where the magic number ends first there is no image. */
		FUZZ_ASSERT(len < 4 || cuda_image_len(image, len) == len);
	} else {
		FUZZ_ASSERT(!cuda_image_kernels(image, size, found, &kernels) && !kernels);
	}
	free(image);
	return 0;
}

/* ---- seeds ---- */

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	"/* a comment */ // another\n"
	".global .align 4 .u32 table[16];\n"
	".visible .entry add(.param .u64 add_a, .param .align 8 .b8 add_s[16], .param .f32 add_f)\n"
	"{\n\tret;\n}\n"
	".weak .entry none()\n{\n\tret;\n}\n";

static const char unaligned[] = ".visible .entry zero(.param .u32 .align 0 zero_x)\n{\n}\n";

/* A cubin with a kernel of two parameters. */
static size_t make_cubin(uint8_t *to)
{
	static const char names[] = "\0.shstrtab\0.nv.info.add";
	const uint32_t info[] = {
		0x000c1704, 0, 0x00000000, 0x0021f000,	/* ordinal 0, 8 bytes */
		0x000c1704, 0, 0x00080001, 0x0011f000,	/* ordinal 1, offset 8, 4 bytes */
		0x00000303,				/* an attribute without a size */
	};
	const Elf64_Ehdr h = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC, .e_machine = 190, .e_shoff = sizeof(h),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 1,
	};
	const Elf64_Shdr sections[3] = {
		{ .sh_type = SHT_NULL },
		{ .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = sizeof(h) + sizeof(sections),
		  .sh_size = sizeof(names) },
		{ .sh_name = 11, .sh_type = SHT_PROGBITS,
		  .sh_offset = sizeof(h) + sizeof(sections) + sizeof(names),
		  .sh_size = sizeof(info) },
	};
	size_t len = 0;

	memcpy(to, &h, sizeof(h));
	len += sizeof(h);
	memcpy(to + len, sections, sizeof(sections));
	len += sizeof(sections);
	memcpy(to + len, names, sizeof(names));
	len += sizeof(names);
	memcpy(to + len, info, sizeof(info));
	return len + sizeof(info);
}

/* A fat binary, of an entry that is compressed and one that is not. */
static size_t make_fat(uint8_t *to, uint16_t kind, const void *code, uint32_t code_len)
{
	uint32_t words[4 + 2 * 16] = { 0xba55ed50, 1 | 16 << 16 };

	words[2] = 2 * 64 + 8 + code_len;
	words[4] = kind | 0x101 << 16;
	words[5] = 64;
	words[6] = 8;
	words[14] = 0x2000;
	memcpy(to, words, 80);
	memset(to + 80, 1, 8);
	words[20] = kind | 0x101 << 16;
	words[21] = 64;
	words[22] = code_len;
	memcpy(to + 88, words + 20, 64);
	memcpy(to + 152, code, code_len);
	return 152 + code_len;
}

static void seeds(const char *dir)
{
	uint8_t cubin[1024], fat[4096], outer[8192];
	size_t len = make_cubin(cubin);

	fuzz_seed(dir, "ptx", ptx, sizeof(ptx));
	fuzz_seed(dir, "unaligned", unaligned, sizeof(unaligned));
	fuzz_seed(dir, "cubin", cubin, len);
	fuzz_seed(dir, "fat-cubin", fat, make_fat(fat, 2, cubin, (uint32_t)len));
	len = make_fat(fat, 1, ptx, sizeof(ptx));
	fuzz_seed(dir, "fat-ptx", fat, len);
	fuzz_seed(dir, "fat-in-fat", outer, make_fat(outer, 2, fat, (uint32_t)len));
}

FUZZ_SEEDS(seeds)

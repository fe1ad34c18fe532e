// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images of code: how long they are, and what their kernels are called and take.  PTX is text; a
 * cubin is an ELF file, of which a section .nv.info.KERNEL has the parameters; a fat binary has
 * several of them, each with a header.
 */
#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "cuda_api.h"

#define WRAPPER_MAGIC	0x466243b1u	/* a fat binary as nvcc puts it into a program */
#define FAT_MAGIC	0xba55ed50u
#define FAT_PTX		1u
#define FAT_ELF		2u
#define FAT_COMPRESSED	0xa000u		/* flags of an entry: LZ4, zstd */
#define INFO_SIZED	4u		/* of an attribute in .nv.info: its size follows */
#define INFO_PARAM	0x17u		/* EIATTR_KPARAM_INFO */

struct fat_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_len;
	uint64_t len;
};

struct fat_entry {
	uint16_t kind;
	uint16_t version;
	uint32_t header_len;
	uint64_t len;
	uint32_t compressed_len;
	uint32_t pad;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_at;
	uint32_t name_len;
	uint64_t flags;
};

/* Copy a header; false if it is not there. */
static bool get(const uint8_t *image, uint64_t max, uint64_t at, void *to, size_t len)
{
	if (at > max || len > max - at)
		return false;
	memcpy(to, image + at, len);
	return true;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t elf_len(const uint8_t *image, uint64_t max)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;
	Elf64_Shdr s;
	uint64_t len;

	if (!get(image, max, 0, &h, sizeof(h)))
		return UINT64_MAX;
	if (h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    (h.e_shnum && h.e_shentsize != sizeof(s)) || (h.e_phnum && h.e_phentsize != sizeof(p)))
		return 0;
	len = later(sat_add(h.e_shoff, h.e_shnum * sizeof(s)),
		    sat_add(h.e_phoff, h.e_phnum * sizeof(p)));
	len = later(len, sizeof(h));
	if (len > max)
		return len;
	for (unsigned int i = 0; i < h.e_shnum; i++) {
		memcpy(&s, image + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL)
			len = later(len, sat_add(s.sh_offset, s.sh_size));
	}
	return len;
}

uint64_t cuda_image_len(const void *image, uint64_t max)
{
	struct fat_header fat;
	const uint8_t *p = image;
	uint32_t magic;

	if (!get(p, max, 0, &magic, sizeof(magic)))
		return sat_add(max, 1);
	if (!memcmp(p, ELFMAG, SELFMAG))
		return elf_len(p, max);
	if (magic == FAT_MAGIC) {
		if (!get(p, max, 0, &fat, sizeof(fat)))
			return sat_add(max, 1);
		return fat.header_len < sizeof(fat) ? 0 : sat_add(fat.header_len, fat.len);
	}
	if (!isprint(*p) && !isspace(*p))
		return 0;
	return sat_add(max == UINT64_MAX ? strlen(image) : strnlen(image, max), 1);
}

const void *cuda_image_unwrap(const void *image)
{
	struct {
		uint32_t magic;
		uint32_t version;
		const void *data;
	} wrapper;

	memcpy(&wrapper.magic, image, sizeof(wrapper.magic));
	if (wrapper.magic != WRAPPER_MAGIC)
		return image;
	memcpy(&wrapper, image, sizeof(wrapper));
	return wrapper.data;
}

/* ---- PTX ---- */

/* Where a text is, and its end. */
struct text {
	const char *at;
	const char *end;
};

static void skip_space(struct text *t)
{
	for (;;) {
		while (t->at < t->end && isspace((unsigned char)*t->at))
			t->at++;
		if (t->end - t->at < 2 || t->at[0] != '/')
			return;
		if (t->at[1] == '/') {
			while (t->at < t->end && *t->at != '\n')
				t->at++;
		} else if (t->at[1] == '*') {
			t->at += 2;
			while (t->end - t->at >= 2 && (t->at[0] != '*' || t->at[1] != '/'))
				t->at++;
			t->at += t->end - t->at >= 2 ? 2 : t->end - t->at;
		} else {
			return;
		}
	}
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || c == '%';
}

/* Read a word, or another character as one; an empty one at the end. */
static struct text next_word(struct text *t)
{
	struct text w;

	skip_space(t);
	w.at = t->at;
	while (t->at < t->end && is_word(*t->at))
		t->at++;
	if (t->at == w.at && t->at < t->end)
		t->at++;
	w.end = t->at;
	return w;
}

static bool is(struct text w, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(w.end - w.at) == len && !memcmp(w.at, text, len);
}

static uint64_t number(struct text w)
{
	uint64_t v = 0;

	for (; w.at < w.end && isdigit((unsigned char)*w.at); w.at++)
		v = sat_add(sat_mul(v, 10), (uint64_t)(*w.at - '0'));
	return v;
}

/* Bytes of a type such as .u64 or .b8; 0 for another word. */
static uint32_t type_bytes(struct text w)
{
	uint64_t bits;

	if (w.end - w.at < 3 || *w.at != '.' || !strchr("bsuf", w.at[1]))
		return 0;
	w.at += 2;
	bits = number(w);
	return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? (uint32_t)bits / 8 : 0;
}

/* Read the parameters behind "(". */
static bool ptx_params(struct text *t, struct cuda_param *params, unsigned int *nr)
{
	uint64_t bytes = 0, align = 0, at = 0;
	bool pointer = false;
	struct text w;

	for (*nr = 0;;) {
		w = next_word(t);
		if (w.at == w.end)
			return false;
		if (is(w, ".ptr")) {
			pointer = true;
		} else if (is(w, ".align")) {
			/* That of a pointer is about what it points to. */
			w = next_word(t);
			align = pointer ? align : number(w);
		} else if (!bytes && type_bytes(w)) {
			bytes = type_bytes(w);
			align = align ? align : bytes;
		} else if (is(w, "[")) {
			bytes = sat_mul(bytes, number(next_word(t)));
		} else if (is(w, ",") || is(w, ")")) {
			if (bytes) {
				if (*nr == CUDA_PARAMS || !align || align > 256 ||
				    bytes > CUDA_PARAM_BYTES)
					return false;
				at = (at + align - 1) / align * align;
				params[(*nr)++] = (struct cuda_param){ (uint32_t)at,
								       (uint32_t)bytes };
				at += bytes;
			}
			bytes = align = 0;
			pointer = false;
			if (at > CUDA_PARAM_BYTES)
				return false;
			if (is(w, ")"))
				return true;
		}
	}
}

typedef bool found_fn(void *arg, const char *name, const struct cuda_param *params,
		      unsigned int nr);

static bool ptx_kernels(const char *image, uint64_t len, found_fn *found, void *arg)
{
	struct cuda_param params[CUDA_PARAMS];
	struct text t = { image, image + len }, w, before = { 0 };
	char name[4096];
	unsigned int nr;

	for (w = next_word(&t); w.at < w.end; w = next_word(&t)) {
		if (!is(before, ".entry")) {
			before = w;
			continue;
		}
		before = w;
		if ((size_t)(w.end - w.at) >= sizeof(name))
			return false;
		memcpy(name, w.at, (size_t)(w.end - w.at));
		name[w.end - w.at] = '\0';
		nr = 0;
		w = next_word(&t);
		if (is(w, "(") && !ptx_params(&t, params, &nr))
			return false;
		if (!found(arg, name, params, nr))
			return true;
	}
	return true;
}

/* ---- cubins ---- */

static bool info_params(const uint8_t *p, uint64_t len, struct cuda_param *params, unsigned int *nr)
{
	struct {
		uint32_t index;
		uint16_t ordinal;
		uint16_t offset;
		uint32_t packed;
	} info;

	*nr = 0;
	while (len >= 4) {
		uint16_t size = (uint16_t)(p[2] | p[3] << 8);
		uint64_t step = p[0] == INFO_SIZED ? 4ull + size : 4;

		if (step > len)
			return false;
		if (p[0] == INFO_SIZED && p[1] == INFO_PARAM) {
			if (size < sizeof(info))
				return false;
			memcpy(&info, p + 4, sizeof(info));
			if (info.ordinal >= CUDA_PARAMS)
				return false;
			if (info.ordinal >= *nr)
				*nr = info.ordinal + 1u;
			params[info.ordinal].offset = info.offset;
			params[info.ordinal].size = info.packed >> 18;
		}
		p += step;
		len -= step;
	}
	return true;
}

static bool elf_kernels(const uint8_t *image, uint64_t len, found_fn *found, void *arg)
{
	struct cuda_param params[CUDA_PARAMS];
	static const char prefix[] = ".nv.info.";
	Elf64_Ehdr h;
	Elf64_Shdr s, names;
	unsigned int nr;

	/* cuda_image_len() has looked at where the sections are. */
	memcpy(&h, image, sizeof(h));
	if (h.e_shstrndx >= h.e_shnum)
		return false;
	memcpy(&names, image + h.e_shoff + h.e_shstrndx * sizeof(s), sizeof(s));
	if (names.sh_type != SHT_STRTAB || !names.sh_size ||
	    image[names.sh_offset + names.sh_size - 1])
		return false;
	for (unsigned int i = 0; i < h.e_shnum; i++) {
		const char *name = (const char *)image + names.sh_offset;

		memcpy(&s, image + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL || s.sh_name >= names.sh_size)
			continue;
		name += s.sh_name;
		if (strncmp(name, prefix, strlen(prefix)))
			continue;
		memset(params, 0, sizeof(params));
		if (!info_params(image + s.sh_offset, s.sh_size, params, &nr))
			return false;
		if (!found(arg, name + strlen(prefix), params, nr))
			return true;
	}
	return len;
}

/* ---- all ---- */

/* None lies within another one: the depth is bounded. */
static bool is_fat(const uint8_t *code, uint64_t len)
{
	uint32_t magic;

	return get(code, len, 0, &magic, sizeof(magic)) && magic == FAT_MAGIC;
}

static bool fat_kernels(const uint8_t *image, uint64_t len, found_fn *found, void *arg)
{
	struct fat_header fat;
	struct fat_entry e;

	memcpy(&fat, image, sizeof(fat));
	for (uint64_t at = fat.header_len; get(image, len, at, &e, sizeof(e));) {
		const uint8_t *code;

		if (e.header_len < sizeof(e) || e.header_len > len - at ||
		    e.len > len - at - e.header_len)
			return false;
		code = image + at + e.header_len;
		if (!(e.flags & FAT_COMPRESSED) && (e.kind == FAT_ELF || e.kind == FAT_PTX) &&
		    cuda_image_len(code, e.len) <= e.len && !is_fat(code, e.len))
			return cuda_image_kernels(code, e.len, found, arg);
		at += e.header_len + e.len;
	}
	return false;
}

bool cuda_image_kernels(const void *image, uint64_t len, found_fn *found, void *arg)
{
	const uint8_t *p = image;
	uint32_t magic;
	uint64_t there = cuda_image_len(image, len);

	if (!there || there > len || len < sizeof(magic))
		return false;
	memcpy(&magic, p, sizeof(magic));
	if (!memcmp(p, ELFMAG, SELFMAG))
		return elf_kernels(p, len, found, arg);
	if (magic == FAT_MAGIC)
		return fat_kernels(p, len, found, arg);
	return ptx_kernels(image, there - 1, found, arg);
}

bool cuda_options_plain(unsigned int nr, const CUjit_option *options)
{
	for (unsigned int i = 0; i < nr; i++) {
		switch (options[i]) {
		case CU_JIT_MAX_REGISTERS:
		case CU_JIT_OPTIMIZATION_LEVEL:
		case CU_JIT_TARGET:
		case CU_JIT_FALLBACK_STRATEGY:
		case CU_JIT_GENERATE_DEBUG_INFO:
		case CU_JIT_LOG_VERBOSE:
		case CU_JIT_GENERATE_LINE_INFO:
		case CU_JIT_CACHE_MODE:
			break;
		default:
			return false;
		}
	}
	return true;
}

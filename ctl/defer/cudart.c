// SPDX-License-Identifier: GPL-2.0-only
#include <capstone/capstone.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudart.h"

typedef uint64_t look_at_insn(const struct cs_insn *insn, void *data);

#define VERSION		"cudaRuntimeGetVersion"
#define MEND		"link it with 'nvcc -cudart shared', or without 'strip'"

#define fail(rt, ...)	image_fail((rt)->error, sizeof((rt)->error), __VA_ARGS__)

/* Return whether a name is one as those of the API are; a program can have such a function, too. */
static bool is_api(const char *name)
{
	const char *letter = name;

	/* A damaged file can have anything for a name. */
	while (isalnum((unsigned char)*letter) || *letter == '_')
		letter++;
	if (*letter)
		return false;
	if (!strncmp(name, "__", 2))
		name += 2;
	return !strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

static int add(struct cudart *rt, uint64_t address, const char *name)
{
	struct cudart_function *f = image_grow(&rt->functions, &rt->nr, sizeof(*f));

	if (!f)
		return fail(rt, "out of memory");
	f->address = address;
	f->name = name;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct cudart_function *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* A symbol can be in both tables of a file. */
static void sort(struct cudart *rt)
{
	unsigned int i, n = 0;

	if (rt->nr)
		qsort(rt->functions, rt->nr, sizeof(*rt->functions), by_address);
	for (i = 0; i < rt->nr; i++)
		if (!n || by_address(&rt->functions[n - 1], &rt->functions[i]))
			rt->functions[n++] = rt->functions[i];
	rt->nr = n;
}

/* ---- whether the program has the library ---- */

static int find_symbols(struct cudart *rt, const struct image *img)
{
	bool whole = false;
	unsigned int i;

	for (i = 0; i < img->nr_symbols; i++)
		whole |= !strcmp(img->symbols[i].name, VERSION);
	for (i = 0; whole && i < img->nr_symbols; i++)
		if (is_api(img->symbols[i].name) &&
		    add(rt, img->symbols[i].address, img->symbols[i].name))
			return -1;
	return 0;
}

/* Return whether the program calls a runtime library that is shared. */
static bool imports(const struct image *img)
{
	unsigned int i;

	for (i = 0; i < img->nr_slots; i++)
		if (is_api(img->slots[i].name))
			return true;
	return false;
}

static bool has_text(const struct image *img, const char *text)
{
	unsigned int i;

	for (i = 0; i < img->nr_segments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (memmem(s->bytes, s->end - s->start, text, strlen(text) + 1))
			return true;
	}
	return false;
}

/* The library loads the driver by its name, and has the names of its errors. */
static bool may_have(const struct image *img)
{
	return has_text(img, "libcuda.so.1") && has_text(img, "cudaErrorInsufficientDriver");
}

/* ---- by the archive ---- */

const char *cudart_archive(void)
{
	const char *path = getenv(CUDART_ARCHIVE);

	return path && *path ? path : NULL;
}

/* Look for the archive where CUDA's toolkit and distributions put it. */
static bool find_archive(char *path, size_t size)
{
	static const char *const folders[] = {
		"lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu",
	};
	const char *const tops[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
				     "/usr" };
	size_t i, k;

	for (i = 0; i < sizeof(tops) / sizeof(*tops); i++)
		for (k = 0; tops[i] && *tops[i] && k < sizeof(folders) / sizeof(*folders); k++) {
			int len = snprintf(path, size, "%s/%s/libcudart_static.a", tops[i],
					   folders[k]);

			if (len > 0 && (size_t)len < size && !access(path, R_OK))
				return true;
		}
	return false;
}

static int take(struct cudart *rt, const struct signature *sig)
{
	unsigned int i;

	for (i = 0; i < sig->nr_names; i++)
		if (add(rt, sig->places[0] + sig->names[i].offset, sig->names[i].name))
			return -1;
	return 0;
}

static int find_signatures(struct cudart *rt, const struct image *img, const char *path)
{
	const struct signature *doubtful;
	unsigned int i;

	if (archive_open(&rt->archive, path, is_api))
		return fail(rt, "%s: %s; name another archive in $" CUDART_ARCHIVE, path,
			    rt->archive.error);
	signatures_find(rt->archive.sigs, rt->archive.nr, img);
	for (i = 0; i < rt->archive.nr; i++)
		if (signature_sure(&rt->archive.sigs[i]) && take(rt, &rt->archive.sigs[i]))
			return -1;
	doubtful = signatures_doubtful(rt->archive.sigs, rt->archive.nr);
	if (doubtful)
		return fail(rt, "it is stripped, and code as that of %s in %s is there %s; " MEND,
			    doubtful->names[0].name, path, doubtful->nr_places > 1 ?
			    "more than once" : "but may be another function's");
	if (!rt->nr)
		return fail(rt, "it is stripped, and its runtime library is not that of %s; name in $"
			    CUDART_ARCHIVE " the libcudart_static.a of the toolkit that it was linked with, or "
			    MEND, path);
	return 0;
}

static int find_stripped(struct cudart *rt, const struct image *img, const char *path)
{
	char found[4096];

	if (!path && find_archive(found, sizeof(found)))
		path = found;
	if (!path)
		return fail(rt, "it is stripped, and there is no libcudart_static.a to find its runtime library by; name the toolkit's in $"
			    CUDART_ARCHIVE ", or " MEND);
	return find_signatures(rt, img, path);
}

/* ---- the version ---- */

/* Call @look for each instruction of a function of the program, until it returns other than 0. */
static uint64_t each_instruction(csh handle, const struct image *img, uint64_t start,
				 look_at_insn *look, void *data)
{
	const struct image_function *fn = image_function(img, start);
	uint64_t result = 0;
	const uint8_t *code;
	size_t len;
	cs_insn *insn;

	code = image_bytes(img, start, &len);
	if (!fn || !code)
		return 0;
	if (len > fn->end - start)
		len = fn->end - start;
	insn = cs_malloc(handle);
	while (insn && !result && cs_disasm_iter(handle, &code, &len, &start, insn))
		result = look(insn, data);
	if (insn)
		cs_free(insn, 1);
	return result;
}

/* movl $13000, (%reg) */
static uint64_t stored_version(const cs_insn *insn, void *data)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	(void)data;
	if (insn->id != X86_INS_MOV || op[0].type != X86_OP_MEM || op[1].type != X86_OP_IMM ||
	    op[0].mem.disp || op[0].size != 4 || op[0].mem.base == X86_REG_RIP)
		return 0;
	return op[1].imm >= 1000 && op[1].imm < 100000 && !(op[1].imm % 10) ? (uint64_t)op[1].imm :
		0;
}

struct callee_version {
	csh handle;
	const struct image *img;
};

static uint64_t callees_version(const cs_insn *insn, void *data)
{
	const struct callee_version *v = data;
	const cs_x86_op *op = insn->detail->x86.operands;

	if ((insn->id != X86_INS_CALL && insn->id != X86_INS_JMP) || op[0].type != X86_OP_IMM)
		return 0;
	return each_instruction(v->handle, v->img, (uint64_t)op[0].imm, stored_version, NULL);
}

/* cudaRuntimeGetVersion() stores a constant, or calls a function that does. */
static int find_version(struct cudart *rt, csh handle, const struct image *img)
{
	struct callee_version v = { .handle = handle, .img = img };
	uint64_t at = 0;
	unsigned int i;

	for (i = 0; i < rt->nr; i++)
		if (!strcmp(rt->functions[i].name, VERSION))
			at = rt->functions[i].address;
	rt->version = (unsigned int)each_instruction(handle, img, at, stored_version, NULL);
	if (!rt->version)
		rt->version = (unsigned int)each_instruction(handle, img, at, callees_version, &v);
	return rt->version ? 0 :
		fail(rt, "the version of its runtime library is not to be found; link it with 'nvcc -cudart shared'");
}

/* ---- room ---- */

/* Look for a function whose beginning, behind its first byte, has this address. */
static struct cudart_function *beginning_with(const struct cudart *rt, uint64_t address)
{
	unsigned int low = 0, high = rt->nr, mid;

	while (low < high) {
		struct cudart_function *f;

		mid = low + (high - low) / 2;
		f = &rt->functions[mid];
		if (address <= f->address)
			high = mid;
		else if (address - f->address >= CUDART_ROOM)
			low = mid + 1;
		else
			return f;
	}
	return NULL;
}

static uint64_t goes_to(const cs_insn *insn, void *data)
{
	const cs_x86 *x = &insn->detail->x86;
	const uint64_t *address = data;

	return x->op_count == 1 && x->operands[0].type == X86_OP_IMM &&
	       (uint64_t)x->operands[0].imm == *address;
}

/* Return how many bytes a direct jump or call has before its distance; @distance: its bytes. */
static unsigned int branch(const uint8_t *p, size_t len, unsigned int *distance)
{
	*distance = 1;
	if (len >= 2 && (*p == 0xeb || (*p & 0xf0) == 0x70 || (*p & 0xfc) == 0xe0))
		return 1;
	*distance = 4;
	if (len >= 5 && (*p == 0xe8 || *p == 0xe9))
		return 1;
	return len >= 6 && *p == 0x0f && (p[1] & 0xf0) == 0x80 ? 2 : 0;
}

static uint64_t branch_target(const uint8_t *p, size_t len, uint64_t at)
{
	unsigned int size, before = branch(p, len, &size);
	int32_t far;

	if (!before)
		return 0;
	if (size == 1)
		return at + before + 1 + (uint64_t)(int64_t)(int8_t)p[before];
	memcpy(&far, p + before, sizeof(far));
	return at + before + size + (uint64_t)(int64_t)far;
}

/*
 * Cut the room of functions whose first bytes other code jumps into.  A function is disassembled
 * only if bytes in it look like such a jump.
 */
static void look_for_jumps(struct cudart *rt, csh handle, const struct image *img,
			   const struct image_segment *s)
{
	size_t len = s->end - s->start, k;

	for (k = 0; k < len; k++) {
		uint64_t at = s->start + k, to = branch_target(s->bytes + k, len - k, at);
		struct cudart_function *f = to ? beginning_with(rt, to) : NULL;
		const struct image_function *from;

		if (!f || to - f->address >= f->room)
			continue;
		from = image_function(img, at);
		/* Once the beginning is a jump elsewhere, own jumps are not executed. */
		if (!from || from->start == f->address)
			continue;
		if (each_instruction(handle, img, from->start, goes_to, &to))
			f->room = (unsigned int)(to - f->address);
	}
}

/* Return the bytes of padding from an address on. */
static unsigned int padding(csh handle, const uint8_t *code, size_t len)
{
	cs_insn *insn = cs_malloc(handle);
	uint64_t at = 0, end = 0;

	while (insn && cs_disasm_iter(handle, &code, &len, &at, insn) &&
	       (insn->id == X86_INS_NOP || insn->id == X86_INS_INT3))
		end = at;
	if (insn)
		cs_free(insn, 1);
	return (unsigned int)end;
}

/* Return a function's bytes and those of the padding behind it, @limit at most. */
static unsigned int room(csh handle, const struct image *img, uint64_t address, uint64_t limit)
{
	const struct image_function *f = image_function(img, address);
	const uint8_t *p;
	uint64_t own;
	size_t len;

	p = image_bytes(img, address, &len);
	if (!p || !f || f->start != address)
		return 0;
	if (limit > len)
		limit = len;
	own = f->end - address;
	if (f + 1 < img->functions + img->nr_functions && f[1].start - address < limit)
		limit = f[1].start - address;
	return (unsigned int)(own >= limit ? limit :
			      own + padding(handle, p + own, (size_t)(limit - own)));
}

/* Return the distance to the next function of the library, CUDART_ROOM at most. */
static uint64_t next(const struct cudart *rt, unsigned int i)
{
	uint64_t address = rt->functions[i].address;

	while (++i < rt->nr)
		if (rt->functions[i].address != address)
			return rt->functions[i].address - address < CUDART_ROOM ?
				rt->functions[i].address - address : CUDART_ROOM;
	return CUDART_ROOM;
}

static void measure_rooms(struct cudart *rt, csh handle, const struct image *img)
{
	unsigned int i;

	for (i = 0; i < rt->nr; i++)
		rt->functions[i].room = room(handle, img, rt->functions[i].address, next(rt, i));
	for (i = 0; i < img->nr_segments; i++)
		if (img->segments[i].executable)
			look_for_jumps(rt, handle, img, &img->segments[i]);
}

int cudart_measure(struct cudart *rt, const struct image *img)
{
	csh handle;
	int ret;

	if (!rt->nr)
		return 0;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return fail(rt, "Capstone does not begin");
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	ret = find_version(rt, handle, img);
	if (!ret)
		measure_rooms(rt, handle, img);
	cs_close(&handle);
	return ret;
}

/* ---- all ---- */

int cudart_find(struct cudart *rt, const struct image *img, const char *path)
{
	memset(rt, 0, sizeof(*rt));
	if (find_symbols(rt, img))
		return -1;
	if (!rt->nr && (imports(img) || !may_have(img)))
		return 0;
	if (!rt->nr && find_stripped(rt, img, path))
		return -1;
	sort(rt);
	return 0;
}

void cudart_free(struct cudart *rt)
{
	free(rt->functions);
	archive_close(&rt->archive);
	memset(rt, 0, sizeof(*rt));
}

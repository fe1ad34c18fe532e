// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library of CUDA's driver that records: libcuda.so.1 where there is no GPU.  Programs use it by
 * themselves, or mgpu-remoted does for them; what it writes to the file $MGPU_CUDA_RECORD, a line
 * for each successful call that makes, changes or orders something, is to be the same.  So objects
 * and memory are named by their numbers, m3+8 being 8 bytes into the third allocation.
 *
 * Device memory is memory of the process; copies and memsets are executed.  A launch computes
 * nothing: it mixes its name, its size, its parameters and what was there before into the first
 * words that each of its pointers points to, so that a program reads something else after other
 * launches, or the same ones in another order.  After a kernel called "fault" each call fails, as
 * after one on a GPU that reads where there is nothing.
 */
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_api.h"
#include "cuda_gen.h"

#pragma GCC visibility push(default)

#define TOTAL		(1ull << 30)	/* bytes of the device */
#define MAGIC		0x7265636fu
#define MIXED		8u		/* words that a launch changes */
#define PITCH		512u
#define DEPTH		16u
#ifndef DEVICES
#define DEVICES		1
#endif

/* A fuzz target, which includes this file, has device memory at addresses that it knows. */
#ifndef DEVICE_MEMORY
#define DEVICE_MEMORY(p, bytes)	posix_memalign(p, 256, bytes)
#define DEVICE_FREE(p)		free(p)
#define OTHERS			0x7000000000ull	/* where a page is that no program has got */
#endif

/* A fuzz target fails when the server hands over an object or memory that has gone. */
#ifndef GONE
#define GONE()			((void)0)
#endif

struct code;

/* An object of any kind. */
struct thing {
	uint32_t magic;
	uint32_t kind;
	unsigned int nr;
	unsigned int flags;
	int priority;
	int device;			/* of a context */
	bool recorded;			/* an event */
	const struct thing *context;	/* of a library's function; NULL: see @code */
	struct code *code;		/* of a module, a library, a function or a kernel */
	struct thing *next;		/* of the same code */
	struct thing *before;		/* the one that was made before it */
	char name[256];			/* of a function or a kernel */
	unsigned int nr_params;
	struct cuda_param *params;
};

/* An image, and the functions and kernels that were asked for. */
struct code {
	const struct thing *context;	/* NULL: of all */
	uint8_t *image;
	uint64_t len;
	struct thing *kernels;
};

static struct {
	pthread_mutex_t lock;
	FILE *file;
	struct cuda_ranges memory;
	struct cuda_ranges host;
	unsigned int made[NR_KINDS];
	unsigned int allocations;
	CUresult fault;
	bool initialised;
	struct thing *last;		/* that was made */
	struct thing *primary[DEVICES];
	unsigned int retained[DEVICES];
	unsigned int primary_flags[DEVICES];
	CUfunc_cache cache;
	size_t limits[8];
} rec = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local struct thing *stack[DEPTH];
static _Thread_local unsigned int depth;
static _Thread_local struct thing *own_stream;

/* ---- the record ---- */

__attribute__((constructor)) static void open_record(void)
{
	const char *name = getenv("MGPU_CUDA_RECORD");

	rec.file = name ? fopen(name, "ae") : NULL;
	if (rec.file)
		setvbuf(rec.file, NULL, _IOLBF, 1u << 16);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;

	if (!rec.file)
		return;
	va_start(args, format);
	vfprintf(rec.file, format, args);
	va_end(args);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t digest(const void *p, uint64_t len)
{
	const uint8_t *at = p;
	uint64_t h = len;

	while (len--)
		h = mix(h, *at++);
	return h;
}

/* Write where an address is. */
static const char *where(CUdeviceptr p, char text[64])
{
	const struct cuda_range *r = cuda_ranges_find(&rec.memory, p, 1);

	if (r)
		snprintf(text, 64, "m%u+%llu", (unsigned int)(uintptr_t)r->owner,
			 (unsigned long long)(p - r->start));
	else
		snprintf(text, 64, "%#llx", p);
	return text;
}

#define WHERE(p)	where(p, (char [64]) { 0 })

/* ---- objects ---- */

static struct thing *new_thing(uint32_t kind)
{
	struct thing *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->magic = MAGIC;
	t->kind = kind;
	t->nr = ++rec.made[kind];
	t->before = rec.last;
	rec.last = t;
	return t;
}

static bool is(const void *handle, uint32_t kind)
{
	const struct thing *t = handle;

	if (!t || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD || t->kind != kind)
		return false;
	if (t->magic != MAGIC)
		GONE();
	return t->magic == MAGIC;
}

static unsigned int nr_of(const void *handle)
{
	return handle && handle != CU_STREAM_LEGACY ? ((const struct thing *)handle)->nr : 0;
}

static struct thing *new_stream(unsigned int flags, int priority)
{
	struct thing *t = new_thing(KIND_CUSTREAM);

	t->flags = flags;
	t->priority = priority;
	note("stream s%u flags %u priority %d\n", t->nr, flags, priority);
	return t;
}

/* A thread's default stream is made when it is first used, as the front end does. */
static CUstream named(CUstream stream)
{
	if (stream != CU_STREAM_PER_THREAD)
		return stream;
	if (!own_stream)
		own_stream = new_stream(0, 0);
	return (CUstream)own_stream;
}

/* Objects stay, so that a wrong handle is found to be one. */
static void end(void *handle)
{
	((struct thing *)handle)->magic = 0;
}

/* ---- calls: what all of them look at ---- */

static CUresult ready(void)
{
	if (!rec.initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	return rec.fault;
}

static CUresult current(void)
{
	CUresult status = ready();

	if (status)
		return status;
	return depth && is(stack[depth - 1], KIND_CUCONTEXT) ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

#define NEED(condition, error) do { if (!(condition)) return (error); } while (0)
#define NEED_DEVICE(dev) NEED((dev) >= 0 && (dev) < DEVICES, CUDA_ERROR_INVALID_DEVICE)
#define NEED_CURRENT() do { CUresult ret_ = current(); if (ret_) return ret_; } while (0)
#define NEED_STREAM(s)									\
	do {										\
		(s) = named(s);								\
		NEED(!(s) || (s) == CU_STREAM_LEGACY || is(s, KIND_CUSTREAM),		\
		     CUDA_ERROR_INVALID_HANDLE);					\
	} while (0)

static bool has(CUdeviceptr p, uint64_t len)
{
	bool there = !len || cuda_ranges_find(&rec.memory, p, len);

	if (!there)
		GONE();
	return there;
}

static void *at(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

/* ---- the library ---- */

CUresult cuInit(unsigned int flags)
{
	const struct cuda_range others = { .start = OTHERS, .len = 4096 };

	NEED(!flags, CUDA_ERROR_INVALID_VALUE);
	/* A driver's own memory lies among that of programs. */
	if (!rec.initialised &&
	    (mmap(at(OTHERS), 4096, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at(OTHERS) ||
	     !cuda_ranges_add(&rec.memory, &others)))
		abort();
	rec.initialised = true;
	return 0;
}

CUresult cuDriverGetVersion(int *version)
{
	NEED(version, CUDA_ERROR_INVALID_VALUE);
	*version = 13000;
	return 0;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	NEED(name, CUDA_ERROR_INVALID_VALUE);
	*name = cuda_error_name(error);
	return *name ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	NEED(text, CUDA_ERROR_INVALID_VALUE);
	*text = cuda_error_text(error);
	return *text ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* ---- devices ---- */

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	NEED(!ready(), ready());
	NEED(device, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(ordinal);
	*device = ordinal;
	return 0;
}

CUresult cuDeviceGetCount(int *count)
{
	NEED(!ready(), ready());
	NEED(count, CUDA_ERROR_INVALID_VALUE);
	*count = DEVICES;
	return 0;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice dev)
{
	NEED(!ready(), ready());
	NEED(name && room > 0, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	snprintf(name, (size_t)room, "mgpu recorder");
	return 0;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	NEED(!ready(), ready());
	NEED(uuid, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	memcpy(uuid->bytes, "mgpu recorder 00", sizeof(uuid->bytes));
	return 0;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	NEED(!ready(), ready());
	NEED(pi && attrib && attrib < 256, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	switch (attrib) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*pi = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		*pi = 32;
		break;
	/* Those of blocks, grids, and shared memory. */
	case 2:
	case 3:
		*pi = 1024;
		break;
	case 4:
		*pi = 64;
		break;
	case 5:
		*pi = 0x7fffffff;
		break;
	case 6:
	case 7:
		*pi = 65535;
		break;
	case 8:
		*pi = 49152;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*pi = 4;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*pi = 8;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*pi = 0;
		break;
	default:
		*pi = 1;
	}
	return 0;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult status = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					       dev);

	NEED(major && minor, CUDA_ERROR_INVALID_VALUE);
	return status ? status :
		cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
}

CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice dev)
{
	NEED(!ready(), ready());
	NEED(id && room > 0, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	snprintf(id, (size_t)room, "0000:01:00.0");
	return 0;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	NEED(!ready(), ready());
	NEED(dev && id, CUDA_ERROR_INVALID_VALUE);
	NEED(!strcmp(id, "0000:01:00.0"), CUDA_ERROR_INVALID_DEVICE);
	*dev = 0;
	return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	NEED(!ready(), ready());
	NEED(bytes, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	*bytes = TOTAL;
	return 0;
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	NEED(!ready(), ready());
	NEED(pctx, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	if (!rec.retained[dev]++) {
		rec.primary[dev] = new_thing(KIND_CUCONTEXT);
		rec.primary[dev]->device = dev;
		note("primary context c%u of device %d\n", rec.primary[dev]->nr, dev);
	}
	*pctx = (CUcontext)rec.primary[dev];
	return 0;
}

/* End a context, with all that it has. */
static void end_context(struct thing *c)
{
	note("context c%u ends\n", c->nr);
	for (struct thing *t = rec.last; t; t = t->before)
		if (t->context == c || (t->code && t->code->context == c))
			end(t);
	cuda_ranges_drop(&rec.memory, c);
	end(c);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	NEED_DEVICE(dev);
	NEED(rec.retained[dev], CUDA_ERROR_INVALID_CONTEXT);
	if (!--rec.retained[dev])
		end_context(rec.primary[dev]);
	return 0;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	NEED_DEVICE(dev);
	rec.primary_flags[dev] = flags;
	note("flags of the primary context: %u\n", flags);
	return 0;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	NEED(flags && active, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	*flags = rec.primary_flags[dev];
	*active = rec.retained[dev] > 0;
	return 0;
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct thing *c;

	NEED(!ready(), ready());
	NEED(pctx, CUDA_ERROR_INVALID_VALUE);
	NEED_DEVICE(dev);
	NEED(depth < DEPTH, CUDA_ERROR_OUT_OF_MEMORY);
	c = new_thing(KIND_CUCONTEXT);
	c->flags = flags;
	c->device = dev;
	note("context c%u flags %u\n", c->nr, flags);
	stack[depth++] = c;
	*pctx = (CUcontext)c;
	return 0;
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags,
			CUdevice dev)
{
	NEED(!params, CUDA_ERROR_NOT_SUPPORTED);
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	NEED(is(ctx, KIND_CUCONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	if (depth && stack[depth - 1] == (struct thing *)ctx)
		depth--;
	end_context((struct thing *)ctx);
	return 0;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	NEED(pctx, CUDA_ERROR_INVALID_VALUE);
	*pctx = depth ? (CUcontext)stack[depth - 1] : NULL;
	return 0;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	NEED(!ctx || is(ctx, KIND_CUCONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	if (depth)
		depth--;
	if (ctx)
		stack[depth++] = (struct thing *)ctx;
	return 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	NEED(is(ctx, KIND_CUCONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	NEED(depth < DEPTH, CUDA_ERROR_OUT_OF_MEMORY);
	stack[depth++] = (struct thing *)ctx;
	return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	NEED(depth, CUDA_ERROR_INVALID_CONTEXT);
	depth--;
	if (pctx)
		*pctx = (CUcontext)stack[depth];
	return 0;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	NEED_CURRENT();
	NEED(device, CUDA_ERROR_INVALID_VALUE);
	*device = stack[depth - 1]->device;
	return 0;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	NEED_CURRENT();
	NEED(flags, CUDA_ERROR_INVALID_VALUE);
	*flags = stack[depth - 1]->flags;
	return 0;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	NEED_CURRENT();
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return 0;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	NEED_CURRENT();
	NEED(value && limit < 8, CUDA_ERROR_INVALID_VALUE);
	*value = rec.limits[limit];
	return 0;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	NEED_CURRENT();
	NEED(limit < 8, CUDA_ERROR_INVALID_VALUE);
	rec.limits[limit] = value;
	note("limit %u: %zu\n", limit, value);
	return 0;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	NEED_CURRENT();
	NEED(config, CUDA_ERROR_INVALID_VALUE);
	*config = rec.cache;
	return 0;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	NEED_CURRENT();
	rec.cache = config;
	note("cache %u\n", config);
	return 0;
}

CUresult cuCtxSynchronize(void)
{
	NEED_CURRENT();
	note("wait for context c%u\n", stack[depth - 1]->nr);
	return 0;
}

/* ---- modules and libraries ---- */

struct search {
	const char *name;
	struct thing *to;
	unsigned int nr;
	bool found;
};

static bool found_kernel(void *arg, const char *name, const struct cuda_param *params,
			 unsigned int nr)
{
	struct search *s = arg;

	s->nr++;
	if (!s->name || strcmp(name, s->name))
		return true;
	s->found = true;
	snprintf(s->to->name, sizeof(s->to->name), "%s", name);
	s->to->nr_params = nr;
	s->to->params = malloc((nr + 1) * sizeof(*params));
	if (!s->to->params)
		abort();
	memcpy(s->to->params, params, nr * sizeof(*params));
	return false;
}

static CUresult load(uint32_t kind, const char *what, void *made, const void *image)
{
	struct search s = { 0 };
	struct thing *t;
	uint64_t len;

	NEED(made && image, CUDA_ERROR_INVALID_VALUE);
	image = cuda_image_unwrap(image);
	len = cuda_image_len(image, UINT64_MAX);
	NEED(len && cuda_image_kernels(image, len, found_kernel, &s), CUDA_ERROR_INVALID_IMAGE);
	t = new_thing(kind);
	t->code = calloc(1, sizeof(*t->code));
	if (t->code)
		t->code->image = malloc(len);
	if (!t->code || !t->code->image)
		abort();
	memcpy(t->code->image, image, len);
	t->code->len = len;
	t->code->context = kind == KIND_CUMODULE ? stack[depth - 1] : NULL;
	note("%s %u: %llu bytes #%llx\n", what, t->nr, (unsigned long long)len,
	     (unsigned long long)digest(image, len));
	*(void **)made = t;
	return 0;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	NEED(mode, CUDA_ERROR_INVALID_VALUE);
	*mode = 1;
	return 0;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int nr,
			    CUjit_option *options, void **values)
{
	CUresult status;

	NEED_CURRENT();
	status = load(KIND_CUMODULE, "module", module, image);
	for (unsigned int i = 0; !status && i < nr; i++)
		if (cuda_options_plain(1, &options[i]))
			note("option %u: %llu\n", options[i],
			     (unsigned long long)(uintptr_t)values[i]);
	return status;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *name)
{
	FILE *file = fopen(name, "re");
	static char image[1u << 20];
	size_t len;

	NEED(file, CUDA_ERROR_FILE_NOT_FOUND);
	len = fread(image, 1, sizeof(image) - 1, file);
	image[len] = '\0';
	fclose(file);
	return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
	NEED_CURRENT();
	NEED(is(module, KIND_CUMODULE), CUDA_ERROR_INVALID_HANDLE);
	note("module %u ends\n", nr_of(module));
	end(module);
	return 0;
}

static CUresult get_kernel(uint32_t kind, const char *what, void *made, struct thing *from,
			   const char *name)
{
	struct search s = { .name = name };

	/* A program gets the same one again. */
	for (struct thing *t = from->code->kernels; t; t = t->next) {
		if (!strcmp(t->name, name)) {
			*(void **)made = t;
			return 0;
		}
	}
	s.to = new_thing(kind);
	cuda_image_kernels(from->code->image, from->code->len, found_kernel, &s);
	if (!s.found) {
		rec.made[kind]--;
		rec.last = s.to->before;
		free(s.to);
		return CUDA_ERROR_NOT_FOUND;
	}
	s.to->code = from->code;
	s.to->next = from->code->kernels;
	from->code->kernels = s.to;
	note("%s %s of %u\n", what, name, from->nr);
	*(void **)made = s.to;
	return 0;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name)
{
	NEED_CURRENT();
	NEED(f && name, CUDA_ERROR_INVALID_VALUE);
	NEED(is(module, KIND_CUMODULE), CUDA_ERROR_INVALID_HANDLE);
	return get_kernel(KIND_CUFUNCTION, "function", f, (struct thing *)module, name);
}

static CUresult count(unsigned int *nr, const struct thing *t)
{
	struct search s = { 0 };

	NEED(nr, CUDA_ERROR_INVALID_VALUE);
	cuda_image_kernels(t->code->image, t->code->len, found_kernel, &s);
	*nr = s.nr;
	return 0;
}

CUresult cuModuleGetFunctionCount(unsigned int *nr, CUmodule module)
{
	NEED_CURRENT();
	NEED(is(module, KIND_CUMODULE), CUDA_ERROR_INVALID_HANDLE);
	return count(nr, (const struct thing *)module);
}

/*
 * Return the first code of a fat binary that is not compressed, or the image itself; NULL if it is
 * not all there.
 */
static const uint8_t *inner(const struct code *c)
{
	static const uint8_t magic[] = { 0x50, 0xed, 0x55, 0xba };
	uint64_t at = sizeof(magic) * 4, len, there, flags;
	uint32_t header_len;

	if (memcmp(c->image, magic, sizeof(magic)))
		return c->image;
	while (at + 64 <= c->len) {
		memcpy(&header_len, c->image + at + 4, sizeof(header_len));
		memcpy(&len, c->image + at + 8, sizeof(len));
		memcpy(&flags, c->image + at + 40, sizeof(flags));
		if (header_len > c->len - at || len > c->len - at - header_len)
			return NULL;
		at += header_len;
		there = cuda_image_len(c->image + at, len);
		if (!(flags & 0xa000))
			return there && there <= len ? c->image + at : NULL;
		at += len;
	}
	return NULL;
}

/* Bytes of a variable: in PTX its declaration is a line, in a cubin it is a symbol. */
static uint64_t variable_len(const struct code *c, const char *name)
{
	const uint8_t *p = inner(c);
	Elf64_Shdr s, names;
	Elf64_Ehdr h;
	Elf64_Sym sym;

	if (!p)
		return 0;
	if (memcmp(p, ELFMAG, SELFMAG)) {
		const char *text = (const char *)p, *line;
		unsigned int bits;
		char want[300];

		snprintf(want, sizeof(want), " %s", name);
		for (line = strstr(text, want); line; line = strstr(line + 1, want)) {
			const char *begin = line;
			unsigned int nr = 1;

			while (begin > text && begin[-1] != '\n')
				begin--;
			if ((!strstr(begin, ".global") || strstr(begin, ".global") > line) &&
			    (!strstr(begin, ".const") || strstr(begin, ".const") > line))
				continue;
			while (begin < line && (*begin != '.' || !strchr("bsuf", begin[1]) ||
						begin[2] < '1' || begin[2] > '9'))
				begin++;
			bits = begin < line ? (unsigned int)atoi(begin + 2) : 0;
			/* Of one that is no array it reads no number. */
			if (sscanf(line + strlen(want), "[%u]", &nr) != 1)
				nr = 1;
			return bits / 8ull * nr;
		}
		return 0;
	}
	memcpy(&h, p, sizeof(h));
	for (unsigned int i = 0; i < h.e_shnum; i++) {
		memcpy(&s, p + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_SYMTAB || s.sh_link >= h.e_shnum)
			continue;
		memcpy(&names, p + h.e_shoff + s.sh_link * sizeof(s), sizeof(s));
		if (names.sh_type != SHT_STRTAB || !names.sh_size ||
		    p[names.sh_offset + names.sh_size - 1])
			continue;
		for (uint64_t k = 0; k < s.sh_size / sizeof(sym); k++) {
			memcpy(&sym, p + s.sh_offset + k * sizeof(sym), sizeof(sym));
			if (ELF64_ST_TYPE(sym.st_info) == STT_OBJECT &&
			    sym.st_name < names.sh_size &&
			    !strcmp((const char *)p + names.sh_offset + sym.st_name, name))
				return sym.st_size;
		}
	}
	return 0;
}

static CUdeviceptr allocate(uint64_t bytes, const struct thing *context, bool fixed)
{
	void *p = NULL;
	struct cuda_range r = { .len = bytes, .context = context, .fixed = fixed };

	if (rec.memory.bytes + bytes > TOTAL || DEVICE_MEMORY(&p, bytes))
		return 0;
	memset(p, 0, bytes);
	r.start = (uintptr_t)p;
	rec.allocations++;
	r.owner = (void *)(uintptr_t)rec.allocations;
	return cuda_ranges_add(&rec.memory, &r) ? r.start : 0;
}

static CUresult get_global(CUdeviceptr *dptr, size_t *bytes, const struct thing *t,
			   const char *name)
{
	uint64_t len = variable_len(t->code, name);
	CUdeviceptr p;

	NEED(len, CUDA_ERROR_NOT_FOUND);
	p = allocate(len, t->code->context ? t->code->context : stack[depth - 1], true);
	NEED(p, CUDA_ERROR_OUT_OF_MEMORY);
	note("variable %s of %u: %s %llu\n", name, t->nr, WHERE(p), (unsigned long long)len);
	if (dptr)
		*dptr = p;
	if (bytes)
		*bytes = len;
	return 0;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule module, const char *name)
{
	NEED_CURRENT();
	NEED(is(module, KIND_CUMODULE), CUDA_ERROR_INVALID_HANDLE);
	return get_global(dptr, bytes, (const struct thing *)module, name);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
			   void **values, unsigned int nr, CUlibraryOption *own_options,
			   void **own_values, unsigned int nr_own)
{
	(void)options;
	(void)values;
	(void)nr;
	(void)own_options;
	(void)own_values;
	(void)nr_own;
	NEED(!ready(), ready());
	return load(KIND_CULIBRARY, "library", library, code);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	NEED(is(library, KIND_CULIBRARY), CUDA_ERROR_INVALID_HANDLE);
	note("library %u ends\n", nr_of(library));
	end(library);
	return 0;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	NEED(is(library, KIND_CULIBRARY), CUDA_ERROR_INVALID_HANDLE);
	return get_kernel(KIND_CUKERNEL, "kernel", kernel, (struct thing *)library, name);
}

CUresult cuLibraryGetKernelCount(unsigned int *nr, CUlibrary library)
{
	NEED(is(library, KIND_CULIBRARY), CUDA_ERROR_INVALID_HANDLE);
	return count(nr, (const struct thing *)library);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	NEED_CURRENT();
	NEED(is(library, KIND_CULIBRARY), CUDA_ERROR_INVALID_HANDLE);
	return get_global(dptr, bytes, (const struct thing *)library, name);
}

/* The program's launch of a kernel is one of its function. */
static struct thing *function_of(void *handle)
{
	return is(handle, KIND_CUFUNCTION) || is(handle, KIND_CUKERNEL) ? handle : NULL;
}

CUresult cuKernelGetFunction(CUfunction *f, CUkernel kernel)
{
	struct thing *t;

	NEED_CURRENT();
	NEED(f, CUDA_ERROR_INVALID_VALUE);
	NEED(is(kernel, KIND_CUKERNEL), CUDA_ERROR_INVALID_HANDLE);
	t = new_thing(KIND_CUFUNCTION);
	memcpy(t->name, ((struct thing *)kernel)->name, sizeof(t->name));
	t->nr_params = ((struct thing *)kernel)->nr_params;
	t->params = ((struct thing *)kernel)->params;
	t->context = stack[depth - 1];
	*f = (CUfunction)t;
	return 0;
}

/* ---- functions ---- */

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction f)
{
	NEED_CURRENT();
	NEED(pi && attrib < 16, CUDA_ERROR_INVALID_VALUE);
	NEED(function_of(f), CUDA_ERROR_INVALID_HANDLE);
	/* That of threads, of registers, and the versions; others are their own numbers. */
	*pi = !attrib ? 1024 : attrib == 4 ? 32 : attrib == 5 || attrib == 6 ? 80 : (int)attrib;
	return 0;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attrib, int value)
{
	NEED_CURRENT();
	NEED(function_of(f), CUDA_ERROR_INVALID_HANDLE);
	note("attribute %u of %s: %d\n", attrib, function_of(f)->name, value);
	return 0;
}

CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
	NEED_CURRENT();
	NEED(function_of(f), CUDA_ERROR_INVALID_HANDLE);
	note("cache of %s: %u\n", function_of(f)->name, config);
	return 0;
}

#ifndef WITHOUT_PARAM_INFO
CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
	const struct thing *t = function_of(f);

	NEED_CURRENT();
	NEED(t, CUDA_ERROR_INVALID_HANDLE);
	NEED(index < t->nr_params && offset, CUDA_ERROR_INVALID_VALUE);
	*offset = t->params[index].offset;
	if (size)
		*size = t->params[index].size;
	return 0;
}
#endif

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int block_size,
						     size_t shared)
{
	NEED_CURRENT();
	NEED(function_of(f), CUDA_ERROR_INVALID_HANDLE);
	NEED(blocks && block_size > 0, CUDA_ERROR_INVALID_VALUE);
	*blocks = shared > 49152 ? 0 : 2048 / block_size;
	return 0;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
							      int block_size, size_t shared,
							      unsigned int flags)
{
	NEED(flags < 2, CUDA_ERROR_INVALID_VALUE);
	return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block_size, shared);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *shared, CUfunction f, int blocks,
						 int block_size)
{
	NEED_CURRENT();
	NEED(function_of(f), CUDA_ERROR_INVALID_HANDLE);
	NEED(shared && blocks > 0 && block_size > 0, CUDA_ERROR_INVALID_VALUE);
	*shared = 49152 / (size_t)blocks;
	return 0;
}

/* Mix a launch into what its pointers point to. */
static void leave(uint64_t h, const struct thing *t, const uint8_t *params)
{
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < t->nr_params; i++) {
			const struct cuda_range *r;
			uint64_t word;
			CUdeviceptr p;

			if (t->params[i].size != sizeof(p))
				continue;
			memcpy(&p, params + t->params[i].offset, sizeof(p));
			r = cuda_ranges_find(&rec.memory, p, 1);
			for (unsigned int k = 0; r && k < MIXED; k++, p += 8) {
				if (p + 8 > r->start + r->len)
					break;
				memcpy(&word, at(p), 8);
				/* First all are read. */
				h = mix(h, word);
				if (round)
					memcpy(at(p), &h, 8);
			}
		}
	}
}

static CUresult run(struct thing *t, const CUlaunchConfig *c, bool cooperative, void **values,
		    void **extra)
{
	static uint8_t params[CUDA_PARAM_BYTES];
	char text[4096];
	size_t len = 0, size = 0;
	CUstream stream = c->hStream;
	uint64_t word;

	NEED_CURRENT();
	NEED(t, CUDA_ERROR_INVALID_HANDLE);
	NEED(!t->code || !t->code->context || t->code->context == stack[depth - 1],
	     CUDA_ERROR_INVALID_HANDLE);
	NEED_STREAM(stream);
	NEED(c->gridDimX && c->gridDimY && c->gridDimZ && c->blockDimX && c->blockDimY &&
	     c->blockDimZ && c->blockDimX * c->blockDimY * c->blockDimZ <= 1024,
	     CUDA_ERROR_INVALID_VALUE);
	NEED(!values || !extra, CUDA_ERROR_INVALID_VALUE);
	for (unsigned int i = 0; i < t->nr_params; i++)
		if (t->params[i].offset + t->params[i].size > size)
			size = t->params[i].offset + t->params[i].size;
	memset(params, 0, size);
	if (extra) {
		NEED(extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
		     extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE && *(size_t *)extra[3] >= size,
		     CUDA_ERROR_INVALID_VALUE);
		memcpy(params, extra[1], size);
	}
	NEED(extra || values || !t->nr_params, CUDA_ERROR_INVALID_VALUE);
	*text = '\0';
	for (unsigned int i = 0; i < t->nr_params; i++) {
		const struct cuda_param *p = &t->params[i];

		if (!extra)
			memcpy(params + p->offset, values[i], p->size);
		/* Parts of a structure can be addresses, too. */
		for (unsigned int k = 0; k < p->size && len < sizeof(text); k += 8) {
			word = 0;
			memcpy(&word, params + p->offset + k, p->size - k < 8 ? p->size - k : 8);
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%c%s",
						k ? '.' : ' ', WHERE(word));
		}
	}
	note("launch %s %u,%u,%u %u,%u,%u shared %u stream s%u%s:%s\n", t->name, c->gridDimX,
	     c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
	     c->sharedMemBytes, nr_of(stream), cooperative ? " cooperative" : "", text);
	leave(digest(t->name, strlen(t->name)) ^ digest(text, strlen(text)) ^
	      digest(c, offsetof(CUlaunchConfig, sharedMemBytes)), t, params);
	if (!strcmp(t->name, "fault"))
		rec.fault = CUDA_ERROR_LAUNCH_FAILED;
	return 0;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **values, void **extra)
{
	const CUlaunchConfig c = { gx, gy, gz, bx, by, bz, shared, stream, NULL, 0 };

	return run(function_of(f), &c, false, values, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				   unsigned int bx, unsigned int by, unsigned int bz,
				   unsigned int shared, CUstream stream, void **values)
{
	const CUlaunchConfig c = { gx, gy, gz, bx, by, bz, shared, stream, NULL, 0 };

	return run(function_of(f), &c, true, values, NULL);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **values, void **extra)
{
	return run(function_of(f), c, c->numAttrs, values, extra);
}

/* ---- memory ---- */

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
	NEED_CURRENT();
	NEED(left && total, CUDA_ERROR_INVALID_VALUE);
	*left = TOTAL - rec.memory.bytes;
	*total = TOTAL;
	return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	NEED_CURRENT();
	NEED(dptr && bytes, CUDA_ERROR_INVALID_VALUE);
	*dptr = allocate(bytes, stack[depth - 1], false);
	NEED(*dptr, CUDA_ERROR_OUT_OF_MEMORY);
	note("allocate %s: %zu\n", WHERE(*dptr), bytes);
	return 0;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	NEED_CURRENT();
	NEED(pitch, CUDA_ERROR_INVALID_VALUE);
	NEED(element == 4 || element == 8 || element == 16, CUDA_ERROR_INVALID_VALUE);
	NEED(width < TOTAL && height < TOTAL, CUDA_ERROR_OUT_OF_MEMORY);
	*pitch = (width + PITCH - 1) / PITCH * PITCH;
	return cuMemAlloc_v2(dptr, *pitch * height);
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	char text[64];

	NEED_CURRENT();
	if (!dptr)
		return 0;
	where(dptr, text);
	NEED(cuda_ranges_remove(&rec.memory, dptr), CUDA_ERROR_INVALID_VALUE);
	if (dptr != OTHERS)
		DEVICE_FREE(at(dptr));
	note("free %s\n", text);
	return 0;
}

CUresult cuMemHostAlloc(void **pp, size_t bytes, unsigned int flags)
{
	struct cuda_range r = { .len = bytes };

	NEED_CURRENT();
	NEED(pp && bytes, CUDA_ERROR_INVALID_VALUE);
	NEED(!(flags & CU_MEMHOSTALLOC_DEVICEMAP), CUDA_ERROR_NOT_SUPPORTED);
	*pp = malloc(bytes);
	r.start = (uintptr_t)*pp;
	return *pp && cuda_ranges_add(&rec.host, &r) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytes)
{
	return cuMemHostAlloc(pp, bytes, 0);
}

CUresult cuMemFreeHost(void *p)
{
	const struct cuda_range *r = cuda_ranges_find(&rec.host, (uintptr_t)p, 1);

	NEED(r && !r->owner && cuda_ranges_remove(&rec.host, (uintptr_t)p),
	     CUDA_ERROR_INVALID_VALUE);
	free(p);
	return 0;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags)
{
	/* Memory that was allocated has no owner. */
	const struct cuda_range r = { .start = (uintptr_t)p, .len = bytes, .owner = &rec };

	(void)flags;
	NEED_CURRENT();
	NEED(p && bytes, CUDA_ERROR_INVALID_VALUE);
	NEED(!cuda_ranges_find(&rec.host, r.start, 1), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	return cuda_ranges_add(&rec.host, &r) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostUnregister(void *p)
{
	const struct cuda_range *r = cuda_ranges_find(&rec.host, (uintptr_t)p, 1);

	NEED(r && r->owner && cuda_ranges_remove(&rec.host, (uintptr_t)p),
	     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	return 0;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr p)
{
	bool device = cuda_ranges_find(&rec.memory, p, 1);

	NEED(data && (device || cuda_ranges_find(&rec.host, p, 1)), CUDA_ERROR_INVALID_VALUE);
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return 0;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)data = false;
		return 0;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		NEED(!device, CUDA_ERROR_INVALID_VALUE);
		*(CUdeviceptr *)data = p;
		return 0;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		NEED(device, CUDA_ERROR_INVALID_VALUE);
		*(CUdeviceptr *)data = p;
		return 0;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = 0;
		return 0;
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- copies and memsets ---- */

static CUresult to_device(CUdeviceptr dst, const void *src, size_t len, CUstream stream,
			  const char *how)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(src && has(dst, len), CUDA_ERROR_INVALID_VALUE);
	/* Of no bytes the address can be any. */
	if (len)
		memcpy(at(dst), src, len);
	note("write%s %s: %zu stream s%u #%llx\n", how, WHERE(dst), len, nr_of(stream),
	     (unsigned long long)digest(src, len));
	return 0;
}

static CUresult to_host(void *dst, CUdeviceptr src, size_t len, CUstream stream, const char *how)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(dst && has(src, len), CUDA_ERROR_INVALID_VALUE);
	if (len)
		memcpy(dst, at(src), len);
	note("read%s %s: %zu stream s%u #%llx\n", how, WHERE(src), len, nr_of(stream),
	     (unsigned long long)digest(dst, len));
	return 0;
}

static CUresult on_device(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream,
			  const char *how)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(has(dst, len) && has(src, len), CUDA_ERROR_INVALID_VALUE);
	if (len)
		memmove(at(dst), at(src), len);
	note("copy%s %s %s: %zu stream s%u\n", how, WHERE(dst), WHERE(src), len, nr_of(stream));
	return 0;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t len)
{
	return to_device(dst, src, len, NULL, "");
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t len, CUstream stream)
{
	return to_device(dst, src, len, stream, " async");
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t len)
{
	return to_host(dst, src, len, NULL, "");
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t len, CUstream stream)
{
	return to_host(dst, src, len, stream, " async");
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t len)
{
	return on_device(dst, src, len, NULL, "");
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream)
{
	return on_device(dst, src, len, stream, " async");
}

/* Where a rectangle begins; its place on the device is looked at. */
static bool corner(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
		   size_t pitch, const CUDA_MEMCPY2D *c, uint8_t **p, char text[64])
{
	size_t offset = y * pitch + x;

	if (type == CU_MEMORYTYPE_HOST) {
		*p = (uint8_t *)(uintptr_t)host + offset;
		snprintf(text, 64, "host");
		return host;
	}
	*p = at(device + offset);
	where(device + offset, text);
	return type == CU_MEMORYTYPE_DEVICE && pitch >= c->WidthInBytes &&
		has(device + offset, cuda_plane(pitch, c->WidthInBytes, c->Height));
}

static CUresult rectangle(const CUDA_MEMCPY2D *c, CUstream stream, const char *how)
{
	size_t src_pitch = c->srcPitch ? c->srcPitch : c->srcXInBytes + c->WidthInBytes;
	size_t dst_pitch = c->dstPitch ? c->dstPitch : c->dstXInBytes + c->WidthInBytes;
	char from[64], to[64];
	uint8_t *src, *dst;
	uint64_t h = 0;

	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(corner(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, src_pitch,
		    c, &src, from) &&
	     corner(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, dst_pitch,
		    c, &dst, to), CUDA_ERROR_INVALID_VALUE);
	for (size_t y = 0; y < c->Height; y++) {
		memmove(dst + y * dst_pitch, src + y * src_pitch, c->WidthInBytes);
		h = mix(h, digest(dst + y * dst_pitch, c->WidthInBytes));
	}
	note("rectangle%s %s %s: %zu %zu stream s%u #%llx\n", how, to, from, c->WidthInBytes,
	     c->Height, nr_of(stream), (unsigned long long)h);
	return 0;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	return rectangle(c, NULL, "");
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	return rectangle(c, NULL, "");
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return rectangle(c, stream, " async");
}

static CUresult set(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned int unit, size_t width,
		    size_t height, CUstream stream, const char *how)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(width < TOTAL && !(dst % unit), CUDA_ERROR_INVALID_VALUE);
	NEED(has(dst, cuda_plane(pitch, width * unit, height)), CUDA_ERROR_INVALID_VALUE);
	/* Of no width there can be any number of rows. */
	for (size_t y = 0; width && y < height; y++)
		for (size_t x = 0; x < width; x++)
			memcpy((uint8_t *)at(dst) + y * pitch + x * unit, &value, unit);
	note("set%s %s: %u byte %u, %zu %zu stream s%u\n", how, WHERE(dst), unit, value, width,
	     height, nr_of(stream));
	return 0;
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char v, size_t n)
{
	return set(dst, n, v, 1, n, 1, NULL, "");
}

CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short v, size_t n)
{
	return set(dst, 2 * n, v, 2, n, 1, NULL, "");
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int v, size_t n)
{
	return set(dst, 4 * n, v, 4, n, 1, NULL, "");
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char v, size_t n, CUstream stream)
{
	return set(dst, n, v, 1, n, 1, stream, " async");
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short v, size_t n, CUstream stream)
{
	return set(dst, 2 * n, v, 2, n, 1, stream, " async");
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int v, size_t n, CUstream stream)
{
	return set(dst, 4 * n, v, 4, n, 1, stream, " async");
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char v, size_t width,
			 size_t height)
{
	return set(dst, pitch, v, 1, width, height, NULL, "");
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int v, size_t width,
			  size_t height)
{
	return set(dst, pitch, v, 4, width, height, NULL, "");
}

/* ---- streams and events, whose work has always ended ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	NEED_CURRENT();
	NEED(stream && flags < 2, CUDA_ERROR_INVALID_VALUE);
	*stream = (CUstream)new_stream(flags, priority);
	return 0;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	NEED_CURRENT();
	NEED(priority, CUDA_ERROR_INVALID_VALUE);
	NEED_STREAM(stream);
	*priority = stream ? ((struct thing *)stream)->priority : 0;
	return 0;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	NEED_CURRENT();
	NEED(flags, CUDA_ERROR_INVALID_VALUE);
	NEED_STREAM(stream);
	*flags = stream ? ((struct thing *)stream)->flags : 0;
	return 0;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	NEED(!ready(), ready());
	NEED(is(stream, KIND_CUSTREAM), CUDA_ERROR_INVALID_HANDLE);
	note("stream s%u ends\n", nr_of(stream));
	end(stream);
	return 0;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(is(event, KIND_CUEVENT), CUDA_ERROR_INVALID_HANDLE);
	note("stream s%u waits for e%u flags %u\n", nr_of(stream), nr_of(event), flags);
	return 0;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	note("wait for s%u\n", nr_of(stream));
	return 0;
}

CUresult cuStreamQuery(CUstream stream)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	return 0;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	struct thing *t;

	NEED_CURRENT();
	NEED(event && flags < 8, CUDA_ERROR_INVALID_VALUE);
	t = new_thing(KIND_CUEVENT);
	t->flags = flags;
	note("event e%u flags %u\n", t->nr, flags);
	*event = (CUevent)t;
	return 0;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	NEED(!ready(), ready());
	NEED(is(event, KIND_CUEVENT), CUDA_ERROR_INVALID_HANDLE);
	note("event e%u ends\n", nr_of(event));
	end(event);
	return 0;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	NEED_CURRENT();
	NEED_STREAM(stream);
	NEED(is(event, KIND_CUEVENT), CUDA_ERROR_INVALID_HANDLE);
	((struct thing *)event)->recorded = true;
	note("event e%u on s%u flags %u\n", nr_of(event), nr_of(stream), flags);
	return 0;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventSynchronize(CUevent event)
{
	NEED_CURRENT();
	NEED(is(event, KIND_CUEVENT), CUDA_ERROR_INVALID_HANDLE);
	note("wait for e%u\n", nr_of(event));
	return 0;
}

CUresult cuEventQuery(CUevent event)
{
	NEED_CURRENT();
	NEED(is(event, KIND_CUEVENT), CUDA_ERROR_INVALID_HANDLE);
	return 0;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent stop)
{
	NEED_CURRENT();
	NEED(ms, CUDA_ERROR_INVALID_VALUE);
	NEED(is(start, KIND_CUEVENT) && is(stop, KIND_CUEVENT), CUDA_ERROR_INVALID_HANDLE);
	NEED(((struct thing *)start)->recorded && ((struct thing *)stop)->recorded,
	     CUDA_ERROR_INVALID_HANDLE);
	*ms = 0.5f;
	return 0;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent stop)
{
	return cuEventElapsedTime_v2(ms, start, stop);
}

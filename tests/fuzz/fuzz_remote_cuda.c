// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the server of remoted CUDA with requests, as fuzz_remote.h describes them; with an odd first
 * byte it is what comes through the socket.  The library is the one that records, which executes
 * copies and mixes a launch's parameters into what they point to.  Device memory lies at addresses
 * that an input can name: allocations follow one another from DEVICE on, a page apart.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>

#define DEVICE		0x500000000000ull
#define DEVICE_LEN	(64ull << 20)
#define DEVICE_PAGE	4096ull

static int device_memory(void **p, unsigned long long bytes);
static void device_free(void *p);
static void gone(void);

#define DEVICE_MEMORY(p, bytes)	device_memory(p, bytes)
#define DEVICE_FREE(p)		device_free(p)
#define GONE()			gone()
#define OTHERS			(DEVICE + DEVICE_LEN)	/* a page that no program has got */

#include "record.c"

#include "cuda_back.h"
#include "fuzz_remote.h"

static uint64_t device_used;
static unsigned int calls, fails;

static int device_memory(void **p, unsigned long long bytes)
{
	uint64_t len = (bytes + 2 * DEVICE_PAGE - 1) / DEVICE_PAGE * DEVICE_PAGE;

	if (bytes > DEVICE_LEN || device_used + len > DEVICE_LEN)
		return -ENOMEM;
	*p = (void *)(uintptr_t)(DEVICE + device_used);
	device_used += len;
	ASAN_UNPOISON_MEMORY_REGION(*p, bytes);
	return 0;
}

/* Its length is not known; its first page is enough to see that it is used again. */
static void device_free(void *p)
{
	ASAN_POISON_MEMORY_REGION(p, DEVICE_PAGE);
}

/* The server looks at all handles and addresses before. */
static void gone(void)
{
	FUZZ_ASSERT(!"an object or memory that has gone");
}

int __wrap_usleep(useconds_t us);

int __wrap_usleep(useconds_t us)
{
	(void)us;
	return 0;
}

/* Now and then the device has no memory, and no other stream. */
static __typeof__(cuMemAlloc_v2) *memory_of_library;
static __typeof__(cuStreamCreate) *stream_of_library;

static CUresult scarce_memory(CUdeviceptr *dptr, size_t bytes)
{
	return ++calls % 8 == fails ? CUDA_ERROR_OUT_OF_MEMORY : memory_of_library(dptr, bytes);
}

static CUresult scarce_streams(CUstream *stream, unsigned int flags)
{
	return ++calls % 8 == fails ? CUDA_ERROR_OUT_OF_MEMORY : stream_of_library(stream, flags);
}

/* The server has a primary context once: what is released of it goes with it. */
static __typeof__(cuDevicePrimaryCtxRetain) *primary_of_library;

static CUresult one_primary(CUcontext *ctx, CUdevice dev)
{
	FUZZ_ASSERT(dev < 0 || dev >= DEVICES || !rec.retained[dev]);
	return primary_of_library(ctx, dev);
}

/* Map the device's memory, which each new process has. */
static void device_begin(void)
{
	static bool mapped;

	if (mapped)
		return;
	FUZZ_ASSERT(mmap((void *)(uintptr_t)DEVICE, DEVICE_LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			 -1, 0) != MAP_FAILED);
	ASAN_POISON_MEMORY_REGION((void *)(uintptr_t)DEVICE, DEVICE_LEN);
	mapped = true;
}

/* Forget what the library has, as if the process ended. */
static void device_end(void)
{
	struct thing *t, *other;

	while (rec.last) {
		t = rec.last;
		rec.last = t->before;
		if (t->kind == KIND_CUMODULE || t->kind == KIND_CULIBRARY) {
			free(t->code->image);
			free(t->code);
		}
		/* A library's function has what its kernel has. */
		for (other = rec.last; other && other->params != t->params; other = other->before)
			;
		if (!other)
			free(t->params);
		free(t);
	}
	cuda_ranges_drop(&rec.memory, NULL);
	if (rec.initialised)
		munmap(at(OTHERS), 4096);
	memset(&rec, 0, sizeof(rec));
	depth = 0;
	own_stream = NULL;
	ASAN_POISON_MEMORY_REGION((void *)(uintptr_t)DEVICE, device_used);
	device_used = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct remote_hello hello = {
		.magic = REMOTE_MAGIC, .version = REMOTE_VERSION,
		.api = CUDA_NUMBER, .digest = CUDA_DIGEST,
	};
	struct cuda *cuda;

	if (size < 2)
		return 0;
	device_begin();
	calls = 0;
	/* 8 is no remainder. */
	fails = data[1] % 9;
	cuda = cuda_open(RTLD_DEFAULT);
	FUZZ_ASSERT(cuda->calls.cuMemAlloc_v2 && cuda->calls.cuStreamCreate &&
		    cuda->calls.cuDevicePrimaryCtxRetain);
	memory_of_library = cuda->calls.cuMemAlloc_v2;
	stream_of_library = cuda->calls.cuStreamCreate;
	primary_of_library = cuda->calls.cuDevicePrimaryCtxRetain;
	cuda->calls.cuMemAlloc_v2 = scarce_memory;
	cuda->calls.cuStreamCreate = scarce_streams;
	cuda->calls.cuDevicePrimaryCtxRetain = one_primary;
	fuzz_serve(&cuda_server, cuda, &hello, data[0] & 1, data + 2, size - 2);
	/* All that the application had goes with it. */
	FUZZ_ASSERT(!cuda->memory.root && !cuda->memory.bytes);
	memset(cuda, 0, sizeof(*cuda));
	device_end();
	return 0;
}

/* ---- seeds: what the front end sends ---- */

static const char image[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .global .align 4 .b32 total[16];\n"
	".visible .entry add(.param .u64 add_a, .param .u64 add_b, .param .u32 add_n)\n"
	"{\n\tret;\n}\n"
	".visible .entry fault(.param .u64 f_a)\n{\n\tret;\n}\n";

#define IMAGE_WORDS	((sizeof(image) + 7) / 8)
#define M(n)		(DEVICE + (n) * 2 * DEVICE_PAGE)	/* the n-th small allocation */
#define TEXT(a, b, c, d, e, f)	\
	((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 | \
	 (uint64_t)(e) << 32 | (uint64_t)(f) << 40)
#define ADD		TEXT('a', 'd', 'd', 0, 0, 0)
#define FAULT		TEXT('f', 'a', 'u', 'l', 't', 0)
#define TOTAL_NAME	TEXT('t', 'o', 't', 'a', 'l', 0)

/* Load the image: with the context's id, or as a library if that is 0. */
static void load_image(uint64_t the_context, uint64_t id)
{
	uint64_t words[IMAGE_WORDS + 8];
	size_t n = 0;

	if (the_context)
		words[n++] = the_context;
	words[n++] = sizeof(image);
	words[n++] = 0;		/* options */
	words[n++] = id;
	words[n++] = sizeof(image);
	words[n + IMAGE_WORDS - 1] = 0;
	memcpy(words + n, image, sizeof(image));
	n += IMAGE_WORDS;
	words[n++] = 0;
	words[n++] = 0;
	if (the_context)
		request(CALL_remoteModuleLoad, 0, words, n);
	else
		request(CALL_remoteLibraryLoad, 0, words, n);
}

/* The two words of a header in a group: length, and number and function. */
#define HEAD_LEN(words)		(8 * (words))
#define HEAD_CALL(function)	(1 | (uint64_t)CALL_##function << 32)

static void seeds(const char *dir)
{
	size_t before;

	seed[0] = 0;
	seed[1] = 8;
	seed_len = 2;
	REQUEST(cuInit, 1, 0);
	REQUEST(cuDeviceGetCount, 1, 1);
	REQUEST(cuDeviceGet, 1, 0, 1);
	REQUEST(cuDeviceGetName, 1, 32, 0, 1);
	REQUEST(cuDeviceGetAttribute, 1, 1, 0, 1);
	REQUEST(cuDeviceTotalMem_v2, 1, 0, 1);
	REQUEST(cuDevicePrimaryCtxGetState, 1, 0, 1, 1);
	request(0xff, 0, (const uint64_t[]){ 3, 1, 0, 0, 2, 0 }, LEDGER_REPORTED);
	fuzz_seed(dir, "questions", seed, seed_len);
	REQUEST(cuDevicePrimaryCtxRetain, 1, 0, 1);
	REQUEST(cuCtxCreate_v2, 1, 0, 0, 2);
	REQUEST(cuCtxGetFlags, 1, 2, 1);
	REQUEST(cuCtxSetLimit, 0, 2, 0, 1024);
	REQUEST(cuCtxGetLimit, 1, 2, 0, 1);
	REQUEST(cuStreamCreate, 0, 1, 1, 3);
	REQUEST(cuStreamCreateWithPriority, 0, 2, 1, 0, 4);
	REQUEST(cuEventCreate, 0, 1, 0, 5);
	REQUEST(cuEventCreate, 0, 1, 0, 6);
	REQUEST(cuMemAlloc_v2, 1, 1, 4096, 1);
	REQUEST(cuMemAlloc_v2, 1, 1, 4096, 1);
	REQUEST(cuMemAllocPitch_v2, 1, 1, 100, 8, 4, 1, 1);
	fuzz_seed(dir, "objects", seed, seed_len);
	before = seed_len;
	REQUEST(cuEventRecord, 0, 1, 5, 3);
	REQUEST(cuStreamWaitEvent, 0, 1, 3, 5, 0);
	REQUEST(cuEventRecordWithFlags, 0, 1, 6, 0, 0);
	REQUEST(cuEventSynchronize, 1, 1, 5);
	REQUEST(cuEventQuery, 1, 1, 6);
	REQUEST(cuEventElapsedTime, 1, 1, 5, 6, 1);
	REQUEST(cuStreamQuery, 1, 1, 3);
	REQUEST(cuStreamGetPriority, 1, 2, 4, 1);
	REQUEST(cuStreamSynchronize, 1, 1, 3);
	REQUEST(cuCtxSynchronize, 1, 1);
	REQUEST(cuStreamDestroy_v2, 0, 3);
	REQUEST(cuEventDestroy_v2, 0, 5);
	REQUEST(cuCtxDestroy_v2, 0, 2);
	fuzz_seed(dir, "streams", seed, seed_len);
	seed_len = before;
	REQUEST(cuMemcpyHtoD_v2, 0, 1, M(0), 8, 8, 42);
	REQUEST(cuMemcpyDtoD_v2, 0, 1, M(1), M(0), 8);
	REQUEST(cuMemcpyDtoH_v2, 1, 1, M(1), 8, 1);
	REQUEST(cuMemcpyHtoDAsync_v2, 0, 1, M(0) + 8, 8, 3, 8, 43);
	REQUEST(cuMemcpyDtoHAsync_v2, 0, 1, M(0), 16, 3, 1);
	REQUEST(cuMemcpyDtoDAsync_v2, 0, 1, M(1), M(0), 16, 0);
	REQUEST(cuMemsetD8_v2, 0, 1, M(0), 1, 64);
	REQUEST(cuMemsetD32Async, 0, 1, M(0), 7, 16, 3);
	REQUEST(cuMemsetD2D8_v2, 0, 1, M(2), 512, 3, 100, 8);
	REQUEST(remoteCopyToDevice, 0, 1, M(2), 512, 8, 2, 8, 0, 0, 16, 1, 2);
	REQUEST(remoteCopyToHost, 1, 1, M(2), 512, 8, 2, 8, 0, 0, 1);
	REQUEST(remoteCopyToHost, 1, 1, M(2), 512, 8, 2, 8, 1, 3, 1);
	REQUEST(remoteCopyOnDevice, 0, 1, M(2), 512, M(0), 64, 8, 2, 1, 3);
	REQUEST(cuMemGetInfo_v2, 1, 1, 1, 1);
	REQUEST(cuStreamSynchronize, 3, 1, 3);
	REQUEST(cuMemFree_v2, 0, 1, M(0));
	REQUEST(cuMemFree_v2, 0, 1, M(0));
	fuzz_seed(dir, "memory", seed, seed_len);
	seed_len = before;
	load_image(1, 7);
	REQUEST(cuModuleGetFunction, 1, 1, 7, 8, 4, ADD);
	REQUEST(cuModuleGetGlobal_v2, 1, 1, 7, 1, 1, 6, TOTAL_NAME);
	REQUEST(cuFuncGetAttribute, 1, 1, 0, 8, 1);
	REQUEST(remoteFuncParams, 1, 1, 8, 1, 1);
	REQUEST(remoteLaunch, 0, 1, 8, 1, 1, 1, 32, 1, 1, 0, 3, 0, 20, 20, M(0), M(1), 9);
	REQUEST(remoteLaunch, 0, 1, 8, 2, 1, 1, 32, 1, 1, 0, 0, 1, 20, 20, M(1), M(0), 9);
	REQUEST(cuMemcpyDtoH_v2, 1, 1, M(0), 64, 1);
	fuzz_seed(dir, "kernels", seed, seed_len);
	before = seed_len;
	/* A memset and a launch. */
	REQUEST(remoteGroup, 0, 5, 192, 3, 192,
		HEAD_LEN(4), HEAD_CALL(cuMemsetD8_v2), 1, M(0), 1, 64,
		HEAD_LEN(16), HEAD_CALL(remoteLaunch), 1, 8, 1, 1, 1, 32, 1, 1, 0, 3, 0, 20, 20,
		M(0), M(1), 9, 48, 1, 2, 4, 1, 7, 2);
	REQUEST(cuCtxSynchronize, 1, 1);
	fuzz_seed(dir, "groups", seed, seed_len);
	seed_len = before;
	load_image(0, 9);
	REQUEST(cuLibraryGetKernel, 0, 9, 10, 4, ADD);
	REQUEST(cuLibraryGetGlobal, 1, 1, 9, 1, 1, 6, TOTAL_NAME);
	REQUEST(cuKernelGetFunction, 0, 1, 10, 11);
	REQUEST(remoteLaunch, 0, 1, 11, 1, 1, 1, 1, 1, 1, 0, 0, 0, 20, 20, M(0), M(1), 9);
	REQUEST(cuModuleGetFunction, 0, 1, 7, 12, 6, FAULT);
	REQUEST(remoteLaunch, 0, 1, 12, 1, 1, 1, 1, 1, 1, 0, 0, 0, 8, 8, M(0));
	REQUEST(cuCtxSynchronize, 1, 1);
	REQUEST(cuLibraryUnload, 0, 9);
	REQUEST(cuModuleUnload, 0, 7);
	fuzz_seed(dir, "libraries", seed, seed_len);
	seed_len = 2;
	REQUEST(cuInit, 1, 0);
	REQUEST(cuCtxCreate_v2, 1, 0, 0, 1);
	REQUEST(cuCtxCreate_v2, 1, 0, 0, 2);
	load_image(0, 9);
	REQUEST(cuLibraryGetKernel, 0, 9, 10, 4, ADD);
	before = seed_len;
	REQUEST(cuKernelGetFunction, 0, 2, 10, 11);
	REQUEST(cuCtxDestroy_v2, 0, 2);
	REQUEST(remoteFuncParams, 1, 1, 11, 1, 1);
	fuzz_seed(dir, "context_function", seed, seed_len);
	seed_len = before;
	REQUEST(cuLibraryGetGlobal, 1, 2, 9, 1, 1, 6, TOTAL_NAME);
	REQUEST(cuCtxDestroy_v2, 0, 2);
	REQUEST(cuMemsetD8_v2, 0, 1, M(0), 1, 64);
	fuzz_seed(dir, "context_variable", seed, seed_len);
	seed_len = before;
	/* The wrapper of a fat binary, which has the address of the image. */
	REQUEST(remoteModuleLoad, 1, 1, 24, 0, 12, 24, 0x1466243b1ull, 4096, 0, 0, 0);
	REQUEST(remoteLibraryLoad, 1, 24, 0, 13, 24, 0x1466243b1ull, 4096, 0, 0, 0);
	fuzz_seed(dir, "wrapper", seed, seed_len);
	seed_len = 2;
	REQUEST(cuInit, 1, 0);
	REQUEST(cuDevicePrimaryCtxRetain, 1, 0, 1);
	REQUEST(cuMemAlloc_v2, 1, 1, 4096, 1);
	REQUEST(cuCtxDestroy_v2, 0, 1);
	REQUEST(cuDevicePrimaryCtxRetain, 1, 0, 2);
	REQUEST(cuDevicePrimaryCtxRetain, 1, 0, 3);
	REQUEST(cuCtxDestroy_v2, 0, 2);
	fuzz_seed(dir, "primary", seed, seed_len);
}

FUZZ_SEEDS(seeds)

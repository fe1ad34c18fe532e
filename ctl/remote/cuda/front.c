// SPDX-License-Identifier: GPL-2.0-only
/* The library itself, devices, contexts, and streams that have special values. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_front.h"
#include "layer.h"

#define DEPTH	32u	/* contexts on a thread's stack */
#define DEVICES	64	/* whose primary contexts are known */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool connected;
static atomic_bool initialised;

/* The thread's contexts, of which the last one is current. */
static _Thread_local struct {
	struct object *stack[DEPTH];
	unsigned int nr;
} contexts;

/* The thread's own stream in a context. */
struct own_stream {
	uint64_t context;		/* its id */
	CUstream stream;
	struct own_stream *next;
};

static _Thread_local struct own_stream *own_streams;

/* Covers primaries[]. */
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *primaries[DEVICES];

/* ---- the library ---- */

static void connect_once(void)
{
	connected = !remote_connect(&cuda_front);
}

static bool is_connected(void)
{
	pthread_once(&once, connect_once);
	return connected;
}

bool cuda_ready(void)
{
	return atomic_load(&initialised);
}

CUresult front_cuInit(unsigned int flags)
{
	CUresult status;

	if (!is_connected())
		return CUDA_ERROR_NO_DEVICE;
	status = remote_cuInit(flags);
	if (!status)
		atomic_store(&initialised, true);
	return status;
}

CUresult front_cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	return is_connected() ? remote_cuDriverGetVersion(version) : CUDA_ERROR_NO_DEVICE;
}

CUresult front_cuGetErrorName(CUresult error, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = cuda_error_name(error);
	return *name ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult front_cuGetErrorString(CUresult error, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = cuda_error_text(error);
	return *text ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static void *find(const char *name, const char *version)
{
	size_t len = strlen(name);

	for (const struct cuda_symbol *s = cuda_symbols; s->name; s++)
		if (!strncmp(s->name, name, len) && !strcmp(s->name + len, version))
			return s->address;
	return NULL;
}

/* Versions whose functions differ from "_v2", which all others have, or none. */
static const char *version_of(const char *symbol, int version)
{
	if (!strcmp(symbol, "cuCtxCreate") && version >= 13000)
		return "_v4";
	if (!strcmp(symbol, "cuGetProcAddress") && version < 12000)
		return "";
	if (!strcmp(symbol, "cuEventElapsedTime") && version < 12080)
		return "";
	if (!strcmp(symbol, "cuDeviceGetUuid") && version < 11040)
		return "";
	return "_v2";
}

CUresult front_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
				   CUdriverProcAddressQueryResult *result)
{
	void *p = NULL;

	if (!symbol || !pfn)
		return CUDA_ERROR_INVALID_VALUE;
	/* Functions whose default stream is the thread's are not there. */
	if (!(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) {
		p = find(symbol, version_of(symbol, version));
		if (!p)
			p = find(symbol, "");
	}
	*pfn = p;
	if (result)
		*result = p ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return p ? 0 : CUDA_ERROR_NOT_FOUND;
}

CUresult front_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return front_cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

CUresult front_cuGetExportTable(const void **table, const CUuuid *id)
{
	static atomic_bool said;

	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	/* The tables are not described; CUDA's runtime library does not run without them. */
	remote_outside("cuGetExportTable, which CUDA's runtime library needs", &said);
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* ---- the runtime library ---- */

static void called(const void *site)
{
	/* The library's functions can call each other; the first site counts. */
	remote_come(site);
}

__attribute__((visibility("default")))
mgpu_called *mgpu_layer(const void *start, const void *end, bool within)
{
	atomic_store(&remote_layer.within, within);
	atomic_store(&remote_layer.start, (uintptr_t)start);
	atomic_store(&remote_layer.len, (uintptr_t)end - (uintptr_t)start);
	return called;
}

/* ---- devices ---- */

/* A feature that devices may have, and that is not remoted. */
static bool is_outside(CUdevice_attribute attrib)
{
	static const uint8_t outside[] = {
		CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
		CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
		CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
		CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
		CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
		CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
		CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
		CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
		CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
		CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
	};

	return memchr(outside, (int)attrib, sizeof(outside)) && attrib < 256;
}

CUresult front_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	CUresult status = remote_cuDeviceGetAttribute(pi, attrib, dev);

	if (!status && is_outside(attrib))
		*pi = 0;
	return status;
}

/* ---- contexts ---- */

struct object *cuda_current(void)
{
	struct object *o = contexts.nr ? contexts.stack[contexts.nr - 1] : NULL;

	/* Another thread may have destroyed it. */
	return o && object_find(o) && object_is(o, KIND_CUCONTEXT) ? o : NULL;
}

static CUresult push(CUcontext ctx)
{
	if (contexts.nr == DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	contexts.stack[contexts.nr++] = object_of(ctx);
	return 0;
}

CUresult front_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult status = 0;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	if (primaries[dev]) {
		object_retain(primaries[dev]);
		*pctx = (CUcontext)primaries[dev];
	} else {
		status = remote_cuDevicePrimaryCtxRetain(pctx, dev);
		if (!status) {
			primaries[dev] = object_of(*pctx);
			primaries[dev]->unit = (uint32_t)dev;
		}
	}
	pthread_mutex_unlock(&primary_lock);
	return status;
}

CUresult front_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct object *o;

	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&primary_lock);
	o = primaries[dev];
	if (o) {
		if (atomic_load(&o->refs) == 1)
			primaries[dev] = NULL;
		object_release(o);
	}
	pthread_mutex_unlock(&primary_lock);
	return o ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult front_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	CUresult status;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (contexts.nr == DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = remote_cuCtxCreate_v2(pctx, flags, dev);
	if (status)
		return status;
	object_of(*pctx)->unit = (uint32_t)dev;
	return push(*pctx);
}

CUresult front_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags,
			      CUdevice dev)
{
	static atomic_bool said;

	if (params) {
		remote_outside("cuCtxCreate with parameters", &said);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return front_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult front_cuCtxDestroy_v2(CUcontext ctx)
{
	struct object *o = object_of(ctx);
	bool primary = false;

	if (!object_is(ctx, KIND_CUCONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&primary_lock);
	for (int i = 0; i < DEVICES; i++)
		primary |= primaries[i] == o;
	pthread_mutex_unlock(&primary_lock);
	if (primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (cuda_current() == o)
		contexts.nr--;
	return remote_cuCtxDestroy_v2(ctx);
}

CUresult front_cuCtxGetCurrent(CUcontext *pctx)
{
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = (CUcontext)cuda_current();
	return 0;
}

CUresult front_cuCtxSetCurrent(CUcontext ctx)
{
	if (ctx && !object_is(ctx, KIND_CUCONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (contexts.nr)
		contexts.nr--;
	return ctx ? push(ctx) : 0;
}

CUresult front_cuCtxPushCurrent_v2(CUcontext ctx)
{
	return object_is(ctx, KIND_CUCONTEXT) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult front_cuCtxPopCurrent_v2(CUcontext *pctx)
{
	if (!contexts.nr)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = (CUcontext)contexts.stack[contexts.nr - 1];
	contexts.nr--;
	return 0;
}

CUresult front_cuCtxGetDevice(CUdevice *device)
{
	const struct object *o = cuda_current();

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!o)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = (CUdevice)o->unit;
	return 0;
}

/* ---- streams ---- */

/* A thread's own default stream is one like others, which wait for the default stream, too. */
static CUstream own_stream(void)
{
	struct object *o = cuda_current();
	struct own_stream *s;
	CUstream stream;

	for (s = own_streams; s; s = s->next)
		if (o && s->context == o->id)
			return s->stream;
	if (!o || remote_cuStreamCreate(&stream, 0))
		return NULL;
	s = malloc(sizeof(*s));
	if (!s)
		return stream;
	*s = (struct own_stream){ .context = o->id, .stream = stream, .next = own_streams };
	own_streams = s;
	return stream;
}

void *cuda_named(void *stream)
{
	if (stream == CU_STREAM_LEGACY)
		return NULL;
	return stream == CU_STREAM_PER_THREAD ? own_stream() : stream;
}

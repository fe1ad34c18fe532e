// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory.  Addresses of device memory are the server's.  The front end knows what the program has,
 * so that a range is wrong in the call that has it, also in one that is put off.  Page-locked host
 * memory is plain memory of the program.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_front.h"

#define PAGE	4096u

/* The kinds of host memory. */
#define HOST_ALLOCATED	((void *)1)
#define HOST_REGISTERED	((void *)2)

/* Covers both. */
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_ranges device, host;

/* ---- device memory ---- */

/* Find the range that has an address; false if there is none. */
static bool find(const struct cuda_ranges *r, uint64_t start, uint64_t len,
		 struct cuda_range *range)
{
	const struct cuda_range *found;

	pthread_mutex_lock(&memory_lock);
	found = cuda_ranges_find(r, start, len);
	if (found)
		*range = *found;
	pthread_mutex_unlock(&memory_lock);
	return found;
}

bool cuda_has(CUdeviceptr start, uint64_t len)
{
	struct cuda_range range;

	return !len || find(&device, start, len, &range);
}

CUresult cuda_keep_memory(CUdeviceptr start, uint64_t len, struct object *owner, bool fixed)
{
	const struct cuda_range range = {
		.start = start, .len = len, .owner = owner, .fixed = fixed,
	};
	bool kept;

	pthread_mutex_lock(&memory_lock);
	kept = cuda_ranges_add(&device, &range);
	pthread_mutex_unlock(&memory_lock);
	return kept ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

void cuda_forget_memory(const struct object *owner)
{
	pthread_mutex_lock(&memory_lock);
	cuda_ranges_drop(&device, owner);
	pthread_mutex_unlock(&memory_lock);
}

CUresult front_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	CUresult status;

	if (!dptr || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	status = remote_cuMemAlloc_v2(dptr, bytes);
	return status ? status : cuda_keep_memory(*dptr, bytes, cuda_current(), false);
}

CUresult front_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
				  unsigned int element)
{
	CUresult status;

	if (!dptr || !pitch || !width || !height)
		return CUDA_ERROR_INVALID_VALUE;
	status = remote_cuMemAllocPitch_v2(dptr, pitch, width, height, element);
	return status ? status : cuda_keep_memory(*dptr, *pitch * height, cuda_current(), false);
}

CUresult front_cuMemFree_v2(CUdeviceptr dptr)
{
	bool there;

	if (!dptr)
		return 0;
	/* Before the server can give the address to another thread. */
	pthread_mutex_lock(&memory_lock);
	there = cuda_ranges_remove(&device, dptr);
	pthread_mutex_unlock(&memory_lock);
	return there ? remote_cuMemFree_v2(dptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult front_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr dptr)
{
	struct cuda_range range;

	if (!find(&device, dptr, 1, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range.start;
	if (size)
		*size = range.len;
	return 0;
}

CUresult front_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct cuda_range range;
	bool on_device = find(&device, ptr, 1, &range);
	struct object *o = on_device ? object_above(range.owner, KIND_CUCONTEXT) : NULL;

	if (!data || (!on_device && !find(&host, ptr, 1, &range)))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return 0;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)data = false;
		return 0;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (on_device)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = ptr;
		return 0;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		if (!on_device)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = ptr;
		return 0;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (!o)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUcontext *)data = (CUcontext)o;
		return 0;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		if (!o)
			return CUDA_ERROR_INVALID_VALUE;
		*(int *)data = (int)o->unit;
		return 0;
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- host memory ---- */

static CUresult keep_host(void *p, size_t bytes, void *how)
{
	const struct cuda_range range = { .start = (uintptr_t)p, .len = bytes, .owner = how };
	CUresult status = 0;

	pthread_mutex_lock(&memory_lock);
	if (cuda_ranges_find(&host, range.start, 1))
		status = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!cuda_ranges_add(&host, &range))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&memory_lock);
	return status;
}

static bool drop_host(const void *p, const void *how)
{
	const struct cuda_range *range;
	bool dropped = false;

	pthread_mutex_lock(&memory_lock);
	range = cuda_ranges_find(&host, (uintptr_t)p, 1);
	if (range && range->owner == how)
		dropped = cuda_ranges_remove(&host, (uintptr_t)p);
	pthread_mutex_unlock(&memory_lock);
	return dropped;
}

CUresult front_cuMemHostAlloc(void **pp, size_t bytes, unsigned int flags)
{
	static atomic_bool said;
	void *p;

	if (!cuda_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!pp || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTALLOC_DEVICEMAP) {
		remote_outside("cuMemHostAlloc with CU_MEMHOSTALLOC_DEVICEMAP", &said);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	p = bytes > SIZE_MAX - PAGE ? NULL : aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (keep_host(p, bytes, HOST_ALLOCATED)) {
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*pp = p;
	return 0;
}

CUresult front_cuMemAllocHost_v2(void **pp, size_t bytes)
{
	return front_cuMemHostAlloc(pp, bytes, 0);
}

CUresult front_cuMemFreeHost(void *p)
{
	if (!drop_host(p, HOST_ALLOCATED))
		return CUDA_ERROR_INVALID_VALUE;
	/* Data that are still to come would go there. */
	remote_forget(p);
	free(p);
	return 0;
}

CUresult front_cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags)
{
	static atomic_bool said;

	if (!cuda_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!p || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTALLOC_DEVICEMAP) {
		remote_outside("cuMemHostRegister with CU_MEMHOSTREGISTER_DEVICEMAP", &said);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return keep_host(p, bytes, HOST_REGISTERED);
}

CUresult front_cuMemHostUnregister(void *p)
{
	return drop_host(p, HOST_REGISTERED) ? 0 : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

/* ---- rectangles ---- */

bool cuda_rows(size_t pitch, size_t width, size_t height, struct shape *shape)
{
	*shape = (struct shape){
		.row = width, .rows = height, .slices = 1, .row_pitch = pitch,
	};
	return (pitch >= width || height <= 1) && sat_mul(width, height) != UINT64_MAX;
}

static CUresult copy(const CUDA_MEMCPY2D *c, unsigned int async, CUstream stream)
{
	static atomic_bool said;
	bool from_host, to_host;
	size_t src_pitch, dst_pitch, src_at, dst_at;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	from_host = c->srcMemoryType == CU_MEMORYTYPE_HOST;
	to_host = c->dstMemoryType == CU_MEMORYTYPE_HOST;
	if ((!from_host && c->srcMemoryType != CU_MEMORYTYPE_DEVICE) ||
	    (!to_host && c->dstMemoryType != CU_MEMORYTYPE_DEVICE)) {
		remote_outside("cuMemcpy2D with arrays or unified addresses", &said);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	src_pitch = c->srcPitch ? c->srcPitch : sat_add(c->srcXInBytes, c->WidthInBytes);
	dst_pitch = c->dstPitch ? c->dstPitch : sat_add(c->dstXInBytes, c->WidthInBytes);
	if (sat_add(c->srcXInBytes, c->WidthInBytes) > src_pitch ||
	    sat_add(c->dstXInBytes, c->WidthInBytes) > dst_pitch)
		return CUDA_ERROR_INVALID_VALUE;
	src_at = sat_add(sat_mul(c->srcY, src_pitch), c->srcXInBytes);
	dst_at = sat_add(sat_mul(c->dstY, dst_pitch), c->dstXInBytes);
	if (from_host && to_host) {
		remote_outside("cuMemcpy2D within host memory", &said);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (from_host)
		return remote_remoteCopyToDevice(c->dstDevice + dst_at, dst_pitch, c->WidthInBytes,
						 c->Height, (const uint8_t *)c->srcHost + src_at,
						 src_pitch, async, stream);
	if (to_host)
		return remote_remoteCopyToHost((uint8_t *)c->dstHost + dst_at,
					       c->srcDevice + src_at, src_pitch, c->WidthInBytes,
					       c->Height, dst_pitch, async, stream);
	return remote_remoteCopyOnDevice(c->dstDevice + dst_at, dst_pitch, c->srcDevice + src_at,
					 src_pitch, c->WidthInBytes, c->Height, async, stream);
}

CUresult front_cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	return copy(c, 0, NULL);
}

CUresult front_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	return copy(c, 0, NULL);
}

CUresult front_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return copy(c, 1, stream);
}

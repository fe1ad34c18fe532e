// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of the device and of the host, copies, memsets, and the contents of variables.  The
 * direction of a copy decides which function of the driver makes it.
 */
#include <string.h>

#include "runtime.h"

/* When a copy or a memset has ended. */
enum how {
	WAIT,		/* when the function returns; on the legacy default stream */
	WAIT_OWN,	/* the same on the thread's default stream */
	ASYNC,		/* later, on a stream */
};

/* Wait for what a function has put on the thread's stream. */
static cudaError_t finish(CUresult status, enum how how, CUstream stream)
{
	if (!status && how == WAIT_OWN)
		status = cu.cuStreamSynchronize(stream);
	return rt_end(rt_error(status));
}

static CUdeviceptr at(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* ---- memory of the device ---- */

cudaError_t cudaMalloc(void **p, size_t size)
{
	CUdeviceptr made = 0;
	cudaError_t error;

	rt_enter();
	if (!p)
		return rt_end(cudaErrorInvalidValue);
	/* No bytes are no error, and no memory. */
	if (!size)
		return rt_begin() ? cudaPeekAtLastError() : (*p = NULL, cudaSuccess);
	error = RT_CALL(cuMemAlloc_v2(&made, size));
	if (!error)
		*p = (void *)(uintptr_t)made;
	return error;
}

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
	CUdeviceptr made = 0;
	cudaError_t error;

	if (!p || !pitch)
		return rt_end(cudaErrorInvalidValue);
	if (!width || !height) {
		*pitch = 0;
		return cudaMalloc(p, 0);
	}
	/* Rows for elements of any size that threads read in one piece. */
	error = RT_CALL(cuMemAllocPitch_v2(&made, pitch, width, height, 16));
	if (!error)
		*p = (void *)(uintptr_t)made;
	return error;
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *p, struct cudaExtent extent)
{
	size_t rows;

	if (!p || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return rt_end(cudaErrorInvalidValue);
	p->xsize = extent.width;
	p->ysize = extent.height;
	return cudaMallocPitch(&p->ptr, &p->pitch, extent.width, rows);
}

cudaError_t cudaFree(void *p)
{
	rt_enter();
	return RT_CALL(cuMemFree_v2(at(p)));
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
	return RT_GET(left && total, cuMemGetInfo_v2(left, total));
}

/* ---- memory of the host ---- */

cudaError_t cudaHostAlloc(void **p, size_t size, unsigned int flags)
{
	if (!p)
		return rt_end(cudaErrorInvalidValue);
	if (!size)
		return rt_begin() ? cudaPeekAtLastError() : (*p = NULL, cudaSuccess);
	return RT_CALL(cuMemHostAlloc(p, size, flags));
}

cudaError_t cudaMallocHost(void **p, size_t size)
{
	return cudaHostAlloc(p, size, 0);
}

cudaError_t cudaFreeHost(void *p)
{
	if (!p)
		return rt_begin();
	return RT_CALL(cuMemFreeHost(p));
}

cudaError_t cudaHostRegister(void *p, size_t size, unsigned int flags)
{
	return RT_CALL(cuMemHostRegister_v2(p, size, flags));
}

cudaError_t cudaHostUnregister(void *p)
{
	return RT_CALL(cuMemHostUnregister(p));
}

/* ---- pointers ---- */

/* Return the kind of memory that an address is of; 0 if the driver does not know it. */
static unsigned int memory_type(const void *p)
{
	unsigned int type = 0;

	return cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(p)) ? 0 : type;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p)
{
	struct cudaPointerAttributes a = { .device = -2 };
	CUdeviceptr other;
	unsigned int type;
	bool managed = false;

	if (!attributes)
		return rt_end(cudaErrorInvalidValue);
	if (rt_begin())
		return cudaPeekAtLastError();
	type = memory_type(p);
	if (!type) {
		a.hostPointer = (void *)(uintptr_t)p;
		*attributes = a;
		return cudaSuccess;
	}
	cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at(p));
	a.type = managed ? cudaMemoryTypeManaged :
		 type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
	if (cu.cuPointerGetAttribute(&a.device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at(p)))
		cudaGetDevice(&a.device);
	if (!cu.cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at(p)))
		a.devicePointer = (void *)(uintptr_t)other;
	if (!cu.cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_HOST_POINTER, at(p)))
		a.hostPointer = (void *)(uintptr_t)other;
	*attributes = a;
	return cudaSuccess;
}

/* Decide in which direction a copy goes. */
static cudaError_t decide(const void *dst, const void *src, enum cudaMemcpyKind *kind)
{
	bool to, from;

	if ((unsigned int)*kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (*kind != cudaMemcpyDefault)
		return 0;
	to = memory_type(dst) == CU_MEMORYTYPE_DEVICE;
	from = memory_type(src) == CU_MEMORYTYPE_DEVICE;
	*kind = to ? from ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice :
		from ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
	return 0;
}

/* ---- copies ---- */

/* Within memory of the host the caller copies, after what the stream has. */
static CUresult copy_host(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height, CUstream stream)
{
	CUresult status;

	if (!dst || !src)
		return CUDA_ERROR_INVALID_VALUE;
	status = cu.cuStreamSynchronize(stream);
	for (size_t y = 0; !status && y < height; y++)
		memmove((char *)dst + y * dpitch, (const char *)src + y * spitch, width);
	return status;
}

static cudaError_t copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			enum how how, CUstream stream)
{
	cudaError_t error = rt_begin();
	bool async = how != WAIT;
	CUresult status = 0;

	if (error)
		return error;
	error = decide(dst, src, &kind);
	if (error || !count)
		return rt_end(error);
	switch (kind) {
	case cudaMemcpyHostToDevice:
		status = async ? cu.cuMemcpyHtoDAsync_v2(at(dst), src, count, stream) :
			 cu.cuMemcpyHtoD_v2(at(dst), src, count);
		break;
	case cudaMemcpyDeviceToHost:
		status = async ? cu.cuMemcpyDtoHAsync_v2(dst, at(src), count, stream) :
			 cu.cuMemcpyDtoH_v2(dst, at(src), count);
		break;
	case cudaMemcpyDeviceToDevice:
		status = async ? cu.cuMemcpyDtoDAsync_v2(at(dst), at(src), count, stream) :
			 cu.cuMemcpyDtoD_v2(at(dst), at(src), count);
		break;
	default:
		status = copy_host(dst, 0, src, 0, count, 1, stream);
	}
	return finish(status, how, stream);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	rt_enter();
	return copy(dst, src, count, kind, WAIT, NULL);
}

cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	rt_enter();
	return copy(dst, src, count, kind, WAIT_OWN, CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	rt_enter();
	return copy(dst, src, count, kind, ASYNC, stream);
}

cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count,
				 enum cudaMemcpyKind kind, cudaStream_t stream)
{
	rt_enter();
	return copy(dst, src, count, kind, ASYNC, rt_own(stream));
}

/* ---- rectangles ---- */

/* The current context and the direction are known, and the rectangle is not empty. */
static CUresult plane(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		      size_t height, enum cudaMemcpyKind kind, enum how how, CUstream stream)
{
	bool from_host = kind == cudaMemcpyHostToDevice, to_host = kind == cudaMemcpyDeviceToHost;
	const CUDA_MEMCPY2D c = {
		.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = from_host ? src : NULL,
		.srcDevice = from_host ? 0 : at(src),
		.srcPitch = spitch,
		.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.dstHost = to_host ? dst : NULL,
		.dstDevice = to_host ? 0 : at(dst),
		.dstPitch = dpitch,
		.WidthInBytes = width,
		.Height = height,
	};

	if (kind == cudaMemcpyHostToHost)
		return copy_host(dst, dpitch, src, spitch, width, height, stream);
	/* This one takes all pitches. */
	return how == WAIT ? cu.cuMemcpy2DUnaligned_v2(&c) : cu.cuMemcpy2DAsync_v2(&c, stream);
}

static cudaError_t rectangle(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			     size_t height, enum cudaMemcpyKind kind, enum how how,
			     CUstream stream)
{
	cudaError_t error = rt_begin();

	if (error)
		return error;
	error = decide(dst, src, &kind);
	if (!error && (dpitch < width || spitch < width))
		error = cudaErrorInvalidPitchValue;
	if (error || !width || !height)
		return rt_end(error);
	return finish(plane(dst, dpitch, src, spitch, width, height, kind, how, stream), how,
		      stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			 size_t height, enum cudaMemcpyKind kind)
{
	rt_enter();
	return rectangle(dst, dpitch, src, spitch, width, height, kind, WAIT, NULL);
}

cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind)
{
	rt_enter();
	return rectangle(dst, dpitch, src, spitch, width, height, kind, WAIT_OWN,
			 CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	rt_enter();
	return rectangle(dst, dpitch, src, spitch, width, height, kind, ASYNC, stream);
}

cudaError_t cudaMemcpy2DAsync_ptsz(void *dst, size_t dpitch, const void *src, size_t spitch,
				   size_t width, size_t height, enum cudaMemcpyKind kind,
				   cudaStream_t stream)
{
	rt_enter();
	return rectangle(dst, dpitch, src, spitch, width, height, kind, ASYNC, rt_own(stream));
}

/* ---- boxes ---- */

/* Return where a box begins in pitched memory. */
static char *corner(const struct cudaPitchedPtr *p, const struct cudaPos *pos)
{
	return (char *)p->ptr + (pos->z * p->ysize + pos->y) * p->pitch + pos->x;
}

static cudaError_t box(const struct cudaMemcpy3DParms *p, enum how how, CUstream stream)
{
	static atomic_bool said;
	enum cudaMemcpyKind kind;
	cudaError_t error;
	CUresult status = 0;
	char *dst, *src;

	if (!p)
		return rt_end(cudaErrorInvalidValue);
	if (p->srcArray || p->dstArray)
		return rt_outside(&said, "cudaMemcpy3D of arrays");
	error = rt_begin();
	if (error)
		return error;
	kind = p->kind;
	error = decide(p->dstPtr.ptr, p->srcPtr.ptr, &kind);
	if (!error && (p->dstPtr.pitch < p->extent.width || p->srcPtr.pitch < p->extent.width))
		error = cudaErrorInvalidPitchValue;
	if (!error && p->extent.depth > 1 &&
	    (p->dstPtr.ysize < p->extent.height || p->srcPtr.ysize < p->extent.height))
		error = cudaErrorInvalidValue;
	if (error || !p->extent.width || !p->extent.height)
		return rt_end(error);
	dst = corner(&p->dstPtr, &p->dstPos);
	src = corner(&p->srcPtr, &p->srcPos);
	for (size_t z = 0; !status && z < p->extent.depth; z++)
		status = plane(dst + z * p->dstPtr.ysize * p->dstPtr.pitch, p->dstPtr.pitch,
			       src + z * p->srcPtr.ysize * p->srcPtr.pitch, p->srcPtr.pitch,
			       p->extent.width, p->extent.height, kind, how, stream);
	return finish(status, how, stream);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params)
{
	rt_enter();
	return box(params, WAIT, NULL);
}

cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *params)
{
	rt_enter();
	return box(params, WAIT_OWN, CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
	rt_enter();
	return box(params, ASYNC, stream);
}

cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
	rt_enter();
	return box(params, ASYNC, rt_own(stream));
}

/* ---- memsets ---- */

static cudaError_t set(void *p, int value, size_t count, enum how how, CUstream stream)
{
	unsigned char byte = (unsigned char)value;
	CUresult status;

	if (rt_begin())
		return cudaPeekAtLastError();
	if (!count)
		return cudaSuccess;
	status = how == WAIT ? cu.cuMemsetD8_v2(at(p), byte, count) :
		 cu.cuMemsetD8Async(at(p), byte, count, stream);
	return finish(status, how, stream);
}

cudaError_t cudaMemset(void *p, int value, size_t count)
{
	rt_enter();
	return set(p, value, count, WAIT, NULL);
}

cudaError_t cudaMemset_ptds(void *p, int value, size_t count)
{
	rt_enter();
	return set(p, value, count, WAIT_OWN, CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t count, cudaStream_t stream)
{
	rt_enter();
	return set(p, value, count, ASYNC, stream);
}

cudaError_t cudaMemsetAsync_ptsz(void *p, int value, size_t count, cudaStream_t stream)
{
	rt_enter();
	return set(p, value, count, ASYNC, rt_own(stream));
}

static cudaError_t set_plane(void *p, size_t pitch, int value, size_t width, size_t height,
			     enum how how, CUstream stream)
{
	unsigned char byte = (unsigned char)value;
	CUresult status = 0;

	if (rt_begin())
		return cudaPeekAtLastError();
	if (!width || !height)
		return cudaSuccess;
	if (pitch < width)
		return rt_end(cudaErrorInvalidValue);
	if (how == WAIT)
		return rt_end(rt_error(cu.cuMemsetD2D8_v2(at(p), pitch, byte, width, height)));
	/* The front end has no rectangles that are set on a stream. */
	if (pitch == width && !__builtin_mul_overflow(width, height, &width))
		height = 1;
	for (size_t y = 0; !status && y < height; y++)
		status = cu.cuMemsetD8Async(at(p) + y * pitch, byte, width, stream);
	return finish(status, how, stream);
}

cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height)
{
	rt_enter();
	return set_plane(p, pitch, value, width, height, WAIT, NULL);
}

cudaError_t cudaMemset2D_ptds(void *p, size_t pitch, int value, size_t width, size_t height)
{
	rt_enter();
	return set_plane(p, pitch, value, width, height, WAIT_OWN, CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
			      cudaStream_t stream)
{
	rt_enter();
	return set_plane(p, pitch, value, width, height, ASYNC, stream);
}

cudaError_t cudaMemset2DAsync_ptsz(void *p, size_t pitch, int value, size_t width, size_t height,
				   cudaStream_t stream)
{
	rt_enter();
	return set_plane(p, pitch, value, width, height, ASYNC, rt_own(stream));
}

/* ---- variables ---- */

/* Find the place in a variable that a copy is to or from. */
static cudaError_t place(const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
			 enum cudaMemcpyKind host, void **p)
{
	cudaError_t error = rt_begin();
	CUdeviceptr start;
	size_t size;

	if (error)
		return error;
	if (kind != host && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return rt_end(cudaErrorInvalidMemcpyDirection);
	error = rt_variable(symbol, &start, &size);
	if (!error && (offset > size || count > size - offset))
		error = cudaErrorInvalidValue;
	if (!error)
		*p = (void *)(uintptr_t)(start + offset);
	return rt_end(error);
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
			     enum cudaMemcpyKind kind, enum how how, CUstream stream)
{
	void *dst;
	cudaError_t error = place(symbol, count, offset, kind, cudaMemcpyHostToDevice, &dst);

	return error ? error : copy(dst, src, count, kind, how, stream);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
			       enum cudaMemcpyKind kind, enum how how, CUstream stream)
{
	void *src;
	cudaError_t error = place(symbol, count, offset, kind, cudaMemcpyDeviceToHost, &src);

	return error ? error : copy(dst, src, count, kind, how, stream);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
			       enum cudaMemcpyKind kind)
{
	rt_enter();
	return to_symbol(symbol, src, count, offset, kind, WAIT, NULL);
}

cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t count,
				    size_t offset, enum cudaMemcpyKind kind)
{
	rt_enter();
	return to_symbol(symbol, src, count, offset, kind, WAIT_OWN, CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
				    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	rt_enter();
	return to_symbol(symbol, src, count, offset, kind, ASYNC, stream);
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *src, size_t count,
					 size_t offset, enum cudaMemcpyKind kind,
					 cudaStream_t stream)
{
	rt_enter();
	return to_symbol(symbol, src, count, offset, kind, ASYNC, rt_own(stream));
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
				 enum cudaMemcpyKind kind)
{
	rt_enter();
	return from_symbol(dst, symbol, count, offset, kind, WAIT, NULL);
}

cudaError_t cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind)
{
	rt_enter();
	return from_symbol(dst, symbol, count, offset, kind, WAIT_OWN, CU_STREAM_PER_THREAD);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	rt_enter();
	return from_symbol(dst, symbol, count, offset, kind, ASYNC, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *dst, const void *symbol, size_t count,
					   size_t offset, enum cudaMemcpyKind kind,
					   cudaStream_t stream)
{
	rt_enter();
	return from_symbol(dst, symbol, count, offset, kind, ASYNC, rt_own(stream));
}

/* ---- formats ---- */

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
						   enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, f };
}

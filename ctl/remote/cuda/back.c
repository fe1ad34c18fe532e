// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_back.h"

static struct cuda *cuda_of(struct server *s)
{
	return s->native;
}

void *cuda_open(void *library)
{
	static struct cuda cuda;
	static const struct {
		const char *name;
		size_t at;
	} list[] = { CUDA_CALLS };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		void *p = dlsym(library, list[i].name);

		memcpy((uint8_t *)&cuda.calls + list[i].at, &p, sizeof(p));
	}
	return &cuda;
}

/* ---- contexts ---- */

int32_t cuda_enter(struct server *s, struct served *context)
{
	struct cuda *cuda = cuda_of(s);
	CUresult status;

	if (cuda->current && cuda->current == context->native)
		return 0;
	if (!cuda->calls.cuCtxSetCurrent)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = cuda->calls.cuCtxSetCurrent(context->native);
	cuda->current = status ? NULL : context->native;
	return (int32_t)status;
}

int32_t back_cuDevicePrimaryCtxRetain(struct server *s, struct request *q, CUcontext *made,
				      CUdevice dev)
{
	struct cuda *cuda = cuda_of(s);
	CUresult status;

	if (!made)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0 || dev >= (CUdevice)CUDA_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	/*
	 * A front end counts its program's references, and has one.  With two, the memory would
	 * stay when the first is released, and would no longer be charged.
	 */
	if (cuda->primary[dev]) {
		q->in.bad = true;
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!cuda->calls.cuDevicePrimaryCtxRetain)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = cuda->calls.cuDevicePrimaryCtxRetain(made, dev);
	if (!status)
		cuda->primary[dev] = *made;
	return (int32_t)status;
}

int32_t back_cuCtxCreate_v2(struct server *s, struct request *q, CUcontext *made,
			    unsigned int flags, CUdevice dev)
{
	struct cuda *cuda = cuda_of(s);
	CUcontext pushed;
	CUresult status;

	(void)q;
	if (!made)
		return CUDA_ERROR_INVALID_VALUE;
	if (!cuda->calls.cuCtxCreate_v2 || !cuda->calls.cuCtxPopCurrent_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = cuda->calls.cuCtxCreate_v2(made, flags, dev);
	/* Each request says which context is its current one. */
	if (!status)
		cuda->calls.cuCtxPopCurrent_v2(&pushed);
	cuda->current = NULL;
	return (int32_t)status;
}

static void release_context(struct cuda *cuda, CUcontext context)
{
	for (CUdevice dev = 0; dev < (CUdevice)CUDA_DEVICES; dev++) {
		if (cuda->primary[dev] == context) {
			cuda->primary[dev] = NULL;
			cuda->calls.cuDevicePrimaryCtxRelease_v2(dev);
			return;
		}
	}
	cuda->calls.cuCtxDestroy_v2(context);
}

/* Charge the application for the memory that the ranges have, instead of @before. */
static void charge(struct server *s, uint64_t before)
{
	uint64_t bytes = cuda_of(s)->memory.bytes;

	if (bytes > before)
		ledger_add(&s->ledger, LEDGER_MEMORY, bytes - before);
	else
		ledger_sub(&s->ledger, LEDGER_MEMORY, before - bytes);
}

void cuda_release(struct server *s, struct served *o)
{
	struct cuda *cuda = cuda_of(s);
	uint64_t before;

	switch (o->kind) {
	case KIND_CUCONTEXT:
	case KIND_CUMODULE:
	case KIND_CULIBRARY:
	case KIND_CUKERNEL:	/* of which functions are made */
		server_remove_children(s, o);
		before = cuda->memory.bytes;
		cuda_ranges_drop(&cuda->memory, o->native);
		charge(s, before);
	}
	/* The library releases what a context has with the context. */
	if (o->kind == KIND_CUCONTEXT) {
		cuda->current = NULL;
		release_context(cuda, o->native);
	} else if (o->kind == KIND_CULIBRARY) {
		cuda->calls.cuLibraryUnload(o->native);
	} else if (o->kind == KIND_CUFUNCTION || o->kind == KIND_CUKERNEL) {
		/* They go with what they are of, which is no context. */
		return;
	} else if (o->parent && !cuda_enter(s, o->parent)) {
		if (o->kind == KIND_CUMODULE)
			cuda->calls.cuModuleUnload(o->native);
		else if (o->kind == KIND_CUSTREAM)
			cuda->calls.cuStreamDestroy_v2(o->native);
		else if (o->kind == KIND_CUEVENT)
			cuda->calls.cuEventDestroy_v2(o->native);
	}
}

void *cuda_failed(struct server *s, uint32_t kind, struct served *target, int32_t error)
{
	(void)s;
	(void)kind;
	(void)target;
	(void)error;
	return NULL;
}

/* Transfers have ended when the library's call returns: their memory is not page-locked. */
int32_t cuda_finished(struct server *s, void *event)
{
	(void)s;
	(void)event;
	return 1;
}

void cuda_forget(struct server *s, void *event)
{
	(void)s;
	(void)event;
}

/* ---- memory ---- */

bool cuda_holds(struct server *s, CUdeviceptr start, uint64_t len)
{
	return !len || cuda_ranges_find(&cuda_of(s)->memory, start, len);
}

/* Put a number into the reply. */
static int32_t answer(struct server *s, struct request *q, uint64_t len, uint64_t v)
{
	void *out = server_out(s, q, len);

	if (!out)
		return q->status;
	memcpy(out, &v, len < sizeof(v) ? len : sizeof(v));
	return 0;
}

static int32_t answer_two(struct server *s, struct request *q, uint64_t len_a, uint64_t a,
			  uint64_t len_b, uint64_t b)
{
	int32_t status = answer(s, q, len_a, a);

	return status ? status : answer(s, q, len_b, b);
}

/* Note memory that the library has given. */
static bool keep(struct server *s, const struct cuda_range *range)
{
	struct cuda *cuda = cuda_of(s);
	uint64_t before = cuda->memory.bytes;
	bool kept = cuda_ranges_add(&cuda->memory, range);

	charge(s, before);
	return kept;
}

static bool keep_allocation(struct server *s, CUdeviceptr start, uint64_t len)
{
	return keep(s, &(struct cuda_range){
		.start = start, .len = len, .owner = cuda_of(s)->current,
	});
}

int32_t back_cuMemAlloc_v2(struct server *s, struct request *q, uint64_t len_dptr, size_t bytes)
{
	struct cuda *cuda = cuda_of(s);
	CUdeviceptr dptr = 0;
	CUresult status;

	if (!cuda->calls.cuMemAlloc_v2 || !cuda->calls.cuMemFree_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Until the request ends; then the range has it. */
	if (!server_reserve(s, q, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = cuda->calls.cuMemAlloc_v2(&dptr, bytes);
	if (status)
		return (int32_t)status;
	if (!keep_allocation(s, dptr, bytes)) {
		cuda->calls.cuMemFree_v2(dptr);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return answer(s, q, len_dptr, dptr);
}

int32_t back_cuMemAllocPitch_v2(struct server *s, struct request *q, uint64_t len_dptr,
				uint64_t len_pitch, size_t width, size_t height,
				unsigned int element)
{
	struct cuda *cuda = cuda_of(s);
	CUdeviceptr dptr = 0;
	size_t pitch = 0;
	uint64_t bytes;
	CUresult status;

	if (!cuda->calls.cuMemAllocPitch_v2 || !cuda->calls.cuMemFree_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!server_reserve(s, q, sat_mul(width, height)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = cuda->calls.cuMemAllocPitch_v2(&dptr, &pitch, width, height, element);
	if (status)
		return (int32_t)status;
	/* With the pitch it can be more than there may be. */
	bytes = sat_mul(pitch, height);
	if (bytes < q->reserved || !server_reserve(s, q, bytes - q->reserved) ||
	    !keep_allocation(s, dptr, bytes)) {
		cuda->calls.cuMemFree_v2(dptr);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return answer_two(s, q, len_dptr, dptr, len_pitch, pitch);
}

int32_t back_cuMemFree_v2(struct server *s, struct request *q, CUdeviceptr dptr)
{
	struct cuda *cuda = cuda_of(s);
	uint64_t before = cuda->memory.bytes;

	(void)q;
	if (!cuda_ranges_remove(&cuda->memory, dptr))
		return CUDA_ERROR_INVALID_VALUE;
	charge(s, before);
	return (int32_t)cuda->calls.cuMemFree_v2(dptr);
}

int32_t back_cuModuleGetGlobal_v2(struct server *s, struct request *q, uint64_t len_dptr,
				  uint64_t len_bytes, CUmodule module, const char *name)
{
	struct cuda *cuda = cuda_of(s);
	CUdeviceptr dptr = 0;
	size_t bytes = 0;
	struct cuda_range variable;
	CUresult status;

	if (!cuda->calls.cuModuleGetGlobal_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = cuda->calls.cuModuleGetGlobal_v2(&dptr, &bytes, module, name);
	if (status)
		return (int32_t)status;
	variable = (struct cuda_range){
		.start = dptr, .len = bytes, .owner = module, .fixed = true,
	};
	if (bytes && !keep(s, &variable))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return answer_two(s, q, len_dptr, dptr, len_bytes, bytes);
}

int32_t back_cuLibraryGetGlobal(struct server *s, struct request *q, uint64_t len_dptr,
				uint64_t len_bytes, CUlibrary library, const char *name)
{
	struct cuda *cuda = cuda_of(s);
	CUdeviceptr dptr = 0;
	size_t bytes = 0;
	struct cuda_range variable;
	CUresult status;

	if (!cuda->calls.cuLibraryGetGlobal)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = cuda->calls.cuLibraryGetGlobal(&dptr, &bytes, library, name);
	if (status)
		return (int32_t)status;
	/* Each context has one of its own. */
	variable = (struct cuda_range){
		.start = dptr, .len = bytes, .owner = library, .context = cuda->current,
		.fixed = true,
	};
	if (bytes && !keep(s, &variable))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return answer_two(s, q, len_dptr, dptr, len_bytes, bytes);
}

/* ---- copies ---- */

int32_t back_cuMemcpyDtoHAsync_v2(struct server *s, struct request *q, uint64_t len,
				  CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct cuda *cuda = cuda_of(s);
	CUresult status;
	void *data;

	if (!cuda->calls.cuMemcpyDtoHAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	data = server_may_pend(s, len) ? calloc(1, padded(len) + 8) : NULL;
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = cuda->calls.cuMemcpyDtoHAsync_v2(data, src, bytes, stream);
	if (status) {
		free(data);
		return (int32_t)status;
	}
	server_pend(s, &(struct pending){
		.status = 1, .data = data, .len = len, .seq = q->seq, .read = true,
	});
	return 0;
}

static int32_t copy(struct cuda *cuda, const CUDA_MEMCPY2D *c, unsigned int async, CUstream stream)
{
	if (!c->WidthInBytes || !c->Height)
		return 0;
	if (async && cuda->calls.cuMemcpy2DAsync_v2)
		return (int32_t)cuda->calls.cuMemcpy2DAsync_v2(c, stream);
	/* The one whose pitches may be any. */
	if (!async && cuda->calls.cuMemcpy2DUnaligned_v2)
		return (int32_t)cuda->calls.cuMemcpy2DUnaligned_v2(c);
	return CUDA_ERROR_NOT_SUPPORTED;
}

int32_t back_remoteCopyToDevice(struct server *s, struct request *q, CUdeviceptr dst, size_t pitch,
				size_t width, size_t height, const void *data, size_t host_pitch,
				unsigned int async, CUstream stream)
{
	const CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = data, .srcPitch = width,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = dst, .dstPitch = pitch,
		.WidthInBytes = width, .Height = height,
	};

	(void)q;
	(void)host_pitch;
	return copy(cuda_of(s), &c, async, stream);
}

int32_t back_remoteCopyToHost(struct server *s, struct request *q, uint64_t len, CUdeviceptr src,
			      size_t pitch, size_t width, size_t height, size_t host_pitch,
			      unsigned int async, CUstream stream)
{
	const CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = src, .srcPitch = pitch,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = server_out_data(s, q, len),
		.dstPitch = width, .WidthInBytes = width, .Height = height,
	};

	(void)host_pitch;
	return c.dstHost ? copy(cuda_of(s), &c, async, stream) : q->status;
}

int32_t back_remoteCopyOnDevice(struct server *s, struct request *q, CUdeviceptr dst,
				size_t dst_pitch, CUdeviceptr src, size_t src_pitch, size_t width,
				size_t height, unsigned int async, CUstream stream)
{
	const CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = src, .srcPitch = src_pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = dst, .dstPitch = dst_pitch,
		.WidthInBytes = width, .Height = height,
	};

	(void)q;
	return copy(cuda_of(s), &c, async, stream);
}

/* ---- modules and kernels ---- */

/* Return a copy of an image that ends with a NUL, as a text does, or NULL. */
static void *copy_image(struct server *s, struct request *q, const void *image, size_t size)
{
	uint8_t *own = server_arena(s, q, sat_add(size, 1));

	if (!own)
		return NULL;
	memcpy(own, image, size);
	own[size] = '\0';
	return own;
}

/*
 * Return whether a copy is an image that ends within it: the library takes the lengths that are in
 * an image, and of a wrapper of nvcc the address.
 */
static bool is_image(const void *own, size_t size)
{
	uint64_t len = cuda_image_len(own, size + 1);

	return len && len <= size;
}

int32_t back_remoteModuleLoad(struct server *s, struct request *q, CUmodule *made, size_t size,
			      const void *image, unsigned int nr, const CUjit_option *options,
			      const size_t *values)
{
	const struct cuda_calls *lib = &cuda_of(s)->calls;
	void *own = copy_image(s, q, image, size);

	if (!own)
		return q->status;
	if (!made || !is_image(own, size) || !cuda_options_plain(nr, options))
		return CUDA_ERROR_INVALID_VALUE;
	if (!lib->cuModuleLoadDataEx)
		return CUDA_ERROR_NOT_SUPPORTED;
	return (int32_t)lib->cuModuleLoadDataEx(made, own, nr, (CUjit_option *)(uintptr_t)options,
						(void **)(uintptr_t)values);
}

int32_t back_remoteLibraryLoad(struct server *s, struct request *q, CUlibrary *made, size_t size,
			       const void *code, unsigned int nr, const CUjit_option *options,
			       const size_t *values)
{
	const struct cuda_calls *lib = &cuda_of(s)->calls;
	void *own = copy_image(s, q, code, size);

	if (!own)
		return q->status;
	if (!made || !is_image(own, size) || !cuda_options_plain(nr, options))
		return CUDA_ERROR_INVALID_VALUE;
	if (!lib->cuLibraryLoadData)
		return CUDA_ERROR_NOT_SUPPORTED;
	return (int32_t)lib->cuLibraryLoadData(made, own, (CUjit_option *)(uintptr_t)options,
					       (void **)(uintptr_t)values, nr, NULL, NULL, 0);
}

int32_t back_remoteFuncParams(struct server *s, struct request *q, CUfunction f, uint64_t len_nr,
			      uint64_t len_layout)
{
	const struct cuda_calls *lib = &cuda_of(s)->calls;
	struct cuda_param params[CUDA_PARAMS] = { 0 };
	size_t offset, size;
	uint32_t nr = 0;
	int32_t status;
	void *out;

	if (!lib->cuFuncGetParamInfo)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Behind the last one the index is an invalid value. */
	while (!lib->cuFuncGetParamInfo(f, nr, &offset, &size)) {
		if (nr == CUDA_PARAMS || sat_add(offset, size) > CUDA_PARAM_BYTES)
			return CUDA_ERROR_NOT_SUPPORTED;
		params[nr++] = (struct cuda_param){ (uint32_t)offset, (uint32_t)size };
	}
	status = answer(s, q, len_nr, nr);
	if (status)
		return status;
	out = server_out(s, q, len_layout);
	if (!out)
		return q->status;
	memcpy(out, params, len_layout < sizeof(params) ? len_layout : sizeof(params));
	return 0;
}

int32_t back_remoteLaunch(struct server *s, struct request *q, CUfunction f, unsigned int grid_x,
			  unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
			  unsigned int block_y, unsigned int block_z, unsigned int shared,
			  CUstream stream, unsigned int cooperative, size_t size,
			  const void *params)
{
	const struct cuda_calls *lib = &cuda_of(s)->calls;
	/* The library may read as much as the kernel has. */
	static uint8_t own[CUDA_PARAM_BYTES + 4];
	static size_t dirty;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, own, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END,
	};
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
	const CUlaunchConfig config = {
		grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, &attr, 1
	};

	(void)q;
	if (size > CUDA_PARAM_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(own, params, size);
	if (dirty > size)
		memset(own + size, 0, dirty - size);
	dirty = size;
	if (cooperative && lib->cuLaunchKernelEx)
		return (int32_t)lib->cuLaunchKernelEx(&config, f, NULL, extra);
	if (cooperative || !lib->cuLaunchKernel)
		return CUDA_ERROR_NOT_SUPPORTED;
	return (int32_t)lib->cuLaunchKernel(f, grid_x, grid_y, grid_z, block_x, block_y, block_z,
					    shared, stream, NULL, extra);
}

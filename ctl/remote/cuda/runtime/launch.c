// SPDX-License-Identifier: GPL-2.0-only
/* Launches, and what the program asks about kernels. */
#include <string.h>

#include "runtime.h"

#define CALLS	16u	/* launches whose arguments have launches, and so on */

/**
 * struct configuration - what stands between <<< and >>>
 * @grid: blocks
 * @block: threads of a block
 * @shared: bytes of dynamic shared memory
 * @stream: the stream
 * @site: address that the call returns to which pushed it
 */
struct configuration {
	dim3 grid;
	dim3 block;
	size_t shared;
	cudaStream_t stream;
	const void *site;
};

/*
 * Between __cudaPushCallConfiguration() and the launch the arguments are evaluated.  @site is that
 * of the configuration that was popped, until the launch.
 */
static _Thread_local struct {
	struct configuration stack[CALLS];
	unsigned int nr;
	const void *site;
} calls;

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream)
{
	/* Without success the program does not make the launch. */
	if (calls.nr == CALLS)
		return rt_end(cudaErrorInvalidConfiguration);
	calls.stack[calls.nr++] = (struct configuration){
		grid, block, shared, stream, __builtin_return_address(0)
	};
	return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	const struct configuration *c;

	if (!calls.nr)
		return rt_end(cudaErrorMissingConfiguration);
	c = &calls.stack[--calls.nr];
	if (!grid || !block || !shared || !stream)
		return rt_end(cudaErrorInvalidValue);
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	memcpy(stream, &c->stream, sizeof(c->stream));
	calls.site = c->site;
	return cudaSuccess;
}

/* ---- launches ---- */

/*
 * Begin a launch.  nvcc has kernel<<<...>>>() push where the program launches; the function that
 * pops and launches is the same for all launches of the kernel.
 */
static void enter_launch(const void *site)
{
	rt_enter_at(calls.site ? calls.site : site);
	calls.site = NULL;
}

/* Return whether a launch is larger than the device's limits for each number. */
static bool too_large(const CUlaunchConfig *c)
{
	const unsigned int wanted[] = {
		0, c->blockDimX, c->blockDimY, c->blockDimZ, c->gridDimX, c->gridDimY, c->gridDimZ
	};
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY;
	CUdevice dev;
	int limit;

	if (cu.cuCtxGetDevice(&dev))
		return false;
	/* Attributes 2 to 7 are the limits of blocks' and grids' numbers, in this order. */
	for (unsigned int i = 1; i < 7; i++)
		if (!cu.cuDeviceGetAttribute(&limit, i + 1, dev) &&
		    wanted[i] > (unsigned int)limit)
			return true;
	return !cu.cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, dev) &&
		(threads > (uint64_t)limit || threads * c->blockDimZ > (uint64_t)limit);
}

static cudaError_t launch(const void *func, const CUlaunchConfig *c, bool cooperative, void **args)
{
	cudaError_t error = rt_begin();
	CUfunction f;
	CUresult status;

	if (error)
		return error;
	error = rt_kernel(func, &f);
	if (error)
		return rt_end(error);
	if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || !c->blockDimX || !c->blockDimY ||
	    !c->blockDimZ)
		return rt_end(cudaErrorInvalidConfiguration);
	if (c->numAttrs)
		status = cu.cuLaunchKernelEx(c, f, args, NULL);
	else if (cooperative)
		status = cu.cuLaunchCooperativeKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ,
						      c->blockDimX, c->blockDimY, c->blockDimZ,
						      c->sharedMemBytes, c->hStream, args);
	else
		status = cu.cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
					   c->blockDimY, c->blockDimZ, c->sharedMemBytes,
					   c->hStream, args, NULL);
	/* The driver has one error for all that is wrong with a launch. */
	if (status == CUDA_ERROR_INVALID_VALUE && too_large(c))
		return rt_end(cudaErrorInvalidConfiguration);
	return rt_end(rt_error(status));
}

static cudaError_t launch_simple(const void *func, dim3 grid, dim3 block, void **args,
				 size_t shared, cudaStream_t stream, bool cooperative)
{
	const CUlaunchConfig c = {
		.gridDimX = grid.x, .gridDimY = grid.y, .gridDimZ = grid.z,
		.blockDimX = block.x, .blockDimY = block.y, .blockDimZ = block.z,
		.sharedMemBytes = (unsigned int)shared, .hStream = stream,
	};

	if (shared > UINT32_MAX)
		return rt_end(cudaErrorInvalidValue);
	return launch(func, &c, cooperative, args);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
			     cudaStream_t stream)
{
	enter_launch(__builtin_return_address(0));
	return launch_simple(func, grid, block, args, shared, stream, false);
}

cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
				  size_t shared, cudaStream_t stream)
{
	enter_launch(__builtin_return_address(0));
	return launch_simple(func, grid, block, args, shared, rt_own(stream), false);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream)
{
	enter_launch(__builtin_return_address(0));
	return launch_simple(kernel, grid, block, args, shared, stream, false);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream)
{
	enter_launch(__builtin_return_address(0));
	return launch_simple(kernel, grid, block, args, shared, rt_own(stream), false);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					size_t shared, cudaStream_t stream)
{
	enter_launch(__builtin_return_address(0));
	return launch_simple(func, grid, block, args, shared, stream, true);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
					     size_t shared, cudaStream_t stream)
{
	enter_launch(__builtin_return_address(0));
	return launch_simple(func, grid, block, args, shared, rt_own(stream), true);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "they are the same");

static cudaError_t launch_config(const cudaLaunchConfig_t *config, const void *func, void **args,
				 bool own)
{
	CUlaunchConfig c;

	if (!config || (config->numAttrs && !config->attrs) ||
	    config->dynamicSmemBytes > UINT32_MAX)
		return rt_end(cudaErrorInvalidValue);
	c = (CUlaunchConfig){
		.gridDimX = config->gridDim.x, .gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z, .blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y, .blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned int)config->dynamicSmemBytes,
		.hStream = own ? rt_own(config->stream) : config->stream,
		.attrs = (CUlaunchAttribute *)config->attrs, .numAttrs = config->numAttrs,
	};
	return launch(func, &c, false, args);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	enter_launch(__builtin_return_address(0));
	return launch_config(config, func, args, false);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
				     void **args)
{
	enter_launch(__builtin_return_address(0));
	return launch_config(config, func, args, true);
}

/* ---- kernels ---- */

/* Call the driver about the function f of a kernel. */
#define KERNEL_CALL(func, call)								\
	(rt_begin() || rt_end(rt_kernel(func, &f)) ? cudaPeekAtLastError() :		\
	 rt_end(rt_error(cu.call)))

/* The same for a call that has a result, whose place must be there. */
#define KERNEL_GET(place, func, call)							\
	((place) ? KERNEL_CALL(func, call) : rt_end(cudaErrorInvalidValue))

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func)
{
	struct cudaFuncAttributes a = { 0 };
	size_t *const sizes[] = { &a.sharedSizeBytes, &a.constSizeBytes, &a.localSizeBytes };
	/* From attribute 4 on.  An older driver does not know those behind 7. */
	int *const numbers[] = {
		&a.numRegs, &a.ptxVersion, &a.binaryVersion, &a.cacheModeCA,
		&a.maxDynamicSharedSizeBytes, &a.preferredShmemCarveout, &a.clusterDimMustBeSet,
		&a.requiredClusterWidth, &a.requiredClusterHeight, &a.requiredClusterDepth,
		&a.nonPortableClusterSizeAllowed, &a.clusterSchedulingPolicyPreference,
	};
	cudaError_t error;
	CUfunction f;
	int value;

	if (!attributes)
		return rt_end(cudaErrorInvalidValue);
	error = KERNEL_CALL(func, cuFuncGetAttribute(&a.maxThreadsPerBlock, 0, f));
	for (unsigned int i = 0; !error && i < 3; i++) {
		error = rt_end(rt_error(cu.cuFuncGetAttribute(&value, i + 1, f)));
		if (!error)
			*sizes[i] = (size_t)value;
	}
	for (unsigned int i = 0; !error && i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!cu.cuFuncGetAttribute(&value, i + 4, f))
			*numbers[i] = value;
	if (!error)
		*attributes = a;
	return error;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute, int value)
{
	CUfunction f;

	return KERNEL_CALL(func, cuFuncSetAttribute(f, attribute, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	CUfunction f;

	return KERNEL_CALL(func, cuFuncSetCacheConfig(f, config));
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t index, size_t *offset, size_t *size)
{
	CUfunction f;

	return KERNEL_GET(offset, func, cuFuncGetParamInfo(f, index, offset, size));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
							  int block_size, size_t shared)
{
	CUfunction f;

	return KERNEL_GET(blocks, func,
			  cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block_size,
								      shared));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
								   int block_size, size_t shared,
								   unsigned int flags)
{
	CUfunction f;

	return KERNEL_GET(blocks, func,
			  cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f,
									       block_size, shared,
									       flags));
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *func, int blocks,
						      int block_size)
{
	CUfunction f;

	return KERNEL_GET(shared, func,
			  cuOccupancyAvailableDynamicSMemPerBlock(shared, f, blocks, block_size));
}

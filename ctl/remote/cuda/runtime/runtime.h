/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A library of CUDA's runtime API, libcudart.so.13.  It uses the public functions of whichever
 * libcuda.so.1 is loaded: the front end, a driver of NVIDIA's, or the tests' library.
 */
#ifndef REMOTE_CUDA_RUNTIME_H
#define REMOTE_CUDA_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cuda_api.h"
#include "cuda_gen.h"
#include "cudart_api.h"
#include "layer.h"

#define RT_DEVICES	64	/* that the library can use */

/* The driver's functions.  One that it lacks returns CUDA_ERROR_NOT_SUPPORTED. */
extern struct cuda_calls cu;

/* The front end's function for the program's calls of the library; NULL with another driver. */
extern mgpu_called *_Atomic rt_called;

static inline void rt_enter_at(const void *site)
{
	mgpu_called *called = atomic_load_explicit(&rt_called, memory_order_relaxed);

	if (called)
		called(site);
}

/* Begin a function of the API whose calls of the driver can be put off. */
#define rt_enter()	rt_enter_at(__builtin_return_address(0))

/**
 * rt_load() - load the driver and initialise it
 *
 * Return: 0 or an error; always the same one.
 */
cudaError_t rt_load(void);

/**
 * rt_begin() - make sure that the thread has a current context
 *
 * A context that the program has made current by the driver API stays.  Otherwise it is the primary
 * context of the thread's device, which is retained until cudaDeviceReset().
 *
 * Return: 0 or an error, which has become the thread's last error.
 */
cudaError_t rt_begin(void);

/* Return the context that rt_begin() has found. */
CUcontext rt_context(void);

/* Name a function that the library does not have, once; return the error. */
cudaError_t rt_outside(atomic_bool *said, const char *name)
	__attribute__((visibility("default")));

/* Whether the program has functions of the API within it, which jump to those of this library. */
extern bool rt_within __attribute__((visibility("default")));

/* Note an error as the thread's last one; return it. */
cudaError_t rt_end(cudaError_t error);

/* Return the runtime's error for the driver's. */
cudaError_t rt_error(CUresult status);

/* Call the driver on the current context, as in RT_CALL(cuCtxSynchronize()). */
#define RT_CALL(call)	(rt_begin() ? cudaPeekAtLastError() : rt_end(rt_error(cu.call)))

/* The same for a call that has a result, whose place must be there. */
#define RT_GET(place, call)	((place) ? RT_CALL(call) : rt_end(cudaErrorInvalidValue))

/* Return the handle for the driver of a device; a negative one if there is no such device. */
CUdevice rt_device(int device);

/* Return the stream that a function uses whose default stream is the thread's. */
static inline CUstream rt_own(cudaStream_t stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* Unload what is loaded into a context that is about to end. */
void rt_forget_code(CUcontext context);

/**
 * rt_kernel() - find the driver's function for a kernel
 * @func: the host's function that was registered for the kernel, or the kernel's handle
 * @found: the function of the current context, which loads the module at its first use
 *
 * Return: 0 or an error.
 */
cudaError_t rt_kernel(const void *func, CUfunction *found);

/**
 * rt_variable() - find a variable of the device
 * @symbol: the variable of the host that was registered for it
 * @at: its address in the current context
 * @size: its bytes
 *
 * Return: 0 or an error.
 */
cudaError_t rt_variable(const void *symbol, CUdeviceptr *at, size_t *size);

#endif /* REMOTE_CUDA_RUNTIME_H */

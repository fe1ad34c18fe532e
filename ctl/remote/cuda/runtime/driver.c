// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's library, threads' devices and last errors, and the primary contexts of devices.
 * Others than the primary ones are the program's: the library uses one that is current, no more.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

#define DRIVER	"libcuda.so.1"

struct cuda_calls cu;
mgpu_called *_Atomic rt_called;
bool rt_within;

/* Of the linker: the library's first byte, and what is behind its code. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t loaded;
static bool there;

/**
 * struct device - a device that a thread has used
 * @primary: its primary context, which the library has retained; NULL: not yet, or no longer
 * @resets: number of times that cudaDeviceReset() has ended it
 * @handle: the driver's handle of the device, and 1; 0: it is not known
 */
struct device {
	CUcontext primary;
	atomic_uint resets;
	atomic_int handle;
};

/* Covers struct device's primary. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[RT_DEVICES];

/**
 * struct thread - what a thread has
 * @device: number of its device
 * @bound: primary context that the library has made current; NULL: none yet
 * @resets: struct device's, when that was
 * @context: current context, as rt_begin() has found it
 * @last: the last error
 */
static _Thread_local struct thread {
	int device;
	CUcontext bound;
	unsigned int resets;
	CUcontext context;
	cudaError_t last;
} thread;

/* ---- the driver ---- */

static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Tell the front end, if the driver is one, that the program's calls come by this library. */
static void join(void *library)
{
	__typeof__(mgpu_layer) *layer = NULL;
	void *p = dlsym(library, MGPU_LAYER);

	memcpy(&layer, &p, sizeof(p));
	if (layer)
		atomic_store(&rt_called, layer(__ehdr_start, etext, rt_within));
}

static void load_once(void)
{
	static const struct {
		const char *name;
		size_t at;
	} list[] = { CUDA_CALLS };
	void *library = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	CUresult status;

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		void *p = library ? dlsym(library, list[i].name) : NULL;

		if (!p)
			*(CUresult(**)(void))((char *)&cu + list[i].at) = missing;
		else
			memcpy((char *)&cu + list[i].at, &p, sizeof(p));
	}
	if (library)
		join(library);
	there = library;
	if (!library) {
		fprintf(stderr, "mgpu: %s\n", dlerror());
		loaded = cudaErrorInsufficientDriver;
		return;
	}
	status = cu.cuInit(0);
	loaded = status == CUDA_ERROR_NOT_SUPPORTED ? cudaErrorInsufficientDriver :
		 rt_error(status);
}

cudaError_t rt_load(void)
{
	pthread_once(&once, load_once);
	return loaded;
}

cudaError_t rt_outside(atomic_bool *said, const char *name)
{
	if (!atomic_exchange(said, true))
		fprintf(stderr, "mgpu: %s: this runtime library does not have it\n", name);
	return rt_end(cudaErrorNotSupported);
}

cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return rt_end(cudaErrorInvalidValue);
	*version = 0;
	rt_load();
	/* Without a driver there is no version, and no error. */
	if (there && cu.cuDriverGetVersion(version))
		*version = 0;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_end(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

/* ---- errors ---- */

cudaError_t rt_end(cudaError_t error)
{
	if (error)
		thread.last = error;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return thread.last;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t last = thread.last;

	thread.last = cudaSuccess;
	return last;
}

/* ---- contexts ---- */

CUdevice rt_device(int device)
{
	CUdevice dev;

	if (device < 0 || device >= RT_DEVICES)
		return -1;
	dev = atomic_load(&devices[device].handle) - 1;
	if (dev < 0) {
		if (cu.cuDeviceGet(&dev, device))
			return -1;
		atomic_store(&devices[device].handle, dev + 1);
	}
	return dev;
}

/* Make the primary context of the thread's device current. */
static cudaError_t bind(void)
{
	struct device *d = &devices[thread.device];
	CUdevice dev = rt_device(thread.device);
	CUresult status = 0;

	if (dev < 0)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&devices_lock);
	if (!d->primary)
		status = cu.cuDevicePrimaryCtxRetain(&d->primary, dev);
	if (status)
		d->primary = NULL;
	thread.context = d->primary;
	thread.resets = atomic_load(&d->resets);
	pthread_mutex_unlock(&devices_lock);
	if (!status)
		status = cu.cuCtxSetCurrent(thread.context);
	thread.bound = status ? NULL : thread.context;
	return rt_error(status);
}

cudaError_t rt_begin(void)
{
	cudaError_t error = rt_load();

	if (error)
		return rt_end(error);
	if (cu.cuCtxGetCurrent(&thread.context))
		thread.context = NULL;
	if (thread.context && (thread.context != thread.bound ||
			       thread.resets == atomic_load(&devices[thread.device].resets)))
		return cudaSuccess;
	return rt_end(bind());
}

CUcontext rt_context(void)
{
	return thread.context;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = rt_load();

	if (!count)
		return rt_end(cudaErrorInvalidValue);
	*count = 0;
	if (!error)
		error = rt_error(cu.cuDeviceGetCount(count));
	if (*count > RT_DEVICES)
		*count = RT_DEVICES;
	return rt_end(!error && !*count ? cudaErrorNoDevice : error);
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = rt_load();
	int before = thread.device;

	if (error)
		return rt_end(error);
	if (rt_device(device) < 0)
		return rt_end(cudaErrorInvalidDevice);
	thread.device = device;
	error = bind();
	if (error)
		thread.device = before;
	return rt_end(error);
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t error = rt_load();
	CUcontext context;

	if (error || !device)
		return rt_end(error ? error : cudaErrorInvalidValue);
	*device = thread.device;
	/* The program's own context can be one of another device. */
	if (!cu.cuCtxGetCurrent(&context) && context && context != thread.bound)
		error = rt_error(cu.cuCtxGetDevice(device));
	return rt_end(error);
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	cudaError_t error = rt_load();
	CUdevice dev;

	if (error)
		return rt_end(error);
	dev = rt_device(device);
	if (dev < 0)
		return rt_end(cudaErrorInvalidDevice);
	if (flags > 1)
		return rt_end(cudaErrorInvalidValue);
	if (flags)
		error = rt_error(cu.cuDevicePrimaryCtxSetFlags_v2(dev, device_flags));
	if (!error) {
		pthread_mutex_lock(&devices_lock);
		if (!devices[device].primary)
			error = rt_error(cu.cuDevicePrimaryCtxRetain(&devices[device].primary,
								     dev));
		pthread_mutex_unlock(&devices_lock);
	}
	return rt_end(error);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	cudaError_t error = rt_load();

	if (!error)
		error = rt_error(cu.cuDevicePrimaryCtxSetFlags_v2(rt_device(thread.device),
								  flags));
	return rt_end(error);
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	cudaError_t error = rt_load();
	int active;

	if (!flags)
		return rt_end(cudaErrorInvalidValue);
	if (!error)
		error = rt_error(cu.cuDevicePrimaryCtxGetState(rt_device(thread.device), flags,
							       &active));
	return rt_end(error);
}

/* End a primary context; the caller holds devices_lock. */
static CUresult end_primary(CUcontext primary)
{
	CUcontext before = NULL;
	CUresult status;

	cu.cuCtxGetCurrent(&before);
	status = cu.cuCtxSetCurrent(primary);
	if (status)
		return status;
	cu.cuCtxSynchronize();
	rt_forget_code(primary);
	/* A context of the program stays current. */
	cu.cuCtxSetCurrent(before == primary ? NULL : before);
	return cu.cuDevicePrimaryCtxRelease_v2(rt_device(thread.device));
}

cudaError_t cudaDeviceReset(void)
{
	cudaError_t error = rt_load();
	struct device *d = &devices[thread.device];

	if (error)
		return rt_end(error);
	pthread_mutex_lock(&devices_lock);
	if (d->primary) {
		error = rt_error(end_primary(d->primary));
		d->primary = NULL;
		atomic_fetch_add(&d->resets, 1);
	}
	pthread_mutex_unlock(&devices_lock);
	return rt_end(error);
}

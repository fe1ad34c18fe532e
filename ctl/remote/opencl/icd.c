// SPDX-License-Identifier: GPL-2.0-only
/* The functions of this library that OpenCL's loader finds (cl_khr_icd). */
#include <pthread.h>
#include <string.h>

#include "opencl_front.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int connected;

static void connect_once(void)
{
	connected = !remote_connect(&opencl_front);
}

extern __typeof__(clIcdGetPlatformIDsKHR) clIcdGetPlatformIDsKHR
	__attribute__((visibility("default")));
extern __typeof__(clGetExtensionFunctionAddress) clGetExtensionFunctionAddress
	__attribute__((visibility("default")));

cl_int
clIcdGetPlatformIDsKHR(cl_uint nr, cl_platform_id *platforms, cl_uint *nr_ret)
{
	cl_uint there = 0;
	cl_int status;

	if ((platforms && !nr) || (!platforms && !nr_ret))
		return CL_INVALID_VALUE;
	pthread_once(&once, connect_once);
	if (!connected)
		return CL_PLATFORM_NOT_FOUND_KHR;
	status = remote_clGetPlatformIDs(nr, platforms, &there);
	if (nr_ret)
		*nr_ret = there;
	return !status && !there ? CL_PLATFORM_NOT_FOUND_KHR : status;
}

void *clGetExtensionFunctionAddress(const char *name)
{
	return front_clGetExtensionFunctionAddress(name);
}

void *front_clGetExtensionFunctionAddress(const char *name)
{
	if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
		return (void *)(uintptr_t)clIcdGetPlatformIDsKHR;
	if (!strcmp(name, "clGetPlatformInfo"))
		return (void *)(uintptr_t)remote_clGetPlatformInfo;
	return NULL;
}

void *front_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	return object_is(platform, KIND_CL_PLATFORM_ID) ?
		front_clGetExtensionFunctionAddress(name) : NULL;
}

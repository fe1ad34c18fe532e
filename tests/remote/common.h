/* SPDX-License-Identifier: GPL-2.0-only */
/* Common parts of the OpenCL programs: a device, a program, an end at the first error. */
#ifndef TESTS_REMOTE_COMMON_H
#define TESTS_REMOTE_COMMON_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* End with the error of a call that should not have failed. */
static inline void good(cl_int status, const char *what)
{
	if (status) {
		fprintf(stderr, "%s: error %d\n", what, status);
		exit(1);
	}
}

#define CL(call)	good(call, #call)

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_int err;

static inline void cl_open(const char *source, cl_command_queue_properties properties)
{
	CL(clGetPlatformIDs(1, &platform, NULL));
	CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	good(err, "clCreateContext");
	queue = clCreateCommandQueue(context, device, properties, &err);
	good(err, "clCreateCommandQueue");
	if (!source)
		return;
	program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
	good(err, "clCreateProgramWithSource");
	CL(clBuildProgram(program, 1, &device, "-cl-kernel-arg-info", NULL, NULL));
}

static inline void cl_close(void)
{
	if (program)
		CL(clReleaseProgram(program));
	CL(clReleaseCommandQueue(queue));
	CL(clReleaseContext(context));
}

static inline cl_kernel cl_kernel_of(const char *name)
{
	cl_kernel k = clCreateKernel(program, name, &err);

	good(err, name);
	return k;
}

static inline cl_mem cl_buffer(cl_mem_flags flags, size_t size, void *p)
{
	cl_mem m = clCreateBuffer(context, flags, size, p, &err);

	good(err, "clCreateBuffer");
	return m;
}

static inline void cl_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
	good(clSetKernelArg(k, index, size, value), "clSetKernelArg");
}

/* Return the first argument, a number, or another one if there is none. */
static inline int number(int argc, char **argv, int otherwise)
{
	return argc > 1 ? atoi(argv[1]) : otherwise;
}

/* Microseconds since some moment. */
static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The same numbers on each run. */
static inline uint32_t random_number(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static inline uint64_t digest(const void *p, size_t len)
{
	const uint8_t *at = p;
	uint64_t h = 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ *at++) * 0x100000001b3ull;
	return h;
}

#endif /* TESTS_REMOTE_COMMON_H */

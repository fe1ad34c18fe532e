/* SPDX-License-Identifier: GPL-2.0-only */
/* Common parts of the programs for CUDA's driver API: kernels, an end at the first error. */
#ifndef TESTS_REMOTE_CUDA_COMMON_H
#define TESTS_REMOTE_CUDA_COMMON_H

#ifdef WITH_TOOLKIT
#include <cuda.h>
#else
#include "cuda_api.h"
#include "cuda_gen.h"
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTX_HEAD ".version 7.0\n.target sm_50\n.address_size 64\n"

/* Kernels whose code does nothing: what they take is what counts. */
static const char ptx[] = PTX_HEAD
	"// .entry none(\n"
	".visible .global .align 4 .b32 total[16];\n"
	".visible .entry add(.param .u64 add_a, .param .u64 .ptr .global .align 4 add_b,\n"
	"\t.param .u64 add_c, .param .u32 add_n)\n{\n\tret;\n}\n"
	".visible .entry step(.param .u64 step_a, .param .u32 step_i)\n{\n\tret;\n}\n"
	".visible .entry mixed(.param .u8 m_a, .param .u64 m_b, .param .u16 m_c,\n"
	"\t.param .align 8 .b8 m_d[24], .param .f32 m_e)\n{\n\tret;\n}\n"
	".visible .entry none()\n{\n\tret;\n}\n"
	".visible .entry fault(.param .u64 f_a)\n{\n\tret;\n}\n";

/* End with the error of a call that should not have failed. */
static inline void good(CUresult status, const char *what)
{
	const char *name = "?";

	if (status) {
		cuGetErrorName(status, &name);
		fprintf(stderr, "%s: error %u, %s\n", what, (unsigned int)status, name);
		exit(1);
	}
}

#define CU(call)	good(call, #call)

static CUdevice device;
static CUcontext context;
static CUmodule module;

static inline void cuda_begin(const void *image)
{
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
#ifdef WITH_TOOLKIT
	CU(cuCtxCreate(&context, NULL, 0, device));
#else
	CU(cuCtxCreate_v2(&context, 0, device));
#endif
	if (image)
		CU(cuModuleLoadData(&module, image));
}

static inline void cuda_end(void)
{
	if (module)
		CU(cuModuleUnload(module));
	CU(cuCtxDestroy_v2(context));
}

static inline CUfunction cuda_kernel(const char *name)
{
	CUfunction f;

	CU(cuModuleGetFunction(&f, module, name));
	return f;
}

static inline CUdeviceptr cuda_memory(size_t bytes)
{
	CUdeviceptr p;

	CU(cuMemAlloc_v2(&p, bytes));
	CU(cuMemsetD8_v2(p, 0, bytes));
	return p;
}

static inline void cuda_launch(CUfunction f, unsigned int blocks, CUstream stream, void **params)
{
	CU(cuLaunchKernel(f, blocks, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}

/* Microseconds since some moment. */
static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline unsigned long long sum(const void *p, size_t len)
{
	const uint8_t *at = p;
	unsigned long long h = 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ *at++) * 0x100000001b3ull;
	return h;
}

#endif /* TESTS_REMOTE_CUDA_COMMON_H */

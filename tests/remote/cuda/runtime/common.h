/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common parts of the programs in C for CUDA's runtime API: kernels that are registered as nvcc's
 * host code does it, and an end at the first error.
 */
#ifndef TESTS_REMOTE_CUDA_RUNTIME_COMMON_H
#define TESTS_REMOTE_CUDA_RUNTIME_COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart_api.h"

/* Kernels whose code does nothing: what they take is what counts. */
static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .global .align 4 .b32 total[16];\n"
	".visible .const .align 4 .f32 factors[8];\n"
	".visible .entry step(.param .u64 step_a, .param .u32 step_i)\n{\n\tret;\n}\n"
	".visible .entry mixed(.param .u8 m_a, .param .u64 m_b, .param .u16 m_c,\n"
	"\t.param .align 8 .b8 m_d[24], .param .f32 m_e)\n{\n\tret;\n}\n"
	".visible .entry none()\n{\n\tret;\n}\n"
	".visible .entry fault(.param .u64 f_a)\n{\n\tret;\n}\n";

/* nvcc puts such a wrapper into the program. */
static const struct {
	uint32_t magic;
	uint32_t version;
	const void *data;
	void *more;
} wrapper = { 0x466243b1u, 1, ptx, NULL };

/* The addresses by which the program names what it has on the device. */
static char step, mixed, none, fault, lost;
static int total[16];
static float factors[8];
static void **fat;

__attribute__((destructor)) static void unregister(void)
{
	__cudaUnregisterFatBinary(fat);
}

__attribute__((constructor)) static void enlist(void)
{
	static const struct {
		char *host;
		const char *name;
	} kernels[] = {
		{ &step, "step" }, { &mixed, "mixed" }, { &none, "none" }, { &fault, "fault" },
		{ &lost, "not_in_the_image" },
	};

	fat = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		__cudaRegisterFunction(fat, kernels[i].host, kernels[i].host, kernels[i].name, -1,
				       NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(fat, (char *)total, (char *)total, "total", 0, sizeof(total), 0, 0);
	__cudaRegisterVar(fat, (char *)factors, (char *)factors, "factors", 0, sizeof(factors), 1,
			  0);
	__cudaRegisterFatBinaryEnd(fat);
}

/* End with the error of a call that should not have failed. */
static inline void good(cudaError_t error, const char *what)
{
	if (error) {
		fprintf(stderr, "%s: error %u, %s\n", what, (unsigned int)error,
			cudaGetErrorName(error));
		exit(1);
	}
}

#define CU(call)	good(call, #call)

/* End if something is not as it should be. */
static inline void check(int so, const char *what)
{
	if (!so) {
		fprintf(stderr, "it is not so: %s\n", what);
		exit(1);
	}
}

#define CHECK(what)	check(what, #what)

static inline dim3 dim(unsigned int x, unsigned int y, unsigned int z)
{
	return (dim3){ x, y, z };
}

static inline void *memory(size_t bytes)
{
	void *p;

	CU(cudaMalloc(&p, bytes));
	CU(cudaMemset(p, 0, bytes));
	return p;
}

#endif /* TESTS_REMOTE_CUDA_RUNTIME_COMMON_H */

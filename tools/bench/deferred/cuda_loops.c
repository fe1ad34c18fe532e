// SPDX-License-Identifier: GPL-2.0-only
/* The loops of cuda_loops.h, of the driver API. */
#include "../../../tests/remote/cuda/common.h"

static CUfunction step;
static CUdeviceptr memory;

static void constant(unsigned int n)
{
	CUdeviceptr p = memory;
	unsigned int one = 1;
	void *params[] = { &p, &one };

	for (unsigned int i = 0; i < n; i++)
		cuLaunchKernel(step, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
}

static void induction(unsigned int n)
{
	CUdeviceptr p = memory;
	unsigned int i;
	void *params[] = { &p, &i };

	for (i = 0; i < n; i++)
		cuLaunchKernel(step, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
}

static void results(unsigned int n)
{
	CUdeviceptr p = memory;
	unsigned int one = 1;
	void *params[] = { &p, &one };
	CUstream stream;

	for (unsigned int i = 0; i < n; i++) {
		cuStreamCreate(&stream, 1);
		cuLaunchKernel(step, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL);
		cuStreamDestroy_v2(stream);
	}
}

static void begin(void)
{
	cuda_begin(ptx);
	step = cuda_kernel("step");
	memory = cuda_memory(4096);
}

static void synchronise(void)
{
	CU(cuCtxSynchronize());
}

#include "cuda_loops.h"

// SPDX-License-Identifier: GPL-2.0-only
/* The loops of classes.h, as nvcc compiles them. */
#include <cstdio>
#include <cstdlib>

#define CU(call)	good(call, #call)
#define LAUNCH(kernel, grid, block, stream, ...)					\
	kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)

static void good(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
		exit(1);
	}
}

extern "C" __global__ void step(unsigned int *p, unsigned int i)
{
	p[threadIdx.x] += i;
}

extern "C" __global__ void fault(unsigned int *p)
{
	*p = 0;
}

extern "C" {
#include "classes.h"
}

int main()
{
	execute();
	return 0;
}

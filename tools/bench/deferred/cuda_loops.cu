// SPDX-License-Identifier: GPL-2.0-only
/* The loops of cuda_loops.h, of the runtime API. */
#include <cstdio>
#include <cstdlib>
#include <ctime>

static unsigned int *memory;

__global__ void step(unsigned int *p, unsigned int i)
{
	p[threadIdx.x] += i;
}

static void good(cudaError_t error)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s\n", cudaGetErrorName(error));
		exit(1);
	}
}

static void constant(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		step<<<4, 64>>>(memory, 1);
}

static void induction(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		step<<<4, 64>>>(memory, i);
}

static void results(unsigned int n)
{
	cudaStream_t stream;

	for (unsigned int i = 0; i < n; i++) {
		cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
		step<<<4, 64, 0, stream>>>(memory, 1);
		cudaStreamDestroy(stream);
	}
}

static void begin()
{
	good(cudaMalloc(&memory, 4096));
	good(cudaMemset(memory, 0, 4096));
}

static void synchronise()
{
	good(cudaDeviceSynchronize());
}

static double now_us()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

#include "cuda_loops.h"

// SPDX-License-Identifier: GPL-2.0-only
/* Loops of the three classes: calls with the same arguments, growing ones, and results. */
#include "common.h"

#define ROUNDS	600
#define N	4096

static uint8_t data[N];

__attribute__((noinline)) static void constant(CUfunction f, CUdeviceptr p, CUdeviceptr q)
{
	uint32_t n = 3;
	void *params[] = { &p, &n };

	for (int i = 0; i < ROUNDS; i++) {
		cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
		cuMemcpyDtoDAsync_v2(q, p, 64, NULL);
	}
}

__attribute__((noinline)) static void induction(CUdeviceptr p, CUdeviceptr q)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		cuMemsetD32Async(p + 4ull * i, i, 1, NULL);
		cuMemcpyDtoDAsync_v2(q + 4ull * i, p + 4ull * i, 4, NULL);
	}
}

__attribute__((noinline)) static void results(CUdeviceptr p)
{
	CUstream stream;
	CUevent event;

	for (int i = 0; i < ROUNDS; i++) {
		cuStreamCreate(&stream, 1);
		cuEventCreate(&event, 0);
		cuMemsetD8Async(p, 7, 64, stream);
		cuEventRecord(event, stream);
		cuStreamWaitEvent(NULL, event, 0);
		cuEventDestroy_v2(event);
		cuStreamDestroy_v2(stream);
	}
}

static void print(const char *what, CUdeviceptr p)
{
	CU(cuMemcpyDtoH_v2(data, p, N));
	printf("%s %llx\n", what, sum(data, N));
}

int main(void)
{
	CUdeviceptr p, q;

	cuda_begin(ptx);
	p = cuda_memory(N);
	q = cuda_memory(N);
	constant(cuda_kernel("step"), p, q);
	print("constant", q);
	induction(p, q);
	print("induction", q);
	results(p);
	print("results", p);
	CU(cuMemFree_v2(p));
	CU(cuMemFree_v2(q));
	cuda_end();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* A program of two files for the runtime library that nvcc links if it is not told otherwise. */
#include <cstdio>
#include <cstdlib>

#include "part.h"

__constant__ float weights[16];

__global__ void add(const float *a, float *b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		b[i] += a[i] * weights[i % 16];
}

void good(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
		exit(1);
	}
}

static void mistakes(float *p)
{
	float *q;
	cudaError_t e[] = {
		cudaMalloc(&q, (size_t)1 << 40),
		cudaMemcpy(p, weights, 4, (cudaMemcpyKind)9),
		cudaSetDevice(1),
		cudaMallocManaged(&q, 64),
	};

	for (cudaError_t error : e)
		printf("%d %s\n", error, cudaGetErrorName(error));
	printf("last: %s\n", cudaGetErrorString(cudaGetLastError()));
	add<<<1, 4096>>>(p, p, 1);
	printf("launch: %s\n", cudaGetErrorString(cudaGetLastError()));
}

/* A name as the library's functions have. */
extern "C" cudaError_t cudaProgramsOwn(int n)
{
	return n < 2 ? cudaSuccess : cudaProgramsOwn(n - 2);
}

int main()
{
	float w[16], data[256], *p, *q;
	cudaStream_t stream;

	for (int i = 0; i < 256; i++)
		data[i] = w[i % 16] = i;
	CU(cudaMemcpyToSymbol(weights, w, sizeof(w)));
	CU(cudaMalloc(&p, sizeof(data)));
	CU(cudaMalloc(&q, sizeof(data)));
	CU(cudaStreamCreate(&stream));
	CU(cudaMemcpyAsync(p, data, sizeof(data), cudaMemcpyHostToDevice, stream));
	for (int i = 0; i < 20; i++)
		add<<<2, 128, 0, stream>>>(p, q, 256 - i);
	scale(q, 256, 3, stream);
	CU(cudaMemcpyAsync(data, q, sizeof(data), cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	mistakes(p);
	CU(cudaProgramsOwn(4));
	CU(cudaStreamDestroy(stream));
	CU(cudaFree(p));
	CU(cudaFree(q));
	for (float f : data)
		printf("%g ", f);
	printf("done\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* A file with a kernel and a variable of its own. */
#include "part.h"

static __constant__ int offset;

__global__ void scaled(float *p, int n, float by)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		p[i] = p[i] * by + offset;
}

void scale(float *p, int n, float by, cudaStream_t stream)
{
	int o = 7;

	CU(cudaMemcpyToSymbolAsync(offset, &o, sizeof(o), 0, cudaMemcpyHostToDevice, stream));
	scaled<<<1, 64, 0, stream>>>(p, n, by);
	CU(cudaPeekAtLastError());
}

// SPDX-License-Identifier: GPL-2.0-only
/* Kernels for modules.c, compiled to all kinds of images. */
struct parts {
	double x;
	int y;
	char z[3];
};

__device__ int table[5];

extern "C" __global__ void scale(float *p, float factor, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] *= factor;
}

extern "C" __global__ void many(char flag, float *p, parts s, int n, long long big)
{
	if (flag && threadIdx.x < n)
		p[threadIdx.x] += (float)(s.x + s.y + s.z[1]) + (float)big + table[n % 5];
}

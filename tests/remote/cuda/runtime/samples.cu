// SPDX-License-Identifier: GPL-2.0-only
/* Calls of ordinary programs of the runtime API, as nvcc compiles them. */
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define N	1024
#define BINS	16

#define CU(call)	good(call, #call)

static void good(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "%s: %s, %s\n", what, cudaGetErrorName(error),
			cudaGetErrorString(error));
		exit(1);
	}
}

static void print(const char *what, const void *p, size_t len)
{
	const unsigned char *at = static_cast<const unsigned char *>(p);
	unsigned long long h = 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ *at++) * 0x100000001b3ull;
	printf("%s %llx\n", what, h);
}

__constant__ float weights[BINS];
__device__ unsigned int bins[BINS];
__device__ int calls;

/* Without gaps, whose bytes would differ. */
struct range {
	long long first;
	double scale;
	int length[2];
};

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i] * weights[i % BINS];
}

template <typename T, int blocks> __global__ void reduce(const T *in, T *out, int n)
{
	extern __shared__ char memory[];
	T *sums = reinterpret_cast<T *>(memory);
	T sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blocks * blockDim.x)
		sum += in[i];
	sums[threadIdx.x] = sum;
	__syncthreads();
	for (int half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half)
			sums[threadIdx.x] += sums[threadIdx.x + half];
		__syncthreads();
	}
	if (!threadIdx.x)
		out[blockIdx.x] = sums[0];
}

__global__ void histogram(const unsigned char *data, range r)
{
	for (int i = threadIdx.x; i < r.length[0]; i += blockDim.x)
		atomicAdd(&bins[(data[i] + r.first) % BINS], 1u);
	if (!threadIdx.x)
		calls++;
}

__global__ void nothing()
{
}

static void vectors()
{
	std::vector<float> a(N), b(N), c(N);
	float w[BINS], *p, *q, *r;
	dim3 block(128), grid(N / block.x);

	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 2 * i;
	}
	for (int i = 0; i < BINS; i++)
		w[i] = i / 2.0f;
	CU(cudaMalloc(&p, N * sizeof(float)));
	CU(cudaMalloc(&q, N * sizeof(float)));
	CU(cudaMalloc(&r, N * sizeof(float)));
	CU(cudaMemcpyToSymbol(weights, w, sizeof(w)));
	CU(cudaMemcpy(p, a.data(), N * sizeof(float), cudaMemcpyHostToDevice));
	CU(cudaMemcpy(q, b.data(), N * sizeof(float), cudaMemcpyDefault));
	add<<<grid, block>>>(p, q, r, N);
	CU(cudaGetLastError());
	reduce<float, 4><<<4, 64, 64 * sizeof(float)>>>(r, p, N);
	reduce<double, 2><<<2, 32, 32 * sizeof(double)>>>((double *)q, (double *)p, N / 2);
	CU(cudaPeekAtLastError());
	nothing<<<1, 1>>>();
	CU(cudaDeviceSynchronize());
	CU(cudaMemcpy(c.data(), p, N * sizeof(float), cudaMemcpyDeviceToHost));
	print("vectors", c.data(), N * sizeof(float));
	nothing<<<1, 4096>>>();
	printf("%s\n", cudaGetErrorString(cudaGetLastError()));
	CU(cudaFree(p));
	CU(cudaFree(q));
	CU(cudaFree(r));
}

static void symbols()
{
	unsigned char data[100] = "data";
	unsigned int counted[BINS];
	unsigned char *p;
	void *address;
	size_t size;
	int n = 41;

	CU(cudaMalloc(&p, sizeof(data)));
	CU(cudaMemcpy(p, data, sizeof(data), cudaMemcpyHostToDevice));
	CU(cudaGetSymbolAddress(&address, bins));
	CU(cudaGetSymbolSize(&size, bins));
	CU(cudaMemset(address, 0, size));
	CU(cudaMemcpyToSymbol(calls, &n, sizeof(n)));
	histogram<<<1, 64>>>(p, range { 3, 1.5, { sizeof(data), 1 } });
	CU(cudaMemcpyFromSymbol(counted, bins, sizeof(counted)));
	CU(cudaMemcpyFromSymbol(&n, calls, sizeof(n)));
	print("symbols", counted, sizeof(counted));
	printf("%zu bytes, %d calls\n", size, n);
	CU(cudaFree(p));
}

static void streams()
{
	cudaStream_t stream[3];
	cudaEvent_t start, stop;
	float *host, *p, ms;

	CU(cudaMallocHost(&host, 3 * N * sizeof(float)));
	for (int i = 0; i < 3 * N; i++)
		host[i] = i;
	CU(cudaMalloc(&p, 3 * N * sizeof(float)));
	CU(cudaEventCreate(&start));
	CU(cudaEventCreate(&stop));
	for (cudaStream_t &s : stream)
		CU(cudaStreamCreate(&s));
	CU(cudaEventRecord(start));
	for (int i = 0; i < 3; i++) {
		CU(cudaMemcpyAsync(p + i * N, host + i * N, N * sizeof(float),
				   cudaMemcpyHostToDevice, stream[i]));
		add<<<N / 256, 256, 0, stream[i]>>>(p + i * N, p + i * N, p + i * N, N);
		CU(cudaMemcpyAsync(host + i * N, p + i * N, N * sizeof(float),
				   cudaMemcpyDeviceToHost, stream[i]));
	}
	CU(cudaEventRecord(stop));
	CU(cudaEventSynchronize(stop));
	while (cudaEventQuery(stop) == cudaErrorNotReady)
		;
	CU(cudaEventElapsedTime(&ms, start, stop));
	for (cudaStream_t s : stream) {
		CU(cudaStreamSynchronize(s));
		CU(cudaStreamDestroy(s));
	}
	print("streams", host, 3 * N * sizeof(float));
	CU(cudaEventDestroy(start));
	CU(cudaEventDestroy(stop));
	CU(cudaFree(p));
	CU(cudaFreeHost(host));
}

static void planes()
{
	static float image[20][30], back[20][30];
	size_t pitch;
	float *p;

	for (int y = 0; y < 20; y++)
		for (int x = 0; x < 30; x++)
			image[y][x] = x * y;
	CU(cudaMallocPitch(&p, &pitch, sizeof(image[0]), 20));
	CU(cudaMemset2D(p, pitch, 0, sizeof(image[0]), 20));
	CU(cudaMemcpy2D(p, pitch, image, sizeof(image[0]), sizeof(image[0]), 20,
			cudaMemcpyHostToDevice));
	CU(cudaMemcpy2D(back, sizeof(back[0]), p, pitch, sizeof(back[0]), 19,
			cudaMemcpyDeviceToHost));
	print("planes", back, sizeof(back));
	CU(cudaFree(p));
}

static void questions()
{
	cudaFuncAttributes attributes;
	cudaDeviceProp prop;
	int device, blocks, grid, block;
	cudaLaunchConfig_t config = {};
	float *p;

	CU(cudaGetDevice(&device));
	CU(cudaGetDeviceProperties(&prop, device));
	CU(cudaFuncGetAttributes(&attributes, add));
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 128, 0));
	CU(cudaOccupancyMaxPotentialBlockSize(&grid, &block, reduce<float, 4>, 1024, 0));
	CU(cudaFuncSetAttribute(reduce<float, 4>, cudaFuncAttributeMaxDynamicSharedMemorySize,
				65536));
	printf("%s, %d processors, %d threads, %d blocks, %d of %d\n", prop.name,
	       prop.multiProcessorCount, attributes.maxThreadsPerBlock, blocks, grid, block);
	CU(cudaMalloc(&p, 4096));
	CU(cudaMemset(p, 0, 4096));
	config.gridDim = 2;
	config.blockDim = 32;
	config.dynamicSmemBytes = 128;
	CU(cudaLaunchKernelEx(&config, reduce<float, 4>, (const float *)p, p, 512));
	CU(cudaFree(p));
}

static void threads()
{
	float *p;

	CU(cudaMalloc(&p, 4096));
	CU(cudaMemset(p, 0, 4096));
	/* One after the other, so that the record has one order. */
	for (int i = 0; i < 2; i++)
		std::thread([=] {
			add<<<1, 32>>>(p, p, p + 32 * i, 32);
			CU(cudaGetLastError());
			CU(cudaDeviceSynchronize());
		}).join();
	CU(cudaFree(p));
}

int main()
{
	vectors();
	symbols();
	streams();
	planes();
	questions();
	threads();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Calls of each kind, whose results the program looks at itself. */
#include <pthread.h>

#include "common.h"

#define N	4096u

static uint8_t in[N], out[N];

static void clear(void)
{
	memset(out, 0xee, sizeof(out));
}

/* ---- devices ---- */

static void devices(void)
{
	struct cudaDeviceProp prop;
	int count, device = 7, version, value;
	unsigned int flags;
	char id[32];
	size_t limit;

	CU(cudaSetDeviceFlags(4));
	CU(cudaGetDeviceFlags(&flags));
	CHECK(flags == 4);
	CU(cudaInitDevice(0, 0, 0));
	CU(cudaRuntimeGetVersion(&version));
	printf("runtime %d, ", version);
	CU(cudaDriverGetVersion(&version));
	CU(cudaGetDeviceCount(&count));
	CU(cudaGetDevice(&device));
	CU(cudaGetDeviceProperties(&prop, device));
	printf("driver %d, %d devices, %d, %s, %zu bytes, %d.%d, %d threads, warps of %d\n",
	       version, count, device, prop.name, prop.totalGlobalMem, prop.major, prop.minor,
	       prop.maxThreadsPerBlock, prop.warpSize);
	printf("blocks of %d %d %d, %d processors, %zu bytes shared, %.8s\n",
	       prop.maxThreadsDim[0], prop.maxThreadsDim[1], prop.maxThreadsDim[2],
	       prop.multiProcessorCount, prop.sharedMemPerBlock, prop.uuid.bytes);
	CU(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
	CHECK(value == prop.multiProcessorCount);
	CU(cudaSetDevice(0));
	CU(cudaDeviceGetPCIBusId(id, sizeof(id), 0));
	CU(cudaDeviceGetByPCIBusId(&device, id));
	CHECK(!device);
	CU(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
	CU(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	CHECK(limit == 2048);
	CU(cudaDeviceCanAccessPeer(&value, 0, 0));
	CHECK(!value);
}

/* ---- copies ---- */

static void linear(void)
{
	uint8_t *p = memory(N), *q = memory(N);

	CU(cudaMemcpy(p, in, N, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(q + 16, p, N - 16, cudaMemcpyDeviceToDevice));
	clear();
	CU(cudaMemcpy(out, q, N, cudaMemcpyDeviceToHost));
	CHECK(!out[15] && !memcmp(out + 16, in, N - 16));
	/* The direction is found out. */
	CU(cudaMemcpy(q, in, N, cudaMemcpyDefault));
	CU(cudaMemcpy(p, q + 8, N - 8, cudaMemcpyDefault));
	clear();
	CU(cudaMemcpy(out, p, N, cudaMemcpyDefault));
	CHECK(!memcmp(out, in + 8, N - 8) && out[N - 1] == in[N - 1]);
	clear();
	CU(cudaMemcpy(out, in, N, cudaMemcpyDefault));
	CHECK(!memcmp(out, in, N));
	clear();
	CU(cudaMemcpy(out, in + 1, N - 1, cudaMemcpyHostToHost));
	CHECK(!memcmp(out, in + 1, N - 1) && out[N - 1] == 0xee);
	CU(cudaMemset(p, 0x5a, 100));
	CU(cudaMemcpy(out, p, 101, cudaMemcpyDeviceToHost));
	CHECK(out[0] == 0x5a && out[99] == 0x5a && out[100] == in[108]);
	/* Nothing is copied or set without an error. */
	CU(cudaMemcpy(p, NULL, 0, cudaMemcpyHostToDevice));
	CU(cudaMemset(p, 1, 0));
	CU(cudaFree(p));
	CU(cudaFree(q));
	CU(cudaFree(NULL));
	CU(cudaMalloc((void **)&p, 0));
	CHECK(!p);
}

static void rectangles(void)
{
	struct cudaMemcpy3DParms box = {
		.srcPtr = { in, 40, 30, 5 }, .srcPos = { 3, 1, 0 }, .dstPos = { 2, 0, 1 },
		.extent = { 20, 3, 2 }, .kind = cudaMemcpyHostToDevice,
	};
	struct cudaPitchedPtr pitched;
	size_t pitch;
	uint8_t *p;

	CU(cudaMallocPitch((void **)&p, &pitch, 50, 6));
	CU(cudaMemset2D(p, pitch, 7, 50, 6));
	CU(cudaMemcpy2D(p + 5, pitch, in, 60, 30, 4, cudaMemcpyHostToDevice));
	clear();
	CU(cudaMemcpy2D(out, 64, p, pitch, 50, 6, cudaMemcpyDeviceToHost));
	for (unsigned int y = 0; y < 6; y++)
		for (unsigned int x = 0; x < 64; x++)
			CHECK(out[64 * y + x] == (x >= 50 ? 0xee : y < 4 && x >= 5 && x < 35 ?
						  in[60 * y + x - 5] : 7));
	CU(cudaMemcpy2D(p, pitch, p + 2 * pitch, pitch, 50, 2, cudaMemcpyDefault));
	CU(cudaMemset2DAsync(p + pitch, pitch, 9, 10, 3, NULL));
	CU(cudaMemcpy2DAsync(out, 50, p, pitch, 50, 2, cudaMemcpyDeviceToHost, NULL));
	CU(cudaDeviceSynchronize());
	CHECK(out[5] == in[120] && out[50] == 9 && out[60] == in[180 + 5]);
	clear();
	CU(cudaMemcpy2D(out, 10, in, 20, 5, 3, cudaMemcpyHostToHost));
	CHECK(!memcmp(out + 10, in + 20, 5) && out[5] == 0xee);
	CU(cudaFree(p));

	CU(cudaMalloc3D(&pitched, (struct cudaExtent){ 30, 4, 3 }));
	CHECK(pitched.xsize == 30 && pitched.ysize == 4);
	CU(cudaMemset(pitched.ptr, 0, pitched.pitch * 12));
	box.dstPtr = pitched;
	CU(cudaMemcpy3D(&box));
	CU(cudaMemcpy2D(out, 30, pitched.ptr, pitched.pitch, 30, 12, cudaMemcpyDeviceToHost));
	CHECK(!memcmp(out + 30 * 4 + 2, in + 40 + 3, 20) && !out[30 * 4 + 22] && !out[29]);
	CHECK(!memcmp(out + 30 * (8 + 2) + 2, in + 40 * (5 + 3) + 3, 20) && !out[30 * 11 + 2]);
	CU(cudaFree(pitched.ptr));
}

static void variables(void)
{
	static const float wanted[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	float got[8];
	int numbers[16];
	size_t size;
	void *p;

	CU(cudaMemcpyToSymbol(factors, wanted, 16, 16, cudaMemcpyHostToDevice));
	CU(cudaMemcpyToSymbol(factors, wanted, 16, 0, cudaMemcpyDefault));
	CU(cudaMemcpyFromSymbol(got, factors, sizeof(got), 0, cudaMemcpyDeviceToHost));
	CHECK(got[3] == 4 && got[4] == 1);
	CU(cudaGetSymbolSize(&size, total));
	CU(cudaGetSymbolAddress(&p, total));
	CHECK(size == 64);
	CU(cudaMemset(p, 1, size));
	CU(cudaMemcpyFromSymbolAsync(numbers, total, 8, 56, cudaMemcpyDeviceToHost, NULL));
	CU(cudaStreamSynchronize(NULL));
	CHECK(numbers[0] == 0x01010101 && numbers[1] == 0x01010101);
}

static void host(void)
{
	struct cudaPointerAttributes a;
	size_t left, all;
	void *p, *pinned;

	CU(cudaMallocHost(&pinned, 256));
	p = memory(256);
	CU(cudaPointerGetAttributes(&a, p));
	CHECK(a.type == cudaMemoryTypeDevice && a.devicePointer == p && !a.hostPointer &&
	      !a.device);
	CU(cudaPointerGetAttributes(&a, (char *)pinned + 8));
	CHECK(a.type == cudaMemoryTypeHost && a.hostPointer == (char *)pinned + 8);
	CU(cudaPointerGetAttributes(&a, in));
	CHECK(a.type == cudaMemoryTypeUnregistered && !a.devicePointer);
	CU(cudaHostRegister(in, N, 0));
	CU(cudaPointerGetAttributes(&a, in));
	CHECK(a.type == cudaMemoryTypeHost);
	CU(cudaHostUnregister(in));
	CU(cudaMemcpyAsync(pinned, p, 256, cudaMemcpyDeviceToHost, NULL));
	CU(cudaStreamSynchronize(NULL));
	CHECK(!((char *)pinned)[255]);
	CU(cudaFreeHost(pinned));
	CU(cudaFree(p));
	CU(cudaMemGetInfo(&left, &all));
	CHECK(left <= all);
}

/* ---- launches ---- */

/* A kernel's function of the host, as nvcc writes it. */
static void call_step(void *p, unsigned int i)
{
	static cudaKernel_t kernel;
	void *args[] = { &p, &i };
	cudaStream_t stream;
	size_t shared;
	dim3 grid, block;

	if (!kernel)
		CU(__cudaGetKernel(&kernel, &step));
	CU(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
	CU(__cudaLaunchKernel(kernel, grid, block, args, shared, stream));
}

static unsigned int nested(void *p)
{
	CU(__cudaPushCallConfiguration(dim(7, 1, 1), dim(1, 1, 1), 0, NULL));
	call_step(p, 1);
	return 2;
}

static void launches(void)
{
	uint64_t parts[3] = { 1, 2, 3 };
	uint8_t small = 7;
	uint16_t middle = 300;
	float e = 1.5f;
	uint8_t *p = memory(256);
	void *args[] = { &small, &p, &middle, parts, &e };
	cudaLaunchAttribute cooperative = { .id = 2, .val.cooperative = 1 };
	cudaLaunchConfig_t config = {
		.gridDim = { 2, 3, 1 }, .blockDim = { 8, 2, 1 }, .dynamicSmemBytes = 1024,
	};
	cudaFunction_t function;
	const char *name;
	size_t offset, size;

	/* As step<<<5, 64, 32>>>(p, nested()) of which nested() has a launch, too. */
	CU(__cudaPushCallConfiguration(dim(5, 1, 1), dim(64, 1, 1), 32, NULL));
	call_step(p, nested(p));
	CU(cudaLaunchKernel(&mixed, dim(1, 2, 3), dim(4, 5, 6), args, 0, NULL));
	CU(cudaLaunchKernelExC(&config, &none, NULL));
	config.attrs = &cooperative;
	config.numAttrs = 1;
	CU(cudaLaunchKernelExC(&config, &none, NULL));
	CU(cudaLaunchCooperativeKernel(&none, dim(1, 1, 1), dim(32, 1, 1), NULL, 0,
				       cudaStreamLegacy));
	CU(cudaGetLastError());
	CU(cudaDeviceSynchronize());
	CU(cudaGetFuncBySymbol(&function, &mixed));
	CU(cudaFuncGetName(&name, &mixed));
	CU(cudaFuncGetParamInfo(&mixed, 3, &offset, &size));
	CHECK(function && !strcmp(name, "mixed") && offset == 24 && size == 24);
	CU(cudaFree(p));
}

static void questions(void)
{
	struct cudaFuncAttributes a;
	int blocks, flagged;
	size_t shared;

	CU(cudaFuncGetAttributes(&a, &step));
	CHECK(a.maxThreadsPerBlock == 1024 && a.sharedSizeBytes == 1 && a.constSizeBytes == 2 &&
	      a.localSizeBytes == 3 && a.numRegs == 32 && a.ptxVersion == 80 &&
	      a.binaryVersion == 80 && a.maxDynamicSharedSizeBytes == 8);
	CU(cudaFuncSetAttribute(&step, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
	CU(cudaFuncSetCacheConfig(&step, 1));
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &step, 64, 0));
	CU(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&flagged, &step, 64, 0, 1));
	CU(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, &step, 2, 64));
	CHECK(blocks == 32 && flagged == 32 && shared == 24576);
}

/* ---- streams, events, threads ---- */

static void streams(void)
{
	cudaStream_t stream[2];
	cudaEvent_t start, end;
	int least, greatest, priority;
	unsigned int flags, i = 3;
	enum cudaStreamCaptureStatus capturing;
	uint8_t *p = memory(N);
	void *args[] = { &p, &i };
	float ms = -1;

	CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CU(cudaStreamCreate(&stream[0]));
	CU(cudaStreamCreateWithPriority(&stream[1], cudaStreamNonBlocking, greatest));
	CU(cudaStreamGetPriority(stream[1], &priority));
	CU(cudaStreamGetFlags(stream[1], &flags));
	CHECK(priority == greatest && flags == cudaStreamNonBlocking);
	CU(cudaEventCreate(&start));
	CU(cudaEventCreateWithFlags(&end, 0));
	CU(cudaEventRecord(start, stream[0]));
	CU(cudaMemcpyAsync(p, in, N, cudaMemcpyHostToDevice, stream[0]));
	CU(cudaStreamWaitEvent(stream[1], start, 0));
	CU(cudaLaunchKernel(&step, dim(1, 1, 1), dim(32, 1, 1), args, 0, stream[1]));
	CU(cudaMemsetAsync(p + 64, 3, N - 64, stream[1]));
	CU(cudaMemcpyAsync(out, p, N, cudaMemcpyDeviceToHost, stream[1]));
	CU(cudaEventRecord(end, stream[1]));
	CU(cudaEventSynchronize(end));
	CU(cudaEventQuery(end));
	CU(cudaStreamQuery(stream[1]));
	CHECK(out[64] == 3 && out[N - 1] == 3 && memcmp(out, in, 64));
	CU(cudaEventElapsedTime(&ms, start, end));
	CU(cudaStreamIsCapturing(stream[0], &capturing));
	CHECK(ms >= 0 && capturing == cudaStreamCaptureStatusNone);
	/* The thread's default stream, as programs use it that are compiled for it. */
	CU(cudaMemcpy_ptds(p, in, N, cudaMemcpyHostToDevice));
	CU(cudaLaunchKernel_ptsz(&step, dim(2, 1, 1), dim(32, 1, 1), args, 0, NULL));
	CU(cudaMemsetAsync_ptsz(p + 64, 4, 64, NULL));
	CU(cudaEventRecord_ptsz(end, NULL));
	CU(cudaMemcpy_ptds(out, p, 128, cudaMemcpyDeviceToHost));
	CU(cudaStreamSynchronize_ptsz(NULL));
	CHECK(out[127] == 4);
	for (int k = 0; k < 2; k++)
		CU(cudaStreamDestroy(stream[k]));
	CU(cudaEventDestroy(start));
	CU(cudaEventDestroy(end));
	CU(cudaFree(p));
}

static void *other(void *arg)
{
	uint8_t *p = arg;
	int device = -1;

	/* An error is its thread's, and so is the current device, with its context. */
	CHECK(!cudaPeekAtLastError());
	CU(cudaGetDevice(&device));
	CHECK(!device);
	CU(cudaMemset(p, 6, 8));
	CU(cudaMemcpy(out, p, 8, cudaMemcpyDeviceToHost));
	CHECK(out[7] == 6);
	CHECK(cudaSetDevice(5) == cudaErrorInvalidDevice);
	return NULL;
}

static void threads(void)
{
	uint8_t *p = memory(64);
	pthread_t thread;

	CHECK(cudaSetDevice(77) == cudaErrorInvalidDevice);
	pthread_create(&thread, NULL, other, p);
	pthread_join(thread, NULL);
	CHECK(cudaGetLastError() == cudaErrorInvalidDevice && !cudaGetLastError());
	CU(cudaFree(p));
}

static void reset(void)
{
	static const float one = 1;
	float got = 7;
	void *p;

	CU(cudaMemcpyToSymbol(factors, &one, 4, 0, cudaMemcpyHostToDevice));
	CU(cudaDeviceReset());
	/* Another context has variables of its own. */
	CU(cudaMemcpyFromSymbol(&got, factors, 4, 0, cudaMemcpyDeviceToHost));
	CHECK(!got);
	p = memory(64);
	CU(__cudaPushCallConfiguration(dim(9, 1, 1), dim(1, 1, 1), 0, NULL));
	call_step(p, 9);
	CU(cudaDeviceSynchronize());
}

int main(void)
{
	for (unsigned int i = 0; i < N; i++)
		in[i] = (uint8_t)(i * i >> 3);
	devices();
	linear();
	rectangles();
	variables();
	host();
	launches();
	questions();
	streams();
	threads();
	reset();
	puts("done");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Streams, events, the primary context, a library's kernels, and another thread. */
#include <pthread.h>

#include "common.h"

static uint8_t in[1 << 16], out[4][1 << 14];
static CUdeviceptr memory;

static void *other(void *arg)
{
	CUcontext before = context;
	uint32_t word = 9;

	(void)arg;
	CU(cuCtxGetCurrent(&before));
	printf("thread: %s, ", before ? "a context" : "none");
	printf("%u, ", (unsigned int)cuMemsetD32_v2(memory, 1, 1));
	CU(cuCtxSetCurrent(context));
	CU(cuMemsetD32_v2(memory, 1234, 1));
	CU(cuMemcpyDtoH_v2(&word, memory, sizeof(word)));
	printf("%u\n", word);
	return NULL;
}

int main(void)
{
	CUstream streams[4];
	CUevent start, end;
	CUcontext again;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	pthread_t thread;
	CUdeviceptr total;
	size_t len;
	int least, greatest, priority;
	unsigned int flags;
	float ms;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuDevicePrimaryCtxRetain(&again, device));
	printf("primary context %s\n", again == context ? "again" : "differs");
	CU(cuCtxSetCurrent(context));
	CU(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "step"));
	CU(cuKernelGetFunction(&function, kernel));
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	memory = cuda_memory(sizeof(in));
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * i >> 3);
	CU(cuEventCreate(&start, 0));
	CU(cuEventCreate(&end, 0));
	CU(cuEventRecord(start, NULL));
	for (unsigned int i = 0; i < 4; i++) {
		CUdeviceptr part = memory + (i << 14);

		CU(cuStreamCreateWithPriority(&streams[i], 1, i % 2 ? greatest : least));
		CU(cuStreamWaitEvent(streams[i], start, 0));
		CU(cuMemcpyHtoDAsync_v2(part, in + (i << 14), 1 << 14, streams[i]));
		CU(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, streams[i],
				  (void *[]){ &part, &i }, NULL));
		CU(cuMemcpyDtoHAsync_v2(out[i], part, 1 << 14, streams[i]));
	}
	cuda_launch(function, 1, CU_STREAM_LEGACY, (void *[]){ &memory, &greatest });
	CU(cuStreamGetPriority(streams[1], &priority));
	CU(cuStreamGetFlags(streams[1], &flags));
	printf("priority %d, flags %u\n", priority, flags);
	CU(cuEventRecord(end, streams[3]));
	CU(cuEventSynchronize(end));
	CU(cuEventQuery(end));
	CU(cuEventElapsedTime(&ms, start, end));
	for (unsigned int i = 0; i < 4; i++) {
		CU(cuStreamSynchronize(streams[i]));
		CU(cuStreamQuery(streams[i]));
		printf("stream %u: %llx\n", i, sum(out[i], sizeof(out[i])));
		CU(cuStreamDestroy_v2(streams[i]));
	}
	printf("elapsed %d\n", ms >= 0);
	fflush(stdout);
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	CU(cuLibraryGetGlobal(&total, &len, library, "total"));
	printf("total %zu\n", len);
	CU(cuEventDestroy_v2(start));
	CU(cuEventDestroy_v2(end));
	CU(cuMemFree_v2(memory));
	CU(cuLibraryUnload(library));
	CU(cuDevicePrimaryCtxRelease_v2(device));
	CU(cuDevicePrimaryCtxRelease_v2(device));
	printf("released %u\n", (unsigned int)cuDevicePrimaryCtxRelease_v2(device));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Threads that use a kernel for the first time at once, and then make launches and copies. */
#include <pthread.h>

#include "common.h"

#define THREADS	4u
#define ROUNDS	200u

static pthread_barrier_t ready;

static void *work(void *arg)
{
	unsigned int own = *(unsigned int *)arg, i;
	uint8_t *p, bytes[64];
	void *args[] = { &p, &own };
	cudaStream_t stream;

	pthread_barrier_wait(&ready);
	p = memory(sizeof(bytes));
	CU(cudaStreamCreate(&stream));
	for (i = 0; i < ROUNDS; i++) {
		CU(cudaLaunchKernel(&step, dim(1 + own, 1, 1), dim(32, 1, 1), args, 0, stream));
		CU(cudaMemsetAsync(p, (int)(own + i), sizeof(bytes), stream));
		if (i % 50)
			continue;
		CU(cudaMemcpyAsync(bytes, p, sizeof(bytes), cudaMemcpyDeviceToHost, stream));
		CU(cudaStreamSynchronize(stream));
		CHECK(bytes[0] == (uint8_t)(own + i) && bytes[63] == bytes[0]);
		CHECK(cudaSetDevice((int)own + 10) == cudaErrorInvalidDevice);
		CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
	}
	CU(cudaStreamDestroy(stream));
	CU(cudaFree(p));
	return NULL;
}

int main(void)
{
	unsigned int numbers[THREADS];
	pthread_t threads[THREADS];

	pthread_barrier_init(&ready, NULL, THREADS);
	for (unsigned int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, work, &numbers[i]);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CU(cudaDeviceSynchronize());
	puts("done");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Two devices: each has a context, a module, and variables of its own. */
#include <pthread.h>

#include "common.h"

static pthread_barrier_t turn;

static void launch(int device, void *p)
{
	unsigned int n = (unsigned int)device;
	void *args[] = { &p, &n };
	int current = -1;

	CU(cudaGetDevice(&current));
	CHECK(current == device);
	CU(cudaLaunchKernel(&step, dim(1 + n, 1, 1), dim(1, 1, 1), args, 0, NULL));
}

static float factor(void)
{
	float got = 0;

	CU(cudaMemcpyFromSymbol(&got, factors, sizeof(got), 0, cudaMemcpyDeviceToHost));
	return got;
}

/* The other thread begins with device 0, and goes on with device 1 when that was reset. */
static void *other(void *arg)
{
	launch(0, arg);
	CU(cudaSetDevice(1));
	CHECK(factor() == 2);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	CHECK(factor() == 0);
	launch(1, memory(64));
	CU(cudaDeviceSynchronize());
	return NULL;
}

int main(void)
{
	static const float one = 1, two = 2;
	pthread_t thread;
	void *p, *q;
	int count;

	pthread_barrier_init(&turn, NULL, 2);
	CU(cudaGetDeviceCount(&count));
	CHECK(count == 2 && cudaSetDevice(2) == cudaErrorInvalidDevice);
	p = memory(64);
	CU(cudaMemcpyToSymbol(factors, &one, sizeof(one), 0, cudaMemcpyHostToDevice));
	launch(0, p);
	CU(cudaSetDevice(1));
	q = memory(64);
	CU(cudaMemcpyToSymbol(factors, &two, sizeof(two), 0, cudaMemcpyHostToDevice));
	launch(1, q);
	CU(cudaSetDevice(0));
	CHECK(factor() == 1);
	launch(0, p);
	pthread_create(&thread, NULL, other, p);
	pthread_barrier_wait(&turn);
	CU(cudaSetDevice(1));
	CU(cudaDeviceReset());
	pthread_barrier_wait(&turn);
	pthread_join(thread, NULL);
	CU(cudaSetDevice(0));
	CHECK(factor() == 1);
	launch(0, p);
	CU(cudaDeviceSynchronize());
	puts("done");
	return 0;
}

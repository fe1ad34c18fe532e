/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loops of the runtime API, in C and in CUDA's C++: the digit in a function's name is the class of
 * its loop, or 0 if its calls cannot wait.  The including file has defined LAUNCH(kernel, grid,
 * block, stream, ...), for the kernels step(word *, word) and fault(word *), and CU().
 */
#ifndef TESTS_REMOTE_CUDA_RUNTIME_CLASSES_H
#define TESTS_REMOTE_CUDA_RUNTIME_CLASSES_H

#define ROUNDS	600u
#define FEW	40u
#define WORDS	1024u
#define LOOP	static __attribute__((noinline)) void

typedef unsigned int word;

static word data[WORDS];

LOOP c1_launches(word *p, word *q)
{
	for (word i = 0; i < ROUNDS; i++) {
		LAUNCH(step, 4, 64, 0, p, 3);
		LAUNCH(step, 2, 32, 0, q, 5);
		cudaMemcpyAsync(q, p, 64, cudaMemcpyDeviceToDevice, 0);
	}
}

/* The last error is the status of the launch. */
LOOP c1_checked(word *p)
{
	for (word i = 0; i < ROUNDS; i++) {
		LAUNCH(step, 4, 64, 0, p, 7);
		if (cudaGetLastError() != cudaSuccess)
			return;
	}
}

LOOP c2_launches(word *p, word nr)
{
	for (word i = 0; i < nr; i++)
		LAUNCH(step, 4, 64, 0, p, i);
}

LOOP c2_grids(word *p)
{
	for (word i = 0; i < ROUNDS; i++)
		LAUNCH(step, i + 1, 64, 0, p, 1);
}

LOOP c2_writes(word *p, word *q)
{
	for (word i = 0; i < ROUNDS; i++) {
		cudaMemcpyAsync(p + i, data + i, sizeof(word), cudaMemcpyHostToDevice, 0);
		LAUNCH(step, 1, 32, 0, p + i, 9);
		cudaMemcpyAsync(q + i, p + i, sizeof(word), cudaMemcpyDeviceToDevice, 0);
	}
}

LOOP c2_left_early(word *p, word last)
{
	for (word i = 0; i < ROUNDS; i++) {
		LAUNCH(step, 1, 32, 0, p, i);
		if (i == last)
			break;
	}
}

/* The launch of one iteration has no blocks, which the library refuses. */
LOOP c2_one_is_wrong(word *p, word wrong)
{
	for (word i = 0; i < ROUNDS; i++)
		LAUNCH(step, i == wrong ? 0 : 4, 32, 0, p, 2);
}

LOOP c3_events(word *p)
{
	cudaStream_t stream;
	cudaEvent_t event;

	for (word i = 0; i < ROUNDS; i++) {
		cudaStreamCreateWithFlags(&stream, 1);
		cudaEventCreate(&event);
		LAUNCH(step, 1, 32, stream, p, 4);
		cudaEventRecord(event, stream);
		cudaStreamWaitEvent(0, event, 0);
		cudaEventDestroy(event);
		cudaStreamDestroy(stream);
	}
}

/* Each allocation is waited for. */
LOOP c3_memory(word *q)
{
	word *p;

	for (word i = 0; i < FEW; i++) {
		cudaMalloc((void **)&p, 64);
		cudaMemsetAsync(p, 1, 64, 0);
		LAUNCH(step, 1, 32, 0, p, 6);
		cudaMemcpyAsync(q, p, 64, cudaMemcpyDeviceToDevice, 0);
		cudaFree(p);
	}
}

LOOP c0_converges(word *p)
{
	word rounds = 0, e;

	do {
		LAUNCH(step, 1, 32, 0, p, rounds);
		CU(cudaMemcpy(&e, p, sizeof(e), cudaMemcpyDeviceToHost));
	} while (e % 16 && ++rounds < ROUNDS);
	printf("converged after %u: %x\n", rounds, e);
}

LOOP c0_read(word *p)
{
	word e, all = 0;

	for (word i = 0; i < FEW; i++) {
		LAUNCH(step, 1, 32, 0, p, i);
		CU(cudaMemcpy(&e, p, sizeof(e), cudaMemcpyDeviceToHost));
		all = all * 31 + e;
	}
	printf("read %x\n", all);
}

/* The runtime library names an error at once, also one that is not there yet. */
LOOP c0_names(word *p)
{
	const char *name = NULL;
	cudaError_t e;

	for (word i = 0; i < FEW; i++) {
		LAUNCH(step, 1, 32, 0, p, i);
		CU(cudaMemcpy(&e, p, sizeof(e), cudaMemcpyDeviceToHost));
		name = cudaGetErrorName(e);
	}
	printf("named %s\n", name);
}

static __attribute__((noinline)) word launches(word *p)
{
	LAUNCH(step, 3, 96, 0, p, 8);
	return 8;
}

/* The argument of a launch launches: what was pushed for which of them is not followed. */
LOOP c0_nested(word *p, word *q)
{
	for (word i = 0; i < FEW; i++)
		LAUNCH(step, 1, 32, 0, p, launches(q));
}

LOOP c1_fails(word *p)
{
	for (word i = 0; i < FEW; i++)
		LAUNCH(fault, 1, 1, 0, p);
}

static void print(const char *what, const word *p)
{
	unsigned long long h = 0;
	cudaError_t error = cudaGetLastError();

	CU(cudaMemcpy(data, p, sizeof(data), cudaMemcpyDeviceToHost));
	for (word i = 0; i < WORDS; i++)
		h = (h ^ data[i]) * 0x100000001b3ull;
	printf("%s %llx, error %d\n", what, h, (int)error);
}

static void execute(void)
{
	word *p, *q;

	CU(cudaMalloc((void **)&p, sizeof(data)));
	CU(cudaMalloc((void **)&q, sizeof(data)));
	CU(cudaMemset(p, 0, sizeof(data)));
	CU(cudaMemset(q, 0, sizeof(data)));
	c1_launches(p, q);
	print("launches", q);
	c1_checked(p);
	print("checked", p);
	c2_launches(p, ROUNDS);
	c2_launches(p, 3);
	print("numbers", p);
	c2_grids(p);
	print("grids", p);
	for (word i = 0; i < WORDS; i++)
		data[i] = 3 * i;
	c2_writes(p, q);
	print("writes", q);
	/* The data of print() are not predicted. */
	c2_writes(p, q);
	print("writes", q);
	c2_left_early(p, ROUNDS / 2);
	c2_left_early(p, 5);
	print("left early", p);
	c2_one_is_wrong(p, ROUNDS / 2);
	print("one is wrong", p);
	c3_events(p);
	print("events", p);
	c3_memory(q);
	print("memory", q);
	c0_converges(p);
	c0_read(p);
	c0_names(p);
	c0_nested(p, q);
	print("nested", p);
	print("nested", q);
	c1_fails(p);
	printf("error %d\n", (int)cudaDeviceSynchronize());
	printf("error %d\n", (int)cudaGetLastError());
}

#endif /* TESTS_REMOTE_CUDA_RUNTIME_CLASSES_H */

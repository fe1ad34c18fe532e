// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launch a kernel again and again: launches [ROUNDS [LAUNCHES]].  Prints microseconds per launch of
 * each round; ROUNDS 0 goes on until a call fails, and prints the errors.
 */
#include "common.h"

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, launches = argc > 2 ? atoi(argv[2]) : 5000;
	CUresult status = 0;
	CUfunction step;
	CUdeviceptr p;
	uint32_t n = 1;
	void *params[] = { &p, &n };

	cuda_begin(ptx);
	step = cuda_kernel("step");
	p = cuda_memory(64);
	puts("running");
	fflush(stdout);
	for (int r = 0; (!rounds || r < rounds) && !status; r++) {
		double start = now_us();

		for (int i = 0; i < launches && !status; i++)
			status = cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
		if (!status)
			status = cuCtxSynchronize();
		if (rounds && !status)
			printf("%.2f\n", (now_us() - start) / launches);
	}
	if (status)
		printf("error %u, then %u %u\n", (unsigned int)status,
		       (unsigned int)cuCtxSynchronize(), (unsigned int)cuMemsetD8_v2(p, 0, 1));
	return status ? 2 : 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loops that look at what comes back: a solver that reads a residual in each round, and a search
 * that ends when nothing is left.
 */
#include "common.h"

int main(void)
{
	CUdeviceptr x, r, flag;
	CUfunction add, step;
	uint32_t n = 64, rounds = 0, level;
	uint64_t rest;

	cuda_begin(ptx);
	add = cuda_kernel("add");
	step = cuda_kernel("step");
	x = cuda_memory(4096);
	r = cuda_memory(4096);
	flag = cuda_memory(8);
	do {
		cuda_launch(add, 4, NULL, (void *[]){ &x, &r, &flag, &n });
		CU(cuMemcpyDtoDAsync_v2(x, r, 64, NULL));
		CU(cuMemcpyDtoH_v2(&rest, flag, sizeof(rest)));
	} while (rest % 16 && ++rounds < 100);
	printf("solver: %u rounds, %llx\n", rounds, (unsigned long long)rest);
	for (level = 0; level < 100; level++) {
		uint32_t zero = 0, found;

		CU(cuMemcpyHtoD_v2(flag, &zero, sizeof(zero)));
		cuda_launch(step, 4, NULL, (void *[]){ &flag, &level });
		CU(cuMemcpyDtoH_v2(&found, flag, sizeof(found)));
		if (found % 8 == 5)
			break;
	}
	printf("search: %u levels\n", level);
	CU(cuMemFree_v2(x));
	CU(cuMemFree_v2(r));
	CU(cuMemFree_v2(flag));
	cuda_end();
	return 0;
}

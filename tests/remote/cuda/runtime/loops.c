// SPDX-License-Identifier: GPL-2.0-only
/* A loop of launches and copies that need not wait. */
#include "common.h"

#define ROUNDS	600u

int main(void)
{
	unsigned int i = 0;
	uint8_t *p = memory(256), *q = memory(256);
	void *args[] = { &p, &i };
	uint64_t words[4];

	for (i = 0; i < ROUNDS; i++) {
		cudaLaunchKernel(&step, dim(4, 1, 1), dim(64, 1, 1), args, 0, NULL);
		cudaMemcpyAsync(q, p, 64, cudaMemcpyDeviceToDevice, NULL);
	}
	CU(cudaGetLastError());
	CU(cudaMemcpy(words, q, sizeof(words), cudaMemcpyDeviceToHost));
	printf("%llx\n", (unsigned long long)words[0]);
	CU(cudaFree(p));
	CU(cudaFree(q));
	return 0;
}

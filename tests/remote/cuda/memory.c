// SPDX-License-Identifier: GPL-2.0-only
/* Allocate until there is no more, free one, and allocate again. */
#include "common.h"

int main(void)
{
	CUdeviceptr p = 0, next;
	CUresult status;
	int nr = 0;

	cuda_begin(NULL);
	while (!(status = cuMemAlloc_v2(&next, 256 << 10)) && nr < 100) {
		p = next;
		nr++;
	}
	printf("%d of 256 KiB, then %u; ", nr, (unsigned int)status);
	CU(cuMemFree_v2(p));
	printf("after one was freed %u\n", (unsigned int)cuMemAlloc_v2(&next, 256 << 10));
	cuda_end();
	return 0;
}

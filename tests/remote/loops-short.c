// SPDX-License-Identifier: GPL-2.0-only
/* A loop that can be deferred, and that the program always leaves too soon for a gain. */
#include "common.h"

static const char source[] = "kernel void add(global int *p, int x) { p[0] += x; }\n";

int main(void)
{
	const size_t one = 1;
	cl_kernel add;
	cl_mem m;
	int sum = 0;

	cl_open(source, 0);
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(sum), &sum);
	add = cl_kernel_of("add");
	clSetKernelArg(add, 0, sizeof(m), &m);
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 3; k++) {
			clSetKernelArg(add, 1, sizeof(k), &k);
			clEnqueueNDRangeKernel(queue, add, 1, NULL, &one, NULL, 0, NULL, NULL);
		}
		CL(clFinish(queue));
	}
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(sum), &sum, 0, NULL, NULL));
	printf("sum %d\n", sum);
	CL(clReleaseKernel(add));
	CL(clReleaseMemObject(m));
	cl_close();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Class 3: objects that are made, used and released in the loop, and events that order commands. */
#include "common.h"

static const char source[] =
	"kernel void add(global int *sum, global const int *a)\n"
	"{ *sum = *sum * 3 + a[0] + a[15]; }\n";

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 400;
	const size_t one = 1;
	cl_int sum = 1;
	cl_event event = NULL, first = NULL;
	cl_kernel add;
	cl_mem total;

	cl_open(source, 0);
	add = cl_kernel_of("add");
	total = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(sum), &sum);
	cl_arg(add, 0, sizeof(total), &total);
	for (int i = 0; i < rounds; i++) {
		cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);

		clEnqueueFillBuffer(queue, m, &i, sizeof(i), 0, 64, 0, NULL, NULL);
		clSetKernelArg(add, 1, sizeof(m), &m);
		clEnqueueNDRangeKernel(queue, add, 1, NULL, &one, NULL, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
	/* A chain: each command waits for the one before. */
	CL(clEnqueueMarkerWithWaitList(queue, 0, NULL, &first));
	event = first;
	for (int i = 0; i < rounds; i++) {
		cl_event before = event;

		clEnqueueMarkerWithWaitList(queue, 1, &before, &event);
		clReleaseEvent(before);
	}
	CL(clReleaseEvent(event));
	CL(clEnqueueReadBuffer(queue, total, CL_TRUE, 0, sizeof(sum), &sum, 0, NULL, NULL));
	printf("results %d\n", sum);
	clReleaseMemObject(total);
	clReleaseKernel(add);
	cl_close();
	return 0;
}

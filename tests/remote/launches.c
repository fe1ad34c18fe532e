// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launch a kernel again and again, with another number each time: launches [ROUNDS [LAUNCHES]].
 * Prints microseconds per launch of each round; ROUNDS 0 goes on until a call fails, and prints
 * the error.
 */
#include "common.h"

static const char source[] =
	"kernel void put(global int *a, int n) { a[0] += n; }\n";

static cl_int launch(cl_kernel put, int n)
{
	const size_t one = 1;
	cl_int status = clSetKernelArg(put, 1, sizeof(n), &n);

	return status ? status :
		clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, launches = argc > 2 ? atoi(argv[2]) : 5000;
	cl_int zero = 0, status = 0, sum = 0;
	cl_kernel put;
	cl_mem m;

	cl_open(source, 0);
	put = cl_kernel_of("put");
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
	cl_arg(put, 0, sizeof(m), &m);
	CL(launch(put, 0));
	CL(clFinish(queue));
	puts("running");
	fflush(stdout);
	for (int r = 0; !rounds || r < rounds; r++) {
		double start = now_us();

		for (int i = 0; i < launches && !status; i++)
			status = launch(put, 1);
		if (!status)
			status = clFinish(queue);
		if (status)
			break;
		if (rounds)
			printf("%.2f\n", (now_us() - start) / launches);
	}
	if (status) {
		printf("error %d, then %d %d %d\n", status, clFinish(queue), launch(put, 1),
		       clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(sum), &sum, 0, NULL,
					   NULL));
	} else {
		CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(sum), &sum, 0, NULL, NULL));
		printf("sum %d\n", sum);
	}
	clReleaseMemObject(m);
	clReleaseKernel(put);
	clReleaseProgram(program);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return status ? 2 : 0;
}

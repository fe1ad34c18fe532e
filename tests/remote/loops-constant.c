// SPDX-License-Identifier: GPL-2.0-only
/* Class 1: launches with the same arguments, and the steps of a solver on two buffers in turns. */
#include "common.h"

static const char source[] =
	"kernel void mix_in(global const int *a, global int *b, int n)\n"
	"{ int i = get_global_id(0); b[i] = a[i] + a[(i + 1) % n] * 3 + 1; }\n"
	"kernel void put(global int *a) { a[get_global_id(0)] += 7; }\n";

#define N	256

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 500;
	const size_t size = N;
	cl_int data[N], n = N;
	cl_kernel put, there, back;
	cl_mem a, b;

	cl_open(source, 0);
	put = cl_kernel_of("put");
	there = cl_kernel_of("mix_in");
	back = cl_kernel_of("mix_in");
	for (int i = 0; i < N; i++)
		data[i] = (cl_int)(random_number() % 1000);
	a = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(data), data);
	b = cl_buffer(0, sizeof(data), NULL);
	cl_arg(put, 0, sizeof(a), &a);
	cl_arg(there, 0, sizeof(a), &a);
	cl_arg(there, 1, sizeof(b), &b);
	cl_arg(there, 2, sizeof(n), &n);
	cl_arg(back, 0, sizeof(b), &b);
	cl_arg(back, 1, sizeof(a), &a);
	cl_arg(back, 2, sizeof(n), &n);
	for (int i = 0; i < rounds; i++)
		clEnqueueNDRangeKernel(queue, put, 1, NULL, &size, NULL, 0, NULL, NULL);
	for (int i = 0; i < rounds; i++) {
		clEnqueueNDRangeKernel(queue, there, 1, NULL, &size, NULL, 0, NULL, NULL);
		clEnqueueNDRangeKernel(queue, back, 1, NULL, &size, NULL, 0, NULL, NULL);
	}
	CL(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("constant %016llx\n", (unsigned long long)digest(data, sizeof(data)));
	clReleaseMemObject(a);
	clReleaseMemObject(b);
	clReleaseKernel(put);
	clReleaseKernel(there);
	clReleaseKernel(back);
	cl_close();
	return 0;
}

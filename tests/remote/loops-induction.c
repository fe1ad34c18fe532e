// SPDX-License-Identifier: GPL-2.0-only
/*
 * Class 2: arguments, offsets and lengths that change with the iteration; a nested loop; and a loop
 * that is left by longjmp() from a function of the program.
 */
#include <setjmp.h>

#include "common.h"

static const char source[] =
	"kernel void put(global int *a, int i, int k) { a[i] = a[i] * 5 + k; }\n";

#define N	600

static cl_kernel put;
static cl_mem m, copy;
static jmp_buf out;

static void launches(int n)
{
	const size_t one = 1;

	for (int i = 0; i < n; i++) {
		int k = 100 - 3 * i;

		clSetKernelArg(put, 1, sizeof(i), &i);
		clSetKernelArg(put, 2, sizeof(k), &k);
		clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, NULL);
	}
}

static void nested(int rows, int columns)
{
	const size_t one = 1;

	for (int y = 0; y < rows; y++) {
		clSetKernelArg(put, 2, sizeof(y), &y);
		for (int x = 0; x < columns; x++) {
			clSetKernelArg(put, 1, sizeof(x), &x);
			clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, NULL);
		}
	}
}

static void copies(int n)
{
	for (int i = 0; i + 1 < n; i++)
		clEnqueueCopyBuffer(queue, m, copy, 4 * (size_t)i, 4 * (size_t)(n - 1 - i), 4, 0,
				    NULL, NULL);
}

static void left(int n)
{
	const size_t one = 1;

	for (int i = 0; i < n; i++) {
		clSetKernelArg(put, 1, sizeof(i), &i);
		if (i == n / 2)
			longjmp(out, 1);
		clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, NULL);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : N, zero = 0;
	cl_int *data = calloc((size_t)n, sizeof(*data));

	cl_open(source, 0);
	put = cl_kernel_of("put");
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, 4 * (size_t)n, data);
	copy = cl_buffer(CL_MEM_COPY_HOST_PTR, 4 * (size_t)n, data);
	cl_arg(put, 0, sizeof(m), &m);
	launches(n);
	nested(7, n / 7);
	copies(n);
	cl_arg(put, 2, sizeof(zero), &zero);
	if (!setjmp(out))
		left(n);
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, 4 * (size_t)n, data, 0, NULL, NULL));
	printf("induction %016llx", (unsigned long long)digest(data, 4 * (size_t)n));
	CL(clEnqueueReadBuffer(queue, copy, CL_TRUE, 0, 4 * (size_t)n, data, 0, NULL, NULL));
	printf(" %016llx\n", (unsigned long long)digest(data, 4 * (size_t)n));
	clReleaseMemObject(m);
	clReleaseMemObject(copy);
	clReleaseKernel(put);
	cl_close();
	free(data);
	return 0;
}

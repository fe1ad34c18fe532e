// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loops of OpenCL calls, to be measured: bench-deferred-loops CLASS LAUNCHES SPIN.
 *
 * CLASS is 1 to 3, as Documentation/deferred.rst defines them; each iteration launches a kernel
 * that counts to SPIN.  Prints microseconds per launch, with clFinish(), of several repetitions
 * after one that is not counted, and a digest of what the kernels computed.
 */
#include "../../../tests/remote/common.h"

#define REPETITIONS	5

static const char source[] =
	"kernel void work(global uint *a, int i, int spin)\n"
	"{ uint x = a[i & 63] + 1; for (int k = 0; k < spin; k++) x = x * 1664525u + 1013904223u;\n"
	"  a[i & 63] = x; }\n";

static cl_kernel work;
static const size_t one = 1;

static void constant(int n)
{
	int zero = 0;

	for (int i = 0; i < n; i++) {
		clSetKernelArg(work, 1, sizeof(zero), &zero);
		clEnqueueNDRangeKernel(queue, work, 1, NULL, &one, NULL, 0, NULL, NULL);
	}
}

static void induction(int n)
{
	for (int i = 0; i < n; i++) {
		clSetKernelArg(work, 1, sizeof(i), &i);
		clEnqueueNDRangeKernel(queue, work, 1, NULL, &one, NULL, 0, NULL, NULL);
	}
}

static void results(int n)
{
	for (int i = 0; i < n; i++) {
		cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, 256, NULL, NULL);

		clSetKernelArg(work, 0, sizeof(m), &m);
		clEnqueueNDRangeKernel(queue, work, 1, NULL, &one, NULL, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
}

int main(int argc, char **argv)
{
	static void (*const loops[])(int n) = { constant, induction, results };
	int class = argc > 1 ? atoi(argv[1]) : 0, launches = argc > 2 ? atoi(argv[2]) : 0;
	int spin = argc > 3 ? atoi(argv[3]) : -1, zero = 0;
	cl_uint data[64] = { 0 };
	cl_mem m;

	if (class < 1 || class > 3 || launches < 1 || spin < 0) {
		fputs("usage: bench-deferred-loops CLASS LAUNCHES SPIN\n", stderr);
		return 2;
	}
	cl_open(source, 0);
	work = cl_kernel_of("work");
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(data), data);
	cl_arg(work, 0, sizeof(m), &m);
	cl_arg(work, 1, sizeof(zero), &zero);
	cl_arg(work, 2, sizeof(spin), &spin);
	for (int r = 0; r <= REPETITIONS; r++) {
		double start = now_us();

		loops[class - 1](launches);
		CL(clFinish(queue));
		if (r)
			printf("us %.3f\n", (now_us() - start) / launches);
	}
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL));
	printf("digest %016llx\n", (unsigned long long)digest(data, sizeof(data)));
	CL(clReleaseMemObject(m));
	CL(clReleaseKernel(work));
	cl_close();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conjugate gradients on a band matrix: two sums are read back in each step.  cg [TIMES] solves it
 * so many times.
 */
#include "common.h"

#define N	2048u
#define GROUPS	16u

static const char source[] =
	"kernel void apply(global const double *x, global double *y, int n)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	y[i] = 4 * x[i] - (i ? x[i - 1] : 0) - (i < n - 1 ? x[i + 1] : 0);\n"
	"}\n"
	"kernel void dot_parts(global const double *x, global const double *y, global double *sums,\n"
	"		      int each)\n"
	"{\n"
	"	int g = get_global_id(0);\n"
	"	double s = 0;\n"
	"	for (int i = g * each; i < (g + 1) * each; i++)\n"
	"		s += x[i] * y[i];\n"
	"	sums[g] = s;\n"
	"}\n"
	"kernel void axpy(global double *y, global const double *x, double a, double b)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	y[i] = b * y[i] + a * x[i];\n"
	"}\n";

static cl_kernel apply, dot_parts, axpy;
static cl_mem sums;
static const size_t n = N, groups = GROUPS;

static double dot_of(cl_mem x, cl_mem y)
{
	double part[GROUPS], s = 0;

	cl_arg(dot_parts, 0, sizeof(x), &x);
	cl_arg(dot_parts, 1, sizeof(y), &y);
	CL(clEnqueueNDRangeKernel(queue, dot_parts, 1, NULL, &groups, NULL, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, sums, CL_TRUE, 0, sizeof(part), part, 0, NULL, NULL));
	for (size_t i = 0; i < GROUPS; i++)
		s += part[i];
	return s;
}

/* y = b * y + a * x */
static void add(cl_mem y, cl_mem x, double a, double b)
{
	cl_arg(axpy, 0, sizeof(y), &y);
	cl_arg(axpy, 1, sizeof(x), &x);
	cl_arg(axpy, 2, sizeof(a), &a);
	cl_arg(axpy, 3, sizeof(b), &b);
	CL(clEnqueueNDRangeKernel(queue, axpy, 1, NULL, &n, NULL, 0, NULL, NULL));
}

/* Solve it. Return the number of steps. */
static int solve(cl_mem x, cl_mem r, cl_mem p, cl_mem q, double *rest)
{
	double rr = dot_of(r, r), next, a;
	int i;

	for (i = 0; i < 200 && rr > 1e-12; i++) {
		CL(clEnqueueNDRangeKernel(queue, apply, 1, NULL, &n, NULL, 0, NULL, NULL));
		a = rr / dot_of(p, q);
		add(x, p, a, 1);
		add(r, q, -a, 1);
		next = dot_of(r, r);
		add(p, r, 1, next / rr);
		rr = next;
	}
	*rest = rr;
	return i;
}

static void set(cl_mem m, const double *value)
{
	CL(clEnqueueWriteBuffer(queue, m, CL_FALSE, 0, N * sizeof(*value), value, 0, NULL, NULL));
}

int main(int argc, char **argv)
{
	static double b[N], zero[N];
	const int size = N, each = N / GROUPS;
	int times = number(argc, argv, 1), steps = 0;
	cl_mem x, r, p, q;
	double rest;

	cl_open(source, 0);
	for (size_t i = 0; i < N; i++)
		b[i] = (double)(random_number() % 100);
	r = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(b), b);
	p = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(b), b);
	x = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
	q = cl_buffer(CL_MEM_READ_WRITE, sizeof(b), NULL);
	sums = cl_buffer(CL_MEM_READ_WRITE, GROUPS * sizeof(double), NULL);
	apply = cl_kernel_of("apply");
	dot_parts = cl_kernel_of("dot_parts");
	axpy = cl_kernel_of("axpy");
	cl_arg(dot_parts, 2, sizeof(sums), &sums);
	cl_arg(dot_parts, 3, sizeof(each), &each);
	cl_arg(apply, 0, sizeof(p), &p);
	cl_arg(apply, 1, sizeof(q), &q);
	cl_arg(apply, 2, sizeof(size), &size);
	steps = solve(x, r, p, q, &rest);
	while (--times > 0) {
		set(r, b);
		set(p, b);
		set(x, zero);
		steps += solve(x, r, p, q, &rest);
	}
	CL(clEnqueueReadBuffer(queue, x, CL_TRUE, 0, sizeof(b), b, 0, NULL, NULL));
	printf("steps %d, rest %.17g, x %016llx\n", steps, rest,
	       (unsigned long long)digest(b, sizeof(b)));
	CL(clReleaseMemObject(x));
	CL(clReleaseMemObject(r));
	CL(clReleaseMemObject(p));
	CL(clReleaseMemObject(q));
	CL(clReleaseMemObject(sums));
	CL(clReleaseKernel(apply));
	CL(clReleaseKernel(dot_parts));
	CL(clReleaseKernel(axpy));
	cl_close();
	return 0;
}

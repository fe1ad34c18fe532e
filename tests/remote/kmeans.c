// SPDX-License-Identifier: GPL-2.0-only
/*
 * K-means: each step ends with a number that is read, and decides about the next one; kmeans
 * [LEAST] goes on for so many steps at least.
 */
#include "common.h"

#define N	4096u
#define K	8u

static const char source[] =
	"kernel void assign(global const float2 *p, global const float2 *means, global int *of, int k,\n"
	"		   global int *moved)\n"
	"{\n"
	"	int i = get_global_id(0), best = 0;\n"
	"	for (int c = 1; c < k; c++)\n"
	"		if (distance(p[i], means[c]) < distance(p[i], means[best]))\n"
	"			best = c;\n"
	"	if (best != of[i])\n"
	"		atomic_inc(moved);\n"
	"	of[i] = best;\n"
	"}\n"
	"kernel void mean(global const float2 *p, global float2 *means, global const int *of, int n)\n"
	"{\n"
	"	int c = get_global_id(0), nr = 0;\n"
	"	float2 sum = 0;\n"
	"	for (int i = 0; i < n; i++)\n"
	"		if (of[i] == c) {\n"
	"			sum += p[i];\n"
	"			nr++;\n"
	"		}\n"
	"	if (nr)\n"
	"		means[c] = sum / nr;\n"
	"}\n";

int main(int argc, char **argv)
{
	static cl_float2 points[N], means[K];
	static cl_int of[N];
	const cl_int k = K, nr = N, zero = 0;
	const size_t n = N, clusters = K;
	cl_kernel assign, mean;
	cl_mem mp, mm, mo, mc;
	const int least = number(argc, argv, 0);
	cl_int moved = 1;
	int steps;

	cl_open(source, 0);
	for (size_t i = 0; i < N; i++)
		for (int d = 0; d < 2; d++)
			points[i].s[d] = (cl_float)(random_number() % 10000) / 100;
	memcpy(means, points, sizeof(means));
	mp = cl_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(points), points);
	mm = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(means), means);
	mo = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(of), of);
	mc = cl_buffer(CL_MEM_READ_WRITE, sizeof(moved), NULL);
	assign = cl_kernel_of("assign");
	mean = cl_kernel_of("mean");
	cl_arg(assign, 0, sizeof(mp), &mp);
	cl_arg(assign, 1, sizeof(mm), &mm);
	cl_arg(assign, 2, sizeof(mo), &mo);
	cl_arg(assign, 3, sizeof(k), &k);
	cl_arg(assign, 4, sizeof(mc), &mc);
	cl_arg(mean, 0, sizeof(mp), &mp);
	cl_arg(mean, 1, sizeof(mm), &mm);
	cl_arg(mean, 2, sizeof(mo), &mo);
	cl_arg(mean, 3, sizeof(nr), &nr);
	for (steps = 0; (moved || steps < least) && steps < 100000; steps++) {
		CL(clEnqueueWriteBuffer(queue, mc, CL_FALSE, 0, sizeof(zero), &zero, 0, NULL,
					NULL));
		CL(clEnqueueNDRangeKernel(queue, assign, 1, NULL, &n, NULL, 0, NULL, NULL));
		CL(clEnqueueNDRangeKernel(queue, mean, 1, NULL, &clusters, NULL, 0, NULL, NULL));
		CL(clEnqueueReadBuffer(queue, mc, CL_TRUE, 0, sizeof(moved), &moved, 0, NULL,
				       NULL));
	}
	CL(clEnqueueReadBuffer(queue, mm, CL_TRUE, 0, sizeof(means), means, 0, NULL, NULL));
	printf("steps %d, means %016llx\n", steps,
	       (unsigned long long)digest(means, sizeof(means)));
	CL(clReleaseMemObject(mp));
	CL(clReleaseMemObject(mm));
	CL(clReleaseMemObject(mo));
	CL(clReleaseMemObject(mc));
	CL(clReleaseKernel(assign));
	CL(clReleaseKernel(mean));
	cl_close();
	return 0;
}

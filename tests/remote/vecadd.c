// SPDX-License-Identifier: GPL-2.0-only
/* Add vectors: with copies, with reads and writes that do not wait, and in parts. */
#include "common.h"

#define N	(1u << 16)

static const char source[] =
	"kernel void add(global const float *a, global const float *b, global float *c, float f)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	c[i] = a[i] + f * b[i];\n"
	"}\n";

int main(void)
{
	static float a[N], b[N], c[N], d[N];
	const size_t n = N, part = N / 8;
	cl_mem ma, mb, mc, half;
	cl_buffer_region region = {
		.origin = N / 2 * sizeof(float), .size = N / 2 * sizeof(float),
	};
	cl_event events[8], done;
	cl_ulong from, to;
	float f = 0.5f;
	cl_kernel add;
	cl_int status;

	cl_open(source, CL_QUEUE_PROFILING_ENABLE);
	for (size_t i = 0; i < N; i++) {
		a[i] = (float)(random_number() % 1000);
		b[i] = (float)(random_number() % 1000);
	}
	ma = cl_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(a), a);
	mb = cl_buffer(CL_MEM_READ_ONLY, sizeof(b), NULL);
	mc = cl_buffer(CL_MEM_READ_WRITE, sizeof(c), NULL);
	add = cl_kernel_of("add");
	cl_arg(add, 0, sizeof(ma), &ma);
	cl_arg(add, 1, sizeof(mb), &mb);
	cl_arg(add, 2, sizeof(mc), &mc);
	cl_arg(add, 3, sizeof(f), &f);

	/* The memory of a write that has returned and does not wait is not the program's yet. */
	for (size_t i = 0; i < 8; i++)
		CL(clEnqueueWriteBuffer(queue, mb, CL_FALSE, i * part * sizeof(float),
					part * sizeof(float), b + i * part, 0, NULL, &events[i]));
	CL(clEnqueueNDRangeKernel(queue, add, 1, NULL, &n, NULL, 8, events, &done));
	CL(clEnqueueReadBuffer(queue, mc, CL_TRUE, 0, sizeof(c), c, 1, &done, NULL));
	printf("one %016llx\n", (unsigned long long)digest(c, sizeof(c)));
	CL(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
	CL(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_START, sizeof(from), &from, NULL));
	CL(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof(to), &to, NULL));
	printf("status %d, time passed: %s\n", status, to >= from && from ? "yes" : "no");
	CL(clReleaseEvent(done));
	for (size_t i = 0; i < 8; i++)
		CL(clReleaseEvent(events[i]));

	/* Many launches, each with another number, and parts that are read behind them. */
	for (size_t i = 0; i < 100; i++) {
		f = (float)i;
		cl_arg(add, 3, sizeof(f), &f);
		CL(clEnqueueNDRangeKernel(queue, add, 1, NULL, &n, NULL, 0, NULL, NULL));
		CL(clEnqueueReadBuffer(queue, mc, CL_FALSE, i % 8 * part * sizeof(float),
				       part * sizeof(float), d + i % 8 * part, 0, NULL, NULL));
	}
	CL(clFinish(queue));
	printf("parts %016llx\n", (unsigned long long)digest(d, sizeof(d)));

	half = clCreateSubBuffer(mc, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	good(err, "clCreateSubBuffer");
	CL(clEnqueueFillBuffer(queue, half, &f, sizeof(f), 0, region.size, 0, NULL, NULL));
	CL(clEnqueueCopyBuffer(queue, ma, mc, 0, 64, 256, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, mc, CL_TRUE, 0, sizeof(c), c, 0, NULL, NULL));
	printf("filled %016llx\n", (unsigned long long)digest(c, sizeof(c)));

	CL(clReleaseMemObject(half));
	CL(clReleaseMemObject(ma));
	CL(clReleaseMemObject(mb));
	CL(clReleaseMemObject(mc));
	CL(clReleaseKernel(add));
	cl_close();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Heat on a plane, whose two buffers change places; rows and columns are read as rectangles. */
#include "common.h"

#define W	128u
#define H	96u

static const char source[] =
	"kernel void heat(global const float *from, global float *to, int w, int h, local float *l)\n"
	"{\n"
	"	int x = get_global_id(0), y = get_global_id(1), i = y * w + x;\n"
	"	l[get_local_id(0)] = from[i];\n"
	"	barrier(CLK_LOCAL_MEM_FENCE);\n"
	"	float v = l[get_local_id(0)];\n"
	"	if (x > 0 && y > 0 && x < w - 1 && y < h - 1)\n"
	"		v = 0.25f * (from[i - 1] + from[i + 1] + from[i - w] + from[i + w]);\n"
	"	to[i] = v;\n"
	"}\n";

int main(void)
{
	const size_t global[2] = { W, H }, local[2] = { 16, 1 };
	static float plane[W * H], part[40 * 30];
	const size_t from[3] = { 20 * sizeof(float), 10, 0 }, to[3] = { 8, 2, 0 };
	const size_t region[3] = { 16 * sizeof(float), 20, 1 };
	int w = W, h = H;
	cl_kernel step;
	cl_mem m[2];

	cl_open(source, 0);
	for (size_t i = 0; i < W * H; i++)
		plane[i] = i % W ? 0 : 100;
	for (int i = 0; i < 2; i++)
		m[i] = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(plane), plane);
	step = cl_kernel_of("heat");
	cl_arg(step, 2, sizeof(w), &w);
	cl_arg(step, 3, sizeof(h), &h);
	cl_arg(step, 4, local[0] * sizeof(float), NULL);
	for (int i = 0; i < 200; i++) {
		cl_arg(step, 0, sizeof(cl_mem), &m[i % 2]);
		cl_arg(step, 1, sizeof(cl_mem), &m[1 - i % 2]);
		CL(clEnqueueNDRangeKernel(queue, step, 2, NULL, global, local, 0, NULL, NULL));
	}
	CL(clEnqueueReadBuffer(queue, m[0], CL_TRUE, 0, sizeof(plane), plane, 0, NULL, NULL));
	printf("plane %016llx\n", (unsigned long long)digest(plane, sizeof(plane)));

	/* With and without waiting, to memory with other rows. */
	for (int i = 0; i < 2; i++) {
		memset(part, 0, sizeof(part));
		CL(clEnqueueReadBufferRect(queue, m[0], i ? CL_TRUE : CL_FALSE, from, to, region,
					   W * sizeof(float), 0, 40 * sizeof(float), 0, part, 0,
					   NULL, NULL));
		CL(clFinish(queue));
		printf("part %016llx\n", (unsigned long long)digest(part, sizeof(part)));
	}
	CL(clEnqueueWriteBufferRect(queue, m[1], CL_FALSE, from, to, region, W * sizeof(float), 0,
				    40 * sizeof(float), 0, part, 0, NULL, NULL));
	CL(clEnqueueCopyBufferRect(queue, m[1], m[0], from, to, region, W * sizeof(float), 0,
				   W * sizeof(float), 0, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, m[0], CL_TRUE, 0, sizeof(plane), plane, 0, NULL, NULL));
	printf("copied %016llx\n", (unsigned long long)digest(plane, sizeof(plane)));
	CL(clReleaseKernel(step));
	CL(clReleaseMemObject(m[0]));
	CL(clReleaseMemObject(m[1]));
	cl_close();
	return 0;
}

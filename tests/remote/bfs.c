// SPDX-License-Identifier: GPL-2.0-only
/* Breadth-first search: after each level the program reads whether there is another. */
#include "common.h"

#define NODES	5000u
#define EDGES	4u

static const char source[] =
	"kernel void level(global const int *edges, global int *depth, global int *more, int d)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	if (depth[i] != d)\n"
	"		return;\n"
	"	for (int e = 0; e < 4; e++) {\n"
	"		int j = edges[4 * i + e];\n"
	"		if (depth[j] < 0) {\n"
	"			depth[j] = d + 1;\n"
	"			*more = 1;\n"
	"		}\n"
	"	}\n"
	"}\n";

int main(void)
{
	static cl_int edges[NODES * EDGES], depth[NODES];
	const size_t n = NODES;
	cl_int d, more = 1, zero = 0;
	cl_mem me, md, mm;
	cl_kernel level;

	cl_open(source, 0);
	for (size_t i = 0; i < NODES; i++) {
		depth[i] = i ? -1 : 0;
		for (size_t e = 0; e < EDGES; e++)
			edges[EDGES * i + e] = (cl_int)((i + 1 + random_number() % 200) % NODES);
	}
	me = cl_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(edges), edges);
	md = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(depth), depth);
	mm = cl_buffer(CL_MEM_READ_WRITE, sizeof(more), NULL);
	level = cl_kernel_of("level");
	cl_arg(level, 0, sizeof(me), &me);
	cl_arg(level, 1, sizeof(md), &md);
	cl_arg(level, 2, sizeof(mm), &mm);
	for (d = 0; more; d++) {
		cl_arg(level, 3, sizeof(d), &d);
		CL(clEnqueueWriteBuffer(queue, mm, CL_FALSE, 0, sizeof(zero), &zero, 0, NULL,
					NULL));
		CL(clEnqueueNDRangeKernel(queue, level, 1, NULL, &n, NULL, 0, NULL, NULL));
		CL(clEnqueueReadBuffer(queue, mm, CL_TRUE, 0, sizeof(more), &more, 0, NULL, NULL));
	}
	CL(clEnqueueReadBuffer(queue, md, CL_TRUE, 0, sizeof(depth), depth, 0, NULL, NULL));
	printf("levels %d, depths %016llx\n", d, (unsigned long long)digest(depth, sizeof(depth)));
	CL(clReleaseMemObject(me));
	CL(clReleaseMemObject(md));
	CL(clReleaseMemObject(mm));
	CL(clReleaseKernel(level));
	cl_close();
	return 0;
}

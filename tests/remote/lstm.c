// SPDX-License-Identifier: GPL-2.0-only
/* A recurrent network, two small launches a step, each of which has an output: lstm [STEPS]. */
#include "common.h"

#define CELLS	64u
#define STEPS	1000

static const char source[] =
	"kernel void gates(global const float *w, global const float *h, global const float *x,\n"
	"		  global float *g, int cells, int step)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	float s = x[step];\n"
	"	for (int k = 0; k < cells; k++)\n"
	"		s += w[i * cells + k] * h[k];\n"
	"	g[i] = 1 / (1 + exp(-s));\n"
	"}\n"
	"kernel void update(global const float *g, global float *c, global float *h, int cells)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	c[i] = g[i] * c[i] + g[cells + i] * (2 * g[2 * cells + i] - 1);\n"
	"	h[i] = g[3 * cells + i] * tanh(c[i]);\n"
	"}\n";

int main(int argc, char **argv)
{
	static cl_float w[4 * CELLS * CELLS], x[STEPS], zero[CELLS], out[STEPS];
	const size_t n = CELLS, four = 4 * CELLS;
	const cl_int cells = CELLS, steps = number(argc, argv, STEPS);
	cl_kernel gates, update;
	cl_mem mw, mh, mx, mg, mc;

	cl_open(source, 0);
	for (size_t i = 0; i < sizeof(w) / sizeof(*w); i++)
		w[i] = (cl_float)(random_number() % 1000) / 4000 - 0.125f;
	for (size_t i = 0; i < STEPS; i++)
		x[i] = (cl_float)(random_number() % 1000) / 1000;
	mw = cl_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(w), w);
	mx = cl_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(x), x);
	mh = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
	mc = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
	mg = cl_buffer(CL_MEM_READ_WRITE, 4 * sizeof(zero), NULL);
	gates = cl_kernel_of("gates");
	update = cl_kernel_of("update");
	cl_arg(gates, 0, sizeof(mw), &mw);
	cl_arg(gates, 1, sizeof(mh), &mh);
	cl_arg(gates, 2, sizeof(mx), &mx);
	cl_arg(gates, 3, sizeof(mg), &mg);
	cl_arg(gates, 4, sizeof(cells), &cells);
	cl_arg(update, 0, sizeof(mg), &mg);
	cl_arg(update, 1, sizeof(mc), &mc);
	cl_arg(update, 2, sizeof(mh), &mh);
	cl_arg(update, 3, sizeof(cells), &cells);
	for (cl_int step = 0; step < steps; step++) {
		const cl_int at = step % STEPS;

		cl_arg(gates, 5, sizeof(at), &at);
		CL(clEnqueueNDRangeKernel(queue, gates, 1, NULL, &four, NULL, 0, NULL, NULL));
		CL(clEnqueueNDRangeKernel(queue, update, 1, NULL, &n, NULL, 0, NULL, NULL));
		CL(clEnqueueReadBuffer(queue, mh, CL_TRUE, 0, sizeof(*out), &out[at], 0, NULL,
				       NULL));
	}
	printf("output %016llx\n", (unsigned long long)digest(out, sizeof(out)));
	CL(clReleaseMemObject(mw));
	CL(clReleaseMemObject(mh));
	CL(clReleaseMemObject(mx));
	CL(clReleaseMemObject(mg));
	CL(clReleaseMemObject(mc));
	CL(clReleaseKernel(gates));
	CL(clReleaseKernel(update));
	cl_close();
	return 0;
}

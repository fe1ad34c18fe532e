// SPDX-License-Identifier: GPL-2.0-only
/*
 * Have the device work without an end: busy NAME [ROUNDS].  Prints each second how many kernels
 * have ended, until a call fails.
 */
#include "common.h"

#define ITEMS	64u

static const char source[] =
	"kernel void work(global uint *a, uint rounds)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	uint v = a[i];\n"
	"	for (uint k = 0; k < rounds; k++)\n"
	"		v = v * 1664525u + 1013904223u + (v >> 16);\n"
	"	a[i] = v;\n"
	"}\n";

int main(int argc, char **argv)
{
	cl_uint a[ITEMS] = { 1 }, rounds = argc > 2 ? (cl_uint)atoi(argv[2]) : 100000;
	double start = now_us(), said = start;
	const size_t items = ITEMS;
	unsigned int kernels = 0;
	cl_kernel work;
	cl_mem m;

	if (argc < 2)
		return 2;
	cl_open(source, 0);
	work = cl_kernel_of("work");
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(a), a);
	cl_arg(work, 0, sizeof(m), &m);
	cl_arg(work, 1, sizeof(rounds), &rounds);
	for (;;) {
		CL(clEnqueueNDRangeKernel(queue, work, 1, NULL, &items, NULL, 0, NULL, NULL));
		CL(clFinish(queue));
		kernels++;
		if (now_us() - said < 1e6)
			continue;
		said = now_us();
		printf("busy name=%s kernels=%u t=%.1f\n", argv[1], kernels, (said - start) / 1e6);
		fflush(stdout);
	}
}

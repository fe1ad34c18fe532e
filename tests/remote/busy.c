// SPDX-License-Identifier: GPL-2.0-only
/*
 * Have the device work: busy NAME [KERNELS].  Launches so many kernels without waiting, and prints
 * what they have computed; without a number, or with 0, prints each second how many have ended, and
 * waits for AHEAD at a time, until a call fails.
 */
#include "common.h"

#define ITEMS	64u
#define AHEAD	32u

static const char source[] =
	"kernel void work(global uint *a, uint rounds)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	uint v = a[i] + i;\n"
	"	for (uint k = 0; k < rounds; k++)\n"
	"		v = v * 1664525u + 1013904223u + (v >> 16);\n"
	"	a[i] = v;\n"
	"}\n";

static cl_kernel work;
static cl_mem m;

static void launch(cl_uint rounds)
{
	const size_t items = ITEMS;

	cl_arg(work, 1, sizeof(rounds), &rounds);
	CL(clEnqueueNDRangeKernel(queue, work, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void count(const char *name)
{
	double start = now_us(), said = start;

	for (unsigned int kernels = AHEAD;; kernels += AHEAD) {
		/* A program that waits for each leaves the device to others meanwhile. */
		for (unsigned int i = 0; i < AHEAD; i++)
			launch(20000);
		CL(clFinish(queue));
		if (now_us() - said < 1e6)
			continue;
		said = now_us();
		printf("busy name=%s kernels=%u t=%.1f\n", name, kernels, (said - start) / 1e6);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	cl_uint a[ITEMS] = { 1 }, kernels = argc > 2 ? (cl_uint)atoi(argv[2]) : 0;

	if (argc < 2)
		return 2;
	cl_open(source, 0);
	work = cl_kernel_of("work");
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(a), a);
	cl_arg(work, 0, sizeof(m), &m);
	if (!kernels)
		count(argv[1]);
	for (cl_uint i = 0; i < kernels; i++)
		launch(i % 100);
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(a), a, 0, NULL, NULL));
	printf("%u kernels: %016llx\n", kernels, (unsigned long long)digest(a, sizeof(a)));
	return 0;
}

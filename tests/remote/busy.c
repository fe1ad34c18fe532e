// SPDX-License-Identifier: GPL-2.0-only
/*
 * Have the device work: busy NAME [KERNELS].  Launches so many kernels without waiting, and prints
 * what they have computed; without a number, or with 0, prints each second how many have ended,
 * until a call fails, and has always some that have not.
 */
#include "common.h"

#define ITEMS	64u
#define BATCH	8u	/* kernels that are waited for at a time */
#define AHEAD	4u	/* batches that have not ended */
#define LONG	100000u	/* rounds of a kernel that takes milliseconds */

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

static void launch(cl_uint rounds, cl_event *event)
{
	const size_t items = ITEMS;

	cl_arg(work, 1, sizeof(rounds), &rounds);
	CL(clEnqueueNDRangeKernel(queue, work, 1, NULL, &items, NULL, 0, NULL, event));
}

/* A program that waits for all that it has launched leaves the device to others meanwhile. */
static void count(const char *name)
{
	double start = now_us(), said = start;
	cl_event events[AHEAD] = { NULL };

	for (unsigned int batch = 0;; batch++) {
		cl_event *oldest = &events[batch % AHEAD];

		if (*oldest) {
			CL(clWaitForEvents(1, oldest));
			CL(clReleaseEvent(*oldest));
		}
		for (unsigned int i = 1; i < BATCH; i++)
			launch(LONG, NULL);
		launch(LONG, oldest);
		if (batch < AHEAD || now_us() - said < 1e6)
			continue;
		said = now_us();
		printf("busy name=%s kernels=%u t=%.1f\n", name, (batch + 1 - AHEAD) * BATCH,
		       (said - start) / 1e6);
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
		launch(i % 100, NULL);
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(a), a, 0, NULL, NULL));
	printf("%u kernels: %016llx\n", kernels, (unsigned long long)digest(a, sizeof(a)));
	return 0;
}

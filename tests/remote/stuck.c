// SPDX-License-Identifier: GPL-2.0-only
/* Never end: stuck kernel (a loop), or stuck event (one that is not set). */
#include "common.h"

static const char source[] =
	"kernel void spin(global volatile int *a) { while (!a[0]) ; }\n";

int main(int argc, char **argv)
{
	cl_event user;
	cl_int zero = 0;
	const size_t one = 1;
	cl_kernel spin;
	cl_mem m;

	cl_open(source, 0);
	if (argc > 1 && !strcmp(argv[1], "event")) {
		user = clCreateUserEvent(context, &err);
		CL(clEnqueueMarkerWithWaitList(queue, 1, &user, NULL));
	} else {
		spin = cl_kernel_of("spin");
		m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
		cl_arg(spin, 0, sizeof(m), &m);
		CL(clEnqueueNDRangeKernel(queue, spin, 1, NULL, &one, NULL, 0, NULL, NULL));
	}
	puts("running");
	fflush(stdout);
	printf("error %d\n", clFinish(queue));
	return 2;
}

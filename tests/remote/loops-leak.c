// SPDX-License-Identifier: GPL-2.0-only
/* A loop that makes events and keeps them, until the server's limit. */
#include "common.h"

int main(void)
{
	static cl_event events[100];
	cl_mem m;

	cl_open(NULL, 0);
	m = cl_buffer(0, 64, NULL);
	for (int i = 0; i < 100; i++) {
		clEnqueueCopyBuffer(queue, m, m, 0, 32, 4, 0, NULL, NULL);
		clEnqueueMarkerWithWaitList(queue, 0, NULL, &events[i]);
	}
	printf("finished %d\n", clFinish(queue));
	return 0;
}

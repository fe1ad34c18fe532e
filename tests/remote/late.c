// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers until the server gives no more memory. A creation that is put off succeeds here; the
 * error must then come with each use of the buffer: in a write, and, through a kernel's argument
 * and a launch that are put off, in the next call that waits, and in events.
 */
#include "common.h"

#define SIZE	(1u << 18)
#define MOST	64

static const char source[] = "kernel void put(global int *a) { a[0] = 1; }\n";

int main(void)
{
	static char memory[SIZE];
	cl_int status = 0, at_create = 0, set, launched, finished, again, failed, waited;
	cl_event event = NULL;
	const size_t one = 1;
	cl_mem m[MOST], good_one;
	cl_kernel put;
	int n;

	cl_open(source, 0);
	put = cl_kernel_of("put");
	good_one = cl_buffer(0, 64, NULL);
	cl_arg(put, 0, sizeof(good_one), &good_one);
	CL(clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, NULL));
	CL(clFinish(queue));
	for (n = 0; n < MOST; n++) {
		m[n] = clCreateBuffer(context, 0, SIZE, NULL, &at_create);
		if (at_create)
			break;
		status = clEnqueueWriteBuffer(queue, m[n], CL_TRUE, 0, SIZE, memory, 0, NULL, NULL);
		if (status)
			break;
	}
	printf("buffers %d, error %d\n", n, at_create ? at_create : status);
	if (!at_create) {
		set = clSetKernelArg(put, 0, sizeof(cl_mem), &m[n]);
		launched = clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, &event);
		failed = 0;
		waited = event ? clWaitForEvents(1, &event) : -9999;
		if (event)
			clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(failed),
				       &failed, NULL);
		finished = clFinish(queue);
		again = clFinish(queue);
		printf("set %d, launched %d, event %d, waited %d, finished %d, again %d\n", set,
		       launched, failed, waited, finished, again);
		if (event)
			CL(clReleaseEvent(event));
		/* All is well with another argument. */
		cl_arg(put, 0, sizeof(good_one), &good_one);
		CL(clEnqueueNDRangeKernel(queue, put, 1, NULL, &one, NULL, 0, NULL, NULL));
		CL(clReleaseMemObject(m[n]));
	}
	CL(clFinish(queue));
	while (n--)
		CL(clReleaseMemObject(m[n]));
	/* Memory that was released can be had again. */
	m[0] = cl_buffer(0, SIZE, NULL);
	CL(clEnqueueWriteBuffer(queue, m[0], CL_TRUE, 0, SIZE, memory, 0, NULL, NULL));
	CL(clReleaseMemObject(m[0]));
	CL(clReleaseMemObject(good_one));
	CL(clReleaseKernel(put));
	cl_close();
	puts("released");
	return 0;
}

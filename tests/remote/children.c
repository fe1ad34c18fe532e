// SPDX-License-Identifier: GPL-2.0-only
/* A child of a program that uses OpenCL gets errors; the program goes on. */
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

static void CL_CALLBACK told(cl_event event, cl_int status, void *data)
{
	(void)event;
	(void)status;
	(void)data;
}

/* Bytes that go through shared memory, which a child does not have. */
#define LARGE	(256u << 10)

int main(void)
{
	static char large[LARGE];
	int value = 7, result = 0, status;
	cl_event event;
	cl_mem m, more;
	pid_t pid;

	cl_open(NULL, 0);
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(value), &value);
	more = cl_buffer(CL_MEM_READ_WRITE, LARGE, NULL);
	event = clCreateUserEvent(context, &err);
	good(err, "clCreateUserEvent");
	CL(clSetEventCallback(event, CL_COMPLETE, told, NULL));
	pid = fork();
	if (!pid) {
		alarm(10);
		result = clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(value), &value, 0, NULL,
					     NULL);
		clReleaseMemObject(m);
		_exit(result == CL_DEVICE_NOT_AVAILABLE && clFinish(queue) == result &&
		      clEnqueueWriteBuffer(queue, more, CL_TRUE, 0, LARGE, large, 0, NULL,
					   NULL) == result &&
		      clEnqueueReadBuffer(queue, more, CL_TRUE, 0, LARGE, large, 0, NULL,
					  NULL) == result &&
		      clSetEventCallback(event, CL_COMPLETE, told, NULL) == result ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	CL(clSetUserEventStatus(event, CL_COMPLETE));
	CL(clReleaseEvent(event));
	printf("child: %s\n", status ? "other" : "not available");
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(result), &result, 0, NULL, NULL));
	printf("read %d\n", result);
	CL(clReleaseMemObject(more));
	CL(clReleaseMemObject(m));
	cl_close();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Events: of the user, waited for by another thread, called back; and two threads that enqueue. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "common.h"

static const char source[] =
	"kernel void count(global int *a, int n) { a[get_global_id(0)] += n; }\n";

static sem_t called;
static cl_int called_status;

static void on_event(cl_event event, cl_int status, void *data)
{
	(void)event;
	called_status = status + *(cl_int *)data;
	sem_post(&called);
}

static void *set_later(void *event)
{
	usleep(100000);
	CL(clSetUserEventStatus(event, CL_COMPLETE));
	return NULL;
}

/* Has a kernel, a queue and a buffer of its own. */
static void *enqueue_many(void *result)
{
	cl_command_queue own = clCreateCommandQueue(context, device, 0, &err);
	cl_kernel k = clCreateKernel(program, "count", NULL);
	cl_int zero = 0, last = 0;
	const size_t one = 1;
	cl_mem m;

	m = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero, NULL);
	cl_arg(k, 0, sizeof(m), &m);
	for (cl_int i = 0; i < 300; i++) {
		cl_arg(k, 1, sizeof(i), &i);
		CL(clEnqueueNDRangeKernel(own, k, 1, NULL, &one, NULL, 0, NULL, NULL));
		if (i % 50 == 0)
			CL(clEnqueueReadBuffer(own, m, CL_TRUE, 0, sizeof(last), &last, 0, NULL,
					       NULL));
	}
	CL(clEnqueueReadBuffer(own, m, CL_TRUE, 0, sizeof(last), &last, 0, NULL, NULL));
	CL(clReleaseMemObject(m));
	CL(clReleaseKernel(k));
	CL(clReleaseCommandQueue(own));
	*(cl_int *)result = last;
	return NULL;
}

int main(void)
{
	cl_int zero = 0, n = 5, result = 0, status, offset = 1000, sums[2];
	cl_event user, done, failed;
	const size_t one = 1;
	pthread_t thread, threads[2];
	cl_kernel count;
	cl_uint refs;
	cl_mem m;

	cl_open(source, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	sem_init(&called, 0, 0);
	count = cl_kernel_of("count");
	m = cl_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
	cl_arg(count, 0, sizeof(m), &m);
	cl_arg(count, 1, sizeof(n), &n);

	/* A read waits for a kernel, the kernel for another thread. */
	user = clCreateUserEvent(context, &err);
	good(err, "clCreateUserEvent");
	CL(clEnqueueNDRangeKernel(queue, count, 1, NULL, &one, NULL, 1, &user, &done));
	CL(clSetEventCallback(done, CL_COMPLETE, on_event, &offset));
	CL(clFlush(queue));
	CL(clGetEventInfo(user, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
	printf("user event %d\n", status);
	pthread_create(&thread, NULL, set_later, user);
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(result), &result, 1, &done, NULL));
	printf("result %d\n", result);
	pthread_join(thread, NULL);
	sem_wait(&called);
	printf("called back with %d\n", called_status);
	CL(clGetEventInfo(done, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	CL(clReleaseEvent(done));
	CL(clReleaseEvent(user));

	/* An event that fails. */
	failed = clCreateUserEvent(context, &err);
	CL(clSetUserEventStatus(failed, -5));
	CL(clGetEventInfo(failed, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			  NULL));
	printf("failed event %d, waited for %d\n", status, clWaitForEvents(1, &failed));
	CL(clReleaseEvent(failed));

	CL(clEnqueueMarkerWithWaitList(queue, 0, NULL, &done));
	CL(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
	CL(clWaitForEvents(1, &done));
	CL(clReleaseEvent(done));

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, enqueue_many, &sums[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("threads %d %d\n", sums[0], sums[1]);
	CL(clReleaseKernel(count));
	CL(clReleaseMemObject(m));
	cl_close();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Buffers that are mapped: of the device, and in the program's memory. */
#include <unistd.h>

#include "common.h"

#define N	4096u

static const char source[] =
	"kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }\n";

static volatile int destroyed;

static void on_destroyed(cl_mem m, void *data)
{
	(void)m;
	destroyed = destroyed * 10 + *(int *)data;
}

static void run(cl_kernel twice, cl_mem m)
{
	const size_t n = N;

	cl_arg(twice, 0, sizeof(m), &m);
	CL(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &n, NULL, 0, NULL, NULL));
}

int main(void)
{
	static int memory[N] __attribute__((aligned(4096)));
	int first = 1, second = 2, *p, sum = 0;
	cl_command_type type;
	cl_uint count, refs;
	cl_event event;
	cl_kernel twice;
	void *host;
	cl_mem m;

	cl_open(source, 0);
	twice = cl_kernel_of("twice");

	m = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, sizeof(memory), NULL);
	p = clEnqueueMapBuffer(queue, m, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, sizeof(memory),
			       0, NULL, NULL, &err);
	good(err, "clEnqueueMapBuffer");
	for (int i = 0; i < (int)N; i++)
		p[i] = i;
	CL(clGetMemObjectInfo(m, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL));
	printf("map count %u\n", count);
	CL(clEnqueueUnmapMemObject(queue, m, p, 0, NULL, NULL));
	run(twice, m);
	p = clEnqueueMapBuffer(queue, m, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 400, 800, 0, NULL,
			       &event, &err);
	good(err, "clEnqueueMapBuffer");
	CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
	printf("command is a map: %s\n", type == CL_COMMAND_MAP_BUFFER ? "yes" : "no");
	CL(clWaitForEvents(1, &event));
	CL(clReleaseEvent(event));
	printf("mapped %016llx\n", (unsigned long long)digest(p, 800));
	p[0] = 7;
	CL(clEnqueueUnmapMemObject(queue, m, p, 0, NULL, NULL));
	/* A map that is given up before it is there changes nothing. */
	p = clEnqueueMapBuffer(queue, m, CL_FALSE, CL_MAP_WRITE, 0, 400, 0, NULL, NULL, &err);
	good(err, "clEnqueueMapBuffer");
	CL(clEnqueueUnmapMemObject(queue, m, p, 0, NULL, NULL));
	run(twice, m);
	CL(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, sizeof(memory), memory, 0, NULL, NULL));
	printf("all %016llx\n", (unsigned long long)digest(memory, sizeof(memory)));
	CL(clSetMemObjectDestructorCallback(m, on_destroyed, &first));
	CL(clSetMemObjectDestructorCallback(m, on_destroyed, &second));
	CL(clRetainMemObject(m));
	CL(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof(refs), &refs, NULL));
	/* Commands that have ended may have some still. */
	printf("two references at least: %s\n", refs >= 2 ? "yes" : "no");
	CL(clReleaseMemObject(m));
	CL(clFinish(queue));
	CL(clReleaseKernel(twice));
	CL(clReleaseMemObject(m));
	for (int i = 0; i < 5000 && destroyed < 10; i++)
		usleep(1000);
	printf("destroyed %d\n", destroyed);

	twice = cl_kernel_of("twice");
	m = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof(memory), memory);
	CL(clGetMemObjectInfo(m, CL_MEM_HOST_PTR, sizeof(host), &host, NULL));
	run(twice, m);
	p = clEnqueueMapBuffer(queue, m, CL_TRUE, CL_MAP_READ, 0, sizeof(memory), 0, NULL, NULL,
			       &err);
	good(err, "clEnqueueMapBuffer");
	printf("in place: %s %s\n", p == memory ? "yes" : "no", host == memory ? "yes" : "no");
	for (int i = 0; i < (int)N; i++)
		sum += memory[i];
	printf("sum %d\n", sum);
	CL(clEnqueueUnmapMemObject(queue, m, p, 0, NULL, NULL));
	CL(clFinish(queue));
	CL(clReleaseMemObject(m));
	CL(clReleaseKernel(twice));
	cl_close();
	return 0;
}

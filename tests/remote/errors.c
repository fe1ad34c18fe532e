// SPDX-License-Identifier: GPL-2.0-only
/* Calls that fail, at once and with the error that they have without a server between. */
#include "common.h"

static const char source[] =
	"kernel void two(global int *a, int n) { a[get_global_id(0)] = n; }\n"
	"kernel void other(global float *a) { a[0] = 1; }\n";

int main(void)
{
	const char *broken = "kernel void two(global int *a { }";
	const size_t one = 1, odd = 7, four = 4, huge = (size_t)1 << 50;
	size_t len, sizes[1];
	unsigned char *binaries[1];
	const unsigned char *binary;
	char text[4096];
	cl_kernel two, kernels[4];
	cl_int value = 1, status;
	cl_program bad, again;
	cl_event event;
	cl_mem m;
	cl_uint n;

	cl_open(source, 0);
	two = cl_kernel_of("two");
	m = cl_buffer(CL_MEM_READ_WRITE, 64, NULL);

	printf("buffer of nothing: %s\n", clCreateBuffer(context, 0, 0, NULL, &err) ? "made" : "none");
	printf("  error %d\n", err);
	printf("buffer without memory: %s\n",
	       clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 64, NULL, &err) ? "made" : "none");
	printf("  error %d\n", err);
	clCreateKernel(program, "three", &err);
	printf("unknown kernel: %d\n", err);
	printf("argument 5: %d\n", clSetKernelArg(two, 5, sizeof(value), &value));
	printf("argument of 3 bytes: %d\n", clSetKernelArg(two, 1, 3, &value));
	/* Before and after the kernel has been launched. */
	for (int i = 0; i < 2; i++) {
		if (!i)
			printf("launch without arguments: %d\n",
			       clEnqueueNDRangeKernel(queue, two, 1, NULL, &one, NULL, 0, NULL,
						      NULL));
		cl_arg(two, 0, sizeof(m), &m);
		cl_arg(two, 1, sizeof(value), &value);
		CL(clEnqueueNDRangeKernel(queue, two, 1, NULL, &four, NULL, 0, NULL, NULL));
		printf("groups that do not fit: %d\n",
		       clEnqueueNDRangeKernel(queue, two, 1, NULL, &one, &huge, 0, NULL, NULL));
		printf("no dimension: %d\n",
		       clEnqueueNDRangeKernel(queue, two, 0, NULL, &odd, NULL, 0, NULL, NULL));
		printf("read past the end: %d\n",
		       clEnqueueReadBuffer(queue, m, CL_TRUE, 60, 8, text, 0, NULL, NULL));
		printf("write past the end: %d\n",
		       clEnqueueWriteBuffer(queue, m, CL_FALSE, huge, 8, text, 0, NULL, NULL));
		printf("copy past the end: %d\n",
		       clEnqueueCopyBuffer(queue, m, m, 0, 32, 40, 0, NULL, NULL));
		printf("fill by threes: %d\n",
		       clEnqueueFillBuffer(queue, m, text, 3, 0, 6, 0, NULL, NULL));
	}
	printf("NULL queue: %d\n", clFinish(NULL));
	printf("wait for nothing: %d\n", clWaitForEvents(0, NULL));
	printf("list of no events: %d\n", clEnqueueMarkerWithWaitList(queue, 1, NULL, NULL));
	printf("unknown question: %d\n", clGetDeviceInfo(device, 0xffff, sizeof(text), text, NULL));
	printf("short answer: %d\n", clGetDeviceInfo(device, CL_DEVICE_NAME, 1, text, NULL));
	CL(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
	CL(clFinish(queue));
	printf("profile without profiling: %d\n",
	       clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(text), text, NULL));
	CL(clReleaseEvent(event));

	CL(clGetKernelArgInfo(two, 0, CL_KERNEL_ARG_TYPE_NAME, sizeof(text), text, NULL));
	printf("argument is a %s\n", text);
	bad = clCreateProgramWithSource(context, 1, &broken, NULL, &err);
	good(err, "clCreateProgramWithSource");
	printf("broken program: %d\n", clBuildProgram(bad, 0, NULL, NULL, NULL, NULL));
	CL(clGetProgramBuildInfo(bad, device, CL_PROGRAM_BUILD_LOG, sizeof(text), text, &len));
	printf("its log says error: %s\n", strstr(text, "error") ? "yes" : "no");
	CL(clReleaseProgram(bad));

	CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL));
	binaries[0] = malloc(sizes[0]);
	CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binaries), binaries, NULL));
	binary = binaries[0];
	again = clCreateProgramWithBinary(context, 1, &device, sizes, &binary, &status, &err);
	good(err, "clCreateProgramWithBinary");
	CL(clBuildProgram(again, 0, NULL, "", NULL, NULL));
	CL(clCreateKernelsInProgram(again, 4, kernels, &n));
	printf("kernels %u, status %d\n", n, status);
	for (cl_uint i = 0; i < n; i++) {
		CL(clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof(text), text, NULL));
		printf("  %s\n", text);
		CL(clReleaseKernel(kernels[i]));
	}
	CL(clReleaseProgram(again));
	free(binaries[0]);
	CL(clReleaseMemObject(m));
	CL(clReleaseKernel(two));
	cl_close();
	return 0;
}

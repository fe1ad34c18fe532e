// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loops with calls of OpenCL and of CUDA's driver API, for the analysis of mgpu-defer.
 *
 * A function's name begins with what is true of its loops, whatever a compiler makes of them:
 *
 *   c1_	class 1: every argument of every call, and the memory it points to, is the same in
 *		every iteration; no result of a call is read in the loop. Whether a call happens
 *		may depend on host data.
 *   c2_	class 2: as class 1, but some arguments are a * i + b in the iteration's number i,
 *		or memory that a call reads changes from iteration to iteration, in any way
 *   c3_	class 3: handles that calls return are arguments of later calls, as they are or with
 *		a constant or a * i added; the host does nothing else with them in the loop
 *   n1_ n2_	an inner loop of that class; the one around it is of that class, too, or of none
 *   s1_ s2_ s3_	the loop is left when a call fails: not deferrable as it stands, and of that
 *		class if all calls are assumed to succeed
 *   c0_	not deferrable
 *   u1_	class 1 or none: the binary does not tell, and the comparison of each call with
 *		what was predicted has to
 *
 * Only the analysis reads this program; it is never run.
 */
#include "gpu.h"

struct gpu {
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel, other;
	cl_mem a, b;
};

cl_command_queue queue;
cl_kernel kernel;
cl_mem buffer;
cl_event last_event;
int stride;

/* ---- class 1 ---- */

void c1_launch(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++)
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c1_launch_sizes(cl_command_queue q, cl_kernel k, size_t w, size_t h, int times)
{
	size_t global[2] = { w, h }, local[2] = { 8, 8 };

	for (int i = 0; i < times; i++)
		clEnqueueNDRangeKernel(q, k, 2, NULL, global, local, 0, NULL, NULL);
}

void c1_two_kernels(cl_command_queue q, cl_kernel k, cl_kernel j, int times)
{
	size_t n = 1024;

	while (times-- > 0) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueNDRangeKernel(q, j, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c1_in_struct(const struct gpu *g, const size_t *n, unsigned int times)
{
	for (unsigned int i = 0; i != times; i++) {
		clEnqueueNDRangeKernel(g->queue, g->kernel, 1, NULL, n, NULL, 0, NULL, NULL);
		clEnqueueNDRangeKernel(g->queue, g->other, 1, NULL, n, NULL, 0, NULL, NULL);
	}
}

void c1_globals(size_t n, int times)
{
	for (int i = 0; i < times; i++)
		clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c1_do_while(cl_command_queue q, cl_mem a, cl_mem b, long times)
{
	do
		clEnqueueCopyBuffer(q, a, b, 0, 4096, 65536, 0, NULL, NULL);
	while (--times);
}

void c1_fill(cl_command_queue q, cl_mem a, int times)
{
	const cl_uint pattern = 0x12345678;

	for (int i = 0; i < times; i++) {
		clEnqueueFillBuffer(q, a, &pattern, sizeof(pattern), 0, 4096, 0, NULL, NULL);
		clEnqueueBarrierWithWaitList(q, 0, NULL, NULL);
	}
}

void c1_now_and_then(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++)
		if (i & 1)
			clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c1_either(cl_command_queue q, cl_kernel k, cl_kernel j, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		if (i % 3)
			clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		else
			clEnqueueNDRangeKernel(q, j, 2, NULL, (size_t[]){ 8, 8 }, NULL, 0, NULL,
					       NULL);
	}
}

void c1_nested(cl_command_queue q, cl_kernel k, size_t n, int rows, int columns)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++)
			clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c1_upload(cl_command_queue q, cl_kernel k, cl_mem a, const float *data, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueWriteBuffer(q, a, CL_FALSE, 0, n * 4, data, 0, NULL, NULL);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c1_read_unseen(cl_command_queue q, cl_kernel k, cl_mem a, float *out, int times)
{
	size_t n = 256;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, a, CL_FALSE, 0, 1024, out, 0, NULL, NULL);
	}
}

void c1_blocking_unseen(cl_command_queue q, cl_kernel k, cl_mem a, double *out, int times)
{
	size_t n = 256;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 8, out, 0, NULL, NULL);
	}
}

float c1_read_after(cl_command_queue q, cl_kernel k, cl_mem a, int times)
{
	float out[4] = { 0 };
	size_t n = 256;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL);
	}
	return out[0] + out[3];
}

int c1_last_status(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	int err = 0;

	for (int i = 0; i < times; i++)
		err = clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	return err;
}

void c1_until_told(cl_command_queue q, cl_kernel k, const char *stop, int times)
{
	size_t n = 64;

	for (int i = 0; i < times; i++) {
		if (stop[i])
			break;
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c1_cuda_launch(CUfunction f, CUdeviceptr a, int n, int times)
{
	void *params[] = { &a, &n };

	for (int i = 0; i < times; i++)
		cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
}

void c1_cuda_memset(CUdeviceptr a, CUdeviceptr b, size_t n, CUstream s, int times)
{
	for (int i = 0; i < times; i++) {
		cuMemsetD8Async(a, 0, n, s);
		cuMemcpyDtoD_v2(b, a, n);
	}
}

void c1_setarg(cl_command_queue q, cl_kernel k, cl_mem a, int times)
{
	size_t n = 64;

	for (int i = 0; i < times; i++) {
		clSetKernelArg(k, 0, sizeof(a), &a);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

/* ---- class 2 ---- */

void c2_index(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		clSetKernelArg(k, 1, sizeof(i), &i);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_offset(cl_command_queue q, cl_mem a, const char *data, size_t size, int times)
{
	for (int i = 0; i < times; i++)
		clEnqueueWriteBuffer(q, a, CL_FALSE, i * size, size, data + i * size, 0, NULL,
				     NULL);
}

void c2_copy(cl_command_queue q, cl_mem a, cl_mem b, int times)
{
	for (int i = 0; i < times; i++)
		clEnqueueCopyBuffer(q, a, b, i * 256, i * 512 + 64, 256, 0, NULL, NULL);
}

void c2_step_two(cl_command_queue q, cl_mem a, cl_mem b, size_t end)
{
	for (size_t i = 0; i < end; i += 2)
		clEnqueueCopyBuffer(q, a, b, i, i, 2, 0, NULL, NULL);
}

void c2_downwards(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = times; i > 0; i--) {
		clSetKernelArg(k, 0, sizeof(i), &i);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_stride(cl_command_queue q, cl_mem a, cl_mem b, size_t step, size_t end)
{
	for (size_t at = 0; at < end; at += step)
		clEnqueueCopyBuffer(q, a, b, at, 0, step, 0, NULL, NULL);
}

void c2_work_offset(cl_command_queue q, cl_kernel k, size_t tiles)
{
	size_t size = 64;

	for (size_t i = 0; i < tiles; i++) {
		size_t offset = i * 64;

		clEnqueueNDRangeKernel(q, k, 1, &offset, &size, NULL, 0, NULL, NULL);
	}
}

void c2_pattern(cl_command_queue q, cl_mem a, int times)
{
	for (cl_int i = 0; i < times; i++)
		clEnqueueFillBuffer(q, a, &i, sizeof(i), 0, 4096, 0, NULL, NULL);
}

void n2_tiles(cl_command_queue q, cl_mem a, cl_mem b, int rows, int columns)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++)
			clEnqueueCopyBuffer(q, a, b, i * 4096 + j * 64, j * 64, 64, 0, NULL, NULL);
}

void n2_rows(cl_command_queue q, cl_kernel k, size_t n, int rows, int columns)
{
	for (int i = 0; i < rows; i++) {
		clSetKernelArg(k, 0, sizeof(i), &i);
		for (int j = 0; j < columns; j++) {
			clSetKernelArg(k, 1, sizeof(j), &j);
			clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		}
	}
}

void c2_filled(cl_command_queue q, cl_kernel k, cl_mem a, float *data, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		for (size_t j = 0; j < n; j++)
			data[j] = (float)(i + j);
		clEnqueueWriteBuffer(q, a, CL_FALSE, 0, n * 4, data, 0, NULL, NULL);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_cuda_upload(CUdeviceptr d, const char *h, size_t size, CUstream s, int times)
{
	for (int i = 0; i < times; i += 2)
		cuMemcpyHtoDAsync_v2(d + i * size, h + i * size, size, s);
}

void c2_cuda_launch(CUfunction f, CUdeviceptr a, int times)
{
	for (int i = 0; i < times; i++) {
		void *params[] = { &a, &i };

		cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
	}
}

void c2_walk(cl_command_queue q, cl_mem a, const char *p, const char *end)
{
	size_t at = 0;

	for (; p < end; p += 4096, at += 4096)
		clEnqueueWriteBuffer(q, a, CL_FALSE, at, 4096, p, 0, NULL, NULL);
}

void c2_now_and_then(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		if (i % 3 == 0)
			continue;
		clSetKernelArg(k, 0, sizeof(i), &i);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_read_unseen(cl_command_queue q, cl_kernel k, cl_mem a, char *out, int times)
{
	size_t n = 256;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 64, out + 64 * i, 0, NULL, NULL);
	}
}

void c2_time(cl_command_queue q, cl_kernel k, size_t n, float dt, int times)
{
	for (int i = 0; i < times; i++) {
		float t = (float)i * dt;

		clSetKernelArg(k, 2, sizeof(t), &t);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_sine(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		double t = sin((double)i);

		clSetKernelArg(k, 2, sizeof(t), &t);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_global_stride(cl_mem a, cl_mem b, int end)
{
	for (int at = 0; at < end; at += stride)
		clEnqueueCopyBuffer(queue, a, b, (size_t)at, 0, 64, 0, NULL, NULL);
}

void c2_struct(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		struct { int step, of; } both = { i, times };

		clSetKernelArg(k, 0, sizeof(both), &both);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_narrow(cl_command_queue q, cl_mem a, cl_mem b, unsigned int first, unsigned int last)
{
	for (unsigned int i = first; i <= last; i++)
		clEnqueueCopyBuffer(q, a, b, (cl_ulong)i << 4, 16 * (size_t)(last - i), 16, 0, NULL,
				    NULL);
}

/* ---- class 3 ---- */

void c3_scratch(const struct gpu *g, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem m = clCreateBuffer(g->context, CL_MEM_READ_WRITE, 4096, NULL, NULL);

		clSetKernelArg(g->kernel, 0, sizeof(m), &m);
		clEnqueueNDRangeKernel(g->queue, g->kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
}

void c3_unchecked(cl_context c, cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		cl_int err;
		cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, &err);

		clSetKernelArg(k, 0, sizeof(m), &m);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
}

void c3_cuda_scratch(CUfunction f, CUdeviceptr out, size_t size, int times)
{
	for (int i = 0; i < times; i++) {
		CUdeviceptr p;
		void *params[] = { &p, &out };

		cuMemAlloc_v2(&p, size);
		cuMemsetD32_v2(p, 0, size / 4);
		cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
		cuMemFree_v2(p);
	}
}

void c3_chain(cl_command_queue q, cl_kernel k, cl_kernel j, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		cl_event done;

		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, &done);
		clEnqueueNDRangeKernel(q, j, 1, NULL, &n, NULL, 1, &done, NULL);
		clReleaseEvent(done);
	}
}

void c3_chain_on(cl_command_queue q, cl_kernel k, cl_event done, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		cl_event next;

		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 1, &done, &next);
		clReleaseEvent(done);
		done = next;
	}
	clReleaseEvent(done);
}

void c3_part(cl_command_queue q, cl_mem a, cl_mem b, int times)
{
	cl_buffer_region region = { 0, 4096 };

	for (int i = 0; i < times; i++) {
		cl_mem part = clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);

		clEnqueueCopyBuffer(q, part, b, 0, 0, 4096, 0, NULL, NULL);
		clReleaseMemObject(part);
	}
}

void c3_part_moves(cl_command_queue q, cl_mem a, cl_mem b, int times)
{
	for (int i = 0; i < times; i++) {
		cl_buffer_region region = { 4096 * (size_t)i, 4096 };
		cl_mem part = clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);

		clEnqueueCopyBuffer(q, part, b, 0, 0, 4096, 0, NULL, NULL);
		clReleaseMemObject(part);
	}
}

void c3_kernel(cl_command_queue q, cl_program p, cl_mem a, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		cl_kernel k = clCreateKernel(p, "step", NULL);

		clSetKernelArg(k, 0, sizeof(a), &a);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clReleaseKernel(k);
	}
}

void c3_cuda_middle(size_t size, int times)
{
	for (int i = 0; i < times; i++) {
		CUdeviceptr p;

		cuMemAlloc_v2(&p, size);
		cuMemsetD32_v2(p + 256, 1, 16);
		cuMemcpyDtoD_v2(p, p + 256, 64);
		cuMemFree_v2(p);
	}
}

void c3_growing(cl_context c, cl_command_queue q, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096 * ((size_t)i + 1), NULL, NULL);

		clEnqueueCopyBuffer(q, m, m, 0, 2048, 2048, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
}

void c3_cuda_event(CUstream s, int times)
{
	for (int i = 0; i < times; i++) {
		CUevent e;

		cuEventCreate(&e, 0);
		cuEventRecord(e, s);
		cuEventDestroy_v2(e);
	}
}

void c3_cuda_stream(CUdeviceptr a, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		CUstream s;

		cuStreamCreate(&s, 1);
		cuMemsetD8Async(a, 7, n, s);
		cuStreamDestroy_v2(s);
	}
}

cl_mem c3_last_one(cl_context c, cl_command_queue q, cl_mem a, int times)
{
	cl_mem m = NULL;

	for (int i = 0; i < times; i++) {
		m = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, NULL);
		clEnqueueCopyBuffer(q, a, m, 0, 0, 4096, 0, NULL, NULL);
	}
	return m;
}

/* ---- deferrable if calls succeed ---- */

int s1_checked(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	int err;

	for (int i = 0; i < times; i++) {
		err = clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		if (err != CL_SUCCESS)
			return err;
	}
	return 0;
}

int s2_checked(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		if (clSetKernelArg(k, 0, sizeof(i), &i))
			return -1;
		if (clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL))
			return -2;
	}
	return 0;
}

int s3_checked(cl_context c, cl_command_queue q, cl_mem a, int times)
{
	for (int i = 0; i < times; i++) {
		cl_int err;
		cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, &err);

		if (err)
			return err;
		err = clEnqueueCopyBuffer(q, a, m, 0, 0, 4096, 0, NULL, NULL);
		if (err)
			return err;
		clReleaseMemObject(m);
	}
	return 0;
}

/* ---- not deferrable ---- */

float c0_converges(cl_command_queue q, cl_kernel k, cl_mem a, float eps)
{
	size_t n = 1024;
	float e;

	do {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, sizeof(e), &e, 0, NULL, NULL);
	} while (e > eps);
	return e;
}

void c0_cuda_flag(CUfunction f, CUdeviceptr flag, void **params)
{
	int again = 1;

	while (again) {
		cuMemsetD32_v2(flag, 0, 1);
		cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
		cuMemcpyDtoH_v2(&again, flag, sizeof(again));
	}
}

void c0_finish(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clFinish(q);
	}
}

void c0_cuda_synchronize(CUfunction f, void **params, int times)
{
	for (int i = 0; i < times; i++) {
		cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
		cuCtxSynchronize();
	}
}

void c0_prints(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		printf("step %d\n", i);
	}
}

void c0_called_back(cl_command_queue q, cl_kernel k, size_t n, void (*f)(int), int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		f(i);
	}
}

void c0_elsewhere(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	int x = 0;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		elsewhere(x);
	}
}

__attribute__((noinline)) static int launched(cl_command_queue q, cl_kernel k, size_t n)
{
	return clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c1_own_function(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++)
		launched(q, k, n);
}

__attribute__((noinline)) static int flushed(cl_command_queue q)
{
	return clFlush(q);
}

void c1_tail_call(cl_command_queue q, int times)
{
	for (int i = 0; i < times; i++)
		flushed(q);
}

__attribute__((noinline)) static int waited(cl_command_queue q, int really)
{
	return really ? clFinish(q) : clFlush(q);
}

void c0_waits_elsewhere(cl_command_queue q, cl_kernel k, size_t n, int really, int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		waited(q, really);
	}
}

__attribute__((noinline)) static cl_mem made(cl_context c, size_t size)
{
	return clCreateBuffer(c, CL_MEM_READ_WRITE, size, NULL, NULL);
}

void c3_made_elsewhere(cl_context c, cl_command_queue q, cl_mem a, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem m = made(c, 4096), n = made(c, 8192);

		clEnqueueCopyBuffer(q, a, m, 0, 0, 4096, 0, NULL, NULL);
		clEnqueueCopyBuffer(q, m, n, 0, 0, 4096, 0, NULL, NULL);
		clReleaseMemObject(m);
		clReleaseMemObject(n);
	}
}

__attribute__((noinline)) static void cleared(CUdeviceptr p)
{
	cuMemsetD8_v2(p, 0, 64);
}

void c0_cleared_elsewhere(CUdeviceptr first, int times)
{
	/* In the inner loop the function gets another argument than the first time. */
	for (int i = 0; i < times; i++) {
		CUdeviceptr p = first, made;

		for (int j = 0; j < 8; j++) {
			cleared(p);
			cuMemAlloc_v2(&made, 64);
			p = first ^ (made & 4096);
		}
	}
}

__attribute__((noinline)) static void retried(cl_command_queue q, cl_kernel k, size_t n)
{
	while (launched(q, k, n))
		;
}

void c0_own_function(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++)
		retried(q, k, n);
}

void c0_table(cl_command_queue q, cl_mem a, cl_mem b, const size_t *offset, int times)
{
	for (int i = 0; i < times; i++)
		clEnqueueCopyBuffer(q, a, b, offset[i], 0, 64, 0, NULL, NULL);
}

void c0_random(cl_command_queue q, cl_mem a, cl_mem b, unsigned int seed, int times)
{
	for (int i = 0; i < times; i++) {
		seed = seed * 1664525 + 1013904223;
		clEnqueueCopyBuffer(q, a, b, (seed >> 8) & 0xffc0, 0, 64, 0, NULL, NULL);
	}
}

void c0_events(cl_command_queue q, cl_kernel k, size_t n, cl_event *events, int times)
{
	for (int i = 0; i < times; i++)
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 1, &events[i], &events[i + 1]);
}

void c0_kept(cl_context c, cl_mem *list, int times)
{
	for (int i = 0; i < times; i++)
		list[i] = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, NULL);
}

double c0_sums(cl_command_queue q, cl_kernel k, cl_mem a, float *out, int times)
{
	size_t n = 64;
	double sum = 0;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 4, out, 0, NULL, NULL);
		sum += out[0];
	}
	return sum;
}

void c0_other_pointer(cl_command_queue q, cl_mem a, float *out, const float *in, float *sum,
		      int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 4096, out, 0, NULL, NULL);
		sum[i] = in[i];
	}
}

double c0_previous(cl_command_queue q, cl_mem a, float *out, int times)
{
	double sum = 0;

	for (int i = 1; i <= times; i++) {
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 64, out + 16 * i, 0, NULL, NULL);
		sum += out[16 * i - 16];
	}
	return sum;
}

void c0_stack_array(cl_command_queue q, cl_mem a, int *sum, int times)
{
	int out[64];

	for (int i = 0; i < times; i++) {
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL);
		*sum += out[i % 64];
	}
}

cl_int c0_any_error(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	cl_int any = 0;

	for (int i = 0; i < times; i++)
		any |= clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	return any;
}

void CL_CALLBACK finished(cl_event e, cl_int status, void *data);
void CL_CALLBACK finished(cl_event e, cl_int status, void *data)
{
	(void)e;
	*(int *)data = status;
}

void c0_callback(cl_event e, int *data, int times)
{
	for (int i = 0; i < times; i++)
		clSetEventCallback(e, CL_COMPLETE, finished, data + i);
}

void c0_mapped(cl_command_queue q, cl_mem a, int times)
{
	for (int i = 0; i < times; i++) {
		int *p = clEnqueueMapBuffer(q, a, CL_TRUE, CL_MAP_WRITE, 0, 4096, 0, NULL, NULL,
					    NULL);

		p[0] = i;
		clEnqueueUnmapMemObject(q, a, p, 0, NULL, NULL);
	}
}

void c0_global_result(cl_context c, int times)
{
	for (int i = 0; i < times; i++) {
		clReleaseMemObject(buffer);
		buffer = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, NULL);
	}
}

void c0_geometric(cl_command_queue q, cl_mem a, cl_mem b, size_t end)
{
	for (size_t n = 1; n < end; n *= 2)
		clEnqueueCopyBuffer(q, a, b, n, 0, n, 0, NULL, NULL);
}

void c0_turns(cl_command_queue q, cl_mem a, cl_mem b, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem m = a;

		clEnqueueCopyBuffer(q, a, b, 0, 0, 4096, 0, NULL, NULL);
		a = b;
		b = m;
	}
}

void c0_profile(cl_command_queue q, cl_kernel k, size_t n, cl_ulong *ns, int times)
{
	for (int i = 0; i < times; i++) {
		cl_event e;

		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, &e);
		clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof(*ns), &ns[i], NULL);
		clReleaseEvent(e);
	}
}

int c0_counts_failures(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	int failures = 0;

	for (int i = 0; i < times; i++)
		failures += clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL) != 0;
	return failures;
}

void c0_null_handle(cl_context c, cl_command_queue q, cl_mem a, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem m = clCreateBuffer(c, CL_MEM_READ_WRITE, 4096, NULL, NULL);

		if (!m)
			break;
		clEnqueueCopyBuffer(q, a, m, 0, 0, 4096, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
}

void c0_result_as_size(cl_command_queue q, cl_kernel k, cl_mem a, int times)
{
	size_t n = 1;

	for (int i = 0; i < times; i++) {
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 4, &n, 0, NULL, NULL);
		n = n > 64 ? 64 : n;
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c0_overwrites(cl_command_queue q, cl_mem a, int *out, int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueReadBuffer(q, a, CL_TRUE, 0, 4096, out, 0, NULL, NULL);
		out[0] = i;
	}
}

void c0_shared(cl_command_queue q, cl_kernel k, size_t n, int *progress, int times)
{
	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		__atomic_fetch_add(progress, 1, __ATOMIC_SEQ_CST);
	}
}

int main(void)
{
	return 0;
}

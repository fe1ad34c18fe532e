// SPDX-License-Identifier: GPL-2.0-only
/*
 * A second set of loops with calls of OpenCL and of CUDA's driver API, held out: they were
 * written without knowledge of the analysis' source, and the analysis was not changed for them
 * before it was first measured on them (Documentation/deferred.rst has that measurement).
 *
 * The beginnings of the functions' names mean what they do in loops.c.
 *
 * Loops that call neither API do not count. Only the analysis reads this program; it is never
 * run.
 */
#include "gpu.h"

struct sim {
	cl_context context;
	cl_command_queue queue;
	cl_kernel force, move;
	cl_mem pos, vel;
	size_t bodies, group;
	cl_uint step, steps;
};

struct cg {
	CUfunction spmv, dot, axpy;
	CUstream stream;
	CUdeviceptr a, x, r, p, ap;
	unsigned int blocks;
};

struct job {
	struct job *next;
	size_t bytes;
	int urgent;
	cl_event event;
};

struct pool {
	size_t count;
	cl_mem *slot;
	CUdeviceptr block[64];
};

struct vec3 {
	float x, y, z;
};

struct camera {
	struct vec3 eye, look;
	float fov;
};

struct wave {
	float phase, height, decay;
	int frame;
};

enum op { OP_BLUR, OP_COPY, OP_CLEAR, OP_NONE };

cl_command_queue frame_queue;
cl_kernel frame_kernel;
size_t frame_size[2];
int frame_count;
cl_mem newest;

static const float gauss[16] = {
	0.002f, 0.009f, 0.027f, 0.065f, 0.121f, 0.176f, 0.199f, 0.176f,
	0.121f, 0.065f, 0.027f, 0.009f, 0.002f, 0.001f, 0.001f, 0.000f,
};

static inline void launch_1d(cl_command_queue q, cl_kernel k, size_t n)
{
	clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

static inline cl_int set_uint(cl_kernel k, cl_uint index, cl_uint value)
{
	return clSetKernelArg(k, index, sizeof(value), &value);
}

static inline void set_mem(cl_kernel k, cl_uint index, cl_mem mem)
{
	clSetKernelArg(k, index, sizeof(mem), &mem);
}

static inline cl_mem scratch_buffer(cl_context context, size_t bytes)
{
	return clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
}

static inline void grid(CUfunction f, CUstream s, unsigned int blocks, void **params)
{
	cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, s, params, NULL);
}

static inline int passed(cl_int err, const char *what)
{
	if (err == CL_SUCCESS)
		return 1;
	fprintf(stderr, "%s: error %d\n", what, err);
	return 0;
}

#define CL_TRY(call)								\
	do {									\
		cl_int try_err = (call);					\
										\
		if (try_err != CL_SUCCESS) {					\
			fprintf(stderr, "line %d: %d\n", __LINE__, try_err);	\
			return try_err;						\
		}								\
	} while (0)

#define CU_GOTO(call, label)							\
	do {									\
		if ((call) != CUDA_SUCCESS)					\
			goto label;						\
	} while (0)

#define CU_DIE(call)								\
	do {									\
		CUresult die_err = (call);					\
										\
		if (die_err != CUDA_SUCCESS) {					\
			fprintf(stderr, #call " gave %d\n", die_err);		\
			exit(EXIT_FAILURE);					\
		}								\
	} while (0)

/* ---- class 1 ---- */

void c1_nbody(const struct sim *s)
{
	cl_uint left = s->steps;

	while (left-- > 0) {
		clEnqueueNDRangeKernel(s->queue, s->force, 1, NULL, &s->bodies, &s->group,
				       0, NULL, NULL);
		clEnqueueNDRangeKernel(s->queue, s->move, 1, NULL, &s->bodies, &s->group,
				       0, NULL, NULL);
	}
}

/* Two sweeps in an iteration, so that the buffers need not be exchanged */
void c1_jacobi_pairs(cl_command_queue q, cl_kernel k, cl_mem even, cl_mem odd, size_t n,
		     unsigned int pairs)
{
	do {
		clSetKernelArg(k, 0, sizeof(cl_mem), &even);
		clSetKernelArg(k, 1, sizeof(cl_mem), &odd);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clSetKernelArg(k, 0, sizeof(cl_mem), &odd);
		clSetKernelArg(k, 1, sizeof(cl_mem), &even);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	} while (--pairs);
}

void c1_cg_fixed(struct cg *c, unsigned int iterations)
{
	void *spmv[] = { &c->a, &c->p, &c->ap };
	void *dot[] = { &c->p, &c->ap };
	void *axpy[] = { &c->x, &c->r, &c->p, &c->ap };

	for (unsigned int i = 0; i < iterations; i++) {
		cuLaunchKernel(c->spmv, c->blocks, 1, 1, 256, 1, 1, 0, c->stream, spmv, NULL);
		cuLaunchKernel(c->dot, c->blocks, 1, 1, 256, 1, 1, 1024, c->stream, dot, NULL);
		cuLaunchKernel(c->axpy, c->blocks, 1, 1, 256, 1, 1, 0, c->stream, axpy, NULL);
	}
}

void c1_job_list(cl_command_queue q, cl_kernel k, size_t n, const struct job *head)
{
	for (const struct job *j = head; j; j = j->next)
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c1_urgent_jobs(cl_command_queue q, cl_kernel k, cl_mem mailbox, size_t n,
		    const struct job *head)
{
	const cl_uint zero = 0;

	for (const struct job *j = head; j; j = j->next) {
		if (!j->urgent)
			continue;
		clEnqueueFillBuffer(q, mailbox, &zero, sizeof(zero), 0, 256, 0, NULL, NULL);
		launch_1d(q, k, n);
	}
}

void c1_until_marker(CUfunction f, CUstream s, CUdeviceptr state, const short *script, size_t len)
{
	void *params[1] = { &state };

	for (size_t i = 0; i < len; i++) {
		if (script[i] < 0)
			break;
		if (script[i] & 1)
			grid(f, s, 64, params);
	}
}

/* A producer's and a consumer's stream: the device waits, not the host */
void c1_two_streams(CUfunction make, CUfunction use, CUstream s0, CUstream s1, CUevent full,
		    CUevent empty, CUdeviceptr box, int rounds)
{
	void *params[] = { &box };
	int round = 0;

	while (round++ < rounds) {
		cuStreamWaitEvent(s0, empty, 0);
		cuLaunchKernel(make, 32, 1, 1, 256, 1, 1, 0, s0, params, NULL);
		cuEventRecord(full, s0);
		cuStreamWaitEvent(s1, full, 0);
		cuLaunchKernel(use, 32, 1, 1, 256, 1, 1, 0, s1, params, NULL);
		cuEventRecord(empty, s1);
	}
}

void c1_script_switch(cl_command_queue q, cl_kernel blur, cl_mem src, cl_mem dst, size_t w,
		      size_t h, const enum op *ops, size_t count)
{
	const size_t area[2] = { w, h };
	const unsigned char black = 0;

	for (size_t i = 0; i < count; i++) {
		switch (ops[i]) {
		case OP_BLUR:
			clEnqueueNDRangeKernel(q, blur, 2, NULL, area, NULL, 0, NULL, NULL);
			break;
		case OP_COPY:
			clEnqueueCopyBuffer(q, src, dst, 0, 0, w * h, 0, NULL, NULL);
			break;
		case OP_CLEAR:
			clEnqueueFillBuffer(q, dst, &black, 1, 0, w * h, 0, NULL, NULL);
			break;
		default:
			break;
		}
	}
}

void c1_goto_again(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s, int times)
{
again:
	if (times <= 0)
		return;
	cuMemcpyDtoDAsync_v2(dst, src, bytes, s);
	cuMemsetD8Async(src, 0xff, bytes, s);
	times -= 2;
	goto again;
}

void c1_globals(void)
{
	for (int i = 0; i < frame_count; i++)
		clEnqueueNDRangeKernel(frame_queue, frame_kernel, 2, NULL, frame_size, NULL,
				       0, NULL, NULL);
}

void c1_flushed(cl_command_queue q, cl_kernel k, size_t n, long batches)
{
	for (long b = batches; b > 0; b--) {
		launch_1d(q, k, n);
		clEnqueueBarrierWithWaitList(q, 0, NULL, NULL);
		launch_1d(q, k, n);
		clFlush(q);
	}
}

void c1_through_pointers(struct sim **world, int which, unsigned int count)
{
	struct sim **mine = world + which;

	for (unsigned int i = 0; i != count; ++i) {
		clSetKernelArg((*mine)->force, 0, sizeof(cl_mem), &(*mine)->pos);
		clEnqueueNDRangeKernel((*mine)->queue, (*mine)->force, 1, NULL, &(*mine)->bodies,
				       NULL, 0, NULL, NULL);
	}
}

/* The host looks at the samples only when the loop has ended */
float c1_last_samples(cl_command_queue q, cl_kernel k, cl_mem out, size_t n, int times)
{
	float samples[32];

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(q, out, CL_FALSE, 0, sizeof(samples), samples, 0, NULL, NULL);
	}
	clFinish(q);
	return times > 0 ? samples[0] + samples[31] : 0;
}

void c1_same_weights(CUfunction cell, CUstream s, CUdeviceptr w, CUdeviceptr h,
		     const float *weights, size_t count, int steps)
{
	void *params[] = { &w, &h };

	for (int t = 0; t < steps; t++) {
		cuMemcpyHtoDAsync_v2(w, weights, count * sizeof(*weights), s);
		cuLaunchKernel(cell, 16, 4, 1, 32, 8, 1, 0, s, params, NULL);
	}
}

void c1_image_copy(cl_command_queue q, cl_mem from, cl_mem to, size_t w, size_t h, double end,
		   double dt)
{
	static const size_t corner[3] = { 0, 0, 0 };
	const size_t region[3] = { w, h, 1 };

	for (double t = 0; t < end; t += dt)
		clEnqueueCopyImage(q, from, to, corner, corner, region, 0, NULL, NULL);
}

void c1_bisection(cl_command_queue q, cl_kernel k, size_t n, const int *keys, size_t count, int key)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (keys[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

/* The host's own sum does not reach the device */
void c1_host_energy(cl_command_queue q, cl_kernel k, size_t n, double *energy, int steps)
{
	double amplitude = 1;

	for (int i = 0; i < steps; i++) {
		amplitude *= 0.99;
		energy[i] = sqrt(amplitude) * cos(0.1 * i);
		launch_1d(q, k, n);
	}
}

/* ---- class 2 ---- */

void c2_fft_stages(cl_command_queue q, cl_kernel butterfly, size_t half, int stages)
{
	for (cl_int stage = 1; stage <= stages; stage++) {
		clSetKernelArg(butterfly, 2, sizeof(stage), &stage);
		clEnqueueNDRangeKernel(q, butterfly, 1, NULL, &half, NULL, 0, NULL, NULL);
	}
}

/* The counter is a member of the structure */
void c2_nbody_steps(struct sim *s)
{
	for (s->step = 0; s->step < s->steps; s->step++) {
		clSetKernelArg(s->move, 3, sizeof(s->step), &s->step);
		clEnqueueNDRangeKernel(s->queue, s->move, 1, NULL, &s->bodies, &s->group,
				       0, NULL, NULL);
	}
}

void c2_lu_columns(cl_command_queue q, cl_kernel scale, cl_kernel update, size_t n)
{
	size_t offset[2], global[2];

	for (size_t k = 0; k + 1 < n; k++) {
		cl_uint column = (cl_uint)k;

		offset[0] = offset[1] = k + 1;
		global[0] = global[1] = n - k - 1;
		clSetKernelArg(scale, 1, sizeof(column), &column);
		clEnqueueNDRangeKernel(q, scale, 1, offset, global, NULL, 0, NULL, NULL);
		clSetKernelArg(update, 1, sizeof(column), &column);
		clEnqueueNDRangeKernel(q, update, 2, offset, global, NULL, 0, NULL, NULL);
	}
}

void c2_lstm_steps(CUfunction cell, CUstream s, CUdeviceptr x, CUdeviceptr h, CUdeviceptr c,
		   size_t step_bytes, int steps)
{
	CUdeviceptr xt = x;
	void *params[] = { &xt, &h, &c };

	for (int t = 0; t < steps; t++) {
		cuLaunchKernel(cell, 8, 1, 1, 128, 1, 1, 0, s, params, NULL);
		xt += step_bytes;
	}
}

void c2_upload_rows(cl_command_queue q, cl_mem image, const unsigned char *pixels, size_t pitch,
		    size_t width, size_t height)
{
	for (size_t y = 0; y < height; y++)
		clEnqueueWriteBuffer(q, image, CL_FALSE, y * width, width, pixels + y * pitch,
				     0, NULL, NULL);
}

void c2_wave_params(cl_command_queue q, cl_kernel k, cl_mem params, size_t n, int frames)
{
	struct wave w = { .decay = 1 };

	for (int i = 0; i < frames; i++) {
		w.frame = i;
		w.phase = fmodf(0.37f * (float)i, 6.2831853f);
		w.height = sinf(w.phase) * w.decay;
		w.decay *= 0.98f;
		clEnqueueWriteBuffer(q, params, CL_TRUE, 0, sizeof(w), &w, 0, NULL, NULL);
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_noise(CUfunction f, CUstream s, CUdeviceptr noise, int len, int rounds, unsigned int seed)
{
	unsigned int block[len];
	void *params[] = { &noise };

	while (rounds-- > 0) {
		for (int j = 0; j < len; j++) {
			seed = seed * 1664525u + 1013904223u;
			block[j] = seed >> 8;
		}
		cuMemcpyHtoD_v2(noise, block, sizeof(block));
		grid(f, s, 16, params);
	}
}

void c2_count_down(CUdeviceptr pages, size_t n, CUstream s)
{
	while (n-- > 0)
		cuMemsetD32Async(pages + n * 4096, (unsigned int)n, 1024, s);
}

void c2_reverse_blocks(CUdeviceptr dst, CUdeviceptr src, size_t block, size_t blocks, CUstream s)
{
	for (size_t i = 0, j = blocks; i < blocks; i++, j--)
		cuMemcpyDtoDAsync_v2(dst + i * block, src + (j - 1) * block, block, s);
}

void c2_pointer_walk(CUdeviceptr dst, const float *begin, const float *end)
{
	for (const float *p = begin; p != end; p += 512) {
		cuMemcpyHtoD_v2(dst, p, 512 * sizeof(*p));
		dst += 512 * sizeof(*p);
	}
}

void c2_image_bands(cl_command_queue q, cl_mem image, const char *pixels, size_t w, size_t bands)
{
	size_t origin[3] = { 0, 0, 0 };
	const size_t region[3] = { w, 16, 1 };
	const char *band = pixels;

	for (size_t b = 0; b < bands; b++, band += 64 * w) {
		origin[1] = 16 * b;
		clEnqueueWriteImage(q, image, CL_FALSE, origin, region, 4 * w, 0, band,
				    0, NULL, NULL);
	}
}

void c2_goto_bands(cl_command_queue q, cl_kernel k, size_t band, size_t end)
{
	size_t offset = 0;

next:
	clEnqueueNDRangeKernel(q, k, 1, &offset, &band, NULL, 0, NULL, NULL);
	offset += band;
	if (offset < end)
		goto next;
}

void c2_read_blocks(cl_command_queue q, cl_mem out, char *host, size_t block, int blocks)
{
	int i = 0;

	while (i < blocks) {
		clEnqueueReadBuffer(q, out, CL_FALSE, (size_t)i * block, block,
				    host + (size_t)i * block, 0, NULL, NULL);
		i++;
	}
	clFinish(q);
}

void c2_filter_taps(cl_command_queue q, cl_kernel k, size_t pixels, unsigned int taps)
{
	for (unsigned int tap = 0; tap < taps; tap++) {
		clSetKernelArg(k, 1, sizeof(gauss[0]), &gauss[tap]);
		clSetKernelArg(k, 2, sizeof(tap), &tap);
		launch_1d(q, k, pixels);
	}
}

void c2_dirty_rows(cl_command_queue q, cl_mem screen, const unsigned int *shadow,
		   const unsigned char *dirty, size_t width, size_t rows)
{
	const size_t bytes = width * sizeof(*shadow);

	for (size_t y = 0; y < rows; y++) {
		if (dirty[y])
			clEnqueueWriteBuffer(q, screen, CL_FALSE, y * bytes, bytes,
					     shadow + y * width, 0, NULL, NULL);
	}
}

void c2_bfs_levels(cl_command_queue q, cl_kernel expand, size_t nodes, cl_uint depth)
{
	cl_uint level = 0;

	do {
		set_uint(expand, 4, level);
		launch_1d(q, expand, nodes);
	} while (++level < depth);
}

void c2_fly_through(CUfunction render, CUstream s, CUdeviceptr scene, CUdeviceptr view,
		    const struct vec3 *path, int points)
{
	struct camera cam = { .fov = 0.8f };
	void *params[] = { &scene, &view };

	for (int i = 0; i + 1 < points; i++) {
		float dx = path[i + 1].x - path[i].x, dz = path[i + 1].z - path[i].z;
		float len = sqrtf(dx * dx + dz * dz) + 1e-6f;

		cam.eye = path[i];
		cam.look.x = dx / len;
		cam.look.z = dz / len;
		cuMemcpyHtoD_v2(view, &cam, sizeof(cam));
		cuLaunchKernel(render, 80, 45, 1, 16, 16, 1, 0, s, params, NULL);
	}
}

void c2_host_particles(cl_command_queue q, cl_kernel k, cl_mem pos, float *x, float *v, size_t n,
		       int steps)
{
	for (int step = 0; step < steps; step++) {
		for (size_t j = 0; j < n; j++) {
			v[j] -= 0.01f * x[j];
			x[j] += 0.01f * v[j];
		}
		clEnqueueWriteBuffer(q, pos, CL_TRUE, 0, n * sizeof(*x), x, 0, NULL, NULL);
		launch_1d(q, k, n);
	}
}

void c2_minibatches(CUfunction assign, CUstream s, CUdeviceptr batch, CUdeviceptr centres,
		    float *const *points, size_t floats, size_t batches)
{
	void *params[] = { &batch, &centres };

	for (size_t b = 0; b < batches; b++) {
		cuMemcpyHtoDAsync_v2(batch, *points + b * floats, floats * sizeof(float), s);
		cuLaunchKernel(assign, 64, 1, 1, 256, 1, 1, 0, s, params, NULL);
	}
}

void c2_opcodes(CUstream s, CUdeviceptr heap, const unsigned char *code, unsigned int count)
{
	for (unsigned int pc = 0; pc < count; pc++) {
		switch (code[pc]) {
		case 'z':
			cuMemsetD8Async(heap + (CUdeviceptr)pc * 64, 0, 64, s);
			break;
		case 'm':
			cuMemcpyDtoDAsync_v2(heap + (CUdeviceptr)pc * 64 + 65536,
					     heap + (CUdeviceptr)pc * 64, 64, s);
			break;
		case 'h':
			return;
		}
	}
}

void c2_stride_parameter(cl_command_queue q, cl_mem src, cl_mem dst, size_t first, size_t last,
			 size_t stride)
{
	for (size_t at = first; at < last; at += stride)
		clEnqueueCopyBuffer(q, src, dst, at, at + 128, 64, 0, NULL, NULL);
}

/* ---- class 3 ---- */

void c3_event_chain(cl_command_queue q, cl_kernel k, cl_event first, size_t n, int times)
{
	cl_event prev = first, next;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 1, &prev, &next);
		clReleaseEvent(prev);
		prev = next;
	}
	clWaitForEvents(1, &prev);
	clReleaseEvent(prev);
}

void c3_sub_buffers(cl_command_queue q, cl_kernel k, cl_mem whole, size_t part, size_t parts)
{
	for (size_t i = 0; i < parts; i++) {
		cl_buffer_region region = { .origin = i * part, .size = part };
		cl_mem sub = clCreateSubBuffer(whole, CL_MEM_READ_WRITE,
					       CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);

		clSetKernelArg(k, 0, sizeof(sub), &sub);
		launch_1d(q, k, part);
		clReleaseMemObject(sub);
	}
}

void c3_scratch(CUfunction f, CUstream s, CUdeviceptr in, size_t bytes, unsigned int rounds)
{
	CUdeviceptr scratch;
	void *params[] = { &in, &scratch };

	while (rounds-- > 0) {
		cuMemAlloc_v2(&scratch, bytes);
		cuMemsetD8Async(scratch, 0, bytes, s);
		cuLaunchKernel(f, 48, 1, 1, 256, 1, 1, 0, s, params, NULL);
		cuMemFree_v2(scratch);
	}
}

cl_mem c3_generations(cl_context context, cl_command_queue q, cl_kernel life, cl_mem cells,
		      size_t w, size_t h, int generations)
{
	const size_t area[] = { w, h };

	for (int g = 0; g < generations; g++) {
		cl_int err;
		cl_mem next = clCreateBuffer(context, CL_MEM_READ_WRITE, w * h, NULL, &err);

		clSetKernelArg(life, 0, sizeof(cells), &cells);
		clSetKernelArg(life, 1, sizeof(next), &next);
		clEnqueueNDRangeKernel(q, life, 2, NULL, area, NULL, 0, NULL, NULL);
		clReleaseMemObject(cells);
		cells = next;
	}
	return cells;
}

void c3_kernel_each_time(cl_program program, cl_command_queue q, cl_mem buf, size_t n, int times)
{
	do {
		cl_kernel k = clCreateKernel(program, "relax", NULL);

		set_mem(k, 0, buf);
		launch_1d(q, k, n);
		clReleaseKernel(k);
	} while (--times > 0);
}

void c3_stream_each_batch(CUfunction f, CUdeviceptr in, CUdeviceptr out, size_t batch, int batches)
{
	void *params[] = { &in, &out };

	for (int b = 0; b < batches; b++, in += batch, out += batch) {
		CUstream s;

		cuStreamCreate(&s, 1);
		grid(f, s, 20, params);
		cuStreamDestroy_v2(s);
	}
}

void c3_fork_join(CUfunction left, CUfunction right, CUstream main_stream, CUstream side,
		  CUdeviceptr tree, int times)
{
	void *params[] = { &tree };

	for (int i = 0; i < times; i++) {
		CUevent fork, join;

		cuEventCreate(&fork, 2);
		cuEventCreate(&join, 2);
		cuEventRecord(fork, main_stream);
		cuStreamWaitEvent(side, fork, 0);
		grid(left, main_stream, 10, params);
		grid(right, side, 10, params);
		cuEventRecord(join, side);
		cuStreamWaitEvent(main_stream, join, 0);
		cuEventDestroy_v2(fork);
		cuEventDestroy_v2(join);
	}
}

void c3_user_event(cl_context context, cl_command_queue q, cl_kernel k, size_t n, size_t times)
{
	for (size_t i = 0; i < times; i++) {
		cl_event gate = clCreateUserEvent(context, NULL);

		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 1, &gate, NULL);
		clSetUserEventStatus(gate, CL_COMPLETE);
		clReleaseEvent(gate);
	}
}

void c3_temporary_image(cl_context context, cl_command_queue q, cl_kernel rows, cl_kernel columns,
			size_t w, size_t h, int passes)
{
	const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D };
	const size_t area[2] = { w, h };

	desc.image_width = w;
	desc.image_height = h;
	for (int pass = passes; pass != 0; pass--) {
		cl_mem tmp = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, NULL);

		clSetKernelArg(rows, 1, sizeof(tmp), &tmp);
		clEnqueueNDRangeKernel(q, rows, 2, NULL, area, NULL, 0, NULL, NULL);
		clSetKernelArg(columns, 0, sizeof(tmp), &tmp);
		clEnqueueNDRangeKernel(q, columns, 2, NULL, area, NULL, 0, NULL, NULL);
		clReleaseMemObject(tmp);
	}
}

void c3_two_halves(CUdeviceptr src, CUdeviceptr dst, CUstream s, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		CUdeviceptr both;

		cuMemAlloc_v2(&both, 8192);
		cuMemcpyDtoDAsync_v2(both, src, 4096, s);
		cuMemsetD32Async(both + 4096, 0x3f800000, 1024, s);
		cuMemcpyDtoDAsync_v2(dst, both + 2048, 4096, s);
		cuMemFree_v2(both);
	}
}

void c3_function_by_name(CUmodule module, CUstream s, CUdeviceptr grid_data, int steps)
{
	CUfunction f;
	void *params[] = { &grid_data };
	int step = 0;

	while (step < steps) {
		cuModuleGetFunction(&f, module, "advect");
		cuLaunchKernel(f, 128, 1, 1, 64, 1, 1, 0, s, params, NULL);
		cuModuleGetFunction(&f, module, "project");
		cuLaunchKernel(f, 128, 1, 1, 64, 1, 1, 0, s, params, NULL);
		step++;
	}
}

void c3_two_queues(cl_command_queue copy, cl_command_queue work, cl_kernel k, cl_mem in,
		   const char *host, size_t bytes, int chunks)
{
	for (int c = 0; c < chunks; c++) {
		cl_event there;

		clEnqueueWriteBuffer(copy, in, CL_FALSE, 0, bytes, host + (size_t)c * bytes,
				     0, NULL, &there);
		clEnqueueNDRangeKernel(work, k, 1, NULL, &bytes, NULL, 1, &there, NULL);
		clReleaseEvent(there);
	}
}

void c3_join_of_two(cl_command_queue qa, cl_command_queue qb, cl_kernel ka, cl_kernel kb,
		    cl_kernel sum, size_t n, int times)
{
	cl_event parts[2];

	while (times-- > 0) {
		clEnqueueNDRangeKernel(qa, ka, 1, NULL, &n, NULL, 0, NULL, &parts[0]);
		clEnqueueNDRangeKernel(qb, kb, 1, NULL, &n, NULL, 0, NULL, &parts[1]);
		clEnqueueNDRangeKernel(qa, sum, 1, NULL, &n, NULL, 2, parts, NULL);
		clReleaseEvent(parts[0]);
		clReleaseEvent(parts[1]);
	}
}

/* A buffer is released one iteration later */
void c3_release_late(cl_context context, cl_command_queue q, cl_kernel k, size_t n, int times)
{
	cl_mem old = NULL;

	for (int i = 0; i < times; i++) {
		cl_mem tmp = scratch_buffer(context, n);

		set_mem(k, 0, tmp);
		launch_1d(q, k, n);
		if (i > 0)
			clReleaseMemObject(old);
		old = tmp;
	}
	if (times > 0)
		clReleaseMemObject(old);
}

/* Each launch waits for the one two iterations ago */
void c3_two_ago(cl_command_queue q, cl_kernel k, size_t n, unsigned int times)
{
	cl_event older, old, now;

	clEnqueueMarkerWithWaitList(q, 0, NULL, &older);
	clEnqueueMarkerWithWaitList(q, 0, NULL, &old);
	for (unsigned int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 1, &older, &now);
		clReleaseEvent(older);
		older = old;
		old = now;
	}
	clReleaseEvent(older);
	clReleaseEvent(old);
}

void c3_copied_from_host(cl_context context, cl_command_queue q, cl_kernel k, char *rows,
			 size_t bytes, size_t count)
{
	size_t i = count;

	while (i > 0) {
		cl_mem row;

		i--;
		row = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes,
				     rows + i * bytes, NULL);
		clSetKernelArg(k, 0, sizeof(row), &row);
		launch_1d(q, k, bytes);
		clReleaseMemObject(row);
	}
}

/* ---- of a class if calls succeed ---- */

cl_int s1_macro_return(const struct sim *s)
{
	for (cl_uint i = 0; i < s->steps; i++) {
		CL_TRY(clSetKernelArg(s->force, 0, sizeof(s->pos), &s->pos));
		CL_TRY(clEnqueueNDRangeKernel(s->queue, s->force, 1, NULL, &s->bodies, NULL,
					      0, NULL, NULL));
	}
	return CL_SUCCESS;
}

cl_int s1_while_well(cl_command_queue q, cl_kernel k, size_t n, long left)
{
	cl_int err = CL_SUCCESS;

	while (left-- > 0 && err == CL_SUCCESS)
		err = clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	return err;
}

int s1_goto_out(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s, int times)
{
	int rc = -1;

	for (int i = 0; i < times; i++) {
		CU_GOTO(cuMemsetD8Async(dst, 0, bytes, s), out);
		CU_GOTO(cuMemcpyDtoDAsync_v2(dst, src, bytes, s), out);
	}
	rc = 0;
out:
	cuStreamDestroy_v2(s);
	return rc;
}

void s1_die(CUfunction f, CUstream s, CUdeviceptr data, const char *wanted, size_t count)
{
	void *params[] = { &data };

	for (size_t i = 0; i < count; i++) {
		if (wanted[i])
			CU_DIE(cuLaunchKernel(f, 4, 4, 1, 16, 16, 1, 0, s, params, NULL));
	}
}

int s2_checked_rows(cl_command_queue q, cl_mem image, const float *rows, size_t width,
		    size_t height)
{
	const size_t bytes = width * sizeof(*rows);

	for (size_t y = 0; y < height; y++) {
		cl_int err = clEnqueueWriteBuffer(q, image, CL_FALSE, y * bytes, bytes,
						  rows + y * width, 0, NULL, NULL);

		if (!passed(err, "upload"))
			return -1;
	}
	return 0;
}

cl_int s2_set_and_launch(cl_command_queue q, cl_kernel k, size_t n, cl_uint levels)
{
	cl_uint level = 0;
	cl_int err;

	do {
		err = set_uint(k, 1, level);
		if (err)
			break;
		err = clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		if (err)
			break;
	} while (++level < levels);
	return err;
}

CUresult s2_clear_pages(CUdeviceptr base, size_t pages, CUstream s)
{
	CUresult rc;

	for (size_t i = 0; i < pages; i++) {
		rc = cuMemsetD32Async(base + (i << 12), 0, 1024, s);
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return CUDA_SUCCESS;
}

cl_int s2_waves(cl_command_queue q, cl_kernel k, cl_mem params, size_t n, int frames)
{
	struct wave w = { .height = 1 };

	for (w.frame = 0; w.frame < frames; w.frame++) {
		w.phase = cosf((float)w.frame);
		CL_TRY(clEnqueueWriteBuffer(q, params, CL_TRUE, 0, sizeof(w), &w, 0, NULL, NULL));
		CL_TRY(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL));
	}
	return CL_SUCCESS;
}

cl_int s3_buffer_or_leave(cl_context context, cl_command_queue q, cl_kernel k, size_t n, int times)
{
	cl_int err = CL_SUCCESS;

	for (int i = 0; i < times; i++) {
		cl_mem tmp = clCreateBuffer(context, CL_MEM_READ_WRITE, n, NULL, &err);

		if (err != CL_SUCCESS)
			break;
		set_mem(k, 0, tmp);
		launch_1d(q, k, n);
		clReleaseMemObject(tmp);
	}
	return err;
}

int s3_alloc_and_free(CUfunction f, CUstream s, size_t bytes, unsigned int times)
{
	CUdeviceptr p = 0;
	void *params[] = { &p };

	while (times--) {
		CU_GOTO(cuMemAlloc_v2(&p, bytes), fail);
		CU_GOTO(cuMemsetD8Async(p + 128, 1, 128, s), fail);
		CU_GOTO(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL), fail);
		CU_GOTO(cuMemFree_v2(p), fail);
	}
	return 0;
fail:
	fprintf(stderr, "out of device memory?\n");
	return -1;
}

cl_int s3_chained(cl_command_queue q, cl_kernel k, cl_event ready, size_t n, int times)
{
	cl_event prev = ready, next;

	for (int i = 0; i < times; i++) {
		CL_TRY(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 1, &prev, &next));
		CL_TRY(clReleaseEvent(prev));
		prev = next;
	}
	return clReleaseEvent(prev);
}

void s3_streams(CUfunction f, CUdeviceptr in, size_t batch, size_t batches)
{
	void *params[] = { &in };

	for (size_t b = 0; b < batches; b++) {
		CUstream s;

		CU_DIE(cuStreamCreate(&s, 0));
		CU_DIE(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, s, params, NULL));
		CU_DIE(cuStreamDestroy_v2(s));
		in += batch;
	}
}

/* ---- loops in loops ---- */

void n1_substeps(struct sim *s, int frames, int substeps)
{
	for (int frame = 0; frame < frames; frame++) {
		for (int sub = 0; sub < substeps; sub++) {
			launch_1d(s->queue, s->force, s->bodies);
			launch_1d(s->queue, s->move, s->bodies);
		}
		clFinish(s->queue);
	}
}

void n1_filters(cl_command_queue q, cl_kernel k, size_t n, const unsigned char *passes, int images)
{
	for (int i = 0; i < images; i++) {
		unsigned char left = passes[i];

		while (left) {
			clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
			left--;
		}
	}
}

/* Restarted until it converges: the outer loop reads what the device computed */
int n1_restarts(CUfunction f, CUstream s, CUdeviceptr state, CUdeviceptr norm, int inner, float eps)
{
	void *params[] = { &state, &norm };
	float rho;
	int restarts = 0;

	do {
		for (int i = 0; i < inner; i++)
			cuLaunchKernel(f, 256, 1, 1, 256, 1, 1, 0, s, params, NULL);
		cuMemcpyDtoH_v2(&rho, norm, sizeof(rho));
		restarts++;
	} while (rho > eps);
	return restarts;
}

/* Another kernel for every layer, the same one in the inner loop */
void n1_layers(cl_command_queue q, const cl_kernel *layer, size_t n, int layers, int repeats)
{
	for (int l = 0; l < layers; l++) {
		cl_kernel k = layer[l];

		for (int r = 0; r < repeats; r++)
			clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void n2_tiles(cl_command_queue q, cl_kernel multiply, size_t across, size_t down)
{
	static const size_t tile[2] = { 16, 16 };
	size_t offset[2];

	for (size_t y = 0; y < down; y++) {
		for (size_t x = 0; x < across; x++) {
			offset[0] = 16 * x;
			offset[1] = 16 * y;
			clEnqueueNDRangeKernel(q, multiply, 2, offset, tile, tile, 0, NULL, NULL);
		}
	}
}

void n2_epochs(CUfunction f, CUstream s, CUdeviceptr data, size_t batch, int batches, int epochs)
{
	CUdeviceptr at;
	void *params[] = { &at };

	while (epochs-- > 0) {
		at = data;
		for (int b = 0; b < batches; b++) {
			cuLaunchKernel(f, 32, 1, 1, 256, 1, 1, 0, s, params, NULL);
			at += batch;
		}
		cuStreamSynchronize(s);
	}
}

/* The length doubles from stage to stage, in a stage it stays */
void n2_merge_stages(CUdeviceptr dst, CUdeviceptr src, size_t total, CUstream s)
{
	for (size_t len = 64; len < total; len *= 2) {
		for (size_t at = 0; at < total; at += len)
			cuMemcpyDtoDAsync_v2(dst + at, src + at, len, s);
	}
}

void n2_triangle(CUdeviceptr matrix, size_t n, size_t pitch, CUstream s)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			cuMemsetD32Async(matrix + i * pitch + 4 * j, 0, 1, s);
}

/* ---- not deferrable ---- */

int c0_cg_residual(cl_command_queue q, cl_kernel spmv, cl_kernel update, cl_mem norm, size_t n,
		   int max, float eps)
{
	int i;

	for (i = 0; i < max; i++) {
		float r;

		launch_1d(q, spmv, n);
		launch_1d(q, update, n);
		clEnqueueReadBuffer(q, norm, CL_TRUE, 0, sizeof(r), &r, 0, NULL, NULL);
		if (sqrtf(r) < eps)
			break;
	}
	return i;
}

void c0_bfs_frontier(cl_command_queue q, cl_kernel expand, cl_mem flag, size_t nodes)
{
	cl_int more;

	do {
		more = 0;
		clEnqueueWriteBuffer(q, flag, CL_TRUE, 0, sizeof(more), &more, 0, NULL, NULL);
		launch_1d(q, expand, nodes);
		clEnqueueReadBuffer(q, flag, CL_TRUE, 0, sizeof(more), &more, 0, NULL, NULL);
	} while (more);
}

int c0_kmeans_moved(CUfunction assign, CUstream s, CUdeviceptr points, CUdeviceptr counter,
		    unsigned int few)
{
	void *params[] = { &points, &counter };
	unsigned int moved = few + 1;
	int rounds = 0;

	while (moved > few) {
		cuMemsetD32Async(counter, 0, 1, s);
		cuLaunchKernel(assign, 64, 1, 1, 256, 1, 1, 0, s, params, NULL);
		cuMemcpyDtoH_v2(&moved, counter, sizeof(moved));
		rounds++;
	}
	return rounds;
}

cl_int c0_status_or(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	cl_int status = CL_SUCCESS;

	for (int i = 0; i < times; i++)
		status |= clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	return status;
}

int c0_failures(CUdeviceptr p, size_t page, size_t pages, CUstream s)
{
	int failures = 0;

	for (size_t i = 0; i < pages; i++)
		failures += cuMemsetD8Async(p + i * page, 0, page, s) != CUDA_SUCCESS;
	return failures;
}

/* The device chooses the length of a step */
int c0_adaptive_steps(cl_command_queue q, cl_kernel k, cl_mem step, size_t n, float end)
{
	float t = 0, dt;
	int steps = 0;

	while (t < end) {
		launch_1d(q, k, n);
		clEnqueueReadBuffer(q, step, CL_TRUE, 0, sizeof(dt), &dt, 0, NULL, NULL);
		t += dt;
		steps++;
	}
	return steps;
}

void c0_exchange(cl_command_queue q, cl_mem front, cl_mem back, size_t bytes, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem tmp = front;

		clEnqueueCopyBuffer(q, front, back, 0, 0, bytes, 0, NULL, NULL);
		front = back;
		back = tmp;
	}
}

void c0_parity(cl_command_queue q, cl_mem a, cl_mem b, size_t bytes, unsigned int times)
{
	cl_mem side[2] = { a, b };

	for (unsigned int i = 0; i < times; i++)
		clEnqueueCopyBuffer(q, side[i & 1], side[~i & 1], 0, 0, bytes, 0, NULL, NULL);
}

void c0_ring_slot(CUdeviceptr ring, CUdeviceptr src, size_t bytes, CUstream s, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		cuMemcpyDtoDAsync_v2(ring + (i % 3) * bytes, src, bytes, s);
}

void c0_kernel_table(cl_command_queue q, const cl_kernel *stage, const int *order, size_t n,
		     int stages)
{
	for (int i = 0; i < stages; i++)
		clEnqueueNDRangeKernel(q, stage[order[i]], 1, NULL, &n, NULL, 0, NULL, NULL);
}

void c0_squares(cl_command_queue q, cl_mem src, cl_mem dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		clEnqueueCopyBuffer(q, src, dst, i * i, 0, 64, 0, NULL, NULL);
}

void c0_reduction(CUfunction f, CUstream s, CUdeviceptr data, unsigned int blocks)
{
	void *params[] = { &data };

	while (blocks > 1) {
		blocks = (blocks + 1) / 2;
		cuLaunchKernel(f, blocks, 1, 1, 256, 1, 1, 0, s, params, NULL);
	}
}

void c0_running_sum(CUdeviceptr dst, size_t rows, CUstream s)
{
	CUdeviceptr at = dst;

	for (size_t i = 1; i <= rows; i++) {
		cuMemsetD32Async(at, 0, 4, s);
		at += 4 * i;
	}
}

void c0_tile_edge(cl_command_queue q, cl_mem src, cl_mem dst, size_t bytes, size_t tile)
{
	for (size_t at = 0; at < bytes; at += tile) {
		size_t rest = bytes - at;

		clEnqueueCopyBuffer(q, src, dst, at, at, rest < tile ? rest : tile, 0, NULL, NULL);
	}
}

void c0_compaction(CUdeviceptr dst, CUdeviceptr src, const char *alive, size_t n, CUstream s)
{
	size_t slot = 0;

	for (size_t i = 0; i < n; i++) {
		if (!alive[i])
			continue;
		cuMemcpyDtoDAsync_v2(dst + 64 * slot, src + 64 * i, 64, s);
		slot++;
	}
}

void c2_row_pointers(cl_command_queue q, cl_mem m, float **rows, size_t bytes, size_t count)
{
	for (size_t y = 0; y < count; y++)
		clEnqueueWriteBuffer(q, m, CL_TRUE, y * bytes, bytes, rows[y], 0, NULL, NULL);
}

void c0_job_sizes(cl_command_queue q, cl_mem src, cl_mem dst, const struct job *head)
{
	for (const struct job *j = head; j; j = j->next)
		clEnqueueCopyBuffer(q, src, dst, 0, 0, j->bytes, 0, NULL, NULL);
}

void c0_random_page(CUdeviceptr heap, CUstream s, int times)
{
	for (int i = 0; i < times; i++)
		cuMemsetD8Async(heap + (CUdeviceptr)(rand() & 255) * 4096, 0, 4096, s);
}

void u1_volatile_length(cl_command_queue q, cl_mem a, cl_mem b, volatile size_t *length, int times)
{
	while (times-- > 0)
		clEnqueueCopyBuffer(q, a, b, 0, 0, *length, 0, NULL, NULL);
}

void c0_finish_each(const struct sim *s)
{
	for (cl_uint i = 0; i < s->steps; i++) {
		launch_1d(s->queue, s->force, s->bodies);
		clFinish(s->queue);
	}
}

void c0_wait_each(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	cl_event done;

	for (int i = 0; i < times; i++) {
		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, &done);
		clWaitForEvents(1, &done);
		clReleaseEvent(done);
	}
}

int c0_busy_rounds(CUfunction f, CUstream s, CUstream other, CUdeviceptr data, CUevent end)
{
	void *params[] = { &data };
	int rounds = 0;

	cuEventRecord(end, other);
	while (cuEventQuery(end) != CUDA_SUCCESS) {
		grid(f, s, 1, params);
		rounds++;
	}
	return rounds;
}

void c0_poll_status(cl_command_queue q, cl_kernel k, size_t n, cl_event watched)
{
	cl_int status;

	do {
		launch_1d(q, k, n);
		clGetEventInfo(watched, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			       NULL);
	} while (status > CL_COMPLETE);
}

double c0_elapsed(CUfunction f, CUstream s, CUevent start, CUevent end, int times)
{
	double total = 0;

	for (int i = 0; i < times; i++) {
		float ms;

		cuEventRecord(start, s);
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuEventRecord(end, s);
		cuEventSynchronize(end);
		cuEventElapsedTime(&ms, start, end);
		total += ms;
	}
	return total;
}

void c0_mapped(cl_command_queue q, cl_kernel k, cl_mem b, size_t n, int frames)
{
	for (int i = 0; i < frames; i++) {
		cl_int *cells = clEnqueueMapBuffer(q, b, CL_TRUE, CL_MAP_WRITE, 0, sizeof(cl_int),
						   0, NULL, NULL, NULL);

		cells[0] = i;
		clEnqueueUnmapMemObject(q, b, cells, 0, NULL, NULL);
		launch_1d(q, k, n);
	}
}

void c0_callback(cl_command_queue q, cl_kernel k, size_t n, int times, void *user,
		 void (*done)(cl_event event, cl_int status, void *user))
{
	for (int i = 0; i < times; i++) {
		cl_event event;

		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, &event);
		clSetEventCallback(event, CL_COMPLETE, done, user);
		clReleaseEvent(event);
	}
}

void c0_prints(cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		launch_1d(q, k, n);
		printf("step %d\n", i);
	}
}

void c0_progress(CUdeviceptr p, size_t bytes, CUstream s, int times)
{
	for (int i = 1; i <= times; i++) {
		cuMemsetD8Async(p, 0, bytes, s);
		if (i % 100 == 0)
			progress(100 * i / times);
	}
}

void c0_hook(cl_command_queue q, cl_kernel k, size_t n, int times, void (*hook)(void *), void *arg)
{
	while (times--) {
		hook(arg);
		launch_1d(q, k, n);
	}
}

void c0_video(FILE *in, cl_command_queue q, cl_kernel k, cl_mem frame, void *pixels, size_t bytes)
{
	while (fread(pixels, 1, bytes, in) == bytes) {
		clEnqueueWriteBuffer(q, frame, CL_TRUE, 0, bytes, pixels, 0, NULL, NULL);
		launch_1d(q, k, bytes);
	}
}

void c0_fill_pool(cl_context context, struct pool *pool, size_t bytes)
{
	for (size_t i = 0; i < pool->count; i++)
		pool->slot[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
}

void c0_fill_blocks(struct pool *pool, size_t bytes, CUstream s, int count)
{
	for (int i = 0; i < count; i++) {
		CUdeviceptr block;

		cuMemAlloc_v2(&block, bytes);
		cuMemsetD8Async(block, 0, bytes, s);
		pool->block[i] = block;
	}
}

int c0_null_handle(cl_context context, cl_command_queue q, cl_kernel k, size_t n, int times)
{
	int i;

	for (i = 0; i < times; i++) {
		cl_mem tmp = scratch_buffer(context, n);

		if (!tmp)
			break;
		set_mem(k, 0, tmp);
		launch_1d(q, k, n);
		clReleaseMemObject(tmp);
	}
	return i;
}

void c0_newest(cl_context context, cl_command_queue q, cl_kernel k, size_t n, int times)
{
	for (int i = 0; i < times; i++) {
		cl_mem tmp = scratch_buffer(context, n);

		set_mem(k, 0, tmp);
		launch_1d(q, k, n);
		newest = tmp;
	}
}

void c0_job_events(cl_command_queue q, cl_kernel k, size_t n, struct job *head)
{
	for (struct job *j = head; j; j = j->next) {
		cl_event event;

		clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, 0, NULL, &event);
		j->event = event;
	}
}

void c0_aligned(size_t bytes, CUstream s, int times)
{
	for (int i = 0; i < times; i++) {
		CUdeviceptr p;

		cuMemAlloc_v2(&p, bytes + 255);
		cuMemsetD8Async((p + 255) & ~255ULL, 0, bytes, s);
		cuMemFree_v2(p);
	}
}

CUdeviceptr c0_highest(size_t bytes, int times)
{
	CUdeviceptr top = 0;

	for (int i = 0; i < times; i++) {
		CUdeviceptr p;

		cuMemAlloc_v2(&p, bytes);
		if (p > top)
			top = p;
	}
	return top;
}

/* "weights" may be where the results go */
float c0_may_overlap(cl_command_queue q, cl_mem out, float *results, const float *weights,
		     size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++) {
		clEnqueueReadBuffer(q, out, CL_FALSE, i * sizeof(float), sizeof(float),
				    results + i, 0, NULL, NULL);
		sum += weights[i];
	}
	return sum;
}

void c0_may_overwrite(CUdeviceptr src, void *dst, size_t bytes, CUstream s, size_t *done,
		      size_t times)
{
	for (size_t i = 0; i < times; i++) {
		cuMemcpyDtoHAsync_v2(dst, src, bytes, s);
		*done += bytes;
	}
}

void c0_stop_flag(CUfunction f, CUstream s, CUdeviceptr flag, volatile int *stop)
{
	void *params[] = { &flag };

	while (!*stop) {
		cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, s, params, NULL);
		cuMemcpyDtoHAsync_v2((void *)stop, flag, sizeof(*stop), s);
	}
}

/* The device chooses the row for the next iteration */
void c0_pivot(cl_command_queue q, cl_kernel find, cl_mem m, cl_mem index, size_t row_bytes,
	      size_t n)
{
	for (size_t k = 0; k < n; k++) {
		cl_uint row;

		launch_1d(q, find, n);
		clEnqueueReadBuffer(q, index, CL_TRUE, 0, sizeof(row), &row, 0, NULL, NULL);
		clEnqueueCopyBuffer(q, m, m, row * row_bytes, k * row_bytes, row_bytes,
				    0, NULL, NULL);
	}
}

void c0_sampled_tokens(CUfunction step, CUstream s, CUdeviceptr table, CUdeviceptr x,
		       CUdeviceptr token, int len)
{
	void *params[] = { &x, &token };
	unsigned int id = 0;

	for (int t = 0; t < len; t++) {
		cuMemcpyDtoD_v2(x, table + 2048ULL * id, 2048);
		cuLaunchKernel(step, 16, 1, 1, 128, 1, 1, 0, s, params, NULL);
		cuMemcpyDtoH_v2(&id, token, sizeof(id));
	}
}

long c0_histogram(cl_command_queue q, cl_kernel k, cl_mem bins, size_t n, int images)
{
	cl_uint count[64];
	long total = 0;

	for (int i = 0; i < images; i++) {
		launch_1d(q, k, n);
		clEnqueueReadBuffer(q, bins, CL_TRUE, 0, sizeof(count), count, 0, NULL, NULL);
		for (int b = 0; b < 64; b++)
			total += (long)b * count[b];
	}
	return total;
}

void c0_context_sync(CUfunction f, CUstream s, CUdeviceptr board, int rounds, int moves)
{
	void *params[] = { &board };

	for (int r = 0; r < rounds; r++) {
		for (int m = 0; m < moves; m++) {
			grid(f, s, 2, params);
			cuCtxSynchronize();
		}
	}
}

int main(void)
{
	return 0;
}

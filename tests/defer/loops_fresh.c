// SPDX-License-Identifier: GPL-2.0-only
/*
 * A third set of loops with calls of OpenCL and of CUDA's driver API, held out as the second:
 * they were written after the analysis had been changed for that one.
 *
 * The beginnings of the functions' names mean what they do in loops.c.
 *
 * A blocking copy counts as any other: its target must not be read in the loop.
 * Loops that call neither API do not count. Only the analysis reads this program; it is never
 * run.
 */
#include "gpu.h"

#define noinline __attribute__((noinline))

struct lattice {
	CUfunction collide, stream, edge;
	CUdeviceptr f, g;
	unsigned int bx, by, bz;
	CUstream s;
};

struct tensor {
	cl_mem data;
	size_t offset, stride[4];
	unsigned int rank : 3, transposed : 1;
};

struct extent {
	size_t x, y, z;
};

struct blit {
	cl_mem from, to;
	size_t src[3], dst[3], size[3];
	size_t pitch;
};

struct gene {
	struct gene *next;
	float fitness;
	short age;
	unsigned int elite : 1;
};

struct cell {
	float low[3];
	short first, count;
};

struct ray_view {
	float eye[3], jitter[2];
	unsigned int sample;
};

struct staged {
	cl_mem mem;
	cl_event ready;
};

struct task {
	struct task *next;
	cl_event done;
	float weight;
	int kind;
};

union pass_word {
	struct {
		unsigned int index : 10, last : 1, wrap : 1;
	} bits;
	cl_uint word;
};

static struct {
	cl_context context;
	cl_command_queue compute, copy;
	cl_kernel tone, hash;
	cl_mem frame, lut;
	size_t pixels;
} gpu;

static cl_event latest;
static cl_uint frame_number;
static unsigned short equalised[256];
static float stage_in[1 << 16], stage_out[1 << 16];

void use_device(cl_context context, cl_command_queue *queues, cl_kernel *kernels, cl_mem *mems,
		size_t pixels)
{
	gpu.context = context;
	gpu.compute = queues[0];
	gpu.copy = queues[1];
	gpu.tone = kernels[0];
	gpu.hash = kernels[1];
	gpu.frame = mems[0];
	gpu.lut = mems[1];
	gpu.pixels = pixels;
}

/* Calls that do not look at what they return */
#define RUN(queue, kernel, size)							\
	do {										\
		cl_int ignored = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, size, NULL, 0,	\
							NULL, NULL);			\
		(void)ignored;								\
	} while (0)

static inline void run_extent(cl_command_queue queue, cl_kernel kernel, struct extent e)
{
	size_t global[3] = { e.x, e.y, e.z };

	clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, NULL, 0, NULL, NULL);
}

static noinline void collide_and_stream(const struct lattice *l, void **params)
{
	cuLaunchKernel(l->collide, l->bx, l->by, l->bz, 64, 1, 1, 0, l->s, params, NULL);
	cuLaunchKernel(l->stream, l->bx, l->by, l->bz, 64, 1, 1, 0, l->s, params, NULL);
}

/* Calls that are checked */
#define CL_TRY(call)									\
	do {										\
		cl_int status = (call);							\
		if (status != CL_SUCCESS) {						\
			fprintf(stderr, "%s: %d\n", #call, status);			\
			return status;							\
		}									\
	} while (0)

static noinline void must(CUresult r)
{
	if (r != CUDA_SUCCESS) {
		fprintf(stderr, "driver error %d\n", r);
		exit(1);
	}
}

static noinline cl_int set_int(cl_kernel kernel, cl_uint at, cl_int value)
{
	return clSetKernelArg(kernel, at, sizeof(value), &value);
}

static inline int launched(CUfunction f, unsigned int blocks, CUstream s, void **params)
{
	return cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, s, params, NULL) == CUDA_SUCCESS;
}

/* Class 1 */

void c1_life_generations(cl_command_queue queue, cl_kernel step, const size_t *world,
			 unsigned int generations)
{
	const size_t group[2] = { 16, 16 };

	while (generations--)
		clEnqueueNDRangeKernel(queue, step, 2, NULL, world, group, 0, NULL, NULL);
}

void c1_lbm_short_counter(const struct lattice *l, short steps)
{
	CUdeviceptr f = l->f, g = l->g;
	unsigned int nx = l->bx * 64;
	void *params[] = { &f, &g, &nx };
	short t;

	for (t = 0; t < steps; t++)
		collide_and_stream(l, params);
}

void c1_fittest_only(cl_command_queue queue, cl_kernel mutate, size_t genes, float floor,
		     const struct gene *list)
{
	for (const struct gene *g = list; g; g = g->next) {
		if (g->fitness < floor)
			continue;
		if (g->age > 8 && !g->elite)
			break;
		clEnqueueNDRangeKernel(queue, mutate, 1, NULL, &genes, NULL, 0, NULL, NULL);
	}
}

void c1_fork_join(CUfunction left, CUfunction right, CUstream a, CUstream b, CUevent *e,
		  void **params, long rounds)
{
	CUevent forked = e[0], joined = e[1];

	do {
		cuEventRecord(forked, a);
		cuStreamWaitEvent(b, forked, 0);
		cuLaunchKernel(left, 32, 1, 1, 256, 1, 1, 0, a, params, NULL);
		cuLaunchKernel(right, 32, 1, 1, 256, 1, 1, 0, b, params, NULL);
		cuEventRecord(joined, b);
		cuStreamWaitEvent(a, joined, 0);
	} while (--rounds > 0);
}

void c1_opcodes(const unsigned char *code, const unsigned char *end, CUdeviceptr acc,
		CUdeviceptr spare, CUfunction add, CUstream s, size_t n)
{
	void *params[] = { &acc, &n };

	for (; code != end; code++) {
		switch (*code) {
		case 'z':
			cuMemsetD8Async(acc, 0, n, s);
			break;
		case 's':
			cuMemcpyDtoDAsync_v2(spare, acc, n, s);
			break;
		case '+':
			cuLaunchKernel(add, 16, 1, 1, 64, 1, 1, 0, s, params, NULL);
			break;
		default:
			break;
		}
	}
}

void c1_red_black(cl_command_queue queue, cl_kernel relax, struct extent grid, int sweeps)
{
	static const cl_int red = 0, black = 1;

	while (sweeps-- > 0) {
		clSetKernelArg(relax, 2, sizeof(red), &red);
		run_extent(queue, relax, grid);
		clSetKernelArg(relax, 2, sizeof(black), &black);
		run_extent(queue, relax, grid);
	}
}

void c1_equalise_on_host(const unsigned int *histogram, unsigned int total, int levels)
{
	const cl_float zero = 0.0f;
	unsigned long long sum = 0;

	for (int i = 0; i < levels && i < 256; i++) {
		sum += histogram[i];
		equalised[i] = (unsigned short)(65535ull * sum / total);
		clEnqueueFillBuffer(gpu.compute, gpu.lut, &zero, sizeof(zero), 0, 1024, 0, NULL,
				    NULL);
		clFlush(gpu.compute);
	}
}

void c1_blit_rectangle(cl_command_queue queue, struct blit b, unsigned char times)
{
	unsigned char i = 0;

	while (i++ < times)
		clEnqueueCopyBufferRect(queue, b.from, b.to, b.src, b.dst, b.size, b.pitch, 0,
					b.pitch, 0, 0, NULL, NULL);
}

CUresult c1_snapshot(CUfunction f, CUdeviceptr state, float *out, size_t bytes, CUstream s,
		     unsigned int n)
{
	void *params[] = { &state };
	CUresult r = CUDA_SUCCESS;

	for (unsigned int i = n; i > 0; i--) {
		cuLaunchKernel(f, 80, 1, 1, 128, 1, 1, 4096, s, params, NULL);
		r = cuMemcpyDtoHAsync_v2(out, state, bytes, s);
	}
	return r;
}

void c1_warm_up(cl_command_queue queue, cl_kernel first, cl_kernel second, size_t n, int times)
{
again:
	RUN(queue, first, &n);
	RUN(queue, second, &n);
	if (--times > 0)
		goto again;
}

size_t c1_monte_carlo_until(CUfunction walk, CUdeviceptr sums, CUstream s, double sigma,
			    double tolerance, size_t batch)
{
	void *params[] = { &sums, &batch };
	size_t done = batch;

	while (sigma / sqrt((double)done) > tolerance) {
		cuLaunchKernel(walk, 256, 1, 1, 256, 1, 1, 0, s, params, NULL);
		done += batch;
	}
	return done;
}

void c1_deblock_image(cl_command_queue queue, cl_kernel filter, cl_mem from, cl_mem to,
		      size_t width, size_t height, int strength)
{
	const size_t corner[3] = { 0, 0, 0 };
	const size_t region[3] = { width, height, 1 };

	for (int left = strength; left > 0; left -= left > 4 ? 2 : 1) {
		clEnqueueNDRangeKernel(queue, filter, 2, NULL, region, NULL, 0, NULL, NULL);
		clEnqueueCopyImage(queue, from, to, corner, corner, region, 0, NULL, NULL);
		clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL);
	}
}

/* Class 2 */

void c2_bitonic_merge(cl_command_queue queue, cl_kernel stage, cl_uint k, size_t n)
{
	clSetKernelArg(stage, 2, sizeof(k), &k);
	for (cl_uint j = k >> 1; j; j >>= 1) {
		clSetKernelArg(stage, 1, sizeof(j), &j);
		clEnqueueNDRangeKernel(queue, stage, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_scan_strides(CUfunction sweep, CUdeviceptr data, unsigned int n, CUstream s)
{
	unsigned int stride = 1;
	void *params[] = { &data, &stride, &n };

	while (stride < n) {
		cuLaunchKernel(sweep, 512, 1, 1, 512, 1, 1, 0, s, params, NULL);
		stride += stride;
	}
}

void c2_chunks_and_rest(CUfunction f, CUdeviceptr window, const char *src, size_t total,
			size_t chunk, CUstream s)
{
	size_t whole = total / chunk, rest = total % chunk, i;
	void *params[] = { &window, &chunk };
	void *rest_params[] = { &window, &rest };

	for (i = 0; i < whole; i++) {
		cuMemcpyHtoDAsync_v2(window, src + i * chunk, chunk, s);
		cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, s, params, NULL);
	}
	if (rest) {
		cuMemcpyHtoDAsync_v2(window, src + whole * chunk, rest, s);
		cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, s, rest_params, NULL);
	}
}

void c2_read_tiles(cl_command_queue queue, cl_mem image, float *out, size_t tile, size_t tiles)
{
	for (size_t t = 0; t < tiles; t++)
		clEnqueueReadBuffer(queue, image, CL_FALSE, t * tile * sizeof(*out),
				    tile * sizeof(*out), out + t * tile, 0, NULL, NULL);
	clFinish(queue);
}

void c2_deinterlace(cl_command_queue queue, cl_mem field, cl_mem frame, size_t width,
		    size_t lines)
{
	size_t from[3] = { 0, 0, 0 }, to[3] = { 0, 1, 0 };
	const size_t line[3] = { width, 1, 1 };

	while (from[1] < lines) {
		clEnqueueCopyBufferRect(queue, field, frame, from, to, line, width, 0, width, 0,
					0, NULL, NULL);
		from[1]++;
		to[1] += 2;
	}
}

void c2_jittered_rays(cl_command_queue queue, cl_kernel trace, struct ray_view view,
		      struct extent screen, unsigned int samples)
{
	for (view.sample = 0; view.sample < samples; view.sample++) {
		double angle = 2.399963 * view.sample;

		view.jitter[0] = (float)(0.5 * cos(angle));
		view.jitter[1] = (float)(0.5 * sin(angle));
		clSetKernelArg(trace, 4, sizeof(view), &view);
		run_extent(queue, trace, screen);
	}
}

void c2_nonce_batches(CUfunction hash, CUdeviceptr header, CUdeviceptr found,
		      unsigned long long first, unsigned long long last)
{
	unsigned long long nonce = first;
	void *params[] = { &header, &found, &nonce };

	for (; nonce < last; nonce += 1ull << 20)
		cuLaunchKernel(hash, 4096, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
}

void c2_swap_by_argument(cl_command_queue queue, cl_kernel step, cl_mem a, cl_mem b, size_t n,
			 int steps)
{
	for (int i = 0; i < steps; i++) {
		cl_mem swap = a;

		clSetKernelArg(step, 0, sizeof(a), &a);
		clSetKernelArg(step, 1, sizeof(b), &b);
		clEnqueueNDRangeKernel(queue, step, 1, NULL, &n, NULL, 0, NULL, NULL);
		a = b;
		b = swap;
	}
}

void c2_lu_columns(CUfunction eliminate, CUdeviceptr m, unsigned int n, CUstream s)
{
	unsigned int k;
	void *params[] = { &m, &n, &k };

	for (k = 0; k + 1 < n; k++)
		cuLaunchKernel(eliminate, n - 1 - k, 1, 1, 128, 1, 1, 0, s, params, NULL);
}

void c2_frame_histograms(const unsigned char *video, size_t frames)
{
	for (size_t f = 0; f < frames; f++, video += 4096) {
		cl_uint bins[256] = { 0 };

		for (int p = 0; p < 4096; p++)
			bins[video[p]]++;
		for (int b = 1; b < 256; b++)
			bins[b] += bins[b - 1];
		clEnqueueWriteBuffer(gpu.compute, gpu.lut, CL_TRUE, 0, sizeof(bins), bins, 0, NULL,
				     NULL);
		clEnqueueNDRangeKernel(gpu.compute, gpu.tone, 1, NULL, &gpu.pixels, NULL, 0, NULL,
				       NULL);
	}
}

void c2_paint_levels(CUdeviceptr base, size_t pitch, unsigned char levels, CUstream s)
{
	for (unsigned char level = 0; level < levels; level++)
		cuMemsetD8Async(base + level * pitch, level, pitch, s);
}

void c2_cell_lists(const struct cell *cells, int n, CUdeviceptr list)
{
	const struct cell *c, *end = cells + n;

	for (c = cells; c < end; c++, list += sizeof(*c))
		cuMemcpyHtoD_v2(list, c, sizeof(*c));
}

void c2_rolling_hash(const char *pattern, size_t positions)
{
	cl_uint hash = 5381;

	while (*pattern) {
		hash = (hash << 5) + hash + (unsigned char)*pattern++;
		clSetKernelArg(gpu.hash, 1, sizeof(hash), &hash);
		RUN(gpu.compute, gpu.hash, &positions);
	}
}

void c2_packed_pass(cl_command_queue queue, cl_kernel k, size_t n, int passes)
{
	for (int i = 0; i < passes; i++) {
		union pass_word p = { .word = 0 };

		p.bits.index = (unsigned int)i & 1023;
		p.bits.last = i == passes - 1;
		clSetKernelArg(k, 3, sizeof(p.word), &p.word);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c2_volume_layers(cl_command_queue queue, cl_mem volume, const cl_float *voxels, size_t side,
		      size_t layers)
{
	size_t origin[3] = { 0 }, region[3] = { side, side, 1 };

	for (size_t z = layers; z-- > 0; ) {
		origin[2] = z;
		clEnqueueWriteImage(queue, volume, CL_FALSE, origin, region, 0, 0,
				    voxels + z * side * side, 0, NULL, NULL);
	}
}

void c2_tensor_batches(cl_command_queue queue, struct tensor a, struct tensor b, size_t bytes,
		       int batches)
{
	size_t from = a.offset, to = b.offset;
	int i;

	for (i = 0; i < batches; i++, from += a.stride[0], to += b.stride[0])
		clEnqueueCopyBuffer(queue, a.data, b.data, from, to, bytes, 0, NULL, NULL);
}

void c2_mirror_rows(cl_command_queue queue, cl_mem image, cl_mem mirrored, size_t rows,
		    size_t pitch)
{
	size_t up, down;

	if (!rows)
		return;
	for (up = 0, down = rows - 1; up < down; up++, down--) {
		clEnqueueCopyBuffer(queue, image, mirrored, up * pitch, down * pitch, pitch, 0,
				    NULL, NULL);
		clEnqueueCopyBuffer(queue, image, mirrored, down * pitch, up * pitch, pitch, 0,
				    NULL, NULL);
	}
}

void c2_static_clock(cl_command_queue queue, cl_kernel waves, size_t n, float dt, int frames)
{
	static float now;

	while (frames-- > 0) {
		now += dt;
		frame_number++;
		clSetKernelArg(waves, 1, sizeof(now), &now);
		clSetKernelArg(waves, 2, sizeof(frame_number), &frame_number);
		RUN(queue, waves, &n);
	}
}

void c2_mip_levels(cl_command_queue queue, cl_kernel shrink, size_t width, size_t height)
{
	size_t size[2] = { width, height };

	while (size[0] > 1 || size[1] > 1) {
		size[0] = size[0] > 1 ? size[0] / 2 : 1;
		size[1] = size[1] > 1 ? size[1] / 2 : 1;
		clEnqueueNDRangeKernel(queue, shrink, 2, NULL, size, NULL, 0, NULL, NULL);
	}
}

float c2_static_stages(cl_command_queue queue, cl_kernel k, cl_mem in, cl_mem out, size_t blocks)
{
	const size_t count = 256, bytes = count * sizeof(float);
	float sum = 0.0f;

	for (size_t i = 0; i < blocks; i++) {
		size_t at = i * count;

		clEnqueueWriteBuffer(queue, in, CL_FALSE, i * bytes, bytes, stage_in + at, 0, NULL,
				     NULL);
		clEnqueueNDRangeKernel(queue, k, 1, &at, &count, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(queue, out, CL_FALSE, i * bytes, bytes, stage_out + at, 0,
				    NULL, NULL);
	}
	clFinish(queue);
	for (size_t i = 0; i < blocks * count; i++)
		sum += stage_out[i];
	return sum;
}

void c2_clamped_weights(cl_command_queue queue, cl_kernel k, const float *v, float low, float high,
			size_t n)
{
	const size_t items = 4096;

	for (size_t i = 0; i < n; i++) {
		cl_float w = v[i] < low ? 0.0f : v[i] > high ? 1.0f : (v[i] - low) / (high - low);

		if (!(w > 0.0f))
			continue;
		clSetKernelArg(k, 0, sizeof(w), &w);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, NULL, 0, NULL, NULL);
	}
}

void c2_halo_rows(CUdeviceptr dst, CUdeviceptr src, long long halo, long long rows, long long pitch,
		  CUstream s)
{
	long long row;

	for (row = -halo; row < rows + halo; row++)
		cuMemcpyDtoDAsync_v2(dst + row * pitch, src + row * pitch, (size_t)pitch, s);
}

void c2_chebyshev(CUfunction smooth, CUdeviceptr x, CUdeviceptr b, float rho, int sweeps)
{
	float omega = 1.0f;
	void *params[] = { &x, &b, &omega };

	for (int i = 0; i != sweeps; ++i) {
		cuLaunchKernel(smooth, 1024, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
		omega = 1.0f / (1.0f - 0.25f * rho * rho * omega);
	}
}

void c2_masked_blocks(CUdeviceptr frame, CUdeviceptr reference, const signed char *skipped, int n)
{
	for (int block = 0; block < n; block++) {
		if (skipped[block] < 0)
			break;
		if (!skipped[block])
			continue;
		cuMemcpyDtoD_v2(frame + 384ull * (unsigned int)block,
				reference + 384ull * (unsigned int)block, 384);
	}
}

/* Class 3 */

void c3_event_chain(cl_command_queue queue, cl_kernel k, size_t n, int links)
{
	cl_event before, after;

	clEnqueueMarkerWithWaitList(queue, 0, NULL, &before);
	while (links-- > 0) {
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 1, &before, &after);
		clReleaseEvent(before);
		before = after;
	}
	clReleaseEvent(before);
}

void c3_scratch_halves(CUfunction f, CUdeviceptr data, size_t bytes, unsigned int times)
{
	for (; times; times--) {
		CUdeviceptr low, high;
		void *params[] = { &data, &low, &high };

		cuMemAlloc_v2(&low, bytes);
		high = low + 65536;
		cuMemsetD8_v2(high, 0xff, 4096);
		cuLaunchKernel(f, 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
		cuMemFree_v2(low);
	}
}

CUdeviceptr c3_grow_table(CUdeviceptr table, size_t bytes, size_t step, int rounds)
{
	CUdeviceptr grown;

	for (; rounds > 0; rounds--, bytes += step) {
		cuMemAlloc_v2(&grown, bytes + step);
		cuMemcpyDtoD_v2(grown, table, bytes);
		cuMemFree_v2(table);
		table = grown;
	}
	return table;
}

void c3_sub_buffers(cl_command_queue queue, cl_kernel k, cl_mem whole, size_t part, size_t parts)
{
	cl_buffer_region region = { 0, part };

	for (size_t i = 0; i < parts; i++) {
		cl_mem sub;

		region.origin = i * part;
		sub = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
					&region, NULL);
		clSetKernelArg(k, 0, sizeof(sub), &sub);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &part, NULL, 0, NULL, NULL);
		clReleaseMemObject(sub);
	}
}

void c3_copy_and_compute(cl_command_queue copy, cl_command_queue compute, cl_kernel k, cl_mem buf,
			 const float *src, size_t n, int chunks)
{
	cl_event ev[2];

	for (int i = 0; i < chunks; i++, src += n) {
		clEnqueueWriteBuffer(copy, buf, CL_FALSE, 0, n * sizeof(*src), src, 0, NULL,
				     &ev[0]);
		clEnqueueNDRangeKernel(compute, k, 1, NULL, &n, NULL, 1, &ev[0], &ev[1]);
		clEnqueueBarrierWithWaitList(copy, 1, &ev[1], NULL);
		clReleaseEvent(ev[0]);
		clReleaseEvent(ev[1]);
	}
}

void c3_ring_of_four(cl_command_queue queue, cl_kernel k, size_t n, unsigned int frames)
{
	cl_event ring[4], done;

	clEnqueueMarkerWithWaitList(queue, 0, NULL, &ring[0]);
	clEnqueueMarkerWithWaitList(queue, 0, NULL, &ring[1]);
	clEnqueueMarkerWithWaitList(queue, 0, NULL, &ring[2]);
	clEnqueueMarkerWithWaitList(queue, 0, NULL, &ring[3]);
	for (unsigned int i = 0; i < frames; i++) {
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 1, &ring[i & 3], &done);
		clReleaseEvent(ring[i & 3]);
		ring[i & 3] = done;
	}
	clReleaseEvent(ring[0]);
	clReleaseEvent(ring[1]);
	clReleaseEvent(ring[2]);
	clReleaseEvent(ring[3]);
}

void c3_image_pyramid(cl_context context, cl_command_queue queue, cl_kernel blur, size_t side)
{
	const cl_image_format format = { CL_R, CL_FLOAT };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D };
	size_t size[2];
	cl_int ignored;

	for (; side > 8; side /= 2) {
		cl_mem level;

		desc.image_width = desc.image_height = size[0] = size[1] = side;
		level = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &ignored);
		clSetKernelArg(blur, 1, sizeof(level), &level);
		clEnqueueNDRangeKernel(queue, blur, 2, NULL, size, NULL, 0, NULL, NULL);
		clReleaseMemObject(level);
	}
}

void c3_kernel_each_time(cl_program program, cl_command_queue queue, cl_mem words, size_t n,
			 short times)
{
	while (--times >= 0) {
		cl_kernel k = clCreateKernel(program, "sha256_rounds", NULL);

		clSetKernelArg(k, 0, sizeof(words), &words);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clReleaseKernel(k);
	}
}

void c3_stream_per_chunk(CUfunction f, CUdeviceptr data, const int *src, size_t n, int chunks)
{
	void *params[] = { &data, &n };

	for (int i = 0; i < chunks; i++) {
		CUstream s;

		cuStreamCreate(&s, 1);
		cuMemcpyHtoDAsync_v2(data + i * n * sizeof(*src), src + i * n, n * sizeof(*src), s);
		cuLaunchKernel(f, 8, 8, 1, 16, 16, 1, 0, s, params, NULL);
		cuStreamDestroy_v2(s);
	}
}

void c3_module_function(CUmodule module, CUdeviceptr x, CUstream a, CUstream b, unsigned int n)
{
	void *params[] = { &x };

	for (unsigned int i = n; i--; ) {
		CUfunction f;
		CUevent e;

		cuModuleGetFunction(&f, module, "build_neighbours");
		cuLaunchKernel(f, 96, 1, 1, 192, 1, 1, 0, a, params, NULL);
		cuEventCreate(&e, 2);
		cuEventRecord(e, a);
		cuStreamWaitEvent(b, e, 0);
		cuEventDestroy_v2(e);
	}
}

void c3_slab_records(CUfunction f, size_t bytes, unsigned int records, CUstream s)
{
	CUdeviceptr slab;
	void *params[] = { &slab };

	for (unsigned int i = 0; i < records; i++) {
		cuMemAlloc_v2(&slab, bytes);
		cuMemsetD32Async(slab + (CUdeviceptr)i * 64, 1, 16, s);
		cuLaunchKernel(f, 40, 1, 1, 40, 1, 1, 0, s, params, NULL);
		cuMemFree_v2(slab);
	}
}

static inline struct staged stage(const cl_float *data, size_t bytes)
{
	struct staged s;

	s.mem = clCreateBuffer(gpu.context, CL_MEM_READ_ONLY, bytes, NULL, NULL);
	clEnqueueWriteBuffer(gpu.copy, s.mem, CL_FALSE, 0, bytes, data, 0, NULL, &s.ready);
	return s;
}

void c3_staged_batches(const cl_float *samples, size_t n, int batches)
{
	for (int b = 0; b < batches; b++) {
		struct staged s = stage(samples + b * n, n * sizeof(*samples));

		clSetKernelArg(gpu.tone, 0, sizeof(s.mem), &s.mem);
		clEnqueueNDRangeKernel(gpu.compute, gpu.tone, 1, NULL, &n, NULL, 1, &s.ready,
				       NULL);
		clReleaseEvent(s.ready);
		clReleaseMemObject(s.mem);
	}
}

void c3_join_three(const cl_command_queue *q, cl_kernel k, size_t n, int rounds)
{
	cl_event join, part[3];

	clEnqueueMarkerWithWaitList(q[0], 0, NULL, &join);
	for (int i = 0; i < rounds; i++) {
		clEnqueueNDRangeKernel(q[0], k, 1, NULL, &n, NULL, 1, &join, part);
		clEnqueueNDRangeKernel(q[1], k, 1, NULL, &n, NULL, 1, &join, part + 1);
		clEnqueueNDRangeKernel(q[2], k, 1, NULL, &n, NULL, 1, &join, part + 2);
		clReleaseEvent(join);
		clEnqueueMarkerWithWaitList(q[0], 3, part, &join);
		clReleaseEvent(part[0]);
		clReleaseEvent(part[1]);
		clReleaseEvent(part[2]);
	}
	clReleaseEvent(join);
}

/* Left on an error, class 1 */

cl_int s1_smooth_goto(cl_command_queue queue, cl_kernel smooth, cl_mem a, cl_mem b, size_t n,
		      int passes)
{
	cl_int err = CL_SUCCESS;
	int i;

	for (i = 0; i < passes; i++) {
		err = clEnqueueNDRangeKernel(queue, smooth, 1, NULL, &n, NULL, 0, NULL, NULL);
		if (err != CL_SUCCESS)
			goto out;
		err = clEnqueueCopyBuffer(queue, b, a, 0, 0, n, 0, NULL, NULL);
		if (err != CL_SUCCESS)
			goto out;
	}
out:
	clReleaseMemObject(b);
	return err;
}

void s1_must_launch(const struct lattice *l, void **params, unsigned int steps)
{
	while (steps--) {
		must(cuLaunchKernel(l->collide, l->bx, 1, 1, 64, 1, 1, 0, l->s, params, NULL));
		must(cuLaunchKernel(l->edge, 6, 1, 1, 64, 1, 1, 0, l->s, params, NULL));
	}
}

cl_int s1_while_it_works(cl_command_queue queue, cl_kernel k, struct extent e, unsigned int left)
{
	size_t global[3] = { e.x, e.y, e.z };
	cl_int err;

	for (err = CL_SUCCESS; err == CL_SUCCESS && left; left--)
		err = clEnqueueNDRangeKernel(queue, k, 3, NULL, global, NULL, 0, NULL, NULL);
	return err;
}

cl_int s1_try_tasks(cl_command_queue queue, cl_kernel k, const struct task *t, size_t n)
{
	for (; t; t = t->next) {
		if (t->kind == 2)
			continue;
		CL_TRY(clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL));
		CL_TRY(clFlush(queue));
	}
	return CL_SUCCESS;
}

/* Left on an error, class 2 */

CUresult s2_upload_rows(CUdeviceptr dst, const unsigned char *src, size_t width, size_t pitch,
			int rows)
{
	CUresult r = CUDA_SUCCESS;

	for (int y = 0; y < rows; y++) {
		r = cuMemcpyHtoD_v2(dst + y * pitch, src + y * width, width);
		if (r)
			goto fail;
	}
	return CUDA_SUCCESS;
fail:
	cuMemFree_v2(dst);
	return r;
}

cl_int s2_odd_even_sort(cl_command_queue queue, cl_kernel k, size_t half, cl_int n)
{
	for (cl_int phase = 0; phase < n; phase++) {
		cl_int odd = phase & 1;

		CL_TRY(clSetKernelArg(k, 1, sizeof(odd), &odd));
		CL_TRY(clEnqueueNDRangeKernel(queue, k, 1, NULL, &half, NULL, 0, NULL, NULL));
	}
	return CL_SUCCESS;
}

int s2_wrapped_argument(cl_command_queue queue, cl_kernel k, size_t n, int passes)
{
	int i;

	for (i = 0; i < passes; i++) {
		if (set_int(k, 2, i) ||
		    clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL))
			break;
	}
	return i == passes;
}

int s2_annealing(CUfunction sweep, CUdeviceptr spins, float t, float t_end, CUstream s)
{
	void *params[] = { &spins, &t };

	do {
		if (!launched(sweep, 1024, s, params))
			return -1;
		t *= 0.97f;
	} while (t > t_end);
	return 0;
}

CUresult s2_download_planes(unsigned char *out, CUdeviceptr frames, size_t plane, int planes)
{
	CUresult r;
	int i = 0;

	do {
		r = cuMemcpyDtoH_v2(out + i * plane, frames + i * plane, plane);
	} while (r == CUDA_SUCCESS && ++i < planes);
	return r;
}

/* Left on an error, class 3 */

CUresult s3_scratch(CUfunction f, size_t bytes, CUstream s, int n)
{
	CUresult r = CUDA_SUCCESS;

	while (n-- > 0) {
		CUdeviceptr tmp;
		void *params[] = { &tmp };

		r = cuMemAlloc_v2(&tmp, bytes);
		if (r != CUDA_SUCCESS)
			break;
		r = cuLaunchKernel(f, 12, 1, 1, 96, 1, 1, 0, s, params, NULL);
		if (r != CUDA_SUCCESS) {
			cuMemFree_v2(tmp);
			break;
		}
		cuMemFree_v2(tmp);
	}
	return r;
}

cl_int s3_chain_goto(cl_command_queue queue, cl_kernel k, size_t n, int links)
{
	cl_event prev, next;
	cl_int err = clEnqueueMarkerWithWaitList(queue, 0, NULL, &prev);

	if (err != CL_SUCCESS)
		return err;
	for (int i = 0; i < links; i++) {
		err = clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 1, &prev, &next);
		if (err != CL_SUCCESS)
			goto out;
		clReleaseEvent(prev);
		prev = next;
	}
out:
	clReleaseEvent(prev);
	return err;
}

int s3_strips(cl_command_queue queue, cl_kernel k, cl_mem image, size_t strip, size_t strips)
{
	for (size_t i = 0; i < strips; i++) {
		cl_buffer_region r = { .origin = i * strip, .size = strip };
		cl_int err;
		cl_mem part = clCreateSubBuffer(image, 0, CL_BUFFER_CREATE_TYPE_REGION, &r, &err);

		if (err != CL_SUCCESS)
			return 0;
		clSetKernelArg(k, 0, sizeof(part), &part);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &strip, NULL, 0, NULL, NULL);
		clReleaseMemObject(part);
	}
	return 1;
}

void s3_must_fork(CUstream from, CUstream to, CUdeviceptr a, CUdeviceptr b, size_t n, int times)
{
	CUevent e;

	for (int i = 0; i < times; i++) {
		must(cuMemcpyDtoDAsync_v2(b, a, n, from));
		must(cuEventCreate(&e, 0));
		must(cuEventRecord(e, from));
		must(cuStreamWaitEvent(to, e, 0));
		must(cuEventDestroy_v2(e));
	}
}

/* Nested, the inner loop of class 1 */

int n1_cg_restarts(CUfunction spmv, CUfunction axpy, CUdeviceptr x, CUdeviceptr rr, CUstream s,
		   int inner, float limit)
{
	void *params[] = { &x, &rr };
	int outer = 0;
	float norm;

	do {
		for (int i = 0; i < inner; i++) {
			cuLaunchKernel(spmv, 300, 1, 1, 128, 1, 1, 0, s, params, NULL);
			cuLaunchKernel(axpy, 300, 1, 1, 128, 1, 1, 0, s, params, NULL);
		}
		cuStreamSynchronize(s);
		cuMemcpyDtoH_v2(&norm, rr, sizeof(norm));
		outer++;
	} while (norm > limit);
	return outer;
}

void n1_life_with_progress(cl_command_queue queue, cl_kernel step, struct extent world, int shows,
			   int between)
{
	for (int shown = 0; shown < shows; shown++) {
		for (int i = between; i > 0; i--)
			run_extent(queue, step, world);
		progress(100 * shown / shows);
	}
}

void n1_smooth_where_marked(cl_command_queue queue, cl_kernel k, size_t n, const short *sweeps,
			    int count)
{
	for (int i = 0; i < count; i++)
		for (short j = 0; j < sweeps[i]; j++)
			clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

/* Nested, the inner loop of class 2 */

void n2_bitonic_sort(cl_command_queue queue, cl_kernel stage, cl_uint n)
{
	size_t items = n / 2;

	for (cl_uint k = 2; k <= n && k; k <<= 1) {
		for (cl_uint j = k / 2; j > 0; j /= 2) {
			clSetKernelArg(stage, 1, sizeof(j), &j);
			clSetKernelArg(stage, 2, sizeof(k), &k);
			clEnqueueNDRangeKernel(queue, stage, 1, NULL, &items, NULL, 0, NULL, NULL);
		}
	}
}

void n2_tiles(CUdeviceptr atlas, CUdeviceptr tiles, size_t rows, size_t columns, size_t pitch,
	      size_t width, CUstream s)
{
	for (size_t y = 0; y < rows; y++)
		for (size_t x = 0; x < columns; x++)
			cuMemcpyDtoDAsync_v2(atlas + y * pitch + x * width, tiles + x * width,
					     width, s);
}

void n2_planes_of_frames(cl_command_queue queue, cl_kernel k, size_t n, cl_int planes, int frames)
{
	for (int f = 0; f < frames; f++) {
		for (cl_int p = 0; p < planes; p++) {
			clSetKernelArg(k, 1, sizeof(p), &p);
			clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		}
		clFinish(queue);
	}
}

void n2_fft_blocks(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	for (size_t len = 8; len < n; len *= 2)
		for (size_t i = 0; i < n / len; i++)
			cuMemcpyDtoDAsync_v2(dst + i * len, src + i * len, len, s);
}

void n2_neighbour_rebuild(cl_command_queue queue, cl_kernel move, cl_mem moved, size_t atoms,
			  float dt, float end)
{
	float time = 0.0f, drift = 0.0f;

	while (time < end) {
		int steps = drift > 1.0f ? 5 : drift > 0.1f ? 20 : 100;

		while (steps-- > 0) {
			time += dt;
			clSetKernelArg(move, 3, sizeof(time), &time);
			clEnqueueNDRangeKernel(queue, move, 1, NULL, &atoms, NULL, 0, NULL, NULL);
		}
		clEnqueueReadBuffer(queue, moved, CL_TRUE, 0, sizeof(drift), &drift, 0, NULL, NULL);
	}
}

/* Not deferrable: a result is read */

int c0_jacobi_residual(cl_command_queue queue, cl_kernel k, cl_mem residual, size_t n, float limit)
{
	float r;
	int i = 0;

	do {
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(queue, residual, CL_TRUE, 0, sizeof(r), &r, 0, NULL, NULL);
		i++;
	} while (r > limit);
	return i;
}

unsigned int c0_count_failures(CUfunction f, CUstream s, void **params, int n)
{
	unsigned int failed = 0;

	for (int i = 0; i < n; i++)
		failed += cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL) != CUDA_SUCCESS;
	return failed;
}

cl_int c0_or_of_statuses(cl_command_queue queue, cl_kernel k, size_t n, cl_uint passes)
{
	cl_int err = 0;

	for (cl_uint p = 0; p < passes; p++) {
		err |= clSetKernelArg(k, 0, sizeof(p), &p);
		err |= clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
	return err;
}

void c0_skip_after_failure(cl_command_queue queue, cl_kernel k, size_t n, cl_uint passes)
{
	for (cl_uint p = 0; p < passes; p++) {
		if (clSetKernelArg(k, 0, sizeof(p), &p) != CL_SUCCESS)
			continue;
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

CUdeviceptr c0_allocate_less(size_t bytes, size_t least)
{
	CUdeviceptr p = 0;

	while (cuMemAlloc_v2(&p, bytes) != CUDA_SUCCESS && bytes > least)
		bytes -= least;
	return p;
}

static noinline unsigned int adler(const unsigned char *p, size_t n)
{
	unsigned int a = 1, b = 0;

	for (size_t i = 0; i < n; i++) {
		a = (a + p[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

unsigned int c0_checksum_of_blocks(CUdeviceptr data, int blocks)
{
	unsigned char block[512];
	unsigned int sum = 0;

	for (int i = 0; i < blocks; i++) {
		cuMemcpyDtoH_v2(block, data + 512ull * (unsigned int)i, sizeof(block));
		sum ^= adler(block, sizeof(block));
	}
	return sum;
}

void c0_best_steers_mutation(cl_command_queue queue, cl_kernel mutate, cl_mem best, size_t n,
			     int generations)
{
	float rate = 0.5f;

	for (int g = 0; g < generations; g++) {
		float fitness;

		clSetKernelArg(mutate, 1, sizeof(rate), &rate);
		clEnqueueNDRangeKernel(queue, mutate, 1, NULL, &n, NULL, 0, NULL, NULL);
		clEnqueueReadBuffer(queue, best, CL_TRUE, 0, sizeof(fitness), &fitness, 0, NULL,
				    NULL);
		rate = 0.5f * (rate + expf(-fitness));
	}
}

/* Not deferrable: what the host does with handles */

int c0_buffer_or_null(cl_context context, cl_command_queue queue, size_t bytes, int n)
{
	const cl_uchar zero = 0;

	for (int i = 0; i < n; i++) {
		cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL);

		if (!m)
			return i;
		clEnqueueFillBuffer(queue, m, &zero, 1, 0, bytes, 0, NULL, NULL);
		clReleaseMemObject(m);
	}
	return n;
}

void c0_buffers_to_array(cl_context context, cl_mem *buffers, size_t bytes, int n)
{
	for (int i = 0; i < n; i++)
		buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
}

void c0_latest_event(cl_command_queue queue, cl_kernel k, size_t n, int times)
{
	while (times-- > 0) {
		clReleaseEvent(latest);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, &latest);
	}
}

void c0_event_of_each_task(cl_command_queue queue, cl_kernel k, size_t n, struct task *t)
{
	for (; t; t = t->next)
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, &t->done);
}

void c0_aligned_scratch(CUfunction f, size_t bytes, int n, CUstream s)
{
	while (n-- > 0) {
		CUdeviceptr raw, aligned;
		void *params[] = { &aligned };

		cuMemAlloc_v2(&raw, bytes + 4095);
		aligned = (raw + 4095) & ~4095ull;
		cuLaunchKernel(f, 20, 1, 1, 64, 1, 1, 0, s, params, NULL);
		cuMemFree_v2(raw);
	}
}

/* Not deferrable: calls that wait, ask or call back */

void c0_finish_each_frame(cl_command_queue queue, cl_kernel k, size_t n, int frames)
{
	for (int i = 0; i < frames; i++) {
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
		clFinish(queue);
	}
}

void c0_wait_for_two(cl_command_queue a, cl_command_queue b, cl_kernel k, size_t n, int rounds)
{
	cl_event both[2];

	for (int i = 0; i < rounds; i++) {
		clEnqueueNDRangeKernel(a, k, 1, NULL, &n, NULL, 0, NULL, both);
		clEnqueueNDRangeKernel(b, k, 1, NULL, &n, NULL, 0, NULL, both + 1);
		clWaitForEvents(2, both);
		clReleaseEvent(both[0]);
		clReleaseEvent(both[1]);
	}
}

void c0_map_and_fill(cl_command_queue queue, cl_mem buf, const float *src, size_t n, int rounds)
{
	for (int r = 0; r < rounds; r++) {
		float *p = clEnqueueMapBuffer(queue, buf, CL_TRUE, CL_MAP_WRITE, 0, n * sizeof(*p),
					      0, NULL, NULL, NULL);

		for (size_t i = 0; i < n; i++)
			p[i] = src[i] * (float)r;
		clEnqueueUnmapMemObject(queue, buf, p, 0, NULL, NULL);
	}
}

unsigned long c0_work_while_busy(CUevent done, CUfunction idle, CUstream s, void **params)
{
	unsigned long filled = 0;

	while (cuEventQuery(done) == CUDA_ERROR_NOT_READY) {
		cuLaunchKernel(idle, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
		filled++;
	}
	return filled;
}

float c0_fastest_run(CUfunction f, CUevent from, CUevent to, CUstream s, void **params, int n)
{
	float best = INFINITY;

	while (n-- > 0) {
		float ms;

		cuEventRecord(from, s);
		cuLaunchKernel(f, 256, 1, 1, 256, 1, 1, 0, s, params, NULL);
		cuEventRecord(to, s);
		cuEventSynchronize(to);
		cuEventElapsedTime(&ms, from, to);
		if (ms < best)
			best = ms;
	}
	return best;
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *data)
{
	(void)event;
	if (status == CL_COMPLETE)
		++*(int *)data;
}

void c0_completion_callbacks(cl_command_queue queue, cl_kernel k, size_t n, int *done, int times)
{
	for (int i = 0; i < times; i++) {
		cl_event e;

		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, &e);
		clSetEventCallback(e, CL_COMPLETE, on_complete, done);
		clReleaseEvent(e);
	}
}

size_t c0_sizes_of_images(cl_command_queue queue, const cl_mem *images, int n)
{
	const cl_uint black[4] = { 0 };
	const size_t origin[3] = { 0 };
	size_t pixels = 0;

	for (int i = 0; i < n; i++) {
		size_t region[3] = { 0, 0, 1 };

		clGetImageInfo(images[i], CL_IMAGE_WIDTH, sizeof(size_t), &region[0], NULL);
		clGetImageInfo(images[i], CL_IMAGE_HEIGHT, sizeof(size_t), &region[1], NULL);
		clEnqueueFillImage(queue, images[i], black, origin, region, 0, NULL, NULL);
		pixels += region[0] * region[1];
	}
	return pixels;
}

void c0_context_sync(CUdeviceptr window, const char *src, size_t chunk, int chunks)
{
	for (int i = 0; i < chunks; i++, src += chunk) {
		cuMemcpyHtoDAsync_v2(window, src, chunk, NULL);
		cuCtxSynchronize();
	}
}

/* Not deferrable: unknown functions */

void c0_percentage(cl_command_queue queue, cl_kernel k, size_t n, int samples)
{
	for (int i = 0; i < samples; i++) {
		if (i % 64 == 0)
			progress(100 * i / samples);
		clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
	}
}

void c0_verbose_levels(CUdeviceptr p, size_t n, unsigned int levels)
{
	for (unsigned int l = 0; l < levels; l++) {
		printf("level %u\n", l);
		cuMemsetD32_v2(p + 4 * l * n, l, n);
	}
}

void c0_hook(CUfunction f, CUstream s, void **params, void (*hook)(int), int n)
{
	for (int i = 0; i < n; i++) {
		hook(i);
		cuLaunchKernel(f, 4, 4, 4, 4, 4, 4, 0, s, params, NULL);
	}
}

void c0_elsewhere_on_match(cl_command_queue queue, cl_kernel search, size_t n, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			elsewhere(0);
		RUN(queue, search, &n);
	}
}

/* Not deferrable: arguments passed by value that are neither constant nor a * i + b */

void c0_last_chunk_is_shorter(CUdeviceptr dst, const char *src, size_t left, size_t chunk)
{
	while (left) {
		size_t n = left < chunk ? left : chunk;

		cuMemcpyHtoD_v2(dst, src, n);
		dst += n;
		src += n;
		left -= n;
	}
}

void c0_tree_reduction(CUfunction reduce, unsigned int blocks, CUstream s, void **params)
{
	for (; blocks > 1; blocks /= 2)
		cuLaunchKernel(reduce, blocks, 1, 1, 256, 1, 1, 1024, s, params, NULL);
}

void c0_blocks_rounded_up(CUfunction f, unsigned int n, void **params)
{
	for (unsigned int k = 0; k < n; k++)
		cuLaunchKernel(f, (n - k + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}

void c0_pipeline_of_kernels(cl_command_queue queue, const cl_kernel *stages, int n, size_t items)
{
	for (int i = 0; i < n; i++)
		clEnqueueNDRangeKernel(queue, stages[i], 1, NULL, &items, NULL, 0, NULL, NULL);
}

void c0_swap_buffers(cl_command_queue queue, cl_mem a, cl_mem b, size_t shift, size_t n, int steps)
{
	for (int i = 0; i < steps; i++) {
		cl_mem t = a;

		clEnqueueCopyBuffer(queue, a, b, shift, 0, n, 0, NULL, NULL);
		a = b;
		b = t;
	}
}

void c0_random_block(CUdeviceptr dst, CUdeviceptr pool, unsigned int seed, int draws)
{
	while (draws-- > 0) {
		seed = seed * 1664525u + 1013904223u;
		cuMemcpyDtoD_v2(dst, pool + (seed >> 20) * 256ull, 256);
	}
}

void c0_triangle_rows(cl_command_queue queue, cl_mem packed, cl_mem full, size_t n)
{
	for (size_t i = 0; i < n; i++)
		clEnqueueCopyBuffer(queue, packed, full, i * i * sizeof(float),
				    i * n * sizeof(float), 64, 0, NULL, NULL);
}

void c0_three_slots(CUdeviceptr ring, CUdeviceptr frames, size_t bytes, unsigned int n, CUstream s)
{
	for (unsigned int i = 0; i < n; i++)
		cuMemcpyDtoDAsync_v2(ring + (i % 3) * bytes, frames + i * bytes, bytes, s);
}

void c0_doubling_copy(CUdeviceptr p, size_t filled, size_t total)
{
	for (; filled * 2 <= total; filled *= 2)
		cuMemcpyDtoD_v2(p + filled, p, filled);
}

void c0_parity_bit(CUdeviceptr field, size_t n, struct tensor t, int steps, CUstream s)
{
	for (int i = 0; i < steps; i++) {
		t.transposed ^= 1;
		cuMemsetD8Async(field, t.transposed, n, s);
	}
}

void c0_compact_rows(cl_command_queue queue, cl_mem from, cl_mem to, const int *live, size_t pitch,
		     int rows)
{
	size_t at = 0;

	for (int y = 0; y < rows; y++) {
		if (!live[y])
			continue;
		clEnqueueCopyBuffer(queue, from, to, (size_t)y * pitch, at, pitch, 0, NULL, NULL);
		at += pitch;
	}
}

/* Not deferrable: host code may use what a copy that is still under way writes */

float c0_weights_may_be_the_target(float *out, const float *weights, CUdeviceptr src, size_t n,
				   int blocks, CUstream s)
{
	float total = 0.0f;

	for (int i = 0; i < blocks; i++) {
		cuMemcpyDtoHAsync_v2(out + i * n, src + i * n * sizeof(*out), n * sizeof(*out), s);
		total += weights[i];
	}
	return total;
}

void c0_clears_what_is_read(cl_command_queue queue, cl_mem src, cl_int *a, cl_int *b, size_t n,
			    size_t rounds)
{
	for (size_t r = 0; r < rounds; r++) {
		clEnqueueReadBuffer(queue, src, CL_FALSE, r * n, n, a, 0, NULL, NULL);
		b[r] = 0;
	}
}

int main(void)
{
	return 0;
}

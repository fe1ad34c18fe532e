// SPDX-License-Identifier: GPL-2.0-only
/* Guests of the preemption bench, their contexts and their jobs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "preempt.h"

/* The module's own decoder says what a job will be. */
#include "../../../kmod/compute/compute.h"
#include "../../../tests/kselftest/lib/compute.h"

#define RES_IN		1
#define RES_OUT		2

#define OVERHEAD	(4 * MIB)	/* of a machine: rings and their pages */

#define OK		VIRTIO_GPU_RESP_OK_NODATA

/* ---- jobs ---- */

#define PICTURE		512u		/* SCALE: side of the source, width of the result */
#define ITERATIONS	MGPU_COMPUTE_MAX_ITERATIONS
#define CHUNK		4096u
#define TABLE_LOG2	20u
#define STEPS		1024u

static uint64_t whole(double n, uint64_t least)
{
	return n < (double)least ? least : (uint64_t)n;
}

static void make_scale(struct mgpu_compute_scale *s, double units, size_t at)
{
	uint64_t rows = whole(units / 16 / PICTURE, 1);

	s->src.width = PICTURE;
	s->src.height = PICTURE;
	s->src.stride = 4 * PICTURE;
	s->dst = s->src;
	s->dst.offset = at;
	s->dst.height = (uint32_t)(rows < MGPU_COMPUTE_MAX_DIM ? rows :
				   MGPU_COMPUTE_MAX_DIM);
}

static void make_mandelbrot(struct mgpu_compute_mandelbrot *m, double units,
			    uint32_t iterations, size_t at)
{
	uint64_t pixels = whole(units / 8 / iterations, 1);
	int64_t one = 1ll << MGPU_COMPUTE_FIXED_SHIFT;
	uint64_t width = pixels < 16 ? pixels : pixels < 16 * 4096 ? 16 : 1024;

	m->width = (uint32_t)width;
	m->height = (uint32_t)(pixels / width);
	m->iterations = iterations;
	m->offset = at;
	m->hist_offset = (at + 4 * width * m->height + 7) & ~7ull;
	m->left = (uint64_t)(-2 * one);
	m->top = (uint64_t)(-one);
	m->dx = (uint64_t)(3 * one / (int64_t)width);
	m->dy = (uint64_t)(2 * one / (int64_t)m->height);
}

static void make_gather(struct mgpu_compute_gather *p, double units, uint32_t log2,
			size_t at)
{
	uint64_t steps = whole(units / 4, 1);

	p->steps = (uint32_t)(steps < STEPS ? steps : STEPS);
	p->walks = (uint32_t)(steps / p->steps);
	p->table_log2 = log2;
	p->seed = 1;
	p->offset = at;
	p->sum_offset = at + 8ull * p->walks;
}

int job_make(struct job *j, const struct job_shape *shape, size_t at, size_t in,
	     size_t out)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_compute_cmd *c = &j->cmd;
	struct mgpu_compute d;
	uint64_t n;
	uint32_t i;

	memset(j, 0, sizeof(*j));
	*c = job_new(shape->op, 2, RES_OUT, RES_IN, 0);
	c->slots = shape->slots;
	switch (shape->op) {
	case MGPU_COMPUTE_FILL:
		c->nr_res = 1;
		c->res[1] = 0;
		c->fill.offset = at;
		c->fill.length = 8 * whole(shape->units, 1);
		c->fill.pattern = 0x0123456789abcdefull;
		break;
	case MGPU_COMPUTE_COPY:
	case MGPU_COMPUTE_ACCUMULATE:
		c->move.dst_offset = at;
		c->move.length = 8 * whole(shape->units, 1);
		break;
	case MGPU_COMPUTE_SCALE:
		make_scale(&c->scale, shape->units, at);
		break;
	case MGPU_COMPUTE_MATMUL:
		n = whole(round(cbrt(shape->units)), 1);
		c->nr_res = 3;
		c->res[2] = RES_IN;
		c->matmul.n = (uint32_t)n;
		c->matmul.c_offset = at;
		c->matmul.b_offset = (4 * n * n + 7) & ~7ull;
		break;
	case MGPU_COMPUTE_MANDELBROT:
		c->nr_res = 1;
		c->res[1] = 0;
		make_mandelbrot(&c->mandelbrot, shape->units,
				shape->knob ? shape->knob : ITERATIONS, at);
		break;
	case MGPU_COMPUTE_HASH:
		c->hash.length = 8 * whole(shape->units / 4, 1);
		c->hash.chunk = shape->knob ? shape->knob : CHUNK;
		n = (c->hash.length + c->hash.chunk - 1) / c->hash.chunk;
		c->hash.offset = at;
		c->hash.sum_offset = at + 8 * n;
		break;
	case MGPU_COMPUTE_GATHER:
		make_gather(&c->gather, shape->units,
			    shape->knob ? shape->knob : TABLE_LOG2, at);
		break;
	}
	if (mgpu_compute_decode(c, sizeof(*c), &d))
		return -EINVAL;
	for (i = 0; i < d.nr_bufs; i++) {
		bufs[i].base = NULL;
		bufs[i].size = d.res[i] == RES_IN ? in : out;
	}
	if (mgpu_compute_check(&d, bufs))
		return -ERANGE;
	j->inst = d.inst;
	j->bytes = d.bytes;
	j->live = mgpu_compute_live(&d);
	j->tiles = d.tiles;
	j->idempotent = d.idempotent;
	for (i = 0; i < d.nr_ranges; i++)
		if (d.range[i].write && d.range[i].offset + d.range[i].size - at > j->out)
			j->out = d.range[i].offset + d.range[i].size - at;
	return 0;
}

/* ---- guests ---- */

static void randomize(uint8_t *p, size_t size)
{
	uint64_t *w = (uint64_t *)p, x = 0x9e3779b97f4a7c15ull;
	size_t i;

	for (i = 0; i < size / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		w[i] = x;
	}
}

int guest_open(struct bench *b, struct guest *g, size_t in, size_t out)
{
	struct mgpu_vgpu_info info;
	struct mgpu_error err = { 0 };
	int ret;

	memset(g, 0, sizeof(*g));
	ret = vm_new(&g->vm, "large-render", in + out + OVERHEAD);
	if (ret) {
		complain("cannot make a vGPU: %s", strerror(-ret));
		return ret;
	}
	ret = vm_start_with(&g->vm, RENDER_FEATURES);
	if (ret) {
		complain("cannot start the driver of vGPU %s: %s", g->vm.uuid, strerror(-ret));
		goto fail;
	}
	ret = mgpu_vgpu_find(b->mgpu, g->vm.uuid, &info, &err);
	if (ret) {
		complain("%s", err.text);
		goto fail;
	}
	g->id = info.id;
	g->in_size = in;
	g->out_size = out;
	g->in = vm_alloc(&g->vm, in, 4096);
	g->out = vm_alloc(&g->vm, out, 4096);
	ret = -ENOMEM;
	if (!g->in || !g->out)
		goto fail;
	randomize(g->in, in);
	memset(g->out, 0, out);
	ret = -EREMOTEIO;
	if (gpu_create_blob(&g->vm, RES_IN, g->in, in) != OK ||
	    gpu_create_blob(&g->vm, RES_OUT, g->out, out) != OK) {
		complain("vGPU %u refused a blob", g->id);
		goto fail;
	}
	return 0;
fail:
	guest_close(g);
	return ret;
}

void guest_close(struct guest *g)
{
	if (g->vm.made)
		vm_delete(&g->vm);
	memset(g, 0, sizeof(*g));
}

int guest_context(struct guest *g, uint32_t ctx)
{
	if (ctx_create(&g->vm, ctx, MGPU_CAPSET_COMPUTE) == OK &&
	    ctx_attach(&g->vm, ctx, RES_IN) == OK &&
	    ctx_attach(&g->vm, ctx, RES_OUT) == OK)
		return 0;
	complain("vGPU %u refused context %u", g->id, ctx);
	return -EREMOTEIO;
}

int guest_context_end(struct guest *g, uint32_t ctx)
{
	if (ctx_destroy(&g->vm, ctx) == OK)
		return 0;
	complain("vGPU %u did not end context %u", g->id, ctx);
	return -EREMOTEIO;
}

int guest_submit(struct guest *g, uint32_t ctx, const struct job *j)
{
	int head = ctx_submit(&g->vm, ctx, &j->cmd);

	if (head < 0)
		complain("vGPU %u: cannot submit to context %u: %s", g->id, ctx,
			 strerror(-head));
	return head;
}

static int answer_of(struct guest *g, int head, int timeout_ms)
{
	int ret = gpu_result(&g->vm, VMM_CONTROL, (uint16_t)head, NULL, 0, timeout_ms);

	if (ret == OK)
		return 0;
	if (ret == -ETIMEDOUT)
		return ret;
	complain("vGPU %u answered a job with %#x", g->id, (unsigned int)ret);
	return -EREMOTEIO;
}

bool guest_done(struct guest *g, int head, int *answer)
{
	vq_collect(&g->vm, VMM_CONTROL);
	if (!g->vm.vq[VMM_CONTROL].done[head])
		return false;
	*answer = answer_of(g, head, 0);
	return true;
}

int guest_wait(struct guest *g, int head)
{
	int ret = head < 0 ? head : answer_of(g, head, BENCH_TIMEOUT_MS);

	if (ret == -ETIMEDOUT)
		complain("vGPU %u did not answer a job in %u s", g->id,
			 BENCH_TIMEOUT_MS / 1000);
	return ret;
}

int guest_run(struct guest *g, uint32_t ctx, const struct job *j)
{
	return guest_wait(g, guest_submit(g, ctx, j));
}

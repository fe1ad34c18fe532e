// SPDX-License-Identifier: GPL-2.0-only
/*
 * What 2D jobs do to bytes, a tile at a time, on the CPU.
 */
#include <linux/export.h>
#include <linux/swab.h>
#include <linux/virtio_gpu.h>

#include "mgpu.h"

#define TILE_BYTES	SZ_256K

/* ---- access to a resource's bytes ---- */

/* Begin to read: false when the guest has unmapped the memory. */
static bool pixels_get(struct mgpu_resource *res)
{
	return !res->blob || mgpu_mem_get(res->backing);
}

static void pixels_put(struct mgpu_resource *res)
{
	if (res->blob)
		mgpu_mem_put(res->backing);
}

static void pixels_copy(struct mgpu_resource *res, u64 off, void *to,
			size_t len)
{
	if (res->blob)
		mgpu_mem_copy(res->backing, off, to, len);
	else
		memcpy(to, res->host + off, len);
}

/* In place, from a virtio-gpu format to XRGB8888. */
static void convert(u32 *px, u32 n, u32 format)
{
	u32 i, v;

	switch (format) {
	case VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM:
	case VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM:
		for (i = 0; i < n; i++)
			px[i] = swab32(px[i]);
		break;
	case VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM:
	case VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM:
		for (i = 0; i < n; i++) {
			v = px[i];
			px[i] = (v & 0xff00ff00) | (v & 0xff) << 16 |
				(v >> 16 & 0xff);
		}
		break;
	case VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM:
	case VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM:
		for (i = 0; i < n; i++)
			px[i] >>= 8;
		break;
	default:	/* B8G8R8A8, B8G8R8X8 */
		break;
	}
}

/* ---- cursor ---- */

/* The part of the cursor at (x, y) that is on the screen; false for none. */
static bool cursor_clip(const struct mgpu_screen *s, s32 x, s32 y,
			struct mgpu_rect *r)
{
	s64 x0 = max_t(s64, x, 0), y0 = max_t(s64, y, 0);
	s64 x1 = min_t(s64, (s64)x + MGPU_CURSOR_DIM, s->view.rect.width);
	s64 y1 = min_t(s64, (s64)y + MGPU_CURSOR_DIM, s->view.rect.height);

	if (x0 >= x1 || y0 >= y1)
		return false;
	*r = (struct mgpu_rect){ x0, y0, x1 - x0, y1 - y0 };
	return true;
}

static void cursor_hide(struct mgpu_screen *s)
{
	struct mgpu_rect r;
	u32 i;

	lockdep_assert_held(&s->lock);
	if (!s->shown)
		return;
	s->shown = false;
	if (!cursor_clip(s, s->shown_x, s->shown_y, &r))
		return;
	for (i = 0; i < r.height; i++)
		memcpy(s->display + (size_t)(r.y + i) * s->view.rect.width + r.x,
		       s->under + i * MGPU_CURSOR_DIM, r.width * 4);
}

/* Premultiplied source over destination. */
static u32 blend(u32 src, u32 dst)
{
	u32 a = 255 - (src >> 24), out = 0, c;
	int shift;

	for (shift = 0; shift < 24; shift += 8) {
		c = (src >> shift & 0xff) + (dst >> shift & 0xff) * a / 255;
		out |= min(c, 255U) << shift;
	}
	return out;
}

static void cursor_show(struct mgpu_screen *s)
{
	const u32 *image;
	struct mgpu_rect r;
	u32 i, j, *line;

	lockdep_assert_held(&s->lock);
	if (!s->visible || s->shown || !s->display || !s->view.res)
		return;
	s->shown = true;
	s->shown_x = s->x;
	s->shown_y = s->y;
	if (!cursor_clip(s, s->x, s->y, &r))
		return;
	image = s->cursor + (size_t)(r.y - s->y) * MGPU_CURSOR_DIM +
		(r.x - s->x);
	for (i = 0; i < r.height; i++) {
		line = s->display + (size_t)(r.y + i) * s->view.rect.width +
		       r.x;
		memcpy(s->under + i * MGPU_CURSOR_DIM, line, r.width * 4);
		for (j = 0; j < r.width; j++)
			line[j] = blend(image[i * MGPU_CURSOR_DIM + j],
					line[j]);
	}
}

/* ---- jobs ---- */

static u32 tile_rows(const struct mgpu_rect *r)
{
	return max_t(u32, TILE_BYTES / (r->width * 4), 1);
}

static int flush_step(struct mgpu_job *job)
{
	struct mgpu_screen *s = &job->vgpu->screen;
	const struct mgpu_view *v = &s->view;
	const struct mgpu_rect *shown = &v->rect;
	struct mgpu_rect r;
	u32 x1, y1, end, y, *line;
	int ret = 0;

	mutex_lock(&s->lock);
	if (v->res != job->res || !s->display)
		goto out;

	/* The part of the damage that the scanout shows. */
	r.x = max(job->rect.x, shown->x);
	r.y = max(job->rect.y, shown->y);
	x1 = min(job->rect.x + job->rect.width, shown->x + shown->width);
	y1 = min(job->rect.y + job->rect.height, shown->y + shown->height);
	if (r.x >= x1 || r.y + job->row >= y1)
		goto out;
	r.width = x1 - r.x;
	r.height = y1 - r.y;

	if (!pixels_get(job->res)) {
		ret = -EFAULT;
		goto out;
	}
	cursor_hide(s);
	end = min(job->row + tile_rows(&r), r.height);
	for (y = job->row; y < end; y++) {
		line = s->display +
		       (size_t)(r.y + y - shown->y) * shown->width +
		       (r.x - shown->x);
		pixels_copy(job->res,
			    v->offset + (u64)(r.y + y) * v->stride +
			    (u64)r.x * 4, line, (size_t)r.width * 4);
		convert(line, r.width, v->format);
	}
	cursor_show(s);
	pixels_put(job->res);
	job->row = end;
	ret = end < r.height;
out:
	mutex_unlock(&s->lock);
	return ret;
}

static int transfer_step(struct mgpu_job *job)
{
	struct mgpu_resource *res = job->res;
	const struct mgpu_rect *r = &job->rect;
	u32 y, end = min(job->row + tile_rows(r), r->height);

	if (!mgpu_mem_get(res->backing))
		return -EFAULT;
	for (y = job->row; y < end; y++)
		mgpu_mem_copy(res->backing,
			      job->offset + (u64)y * res->stride,
			      res->host + (u64)(r->y + y) * res->stride +
			      (u64)r->x * 4, (size_t)r->width * 4);
	mgpu_mem_put(res->backing);
	job->row = end;
	return end < r->height;
}

static int cursor_step(struct mgpu_job *job)
{
	struct mgpu_screen *s = &job->vgpu->screen;
	int ret = 0;

	mutex_lock(&s->lock);
	cursor_hide(s);
	if (job->res) {
		if (pixels_get(job->res)) {
			pixels_copy(job->res, 0, s->cursor,
				    MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * 4);
			pixels_put(job->res);
		} else {
			ret = -EFAULT;
		}
	}
	cursor_show(s);
	mutex_unlock(&s->lock);
	return ret;
}

/**
 * mgpu_job_step - run one tile of a job on this CPU
 * @job: from mgpu_sched_next()
 *
 * A back end without hardware calls it until it returns 0 or less, and may do
 * other things in between.
 *
 * Context: task context, may sleep.
 * Return: 1 when there is more to do, 0 when the job is done, -EFAULT when the
 * guest unmapped memory that the job reads, -ECANCELED when it reset the
 * device.
 */
int mgpu_job_step(struct mgpu_job *job)
{
	if (READ_ONCE(job->cancelled))
		return -ECANCELED;

	switch (job->kind) {
	case MGPU_JOB_FLUSH:
		return flush_step(job);
	case MGPU_JOB_TRANSFER:
		return transfer_step(job);
	case MGPU_JOB_CURSOR:
		return cursor_step(job);
	}
	return -EINVAL;
}
EXPORT_SYMBOL_GPL(mgpu_job_step);

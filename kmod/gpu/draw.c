// SPDX-License-Identifier: GPL-2.0-only
/*
 * 2D jobs, executed by the CPU a tile at a time.
 */
#include <linux/swab.h>
#include <linux/virtio_gpu.h>

#include "gpu/resource.h"
#include "mgpu.h"
#include "trace.h"

#define TILE_BYTES	SZ_256K

/* ---- access to a resource's bytes ---- */

/* Begin to read; return false if the VMM has unmapped the memory. */
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

/* Convert pixels in place from a virtio-gpu format to XRGB8888. */
static void pixels_convert(u32 *px, u32 n, u32 format)
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

/* Get the part of the cursor at (x, y) that is on the screen; false for no part. */
static bool cursor_clip(u32 width, u32 height, s32 x, s32 y, struct mgpu_rect *r)
{
	s64 x0 = max_t(s64, x, 0), y0 = max_t(s64, y, 0);
	s64 x1 = min_t(s64, (s64)x + MGPU_CURSOR_DIM, width);
	s64 y1 = min_t(s64, (s64)y + MGPU_CURSOR_DIM, height);

	if (x0 >= x1 || y0 >= y1)
		return false;
	*r = (struct mgpu_rect){ x0, y0, x1 - x0, y1 - y0 };
	return true;
}

/* Restore the pixels under the cursor, before @view is drawn. */
static void cursor_hide(struct mgpu_screen *s, const struct mgpu_view *view)
{
	u32 width = view->rect.width, i;
	struct mgpu_rect r;

	lockdep_assert_held(&s->lock);
	if (!s->shown)
		return;
	s->shown = false;
	/* The rows of a picture of another size are elsewhere. */
	if (s->shown_width != width || s->shown_height != view->rect.height ||
	    !cursor_clip(width, s->shown_height, s->shown_x, s->shown_y, &r))
		return;
	for (i = 0; i < r.height; i++)
		memcpy(s->display + (size_t)(r.y + i) * width + r.x,
		       s->under + i * MGPU_CURSOR_DIM, r.width * 4);
}

/* Blend a premultiplied source pixel over a destination pixel. */
static u32 pixel_blend(u32 src, u32 dst)
{
	u32 a = 255 - (src >> 24), out = 0, c;
	int shift;

	for (shift = 0; shift < 24; shift += 8) {
		c = (src >> shift & 0xff) + (dst >> shift & 0xff) * a / 255;
		out |= min(c, 255U) << shift;
	}
	return out;
}

/* Take over the guest's last changes of the cursor; return whether it is visible. */
static bool cursor_take(struct mgpu_screen *s)
{
	bool visible;

	lockdep_assert_held(&s->lock);
	spin_lock(&s->state_lock);
	visible = s->visible;
	s->shown_x = s->x;
	s->shown_y = s->y;
	s->redraw = false;
	if (s->new_image)
		memcpy(s->cursor, s->image, MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * 4);
	s->new_image = false;
	spin_unlock(&s->state_lock);
	return visible;
}

/* Draw the cursor, which is hidden, into @view. */
static void cursor_show(struct mgpu_screen *s, const struct mgpu_view *view)
{
	u32 width = view->rect.width, i, j, *line;
	const u32 *image;
	struct mgpu_rect r;

	lockdep_assert_held(&s->lock);
	if (!cursor_take(s) || !s->display || !view->rect.width)
		return;
	s->shown = true;
	s->shown_width = width;
	s->shown_height = view->rect.height;
	if (!cursor_clip(width, s->shown_height, s->shown_x, s->shown_y, &r))
		return;
	image = s->cursor + (size_t)(r.y - s->shown_y) * MGPU_CURSOR_DIM +
		(r.x - s->shown_x);
	for (i = 0; i < r.height; i++) {
		line = s->display + (size_t)(r.y + i) * width + r.x;
		memcpy(s->under + i * MGPU_CURSOR_DIM, line, r.width * 4);
		for (j = 0; j < r.width; j++)
			line[j] = pixel_blend(image[i * MGPU_CURSOR_DIM + j],
					      line[j]);
	}
}

/* Draw the cursor where it is now. */
static void cursor_redraw(struct mgpu_screen *s)
{
	struct mgpu_view view;

	lockdep_assert_held(&s->lock);
	spin_lock(&s->state_lock);
	/* Only the layout is used, no resource. */
	view = s->view;
	spin_unlock(&s->state_lock);
	cursor_hide(s, &view);
	cursor_show(s, &view);
}

/* ---- jobs ---- */

static u32 tile_rows(const struct mgpu_rect *r)
{
	return max_t(u32, TILE_BYTES / (r->width * 4), 1);
}

/* Get the part of a rectangle of the resource that the scanout shows; false for none. */
static bool shown_part(const struct mgpu_view *v, const struct mgpu_rect *rect,
		       struct mgpu_rect *r)
{
	const struct mgpu_rect *shown = &v->rect;
	u32 x1 = min(rect->x + rect->width, shown->x + shown->width);
	u32 y1 = min(rect->y + rect->height, shown->y + shown->height);

	r->x = max(rect->x, shown->x);
	r->y = max(rect->y, shown->y);
	if (r->x >= x1 || r->y >= y1)
		return false;
	r->width = x1 - r->x;
	r->height = y1 - r->y;
	return true;
}

/* Copy rows @from up to @to of a shown part of @v to the display buffer. */
static int show_rows(struct mgpu_screen *s, const struct mgpu_view *v,
		     const struct mgpu_rect *r, u32 from, u32 to)
{
	u32 y, *line;

	lockdep_assert_held(&s->lock);
	if (!pixels_get(v->res))
		return -EFAULT;
	cursor_hide(s, v);
	for (y = from; y < to; y++) {
		line = s->display +
		       (size_t)(r->y + y - v->rect.y) * v->rect.width +
		       (r->x - v->rect.x);
		pixels_copy(v->res,
			    v->offset + (u64)(r->y + y) * v->stride +
			    (u64)r->x * 4, line, (size_t)r->width * 4);
		pixels_convert(line, r->width, v->format);
	}
	cursor_show(s, v);
	pixels_put(v->res);
	return 0;
}

/* Extend @a, which may be empty, to the smallest rectangle around both. */
static void rect_include(struct mgpu_rect *a, const struct mgpu_rect *b)
{
	u32 x1, y1;

	if (!a->width) {
		*a = *b;
		return;
	}
	x1 = max(a->x + a->width, b->x + b->width);
	y1 = max(a->y + a->height, b->y + b->height);
	a->x = min(a->x, b->x);
	a->y = min(a->y, b->y);
	a->width = x1 - a->x;
	a->height = y1 - a->y;
}

/* Note that the guest has set an image for the cursor; must hold @s->state_lock. */
void mgpu_screen_new_image(struct mgpu_screen *s)
{
	lockdep_assert_held(&s->state_lock);
	s->new_image = true;
	WRITE_ONCE(s->image_nr, s->image_nr + 1 ?: 1);
}

/* Have the VMM's next look take the whole picture. */
void mgpu_screen_damage(struct mgpu_screen *s)
{
	spin_lock(&s->state_lock);
	s->damage = s->view.rect;
	spin_unlock(&s->state_lock);
}

/**
 * mgpu_screen_take - take over what the VMM has not seen
 * @s: screen
 * @view: set to the picture; its resource has a reference for the caller
 * @r: set to the rectangle that changed since the last call, in the resource's pixels
 *
 * Context: any.
 * Return: false if nothing changed, or nothing is shown.
 */
bool mgpu_screen_take(struct mgpu_screen *s, struct mgpu_view *view,
		      struct mgpu_rect *r)
{
	bool found;

	spin_lock(&s->state_lock);
	*view = s->view;
	found = view->res && s->damage.width && shown_part(view, &s->damage, r);
	if (found)
		mgpu_resource_get(view->res);
	s->damage.width = 0;
	spin_unlock(&s->state_lock);
	return found;
}

/**
 * mgpu_screen_show - put pixels on the screen
 * @s: screen
 * @view: layout of the screen
 * @r: rectangle on the screen
 * @pixels: XRGB8888, a picture as large as the screen
 *
 * Context: must hold @s->lock; may sleep.
 */
void mgpu_screen_show(struct mgpu_screen *s, const struct mgpu_view *view,
		      const struct mgpu_rect *r, const u32 *pixels)
{
	u32 width = view->rect.width, y;

	lockdep_assert_held(&s->lock);
	cursor_hide(s, view);
	for (y = r->y; y < r->y + r->height; y++) {
		memcpy(s->display + (size_t)y * width + r->x,
		       pixels + (size_t)y * width + r->x, r->width * 4);
		cond_resched();
	}
	cursor_show(s, view);
}

/* Return whether the VMM copies the guest's pictures when it looks at the screen. */
static bool is_lazy(const struct mgpu_vgpu *vgpu)
{
	return vgpu->mdev->caps.lazy_scanout || mgpu_on_device(vgpu);
}

/*
 * Get the part of a flush that is on the screen and not drawn; false for none.  With
 * @leave, note it as damage.
 */
static bool flush_part(struct mgpu_screen *s, const struct mgpu_draw *draw,
		       struct mgpu_view *view, struct mgpu_rect *r, bool leave)
{
	bool found;

	spin_lock(&s->state_lock);
	/* The job has a reference to the resource. */
	*view = s->view;
	found = view->res == draw->res && READ_ONCE(s->display) &&
		shown_part(view, &draw->rect, r) && draw->row < r->height;
	if (found && leave)
		rect_include(&s->damage, r);
	spin_unlock(&s->state_lock);
	return found;
}

/* A GPU reads each pixel of a picture, and writes it to the screen. */
static void count_flush(struct mgpu_job *job, u64 pixels)
{
	job->work.pixels += pixels;
	job->work.traffic += 2 * pixels * sizeof(u32);
}

static int draw_flush_step(struct mgpu_job *job)
{
	struct mgpu_draw *draw = to_mgpu_draw(job);
	struct mgpu_screen *s = &job->vgpu->screen;
	bool leave = is_lazy(job->vgpu);
	struct mgpu_view view;
	struct mgpu_rect r;
	int ret = 0;
	u32 end;

	if (leave || !mutex_trylock(&s->lock)) {
		if (flush_part(s, draw, &view, &r, true))
			count_flush(job, (u64)r.width * (r.height - draw->row));
		return 0;
	}
	if (flush_part(s, draw, &view, &r, false)) {
		end = min(draw->row + tile_rows(&r), r.height);
		ret = show_rows(s, &view, &r, draw->row, end);
		if (!ret) {
			count_flush(job, (u64)r.width * (end - draw->row));
			draw->row = end;
			ret = end < r.height;
		}
	}
	mutex_unlock(&s->lock);
	return ret;
}

/**
 * mgpu_screen_update - bring the display buffer up to date
 * @vgpu: vGPU
 *
 * Copies the rectangle that was flushed and not drawn since the last update.
 *
 * Context: the VMM's thread; takes as long as copying a frame.
 */
void mgpu_screen_update(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_view view;
	struct mgpu_rect r;
	bool found = false;
	u32 from, to;

	if (mgpu_on_device(vgpu))
		mgpu_readback_update(vgpu);
	if (!READ_ONCE(s->damage.width) && !READ_ONCE(s->redraw))
		return;

	mutex_lock(&s->lock);
	if (s->display && !mgpu_on_device(vgpu))
		found = mgpu_screen_take(s, &view, &r);
	/* Tile by tile: an unmapping by the VMM waits for a tile. */
	for (from = 0; found && from < r.height; from = to) {
		to = min(from + tile_rows(&r), r.height);
		if (show_rows(s, &view, &r, from, to))
			break;
		cond_resched();
	}
	if (READ_ONCE(s->redraw))
		cursor_redraw(s);
	/* A reset takes the lock to wait for this reference. */
	if (found)
		mgpu_resource_put(view.res);
	mutex_unlock(&s->lock);
}

/**
 * mgpu_screen_settle - wait for the VMM to copy the picture before the next one
 * @vgpu: vGPU whose guest is about to flush
 * @nowait: do not wait
 *
 * With a lazy scanout, a guest that has flushed its next picture draws over the one
 * that the VMM may be copying.
 *
 * Context: may sleep unless @nowait.
 * Return: false if @nowait is set and the VMM is copying.
 */
bool mgpu_screen_settle(struct mgpu_vgpu *vgpu, bool nowait)
{
	struct mgpu_screen *s = &vgpu->screen;

	if (!vgpu->mdev->caps.lazy_scanout || mgpu_on_device(vgpu) ||
	    !mutex_is_locked(&s->lock))
		return true;
	if (nowait)
		return false;
	mutex_lock(&s->lock);
	mutex_unlock(&s->lock);
	return true;
}

static int draw_transfer_step(struct mgpu_job *job)
{
	struct mgpu_draw *draw = to_mgpu_draw(job);
	struct mgpu_resource *res = draw->res;
	const struct mgpu_rect *r = &draw->rect;
	u32 y, end = min(draw->row + tile_rows(r), r->height);

	if (!mgpu_mem_get(res->backing))
		return -EFAULT;
	for (y = draw->row; y < end; y++)
		mgpu_mem_copy(res->backing,
			      draw->offset + (u64)y * res->stride,
			      res->host + (u64)(r->y + y) * res->stride +
			      (u64)r->x * 4, (size_t)r->width * 4);
	mgpu_mem_put(res->backing);
	y = end - draw->row;
	job->work.upload += (u64)y * r->width * 4;
	job->work.traffic += (u64)y * r->width * 4;
	draw->row = end;
	return end < r->height;
}

static int draw_cursor_step(struct mgpu_job *job)
{
	struct mgpu_draw *draw = to_mgpu_draw(job);
	struct mgpu_screen *s = &job->vgpu->screen;
	int ret = 0;

	spin_lock(&s->state_lock);
	if (draw->res) {
		if (pixels_get(draw->res)) {
			pixels_copy(draw->res, 0, s->image,
				    MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * 4);
			pixels_put(draw->res);
			mgpu_screen_new_image(s);
		} else {
			ret = -EFAULT;
		}
	}
	s->redraw = true;
	spin_unlock(&s->state_lock);
	count_flush(job, MGPU_CURSOR_DIM * MGPU_CURSOR_DIM);

	if (mutex_trylock(&s->lock)) {
		cursor_redraw(s);
		mutex_unlock(&s->lock);
	}
	return ret;
}

static const struct mgpu_job_ops draw_flush_ops = {
	.step = draw_flush_step,
	.done = mgpu_ring_draw_done,
};

static const struct mgpu_job_ops draw_transfer_ops = {
	.step = draw_transfer_step,
	.done = mgpu_ring_draw_done,
};

static const struct mgpu_job_ops draw_cursor_ops = {
	.step = draw_cursor_step,
	.done = mgpu_ring_draw_done,
};

static const struct mgpu_job_ops * const draw_ops[] = {
	[MGPU_JOB_FLUSH] = &draw_flush_ops,
	[MGPU_JOB_TRANSFER] = &draw_transfer_ops,
	[MGPU_JOB_CURSOR] = &draw_cursor_ops,
};

/**
 * mgpu_draw_prepare - make a job of a checked command
 * @draw: 2D job that is not in flight, with its vGPU set
 * @kind: MGPU_JOB_FLUSH, MGPU_JOB_TRANSFER or MGPU_JOB_CURSOR
 * @cmd: command with the rectangle and the offset
 * @res: resource that the job uses, or NULL; gets a reference
 *
 * Context: must hold ring_lock.
 */
void mgpu_draw_prepare(struct mgpu_draw *draw, enum mgpu_job_kind kind,
		       const struct mgpu_cmd *cmd, struct mgpu_resource *res)
{
	struct mgpu_job *job = &draw->job;

	job->ops = draw_ops[kind];
	job->kind = kind;
	job->bytes = (u64)cmd->rect.width * cmd->rect.height * 4;
	job->frame = false;
	job->cancelled = false;
	job->expired = false;
	job->error = 0;
	draw->rect = cmd->rect;
	draw->offset = cmd->offset;
	draw->row = 0;
	draw->res = res;
	if (res)
		mgpu_resource_get(res);
}

/**
 * mgpu_draw_put - release the resource of a job that is not in flight
 * @draw: job
 *
 * Context: may sleep if the reference is the last one.
 */
void mgpu_draw_put(struct mgpu_draw *draw)
{
	if (draw->res)
		mgpu_resource_put(draw->res);
	draw->res = NULL;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readback: pictures from the device's memory, for the VMM's display of a guest whose
 * scanout is a resource on the device.
 *
 * No vGPU uses the device's own scanout.  When a VMM reads the screen, and only
 * then, a context of the module copies the changed part of the guest's resource into a
 * resource of the module, and the device writes that to kernel memory.  This is a
 * normal job of the vGPU: it is executed after the jobs that the guest submitted
 * before, and the vGPU is charged for it.
 *
 * A copy may fail without an answer that says so, for example if the host could not make
 * the guest's resource.  So a pixel of the module's resource is marked before the copy.
 * If the mark is still there afterwards, the picture is black, and the context, which may
 * be unusable, is made anew.
 *
 * On a device that exports, the resource of the module has a dma-buf, which a VMM with an
 * OpenGL display shows itself: then the copy on the device is all, and no pixel goes to
 * memory.  The guest's own resource is not exported: the VMM would show what the guest draws
 * next, and has no word for a part of a resource, or for rows from the bottom up.  The cursor
 * is a plane of its own.
 */
#include <linux/dma-buf.h>
#include <linux/fcntl.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vfio.h>
#include <linux/virtio_gpu.h>
#include <linux/vmalloc.h>
#include <drm/drm_fourcc.h>

#include "compat.h"
#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

MGPU_IMPORT_DMA_BUF();

/* The picture is stale when the VMM has not read the screen for this long. */
#define STALE_NS	NSEC_PER_SEC

/* Longest wait for a picture, milliseconds: if the last one is stale, and if not. */
#define WAIT_STALE_MS	500
#define WAIT_MS		10

/* Values of the virgl protocol (enum virgl_formats, VIRGL_BIND_*, BLIT). */
#define FORMAT_B8G8R8A8	1
#define FORMAT_B8G8R8X8	2
#define BIND_RENDER_TARGET BIT(1)
#define BIND_SAMPLER_VIEW BIT(3)
#define BLIT_WORDS	21
#define BLIT_MASK_RGBA	0xf

void mgpu_readback_init(struct mgpu_vgpu *vgpu)
{
	mutex_init(&vgpu->screen.readback.lock);
	init_waitqueue_head(&vgpu->screen.readback.wait);
}

/* ---- the module's context and resource on the device ---- */

static bool readback_is_there(const struct mgpu_vgpu *vgpu)
{
	u32 gen = vgpu->screen.readback.gen;

	return gen && gen == mgpu_vgpu_gen(vgpu);
}

/* Have the device execute a command of @len bytes, and free the command. */
static int readback_exec(struct mgpu_vgpu *vgpu, void *buf, size_t len,
			 struct mgpu_export *export)
{
	u32 answer = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	if (buf)
		answer = mgpu_devcmd_exec(vgpu, buf, len, export);
	kvfree(buf);
	return answer == VIRTIO_GPU_RESP_OK_NODATA ? 0 : -EIO;
}

static void *readback_new_cmd(u32 type, u32 ctx, size_t len)
{
	struct virtio_gpu_ctrl_hdr *hdr = kvzalloc(len, GFP_GUEST);

	if (hdr) {
		hdr->type = cpu_to_le32(type);
		hdr->ctx_id = cpu_to_le32(ctx);
	}
	return hdr;
}

static int create_ctx(struct mgpu_vgpu *vgpu)
{
	struct virtio_gpu_ctx_create *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_CTX_CREATE, vgpu->screen.readback.ctx,
			     sizeof(*c));
	return readback_exec(vgpu, c, sizeof(*c), NULL);
}

static int create_res(struct mgpu_vgpu *vgpu, struct mgpu_picture *p, u32 format)
{
	struct virtio_gpu_resource_create_3d *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, 0, sizeof(*c));
	if (c) {
		c->resource_id = cpu_to_le32(p->res);
		c->target = cpu_to_le32(MGPU_VIRGL_2D);
		c->format = cpu_to_le32(format);
		c->bind = cpu_to_le32(BIND_RENDER_TARGET | BIND_SAMPLER_VIEW);
		c->width = cpu_to_le32(p->width);
		c->height = cpu_to_le32(p->height);
		c->depth = cpu_to_le32(1);
		c->array_size = cpu_to_le32(1);
	}
	p->export.width = p->width;
	p->export.height = p->height;
	return readback_exec(vgpu, c, sizeof(*c),
			     vgpu->mdev->caps.exports ? &p->export : NULL);
}

static int attach_backing(struct mgpu_vgpu *vgpu, const struct mgpu_picture *p)
{
	const struct mgpu_mem_chunk all = {};
	struct virtio_gpu_resource_attach_backing *c;
	u32 n = mgpu_dma_entries(&p->dma, &all, 1, p->size, NULL, MGPU_MAX_ENTRIES);
	size_t len;

	if (n > MGPU_MAX_ENTRIES)
		return -ENOMEM;
	len = sizeof(*c) + n * sizeof(struct virtio_gpu_mem_entry);
	c = readback_new_cmd(VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, 0, len);
	if (c) {
		c->resource_id = cpu_to_le32(p->res);
		c->nr_entries = cpu_to_le32(n);
		mgpu_dma_entries(&p->dma, &all, 1, p->size, (void *)(c + 1), n);
	}
	return readback_exec(vgpu, c, len, NULL);
}

static int attach_ctx(struct mgpu_vgpu *vgpu, const struct mgpu_picture *p)
{
	struct virtio_gpu_ctx_resource *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, vgpu->screen.readback.ctx,
			     sizeof(*c));
	if (c)
		c->resource_id = cpu_to_le32(p->res);
	return readback_exec(vgpu, c, sizeof(*c), NULL);
}

/* Have the pixels in the resource, zeros at first: it may have pixels of another guest. */
static int upload(struct mgpu_vgpu *vgpu, const struct mgpu_picture *p)
{
	struct virtio_gpu_transfer_host_3d *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, vgpu->screen.readback.ctx,
			     sizeof(*c));
	if (c) {
		c->box.w = cpu_to_le32(p->width);
		c->box.h = cpu_to_le32(p->height);
		c->box.d = cpu_to_le32(1);
		c->resource_id = cpu_to_le32(p->res);
	}
	return readback_exec(vgpu, c, sizeof(*c), NULL);
}

static void picture_take_down(struct mgpu_vgpu *vgpu, struct mgpu_picture *p)
{
	/*
	 * Do not compare generations: the device may have some of the objects
	 * even if it was lost after readback.gen was read.
	 */
	if (vgpu->screen.readback.gen && p->res)
		mgpu_devcmd_forget(vgpu, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0, p->res);
	mgpu_devnum_free(&vgpu->mdev->res_nums, p->res);
	if (p->export.buf)
		dma_buf_put(p->export.buf);
	mgpu_dma_unmap(&p->dma);
	vfree(p->pixels);
	memset(p, 0, sizeof(*p));
}

/* Release the module's context, pictures and memory. */
static void readback_take_down(struct mgpu_vgpu *vgpu)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;

	picture_take_down(vgpu, &rb->picture);
	picture_take_down(vgpu, &rb->cursor);
	rb->image = 0;
	if (rb->gen)
		mgpu_devcmd_forget(vgpu, VIRTIO_GPU_CMD_CTX_DESTROY, rb->ctx,
				   0);
	rb->gen = 0;
	mgpu_devnum_free(&vgpu->mdev->ctx_nums, rb->ctx);
	rb->ctx = 0;
}

static int map_pixels(struct mgpu_vgpu *vgpu, struct mgpu_picture *p)
{
	u32 nr = p->size >> PAGE_SHIFT, i;
	struct page **pages;
	int ret;

	p->pixels = __vmalloc(p->size, GFP_GUEST | __GFP_ZERO);
	pages = kvcalloc(nr, sizeof(*pages), GFP_GUEST);
	ret = -ENOMEM;
	if (p->pixels && pages) {
		for (i = 0; i < nr; i++)
			pages[i] = vmalloc_to_page(p->pixels +
						   (size_t)i * PAGE_SIZE);
		ret = mgpu_dma_map(&p->dma, pages, nr,
				   vgpu->mdev->caps.dma_dev);
	}
	kvfree(pages);
	return ret;
}

/* Make a picture of zeros; after an error the caller takes it down. */
static int picture_set_up(struct mgpu_vgpu *vgpu, struct mgpu_picture *p, u32 width,
			  u32 height, u32 format)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	struct mgpu_device *mdev = vgpu->mdev;
	int ret;

	p->width = width;
	p->height = height;
	p->size = PAGE_ALIGN((size_t)width * height * 4);
	ret = map_pixels(vgpu, p);
	if (ret)
		return ret;
	p->res = mgpu_devnum_new(mdev, &mdev->res_nums, 0, GFP_GUEST);
	if (!p->res)
		return -ENOMEM;
	p->id = ++rb->last_id;
	ret = create_res(vgpu, p, format);
	if (!ret)
		ret = attach_backing(vgpu, p);
	if (!ret)
		ret = attach_ctx(vgpu, p);
	if (!ret)
		ret = upload(vgpu, p);
	return ret;
}

/* Make the context and a picture of @width x @height pixels. */
static int readback_set_up(struct mgpu_vgpu *vgpu, u32 width, u32 height)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	struct mgpu_device *mdev = vgpu->mdev;
	int ret;

	lockdep_assert_held(&rb->lock);
	if (readback_is_there(vgpu) && rb->picture.width == width &&
	    rb->picture.height == height)
		return 0;
	readback_take_down(vgpu);

	rb->ctx = mgpu_devnum_new(mdev, &mdev->ctx_nums, 0, GFP_GUEST);
	if (!rb->ctx)
		return -ENOMEM;
	/* From here on the device may have objects to release. */
	rb->gen = mgpu_vgpu_gen(vgpu);
	ret = create_ctx(vgpu);
	if (!ret)
		ret = picture_set_up(vgpu, &rb->picture, width, height, FORMAT_B8G8R8X8);
	if (ret)
		readback_take_down(vgpu);
	return ret;
}

/* ---- asking for a picture ---- */

static int add_ctx_res(struct mgpu_devcmd *dc, u32 type, u32 ctx, u32 res)
{
	struct virtio_gpu_ctx_resource *c;

	c = mgpu_devcmd_msg(dc, type, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->hdr.ctx_id = cpu_to_le32(ctx);
	c->resource_id = cpu_to_le32(res);
	return 0;
}

static int add_blit(struct mgpu_devcmd *dc, const struct mgpu_readback *rb,
		    u32 from, const struct mgpu_rect *src,
		    const struct mgpu_rect *dst, u32 format)
{
	const u32 words[BLIT_WORDS + 1] = {
		BLIT_WORDS << 16 | MGPU_VIRGL_BLIT,
		BLIT_MASK_RGBA, 0, 0,
		rb->picture.res, 0, FORMAT_B8G8R8X8,
		dst->x, dst->y, 0, dst->width, dst->height, 1,
		from, 0, format,
		src->x, src->y, 0, src->width, src->height, 1,
	};
	struct virtio_gpu_cmd_submit *c;
	__le32 *stream;
	u32 i;

	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_SUBMIT_3D,
			    sizeof(*c) + sizeof(words));
	if (!c)
		return -ENOMEM;
	c->hdr.ctx_id = cpu_to_le32(rb->ctx);
	c->size = cpu_to_le32(sizeof(words));
	stream = (__le32 *)(c + 1);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		stream[i] = cpu_to_le32(words[i]);
	return 0;
}

static int add_transfer(struct mgpu_devcmd *dc, u32 type, const struct mgpu_readback *rb,
			const struct mgpu_rect *r)
{
	struct virtio_gpu_transfer_host_3d *c;

	c = mgpu_devcmd_msg(dc, type, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->hdr.ctx_id = cpu_to_le32(rb->ctx);
	c->box.x = cpu_to_le32(r->x);
	c->box.y = cpu_to_le32(r->y);
	c->box.w = cpu_to_le32(r->width);
	c->box.h = cpu_to_le32(r->height);
	c->box.d = cpu_to_le32(1);
	c->offset = cpu_to_le64(((u64)r->y * rb->picture.width + r->x) * 4);
	c->resource_id = cpu_to_le32(rb->picture.res);
	c->stride = cpu_to_le32(rb->picture.width * 4);
	return 0;
}

/* Colours of a pixel; its fourth byte has no meaning. */
#define RGB	0xffffffU

static u32 *first_pixel(const struct mgpu_readback *rb)
{
	return (u32 *)rb->picture.pixels + (size_t)rb->rect.y * rb->picture.width + rb->rect.x;
}

/* Submit the job; @r is in the resource's pixels, @rb->rect in the screen's. */
static int readback_ask(struct mgpu_vgpu *vgpu, struct mgpu_resource *res,
			const struct mgpu_rect *r)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	const struct mgpu_rect first = { rb->rect.x, rb->rect.y, 1, 1 };
	struct mgpu_devcmd *dc;
	struct mgpu_job *job;
	int ret = 0;

	dc = mgpu_devcmd_alloc(vgpu, 5, 0, GFP_GUEST);
	if (!dc)
		return -ENOMEM;
	job = &dc->job;
	job->bytes = (u64)r->width * r->height * 4;
	if (!rb->exporting) {
		rb->mark = get_random_u32() & RGB;
		*first_pixel(rb) = rb->mark;
		ret = add_transfer(dc, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, rb, &first);
	}
	if (!ret)
		ret = add_ctx_res(dc, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, rb->ctx,
				  res->dev.host_id);
	if (!ret)
		ret = add_blit(dc, rb, res->dev.host_id, r, &rb->rect,
			       res->dev.shape.format);
	if (!ret)
		ret = add_ctx_res(dc, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
				  rb->ctx, res->dev.host_id);
	if (!ret && !rb->exporting)
		ret = add_transfer(dc, VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, rb,
				   &rb->rect);
	if (ret) {
		mgpu_devcmd_free(dc);
		return ret;
	}
	mgpu_resource_get(res);
	dc->res = res;
	rb->cmd = dc;
	rb->state = MGPU_READBACK_BUSY;
	mgpu_devcmd_submit(dc);
	return 0;
}

/* Return whether the part that was to be read is what it was before, and blacken it. */
static bool readback_failed(struct mgpu_readback *rb)
{
	u32 row;

	if ((*first_pixel(rb) & RGB) != rb->mark)
		return false;
	for (row = 0; row < rb->rect.height; row++)
		memset(first_pixel(rb) + (size_t)row * rb->picture.width, 0,
		       (size_t)rb->rect.width * 4);
	return true;
}

/* Copy the picture to the screen if it has one; return whether the copy failed. */
static bool show_pixels(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_readback *rb = &s->readback;
	struct mgpu_view view;
	bool failed;

	failed = readback_failed(rb);
	mutex_lock(&s->lock);
	spin_lock(&s->state_lock);
	view = s->view;
	spin_unlock(&s->state_lock);
	if ((failed || rb->cmd->answer == VIRTIO_GPU_RESP_OK_NODATA) && s->display &&
	    view.rect.width == rb->picture.width && view.rect.height == rb->picture.height)
		mgpu_screen_show(s, &view, &rb->rect, rb->picture.pixels);
	mutex_unlock(&s->lock);
	return failed;
}

/* Show the result of the job, and free the command. */
static void readback_show(struct mgpu_vgpu *vgpu)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	bool failed;

	lockdep_assert_held(&rb->lock);
	if (rb->exporting)
		failed = rb->cmd->answer != VIRTIO_GPU_RESP_OK_NODATA;
	else
		failed = show_pixels(vgpu);
	mgpu_devcmd_free(rb->cmd);
	rb->cmd = NULL;
	rb->state = MGPU_READBACK_IDLE;
	if (failed)
		readback_take_down(vgpu);
}

/*
 * Submit a job for the part of the screen that has changed since the last one; all of it if the
 * last one was for the other kind of display.
 */
static void readback_begin(struct mgpu_vgpu *vgpu, bool exporting)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_readback *rb = &s->readback;
	struct mgpu_resource *res;
	struct mgpu_rect r, shown;
	struct mgpu_view view;

	if (rb->exporting != exporting)
		mgpu_screen_damage(s);
	rb->exporting = exporting;
	if (!mgpu_screen_take(s, &view, &r))
		return;
	res = view.res;
	shown = view.rect;
	if (!res->dev.host_id)
		goto out;

	rb->rect = (struct mgpu_rect){ r.x - shown.x, r.y - shown.y, r.width,
				       r.height };
	/* After a change of size, all of the picture has changed. */
	if (!readback_is_there(vgpu) || rb->picture.width != shown.width ||
	    rb->picture.height != shown.height) {
		r = shown;
		rb->rect = (struct mgpu_rect){ 0, 0, r.width, r.height };
	}
	if (!readback_set_up(vgpu, shown.width, shown.height))
		readback_ask(vgpu, res, &r);
out:
	mgpu_resource_put(res);
}

static bool readback_is_busy(const struct mgpu_readback *rb)
{
	/* Pairs with the release in mgpu_readback_done(). */
	return smp_load_acquire(&rb->state) == MGPU_READBACK_BUSY;
}

/* Have a new picture, for a VMM that shows dma-bufs or for one that reads pixels. */
static void readback_update(struct mgpu_vgpu *vgpu, bool exporting)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	u64 now = ktime_get_ns();
	u32 wait;

	lockdep_assert_held(&rb->lock);
	wait = now - rb->looked_ns > STALE_NS ? WAIT_STALE_MS : WAIT_MS;
	rb->looked_ns = now;
	if (rb->state != MGPU_READBACK_IDLE && !readback_is_busy(rb))
		readback_show(vgpu);
	if (rb->state == MGPU_READBACK_IDLE && READ_ONCE(vgpu->live))
		readback_begin(vgpu, exporting);
	if (rb->state != MGPU_READBACK_IDLE &&
	    wait_event_timeout(rb->wait, !readback_is_busy(rb), msecs_to_jiffies(wait)))
		readback_show(vgpu);
}

/**
 * mgpu_readback_update - update the screen, which a VMM is about to read
 * @vgpu: vGPU for which mgpu_on_device() is true
 *
 * Waits up to WAIT_MS for the picture, or WAIT_STALE_MS if the last one is stale.
 * A later picture is shown by the next call.
 *
 * Context: the VMM's thread.
 */
void mgpu_readback_update(struct mgpu_vgpu *vgpu)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;

	mutex_lock(&rb->lock);
	readback_update(vgpu, false);
	mutex_unlock(&rb->lock);
}

/* ---- dma-bufs ---- */

/* Describe a picture's dma-buf; its fourth bytes are alpha, or have no meaning. */
static void describe(struct vfio_device_gfx_plane_info *plane, const struct mgpu_picture *p,
		     bool alpha)
{
	if (!p->export.buf)
		return;
	if (p->export.red_first)
		plane->drm_format = alpha ? DRM_FORMAT_ABGR8888 : DRM_FORMAT_XBGR8888;
	else
		plane->drm_format = alpha ? DRM_FORMAT_ARGB8888 : DRM_FORMAT_XRGB8888;
	/* QEMU passes any modifier but 0 on to EGL, which does not take this one. */
	if (p->export.modifier != DRM_FORMAT_MOD_INVALID)
		plane->drm_format_mod = p->export.modifier;
	plane->width = p->width;
	plane->height = p->height;
	plane->stride = p->export.stride;
	plane->size = p->export.stride * p->height;
	plane->dmabuf_id = p->id;
}

static void picture_plane(struct mgpu_vgpu *vgpu, struct vfio_device_gfx_plane_info *plane)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_readback *rb = &s->readback;
	bool shown;

	readback_update(vgpu, true);
	spin_lock(&s->state_lock);
	shown = s->view.res && s->view.rect.width == rb->picture.width &&
		s->view.rect.height == rb->picture.height;
	spin_unlock(&s->state_lock);
	if (shown && readback_is_there(vgpu))
		describe(plane, &rb->picture, false);
}

/* Have the cursor's image in its picture; return false if there is none. */
static bool cursor_update(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_readback *rb = &s->readback;
	struct mgpu_picture *p = &rb->cursor;
	u32 nr;

	/* Without a picture there is no context either. */
	if (!readback_is_there(vgpu) || !READ_ONCE(s->image_nr))
		return false;
	if (rb->image == READ_ONCE(s->image_nr))
		return true;
	if (!p->res && picture_set_up(vgpu, p, MGPU_CURSOR_DIM, MGPU_CURSOR_DIM,
				      FORMAT_B8G8R8A8))
		goto fail;
	spin_lock(&s->state_lock);
	nr = s->image_nr;
	memcpy(p->pixels, s->image, MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * sizeof(u32));
	spin_unlock(&s->state_lock);
	if (upload(vgpu, p))
		goto fail;
	rb->image = nr;
	return true;
fail:
	picture_take_down(vgpu, p);
	rb->image = 0;
	return false;
}

static void cursor_plane(struct mgpu_vgpu *vgpu, struct vfio_device_gfx_plane_info *plane)
{
	struct mgpu_screen *s = &vgpu->screen;
	bool visible;

	visible = READ_ONCE(vgpu->live) && READ_ONCE(s->visible) && cursor_update(vgpu);
	spin_lock(&s->state_lock);
	plane->x_pos = s->x;
	plane->y_pos = s->y;
	plane->x_hot = s->hot_x;
	plane->y_hot = s->hot_y;
	spin_unlock(&s->state_lock);
	if (visible)
		describe(plane, &s->readback.cursor, true);
}

/**
 * mgpu_readback_plane - describe a plane's dma-buf, with the guest's latest picture
 * @vgpu: vGPU on a device that exports, for which mgpu_on_device() is true
 * @plane: all 0 but for @drm_plane_type; without a picture, or without a dma-buf of it, the
 *	size stays 0
 *
 * Waits like mgpu_readback_update().
 *
 * Context: the VMM's thread.
 */
void mgpu_readback_plane(struct mgpu_vgpu *vgpu, struct vfio_device_gfx_plane_info *plane)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;

	mutex_lock(&rb->lock);
	if (plane->drm_plane_type == MGPU_PLANE_CURSOR)
		cursor_plane(vgpu, plane);
	else
		picture_plane(vgpu, plane);
	mutex_unlock(&rb->lock);
}

/**
 * mgpu_readback_get_buf - give the VMM the dma-buf of a plane
 * @vgpu: vGPU
 * @id: number of the dma-buf
 *
 * Return: a file descriptor, or a negative errno: -ENOENT if there is no such dma-buf now.
 */
int mgpu_readback_get_buf(struct mgpu_vgpu *vgpu, u32 id)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	struct dma_buf *buf = NULL;
	int fd = -ENOENT;

	mutex_lock(&rb->lock);
	if (id && id == rb->picture.id)
		buf = rb->picture.export.buf;
	else if (id && id == rb->cursor.id)
		buf = rb->cursor.export.buf;
	if (buf) {
		get_dma_buf(buf);
		fd = dma_buf_fd(buf, O_CLOEXEC);
		if (fd < 0)
			dma_buf_put(buf);
	}
	mutex_unlock(&rb->lock);
	return fd;
}

/* Complete a readback; called in an engine's thread. */
void mgpu_readback_done(struct mgpu_devcmd *dc)
{
	struct mgpu_readback *rb = &dc->vgpu->screen.readback;

	/* Write the answer before the state; pairs with readback_is_busy(). */
	smp_store_release(&rb->state, MGPU_READBACK_READY);
	wake_up_all(&rb->wait);
}

/*
 * Wait until no readback is being submitted.  The vGPU is not live, so none is
 * submitted afterwards.
 */
void mgpu_readback_quiesce(struct mgpu_vgpu *vgpu)
{
	mutex_lock(&vgpu->screen.readback.lock);
	mutex_unlock(&vgpu->screen.readback.lock);
}

/* Release all state of a vGPU that has no job in flight. */
void mgpu_readback_stop(struct mgpu_vgpu *vgpu)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;

	mutex_lock(&rb->lock);
	if (rb->cmd)
		mgpu_devcmd_free(rb->cmd);
	rb->cmd = NULL;
	rb->state = MGPU_READBACK_IDLE;
	readback_take_down(vgpu);
	mutex_unlock(&rb->lock);
}

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
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>
#include <linux/vmalloc.h>

#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

/* The picture is stale when the VMM has not read the screen for this long. */
#define STALE_NS	NSEC_PER_SEC

/* Longest wait for a picture, milliseconds: if the last one is stale, and if not. */
#define WAIT_STALE_MS	500
#define WAIT_MS		10

/* Values of the virgl protocol (enum virgl_formats, VIRGL_BIND_*, BLIT). */
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
static int readback_exec(struct mgpu_vgpu *vgpu, void *buf, size_t len)
{
	u32 answer = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	if (buf)
		answer = mgpu_devcmd_exec(vgpu, buf, len);
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
	return readback_exec(vgpu, c, sizeof(*c));
}

static int create_res(struct mgpu_vgpu *vgpu)
{
	const struct mgpu_readback *rb = &vgpu->screen.readback;
	struct virtio_gpu_resource_create_3d *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, 0, sizeof(*c));
	if (c) {
		c->resource_id = cpu_to_le32(rb->res);
		c->target = cpu_to_le32(MGPU_VIRGL_2D);
		c->format = cpu_to_le32(FORMAT_B8G8R8X8);
		c->bind = cpu_to_le32(BIND_RENDER_TARGET | BIND_SAMPLER_VIEW);
		c->width = cpu_to_le32(rb->width);
		c->height = cpu_to_le32(rb->height);
		c->depth = cpu_to_le32(1);
		c->array_size = cpu_to_le32(1);
	}
	return readback_exec(vgpu, c, sizeof(*c));
}

static int attach_backing(struct mgpu_vgpu *vgpu)
{
	const struct mgpu_readback *rb = &vgpu->screen.readback;
	const struct mgpu_mem_chunk all = {};
	struct virtio_gpu_resource_attach_backing *c;
	u32 n = mgpu_dma_entries(&rb->dma, &all, 1, rb->size, NULL,
				 MGPU_MAX_ENTRIES);
	size_t len;

	if (n > MGPU_MAX_ENTRIES)
		return -ENOMEM;
	len = sizeof(*c) + n * sizeof(struct virtio_gpu_mem_entry);
	c = readback_new_cmd(VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, 0, len);
	if (c) {
		c->resource_id = cpu_to_le32(rb->res);
		c->nr_entries = cpu_to_le32(n);
		mgpu_dma_entries(&rb->dma, &all, 1, rb->size, (void *)(c + 1),
				 n);
	}
	return readback_exec(vgpu, c, len);
}

static int attach_ctx(struct mgpu_vgpu *vgpu)
{
	const struct mgpu_readback *rb = &vgpu->screen.readback;
	struct virtio_gpu_ctx_resource *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, rb->ctx, sizeof(*c));
	if (c)
		c->resource_id = cpu_to_le32(rb->res);
	return readback_exec(vgpu, c, sizeof(*c));
}

/* The GPU's memory may have pixels of another guest: have zeros from @pixels there. */
static int clear_res(struct mgpu_vgpu *vgpu)
{
	const struct mgpu_readback *rb = &vgpu->screen.readback;
	struct virtio_gpu_transfer_host_3d *c;

	c = readback_new_cmd(VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, rb->ctx, sizeof(*c));
	if (c) {
		c->box.w = cpu_to_le32(rb->width);
		c->box.h = cpu_to_le32(rb->height);
		c->box.d = cpu_to_le32(1);
		c->resource_id = cpu_to_le32(rb->res);
	}
	return readback_exec(vgpu, c, sizeof(*c));
}

/* Release the module's context, resource and memory. */
static void readback_take_down(struct mgpu_vgpu *vgpu)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	struct mgpu_device *mdev = vgpu->mdev;

	/*
	 * Do not compare generations: the device may have some of the objects
	 * even if it was lost after @rb->gen was read.
	 */
	if (rb->gen) {
		mgpu_devcmd_forget(vgpu, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0,
				   rb->res);
		mgpu_devcmd_forget(vgpu, VIRTIO_GPU_CMD_CTX_DESTROY, rb->ctx,
				   0);
	}
	rb->gen = 0;
	mgpu_devnum_free(&mdev->res_nums, rb->res);
	mgpu_devnum_free(&mdev->ctx_nums, rb->ctx);
	rb->res = 0;
	rb->ctx = 0;
	mgpu_dma_unmap(&rb->dma);
	vfree(rb->pixels);
	rb->pixels = NULL;
}

static int map_pixels(struct mgpu_vgpu *vgpu)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	u32 nr = rb->size >> PAGE_SHIFT, i;
	struct page **pages;
	int ret;

	rb->pixels = __vmalloc(rb->size, GFP_GUEST | __GFP_ZERO);
	pages = kvcalloc(nr, sizeof(*pages), GFP_GUEST);
	ret = -ENOMEM;
	if (rb->pixels && pages) {
		for (i = 0; i < nr; i++)
			pages[i] = vmalloc_to_page(rb->pixels +
						   (size_t)i * PAGE_SIZE);
		ret = mgpu_dma_map(&rb->dma, pages, nr,
				   vgpu->mdev->caps.dma_dev);
	}
	kvfree(pages);
	return ret;
}

/* Make the context, resource and memory for a picture of @width x @height pixels. */
static int readback_set_up(struct mgpu_vgpu *vgpu, u32 width, u32 height)
{
	struct mgpu_readback *rb = &vgpu->screen.readback;
	struct mgpu_device *mdev = vgpu->mdev;
	int ret;

	lockdep_assert_held(&rb->lock);
	if (readback_is_there(vgpu) && rb->width == width && rb->height == height)
		return 0;
	readback_take_down(vgpu);

	rb->width = width;
	rb->height = height;
	rb->size = PAGE_ALIGN((size_t)width * height * 4);
	ret = map_pixels(vgpu);
	if (ret)
		goto fail;
	ret = -ENOMEM;
	rb->ctx = mgpu_devnum_new(mdev, &mdev->ctx_nums, 0, GFP_GUEST);
	rb->res = mgpu_devnum_new(mdev, &mdev->res_nums, 0, GFP_GUEST);
	if (!rb->ctx || !rb->res)
		goto fail;
	/* From here on the device may have objects to release. */
	rb->gen = mgpu_vgpu_gen(vgpu);
	ret = create_ctx(vgpu);
	if (!ret)
		ret = create_res(vgpu);
	if (!ret)
		ret = attach_backing(vgpu);
	if (!ret)
		ret = attach_ctx(vgpu);
	if (!ret)
		ret = clear_res(vgpu);
	if (!ret)
		return 0;
fail:
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
		rb->res, 0, FORMAT_B8G8R8X8,
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
	c->offset = cpu_to_le64(((u64)r->y * rb->width + r->x) * 4);
	c->resource_id = cpu_to_le32(rb->res);
	c->stride = cpu_to_le32(rb->width * 4);
	return 0;
}

/* Colours of a pixel; its fourth byte has no meaning. */
#define RGB	0xffffffU

static u32 *first_pixel(const struct mgpu_readback *rb)
{
	return (u32 *)rb->pixels + (size_t)rb->rect.y * rb->width + rb->rect.x;
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
	rb->mark = get_random_u32() & RGB;
	*first_pixel(rb) = rb->mark;
	ret = add_transfer(dc, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, rb, &first);
	if (!ret)
		ret = add_ctx_res(dc, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, rb->ctx,
				  res->dev.host_id);
	if (!ret)
		ret = add_blit(dc, rb, res->dev.host_id, r, &rb->rect,
			       res->dev.shape.format);
	if (!ret)
		ret = add_ctx_res(dc, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
				  rb->ctx, res->dev.host_id);
	if (!ret)
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
		memset(first_pixel(rb) + (size_t)row * rb->width, 0,
		       (size_t)rb->rect.width * 4);
	return true;
}

/* Copy the picture to the screen if the job succeeded, and free the command. */
static void readback_show(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_readback *rb = &s->readback;
	struct mgpu_view view;
	bool failed;

	lockdep_assert_held(&rb->lock);
	failed = readback_failed(rb);
	mutex_lock(&s->lock);
	spin_lock(&s->state_lock);
	view = s->view;
	spin_unlock(&s->state_lock);
	if ((failed || rb->cmd->answer == VIRTIO_GPU_RESP_OK_NODATA) && s->display &&
	    view.rect.width == rb->width && view.rect.height == rb->height)
		mgpu_screen_show(s, &view, &rb->rect, rb->pixels);
	mutex_unlock(&s->lock);
	mgpu_devcmd_free(rb->cmd);
	rb->cmd = NULL;
	rb->state = MGPU_READBACK_IDLE;
	if (failed)
		readback_take_down(vgpu);
}

/* Submit a job for the part of the screen that has changed since the last one. */
static void readback_begin(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_readback *rb = &s->readback;
	struct mgpu_resource *res;
	struct mgpu_rect r, shown;
	struct mgpu_view view;

	if (!mgpu_screen_take(s, &view, &r))
		return;
	res = view.res;
	shown = view.rect;
	if (!res->dev.host_id)
		goto out;

	rb->rect = (struct mgpu_rect){ r.x - shown.x, r.y - shown.y, r.width,
				       r.height };
	/* After a change of size, all of the picture has changed. */
	if (!readback_is_there(vgpu) || rb->width != shown.width ||
	    rb->height != shown.height) {
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
	u64 now = ktime_get_ns();
	u32 wait;

	mutex_lock(&rb->lock);
	wait = now - rb->looked_ns > STALE_NS ? WAIT_STALE_MS : WAIT_MS;
	rb->looked_ns = now;
	if (rb->state != MGPU_READBACK_IDLE && !readback_is_busy(rb))
		readback_show(vgpu);
	if (rb->state == MGPU_READBACK_IDLE && READ_ONCE(vgpu->live))
		readback_begin(vgpu);
	if (rb->state != MGPU_READBACK_IDLE &&
	    wait_event_timeout(rb->wait, !readback_is_busy(rb), msecs_to_jiffies(wait)))
		readback_show(vgpu);
	mutex_unlock(&rb->lock);
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

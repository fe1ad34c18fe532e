// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clearing of new resources on the device.
 *
 * All guests share one renderer in the device's host, and OpenGL leaves the content of new
 * storage undefined: it may be what another guest had there.  So the job that creates a
 * resource clears all of it, too.  The device executes the messages of a job in a row, so
 * no command of a guest finds the resource before it is clear.
 *
 * Most resources are filled from zeroed memory, which is attached to them meanwhile.  Such
 * transfers belong to no context.  A context of its own, which ends with the job, draws
 * over a resource with samples, and executes transfers that are too many for messages.  No
 * context may serve two jobs: virglrenderer ignores all streams of a context after an
 * error, and a guest can cause one by a resource that the host cannot make.
 */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/virtio_gpu.h>

#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/clear.h"
#include "virgl/devcmd.h"

/* Orders of the zeroed memory; the least one is enough for the largest resource. */
#define ZEROS_MAX	9
#define ZEROS_MIN	4

/* Most transfers that are messages of their own; more are a stream. */
#define MAX_TRANSFERS	24

static_assert(1 + MAX_TRANSFERS + 2 <= MGPU_JOB_MSGS,
	      "creation, transfers, attaching and detaching of zeros are one job");

/* Values of the virgl protocol: objects and commands of the module's stream. */
#define SURFACE_WORDS	5
#define CLEAR_WORDS	8
#define CLEAR_DEPTH	BIT(0)
#define CLEAR_STENCIL	BIT(1)
#define CLEAR_COLOR0	BIT(2)
#define TRANSFER_WORDS	13
#define TRANSFER_UP	1
#define SURFACE		1	/* handle of the only object */

/**
 * mgpu_clear_init - make the zeroed memory of a device with resources of guests
 * @mdev: device that is not registered yet
 *
 * Return: 0 or a negative errno.
 */
int mgpu_clear_init(struct mgpu_device *mdev)
{
	struct device *dev = mdev->caps.dma_dev;
	struct mgpu_zeros *z = &mdev->zeros;
	dma_addr_t addr;

	if (!mdev->caps.nr_capsets)
		return 0;
	for (z->order = ZEROS_MAX; !z->page; z->order--) {
		gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_COMP;

		if (z->order > ZEROS_MIN)
			gfp |= __GFP_NORETRY | __GFP_NOWARN;
		z->page = alloc_pages(gfp, z->order);
		if (z->page)
			break;
		if (z->order == ZEROS_MIN)
			return -ENOMEM;
	}
	if (!dev) {
		z->addr = page_to_phys(z->page);
		return 0;
	}
	/* A device behind an IOMMU cannot write to it. */
	addr = dma_map_page(dev, z->page, 0, PAGE_SIZE << z->order, DMA_TO_DEVICE);
	if (dma_mapping_error(dev, addr)) {
		__free_pages(z->page, z->order);
		z->page = NULL;
		return -ENOMEM;
	}
	z->addr = addr;
	return 0;
}

/* Free what mgpu_clear_init() made; the device gets no messages any more. */
void mgpu_clear_exit(struct mgpu_device *mdev)
{
	struct device *dev = mdev->caps.dma_dev;
	struct mgpu_zeros *z = &mdev->zeros;

	if (!z->page)
		return;
	if (dev)
		dma_unmap_page(dev, z->addr, PAGE_SIZE << z->order, DMA_TO_DEVICE);
	__free_pages(z->page, z->order);
	z->page = NULL;
}

/* ---- what is to be done ---- */

/* To the host, one sample is a resource with samples, too. */
static bool has_samples(const struct mgpu_virgl_shape *s)
{
	return s->nr_samples;
}

static u32 nr_transfers(const struct mgpu_virgl_shape *s)
{
	struct mgpu_virgl_box box;
	u32 level, nr = 0;

	for (level = 0; level <= s->last_level; level++) {
		mgpu_virgl_level(s, level, &box);
		nr += mgpu_virgl_by_layer(s) ? box.depth : 1;
	}
	return nr;
}

/**
 * mgpu_clear_msgs - get the number of messages that mgpu_clear_add() adds
 * @shape: shape that mgpu_virgl_resource_bytes() accepts
 */
u32 mgpu_clear_msgs(const struct mgpu_virgl_shape *shape)
{
	u32 nr;

	if (!mgpu_virgl_has_storage(shape))
		return 0;
	if (has_samples(shape))
		return 4;
	nr = nr_transfers(shape);
	return nr <= MAX_TRANSFERS ? nr + 2 : 6;
}

/* ---- messages ---- */

/* Attach zeros for the largest level to the resource. */
static int add_zeros(struct mgpu_devcmd *dc, const struct mgpu_resource *res)
{
	const struct mgpu_zeros *z = &dc->vgpu->mdev->zeros;
	struct virtio_gpu_resource_attach_backing *c;
	struct virtio_gpu_mem_entry *e;
	u64 piece = PAGE_SIZE << z->order, left;
	struct mgpu_virgl_box box;
	u32 n, i;

	left = mgpu_virgl_level(&res->dev.shape, 0, &box);
	n = DIV_ROUND_UP_ULL(left, piece);
	if (n > MGPU_MAX_ENTRIES)
		return -ENOMEM;
	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
			    sizeof(*c) + n * sizeof(*e));
	if (!c)
		return -ENOMEM;
	dc->msgs[dc->nr_msgs - 1].zeros = true;
	c->resource_id = cpu_to_le32(res->dev.host_id);
	c->nr_entries = cpu_to_le32(n);
	e = (struct virtio_gpu_mem_entry *)(c + 1);
	for (i = 0; i < n; i++) {
		e[i].addr = cpu_to_le64(z->addr);
		e[i].length = cpu_to_le32(min(left, piece));
		left -= piece;
	}
	return 0;
}

static int add_detach(struct mgpu_devcmd *dc, const struct mgpu_resource *res)
{
	struct virtio_gpu_resource_detach_backing *c;

	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->resource_id = cpu_to_le32(res->dev.host_id);
	return 0;
}

static int add_transfer(struct mgpu_devcmd *dc, const struct mgpu_resource *res,
			u32 level, const struct mgpu_virgl_box *box)
{
	struct virtio_gpu_transfer_host_3d *c;

	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->box.z = cpu_to_le32(box->z);
	c->box.w = cpu_to_le32(box->width);
	c->box.h = cpu_to_le32(box->height);
	c->box.d = cpu_to_le32(box->depth);
	c->resource_id = cpu_to_le32(res->dev.host_id);
	c->level = cpu_to_le32(level);
	return 0;
}

/* Add the message of a context's begin or end, or of its hold on the resource. */
static int add_ctx(struct mgpu_devcmd *dc, u32 type, u32 res)
{
	union {
		struct virtio_gpu_ctrl_hdr hdr;
		struct virtio_gpu_ctx_create create;
		struct virtio_gpu_ctx_resource res;
	} *c;

	c = mgpu_devcmd_msg(dc, type, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->hdr.ctx_id = cpu_to_le32(dc->clear_ctx);
	if (res)
		c->res.resource_id = cpu_to_le32(res);
	return 0;
}

/* Return the words of a new stream of the job's context; NULL if out of memory. */
static __le32 *add_stream(struct mgpu_devcmd *dc, u32 words)
{
	struct virtio_gpu_cmd_submit *c;

	if (words > MGPU_MAX_STREAM / 4)
		return NULL;
	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_SUBMIT_3D, sizeof(*c) + words * 4);
	if (!c)
		return NULL;
	c->hdr.ctx_id = cpu_to_le32(dc->clear_ctx);
	c->size = cpu_to_le32(words * 4);
	return (__le32 *)(c + 1);
}

static __le32 *put(__le32 *at, const u32 *words, u32 nr)
{
	while (nr--)
		*at++ = cpu_to_le32(*words++);
	return at;
}

static u32 header(u32 cmd, u32 object, u32 words)
{
	return words << 16 | object << 8 | cmd;
}

/* Add a stream that draws over all layers and samples. */
static int add_drawing(struct mgpu_devcmd *dc, const struct mgpu_resource *res)
{
	const struct mgpu_virgl_shape *s = &res->dev.shape;
	bool depth = mgpu_virgl_is_depth(s->format);
	const u32 surface[1 + SURFACE_WORDS] = {
		header(MGPU_VIRGL_CREATE_OBJECT, MGPU_VIRGL_SURFACE, SURFACE_WORDS),
		SURFACE, res->dev.host_id, s->format, 0, (s->array_size - 1) << 16,
	}, target[] = {
		header(MGPU_VIRGL_SET_FRAMEBUFFER_STATE, 0, 3), 1,
		depth ? SURFACE : 0, depth ? 0 : SURFACE,
	}, clear[1 + CLEAR_WORDS] = {
		header(MGPU_VIRGL_CLEAR, 0, CLEAR_WORDS),
		depth ? CLEAR_DEPTH | CLEAR_STENCIL : CLEAR_COLOR0,
	};
	__le32 *w = add_stream(dc, ARRAY_SIZE(surface) + ARRAY_SIZE(target) +
				   ARRAY_SIZE(clear));

	if (!w)
		return -ENOMEM;
	w = put(w, surface, ARRAY_SIZE(surface));
	w = put(w, target, ARRAY_SIZE(target));
	put(w, clear, ARRAY_SIZE(clear));
	return 0;
}

/* Call for each transfer: by @w, words of a stream, or by a message each if NULL. */
static int add_transfers(struct mgpu_devcmd *dc, const struct mgpu_resource *res,
			 __le32 *w)
{
	const struct mgpu_virgl_shape *s = &res->dev.shape;
	struct mgpu_virgl_box box;
	u32 level, z, end;
	int ret = 0;

	for (level = 0; level <= s->last_level; level++) {
		mgpu_virgl_level(s, level, &box);
		end = 1;
		if (mgpu_virgl_by_layer(s)) {
			end = box.depth;
			box.depth = 1;
		}
		for (z = 0; z < end && !ret; z++) {
			const u32 words[1 + TRANSFER_WORDS] = {
				header(MGPU_VIRGL_TRANSFER3D, 0, TRANSFER_WORDS),
				res->dev.host_id, level, 0, 0, 0,
				0, 0, z, box.width, box.height, box.depth,
				0, TRANSFER_UP,
			};

			box.z = z;
			if (w)
				w = put(w, words, ARRAY_SIZE(words));
			else
				ret = add_transfer(dc, res, level, &box);
		}
	}
	return ret;
}

/* Add what a context of the job's own does. */
static int add_in_ctx(struct mgpu_devcmd *dc, const struct mgpu_resource *res)
{
	const struct mgpu_virgl_shape *s = &res->dev.shape;
	struct mgpu_device *mdev = dc->vgpu->mdev;
	__le32 *w;
	int ret;

	dc->clear_ctx = mgpu_devnum_new(mdev, &mdev->ctx_nums, 0, GFP_GUEST);
	if (!dc->clear_ctx)
		return -ENOMEM;
	ret = add_ctx(dc, VIRTIO_GPU_CMD_CTX_CREATE, 0);
	if (!ret)
		ret = add_ctx(dc, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
			      res->dev.host_id);
	if (!ret && has_samples(s)) {
		ret = add_drawing(dc, res);
	} else if (!ret) {
		w = add_stream(dc, nr_transfers(s) * (1 + TRANSFER_WORDS));
		ret = w ? add_transfers(dc, res, w) : -ENOMEM;
	}
	if (!ret)
		ret = add_ctx(dc, VIRTIO_GPU_CMD_CTX_DESTROY, 0);
	return ret;
}

/**
 * mgpu_clear_add - add the messages that clear a new resource
 * @dc: command whose last message creates the resource on the device
 * @res: the resource; its shape and the device's number of it are set
 *
 * Context: must hold ring_lock; may sleep.
 * Return: 0; -ENOMEM if out of memory, or if the resource has too many layers.
 */
int mgpu_clear_add(struct mgpu_devcmd *dc, const struct mgpu_resource *res)
{
	const struct mgpu_virgl_shape *s = &res->dev.shape;
	int ret;

	if (!mgpu_virgl_has_storage(s))
		return 0;
	if (has_samples(s))
		return add_in_ctx(dc, res);
	ret = add_zeros(dc, res);
	if (!ret && nr_transfers(s) <= MAX_TRANSFERS)
		ret = add_transfers(dc, res, NULL);
	else if (!ret)
		ret = add_in_ctx(dc, res);
	if (!ret)
		ret = add_detach(dc, res);
	return ret;
}

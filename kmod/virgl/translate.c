// SPDX-License-Identifier: GPL-2.0-only
/*
 * Translation of a guest's commands into the device's terms.
 *
 * The guest's numbers of contexts and resources become the device's numbers, guest
 * addresses become the device's addresses, and a stream is refused if it names a
 * resource that its context has not attached.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "compute/context.h"
#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

/* The bind flag that QEMU gives a 2D resource (VIRGL_BIND_RENDER_TARGET). */
#define BIND_2D		BIT(1)

/* Most sub-contexts of a context; Mesa makes one for each GL context. */
#define MAX_SUBS	64

/* Slices of a vGPU that wait or that the device has; one stream always gets its slices. */
#define MAX_SLICES	256

static_assert(sizeof(struct virtio_gpu_cmd_submit) + MGPU_MAX_STREAM <=
	      MGPU_MSG_MAX, "the longest stream is a message");

static unsigned int slice_us = 4000;
module_param(slice_us, uint, 0644);
MODULE_PARM_DESC(slice_us, "While VMs share a GPU, cut their streams into slices of so many microseconds (500 to 100000; default 4000; 0: do not cut)");

#ifdef MGPU_TEST
static unsigned int slice_bands;
module_param(slice_bands, uint, 0644);
MODULE_PARM_DESC(slice_bands, "For tests: cut streams before each command, and draws into so many bands (default 0: by slice_us)");
#else
static const unsigned int slice_bands;
#endif

/* Make a command with one message of @type and @len bytes; NULL if out of memory. */
static struct mgpu_devcmd *cmd_with_msg(struct mgpu_vgpu *vgpu,
					const struct mgpu_lane *lane, u32 type,
					size_t len)
{
	struct mgpu_devcmd *dc = mgpu_devcmd_new(vgpu, lane, 1);

	if (dc && !mgpu_devcmd_msg(dc, type, len)) {
		mgpu_devcmd_free(dc);
		dc = NULL;
	}
	return dc;
}

static u32 devcmd_queue(struct mgpu_devcmd *dc, enum mgpu_cmd_next *next)
{
	list_add_tail(&dc->node, &dc->vgpu->devcmds);
	mgpu_devcmd_submit(dc);
	*next = MGPU_CMD_WORK;
	return 0;
}

/* ---- contexts: must hold ring_lock ---- */

static struct mgpu_devctx *find_ctx(struct mgpu_vgpu *vgpu, u32 id)
{
	return xa_load(&vgpu->devctxs, id);
}

static const struct mgpu_capset *find_capset(const struct mgpu_vgpu *vgpu, u32 id)
{
	const struct mgpu_device_caps *caps = &vgpu->mdev->caps;
	u32 i;

	for (i = 0; i < caps->nr_capsets; i++) {
		if (caps->capsets[i].id == id)
			return &caps->capsets[i];
	}
	return NULL;
}

static u32 dev_ctx_create(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			  enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct virtio_gpu_ctx_create *c;
	struct mgpu_devctx *ctx;
	struct mgpu_devcmd *dc;

	if (cmd->capset &&
	    !(vgpu->mdev->caps.context_init && find_capset(vgpu, cmd->capset)))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (find_ctx(vgpu, cmd->ctx_id))
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (vgpu->nr_devctxs >= MGPU_MAX_CONTEXTS)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	dc = cmd_with_msg(vgpu, lane, cmd->type, sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = dc->msgs[0].buf;
	ctx = mgpu_devctx_new(vgpu, cmd->ctx_id, cmd->capset);
	if (!ctx)
		goto no_memory;
	dc->ctx = ctx;
	c->hdr.ctx_id = cpu_to_le32(ctx->dev_id);
	c->context_init = cpu_to_le32(cmd->capset);
	c->nlen = cpu_to_le32(strlen(cmd->name));
	memcpy(c->debug_name, cmd->name, strlen(cmd->name));
	if (xa_err(xa_store(&vgpu->devctxs, ctx->id, ctx, GFP_KERNEL_ACCOUNT)))
		goto no_memory;
	kref_get(&ctx->ref);
	vgpu->nr_devctxs++;
	return devcmd_queue(dc, next);

no_memory:
	mgpu_devcmd_free(dc);
	return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
}

static u32 dev_ctx_destroy(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			   enum mgpu_cmd_next *next)
{
	struct mgpu_devctx *ctx = find_ctx(vgpu, lane->cmd.ctx_id);
	struct virtio_gpu_ctx_destroy *c;
	struct mgpu_devcmd *dc;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	dc = cmd_with_msg(vgpu, lane, lane->cmd.type, sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = dc->msgs[0].buf;
	c->hdr.ctx_id = cpu_to_le32(ctx->dev_id);
	xa_erase(&vgpu->devctxs, ctx->id);
	vgpu->nr_devctxs--;
	dc->ctx = ctx;
	return devcmd_queue(dc, next);
}

/* Find a resource whose content a guest may see. */
static struct mgpu_resource *find_clear(struct mgpu_vgpu *vgpu, u32 id)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, id);

	return res && !READ_ONCE(res->dev_unclear) ? res : NULL;
}

/* CTX_ATTACH_RESOURCE and CTX_DETACH_RESOURCE. */
static u32 dev_ctx_resource(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			    enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	bool attach = cmd->type == VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE;
	struct mgpu_devctx *ctx = find_ctx(vgpu, cmd->ctx_id);
	struct mgpu_resource *res = find_clear(vgpu, cmd->res_id);
	struct virtio_gpu_ctx_resource *c;
	struct mgpu_devcmd *dc;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (attach == !!xa_load(&ctx->attached, res->id))
		return attach ? VIRTIO_GPU_RESP_OK_NODATA :
				VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (attach && ctx->nr_attached >= MGPU_MAX_ATTACHED)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	dc = cmd_with_msg(vgpu, lane, cmd->type, sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (attach && xa_err(xa_store(&ctx->attached, res->id, res,
				      GFP_KERNEL_ACCOUNT))) {
		mgpu_devcmd_free(dc);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	c = dc->msgs[0].buf;
	c->hdr.ctx_id = cpu_to_le32(ctx->dev_id);
	c->resource_id = cpu_to_le32(res->dev.host_id);
	if (attach) {
		ctx->nr_attached++;
	} else {
		xa_erase(&ctx->attached, res->id);
		ctx->nr_attached--;
	}
	return devcmd_queue(dc, next);
}

static const struct mgpu_virgl_res *find_attached(void *data, u32 id)
{
	struct mgpu_devctx *ctx = data;
	const struct mgpu_resource *res = xa_load(&ctx->attached, id);

	/* Only of a blob that a stream has named virgl has the shape. */
	return res && !(res->blob && !res->dev.shape.width) && !READ_ONCE(res->dev_unclear) ?
	       &res->dev : NULL;
}

/*
 * Record the sub-contexts that a checked stream makes and ends, in its order.  The
 * caller has checked that they do not exceed MAX_SUBS.
 */
static void note_subs(struct mgpu_devctx *ctx, const __le32 *stream,
		      size_t words)
{
	u32 header, id;
	size_t i;

	for (i = 0; i < words; i += 1 + (header >> 16)) {
		header = le32_to_cpu(stream[i]);
		switch (header & 0xff) {
		case MGPU_VIRGL_CREATE_SUB_CTX:
			id = le32_to_cpu(stream[i + 1]);
			if (!xa_store(&ctx->subs, id, xa_mk_value(1),
				      GFP_KERNEL_ACCOUNT | __GFP_NOFAIL))
				ctx->nr_subs++;
			break;
		case MGPU_VIRGL_DESTROY_SUB_CTX:
			id = le32_to_cpu(stream[i + 1]);
			if (xa_erase(&ctx->subs, id))
				ctx->nr_subs--;
			break;
		}
	}
}

/*
 * Take the storage of blobs out of a checked stream.  The host would make it at once, and keep
 * it until the end of its process if no blob takes it: the job that makes the blob makes it.
 */
static void take_storage(struct mgpu_devctx *ctx, __le32 *stream, size_t words)
{
	struct mgpu_devstorage *to;
	u32 header;
	size_t i;

	for (i = 0; i < words; i += 1 + (header >> 16)) {
		header = le32_to_cpu(stream[i]);
		if ((header & 0xff) != MGPU_VIRGL_PIPE_RESOURCE_CREATE)
			continue;
		/* A guest that names more than it uses loses the oldest. */
		to = &ctx->storage[ctx->next_storage++ % MGPU_MAX_STORAGE];
		mgpu_virgl_pipe_get(stream + i, &to->shape, &to->blob_id);
		stream[i] = cpu_to_le32(MGPU_VIRGL_PIPE_WORDS << 16 | MGPU_VIRGL_NOP);
	}
}

/*
 * Return whether a stream's buffer fits in the type's memory, of which the guest's
 * resources may take all.  The only stream of the vGPU always fits, so the vGPU goes on.
 */
static bool stream_fits(struct mgpu_vgpu *vgpu, u32 len)
{
	u64 used = atomic64_read(&vgpu->mem.used);

	return !atomic64_read(&vgpu->mem.streams) ||
	       used + len <= vgpu->type->desc->mem_limit;
}

/*
 * Check a stream of a context, and put the device's numbers into it.  A stream of another
 * protocol is left as it is, which only a device with caps.vgpu_nums has.
 */
static bool check_stream(struct mgpu_vgpu *vgpu, struct mgpu_devctx *ctx,
			 const struct mgpu_cmd *cmd, __le32 *stream,
			 struct mgpu_virgl_info *info)
{
	const struct mgpu_virgl_lookup lookup = {
		.find = find_attached, .data = ctx, .blobs = vgpu->mdev->caps.blobs,
	};

	if (!ctx->virgl) {
		memset(info, 0, sizeof(*info));
		return cmd->size % 4 == 0;
	}
	/* Without rings nothing needs a stream without commands.  virgl's have one ring. */
	if (!cmd->size && !vgpu->mdev->caps.context_init)
		return false;
	if (mgpu_timeline_of(vgpu, cmd) && cmd->ring_idx)
		return false;
	if (!mgpu_virgl_check(stream, cmd->size, &lookup, info))
		return true;
	dev_notice_ratelimited(vgpu->vdev.dev,
			       "stream of context %u refused at byte %zu: %s (command %u, object %u, value %#x)\n",
			       cmd->ctx_id, info->offset, mgpu_virgl_why(info->why),
			       info->opcode, info->object, info->value);
	return false;
}

/* Make the only message of a command, which submits @size bytes of its buffer. */
static void add_submit(struct mgpu_devcmd *dc, u32 size)
{
	struct virtio_gpu_cmd_submit *c = dc->stream.data;
	struct mgpu_msg *msg = &dc->msgs[dc->nr_msgs++];

	memset(&c->hdr, 0, sizeof(c->hdr));
	c->hdr.type = cpu_to_le32(VIRTIO_GPU_CMD_SUBMIT_3D);
	c->hdr.ctx_id = cpu_to_le32(dc->dev_ctx);
	c->size = cpu_to_le32(size);
	c->padding = 0;
	msg->buf = c;
	msg->len = sizeof(*c) + size;
	msg->resp = &dc->resp[0];
	msg->resp_len = sizeof(*msg->resp);
}

/* Charge the command's buffer against the type's memory, until the command is freed. */
static void charge_stream(struct mgpu_devcmd *dc)
{
	atomic64_add(dc->stream.size, &dc->vgpu->mem.used);
	atomic64_add(dc->stream.size, &dc->vgpu->mem.streams);
}

/* Return the wanted length of the vGPU's slices, nanoseconds; 0 for no cuts. */
static u32 slice_ns(struct mgpu_vgpu *vgpu)
{
	u32 us = READ_ONCE(slice_us);

	if (!us || !mgpu_sched_contended(vgpu))
		return 0;
	return clamp(us, 500U, 100000U) * NSEC_PER_USEC;
}

/* Have a buffer for a slice of @size bytes, which is charged; false if out of memory. */
static bool get_slice(struct mgpu_devcmd *dc, u32 size, gfp_t gfp)
{
	size_t len = sizeof(struct virtio_gpu_cmd_submit) + size;

	/* Whole pages take waiting, which an engine's thread may not. */
	if (len > MGPU_CMDBUF_SHORT && !gfpflags_allow_blocking(gfp))
		return false;
	if (!mgpu_cmdbuf_get(&dc->vgpu->cmdbufs, &dc->stream, len, gfp))
		return false;
	charge_stream(dc);
	return true;
}

/* Make the commands of all planned slices but the last; false if out of memory. */
static bool make_slices(struct mgpu_lane *lane, struct mgpu_devctx *ctx,
			const __le32 *stream, struct mgpu_devcmd *last,
			struct list_head *slices)
{
	const struct mgpu_slicer *s = ctx->slicer;
	struct virtio_gpu_cmd_submit *c;
	struct mgpu_devcmd *dc;
	u32 i, size;

	for (i = 0; i < s->nr; i++) {
		dc = i < s->nr - 1 ? mgpu_devcmd_take(ctx->vgpu, lane->gfp) : last;
		if (!dc)
			return false;
		if (dc != last) {
			dc->type = last->type;
			dc->guest_ctx = last->guest_ctx;
			dc->last = last;
			last->slices++;
			list_add_tail(&dc->node, slices);
		}
		size = mgpu_slice_words(s, i) * 4;
		if (!get_slice(dc, size, lane->gfp))
			return false;
		c = dc->stream.data;
		dc->dev_ctx = ctx->dev_id;
		dc->load = s->slices[i].load;
		dc->job.slice = true;
		dc->job.bytes = size;
		mgpu_slice_write(s, stream, i, (__le32 *)(c + 1));
		add_submit(dc, size);
	}
	return true;
}

/* Queue the planned slices of a stream, of which @last answers the guest. */
static u32 queue_slices(struct mgpu_lane *lane, struct mgpu_devctx *ctx,
			const __le32 *stream, struct mgpu_devcmd *last,
			enum mgpu_cmd_next *next)
{
	struct mgpu_devcmd *dc, *more;
	LIST_HEAD(slices);

	if (ctx->vgpu->slices && ctx->vgpu->slices + ctx->slicer->nr > MAX_SLICES) {
		mgpu_devcmd_free(last);
		*next = MGPU_CMD_WAIT;
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	if (!make_slices(lane, ctx, stream, last, &slices)) {
		list_for_each_entry_safe(dc, more, &slices, node)
			mgpu_devcmd_free(dc);
		mgpu_devcmd_free(last);
		return mgpu_lane_no_memory(lane, next);
	}
	mgpu_slice_commit(ctx->slicer);
	ctx->vgpu->slices += ctx->slicer->nr;
	list_for_each_entry_safe(dc, more, &slices, node) {
		list_del(&dc->node);
		devcmd_queue(dc, next);
	}
	return devcmd_queue(last, next);
}

static u32 dev_submit_3d(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			 enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_devctx *ctx = find_ctx(vgpu, cmd->ctx_id);
	struct virtio_gpu_cmd_submit *c = lane->buf.data;
	__le32 *stream = (__le32 *)(c + 1);
	struct mgpu_virgl_info info;
	struct mgpu_devcmd *dc;
	u32 err;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (!check_stream(vgpu, ctx, cmd, stream, &info))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	/* Noting sub-contexts may wait for memory. */
	if (info.subs_made && !gfpflags_allow_blocking(lane->gfp))
		return mgpu_lane_no_memory(lane, next);
	/* Each sub-context costs the host a GL context. */
	if (info.subs_made > MAX_SUBS - ctx->nr_subs)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (!stream_fits(vgpu, lane->buf.size)) {
		*next = MGPU_CMD_WAIT;
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	dc = mgpu_devcmd_new(vgpu, lane, 1);
	if (!dc)
		return mgpu_lane_no_memory(lane, next);
	if (info.blobs)
		take_storage(ctx, stream, cmd->size / 4);
	dc->dev_ctx = ctx->dev_id;
	if (ctx->virgl &&
	    mgpu_slice_plan(ctx->slicer, stream, cmd->size / 4, slice_ns(vgpu),
			    READ_ONCE(slice_bands)) > 1) {
		err = queue_slices(lane, ctx, stream, dc, next);
		if (*next == MGPU_CMD_WORK && (info.subs_made || info.subs_gone))
			note_subs(ctx, stream, cmd->size / 4);
		return err;
	}
	if (ctx->virgl) {
		mgpu_slice_commit(ctx->slicer);
		dc->load = ctx->slicer->slices[0].load;
	}
	if (info.subs_made || info.subs_gone)
		note_subs(ctx, stream, cmd->size / 4);
	dc->stream = lane->buf;
	lane->buf = (struct mgpu_cmdbuf){};
	charge_stream(dc);
	/* The device gets the copy that was checked. */
	add_submit(dc, cmd->size);
	dc->job.bytes = cmd->size + info.bytes;
	return devcmd_queue(dc, next);
}

/* ---- resources: must hold ring_lock ---- */

/* Make the command on a resource whose message begins with its number. */
static struct mgpu_devcmd *cmd_on_res(struct mgpu_vgpu *vgpu, const struct mgpu_lane *lane,
				      struct mgpu_resource *res, size_t len)
{
	struct mgpu_devcmd *dc = cmd_with_msg(vgpu, lane, lane->cmd.type, len);
	struct virtio_gpu_resource_unref *c;

	static_assert(offsetof(struct virtio_gpu_resource_unref, resource_id) ==
		      offsetof(struct virtio_gpu_resource_detach_backing, resource_id) &&
		      offsetof(struct virtio_gpu_resource_unref, resource_id) ==
		      offsetof(struct virtio_gpu_resource_map_blob, resource_id) &&
		      offsetof(struct virtio_gpu_resource_unref, resource_id) ==
		      offsetof(struct virtio_gpu_resource_unmap_blob, resource_id));
	if (!dc)
		return NULL;
	c = dc->msgs[0].buf;
	c->resource_id = cpu_to_le32(res->dev.host_id);
	mgpu_resource_get(res);
	dc->res = res;
	return dc;
}

/* Give a new resource its number on the device.  Return 0 or VIRTIO_GPU_RESP_ERR_*. */
static u32 number_res(struct mgpu_resource *res)
{
	struct mgpu_device *mdev = res->vgpu->mdev;

	res->dev.host_id = mgpu_devnum_new(mdev, &mdev->res_nums, res->id,
					   GFP_KERNEL_ACCOUNT);
	if (res->dev.host_id)
		return 0;
	/* The guest's own number needs no memory. */
	return mdev->caps.vgpu_nums ? VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID :
				      VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
}

/* Queue the command of a new resource.  The table has a reference, and so has the command. */
static u32 queue_create(struct mgpu_devcmd *dc, enum mgpu_cmd_next *next)
{
	u32 err;

	mgpu_resource_get(dc->res);
	err = mgpu_resource_add(dc->res);
	if (err == VIRTIO_GPU_RESP_OK_NODATA)
		return devcmd_queue(dc, next);
	mgpu_devcmd_free(dc);
	return err;
}

static u32 dev_res_create(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			  const struct mgpu_virgl_shape *shape,
			  enum mgpu_cmd_next *next)
{
	struct virtio_gpu_resource_create_3d *c;
	struct mgpu_resource *res;
	struct mgpu_devcmd *dc;
	u32 err;
	u64 bytes;

	if (mgpu_virgl_resource_bytes(shape, &bytes))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	dc = mgpu_devcmd_new(vgpu, lane, 1 + mgpu_clear_msgs(shape));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, sizeof(*c));
	if (!c) {
		err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
		goto refuse;
	}
	res = mgpu_resource_new(vgpu, lane->cmd.res_id, bytes, &err);
	if (!res)
		goto refuse;
	dc->res = res;
	res->format = shape->format;
	res->width = shape->width;
	res->height = shape->height;
	res->stride = shape->width * 4;
	res->dev.shape = *shape;
	/*
	 * A host keeps a Y_0_TOP resource upside down, to show it, and mirrors
	 * it in all other uses; virglrenderer does not mirror it in some blits.
	 * The host shows no vGPU's resource, so guests see no difference.
	 */
	res->dev.shape.flags &= ~MGPU_VIRGL_Y_0_TOP;

	err = number_res(res);
	if (err)
		goto refuse;
	err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (mgpu_clear_add(dc, res))
		goto refuse;
	c->resource_id = cpu_to_le32(res->dev.host_id);
	c->target = cpu_to_le32(shape->target);
	c->format = cpu_to_le32(shape->format);
	c->bind = cpu_to_le32(shape->bind);
	c->width = cpu_to_le32(shape->width);
	c->height = cpu_to_le32(shape->height);
	c->depth = cpu_to_le32(shape->depth);
	c->array_size = cpu_to_le32(shape->array_size);
	c->last_level = cpu_to_le32(shape->last_level);
	c->nr_samples = cpu_to_le32(shape->nr_samples);
	c->flags = cpu_to_le32(res->dev.shape.flags);
	return queue_create(dc, next);

refuse:
	mgpu_devcmd_free(dc);
	return err;
}

static u32 dev_res_create_2d(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			     enum mgpu_cmd_next *next)
{
	const struct mgpu_virgl_shape shape = {
		.target = MGPU_VIRGL_2D,
		.format = lane->cmd.format,
		.bind = BIND_2D,
		.width = lane->cmd.width,
		.height = lane->cmd.height,
		.depth = 1,
		.array_size = 1,
	};

	return dev_res_create(vgpu, lane, &shape, next);
}

static u32 dev_res_unref(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			 enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, lane->cmd.res_id);
	struct mgpu_devctx *ctx;
	struct mgpu_devcmd *dc;
	unsigned long id;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	dc = cmd_on_res(vgpu, lane, res, sizeof(struct virtio_gpu_resource_unref));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	/* The device may use the memory for something else from then on. */
	mgpu_hostmem_remove(res, false);
	/* The guest may reuse the number from now on. */
	xa_erase(&vgpu->resources, res->id);
	xa_for_each(&vgpu->devctxs, id, ctx) {
		if (xa_erase(&ctx->attached, res->id))
			ctx->nr_attached--;
	}
	mgpu_screen_forget(vgpu, res);
	/* The table's reference; the command has another. */
	mgpu_resource_put(res);
	return devcmd_queue(dc, next);
}

/*
 * Add the message of a command that gives memory to a resource: @fixed bytes, and entries.
 * Return the message, and set their number; NULL if out of memory, or if the VMM has unmapped
 * the memory (@err is VIRTIO_GPU_RESP_ERR_*).
 */
static void *add_backing(struct mgpu_devcmd *dc, struct mgpu_mem *mem, u32 dev_res,
			 size_t fixed, __le32 *nr, u32 *err)
{
	void *c = NULL;
	u32 n;

	/* The VMM's unmapping of the memory waits until mgpu_mem_put(). */
	*err = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (!mgpu_mem_get(mem))
		return NULL;
	*err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	mem->dev_res = dev_res;
	if (mgpu_dma_map(&mem->dma, mem->pages, mem->nr_pages,
			 dc->vgpu->mdev->caps.dma_dev))
		goto out;
	n = mgpu_dma_entries(&mem->dma, mem->chunks, mem->nr_chunks, mem->len,
			     NULL, MGPU_MAX_ENTRIES);
	if (n > MGPU_MAX_ENTRIES)
		goto out;
	c = mgpu_devcmd_msg(dc, dc->type, fixed + n * sizeof(struct virtio_gpu_mem_entry));
	if (!c)
		goto out;
	*nr = cpu_to_le32(n);
	mgpu_dma_entries(&mem->dma, mem->chunks, mem->nr_chunks, mem->len, c + fixed, n);
out:
	mgpu_mem_put(mem);
	return c;
}

static u32 dev_res_attach(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			  enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_resource *res = mgpu_resource_find(vgpu, cmd->res_id);
	struct virtio_gpu_resource_attach_backing *c;
	struct mgpu_devcmd *dc;
	struct mgpu_mem *mem;
	__le32 nr;
	u32 err;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* A blob has got its memory when it was made. */
	if (res->blob)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	dc = mgpu_devcmd_new(vgpu, lane, 1);
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	err = mgpu_resource_attach(vgpu, cmd);
	if (err != VIRTIO_GPU_RESP_OK_NODATA)
		goto refuse;

	mem = res->backing;
	c = add_backing(dc, mem, res->dev.host_id, sizeof(*c), &nr, &err);
	if (!c)
		goto detach;
	c->resource_id = cpu_to_le32(res->dev.host_id);
	c->nr_entries = nr;
	res->dev.backing = mem->len;
	mgpu_resource_get(res);
	dc->res = res;
	dc->mem = mem;
	return devcmd_queue(dc, next);

detach:
	mgpu_resource_detach(vgpu, cmd->res_id);
refuse:
	mgpu_devcmd_free(dc);
	return err;
}

static u32 dev_res_detach(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			  enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, lane->cmd.res_id);
	struct mgpu_devcmd *dc;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!res->backing || res->blob)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	dc = cmd_on_res(vgpu, lane, res, sizeof(struct virtio_gpu_resource_detach_backing));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	dc->mem = res->backing;
	/* The memory is charged until the device has released it. */
	res->backing = NULL;
	res->backing_charged = 0;
	res->dev.backing = 0;
	return devcmd_queue(dc, next);
}

/* ---- blobs: must hold ring_lock ---- */

/* Return the bytes of host and guest that a blob costs; U64_MAX for too many. */
static u64 blob_bytes(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	u64 bytes = cmd->nr_entries ? mgpu_mem_cmd_bytes(cmd) : 0;

	if (cmd->size > vgpu->type->desc->mem_limit)
		return U64_MAX;
	return cmd->blob_mem == VIRTIO_GPU_BLOB_MEM_GUEST ? bytes :
							    bytes + PAGE_ALIGN(cmd->size);
}

/* Get the storage that a stream has named, and forget it; false for none. */
static bool get_storage(struct mgpu_devctx *ctx, u64 blob_id, struct mgpu_virgl_shape *shape)
{
	struct mgpu_devstorage *s;
	u32 i;

	/* The newest first: numbers may be used again. */
	for (i = 1; i <= MGPU_MAX_STORAGE; i++) {
		s = &ctx->storage[(ctx->next_storage - i) % MGPU_MAX_STORAGE];
		if (!s->blob_id || s->blob_id != blob_id)
			continue;
		*shape = s->shape;
		s->blob_id = 0;
		return true;
	}
	return false;
}

/*
 * Return 0, or why the guest may not have a blob; @shape: set to the shape of a blob in a
 * context of virgl.
 */
static u32 blob_refused(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd,
			struct mgpu_virgl_shape *shape)
{
	struct mgpu_devctx *ctx = find_ctx(vgpu, cmd->ctx_id);

	if (!vgpu->mdev->caps.blobs)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (cmd->ctx_id && !ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (cmd->blob_mem == VIRTIO_GPU_BLOB_MEM_GUEST)
		return cmd->blob_id ? VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER : 0;
	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (!ctx->virgl)
		return 0;
	if (cmd->blob_mem != VIRTIO_GPU_BLOB_MEM_HOST3D ||
	    !get_storage(ctx, cmd->blob_id, shape) || shape->width != cmd->size)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

/* Add the message that makes a blob's storage. */
static bool add_storage(struct mgpu_devcmd *dc, u32 ctx, u64 blob_id,
			const struct mgpu_virgl_shape *shape)
{
	const u32 bytes = (1 + MGPU_VIRGL_PIPE_WORDS) * sizeof(__le32);
	struct virtio_gpu_cmd_submit *c;

	c = mgpu_devcmd_msg(dc, VIRTIO_GPU_CMD_SUBMIT_3D, sizeof(*c) + bytes);
	if (!c)
		return false;
	c->hdr.ctx_id = cpu_to_le32(ctx);
	c->size = cpu_to_le32(bytes);
	mgpu_virgl_pipe_put((__le32 *)(c + 1), shape, blob_id);
	return true;
}

static u32 dev_res_create_blob(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			       enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct virtio_gpu_resource_create_blob *c;
	struct mgpu_virgl_shape shape = {};
	struct mgpu_resource *res;
	struct mgpu_devcmd *dc;
	__le32 nr = 0;
	u32 err, ctx;

	err = blob_refused(vgpu, cmd, &shape);
	if (err)
		return err;
	ctx = cmd->ctx_id ? find_ctx(vgpu, cmd->ctx_id)->dev_id : 0;
	dc = mgpu_devcmd_new(vgpu, lane, 2);
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	res = mgpu_resource_new(vgpu, cmd->res_id, blob_bytes(vgpu, cmd), &err);
	if (!res)
		goto refuse;
	dc->res = res;
	res->blob = true;
	res->mappable = cmd->blob_mem != VIRTIO_GPU_BLOB_MEM_GUEST &&
			cmd->blob_flags & VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE;
	res->size = cmd->size;
	res->dev.shape = shape;
	err = number_res(res);
	if (err)
		goto refuse;
	err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (shape.width && !add_storage(dc, ctx, cmd->blob_id, &shape))
		goto refuse;
	if (cmd->nr_entries) {
		err = mgpu_resource_pin(res, cmd);
		if (err != VIRTIO_GPU_RESP_OK_NODATA)
			goto refuse;
		dc->mem = res->backing;
		c = add_backing(dc, dc->mem, res->dev.host_id, sizeof(*c), &nr, &err);
	} else {
		c = mgpu_devcmd_msg(dc, dc->type, sizeof(*c));
	}
	if (!c)
		goto refuse;
	c->hdr.ctx_id = cpu_to_le32(ctx);
	c->resource_id = cpu_to_le32(res->dev.host_id);
	c->blob_mem = cpu_to_le32(cmd->blob_mem);
	c->blob_flags = cpu_to_le32(cmd->blob_flags);
	c->nr_entries = nr;
	c->blob_id = cpu_to_le64(cmd->blob_id);
	c->size = cpu_to_le64(cmd->size);
	return queue_create(dc, next);

refuse:
	mgpu_devcmd_free(dc);
	return err;
}

static u32 dev_res_map(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		       enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, lane->cmd.res_id);
	struct mgpu_devcmd *dc;
	u32 err;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!res->mappable)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	dc = cmd_on_res(vgpu, lane, res, sizeof(struct virtio_gpu_resource_map_blob));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	err = mgpu_hostmem_reserve(vgpu, res, lane->cmd.offset);
	if (err != VIRTIO_GPU_RESP_OK_NODATA) {
		mgpu_devcmd_free(dc);
		return err;
	}
	return devcmd_queue(dc, next);
}

static u32 dev_res_unmap(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			 enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, lane->cmd.res_id);
	struct mgpu_devcmd *dc;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	dc = cmd_on_res(vgpu, lane, res, sizeof(struct virtio_gpu_resource_unmap_blob));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	/* The guest loses it at once; a blob that the device is mapping is not there yet. */
	if (!mgpu_hostmem_remove(res, true)) {
		mgpu_devcmd_free(dc);
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	}
	return devcmd_queue(dc, next);
}

/* ---- transfers ---- */

/* TRANSFER_TO_HOST_2D, TRANSFER_TO_HOST_3D and TRANSFER_FROM_HOST_3D. */
static u32 dev_transfer(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	bool flat = cmd->type == VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D;
	struct mgpu_resource *res = find_clear(vgpu, cmd->res_id);
	struct mgpu_virgl_transfer t = cmd->transfer;
	struct virtio_gpu_transfer_to_host_2d *c2;
	struct virtio_gpu_transfer_host_3d *c3;
	struct mgpu_devctx *ctx = NULL;
	struct mgpu_devcmd *dc;
	u64 bytes;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* A transfer without a context, as in 2D, needs no attached resource. */
	if (cmd->ctx_id && !flat) {
		ctx = find_ctx(vgpu, cmd->ctx_id);
		if (!ctx || xa_load(&ctx->attached, res->id) != res)
			return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	}
	if (!res->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (flat)
		t = (struct mgpu_virgl_transfer){
			.box.x = cmd->rect.x,
			.box.y = cmd->rect.y,
			.box.width = cmd->rect.width,
			.box.height = cmd->rect.height,
			.box.depth = 1,
			.offset = cmd->offset,
		};
	/* Transfers from the host are limited to one layer, see virgl_transfer(). */
	if (!mgpu_virgl_transfer_ok(&res->dev.shape, res->dev.backing, &t,
				    &bytes) ||
	    (cmd->type == VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D &&
	     t.box.depth > 1))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	dc = cmd_with_msg(vgpu, lane, cmd->type,
			  flat ? sizeof(*c2) : sizeof(*c3));
	if (!dc)
		return mgpu_lane_no_memory(lane, next);
	if (flat) {
		c2 = dc->msgs[0].buf;
		c2->r.x = cpu_to_le32(t.box.x);
		c2->r.y = cpu_to_le32(t.box.y);
		c2->r.width = cpu_to_le32(t.box.width);
		c2->r.height = cpu_to_le32(t.box.height);
		c2->offset = cpu_to_le64(t.offset);
		c2->resource_id = cpu_to_le32(res->dev.host_id);
	} else {
		c3 = dc->msgs[0].buf;
		c3->hdr.ctx_id = cpu_to_le32(ctx ? ctx->dev_id : 0);
		c3->box.x = cpu_to_le32(t.box.x);
		c3->box.y = cpu_to_le32(t.box.y);
		c3->box.z = cpu_to_le32(t.box.z);
		c3->box.w = cpu_to_le32(t.box.width);
		c3->box.h = cpu_to_le32(t.box.height);
		c3->box.d = cpu_to_le32(t.box.depth);
		c3->offset = cpu_to_le64(t.offset);
		c3->resource_id = cpu_to_le32(res->dev.host_id);
		c3->level = cpu_to_le32(t.level);
		c3->stride = cpu_to_le32(t.stride);
		c3->layer_stride = cpu_to_le32(t.layer_stride);
	}
	mgpu_resource_get(res);
	dc->res = res;
	dc->job.bytes = bytes;
	return devcmd_queue(dc, next);
}

/* ---- capability sets ---- */

/**
 * mgpu_capset_mask - remove capabilities from a set that guests may not use
 * @capset: the device's set; changed in place
 * @blobs: guests can map blobs of the device
 *
 * Return: false if nothing of the set is left.
 */
bool mgpu_capset_mask(struct mgpu_capset *capset, bool blobs)
{
	capset->size = mgpu_virgl_mask_capset(capset->id, capset->data,
					      capset->size, blobs);
	return capset->size;
}
EXPORT_SYMBOL_GPL(mgpu_capset_mask);

static u32 dev_get_capset_info(const struct mgpu_vgpu *vgpu,
			       const struct mgpu_cmd *cmd, void *resp, size_t *len)
{
	const struct mgpu_device_caps *caps = &vgpu->mdev->caps;
	struct virtio_gpu_resp_capset_info *info = resp;

	if (cmd->capset_index >= caps->nr_capsets)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	memset(info, 0, sizeof(*info));
	info->capset_id = cpu_to_le32(caps->capsets[cmd->capset_index].id);
	info->capset_max_version =
		cpu_to_le32(caps->capsets[cmd->capset_index].version);
	info->capset_max_size =
		cpu_to_le32(caps->capsets[cmd->capset_index].size);
	*len = sizeof(*info);
	return VIRTIO_GPU_RESP_OK_CAPSET_INFO;
}

static u32 dev_get_capset(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd,
			  void *resp, size_t *len)
{
	const struct mgpu_capset *found = find_capset(vgpu, cmd->capset);
	struct virtio_gpu_resp_capset *capset = resp;

	if (!found)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	memset(capset, 0, sizeof(*capset));
	memcpy(capset->capset_data, found->data, found->size);
	*len = sizeof(*capset) + found->size;
	return VIRTIO_GPU_RESP_OK_CAPSET;
}

/* ---- dispatch ---- */

/* Return whether the device was reset since the guest set DRIVER_OK. */
static bool is_lost(struct mgpu_vgpu *vgpu)
{
	if (mgpu_vgpu_has(vgpu, vgpu->dev_gen))
		return false;
	mgpu_virtio_needs_reset(vgpu,
				"the GPU was reset and lost the guest's contexts and resources");
	return true;
}

/**
 * mgpu_devcmd_run - have the device execute a command
 * @vgpu: vGPU for which mgpu_on_device() is true
 * @lane: control queue with the decoded command
 * @resp: buffer for an answer with data
 * @resp_len: set to the length of such an answer, bytes
 * @next: set to MGPU_CMD_WORK if the command goes to the device
 *
 * Context: must hold ring_lock; may sleep.
 * Return: VIRTIO_GPU_RESP_*; undefined if @next is set.
 */
u32 mgpu_devcmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		    size_t *resp_len, enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
		return dev_get_capset_info(vgpu, cmd, resp, resp_len);
	case VIRTIO_GPU_CMD_GET_CAPSET:
		return dev_get_capset(vgpu, cmd, resp, resp_len);
	}
	if (is_lost(vgpu))
		return VIRTIO_GPU_RESP_ERR_UNSPEC;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return dev_ctx_create(vgpu, lane, next);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return dev_ctx_destroy(vgpu, lane, next);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return dev_ctx_resource(vgpu, lane, next);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return dev_submit_3d(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return dev_res_create_2d(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return dev_res_create_blob(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		return dev_res_map(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		return dev_res_unmap(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		return dev_res_create(vgpu, lane, &cmd->shape, next);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return dev_res_unref(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return dev_res_attach(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		return dev_res_detach(vgpu, lane, next);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return dev_transfer(vgpu, lane, next);
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}


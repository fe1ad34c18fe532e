// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that the device carries out: contexts, resources and streams of
 * guests whose contexts are the device's own.
 *
 * A guest's command becomes a job of its vGPU, with the same command in the
 * device's terms: the numbers of contexts and resources are those that the device
 * knows, guest memory is where the device finds it, and a stream names nothing
 * that its context has not attached.  All of a vGPU's go to the device in the
 * ring's order; the ring goes on meanwhile.
 *
 * What the device knows of carries the generation of the device at that time.
 * After a reset of the device it is another, and nothing is known any more.
 */
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "mgpu.h"
#include "trace.h"

/* What QEMU makes a 2D resource with (VIRGL_BIND_RENDER_TARGET). */
#define BIND_2D		BIT(1)

/* Sub-contexts of a context; Mesa has one for each GL context. */
#define MAX_SUBS	64

static bool is_known(const struct mgpu_device *mdev, u32 gen)
{
	return gen && gen == mgpu_device_gen(mdev);
}

/* ---- making commands ---- */

/* The part that does not depend on who asks. */
void mgpu_devcmd_init(struct mgpu_devcmd *dc, struct mgpu_vgpu *vgpu)
{
	INIT_LIST_HEAD(&dc->job.node);
	INIT_LIST_HEAD(&dc->node);
	dc->vgpu = vgpu;
	dc->job.vgpu = vgpu;
	dc->job.kind = MGPU_JOB_DEVICE;
	dc->answer = VIRTIO_GPU_RESP_ERR_UNSPEC;
}

static struct mgpu_devcmd *cmd_new(struct mgpu_vgpu *vgpu,
				   const struct mgpu_lane *lane)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_devcmd *dc;

	dc = kzalloc(struct_size(dc, segs, mgpu_reply_segs(lane)),
		     GFP_KERNEL_ACCOUNT);
	if (!dc)
		return NULL;
	mgpu_devcmd_init(dc, vgpu);
	dc->type = cmd->type;
	dc->fenced = cmd->flags & VIRTIO_GPU_FLAG_FENCE;
	dc->guest_ctx = cmd->ctx_id;
	mgpu_reply_init(&dc->reply, lane, dc->segs);
	return dc;
}

static void ctx_put(struct mgpu_devctx *ctx);

/* Lets go of what a command holds; may sleep. */
void mgpu_devcmd_free(struct mgpu_devcmd *dc)
{
	struct mgpu_vgpu *vgpu = dc->vgpu;
	u32 i;

	for (i = 0; i < dc->nr_msgs; i++)
		kvfree(dc->msgs[i].buf);
	/* It was the resource's until the guest detached it. */
	if (dc->type == VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING && dc->mem) {
		u64 bytes = (u64)dc->mem->nr_pages << PAGE_SHIFT;

		mgpu_mem_free(dc->mem);
		mgpu_mem_uncharge(vgpu, bytes);
	}
	if (dc->job.res)
		mgpu_resource_put(dc->job.res);
	if (dc->ctx)
		ctx_put(dc->ctx);
	kfree(dc);
}

/**
 * mgpu_devcmd_msg - add a message
 * @dc: command that is not submitted
 * @type: VIRTIO_GPU_CMD_*
 * @len: bytes
 *
 * Return: the message, zeroed but for its type; NULL when there is no memory.
 */
void *mgpu_devcmd_msg(struct mgpu_devcmd *dc, u32 type, size_t len)
{
	struct mgpu_msg *msg = &dc->msgs[dc->nr_msgs];
	struct virtio_gpu_ctrl_hdr *hdr;

	hdr = kvzalloc(len, GFP_KERNEL_ACCOUNT);
	if (!hdr)
		return NULL;
	hdr->type = cpu_to_le32(type);
	msg->buf = hdr;
	msg->len = len;
	msg->resp = &dc->resp[dc->nr_msgs];
	msg->resp_len = sizeof(*msg->resp);
	dc->nr_msgs++;
	return hdr;
}

/**
 * mgpu_devcmd_submit - hand a command to the scheduler
 * @dc: with its messages; the scheduler's until mgpu_devcmd_job_done()
 */
void mgpu_devcmd_submit(struct mgpu_devcmd *dc)
{
	struct mgpu_msg *last = &dc->msgs[dc->nr_msgs - 1];
	struct mgpu_vgpu *vgpu = dc->vgpu;
	struct mgpu_job *job = &dc->job;

	dc->msgs[0].begin = dc;
	last->cmd = dc;
	/* The end of what it draws is what its engine time is measured by. */
	last->fenced = dc->fenced || !dc->type ||
		       dc->type == VIRTIO_GPU_CMD_SUBMIT_3D;

	job->id = atomic64_inc_return(&vgpu->mdev->sched.next_job);
	job->arrived_ns = ktime_get_ns();
	trace_mgpu_job_submit(vgpu->id, job->id, job->kind, job->bytes);
	mgpu_sched_submit(job);
}

/* A guest's command, and a message of that type and length for it; or NULL. */
static struct mgpu_devcmd *cmd_with_msg(struct mgpu_vgpu *vgpu,
					const struct mgpu_lane *lane, u32 type,
					size_t len)
{
	struct mgpu_devcmd *dc = cmd_new(vgpu, lane);

	if (dc && !mgpu_devcmd_msg(dc, type, len)) {
		mgpu_devcmd_free(dc);
		dc = NULL;
	}
	return dc;
}

static u32 submit(struct mgpu_devcmd *dc, enum mgpu_cmd_next *next)
{
	list_add_tail(&dc->node, &dc->vgpu->devcmds);
	mgpu_devcmd_submit(dc);
	*next = MGPU_CMD_WORK;
	return 0;
}

/* ---- at once ---- */

/**
 * mgpu_devcmd_exec - have the device carry out a command at once
 * @mdev: device
 * @buf: command, from kvmalloc
 * @len: its bytes
 *
 * Context: may sleep until the device has answered; not for who runs jobs.
 * Return: VIRTIO_GPU_RESP_*, 0 when the device was lost.
 */
u32 mgpu_devcmd_exec(struct mgpu_device *mdev, void *buf, size_t len)
{
	struct virtio_gpu_ctrl_hdr *resp;
	struct mgpu_msg msg = {};
	u32 answer;

	resp = kzalloc(sizeof(*resp), GFP_KERNEL | __GFP_NOFAIL);
	msg.buf = buf;
	msg.len = len;
	msg.resp = resp;
	msg.resp_len = sizeof(*resp);
	answer = mdev->ops->exec(mdev, &msg, 1) ? 0 : le32_to_cpu(resp->type);
	kfree(resp);
	return answer;
}

/**
 * mgpu_devcmd_forget - have the device let go of something
 * @mdev: device; when it was reset it has forgotten it
 * @type: VIRTIO_GPU_CMD_* that ends or detaches something
 * @ctx: the device's number of the context, if the command has one
 * @res: its number of the resource, if the command has one
 *
 * Context: as mgpu_devcmd_exec(); what the device had may be freed afterwards.
 */
void mgpu_devcmd_forget(struct mgpu_device *mdev, u32 type, u32 ctx, u32 res)
{
	/* The longest of the commands that do so. */
	struct virtio_gpu_resource_unref *c;

	static_assert(sizeof(*c) ==
		      sizeof(struct virtio_gpu_resource_detach_backing),
		      "one layout serves both");
	static_assert(sizeof(*c) >= sizeof(struct virtio_gpu_ctx_destroy),
		      "what is behind a command is not looked at");
	c = kzalloc(sizeof(*c), GFP_KERNEL | __GFP_NOFAIL);
	c->hdr.type = cpu_to_le32(type);
	c->hdr.ctx_id = cpu_to_le32(ctx);
	c->resource_id = cpu_to_le32(res);
	mgpu_devcmd_exec(mdev, c, sizeof(*c));
	kfree(c);
}

/* ---- contexts: ring_lock held ---- */

static void ctx_release(struct kref *ref)
{
	struct mgpu_devctx *ctx = container_of(ref, struct mgpu_devctx, ref);
	struct mgpu_device *mdev = ctx->vgpu->mdev;

	if (is_known(mdev, READ_ONCE(ctx->dev_gen)))
		mgpu_devcmd_forget(mdev, VIRTIO_GPU_CMD_CTX_DESTROY,
				   ctx->dev_id, 0);
	xa_erase(&mdev->ctx_ids, ctx->dev_id);
	xa_destroy(&ctx->attached);
	xa_destroy(&ctx->subs);
	kfree(ctx);
}

static void ctx_put(struct mgpu_devctx *ctx)
{
	kref_put(&ctx->ref, ctx_release);
}

static struct mgpu_devctx *find_ctx(struct mgpu_vgpu *vgpu, u32 id)
{
	return xa_load(&vgpu->devctxs, id);
}

static struct mgpu_devctx *ctx_new(struct mgpu_vgpu *vgpu, u32 id)
{
	struct mgpu_device *mdev = vgpu->mdev;
	struct mgpu_devctx *ctx;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return NULL;
	if (xa_alloc_cyclic(&mdev->ctx_ids, &ctx->dev_id, ctx,
			    XA_LIMIT(1, S32_MAX), &mdev->next_ctx,
			    GFP_KERNEL_ACCOUNT) < 0) {
		kfree(ctx);
		return NULL;
	}
	kref_init(&ctx->ref);
	ctx->vgpu = vgpu;
	ctx->id = id;
	xa_init(&ctx->attached);
	xa_init(&ctx->subs);
	return ctx;
}

static u32 ctx_create(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		      enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct virtio_gpu_ctx_create *c;
	struct mgpu_devctx *ctx;
	struct mgpu_devcmd *dc;

	/* CONTEXT_INIT is not offered. */
	if (cmd->capset)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (find_ctx(vgpu, cmd->ctx_id))
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (vgpu->nr_devctxs >= MGPU_MAX_CONTEXTS)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	dc = cmd_with_msg(vgpu, lane, cmd->type, sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = dc->msgs[0].buf;
	ctx = ctx_new(vgpu, cmd->ctx_id);
	if (!ctx)
		goto no_memory;
	dc->ctx = ctx;
	c->hdr.ctx_id = cpu_to_le32(ctx->dev_id);
	c->nlen = cpu_to_le32(strlen(cmd->name));
	memcpy(c->debug_name, cmd->name, strlen(cmd->name));
	if (xa_err(xa_store(&vgpu->devctxs, ctx->id, ctx, GFP_KERNEL_ACCOUNT)))
		goto no_memory;
	kref_get(&ctx->ref);
	vgpu->nr_devctxs++;
	return submit(dc, next);

no_memory:
	mgpu_devcmd_free(dc);
	return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
}

static u32 ctx_destroy(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
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
	return submit(dc, next);
}

/* CTX_ATTACH_RESOURCE and CTX_DETACH_RESOURCE. */
static u32 ctx_resource(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	bool attach = cmd->type == VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE;
	struct mgpu_devctx *ctx = find_ctx(vgpu, cmd->ctx_id);
	struct mgpu_resource *res = mgpu_resource_find(vgpu, cmd->res_id);
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
	return submit(dc, next);
}

static const struct mgpu_virgl_res *find_attached(void *data, u32 id)
{
	struct mgpu_devctx *ctx = data;
	const struct mgpu_resource *res = xa_load(&ctx->attached, id);

	return res ? &res->dev : NULL;
}

/*
 * Notes which sub-contexts there are after a checked stream, in its order.  There
 * is room for all that it makes.
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
				      GFP_KERNEL | __GFP_NOFAIL))
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

static u32 submit_3d(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		     enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_devctx *ctx = find_ctx(vgpu, cmd->ctx_id);
	const struct mgpu_virgl_lookup lookup = { find_attached, ctx };
	struct virtio_gpu_cmd_submit *c = lane->buf;
	struct mgpu_virgl_info info;
	struct mgpu_devcmd *dc;
	struct mgpu_msg *msg;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (mgpu_virgl_check((__le32 *)(c + 1), cmd->size, &lookup, &info)) {
		dev_notice_ratelimited(vgpu->vdev.dev,
				       "stream of context %u refused at byte %zu: %s (command %u, object %u, value %#x)\n",
				       cmd->ctx_id, info.offset,
				       mgpu_virgl_why(info.why), info.opcode,
				       info.object, info.value);
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	}
	/* Each costs the host a GL context. */
	if (info.subs_made > MAX_SUBS - ctx->nr_subs)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	dc = cmd_new(vgpu, lane);
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (info.subs_made || info.subs_gone)
		note_subs(ctx, (const __le32 *)(c + 1), cmd->size / 4);

	/* The copy that was checked is what the device gets. */
	memset(&c->hdr, 0, sizeof(c->hdr));
	c->hdr.type = cpu_to_le32(VIRTIO_GPU_CMD_SUBMIT_3D);
	c->hdr.ctx_id = cpu_to_le32(ctx->dev_id);
	c->size = cpu_to_le32(cmd->size);
	c->padding = 0;
	msg = &dc->msgs[dc->nr_msgs++];
	msg->buf = c;
	msg->len = sizeof(*c) + cmd->size;
	msg->resp = &dc->resp[0];
	msg->resp_len = sizeof(*msg->resp);
	lane->buf = NULL;
	lane->buf_size = 0;
	dc->job.bytes = cmd->size + info.bytes;
	return submit(dc, next);
}

/* ---- resources: ring_lock held ---- */

static u32 res_create(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		      const struct mgpu_virgl_shape *shape,
		      enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_device *mdev = vgpu->mdev;
	struct virtio_gpu_resource_create_3d *c;
	struct mgpu_resource *res;
	struct mgpu_devcmd *dc;
	u32 err;
	u64 bytes;

	if (mgpu_virgl_resource_bytes(shape, &bytes))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	dc = cmd_with_msg(vgpu, lane, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D,
			  sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	res = mgpu_resource_new(vgpu, cmd->res_id, bytes, &err);
	if (!res)
		goto refuse;
	dc->job.res = res;
	res->format = shape->format;
	res->width = shape->width;
	res->height = shape->height;
	res->stride = shape->width * 4;
	res->dev.shape = *shape;
	/*
	 * A host keeps such a picture upside down, so that it can show it, and
	 * mirrors it wherever that is to be seen; virglrenderer forgets to in
	 * some blits.  Nothing is shown there, so guests see no difference.
	 */
	res->dev.shape.flags &= ~MGPU_VIRGL_Y_0_TOP;

	err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (xa_alloc_cyclic(&mdev->res_ids, &res->dev.host_id, res,
			    XA_LIMIT(1, S32_MAX), &mdev->next_res,
			    GFP_KERNEL_ACCOUNT) < 0) {
		res->dev.host_id = 0;
		goto refuse;
	}
	c = dc->msgs[0].buf;
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
	/* One reference is the table's, one the command's. */
	mgpu_resource_get(res);
	err = mgpu_resource_add(res);
	if (err != VIRTIO_GPU_RESP_OK_NODATA)
		goto refuse;
	return submit(dc, next);

refuse:
	mgpu_devcmd_free(dc);
	return err;
}

static u32 res_create_2d(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
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

	return res_create(vgpu, lane, &shape, next);
}

static u32 res_unref(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		     enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, lane->cmd.res_id);
	struct virtio_gpu_resource_unref *c;
	struct mgpu_devctx *ctx;
	struct mgpu_devcmd *dc;
	unsigned long id;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	dc = cmd_with_msg(vgpu, lane, lane->cmd.type, sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = dc->msgs[0].buf;
	c->resource_id = cpu_to_le32(res->dev.host_id);

	/* The number may be another's from now on. */
	xa_erase(&vgpu->resources, res->id);
	xa_for_each(&vgpu->devctxs, id, ctx) {
		if (xa_erase(&ctx->attached, res->id))
			ctx->nr_attached--;
	}
	mgpu_screen_forget(vgpu, res);
	dc->job.res = res;
	return submit(dc, next);
}

/* The message that gives memory, which is in use, to a resource of the device. */
static u32 add_backing(struct mgpu_devcmd *dc, struct mgpu_mem *mem,
		       u32 dev_res)
{
	struct virtio_gpu_resource_attach_backing *c;
	u32 n;

	mem->dev_res = dev_res;
	if (mgpu_dma_map(&mem->dma, mem->pages, mem->nr_pages,
			 dc->vgpu->mdev->caps.dma_dev))
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	n = mgpu_dma_entries(&mem->dma, mem->chunks, mem->nr_chunks, mem->len,
			     NULL, MGPU_MAX_ENTRIES);
	if (n > MGPU_MAX_ENTRIES)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = mgpu_devcmd_msg(dc, dc->type, sizeof(*c) +
		    n * sizeof(struct virtio_gpu_mem_entry));
	if (!c)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c->resource_id = cpu_to_le32(dev_res);
	c->nr_entries = cpu_to_le32(n);
	mgpu_dma_entries(&mem->dma, mem->chunks, mem->nr_chunks, mem->len,
			 (void *)(c + 1), n);
	return 0;
}

static u32 res_attach(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		      enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_resource *res = mgpu_resource_find(vgpu, cmd->res_id);
	struct mgpu_devcmd *dc;
	struct mgpu_mem *mem;
	u32 err;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	dc = cmd_new(vgpu, lane);
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	err = mgpu_resource_attach(vgpu, cmd);
	if (err != VIRTIO_GPU_RESP_OK_NODATA)
		goto refuse;

	mem = res->backing;
	/* While it is in use, the VMM's unmapping of it waits. */
	err = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (!mgpu_mem_get(mem))
		goto detach;
	err = add_backing(dc, mem, res->dev.host_id);
	mgpu_mem_put(mem);
	if (err)
		goto detach;
	res->dev.backing = mem->len;
	mgpu_resource_get(res);
	dc->job.res = res;
	dc->mem = mem;
	return submit(dc, next);

detach:
	mgpu_resource_detach(vgpu, cmd->res_id);
refuse:
	mgpu_devcmd_free(dc);
	return err;
}

static u32 res_detach(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		      enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = mgpu_resource_find(vgpu, lane->cmd.res_id);
	struct virtio_gpu_resource_detach_backing *c;
	struct mgpu_devcmd *dc;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!res->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	dc = cmd_with_msg(vgpu, lane, lane->cmd.type, sizeof(*c));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	c = dc->msgs[0].buf;
	c->resource_id = cpu_to_le32(res->dev.host_id);
	mgpu_resource_get(res);
	dc->job.res = res;
	dc->mem = res->backing;
	/* It counts until the device has let go of it. */
	res->backing = NULL;
	res->backing_charged = 0;
	res->dev.backing = 0;
	return submit(dc, next);
}

/* TRANSFER_TO_HOST_2D, TRANSFER_TO_HOST_3D and TRANSFER_FROM_HOST_3D. */
static u32 transfer(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		    enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	bool flat = cmd->type == VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D;
	struct mgpu_resource *res = mgpu_resource_find(vgpu, cmd->res_id);
	struct mgpu_virgl_transfer t = cmd->transfer;
	struct virtio_gpu_transfer_to_host_2d *c2;
	struct virtio_gpu_transfer_host_3d *c3;
	struct mgpu_devctx *ctx = NULL;
	struct mgpu_devcmd *dc;
	u64 bytes;

	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* Without a context it is the device's own affair, as in 2D. */
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
	/* A layer at a time out of it, as in a stream. */
	if (!mgpu_virgl_transfer_ok(&res->dev.shape, res->dev.backing, &t,
				    &bytes) ||
	    (cmd->type == VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D &&
	     t.box.depth > 1))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	dc = cmd_with_msg(vgpu, lane, cmd->type,
			  flat ? sizeof(*c2) : sizeof(*c3));
	if (!dc)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
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
	dc->job.res = res;
	dc->job.bytes = bytes;
	return submit(dc, next);
}

/* ---- capability sets ---- */

/**
 * mgpu_capset_mask - take out of a capability set what guests do not get
 * @capset: as the device has it; changed
 *
 * Return: false when they get nothing of it.
 */
bool mgpu_capset_mask(struct mgpu_capset *capset)
{
	capset->size = mgpu_virgl_mask_capset(capset->id, capset->data,
					      capset->size);
	return capset->size;
}
EXPORT_SYMBOL_GPL(mgpu_capset_mask);

static u32 get_capset_info(const struct mgpu_vgpu *vgpu,
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

static u32 get_capset(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd,
		      void *resp, size_t *len)
{
	const struct mgpu_device_caps *caps = &vgpu->mdev->caps;
	struct virtio_gpu_resp_capset *capset = resp;
	u32 i;

	for (i = 0; i < caps->nr_capsets; i++) {
		if (caps->capsets[i].id != cmd->capset)
			continue;
		memset(capset, 0, sizeof(*capset));
		memcpy(capset->capset_data, caps->capsets[i].data,
		       caps->capsets[i].size);
		*len = sizeof(*capset) + caps->capsets[i].size;
		return VIRTIO_GPU_RESP_OK_CAPSET;
	}
	return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}

/* ---- what the ring calls: ring_lock held ---- */

/* The device was reset since this vGPU began to use it. */
static bool is_lost(struct mgpu_vgpu *vgpu)
{
	if (is_known(vgpu->mdev, vgpu->dev_gen))
		return false;
	mgpu_virtio_needs_reset(vgpu,
				"the GPU was reset and has forgotten what it had");
	return true;
}

/**
 * mgpu_devcmd_run - have the device carry out a command
 * @vgpu: whose it is; mgpu_on_device()
 * @lane: control queue with the decoded command
 * @resp: where to build an answer with data
 * @resp_len: its length, 0 when the answer is a header only
 * @next: set when the device gets it
 *
 * Context: ring_lock held.
 * Return: VIRTIO_GPU_RESP_*; meaningless with @next set.
 */
u32 mgpu_devcmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		    size_t *resp_len, enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
		return get_capset_info(vgpu, cmd, resp, resp_len);
	case VIRTIO_GPU_CMD_GET_CAPSET:
		return get_capset(vgpu, cmd, resp, resp_len);
	}
	if (is_lost(vgpu))
		return VIRTIO_GPU_RESP_ERR_UNSPEC;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return ctx_create(vgpu, lane, next);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return ctx_destroy(vgpu, lane, next);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return ctx_resource(vgpu, lane, next);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return submit_3d(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return res_create_2d(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		return res_create(vgpu, lane, &cmd->shape, next);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return res_unref(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return res_attach(vgpu, lane, next);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		return res_detach(vgpu, lane, next);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return transfer(vgpu, lane, next);
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

/* Whether a fence that is due now has to wait for one before it. */
bool mgpu_devcmd_fence_waits(const struct mgpu_vgpu *vgpu)
{
	const struct mgpu_devcmd *dc;

	list_for_each_entry(dc, &vgpu->devcmds, node) {
		if (dc->fenced)
			return true;
	}
	return false;
}

/**
 * mgpu_devcmd_mem_waits - whether memory that is detached is not free to go yet
 * @dc: in vgpu->devcmds
 *
 * The command that attached it holds no reference: it is to be ended first.
 *
 * Context: ring_lock held.
 */
bool mgpu_devcmd_mem_waits(const struct mgpu_devcmd *dc)
{
	const struct mgpu_devcmd *other;

	if (dc->type != VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING || !dc->mem)
		return false;
	list_for_each_entry(other, &dc->vgpu->devcmds, node) {
		if (other == dc)
			break;
		if (other->mem == dc->mem)
			return true;
	}
	return false;
}

/**
 * mgpu_devcmd_refuse - answer a command when its turn has come
 * @vgpu: whose it is
 * @lane: with the command
 * @answer: VIRTIO_GPU_RESP_*
 *
 * Context: ring_lock held.
 * Return: false when there is no memory for that.
 */
bool mgpu_devcmd_refuse(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			u32 answer)
{
	struct mgpu_devcmd *dc = cmd_new(vgpu, lane);

	if (!dc)
		return false;
	dc->local = true;
	dc->done = true;
	dc->answer = answer;
	list_add_tail(&dc->node, &vgpu->devcmds);
	return true;
}

/**
 * mgpu_devcmd_lighten - see to it that the end of a command waits for nothing
 * @dc: to be ended now; it has let go of its resource on success
 *
 * Context: ring_lock held.
 * Return: false when it would have to wait for something.
 */
bool mgpu_devcmd_lighten(struct mgpu_devcmd *dc)
{
	if (dc->job.error == -ETIMEDOUT || dc->ctx ||
	    (dc->mem && dc->type == VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING) ||
	    (dc->mem && dc->answer != VIRTIO_GPU_RESP_OK_NODATA))
		return false;
	if (dc->job.res && !mgpu_resource_put_unless_last(dc->job.res))
		return false;
	dc->job.res = NULL;
	return true;
}

/**
 * mgpu_devcmd_end - a command was answered
 * @dc: in no list; gone afterwards
 *
 * Context: ring_lock held; may sleep unless mgpu_devcmd_lighten() was true.
 */
void mgpu_devcmd_end(struct mgpu_devcmd *dc)
{
	struct mgpu_resource *res = dc->job.res;

	/*
	 * Memory that the device did not take is not attached.  When the guest
	 * has let go of the resource, its number may be another's already; the
	 * memory goes with the resource then.  A refused command has neither.
	 */
	if (dc->type == VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING && dc->mem &&
	    dc->answer != VIRTIO_GPU_RESP_OK_NODATA &&
	    res->backing == dc->mem &&
	    mgpu_resource_find(dc->vgpu, res->id) == res) {
		res->dev.backing = 0;
		mgpu_resource_detach(dc->vgpu, res->id);
	}
	mgpu_devcmd_free(dc);
}

/* The ring is stopped, and no job is out: what will not be answered. */
void mgpu_devcmd_stop(struct mgpu_vgpu *vgpu)
{
	struct mgpu_devcmd *dc, *next;

	lockdep_assert_held(&vgpu->ring_lock);

	llist_del_all(&vgpu->devcmds_done);
	list_for_each_entry_safe(dc, next, &vgpu->devcmds, node) {
		list_del_init(&dc->node);
		mgpu_devcmd_free(dc);
	}
	mgpu_readback_stop(vgpu);
}

/* ---- what the device knows ---- */

/**
 * mgpu_devcmd_begin - the device gets a message now
 * @msg: message with @begin
 *
 * Context: any, with whatever lock orders messages to the device held: from the
 * return on it may know what the message makes.
 * Return: 0, or a negative errno to hand to mgpu_job_done() instead.
 */
int mgpu_devcmd_begin(struct mgpu_msg *msg)
{
	struct mgpu_devcmd *dc = msg->begin;
	struct mgpu_vgpu *vgpu = dc->vgpu;
	u32 gen = vgpu->dev_gen;
	int ret = 0;

	if (!is_known(vgpu->mdev, gen))
		return -EIO;
	switch (dc->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		WRITE_ONCE(dc->job.res->dev_gen, gen);
		break;
	case VIRTIO_GPU_CMD_CTX_CREATE:
		WRITE_ONCE(dc->ctx->dev_gen, gen);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		dc->job.res->dev_leaving = true;
		break;
	case 0:
		/* A stream that names what is not there spoils the context. */
		if (dc->job.res->dev_leaving ||
		    !is_known(vgpu->mdev, READ_ONCE(dc->job.res->dev_gen)))
			ret = -ENOENT;
		break;
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		/* The VMM may have unmapped it since. */
		spin_lock(&vgpu->mem.lock);
		if (dc->mem->dead)
			ret = -EFAULT;
		else
			dc->mem->dev_gen = gen;
		spin_unlock(&vgpu->mem.lock);
		break;
	}
	return ret;
}
EXPORT_SYMBOL_GPL(mgpu_devcmd_begin);

/* The device does not use the memory any more. */
static void forget_mem(struct mgpu_mem *mem)
{
	spin_lock(&mem->vgpu->mem.lock);
	mem->dev_gen = 0;
	spin_unlock(&mem->vgpu->mem.lock);
}

/* What the device has answered: 0 for nothing. */
static u32 answer_of(const struct mgpu_devcmd *dc)
{
	u32 i, type = 0;

	for (i = 0; i < dc->nr_msgs; i++) {
		type = le32_to_cpu(dc->resp[i].type);
		if (type != VIRTIO_GPU_RESP_OK_NODATA)
			break;
	}
	return type;
}

/* Of what a job's end says about what the device knows. */
static void settle(struct mgpu_devcmd *dc, bool ok)
{
	switch (dc->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		if (!ok)
			WRITE_ONCE(dc->job.res->dev_gen, 0);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		if (!ok)
			break;
		WRITE_ONCE(dc->job.res->dev_gen, 0);
		if (dc->job.res->backing)
			forget_mem(dc->job.res->backing);
		break;
	case VIRTIO_GPU_CMD_CTX_CREATE:
		if (!ok)
			WRITE_ONCE(dc->ctx->dev_gen, 0);
		break;
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		if (ok)
			WRITE_ONCE(dc->ctx->dev_gen, 0);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		if (!ok)
			forget_mem(dc->mem);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		if (ok)
			forget_mem(dc->mem);
		break;
	}
}

/**
 * mgpu_devcmd_job_done - the device is done with a command
 * @job: the command's, with its error; not the caller's any more
 *
 * Context: task context.
 */
void mgpu_devcmd_job_done(struct mgpu_job *job)
{
	struct mgpu_devcmd *dc = to_mgpu_devcmd(job);
	u32 type = answer_of(dc);

	settle(dc, type == VIRTIO_GPU_RESP_OK_NODATA);
	/* The guest gets no number that it does not know. */
	if (type > VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER ||
	    (type != VIRTIO_GPU_RESP_OK_NODATA &&
	     type < VIRTIO_GPU_RESP_ERR_UNSPEC) ||
	    job->error == -ETIMEDOUT)
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
	dc->answer = type;
	if (dc->type)
		mgpu_ring_devcmd_done(dc);
	else
		mgpu_readback_done(dc);
}

/**
 * mgpu_devres_release - the device lets go of a resource
 * @res: resource that nobody uses any more
 *
 * Context: may sleep until the device has answered.
 */
void mgpu_devres_release(struct mgpu_resource *res)
{
	struct mgpu_device *mdev = res->vgpu->mdev;

	if (is_known(mdev, READ_ONCE(res->dev_gen))) {
		mgpu_devcmd_forget(mdev, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0,
				   res->dev.host_id);
		if (res->backing)
			forget_mem(res->backing);
	}
	xa_erase(&mdev->res_ids, res->dev.host_id);
}

/**
 * mgpu_devmem_release - the device lets go of guest memory
 * @mem: memory that its owner, or who unmaps it, is releasing
 *
 * Context: may sleep until the device has answered.
 */
void mgpu_devmem_release(struct mgpu_mem *mem)
{
	struct mgpu_device *mdev = mem->vgpu->mdev;
	u32 gen;

	spin_lock(&mem->vgpu->mem.lock);
	gen = mem->dev_gen;
	mem->dev_gen = 0;
	spin_unlock(&mem->vgpu->mem.lock);
	if (is_known(mdev, gen))
		mgpu_devcmd_forget(mdev, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
				   0, mem->dev_res);
}

/* Resources of which the device lets go in one turn. */
#define UNREF_BATCH	64

/* A command and its answer. */
struct unref {
	struct virtio_gpu_resource_unref c;
	struct virtio_gpu_ctrl_hdr resp;
};

/**
 * mgpu_devres_release_all - the device lets go of all of a vGPU's resources
 * @vgpu: whose ring worker is stopped and of which no job is out
 *
 * mgpu_devres_release() does the same, but waits for each: a guest may have many.
 *
 * Context: may sleep until the device has answered.
 */
void mgpu_devres_release_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_device *mdev = vgpu->mdev;
	struct mgpu_resource *res;
	struct unref *unrefs;
	struct mgpu_msg *msgs;
	unsigned long id;
	u32 nr = 0;

	if (!mgpu_on_device(vgpu) || xa_empty(&vgpu->resources))
		return;
	unrefs = kcalloc(UNREF_BATCH, sizeof(*unrefs), GFP_KERNEL);
	msgs = kcalloc(UNREF_BATCH, sizeof(*msgs), GFP_KERNEL);
	if (!unrefs || !msgs)
		goto out;	/* one by one, then */

	xa_for_each(&vgpu->resources, id, res) {
		if (is_known(mdev, res->dev_gen)) {
			unrefs[nr].c.hdr.type =
				cpu_to_le32(VIRTIO_GPU_CMD_RESOURCE_UNREF);
			unrefs[nr].c.resource_id =
				cpu_to_le32(res->dev.host_id);
			msgs[nr].buf = &unrefs[nr].c;
			msgs[nr].len = sizeof(unrefs[nr].c);
			msgs[nr].resp = &unrefs[nr].resp;
			msgs[nr].resp_len = sizeof(unrefs[nr].resp);
			nr++;
		}
		if (nr == UNREF_BATCH) {
			mdev->ops->exec(mdev, msgs, nr);
			nr = 0;
		}
	}
	if (nr)
		mdev->ops->exec(mdev, msgs, nr);
	xa_for_each(&vgpu->resources, id, res) {
		res->dev_gen = 0;
		if (res->backing)
			forget_mem(res->backing);
	}
out:
	kfree(msgs);
	kfree(unrefs);
}

/* Reset: the ring worker is stopped and no job is out. */
void mgpu_devctx_release_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_devctx *ctx;
	unsigned long id;

	xa_for_each(&vgpu->devctxs, id, ctx)
		ctx_put(ctx);
	xa_destroy(&vgpu->devctxs);
	vgpu->nr_devctxs = 0;
}

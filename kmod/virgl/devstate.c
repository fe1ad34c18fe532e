// SPDX-License-Identifier: GPL-2.0-only
/*
 * State on the device: contexts, resources and guest memory of vGPUs.
 *
 * Each object has the generation of the device in which the device got it.  A reset of
 * the device starts another generation, in which the device has none of the objects.
 */
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

/* Return whether the device still has an object that it got in generation @gen. */
bool mgpu_device_has(const struct mgpu_device *mdev, u32 gen)
{
	return gen && gen == mgpu_device_gen(mdev);
}

/**
 * mgpu_msg_begin - note that the device gets a message now
 * @msg: message whose @begin is set
 *
 * From the return on, the device may have the object that the message makes.
 *
 * Context: any; must hold the back end's lock that orders messages to the device.
 * Return: 0, or a negative errno: the back end does not post the message and passes
 * the errno to mgpu_job_done().
 */
int mgpu_msg_begin(struct mgpu_msg *msg)
{
	struct mgpu_devcmd *dc = msg->begin;
	struct mgpu_vgpu *vgpu = dc->vgpu;
	u32 gen = vgpu->dev_gen;
	int ret = 0;

	if (!mgpu_device_has(vgpu->mdev, gen))
		return -EIO;
	switch (dc->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		WRITE_ONCE(dc->res->dev_gen, gen);
		break;
	case VIRTIO_GPU_CMD_CTX_CREATE:
		WRITE_ONCE(dc->ctx->dev_gen, gen);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		dc->res->dev_leaving = true;
		break;
	case 0:
		/* A stream with a missing resource puts the host's context in error. */
		if (dc->res->dev_leaving ||
		    !mgpu_device_has(vgpu->mdev, READ_ONCE(dc->res->dev_gen)))
			ret = -ENOENT;
		break;
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		/* The VMM may have unmapped the memory since. */
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
EXPORT_SYMBOL_GPL(mgpu_msg_begin);

/**
 * mgpu_msg_account - charge a message of ->exec() to the vGPU that it is for
 * @msg: message without a job
 * @ns: time for which it kept the device, nanoseconds
 *
 * The vGPU pays with its next job (charge_owed() in kmod/sched/sched.c).
 *
 * Context: any; before ->exec() returns.
 */
void mgpu_msg_account(struct mgpu_msg *msg, u64 ns)
{
	atomic64_add(ns, &msg->vgpu->owed_ns);
}
EXPORT_SYMBOL_GPL(mgpu_msg_account);

/* Note that the device does not use the memory any more. */
static void forget_mem(struct mgpu_mem *mem)
{
	spin_lock(&mem->vgpu->mem.lock);
	mem->dev_gen = 0;
	spin_unlock(&mem->vgpu->mem.lock);
}

/* Note what the device has after it completed a command; @ok: successfully. */
void mgpu_devstate_settle(struct mgpu_devcmd *dc, bool ok)
{
	switch (dc->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		if (!ok)
			WRITE_ONCE(dc->res->dev_gen, 0);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		if (!ok)
			break;
		WRITE_ONCE(dc->res->dev_gen, 0);
		if (dc->res->backing)
			forget_mem(dc->res->backing);
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

/* ---- commands that go ahead of jobs ---- */

/**
 * mgpu_devcmd_exec - have the device execute a command at once
 * @vgpu: vGPU that pays for it
 * @buf: command, from kvmalloc()
 * @len: length of the command, bytes
 *
 * Context: may sleep until the device has answered; never in an engine's thread.
 * Return: VIRTIO_GPU_RESP_*, or 0 if the device was lost.
 */
u32 mgpu_devcmd_exec(struct mgpu_vgpu *vgpu, void *buf, size_t len)
{
	struct mgpu_device *mdev = vgpu->mdev;
	struct virtio_gpu_ctrl_hdr *resp;
	struct mgpu_msg msg = {};
	u32 answer;

	resp = kzalloc(sizeof(*resp), GFP_KERNEL | __GFP_NOFAIL);
	msg.vgpu = vgpu;
	msg.buf = buf;
	msg.len = len;
	msg.resp = resp;
	msg.resp_len = sizeof(*resp);
	answer = mdev->ops->exec(mdev, &msg, 1) ? 0 : le32_to_cpu(resp->type);
	kfree(resp);
	return answer;
}

/**
 * mgpu_devcmd_forget - have the device release a context, a resource or memory
 * @vgpu: vGPU that the object is of
 * @type: VIRTIO_GPU_CMD_* that destroys or detaches the object
 * @ctx: the device's number of the context, if the command has one
 * @res: the device's number of the resource, if the command has one
 *
 * The caller may free the object afterwards.
 *
 * Context: as mgpu_devcmd_exec().
 */
void mgpu_devcmd_forget(struct mgpu_vgpu *vgpu, u32 type, u32 ctx, u32 res)
{
	/* The longest of these commands. */
	struct virtio_gpu_resource_unref *c;

	static_assert(sizeof(*c) ==
		      sizeof(struct virtio_gpu_resource_detach_backing),
		      "one layout serves both");
	static_assert(sizeof(*c) >= sizeof(struct virtio_gpu_ctx_destroy),
		      "a device ignores bytes behind a command");
	c = kzalloc(sizeof(*c), GFP_KERNEL | __GFP_NOFAIL);
	c->hdr.type = cpu_to_le32(type);
	c->hdr.ctx_id = cpu_to_le32(ctx);
	c->resource_id = cpu_to_le32(res);
	mgpu_devcmd_exec(vgpu, c, sizeof(*c));
	kfree(c);
}

/* ---- contexts ---- */

static void ctx_release(struct kref *ref)
{
	struct mgpu_devctx *ctx = container_of(ref, struct mgpu_devctx, ref);
	struct mgpu_device *mdev = ctx->vgpu->mdev;

	if (mgpu_device_has(mdev, READ_ONCE(ctx->dev_gen)))
		mgpu_devcmd_forget(ctx->vgpu, VIRTIO_GPU_CMD_CTX_DESTROY,
				   ctx->dev_id, 0);
	xa_erase(&mdev->ctx_ids, ctx->dev_id);
	xa_destroy(&ctx->attached);
	xa_destroy(&ctx->subs);
	kfree(ctx);
}

void mgpu_devctx_put(struct mgpu_devctx *ctx)
{
	kref_put(&ctx->ref, ctx_release);
}

struct mgpu_devctx *mgpu_devctx_new(struct mgpu_vgpu *vgpu, u32 id)
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

/* ---- resources and memory ---- */

/**
 * mgpu_devres_release - have the device release a resource
 * @res: resource without references
 *
 * Context: may sleep until the device has answered.
 */
void mgpu_devres_release(struct mgpu_resource *res)
{
	struct mgpu_device *mdev = res->vgpu->mdev;

	if (mgpu_device_has(mdev, READ_ONCE(res->dev_gen))) {
		mgpu_devcmd_forget(res->vgpu, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0,
				   res->dev.host_id);
		if (res->backing)
			forget_mem(res->backing);
	}
	xa_erase(&mdev->res_ids, res->dev.host_id);
}

/**
 * mgpu_devmem_release - have the device release guest memory
 * @mem: memory that the caller has claimed
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
	if (mgpu_device_has(mdev, gen))
		mgpu_devcmd_forget(mem->vgpu, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
				   0, mem->dev_res);
}

/* Resources that the device releases in one batch, at most. */
#define UNREF_BATCH	64

/* A RESOURCE_UNREF command and its answer. */
struct unref {
	struct virtio_gpu_resource_unref c;
	struct virtio_gpu_ctrl_hdr resp;
};

/**
 * mgpu_devres_release_all - have the device release all resources of a vGPU
 * @vgpu: vGPU whose ring is stopped and that has no job in flight
 *
 * Like mgpu_devres_release() for each resource, but with one wait per batch, since a
 * guest may have many resources.
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
	u32 nr = 0, batch;

	/* Other vGPUs wait for a batch, as for the jobs of as many slots. */
	batch = min_t(u32, READ_ONCE(mdev->sched.slots), UNREF_BATCH);
	if (!mgpu_on_device(vgpu) || xa_empty(&vgpu->resources))
		return;
	unrefs = kcalloc(UNREF_BATCH, sizeof(*unrefs), GFP_KERNEL);
	msgs = kcalloc(UNREF_BATCH, sizeof(*msgs), GFP_KERNEL);
	if (!unrefs || !msgs)
		goto out;	/* one by one, then */

	xa_for_each(&vgpu->resources, id, res) {
		if (mgpu_device_has(mdev, res->dev_gen)) {
			unrefs[nr].c.hdr.type =
				cpu_to_le32(VIRTIO_GPU_CMD_RESOURCE_UNREF);
			unrefs[nr].c.resource_id =
				cpu_to_le32(res->dev.host_id);
			msgs[nr].vgpu = vgpu;
			msgs[nr].buf = &unrefs[nr].c;
			msgs[nr].len = sizeof(unrefs[nr].c);
			msgs[nr].resp = &unrefs[nr].resp;
			msgs[nr].resp_len = sizeof(unrefs[nr].resp);
			nr++;
		}
		if (nr == batch) {
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

/* Release all contexts, for a reset: the ring is stopped, no job is in flight. */
void mgpu_devctx_release_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_devctx *ctx;
	unsigned long id;

	xa_for_each(&vgpu->devctxs, id, ctx)
		mgpu_devctx_put(ctx);
	xa_destroy(&vgpu->devctxs);
	vgpu->nr_devctxs = 0;
}

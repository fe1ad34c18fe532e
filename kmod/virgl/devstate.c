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

#include "gpu/host_pages.h"
#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

/* Return whether the device still has an object of a vGPU that it got in generation @gen. */
bool mgpu_vgpu_has(const struct mgpu_vgpu *vgpu, u32 gen)
{
	return gen && gen == mgpu_vgpu_gen(vgpu);
}

/* Note that the device gets a command that releases memory, which may be NULL. */
static void mem_leaves(struct mgpu_mem *mem)
{
	if (!mem)
		return;
	spin_lock(&mem->vgpu->mem.lock);
	mem->dev_leaving = mem->dev_gen;
	spin_unlock(&mem->vgpu->mem.lock);
}

/*
 * Note that the device gets a message of mgpu_devmem_release().  Return -EALREADY if it has
 * got a command of the guest that releases the memory: the resource's number, and the
 * resource, may have other memory behind that.
 */
static int begin_release(struct mgpu_mem *mem)
{
	int ret = 0;

	spin_lock(&mem->vgpu->mem.lock);
	if (mem->dev_leaving || !mem->dev_gen)
		ret = -EALREADY;
	else
		mem->dev_leaving = true;
	spin_unlock(&mem->vgpu->mem.lock);
	return ret;
}

/*
 * Note that the device has completed a command that releases memory; @gone: it does not use
 * the memory any more.
 */
static void mem_left(struct mgpu_mem *mem, bool gone)
{
	struct mgpu_guest_mem *gm;

	if (!mem)
		return;
	gm = &mem->vgpu->mem;
	spin_lock(&gm->lock);
	mem->dev_leaving = false;
	if (gone)
		mem->dev_gen = 0;
	/* Under the lock: the thread that waits may free the memory. */
	wake_up_all(&gm->wait);
	spin_unlock(&gm->lock);
}

/* Note that the device gets memory, which the VMM may have unmapped since: -EFAULT. */
static int begin_attach(struct mgpu_mem *mem, u32 gen)
{
	int ret = 0;

	spin_lock(&mem->vgpu->mem.lock);
	if (mem->dead)
		ret = -EFAULT;
	else
		mem->dev_gen = gen;
	spin_unlock(&mem->vgpu->mem.lock);
	return ret;
}

/**
 * mgpu_msg_begin - note that the device gets a message now
 * @msg: the first message of a job, or a message of ->exec()
 *
 * From the return on, the device may have the object that the message makes.
 *
 * Context: any; must hold the back end's lock that orders messages to the device.
 * Return: 0, or a negative errno: the back end does not post the message and passes
 * the errno to mgpu_job_done(); -EALREADY, of a message of ->exec(), to its caller.
 */
int mgpu_msg_begin(struct mgpu_msg *msg)
{
	struct mgpu_devcmd *dc = msg->begin;
	struct mgpu_vgpu *vgpu;
	int ret = 0;
	u32 gen;

	if (msg->mem)
		return begin_release(msg->mem);
	if (!dc)
		return 0;
	vgpu = dc->vgpu;
	gen = vgpu->dev_gen;
	if (!mgpu_vgpu_has(vgpu, gen))
		return -EIO;
	if (READ_ONCE(vgpu->quarantine))
		return -EACCES;
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
		mem_leaves(dc->res->backing);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		mem_leaves(dc->mem);
		break;
	case 0:
		/* A stream with a missing resource puts the host's context in error. */
		if (dc->res->dev_leaving || READ_ONCE(dc->res->dev_unclear) ||
		    !mgpu_vgpu_has(vgpu, READ_ONCE(dc->res->dev_gen)))
			ret = -ENOENT;
		break;
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		ret = begin_attach(dc->mem, gen);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		ret = dc->mem ? begin_attach(dc->mem, gen) : 0;
		if (!ret)
			WRITE_ONCE(dc->res->dev_gen, gen);
		break;
	}
	return ret;
}
EXPORT_SYMBOL_GPL(mgpu_msg_begin);

/**
 * mgpu_msg_unbegin - note that the device did not get a message after all
 * @msg: message for which mgpu_msg_begin() returned 0
 *
 * The back end calls mgpu_msg_begin() again before it posts the message later.
 *
 * Context: any; in the same section of the back end's lock as mgpu_msg_begin(), so that
 * no other message went to the device in between.
 */
void mgpu_msg_unbegin(struct mgpu_msg *msg)
{
	/* A job stays the next one to be posted, so only begin_release() tells them apart. */
	if (msg->mem)
		mem_left(msg->mem, false);
}
EXPORT_SYMBOL_GPL(mgpu_msg_unbegin);

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

/* Return whether the device has done what a message says. */
static bool has_done(const struct mgpu_devcmd *dc, u32 msg)
{
	return le32_to_cpu(dc->resp[msg].type) == VIRTIO_GPU_RESP_OK_NODATA;
}

/* Have the guest find a blob that the device has mapped; false if it did not say where. */
static bool map_settled(struct mgpu_devcmd *dc, bool ok)
{
	struct mgpu_msg *msg = &dc->msgs[0];
	u32 cache = msg->host ? mgpu_host_pages_cache(msg->host) : 0;

	if (ok && mgpu_hostmem_fill(dc->res, msg->host)) {
		msg->host = NULL;
		dc->reply.map.map_info = (__force u32)cpu_to_le32(cache);
		return true;
	}
	mgpu_hostmem_remove(dc->res, false);
	return false;
}

/*
 * Note what the device has after it completed a command; @ok: successfully.  Return whether
 * it did what it says.
 */
bool mgpu_devstate_settle(struct mgpu_devcmd *dc, bool ok)
{
	switch (dc->type) {
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		return map_settled(dc, ok);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		if (!ok) {
			WRITE_ONCE(dc->res->dev_gen, 0);
			mem_left(dc->mem, true);
		}
		break;
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		/* The first message creates the resource, the others clear it. */
		if (!has_done(dc, 0))
			WRITE_ONCE(dc->res->dev_gen, 0);
		else if (!ok)
			WRITE_ONCE(dc->res->dev_unclear, true);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		if (ok)
			WRITE_ONCE(dc->res->dev_gen, 0);
		mem_left(dc->res->backing, ok);
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
			mem_left(dc->mem, true);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		mem_left(dc->mem, ok);
		break;
	}
	return ok;
}

/* ---- numbers ---- */

/*
 * Where guests' numbers are those on the device, the module's own begin here.  Linux counts
 * from 1.
 */
#define OWN_NUMBERS	BIT(30)

void mgpu_devnums_init(struct mgpu_devnums *nums)
{
	xa_init_flags(&nums->used, XA_FLAGS_ALLOC1);
	nums->next = 0;
}

/**
 * mgpu_devnum_new - choose the number of a context or a resource on the device
 * @mdev: device
 * @nums: numbers of that kind
 * @guest: the guest's number; 0 for an object of the module's own
 * @gfp: how to allocate
 *
 * With caps.vgpu_nums this is the guest's number, if that is below OWN_NUMBERS.
 *
 * Context: as @gfp says.
 * Return: the number; 0 if there is none.
 */
u32 mgpu_devnum_new(const struct mgpu_device *mdev, struct mgpu_devnums *nums, u32 guest,
		    gfp_t gfp)
{
	const struct xa_limit limit = {
		.min = mdev->caps.vgpu_nums ? OWN_NUMBERS : 1, .max = S32_MAX,
	};
	u32 num;

	if (guest && mdev->caps.vgpu_nums)
		return guest < OWN_NUMBERS ? guest : 0;
	return xa_alloc_cyclic(&nums->used, &num, xa_mk_value(0), limit, &nums->next,
			       gfp) < 0 ? 0 : num;
}

/* Let a number be used again; 0, and a guest's own, is ignored. */
void mgpu_devnum_free(struct mgpu_devnums *nums, u32 num)
{
	if (num)
		xa_erase(&nums->used, num);
}

/* ---- commands that go ahead of jobs ---- */

/* Return VIRTIO_GPU_RESP_*, or a negative errno of ->exec(). */
static int exec_one(struct mgpu_vgpu *vgpu, void *buf, size_t len, struct mgpu_mem *mem,
		    struct mgpu_export *export)
{
	struct mgpu_device *mdev = vgpu->mdev;
	struct virtio_gpu_ctrl_hdr *resp;
	struct mgpu_msg msg = {};
	int ret;

	resp = kzalloc(sizeof(*resp), GFP_KERNEL | __GFP_NOFAIL);
	msg.vgpu = vgpu;
	msg.mem = mem;
	msg.export = export;
	msg.buf = buf;
	msg.len = len;
	msg.resp = resp;
	msg.resp_len = sizeof(*resp);
	ret = mdev->ops->exec(mdev, &msg, 1) ?: le32_to_cpu(resp->type);
	kfree(resp);
	return ret;
}

/**
 * mgpu_devcmd_exec - have the device execute a command at once
 * @vgpu: vGPU that pays for it
 * @buf: command, from kvmalloc()
 * @len: length of the command, bytes
 * @export: filled in when the command makes a resource to be exported; NULL for others
 *
 * Context: may sleep until the device has answered; never in an engine's thread.
 * Return: VIRTIO_GPU_RESP_*, or 0 if the device was lost.
 */
u32 mgpu_devcmd_exec(struct mgpu_vgpu *vgpu, void *buf, size_t len,
		     struct mgpu_export *export)
{
	int answer = exec_one(vgpu, buf, len, NULL, export);

	return answer < 0 ? 0 : answer;
}

/*
 * mgpu_devcmd_forget(), for @mem that the command detaches or NULL.  Return as exec_one().
 */
static int forget(struct mgpu_vgpu *vgpu, u32 type, u32 ctx, u32 res, struct mgpu_mem *mem)
{
	/* The longest of these commands. */
	struct virtio_gpu_resource_unref *c;
	int ret;

	static_assert(sizeof(*c) ==
		      sizeof(struct virtio_gpu_resource_detach_backing),
		      "one layout serves both");
	static_assert(sizeof(*c) >= sizeof(struct virtio_gpu_ctx_destroy),
		      "a device ignores bytes behind a command");
	c = kzalloc(sizeof(*c), GFP_KERNEL | __GFP_NOFAIL);
	c->hdr.type = cpu_to_le32(type);
	c->hdr.ctx_id = cpu_to_le32(ctx);
	c->resource_id = cpu_to_le32(res);
	ret = exec_one(vgpu, c, sizeof(*c), mem, NULL);
	kfree(c);
	return ret;
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
	forget(vgpu, type, ctx, res, NULL);
}

/* ---- contexts ---- */

static void ctx_release(struct kref *ref)
{
	struct mgpu_devctx *ctx = container_of(ref, struct mgpu_devctx, ref);
	struct mgpu_device *mdev = ctx->vgpu->mdev;

	if (mgpu_vgpu_has(ctx->vgpu, READ_ONCE(ctx->dev_gen)))
		mgpu_devcmd_forget(ctx->vgpu, VIRTIO_GPU_CMD_CTX_DESTROY,
				   ctx->dev_id, 0);
	mgpu_devnum_free(&mdev->ctx_nums, ctx->dev_id);
	xa_destroy(&ctx->attached);
	xa_destroy(&ctx->subs);
	kvfree(ctx->slicer);
	kfree(ctx);
}

void mgpu_devctx_put(struct mgpu_devctx *ctx)
{
	kref_put(&ctx->ref, ctx_release);
}

/* Make the context @id of the guest; @capset: 0 is virgl's. */
struct mgpu_devctx *mgpu_devctx_new(struct mgpu_vgpu *vgpu, u32 id, u32 capset)
{
	struct mgpu_device *mdev = vgpu->mdev;
	struct mgpu_devctx *ctx;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return NULL;
	ctx->slicer = kvmalloc(sizeof(*ctx->slicer), GFP_KERNEL_ACCOUNT);
	if (!ctx->slicer) {
		kfree(ctx);
		return NULL;
	}
	mgpu_slicer_init(ctx->slicer);
	ctx->dev_id = mgpu_devnum_new(mdev, &mdev->ctx_nums, id, GFP_KERNEL_ACCOUNT);
	if (!ctx->dev_id) {
		kvfree(ctx->slicer);
		kfree(ctx);
		return NULL;
	}
	kref_init(&ctx->ref);
	ctx->vgpu = vgpu;
	ctx->id = id;
	ctx->virgl = !capset || capset == MGPU_VIRGL_CAPSET_1 ||
		     capset == MGPU_VIRGL_CAPSET_2;
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

	if (mgpu_vgpu_has(res->vgpu, READ_ONCE(res->dev_gen))) {
		mgpu_devcmd_forget(res->vgpu, VIRTIO_GPU_CMD_RESOURCE_UNREF, 0,
				   res->dev.host_id);
		mem_left(res->backing, true);
	}
	mgpu_devnum_free(&mdev->res_nums, res->dev.host_id);
}

/* Return whether the device has the memory, and no command to release it. */
static bool mem_stays(struct mgpu_mem *mem, bool *leaving)
{
	bool has;

	spin_lock(&mem->vgpu->mem.lock);
	has = mgpu_vgpu_has(mem->vgpu, mem->dev_gen);
	*leaving = has && mem->dev_leaving;
	spin_unlock(&mem->vgpu->mem.lock);
	return has && !*leaving;
}

/**
 * mgpu_devmem_release - have the device release guest memory
 * @mem: memory that the caller has claimed
 *
 * If the device has got a command of the guest that releases the memory, wait for its
 * completion: a later command may have given the resource, or another one with its number,
 * new memory, which must stay.
 *
 * Context: may sleep until the device has answered or was reset.
 */
void mgpu_devmem_release(struct mgpu_mem *mem)
{
	struct mgpu_vgpu *vgpu = mem->vgpu;
	bool stays, leaving;
	int ret;

	do {
		wait_event(vgpu->mem.wait,
			   (stays = mem_stays(mem, &leaving)) || !leaving);
		ret = 0;
		if (stays)
			ret = forget(vgpu, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, 0,
				     mem->dev_res, mem);
	} while (ret == -EALREADY);
	mem_left(mem, true);
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
	/* The guest's processors may still run. */
	xa_for_each(&vgpu->resources, id, res)
		mgpu_hostmem_remove(res, false);
	unrefs = kcalloc(UNREF_BATCH, sizeof(*unrefs), GFP_KERNEL);
	msgs = kcalloc(UNREF_BATCH, sizeof(*msgs), GFP_KERNEL);
	if (!unrefs || !msgs)
		goto out;	/* one by one, then */

	xa_for_each(&vgpu->resources, id, res) {
		if (mgpu_vgpu_has(vgpu, res->dev_gen)) {
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
		mem_left(res->backing, true);
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

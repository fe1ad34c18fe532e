// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device commands: a command's way to the device and back.
 *
 * A guest's command becomes a job of its vGPU, with one or more messages in the
 * device's terms (translate.c).  All jobs of a vGPU go to the device in the ring's
 * order.  The ring goes on meanwhile; vgpu->devcmds has the commands in flight.
 */
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "gpu/resource.h"
#include "mgpu.h"
#include "trace.h"
#include "virgl/devcmd.h"

/*
 * Commands that are kept for the next ones: as many as the ring may have in flight, with
 * room for a message and for the segments of a usual reply.
 */
#define KEPT		MGPU_VQ_CONTROL_SIZE
#define KEPT_MSGS	1
#define KEPT_SEGS	2

static_assert(sizeof(struct virtio_gpu_ctx_create) <= MGPU_SMALL_MSG);
static_assert(sizeof(struct virtio_gpu_transfer_host_3d) <= MGPU_SMALL_MSG);

static const struct mgpu_job_ops devcmd_job_ops;

void mgpu_devcmd_init_vgpu(struct mgpu_vgpu *vgpu)
{
	xa_init(&vgpu->devctxs);
	INIT_LIST_HEAD(&vgpu->devcmds);
	INIT_LIST_HEAD(&vgpu->devcmds_kept);
	init_llist_head(&vgpu->devcmds_done);
}

/* ---- making commands ---- */

/* Return the offset of the messages in a command. */
static size_t msgs_at(u32 segs)
{
	return ALIGN(sizeof(struct mgpu_devcmd) + segs * sizeof(struct mgpu_seg),
		     __alignof__(struct mgpu_msg));
}

static size_t devcmd_size(u32 msgs, u32 segs)
{
	return msgs_at(segs) + msgs * (sizeof(struct mgpu_msg) +
				       sizeof(struct virtio_gpu_ctrl_hdr));
}

/* Fill in a command of zeros. */
static void devcmd_init(struct mgpu_devcmd *dc, struct mgpu_vgpu *vgpu, u32 msgs, u32 segs,
			gfp_t gfp)
{
	dc->gfp = gfp;
	dc->max_msgs = msgs;
	dc->msgs = (void *)dc + msgs_at(segs);
	dc->resp = (void *)(dc->msgs + msgs);
	INIT_LIST_HEAD(&dc->job.node);
	INIT_LIST_HEAD(&dc->node);
	dc->vgpu = vgpu;
	dc->job.vgpu = vgpu;
	dc->job.ops = &devcmd_job_ops;
	dc->job.kind = MGPU_JOB_DEVICE;
	dc->answer = VIRTIO_GPU_RESP_ERR_UNSPEC;
}

/**
 * mgpu_devcmd_alloc - make a command or a readback
 * @vgpu: vGPU
 * @msgs: number of messages, at most MGPU_JOB_MSGS
 * @segs: number of segments of the reply
 * @gfp: how to allocate, here and in mgpu_devcmd_msg()
 *
 * Return: a command without a type and without messages; NULL if out of memory.
 */
struct mgpu_devcmd *mgpu_devcmd_alloc(struct mgpu_vgpu *vgpu, u32 msgs, u32 segs,
				      gfp_t gfp)
{
	struct mgpu_devcmd *dc = kzalloc(devcmd_size(msgs, segs), gfp);

	if (dc)
		devcmd_init(dc, vgpu, msgs, segs, gfp);
	return dc;
}

/**
 * mgpu_devcmd_take - have a command with one message
 * @vgpu: vGPU
 * @gfp: how to allocate, here and in mgpu_devcmd_msg()
 *
 * Context: must hold ring_lock.
 * Return: a command that was kept, or a new one of that size; NULL if out of memory.
 */
struct mgpu_devcmd *mgpu_devcmd_take(struct mgpu_vgpu *vgpu, gfp_t gfp)
{
	struct mgpu_devcmd *dc;

	lockdep_assert_held(&vgpu->ring_lock);
	dc = list_first_entry_or_null(&vgpu->devcmds_kept, struct mgpu_devcmd, node);
	if (dc) {
		list_del(&dc->node);
		vgpu->nr_devcmds_kept--;
		memset(dc, 0, devcmd_size(KEPT_MSGS, KEPT_SEGS));
		devcmd_init(dc, vgpu, KEPT_MSGS, KEPT_SEGS, gfp);
	} else {
		dc = mgpu_devcmd_alloc(vgpu, KEPT_MSGS, KEPT_SEGS, gfp);
	}
	if (dc)
		dc->keep = true;
	return dc;
}

/* Keep an ended command from mgpu_devcmd_take(), or free it. */
static void devcmd_keep(struct mgpu_devcmd *dc)
{
	struct mgpu_vgpu *vgpu = dc->vgpu;

	lockdep_assert_held(&vgpu->ring_lock);
	if (vgpu->nr_devcmds_kept == KEPT) {
		kfree(dc);
		return;
	}
	list_add(&dc->node, &vgpu->devcmds_kept);
	vgpu->nr_devcmds_kept++;
}

/* Make the lane's command, of up to @msgs messages; NULL if out of memory. */
struct mgpu_devcmd *mgpu_devcmd_new(struct mgpu_vgpu *vgpu,
				    const struct mgpu_lane *lane, u32 msgs)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	u32 segs = mgpu_reply_segs(lane);
	struct mgpu_devcmd *dc;

	dc = msgs <= KEPT_MSGS && segs <= KEPT_SEGS ?
		mgpu_devcmd_take(vgpu, lane->gfp) :
		mgpu_devcmd_alloc(vgpu, msgs, segs, lane->gfp);
	if (!dc)
		return NULL;
	dc->type = cmd->type;
	dc->fenced = cmd->flags & VIRTIO_GPU_FLAG_FENCE;
	dc->timeline = mgpu_timeline_of(vgpu, cmd);
	dc->guest_ctx = cmd->ctx_id;
	mgpu_reply_init(&dc->reply, lane, dc->segs);
	return dc;
}

/**
 * mgpu_devcmd_free - free a command, or keep it for the next one
 * @dc: command or readback; what it holds is released
 *
 * Context: must hold ring_lock, except for a readback; may sleep.
 */
void mgpu_devcmd_free(struct mgpu_devcmd *dc)
{
	struct mgpu_vgpu *vgpu = dc->vgpu;
	u32 i;

	for (i = 0; i < dc->nr_msgs; i++) {
		void *buf = dc->msgs[i].buf;

		if (buf != dc->small && buf != dc->stream.data)
			kvfree(buf);
		mgpu_host_pages_put(dc->msgs[i].host);
	}
	/* The detach command owns the memory that the guest detached. */
	if (dc->type == VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING && dc->mem) {
		u64 bytes = (u64)dc->mem->nr_pages << PAGE_SHIFT;

		mgpu_mem_free(dc->mem);
		mgpu_mem_uncharge(vgpu, bytes);
	}
	if (dc->stream.data) {
		mgpu_mem_uncharge(vgpu, dc->stream.size);
		atomic64_sub(dc->stream.size, &vgpu->mem.streams);
		mgpu_cmdbuf_put(&vgpu->cmdbufs, &dc->stream);
	}
	mgpu_devnum_free(&vgpu->mdev->ctx_nums, dc->clear_ctx);
	if (dc->res)
		mgpu_resource_put(dc->res);
	if (dc->ctx)
		mgpu_devctx_put(dc->ctx);
	if (dc->keep)
		devcmd_keep(dc);
	else
		kfree(dc);
}

/**
 * mgpu_devcmd_msg - add a message
 * @dc: command that is not submitted
 * @type: VIRTIO_GPU_CMD_*
 * @len: bytes
 *
 * Return: the message, zeroed but for its type; NULL if out of memory.
 */
void *mgpu_devcmd_msg(struct mgpu_devcmd *dc, u32 type, size_t len)
{
	struct mgpu_msg *msg = &dc->msgs[dc->nr_msgs];
	struct virtio_gpu_ctrl_hdr *hdr;

	if (WARN_ON_ONCE(dc->nr_msgs == dc->max_msgs))
		return NULL;
	hdr = !dc->nr_msgs && len <= sizeof(dc->small) ? (void *)dc->small :
							  kvzalloc(len, dc->gfp);
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

/* Have the device make the fence on the ring of the message's context, if it has one. */
static void set_ring(struct virtio_gpu_ctrl_hdr *hdr, u64 timeline)
{
	if (!hdr->ctx_id)
		return;
	hdr->flags |= cpu_to_le32(VIRTIO_GPU_FLAG_INFO_RING_IDX);
	hdr->ring_idx = timeline & 0xff;
}

/**
 * mgpu_devcmd_submit - hand a command to the scheduler
 * @dc: command with its messages; the scheduler owns it until the job completes
 */
void mgpu_devcmd_submit(struct mgpu_devcmd *dc)
{
	struct mgpu_msg *last = &dc->msgs[dc->nr_msgs - 1];
	struct mgpu_vgpu *vgpu = dc->vgpu;
	struct mgpu_job *job = &dc->job;

	if (dc->timeline)
		set_ring(last->buf, dc->timeline);
	dc->msgs[0].begin = dc;
	last->job = job;
	/* Engine time is measured up to the end of what the command draws. */
	last->fenced = dc->fenced || !dc->type || dc->clear_ctx ||
		       dc->type == VIRTIO_GPU_CMD_SUBMIT_3D;

	job->id = atomic64_inc_return(&vgpu->mdev->sched.next_job);
	job->arrived_ns = ktime_get_ns();
	trace_mgpu_job_submit(vgpu->id, job->id, job->kind, job->bytes);
	mgpu_sched_submit(job);
}

/* ---- calls of the ring: must hold ring_lock ---- */

/**
 * mgpu_timeline_of - tell which fences a command's fence is in order with
 * @vgpu: vGPU
 * @cmd: decoded command
 *
 * With CONTEXT_INIT each ring of a context is a timeline (INFO_RING_IDX; VIRTIO 1.2,
 * section 5.7.6.7).  All fences without a ring are another one.
 *
 * Return: equal for commands of one timeline.
 */
u64 mgpu_timeline_of(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	if (!vgpu->mdev->caps.context_init ||
	    !(cmd->flags & VIRTIO_GPU_FLAG_INFO_RING_IDX))
		return 0;
	return BIT_ULL(63) | (u64)cmd->ctx_id << 8 | cmd->ring_idx;
}

/**
 * mgpu_devcmd_fence_waits - tell whether a fence has to wait for a fence before it
 * @vgpu: vGPU
 * @timeline: of the fence
 * @until: command of the fence in vgpu->devcmds; NULL for one that is behind all of them
 */
bool mgpu_devcmd_fence_waits(const struct mgpu_vgpu *vgpu, u64 timeline,
			     const struct mgpu_devcmd *until)
{
	const struct mgpu_devcmd *dc;

	/* Of few commands: those of the control queue, and slices. */
	list_for_each_entry(dc, &vgpu->devcmds, node) {
		if (dc == until)
			break;
		if (dc->fenced && dc->timeline == timeline)
			return true;
	}
	return false;
}

/**
 * mgpu_devcmd_mem_waits - tell whether memory that was detached is still in use
 * @dc: in vgpu->devcmds
 *
 * The command that attached the memory has no reference to it, and must be ended
 * before the command that detaches it.
 *
 * Context: must hold ring_lock.
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
 * mgpu_devcmd_slice_ends - note that a command ends, if it is a slice
 * @dc: completed command, in no list
 *
 * Context: must hold ring_lock.
 * Return: true if the guest gets no answer: that of the last slice is the stream's.
 */
bool mgpu_devcmd_slice_ends(struct mgpu_devcmd *dc)
{
	struct mgpu_devcmd *last = dc->last;
	struct mgpu_devctx *ctx;

	if (!dc->load.ns)
		return false;
	dc->vgpu->slices -= dc->job.slice;
	ctx = xa_load(&dc->vgpu->devctxs, dc->guest_ctx);
	if (ctx && ctx->dev_id == dc->dev_ctx && !dc->job.error)
		mgpu_slice_learn(ctx->slicer, &dc->load, dc->engine_ns, dc->behind);
	if (dc->slice_answer)
		dc->answer = dc->slice_answer;
	if (!last)
		return false;
	if (dc->answer != VIRTIO_GPU_RESP_OK_NODATA && !last->slice_answer)
		last->slice_answer = dc->answer;
	last->slices--;
	return true;
}

/**
 * mgpu_devcmd_refuse - answer a command after the fenced commands before it
 * @vgpu: vGPU
 * @lane: lane of the command
 * @answer: VIRTIO_GPU_RESP_*
 *
 * Context: must hold ring_lock.
 * Return: false if out of memory.
 */
bool mgpu_devcmd_refuse(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			u32 answer)
{
	struct mgpu_devcmd *dc = mgpu_devcmd_new(vgpu, lane, 0);

	if (!dc)
		return false;
	dc->local = true;
	dc->done = true;
	dc->answer = answer;
	list_add_tail(&dc->node, &vgpu->devcmds);
	return true;
}

/**
 * mgpu_devcmd_release - prepare to end a completed command
 * @dc: command that can be answered now
 * @nowait: ending it must not wait
 *
 * Context: must hold ring_lock.
 * Return: false when @nowait is set and mgpu_devcmd_end() would have to wait.
 */
bool mgpu_devcmd_release(struct mgpu_devcmd *dc, bool nowait)
{
	if (!nowait)
		return true;
	if (dc->ctx ||
	    (dc->mem && dc->type == VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING) ||
	    (dc->mem && dc->answer != VIRTIO_GPU_RESP_OK_NODATA))
		return false;
	if (dc->res && !mgpu_resource_put_unless_last(dc->res))
		return false;
	dc->res = NULL;
	return true;
}

/**
 * mgpu_devcmd_end - end and free a command that was answered
 * @dc: in no list
 *
 * Context: must hold ring_lock; may sleep unless mgpu_devcmd_release() was called
 * with nowait.
 */
void mgpu_devcmd_end(struct mgpu_devcmd *dc)
{
	struct mgpu_resource *res = dc->res;

	/*
	 * Detach memory that the device refused.  If the guest has unreferenced
	 * the resource, another resource may have its number already; the memory
	 * is then freed with the resource.  A refused command has neither.
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

/*
 * Free the commands that will not be answered, and those that were kept, for a reset: no
 * job is in flight.
 */
void mgpu_devcmd_stop(struct mgpu_vgpu *vgpu)
{
	struct mgpu_devcmd *dc, *next;

	lockdep_assert_held(&vgpu->ring_lock);

	llist_del_all(&vgpu->devcmds_done);
	list_for_each_entry_safe(dc, next, &vgpu->devcmds, node) {
		list_del_init(&dc->node);
		mgpu_devcmd_free(dc);
	}
	list_for_each_entry_safe(dc, next, &vgpu->devcmds_kept, node)
		kfree(dc);
	INIT_LIST_HEAD(&vgpu->devcmds_kept);
	vgpu->nr_devcmds_kept = 0;
	vgpu->slices = 0;
}

/* ---- the job ---- */

/* Return the device's answer: the first failure, or the last; 0 for none. */
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

/* ops->done: the device has completed the command, or lost it. */
static void devcmd_done(struct mgpu_job *job)
{
	struct mgpu_devcmd *dc = to_mgpu_devcmd(job);
	u32 type = answer_of(dc);

	if (!mgpu_devstate_settle(dc, type == VIRTIO_GPU_RESP_OK_NODATA) &&
	    type == VIRTIO_GPU_RESP_OK_NODATA)
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
	/* A guest gets only answers that the specification has. */
	if (type > VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER ||
	    (type != VIRTIO_GPU_RESP_OK_NODATA &&
	     type < VIRTIO_GPU_RESP_ERR_UNSPEC) ||
	    job->error == -ETIMEDOUT)
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (dc->type == VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB &&
	    type == VIRTIO_GPU_RESP_OK_NODATA)
		type = VIRTIO_GPU_RESP_OK_MAP_INFO;
	dc->answer = type;
	if (dc->type)
		mgpu_ring_devcmd_done(dc);
	else
		mgpu_readback_done(dc);
}

/* ops->ended */
static void devcmd_ended(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	struct mgpu_devcmd *dc = to_mgpu_devcmd(job);
	struct mgpu_vgpu *vgpu = job->vgpu;

	dc->engine_ns = engine_ns;
	dc->behind = job->start_ns < READ_ONCE(vgpu->devcmd_ended_ns);
	WRITE_ONCE(vgpu->devcmd_ended_ns, ktime_get_ns());
}

static struct mgpu_msg *devcmd_msgs(struct mgpu_job *job, u32 *nr)
{
	struct mgpu_devcmd *dc = to_mgpu_devcmd(job);

	*nr = dc->nr_msgs;
	return dc->msgs;
}

/* A device command that was posted cannot be cancelled, and is never preempted. */
static const struct mgpu_job_ops devcmd_job_ops = {
	.in_device = true,
	.msgs = devcmd_msgs,
	.ended = devcmd_ended,
	.done = devcmd_done,
};

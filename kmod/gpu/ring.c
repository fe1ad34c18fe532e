// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring: takes commands from a vGPU's queues in order, has them executed and
 * answers them.
 *
 * A queue has at most one command in progress.  While pacing holds that one back or
 * its job is with the scheduler, the queue waits, and the other queue goes on.  A
 * job that a guest submits to a context is the context's, and the queue goes on.
 *
 * Three kinds of thread run the ring: the VMM's thread that writes the doorbell,
 * the engine thread that completed a job, and the vGPU's worker for the rest.  They hold
 * ring_lock meanwhile, which they take with trylock.  If trylock fails, the thread
 * sets ring_pending, and the lock holder rechecks that after unlocking.  So a
 * command on its way from doorbell to interrupt wakes one thread, the engine's, and
 * a vGPU with more in its ring is in the run queue again before the engine takes the
 * next job.  An engine serves all vGPUs and must not wait for one VM: it runs the
 * ring with nowait set, and leaves commands that need guest memory to be pinned, or
 * take long, to the worker.
 *
 * No thread sleeps to pace: a timer ends a hold.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "compat.h"
#include "compute/context.h"
#include "gpu/resource.h"
#include "gpu/ring.h"
#include "mgpu.h"
#include "trace.h"
#include "virgl/devcmd.h"

/*
 * Bytes of buffers that are kept for a vGPU's commands: of one with contexts on a device,
 * seven of the longest streams of Mesa.
 */
#define KEPT_ON_DEVICE	SZ_2M
#define KEPT		(2 * MGPU_CMDBUF_SHORT)

#define RING_BUDGET	64	/* commands in one run */
#define RING_BUDGET_ENGINE 8	/* the same, by an engine thread */
#define RING_ROUNDS	4	/* runs for one doorbell */
/* An engine thread takes no command from a queue after this time, nanoseconds. */
#define RING_ENGINE_NS	(200 * NSEC_PER_USEC)

#define MAX_BAD_CONTEXTS 64	/* then all contexts are refused */

static const u16 ring_align[3] = { 16, 2, 4 };	/* VIRTIO 1.2, section 2.7 */

/* Have the vGPU's worker run the ring.  Any context. */
void mgpu_ring_kick(struct mgpu_vgpu *vgpu)
{
	if (READ_ONCE(vgpu->live))
		mgpu_worker_queue(vgpu);
}

/* ---- lanes: which thread owns one ---- */

/* Submit the job of the lane's command to the scheduler. */
static void lane_submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, u64 now)
{
	struct mgpu_job *job = &lane->draw.job;

	WARN_ON_ONCE(READ_ONCE(lane->state) != MGPU_LANE_BUSY);
	if (job->frame)
		mgpu_throttle_frame(&vgpu->throttle, now);
	if (lane->held_ns)
		job->held_ns = now - lane->held_ns;
	lane->held_ns = 0;
	mgpu_sched_submit(job);
}

/* IDLE to BUSY, by the holder of ring_lock. */
static void lane_begin(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, u64 now)
{
	lockdep_assert_held(&vgpu->ring_lock);
	WARN_ON_ONCE(lane->state != MGPU_LANE_IDLE);
	WRITE_ONCE(lane->state, MGPU_LANE_BUSY);
	lane_submit(vgpu, lane, now);
}

/* IDLE to HELD, by the holder of ring_lock; the timer may own the lane afterwards. */
static void lane_hold(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, u64 until)
{
	lockdep_assert_held(&vgpu->ring_lock);
	WARN_ON_ONCE(lane->state != MGPU_LANE_IDLE);
	/* Pairs with cmpxchg() in lane_take(): the timer sees the lane's fields. */
	smp_store_release(&lane->state, MGPU_LANE_HELD);
	hrtimer_start(&vgpu->hold_timer, ns_to_ktime(until), HRTIMER_MODE_ABS);
}

/*
 * HELD to @state, by the timer or the holder of ring_lock: the one that succeeds owns
 * the lane and the throttle.
 */
static bool lane_take(struct mgpu_lane *lane, enum mgpu_lane_state state)
{
	return cmpxchg(&lane->state, MGPU_LANE_HELD, state) == MGPU_LANE_HELD;
}

/* BUSY to DONE, by the engine thread, after it wrote job->error. */
static void lane_done(struct mgpu_lane *lane)
{
	WARN_ON_ONCE(READ_ONCE(lane->state) != MGPU_LANE_BUSY);
	/* Pairs with the acquire in run_lane(): the error before the state. */
	smp_store_release(&lane->state, MGPU_LANE_DONE);
}

/* To IDLE, by the holder of ring_lock: the command is answered. */
static void lane_idle(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	lockdep_assert_held(&vgpu->ring_lock);
	lane->state = MGPU_LANE_IDLE;
}

/**
 * mgpu_lane_wait_context - have a queue wait for the context that has its command
 * @lane: lane of the command
 *
 * Context: must hold ring_lock.
 */
void mgpu_lane_wait_context(struct mgpu_lane *lane)
{
	WARN_ON_ONCE(lane->state != MGPU_LANE_IDLE);
	WRITE_ONCE(lane->state, MGPU_LANE_BUSY);
}

/**
 * mgpu_lane_no_memory - end the attempt to execute a command for want of memory
 * @lane: lane of the command, for which nothing was done yet
 * @next: set to MGPU_CMD_AGAIN in an engine's thread
 *
 * Context: must hold ring_lock.
 * Return: VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY.
 */
u32 mgpu_lane_no_memory(const struct mgpu_lane *lane, enum mgpu_cmd_next *next)
{
	if (!gfpflags_allow_blocking(lane->gfp))
		*next = MGPU_CMD_AGAIN;
	return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
}

/* Submit a frame whose hold has ended. */
static enum hrtimer_restart ring_hold_over(struct hrtimer *timer)
{
	struct mgpu_vgpu *vgpu = container_of(timer, struct mgpu_vgpu,
					      hold_timer);
	struct mgpu_lane *lane = &vgpu->lane[MGPU_VQ_CONTROL];

	if (READ_ONCE(vgpu->live) && lane_take(lane, MGPU_LANE_BUSY))
		lane_submit(vgpu, lane, ktime_get_ns());
	return HRTIMER_NORESTART;
}

/* ---- the ring's memory ---- */

/*
 * Begin to use the ring's memory, unless it is in use; false if the VMM unmapped it.
 * The VMM's unmapping waits until ring_put().  So a thread that may wait for the VMM
 * uses the memory in ring_pop() and ring_push() only; an engine thread, as long as it
 * runs the ring.
 */
static bool ring_get(struct mgpu_lane *lane)
{
	struct mgpu_vring *vr = &lane->vring;

	if (vr->desc)
		return true;
	if (!mgpu_mem_get_all(lane->mem, ARRAY_SIZE(lane->mem)))
		return false;
	vr->desc = mgpu_mem_addr(lane->mem[0]);
	vr->avail = mgpu_mem_addr(lane->mem[1]);
	vr->used = mgpu_mem_addr(lane->mem[2]);
	return true;
}

static void ring_put(struct mgpu_lane *lane)
{
	struct mgpu_vring *vr = &lane->vring;

	if (!vr->desc)
		return;
	mgpu_mem_put_all(lane->mem, ARRAY_SIZE(lane->mem));
	vr->desc = NULL;
	vr->avail = NULL;
	vr->used = NULL;
}

/* How this run of the ring reads guest memory. */
struct ring_reader {
	struct mgpu_vgpu *vgpu;
	struct mgpu_lane *lane;
	bool nowait;
};

/* Read an indirect table; nothing of the ring is read afterwards. */
static int ring_read_guest(void *ctx, u64 addr, void *buf, size_t len)
{
	const struct ring_reader *r = ctx;

	if (!r->nowait)
		ring_put(r->lane);
	return mgpu_guest_read(r->vgpu, addr, buf, len, r->nowait);
}

/* As mgpu_vring_pop(); -ENXIO if the VMM unmapped the ring. */
static int ring_pop(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, bool nowait)
{
	struct ring_reader reader = { vgpu, lane, nowait };
	int ret;

	if (!ring_get(lane))
		return -ENXIO;
	ret = mgpu_vring_pop(&lane->vring, &lane->chain, ring_read_guest, &reader);
	if (!nowait)
		ring_put(lane);
	return ret;
}

/* As mgpu_vring_push(); false if the VMM unmapped the ring. */
static bool ring_push(struct mgpu_lane *lane, u16 head, u32 len, bool nowait)
{
	if (!ring_get(lane))
		return false;
	mgpu_vring_push(&lane->vring, head, len);
	if (!nowait)
		ring_put(lane);
	return true;
}

static void ring_is_gone(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	mgpu_virtio_broken(vgpu, lane - vgpu->lane, "the VMM unmapped the ring");
}

/* ---- one command ---- */

/*
 * Copy the bytes of a command that the decoder reads.  Return 0, -EAGAIN if that
 * would wait and @nowait is set, or another negative errno.
 */
static int fetch_cmd(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		     size_t *len, bool nowait)
{
	const struct mgpu_chain *c = &lane->chain;
	size_t want = min_t(u64, c->in_len, mgpu_on_device(vgpu) ?
			    sizeof(struct virtio_gpu_cmd_submit) +
			    MGPU_MAX_STREAM : MGPU_MAX_CMD), done = 0, n;
	u32 i;
	int ret;

	/* Before the copy: a command that is invalid takes as long. */
	if (nowait && want > MGPU_CMDBUF_SHORT)
		return -EAGAIN;
	if (!mgpu_cmdbuf_get(&vgpu->cmdbufs, &lane->buf, want, lane->gfp))
		return nowait ? -EAGAIN : -ENOMEM;

	for (i = 0; i < c->nr_in && done < want; i++) {
		n = min_t(size_t, c->segs[i].len, want - done);
		ret = mgpu_guest_read(vgpu, c->segs[i].addr, lane->buf.data + done,
				      n, nowait);
		if (ret)
			return ret;
		done += n;
	}
	*len = done;
	return 0;
}

/*
 * Write an answer and hand the buffer back.  An answer longer than the buffer is cut
 * off; without room for a header there is no answer.
 */
static void push_answer(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			const struct mgpu_chain *c, bool fenced,
			const void *resp, size_t len, bool nowait)
{
	size_t done = 0, n;
	u32 i;

	if (c->out_len < sizeof(struct virtio_gpu_ctrl_hdr))
		len = 0;
	for (i = 0; i < c->nr_out && done < len; i++) {
		const struct mgpu_seg *seg = &c->segs[c->nr_in + i];

		n = min_t(size_t, seg->len, len - done);
		if (mgpu_guest_write(vgpu, seg->addr, resp + done, n, nowait))
			break;
		done += n;
	}
	if (!ring_push(lane, c->head, done, nowait)) {
		ring_is_gone(vgpu, lane);
		return;
	}
	lane->answered = true;
	/* The guest may be waiting for this answer. */
	if (fenced || len > sizeof(struct virtio_gpu_ctrl_hdr))
		lane->awaited = true;
}

/* Return how many segments a struct mgpu_reply goes to; there may be one per byte. */
u32 mgpu_reply_segs(const struct mgpu_lane *lane)
{
	return min_t(u32, lane->chain.nr_out,
		     sizeof(struct virtio_gpu_resp_map_info));
}

/**
 * mgpu_reply_init - prepare to answer the lane's command later
 * @reply: to be filled in; its type is set when the command completes
 * @lane: free for the next command afterwards
 * @segs: room for mgpu_reply_segs() entries, valid as long as @reply
 */
void mgpu_reply_init(struct mgpu_reply *reply, const struct mgpu_lane *lane,
		     struct mgpu_seg *segs)
{
	const struct mgpu_chain *c = &lane->chain;
	u32 n = mgpu_reply_segs(lane);

	mgpu_cmd_reply(&lane->cmd, VIRTIO_GPU_RESP_OK_NODATA, &reply->hdr);
	reply->chain = *c;
	reply->chain.nr_in = 0;
	reply->chain.nr_out = n;
	reply->chain.segs = segs;
	memcpy(segs, c->segs + c->nr_in, n * sizeof(*segs));
}

static void send_reply(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		       struct mgpu_reply *r, u32 type, bool nowait)
{
	size_t len = sizeof(r->hdr);

	if (type >= VIRTIO_GPU_RESP_ERR_UNSPEC)
		atomic64_inc(&vgpu->stats.command_errors);
	r->hdr.type = cpu_to_le32(type);
	if (type == VIRTIO_GPU_RESP_OK_MAP_INFO) {
		r->map.padding = 0;
		len = sizeof(r->map);
	}
	push_answer(vgpu, lane, &r->chain,
		    r->hdr.flags & cpu_to_le32(VIRTIO_GPU_FLAG_FENCE), &r->hdr,
		    len, nowait);
}

/*
 * Interrupt the guest for the answers that were pushed.  Answers that the guest does
 * not wait for share the interrupt of the job behind them, as long as half of the
 * ring is free: a page flip is one interrupt, not two.
 */
static void ring_announce(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane)
{
	struct mgpu_vring *vr = &lane->vring;

	if (!lane->answered)
		return;
	if (!lane->awaited && READ_ONCE(lane->state) == MGPU_LANE_BUSY &&
	    mgpu_vring_outstanding(vr) < vr->num / 2)
		return;
	lane->answered = false;
	lane->awaited = false;
	if (mgpu_vring_wants_interrupt(vr))
		mgpu_irq_queue(vgpu, vq);
}

static bool is_fenced(const struct mgpu_cmd *cmd)
{
	return cmd->flags & VIRTIO_GPU_FLAG_FENCE;
}

static void answer_status(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			  u32 type, bool nowait)
{
	struct virtio_gpu_ctrl_hdr hdr;

	/* A fence is signalled after those before it, in the same queue. */
	if (lane == &vgpu->lane[MGPU_VQ_CONTROL] &&
	    is_fenced(&lane->cmd) &&
	    mgpu_devcmd_fence_waits(vgpu, mgpu_timeline_of(vgpu, &lane->cmd), NULL) &&
	    mgpu_devcmd_refuse(vgpu, lane, type))
		return;
	if (type != VIRTIO_GPU_RESP_OK_NODATA)
		atomic64_inc(&vgpu->stats.command_errors);
	mgpu_cmd_reply(&lane->cmd, type, &hdr);
	push_answer(vgpu, lane, &lane->chain, is_fenced(&lane->cmd), &hdr,
		    sizeof(hdr), nowait);
}

/* Return whether the answer can be written; with @nowait, without waiting. */
static bool can_answer(struct mgpu_vgpu *vgpu, const struct mgpu_chain *c,
		       bool nowait)
{
	size_t left = MGPU_MAX_RESP, n;
	u32 i;

	for (i = 0; nowait && i < c->nr_out && left; i++) {
		const struct mgpu_seg *seg = &c->segs[c->nr_in + i];

		n = min_t(size_t, seg->len, left);
		if (!mgpu_guest_ready(vgpu, seg->addr, n))
			return false;
		left -= n;
	}
	return true;
}

/* Submit a frame now, or have the timer submit it when it is due. */
static void ring_pace(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	u32 limit = READ_ONCE(vgpu->entity.fps_limit);
	u64 now = ktime_get_ns(), wait;

	if (limit != vgpu->throttle.limit)
		mgpu_throttle_set(&vgpu->throttle, limit, now);

	wait = mgpu_throttle_wait(&vgpu->throttle, now);
	if (!wait) {
		lane_begin(vgpu, lane, now);
		return;
	}
	if (!lane->held_ns)
		lane->held_ns = now;
	lane_hold(vgpu, lane, now + wait);
}

/* Return whether the command can take long or wait: an engine thread leaves it. */
static bool is_heavy(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	switch (cmd->type) {
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
		return !READ_ONCE(vgpu->screen.display) ||
		       !mgpu_screen_settle(vgpu, true);
	case VIRTIO_GPU_CMD_UPDATE_CURSOR:
		return !READ_ONCE(vgpu->screen.image);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
	case VIRTIO_GPU_CMD_SET_SCANOUT:
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
	case VIRTIO_GPU_CMD_MOVE_CURSOR:
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return false;
	default:
		return true;
	}
}

/*
 * Return whether to refuse a command, because a job of its context hung.  The guest
 * may destroy such a context.
 */
static bool is_refused(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	return cmd->ctx_id && cmd->type != VIRTIO_GPU_CMD_CTX_DESTROY &&
	       (vgpu->nr_bad_contexts >= MAX_BAD_CONTEXTS ||
		(vgpu->nr_bad_contexts &&
		 xa_load(&vgpu->bad_contexts, cmd->ctx_id)));
}

/*
 * Execute a command that has just been taken from the queue.  Return false if it has to
 * be put back, untouched: with @nowait for the worker, else and if @wait is set until the
 * device has completed a command.
 */
static bool run_cmd(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane,
		    bool nowait, bool *wait)
{
	struct mgpu_job *job = &lane->draw.job;
	void *resp = vgpu->resp;
	size_t resp_len = 0, len = 0;
	enum mgpu_cmd_next next = MGPU_CMD_ANSWER;
	u32 type;
	int ret;

	*wait = false;
	if (!can_answer(vgpu, &lane->chain, nowait))
		return false;
	ret = fetch_cmd(vgpu, lane, &len, nowait);
	if (ret == -EAGAIN)
		return false;
	if (ret == -ENOMEM) {
		memset(&lane->cmd, 0, sizeof(lane->cmd));
		answer_status(vgpu, lane, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY,
			      nowait);
		return true;
	}
	if (ret) {
		mgpu_virtio_broken(vgpu, vq, "command outside of guest memory");
		return true;
	}

	type = mgpu_cmd_decode(lane->buf.data, len, vq, &lane->cmd);
	if (!mgpu_cmd_offered(vgpu, &lane->cmd))
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (!type && nowait && is_heavy(vgpu, &lane->cmd))
		return false;
	if (!type && !nowait && lane->cmd.type == VIRTIO_GPU_CMD_RESOURCE_FLUSH)
		mgpu_screen_settle(vgpu, false);
	if (!type && is_refused(vgpu, &lane->cmd))
		type = VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (!type)
		type = mgpu_cmd_run(vgpu, lane, resp, &resp_len, &next);
	/* Few commands are long. */
	if (lane->buf.size > MGPU_CMDBUF_SHORT)
		mgpu_cmdbuf_put(&vgpu->cmdbufs, &lane->buf);
	*wait = next == MGPU_CMD_WAIT;
	if (*wait || next == MGPU_CMD_AGAIN)
		return false;
	atomic64_inc(&vgpu->stats.commands);
	/* The guest may make a context with this number anew. */
	if (lane->cmd.type == VIRTIO_GPU_CMD_CTX_DESTROY &&
	    (type == VIRTIO_GPU_RESP_OK_NODATA || next == MGPU_CMD_WORK) &&
	    xa_erase(&vgpu->bad_contexts, lane->cmd.ctx_id))
		vgpu->nr_bad_contexts--;

	if (next == MGPU_CMD_WORK)
		return true;
	if (next == MGPU_CMD_JOB) {
		job->id = atomic64_inc_return(&vgpu->mdev->sched.next_job);
		job->arrived_ns = ktime_get_ns();
		job->held_ns = 0;
		trace_mgpu_job_submit(vgpu->id, job->id, job->kind, job->bytes);
		if (job->frame)
			ring_pace(vgpu, lane);
		else
			lane_begin(vgpu, lane, job->arrived_ns);
	} else if (resp_len) {
		mgpu_cmd_reply(&lane->cmd, type, resp);
		push_answer(vgpu, lane, &lane->chain, is_fenced(&lane->cmd),
			    resp, resp_len, nowait);
	} else {
		answer_status(vgpu, lane, type, nowait);
	}
	return true;
}

/* ---- the end of a command ---- */

/* Refuse all further commands of a context whose job took too long. */
static void ring_hung(struct mgpu_vgpu *vgpu, u32 ctx)
{
	if (ctx && !xa_load(&vgpu->bad_contexts, ctx) &&
	    vgpu->nr_bad_contexts < MAX_BAD_CONTEXTS) {
		vgpu->nr_bad_contexts++;
		/* Without memory to tell contexts apart, all are refused. */
		if (xa_err(xa_store(&vgpu->bad_contexts, ctx, xa_mk_value(1),
				    GFP_KERNEL_ACCOUNT)))
			vgpu->nr_bad_contexts = MAX_BAD_CONTEXTS;
	}
	dev_notice_ratelimited(vgpu->vdev.dev,
			       "a job of context %u exceeded job-timeout and was ended: the guest must make the context again\n",
			       ctx);
	mgpu_netlink_event(vgpu, MGPU_EVENT_HUNG);
}

/* Return the VIRTIO_GPU_RESP_* for the way a job ended. */
static u32 job_answer(int error)
{
	switch (error) {
	case 0:
		return VIRTIO_GPU_RESP_OK_NODATA;
	case -ENOMEM:
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	case -ECANCELED:
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

/*
 * A command ends in four steps: check that its answer can be written, release its
 * references, refuse its context if its job hung, and push the answer.  With @nowait
 * the first two must not wait, or the worker ends the command.
 */
static bool may_end(struct mgpu_vgpu *vgpu, const struct mgpu_chain *chain,
		    int error, bool nowait)
{
	/* Refusing a context allocates memory and sends an event. */
	return !(nowait && error == -ETIMEDOUT) &&
	       can_answer(vgpu, chain, nowait);
}

/* Release a resource; with @nowait only if its memory need not be unpinned for it. */
static bool end_resource(struct mgpu_resource **res, bool nowait)
{
	if (!*res)
		return true;
	if (!nowait)
		mgpu_resource_put(*res);
	else if (!mgpu_resource_put_unless_last(*res))
		return false;
	*res = NULL;
	return true;
}

static bool end_resources(struct mgpu_work *work, bool nowait)
{
	u32 i;

	for (i = 0; i < work->job.nr_bufs; i++) {
		if (!end_resource(&work->res[i], nowait))
			return false;
	}
	return true;
}

static void count_latency(struct mgpu_vgpu *vgpu, u64 arrived_ns)
{
	mgpu_hist_add(&vgpu->hists->latency, ktime_get_ns() - arrived_ns);
}

/* Answer the works that contexts have completed; return true if works are left. */
static bool end_works(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		      bool nowait)
{
	struct mgpu_work *work, *next;
	LIST_HEAD(ended);

	/* llist_del_all() returns the newest work first. */
	llist_for_each_entry_safe(work, next, llist_del_all(&vgpu->works_done),
				  done)
		list_add(&work->node, &ended);
	list_splice_tail(&ended, &vgpu->works_ending);

	list_for_each_entry_safe(work, next, &vgpu->works_ending, node) {
		if (!may_end(vgpu, &work->reply.chain, work->error, nowait) ||
		    !end_resources(work, nowait))
			return true;
		list_del_init(&work->node);
		if (work->in_order)
			lane_idle(vgpu, lane);
		if (work->error == -ETIMEDOUT)
			ring_hung(vgpu, work->ctx);
		count_latency(vgpu, work->arrived_ns);
		send_reply(vgpu, lane, &work->reply, job_answer(work->error),
			   nowait);
		mgpu_work_free(vgpu, work);
	}
	return false;
}

/*
 * Answer the commands that the device has completed, fences of a timeline in the ring's
 * order: to a guest, a signalled fence signals all earlier ones.  Return true if commands
 * are left to the worker.
 */
static bool end_devcmds(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			bool nowait)
{
	struct mgpu_devcmd *dc, *next;
	bool more = false;

	llist_for_each_entry_safe(dc, next, llist_del_all(&vgpu->devcmds_done),
				  done_node)
		dc->done = true;

	list_for_each_entry_safe(dc, next, &vgpu->devcmds, node) {
		bool ready = dc->done && !dc->slices && !mgpu_devcmd_mem_waits(dc) &&
			     !(dc->fenced &&
			       mgpu_devcmd_fence_waits(vgpu, dc->timeline, dc));

		if (ready && !(may_end(vgpu, &dc->reply.chain, dc->job.error,
				       nowait) &&
			       mgpu_devcmd_release(dc, nowait))) {
			more = true;
			ready = false;
		}
		if (!ready)
			continue;
		list_del_init(&dc->node);
		if (dc->job.error == -ETIMEDOUT)
			ring_hung(vgpu, dc->guest_ctx);
		if (!mgpu_devcmd_slice_ends(dc)) {
			if (!dc->local)
				count_latency(vgpu, dc->job.arrived_ns);
			send_reply(vgpu, lane, &dc->reply, dc->answer, nowait);
		}
		mgpu_devcmd_end(dc);
	}
	return more;
}

/* Answer the command of the lane's completed job; false to leave it to the worker. */
static bool end_draw(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, bool nowait)
{
	struct mgpu_draw *draw = &lane->draw;
	int error = draw->job.error;

	if (!may_end(vgpu, &lane->chain, error, nowait) ||
	    !end_resource(&draw->res, nowait))
		return false;
	if (error == -ETIMEDOUT)
		ring_hung(vgpu, lane->cmd.ctx_id);
	lane_idle(vgpu, lane);
	count_latency(vgpu, draw->job.arrived_ns);
	answer_status(vgpu, lane, job_answer(error), nowait);
	return true;
}

/* ---- running the ring ---- */

/* Ask the driver for no doorbells. Return false if the VMM unmapped the ring. */
static bool ring_notify_disable(struct mgpu_lane *lane, bool nowait)
{
	if (!ring_get(lane))
		return false;
	mgpu_vring_notify_disable(&lane->vring);
	if (!nowait)
		ring_put(lane);
	return true;
}

/* Ask the driver for doorbells, unless it has made a buffer available: true, then. */
static bool ring_has_more(struct mgpu_lane *lane, bool nowait)
{
	bool more;

	/* The next ring_pop() finds an unmapped ring. */
	if (!ring_get(lane))
		return true;
	more = mgpu_vring_notify_enable(&lane->vring);
	if (more)
		mgpu_vring_notify_disable(&lane->vring);
	if (!nowait)
		ring_put(lane);
	return more;
}

/* Run one queue; return true if commands are left to the worker. */
static bool run_lane(struct mgpu_vgpu *vgpu, u32 vq, bool nowait)
{
	struct mgpu_lane *lane = &vgpu->lane[vq];
	unsigned int budget = nowait ? RING_BUDGET_ENGINE : RING_BUDGET;
	u64 until = nowait ? ktime_get_ns() + RING_ENGINE_NS : U64_MAX;
	bool more = false, wait;
	int ret;

	lockdep_assert_held(&vgpu->ring_lock);

	/* Pairs with the release in mgpu_ring_enable_vq(). */
	if (!smp_load_acquire(&lane->ready) || lane->broken)
		return false;
	if (!ring_notify_disable(lane, nowait)) {
		ring_is_gone(vgpu, lane);
		return false;
	}
	lane->gfp = nowait ? GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT : GFP_GUEST;
	if (vq == MGPU_VQ_CONTROL)
		more = end_works(vgpu, lane, nowait) |
		       end_devcmds(vgpu, lane, nowait);
	while (!lane->broken) {
		/* Pairs with the release in lane_done(). */
		switch (smp_load_acquire(&lane->state)) {
		case MGPU_LANE_BUSY:
			goto notify;
		case MGPU_LANE_DONE:
			if (end_draw(vgpu, lane, nowait))
				continue;
			more = true;
			goto notify;
		case MGPU_LANE_HELD:
			/* The limit may have changed. */
			if (lane_take(lane, MGPU_LANE_IDLE))
				ring_pace(vgpu, lane);
			goto notify;
		case MGPU_LANE_IDLE:
			break;
		}

		/* A VMM that is being killed resets the vGPU when it closes it. */
		if (!budget-- || fatal_signal_pending(current) ||
		    (nowait && ktime_get_ns() > until)) {
			more = true;
			break;
		}
		if (!nowait)
			cond_resched();
		ret = ring_pop(vgpu, lane, nowait);
		if (ret > 0) {
			if (run_cmd(vgpu, vq, lane, nowait, &wait))
				continue;
			lane->vring.last_avail--;
			more |= !wait;
			break;
		}
		if (ret == -EAGAIN) {
			more = true;
			break;
		}
		if (ret == -ENXIO) {
			ring_is_gone(vgpu, lane);
			break;
		}
		if (ret < 0) {
			mgpu_virtio_broken(vgpu, vq,
					   ret == -ELOOP ? "endless chain" :
					   ret == -ERANGE ? "index out of range" :
					   ret == -EINVAL ? "invalid descriptor flags" :
					   "descriptor outside of guest memory");
			break;
		}
		if (!ring_has_more(lane, nowait))
			break;
	}

notify:
	if (ring_get(lane))
		ring_announce(vgpu, vq, lane);
	ring_put(lane);
	return more;
}

/*
 * Run both queues, or have the lock holder run them again.  @nowait: the caller is
 * an engine thread, which does nothing that waits for the VM.
 *
 * The guest's other processors can ring without end meanwhile.  So a thread goes round
 * RING_ROUNDS times at most, and leaves the rest to the worker.
 */
static void ring_run(struct mgpu_vgpu *vgpu, bool nowait)
{
	unsigned int rounds = nowait ? 1 : RING_ROUNDS;
	struct mem_cgroup *old = NULL;
	bool more = false;

	WRITE_ONCE(vgpu->ring_pending, true);
	do {
		/* Set ring_pending before trylock; pairs with the barrier below. */
		smp_mb();
		if (!mutex_trylock(&vgpu->ring_lock))
			return;
		/* A thread that fails to lock from here on causes another round. */
		smp_store_mb(vgpu->ring_pending, false);
		if (READ_ONCE(vgpu->live) && mgpu_config_may_dma(vgpu)) {
			/* An engine's thread has no control group of its own. */
			if (nowait)
				old = set_active_memcg(vgpu->worker.memcg);
			/* The cursor first: it is quick. */
			more |= run_lane(vgpu, MGPU_VQ_CURSOR, nowait);
			more |= run_lane(vgpu, MGPU_VQ_CONTROL, nowait);
			if (nowait)
				set_active_memcg(old);
		}
		mutex_unlock(&vgpu->ring_lock);
		/* Unlock before rechecking ring_pending. */
		smp_mb();
	} while (--rounds && !more && READ_ONCE(vgpu->ring_pending));

	if (more || READ_ONCE(vgpu->ring_pending))
		mgpu_ring_kick(vgpu);
}

/* Run the ring for the guest; called in the vGPU's worker. */
void mgpu_ring_work(struct mgpu_vgpu *vgpu)
{
	ring_run(vgpu, false);
}

/* Run the ring after the guest wrote a doorbell; called in the VMM's thread. */
void mgpu_ring_doorbell(struct mgpu_vgpu *vgpu)
{
	if (READ_ONCE(vgpu->live))
		ring_run(vgpu, false);
}

static void frame_done(struct mgpu_vgpu *vgpu, const struct mgpu_rect *rect)
{
	u64 now = ktime_get_ns(), interval = 0, frame;

	if (vgpu->last_frame_ns) {
		interval = now - vgpu->last_frame_ns;
		mgpu_hist_add(&vgpu->hists->interval, interval);
	}
	vgpu->last_frame_ns = now;
	frame = atomic64_inc_return(&vgpu->stats.frames);
	trace_mgpu_frame(vgpu->id, frame, interval, rect->width, rect->height);
}

/* Complete a lane's job: ops->done of 2D jobs, in an engine's thread. */
void mgpu_ring_draw_done(struct mgpu_job *job)
{
	struct mgpu_draw *draw = to_mgpu_draw(job);
	struct mgpu_vgpu *vgpu = job->vgpu;

	if (job->frame && !job->error)
		frame_done(vgpu, &draw->rect);
	lane_done(container_of(draw, struct mgpu_lane, draw));
	ring_run(vgpu, true);
}

/* Answer a work that a context has completed; called in an engine's thread. */
void mgpu_ring_work_done(struct mgpu_vgpu *vgpu, struct mgpu_work *work)
{
	llist_add(&work->done, &vgpu->works_done);
	ring_run(vgpu, true);
}

/* Answer a command that the device has completed; called in an engine's thread. */
void mgpu_ring_devcmd_done(struct mgpu_devcmd *dc)
{
	struct mgpu_vgpu *vgpu = dc->vgpu;

	llist_add(&dc->done_node, &vgpu->devcmds_done);
	ring_run(vgpu, true);
}

/* ---- setting up and releasing the ring ---- */

void mgpu_ring_init(struct mgpu_vgpu *vgpu)
{
	int i;

	mutex_init(&vgpu->ring_lock);
	mgpu_compat_hrtimer_setup(&vgpu->hold_timer, ring_hold_over,
				  CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	xa_init(&vgpu->bad_contexts);
	for (i = 0; i < MGPU_NR_VQS; i++)
		vgpu->lane[i].draw.job.vgpu = vgpu;
}

/* Allocate memory that only an open vGPU needs.  Return 0 or -ENOMEM. */
int mgpu_ring_open(struct mgpu_vgpu *vgpu)
{
	int i;

	if (!vgpu->hists) {
		struct mgpu_hists *hists = kzalloc(sizeof(*hists),
						   GFP_KERNEL_ACCOUNT);

		if (!hists)
			return -ENOMEM;
		/* Netlink may read the histograms at any time. */
		smp_store_release(&vgpu->hists, hists);
	}
	for (i = 0; i < MGPU_NR_VQS; i++) {
		vgpu->lane[i].chain.segs =
			kvcalloc(MGPU_MAX_CHAIN, sizeof(struct mgpu_seg),
				 GFP_KERNEL_ACCOUNT);
		if (!vgpu->lane[i].chain.segs)
			goto no_memory;
	}
	vgpu->cmdbufs.max = mgpu_on_device(vgpu) ? KEPT_ON_DEVICE : KEPT;
	vgpu->resp = kmalloc(MGPU_MAX_RESP, GFP_KERNEL_ACCOUNT);
	if (!vgpu->resp)
		goto no_memory;
	return 0;

no_memory:
	mgpu_ring_close(vgpu);
	return -ENOMEM;
}

void mgpu_ring_close(struct mgpu_vgpu *vgpu)
{
	int i;

	for (i = 0; i < MGPU_NR_VQS; i++) {
		struct mgpu_lane *lane = &vgpu->lane[i];

		kvfree(lane->chain.segs);
		lane->chain.segs = NULL;
		mgpu_cmdbuf_put(&vgpu->cmdbufs, &lane->buf);
	}
	mgpu_cmdbuf_drop(&vgpu->cmdbufs);
	kfree(vgpu->resp);
	vgpu->resp = NULL;
}

static struct mgpu_mem *pin_ring(struct mgpu_vgpu *vgpu, u64 addr, u32 len,
				 u32 align)
{
	struct mgpu_mem *mem;
	u64 end;
	int ret;

	if (addr % align || check_add_overflow(addr, (u64)len, &end))
		return ERR_PTR(-EINVAL);
	mem = mgpu_mem_pin_range(vgpu, addr, len);
	if (IS_ERR(mem))
		return mem;
	ret = mgpu_mem_map(mem);
	if (!ret)
		return mem;
	mgpu_mem_free(mem);
	return ERR_PTR(ret);
}

/* Set up an enabled queue: at DRIVER_OK, or when the guest enables it later. */
void mgpu_ring_enable_vq(struct mgpu_vgpu *vgpu, u32 vq)
{
	const struct mgpu_vq_regs *q = &vgpu->vq_regs[vq];
	struct mgpu_lane *lane = &vgpu->lane[vq];
	const u64 addr[3] = { q->desc, q->avail, q->used };
	const u32 len[3] = {
		q->size * sizeof(struct vring_desc),
		sizeof(struct vring_avail) + q->size * sizeof(__virtio16),
		sizeof(struct vring_used) +
			q->size * sizeof(struct vring_used_elem),
	};
	struct mgpu_mem *mem;
	int i;

	lockdep_assert_held(&vgpu->lock);

	for (i = 0; i < 3; i++) {
		mem = pin_ring(vgpu, addr[i], len[i], ring_align[i]);
		if (IS_ERR(mem)) {
			mgpu_virtio_broken(vgpu, vq, "ring outside of guest memory");
			return;
		}
		lane->mem[i] = mem;
	}
	lane->vring.num = q->size;
	lane->vring.last_avail = 0;
	lane->vring.used_idx = 0;
	/* Pairs with the acquire in run_lane(): the queue is set up. */
	smp_store_release(&lane->ready, true);
	mgpu_ring_kick(vgpu);
}

/* Start the queues that are enabled: the guest set DRIVER_OK. */
void mgpu_ring_start(struct mgpu_vgpu *vgpu)
{
	int i;

	lockdep_assert_held(&vgpu->lock);
	vgpu->dev_gen = mgpu_vgpu_gen(vgpu);
	WRITE_ONCE(vgpu->live, true);
	for (i = 0; i < MGPU_NR_VQS; i++) {
		if (vgpu->vq_regs[i].enabled)
			mgpu_ring_enable_vq(vgpu, i);
	}
}

/* Wait for the thread that runs the ring. */
void mgpu_ring_wait(struct mgpu_vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);

	mutex_lock(&vgpu->ring_lock);
	mutex_unlock(&vgpu->ring_lock);
}

/* Let the thread that runs the ring finish; no thread runs commands afterwards. */
void mgpu_ring_quiesce(struct mgpu_vgpu *vgpu)
{
	WRITE_ONCE(vgpu->live, false);
	mgpu_ring_wait(vgpu);
}

/* End the hold of a frame, and the lanes' jobs at their next tile. */
void mgpu_ring_cancel(struct mgpu_vgpu *vgpu)
{
	int i;

	hrtimer_cancel(&vgpu->hold_timer);
	for (i = 0; i < MGPU_NR_VQS; i++)
		mgpu_sched_cancel_job(&vgpu->lane[i].draw.job);
}

/* Release what the queues hold; commands in progress are dropped.  No job is in flight. */
void mgpu_ring_reset(struct mgpu_vgpu *vgpu)
{
	int i, j;

	lockdep_assert_held(&vgpu->ring_lock);

	for (i = 0; i < MGPU_NR_VQS; i++) {
		struct mgpu_lane *lane = &vgpu->lane[i];

		mgpu_draw_put(&lane->draw);
		for (j = 0; j < 3; j++) {
			mgpu_mem_free(lane->mem[j]);
			lane->mem[j] = NULL;
		}
		lane->ready = false;
		lane->broken = false;
		lane_idle(vgpu, lane);
		lane->answered = false;
		lane->awaited = false;
		lane->held_ns = 0;
	}
	mgpu_cmdbuf_drop(&vgpu->cmdbufs);
	vgpu->throttle = (struct mgpu_throttle){};
	vgpu->last_frame_ns = 0;
	xa_destroy(&vgpu->bad_contexts);
	vgpu->nr_bad_contexts = 0;
}

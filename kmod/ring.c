// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes commands from a vGPU's queues in order, has them carried out and
 * answers them.
 *
 * A queue has at most one command in progress.  While that one is held back or
 * its job is with the scheduler, the queue waits, and nothing else does.  What is
 * submitted to a context is the context's, and the queue goes on.
 *
 * Whoever has cause runs the ring: the VMM's thread that rings the doorbell,
 * the engine that is done with a job, and for the rest a work item.  ring_lock
 * is held meanwhile; who does not get it leaves ring_pending behind, and the
 * holder looks again.  So a command on its way from doorbell to interrupt wakes
 * one thread, the engine's, and a vGPU with more in its ring is in the run
 * queue again before the engine asks who is next.  An engine serves everybody
 * and must not wait for one VM: what needs guest memory to be pinned, or takes
 * long, it leaves to the work item.
 *
 * Nobody sleeps to pace: a hold is a timer.
 */
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "compat.h"
#include "mgpu.h"
#include "trace.h"

/* Streams up to that are checked by an engine, bytes. */
#define LIGHT_STREAM	SZ_16K

#define RING_BUDGET	64	/* commands in one run */
#define RING_BUDGET_ENGINE 8	/* the same, by an engine */

#define MAX_BAD_CONTEXTS 64	/* then all contexts are refused */

static const u16 ring_align[3] = { 16, 2, 4 };	/* VIRTIO 1.2, section 2.7 */

/* Has the work item look at the queues.  Any context. */
void mgpu_ring_kick(struct mgpu_vgpu *vgpu)
{
	if (READ_ONCE(vgpu->live))
		queue_work(mgpu_wq, &vgpu->ring_work);
}

/* A frame that was let go is the scheduler's. */
static void submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, u64 now)
{
	if (lane->job.frame)
		mgpu_throttle_frame(&vgpu->throttle, now);
	if (lane->held_ns)
		lane->job.held_ns = now - lane->held_ns;
	lane->held_ns = 0;
	mgpu_sched_submit(&lane->job);
}

/*
 * A hold is over.  Who turns HELD into something else owns the lane and the
 * throttle; a worker that looks at the same frame has done so, and will see
 * that it is time.
 */
static enum hrtimer_restart hold_over(struct hrtimer *timer)
{
	struct mgpu_vgpu *vgpu = container_of(timer, struct mgpu_vgpu,
					      hold_timer);
	struct mgpu_lane *lane = &vgpu->lane[MGPU_VQ_CONTROL];

	if (READ_ONCE(vgpu->live) &&
	    cmpxchg(&lane->state, MGPU_LANE_HELD, MGPU_LANE_BUSY) ==
	    MGPU_LANE_HELD)
		submit(vgpu, lane, ktime_get_ns());
	return HRTIMER_NORESTART;
}

static int read_guest(void *ctx, u64 addr, void *buf, size_t len)
{
	return mgpu_guest_read(ctx, addr, buf, len);
}

/* Copies the part of a command that can matter; 0 or -errno. */
static int fetch_cmd(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		     size_t *len)
{
	const struct mgpu_chain *c = &lane->chain;
	size_t want = min_t(u64, c->in_len, mgpu_on_device(vgpu) ?
			    sizeof(struct virtio_gpu_cmd_submit) +
			    MGPU_MAX_STREAM : MGPU_MAX_CMD), done = 0, n;
	u32 i;
	int ret;

	if (want > lane->buf_size) {
		void *buf;

		if (!vgpu->ring_nowait)
			buf = kvmalloc(want, GFP_KERNEL);
		else if (want <= LIGHT_STREAM)
			buf = kmalloc(want, GFP_NOWAIT | __GFP_NOWARN);
		else
			return -EAGAIN;
		if (!buf)
			return vgpu->ring_nowait ? -EAGAIN : -ENOMEM;
		kvfree(lane->buf);
		lane->buf = buf;
		lane->buf_size = want;
	}

	for (i = 0; i < c->nr_in && done < want; i++) {
		n = min_t(size_t, c->segs[i].len, want - done);
		ret = mgpu_guest_read(vgpu, c->segs[i].addr, lane->buf + done,
				      n);
		if (ret)
			return ret;
		done += n;
	}
	*len = done;
	return 0;
}

/*
 * Writes an answer and hands the buffer back.  What does not fit is cut off;
 * without room for a header there is no answer.
 */
static void answer(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		   const struct mgpu_chain *c, bool fenced, const void *resp,
		   size_t len)
{
	size_t done = 0, n;
	u32 i;

	if (c->out_len < sizeof(struct virtio_gpu_ctrl_hdr))
		len = 0;
	for (i = 0; i < c->nr_out && done < len; i++) {
		const struct mgpu_seg *seg = &c->segs[c->nr_in + i];

		n = min_t(size_t, seg->len, len - done);
		if (mgpu_guest_write(vgpu, seg->addr, resp + done, n))
			break;
		done += n;
	}
	mgpu_vring_push(&lane->vring, c->head, done);
	lane->answered = true;
	/* Somebody in the guest may be waiting for just this. */
	if (fenced || len > sizeof(struct virtio_gpu_ctrl_hdr))
		lane->awaited = true;
}

/* The pieces that a header's answer has room in; there may be one per byte. */
u32 mgpu_reply_segs(const struct mgpu_lane *lane)
{
	return min_t(u32, lane->chain.nr_out,
		     sizeof(struct virtio_gpu_ctrl_hdr));
}

/**
 * mgpu_reply_init - the lane's command is answered later
 * @reply: to be filled; its type is told in the end
 * @lane: free for the next command afterwards
 * @segs: room for mgpu_reply_segs() of them, for as long as @reply
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
		       struct mgpu_reply *r, u32 type)
{
	r->hdr.type = cpu_to_le32(type);
	answer(vgpu, lane, &r->chain,
	       r->hdr.flags & cpu_to_le32(VIRTIO_GPU_FLAG_FENCE), &r->hdr,
	       sizeof(r->hdr));
}

/*
 * Tells the guest what was answered.  What nobody waits for is told with the
 * answer to the job behind it, as long as the guest has half of its ring left:
 * a flip is one interrupt, not two.
 */
static void announce(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane)
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
			  u32 type)
{
	struct virtio_gpu_ctrl_hdr hdr;

	/* A fence is signalled after those before it, in the same queue. */
	if (lane == &vgpu->lane[MGPU_VQ_CONTROL] &&
	    is_fenced(&lane->cmd) && mgpu_devcmd_fence_waits(vgpu) &&
	    mgpu_devcmd_refuse(vgpu, lane, type))
		return;
	if (type != VIRTIO_GPU_RESP_OK_NODATA)
		atomic64_inc(&vgpu->stats.command_errors);
	mgpu_cmd_reply(&lane->cmd, type, &hdr);
	answer(vgpu, lane, &lane->chain, is_fenced(&lane->cmd), &hdr,
	       sizeof(hdr));
}

/* Whether the answer can be written without waiting for anything. */
static bool can_answer(struct mgpu_vgpu *vgpu, const struct mgpu_chain *c)
{
	size_t left = MGPU_MAX_RESP, n;
	u32 i;

	for (i = 0; vgpu->ring_nowait && i < c->nr_out && left; i++) {
		const struct mgpu_seg *seg = &c->segs[c->nr_in + i];

		n = min_t(size_t, seg->len, left);
		if (!mgpu_guest_ready(vgpu, seg->addr, n))
			return false;
		left -= n;
	}
	return true;
}

/* A frame: may it go now?  Otherwise the timer lets it. */
static void pace(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	u32 limit = READ_ONCE(vgpu->fps_limit);
	u64 now = ktime_get_ns(), wait;

	if (limit != vgpu->throttle.limit)
		mgpu_throttle_set(&vgpu->throttle, limit, now);

	wait = mgpu_throttle_wait(&vgpu->throttle, now);
	if (!wait) {
		WRITE_ONCE(lane->state, MGPU_LANE_BUSY);
		submit(vgpu, lane, now);
		return;
	}
	if (!lane->held_ns)
		lane->held_ns = now;
	/* From here on the lane may be the timer's. */
	smp_store_release(&lane->state, MGPU_LANE_HELD);
	hrtimer_start(&vgpu->hold_timer, ns_to_ktime(now + wait),
		      HRTIMER_MODE_ABS);
}

/* What can take long or wait: an engine does not do it. */
static bool is_heavy(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	switch (cmd->type) {
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
		return !READ_ONCE(vgpu->screen.display);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
	case VIRTIO_GPU_CMD_SET_SCANOUT:
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
	case VIRTIO_GPU_CMD_MOVE_CURSOR:
	case VIRTIO_GPU_CMD_UPDATE_CURSOR:
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return false;
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return cmd->size > LIGHT_STREAM;
	default:
		return true;
	}
}

/* Whether the command's context had a job that hung.  It can be ended. */
static bool is_refused(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	return cmd->ctx_id && cmd->type != VIRTIO_GPU_CMD_CTX_DESTROY &&
	       (vgpu->nr_bad_contexts >= MAX_BAD_CONTEXTS ||
		(vgpu->nr_bad_contexts &&
		 xa_load(&vgpu->bad_contexts, cmd->ctx_id)));
}

/*
 * A command that has just been taken from the queue.  False to put it back,
 * untouched, for the work item.
 */
static bool start(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane)
{
	void *resp = vgpu->resp;
	size_t resp_len = 0, len = 0;
	enum mgpu_cmd_next next = MGPU_CMD_ANSWER;
	u32 type;
	int ret;

	if (!can_answer(vgpu, &lane->chain))
		return false;
	ret = fetch_cmd(vgpu, lane, &len);
	if (ret == -EAGAIN)
		return false;
	if (ret == -ENOMEM) {
		memset(&lane->cmd, 0, sizeof(lane->cmd));
		answer_status(vgpu, lane, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
		return true;
	}
	if (ret) {
		mgpu_virtio_broken(vgpu, vq, "command outside of its memory");
		return true;
	}

	type = mgpu_cmd_decode(lane->buf, len, vq, &lane->cmd);
	if (!mgpu_cmd_offered(vgpu, &lane->cmd))
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (!type && vgpu->ring_nowait && is_heavy(vgpu, &lane->cmd))
		return false;
	atomic64_inc(&vgpu->stats.commands);
	if (!type && is_refused(vgpu, &lane->cmd))
		type = VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (!type)
		type = mgpu_cmd_run(vgpu, lane, resp, &resp_len, &next);
	/* Made anew it may try again. */
	if (lane->cmd.type == VIRTIO_GPU_CMD_CTX_DESTROY &&
	    (type == VIRTIO_GPU_RESP_OK_NODATA || next == MGPU_CMD_WORK) &&
	    xa_erase(&vgpu->bad_contexts, lane->cmd.ctx_id))
		vgpu->nr_bad_contexts--;

	if (next == MGPU_CMD_WORK)
		return true;
	if (next == MGPU_CMD_JOB) {
		lane->job.id = atomic64_inc_return(&vgpu->mdev->sched.next_job);
		lane->job.arrived_ns = ktime_get_ns();
		lane->job.held_ns = 0;
		trace_mgpu_job_submit(vgpu->id, lane->job.id, lane->job.kind,
				      lane->job.bytes);
		if (lane->job.frame) {
			pace(vgpu, lane);
		} else {
			WRITE_ONCE(lane->state, MGPU_LANE_BUSY);
			submit(vgpu, lane, lane->job.arrived_ns);
		}
	} else if (resp_len) {
		mgpu_cmd_reply(&lane->cmd, type, resp);
		answer(vgpu, lane, &lane->chain, is_fenced(&lane->cmd), resp,
		       resp_len);
	} else {
		answer_status(vgpu, lane, type);
	}
	return true;
}

/* A job took too long: its context is refused from now on. */
static void hung(struct mgpu_vgpu *vgpu, u32 ctx)
{
	if (ctx && !xa_load(&vgpu->bad_contexts, ctx) &&
	    vgpu->nr_bad_contexts < MAX_BAD_CONTEXTS) {
		vgpu->nr_bad_contexts++;
		/* When there is no memory to tell them apart, all are. */
		if (xa_err(xa_store(&vgpu->bad_contexts, ctx, xa_mk_value(1),
				    GFP_KERNEL)))
			vgpu->nr_bad_contexts = MAX_BAD_CONTEXTS;
	}
	dev_notice_ratelimited(vgpu->vdev.dev,
			       "a job of context %u took too long and was ended\n",
			       ctx);
	mgpu_netlink_event(vgpu, MGPU_EVENT_HUNG);
}

/* A VIRTIO_GPU_RESP_* for how a job ended. */
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
 * Whether a work's end can be told, even by an engine, which must not wait.
 * Then it has let go of its resources.
 */
static bool can_end(struct mgpu_vgpu *vgpu, struct mgpu_work *work)
{
	u32 i;

	if (!vgpu->ring_nowait)
		return true;
	if (work->error == -ETIMEDOUT || !can_answer(vgpu, &work->reply.chain))
		return false;
	for (i = 0; i < work->job.nr_bufs; i++) {
		if (work->res[i] &&
		    !mgpu_resource_put_unless_last(work->res[i]))
			return false;
		work->res[i] = NULL;
	}
	return true;
}

/* Answers for the works that contexts are done with; whether some are left. */
static bool end_works(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	struct mgpu_work *work, *next;
	LIST_HEAD(ended);

	/* The newest is first there. */
	llist_for_each_entry_safe(work, next, llist_del_all(&vgpu->works_done),
				  done)
		list_add(&work->node, &ended);
	list_splice_tail(&ended, &vgpu->works_ending);

	list_for_each_entry_safe(work, next, &vgpu->works_ending, node) {
		if (!can_end(vgpu, work))
			return true;
		list_del_init(&work->node);
		if (work->in_order)
			lane->state = MGPU_LANE_IDLE;
		if (work->error == -ETIMEDOUT)
			hung(vgpu, work->ctx);
		if (work->error)
			atomic64_inc(&vgpu->stats.command_errors);
		mgpu_hist_add(&vgpu->hists->latency,
			      ktime_get_ns() - work->arrived_ns);
		send_reply(vgpu, lane, &work->reply, job_answer(work->error));
		mgpu_work_free(vgpu, work);
	}
	return false;
}

/*
 * Answers for the commands that the device is done with, fences in the ring's
 * order: a guest takes a later one's signal for those before it.  Whether some
 * are left to the work item.
 */
static bool end_devcmds(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	struct mgpu_devcmd *cmd, *next;
	bool more = false, behind = false;

	llist_for_each_entry_safe(cmd, next,
				  llist_del_all(&vgpu->devcmds_done), done_node)
		cmd->done = true;

	list_for_each_entry_safe(cmd, next, &vgpu->devcmds, node) {
		bool ready = cmd->done && !(cmd->fenced && behind) &&
			     !mgpu_devcmd_mem_waits(cmd);

		if (ready && vgpu->ring_nowait &&
		    !(can_answer(vgpu, &cmd->reply.chain) &&
		      mgpu_devcmd_lighten(cmd))) {
			more = true;
			ready = false;
		}
		if (!ready) {
			behind |= cmd->fenced;
			continue;
		}
		list_del_init(&cmd->node);
		if (cmd->job.error == -ETIMEDOUT)
			hung(vgpu, cmd->guest_ctx);
		if (cmd->answer != VIRTIO_GPU_RESP_OK_NODATA)
			atomic64_inc(&vgpu->stats.command_errors);
		if (!cmd->local)
			mgpu_hist_add(&vgpu->hists->latency, ktime_get_ns() -
				      cmd->job.arrived_ns);
		send_reply(vgpu, lane, &cmd->reply, cmd->answer);
		mgpu_devcmd_end(cmd);
	}
	return more;
}

/*
 * The lane's job is done: answer its command.  False to leave that to the work
 * item.
 */
static bool finish(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane)
{
	struct mgpu_job *job = &lane->job;
	u32 type = job_answer(job->error);

	if (vgpu->ring_nowait) {
		if (job->error == -ETIMEDOUT ||
		    !can_answer(vgpu, &lane->chain))
			return false;
		if (job->res && !mgpu_resource_put_unless_last(job->res))
			return false;
		job->res = NULL;
	}

	if (job->error == -ETIMEDOUT)
		hung(vgpu, lane->cmd.ctx_id);

	if (job->res)
		mgpu_resource_put(job->res);
	job->res = NULL;
	lane->state = MGPU_LANE_IDLE;
	mgpu_hist_add(&vgpu->hists->latency, ktime_get_ns() - job->arrived_ns);
	answer_status(vgpu, lane, type);
	return true;
}

static bool ring_map(struct mgpu_lane *lane)
{
	lane->vring.desc = mgpu_mem_get(lane->mem[0]);
	lane->vring.avail = mgpu_mem_get(lane->mem[1]);
	lane->vring.used = mgpu_mem_get(lane->mem[2]);
	return lane->vring.desc && lane->vring.avail && lane->vring.used;
}

static void ring_unmap(struct mgpu_lane *lane)
{
	if (lane->vring.desc)
		mgpu_mem_put(lane->mem[0]);
	if (lane->vring.avail)
		mgpu_mem_put(lane->mem[1]);
	if (lane->vring.used)
		mgpu_mem_put(lane->mem[2]);
}

/* Whether the VMM unmaps the ring, and waits until nobody uses it. */
static bool ring_leaves(const struct mgpu_lane *lane)
{
	return READ_ONCE(lane->mem[0]->dead) || READ_ONCE(lane->mem[1]->dead) ||
	       READ_ONCE(lane->mem[2]->dead);
}

/* Returns whether there is more to do, which the work item is to do. */
static bool run_lane(struct mgpu_vgpu *vgpu, u32 vq)
{
	struct mgpu_lane *lane = &vgpu->lane[vq];
	struct mgpu_vring *vr = &lane->vring;
	unsigned int budget = vgpu->ring_nowait ? RING_BUDGET_ENGINE :
						  RING_BUDGET;
	bool more = false;
	int ret;

	lockdep_assert_held(&vgpu->ring_lock);

	/* Pairs with the release in mgpu_ring_enable_vq(). */
	if (!smp_load_acquire(&lane->ready) || lane->broken)
		return false;
	if (!ring_map(lane)) {
		mgpu_virtio_broken(vgpu, vq, "ring unmapped");
		goto out;
	}

	mgpu_vring_notify_disable(vr);
	if (vq == MGPU_VQ_CONTROL)
		more = end_works(vgpu, lane) | end_devcmds(vgpu, lane);
	while (!lane->broken) {
		/* Pairs with the release in mgpu_ring_job_done(). */
		switch (smp_load_acquire(&lane->state)) {
		case MGPU_LANE_BUSY:
			goto notify;
		case MGPU_LANE_DONE:
			if (finish(vgpu, vq, lane))
				continue;
			more = true;
			goto notify;
		case MGPU_LANE_HELD:
			/* Unless the timer has just let it go. */
			if (cmpxchg(&lane->state, MGPU_LANE_HELD,
				    MGPU_LANE_IDLE) == MGPU_LANE_HELD)
				pace(vgpu, lane);
			goto notify;
		case MGPU_LANE_IDLE:
			break;
		}

		if (!budget-- || ring_leaves(lane)) {
			more = true;
			break;
		}
		ret = mgpu_vring_pop(vr, &lane->chain, read_guest, vgpu);
		if (ret > 0) {
			if (start(vgpu, vq, lane))
				continue;
			vr->last_avail--;
			more = true;
			break;
		}
		if (ret == -EAGAIN) {
			more = true;
			break;
		}
		if (ret < 0) {
			mgpu_virtio_broken(vgpu, vq,
					   ret == -ELOOP ? "endless chain" :
					   ret == -ERANGE ? "index out of range" :
					   ret == -EINVAL ? "wrong descriptor flags" :
					   "descriptor outside of memory");
			break;
		}
		if (!mgpu_vring_notify_enable(vr))
			break;
		mgpu_vring_notify_disable(vr);
	}

notify:
	announce(vgpu, vq, lane);
out:
	ring_unmap(lane);
	return more;
}

/*
 * Runs both queues, or leaves word for who does so now.  @nowait: nothing that
 * waits for the VM.
 */
static void ring_run(struct mgpu_vgpu *vgpu, bool nowait)
{
	bool more = false;

	WRITE_ONCE(vgpu->ring_pending, true);
	do {
		/* The word before the lock; pairs with the one below. */
		smp_mb();
		if (!mutex_trylock(&vgpu->ring_lock))
			return;
		/* Word that comes from here on makes for another round. */
		smp_store_mb(vgpu->ring_pending, false);
		if (READ_ONCE(vgpu->live)) {
			vgpu->ring_nowait = nowait;
			/* The cursor first: it is quick. */
			more |= run_lane(vgpu, MGPU_VQ_CURSOR);
			more |= run_lane(vgpu, MGPU_VQ_CONTROL);
		}
		mutex_unlock(&vgpu->ring_lock);
		/* Unlocked before looking for word. */
		smp_mb();
	} while (!nowait && !more && READ_ONCE(vgpu->ring_pending));

	if (more || READ_ONCE(vgpu->ring_pending))
		mgpu_ring_kick(vgpu);
}

static void ring_work(struct work_struct *work)
{
	ring_run(container_of(work, struct mgpu_vgpu, ring_work), false);
}

/* The guest rang a doorbell; called in the VMM's thread. */
void mgpu_ring_doorbell(struct mgpu_vgpu *vgpu)
{
	if (READ_ONCE(vgpu->live))
		ring_run(vgpu, false);
}

/* A lane's job is done; called by the scheduler in an engine's thread. */
void mgpu_ring_job_done(struct mgpu_job *job)
{
	struct mgpu_lane *lane = container_of(job, struct mgpu_lane, job);

	/* Who runs the ring reads job->error after it has seen this. */
	smp_store_release(&lane->state, MGPU_LANE_DONE);
	ring_run(job->vgpu, true);
}

/* A context is done with a work; called in an engine's thread. */
void mgpu_ring_work_done(struct mgpu_vgpu *vgpu, struct mgpu_work *work)
{
	llist_add(&work->done, &vgpu->works_done);
	ring_run(vgpu, true);
}

/* The device is done with a command; called in an engine's thread. */
void mgpu_ring_devcmd_done(struct mgpu_devcmd *cmd)
{
	struct mgpu_vgpu *vgpu = cmd->vgpu;

	llist_add(&cmd->done_node, &vgpu->devcmds_done);
	ring_run(vgpu, true);
}

void mgpu_ring_init(struct mgpu_vgpu *vgpu)
{
	int i;

	mutex_init(&vgpu->ring_lock);
	INIT_WORK(&vgpu->ring_work, ring_work);
	mgpu_compat_hrtimer_setup(&vgpu->hold_timer, hold_over,
				  CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	xa_init(&vgpu->resources);
	xa_init(&vgpu->bad_contexts);
	xa_init(&vgpu->contexts);
	init_llist_head(&vgpu->works_done);
	INIT_LIST_HEAD(&vgpu->works_ending);
	xa_init(&vgpu->devctxs);
	INIT_LIST_HEAD(&vgpu->devcmds);
	init_llist_head(&vgpu->devcmds_done);
	for (i = 0; i < MGPU_NR_VQS; i++)
		vgpu->lane[i].job.vgpu = vgpu;
}

/* Memory that only an open vGPU needs. */
int mgpu_ring_open(struct mgpu_vgpu *vgpu)
{
	int i;

	if (!vgpu->hists) {
		struct mgpu_hists *hists = kzalloc(sizeof(*hists),
						   GFP_KERNEL_ACCOUNT);

		if (!hists)
			return -ENOMEM;
		/* Netlink reads them at any time. */
		smp_store_release(&vgpu->hists, hists);
	}
	for (i = 0; i < MGPU_NR_VQS; i++) {
		vgpu->lane[i].chain.segs =
			kvcalloc(MGPU_MAX_CHAIN, sizeof(struct mgpu_seg),
				 GFP_KERNEL_ACCOUNT);
		if (!vgpu->lane[i].chain.segs)
			goto no_memory;
	}
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
		kvfree(lane->buf);
		lane->buf = NULL;
		lane->buf_size = 0;
	}
	kfree(vgpu->resp);
	vgpu->resp = NULL;
}

static struct mgpu_mem *pin_ring(struct mgpu_vgpu *vgpu, u64 addr, u32 len,
				 u32 align)
{
	u64 end;

	if (addr % align || check_add_overflow(addr, (u64)len, &end))
		return ERR_PTR(-EINVAL);
	return mgpu_mem_pin_range(vgpu, addr, len);
}

/* The guest enabled a queue of a device that is in use, or started it. */
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
			mgpu_virtio_broken(vgpu, vq, "ring not in memory");
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

/* The guest set DRIVER_OK. */
void mgpu_ring_start(struct mgpu_vgpu *vgpu)
{
	int i;

	lockdep_assert_held(&vgpu->lock);
	vgpu->dev_gen = mgpu_device_gen(vgpu->mdev);
	WRITE_ONCE(vgpu->live, true);
	for (i = 0; i < MGPU_NR_VQS; i++) {
		if (vgpu->vq_regs[i].enabled)
			mgpu_ring_enable_vq(vgpu, i);
	}
}

/* Nothing runs, waits or is mapped afterwards; commands in progress are lost. */
void mgpu_ring_stop(struct mgpu_vgpu *vgpu)
{
	int i, j;

	lockdep_assert_held(&vgpu->lock);

	WRITE_ONCE(vgpu->live, false);
	/* Who runs the ring now finishes; nobody begins. */
	mutex_lock(&vgpu->ring_lock);
	mutex_unlock(&vgpu->ring_lock);
	mgpu_readback_quiesce(vgpu);
	hrtimer_cancel(&vgpu->hold_timer);
	mgpu_context_end_all(vgpu);
	mgpu_sched_cancel(vgpu);
	cancel_work_sync(&vgpu->ring_work);

	mutex_lock(&vgpu->ring_lock);
	mgpu_work_free_all(vgpu);
	mgpu_devcmd_stop(vgpu);
	for (i = 0; i < MGPU_NR_VQS; i++) {
		struct mgpu_lane *lane = &vgpu->lane[i];

		if (lane->job.res)
			mgpu_resource_put(lane->job.res);
		lane->job.res = NULL;
		for (j = 0; j < 3; j++) {
			mgpu_mem_free(lane->mem[j]);
			lane->mem[j] = NULL;
		}
		lane->ready = false;
		lane->broken = false;
		lane->state = MGPU_LANE_IDLE;
		lane->answered = false;
		lane->awaited = false;
		lane->held_ns = 0;
	}
	vgpu->throttle = (struct mgpu_throttle){};
	vgpu->last_frame_ns = 0;
	xa_destroy(&vgpu->bad_contexts);
	vgpu->nr_bad_contexts = 0;
	mutex_unlock(&vgpu->ring_lock);
}

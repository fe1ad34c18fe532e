// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring worker: takes commands from a vGPU's queues in order, has them
 * carried out and answers them.  One work item per vGPU; it never sleeps to
 * pace.
 *
 * A queue has at most one command in progress.  While that one is held back or
 * its job is with the scheduler, the queue waits, and nothing else does.
 */
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "compat.h"
#include "mgpu.h"
#include "trace.h"

#define RING_BUDGET	64	/* commands in one run of the worker */

static const u16 ring_align[3] = { 16, 2, 4 };	/* VIRTIO 1.2, section 2.7 */

/* Has the worker look at the queues. */
void mgpu_ring_kick(struct mgpu_vgpu *vgpu)
{
	if (READ_ONCE(vgpu->live))
		queue_work(mgpu_wq, &vgpu->ring_work);
}

static enum hrtimer_restart hold_over(struct hrtimer *timer)
{
	mgpu_ring_kick(container_of(timer, struct mgpu_vgpu, hold_timer));
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
	size_t want = min_t(u64, c->in_len, MGPU_MAX_CMD), done = 0, n;
	u32 i;
	int ret;

	if (want > lane->buf_size) {
		void *buf = kvmalloc(want, GFP_KERNEL);

		if (!buf)
			return -ENOMEM;
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
		   const void *resp, size_t len)
{
	const struct mgpu_chain *c = &lane->chain;
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
}

static void answer_status(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			  u32 type)
{
	struct virtio_gpu_ctrl_hdr hdr;

	if (type != VIRTIO_GPU_RESP_OK_NODATA)
		atomic64_inc(&vgpu->stats.command_errors);
	mgpu_cmd_reply(&lane->cmd, type, &hdr);
	answer(vgpu, lane, &hdr, sizeof(hdr));
}

/* The job that the lane has ready goes to the scheduler. */
static void submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	u64 held;

	if (lane->held_ns) {
		held = ktime_get_ns() - lane->held_ns;
		lane->held_ns = 0;
		atomic64_add(held, &vgpu->stats.throttled_ns);
		atomic64_inc(&vgpu->stats.throttled);
		trace_mgpu_throttle(vgpu->id,
				    atomic64_read(&vgpu->stats.frames) + 1,
				    held, MGPU_THROTTLE_FPS);
	}
	WRITE_ONCE(lane->state, MGPU_LANE_BUSY);
	mgpu_sched_submit(&lane->job);
}

/* A frame: may it go now?  Otherwise the timer brings the worker back. */
static void pace(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	u32 limit = READ_ONCE(vgpu->fps_limit);
	u64 now = ktime_get_ns(), wait;

	if (limit != vgpu->throttle.limit)
		mgpu_throttle_set(&vgpu->throttle, limit, now);

	wait = mgpu_throttle_wait(&vgpu->throttle, now);
	if (wait) {
		if (!lane->held_ns)
			lane->held_ns = now;
		lane->state = MGPU_LANE_HELD;
		hrtimer_start(&vgpu->hold_timer, ns_to_ktime(wait),
			      HRTIMER_MODE_REL);
		return;
	}
	mgpu_throttle_frame(&vgpu->throttle, now);
	submit(vgpu, lane);
}

/* A command that has just been taken from the queue. */
static void start(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane)
{
	u8 resp[MGPU_MAX_RESP];
	size_t resp_len = 0, len = 0;
	bool job = false;
	u32 type;
	int ret;

	atomic64_inc(&vgpu->stats.commands);
	ret = fetch_cmd(vgpu, lane, &len);
	if (ret == -ENOMEM) {
		memset(&lane->cmd, 0, sizeof(lane->cmd));
		answer_status(vgpu, lane, VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
		return;
	}
	if (ret) {
		mgpu_virtio_broken(vgpu, vq, "command outside of its memory");
		return;
	}

	type = mgpu_cmd_decode(lane->buf, len, vq, &lane->cmd);
	if (!type)
		type = mgpu_cmd_run(vgpu, lane, resp, &resp_len, &job);

	if (job) {
		if (lane->job.frame)
			pace(vgpu, lane);
		else
			submit(vgpu, lane);
	} else if (resp_len) {
		mgpu_cmd_reply(&lane->cmd, type, (void *)resp);
		answer(vgpu, lane, resp, resp_len);
	} else {
		answer_status(vgpu, lane, type);
	}
}

/* The lane's job is done: answer its command. */
static void finish(struct mgpu_vgpu *vgpu, u32 vq, struct mgpu_lane *lane)
{
	struct mgpu_job *job = &lane->job;
	u32 type = VIRTIO_GPU_RESP_OK_NODATA;

	if (job->error == -ENOMEM)
		type = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	else if (job->error)
		type = VIRTIO_GPU_RESP_ERR_UNSPEC;

	if (job->res)
		mgpu_resource_put(job->res);
	job->res = NULL;
	lane->state = MGPU_LANE_IDLE;
	answer_status(vgpu, lane, type);
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

static void run_lane(struct mgpu_vgpu *vgpu, u32 vq)
{
	struct mgpu_lane *lane = &vgpu->lane[vq];
	struct mgpu_vring *vr = &lane->vring;
	unsigned int budget = RING_BUDGET;
	u16 used;
	int ret;

	/* Pairs with the release in mgpu_ring_enable_vq(). */
	if (!smp_load_acquire(&lane->ready) || lane->broken)
		return;
	if (!ring_map(lane)) {
		mgpu_virtio_broken(vgpu, vq, "ring unmapped");
		goto out;
	}

	used = vr->used_idx;
	mgpu_vring_notify_disable(vr);
	while (!lane->broken) {
		/* Pairs with the release in mgpu_ring_job_done(). */
		switch (smp_load_acquire(&lane->state)) {
		case MGPU_LANE_BUSY:
			goto notify;
		case MGPU_LANE_DONE:
			finish(vgpu, vq, lane);
			continue;
		case MGPU_LANE_HELD:
			pace(vgpu, lane);
			if (lane->state == MGPU_LANE_HELD)
				goto notify;
			continue;
		case MGPU_LANE_IDLE:
			break;
		}

		if (!budget--) {
			mgpu_ring_kick(vgpu);
			break;
		}
		ret = mgpu_vring_pop(vr, &lane->chain, read_guest, vgpu);
		if (ret > 0) {
			start(vgpu, vq, lane);
			continue;
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
	if (vr->used_idx != used && mgpu_vring_wants_interrupt(vr))
		mgpu_irq_queue(vgpu, vq);
out:
	ring_unmap(lane);
}

static void ring_work(struct work_struct *work)
{
	struct mgpu_vgpu *vgpu = container_of(work, struct mgpu_vgpu,
					      ring_work);

	if (!READ_ONCE(vgpu->live))
		return;
	/* The cursor first: it is quick. */
	run_lane(vgpu, MGPU_VQ_CURSOR);
	run_lane(vgpu, MGPU_VQ_CONTROL);
}

/* A lane's job is done; called by the scheduler in any task context. */
void mgpu_ring_job_done(struct mgpu_job *job)
{
	struct mgpu_lane *lane = container_of(job, struct mgpu_lane, job);

	/* The worker reads job->error after it has seen this. */
	smp_store_release(&lane->state, MGPU_LANE_DONE);
	mgpu_ring_kick(job->vgpu);
}

void mgpu_ring_init(struct mgpu_vgpu *vgpu)
{
	int i;

	INIT_WORK(&vgpu->ring_work, ring_work);
	mgpu_compat_hrtimer_setup(&vgpu->hold_timer, hold_over,
				  CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	xa_init(&vgpu->resources);
	for (i = 0; i < MGPU_NR_VQS; i++)
		vgpu->lane[i].job.vgpu = vgpu;
}

/* Memory that only an open vGPU needs. */
int mgpu_ring_open(struct mgpu_vgpu *vgpu)
{
	int i;

	for (i = 0; i < MGPU_NR_VQS; i++) {
		vgpu->lane[i].chain.segs =
			kvcalloc(MGPU_MAX_CHAIN, sizeof(struct mgpu_seg),
				 GFP_KERNEL_ACCOUNT);
		if (!vgpu->lane[i].chain.segs) {
			mgpu_ring_close(vgpu);
			return -ENOMEM;
		}
	}
	return 0;
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
	cancel_work_sync(&vgpu->ring_work);
	hrtimer_cancel(&vgpu->hold_timer);
	mgpu_sched_cancel(vgpu);
	/* A timer or a job that saw the device live may have queued it again. */
	cancel_work_sync(&vgpu->ring_work);

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
		lane->held_ns = 0;
	}
	vgpu->throttle = (struct mgpu_throttle){};
	vgpu->last_frame_ns = 0;
}

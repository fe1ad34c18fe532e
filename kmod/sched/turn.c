// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns: engine time of a vGPU that no command of its guest stands for.
 *
 * A guest may write work into memory that it shares with the process that executes for it,
 * as with Venus.  That work does not pass the ring.  So the back end asks for turns: a turn
 * is a job, which waits, is limited and is charged as those of commands, and lasts until the
 * back end completes it.  It is queued behind the commands that the guest has submitted before.
 * The back end asks for the next turn before it completes one, so that the vGPU has a job that
 * the scheduler can choose then.
 */
#include <linux/export.h>
#include <linux/ktime.h>

#include "mgpu.h"
#include "sched/turn.h"
#include "trace.h"

static struct mgpu_turn *to_turn(struct mgpu_job *job)
{
	return container_of(job, struct mgpu_turn, job);
}

static struct mgpu_msg *turn_msgs(struct mgpu_job *job, u32 *nr)
{
	*nr = 1;
	WRITE_ONCE(to_turn(job)->begun, true);
	return &to_turn(job)->msg;
}

/* ops->done */
static void turn_done(struct mgpu_job *job)
{
	/* It may be submitted again behind this; pairs with find_turn(). */
	smp_store_release(&to_turn(job)->busy, false);
}

static const struct mgpu_job_ops turn_ops = {
	.in_device = true,
	.msgs = turn_msgs,
	.done = turn_done,
};

void mgpu_turn_init(struct mgpu_vgpu *vgpu)
{
	mutex_init(&vgpu->turns.lock);
}

/*
 * Wait until no turn is being submitted.  The vGPU is not live, so none is submitted
 * afterwards.
 */
void mgpu_turn_quiesce(struct mgpu_vgpu *vgpu)
{
	mutex_lock(&vgpu->turns.lock);
	mutex_unlock(&vgpu->turns.lock);
}

/* Forget the turns of a vGPU that has no job in flight: one that waited was dropped. */
void mgpu_turn_stop(struct mgpu_vgpu *vgpu)
{
	int i;

	mutex_lock(&vgpu->turns.lock);
	for (i = 0; i < MGPU_TURNS; i++)
		vgpu->turns.turn[i].busy = false;
	mutex_unlock(&vgpu->turns.lock);
}

/* Return a turn that can be submitted; NULL if one waits already. */
static struct mgpu_turn *find_turn(struct mgpu_vgpu *vgpu)
{
	struct mgpu_turn *turn, *unused = NULL;

	for (turn = vgpu->turns.turn; turn < vgpu->turns.turn + MGPU_TURNS; turn++) {
		/* Pairs with the release in turn_done(). */
		if (!smp_load_acquire(&turn->busy))
			unused = turn;
		else if (!READ_ONCE(turn->begun))
			return NULL;
	}
	return unused;
}

static void submit(struct mgpu_vgpu *vgpu, struct mgpu_turn *turn)
{
	struct mgpu_job *job = &turn->job;

	lockdep_assert_held(&vgpu->turns.lock);
	turn->busy = true;
	turn->begun = false;
	turn->cmd = (struct virtio_gpu_ctrl_hdr){};
	turn->msg = (struct mgpu_msg){
		.buf = &turn->cmd, .len = sizeof(turn->cmd), .resp = &turn->resp,
		.resp_len = sizeof(turn->resp), .turn = true, .job = job,
	};
	*job = (struct mgpu_job){
		.node = LIST_HEAD_INIT(job->node), .vgpu = vgpu, .ops = &turn_ops,
		.kind = MGPU_JOB_DEVICE, .arrived_ns = ktime_get_ns(),
		.id = atomic64_inc_return(&vgpu->mdev->sched.next_job),
	};
	trace_mgpu_job_submit(vgpu->id, job->id, job->kind, job->bytes);
	mgpu_sched_submit(job);
}

/**
 * mgpu_vgpu_turn - ask for a turn
 * @vgpu: open vGPU of a device with capsets
 *
 * The back end gets a job with one message, which has @turn and no command.
 *
 * Context: may sleep.
 * Return: 0; -EBUSY if a turn waits already, or too many are not over; -EAGAIN while the guest
 * has no driver; -EACCES under quarantine.
 */
int mgpu_vgpu_turn(struct mgpu_vgpu *vgpu)
{
	struct mgpu_turn *turn;
	int ret = 0;

	mutex_lock(&vgpu->turns.lock);
	turn = find_turn(vgpu);
	if (!turn)
		ret = -EBUSY;
	else if (!READ_ONCE(vgpu->live))
		ret = -EAGAIN;
	else if (READ_ONCE(vgpu->quarantine))
		ret = -EACCES;
	else
		submit(vgpu, turn);
	mutex_unlock(&vgpu->turns.lock);
	return ret;
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_turn);

// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a job may run: queues jobs per vGPU, asks the policy who is next,
 * accounts and charges what was used.
 */
#include <linux/export.h>
#include <linux/ktime.h>

#include "sched_policy.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

void mgpu_sched_init(struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;

	spin_lock_init(&sched->lock);
	init_waitqueue_head(&sched->idle);
	sched->policy = &mgpu_policy_weighted;
	sched->queue = RB_ROOT_CACHED;
}

void mgpu_sched_entity_init(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched_entity *e = &vgpu->entity;

	INIT_LIST_HEAD(&e->jobs);
	RB_CLEAR_NODE(&e->node);
	e->weight = vgpu->type->desc->weight;
}

void mgpu_sched_set_weight(struct mgpu_vgpu *vgpu, u32 weight)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	spin_lock(&sched->lock);
	vgpu->entity.weight = weight;
	spin_unlock(&sched->lock);
}

static void enqueue(struct mgpu_sched *sched, struct mgpu_sched_entity *e)
{
	lockdep_assert_held(&sched->lock);
	if (e->queued || list_empty(&e->jobs))
		return;
	sched->policy->enqueue(sched, e);
	e->queued = true;
}

/**
 * mgpu_sched_submit - hand a job to the scheduler
 * @job: filled in; the scheduler's until mgpu_ring_job_done()
 *
 * Context: task context.
 */
void mgpu_sched_submit(struct mgpu_job *job)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_device *mdev = vgpu->mdev;
	struct mgpu_sched *sched = &mdev->sched;

	job->id = atomic64_inc_return(&sched->next_job);
	job->submit_ns = ktime_get_ns();
	trace_mgpu_job_submit(vgpu->id, job->id, job->kind, job->bytes);

	spin_lock(&sched->lock);
	list_add_tail(&job->node, &vgpu->entity.jobs);
	enqueue(sched, &vgpu->entity);
	spin_unlock(&sched->lock);

	mdev->ops->kick(mdev);
}

/**
 * mgpu_sched_next - take the job that is to run next
 * @mdev: device
 *
 * Context: task context, from the back end.
 * Return: a job, to be given to mgpu_job_done(), or NULL when there is none.
 */
struct mgpu_job *mgpu_sched_next(struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;
	struct mgpu_sched_entity *e;
	struct mgpu_job *job = NULL;
	u64 waited;

	spin_lock(&sched->lock);
	e = sched->policy->pick(sched);
	if (e) {
		e->queued = false;
		job = list_first_entry(&e->jobs, struct mgpu_job, node);
		list_del_init(&job->node);
		e->running++;
		enqueue(sched, e);
	}
	spin_unlock(&sched->lock);
	if (!job)
		return NULL;

	waited = ktime_get_ns() - job->submit_ns;
	atomic64_add(waited, &job->vgpu->stats.queue_ns);
	trace_mgpu_job_start(job->vgpu->id, job->id, job->kind, waited);
	return job;
}
EXPORT_SYMBOL_GPL(mgpu_sched_next);

/*
 * eBPF charges, as a rule: the program on the tracepoint calls mgpu_charge().
 * When it has not, for whatever reason, by the time the tracepoint returns,
 * the module charges by itself.  So no job goes uncharged and none is charged
 * twice, whether a program is attached or not.
 */
static u64 account(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_stats *st = &vgpu->stats;
	u64 charged = engine_ns;
	bool self;

	atomic64_inc(&st->jobs);
	if (job->error)
		atomic64_inc(&st->job_errors);
	atomic64_add(job->bytes, &st->bytes);
	atomic64_add(engine_ns, &st->engine_ns);
	atomic64_add(engine_cycles, &st->engine_cycles);

	atomic64_set_release(&job->charge, job->id);
	trace_mgpu_job_done(vgpu->id, job->id, job->kind, job->error,
			    engine_ns, engine_cycles, job->bytes);
	self = atomic64_cmpxchg(&job->charge, job->id, 0) == job->id;
	if (self)
		atomic64_add(engine_ns, &st->charged_self_ns);
	else
		charged = READ_ONCE(job->charged_ns);
	WRITE_ONCE(vgpu->last_charge_bpf, !self);
	return charged;
}

static void frame_done(struct mgpu_job *job)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	u64 now = ktime_get_ns(), interval = 0, frame;

	if (vgpu->last_frame_ns)
		interval = now - vgpu->last_frame_ns;
	vgpu->last_frame_ns = now;
	frame = atomic64_inc_return(&vgpu->stats.frames);
	trace_mgpu_frame(vgpu->id, frame, interval, job->rect.width,
			 job->rect.height);
}

/**
 * mgpu_job_done - a job has left the engine
 * @job: from mgpu_sched_next(); not the caller's any more
 * @error: 0 or a negative errno
 * @engine_ns: engine time that it used, nanoseconds
 * @engine_cycles: the same in TSC ticks
 *
 * Context: task context.
 */
void mgpu_job_done(struct mgpu_job *job, int error, u64 engine_ns,
		   u64 engine_cycles)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u64 charged;

	job->error = error;
	charged = account(job, engine_ns, engine_cycles);
	if (job->frame && !error)
		frame_done(job);

	spin_lock(&sched->lock);
	sched->policy->charge(sched, &vgpu->entity, charged);
	spin_unlock(&sched->lock);

	mgpu_ring_job_done(job);

	/* The vGPU may go away once nothing of it runs. */
	spin_lock(&sched->lock);
	vgpu->entity.running--;
	spin_unlock(&sched->lock);
	wake_up_all(&sched->idle);
}
EXPORT_SYMBOL_GPL(mgpu_job_done);

static bool is_idle(struct mgpu_sched *sched, struct mgpu_sched_entity *e)
{
	bool idle;

	spin_lock(&sched->lock);
	idle = !e->running;
	spin_unlock(&sched->lock);
	return idle;
}

/**
 * mgpu_sched_cancel - drop a vGPU's jobs and wait for those that run
 * @vgpu: vGPU, whose ring worker is stopped
 *
 * Context: may sleep; one tile at most, on a back end that runs tiles.
 */
void mgpu_sched_cancel(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	struct mgpu_sched_entity *e = &vgpu->entity;
	struct mgpu_job *job, *next;
	int i;

	spin_lock(&sched->lock);
	if (e->queued)
		sched->policy->dequeue(sched, e);
	e->queued = false;
	list_for_each_entry_safe(job, next, &e->jobs, node)
		list_del_init(&job->node);
	for (i = 0; i < MGPU_NR_VQS; i++)
		WRITE_ONCE(vgpu->lane[i].job.cancelled, true);
	spin_unlock(&sched->lock);

	wait_event(sched->idle, is_idle(sched, e));
}

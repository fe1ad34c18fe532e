// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a job may run: queues jobs per vGPU, asks the run queue whose is next,
 * accounts and charges what was used, and ends what takes too long.
 */
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "compat.h"
#include "mgpu.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct mgpu_vgpu *vgpu_of(struct mgpu_sched_entity *e)
{
	return container_of(e, struct mgpu_vgpu, entity);
}

static void arm_timer(struct mgpu_sched *sched)
{
	u64 at = mgpu_runq_due(&sched->rq);

	lockdep_assert_held(&sched->lock);
	/* One that fires early does no harm. */
	if (at >= sched->timer_due)
		return;
	sched->timer_due = at;
	hrtimer_start(&sched->timer, ns_to_ktime(at), HRTIMER_MODE_ABS);
}

/* A delayed vGPU is eligible again: the engines look. */
static enum hrtimer_restart due(struct hrtimer *timer)
{
	struct mgpu_device *mdev = container_of(timer, struct mgpu_device,
						sched.timer);
	unsigned long flags;

	spin_lock_irqsave(&mdev->sched.lock, flags);
	mdev->sched.timer_due = U64_MAX;
	/* An engine that is busy may yield to it. */
	mgpu_runq_advance(&mdev->sched.rq, ktime_get_ns());
	arm_timer(&mdev->sched);
	spin_unlock_irqrestore(&mdev->sched.lock, flags);
	mdev->ops->kick(mdev);
	return HRTIMER_NORESTART;
}

/*
 * Since when a job has been on an engine: not while it was behind others in the
 * device's own queue.
 */
static u64 on_engine_ns(const struct mgpu_sched *sched,
			const struct mgpu_job *job, u64 now)
{
	if (job->kind != MGPU_JOB_DEVICE)
		return job->ran_ns + now - job->start_ns;
	if (!list_is_first(&job->node, &sched->running))
		return 0;
	return now - max(job->start_ns, sched->left_ns);
}

/*
 * Ends jobs that have been on an engine for too long, at the second look that finds
 * them there: a host that stood still for a while has found no time to finish them.
 */
static void watch(struct work_struct *work)
{
	struct mgpu_sched *sched = container_of(to_delayed_work(work),
						struct mgpu_sched, watchdog);
	struct mgpu_device *mdev = container_of(sched, struct mgpu_device,
						sched);
	u64 limit = (u64)READ_ONCE(sched->job_timeout_ms) * NSEC_PER_MSEC;
	struct mgpu_job *job;
	u64 now;

	spin_lock_irq(&sched->lock);
	/* Under the lock: not before any of them started. */
	now = ktime_get_ns();
	list_for_each_entry(job, &sched->running, node) {
		if (job->expired || on_engine_ns(sched, job, now) <= limit)
			continue;
		if (!job->late) {
			job->late = true;
			continue;
		}
		WRITE_ONCE(job->expired, true);
		if (mdev->ops->job_timeout)
			mdev->ops->job_timeout(job);
	}
	mgpu_context_watch(sched, now);
	sched->watching = !list_empty(&sched->running);
	if (sched->watching)
		queue_delayed_work(mgpu_wq, &sched->watchdog,
				   msecs_to_jiffies(READ_ONCE(sched->job_timeout_ms)) / 4);
	spin_unlock_irq(&sched->lock);
}

void mgpu_sched_init(struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;

	spin_lock_init(&sched->lock);
	init_waitqueue_head(&sched->idle);
	INIT_LIST_HEAD(&sched->running);
	INIT_LIST_HEAD(&sched->parked);
	sched->slots = mdev->caps.depth_default ?: mgpu_max_slots(mdev);
	INIT_DELAYED_WORK(&sched->watchdog, watch);
	sched->timer_due = U64_MAX;
	mgpu_compat_hrtimer_setup(&sched->timer, due, CLOCK_MONOTONIC,
				  HRTIMER_MODE_ABS);
	sched->job_timeout_ms = MGPU_JOB_TIMEOUT_DEFAULT;
	sched->builtin = mgpu_policies[0];
	mgpu_runq_init(&sched->rq, mdev->id, mdev->caps.engines,
		       sched->builtin);
}

/* No vGPU exists any more; nothing calls into the device afterwards. */
void mgpu_sched_exit(struct mgpu_device *mdev)
{
	hrtimer_cancel(&mdev->sched.timer);
	cancel_delayed_work_sync(&mdev->sched.watchdog);
}

static void set_limit(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&sched->lock);
	mgpu_runq_set_limit(&sched->rq, &vgpu->entity, vgpu->gpu_limit,
			    vgpu->gpu_period, vgpu->gpu_burst, ktime_get_ns());
}

/**
 * mgpu_sched_attach - a vGPU comes into being
 * @vgpu: with id, type and device
 */
void mgpu_sched_attach(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	struct mgpu_sched_entity *e = &vgpu->entity;

	INIT_LIST_HEAD(&vgpu->jobs);
	e->id = vgpu->id;
	e->weight = vgpu->type->desc->weight;
	vgpu->gpu_period = MGPU_GPU_PERIOD_DEFAULT;

	spin_lock_irq(&sched->lock);
	mgpu_runq_attach(&sched->rq, e, ktime_get_ns());
	set_limit(vgpu);
	spin_unlock_irq(&sched->lock);
}

/**
 * mgpu_sched_detach - a vGPU, which has no jobs, goes
 * @vgpu: vGPU
 */
void mgpu_sched_detach(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	spin_lock_irq(&sched->lock);
	mgpu_runq_detach(&sched->rq, &vgpu->entity);
	spin_unlock_irq(&sched->lock);
}

/**
 * mgpu_sched_apply - put checked settings in force
 * @vgpu: vGPU
 * @set: settings in range
 */
void mgpu_sched_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&mgpu_registry_lock);

	spin_lock_irq(&sched->lock);
	if (set->mask & MGPU_SET_WEIGHT)
		mgpu_runq_set_weight(&sched->rq, &vgpu->entity, set->weight,
				     ktime_get_ns());
	if (set->mask & MGPU_SET_FPS_LIMIT) {
		WRITE_ONCE(vgpu->fps_limit, set->fps_limit);
		vgpu->entity.fps_limit = set->fps_limit;
	}
	if (set->mask & MGPU_SET_GPU_LIMIT)
		WRITE_ONCE(vgpu->gpu_limit, set->gpu_limit);
	if (set->mask & MGPU_SET_GPU_PERIOD)
		WRITE_ONCE(vgpu->gpu_period, set->gpu_period);
	if (set->mask & MGPU_SET_GPU_BURST)
		WRITE_ONCE(vgpu->gpu_burst, set->gpu_burst);
	if (set->mask & (MGPU_SET_GPU_LIMIT | MGPU_SET_GPU_PERIOD |
			 MGPU_SET_GPU_BURST))
		set_limit(vgpu);
	arm_timer(sched);
	spin_unlock_irq(&sched->lock);

	vgpu->mdev->ops->kick(vgpu->mdev);
}

/**
 * mgpu_sched_use - put a policy in force
 * @mdev: device
 * @policy: policy
 * @data: the policy's own, rq->policy_data
 *
 * What waits goes on waiting, under the new policy.
 */
void mgpu_sched_use(struct mgpu_device *mdev,
		    const struct mgpu_policy_ops *policy, void *data)
{
	struct mgpu_sched *sched = &mdev->sched;

	lockdep_assert_held(&mgpu_registry_lock);

	spin_lock_irq(&sched->lock);
	mgpu_runq_set_policy(&sched->rq, policy, data, ktime_get_ns());
	arm_timer(sched);
	spin_unlock_irq(&sched->lock);

	mdev->ops->kick(mdev);
}

/* The built-in policy with a name, or NULL. */
const struct mgpu_policy_ops *mgpu_policy_find(const char *name)
{
	const struct mgpu_policy_ops * const *p;

	for (p = mgpu_policies; *p; p++) {
		if (!strcmp((*p)->name, name))
			return *p;
	}
	return NULL;
}

/* What the run queue goes by; false when nothing waits. */
static bool set_head(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched_entity *e = &vgpu->entity;
	const struct mgpu_job *job;

	job = list_first_entry_or_null(&vgpu->jobs, struct mgpu_job, node);
	if (!job)
		return false;
	e->head_ns = job->submit_ns;
	e->head_seq = job->seq;
	e->head_frame = job->frame;
	return true;
}

/* Something of the vGPU may wait: the run queue gets to know of it. */
static void wake(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu, u64 now)
{
	struct mgpu_sched_entity *e = &vgpu->entity;

	lockdep_assert_held(&sched->lock);
	if (e->state != MGPU_ENTITY_IDLE || !set_head(vgpu))
		return;
	mgpu_runq_wake(&sched->rq, e, now);
	arm_timer(sched);
}

/* Another of the vGPU's jobs may be the oldest that waits, or none waits any more. */
static void rehead(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu, u64 now)
{
	struct mgpu_sched_entity *e = &vgpu->entity;

	if (e->state == MGPU_ENTITY_IDLE) {
		wake(sched, vgpu, now);
		return;
	}
	if (set_head(vgpu))
		mgpu_runq_move(&sched->rq, e, now);
	else
		mgpu_runq_sleep(&sched->rq, e);
	arm_timer(sched);
}

/**
 * mgpu_sched_slots - how many jobs may be with the device
 * @mdev: device
 * @slots: 1 to mgpu_max_slots()
 *
 * What runs beyond that goes on to the end of its tile, or of its job if it has
 * none.
 */
void mgpu_sched_slots(struct mgpu_device *mdev, u32 slots)
{
	struct mgpu_sched *sched = &mdev->sched;

	spin_lock_irq(&sched->lock);
	WRITE_ONCE(sched->slots, slots);
	sched->rq.engines = min(slots, mdev->caps.engines);
	spin_unlock_irq(&sched->lock);

	mdev->ops->kick(mdev);
}

/* The vGPU's first waiting job that computes, or the list's end; to add ahead of. */
static struct list_head *first_shard(struct mgpu_vgpu *vgpu)
{
	struct mgpu_job *other;

	list_for_each_entry(other, &vgpu->jobs, node) {
		if (other->shard)
			return &other->node;
	}
	return &vgpu->jobs;
}

/**
 * mgpu_sched_enqueue - a job waits for an engine
 * @job: in no list
 * @first: of a context: ahead of those of the vGPU's other contexts
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * What shows something goes ahead of what computes.
 *
 * Context: sched->lock held.
 */
void mgpu_sched_enqueue(struct mgpu_job *job, bool first, u64 now)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	bool ahead = !job->shard || first;

	lockdep_assert_held(&sched->lock);

	job->submit_ns = now;
	job->seq = ++sched->next_seq;
	list_add_tail(&job->node, ahead ? first_shard(vgpu) : &vgpu->jobs);
	if (list_is_first(&job->node, &vgpu->jobs))
		rehead(sched, vgpu, now);
}

/**
 * mgpu_sched_first - a context's job that waits goes ahead of those of the others
 * @job: from mgpu_sched_enqueue()
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Only of the vGPU's own: as to others', it waits on as it did.
 *
 * Context: sched->lock held.
 */
void mgpu_sched_first(struct mgpu_job *job, u64 now)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&sched->lock);

	list_del(&job->node);
	list_add_tail(&job->node, first_shard(vgpu));
	rehead(sched, vgpu, now);
}

/**
 * mgpu_sched_dequeue - a job does not wait any more
 * @job: from mgpu_sched_enqueue()
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Context: sched->lock held.
 */
void mgpu_sched_dequeue(struct mgpu_job *job, u64 now)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&sched->lock);

	list_del_init(&job->node);
	rehead(sched, vgpu, now);
}

/**
 * mgpu_sched_submit - hand a job to the scheduler
 * @job: filled in; the scheduler's until mgpu_ring_job_done()
 *
 * Context: any; a hold that is over submits from its timer.
 */
void mgpu_sched_submit(struct mgpu_job *job)
{
	struct mgpu_device *mdev = job->vgpu->mdev;
	struct mgpu_sched *sched = &mdev->sched;
	unsigned long flags;

	job->ran_ns = 0;
	job->late = false;

	spin_lock_irqsave(&sched->lock, flags);
	mgpu_sched_enqueue(job, false, ktime_get_ns());
	spin_unlock_irqrestore(&sched->lock, flags);

	mdev->ops->kick(mdev);
}

/**
 * mgpu_sched_next - take the job that is to run next
 * @mdev: device
 *
 * Context: task context, from the back end.
 * Return: a job, to be given to mgpu_job_done() or taken back by
 * mgpu_job_yield(), or NULL when there is none.
 */
struct mgpu_job *mgpu_sched_next(struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;
	u64 now = ktime_get_ns(), waited;
	struct mgpu_sched_entity *e = NULL;
	struct mgpu_job *job = NULL;
	struct mgpu_vgpu *vgpu;

	spin_lock_irq(&sched->lock);
	if (sched->nr_running < sched->slots) {
		e = mgpu_runq_pick(&sched->rq, now);
		/* One that is out of its time waits now and leaves the slot. */
		while (!e && mgpu_context_unpark(sched, now))
			e = mgpu_runq_pick(&sched->rq, now);
	}
	if (e) {
		vgpu = vgpu_of(e);
		job = list_first_entry(&vgpu->jobs, struct mgpu_job, node);
		list_move_tail(&job->node, &sched->running);
		sched->nr_running++;
		if (job->shard)
			mgpu_context_taken(job);
		job->start_ns = now;
		vgpu->running++;
		atomic64_set(&vgpu->stats.limited, e->limited);
		atomic64_set(&vgpu->stats.limited_ns, e->limited_ns);
		wake(sched, vgpu, now);
		if (!sched->watching) {
			sched->watching = true;
			queue_delayed_work(mgpu_wq, &sched->watchdog,
					   msecs_to_jiffies(READ_ONCE(sched->job_timeout_ms)) / 4);
		}
	}
	arm_timer(sched);
	spin_unlock_irq(&sched->lock);
	if (!job)
		return NULL;

	if (job->held_ns) {
		atomic64_add(job->held_ns, &vgpu->stats.throttled_ns);
		atomic64_inc(&vgpu->stats.throttled);
		trace_mgpu_throttle(vgpu->id,
				    atomic64_read(&vgpu->stats.frames) + 1,
				    job->held_ns, MGPU_THROTTLE_FPS);
		job->held_ns = 0;
	}
	waited = now - min(job->submit_ns, now);
	atomic64_add(waited, &vgpu->stats.queue_ns);
	trace_mgpu_job_start(vgpu->id, job->id, job->kind, waited);
	return job;
}
EXPORT_SYMBOL_GPL(mgpu_sched_next);

/*
 * eBPF charges, as a rule: the program on the tracepoint calls mgpu_charge().
 * When it has not, for whatever reason, by the time the tracepoint returns,
 * the module charges by itself.  So nothing goes uncharged and nothing is
 * charged twice, whether a program is attached or not.
 */
static void charge_begin(struct mgpu_job *job, u64 engine_ns,
			 u64 engine_cycles)
{
	struct mgpu_stats *st = &job->vgpu->stats;

	atomic64_add(engine_ns, &st->engine_ns);
	atomic64_add(engine_cycles, &st->engine_cycles);
	atomic64_set_release(&job->charge, job->id);
}

/* Returns what was charged. */
static u64 charge_end(struct mgpu_job *job, u64 engine_ns)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	bool self = atomic64_cmpxchg(&job->charge, job->id, 0) == job->id;

	if (self)
		atomic64_add(engine_ns, &vgpu->stats.charged_self_ns);
	WRITE_ONCE(vgpu->last_charge_bpf, !self);
	return self ? engine_ns : READ_ONCE(job->charged_ns);
}

/**
 * mgpu_hist_add - count a time
 * @h: histogram
 * @ns: nanoseconds
 */
void mgpu_hist_add(struct mgpu_hist *h, u64 ns)
{
	u64 us = div_u64(ns, NSEC_PER_USEC);
	u32 bucket = us ? ilog2(us) : 0;

	atomic64_inc(&h->count[min(bucket, MGPU_HIST_BUCKETS - 1)]);
}

static void frame_done(struct mgpu_job *job)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	u64 now = ktime_get_ns(), interval = 0, frame;

	if (vgpu->last_frame_ns) {
		interval = now - vgpu->last_frame_ns;
		mgpu_hist_add(&vgpu->hists->interval, interval);
	}
	vgpu->last_frame_ns = now;
	frame = atomic64_inc_return(&vgpu->stats.frames);
	trace_mgpu_frame(vgpu->id, frame, interval, job->rect.width,
			 job->rect.height);
}

/* Behind what a preempted job goes: of a context, what the vGPU shows. */
static struct list_head *own_first(struct mgpu_vgpu *vgpu,
				   const struct mgpu_job *job)
{
	struct list_head *behind = &vgpu->jobs;
	struct mgpu_job *other;

	list_for_each_entry(other, &vgpu->jobs, node) {
		if (!job->shard || other->shard)
			break;
		behind = &other->node;
	}
	return behind;
}

/* What the vGPU shows goes ahead of what it computes. */
static bool own_goes_first(const struct mgpu_job *job)
{
	const struct mgpu_job *first;

	first = list_first_entry_or_null(&job->vgpu->jobs, struct mgpu_job,
					 node);
	return job->shard && first && !first->shard;
}

/**
 * mgpu_job_yield - whether to let another vGPU's job go first
 * @job: on an engine, between two tiles
 * @engine_ns: engine time since it was taken, nanoseconds
 * @engine_cycles: the same in TSC ticks
 *
 * Context: task context, from the back end.
 * Return: false to go on with @job; true when it was taken back: it is not the
 * caller's any more, and will come again from mgpu_sched_next().
 */
bool mgpu_job_yield(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u64 now = ktime_get_ns(), charged;
	bool yield;

	if (job->shard && mgpu_context_sample_due(job, engine_ns))
		mgpu_context_sample(job, engine_ns, engine_cycles);
	/* A policy that is replaced goes after a grace period. */
	rcu_read_lock();
	yield = mgpu_runq_may_yield(&sched->rq);
	rcu_read_unlock();
	if (!yield && !READ_ONCE(job->stop) &&
	    READ_ONCE(sched->nr_running) <= READ_ONCE(sched->slots) &&
	    !(job->shard && !list_empty(&vgpu->jobs)))
		return false;

	spin_lock_irq(&sched->lock);
	yield = !job->cancelled && !job->expired &&
		(job->stop || sched->nr_running > sched->slots ||
		 own_goes_first(job) ||
		 mgpu_runq_should_yield(&sched->rq, &vgpu->entity, engine_ns,
					now));
	spin_unlock_irq(&sched->lock);
	if (!yield)
		return false;

	if (job->shard) {
		engine_ns += mgpu_context_save(job);
		mgpu_context_sample(job, engine_ns, engine_cycles);
	}
	charge_begin(job, engine_ns, engine_cycles);
	trace_mgpu_job_preempt(vgpu->id, job->id, job->kind, engine_ns,
			       engine_cycles);
	charged = charge_end(job, engine_ns);
	atomic64_inc(&vgpu->stats.preempted);

	now = ktime_get_ns();
	spin_lock_irq(&sched->lock);
	mgpu_runq_charge(&sched->rq, &vgpu->entity, charged, now);
	job->ran_ns += now - job->start_ns;
	job->start_ns = now;
	job->submit_ns = now;
	list_del_init(&job->node);
	sched->nr_running--;
	vgpu->running--;
	/* A reset that came meanwhile has dropped what waited before. */
	if (job->shard ? mgpu_context_left(job, now) : !job->cancelled) {
		list_add(&job->node, own_first(vgpu, job));
		rehead(sched, vgpu, now);
	}
	spin_unlock_irq(&sched->lock);
	wake_up_all(&sched->idle);
	return true;
}
EXPORT_SYMBOL_GPL(mgpu_job_yield);

/**
 * mgpu_job_done - a job has left the engine
 * @job: from mgpu_sched_next(); not the caller's any more
 * @error: 0 or a negative errno
 * @engine_ns: engine time since it was taken, nanoseconds
 * @engine_cycles: the same in TSC ticks
 *
 * Answers the guest and takes the vGPU's next commands, unless that would
 * have to wait for something.
 *
 * Context: task context.
 */
void mgpu_job_done(struct mgpu_job *job, int error, u64 engine_ns,
		   u64 engine_cycles)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	struct mgpu_stats *st = &vgpu->stats;
	u64 charged, now;

	if (job->expired) {
		error = -ETIMEDOUT;
		atomic64_inc(&st->timeouts);
	}
	job->error = error;
	if (job->shard) {
		job->bytes = job->shard->usage.bytes;
		mgpu_context_sample(job, engine_ns, engine_cycles);
	}
	atomic64_inc(&st->jobs);
	if (error)
		atomic64_inc(&st->job_errors);
	atomic64_add(job->bytes, &st->bytes);

	charge_begin(job, engine_ns, engine_cycles);
	trace_mgpu_job_done(vgpu->id, job->id, job->kind, job->error,
			    engine_ns, engine_cycles, job->bytes);
	charged = charge_end(job, engine_ns);
	if (job->frame && !error)
		frame_done(job);

	spin_lock_irq(&sched->lock);
	now = ktime_get_ns();
	if (list_is_first(&job->node, &sched->running))
		sched->left_ns = now;
	list_del_init(&job->node);
	sched->nr_running--;
	mgpu_runq_charge(&sched->rq, &vgpu->entity, charged, now);
	spin_unlock_irq(&sched->lock);

	if (job->shard)
		mgpu_context_job_done(job);
	else if (job->kind == MGPU_JOB_DEVICE)
		mgpu_devcmd_job_done(job);
	else
		mgpu_ring_job_done(job);

	/* The vGPU may go away once nothing of it runs. */
	spin_lock_irq(&sched->lock);
	vgpu->running--;
	spin_unlock_irq(&sched->lock);
	/* Who waits was in the queue before it looked, under the lock. */
	if (waitqueue_active(&sched->idle))
		wake_up_all(&sched->idle);
}
EXPORT_SYMBOL_GPL(mgpu_job_done);

static bool is_idle(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu)
{
	bool idle;

	spin_lock_irq(&sched->lock);
	idle = !vgpu->running;
	spin_unlock_irq(&sched->lock);
	return idle;
}

/**
 * mgpu_sched_cancel - drop a vGPU's jobs and wait for those that run
 * @vgpu: vGPU, whose ring is stopped
 *
 * Context: may sleep; one tile at most, on a back end that runs tiles.
 */
void mgpu_sched_cancel(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	struct mgpu_job *job, *next;
	int i;

	spin_lock_irq(&sched->lock);
	mgpu_runq_sleep(&sched->rq, &vgpu->entity);
	list_for_each_entry_safe(job, next, &vgpu->jobs, node)
		list_del_init(&job->node);
	for (i = 0; i < MGPU_NR_VQS; i++)
		WRITE_ONCE(vgpu->lane[i].job.cancelled, true);
	spin_unlock_irq(&sched->lock);

	wait_event(sched->idle, is_idle(sched, vgpu));
}

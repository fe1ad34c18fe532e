// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler core: queues jobs per vGPU, takes the next job in the run queue's
 * order, accounts for and charges engine time, and ends jobs that take too long.
 */
#include <linux/export.h>
#include <linux/ktime.h>

#include "compat.h"
#include "mgpu.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* After this time without jobs a vGPU does not count as a user of the device. */
#define CONTENDED_NS	NSEC_PER_SEC

static struct mgpu_vgpu *vgpu_of(struct mgpu_sched_entity *e)
{
	return container_of(e, struct mgpu_vgpu, entity);
}

static void arm_timer(struct mgpu_sched *sched)
{
	u64 at = mgpu_runq_due(&sched->rq);

	lockdep_assert_held(&sched->lock);
	/* A timer that fires early does no harm. */
	if (at >= sched->timer_due)
		return;
	sched->timer_due = at;
	hrtimer_start(&sched->timer, ns_to_ktime(at), HRTIMER_MODE_ABS);
}

/* A delayed vGPU is eligible again: wake the engines. */
static enum hrtimer_restart sched_due(struct hrtimer *timer)
{
	struct mgpu_device *mdev = container_of(timer, struct mgpu_device,
						sched.timer);
	unsigned long flags;

	spin_lock_irqsave(&mdev->sched.lock, flags);
	mdev->sched.timer_due = U64_MAX;
	/* A busy engine may yield to the vGPU. */
	mgpu_runq_advance(&mdev->sched.rq, ktime_get_ns());
	arm_timer(&mdev->sched);
	spin_unlock_irqrestore(&mdev->sched.lock, flags);
	mdev->ops->kick(mdev);
	return HRTIMER_NORESTART;
}

/*
 * Return for how long the job has had the engine since it was taken, in nanoseconds,
 * excluding time queued in the device.
 */
static u64 held_engine_ns(const struct mgpu_sched *sched,
			  const struct mgpu_job *job, u64 now)
{
	if (!job->ops->in_device)
		return now - job->start_ns;
	if (!list_is_first(&job->node, &sched->running))
		return 0;
	return now - max(job->start_ns, sched->left_ns);
}

/* Return the same for all times that it was taken. */
static u64 on_engine_ns(const struct mgpu_sched *sched,
			const struct mgpu_job *job, u64 now)
{
	return job->ran_ns + held_engine_ns(sched, job, now);
}

/* Queue a job of work that lost slots, for a slot that no other job wants. */
static bool sched_unpark(struct mgpu_sched *sched, u64 now)
{
	struct mgpu_parked *parked, *next;

	lockdep_assert_held(&sched->lock);
	list_for_each_entry_safe(parked, next, &sched->parked, node) {
		/* The vGPU's turn has not come; another one's may have. */
		if (parked->vgpu->entity.state == MGPU_ENTITY_DELAYED)
			continue;
		if (parked->unpark(parked, false, now))
			return true;
	}
	return false;
}

/* Requeue work that has been parked for MGPU_PREEMPT_MAX_MS. */
static void sched_unpark_overdue(struct mgpu_sched *sched, u64 now)
{
	struct mgpu_parked *parked, *next;

	lockdep_assert_held(&sched->lock);
	list_for_each_entry_safe(parked, next, &sched->parked, node) {
		if (now - parked->since_ns >= MGPU_PREEMPT_MAX_MS * NSEC_PER_MSEC)
			parked->unpark(parked, true, now);
	}
}

/*
 * End jobs that have been on an engine for too long.  The second look that finds a
 * job there ends it: a host that stood still for a while gave it no time to finish.
 */
static void sched_watch(struct work_struct *work)
{
	struct mgpu_sched *sched = container_of(to_delayed_work(work),
						struct mgpu_sched, watchdog);
	struct mgpu_device *mdev = container_of(sched, struct mgpu_device,
						sched);
	u64 limit = (u64)READ_ONCE(sched->job_timeout_ms) * NSEC_PER_MSEC;
	struct mgpu_job *job;
	u64 now;

	spin_lock_irq(&sched->lock);
	/* Read under the lock, so that it is not before any job's start. */
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
	sched_unpark_overdue(sched, now);
	sched->watching = !list_empty(&sched->running);
	if (sched->watching)
		queue_delayed_work(mgpu_wq, &sched->watchdog,
				   msecs_to_jiffies(READ_ONCE(sched->job_timeout_ms)) / 4);
	spin_unlock_irq(&sched->lock);
}

/* Tell user space of each vGPU whose quarantine began or was lifted. */
static void sched_tell(struct work_struct *work)
{
	struct mgpu_sched *sched = container_of(work, struct mgpu_sched, tell);
	struct mgpu_device *mdev = container_of(sched, struct mgpu_device,
						sched);
	struct mgpu_vgpu *vgpu;
	bool changed, on;
	u32 nr;

	mutex_lock(&mgpu_registry_lock);
	list_for_each_entry(vgpu, &mdev->vgpus, node) {
		spin_lock_irq(&sched->lock);
		changed = vgpu->quarantine_changed;
		vgpu->quarantine_changed = false;
		on = vgpu->quarantine;
		nr = mgpu_hangs_recent(&vgpu->hangs, ktime_get_ns());
		spin_unlock_irq(&sched->lock);
		if (!changed)
			continue;
		if (on)
			dev_warn(vgpu->vdev.dev,
				 "in quarantine, with %u hangs in %u s: its jobs fail until gpuctl vgpu set %u quarantine off\n",
				 nr, MGPU_HANG_WINDOW, vgpu->id);
		mgpu_netlink_event(vgpu, MGPU_EVENT_QUARANTINE);
	}
	mutex_unlock(&mgpu_registry_lock);
}

static void sched_set_quarantine(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu,
				 bool on)
{
	lockdep_assert_held(&sched->lock);
	if (!on)
		mgpu_hangs_forgive(&vgpu->hangs);
	if (vgpu->quarantine == on)
		return;
	WRITE_ONCE(vgpu->quarantine, on);
	vgpu->quarantine_changed = true;
	queue_work(mgpu_wq, &sched->tell);
}

/* Record that a job of the vGPU hung an engine or the device. */
static void sched_blame(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu, u64 now)
{
	u32 limit = READ_ONCE(sched->hang_limit);

	lockdep_assert_held(&sched->lock);
	atomic64_inc(&vgpu->stats.hangs);
	mgpu_hangs_add(&vgpu->hangs, now);
	if (limit && mgpu_hangs_recent(&vgpu->hangs, now) >= limit)
		sched_set_quarantine(sched, vgpu, true);
}

/**
 * mgpu_sched_lost - mark jobs that a device had when it lost them
 * @mdev: device
 * @vgpu: vGPU whose jobs are lost; NULL if those of all are
 * @culprit: job that they were lost for; NULL if that is not known
 *
 * Context: before the jobs are completed.
 */
void mgpu_sched_lost(struct mgpu_device *mdev, const struct mgpu_vgpu *vgpu,
		     struct mgpu_job *culprit)
{
	struct mgpu_sched *sched = &mdev->sched;
	struct mgpu_job *job;

	spin_lock_irq(&sched->lock);
	list_for_each_entry(job, &sched->running, node) {
		if (!job->ops->in_device || (vgpu && job->vgpu != vgpu))
			continue;
		job->lost = true;
		job->guilty = job == culprit;
	}
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
	INIT_DELAYED_WORK(&sched->watchdog, sched_watch);
	INIT_WORK(&sched->tell, sched_tell);
	sched->timer_due = U64_MAX;
	mgpu_compat_hrtimer_setup(&sched->timer, sched_due, CLOCK_MONOTONIC,
				  HRTIMER_MODE_ABS);
	sched->job_timeout_ms = MGPU_JOB_TIMEOUT_DEFAULT;
	sched->hang_limit = MGPU_HANG_LIMIT_DEFAULT;
	sched->builtin = mgpu_policies[0];
	mgpu_runq_init(&sched->rq, mdev->id, mdev->caps.engines,
		       sched->builtin);
}

/* Stop the timers of a device without vGPUs; no callback of the back end follows. */
void mgpu_sched_exit(struct mgpu_device *mdev)
{
	hrtimer_cancel(&mdev->sched.timer);
	cancel_delayed_work_sync(&mdev->sched.watchdog);
	cancel_work_sync(&mdev->sched.tell);
}

static void sched_set_limit(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&sched->lock);
	mgpu_runq_set_limit(&sched->rq, &vgpu->entity,
			    mgpu_bound_in_force(&vgpu->gpu), vgpu->gpu_period,
			    vgpu->gpu_burst, ktime_get_ns());
}

/**
 * mgpu_sched_attach - add a vGPU to the run queue
 * @vgpu: vGPU whose id, type and device are set
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
	sched_set_limit(vgpu);
	spin_unlock_irq(&sched->lock);
}

/**
 * mgpu_sched_detach - remove an idle vGPU from the run queue
 * @vgpu: vGPU without jobs
 */
void mgpu_sched_detach(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	spin_lock_irq(&sched->lock);
	mgpu_runq_detach(&sched->rq, &vgpu->entity);
	spin_unlock_irq(&sched->lock);
}

static void set_bound(u32 *bound, char by[TASK_COMM_LEN], u32 value,
		      const char *setter)
{
	WRITE_ONCE(*bound, value);
	strscpy(by, value ? setter : "", TASK_COMM_LEN);
}

static void sched_set_bounds(struct mgpu_vgpu *vgpu,
			     const struct mgpu_settings *set)
{
	lockdep_assert_held(&vgpu->mdev->sched.lock);

	if (set->mask & MGPU_SET_FPS_LIMIT)
		set_bound(&vgpu->fps.limit, vgpu->fps.limit_by, set->fps_limit,
			  set->by);
	if (set->mask & MGPU_SET_FPS_TARGET)
		set_bound(&vgpu->fps.target, vgpu->fps.target_by,
			  set->fps_target, set->by);
	if (set->mask & MGPU_SET_GPU_LIMIT)
		set_bound(&vgpu->gpu.limit, vgpu->gpu.limit_by, set->gpu_limit,
			  set->by);
	if (set->mask & MGPU_SET_GPU_TARGET)
		set_bound(&vgpu->gpu.target, vgpu->gpu.target_by,
			  set->gpu_target, set->by);
	WRITE_ONCE(vgpu->entity.fps_limit, mgpu_bound_in_force(&vgpu->fps));
}

/**
 * mgpu_sched_apply - put checked settings in force
 * @vgpu: vGPU
 * @set: settings in range
 *
 * Context: may sleep; must hold mgpu_registry_lock.
 */
void mgpu_sched_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&mgpu_registry_lock);

	spin_lock_irq(&sched->lock);
	if (set->mask & MGPU_SET_WEIGHT)
		mgpu_runq_set_weight(&sched->rq, &vgpu->entity, set->weight,
				     ktime_get_ns());
	sched_set_bounds(vgpu, set);
	if (set->mask & MGPU_SET_GPU_PERIOD)
		WRITE_ONCE(vgpu->gpu_period, set->gpu_period);
	if (set->mask & MGPU_SET_GPU_BURST)
		WRITE_ONCE(vgpu->gpu_burst, set->gpu_burst);
	if (set->mask & (MGPU_SET_GPU_LIMIT | MGPU_SET_GPU_TARGET |
			 MGPU_SET_GPU_PERIOD | MGPU_SET_GPU_BURST))
		sched_set_limit(vgpu);
	if (set->mask & MGPU_SET_QUARANTINE)
		sched_set_quarantine(sched, vgpu, set->quarantine);
	arm_timer(sched);
	spin_unlock_irq(&sched->lock);

	vgpu->mdev->ops->kick(vgpu->mdev);
}

/**
 * mgpu_sched_use - put a scheduling policy in force
 * @mdev: device
 * @policy: policy
 * @data: private data of the policy, for rq->policy_data
 *
 * Waiting jobs stay queued, under the new policy.
 *
 * Context: may sleep; must hold mgpu_registry_lock.
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

/* Return the built-in policy with a name, or NULL. */
const struct mgpu_policy_ops *mgpu_policy_find(const char *name)
{
	const struct mgpu_policy_ops * const *p;

	for (p = mgpu_policies; *p; p++) {
		if (!strcmp((*p)->name, name))
			return *p;
	}
	return NULL;
}

/*
 * Tell the run queue of the vGPU's oldest waiting job; false if no job waits, or if the vGPU
 * has as many in flight as it may.
 */
static bool sched_set_head(struct mgpu_vgpu *vgpu)
{
	u32 depth = vgpu->mdev->caps.vgpu_depth;
	struct mgpu_sched_entity *e = &vgpu->entity;
	const struct mgpu_job *job;

	job = list_first_entry_or_null(&vgpu->jobs, struct mgpu_job, node);
	if (!job || (depth && e->running >= depth) ||
	    (job->slice && e->running >= MGPU_SLICE_DEPTH))
		return false;
	e->head_ns = job->submit_ns;
	e->head_seq = job->seq;
	e->head_frame = job->frame;
	return true;
}

/* Put an idle vGPU into the run queue if a job of it waits. */
static void sched_wake(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu, u64 now)
{
	struct mgpu_sched_entity *e = &vgpu->entity;

	lockdep_assert_held(&sched->lock);
	if (e->state != MGPU_ENTITY_IDLE || !sched_set_head(vgpu))
		return;
	mgpu_runq_wake(&sched->rq, e, now);
	arm_timer(sched);
}

/* Update the run queue after the head of the vGPU's waiting jobs changed. */
static void sched_rehead(struct mgpu_sched *sched, struct mgpu_vgpu *vgpu, u64 now)
{
	struct mgpu_sched_entity *e = &vgpu->entity;

	if (e->state == MGPU_ENTITY_IDLE) {
		sched_wake(sched, vgpu, now);
		return;
	}
	if (sched_set_head(vgpu))
		mgpu_runq_move(&sched->rq, e, now);
	else
		mgpu_runq_sleep(&sched->rq, e);
	arm_timer(sched);
}

/**
 * mgpu_sched_slots - set how many jobs may be in flight
 * @mdev: device
 * @slots: 1 to mgpu_max_slots()
 *
 * Jobs in flight beyond that go on to the end of their tile, or to their end if the
 * device has them.
 */
void mgpu_sched_slots(struct mgpu_device *mdev, u32 slots)
{
	struct mgpu_sched *sched = &mdev->sched;
	struct mgpu_sched_entity *e;

	spin_lock_irq(&sched->lock);
	WRITE_ONCE(sched->slots, slots);
	sched->rq.engines = min(slots, mdev->caps.engines);
	/* A limit is a part of the engines' time. */
	list_for_each_entry(e, &sched->rq.entities, list)
		sched_set_limit(vgpu_of(e));
	arm_timer(sched);
	spin_unlock_irq(&sched->lock);

	mdev->ops->kick(mdev);
}

/* Return the vGPU's first waiting background job, or the list's end. */
static struct list_head *first_background(struct mgpu_vgpu *vgpu)
{
	struct mgpu_job *other;

	list_for_each_entry(other, &vgpu->jobs, node) {
		if (other->ops->background)
			return &other->node;
	}
	return &vgpu->jobs;
}

/* Note which two vGPUs submitted jobs last. */
static void note_recent(struct mgpu_sched *sched, u32 vgpu, u64 now)
{
	lockdep_assert_held(&sched->lock);
	if (sched->recent[0].vgpu != vgpu) {
		sched->recent[1] = sched->recent[0];
		sched->recent[0].vgpu = vgpu;
	}
	sched->recent[0].ns = now;
}

/**
 * mgpu_sched_contended - tell whether another vGPU uses the device
 * @vgpu: vGPU
 *
 * Context: any.
 * Return: true if another one has submitted a job in the last CONTENDED_NS.
 */
bool mgpu_sched_contended(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	unsigned long flags;
	bool contended;
	u32 other;

	spin_lock_irqsave(&sched->lock, flags);
	other = sched->recent[0].vgpu == vgpu->id;
	contended = sched->recent[other].vgpu &&
		    ktime_get_ns() - sched->recent[other].ns < CONTENDED_NS;
	spin_unlock_irqrestore(&sched->lock, flags);
	return contended;
}

/**
 * mgpu_sched_enqueue - queue a job for an engine
 * @job: in no list
 * @first: of a background job: queue it ahead of the vGPU's other background jobs
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Context: must hold sched->lock.
 */
void mgpu_sched_enqueue(struct mgpu_job *job, bool first, u64 now)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	bool ahead = !job->ops->background || first;

	lockdep_assert_held(&sched->lock);

	note_recent(sched, vgpu->id, now);
	job->submit_ns = now;
	job->seq = ++sched->next_seq;
	list_add_tail(&job->node, ahead ? first_background(vgpu) : &vgpu->jobs);
	if (list_is_first(&job->node, &vgpu->jobs))
		sched_rehead(sched, vgpu, now);
}

/**
 * mgpu_sched_first - move a waiting job ahead of its vGPU's other background jobs
 * @job: background job from mgpu_sched_enqueue()
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * The vGPU's place among the other vGPUs stays.
 *
 * Context: must hold sched->lock.
 */
void mgpu_sched_first(struct mgpu_job *job, u64 now)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&sched->lock);

	list_del(&job->node);
	list_add_tail(&job->node, first_background(vgpu));
	sched_rehead(sched, vgpu, now);
}

/**
 * mgpu_sched_dequeue - take back a job that waits
 * @job: from mgpu_sched_enqueue()
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Context: must hold sched->lock.
 */
void mgpu_sched_dequeue(struct mgpu_job *job, u64 now)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	struct mgpu_sched *sched = &vgpu->mdev->sched;

	lockdep_assert_held(&sched->lock);

	list_del_init(&job->node);
	sched_rehead(sched, vgpu, now);
}

/**
 * mgpu_sched_submit - hand a job to the scheduler
 * @job: filled in; the scheduler's until it calls ops->done
 *
 * Context: any, a timer's interrupt too.
 */
void mgpu_sched_submit(struct mgpu_job *job)
{
	struct mgpu_device *mdev = job->vgpu->mdev;
	struct mgpu_sched *sched = &mdev->sched;
	unsigned long flags;

	mgpu_job_begin_anew(job);

	spin_lock_irqsave(&sched->lock, flags);
	mgpu_sched_enqueue(job, false, ktime_get_ns());
	spin_unlock_irqrestore(&sched->lock, flags);

	mdev->ops->kick(mdev);
}

/*
 * A physical GPU that hangs is reset, and all that it has is lost.  So the jobs of a vGPU
 * that hung it recently go there alone: if one hangs again, no other vGPU's job is lost,
 * and there is no doubt which job it was.
 */
static bool runs_alone(const struct mgpu_job *job, u64 now)
{
	return job->ops->in_device && mgpu_hangs_recent(&job->vgpu->hangs, now);
}

/* Take the first job of the vGPU that the run queue picks; NULL for none. */
static struct mgpu_job *sched_pick(struct mgpu_sched *sched, u64 now)
{
	struct mgpu_sched_entity *e;
	struct mgpu_vgpu *vgpu;
	struct mgpu_job *job;

	e = mgpu_runq_pick(&sched->rq, now);
	/* Nothing waits: give the slot to work that lost one. */
	while (!e && sched_unpark(sched, now))
		e = mgpu_runq_pick(&sched->rq, now);
	if (!e)
		return NULL;
	vgpu = vgpu_of(e);
	job = list_first_entry(&vgpu->jobs, struct mgpu_job, node);
	list_del_init(&job->node);
	atomic64_set(&vgpu->stats.limited, e->limited);
	atomic64_set(&vgpu->stats.limited_ns, e->limited_ns);
	sched_wake(sched, vgpu, now);
	return job;
}

/* Take the job that is to run next, unless all slots are taken; NULL for none. */
static struct mgpu_job *sched_take(struct mgpu_sched *sched, u64 now)
{
	struct mgpu_job *job, *first;

	lockdep_assert_held(&sched->lock);
	first = list_first_entry_or_null(&sched->running, struct mgpu_job, node);
	if (sched->nr_running >= sched->slots || (first && first->alone))
		return NULL;
	job = sched->next_alone;
	sched->next_alone = NULL;
	if (!job)
		job = sched_pick(sched, now);
	if (!job)
		return NULL;
	job->alone = runs_alone(job, now);
	if (job->alone && first) {
		sched->next_alone = job;
		return NULL;
	}
	return job;
}

/* Return whether mgpu_sched_next() may have a job for another engine, too. */
static bool sched_has_more(const struct mgpu_device *mdev)
{
	const struct mgpu_sched *sched = &mdev->sched;

	lockdep_assert_held(&sched->lock);
	return mdev->caps.engines > 1 && sched->nr_running < sched->slots &&
	       (sched->rq.nr_ready || !list_empty(&sched->parked));
}

static enum mgpu_throttle_reason throttle_reason(const struct mgpu_vgpu *vgpu)
{
	return READ_ONCE(vgpu->entity.fps_limit) == READ_ONCE(vgpu->fps.limit) ?
	       MGPU_THROTTLE_FPS : MGPU_THROTTLE_TARGET;
}

/**
 * mgpu_sched_next - take the job that is to run next
 * @mdev: device
 *
 * Kicks the back end if another engine may have a job, too: one kick may stand for several
 * jobs, and wakes one engine.
 *
 * Context: task context, from the back end.
 * Return: a job, to be given to mgpu_job_done() or taken back by
 * mgpu_job_yield(), or NULL when there is none.
 */
struct mgpu_job *mgpu_sched_next(struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;
	u64 now = ktime_get_ns(), waited;
	struct mgpu_vgpu *vgpu;
	struct mgpu_job *job;
	bool more = false;

	spin_lock_irq(&sched->lock);
	job = sched_take(sched, now);
	if (job) {
		vgpu = job->vgpu;
		list_add_tail(&job->node, &sched->running);
		sched->nr_running++;
		if (job->ops->taken)
			job->ops->taken(job);
		job->start_ns = now;
		vgpu->running++;
		if (!sched->watching) {
			sched->watching = true;
			queue_delayed_work(mgpu_wq, &sched->watchdog,
					   msecs_to_jiffies(READ_ONCE(sched->job_timeout_ms)) / 4);
		}
		more = sched_has_more(mdev);
	}
	arm_timer(sched);
	spin_unlock_irq(&sched->lock);
	if (!job)
		return NULL;
	if (more)
		mdev->ops->kick(mdev);

	if (job->held_ns) {
		atomic64_add(job->held_ns, &vgpu->stats.throttled_ns);
		atomic64_inc(&vgpu->stats.throttled);
		trace_mgpu_throttle(vgpu->id,
				    atomic64_read(&vgpu->stats.frames) + 1,
				    job->held_ns, throttle_reason(vgpu));
		job->held_ns = 0;
	}
	waited = now - min(job->submit_ns, now);
	atomic64_add(waited, &vgpu->stats.queue_ns);
	trace_mgpu_job_start(vgpu->id, job->id, job->kind, waited);
	return job;
}
EXPORT_SYMBOL_GPL(mgpu_sched_next);

/* The job whose tracepoint runs on this CPU, until the job is charged. */
static DEFINE_PER_CPU(struct mgpu_job *, leaving_job);

/*
 * Usually the eBPF program on the tracepoint charges the job, with mgpu_charge().
 * If it has not when the tracepoint returns, the module charges the job.  So every
 * job is charged exactly once, whether or not a program is attached.
 *
 * Preemption is off until charge_end(): the program runs on this CPU.
 */
static void charge_begin(struct mgpu_job *job, u64 engine_ns,
			 u64 engine_cycles)
{
	struct mgpu_stats *st = &job->vgpu->stats;

	atomic64_add(engine_ns, &st->engine_ns);
	atomic64_add(engine_cycles, &st->engine_cycles);
	preempt_disable();
	__this_cpu_write(leaving_job, job);
}

/* Return the engine nanoseconds that were charged. */
static u64 charge_end(struct mgpu_job *job, u64 engine_ns)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	bool self = this_cpu_xchg(leaving_job, NULL) == job;

	preempt_enable();
	if (self)
		atomic64_add(engine_ns, &vgpu->stats.charged_self_ns);
	WRITE_ONCE(vgpu->last_charge_bpf, !self);
	return self ? engine_ns : job->charged_ns;
}

/**
 * mgpu_sched_charge - charge the job whose tracepoint runs on this CPU
 * @vgpu: ID of its vGPU
 * @id: its ID
 * @ns: engine time since an engine took it, nanoseconds
 *
 * Context: any, an interrupt during the tracepoint too.  Takes no lock.
 * Return: false if no such job is leaving its engine here, or it was charged.
 */
bool mgpu_sched_charge(u32 vgpu, u64 id, u64 ns)
{
	struct mgpu_job *job;
	bool charged;

	preempt_disable();
	job = this_cpu_read(leaving_job);
	charged = job && job->vgpu->id == vgpu && job->id == id &&
		  this_cpu_cmpxchg(leaving_job, job, NULL) == job;
	if (charged) {
		job->charged_ns = ns;
		atomic64_add(ns, &job->vgpu->stats.charged_bpf_ns);
	}
	preempt_enable();
	return charged;
}

/*
 * Return the engine time that the vGPU's last jobs took after they were charged, and that
 * is charged now: their completion answers the guest and takes its next commands, which
 * the engine cannot know before.
 */
static u64 charge_owed(struct mgpu_vgpu *vgpu)
{
	return atomic64_xchg(&vgpu->owed_ns, 0);
}

/* Return the list position behind which a preempted job is requeued. */
static struct list_head *own_first(struct mgpu_vgpu *vgpu,
				   const struct mgpu_job *job)
{
	struct list_head *behind = &vgpu->jobs;
	struct mgpu_job *other;

	list_for_each_entry(other, &vgpu->jobs, node) {
		if (!job->ops->background || other->ops->background)
			break;
		behind = &other->node;
	}
	return behind;
}

/* Return whether @job is background and a job of its vGPU that is not waits. */
static bool own_goes_first(const struct mgpu_job *job)
{
	const struct mgpu_job *first;

	first = list_first_entry_or_null(&job->vgpu->jobs, struct mgpu_job,
					 node);
	return job->ops->background && first && !first->ops->background;
}

/**
 * mgpu_job_yield - preempt a job if another one has to go first
 * @job: on an engine, between two tiles
 * @engine_ns: engine time since it was taken, nanoseconds
 * @engine_cycles: the same in TSC ticks
 *
 * Context: task context, from the back end.
 * Return: false to go on with @job; true when the scheduler took it back: it comes
 * again from mgpu_sched_next().
 */
bool mgpu_job_yield(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	struct mgpu_vgpu *vgpu = job->vgpu;
	const struct mgpu_job_ops *ops = job->ops;
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u64 now = ktime_get_ns(), charged;
	bool yield;

	if (ops->tile_done)
		ops->tile_done(job, engine_ns, engine_cycles);
	/* A replaced policy is freed after a grace period. */
	rcu_read_lock();
	yield = mgpu_runq_may_yield(&sched->rq, &vgpu->entity);
	rcu_read_unlock();
	if (!yield && !READ_ONCE(job->stop) &&
	    READ_ONCE(sched->nr_running) <= READ_ONCE(sched->slots) &&
	    !(ops->background && !list_empty(&vgpu->jobs)))
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

	if (ops->leave)
		engine_ns += ops->leave(job, engine_ns, engine_cycles);
	engine_ns += charge_owed(vgpu);
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
	/* A reset that came meanwhile has dropped the vGPU's waiting jobs. */
	if (ops->left ? ops->left(job, now) : !job->cancelled) {
		list_add(&job->node, own_first(vgpu, job));
		sched_rehead(sched, vgpu, now);
	}
	spin_unlock_irq(&sched->lock);
	wake_up_all(&sched->idle);
	return true;
}
EXPORT_SYMBOL_GPL(mgpu_job_yield);

/**
 * mgpu_job_done - complete a job that has left its engine
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
	struct mgpu_cpu_clock clock;
	u64 charged, now;

	if (job->expired) {
		error = -ETIMEDOUT;
		atomic64_inc(&st->timeouts);
	}
	if (job->lost)
		atomic64_inc(&st->lost);
	if (job->expired || job->guilty) {
		spin_lock_irq(&sched->lock);
		now = ktime_get_ns();
		/* It may have slept; the engine was not there for others all the same. */
		engine_ns = max(engine_ns, held_engine_ns(sched, job, now));
		sched_blame(sched, vgpu, now);
		spin_unlock_irq(&sched->lock);
	}
	job->error = error;
	if (job->ops->ended)
		job->ops->ended(job, engine_ns, engine_cycles);
	atomic64_inc(&st->jobs);
	if (error)
		atomic64_inc(&st->job_errors);
	atomic64_add(job->bytes, &st->bytes);

	engine_ns += charge_owed(vgpu);
	charge_begin(job, engine_ns, engine_cycles);
	trace_mgpu_job_done(vgpu->id, job->id, job->kind, job->error,
			    engine_ns, engine_cycles, job->bytes);
	charged = charge_end(job, engine_ns);

	spin_lock_irq(&sched->lock);
	now = ktime_get_ns();
	if (list_is_first(&job->node, &sched->running))
		sched->left_ns = now;
	list_del_init(&job->node);
	sched->nr_running--;
	mgpu_runq_charge(&sched->rq, &vgpu->entity, charged, now);
	/* It may have waited for fewer of its jobs in flight. */
	sched_wake(sched, vgpu, now);
	spin_unlock_irq(&sched->lock);

	mgpu_cpu_clock_start(&clock);
	job->ops->done(job);
	atomic64_add(mgpu_cpu_clock_lap(&clock, NULL), &vgpu->owed_ns);

	/* The vGPU may be freed once none of its jobs is in flight. */
	spin_lock_irq(&sched->lock);
	vgpu->running--;
	spin_unlock_irq(&sched->lock);
	/* A waiter joined the wait queue before it read vgpu->running under the lock. */
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
 * mgpu_sched_cancel_job - end a job at its next tile, or keep it from being requeued
 * @job: job, in whatever state; ended with -ECANCELED if it is in flight
 *
 * Context: any.
 */
void mgpu_sched_cancel_job(struct mgpu_job *job)
{
	struct mgpu_sched *sched = &job->vgpu->mdev->sched;

	spin_lock_irq(&sched->lock);
	WRITE_ONCE(job->cancelled, true);
	spin_unlock_irq(&sched->lock);
}

/**
 * mgpu_sched_cancel - drop a vGPU's waiting jobs and wait for those in flight
 * @vgpu: vGPU that submits none any more
 *
 * Context: may sleep; one tile at most on an engine that is a CPU.
 */
void mgpu_sched_cancel(struct mgpu_vgpu *vgpu)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	struct mgpu_job *job, *next;

	spin_lock_irq(&sched->lock);
	mgpu_runq_sleep(&sched->rq, &vgpu->entity);
	list_for_each_entry_safe(job, next, &vgpu->jobs, node)
		list_del_init(&job->node);
	if (sched->next_alone && sched->next_alone->vgpu == vgpu) {
		sched->next_alone = NULL;
		/* The run queue takes it for a job that an engine has. */
		mgpu_runq_charge(&sched->rq, &vgpu->entity, 0, ktime_get_ns());
	}
	spin_unlock_irq(&sched->lock);

	wait_event(sched->idle, is_idle(sched, vgpu));
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling policies in BPF: loading, replacing and unloading while VMs run, and a
 * watchdog.
 *
 * A BPF program can starve its vGPUs, but cannot corrupt the module: the verifier
 * checks the program's accesses, this file checks its return values.  A policy that
 * lets a vGPU wait for too long, or returns an invalid value, is evicted: the
 * built-in policy that was chosen last takes over, and user space gets a report.
 *
 * A BPF link of user space represents an instance.  An instance is in force on one
 * device or on all of them, with a state for each.  When it is in force on no device
 * any more, the supervisor detaches the link: the link's owner is notified and the
 * programs can be freed.
 *
 * Locks: mgpu_registry_lock protects the list of instances and the policy in force
 * on each device.  It nests inside the BPF core's lock for links, so the supervisor
 * detaches links without it.  Programs run under sched->lock: after mgpu_sched_use()
 * has put another policy in force, no program of the old policy runs.
 */
#include "compat.h"

#if MGPU_HAS_STRUCT_OPS

#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "mgpu.h"
#include "sched/policy_bpf.h"

/**
 * struct instance - a loaded policy
 * @node: in instances
 * @ops: the policy's callbacks; an update of the link replaces them
 * @link: BPF link that represents the instance in user space; NULL on kernels whose
 *	struct_ops do not pass the link, and once it is being detached
 * @dev: ID of the device that the policy is for, or 0 for every device
 * @nr: number of devices on which the policy is in force
 * @failed: the policy was evicted from a device; it is not installed on new devices
 *
 * mgpu_registry_lock protects all fields.
 */
struct instance {
	struct list_head node;
	const struct mgpu_bpf_policy *ops;
	struct bpf_link *link;
	u32 dev;
	u32 nr;
	bool failed;
};

/**
 * struct mgpu_bpf_policy_state - a BPF policy in force on a device
 * @ops: callbacks that the run queue calls: those functions below for which @bpf has
 *	a callback.  A copy for each state, because @ops.name is @name
 * @bpf: the program's callbacks
 * @inst: instance that @bpf belongs to
 * @name: name of the policy
 * @timeout_ns: longest time that a vGPU may wait unserved, nanoseconds
 * @since_ns: when the policy came into force, CLOCK_MONOTONIC
 * @served_ns: when the policy last picked a vGPU, CLOCK_MONOTONIC
 * @idle_ns: when the policy first picked no vGPU while vGPUs waited, CLOCK_MONOTONIC;
 *	0 after a successful pick
 * @placing: the callback that is running may call mgpu_bpf_insert()
 * @broken: the policy broke its contract.  Its programs are not called any more, and
 *	until it is evicted vGPUs are served in the order of their jobs
 * @why: how the policy broke its contract; valid while @broken
 * @rcu: frees the state after a grace period
 *
 * sched->lock protects the fields from @since_ns on; the others are constant.
 */
struct mgpu_bpf_policy_state {
	struct mgpu_policy_ops ops;
	const struct mgpu_bpf_policy *bpf;
	struct instance *inst;
	char name[MGPU_POLICY_NAME_LEN];
	u64 timeout_ns;
	u64 since_ns;
	u64 served_ns;
	u64 idle_ns;
	bool placing;
	bool broken;
	struct mgpu_policy_exit why;
	struct rcu_head rcu;
};

static LIST_HEAD(instances);	/* mgpu_registry_lock */

static void bpf_policy_supervise(struct work_struct *work);
static DECLARE_DELAYED_WORK(supervisor, bpf_policy_supervise);

static void supervise_now(void)
{
	mod_delayed_work(mgpu_wq, &supervisor, 0);
}

static struct mgpu_device *device_of(struct mgpu_runq *rq)
{
	return container_of(rq, struct mgpu_device, sched.rq);
}

/* ---- callbacks of the run queue ---- */

static struct mgpu_sched_entity *bpf_pick(struct mgpu_runq *rq, u64 now);

/*
 * Return the state of the BPF policy in force; NULL if a built-in policy is in
 * force or the BPF policy is broken.
 */
static struct mgpu_bpf_policy_state *state_of(const struct mgpu_runq *rq)
{
	struct mgpu_bpf_policy_state *st = rq->policy_data;

	return rq->policy->pick == bpf_pick && !st->broken ? st : NULL;
}

static __printf(4, 5)
void broke(struct mgpu_bpf_policy_state *st, int code, u32 vgpu,
	   const char *fmt, ...)
{
	va_list args;

	st->broken = true;
	st->why.kind = MGPU_POLICY_EXIT_KIND_ERROR;
	st->why.code = code;
	st->why.vgpu = vgpu;
	va_start(args, fmt);
	vsnprintf(st->why.message, sizeof(st->why.message), fmt, args);
	va_end(args);
	/* Evicting it takes mgpu_registry_lock. */
	supervise_now();
}

static void bpf_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u64 now)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (st)
		st->bpf->attach(rq, e, now);
}

static void bpf_detach(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (st)
		st->bpf->detach(rq, e);
}

static void bpf_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 now)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (!st)
		return;
	st->placing = true;
	st->bpf->enqueue(rq, e, now);
	st->placing = false;
}

static void bpf_dequeue(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (st)
		st->bpf->dequeue(rq, e);
}

static void bpf_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u64 ns, u64 now)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (!st)
		return;
	st->placing = true;
	st->bpf->charge(rq, e, ns, now);
	st->placing = false;
}

static bool bpf_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 ran, u64 now)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	return st && st->bpf->yield(rq, e, ran, now);
}

/* Return the entity of a waiting vGPU of this device, or NULL. */
static struct mgpu_sched_entity *bpf_policy_waiting(struct mgpu_runq *rq, u32 id)
{
	struct mgpu_sched_entity *e = NULL;
	struct mgpu_vgpu *vgpu;

	/* A waiting entity is attached, and detaching takes sched->lock. */
	rcu_read_lock();
	vgpu = xa_load(&mgpu_vgpus, id);
	if (vgpu && vgpu->mdev == device_of(rq) &&
	    vgpu->entity.state == MGPU_ENTITY_READY)
		e = &vgpu->entity;
	rcu_read_unlock();
	return e;
}

/*
 * Pick the waiting entity with the oldest job.  Linear, since it runs only until a
 * broken policy is evicted.
 */
static struct mgpu_sched_entity *bpf_policy_oldest(struct mgpu_runq *rq)
{
	struct mgpu_sched_entity *e, *first = NULL;

	list_for_each_entry(e, &rq->entities, list) {
		if (e->state == MGPU_ENTITY_READY &&
		    (!first || e->head_seq < first->head_seq))
			first = e;
	}
	return first;
}

static struct mgpu_sched_entity *bpf_pick(struct mgpu_runq *rq, u64 now)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);
	struct mgpu_sched_entity *e = NULL;
	u32 id;

	if (!st)
		return bpf_policy_oldest(rq);

	id = st->bpf->pick(rq, now);
	if (id)
		e = bpf_policy_waiting(rq, id);
	if (id && !e && !st->broken)
		broke(st, -ENOENT, 0,
		      "pick returned %u, which is not a waiting vGPU of this device",
		      id);
	if (st->broken)
		return bpf_policy_oldest(rq);

	if (e) {
		st->served_ns = now;
		st->idle_ns = 0;
	} else if (rq->nr_ready && !st->idle_ns) {
		st->idle_ns = now;
	}
	return e;
}

static const struct mgpu_policy_ops bpf_ops = {
	.shares = true,		/* mgpud must not override an order it does not know */
	.attach = bpf_attach,
	.detach = bpf_detach,
	.enqueue = bpf_enqueue,
	.dequeue = bpf_dequeue,
	.pick = bpf_pick,
	.charge = bpf_charge,
	.yield = bpf_yield,
};

/* ---- kfuncs that programs call ---- */

/*
 * The BPF core registers kfuncs for the programs of every struct_ops, but only
 * programs of struct mgpu_bpf_policy can call these.  They take trusted pointers,
 * which are arguments of the running callback or results of an acquiring kfunc.
 * No other struct_ops has callbacks with a run queue or an entity, no kfunc
 * returns either, and a map cannot hold a trusted pointer.  So @rq and @e come from
 * one callback of struct mgpu_bpf_policy, @e is attached to @rq, and the caller
 * holds sched->lock.
 */
__bpf_kfunc_start_defs();

/**
 * mgpu_bpf_insert - put an entity into a queue, or move it there
 * @rq: run queue
 * @e: waiting entity
 * @queue: number of the queue, below MGPU_RUNQ_QUEUES
 * @key: position in the queue: ahead of larger keys, behind equal keys.  Keys may
 *	wrap: a key is smaller than another of the same queue if the other is less
 *	than 2^63 ahead
 *
 * Context: enqueue() and charge() only.  In other callbacks the run queue may be
 * about to move the entity.
 * Return: 0; -EINVAL if @queue is out of range, @e does not wait or another callback
 * calls, in which case the policy is evicted.
 */
__bpf_kfunc int mgpu_bpf_insert(struct mgpu_runq *rq,
				struct mgpu_sched_entity *e, u32 queue, u64 key)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (!st)
		return -EINVAL;
	if (queue >= MGPU_RUNQ_QUEUES) {
		broke(st, -EINVAL, e->id,
		      "inserted vGPU %u into queue %u: queues are 0 to %u",
		      e->id, queue, MGPU_RUNQ_QUEUES - 1);
		return -EINVAL;
	}
	if (!st->placing) {
		broke(st, -EINVAL, e->id,
		      "inserted vGPU %u outside of enqueue and charge",
		      e->id);
		return -EINVAL;
	}
	if (e->state != MGPU_ENTITY_READY) {
		broke(st, -EINVAL, e->id,
		      "inserted vGPU %u, which is not waiting", e->id);
		return -EINVAL;
	}
	mgpu_runq_insert(rq, e, queue, key);
	return 0;
}

static struct mgpu_sched_entity *bpf_policy_first(struct mgpu_runq *rq, u32 queue)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (!st)
		return NULL;
	if (queue >= MGPU_RUNQ_QUEUES) {
		broke(st, -EINVAL, 0,
		      "read queue %u: queues are 0 to %u", queue,
		      MGPU_RUNQ_QUEUES - 1);
		return NULL;
	}
	return mgpu_runq_first(rq, queue);
}

/**
 * mgpu_bpf_first - get the vGPU at the head of a queue
 * @rq: run queue
 * @queue: number of the queue, below MGPU_RUNQ_QUEUES
 *
 * Return: ID of the vGPU, or 0 if the queue is empty.
 */
__bpf_kfunc u32 mgpu_bpf_first(struct mgpu_runq *rq, u32 queue)
{
	struct mgpu_sched_entity *e = bpf_policy_first(rq, queue);

	return e ? e->id : 0;
}

/**
 * mgpu_bpf_first_key - get the key of the entity at the head of a queue
 * @rq: run queue
 * @queue: number of the queue, below MGPU_RUNQ_QUEUES
 *
 * Return: the key, or U64_MAX if the queue is empty.
 */
__bpf_kfunc u64 mgpu_bpf_first_key(struct mgpu_runq *rq, u32 queue)
{
	struct mgpu_sched_entity *e = bpf_policy_first(rq, queue);

	return e ? e->key : U64_MAX;
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(mgpu_policy_kfuncs)
BTF_ID_FLAGS(func, mgpu_bpf_insert, KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, mgpu_bpf_first, KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, mgpu_bpf_first_key, KF_TRUSTED_ARGS)
BTF_KFUNCS_END(mgpu_policy_kfuncs)

static const struct btf_kfunc_id_set policy_kfunc_set = {
	.owner = THIS_MODULE,
	.set = &mgpu_policy_kfuncs,
};

/* ---- coming into force, and leaving it ---- */

static struct mgpu_bpf_policy_state *state_new(struct instance *inst,
					       const struct mgpu_bpf_policy *bpf)
{
	struct mgpu_bpf_policy_state *st = kzalloc(sizeof(*st), GFP_KERNEL);

	if (!st)
		return NULL;
	st->ops = bpf_ops;
	if (!bpf->attach)
		st->ops.attach = NULL;
	if (!bpf->detach)
		st->ops.detach = NULL;
	if (!bpf->dequeue)
		st->ops.dequeue = NULL;
	if (!bpf->charge)
		st->ops.charge = NULL;
	if (!bpf->yield)
		st->ops.yield = NULL;
	strscpy(st->name, bpf->name, sizeof(st->name));
	st->ops.name = st->name;
	st->bpf = bpf;
	st->inst = inst;
	st->timeout_ns = (u64)(bpf->timeout_ms ?: MGPU_BPF_TIMEOUT_DEFAULT) *
			 NSEC_PER_MSEC;
	return st;
}

static int state_init(struct mgpu_bpf_policy_state *st,
		      struct mgpu_device *mdev)
{
	int ret;

	if (!st->bpf->init)
		return 0;
	spin_lock_irq(&mdev->sched.lock);
	ret = st->bpf->init(&mdev->sched.rq);
	spin_unlock_irq(&mdev->sched.lock);
	/* A value that is no errno would look like success to the loader. */
	return ret > 0 || ret < -MAX_ERRNO ? -EINVAL : ret;
}

/* Call the exit callback of a state that is not in force, and free the state. */
static void state_exit(struct mgpu_bpf_policy_state *st,
		       struct mgpu_device *mdev)
{
	if (st->bpf->exit) {
		spin_lock_irq(&mdev->sched.lock);
		st->bpf->exit(&mdev->sched.rq);
		spin_unlock_irq(&mdev->sched.lock);
	}
	/* mgpu_job_yield() reads st->ops under RCU only. */
	kfree_rcu(st, rcu);
}

static void set_state(struct mgpu_device *mdev,
		      struct mgpu_bpf_policy_state *st)
{
	spin_lock_irq(&mdev->sched.lock);
	mdev->sched.bpf = st;
	spin_unlock_irq(&mdev->sched.lock);
}

/* Replace the device's built-in policy by @st, which state_init() has prepared. */
static void put_in_force(struct mgpu_bpf_policy_state *st,
			 struct mgpu_device *mdev)
{
	st->since_ns = ktime_get_ns();
	st->inst->nr++;
	set_state(mdev, st);
	mgpu_sched_use(mdev, &st->ops, st);
	mdev->sched.exit.kind = MGPU_POLICY_EXIT_KIND_NONE;
	mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
}

static int bpf_policy_install(struct instance *inst, struct mgpu_device *mdev)
{
	struct mgpu_bpf_policy_state *st = state_new(inst, inst->ops);
	int ret;

	if (!st)
		return -ENOMEM;
	ret = state_init(st, mdev);
	if (ret) {
		kfree(st);
		return ret;
	}
	put_in_force(st, mdev);
	return 0;
}

/*
 * Return whether an instance serves no device and will serve none: it was evicted, or
 * is for one device only.
 */
static bool is_over(const struct instance *inst)
{
	return !inst->nr && (inst->failed || inst->dev);
}

static void take_away(struct mgpu_device *mdev)
{
	struct mgpu_sched *sched = &mdev->sched;
	struct mgpu_bpf_policy_state *st = sched->bpf;

	mgpu_sched_use(mdev, sched->builtin, NULL);
	set_state(mdev, NULL);
	st->inst->nr--;
	if (is_over(st->inst))
		supervise_now();
	state_exit(st, mdev);
}

static void bpf_policy_report(struct mgpu_device *mdev, const char *name,
			      const struct mgpu_policy_exit *why)
{
	struct mgpu_policy_exit *exit = &mdev->sched.exit;

	*exit = *why;
	strscpy(exit->policy, name, sizeof(exit->policy));
	mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY_EXIT);
}

/**
 * mgpu_policy_bpf_evict - evict a device's BPF policy
 * @mdev: device; no effect unless a BPF policy is in force on it
 * @why: reason, for user space; @why->policy is ignored
 *
 * The built-in policy that was chosen last takes over.  The caller notifies user
 * space of the policy in force.
 *
 * Context: may sleep; must hold mgpu_registry_lock.
 */
void mgpu_policy_bpf_evict(struct mgpu_device *mdev,
			   const struct mgpu_policy_exit *why)
{
	char name[MGPU_POLICY_NAME_LEN];

	lockdep_assert_held(&mgpu_registry_lock);
	if (!mdev->sched.bpf)
		return;
	strscpy(name, mdev->sched.bpf->name, sizeof(name));
	mdev->sched.bpf->inst->failed = true;
	take_away(mdev);
	bpf_policy_report(mdev, name, why);
}

/* ---- devices that come and go ---- */

/**
 * mgpu_policy_bpf_device_added - install the policy for every device on a new device
 * @mdev: device, in mgpu_devices, without a vGPU
 *
 * No effect unless a BPF policy for every device is loaded and was never evicted.
 *
 * Context: may sleep; must hold mgpu_registry_lock.
 */
void mgpu_policy_bpf_device_added(struct mgpu_device *mdev)
{
	struct instance *inst;
	int ret;

	lockdep_assert_held(&mgpu_registry_lock);
	list_for_each_entry(inst, &instances, node) {
		if (inst->dev || inst->failed)
			continue;
		ret = bpf_policy_install(inst, mdev);
		if (!ret)
			supervise_now();
		else
			dev_warn(mdev->dev,
				 "mgpu: the BPF policy %s refused this device (error %d)\n",
				 inst->ops->name, ret);
		return;
	}
}

/**
 * mgpu_policy_bpf_device_gone - remove the BPF policy of a device that goes away
 * @mdev: device, without a vGPU
 *
 * Context: may sleep; must hold mgpu_registry_lock.
 */
void mgpu_policy_bpf_device_gone(struct mgpu_device *mdev)
{
	lockdep_assert_held(&mgpu_registry_lock);
	if (mdev->sched.bpf)
		take_away(mdev);
}

/* ---- the watchdog ---- */

/* Return whether the BPF policy in force must be evicted; the reason is in @why. */
static bool bpf_policy_misbehaves(struct mgpu_device *mdev, struct mgpu_policy_exit *why)
{
	struct mgpu_sched *sched = &mdev->sched;
	struct mgpu_bpf_policy_state *st = sched->bpf;
	struct mgpu_sched_entity *e, *worst = NULL;
	u64 now, since, idle, from = U64_MAX;

	memset(why, 0, sizeof(*why));

	spin_lock_irq(&sched->lock);
	if (st->broken) {
		*why = st->why;
		goto out;
	}
	if (!sched->rq.nr_ready)
		goto out;

	list_for_each_entry(e, &sched->rq.entities, list) {
		if (e->state != MGPU_ENTITY_READY)
			continue;
		/* The policy is not to blame for waits under its predecessor. */
		since = max(e->ready_ns, st->since_ns);
		if (since < from) {
			from = since;
			worst = e;
		}
	}

	now = ktime_get_ns();
	if (!worst || from + st->timeout_ns >= now)
		goto out;
	/*
	 * A long job makes every vGPU wait, whichever is next.  So the policy is
	 * to blame only if it picked another vGPU, or none, after this one had
	 * waited for the timeout.
	 */
	if (st->served_ns >= from + st->timeout_ns) {
		why->kind = MGPU_POLICY_EXIT_KIND_STARVED;
		snprintf(why->message, sizeof(why->message),
			 "vGPU %u waited for %llu ms while others were served, the timeout is %llu ms",
			 worst->id, div_u64(now - from, NSEC_PER_MSEC),
			 div_u64(st->timeout_ns, NSEC_PER_MSEC));
		goto found;
	}
	idle = max(st->idle_ns, from);
	if (st->idle_ns && idle + st->timeout_ns < now) {
		why->kind = MGPU_POLICY_EXIT_KIND_STALLED;
		snprintf(why->message, sizeof(why->message),
			 "an engine was idle for %llu ms while vGPU %u waited, the timeout is %llu ms",
			 div_u64(now - idle, NSEC_PER_MSEC), worst->id,
			 div_u64(st->timeout_ns, NSEC_PER_MSEC));
	}
found:
	if (why->kind != MGPU_POLICY_EXIT_KIND_NONE) {
		why->code = -ETIMEDOUT;
		why->vgpu = worst->id;
	}
out:
	spin_unlock_irq(&sched->lock);
	return why->kind != MGPU_POLICY_EXIT_KIND_NONE;
}

/* Get a reference to the link of an instance that is over, to detach the link. */
static struct bpf_link *next_link(void)
{
	struct instance *inst;
	struct bpf_link *link;

	list_for_each_entry(inst, &instances, node) {
		link = inst->link;
		if (!link || !is_over(inst))
			continue;
		/* Each link is detached once. */
		inst->link = NULL;
		/* A link without references is being freed already. */
		if (mgpu_compat_link_get(link))
			return link;
	}
	return NULL;
}

static void bpf_policy_supervise(struct work_struct *work)
{
	struct mgpu_policy_exit why;
	struct mgpu_device *mdev;
	struct bpf_link *link;
	u64 next = U64_MAX;

	mutex_lock(&mgpu_registry_lock);
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (!mdev->sched.bpf)
			continue;
		if (bpf_policy_misbehaves(mdev, &why)) {
			dev_warn(mdev->dev, "mgpu: BPF policy %s evicted: %s\n",
				 mdev->sched.bpf->name, why.message);
			mgpu_policy_bpf_evict(mdev, &why);
			mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
			continue;
		}
		next = min(next, mdev->sched.bpf->timeout_ns / 4);
	}
	/*
	 * Do not use mod_delayed_work(): it would delay the work that broke()
	 * may have queued meanwhile.
	 */
	if (next != U64_MAX)
		queue_delayed_work(mgpu_wq, &supervisor, nsecs_to_jiffies(next));
	link = next_link();
	mutex_unlock(&mgpu_registry_lock);

	while (link) {
		link->ops->detach(link);
		bpf_link_put(link);
		mutex_lock(&mgpu_registry_lock);
		link = next_link();
		mutex_unlock(&mgpu_registry_lock);
	}
}

/* ---- loading and unloading ---- */

static struct instance *instance_of(const struct mgpu_bpf_policy *ops)
{
	struct instance *inst;

	list_for_each_entry(inst, &instances, node) {
		if (inst->ops == ops)
			return inst;
	}
	return NULL;
}

/*
 * Return 0 if no BPF policy is in force on the policy's device (on any device if
 * ops->dev is 0), else a negative errno.  A map can have several links, but is one
 * instance.
 */
static int may_load(const struct mgpu_bpf_policy *ops)
{
	struct mgpu_device *mdev;
	struct instance *inst;

	if (instance_of(ops))
		return -EBUSY;
	if (ops->dev) {
		mdev = mgpu_device_find(ops->dev);
		if (!mdev)
			return -ENODEV;
		return mdev->sched.bpf ? -EBUSY : 0;
	}
	list_for_each_entry(inst, &instances, node) {
		if (!inst->dev && !inst->failed)
			return -EBUSY;
	}
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (mdev->sched.bpf)
			return -EBUSY;
	}
	return 0;
}

/**
 * mgpu_bpf_policy_reg - load a policy
 * @kdata: validated struct mgpu_bpf_policy; valid until mgpu_bpf_policy_unreg()
 * @link: BPF link that represents the policy in user space; NULL on kernels that do
 *	not pass it
 *
 * Context: may sleep; the BPF core holds its lock for links.
 * Return: 0; -ENODEV if the policy's device does not exist, -EBUSY if another BPF
 * policy is in force on it, -ENOMEM, or the error of the policy's init().
 */
int mgpu_bpf_policy_reg(void *kdata, struct bpf_link *link)
{
	const struct mgpu_bpf_policy *ops = kdata;
	struct mgpu_device *mdev;
	struct instance *inst;
	int ret;

	inst = kzalloc(sizeof(*inst), GFP_KERNEL);
	if (!inst)
		return -ENOMEM;
	inst->ops = ops;
	inst->link = link;
	inst->dev = ops->dev;

	mutex_lock(&mgpu_registry_lock);
	ret = may_load(ops);
	if (ret)
		goto err_free;
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (inst->dev && inst->dev != mdev->id)
			continue;
		ret = bpf_policy_install(inst, mdev);
		if (ret)
			goto err_undo;
	}
	list_add_tail(&inst->node, &instances);
	supervise_now();
	mutex_unlock(&mgpu_registry_lock);
	return 0;

err_undo:
	list_for_each_entry_continue_reverse(mdev, &mgpu_devices, node) {
		if (mdev->sched.bpf && mdev->sched.bpf->inst == inst) {
			take_away(mdev);
			mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
		}
	}
err_free:
	mutex_unlock(&mgpu_registry_lock);
	kfree(inst);
	return ret;
}

/**
 * mgpu_bpf_policy_unreg - unload a policy
 * @kdata: struct mgpu_bpf_policy that was loaded, or that replaced it
 *
 * Context: may sleep; the BPF core may hold its lock for links.
 */
void mgpu_bpf_policy_unreg(void *kdata)
{
	static const struct mgpu_policy_exit why = {
		.kind = MGPU_POLICY_EXIT_KIND_UNLOADED,
		.message = "its loader unloaded it or exited",
	};
	char name[MGPU_POLICY_NAME_LEN];
	struct mgpu_device *mdev;
	struct instance *inst;

	mutex_lock(&mgpu_registry_lock);
	inst = instance_of(kdata);
	if (WARN_ON(!inst))
		goto out;
	strscpy(name, inst->ops->name, sizeof(name));
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (!mdev->sched.bpf || mdev->sched.bpf->inst != inst)
			continue;
		take_away(mdev);
		bpf_policy_report(mdev, name, &why);
		mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
	}
	list_del(&inst->node);
	kfree(inst);
out:
	mutex_unlock(&mgpu_registry_lock);
}

/**
 * mgpu_bpf_policy_update - replace a loaded policy by another one
 * @kdata: validated struct mgpu_bpf_policy
 * @old_kdata: the loaded policy
 *
 * Replaces the policy on all of its devices, or on none.
 *
 * Context: may sleep; the BPF core holds its lock for links.
 * Return: 0; -ENOLINK if the old policy was evicted or its device is gone, -EBUSY if
 * the new policy is loaded already, -ENOMEM, or the error of the new policy's init().
 */
int mgpu_bpf_policy_update(void *kdata, void *old_kdata)
{
	const struct mgpu_bpf_policy *ops = kdata;
	struct mgpu_bpf_policy_state **new, *st, *old;
	struct mgpu_policy_exit why = {
		.kind = MGPU_POLICY_EXIT_KIND_REPLACED,
	};
	struct mgpu_device *mdev;
	struct instance *inst;
	u32 i, nr = 0;
	int ret;

	mutex_lock(&mgpu_registry_lock);
	inst = instance_of(old_kdata);
	if (!inst || is_over(inst)) {
		ret = -ENOLINK;
		goto out;
	}
	if (ops != old_kdata && instance_of(ops)) {
		ret = -EBUSY;
		goto out;
	}
	new = kcalloc(inst->nr + 1, sizeof(*new), GFP_KERNEL);
	if (!new) {
		ret = -ENOMEM;
		goto out;
	}
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (!mdev->sched.bpf || mdev->sched.bpf->inst != inst)
			continue;
		st = state_new(inst, ops);
		ret = st ? state_init(st, mdev) : -ENOMEM;
		if (ret) {
			kfree(st);
			goto err_undo;
		}
		new[nr++] = st;
	}

	i = 0;
	list_for_each_entry(mdev, &mgpu_devices, node) {
		old = mdev->sched.bpf;
		if (!old || old->inst != inst)
			continue;
		st = new[i++];
		st->since_ns = ktime_get_ns();
		set_state(mdev, st);
		mgpu_sched_use(mdev, &st->ops, st);
		snprintf(why.message, sizeof(why.message),
			 "%s replaced it", st->name);
		bpf_policy_report(mdev, old->name, &why);
		mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
		state_exit(old, mdev);
	}
	inst->ops = ops;
	supervise_now();
	ret = 0;
	goto out_free;

err_undo:
	i = 0;
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (i == nr)
			break;
		if (mdev->sched.bpf && mdev->sched.bpf->inst == inst)
			state_exit(new[i++], mdev);
	}
out_free:
	kfree(new);
out:
	mutex_unlock(&mgpu_registry_lock);
	return ret;
}

/* Register the kfuncs with the BPF core. */
int mgpu_bpf_policy_kfuncs(void)
{
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS,
					 &policy_kfunc_set);
}

/* Stop the supervisor.  No policy is loaded: each one holds a module reference. */
void mgpu_policy_bpf_exit(void)
{
	cancel_delayed_work_sync(&supervisor);
}

#endif /* MGPU_HAS_STRUCT_OPS */

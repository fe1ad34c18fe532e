// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scheduling policies in BPF: loaded, replaced and taken away while VMs run, and
 * watched meanwhile.
 *
 * A BPF program can fail its vGPUs, but not the module: what it is given is
 * checked by the verifier, what it gives back is checked here.  If it lets a
 * vGPU wait for too long, or answers what makes no sense, it is evicted: the
 * built-in policy that was chosen last takes over, and user space gets a report.
 *
 * A link of user space stands for an instance; an instance is in force on the
 * devices that it names, with a state of its own on each.  When it is in force
 * nowhere any more, the link is detached, so that its owner gets to know and the
 * programs can go.
 *
 * Locks: instances, and which state is in force where, are under
 * mgpu_registry_lock, which is taken inside of the BPF core's own lock for links.
 * Links are therefore detached without it.  Programs run under sched->lock, so
 * none of a policy's runs any more once mgpu_sched_use() has put another in force.
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
#include "policy_bpf.h"

/**
 * struct instance - a policy that was loaded
 * @node: in instances
 * @ops: its callbacks; replaced by an update of the link
 * @link: stands for it in user space; NULL on kernels that do not tell
 * @dev: id of the device that it is for, 0 for every one
 * @nr: on how many it is in force
 * @failed: it was evicted from one: new devices do without it
 *
 * All under mgpu_registry_lock.
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
 * @ops: what the run queue calls: the functions below that @bpf has a callback
 *	for.  Here because the name is the instance's
 * @bpf: the program's callbacks
 * @inst: whose they are
 * @name: of the policy
 * @timeout_ns: how long a vGPU may wait unserved
 * @since_ns: when it came into force
 * @served_ns: when it last picked a vGPU
 * @idle_ns: since when it has picked none while some waited, 0 when it has
 * @placing: a callback runs from which entities may be put into queues
 * @broken: it broke its contract: its programs are not called any more, and
 *	until it is evicted vGPUs are served in the order of their jobs
 * @why: how
 * @rcu: frees it
 *
 * From @since_ns on under sched->lock, the rest does not change.
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

static void supervise(struct work_struct *work);
static DECLARE_DELAYED_WORK(supervisor, supervise);

static void supervise_now(void)
{
	mod_delayed_work(mgpu_wq, &supervisor, 0);
}

static struct mgpu_device *device_of(struct mgpu_runq *rq)
{
	return container_of(rq, struct mgpu_device, sched.rq);
}

/* ---- what the run queue calls ---- */

static struct mgpu_sched_entity *bpf_pick(struct mgpu_runq *rq, u64 now);

/*
 * The state of the policy in force; NULL when it is not a BPF policy, or one
 * that is not to be called any more.
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

/* The entity of a vGPU of this device that waits, or NULL. */
static struct mgpu_sched_entity *waiting(struct mgpu_runq *rq, u32 id)
{
	struct mgpu_sched_entity *e = NULL;
	struct mgpu_vgpu *vgpu;

	/* What waits is attached, and does not go while sched->lock is held. */
	rcu_read_lock();
	vgpu = xa_load(&mgpu_vgpus, id);
	if (vgpu && vgpu->mdev == device_of(rq) &&
	    vgpu->entity.state == MGPU_ENTITY_READY)
		e = &vgpu->entity;
	rcu_read_unlock();
	return e;
}

/* In the order of jobs; slow, and good for the short time until the eviction. */
static struct mgpu_sched_entity *oldest(struct mgpu_runq *rq)
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
		return oldest(rq);

	id = st->bpf->pick(rq, now);
	if (id)
		e = waiting(rq, id);
	if (id && !e && !st->broken)
		broke(st, -ENOENT, 0,
		      "pick returned %u, which is no vGPU of this device that waits",
		      id);
	if (st->broken)
		return oldest(rq);

	if (e) {
		st->served_ns = now;
		st->idle_ns = 0;
	} else if (rq->nr_ready && !st->idle_ns) {
		st->idle_ns = now;
	}
	return e;
}

static const struct mgpu_policy_ops bpf_ops = {
	.attach = bpf_attach,
	.detach = bpf_detach,
	.enqueue = bpf_enqueue,
	.dequeue = bpf_dequeue,
	.pick = bpf_pick,
	.charge = bpf_charge,
	.yield = bpf_yield,
};

/* ---- what programs call ---- */

/*
 * For programs of any struct_ops, as the BPF core knows no finer distinction
 * here; but only ours can call them.  They take trusted pointers, which are
 * arguments of the callback that is running and what an acquiring kfunc returned.
 * No other struct_ops has callbacks with a run queue or an entity, no kfunc
 * returns any, and a trusted pointer cannot be kept in a map.  So @rq and @e come
 * from one call of one of ours, belong to each other, and sched->lock is held.
 */
__bpf_kfunc_start_defs();

/**
 * mgpu_bpf_insert - put an entity into a queue, or move it there
 * @rq: run queue
 * @e: entity; it must wait
 * @queue: which queue, below MGPU_RUNQ_QUEUES
 * @key: its place there: before those whose key is larger, behind those with the
 *	same.  Keys may wrap: of two of a queue, the smaller is the one from
 *	which the other is less than 2^63 away
 *
 * For enqueue() and charge().  Elsewhere the run queue may be about to put the
 * entity into another place.
 *
 * Return: 0; -EINVAL when @queue is out of range, @e does not wait or another
 * callback calls, and then the policy is evicted.
 */
__bpf_kfunc int mgpu_bpf_insert(struct mgpu_runq *rq,
				struct mgpu_sched_entity *e, u32 queue, u64 key)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (!st)
		return -EINVAL;
	if (queue >= MGPU_RUNQ_QUEUES) {
		broke(st, -EINVAL, e->id,
		      "inserted vGPU %u into queue %u: they go from 0 to %u",
		      e->id, queue, MGPU_RUNQ_QUEUES - 1);
		return -EINVAL;
	}
	if (!st->placing) {
		broke(st, -EINVAL, e->id,
		      "inserted vGPU %u, but not from enqueue or charge",
		      e->id);
		return -EINVAL;
	}
	if (e->state != MGPU_ENTITY_READY) {
		broke(st, -EINVAL, e->id,
		      "inserted vGPU %u, which does not wait", e->id);
		return -EINVAL;
	}
	mgpu_runq_insert(rq, e, queue, key);
	return 0;
}

static struct mgpu_sched_entity *first(struct mgpu_runq *rq, u32 queue)
{
	struct mgpu_bpf_policy_state *st = state_of(rq);

	if (!st)
		return NULL;
	if (queue >= MGPU_RUNQ_QUEUES) {
		broke(st, -EINVAL, 0,
		      "looked at queue %u: they go from 0 to %u", queue,
		      MGPU_RUNQ_QUEUES - 1);
		return NULL;
	}
	return mgpu_runq_first(rq, queue);
}

/**
 * mgpu_bpf_first - who is first in a queue
 * @rq: run queue
 * @queue: which queue, below MGPU_RUNQ_QUEUES
 *
 * Return: id of the vGPU, 0 when the queue is empty.
 */
__bpf_kfunc u32 mgpu_bpf_first(struct mgpu_runq *rq, u32 queue)
{
	struct mgpu_sched_entity *e = first(rq, queue);

	return e ? e->id : 0;
}

/**
 * mgpu_bpf_first_key - the key of the first in a queue
 * @rq: run queue
 * @queue: which queue, below MGPU_RUNQ_QUEUES
 *
 * Return: the key, U64_MAX when the queue is empty.
 */
__bpf_kfunc u64 mgpu_bpf_first_key(struct mgpu_runq *rq, u32 queue)
{
	struct mgpu_sched_entity *e = first(rq, queue);

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
	/* What is no errno must not look like success to who loads it. */
	return ret > 0 || ret < -MAX_ERRNO ? -EINVAL : ret;
}

/* The end of one that is not in force. */
static void state_exit(struct mgpu_bpf_policy_state *st,
		       struct mgpu_device *mdev)
{
	if (st->bpf->exit) {
		spin_lock_irq(&mdev->sched.lock);
		st->bpf->exit(&mdev->sched.rq);
		spin_unlock_irq(&mdev->sched.lock);
	}
	/* An engine may be looking at its operations, see mgpu_job_yield(). */
	kfree_rcu(st, rcu);
}

static void set_state(struct mgpu_device *mdev,
		      struct mgpu_bpf_policy_state *st)
{
	spin_lock_irq(&mdev->sched.lock);
	mdev->sched.bpf = st;
	spin_unlock_irq(&mdev->sched.lock);
}

/* @st, after state_init(), comes into force in place of a built-in policy. */
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

static int install(struct instance *inst, struct mgpu_device *mdev)
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

/* Nobody is left whom it could serve, or is to. */
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

static void report(struct mgpu_device *mdev, const char *name,
		   const struct mgpu_policy_exit *why)
{
	struct mgpu_policy_exit *exit = &mdev->sched.exit;

	*exit = *why;
	strscpy(exit->policy, name, sizeof(exit->policy));
	mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY_EXIT);
}

/**
 * mgpu_policy_bpf_evict - end a device's BPF policy
 * @mdev: device; nothing happens unless a BPF policy is in force on it
 * @why: what to tell user space; @why->policy is not looked at
 *
 * The built-in policy that was chosen last takes over.  The caller tells user
 * space that another is in force.
 *
 * Context: may sleep, holds mgpu_registry_lock.
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
	report(mdev, name, why);
}

/* ---- devices that come and go ---- */

/**
 * mgpu_policy_bpf_device_added - there is a new device
 * @mdev: device, in the list of devices, without a vGPU
 *
 * A policy that is for every device takes it over.
 *
 * Context: may sleep, holds mgpu_registry_lock.
 */
void mgpu_policy_bpf_device_added(struct mgpu_device *mdev)
{
	struct instance *inst;
	int ret;

	lockdep_assert_held(&mgpu_registry_lock);
	list_for_each_entry(inst, &instances, node) {
		if (inst->dev || inst->failed)
			continue;
		ret = install(inst, mdev);
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
 * mgpu_policy_bpf_device_gone - a device goes
 * @mdev: device, without a vGPU
 *
 * Context: may sleep, holds mgpu_registry_lock.
 */
void mgpu_policy_bpf_device_gone(struct mgpu_device *mdev)
{
	lockdep_assert_held(&mgpu_registry_lock);
	if (mdev->sched.bpf)
		take_away(mdev);
}

/* ---- the watchdog ---- */

/* Whether the policy has to go, and why. */
static bool misbehaves(struct mgpu_device *mdev, struct mgpu_policy_exit *why)
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
		/* How long others made it wait is not this one's doing. */
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
	 * A job that runs for long keeps everybody waiting, whoever is next.  The
	 * policy is to blame for what it chose: another, when this one had been
	 * waiting for that long, or nobody.
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

/* The link of an instance that is over, to be detached; with a reference. */
static struct bpf_link *next_link(void)
{
	struct instance *inst;
	struct bpf_link *link;

	list_for_each_entry(inst, &instances, node) {
		link = inst->link;
		if (!link || !is_over(inst))
			continue;
		/* Once is enough. */
		inst->link = NULL;
		/* A link that is being freed goes by itself. */
		if (mgpu_compat_link_get(link))
			return link;
	}
	return NULL;
}

static void supervise(struct work_struct *work)
{
	struct mgpu_policy_exit why;
	struct mgpu_device *mdev;
	struct bpf_link *link;
	u64 next = U64_MAX;

	mutex_lock(&mgpu_registry_lock);
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (!mdev->sched.bpf)
			continue;
		if (misbehaves(mdev, &why)) {
			dev_warn(mdev->dev, "mgpu: BPF policy %s evicted: %s\n",
				 mdev->sched.bpf->name, why.message);
			mgpu_policy_bpf_evict(mdev, &why);
			mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
			continue;
		}
		next = min(next, mdev->sched.bpf->timeout_ns / 4);
	}
	/* Not mod: a policy may have broken its contract meanwhile. */
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
 * Is the device, or are all of them with 0, free to be taken over?  A map can
 * have several links, but stands for one instance.
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
 * @kdata: struct mgpu_bpf_policy, checked; stays until mgpu_bpf_policy_unreg()
 * @link: what stands for it in user space; NULL when that is not told
 *
 * Context: may sleep, holds the BPF core's lock for links.
 * Return: 0; -ENODEV when its device is not there, -EBUSY when another BPF policy
 * is in force there, -ENOMEM, or what its init() returned.
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
		ret = install(inst, mdev);
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
 * @kdata: what was loaded, or has replaced it
 *
 * Context: may sleep, may hold the BPF core's lock for links.
 */
void mgpu_bpf_policy_unreg(void *kdata)
{
	static const struct mgpu_policy_exit why = {
		.kind = MGPU_POLICY_EXIT_KIND_UNLOADED,
		.message = "its loader took it away or ended",
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
		report(mdev, name, &why);
		mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
	}
	list_del(&inst->node);
	kfree(inst);
out:
	mutex_unlock(&mgpu_registry_lock);
}

/**
 * mgpu_bpf_policy_update - put a policy in the place of another
 * @kdata: struct mgpu_bpf_policy, checked
 * @old_kdata: the one that is loaded
 *
 * All devices change over, or none.
 *
 * Context: may sleep, holds the BPF core's lock for links.
 * Return: 0; -ENOLINK when the old one is over, -EBUSY when the new one is loaded
 * already, -ENOMEM, or what the new one's init() returned.
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
			 "%s was loaded in its place", st->name);
		report(mdev, old->name, &why);
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

/* What programs may call is known to the BPF core from here on. */
int mgpu_bpf_policy_kfuncs(void)
{
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS,
					 &policy_kfunc_set);
}

/* No policy is loaded any more: each holds a reference on the module. */
void mgpu_policy_bpf_exit(void)
{
	cancel_delayed_work_sync(&supervisor);
}

#endif /* MGPU_HAS_STRUCT_OPS */

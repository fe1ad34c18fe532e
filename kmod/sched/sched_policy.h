/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the run queue and a policy, which orders the eligible vGPUs.
 */
#ifndef MGPU_SCHED_POLICY_H
#define MGPU_SCHED_POLICY_H

#include "sched/runq.h"

/**
 * struct mgpu_policy_ops - callbacks of a scheduling policy
 *
 * Callers must hold sched->lock with interrupts off; callbacks must not sleep or
 * take a lock.  State is kept in struct mgpu_runq and struct mgpu_sched_entity, never
 * in the policy, which all devices share.
 *
 * @name: name of the policy for user space
 * @shares: the policy promises each vGPU a share of the engine time; user space
 *	that preempts contexts leaves the choice among vGPUs to such a policy
 * @attach: optional; an entity that is idle or about to be enqueued is added to the
 *	policy: a new one, or each one when the policy comes into force
 * @detach: optional; an idle entity is removed, or another policy takes over
 * @enqueue: the entity has a waiting job and may use an engine; the policy keeps it
 *	until it picks the entity, or until @dequeue
 * @dequeue: optional; the policy must not pick the entity any more: its jobs were
 *	cancelled, its settings change, or another policy takes over.  The caller
 *	calls mgpu_runq_erase() in any case
 * @pick: return the entity to serve next; the caller calls mgpu_runq_erase().  A
 *	built-in policy must not return NULL while entities wait
 * @charge: optional; the entity, in any state, used an engine for @ns nanoseconds
 * @wait: optional; return the nanoseconds until the entity may be enqueued, 0 for
 *	now.  Called before each @enqueue; policies with it are not work-conserving
 * @yield: optional; return whether to preempt the entity, which has used @ran engine
 *	nanoseconds that are not charged yet; called between two tiles
 */
struct mgpu_policy_ops {
	const char *name;
	bool shares;
	void (*attach)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u64 now);
	void (*detach)(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
	void (*enqueue)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 now);
	void (*dequeue)(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
	struct mgpu_sched_entity *(*pick)(struct mgpu_runq *rq, u64 now);
	void (*charge)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u64 ns, u64 now);
	u64 (*wait)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		    u64 now);
	bool (*yield)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 ran, u64 now);
};

extern const struct mgpu_policy_ops mgpu_policy_best_effort;
extern const struct mgpu_policy_ops mgpu_policy_equal;
extern const struct mgpu_policy_ops mgpu_policy_weighted;
extern const struct mgpu_policy_ops mgpu_policy_fixed;

/* All built-in policies, ended by NULL; the first is the default. */
extern const struct mgpu_policy_ops * const mgpu_policies[];

/**
 * mgpu_runq_may_yield - test whether mgpu_runq_should_yield() can return true
 * @rq: run queue
 * @e: entity that the job belongs to
 *
 * Context: any; under RCU or sched->lock.  Without sched->lock the result may be
 * stale.
 * Return: true if an entity is ready, if @e has a limit, or if the policy may leave an
 * engine idle.
 */
static inline bool mgpu_runq_may_yield(const struct mgpu_runq *rq,
				       const struct mgpu_sched_entity *e)
{
	return READ_ONCE(rq->nr_ready) || READ_ONCE(e->limit.rate) ||
	       READ_ONCE(rq->policy)->wait;
}

/*
 * A vGPU is away when it has had no jobs for this long, nanoseconds.  A shorter gap is
 * the guest refilling its ring.
 */
#define MGPU_AWAY_NS	1000000ULL

/* Return whether @e, which is about to be enqueued, was away. */
static inline bool mgpu_runq_was_away(const struct mgpu_sched_entity *e,
				      u64 now)
{
	return !e->running && now - e->left_ns >= MGPU_AWAY_NS;
}

/* policy_fair.c: callbacks of the weighted policy, for policies that build on it */
void mgpu_weighted_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u64 now);
void mgpu_weighted_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			   u64 now);
struct mgpu_sched_entity *mgpu_weighted_pick(struct mgpu_runq *rq, u64 now);
void mgpu_weighted_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u64 ns, u64 now);
bool mgpu_weighted_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 ran, u64 now);

#endif /* MGPU_SCHED_POLICY_H */

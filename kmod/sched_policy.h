/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the run queue and a policy: in which order eligible
 * vGPUs are served.
 */
#ifndef MGPU_SCHED_POLICY_H
#define MGPU_SCHED_POLICY_H

#include "runq.h"

/**
 * struct mgpu_policy_ops - callbacks of a scheduling policy
 *
 * All are called with sched->lock held and interrupts off; none may sleep or
 * take a lock.  State lives in struct mgpu_runq and struct mgpu_sched_entity,
 * never in the policy, which all devices share.
 *
 * @name: what user space sees and asks for
 * @attach: optional; the policy gets to know an entity that is idle or about to
 *	be enqueued: one that is new, or every one when the policy takes over
 * @detach: optional; the entity, idle, goes away or another policy takes over
 * @enqueue: the entity has a waiting job and may use an engine; the policy
 *	keeps it until @dequeue or until it picks it
 * @dequeue: optional; the entity is not to be picked any more: its jobs were
 *	cancelled, its settings change, or another policy takes over.
 *	mgpu_runq_erase() follows in any case
 * @pick: who is served next; mgpu_runq_erase() follows.  Must not return NULL
 *	while entities wait, if it is built in
 * @charge: optional; the entity, enqueued or not, used an engine for @ns
 * @wait: optional; nanoseconds until the entity may be enqueued, 0 for now.
 *	Makes a policy that is not work-conserving; asked before each enqueue
 * @yield: optional; whether the entity, which has run for @ran uncharged
 *	nanoseconds, should let another go first; called between two tiles
 */
struct mgpu_policy_ops {
	const char *name;
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
 * mgpu_runq_may_yield - whether mgpu_runq_should_yield() is worth asking
 * @rq: run queue
 *
 * Context: any, without sched->lock too: what it says may be a moment old.
 * Return: true when somebody waits, or when the policy takes an engine away even
 * so that nobody gets it.
 */
static inline bool mgpu_runq_may_yield(const struct mgpu_runq *rq)
{
	return READ_ONCE(rq->nr_ready) || READ_ONCE(rq->policy)->wait;
}

/* Shorter than this is not away: the ring is only being refilled. */
#define MGPU_AWAY_NS	1000000ULL

/* Whether @e, about to be enqueued, had nothing to do for a while. */
static inline bool mgpu_runq_was_away(const struct mgpu_sched_entity *e,
				      u64 now)
{
	return !e->running && now - e->left_ns >= MGPU_AWAY_NS;
}

/* The order of the weighted policy, for others that use it (policy_fair.c) */
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

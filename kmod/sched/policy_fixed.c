// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fixed share: each vGPU gets engine time in proportion to its weight among all
 * vGPUs that exist, busy or not, and no more.  Not work-conserving.  vGPUs that may
 * run are ordered by the weighted policy.
 */
#include "sched/sched_policy.h"

#define MS		1000000ULL

/*
 * Time over which a waiting vGPU's share accumulates, nanoseconds.  A vGPU that
 * waits for an engine or for a late timer must not lose its share meanwhile: the
 * shares add up to all engine time, so none is left to compensate it.  It waits for
 * the slices of the vGPUs ahead of it, or for their whole jobs on an engine that
 * cannot preempt.
 */
#define WAITING_NS	(20 * MS)
/*
 * The same for a vGPU without jobs, nanoseconds.  It is short, because the vGPU uses
 * the accumulated time in one burst: the burst and a slice must be within 2 % of the
 * share over 100 ms.
 */
#define AWAY_NS		(1 * MS)
/* Least size of a bucket, nanoseconds: more than the rounding of clocks. */
#define LEAST_NS	1000
/* Return the engine time that a share of @rate gains in @ns, nanoseconds. */
static u64 fixed_gathered(u64 rate, u64 ns)
{
	u64 sum = div_u64(rate * (ns / MS), 1000);

	return sum > LEAST_NS ? sum : LEAST_NS;
}

/*
 * Update the entity's rate.  Called before each use, because every change of a weight
 * changes the rates of all entities.
 */
static void fixed_refresh(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	u64 rate = div64_u64(1000000000ULL * rq->engines * e->weight,
			     rq->weights);

	if (!rate)
		rate = 1;
	if (rate != e->share.rate)
		mgpu_bucket_set(&e->share, rate, fixed_gathered(rate, WAITING_NS),
				now);
}

static void fixed_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 now)
{
	mgpu_weighted_attach(rq, e, now);
	e->share = (struct mgpu_bucket) { 0 };
	fixed_refresh(rq, e, now);
	mgpu_bucket_trim(&e->share, fixed_gathered(e->share.rate, AWAY_NS), now);
}

static u64 fixed_wait(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 now)
{
	fixed_refresh(rq, e, now);
	if (e->state == MGPU_ENTITY_IDLE && mgpu_runq_was_away(e, now))
		mgpu_bucket_trim(&e->share, fixed_gathered(e->share.rate, AWAY_NS),
				 now);
	return mgpu_bucket_wait(&e->share, now);
}

static struct mgpu_sched_entity *fixed_pick(struct mgpu_runq *rq, u64 now)
{
	struct mgpu_sched_entity *e = mgpu_weighted_pick(rq, now);

	if (e && !e->running)
		mgpu_bucket_begin(&e->share, now);
	return e;
}

static void fixed_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 ns, u64 now)
{
	mgpu_weighted_charge(rq, e, ns, now);
	fixed_refresh(rq, e, now);
	mgpu_bucket_charge(&e->share, ns, now);
}

/* Preempt a job in debt even if no other vGPU waits. */
static bool fixed_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 ran, u64 now)
{
	fixed_refresh(rq, e, now);
	if (mgpu_bucket_spent(&e->share, ran, now))
		return true;
	return mgpu_weighted_yield(rq, e, ran, now);
}

const struct mgpu_policy_ops mgpu_policy_fixed = {
	.name = "fixed",
	.shares = true,
	.attach = fixed_attach,
	.enqueue = mgpu_weighted_enqueue,
	.pick = fixed_pick,
	.charge = fixed_charge,
	.wait = fixed_wait,
	.yield = fixed_yield,
};

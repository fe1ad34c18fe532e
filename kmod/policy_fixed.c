// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fixed share: each vGPU gets its weight's part of all engine time, measured
 * against the vGPUs that exist, busy or not; and no more.  Not work-conserving.
 * Among those that may run, the order is that of the weighted policy.
 */
#include "sched_policy.h"

#define MS		1000000ULL

/*
 * For how long a share may gather unused.  Whoever waits, for the engine or for a
 * timer that is late, must not lose what it gains meanwhile: where the shares
 * make up all there is, nobody could give it back.  It waits for the slices of
 * those before it, or, where jobs cannot be stopped, for whole ones.
 */
#define WAITING_NS	(20 * MS)
/*
 * Whoever wants nothing must not save up: what has gathered is used in one
 * burst, and with that and a slice 100 ms are to be within 2 % of the share.
 */
#define AWAY_NS		(1 * MS)
/* However small the share is: more than clocks round. */
#define LEAST_NS	1000
/* Debt at which a job is set aside until it is paid back. */
#define SLICE_NS	(1 * MS)

/* What a share gains in @ns. */
static u64 gathered(u64 rate, u64 ns)
{
	u64 sum = div_u64(rate * (ns / MS), 1000);

	return sum > LEAST_NS ? sum : LEAST_NS;
}

/*
 * The sum of the weights changes with any of them, so that rates are looked at
 * when they are used.
 */
static void refresh(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now)
{
	u64 rate = div64_u64(1000000000ULL * rq->engines * e->weight,
			     rq->weights);

	if (!rate)
		rate = 1;
	if (rate != e->share.rate)
		mgpu_bucket_set(&e->share, rate, gathered(rate, WAITING_NS),
				now);
}

static void fixed_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 now)
{
	mgpu_weighted_attach(rq, e, now);
	e->share = (struct mgpu_bucket) { 0 };
	refresh(rq, e, now);
	mgpu_bucket_trim(&e->share, gathered(e->share.rate, AWAY_NS), now);
}

static u64 fixed_wait(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 now)
{
	refresh(rq, e, now);
	if (e->state == MGPU_ENTITY_IDLE && mgpu_runq_was_away(e, now))
		mgpu_bucket_trim(&e->share, gathered(e->share.rate, AWAY_NS),
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
	refresh(rq, e, now);
	mgpu_bucket_charge(&e->share, ns, now);
}

/* Also when nobody else waits: the time is not its own. */
static bool fixed_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 ran, u64 now)
{
	struct mgpu_bucket then;

	refresh(rq, e, now);
	then = e->share;
	mgpu_bucket_charge(&then, ran, now);
	if (then.level_ns < -(s64)SLICE_NS)
		return true;
	return mgpu_weighted_yield(rq, e, ran, now);
}

const struct mgpu_policy_ops mgpu_policy_fixed = {
	.name = "fixed",
	.attach = fixed_attach,
	.enqueue = mgpu_weighted_enqueue,
	.pick = fixed_pick,
	.charge = fixed_charge,
	.wait = fixed_wait,
	.yield = fixed_yield,
};

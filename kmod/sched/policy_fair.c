// SPDX-License-Identifier: GPL-2.0-only
/*
 * Equal share and weighted fair: serve the vGPU that has used the least engine time
 * relative to its weight.  Work-conserving; idle time earns no credit.
 *
 * Source: start-time fair queueing (Goyal, Vin, Cheng 1996), with the cost of a
 * job charged when it is known, after it ran.
 *
 * A virtual time counts engine nanoseconds times MGPU_WEIGHT_MAX / weight.  The run
 * queue's virtual time is the highest at which an entity was served.  An entity
 * ahead of it is in debt; an entity behind it has credit.  Virtual times wrap: only
 * their differences are meaningful.
 */
#include "sched/sched_policy.h"

#define MS			1000000ULL

/* Upper bound on an entity's credit, engine nanoseconds. */
#define MAX_CREDIT_NS		(10 * MS)
/* A running entity may get this far ahead of a waiting one, engine nanoseconds. */
#define SLICE_NS		(1 * MS)
/*
 * Longest time of one job, and of two: a vGPU has two queues.  Engine nanoseconds.
 */
#define MAX_CHARGE_NS		(MGPU_JOB_TIMEOUT_MAX * MS)
#define MAX_DEBT_NS		(2 * MAX_CHARGE_NS)

/* @ns: at most MAX_DEBT_NS, so that no product has more than 51 bits. */
static u64 fair_scaled(u64 ns, u32 weight)
{
	return div_u64(ns * MGPU_WEIGHT_MAX, weight);
}

static u64 fair_limited(u64 ns, u64 most)
{
	return ns < most ? ns : most;
}

/* Return the entity's debt in engine nanoseconds; negative for credit. */
static s64 debt_of(const struct mgpu_runq *rq,
		   const struct mgpu_sched_entity *e)
{
	s64 diff = (s64)(e->vtime - rq->vtime);

	/* More debt is not possible: the entity is behind, and the difference wrapped. */
	if (diff > (s64)fair_scaled(MAX_DEBT_NS, e->vweight))
		return -(s64)MAX_CREDIT_NS;
	if (diff < -(s64)fair_scaled(MAX_CREDIT_NS, e->vweight))
		return -(s64)MAX_CREDIT_NS;
	if (diff < 0)
		return -(s64)div_u64((u64)-diff * e->vweight, MGPU_WEIGHT_MAX);
	return (s64)div_u64((u64)diff * e->vweight, MGPU_WEIGHT_MAX);
}

static void set_debt(const struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		     s64 debt, u32 weight)
{
	e->vweight = weight;
	if (debt < 0)
		e->vtime = rq->vtime - fair_scaled((u64)-debt, weight);
	else
		e->vtime = rq->vtime + fair_scaled((u64)debt, weight);
}

/* Apply a new weight: it changes the cost of future use, the debt stays. */
static void fair_reweigh(const struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u32 weight)
{
	if (e->vweight != weight)
		set_debt(rq, e, debt_of(rq, e), weight);
}

/*
 * Add an entity with a debt of at most MAX_CREDIT_NS, however much it used under
 * another policy.
 */
static void fair_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u32 weight)
{
	s64 debt = debt_of(rq, e);

	if (debt > (s64)MAX_CREDIT_NS)
		debt = MAX_CREDIT_NS;
	set_debt(rq, e, debt, weight);
}

static void fair_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u32 weight, u64 now)
{
	bool away = mgpu_runq_was_away(e, now);
	s64 debt = debt_of(rq, e);

	if (e->vweight != weight || debt <= -(s64)MAX_CREDIT_NS ||
	    (debt < 0 && away))
		set_debt(rq, e, debt < 0 && away ? 0 : debt, weight);
	mgpu_runq_insert(rq, e, 0, e->vtime);
}

static void fair_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u32 weight, u64 ns)
{
	u64 most = rq->vtime + fair_scaled(MAX_DEBT_NS, weight);

	fair_reweigh(rq, e, weight);
	e->vtime += fair_scaled(fair_limited(ns, MAX_CHARGE_NS), weight);
	if ((s64)(e->vtime - most) > 0)
		e->vtime = most;
	if (e->queued)
		mgpu_runq_insert(rq, e, 0, e->vtime);
}

static bool fair_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u32 weight, u64 ran)
{
	struct mgpu_sched_entity *first = mgpu_runq_first(rq, 0);
	struct rb_node *next;
	u64 mine, others;

	/* If the entity itself is first, compare with the one behind it. */
	if (first == e) {
		next = rb_next(&e->node);
		first = next ? rb_entry(next, struct mgpu_sched_entity, node) :
			       NULL;
	}
	if (!first)
		return false;
	fair_reweigh(rq, e, weight);
	mine = e->vtime + fair_scaled(fair_limited(ran, MAX_CHARGE_NS), weight);
	others = first->vtime + fair_scaled(SLICE_NS, weight);
	return (s64)(others - mine) < 0;
}

/* ---- weighted ---- */

void mgpu_weighted_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u64 now)
{
	fair_attach(rq, e, e->weight);
}

void mgpu_weighted_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			   u64 now)
{
	fair_enqueue(rq, e, e->weight, now);
}

struct mgpu_sched_entity *mgpu_weighted_pick(struct mgpu_runq *rq, u64 now)
{
	struct mgpu_sched_entity *e = mgpu_runq_first(rq, 0);

	/* The run queue's virtual time never goes back: an entity may have credit. */
	if (e && (s64)(e->vtime - rq->vtime) > 0)
		rq->vtime = e->vtime;
	return e;
}

void mgpu_weighted_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u64 ns, u64 now)
{
	fair_charge(rq, e, e->weight, ns);
}

bool mgpu_weighted_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 ran, u64 now)
{
	return fair_yield(rq, e, e->weight, ran);
}

const struct mgpu_policy_ops mgpu_policy_weighted = {
	.name = "weighted",
	.shares = true,
	.attach = mgpu_weighted_attach,
	.enqueue = mgpu_weighted_enqueue,
	.pick = mgpu_weighted_pick,
	.charge = mgpu_weighted_charge,
	.yield = mgpu_weighted_yield,
};

/* ---- equal: weighted, with the same weight for all vGPUs ---- */

static void equal_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 now)
{
	fair_attach(rq, e, MGPU_WEIGHT_MAX);
}

static void equal_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u64 now)
{
	fair_enqueue(rq, e, MGPU_WEIGHT_MAX, now);
}

static void equal_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u64 ns, u64 now)
{
	fair_charge(rq, e, MGPU_WEIGHT_MAX, ns);
}

static bool equal_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 ran, u64 now)
{
	return fair_yield(rq, e, MGPU_WEIGHT_MAX, ran);
}

const struct mgpu_policy_ops mgpu_policy_equal = {
	.name = "equal",
	.shares = true,
	.attach = equal_attach,
	.enqueue = equal_enqueue,
	.pick = mgpu_weighted_pick,
	.charge = equal_charge,
	.yield = equal_yield,
};

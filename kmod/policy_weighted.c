// SPDX-License-Identifier: GPL-2.0-only
/*
 * Weighted fair: the vGPU that has used least engine time for its weight goes
 * next.  Work-conserving; time spent idle earns nothing.
 *
 * Source: start-time fair queueing (Goyal, Vin, Cheng 1996), with the cost of a
 * job charged when it is known, after it ran.
 */
#include <linux/rbtree.h>

#include "sched_policy.h"

static struct mgpu_sched_entity *entity_of(struct rb_node *node)
{
	return rb_entry(node, struct mgpu_sched_entity, node);
}

/* Virtual times wrap; their difference does not. */
static bool earlier(struct rb_node *a, const struct rb_node *b)
{
	return (s64)(entity_of(a)->vtime -
		     rb_entry(b, struct mgpu_sched_entity, node)->vtime) < 0;
}

static void weighted_enqueue(struct mgpu_sched *sched,
			     struct mgpu_sched_entity *e)
{
	if ((s64)(sched->vtime - e->vtime) > 0)
		e->vtime = sched->vtime;
	rb_add_cached(&e->node, &sched->queue, earlier);
}

static void weighted_dequeue(struct mgpu_sched *sched,
			     struct mgpu_sched_entity *e)
{
	rb_erase_cached(&e->node, &sched->queue);
}

static struct mgpu_sched_entity *weighted_pick(struct mgpu_sched *sched)
{
	struct rb_node *node = rb_first_cached(&sched->queue);
	struct mgpu_sched_entity *e;

	if (!node)
		return NULL;
	e = entity_of(node);
	rb_erase_cached(node, &sched->queue);
	sched->vtime = e->vtime;
	return e;
}

static void weighted_charge(struct mgpu_sched *sched,
			    struct mgpu_sched_entity *e, u64 ns)
{
	if (e->queued)
		rb_erase_cached(&e->node, &sched->queue);
	e->vtime += div_u64(ns * MGPU_WEIGHT_DEFAULT, e->weight);
	if (e->queued)
		rb_add_cached(&e->node, &sched->queue, earlier);
}

const struct mgpu_policy_ops mgpu_policy_weighted = {
	.name = "weighted",
	.enqueue = weighted_enqueue,
	.dequeue = weighted_dequeue,
	.pick = weighted_pick,
	.charge = weighted_charge,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Best effort: serve jobs in the order of submission, regardless of the vGPU.
 * Work-conserving; a vGPU that submits more gets more.
 */
#include "sched/sched_policy.h"

static void best_effort_enqueue(struct mgpu_runq *rq,
				struct mgpu_sched_entity *e, u64 now)
{
	mgpu_runq_insert(rq, e, 0, e->head_seq);
}

static struct mgpu_sched_entity *best_effort_pick(struct mgpu_runq *rq,
						  u64 now)
{
	return mgpu_runq_first(rq, 0);
}

const struct mgpu_policy_ops mgpu_policy_best_effort = {
	.name = "best-effort",
	.enqueue = best_effort_enqueue,
	.pick = best_effort_pick,
};

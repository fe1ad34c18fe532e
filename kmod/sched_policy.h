/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the scheduler and a policy: which vGPU is served next.
 */
#ifndef MGPU_SCHED_POLICY_H
#define MGPU_SCHED_POLICY_H

#include "mgpu.h"

/**
 * struct mgpu_policy_ops - callbacks of a scheduling policy
 *
 * All are called with sched->lock held and interrupts on; none may sleep.
 * State lives in struct mgpu_sched and struct mgpu_sched_entity, never in the
 * policy, which all devices share.
 *
 * @name: what user space sees
 * @enqueue: the entity got its first waiting job
 * @dequeue: the entity's last waiting job was cancelled
 * @pick: take the entity to serve next out of the queue; the caller enqueues it
 *	again if it has more jobs.  NULL when none waits; a policy that is not
 *	work-conserving may also return NULL while some do.
 * @charge: the entity, queued or not, has used the engine for @ns nanoseconds
 */
struct mgpu_policy_ops {
	const char *name;
	void (*enqueue)(struct mgpu_sched *sched, struct mgpu_sched_entity *e);
	void (*dequeue)(struct mgpu_sched *sched, struct mgpu_sched_entity *e);
	struct mgpu_sched_entity *(*pick)(struct mgpu_sched *sched);
	void (*charge)(struct mgpu_sched *sched, struct mgpu_sched_entity *e,
		       u64 ns);
};

extern const struct mgpu_policy_ops mgpu_policy_weighted;

#endif /* MGPU_SCHED_POLICY_H */

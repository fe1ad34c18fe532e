/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the module and a scheduling policy in BPF.  bpf/policy.bpf.h
 * has the definitions that such a program needs; the names and types of the members
 * are a stable interface.
 */
#ifndef MGPU_POLICY_BPF_H
#define MGPU_POLICY_BPF_H

#include <linux/types.h>
#include <uapi/linux/mgpu.h>

struct mgpu_runq;
struct mgpu_sched_entity;

/* Longest time that a vGPU may wait unserved, milliseconds. */
#define MGPU_BPF_TIMEOUT_MIN		100
#define MGPU_BPF_TIMEOUT_MAX		30000
#define MGPU_BPF_TIMEOUT_DEFAULT	2000

/**
 * struct mgpu_bpf_policy - a scheduling policy in BPF (struct_ops)
 *
 * The callbacks are those of struct mgpu_policy_ops; see there.  Callers hold
 * sched->lock with interrupts off: callbacks must be short and must not sleep.
 * A policy may serve several devices: the program keeps the state of a device in
 * its maps by rq->dev, and that of a vGPU by e->id.
 *
 * @init: optional; called before all other callbacks for a device.  A negative errno
 *	refuses the device, and fails the load
 * @exit: optional; called after all other callbacks for a device whose @init
 *	succeeded
 * @attach: optional; an entity is added to the policy
 * @detach: optional; the entity is removed, or the policy leaves force
 * @enqueue: the entity waits, to be picked later.  Most policies call
 *	mgpu_bpf_insert(); others keep the entity in their maps
 * @dequeue: optional; the policy must not pick the entity any more.  The run queue
 *	removes it from its queues in any case
 * @pick: return the ID of the waiting vGPU to serve next, or 0 to leave the engine
 *	idle until the next job is submitted or completes.  The run queue removes the
 *	vGPU from its queues
 * @charge: optional; the entity used an engine for @ns nanoseconds
 * @yield: optional; return not 0 to preempt the entity, which has been on an engine
 *	for @ran nanoseconds, so that another one goes first
 * @dev: ID of the device that the policy is for, or 0 for every device, later ones
 *	too.  Ignored in an update: the policy gets the devices of the replaced one
 * @timeout_ms: longest time that a vGPU may wait unserved, milliseconds,
 *	MGPU_BPF_TIMEOUT_MIN to _MAX; 0 for MGPU_BPF_TIMEOUT_DEFAULT
 * @name: name that user space sees: letters, digits, '-', '_' and '.'; must not be
 *	the name of a built-in policy
 */
struct mgpu_bpf_policy {
	int (*init)(struct mgpu_runq *rq);
	void (*exit)(struct mgpu_runq *rq);
	void (*attach)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u64 now);
	void (*detach)(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
	void (*enqueue)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			u64 now);
	void (*dequeue)(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
	u32 (*pick)(struct mgpu_runq *rq, u64 now);
	void (*charge)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       u64 ns, u64 now);
	int (*yield)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		     u64 ran, u64 now);
	u32 dev;
	u32 timeout_ms;
	char name[MGPU_POLICY_NAME_LEN];
};

/* kfuncs for programs of struct mgpu_bpf_policy. */
int mgpu_bpf_insert(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		    u32 queue, u64 key);
u32 mgpu_bpf_first(struct mgpu_runq *rq, u32 queue);
u64 mgpu_bpf_first_key(struct mgpu_runq *rq, u32 queue);

/* policy_bpf.c, for the struct_ops in policy_bpf_ops.c */
struct bpf_link;

int mgpu_bpf_policy_kfuncs(void);
int mgpu_bpf_policy_reg(void *kdata, struct bpf_link *link);
void mgpu_bpf_policy_unreg(void *kdata);
int mgpu_bpf_policy_update(void *kdata, void *old_kdata);

#endif /* MGPU_POLICY_BPF_H */

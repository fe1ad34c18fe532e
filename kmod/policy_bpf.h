/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the module and a scheduling policy that is written in
 * BPF.  bpf/policy.bpf.h has what such a program needs of it; names and types of
 * the members are an interface.
 */
#ifndef MGPU_POLICY_BPF_H
#define MGPU_POLICY_BPF_H

#include <linux/types.h>
#include <uapi/linux/mgpu.h>

struct mgpu_runq;
struct mgpu_sched_entity;

/* How long a vGPU may wait unserved, milliseconds. */
#define MGPU_BPF_TIMEOUT_MIN		100
#define MGPU_BPF_TIMEOUT_MAX		30000
#define MGPU_BPF_TIMEOUT_DEFAULT	2000

/**
 * struct mgpu_bpf_policy - a scheduling policy in BPF (struct_ops)
 *
 * The callbacks are those of struct mgpu_policy_ops, which see.  All run with
 * sched->lock held and interrupts off, for as short as possible; none may sleep.
 * One policy may serve several devices: state of a device goes by rq->dev, that
 * of a vGPU by e->id, in the program's maps.
 *
 * @init: optional; before anything else on a device.  A negative errno refuses
 *	the device, and with it the load
 * @exit: optional; after everything else on a device for which @init was called
 *	and did not refuse
 * @attach: optional; the policy gets to know an entity
 * @detach: optional; the entity goes away, or the policy does
 * @enqueue: the entity waits and is to be picked some time.  As a rule calls
 *	mgpu_bpf_insert(); a policy that does not keeps it in its own maps
 * @dequeue: optional; the entity is not to be picked any more.  It leaves the
 *	run queue's queues in any case
 * @pick: id of the vGPU that is served next, which must be one that waits; 0 for
 *	nobody, until a job is submitted or an engine is done with one.  The vGPU
 *	leaves the run queue's queues
 * @charge: optional; the entity used an engine for @ns
 * @yield: optional; not 0 when the entity, which has been on an engine for @ran
 *	nanoseconds, is to let another go first
 * @dev: id of the device to take over, 0 for every one, those too that come
 *	later.  Not looked at when the policy replaces another: it takes over what
 *	that one had
 * @timeout_ms: how long a vGPU may wait unserved, MGPU_BPF_TIMEOUT_MIN to _MAX;
 *	0 for MGPU_BPF_TIMEOUT_DEFAULT
 * @name: what user space sees: letters, digits, '-', '_' and '.'; not that of a
 *	built-in policy
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

/* What such a program may call (kfuncs). */
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

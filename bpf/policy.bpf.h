/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions for a scheduling policy in BPF: types of the module and the kfuncs that
 * a policy may call.  kmod/sched/policy_bpf.h is the contract; Documentation/bpf.rst
 * explains it.
 *
 * The structures have only the fields that policies may rely on.  The loader takes
 * their offsets from the loaded module (CO-RE), so a policy also works with modules
 * that it was not built for.
 */
#ifndef MGPU_POLICY_BPF_H
#define MGPU_POLICY_BPF_H

#include "common.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

struct mgpu_sched_entity {
	__u32 id;
	__u32 weight;
	__u32 fps_limit;	/* millihertz, 0 = none */
	_Bool head_frame;
	__u64 head_ns;
	__u64 head_seq;
	__u64 ready_ns;
};

struct mgpu_runq {
	__u32 dev;
	__u32 engines;
	__u64 weights;
	__u32 nr_ready;
};

#pragma clang attribute pop

#define MGPU_RUNQ_QUEUES	8
#define MGPU_POLICY_NAME_LEN	32
#define MGPU_MAX_VGPUS		4096	/* IDs of vGPUs are below this */

#define NSEC_PER_MSEC		1000000ULL
#define NSEC_PER_SEC		1000000000ULL

/* Programs are SEC("struct_ops/NAME") and BPF_PROG(NAME, arguments). */
struct mgpu_bpf_policy {
	int (*init)(struct mgpu_runq *rq);
	void (*exit)(struct mgpu_runq *rq);
	void (*attach)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       __u64 now);
	void (*detach)(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
	void (*enqueue)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			__u64 now);
	void (*dequeue)(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
	__u32 (*pick)(struct mgpu_runq *rq, __u64 now);
	void (*charge)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		       __u64 ns, __u64 now);
	int (*yield)(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		     __u64 ran, __u64 now);
	__u32 dev;
	__u32 timeout_ms;
	char name[MGPU_POLICY_NAME_LEN];
};

extern int mgpu_bpf_insert(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			   __u32 queue, __u64 key) __ksym;
extern __u32 mgpu_bpf_first(struct mgpu_runq *rq, __u32 queue) __ksym;
extern __u64 mgpu_bpf_first_key(struct mgpu_runq *rq, __u32 queue) __ksym;

#endif /* MGPU_POLICY_BPF_H */

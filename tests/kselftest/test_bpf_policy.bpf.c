// SPDX-License-Identifier: GPL-2.0-only
/*
 * A policy that serves in the order of jobs and, when told to, breaks its
 * contract.
 */
#include "policy.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* As in test_bpf_policy.c. */
enum {
	GOOD,
	STARVE,		/* never serves the victim */
	STALL,		/* serves no vGPU */
	PICK_NOBODY,	/* serves a vGPU that does not exist */
	PICK_IDLE,	/* serves the victim, which does not wait */
	BAD_QUEUE,
	BAD_INSERT,	/* inserts where it may not */
	REFUSE,		/* refuses the device */
};

const volatile __u32 mode = GOOD;
const volatile __u32 victim;
const volatile __s8 error = -61;	/* ENODATA */

SEC("struct_ops/init")
int BPF_PROG(init, struct mgpu_runq *rq)
{
	return mode == REFUSE ? error : 0;
}

SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct mgpu_runq *rq, struct mgpu_sched_entity *e,
	      __u64 now)
{
	__u32 queue = 0;

	if (mode == BAD_QUEUE)
		queue = MGPU_RUNQ_QUEUES;
	else if (mode == STARVE && e->id == victim)
		queue = 1;
	mgpu_bpf_insert(rq, e, queue, e->head_seq);
}

SEC("struct_ops/yield")
int BPF_PROG(yield, struct mgpu_runq *rq, struct mgpu_sched_entity *e,
	     __u64 ran, __u64 now)
{
	if (mode == BAD_INSERT)
		mgpu_bpf_insert(rq, e, 0, 0);
	return 0;
}

SEC("struct_ops/pick")
__u32 BPF_PROG(pick, struct mgpu_runq *rq, __u64 now)
{
	switch (mode) {
	case STALL:
		return 0;
	case PICK_NOBODY:
		return MGPU_MAX_VGPUS - 1;
	case PICK_IDLE:
		return victim;
	default:
		return mgpu_bpf_first(rq, 0);
	}
}

SEC(".struct_ops.link")
struct mgpu_bpf_policy bad = {
	.init = (void *)init,
	.enqueue = (void *)enqueue,
	.pick = (void *)pick,
	.yield = (void *)yield,
	.name = "bad",
	.timeout_ms = 500,
};

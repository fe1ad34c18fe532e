// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy "priority": the higher class always goes first, but nobody waits for
 * ever.
 *
 * The weight makes the class: 800 and above is the highest, and each factor of
 * two below is the next, so that the default of 100 is in the fourth of eight and
 * what is below 13 in the last.  Within a class who came first goes first.  A job
 * makes way, between two tiles, for one of a higher class.
 *
 * Who has waited for bound_ms goes before everybody who has not, the longest
 * waiting first, and does not make way.  So the wait is at most bound_ms and one
 * job for each vGPU that is over it too; a job that has made way waits anew.
 *
 * Attaches to: struct_ops mgpu_bpf_policy.
 * Costs: one tree operation and at most 24 calls into the module per job.
 */
#include "policy.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Milliseconds that a vGPU may wait. */
const volatile __u32 bound_ms = 100;

/* Which of a device's vGPUs were served because they had waited for so long. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MGPU_MAX_VGPUS);
	__type(key, __u32);
	__type(value, __u32);
} overdue SEC(".maps");

static __always_inline __u32 class_of(const struct mgpu_sched_entity *e)
{
	__u32 weight = e->weight, floor = 800, class;

	for (class = 0; class < MGPU_RUNQ_QUEUES - 1; class++) {
		if (weight >= floor)
			break;
		floor = (floor + 1) / 2;
	}
	return class;
}

static __always_inline void mark(__u32 id, __u32 is_overdue)
{
	__u32 *p = bpf_map_lookup_elem(&overdue, &id);

	if (p)
		*p = is_overdue;
}

SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct mgpu_runq *rq, struct mgpu_sched_entity *e,
	      __u64 now)
{
	mgpu_bpf_insert(rq, e, class_of(e), e->ready_ns);
}

SEC("struct_ops/pick")
__u32 BPF_PROG(pick, struct mgpu_runq *rq, __u64 now)
{
	__u64 bound = bound_ms * NSEC_PER_MSEC, longest = 0;
	__u32 id, highest = 0, late = 0;

	for (__u32 class = 0; class < MGPU_RUNQ_QUEUES; class++) {
		__u64 since = mgpu_bpf_first_key(rq, class);

		if (since == ~0ULL)
			continue;
		id = mgpu_bpf_first(rq, class);
		if (!highest)
			highest = id;
		if (now > since && now - since > bound &&
		    now - since > longest) {
			longest = now - since;
			late = id;
		}
	}
	id = late ?: highest;
	if (id)
		mark(id, !!late);
	return id;
}

SEC("struct_ops/yield")
int BPF_PROG(yield, struct mgpu_runq *rq, struct mgpu_sched_entity *e,
	     __u64 ran, __u64 now)
{
	__u32 id = e->id, mine = class_of(e);
	__u32 *p = bpf_map_lookup_elem(&overdue, &id);

	if (p && *p)
		return 0;
	for (__u32 class = 0; class < MGPU_RUNQ_QUEUES; class++) {
		if (class < mine && mgpu_bpf_first(rq, class))
			return 1;
	}
	return 0;
}

SEC(".struct_ops.link")
struct mgpu_bpf_policy priority = {
	.enqueue = (void *)enqueue,
	.pick = (void *)pick,
	.yield = (void *)yield,
	.name = "priority",
};

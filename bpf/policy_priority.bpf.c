// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy "priority": serve higher classes first, with a bound on the wait of lower
 * classes.
 *
 * The class is computed from the weight: 800 and above is the highest class, and each
 * factor of two below is the next.  So the default of 100 is in the fourth of eight
 * classes, and weights below 13 are in the last.  Within a class, vGPUs are served in
 * the order in which they became ready.  A job is preempted, between two tiles, for a
 * job of a higher class.
 *
 * A vGPU that has waited for bound_ms is overdue: it is served before all vGPUs that
 * are not, the longest waiting first, and is not preempted.  So the wait is at most
 * bound_ms and one job for each other overdue vGPU.  The wait of a preempted job starts
 * again.
 *
 * Attaches to: struct_ops mgpu_bpf_policy.
 * Costs: one tree operation and at most 24 calls into the module per job.
 */
#include "policy.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Time after which a waiting vGPU is overdue, milliseconds. */
const volatile __u32 bound_ms = 100;

/* For each vGPU: 1 if it was served last because it was overdue, else 0. */
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

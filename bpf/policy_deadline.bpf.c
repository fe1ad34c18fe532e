// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy "deadline": serve the vGPU whose frame is due first.
 *
 * A frame is due one interval of its vGPU's fps_limit after it was submitted, or one
 * interval of default_fps if the vGPU has no limit.  So a VM that shows 60 frames/s is
 * served before a VM that shows 10, whose frames have more time, and both reach their
 * rates as long as there is enough engine time.  If there is not, all vGPUs fall behind
 * by the same time: deadlines do not move, so no vGPU waits for longer than the longest
 * interval plus the jobs that are due before.
 *
 * A job that is no frame (an upload, a cursor) is work for the next frame, and gets the
 * deadline of a frame that is submitted at the same time.  Weights are ignored;
 * gpu_limit applies as with any policy.
 *
 * A job is preempted, between two tiles, for a job that is due earlier, and keeps its
 * deadline.
 *
 * Attaches to: struct_ops mgpu_bpf_policy.
 * Costs: two array lookups, which the verifier inlines, and one tree operation
 *	per job.
 */
#include "policy.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Frames per 1000 seconds of a vGPU without a limit. */
const volatile __u32 default_fps = 60000;

/* The deadline of a vGPU's oldest job, until the job is complete. */
struct due {
	__u64 seq;	/* sequence number of the job */
	__u64 ns;	/* deadline, CLOCK_MONOTONIC */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MGPU_MAX_VGPUS);
	__type(key, __u32);
	__type(value, struct due);
} dues SEC(".maps");

SEC("struct_ops/enqueue")
void BPF_PROG(enqueue, struct mgpu_runq *rq, struct mgpu_sched_entity *e,
	      __u64 now)
{
	__u32 id = e->id, fps = e->fps_limit ?: default_fps ?: 1;
	struct due *due = bpf_map_lookup_elem(&dues, &id);

	if (!due)
		return;
	/* A job is enqueued again after a preemption or a change of settings. */
	if (due->seq != e->head_seq) {
		due->seq = e->head_seq;
		due->ns = e->head_ns + 1000 * NSEC_PER_SEC / fps;
	}
	mgpu_bpf_insert(rq, e, 0, due->ns);
}

SEC("struct_ops/pick")
__u32 BPF_PROG(pick, struct mgpu_runq *rq, __u64 now)
{
	return mgpu_bpf_first(rq, 0);
}

SEC("struct_ops/yield")
int BPF_PROG(yield, struct mgpu_runq *rq, struct mgpu_sched_entity *e,
	     __u64 ran, __u64 now)
{
	__u32 id = e->id;
	struct due *due = bpf_map_lookup_elem(&dues, &id);

	return due && mgpu_bpf_first_key(rq, 0) < due->ns;
}

SEC(".struct_ops.link")
struct mgpu_bpf_policy deadline = {
	.enqueue = (void *)enqueue,
	.pick = (void *)pick,
	.yield = (void *)yield,
	.name = "deadline",
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy "deadline": whose frame is due first goes first.
 *
 * A frame is due one interval of its vGPU's fps_limit after it was submitted; of
 * a vGPU without a limit, one of default_fps.  So a VM that shows 60 frames/s is
 * served before one that shows 10, whose frames have more time, and both make
 * their rates as long as there is engine time for both.  When there is not, all
 * fall behind by the same time: no deadline is moved, so nobody waits for longer
 * than the longest interval plus what is due before.
 *
 * What is no frame (an upload, a cursor) is work for the frame that comes next,
 * and goes with the deadline that this would have if it were submitted now.
 * Weights are not looked at; gpu_limit holds as ever.
 *
 * A job makes way, between two tiles, for one that is due earlier, and keeps its
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

/* The deadline of a vGPU's oldest job, until that is done. */
struct due {
	__u64 seq;	/* which job */
	__u64 ns;
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
	/* One that made way comes again, and so does one whose settings change. */
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

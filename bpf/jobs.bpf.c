// SPDX-License-Identifier: GPL-2.0-only
/*
 * The course of jobs and frames, for gpuctl trace.
 *
 * Counts: nothing but the events that do not fit into the ring buffer. Each event has
 *	that count, so that its reader knows between which two events others are missing.
 * Attaches to: mgpu_job_start, mgpu_job_preempt, mgpu_job_done, mgpu_throttle,
 *	mgpu_frame, mgpu_vgpu_open. It charges no jobs.
 * Costs: one record in a ring buffer per event, of which a job has two or three. The
 *	programs wake no reader: gpuctl looks every 50 ms. Attach it for a recording, not
 *	permanently. A vGPU that opens always has its event: its id may have been another
 *	vGPU's.
 */
#include "common.bpf.h"
#include "account.h"
#include "jobs.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MGPU_TRACE_RING);
} events SEC(".maps");

/* By id: 1, the vGPU is not recorded; set by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MGPU_BPF_IDS);
	__type(key, __u32);
	__type(value, __u32);
} skips SEC(".maps");

__u64 lost;			/* events that did not fit; read by user space */

static __always_inline int send_always(__u32 type, __u32 vgpu, __u64 nr, __u64 ns, __u32 kind,
				       __s32 error)
{
	struct mgpu_trace_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		add(&lost, 1);
		return 0;
	}
	e->now_ns = bpf_ktime_get_ns();
	e->lost = READ_ONCE(lost);
	e->nr = nr;
	e->ns = ns;
	e->vgpu = vgpu;
	e->type = type;
	e->kind = kind;
	e->error = error;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int send(__u32 type, __u32 vgpu, __u64 nr, __u64 ns, __u32 kind, __s32 error)
{
	__u32 *skip = bpf_map_lookup_elem(&skips, &vgpu);

	if (!skip || *skip)
		return 0;
	return send_always(type, vgpu, nr, ns, kind, error);
}

SEC("tp_btf/mgpu_job_start")
int BPF_PROG(job_start, __u32 vgpu, __u64 job, __u32 kind, __u64 queue_ns)
{
	return send(MGPU_TRACE_START, vgpu, job, queue_ns, kind, 0);
}

SEC("tp_btf/mgpu_job_preempt")
int BPF_PROG(job_preempt, __u32 vgpu, __u64 job, __u32 kind, __u64 engine_ns)
{
	return send(MGPU_TRACE_PREEMPT, vgpu, job, engine_ns, kind, 0);
}

SEC("tp_btf/mgpu_job_done")
int BPF_PROG(job_done, __u32 vgpu, __u64 job, __u32 kind, __s32 error, __u64 engine_ns)
{
	return send(MGPU_TRACE_DONE, vgpu, job, engine_ns, kind, error);
}

SEC("tp_btf/mgpu_throttle")
int BPF_PROG(throttle, __u32 vgpu, __u64 frame, __u64 hold_ns, __u32 reason)
{
	return send(MGPU_TRACE_THROTTLE, vgpu, frame, hold_ns, reason, 0);
}

SEC("tp_btf/mgpu_frame")
int BPF_PROG(frame, __u32 vgpu, __u64 nr, __u64 interval_ns)
{
	return send(MGPU_TRACE_FRAME, vgpu, nr, interval_ns, 0, 0);
}

SEC("tp_btf/mgpu_vgpu_open")
int BPF_PROG(vgpu_open, __u32 vgpu)
{
	return send_always(MGPU_TRACE_OPEN, vgpu, 0, 0, 0, 0);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accounting tracepoints.  They fire in task context only, one event per
 * decision, with fixed-width fields and ids.  eBPF programs attach to them as
 * tp_btf; the order of the arguments is part of the interface.
 *
 * Times are nanoseconds unless a field says otherwise.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mgpu

#if !defined(MGPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MGPU_TRACE_H

#include <linux/tracepoint.h>

/* A VMM opened the vGPU; tgid is its thread group in the initial namespace. */
TRACE_EVENT(mgpu_vgpu_open,
	TP_PROTO(u32 vgpu, u32 dev, u32 tgid),
	TP_ARGS(vgpu, dev, tgid),
	TP_STRUCT__entry(
		__field(u32, vgpu)
		__field(u32, dev)
		__field(u32, tgid)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->dev = dev;
		__entry->tgid = tgid;
	),
	TP_printk("vgpu=%u dev=%u tgid=%u",
		  __entry->vgpu, __entry->dev, __entry->tgid)
);

/* The VMM closed the vGPU, or died. */
TRACE_EVENT(mgpu_vgpu_close,
	TP_PROTO(u32 vgpu, u32 dev, u32 tgid),
	TP_ARGS(vgpu, dev, tgid),
	TP_STRUCT__entry(
		__field(u32, vgpu)
		__field(u32, dev)
		__field(u32, tgid)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->dev = dev;
		__entry->tgid = tgid;
	),
	TP_printk("vgpu=%u dev=%u tgid=%u",
		  __entry->vgpu, __entry->dev, __entry->tgid)
);

/* The guest submitted a job.  kind is enum mgpu_job_kind. */
TRACE_EVENT(mgpu_job_submit,
	TP_PROTO(u32 vgpu, u64 job, u32 kind, u64 bytes),
	TP_ARGS(vgpu, job, kind, bytes),
	TP_STRUCT__entry(
		__field(u64, job)
		__field(u64, bytes)
		__field(u32, vgpu)
		__field(u32, kind)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->job = job;
		__entry->kind = kind;
		__entry->bytes = bytes;
	),
	TP_printk("vgpu=%u job=%llu kind=%u bytes=%llu",
		  __entry->vgpu, __entry->job, __entry->kind, __entry->bytes)
);

/* The engine took a job; queue_ns is how long it waited in the scheduler. */
TRACE_EVENT(mgpu_job_start,
	TP_PROTO(u32 vgpu, u64 job, u32 kind, u64 queue_ns),
	TP_ARGS(vgpu, job, kind, queue_ns),
	TP_STRUCT__entry(
		__field(u64, job)
		__field(u64, queue_ns)
		__field(u32, vgpu)
		__field(u32, kind)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->job = job;
		__entry->kind = kind;
		__entry->queue_ns = queue_ns;
	),
	TP_printk("vgpu=%u job=%llu kind=%u queue_ns=%llu",
		  __entry->vgpu, __entry->job, __entry->kind,
		  __entry->queue_ns)
);

/*
 * A job was preempted and will be started again.  engine_ns and engine_cycles are its
 * use of the engine since it was started; programs pass engine_ns to mgpu_charge().
 */
TRACE_EVENT(mgpu_job_preempt,
	TP_PROTO(u32 vgpu, u64 job, u32 kind, u64 engine_ns,
		 u64 engine_cycles),
	TP_ARGS(vgpu, job, kind, engine_ns, engine_cycles),
	TP_STRUCT__entry(
		__field(u64, job)
		__field(u64, engine_ns)
		__field(u64, engine_cycles)
		__field(u32, vgpu)
		__field(u32, kind)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->job = job;
		__entry->kind = kind;
		__entry->engine_ns = engine_ns;
		__entry->engine_cycles = engine_cycles;
	),
	TP_printk("vgpu=%u job=%llu kind=%u engine_ns=%llu engine_cycles=%llu",
		  __entry->vgpu, __entry->job, __entry->kind,
		  __entry->engine_ns, __entry->engine_cycles)
);

/*
 * A job is complete.  error is 0 or a negative errno; engine_ns and engine_cycles are
 * its use of the engine since it was last started; programs pass engine_ns to
 * mgpu_charge().
 */
TRACE_EVENT(mgpu_job_done,
	TP_PROTO(u32 vgpu, u64 job, u32 kind, s32 error, u64 engine_ns,
		 u64 engine_cycles, u64 bytes),
	TP_ARGS(vgpu, job, kind, error, engine_ns, engine_cycles, bytes),
	TP_STRUCT__entry(
		__field(u64, job)
		__field(u64, engine_ns)
		__field(u64, engine_cycles)
		__field(u64, bytes)
		__field(u32, vgpu)
		__field(u32, kind)
		__field(s32, error)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->job = job;
		__entry->kind = kind;
		__entry->error = error;
		__entry->engine_ns = engine_ns;
		__entry->engine_cycles = engine_cycles;
		__entry->bytes = bytes;
	),
	TP_printk("vgpu=%u job=%llu kind=%u error=%d engine_ns=%llu engine_cycles=%llu bytes=%llu",
		  __entry->vgpu, __entry->job, __entry->kind, __entry->error,
		  __entry->engine_ns, __entry->engine_cycles, __entry->bytes)
);

/*
 * A frame is complete: a RESOURCE_FLUSH of the resource that the scanout
 * shows.  interval_ns is the time since the vGPU's previous frame, 0 for the
 * first frame after a reset.
 */
TRACE_EVENT(mgpu_frame,
	TP_PROTO(u32 vgpu, u64 frame, u64 interval_ns, u32 width, u32 height),
	TP_ARGS(vgpu, frame, interval_ns, width, height),
	TP_STRUCT__entry(
		__field(u64, frame)
		__field(u64, interval_ns)
		__field(u32, vgpu)
		__field(u32, width)
		__field(u32, height)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->frame = frame;
		__entry->interval_ns = interval_ns;
		__entry->width = width;
		__entry->height = height;
	),
	TP_printk("vgpu=%u frame=%llu interval_ns=%llu width=%u height=%u",
		  __entry->vgpu, __entry->frame, __entry->interval_ns,
		  __entry->width, __entry->height)
);

/*
 * A context used a slot: op, an enum mgpu_compute_op, executed inst work units and
 * moved bytes in engine_ns.  peer is a context of vGPU peer_vgpu that had other slots
 * meanwhile; peer_vgpu is 0 if no context had.
 */
TRACE_EVENT(mgpu_context_run,
	TP_PROTO(u32 vgpu, u32 ctx, u32 op, u32 peer_vgpu, u32 peer, u64 inst,
		 u64 bytes, u64 engine_ns, u64 engine_cycles),
	TP_ARGS(vgpu, ctx, op, peer_vgpu, peer, inst, bytes, engine_ns,
		engine_cycles),
	TP_STRUCT__entry(
		__field(u64, inst)
		__field(u64, bytes)
		__field(u64, engine_ns)
		__field(u64, engine_cycles)
		__field(u32, vgpu)
		__field(u32, ctx)
		__field(u32, op)
		__field(u32, peer_vgpu)
		__field(u32, peer)
	),
	TP_fast_assign(
		__entry->inst = inst;
		__entry->bytes = bytes;
		__entry->engine_ns = engine_ns;
		__entry->engine_cycles = engine_cycles;
		__entry->vgpu = vgpu;
		__entry->ctx = ctx;
		__entry->op = op;
		__entry->peer_vgpu = peer_vgpu;
		__entry->peer = peer;
	),
	TP_printk("vgpu=%u ctx=%u op=%u peer=%u/%u inst=%llu bytes=%llu engine_ns=%llu engine_cycles=%llu",
		  __entry->vgpu, __entry->ctx, __entry->op,
		  __entry->peer_vgpu, __entry->peer, __entry->inst,
		  __entry->bytes, __entry->engine_ns, __entry->engine_cycles)
);

/* A frame was held back for hold_ns; reason is enum mgpu_throttle_reason. */
TRACE_EVENT(mgpu_throttle,
	TP_PROTO(u32 vgpu, u64 frame, u64 hold_ns, u32 reason),
	TP_ARGS(vgpu, frame, hold_ns, reason),
	TP_STRUCT__entry(
		__field(u64, frame)
		__field(u64, hold_ns)
		__field(u32, vgpu)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->vgpu = vgpu;
		__entry->frame = frame;
		__entry->hold_ns = hold_ns;
		__entry->reason = reason;
	),
	TP_printk("vgpu=%u frame=%llu hold_ns=%llu reason=%u",
		  __entry->vgpu, __entry->frame, __entry->hold_ns,
		  __entry->reason)
);

#endif /* MGPU_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

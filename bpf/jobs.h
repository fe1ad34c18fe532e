/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of jobs.bpf.c, as user space reads them. */
#ifndef MGPU_BPF_JOBS_H
#define MGPU_BPF_JOBS_H

/* Size of the ring buffer in bytes: 149,796 events. */
#define MGPU_TRACE_RING	(8u << 20)

/**
 * enum mgpu_trace_type - tracepoint that an event is from
 * @MGPU_TRACE_START: mgpu_job_start
 * @MGPU_TRACE_PREEMPT: mgpu_job_preempt
 * @MGPU_TRACE_DONE: mgpu_job_done
 * @MGPU_TRACE_THROTTLE: mgpu_throttle
 * @MGPU_TRACE_FRAME: mgpu_frame
 * @MGPU_TRACE_OPEN: mgpu_vgpu_open
 */
enum mgpu_trace_type {
	MGPU_TRACE_START = 1,
	MGPU_TRACE_PREEMPT,
	MGPU_TRACE_DONE,
	MGPU_TRACE_THROTTLE,
	MGPU_TRACE_FRAME,
	MGPU_TRACE_OPEN,
};

/* A tracepoint that fired. Fields that it does not have are 0. */
struct mgpu_trace_event {
	__u64 now_ns;		/* CLOCK_MONOTONIC */
	__u64 lost;		/* events that had not fitted into the ring buffer so far */
	__u64 nr;		/* job or frame */
	__u64 ns;		/* start: queue_ns; preempt, done: engine_ns;
				 * throttle: hold_ns; frame: interval_ns
				 */
	__u32 vgpu;
	__u32 type;		/* enum mgpu_trace_type */
	__u32 kind;		/* start: enum mgpu_job_kind; throttle: reason */
	__s32 error;		/* done */
};

#endif /* MGPU_BPF_JOBS_H */

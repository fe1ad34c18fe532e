/* SPDX-License-Identifier: GPL-2.0-only */
/* What frames.bpf.c sends: one event per frame, as user space reads it. */
#ifndef MGPU_BPF_FRAMES_H
#define MGPU_BPF_FRAMES_H

/* Bytes of events that wait for user space: 16,384 frames. */
#define MGPU_FRAMES_RING	(1u << 20)

/*
 * Counters as they stand when the frame is complete; what a frame cost is their
 * difference from the same vGPU's event before, also where others were lost.
 */
struct mgpu_frame_event {
	__u64 now_ns;		/* CLOCK_MONOTONIC */
	__u64 frame;		/* number of the frame, as the module counts */
	__u64 cpu_ns;		/* CPU time of the VMM */
	__u64 engine_ns;	/* engine time of the vGPU */
	__u64 held_ns;		/* time that its frames were held back */
	__u32 vgpu;
	__u32 tgid;		/* of the VMM, 0 where it is not known */
};

#endif /* MGPU_BPF_FRAMES_H */

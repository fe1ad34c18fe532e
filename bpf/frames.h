/* SPDX-License-Identifier: GPL-2.0-only */
/* The events of frames.bpf.c, one per frame, as user space reads them. */
#ifndef MGPU_BPF_FRAMES_H
#define MGPU_BPF_FRAMES_H

/* Size of the ring buffer in bytes: events of 16,384 frames. */
#define MGPU_FRAMES_RING	(1u << 20)

/*
 * Counters at the completion of a frame. The cost of a frame is the difference from the
 * vGPU's previous event, also if events in between were lost.
 */
struct mgpu_frame_event {
	__u64 now_ns;		/* CLOCK_MONOTONIC */
	__u64 frame;		/* number of the frame, as the module counts */
	__u64 cpu_ns;		/* CPU time of the VMM, ns */
	__u64 engine_ns;	/* engine time of the vGPU, ns */
	__u64 held_ns;		/* time for which its frames were held back, ns */
	__u32 vgpu;
	__u32 tgid;		/* thread group of the VMM, 0 if unknown */
};

#endif /* MGPU_BPF_FRAMES_H */

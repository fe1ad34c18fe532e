/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters of contexts.bpf.c, as user space reads them.
 *
 * The map `runs` is a hash with an entry for each context, each operation that it
 * executed, and each context that had slots at the same time. Its counters only rise.
 * An entry that has not changed for long may be evicted, so readers take differences,
 * and treat a counter that is lower than before as a new entry.
 */
#ifndef MGPU_BPF_CONTEXTS_H
#define MGPU_BPF_CONTEXTS_H

#define MGPU_BPF_RUNS		16384

struct mgpu_run_key {
	__u32 vgpu;
	__u32 ctx;
	__u32 op;		/* enum mgpu_compute_op */
	__u32 peer_vgpu;	/* 0 if no other context had slots */
	__u32 peer;		/* a context of peer_vgpu that had slots */
};

struct mgpu_run {
	__u64 inst;		/* work units */
	__u64 bytes;		/* bytes moved */
	__u64 engine_ns;	/* engine time, ns */
	__u64 engine_cycles;	/* the same in ticks of the engine's counter */
	__u64 samples;		/* number of events that the counters add up */
};

#endif /* MGPU_BPF_CONTEXTS_H */

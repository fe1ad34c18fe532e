/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What contexts.bpf.c counts, as user space reads it.
 *
 * The map `runs` is a hash with an entry for each context, each kind of job that
 * it had, and each context that had slots beside it meanwhile. Its counters only
 * rise; an entry that nothing happened to for long may make room for another, so
 * readers take differences and read one that is lower than before as new.
 */
#ifndef MGPU_BPF_CONTEXTS_H
#define MGPU_BPF_CONTEXTS_H

#define MGPU_BPF_RUNS		16384

struct mgpu_run_key {
	__u32 vgpu;
	__u32 ctx;
	__u32 op;		/* enum mgpu_compute_op */
	__u32 peer_vgpu;	/* 0: it was alone */
	__u32 peer;		/* one of those beside it */
};

struct mgpu_run {
	__u64 inst;		/* work units */
	__u64 bytes;		/* moved */
	__u64 engine_ns;	/* engine time */
	__u64 engine_cycles;	/* the same in ticks of the engine's counter */
	__u64 samples;		/* that these are made of */
};

#endif /* MGPU_BPF_CONTEXTS_H */

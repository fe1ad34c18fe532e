/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts of objects and memory that the kernel holds, to be compared before and after an
 * operation that was done many times: memory, pinned pages, threads of the modules, files,
 * references of modules, BPF programs.
 */
#ifndef KSELFTEST_FOOTPRINT_H
#define KSELFTEST_FOOTPRINT_H

#include <stdbool.h>

enum foot {
	FOOT_SLAB,		/* KiB, likewise the next four */
	FOOT_RECLAIMABLE,
	FOOT_VMALLOC,
	FOOT_PERCPU,
	FOOT_STACKS,
	FOOT_FILES,		/* in the whole system */
	FOOT_PINS,		/* pages */
	FOOT_THREADS,		/* mgpu* */
	FOOT_CORE,		/* references of mgpu.ko */
	FOOT_BACK_END,		/* of the back end that is loaded */
	FOOT_PROGRAMS,		/* BPF */
	FOOT_MAPS,
	FOOT_LINKS,
	FOOT_VGPUS,
	NR_FEET,
};

struct footprint {
	long long of[NR_FEET];
};

/* Take the figures after caches were dropped, and what is freed later has been. */
void footprint_take(struct footprint *f);

/*
 * Wait until nothing has grown since @before, but for what footprint.c allows for
 * @rounds of memory; for VMM_TIMEOUT at most.  Return whether it is so; print all figures.
 */
bool footprint_kept(const struct footprint *before, unsigned int rounds);

/* Return the number of BPF programs (or maps) that exist. */
long long bpf_programs(void);
long long bpf_maps(void);

#endif /* KSELFTEST_FOOTPRINT_H */

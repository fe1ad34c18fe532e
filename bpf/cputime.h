/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters of cputime.bpf.c, as user space reads them.
 *
 * CPU time belongs to a thread group, the VMM, and not to a vGPU: a VMM may own
 * several. So time is counted per VMM, in a slot, and `vgpu_owner` has the VMM of each
 * vGPU. User space splits a VMM's time between its vGPUs.
 *
 * Slot 0 is never used, slot 1 counts idle time of all CPUs, the others belong
 * to VMMs. A slot's `ns` only rises, also when the slot passes to another VMM.
 *
 * `ns` has the time of threads that left their CPU. A thread that runs now is in
 * `cpus`, one cell per CPU, with its slot and the time at which it started to run
 * (CLOCK_MONOTONIC). A reader adds the time since then. So a thread that never leaves
 * its CPU is counted too, and a run that crosses the end of a period is split there. A
 * reader reads the cells, then the slots, then the cells again: if no cell changed,
 * the result is consistent. The program writes a cell's slot = 0, adds to the slot,
 * writes `since`, then the new slot, in this order.
 */
#ifndef MGPU_BPF_CPUTIME_H
#define MGPU_BPF_CPUTIME_H

#define MGPU_CPU_SLOT_NONE	0
#define MGPU_CPU_SLOT_IDLE	1
#define MGPU_CPU_SLOT_FIRST	2	/* first slot of a VMM */
#define MGPU_CPU_SLOTS		8192
#define MGPU_CPU_PROBES		64	/* slots tried for a new VMM */

struct mgpu_cpu_slot {
	__u64 ns;		/* CPU time of threads that left their CPU, ns */
	__u32 tgid;		/* VMM that owns the slot, 0 for a free slot */
	__u32 reserved;
};

struct mgpu_cpu_cell {
	__u64 since;		/* when the thread started to run, CLOCK_MONOTONIC, ns */
	__u32 slot;		/* slot of the thread; MGPU_CPU_SLOT_NONE for no VMM */
	__u32 generation;	/* private to the program */
	__u64 reserved[6];	/* a cache line per CPU */
};

/* For each vGPU ID: the thread group that has the vGPU open, 0 for none. */
struct mgpu_cpu_owner {
	__u32 tgid;
	__u32 reserved;
};

/*
 * Argument of the program `owner`, which user space runs to correct the owner of a
 * vGPU: @vgpu is open in thread group @tgid, or not open if @tgid is 0.
 */
struct mgpu_owner_args {
	__u32 vgpu;
	__u32 tgid;
};

#endif /* MGPU_BPF_CPUTIME_H */

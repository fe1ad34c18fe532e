/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What cputime.bpf.c counts, as user space reads it.
 *
 * CPU time belongs to a thread group, the VMM, and not to a vGPU: a VMM may own
 * several. So time is kept per VMM, in a slot, and `vgpu_owner` says which VMM
 * a vGPU belongs to. How a VMM's time is split between its vGPUs is decided in
 * user space.
 *
 * Slot 0 is never used, slot 1 counts idle time of all CPUs, the others belong
 * to VMMs. A slot's `ns` only rises, also when the slot passes to another VMM.
 *
 * `ns` holds what ended: a thread that runs right now is in `cpus`, one cell
 * per CPU, as the slot it counts for and since when (CLOCK_MONOTONIC). A
 * reader adds that part. So a thread that never leaves its CPU is seen all the
 * same, and a stretch that crosses a period's end is cut in two there. A reader
 * reads the cells, then the slots, then the cells again: if no cell changed,
 * what it has is consistent. The program writes a cell's slot = 0, adds to the
 * slot, writes `since`, then the new slot, in this order.
 */
#ifndef MGPU_BPF_CPUTIME_H
#define MGPU_BPF_CPUTIME_H

#define MGPU_CPU_SLOT_NONE	0
#define MGPU_CPU_SLOT_IDLE	1
#define MGPU_CPU_SLOT_FIRST	2	/* of VMMs */
#define MGPU_CPU_SLOTS		8192
#define MGPU_CPU_PROBES		64	/* slots tried for a new VMM */

struct mgpu_cpu_slot {
	__u64 ns;		/* on-CPU time that ended, ns */
	__u32 tgid;		/* whose it is, 0 for nobody's */
	__u32 reserved;
};

struct mgpu_cpu_cell {
	__u64 since;		/* CLOCK_MONOTONIC, ns */
	__u32 slot;		/* MGPU_CPU_SLOT_NONE: nobody we count for */
	__u32 generation;	/* program's own */
	__u64 reserved[6];	/* a cache line per CPU */
};

/* Of each vGPU id: the thread group that has the vGPU open, 0 for none. */
struct mgpu_cpu_owner {
	__u32 tgid;
	__u32 reserved;
};

/*
 * Argument of the program `owner`, which user space runs to say what it knows
 * better: vGPU @vgpu is open in thread group @tgid, or, with 0, not open.
 */
struct mgpu_owner_args {
	__u32 vgpu;
	__u32 tgid;
};

#endif /* MGPU_BPF_CPUTIME_H */

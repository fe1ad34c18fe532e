/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory runs out: each allocation of an operation fails in turn, and in the end all from
 * some point on.
 *
 * The calling task's fail-nth counts the task's own allocations, those of VFIO, mdev
 * and netlink included.  failslab and fail_page_alloc count the allocations with a
 * module in their stack, in any task: those of the module's workers and engines.
 * fail_page_alloc counts allocations too large for a slab, new slabs, and page tables.
 */
#ifndef KSELFTEST_FAILSLAB_H
#define KSELFTEST_FAILSLAB_H

#include "nl.h"
#include "vmm.h"

#define MAX_ALLOCATIONS	1000	/* of one operation */

/* The allocations that are counted, and fail. */
enum counts {
	TASK,			/* the calling task's, whatever it allocates */
	SLAB,			/* slab objects with the module in the stack */
	PAGES,			/* pages, likewise */
	NR_COUNTS,
};

/* An attribute of fault injection, its files open while a sweep writes them. */
struct fault_attr {
	const char *dir;	/* in debugfs */
	int count;
	int interval;
	int times;
	int space;
	int probability;
};

struct faults {
	int nth;		/* the calling task's fail-nth */
	int min_order;		/* fail_page_alloc's */
	struct fault_attr attr[NR_COUNTS];	/* not TASK's */
	char printk[64];	/* the console's log levels before */
};

struct stage {
	struct vm vm;
	struct nl nl;
	uint32_t vgpu;		/* id of the machine's */
	char uuid[VMM_UUID_LEN + 1];	/* of one that an operation makes */
	int fd[8];
	size_t ram;		/* bytes of guest memory */
	void *at;		/* guest memory */
};

/*
 * An operation.  @setup and @undo are around each round, without faults; @run gives
 * 0, a negative errno, or a VIRTIO_GPU_RESP_*.
 */
struct op {
	const char *name;
	bool task;		/* the calling task's allocations, not the module's */
	int (*setup)(struct stage *s);
	int (*run)(struct stage *s);
	int (*undo)(struct stage *s);
	/* Whether @run's failure is one that the interface promises. */
	bool (*clean)(int ret);
	/* Whether a failure left nothing behind; called before @undo. */
	bool (*nothing_left)(struct stage *s);
};

/* Whether this kernel can do it at all. */
bool faults_offered(void);
/*
 * Count the allocations of mgpu from now on.  The kernel itself tells of a vmalloc() that
 * fails, with a trace like that of a warning: it goes to the log, not to the console.
 * Warnings still end the run, see panic_on_warn.
 */
int faults_open(struct faults *f);
int faults_close(struct faults *f);

#define NEEDS_FAULTS(self)						\
	do {								\
		if (!(self)->offered)					\
			SKIP(return, "no fault injection in this kernel");	\
	} while (0)

/*
 * Each allocation in turn, and after each that refused the operation this without
 * faults.  Return whether all was as it must be, and some allocation failed; print what
 * was not.
 */
bool sweep(const struct op *op, struct stage *s, struct faults *f);

/* Results of operations that their interfaces promise, for @clean. */
bool is_enomem(int ret);
bool is_answer(int ret);	/* of the device */
bool is_start(int ret);		/* of the VMM's calls before, or of the device */
bool never(int ret);

/* Make a vGPU of type small-render, with @ram bytes of guest memory; it stays closed. */
int stage_made(struct stage *s, size_t ram);
int stage_open(struct stage *s);
int stage_close(struct stage *s);	/* returns 0 */
/* Close the vGPU; return whether it holds nothing then. */
bool stage_empty(struct stage *s);

#endif /* KSELFTEST_FAILSLAB_H */

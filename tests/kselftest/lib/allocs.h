/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Count of the kernel's allocations for this process and for the modules' threads: objects
 * of slabs and pages, by the tracepoints of kmem.
 *
 * An interrupt's allocations count for the thread that it interrupts.  So a count is
 * compared with the number of operations meanwhile, not with 0.
 */
#ifndef KSELFTEST_ALLOCS_H
#define KSELFTEST_ALLOCS_H

#define ALLOCS_MAX	256	/* counters: threads, times tracepoints */

struct allocs {
	int fd[ALLOCS_MAX];
	unsigned int nr;
};

/*
 * Count from now on for the threads that there are: those of this process, and kernel
 * threads named mgpu*.  Return 0 or -errno.
 */
int allocs_begin(struct allocs *a);
/* Return the number of allocations since allocs_begin(), or -errno. */
long long allocs_end(struct allocs *a);

#endif /* KSELFTEST_ALLOCS_H */

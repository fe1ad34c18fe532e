/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machines that nothing is done to, while others are killed, reset or taken away: each
 * is a process that shows pictures, looks at every pixel of them, and computes.
 */
#ifndef KSELFTEST_NEIGHBOUR_H
#define KSELFTEST_NEIGHBOUR_H

#include <stdatomic.h>
#include <sys/types.h>

#include "vmm.h"

struct neighbour {
	pid_t pid;
	char uuid[VMM_UUID_LEN + 1];
	/* shared with the process */
	struct neighbour_counts {
		atomic_ulong pictures;	/* that were right */
		atomic_ulong jobs;	/* with the right result; 0 on a type without */
		atomic_ulong wrong;
		atomic_int error;	/* that ended it */
	} *of;
	unsigned long seen;	/* pictures at the last neighbour_goes_on() */
};

/* Make a vGPU of @type and its machine; 0 when it has shown a picture. */
int neighbour_begin(struct neighbour *n, const char *type);

/* Wait until it has shown another picture since the last call; all were right. */
bool neighbour_goes_on(struct neighbour *n);

/* End its process; its vGPU stays, closed. */
void neighbour_stop(struct neighbour *n);

/* End it, and remove its vGPU.  Return whether all was right. */
bool neighbour_end(struct neighbour *n);

#endif /* KSELFTEST_NEIGHBOUR_H */

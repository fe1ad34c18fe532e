/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Confinement of a program's process, and of the compilers and linkers that a driver starts in it:
 * they have no system calls that no driver needs, and no files beyond the system's.
 */
#ifndef REMOTE_CONFINE_H
#define REMOTE_CONFINE_H

#include <stdbool.h>

#define CONFINE_PATHS	16u

/**
 * struct confine - files that a process may use beside the system's
 * @read: paths that it may read, and execute from; NULL ends the list
 * @write: paths below which it may do anything; NULL ends the list
 */
struct confine {
	const char *read[CONFINE_PATHS + 1];
	const char *write[CONFINE_PATHS + 1];
};

/* Return whether the kernel can confine the use of files: Landlock, from Linux 5.19 on. */
bool confine_has_files(void);

/* Forbid system calls that no driver needs. Return 0 or a negative errno. */
int confine_calls(void);

/*
 * Have the process read only the system's files and @c's, and write only the drivers' caches,
 * temporary files, devices, and below @c's.  Return 0 or a negative errno.
 */
int confine_files(const struct confine *c);

#endif /* REMOTE_CONFINE_H */

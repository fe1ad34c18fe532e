/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs of the system that gpuctl runs. */
#ifndef GPUCTL_PROGRAM_H
#define GPUCTL_PROGRAM_H

#include <stdbool.h>

/**
 * program_run() - run a program and wait until it ends
 * @argv: its name, which is looked for in PATH, and words; NULL at the end
 * @path: its path in case PATH, as of users other than root, lacks it; may be NULL
 * @quiet: drop what it prints on standard error
 * @status: set to its status as waitpid() gives it, 0 for success
 *
 * Return: 0 if it ran, or a negative errno.
 */
int program_run(char *const *argv, const char *path, bool quiet, int *status);

#endif /* GPUCTL_PROGRAM_H */

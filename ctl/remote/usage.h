/* SPDX-License-Identifier: GPL-2.0-only */
/* Time that a process has used: of the GPU's engines where the driver says so, of processors. */
#ifndef REMOTE_USAGE_H
#define REMOTE_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct usage - time of a process
 * @cpu_ns: of processors, by all threads, nanoseconds
 * @engine_ns: of the GPU's engines, as the DRM driver counts it for its files, nanoseconds
 * @has_engine: the driver counts it
 */
struct usage {
	uint64_t cpu_ns;
	uint64_t engine_ns;
	bool has_engine;
};

/* Read what a process has used, 0 if it ended; @root: prefix of /proc, "" for the machine. */
void usage_read(const char *root, pid_t pid, struct usage *u);

#endif /* REMOTE_USAGE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* How long a GPU worked for a process, or the processors in its place for this one. */
#ifndef MGPU_ENGINE_CLOCK_H
#define MGPU_ENGINE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENGINE_CLOCK_FDS	8

/**
 * struct engine_clock - a clock of a process
 * @fdinfo: folder with a file for each of its open files
 * @fds: numbers of the open files of the GPU, one per DRM client
 * @nr: their number
 * @cpu: there is no GPU: the clock is that of the processors
 */
struct engine_clock {
	char fdinfo[32];
	int fds[ENGINE_CLOCK_FDS];
	size_t nr;
	bool cpu;
};

/**
 * engine_clock_start() - find the clock of a process that uses a GPU
 * @c: result
 * @fdinfo: /proc/PID/fdinfo or /proc/self/fdinfo
 *
 * Return: false if it has no file of a GPU, or its driver tells no engine time.
 */
bool engine_clock_start(struct engine_clock *c, const char *fdinfo);

/* Have the CPU time of this process in the place of engine time. */
void engine_clock_start_cpu(struct engine_clock *c);

/* Return engine time of the process so far, nanoseconds; 0 if the driver tells none. */
uint64_t engine_clock_ns(const struct engine_clock *c);

#endif /* MGPU_ENGINE_CLOCK_H */

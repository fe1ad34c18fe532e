/* SPDX-License-Identifier: GPL-2.0-only */
/* Time that another process has used: of a GPU's engines, or of processors. */
#ifndef MGPU_PROCESS_CLOCK_H
#define MGPU_PROCESS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "engine_clock.h"

/* Period in which files of a GPU are looked for: a process opens them some time after it began. */
#define PROCESS_CLOCK_FIND_NS	50000000u

/**
 * struct process_clock - the clock of a process
 * @pid: its ID; 0 before process_clock_start()
 * @cpu: its CPU time
 * @engines: its files of GPUs
 * @found_ns: when they were looked for, CLOCK_MONOTONIC
 * @engine_ns: engine time at the last look
 */
struct process_clock {
	pid_t pid;
	clockid_t cpu;
	struct engine_clock engines;
	uint64_t found_ns;
	uint64_t engine_ns;
};

/* Have the clock of a process. Return false if there is no such process. */
bool process_clock_start(struct process_clock *c, pid_t pid);

/*
 * Return its engine time, nanoseconds, as GPUs' drivers tell it for the files that it has open; a
 * file that was closed takes its time along, and the last sum counts until there is more.
 */
uint64_t process_clock_engine_ns(struct process_clock *c, uint64_t now_ns);

/* Return its CPU time, nanoseconds; 0 if it has ended. */
uint64_t process_clock_cpu_ns(const struct process_clock *c);

/*
 * Return whether a thread of it runs, or waits for a processor. A process that used no time may
 * have had none.
 */
bool process_clock_is_ready(const struct process_clock *c);

/* Return whether a GPU's driver told engine time at the last look. */
static inline bool process_clock_has_engines(const struct process_clock *c)
{
	return c->engines.nr;
}

#endif /* MGPU_PROCESS_CLOCK_H */

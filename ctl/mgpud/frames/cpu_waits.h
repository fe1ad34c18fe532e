/* SPDX-License-Identifier: GPL-2.0-only */
/* The time that VMMs' threads waited for a CPU, from /proc. */
#ifndef MGPUD_CPU_WAITS_H
#define MGPUD_CPU_WAITS_H

#include "sample.h"

/*
 * Threads that a sample reads, at most: a VMM with more than its part of CPU_WAITS_THREADS,
 * and more than CPU_WAITS_EACH, is left out.
 */
#define CPU_WAITS_THREADS	4096
#define CPU_WAITS_EACH		8

struct cpu_waits;

/*
 * Return a reader without threads yet; NULL when out of memory. @proc: where proc is
 * mounted.
 */
struct cpu_waits *cpu_waits_new(const char *proc);
void cpu_waits_free(struct cpu_waits *w);

/*
 * Set wait_ns of @s's VMMs, which are in the order of IDs, and wait_known: false if the
 * kernel does not count waits (CONFIG_SCHED_INFO), the VMM has ended or has too many
 * threads, or when out of memory. The counter of a VMM begins at 0 when it is first known,
 * and never falls while it is known in each sample: what its ended threads waited stays
 * in it.
 *
 * Opens one file for each thread of each VMM, up to the bounds above.
 */
void cpu_waits_read(struct cpu_waits *w, struct sample *s);

#endif /* MGPUD_CPU_WAITS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Clocks of the guest programs. */
#ifndef MGPU_GUEST_CLOCK_H
#define MGPU_GUEST_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t now_ns(void);		/* CLOCK_MONOTONIC */
uint64_t cpu_ns(void);		/* CPU time of this process */
void wait_until(uint64_t ns);	/* CLOCK_MONOTONIC */

/*
 * Sleep until the next frame at a rate of @fps is due. @due is the time of the last
 * frame and becomes that of the next. Time that a late frame lost is not made up for.
 */
void pace(uint64_t *due, double fps);

/* Sort durations, shortest first. */
void sort_ns(uint32_t *ns, size_t nr);

#endif /* MGPU_GUEST_CLOCK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Clocks in nanoseconds, and waiting by them. */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC	1000000000ULL

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/**
 * poll_ms() - timeout for poll() that ends at a time
 * @until: time of CLOCK_MONOTONIC, nanoseconds, less than 24 days ahead
 *
 * A process may not be scheduled until that time is over.  poll() with 0 then finds the bytes
 * that came in time, so look at the descriptor before giving up.
 *
 * Return: milliseconds, rounded up; 0 from @until on.
 */
static inline int poll_ms(uint64_t until)
{
	uint64_t now = now_ns();

	return now < until ? (int)((until - now) / 1000000) + 1 : 0;
}

#endif /* LIB_CLOCK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For how long a GPU has had work, by the times of fences: for drivers that tell no engine time
 * in fdinfo.
 */
#ifndef RENDERD_FENCE_CLOCK_H
#define RENDERD_FENCE_CLOCK_H

#include <stdint.h>

/**
 * struct fence_clock - a clock
 * @worked_ns: time for which the GPU has had work that is complete
 * @ended_ns: when a fence was complete last, CLOCK_MONOTONIC
 */
struct fence_clock {
	uint64_t worked_ns;
	uint64_t ended_ns;
};

/**
 * fence_clock_end() - count the work before a fence that is complete
 * @c: clock
 * @given_ns: when the fence was made, CLOCK_MONOTONIC; fences are complete in the order in which
 *	they were made
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Work of several fences that are pending at the same time counts once.
 */
static inline void fence_clock_end(struct fence_clock *c, uint64_t given_ns, uint64_t now)
{
	c->worked_ns += now - (given_ns > c->ended_ns ? given_ns : c->ended_ns);
	c->ended_ns = now;
}

#endif /* RENDERD_FENCE_CLOCK_H */

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
 * @given_ns: since when the GPU has had the work, CLOCK_MONOTONIC, not before the work of the
 *	fence before it; fences are complete in the order in which they were made
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Work of several fences that are pending at the same time counts once.
 */
static inline void fence_clock_end(struct fence_clock *c, uint64_t given_ns, uint64_t now)
{
	c->worked_ns += now - (given_ns > c->ended_ns ? given_ns : c->ended_ns);
	c->ended_ns = now;
}

/**
 * fence_clock_given() - compute since when the GPU has had the work before a fence
 * @begun_ns: when the command of the fence began, CLOCK_MONOTONIC
 * @ran_ns: CPU time of the thread since then
 * @now: CLOCK_MONOTONIC nanoseconds; the command is at its end
 *
 * A command that reads a picture waits until the GPU has finished, and its fence is complete at
 * once. So the time for which the command did not run is the GPU's.
 *
 * Return: @given_ns of fence_clock_end().
 */
static inline uint64_t fence_clock_given(uint64_t begun_ns, uint64_t ran_ns, uint64_t now)
{
	return ran_ns < now - begun_ns ? begun_ns + ran_ns : now;
}

#endif /* RENDERD_FENCE_CLOCK_H */

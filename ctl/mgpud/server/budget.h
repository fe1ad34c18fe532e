/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPU time that work for others may take: a token bucket that fills with a part of the
 * time that passes. The cost of the work is known only afterwards, so that a bucket may
 * become negative; the work then rests until the bucket has a quantum again. In the long
 * run the work takes no more than its part, however much of it there is. The debt is at
 * most a burst: a piece of work takes far less, and the CPU time of a virtual processor
 * includes the time for which its host let it stand still. Pure.
 */
#ifndef MGPUD_BUDGET_H
#define MGPUD_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct budget - a token bucket of CPU time
 * @part: the work may take 1 / @part of the time
 * @burst_ns: highest level, ns
 * @quantum_ns: level at which the work resumes after a rest, ns
 * @level_ns: CPU time that is left, ns, -@burst_ns to @burst_ns; negative if the work took
 *	too much
 * @at_ns: time of the last refill, ns
 * @rests: the work rests
 */
struct budget {
	unsigned int part;
	int64_t burst_ns;
	int64_t quantum_ns;
	int64_t level_ns;
	uint64_t at_ns;
	bool rests;
};

/* Begin with a full bucket. */
void budget_init(struct budget *b, unsigned int part, int64_t burst_ns, int64_t quantum_ns,
		 uint64_t now_ns);

/* Refill, and return true if the work may go on. */
bool budget_allows(struct budget *b, uint64_t now_ns);

/* Take the CPU time that the work took, ns. */
void budget_charge(struct budget *b, uint64_t took_ns);

/* Return how long the work rests from @now_ns on, ns; 0 if it does not rest. */
uint64_t budget_rest_ns(const struct budget *b, uint64_t now_ns);

#endif /* MGPUD_BUDGET_H */

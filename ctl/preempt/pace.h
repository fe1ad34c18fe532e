/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How often the preemption loop may look: as often as its processor time allows. On a
 * back end whose slots are processors, the loop takes its time from the contexts. Pure.
 */
#ifndef MGPU_PREEMPT_PACE_H
#define MGPU_PREEMPT_PACE_H

#include <stdint.h>

#define PACE_PART	0.005	/* of the slots' time that looks and learning may take */
#define PACE_BURST_NS	1e9	/* time whose part may be saved up */
#define PACE_REST_NS	60e6	/* longest rest, however much was spent */

/**
 * struct pace - a token bucket of processor time
 * @at_ns: time of @credit, ns; 0 before the first call
 * @credit: processor time that may be spent, ns; below 0 if more was spent
 */
struct pace {
	uint64_t at_ns;
	double credit;
};

/**
 * pace_spend() - account for processor time
 * @p: the pace
 * @now_ns: time now, ns
 * @cpu_ns: processor time spent since the last call, ns
 * @slots: slots of all devices, at least 1
 */
void pace_spend(struct pace *p, uint64_t now_ns, uint64_t cpu_ns, unsigned int slots);

/* Return the time from which on there is credit again, ns: @p->at_ns if there is now. */
uint64_t pace_ready_ns(const struct pace *p, unsigned int slots);

#endif /* MGPU_PREEMPT_PACE_H */

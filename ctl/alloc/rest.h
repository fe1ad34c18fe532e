/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Says whether limits rest: whether rates are as fair without them. Pure.
 */
#ifndef MGPU_REST_H
#define MGPU_REST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A limit of frames per second is out of date when a frame's cost has changed, and capacity
 * is idle until the next period. Where the engine's order already leads to fair shares,
 * limits have this cost and no worth. So they rest, that is, all lead their targets by
 * REST_LEAD, for as long as f is about as near to its best as with limits in force. That is
 * far above the pace of frames which become ready one soon after the other, and still stops
 * a VM that goes wild.
 *
 * The distance of f from its best is averaged; the last period has the weight REST_NEW, or
 * REST_NEW_FORCE with limits in force. Limits come into force when the distance exceeds
 * what it was in force by REST_MARGIN; before that is known, REST_GAP. After some periods
 * they rest again, as a trial: after REST_TRIAL_MIN at first, and twice as many after each
 * trial that ended before as many periods, up to REST_TRIAL_MAX.
 */
#define REST_LEAD	10.0
#define REST_GAP	0.02
#define REST_MARGIN	0.005
#define REST_NEW	0.25
#define REST_NEW_FORCE	0.05
#define REST_TRIAL_MIN	10
#define REST_TRIAL_MAX	640
#define REST_SETTLE	2	/* periods after a change that count for neither */

/**
 * struct rest - what is known of both states; all zero at first
 * @in_force: limits do not rest
 * @known: @force was measured
 * @gap: distance of f from its best, as a part of it, while limits rest
 * @force: the same while they are in force
 * @periods: since the last change
 * @wait: periods from limits coming into force to the next trial
 * @active: active vGPUs of the last period
 */
struct rest {
	bool in_force, known;
	double gap, force;
	unsigned int periods, wait;
	size_t active;
};

/*
 * A period has ended, with @active vGPUs, and f @gap below its best, as a part of that; NAN
 * for unknown. @allowed: no promise needs limits. Return whether limits rest in the next
 * period.
 */
bool rest_update(struct rest *r, double gap, size_t active, bool allowed);

#endif /* MGPU_REST_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides whether limits rest: whether rates are as fair without them. Pure. */
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
 * The distance of f from its best is averaged: in a rest with the weight REST_NEW of the last
 * period, with limits in force over the last REST_FORCE_PERIODS or so. Limits come into force
 * when the distance exceeds the one in force by REST_MARGIN; before that one is known,
 * REST_GAP. A distance in force above REST_FAR counts as REST_FAR, so that a machine that
 * disturbs both states gets its limits. After some periods limits rest again, as a trial:
 * after REST_TRIAL_MIN at first, and twice as many after each trial that ended before as many
 * periods, up to REST_TRIAL_MAX. When other vGPUs become active, the average in force counts as
 * that of REST_OTHERS_PERIODS, and the next trial is due after REST_OTHERS_TRIAL at most.
 */
#define REST_LEAD	10.0
#define REST_GAP	0.02
#define REST_FAR	0.05
#define REST_MARGIN	0.005
#define REST_NEW	0.25
#define REST_FORCE_PERIODS	20
#define REST_TRIAL_MIN	10
#define REST_TRIAL_MAX	640
#define REST_OTHERS_PERIODS	5
#define REST_OTHERS_TRIAL	80
#define REST_SETTLE	2	/* periods after a change that count for neither */

/**
 * struct rest - what is known of both states; all zero at first
 * @in_force: limits do not rest
 * @gap: distance of f from its best, as a part of it, while limits rest
 * @force: the same while they are in force
 * @measured: periods that @force is the average of, 0 before there are any
 * @periods: since the last change
 * @wait: periods from limits coming into force to the next trial
 * @active: active vGPUs of the last period
 */
struct rest {
	bool in_force;
	double gap, force;
	unsigned int measured, periods, wait;
	size_t active;
};

/**
 * rest_update() - learn from a period, and decide about the next one
 * @r: what is known; updated
 * @gap: distance of the period's f from its best, as a part of it; NAN for unknown
 * @active: active vGPUs of the period
 * @allowed: no promise needs limits
 *
 * Return: whether limits rest in the next period.
 */
bool rest_update(struct rest *r, double gap, size_t active, bool allowed);

#endif /* MGPU_REST_H */

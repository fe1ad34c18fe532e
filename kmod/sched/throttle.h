/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_THROTTLE_H
#define MGPU_THROTTLE_H

#include "pure.h"

/**
 * enum mgpu_throttle_reason - why a frame was held back
 * @MGPU_THROTTLE_FPS: the vGPU's fps_limit, the operator's
 * @MGPU_THROTTLE_TARGET: the vGPU's fps_target, a controller's
 */
enum mgpu_throttle_reason {
	MGPU_THROTTLE_FPS = 1,
	MGPU_THROTTLE_TARGET,
};

/**
 * struct mgpu_throttle - frame pacing of one vGPU
 * @limit: frames per 1000 seconds (millihertz); 0 for no limit
 * @due_ns: time from which the next frame may go, nanoseconds of the caller's clock
 * @frac: fraction of a nanosecond to add to @due_ns, in units of 1 / @limit ns, so
 *	that the rate is exact over any length of time
 *
 * A virtual schedule with one frame per interval.  A frame that is late by less than
 * one interval keeps the schedule's phase, so a jittery client reaches its rate.  A
 * later frame starts a new schedule, so idle time allows no burst.
 *
 * Pure: the caller passes the time and serialises.
 */
struct mgpu_throttle {
	u32 limit;
	u32 frac;
	u64 due_ns;
};

#define MGPU_THROTTLE_MAX_HOLD_NS	2000000000ULL

void mgpu_throttle_set(struct mgpu_throttle *t, u32 limit, u64 now_ns);
u64 mgpu_throttle_wait(const struct mgpu_throttle *t, u64 now_ns);
void mgpu_throttle_frame(struct mgpu_throttle *t, u64 now_ns);

#endif /* MGPU_THROTTLE_H */

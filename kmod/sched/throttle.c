// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frame pacing arithmetic.  Pure: builds in user space too.
 */
#include "sched/throttle.h"

/* Nanoseconds in 1000 seconds: the numerator of an interval in millihertz. */
#define THROTTLE_NUMERATOR	1000000000000ULL

/* Return @t + @ns, saturated at U64_MAX. */
static u64 after(u64 t, u64 ns)
{
	u64 sum;

	return check_add_overflow(t, ns, &sum) ? U64_MAX : sum;
}

/**
 * mgpu_throttle_set - change the limit
 * @t: pacing state
 * @limit: frames per 1000 seconds, 0 for no limit
 * @now_ns: current time, nanoseconds
 *
 * A frame that is being held goes at its old time or one new interval from now,
 * whichever is earlier.
 */
void mgpu_throttle_set(struct mgpu_throttle *t, u32 limit, u64 now_ns)
{
	u64 latest;

	t->limit = limit;
	t->frac = 0;
	if (!limit) {
		t->due_ns = 0;
		return;
	}

	latest = after(now_ns, div_u64(THROTTLE_NUMERATOR, limit));
	if (t->due_ns > latest)
		t->due_ns = latest;
}

/**
 * mgpu_throttle_wait - compute how long the next frame has to wait
 * @t: pacing state
 * @now_ns: current time, nanoseconds
 *
 * Return: nanoseconds, 0 if the frame may go now, at most MGPU_THROTTLE_MAX_HOLD_NS.
 */
u64 mgpu_throttle_wait(const struct mgpu_throttle *t, u64 now_ns)
{
	u64 wait;

	if (!t->limit || now_ns >= t->due_ns)
		return 0;

	wait = t->due_ns - now_ns;
	return wait < MGPU_THROTTLE_MAX_HOLD_NS ? wait :
						  MGPU_THROTTLE_MAX_HOLD_NS;
}

/**
 * mgpu_throttle_frame - account for a frame that goes now
 * @t: pacing state
 * @now_ns: current time, nanoseconds
 *
 * A frame that goes before its time (after the longest hold, or because the clock
 * went back) starts a new schedule: no debt accumulates.
 */
void mgpu_throttle_frame(struct mgpu_throttle *t, u64 now_ns)
{
	u64 interval, frac;

	if (!t->limit)
		return;

	interval = div_u64(THROTTLE_NUMERATOR, t->limit);
	frac = t->frac + (THROTTLE_NUMERATOR - interval * t->limit);

	if (now_ns < t->due_ns || now_ns - t->due_ns >= interval) {
		/* A new schedule begins with this frame. */
		t->due_ns = now_ns;
		frac = 0;
	}

	t->due_ns = after(t->due_ns, interval);
	if (frac >= t->limit) {
		frac -= t->limit;
		t->due_ns = after(t->due_ns, 1);
	}
	t->frac = frac;
}

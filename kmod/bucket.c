// SPDX-License-Identifier: GPL-2.0-only
/*
 * An allowance of engine time.  Pure: builds in user space too.
 */
#include "bucket.h"

#define SECOND_NS	1000000000U

/* An hour of engine time in reserve, and the engines of a large machine. */
#define MAX_CAP_NS	(3600ULL * SECOND_NS)
#define MAX_RATE	(4096ULL * SECOND_NS)
/* Leaves room for the level beside it. */
#define MAX_CHARGE_NS	(S64_MAX / 4)

/* The lowest level from which no wait is longer than MGPU_BUCKET_MAX_WAIT_NS. */
static s64 floor_of(const struct mgpu_bucket *b)
{
	return 1 - (s64)(b->rate * (MGPU_BUCKET_MAX_WAIT_NS / SECOND_NS));
}

/*
 * Counts what was gained up to now, to the fraction of a nanosecond, as far as
 * the level stays below @most.
 */
static void gain(struct mgpu_bucket *b, u64 now, s64 most)
{
	u64 seconds, whole, part, add, room;
	u32 ns, below;

	if (now > b->at_ns) {
		seconds = div_u64_rem(now - b->at_ns, SECOND_NS, &ns);
		b->at_ns = now;
	} else {
		seconds = 0;
		ns = 0;
	}
	if (b->level_ns >= most) {
		b->level_ns = most;
		b->frac = 0;
		return;
	}

	/*
	 * rate * time / 10^9, both split at 10^9: only rate * seconds may be
	 * too large, since whole * ns is below 2^43 and below * ns below 2^60.
	 */
	whole = div_u64_rem(b->rate, SECOND_NS, &below);
	part = (u64)below * ns + b->frac;
	part = whole * ns + div_u64_rem(part, SECOND_NS, &b->frac);
	room = (u64)(most - b->level_ns);
	if (check_mul_overflow(b->rate, seconds, &add) ||
	    check_add_overflow(add, part, &add) || add >= room) {
		b->level_ns = most;
		b->frac = 0;
		return;
	}
	b->level_ns += add;
}

/**
 * mgpu_bucket_set - change rate and size
 * @b: bucket; all 0 for one that allows everything
 * @rate: engine nanoseconds that it gains in 10^9 ns; 0 for no bucket,
 *	more than that of 4,096 engines counts as that
 * @cap_ns: most that it holds; at least 1 ns, at most an hour
 * @now_ns: current time
 *
 * A bucket that allowed everything is full afterwards.  Otherwise what it holds
 * or owes stays, as far as the new size and the longest wait allow.
 */
void mgpu_bucket_set(struct mgpu_bucket *b, u64 rate, u64 cap_ns, u64 now_ns)
{
	bool fresh = !b->rate;

	if (rate > MAX_RATE)
		rate = MAX_RATE;
	/* Work starts while there is something in it. */
	if (!cap_ns)
		cap_ns = 1;
	if (cap_ns > MAX_CAP_NS)
		cap_ns = MAX_CAP_NS;

	if (fresh) {
		b->at_ns = now_ns;
		b->level_ns = cap_ns;
		b->frac = 0;
	} else {
		gain(b, now_ns, b->cap_ns);
	}
	b->rate = rate;
	b->cap_ns = cap_ns;
	/* Time is up to date: only what is too much goes. */
	gain(b, now_ns, cap_ns);
	if (b->level_ns < floor_of(b))
		b->level_ns = floor_of(b);
}

/**
 * mgpu_bucket_begin - work starts
 * @b: bucket
 * @now_ns: current time
 *
 * What was gained since the last work ended, and finds no room, is lost.  Not to
 * be called while other work of the same bucket is being done.
 */
void mgpu_bucket_begin(struct mgpu_bucket *b, u64 now_ns)
{
	if (!b->rate)
		return;
	gain(b, now_ns, b->cap_ns);
}

/**
 * mgpu_bucket_charge - work is done
 * @b: bucket
 * @ns: engine nanoseconds that it took, any number; those beyond 73 years count
 *	as that
 * @now_ns: current time
 *
 * What was gained while the work was done counts in full: it would have found
 * room if each nanosecond had been charged at once.
 */
void mgpu_bucket_charge(struct mgpu_bucket *b, u64 ns, u64 now_ns)
{
	if (!b->rate)
		return;
	if (ns > MAX_CHARGE_NS)
		ns = MAX_CHARGE_NS;
	gain(b, now_ns, (s64)(b->cap_ns + ns));
	b->level_ns -= ns;
	if (b->level_ns < floor_of(b))
		b->level_ns = floor_of(b);
}

/**
 * mgpu_bucket_trim - give up what was not used
 * @b: bucket
 * @ns: most that it holds afterwards, 1 ns to an hour; it may fill up again
 * @now_ns: current time
 */
void mgpu_bucket_trim(struct mgpu_bucket *b, u64 ns, u64 now_ns)
{
	if (!b->rate)
		return;
	gain(b, now_ns, ns < b->cap_ns ? ns : b->cap_ns);
}

/**
 * mgpu_bucket_wait - how long until work may start
 * @b: bucket
 * @now_ns: current time
 *
 * Return: nanoseconds, 0 for now, at most MGPU_BUCKET_MAX_WAIT_NS.  Once they
 * have passed, work may start unless more was charged or the bucket changed.
 */
u64 mgpu_bucket_wait(const struct mgpu_bucket *b, u64 now_ns)
{
	u64 rate = b->rate, need, wait;
	struct mgpu_bucket then;

	if (!rate)
		return 0;
	then = *b;
	gain(&then, now_ns, b->cap_ns);
	if (then.level_ns > 0)
		return 0;

	/*
	 * need * 10^9 / rate, rounded up.  Of large numbers the lowest bits do
	 * not count: 2^33 * 10^9 fits.
	 */
	need = (u64)(1 - then.level_ns);
	while (need >> 33) {
		need = (need >> 1) + 1;
		rate >>= 1;
	}
	wait = div64_u64(need * SECOND_NS - (rate == b->rate ? then.frac : 0) +
			 rate - 1, rate);
	return wait < MGPU_BUCKET_MAX_WAIT_NS ? wait : MGPU_BUCKET_MAX_WAIT_NS;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * An allowance of engine time.  Pure: builds in user space too.
 */
#include "sched/bucket.h"

#define SECOND_NS	1000000000U

/* An hour of engine time in reserve, and the engines of a large machine. */
#define MAX_CAP_NS	(3600ULL * SECOND_NS)
#define MAX_RATE	(4096ULL * SECOND_NS)
/* The longest charge, nanoseconds: the sum of it and a level does not overflow. */
#define MAX_CHARGE_NS	(S64_MAX / 4)

/* The lowest level from which no wait is longer than MGPU_BUCKET_MAX_WAIT_NS. */
static s64 floor_of(const struct mgpu_bucket *b)
{
	return 1 - (s64)(b->rate * (MGPU_BUCKET_MAX_WAIT_NS / SECOND_NS));
}

/*
 * Add the engine time gained since b->at_ns, to the fraction of a nanosecond, and
 * cap the level at @most.
 */
static void bucket_gain(struct mgpu_bucket *b, u64 now, s64 most)
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
 * @b: bucket; a bucket of all 0 has no limit
 * @rate: engine nanoseconds that the bucket gains in 10^9 ns; 0 for no limit; at most
 *	4,096 * 10^9 (4,096 engines), a higher rate is reduced to that
 * @cap_ns: most that the bucket holds, 1 ns to an hour; values outside are clamped
 * @now_ns: current time, nanoseconds
 *
 * A bucket that had no limit is full afterwards.  Otherwise the level, or the debt,
 * stays, clamped to the new size and to the debt of the longest wait.
 */
void mgpu_bucket_set(struct mgpu_bucket *b, u64 rate, u64 cap_ns, u64 now_ns)
{
	bool fresh = !b->rate;

	if (rate > MAX_RATE)
		rate = MAX_RATE;
	/* Work starts only while the level is above 0. */
	if (!cap_ns)
		cap_ns = 1;
	if (cap_ns > MAX_CAP_NS)
		cap_ns = MAX_CAP_NS;

	if (fresh) {
		b->at_ns = now_ns;
		b->level_ns = cap_ns;
		b->frac = 0;
	} else {
		bucket_gain(b, now_ns, b->cap_ns);
	}
	b->rate = rate;
	b->cap_ns = cap_ns;
	/* b->at_ns is @now_ns already: this only clamps the level to the new size. */
	bucket_gain(b, now_ns, cap_ns);
	if (b->level_ns < floor_of(b))
		b->level_ns = floor_of(b);
}

/**
 * mgpu_bucket_begin - count the time gained before work starts
 * @b: bucket
 * @now_ns: current time, nanoseconds
 *
 * Engine time gained since the last work ended is lost beyond the bucket's size.
 * Must not be called while other work of the same bucket is in flight.
 */
void mgpu_bucket_begin(struct mgpu_bucket *b, u64 now_ns)
{
	if (!b->rate)
		return;
	bucket_gain(b, now_ns, b->cap_ns);
}

/**
 * mgpu_bucket_charge - charge completed work
 * @b: bucket
 * @ns: engine nanoseconds that the work took, any number; more than 73 years are
 *	reduced to 73 years
 * @now_ns: current time, nanoseconds
 *
 * Engine time gained while the work was in flight counts in full, beyond the bucket's
 * size too: the bucket would have had room for it if each nanosecond had been charged
 * at once.
 */
void mgpu_bucket_charge(struct mgpu_bucket *b, u64 ns, u64 now_ns)
{
	if (!b->rate)
		return;
	if (ns > MAX_CHARGE_NS)
		ns = MAX_CHARGE_NS;
	bucket_gain(b, now_ns, (s64)(b->cap_ns + ns));
	b->level_ns -= ns;
	if (b->level_ns < floor_of(b))
		b->level_ns = floor_of(b);
}

/**
 * mgpu_bucket_spent - test whether work in flight has to stop
 * @b: bucket
 * @ns: engine nanoseconds that the work took and that are not charged yet
 * @now_ns: current time, nanoseconds
 *
 * Return: true if the charge would leave a debt of more than MGPU_BUCKET_SLICE_NS,
 * which is to be paid back before the work goes on.
 */
bool mgpu_bucket_spent(const struct mgpu_bucket *b, u64 ns, u64 now_ns)
{
	struct mgpu_bucket then = *b;

	if (!b->rate)
		return false;
	if (ns > MAX_CHARGE_NS)
		ns = MAX_CHARGE_NS;
	bucket_gain(&then, now_ns, (s64)(b->cap_ns + ns));
	return then.level_ns - (s64)ns < -(s64)MGPU_BUCKET_SLICE_NS;
}

/**
 * mgpu_bucket_trim - drop unused engine time
 * @b: bucket
 * @ns: upper bound on the level afterwards, 1 ns to an hour; the bucket may fill up
 *	again
 * @now_ns: current time, nanoseconds
 */
void mgpu_bucket_trim(struct mgpu_bucket *b, u64 ns, u64 now_ns)
{
	if (!b->rate)
		return;
	bucket_gain(b, now_ns, ns < b->cap_ns ? ns : b->cap_ns);
}

/**
 * mgpu_bucket_wait - compute how long until work may start
 * @b: bucket
 * @now_ns: current time, nanoseconds
 *
 * Return: nanoseconds, 0 for now, at most MGPU_BUCKET_MAX_WAIT_NS.  After that time
 * work may start, unless more was charged or the bucket changed meanwhile.
 */
u64 mgpu_bucket_wait(const struct mgpu_bucket *b, u64 now_ns)
{
	u64 rate = b->rate, need, wait;
	struct mgpu_bucket then;

	if (!rate)
		return 0;
	then = *b;
	bucket_gain(&then, now_ns, b->cap_ns);
	if (then.level_ns > 0)
		return 0;

	/*
	 * need * 10^9 / rate, rounded up.  Large numbers lose their lowest bits:
	 * 2^33 * 10^9 fits into 64 bits.
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

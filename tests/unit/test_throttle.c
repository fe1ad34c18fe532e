// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frame pacing: rates, phase, limits that change, idle clients.  Time is a
 * number here, so hours pass in milliseconds.
 */
#include <stdlib.h>

#include "tap.h"
#include "sched/throttle.h"

#define SEC	1000000000ULL
#define MS	1000000ULL

static const u32 limits[] = {
	1000, 1001, 7777, 23976, 24000, 29970, 30000, 59940, 60000, 75000,
	119880, 144000, 999999, 1000000, 10000000,
};

#define NR(a) (sizeof(a) / sizeof((a)[0]))

/* Waits as the ring worker does, then lets the frame go; returns the time. */
static u64 frame(struct mgpu_throttle *t, u64 now)
{
	now += mgpu_throttle_wait(t, now);
	TAP_EQ(mgpu_throttle_wait(t, now), 0);
	mgpu_throttle_frame(t, now);
	return now;
}

static double interval(u32 limit)
{
	return 1e12 / limit;
}

static void no_limit(void)
{
	struct mgpu_throttle t = { 0 };
	u64 now = 5 * SEC;
	int i;

	for (i = 0; i < 1000; i++) {
		TAP_EQ(mgpu_throttle_wait(&t, now), 0);
		mgpu_throttle_frame(&t, now);
	}
	TAP_EQ(t.due_ns, 0);
}

static void first_frame_at_once(void)
{
	struct mgpu_throttle t = { 0 };

	mgpu_throttle_set(&t, 30000, 100 * SEC);
	TAP_EQ(mgpu_throttle_wait(&t, 100 * SEC), 0);
	mgpu_throttle_frame(&t, 100 * SEC);
	TAP_EQ(mgpu_throttle_wait(&t, 100 * SEC), 33333333);
}

/* A client that always has the next frame ready. */
static void rate_exact(void)
{
	struct mgpu_throttle t;
	u64 start = 77 * SEC, now;
	double want;
	size_t i;
	u32 n, k;

	for (i = 0; i < NR(limits); i++) {
		memset(&t, 0, sizeof(t));
		mgpu_throttle_set(&t, limits[i], start);
		now = start;
		n = 200000;
		mgpu_throttle_frame(&t, now);
		for (k = 0; k < n; k++)
			now = frame(&t, now);
		want = n * interval(limits[i]);
		/* Not one nanosecond is lost in 200,000 frames. */
		if (!TAP_NEAR((double)(now - start), want, 1.5))
			tap_diag("at %u mHz", limits[i]);
	}
}

/* Work, timer slack and jitter: the rate holds as long as work < interval. */
static void rate_with_jitter(void)
{
	struct mgpu_throttle t;
	u64 start = 77 * SEC, now, iv;
	double rate;
	size_t i;
	u32 n, k;

	srand(7);
	for (i = 0; i < NR(limits); i++) {
		memset(&t, 0, sizeof(t));
		mgpu_throttle_set(&t, limits[i], start);
		iv = interval(limits[i]);
		now = start;
		n = 20000;
		mgpu_throttle_frame(&t, now);
		for (k = 0; k < n; k++) {
			/* Work up to 0.7, timer late by up to 0.25 of it. */
			now += (u64)(iv * 0.7 * (rand() % 1000) / 1000);
			now += mgpu_throttle_wait(&t, now);
			now += (u64)(iv * 0.25 * (rand() % 1000) / 1000);
			TAP_EQ(mgpu_throttle_wait(&t, now), 0);
			mgpu_throttle_frame(&t, now);
		}
		rate = n / ((now - start) / 1e9);
		if (!TAP_NEAR(rate / (limits[i] / 1000.0), 1.0, 0.001))
			tap_diag("at %u mHz", limits[i]);
	}
}

static void late_frame_keeps_phase(void)
{
	struct mgpu_throttle t = { 0 };
	u64 start = 100 * SEC, now;

	mgpu_throttle_set(&t, 50000, start);		/* 20 ms */
	now = frame(&t, start);
	now = frame(&t, now);
	TAP_EQ(now, start + 20 * MS);
	/* 15 ms late for the one due at 40 ms ... */
	now = frame(&t, start + 55 * MS);
	TAP_EQ(now, start + 55 * MS);
	/* ... the next is due at 60 all the same. */
	now = frame(&t, now);
	TAP_EQ(now, start + 60 * MS);
}

static void very_late_frame_restarts(void)
{
	struct mgpu_throttle t = { 0 };
	u64 start = 100 * SEC, now;

	mgpu_throttle_set(&t, 50000, start);
	frame(&t, start);
	now = frame(&t, start + 47 * MS);
	TAP_EQ(now, start + 47 * MS);
	now = frame(&t, now);
	TAP_EQ(now, start + 67 * MS);
}

/* However long it idles, then bursts: at most one frame above the rate. */
static void idle_builds_no_credit(void)
{
	struct mgpu_throttle t;
	u64 start, now, idle, end;
	size_t i;
	u32 k;

	for (i = 0; i < NR(limits); i++)
		for (idle = 1; idle < 1000; idle = idle * 2 + 1) {
			memset(&t, 0, sizeof(t));
			start = 10 * SEC;
			mgpu_throttle_set(&t, limits[i], start);
			frame(&t, start);
			now = start + (u64)(interval(limits[i]) * idle / 4);
			end = now + (u64)(10 * interval(limits[i]));
			for (k = 0; k < 100; k++) {
				now = frame(&t, now);
				if (now >= end)
					break;
			}
			if (!TAP_CHECK(k <= 11))
				tap_diag("%u mHz idle %llu/4: %u frames",
					 limits[i],
					 (unsigned long long)idle, k);
		}
}

/* Whatever the client does, no window holds more than rate * time + 2. */
static void never_above_rate(void)
{
	static u64 at[20000];
	struct mgpu_throttle t = { 0 };
	u64 now = 50 * SEC, iv = interval(30000);
	u32 i, j;

	srand(99);
	mgpu_throttle_set(&t, 30000, now);
	for (i = 0; i < NR(at); i++) {
		if (rand() % 10 == 0)
			now += (u64)rand() % (iv * 5);
		else
			now += (u64)rand() % iv;
		at[i] = now = frame(&t, now);
	}
	for (i = 0; i < NR(at); i += 3)
		for (j = i + 1; j < i + 200 && j < NR(at); j++)
			if (!TAP_CHECK((j - i) <=
				       (at[j] - at[i]) / (double)iv + 1.001))
				return;
}

static void lower_limit_while_held(void)
{
	struct mgpu_throttle t = { 0 };
	u64 start = 100 * SEC;

	/* Held until 100 ms; a lower limit does not hold it longer. */
	mgpu_throttle_set(&t, 10000, start);
	mgpu_throttle_frame(&t, start);
	mgpu_throttle_set(&t, 1000, start + 30 * MS);
	TAP_EQ(mgpu_throttle_wait(&t, start + 30 * MS), 70 * MS);
	TAP_EQ(frame(&t, start + 30 * MS), start + 100 * MS);
	TAP_EQ(frame(&t, start + 100 * MS), start + 1100 * MS);
}

static void higher_limit_while_held(void)
{
	struct mgpu_throttle t = { 0 };
	u64 start = 100 * SEC;

	mgpu_throttle_set(&t, 1000, start);
	mgpu_throttle_frame(&t, start);
	mgpu_throttle_set(&t, 100000, start + 100 * MS);
	TAP_EQ(mgpu_throttle_wait(&t, start + 100 * MS), 10 * MS);
}

static void lifted_while_held(void)
{
	struct mgpu_throttle t = { 0 };
	u64 start = 100 * SEC;

	mgpu_throttle_set(&t, 1000, start);
	mgpu_throttle_frame(&t, start);
	TAP_EQ(mgpu_throttle_wait(&t, start), SEC);
	mgpu_throttle_set(&t, 0, start + 1);
	TAP_EQ(mgpu_throttle_wait(&t, start + 1), 0);
	/* Put back in place, it starts afresh. */
	mgpu_throttle_set(&t, 1000, start + 2);
	TAP_EQ(mgpu_throttle_wait(&t, start + 2), 0);
}

/*
 * A controller that pushes a new limit every second, as mgpud does, does not
 * change the rate that comes out.
 */
static void steady_updates(void)
{
	struct mgpu_throttle t = { 0 };
	u64 start = 100 * SEC, now = start, next = start + SEC;
	u32 n = 0;

	mgpu_throttle_set(&t, 29970, start);
	mgpu_throttle_frame(&t, start);
	while (now < start + 1000 * SEC) {
		if (now >= next) {
			mgpu_throttle_set(&t, 29970, now);
			next += SEC;
		}
		now = frame(&t, now);
		n++;
	}
	TAP_NEAR(n / 29970.0, 1.0, 0.001);
}

static void no_long_hold(void)
{
	static const u32 any[] = { 1, 2, 100, 499, 500, 999, 1000, 30000,
				   1000000, ~0u };
	struct mgpu_throttle t;
	u64 now, wait;
	u32 i, k;

	srand(5);
	for (i = 0; i < NR(any); i++) {
		memset(&t, 0, sizeof(t));
		now = SEC;
		mgpu_throttle_set(&t, any[i], now);
		for (k = 0; k < 1000; k++) {
			/* As if frames went without waiting: debt is capped. */
			mgpu_throttle_frame(&t, now);
			wait = mgpu_throttle_wait(&t, now);
			TAP_CHECK(wait <= MGPU_THROTTLE_MAX_HOLD_NS);
			now += rand() % 3 ? 0 : wait / 2;
		}
	}
}

/* The clock's last centuries: sums do not wrap. */
static void far_future(void)
{
	struct mgpu_throttle t = { 0 };
	u64 now = (u64)INT64_MAX - 100 * SEC, start = now;
	int i;

	mgpu_throttle_set(&t, 30000, now);
	mgpu_throttle_frame(&t, now);
	for (i = 0; i < 300; i++)
		now = frame(&t, now);
	TAP_NEAR((double)(now - start), 300 * interval(30000), 1.5);
}

/* The clock's last second: a frame due after the end is due at the end. */
static void end_of_time(void)
{
	struct mgpu_throttle t;
	u64 now;
	size_t i;
	int k;

	for (i = 0; i < NR(limits); i++)
		for (k = 0; k < 1000; k++) {
			memset(&t, 0, sizeof(t));
			now = U64_MAX - k * (SEC / 500);
			mgpu_throttle_set(&t, limits[i], now);
			TAP_EQ(mgpu_throttle_wait(&t, now), 0);
			mgpu_throttle_frame(&t, now);
			TAP_CHECK(t.due_ns >= now);
			mgpu_throttle_set(&t, limits[NR(limits) - 1 - i], now);
			TAP_CHECK(t.due_ns >= now);
			mgpu_throttle_frame(&t, U64_MAX);
			TAP_EQ(t.due_ns, U64_MAX);
			TAP_EQ(mgpu_throttle_wait(&t, U64_MAX), 0);
		}
}

/* As after a hold of two seconds that was too short: nothing adds up. */
static void early_frames_owe_one_interval(void)
{
	struct mgpu_throttle t;
	size_t i;
	int k;

	for (i = 0; i < NR(limits); i++) {
		memset(&t, 0, sizeof(t));
		mgpu_throttle_set(&t, limits[i], 100 * SEC);
		for (k = 0; k < 1000; k++)
			mgpu_throttle_frame(&t, 100 * SEC);
		TAP_NEAR((double)mgpu_throttle_wait(&t, 100 * SEC),
			 interval(limits[i]), 1.0);
	}
}

static void clock_goes_back(void)
{
	struct mgpu_throttle t;
	u64 now, n, k;
	size_t i;

	for (i = 0; i < NR(limits); i++) {
		memset(&t, 0, sizeof(t));
		now = 1000000 * SEC;
		mgpu_throttle_set(&t, limits[i], now);
		mgpu_throttle_frame(&t, now);
		/* The frame in hand waits for two seconds, and then it is over. */
		now = SEC;
		TAP_EQ(mgpu_throttle_wait(&t, now), 2 * SEC);
		now += 2 * SEC;
		mgpu_throttle_frame(&t, now);
		n = 100;
		for (k = 0; k < n; k++)
			now = frame(&t, now);
		TAP_NEAR((double)(now - 3 * SEC), n * interval(limits[i]), 1.5);
	}
}

static void clock_jumps_ahead(void)
{
	struct mgpu_throttle t;
	u64 now, start, k;
	size_t i;

	for (i = 0; i < NR(limits); i++) {
		memset(&t, 0, sizeof(t));
		now = SEC;
		mgpu_throttle_set(&t, limits[i], now);
		mgpu_throttle_frame(&t, now);
		/* Four centuries buy one frame. */
		now = 12600000000 * SEC;
		start = now;
		for (k = 0; k < 101; k++)
			now = frame(&t, now);
		TAP_NEAR((double)(now - start), 100 * interval(limits[i]), 1.5);
	}
}

static void clock_stands_still(void)
{
	struct mgpu_throttle t = { 0 };
	int k;

	mgpu_throttle_set(&t, 60000, SEC);
	mgpu_throttle_frame(&t, SEC);
	for (k = 0; k < 1000; k++)
		TAP_EQ(mgpu_throttle_wait(&t, SEC), 16666666);
}

/* Times, limits and orders of calls that make no sense. */
static void any_numbers(void)
{
	struct mgpu_throttle t = { 0 };
	u64 now = 0, wait, due;
	long k;

	srand(8);
	for (k = 0; k < 3000000; k++) {
		if (rand() % 4)
			now += (u64)rand() >> rand() % 31;
		else
			now = ((u64)rand() << 62 ^ (u64)rand() << 31 ^
			       (u64)rand()) >> rand() % 64;
		if (rand() % 8 == 0) {
			mgpu_throttle_set(&t, (u32)rand() >> rand() % 31, now);
			if (t.limit)
				TAP_CHECK(t.due_ns <= now ||
					  (double)(t.due_ns - now) <=
					  interval(t.limit) + 1);
		}
		wait = mgpu_throttle_wait(&t, now);
		TAP_CHECK(wait <= MGPU_THROTTLE_MAX_HOLD_NS);
		if (rand() % 2)
			continue;
		due = t.due_ns;
		mgpu_throttle_frame(&t, now);
		if (!t.limit)
			continue;
		TAP_CHECK(t.frac < t.limit);
		/* At most one interval is owed, and the schedule goes on. */
		if (!TAP_CHECK(t.due_ns >= now) ||
		    !TAP_CHECK(t.due_ns >= due || wait) ||
		    !TAP_CHECK((double)(t.due_ns - now) <=
			       interval(t.limit) + 1)) {
			tap_diag("in step %ld: %llu at %llu, limit %u", k,
				 (unsigned long long)t.due_ns,
				 (unsigned long long)now, t.limit);
			return;
		}
	}
}

int main(void)
{
	tap_run(no_limit, "without a limit nothing is held");
	tap_run(first_frame_at_once, "the first frame goes at once");
	tap_run(rate_exact, "the rate is exact over 200,000 frames");
	tap_run(rate_with_jitter, "a jittery client gets its rate");
	tap_run(late_frame_keeps_phase, "a late frame keeps the phase");
	tap_run(very_late_frame_restarts, "a very late frame starts anew");
	tap_run(idle_builds_no_credit, "time spent idle buys no burst");
	tap_run(never_above_rate, "no window of time has too many frames");
	tap_run(lower_limit_while_held, "a lower limit does not hold longer");
	tap_run(higher_limit_while_held, "a higher limit shortens a hold");
	tap_run(lifted_while_held, "a lifted limit releases at once");
	tap_run(steady_updates, "repeating a limit does not change the rate");
	tap_run(no_long_hold, "no hold exceeds two seconds");
	tap_run(far_future, "the rate is exact in centuries to come");
	tap_run(end_of_time, "nothing wraps at the end of time");
	tap_run(early_frames_owe_one_interval, "early frames add up no debt");
	tap_run(clock_goes_back, "a clock that goes back holds one frame");
	tap_run(clock_jumps_ahead, "a clock that jumps ahead buys one frame");
	tap_run(clock_stands_still, "a clock that stands still lets none go");
	tap_run(any_numbers, "any numbers at any time keep the bounds");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allowances of engine time: rates, sizes, debts, clocks that stand, go back
 * and jump, and every number that fits into its type.
 */
#include <stdlib.h>

#include "tap.h"
#include "test_bucket.h"

#define SEC	1000000000ULL
#define MS	1000000ULL
#define US	1000ULL
#define YEAR	(31557600 * SEC)

#define NR(a) (sizeof(a) / sizeof((a)[0]))

/* Parts per 10^9: odd ones, those of limits and shares, and beyond all use. */
static const u64 rates[] = {
	1, 24, 999, 1000000, 333333333, 7 * SEC / 15, SEC - 1, SEC, SEC + 1,
	63999999999ULL, 64 * SEC, MODEL_RATE_MAX - 1, MODEL_RATE_MAX,
	MODEL_RATE_MAX + 1, U64_MAX,
};

static const u64 caps[] = {
	0, 1, 2, 1000, 2 * MS, 65 * SEC, MODEL_CAP_MAX, MODEL_CAP_MAX + 1,
	U64_MAX,
};

static u64 random_u64(void)
{
	/* RAND_MAX is 2^31 - 1 */
	return (u64)rand() << 62 ^ (u64)rand() << 31 ^ (u64)rand();
}

/* Any size of number: as likely of 3 bits as of 60. */
static u64 random_bits(void)
{
	return random_u64() >> rand() % 64;
}

static bool same(const struct mgpu_bucket *b, const struct model *m)
{
	s128 level = b->level_ns * MODEL_UNIT + b->frac;

	return b->frac < 1000000000 && (!b->rate || level == m->level);
}

static void no_bucket(void)
{
	struct mgpu_bucket b = { 0 };

	mgpu_bucket_charge(&b, U64_MAX, 5);
	TAP_EQ(mgpu_bucket_wait(&b, 5), 0);
	mgpu_bucket_set(&b, 0, 100, 5);
	mgpu_bucket_charge(&b, U64_MAX, 6);
	TAP_EQ(mgpu_bucket_wait(&b, 6), 0);
}

static void starts_full(void)
{
	struct mgpu_bucket b = { 0 };

	mgpu_bucket_set(&b, SEC / 2, 5 * MS, 100 * SEC);
	TAP_EQ(b.level_ns, 5 * MS);
	/* A job that begins while any time is left may exceed it ... */
	mgpu_bucket_charge(&b, 4 * MS, 100 * SEC);
	TAP_EQ(mgpu_bucket_wait(&b, 100 * SEC), 0);
	mgpu_bucket_charge(&b, 4 * MS, 100 * SEC);
	/* ... and is paid back at half speed. */
	TAP_EQ(mgpu_bucket_wait(&b, 100 * SEC), 6 * MS + 2);
	TAP_EQ(mgpu_bucket_wait(&b, 100 * SEC + 6 * MS), 2);
	TAP_EQ(mgpu_bucket_wait(&b, 100 * SEC + 6 * MS + 2), 0);
}

/* Jobs of any length, as soon as they may start, for some hours. */
static void rate_exact(void)
{
	u64 start, now, used, cap = 3 * MS, job;
	struct mgpu_bucket b;
	size_t i;
	int k;

	srand(11);
	for (i = 0; i < NR(rates); i++) {
		if (rates[i] < 1000000 || rates[i] > 64 * SEC)
			continue;
		memset(&b, 0, sizeof(b));
		start = 50 * SEC;
		now = start;
		used = 0;
		mgpu_bucket_set(&b, rates[i], cap, now);
		for (k = 0; k < 200000; k++) {
			now += mgpu_bucket_wait(&b, now);
			TAP_EQ(mgpu_bucket_wait(&b, now), 0);
			mgpu_bucket_begin(&b, now);
			/* Never more debt than is forgiven. */
			job = 1 + random_u64() % (rates[i] + rates[i] / 2);
			/* On an engine that is faster than the rate. */
			now += random_u64() %
			       (u64)(job * MODEL_UNIT / rates[i] + 1);
			mgpu_bucket_charge(&b, job, now);
			used += job;
		}
		/* Not one nanosecond was gained or lost. */
		if (!TAP_CHECK((s128)(now - start) * rates[i] + cap *
			       MODEL_UNIT - used * MODEL_UNIT ==
			       b.level_ns * MODEL_UNIT + b.frac))
			tap_diag("at a rate of %llu",
				 (unsigned long long)rates[i]);
	}
}

static void asking_changes_nothing(void)
{
	struct mgpu_bucket often, once;
	size_t i;
	u64 now;
	int k;

	srand(12);
	for (i = 0; i < NR(rates); i++) {
		memset(&often, 0, sizeof(often));
		mgpu_bucket_set(&often, rates[i], 2 * MS, SEC);
		mgpu_bucket_charge(&often, 7 * MS, SEC);
		once = often;
		now = SEC;
		for (k = 0; k < 10000; k++) {
			now += rand() % 5000;
			mgpu_bucket_wait(&often, now);
			if (rand() % 3 == 0)
				mgpu_bucket_begin(&often, now);
			if (rand() % 3 == 0)
				mgpu_bucket_set(&often, rates[i], 2 * MS, now);
		}
		mgpu_bucket_begin(&often, now);
		mgpu_bucket_begin(&once, now);
		TAP_EQ(often.level_ns, once.level_ns);
		TAP_EQ(often.frac, once.frac);
	}
}

static void wait_is_exact(void)
{
	struct mgpu_bucket b, early;
	u64 now, wait;
	size_t i;
	int k;

	srand(13);
	for (i = 0; i < NR(rates); i++)
		for (k = 0; k < 2000; k++) {
			memset(&b, 0, sizeof(b));
			now = random_bits() >> 1;
			mgpu_bucket_set(&b, rates[i], 1 + rand() % 1000, now);
			mgpu_bucket_charge(&b, random_bits(), now);
			now += rand() % 1000;
			wait = mgpu_bucket_wait(&b, now);
			early = b;
			TAP_CHECK(wait <= MGPU_BUCKET_MAX_WAIT_NS);
			TAP_EQ(mgpu_bucket_wait(&b, now + wait), 0);
			/* Of the largest rates, 2 s are known to 2 ns. */
			if (wait > 2)
				TAP_CHECK(mgpu_bucket_wait(&early,
							   now + wait - 3));
		}
}

static void debt_is_bounded(void)
{
	struct mgpu_bucket b;
	size_t i, j;
	int k;

	for (i = 0; i < NR(rates); i++)
		for (j = 0; j < NR(caps); j++) {
			memset(&b, 0, sizeof(b));
			mgpu_bucket_set(&b, rates[i], caps[j], SEC);
			for (k = 0; k < 10; k++)
				mgpu_bucket_charge(&b, U64_MAX, SEC);
			TAP_EQ(mgpu_bucket_wait(&b, SEC), 2 * SEC);
			TAP_EQ(mgpu_bucket_wait(&b, 3 * SEC), 0);
			/* A rate that falls does not make it longer. */
			mgpu_bucket_charge(&b, U64_MAX, 3 * SEC);
			mgpu_bucket_set(&b, 1, caps[j], 3 * SEC);
			TAP_CHECK(mgpu_bucket_wait(&b, 3 * SEC) <= 2 * SEC);
		}
}

static void size_is_kept(void)
{
	struct mgpu_bucket b = { 0 };

	mgpu_bucket_set(&b, SEC / 10, 10 * MS, SEC);
	mgpu_bucket_charge(&b, 10 * MS, SEC);
	TAP_EQ(mgpu_bucket_wait(&b, SEC), 10);
	/* Half full, full, and a long time later still just full. */
	mgpu_bucket_begin(&b, SEC + 50 * MS);
	TAP_EQ(b.level_ns, 5 * MS);
	mgpu_bucket_begin(&b, SEC + 100 * MS);
	TAP_EQ(b.level_ns, 10 * MS);
	mgpu_bucket_begin(&b, 100 * YEAR);
	TAP_EQ(b.level_ns, 10 * MS);
	/* Given up, and filled again. */
	mgpu_bucket_trim(&b, 3 * MS, 100 * YEAR);
	TAP_EQ(b.level_ns, 3 * MS);
	mgpu_bucket_trim(&b, 30 * MS, 100 * YEAR + 20 * MS);
	TAP_EQ(b.level_ns, 5 * MS);
	mgpu_bucket_trim(&b, 30 * MS, 101 * YEAR);
	TAP_EQ(b.level_ns, 10 * MS);
}

static void settings_keep_the_level(void)
{
	struct mgpu_bucket b = { 0 };
	u64 now = SEC;

	mgpu_bucket_set(&b, SEC, 10 * MS, now);
	mgpu_bucket_charge(&b, 4 * MS, now);
	mgpu_bucket_set(&b, SEC / 2, 20 * MS, now);
	TAP_EQ(b.level_ns, 6 * MS);
	mgpu_bucket_set(&b, SEC / 2, 2 * MS, now);
	TAP_EQ(b.level_ns, 2 * MS);
	mgpu_bucket_charge(&b, 12 * MS, now);
	mgpu_bucket_set(&b, SEC / 2, 50 * MS, now);
	TAP_EQ(b.level_ns, -10 * (s64)MS);
	/* Time until now is gained at the old rate. */
	now += 10 * MS;
	mgpu_bucket_set(&b, SEC / 10, 50 * MS, now);
	TAP_EQ(b.level_ns, -5 * (s64)MS);
	/* Lifted and put back, it begins anew. */
	mgpu_bucket_set(&b, 0, 0, now);
	TAP_EQ(mgpu_bucket_wait(&b, now), 0);
	mgpu_bucket_set(&b, SEC / 10, 50 * MS, now);
	TAP_EQ(b.level_ns, 50 * MS);
}

static void clock_that_stands_or_goes_back(void)
{
	struct mgpu_bucket b = { 0 };
	u64 now = 1000 * SEC;
	int i;

	mgpu_bucket_set(&b, SEC / 2, 10 * MS, now);
	for (i = 0; i < 1000; i++) {
		mgpu_bucket_wait(&b, now);
		mgpu_bucket_charge(&b, 10 * US, now - i * SEC);
		mgpu_bucket_set(&b, SEC / 2, 10 * MS, now - i * SEC);
	}
	TAP_EQ(b.level_ns, 0);
	TAP_EQ(mgpu_bucket_wait(&b, 0), 2);
	TAP_EQ(mgpu_bucket_wait(&b, now - 1), 2);
	TAP_EQ(mgpu_bucket_wait(&b, now + 2), 0);
}

static void clock_that_jumps(void)
{
	struct mgpu_bucket b;
	size_t i, j;

	for (i = 0; i < NR(rates); i++)
		for (j = 0; j < NR(caps); j++) {
			memset(&b, 0, sizeof(b));
			mgpu_bucket_set(&b, rates[i], caps[j], 0);
			mgpu_bucket_charge(&b, U64_MAX, 0);
			TAP_EQ(mgpu_bucket_wait(&b, U64_MAX), 0);
			mgpu_bucket_begin(&b, U64_MAX);
			TAP_CHECK(b.level_ns > 0);
			TAP_CHECK((u64)b.level_ns <= b.cap_ns);
			/* A part of a nanosecond may be left. */
			mgpu_bucket_charge(&b, U64_MAX, U64_MAX);
			TAP_CHECK(mgpu_bucket_wait(&b, U64_MAX) > SEC);
			TAP_CHECK(mgpu_bucket_wait(&b, U64_MAX) <= 2 * SEC);
			TAP_EQ(mgpu_bucket_wait(&b, 0),
			       mgpu_bucket_wait(&b, U64_MAX));
		}
}

/* However it is used, no stretch of time has more than it should. */
static void never_above_rate(void)
{
	u64 now = 9 * SEC, used = 0, job, most = 50 * MS, rate = SEC / 3;
	struct mgpu_bucket b = { 0 };
	double ahead, least = 0;
	int i;

	srand(14);
	mgpu_bucket_set(&b, rate, 8 * MS, now);
	for (i = 0; i < 1000000; i++) {
		now += mgpu_bucket_wait(&b, now);
		if (rand() % 50 == 0)
			now += random_u64() % (100 * MS);
		mgpu_bucket_begin(&b, now);
		job = random_u64() % most;
		/* Before this job, how far was it ahead of its rate at least? */
		ahead = used - (now - 9 * SEC) / 3.0;
		if (ahead < least)
			least = ahead;
		now += job;
		mgpu_bucket_charge(&b, job, now);
		used += job;
		ahead = used - (now - 9 * SEC) / 3.0;
		if (!TAP_CHECK(ahead - least <= 8 * MS + most + 1))
			return;
	}
}

/* The opposite: with long jobs and a small size, too, it gets all there is. */
static void never_below_rate(void)
{
	u64 now, start = 9 * SEC, used, job;
	struct mgpu_bucket b;
	size_t i;
	int k;

	srand(16);
	for (i = 0; i < NR(rates); i++) {
		if (rates[i] < 1000000 || rates[i] > SEC)
			continue;
		memset(&b, 0, sizeof(b));
		mgpu_bucket_set(&b, rates[i], 1000, start);
		now = start;
		used = 0;
		for (k = 0; k < 100000; k++) {
			now += mgpu_bucket_wait(&b, now);
			mgpu_bucket_begin(&b, now);
			job = 1 + random_u64() % rates[i];
			now += job;
			/* A query meanwhile takes nothing away. */
			mgpu_bucket_wait(&b, now - job / 2);
			mgpu_bucket_charge(&b, job, now);
			used += job;
		}
		now += mgpu_bucket_wait(&b, now);
		/* The most that it may have left over is its size. */
		TAP_CHECK((s128)(now - start) * rates[i] <=
			  (used + 1000) * MODEL_UNIT);
	}
}

/* Against the model, with numbers and times of any size. */
static void as_the_model_says(void)
{
	u64 now = 0, value, other;
	struct mgpu_bucket b = { 0 };
	struct model m = { 0 };
	bool allowed, spent;
	int what;
	long i;

	srand(15);
	for (i = 0; i < 3000000; i++) {
		switch (rand() % 8) {
		case 0:
			now = random_u64();
			break;
		case 1:
			now = rand() % 2 ? 0 : U64_MAX;
			break;
		case 2:
			break;
		default:
			now += random_bits() >> 28;
		}
		value = rand() % 4 ? random_bits() : rates[rand() % NR(rates)];
		other = rand() % 4 ? random_bits() : caps[rand() % NR(caps)];
		what = rand() % 50;
		if (what == 0) {
			mgpu_bucket_set(&b, value, other, now);
			model_set(&m, value, other, now);
		} else if (what == 1) {
			/* A new life, or time would soon be at its end. */
			memset(&b, 0, sizeof(b));
			memset(&m, 0, sizeof(m));
			now = random_bits();
			mgpu_bucket_set(&b, value, other, now);
			model_set(&m, value, other, now);
		} else if (what == 2) {
			other = 1 + other % MODEL_CAP_MAX;
			mgpu_bucket_trim(&b, other, now);
			model_trim(&m, other, now);
		} else if (what < 6) {
			mgpu_bucket_begin(&b, now);
			model_begin(&m, now);
		} else if (what < 25) {
			value >>= rand() % 40;
			mgpu_bucket_charge(&b, value, now);
			model_charge(&m, value, now);
		} else {
			allowed = !mgpu_bucket_wait(&b, now);
			TAP_EQ(allowed, model_allows(&m, now));
			value >>= rand() % 40;
			spent = mgpu_bucket_spent(&b, value, now);
			TAP_EQ(spent, model_spent(&m, value, now));
		}
		if (!TAP_CHECK(same(&b, &m))) {
			tap_diag("in step %ld", i);
			return;
		}
	}
}

int main(void)
{
	tap_run(no_bucket, "without a rate everything is allowed");
	tap_run(starts_full, "it starts full, lends one job, and is paid back");
	tap_run(rate_exact, "the rate is exact over hours of jobs");
	tap_run(asking_changes_nothing, "queries change nothing, however many there are");
	tap_run(wait_is_exact, "a wait is as long as needed and no longer");
	tap_run(debt_is_bounded, "no wait exceeds two seconds");
	tap_run(size_is_kept, "it holds no more than its size");
	tap_run(settings_keep_the_level, "new settings keep its level");
	tap_run(clock_that_stands_or_goes_back,
		"a clock that stands or goes back gives and takes nothing");
	tap_run(clock_that_jumps, "a clock that jumps by centuries does no harm");
	tap_run(never_above_rate, "no stretch of time has more than its part");
	tap_run(never_below_rate, "a vGPU that always has work loses nothing");
	tap_run(as_the_model_says, "any numbers at any time: as the model says");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/* The scheduler bench's statistics, on readings whose results are known. */
#include <errno.h>

#include "stats.h"
#include "tap.h"

#define MS	1000000ull
#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static void middle_values(void)
{
	double odd[] = { 5, 1, 3 }, even[] = { 4, 1, 3, 2 };

	TAP_NEAR(stats_median(odd, NR(odd)), 3, 0);
	TAP_NEAR(stats_median(even, NR(even)), 2.5, 0);
	TAP_CHECK(isnan(stats_median(odd, 0)));
}

static void percentiles(void)
{
	double v[100];
	size_t i;

	for (i = 0; i < NR(v); i++)
		v[i] = (double)(NR(v) - i);
	TAP_NEAR(stats_percentile(v, NR(v), 0.99), 99, 0);
	TAP_NEAR(stats_percentile(v, NR(v), 0.5), 50, 0);
	TAP_NEAR(stats_percentile(v, NR(v), 1), 100, 0);
	TAP_NEAR(stats_percentile(v, NR(v), 0), 1, 0);
	TAP_NEAR(stats_percentile(v, 1, 0.99), 1, 0);
	TAP_CHECK(isnan(stats_percentile(v, 0, 0.5)));
}

/* Two vGPUs; 30/70 in the first window, 40/60 in the second, half idle. */
static const uint64_t at[] = { 1000 * MS, 1100 * MS, 1200 * MS };
static const uint64_t used[] = {
	7 * MS, 9 * MS,
	22 * MS, 44 * MS,
	42 * MS, 74 * MS,
};

static const double want[] = { 0.3, 0.7 };

static const struct stats_run two = {
	.vgpus = 2, .samples = 3, .at_ns = at, .engine_ns = used,
};

static void worst_window(void)
{
	struct stats_err e;

	TAP_EQ(stats_shares(&two, 1, want, 0, &e), 0);
	TAP_EQ(e.windows, 2);
	TAP_NEAR(e.max_pp, 10, 1e-9);
	TAP_NEAR(e.median_pp, 5, 1e-9);
	TAP_NEAR(e.p95_pp, 10, 1e-9);
}

static void longer_windows(void)
{
	struct stats_err e;

	TAP_EQ(stats_shares(&two, 2, want, 0, &e), 0);
	TAP_EQ(e.windows, 1);
	TAP_NEAR(e.max_pp, 5, 1e-9);
	TAP_NEAR(stats_share(&two, 0, 0), 0.35, 1e-9);
	TAP_NEAR(stats_share(&two, 1, 0), 0.65, 1e-9);
}

static void against_the_engine(void)
{
	struct stats_err e;

	/* 15 and 35 of 100 ms, then 20 and 30. */
	TAP_EQ(stats_shares(&two, 1, want, 1, &e), 0);
	TAP_NEAR(e.max_pp, 40, 1e-9);
	TAP_NEAR(stats_share(&two, 0, 1), 0.175, 1e-9);
	TAP_NEAR(stats_share(&two, 0, 2), 0.0875, 1e-9);
}

static void no_windows(void)
{
	struct stats_run one = two;
	struct stats_err e;

	TAP_EQ(stats_shares(&two, 3, want, 0, &e), -EINVAL);
	TAP_EQ(stats_shares(&two, 0, want, 0, &e), -EINVAL);
	one.samples = 1;
	TAP_EQ(stats_shares(&one, 1, want, 0, &e), -EINVAL);
	one.samples = 0;
	TAP_EQ(stats_shares(&one, 1, want, 0, &e), -EINVAL);
}

static void spoilt_windows(void)
{
	/* Of the first reading it says nothing. */
	const bool second[] = { true, false, true };
	struct stats_run r = two;
	struct stats_err e;

	r.spoilt = second;
	TAP_EQ(stats_shares(&r, 1, want, 0, &e), 0);
	TAP_EQ(e.windows, 1);
	TAP_NEAR(e.max_pp, 0, 1e-9);
	TAP_EQ(stats_shares(&r, 2, want, 0, &e), -EINVAL);
}

static void nothing_delivered(void)
{
	static const uint64_t none[4] = { 5, 6, 5, 6 };
	const struct stats_run r = {
		.vgpus = 2, .samples = 2, .at_ns = at, .engine_ns = none,
	};
	struct stats_err e;

	TAP_EQ(stats_shares(&r, 1, want, 0, &e), 0);
	TAP_NEAR(e.max_pp, 70, 1e-9);
}

static void pace(void)
{
	/* 50 frames/s, one 1 ms late, the next on time again. */
	const uint64_t v[] = { 20 * MS, 21 * MS, 19 * MS, 20 * MS };
	struct stats_pace p;

	TAP_EQ(stats_pace(v, NR(v), 50, &p), 0);
	TAP_NEAR(p.rate_err, 0, 1e-12);
	TAP_NEAR(p.p50_dev_us, 500, 1e-6);
	TAP_NEAR(p.p99_dev_us, 1000, 1e-6);
	TAP_NEAR(p.max_dev_us, 1000, 1e-6);
	TAP_EQ(stats_pace(v, NR(v), 40, &p), 0);
	TAP_NEAR(p.rate_err, 0.25, 1e-12);
	TAP_EQ(stats_pace(v, 0, 50, &p), -EINVAL);
}

int main(void)
{
	tap_run(middle_values, "the median is the middle value or between two");
	tap_run(percentiles, "a percentile is a value that was there");
	tap_run(worst_window, "the error is that of the worst window");
	tap_run(longer_windows, "windows of several readings do not overlap");
	tap_run(against_the_engine, "shares can be parts of the engines' time");
	tap_run(no_windows, "too few readings are refused");
	tap_run(spoilt_windows, "windows that are spoilt are left out");
	tap_run(nothing_delivered, "a window without work is an error, not a gap");
	tap_run(pace, "a late frame shows in the deviation, not in the rate");
	return tap_done();
}

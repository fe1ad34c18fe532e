/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Statistics of the benches.  Pure.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return the median; sorts @v.  NAN for no values. */
double stats_median(double *v, size_t n);

/*
 * Return the smallest of the values that a part of @p (0 to 1) of them does not
 * exceed.  Sorts @v; NAN for no values.
 */
double stats_percentile(double *v, size_t n, double p);

/**
 * struct stats_run - readings of every vGPU's counter of engine time
 * @vgpus: number of vGPUs
 * @samples: number of readings
 * @at_ns: time of each reading, rising
 * @engine_ns: @samples rows of @vgpus counters, which only rise
 * @spoilt: optional; for each reading, whether to leave out the time from the
 *	reading before
 */
struct stats_run {
	size_t vgpus;
	size_t samples;
	const uint64_t *at_ns;
	const uint64_t *engine_ns;
	const bool *spoilt;
};

/**
 * struct stats_err - distance of shares from their targets
 * @max_pp: largest of all |share - target|, percentage points
 * @p95_pp: 95th percentile over the windows of each window's largest
 * @median_pp: median over the windows of each window's largest
 * @windows: number of windows, without those left out
 */
struct stats_err {
	double max_pp;
	double p95_pp;
	double median_pp;
	size_t windows;
};

/**
 * stats_shares - compare shares with their targets, window by window
 * @r: readings
 * @step: readings to a window; windows follow each other, without overlap; an
 *	incomplete window at the end is left out
 * @targets: share of each vGPU, 0 to 1
 * @engines: 0: a share is a part of all engine time delivered in the window;
 *	else of the time of so many engines, the window's length for each
 * @err: result
 *
 * A window in which nothing was delivered counts as a share of 0 for each vGPU.
 *
 * Returns 0, -EINVAL when there is no window, -ENOMEM.
 */
int stats_shares(const struct stats_run *r, size_t step, const double *targets,
		 unsigned int engines, struct stats_err *err);

/* Return a vGPU's share from the first reading to the last, as above. */
double stats_share(const struct stats_run *r, size_t vgpu,
		   unsigned int engines);

/**
 * struct stats_pace - distance of frames from a rate
 * @rate_err: |rate / target - 1| over all the intervals
 * @p50_dev_us: median of |interval - 1 / target|, microseconds
 * @p99_dev_us: 99th percentile of it
 * @max_dev_us: largest
 */
struct stats_pace {
	double rate_err;
	double p50_dev_us;
	double p99_dev_us;
	double max_dev_us;
};

/* Compute @pace of @n intervals from frame to frame.  -EINVAL for none. */
int stats_pace(const uint64_t *interval_ns, size_t n, double target_fps,
	       struct stats_pace *pace);

#endif /* BENCH_STATS_H */

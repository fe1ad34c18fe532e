/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a switch costs on this machine: the coefficients of struct preempt_cost from
 * switches that were measured. Pure.
 */
#ifndef MGPU_PREEMPT_COST_H
#define MGPU_PREEMPT_COST_H

#include "preempt.h"

/**
 * struct cost_sample - a switch that was measured
 * @miss: cache misses per access of the contexts that stayed, 0 to 1
 * @bytes: registers and shared memory that were saved, above 0
 * @cycles: how long it took, above 0
 */
struct cost_sample {
	double miss;
	double bytes;
	double cycles;
};

#define COST_SAMPLES_MIN	8	/* two coefficients, and something to judge them by */
#define COST_SAMPLES_MAX	65536
#define COST_MISS_SPREAD_MIN	0.02	/* standard deviation of the miss rates */
#define COST_OUTLIER		4.0	/* times what is expected: something else took it */
#define COST_REWEIGHTS		20

/**
 * struct cost_fit - coefficients and how well they describe the samples
 * @cost: the coefficients, none below 0
 * @r2: part of the variance of cycles that they explain, without outliers; 1 at best,
 *	below 0 when the mean would do better
 * @median_error: median of |predicted - measured| / measured, of all
 * @samples: how many there were
 * @outliers: of these, switches that took so long that something else must have
 *	happened in them
 */
struct cost_fit {
	struct preempt_cost cost;
	double r2;
	double median_error;
	size_t samples;
	size_t outliers;
};

/**
 * cost_fit() - fit coefficients
 * @s: @n samples, in any order
 * @scratch: room for @n values
 * @fit: the result
 *
 * Non-negative least squares on cycles per byte, so that small switches count as
 * much as large ones, without those that took COST_OUTLIER times what a robust fit
 * (least absolute errors) of all expects.
 * Returns NULL, or a sentence that says why these samples allow no fit and what
 * would; @fit is as it was then.
 */
const char *cost_fit(const struct cost_sample *s, size_t n, double *scratch,
		     struct cost_fit *fit);

#endif /* MGPU_PREEMPT_COST_H */

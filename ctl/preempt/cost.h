/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cost of a switch on this machine: fits the coefficients of struct preempt_cost to
 * measured switches. Pure.
 */
#ifndef MGPU_PREEMPT_COST_H
#define MGPU_PREEMPT_COST_H

#include "preempt.h"

/**
 * struct cost_sample - a measured switch
 * @miss: cache misses per access of the contexts that stayed, 0 to 1
 * @bytes: saved registers and shared memory, bytes, above 0
 * @cycles: duration, cycles, above 0
 */
struct cost_sample {
	double miss;
	double bytes;
	double cycles;
};

#define COST_SAMPLES_MIN	8	/* two coefficients, and samples to judge them by */
#define COST_SAMPLES_MAX	65536
#define COST_MISS_SPREAD_MIN	0.02	/* standard deviation of the miss rates */
#define COST_OUTLIER		4.0	/* times the expected cost: not only a switch */
#define COST_REWEIGHTS		20

/**
 * struct cost_fit - coefficients and how well they describe the samples
 * @cost: the coefficients, none below 0
 * @r2: part of the variance of cycles that they explain, without outliers; at most 1,
 *	below 0 if the mean predicts better
 * @median_error: median of |predicted - measured| / measured of all samples
 * @samples: number of samples
 * @outliers: number of samples that took COST_OUTLIER times the expected cost
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
 * @fit: result
 *
 * Non-negative least squares on cycles per byte, so that small switches count as
 * much as large ones, without samples that took COST_OUTLIER times the prediction of a
 * robust fit (least absolute errors) to all.
 *
 * Return: NULL, or a sentence that says why these samples allow no fit and which would;
 * @fit is unchanged then.
 */
const char *cost_fit(const struct cost_sample *s, size_t n, double *scratch,
		     struct cost_fit *fit);

#endif /* MGPU_PREEMPT_COST_H */

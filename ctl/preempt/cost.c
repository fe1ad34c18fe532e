// SPDX-License-Identifier: GPL-2.0-only
/* Coefficients of the cost of a switch, by least squares. */
#include <math.h>
#include <stdlib.h>

#include "cost.h"

static const char *check(const struct cost_sample *s, size_t n)
{
	if (n < COST_SAMPLES_MIN)
		return "fewer than 8 measured switches: wait for more";
	if (n > COST_SAMPLES_MAX)
		return "more than 65536 measured switches: pass fewer";
	for (size_t i = 0; i < n; i++) {
		if (!(s[i].miss >= 0 && s[i].miss <= 1))
			return "a sample's miss rate must be from 0 to 1";
		/* no machine has them, and no sum of them overflows */
		if (!(s[i].bytes > 0 && s[i].bytes <= 1e18))
			return "a sample's bytes must be above 0";
		if (!(s[i].cycles > 0 && s[i].cycles <= 1e18))
			return "a sample's cycles must be above 0";
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double per_byte(const struct cost_sample *s)
{
	return s->cycles / s->bytes;
}

static double predicted(const struct preempt_cost *c, const struct cost_sample *s)
{
	return preempt_cost_cycles(c, s->miss, 1);
}

/*
 * Weighted non-negative least squares on cycles per byte. Returns the standard
 * deviation of the miss rates.
 */
static double solve(const struct cost_sample *s, const double *weight, size_t n,
		    struct preempt_cost *c)
{
	double sum = 0, m = 0, z = 0, smm = 0, smz = 0, raw_mm = 0, raw_mz = 0;

	for (size_t i = 0; i < n; i++)
		sum += weight[i];
	for (size_t i = 0; i < n; i++) {
		m += weight[i] / sum * s[i].miss;
		z += weight[i] / sum * per_byte(&s[i]);
	}
	for (size_t i = 0; i < n; i++) {
		double w = weight[i] / sum, y = per_byte(&s[i]);

		smm += w * (s[i].miss - m) * (s[i].miss - m);
		smz += w * (s[i].miss - m) * (y - z);
		raw_mm += w * s[i].miss * s[i].miss;
		raw_mz += w * s[i].miss * y;
	}
	c->a = smm > 0 ? smz / smm : 0;
	c->b = z - c->a * m;
	if (c->a < 0) {
		c->a = 0;
		c->b = z;
	} else if (c->b < 0) {
		c->a = raw_mz / raw_mm;
		c->b = 0;
	}
	return sqrt(smm);
}

/*
 * Weights 1, and 0 for switches in which something else took the time: an interrupt,
 * another task, another machine. To tell them a line is laid that goes by absolute
 * errors (iteratively reweighted), which they cannot pull to themselves. Returns how
 * many are left.
 */
static size_t without_outliers(const struct cost_sample *s, double *weight, size_t n)
{
	struct preempt_cost c;
	double median, least;
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		weight[i] = per_byte(&s[i]);
	qsort(weight, n, sizeof(*weight), compare);
	/* far below relevant errors, so that no weight is unbounded */
	least = 1e-3 * weight[n / 2];
	for (size_t i = 0; i < n; i++)
		weight[i] = 1;
	for (int k = 0; k < COST_REWEIGHTS; k++) {
		solve(s, weight, n, &c);
		for (size_t i = 0; i < n; i++)
			weight[i] = 1 / fmax(fabs(per_byte(&s[i]) - predicted(&c, &s[i])),
					     least);
	}
	solve(s, weight, n, &c);
	for (size_t i = 0; i < n; i++)
		weight[i] = fabs(per_byte(&s[i]) - predicted(&c, &s[i]));
	qsort(weight, n, sizeof(*weight), compare);
	median = weight[n / 2];
	for (size_t i = 0; i < n; i++) {
		weight[i] = per_byte(&s[i]) <=
			COST_OUTLIER * (predicted(&c, &s[i]) + median);
		left += weight[i] > 0;
	}
	return left;
}

const char *cost_fit(const struct cost_sample *s, size_t n, double *scratch,
		     struct cost_fit *fit)
{
	double y = 0, total = 0, rest = 0, spread;
	const char *why = check(s, n);
	struct preempt_cost c;
	size_t left;

	if (why)
		return why;
	left = without_outliers(s, scratch, n);
	if (left < COST_SAMPLES_MIN)
		return "too few switches agree: measure with less other load";
	spread = solve(s, scratch, n, &c);
	if (!(spread >= COST_MISS_SPREAD_MIN))
		return "all miss rates are about the same: measure beside other work, too";
	if (!(c.a <= PREEMPT_COST_MAX && c.b <= PREEMPT_COST_MAX))
		return "more than 1000 cycles per byte: check that samples are in cycles and bytes";
	for (size_t i = 0; i < n; i++)
		y += scratch[i] * s[i].cycles / (double)left;
	for (size_t i = 0; i < n; i++) {
		double error = preempt_cost_cycles(&c, s[i].miss, s[i].bytes) -
			s[i].cycles;

		rest += scratch[i] * error * error;
		total += scratch[i] * (s[i].cycles - y) * (s[i].cycles - y);
		scratch[i] = fabs(error) / s[i].cycles;
	}
	qsort(scratch, n, sizeof(*scratch), compare);
	*fit = (struct cost_fit){
		.cost = c,
		/* all the same and all explained, or not */
		.r2 = total > 0 ? 1 - rest / total : rest > 0 ? 0 : 1,
		.median_error = (scratch[(n - 1) / 2] + scratch[n / 2]) / 2,
		.samples = n,
		.outliers = n - left,
	};
	return NULL;
}

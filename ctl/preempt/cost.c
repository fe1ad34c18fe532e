// SPDX-License-Identifier: GPL-2.0-only
/* Coefficients of the cost of a switch, by least squares. */
#include <math.h>
#include <stdlib.h>

#include "cost.h"

static const char *check(const struct cost_sample *s, size_t n)
{
	if (n < COST_SAMPLES_MIN)
		return "8 switches at least must have been measured";
	if (n > COST_SAMPLES_MAX)
		return "65536 switches at most can be looked at";
	for (size_t i = 0; i < n; i++) {
		if (!(s[i].miss >= 0 && s[i].miss <= 1))
			return "a sample's miss rate is not from 0 to 1";
		/* no machine has them, and no sum of them overflows */
		if (!(s[i].bytes > 0 && s[i].bytes <= 1e18))
			return "a sample's bytes are not above 0";
		if (!(s[i].cycles > 0 && s[i].cycles <= 1e18))
			return "a sample's cycles are not above 0";
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

const char *cost_fit(const struct cost_sample *s, size_t n, double *scratch,
		     struct cost_fit *fit)
{
	double m = 0, z = 0, y = 0, smm = 0, smz = 0, raw_mm = 0, raw_mz = 0;
	double total = 0, rest = 0;
	const char *why = check(s, n);
	struct preempt_cost c;

	if (why)
		return why;
	for (size_t i = 0; i < n; i++) {
		m += s[i].miss / (double)n;
		z += s[i].cycles / s[i].bytes / (double)n;
		y += s[i].cycles / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		double per_byte = s[i].cycles / s[i].bytes;

		smm += (s[i].miss - m) * (s[i].miss - m);
		smz += (s[i].miss - m) * (per_byte - z);
		raw_mm += s[i].miss * s[i].miss;
		raw_mz += s[i].miss * per_byte;
	}
	if (sqrt(smm / (double)n) < COST_MISS_SPREAD_MIN)
		return "miss rates are all about the same: measure beside other work, too";
	c.a = smz / smm;
	c.b = z - c.a * m;
	if (c.a < 0) {
		c.a = 0;
		c.b = z;
	} else if (c.b < 0) {
		c.a = raw_mz / raw_mm;
		c.b = 0;
	}
	if (!(c.a <= PREEMPT_COST_MAX && c.b <= PREEMPT_COST_MAX))
		return "above 1000 cycles per byte: samples must be in cycles and bytes";
	for (size_t i = 0; i < n; i++) {
		double error = preempt_cost_cycles(&c, s[i].miss, s[i].bytes) -
			s[i].cycles;

		rest += error * error;
		total += (s[i].cycles - y) * (s[i].cycles - y);
		scratch[i] = fabs(error) / s[i].cycles;
	}
	qsort(scratch, n, sizeof(*scratch), compare);
	*fit = (struct cost_fit){
		.cost = c,
		/* all the same and all explained, or not */
		.r2 = total > 0 ? 1 - rest / total : rest > 0 ? 0 : 1,
		.median_error = (scratch[(n - 1) / 2] + scratch[n / 2]) / 2,
		.samples = n,
	};
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Histograms of times, with buckets that grow by a factor of two. */
#include <math.h>

#include "mgpu.h"

uint64_t mgpu_hist_total(const uint64_t *hist)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < MGPU_HIST_BUCKETS; i++)
		total += hist[i];
	return total;
}

void mgpu_hist_bounds(unsigned int bucket, double *from_us, double *to_us)
{
	*from_us = bucket ? ldexp(1, (int)bucket) : 0;
	*to_us = bucket < MGPU_HIST_BUCKETS - 1 ? ldexp(1, (int)bucket + 1) :
		 INFINITY;
}

double mgpu_hist_quantile(const uint64_t *hist, double q)
{
	double rank = q * (double)mgpu_hist_total(hist);
	unsigned int last = 0;
	double below = 0;
	double sum = 0;
	double from;
	double to;
	unsigned int i;

	for (i = 0; i < MGPU_HIST_BUCKETS; i++) {
		if (!hist[i])
			continue;
		last = i;
		below = sum;
		sum += (double)hist[i];
		if (sum >= rank)
			break;
	}
	if (!hist[last])
		return NAN;

	mgpu_hist_bounds(last, &from, &to);
	if (isinf(to))
		return from;
	return from + (to - from) * fmin((rank - below) / (double)hist[last], 1);
}

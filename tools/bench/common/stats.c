// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double stats_median(double *v, size_t n)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double stats_percentile(double *v, size_t n, double p)
{
	size_t rank;

	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), compare);
	rank = (size_t)ceil(p * (double)n);
	return v[rank ? (rank > n ? n : rank) - 1 : 0];
}

/* Engine time of one vGPU between two readings. */
static double used(const struct stats_run *r, size_t vgpu, size_t from,
		   size_t to)
{
	return (double)(r->engine_ns[to * r->vgpus + vgpu] -
			r->engine_ns[from * r->vgpus + vgpu]);
}

/* Return the total that shares in a window are parts of, nanoseconds. */
static double whole(const struct stats_run *r, size_t from, size_t to,
		    unsigned int engines)
{
	double sum = 0;
	size_t i;

	if (engines)
		return (double)(r->at_ns[to] - r->at_ns[from]) * engines;
	for (i = 0; i < r->vgpus; i++)
		sum += used(r, i, from, to);
	return sum;
}

static double share(const struct stats_run *r, size_t vgpu, size_t from,
		    size_t to, double all)
{
	return all > 0 ? used(r, vgpu, from, to) / all : 0;
}

static bool is_spoilt(const struct stats_run *r, size_t from, size_t to)
{
	while (r->spoilt && from < to)
		if (r->spoilt[++from])
			return true;
	return false;
}

int stats_shares(const struct stats_run *r, size_t step, const double *targets,
		 unsigned int engines, struct stats_err *err)
{
	size_t i, v, last = r->samples && step ? r->samples - 1 : 0, n = 0;
	double *worst, d, all;

	if (!last || !r->vgpus)
		return -EINVAL;
	worst = calloc(last, sizeof(*worst));
	if (!worst)
		return -ENOMEM;
	for (i = 0; i + step <= last; i += step) {
		if (is_spoilt(r, i, i + step))
			continue;
		all = whole(r, i, i + step, engines);
		for (v = 0; v < r->vgpus; v++) {
			d = fabs(share(r, v, i, i + step, all) - targets[v]) *
			    100;
			if (d > worst[n])
				worst[n] = d;
		}
		n++;
	}
	if (!n) {
		free(worst);
		return -EINVAL;
	}
	err->windows = n;
	err->median_pp = stats_median(worst, n);
	err->p95_pp = stats_percentile(worst, n, 0.95);
	err->max_pp = worst[n - 1];	/* sorted */
	free(worst);
	return 0;
}

double stats_share(const struct stats_run *r, size_t vgpu,
		   unsigned int engines)
{
	size_t last = r->samples - 1;

	return share(r, vgpu, 0, last, whole(r, 0, last, engines));
}

int stats_pace(const uint64_t *interval_ns, size_t n, double target_fps,
	       struct stats_pace *pace)
{
	double *dev, sum = 0;
	size_t i;

	if (!n)
		return -EINVAL;
	dev = calloc(n, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		sum += (double)interval_ns[i];
		dev[i] = fabs((double)interval_ns[i] - 1e9 / target_fps) / 1e3;
	}
	pace->rate_err = fabs((double)n * 1e9 / sum / target_fps - 1);
	pace->p50_dev_us = stats_median(dev, n);
	pace->p99_dev_us = stats_percentile(dev, n, 0.99);
	pace->max_dev_us = dev[n - 1];
	free(dev);
	return 0;
}

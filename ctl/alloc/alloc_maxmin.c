// SPDX-License-Identifier: GPL-2.0-only
/*
 * Max-min fairness by progressive filling: on rates (maxmin), and on dominant
 * shares (drf; Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of
 * Multiple Resource Types", NSDI 2011), both by weight.
 */
#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "fill.h"

static int maxmin(const struct fds_problem *p, bool dominant, double *x)
{
	double *unit = calloc(p->n, sizeof(*unit));
	int ret;

	if (!unit)
		return -ENOMEM;
	for (size_t j = 0; j < p->n; j++)
		unit[j] = fds_weight(p, j) / (dominant ? fds_mu(p, j) : 1);
	ret = fill(p, unit, p->floor, p->demand, x);
	free(unit);
	return ret;
}

static int maxmin_allocate(struct alloc_state *state, const struct fds_problem *p,
			   unsigned int iterations, double *x)
{
	(void)state;
	(void)iterations;
	return maxmin(p, false, x);
}

static int drf_allocate(struct alloc_state *state, const struct fds_problem *p,
			unsigned int iterations, double *x)
{
	(void)state;
	(void)iterations;
	return maxmin(p, true, x);
}

const struct alloc_ops alloc_maxmin = {
	.name = "maxmin",
	.summary = "raises the lowest frame rate as far as possible, then the next",
	.reach = true,
	.floors = true,
	.weights = true,
	.allocate = maxmin_allocate,
};

const struct alloc_ops alloc_drf = {
	.name = "drf",
	.summary = "raises the lowest dominant share as far as possible, then the next",
	.reach = true,
	.floors = true,
	.weights = true,
	.allocate = drf_allocate,
};

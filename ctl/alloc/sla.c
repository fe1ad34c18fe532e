// SPDX-License-Identifier: GPL-2.0-only
/* Promises, and what becomes of them when there are too many. Pure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "sla.h"

/* Less missing than this is rounding. */
#define SHORT	1e-6

const char *sla_check(const struct sla *sla)
{
	if (sla->floor != 0 &&
	    !(sla->floor >= SLA_FPS_MIN && sla->floor <= SLA_FPS_MAX))
		return "floor must be from 1 to 10000 frames per second, or none";
	if (!(sla->ceiling >= SLA_FPS_MIN) ||
	    (isfinite(sla->ceiling) && sla->ceiling > SLA_FPS_MAX))
		return "ceiling must be from 1 to 10000 frames per second, or none";
	if (sla->floor > sla->ceiling)
		return "floor must not be above ceiling";
	return NULL;
}

/* The rate that promises to others leave a task: @part of its share, as far as it has use. */
static double spare_rate(const struct fds_problem *p, size_t j, double mean, double part)
{
	return fmin(part * fds_fair_rate(p, j, mean), p->demand[j]);
}

size_t sla_floors(const struct fds_problem *p, const double *asked, double *floor)
{
	size_t n = p->n, missing = 0;
	double *spare, *want, mean = fds_mean_weight(n, p->weight);
	bool any = false;

	for (size_t j = 0; j < n; j++)
		any |= asked[j] > 0;
	spare = any ? calloc(2 * n, sizeof(*spare)) : NULL;
	if (!spare) {
		/* out of memory: promise nothing rather than too much */
		memset(floor, 0, n * sizeof(*floor));
		return 0;
	}
	want = spare + n;
	for (size_t j = 0; j < n; j++) {
		spare[j] = spare_rate(p, j, mean, SLA_SPARE);
		want[j] = fmax(fmin(asked[j], p->demand[j]), spare[j]);
	}
	/* in steps of what each asks for: equal shares of the promises */
	if (fill(p, asked, spare, want, spare)) {
		memset(floor, 0, n * sizeof(*floor));
		free(spare);
		return 0;
	}
	for (size_t j = 0; j < n; j++) {
		if (asked[j] > 0) {
			bool less = spare[j] < want[j] * (1 - SHORT);

			missing += less;
			floor[j] = fmin(spare[j], fmin(asked[j], p->demand[j])) *
				(less ? 1 - SLA_ROOM : 1);
		} else {
			floor[j] = 0;
		}
	}
	free(spare);
	return missing;
}

void sla_raise(const struct fds_problem *p, const double *want, double *floor)
{
	double mean = fds_mean_weight(p->n, p->weight);
	double *low = calloc(2 * p->n, sizeof(*low)), *high;

	if (!low)
		return;
	high = low + p->n;
	for (size_t j = 0; j < p->n; j++) {
		low[j] = want[j] > 0 ? floor[j] :
			spare_rate(p, j, mean, SLA_MARGIN_SPARE);
		high[j] = fmax(fmin(want[j], p->demand[j]), low[j]);
	}
	/*
	 * In steps of what each wants: margins that do not fit are cut alike. Where what is
	 * left to the others does not fit, there is no room for margins, and none is given.
	 */
	if (!fill(p, want, low, high, high))
		for (size_t j = 0; j < p->n; j++)
			if (want[j] > 0)
				floor[j] = fmax(high[j], floor[j]);
	free(low);
}

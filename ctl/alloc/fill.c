// SPDX-License-Identifier: GPL-2.0-only
/* Progressive filling. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "fill.h"

#define FULL	1e-9	/* unused part of a capacity that counts as none */
#define STEPS	200	/* of bisection, more than a double has digits */

struct filling {
	const struct fds_problem *p;
	const double *unit;
	double *low, *high, *x;
};

static double clamp(double v, double low, double high)
{
	return fmin(fmax(v, low), high);
}

static double use(const struct filling *f, size_t i, double level)
{
	const double *need = f->p->need + i * f->p->n;
	double sum = 0;

	for (size_t j = 0; j < f->p->n; j++)
		sum += need[j] * clamp(level * f->unit[j], f->low[j], f->high[j]);
	return sum / f->p->capacity[i];
}

static bool fits(const struct filling *f, double level)
{
	for (size_t i = 0; i < f->p->m; i++)
		if (use(f, i, level) > 1)
			return false;
	return true;
}

/* The highest level that fits: @top when that does. */
static double highest(const struct filling *f, double bottom, double top)
{
	if (fits(f, top))
		return top;
	for (unsigned int k = 0; k < STEPS; k++) {
		double middle = bottom + (top - bottom) / 2;

		if (middle <= bottom || middle >= top)
			break;
		if (fits(f, middle))
			bottom = middle;
		else
			top = middle;
	}
	return bottom;
}

int fill(const struct fds_problem *p, const double *unit, const double *low,
	 const double *high, double *x)
{
	size_t n = p->n;
	struct filling f = { .p = p, .unit = unit };
	double level = 0, top;

	f.low = calloc(2 * n, sizeof(*f.low));
	if (!f.low)
		return -ENOMEM;
	f.high = f.low + n;
	for (size_t j = 0; j < n; j++) {
		double alone = 1 / fds_mu(p, j);

		f.low[j] = low ? fmin(low[j], alone) : 0;
		f.high[j] = fmax(fmin(high[j], alone), f.low[j]);
	}

	/* each round uses up a capacity, or is the last one */
	for (size_t round = 0; round <= p->m; round++) {
		bool more = false;

		top = 0;
		for (size_t j = 0; j < n; j++)
			if (f.low[j] < f.high[j] && unit[j] > 0)
				top = fmax(top, f.high[j] / unit[j]);
		if (!(top > level))
			break;
		level = highest(&f, level, top);
		for (size_t i = 0; i < p->m; i++) {
			if (use(&f, i, level) < 1 - FULL)
				continue;
			for (size_t j = 0; j < n; j++) {
				double at = clamp(level * unit[j], f.low[j], f.high[j]);

				if (fds_need(p, i, j) > 0)
					f.low[j] = f.high[j] = at;
			}
		}
		for (size_t j = 0; j < n; j++)
			more |= f.low[j] < f.high[j];
		if (!more)
			break;
	}
	for (size_t j = 0; j < n; j++)
		x[j] = clamp(level * unit[j], f.low[j], f.high[j]);
	free(f.low);
	return 0;
}

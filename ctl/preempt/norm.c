// SPDX-License-Identifier: GPL-2.0-only
/* norm_ipc of pairs of classes, learned from observations. */
#include <math.h>

#include "preempt.h"

void preempt_norm_cold(struct preempt_norm *t)
{
	*t = (struct preempt_norm){
		.slow = {
			{ 1 / PREEMPT_COLD_CC - 1, 1 / PREEMPT_COLD_CM - 1 },
			{ 1 / PREEMPT_COLD_MC - 1, 1 / PREEMPT_COLD_MM - 1 },
		},
		.prior = {
			{ PREEMPT_NORM_PRIOR, PREEMPT_NORM_PRIOR },
			{ PREEMPT_NORM_PRIOR, PREEMPT_NORM_PRIOR },
		},
	};
}

void preempt_norm_prior(struct preempt_norm *t, enum preempt_class a, enum preempt_class b,
			double slow, double weight)
{
	if (a >= PREEMPT_CLASSES || b >= PREEMPT_CLASSES || isnan(slow) || isnan(weight))
		return;
	t->prior[a][b] = fmin(fmax(weight, 0), PREEMPT_NORM_COUNT);
	if (!(t->count[a][b] > 0))
		t->slow[a][b] = fmin(fmax(slow, 1 / PREEMPT_NORM_MAX - 1),
				     1 / PREEMPT_NORM_MIN - 1);
}

static double slow_of(const struct preempt_norm *t, enum preempt_class a,
		      enum preempt_class b)
{
	if (a >= PREEMPT_CLASSES)
		return (slow_of(t, PREEMPT_COMPUTE, b) +
			slow_of(t, PREEMPT_MEMORY, b)) / 2;
	if (b >= PREEMPT_CLASSES)
		return (slow_of(t, a, PREEMPT_COMPUTE) +
			slow_of(t, a, PREEMPT_MEMORY)) / 2;
	/* noise can yield a speedup beside others: do not plan on it */
	return fmax(t->slow[a][b], 0);
}

double preempt_norm_ipc(const struct preempt_norm *t, enum preempt_class class,
			const double others[PREEMPT_CLASSES + 1])
{
	double slow = 0;

	for (enum preempt_class b = 0; b <= PREEMPT_CLASSES; b++)
		if (others[b] > 0)
			slow += others[b] * slow_of(t, class, b);
	return 1 / (1 + slow);
}

void preempt_norm_observe(struct preempt_norm *t, enum preempt_class class,
			  const double others[PREEMPT_CLASSES + 1], double norm)
{
	double expected[PREEMPT_CLASSES], sum = 0, known = 0, rest;

	if (class >= PREEMPT_CLASSES || !isfinite(norm) || !(norm > 0))
		return;
	for (int b = 0; b < PREEMPT_CLASSES; b++) {
		if (!(others[b] >= 0) || !isfinite(others[b]))
			return;
		known += others[b];
		/* at least a little for each class, so that a slowdown of 0 can grow again */
		expected[b] = others[b] * fmax(t->slow[class][b], 0.01);
		sum += expected[b];
	}
	if (!(known > 0))
		return;
	norm = fmin(fmax(norm, PREEMPT_NORM_MIN), PREEMPT_NORM_MAX);
	rest = 1 / norm - 1;
	if (others[PREEMPT_UNKNOWN] > 0) {
		double unknown = others[PREEMPT_UNKNOWN] *
			slow_of(t, class, PREEMPT_UNKNOWN);

		/* subtract the expected part of contexts of unknown class */
		rest *= sum / (sum + unknown);
	}
	for (int b = 0; b < PREEMPT_CLASSES; b++) {
		double part = expected[b] / sum, weight, *count = &t->count[class][b];

		if (!(others[b] > 0))
			continue;
		/* an observation beside both classes weighs less for each */
		*count = fmin(*count + part, PREEMPT_NORM_COUNT);
		weight = part / (*count + t->prior[class][b]);
		t->slow[class][b] += weight * (rest * part / others[b] -
					       t->slow[class][b]);
	}
}

const char *preempt_norm_check(const struct preempt_norm *t)
{
	for (int a = 0; a < PREEMPT_CLASSES; a++) {
		for (int b = 0; b < PREEMPT_CLASSES; b++) {
			if (!(t->slow[a][b] >= 1 / PREEMPT_NORM_MAX - 1 &&
			      t->slow[a][b] <= 1 / PREEMPT_NORM_MIN))
				return "a slowdown must be from -0.2 to 100";
			if (!(t->count[a][b] >= 0 && t->count[a][b] <= PREEMPT_NORM_COUNT))
				return "a count of observations must be from 0 to 1000";
			if (!(t->prior[a][b] >= 0 && t->prior[a][b] <= PREEMPT_NORM_COUNT))
				return "the weight of a prior must be from 0 to 1000 observations";
		}
	}
	return NULL;
}

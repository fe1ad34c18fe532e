// SPDX-License-Identifier: GPL-2.0-only
/*
 * The analyser. Instructions are modelled as a power of the size: a line in logarithms
 * with a slope of 1 until sizes differ enough to fit another.
 */
#include <math.h>
#include <string.h>

#include "analyse.h"

#define IPC_MIN	1e-6
#define IPC_MAX	1e6

void analyse_init(struct analyse *a)
{
	memset(a, 0, sizeof(*a));
	preempt_norm_cold(&a->norm);
}

static bool within(double x, double min, double max)
{
	return x >= min && x <= max;
}

static const struct analyse_kind *find(const struct analyse *a, uint32_t kind)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->kind[i].kind == kind)
			return &a->kind[i];
	return NULL;
}

static struct analyse_kind *find_or_add(struct analyse *a, uint32_t kind)
{
	struct analyse_kind *k = (struct analyse_kind *)find(a, kind);

	a->now++;
	if (!k && a->n < ANALYSE_KINDS_MAX) {
		k = &a->kind[a->n++];
		*k = (struct analyse_kind){ .kind = kind };
	} else if (!k) {
		k = &a->kind[0];
		for (size_t i = 1; i < a->n; i++)
			if (a->kind[i].used < k->used)
				k = &a->kind[i];
		*k = (struct analyse_kind){ .kind = kind };
	}
	k->used = a->now;
	return k;
}

/* ---- instructions ---- */

static double predict(const struct analyse_kind *k, double x)
{
	double slope = (k->xy + ANALYSE_RIDGE) / (k->xx + ANALYSE_RIDGE);

	return k->y + fmin(fmax(slope, 0), ANALYSE_SLOPE_MAX) * (x - k->x);
}

static void learn(struct analyse_kind *k, double x, double y)
{
	double keep, dx, dy;

	if (k->jobs >= 2) {
		double expected = predict(k, x), off = y - expected;
		double most = ANALYSE_OUTLIER * fmax(k->spread, ANALYSE_SPREAD_MIN);

		/* the first jobs may differ widely, and a change must get through */
		if (k->jobs < 4)
			most = fmax(most, 1);
		off = fmin(fmax(off, -most), most);
		y = expected + off;
		k->spread += (fabs(off) - k->spread) / fmin(k->jobs, ANALYSE_MEMORY / 4);
	}
	keep = fmin(k->jobs, ANALYSE_MEMORY - 1) / fmax(k->jobs, 1);
	k->jobs = k->jobs * keep + 1;
	dx = x - k->x;
	dy = y - k->y;
	k->x += dx / k->jobs;
	k->y += dy / k->jobs;
	k->xx = k->xx * keep + dx * (x - k->x);
	k->xy = k->xy * keep + dx * (y - k->y);
}

void analyse_done(struct analyse *a, uint32_t kind, double size, double inst)
{
	if (!within(size, 1, ANALYSE_NUMBER_MAX) || !within(inst, 1, ANALYSE_NUMBER_MAX))
		return;
	learn(find_or_add(a, kind), log(size), log(inst));
	learn(&a->any, log(size), log(inst));
}

double analyse_rest(double inst, double done)
{
	return fmax(inst - done, ANALYSE_OVERRUN * done);
}

/* ---- speed and memory ---- */

static void average(double *mean, double *seen, double value, double weight)
{
	*seen = fmin(*seen + weight, ANALYSE_MEMORY);
	*mean += (value - *mean) * weight / *seen;
}

static void learn_ipc(struct analyse_kind *k, double ipc)
{
	/* the first real one replaces what was derived */
	if (k->ipc_seen < 1)
		k->ipc_seen = 0;
	average(&k->ipc, &k->ipc_seen, ipc, 1);
}

void analyse_alone(struct analyse *a, uint32_t kind, double ipc)
{
	if (!within(ipc, IPC_MIN, IPC_MAX))
		return;
	learn_ipc(find_or_add(a, kind), ipc);
	learn_ipc(&a->any, ipc);
}

void analyse_memory(struct analyse *a, uint32_t kind, double bound, double miss)
{
	struct analyse_kind *k;
	double seen;

	if (!within(bound, 0, 1) || !within(miss, 0, 1))
		return;
	k = find_or_add(a, kind);
	seen = k->seen;
	average(&k->bound, &seen, bound, 1);
	average(&k->miss, &k->seen, miss, 1);
	seen = a->any.seen;
	average(&a->any.bound, &seen, bound, 1);
	average(&a->any.miss, &a->any.seen, miss, 1);
}

/* ---- the prior ---- */

/* The prior's observations of a kind, or NULL. */
static const struct analyse_kind *prior_of(const struct analyse *a, uint32_t kind)
{
	return a->prior ? find(a->prior, kind) : NULL;
}

/*
 * Combine a figure that @seen observations gave with one that @prior_seen observations gave
 * elsewhere. At least one of both is above 0.
 */
static double combine(double value, double seen, double prior, double prior_seen)
{
	double weight = fmin(prior_seen, ANALYSE_PRIOR);

	return !(weight > 0) ? value : !(seen > 0) ? prior :
		(value * seen + prior * weight) / (seen + weight);
}

/* Part of the time that a kind waits for memory, NAN if unknown. */
static double bound_of(const struct analyse *a, uint32_t kind, const struct analyse_kind *k)
{
	const struct analyse_kind none = { 0 }, *q = prior_of(a, kind);

	k = k ? k : &none;
	q = q ? q : &none;
	return k->seen > 0 || q->seen > 0 ? combine(k->bound, k->seen, q->bound, q->seen) : NAN;
}

void analyse_shared(struct analyse *a, const struct preempt_param *p, uint32_t kind,
		    const double others[PREEMPT_CLASSES + 1], double ipc)
{
	struct analyse_kind *k;
	enum preempt_class class;
	double alone;

	if (!within(ipc, IPC_MIN, IPC_MAX))
		return;
	for (int b = 0; b <= PREEMPT_CLASSES; b++)
		if (!within(others[b], 0, PREEMPT_SLOTS_MAX))
			return;
	k = find_or_add(a, kind);
	class = preempt_classify(p, bound_of(a, kind, k));
	if (k->ipc_seen >= 1) {
		preempt_norm_observe(&a->norm, class, others, ipc / k->ipc);
		return;
	}
	/* an estimate that weighs less than one observation alone */
	alone = ipc / preempt_norm_ipc(&a->norm, class, others);
	if (!within(alone, IPC_MIN, IPC_MAX))
		return;
	if (!(k->ipc_seen > 0))
		k->ipc = alone;
	else
		k->ipc += (alone - k->ipc) / 4;
	k->ipc_seen = 0.5;
}

void analyse_guess(const struct analyse *a, const struct preempt_param *p,
		   uint32_t kind, double size, struct analyse_guess *g)
{
	const struct analyse_kind none = { 0 }, *any = &a->any;
	const struct analyse_kind *k = find(a, kind), *q = prior_of(a, kind);
	double x = log(fmin(fmax(size, 1), ANALYSE_NUMBER_MAX));

	k = k ? k : &none;
	q = q ? q : &none;
	g->known = k->jobs > 0 || q->jobs > 0;
	if (g->known)
		g->inst = exp(combine(predict(k, x), k->jobs, predict(q, x), q->jobs));
	else
		g->inst = any->jobs > 0 ? exp(predict(any, x)) : ANALYSE_COLD_INST * exp(x);
	g->inst = fmin(fmax(g->inst, 1), ANALYSE_NUMBER_MAX);
	if (k->ipc_seen > 0 || q->ipc_seen > 0)
		g->ipc = combine(k->ipc, k->ipc_seen, q->ipc, q->ipc_seen);
	else
		g->ipc = any->ipc_seen > 0 ? any->ipc : ANALYSE_COLD_IPC;
	/* the class of all kinds does not predict an unknown kind; their miss rate may */
	g->bound = bound_of(a, kind, k);
	g->class = preempt_classify(p, g->bound);
	if (k->seen > 0 || q->seen > 0)
		g->miss = combine(k->miss, k->seen, q->miss, q->seen);
	else
		g->miss = any->seen > 0 ? any->miss : ANALYSE_COLD_MISS;
}

static bool is_kind(const struct analyse_kind *k, uint64_t now)
{
	return k->used <= now && within(k->jobs, 0, ANALYSE_MEMORY) &&
		within(k->x, 0, 42) &&
		/* instructions are clamped when they are used, so a line may leave their range */
		within(k->y, -1000, 1000) &&
		within(k->xx, 0, 1e6) && within(k->xy, -1e6, 1e6) &&
		within(k->spread, 0, 1000) && within(k->ipc, 0, IPC_MAX) &&
		within(k->ipc_seen, 0, ANALYSE_MEMORY) && within(k->bound, 0, 1) &&
		within(k->miss, 0, 1) && within(k->seen, 0, ANALYSE_MEMORY) &&
		(k->ipc >= IPC_MIN || !(k->ipc_seen > 0));
}

const char *analyse_check(const struct analyse *a)
{
	if (a->now > ANALYSE_NOW_MAX)
		return "number of observations out of range";
	if (a->n > ANALYSE_KINDS_MAX)
		return "too many kinds of work";
	for (size_t i = 0; i < a->n; i++) {
		if (!is_kind(&a->kind[i], a->now))
			return "value of a kind of work out of range";
		for (size_t k = 0; k < i; k++)
			if (a->kind[k].kind == a->kind[i].kind)
				return "duplicate kind of work";
	}
	if (!is_kind(&a->any, a->now))
		return "value of the sum of all kinds out of range";
	if (guard_check(&a->guard))
		return guard_check(&a->guard);
	return preempt_norm_check(&a->norm);
}

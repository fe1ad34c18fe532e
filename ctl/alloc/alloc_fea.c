// SPDX-License-Identifier: GPL-2.0-only
/*
 * FEA: a fixed, small number of iterations per period, each of which ends in a
 * feasible allocation, better than the one before or equal to it.
 *
 * Rates are iterated in units of dominant share, y_j = mu_j x_j. The method's
 * geometry (orthogonal projections, a step of one length in all directions)
 * depends on the units of the rates; in these, what is a long step does not
 * depend on how fast the machine or how light a task's frames are, f is a
 * function of y alone, and no y_j exceeds 1.
 *
 * One iteration, from a feasible y, with step length s:
 *
 *  1. Where capacities are exceeded, y is replaced by its orthogonal projection
 *     onto their hyperplanes, jointly.
 *  2. D = gradient of f, scaled to unit length: the direction of descent of -f.
 *  3. Where y lies on capacities, d = D projected onto what these allow: off
 *     those that D points away from, along the others, jointly. A task at its
 *     demand does not rise. If anything was projected, s shrinks slightly.
 *  4. a = f(y), b = f(y + 0.618 s d), c = f(y + s d), each trial point first
 *     brought back into the feasible set as in step 1.
 *  5. c >= b >= a: go to c; after STREAK in a row with c > b > a, grow s.
 *     b < a: stay, shrink s a lot. Otherwise: go to b, shrink s a little.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fea.h"

/* Documentation/allocation.rst says where these come from. */
#define FEA_STEP_INITIAL	0.10	/* s before the first period */
#define FEA_STEP_MAX		1.00	/* no y_j exceeds 1 */
#define FEA_STEP_START_MIN	0.02	/* s at a period's start, at least; or, */
#define FEA_STEP_START_SHARE	0.2	/* if less, this part of an equal share */
#define FEA_STREAK		2	/* "several" */
#define FEA_GROW		2.00
#define FEA_A_LOT		0.40
#define FEA_A_LITTLE		0.70
#define FEA_PASSES		8	/* to find the tasks that demand holds */
#define FEA_SHARE_MIN		1e-4	/* of its weight's share: x > 0 */

struct fea_problem *fea_problem_new(const struct fds_problem *p)
{
	size_t n = p->n;
	double *mem, mean = fds_mean_weight(n, p->weight);
	struct fea_problem *fp;

	if (!n || !p->m || p->m > MGPU_MAX_RES || p->bounds || !fds_weights_valid(p))
		return NULL;
	fp = calloc(1, sizeof(*fp));
	mem = calloc(n * (7 + p->m), sizeof(*mem));
	if (fp)
		fp->fixed = calloc(n, sizeof(*fp->fixed));
	if (!fp || !mem || !fp->fixed)
		goto err;
	fp->p = p;
	fp->mu = mem;
	fp->cap = mem + n;
	fp->y = mem + 2 * n;
	fp->d = mem + 3 * n;
	fp->b = mem + 4 * n;
	fp->c = mem + 5 * n;
	fp->low = mem + 6 * n;
	fp->a = mem + 7 * n;
	for (size_t j = 0; j < n; j++) {
		fp->mu[j] = fds_mu(p, j);
		if (!(fp->mu[j] > 0) || !(p->demand[j] > 0))
			goto err;
		fp->cap[j] = p->demand[j] * fp->mu[j];
		fp->low[j] = fmax(fds_floor(p, j) * fp->mu[j],
				  FEA_SHARE_MIN * fds_weight(p, j) / mean / (double)n);
		for (size_t i = 0; i < p->m; i++)
			fp->a[i * n + j] = fds_need(p, i, j) /
				(p->capacity[i] * fp->mu[j]);
	}
	return fp;
err:
	if (fp)
		free(fp->fixed);
	free(fp);
	free(mem);
	return NULL;
}

void fea_problem_free(struct fea_problem *fp)
{
	if (!fp)
		return;
	free(fp->mu);
	free(fp->fixed);
	free(fp);
}

double fea_value(const struct fea_problem *fp, const double *y, double *grad)
{
	const struct fds_problem *p = fp->p;

	return grad ? fds_gradient(&p->param, p->n, p->weight, y, grad) :
		fds_value(&p->param, p->n, p->weight, y);
}

double fea_use(const struct fea_problem *fp, size_t i, const double *y)
{
	const double *a = fp->a + i * fp->p->n;
	double sum = 0;

	for (size_t j = 0; j < fp->p->n; j++)
		sum += a[j] * y[j];
	return sum;
}

/* Solve g l = r for k unknowns; false when g is singular. */
static bool solve_gram(double g[MGPU_MAX_RES][MGPU_MAX_RES], double *r, size_t k)
{
	for (size_t c = 0; c < k; c++) {
		if (g[c][c] < 1e-12)
			return false;
		for (size_t q = c + 1; q < k; q++) {
			double factor = g[q][c] / g[c][c];

			for (size_t w = c; w < k; w++)
				g[q][w] -= factor * g[c][w];
			r[q] -= factor * r[c];
		}
	}
	for (size_t c = k; c-- > 0;) {
		for (size_t w = c + 1; w < k; w++)
			r[c] -= g[c][w] * r[w];
		r[c] /= g[c][c];
	}
	return true;
}

/*
 * Project y onto the capacities that are exceeded, jointly with those that this
 * makes exceeded: one after the other, the second projection would undo the
 * first where both bind.
 */
static void onto_all_capacities(const struct fea_problem *fp, double *y)
{
	size_t n = fp->p->n, plane[MGPU_MAX_RES], k = 0;
	bool in[MGPU_MAX_RES] = { false };

	for (size_t round = 0; round < fp->p->m; round++) {
		double gram[MGPU_MAX_RES][MGPU_MAX_RES], l[MGPU_MAX_RES];
		size_t before = k;

		for (size_t i = 0; i < fp->p->m; i++) {
			if (in[i] || fea_use(fp, i, y) <= 1)
				continue;
			in[i] = true;
			plane[k++] = i;
		}
		if (k == before)
			return;
		for (size_t r = 0; r < k; r++) {
			const double *ar = fp->a + plane[r] * n;

			l[r] = fea_use(fp, plane[r], y) - 1;
			for (size_t c = 0; c < k; c++) {
				const double *ac = fp->a + plane[c] * n;

				gram[r][c] = 0;
				for (size_t j = 0; j < n; j++)
					gram[r][c] += ar[j] * ac[j];
			}
		}
		if (!solve_gram(gram, l, k))
			return;		/* parallel: the bounds' step repairs it */
		for (size_t r = 0; r < k; r++)
			for (size_t j = 0; j < n; j++)
				y[j] -= l[r] * fp->a[plane[r] * n + j];
	}
}

/*
 * Bring y into the feasible set: onto the capacities, and into the bounds of
 * each task; what the second step undid of the first, going back towards the
 * floors repairs, which are feasible together.
 */
static void make_feasible(const struct fea_problem *fp, double *y)
{
	size_t n = fp->p->n;
	double part = 1;

	onto_all_capacities(fp, y);
	for (size_t j = 0; j < n; j++)
		y[j] = fmin(fmax(y[j], fp->low[j]), fp->cap[j]);
	for (size_t i = 0; i < fp->p->m; i++) {
		double all = fea_use(fp, i, y), least = fea_use(fp, i, fp->low);

		if (all > 1 && all > least)
			part = fmin(part, fmax(1 - least, 0) / (all - least));
	}
	if (part < 1)
		for (size_t j = 0; j < n; j++)
			y[j] = fmin(fp->low[j], y[j]) +
				part * fmax(y[j] - fp->low[j], 0);
}

/*
 * Take out of d what leads out of the capacities in @plane (@k of them): project
 * the free tasks' part onto all of them, then let go of the one that d most
 * wants to leave inwards, until none is left of that kind. Returns whether any
 * is left.
 */
static bool project(const struct fea_problem *fp, size_t *plane, size_t k, double *d)
{
	size_t n = fp->p->n;

	while (k) {
		double gram[MGPU_MAX_RES][MGPU_MAX_RES], l[MGPU_MAX_RES] = { 0 };
		size_t worst = 0;

		for (size_t r = 0; r < k; r++) {
			const double *ar = fp->a + plane[r] * n;

			l[r] = 0;
			for (size_t j = 0; j < n; j++)
				l[r] += ar[j] * d[j];
			for (size_t c = 0; c < k; c++) {
				const double *ac = fp->a + plane[c] * n;

				gram[r][c] = 0;
				for (size_t j = 0; j < n; j++)
					if (!fp->fixed[j])
						gram[r][c] += ar[j] * ac[j];
			}
		}
		if (!solve_gram(gram, l, k)) {
			k--;	/* parallel to the others, or nothing can move */
			continue;
		}
		for (size_t r = 1; r < k; r++)
			if (l[r] < l[worst])
				worst = r;
		if (l[worst] < 0) {
			plane[worst] = plane[--k];
			continue;
		}
		for (size_t r = 0; r < k; r++)
			for (size_t j = 0; j < n; j++)
				if (!fp->fixed[j])
					d[j] -= l[r] * fp->a[plane[r] * n + j];
		return true;
	}
	return false;
}

/*
 * Step 3. Leaves the direction in fp->d; returns whether it was projected.
 *
 * A task that the full step would take above its demand moves just as far as to
 * it, and the capacities are shared out among the others. Whether it would rise
 * shows once the capacities have been taken into account, and to hold it may
 * set others free: PASSES times, what is left the bounds of the trial points do.
 */
static bool direction(struct fea_problem *fp, const double *gradient, double step)
{
	size_t n = fp->p->n, active = 0, on[MGPU_MAX_RES], left[MGPU_MAX_RES];
	bool projected = false;

	for (size_t i = 0; i < fp->p->m; i++)
		if (fea_use(fp, i, fp->y) >= 1 - FEA_ON_PLANE)
			on[active++] = i;
	memset(fp->fixed, 0, n * sizeof(*fp->fixed));

	for (unsigned int pass = 0; pass < FEA_PASSES; pass++) {
		bool again = false;
		double norm = 0;

		for (size_t j = 0; j < n; j++)
			if (!fp->fixed[j])
				norm += gradient[j] * gradient[j];
		norm = sqrt(norm);
		for (size_t j = 0; j < n; j++)
			if (!fp->fixed[j])
				fp->d[j] = gradient[j] / norm;
		memcpy(left, on, sizeof(on));
		projected |= project(fp, left, active, fp->d);
		for (size_t j = 0; j < n; j++) {
			double room = (fp->cap[j] - fp->y[j]) / step;

			if (fp->fixed[j] || fp->d[j] <= room)
				continue;
			fp->fixed[j] = true;
			fp->d[j] = room;
			again = true;
		}
		if (!again)
			break;
	}
	return projected;
}

void fea_start(struct fea_problem *fp, struct alloc_state *state, const double *x)
{
	for (size_t j = 0; j < fp->p->n; j++)
		fp->y[j] = x[j] * fp->mu[j];
	make_feasible(fp, fp->y);
	if (!(state->step > 0))
		state->step = FEA_STEP_INITIAL;
	state->step = fmax(state->step, fmin(FEA_STEP_START_MIN,
					     FEA_STEP_START_SHARE / (double)fp->p->n));
}

/* Step 5, with the values at y, fp->b and fp->c. */
void fea_choose(struct fea_problem *fp, struct alloc_state *state, double a, double b,
		double c)
{
	size_t size = fp->p->n * sizeof(*fp->y);

	if (c >= b && b >= a) {
		memcpy(fp->y, fp->c, size);
		if (!(c > b && b > a))
			state->streak = 0;
		else if (++state->streak >= FEA_STREAK)
			state->step = fmin(state->step * FEA_GROW, FEA_STEP_MAX);
		return;
	}
	state->streak = 0;
	if (b < a) {
		state->step *= FEA_A_LOT;
	} else {
		memcpy(fp->y, fp->b, size);
		state->step *= FEA_A_LITTLE;
	}
}

void fea_iterate(struct fea_problem *fp, struct alloc_state *state)
{
	size_t n = fp->p->n;
	double a, b, c, s;

	make_feasible(fp, fp->y);
	a = fea_value(fp, fp->y, fp->b);
	if (direction(fp, fp->b, state->step))
		state->step *= FEA_SLIGHTLY;
	state->step = fmax(state->step, FEA_STEP_MIN);

	s = state->step;
	for (size_t j = 0; j < n; j++) {
		fp->b[j] = fp->y[j] + FEA_SHORT * s * fp->d[j];
		fp->c[j] = fp->y[j] + s * fp->d[j];
	}
	make_feasible(fp, fp->b);
	make_feasible(fp, fp->c);
	b = fea_value(fp, fp->b, NULL);
	c = fea_value(fp, fp->c, NULL);
	fea_choose(fp, state, a, b, c);
}

void fea_result(const struct fea_problem *fp, double *x)
{
	for (size_t j = 0; j < fp->p->n; j++)
		x[j] = fp->y[j] / fp->mu[j];
}

static int fea_allocate(struct alloc_state *state, const struct fds_problem *p,
			unsigned int iterations, double *x)
{
	struct fea_problem *fp = fea_problem_new(p);

	if (!fp)
		return -ENOMEM;
	fea_start(fp, state, x);
	for (unsigned int i = 0; i < iterations; i++)
		fea_iterate(fp, state);
	fea_result(fp, x);
	fea_problem_free(fp);
	return 0;
}

const struct alloc_ops alloc_fea = {
	.name = "fea",
	.summary = "maximises fairness f on dominant shares, by a few iterations",
	.reach = true,
	.fds = true,
	.floors = true,
	.weights = true,
	.allocate = fea_allocate,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The iteration of FEA as its source prints it: b is the full step and c the short
 * one, so that s grows when the short step wins; trial points are not brought back
 * into the feasible set; and of several capacities that y lies on, the direction is
 * projected onto one after the other. Where the source leaves a choice open, this
 * file does as alloc_fea.c.
 */
#include <errno.h>
#include <math.h>

#include "fea_printed.h"

static double norm2(const struct fea_problem *fp, size_t i)
{
	const double *a = fp->a + i * fp->p->n;
	double sum = 0;

	for (size_t j = 0; j < fp->p->n; j++)
		sum += a[j] * a[j];
	return sum;
}

/* Project y onto each capacity that is exceeded, in turn. */
static void onto_capacities(const struct fea_problem *fp, double *y)
{
	size_t n = fp->p->n;

	for (size_t i = 0; i < fp->p->m; i++) {
		const double *a = fp->a + i * n;
		double over = fea_use(fp, i, y) - 1;

		if (over > 0) {
			double scale = norm2(fp, i);

			for (size_t j = 0; j < n; j++)
				y[j] -= over / scale * a[j];
		}
	}
}

void fea_printed_iterate(struct fea_problem *fp, struct alloc_state *state)
{
	size_t n = fp->p->n;
	double a, b, c, s, norm = 0;
	bool projected = false;

	onto_capacities(fp, fp->y);
	for (size_t j = 0; j < n; j++)
		fp->y[j] = fmin(fmax(fp->y[j], fp->low[j]), fp->cap[j]);
	a = fea_value(fp, fp->y, fp->d);
	for (size_t j = 0; j < n; j++)
		norm += fp->d[j] * fp->d[j];
	norm = sqrt(norm);
	for (size_t j = 0; j < n; j++)
		fp->d[j] /= norm;
	for (size_t i = 0; i < fp->p->m; i++) {
		const double *row = fp->a + i * n;
		double out = 0, scale;

		if (fea_use(fp, i, fp->y) < 1 - FEA_ON_PLANE)
			continue;
		for (size_t j = 0; j < n; j++)
			out += row[j] * fp->d[j];
		if (out <= 0)
			continue;
		scale = norm2(fp, i);
		for (size_t j = 0; j < n; j++)
			fp->d[j] -= out / scale * row[j];
		projected = true;
	}
	if (projected)
		state->step *= FEA_SLIGHTLY;
	state->step = fmax(state->step, FEA_STEP_MIN);

	s = state->step;
	for (size_t j = 0; j < n; j++) {
		fp->b[j] = fmax(fp->y[j] + s * fp->d[j], fp->low[j]);
		fp->c[j] = fmax(fp->y[j] + FEA_SHORT * s * fp->d[j], fp->low[j]);
	}
	b = fea_value(fp, fp->b, NULL);
	c = fea_value(fp, fp->c, NULL);
	fea_choose(fp, state, a, b, c);
}

static int printed_allocate(struct alloc_state *state, const struct fds_problem *p,
			    unsigned int iterations, double *x)
{
	struct fea_problem *fp = fea_problem_new(p);

	if (!fp)
		return -ENOMEM;
	fea_start(fp, state, x);
	for (unsigned int i = 0; i < iterations; i++)
		fea_printed_iterate(fp, state);
	fea_result(fp, x);
	fea_problem_free(fp);
	return 0;
}

const struct alloc_ops alloc_fea_printed = {
	.name = "fea-printed",
	.summary = "the iteration of fea as its source prints it",
	.weights = true,
	.allocate = printed_allocate,
};

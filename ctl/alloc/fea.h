/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The iteration of alloc_fea.c step by step: for its tests, and for the variant that
 * the simulator and the bench compare it with.
 */
#ifndef MGPU_FEA_H
#define MGPU_FEA_H

#include "alloc.h"

/* Documentation/allocation.rst says where these come from. */
#define FEA_STEP_MIN		1e-12	/* s at any time */
#define FEA_SLIGHTLY		0.95	/* factor of s after a projection */
#define FEA_SHORT		0.618	/* the short trial step, as a part of s */
#define FEA_ON_PLANE		1e-9	/* unused capacity that counts as none */

/**
 * struct fea_problem - a problem in dominant shares, y_j = mu_j x_j, and an iterate
 * @p: the problem
 * @a: use of each capacity by each task per unit of y: R_ij / (C_i mu_j), m rows of n
 * @mu: dominant share per frame per second
 * @cap: demand, dominant shares
 * @low: floor, dominant shares; above 0
 * @y: the iterate
 * @d: direction of the step
 * @b: trial point of the short step
 * @c: trial point of the full step
 * @fixed: task is at its demand and would rise
 */
struct fea_problem {
	const struct fds_problem *p;
	double *a;
	double *mu;
	double *cap;
	double *low;
	double *y;
	double *d;
	double *b;
	double *c;
	bool *fixed;
};

/* NULL: out of memory, or not a problem. @p must stay. */
struct fea_problem *fea_problem_new(const struct fds_problem *p);
void fea_problem_free(struct fea_problem *fp);

/* Begin a period at the rates @x, which need not be feasible. */
void fea_start(struct fea_problem *fp, struct alloc_state *state, const double *x);
void fea_iterate(struct fea_problem *fp, struct alloc_state *state);
void fea_result(const struct fea_problem *fp, double *x);

/* Return f at @y; with @grad, which is not @y, also its gradient there. */
double fea_value(const struct fea_problem *fp, const double *y, double *grad);

/* Return the used part of capacity @i at @y. */
double fea_use(const struct fea_problem *fp, size_t i, const double *y);

/*
 * Move to one of the trial points or stay, and adapt the step length. @a, @b and @c:
 * f at the iterate and at both trial points.
 */
void fea_choose(struct fea_problem *fp, struct alloc_state *state, double a, double b,
		double c);

#endif /* MGPU_FEA_H */

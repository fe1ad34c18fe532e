/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fairness on dominant shares: the figure of merit that allocations are judged
 * by, its gradient, and the allocation that maximises it.
 *
 * Symbols, here and in the allocators; Documentation/allocation.rst has more:
 *
 *   n, m	tasks (one per vGPU that is active) and resources
 *   x[j]	rate of task j, frames per second
 *   R[i][j]	what one frame of task j needs of resource i, seconds
 *   C[i]	capacity of resource i, seconds per second
 *   mu[j]	dominant share of one frame, max over i of R[i][j] / C[i]
 *
 *   f(x) = sgn(1 - beta) (sum_j y_j^(1 - beta))^(1 / beta) S1^(1 + lambda - 1 / beta)
 *   with y_j = mu_j x_j and S1 = sum_j y_j
 */
#ifndef MGPU_FDS_H
#define MGPU_FDS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Resources: the CPUs, and one per device. */
#define MGPU_MAX_RES	16

/**
 * struct fds_param - the two parameters of f
 * @beta: how much fairness counts; above 0, not 1
 * @lambda: how much efficiency counts
 */
struct fds_param {
	double beta;
	double lambda;
};

#define FDS_BETA_DEFAULT	2.0
#define FDS_LAMBDA_DEFAULT	(-0.5)

/**
 * struct fds_problem - capacities to be divided, and the tasks that share them
 * @n: tasks
 * @m: resources, at most MGPU_MAX_RES
 * @need: R, m rows of n, all >= 0 and in each column one > 0
 * @capacity: C, m values > 0
 * @demand: n values > 0, the rate above which a task has no use for more, or may
 *	have no more; INFINITY where there is none
 * @floor: n values >= 0, the rate that a task is promised; within @demand, and
 *	all together feasible (sla_floors() sees to that). NULL for none
 * @weight: n values > 0, for allocators that know weights; f does not. NULL for
 *	equal ones
 * @param: of f
 */
struct fds_problem {
	size_t n;
	size_t m;
	const double *need;
	const double *capacity;
	const double *demand;
	const double *floor;
	const double *weight;
	struct fds_param param;
};

static inline double fds_floor(const struct fds_problem *p, size_t j)
{
	return p->floor ? p->floor[j] : 0;
}

static inline double fds_weight(const struct fds_problem *p, size_t j)
{
	return p->weight ? p->weight[j] : 1;
}

static inline double fds_need(const struct fds_problem *p, size_t i, size_t j)
{
	return p->need[i * p->n + j];
}

/*
 * NULL when the parameters make f increase with every rate, so that its
 * maximum leaves no capacity unused; otherwise a sentence that says why not.
 */
const char *fds_param_check(const struct fds_param *param);

double fds_mu(const struct fds_problem *p, size_t j);

/* f from the dominant shares y, n >= 1 values > 0. */
double fds_value(const struct fds_param *param, size_t n, const double *y);

/* Gradient of f in y; returns f. */
double fds_gradient(const struct fds_param *param, size_t n, const double *y,
		    double *grad);

/* True when every rate is > 0, within demand, and no capacity is exceeded. */
bool fds_feasible(const struct fds_problem *p, const double *x, double tolerance);

/* log |f| is at most so far from its optimum, or fds_best_from() says so. */
#define FDS_GAP		1e-8

/**
 * fds_best_from() - the rates that maximise f
 * @p: the problem
 * @price: in: where to start, m values, what a similar problem left there; 0 for
 *	unknown. Out: the prices of the capacities. NULL for neither
 * @x: the rates, n values
 * @left: the most by which log |f| may still be improved, proven for this very
 *	result
 *
 * Time is linear in n.
 *
 * Return: 0, -EINVAL when the problem is not one, -ERANGE when its numbers are
 * beyond what arithmetic can do, -ENOMEM
 */
int fds_best_from(const struct fds_problem *p, double *price, double *x, double *left);

/* The same from scratch. */
int fds_best(const struct fds_problem *p, double *x);

/* S1 and S2 of f. */
void fds_sums(const struct fds_param *param, size_t n, const double *y,
	      double *s1, double *s2);

/* y^(-beta); the default needs no pow(). */
static inline double fds_inverse_power(double y, double beta)
{
	return beta == 2 ? 1 / (y * y) : pow(y, -beta);
}

#endif /* MGPU_FDS_H */

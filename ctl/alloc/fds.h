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
 *   w[j]	weight of task j, over the mean of all weights
 *
 *   f(x) = sgn(1 - beta) S2^(1 / beta) S1^(1 + lambda - 1 / beta)
 *   with y_j = mu_j x_j, S1 = sum_j y_j and S2 = sum_j w_j (y_j / w_j)^(1 - beta)
 *
 * A task of weight w counts as w equal tasks of weight 1 would, each with a w-th of its
 * rate: on a single bottleneck the shares y_j of the optimum are in proportion to w_j.
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
 * @weight: n finite values > 0, of which only the ratios count. NULL for equal ones
 * @param: of f
 * @bounds: number of resources, the last ones of @m, that bound the rates, but of which
 *	no task has a share: they do not count in mu
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
	size_t bounds;
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

/* Return the mean of n weights: of all weights over it, the mean is 1. NULL: 1. */
double fds_mean_weight(size_t n, const double *weight);

/* True when all weights of the problem are finite and > 0, and so is their sum. */
bool fds_weights_valid(const struct fds_problem *p);

/*
 * Return the rate with which the task has its weight's part of every capacity, an n-th
 * with equal weights. @mean: fds_mean_weight() of the problem.
 */
double fds_fair_rate(const struct fds_problem *p, size_t j, double mean);

/* f from the dominant shares y, n >= 1 values > 0. @weight as in struct fds_problem. */
double fds_value(const struct fds_param *param, size_t n, const double *weight,
		 const double *y);

/* Gradient of f in y; returns f. */
double fds_gradient(const struct fds_param *param, size_t n, const double *weight,
		    const double *y, double *grad);

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

/*
 * The same where engines are threads on the CPUs: resource 0 is the CPUs, and what the
 * tasks use of the resources in @on_cpus (m values) is taken from @cpus, the CPU time for
 * tasks and engines together. @capacity is that of @p, of which the first value, where
 * the search starts, becomes what the result leaves to the tasks.
 */
int fds_best_beside_engines(const struct fds_problem *p, double *capacity,
			    const bool *on_cpus, double cpus, double *x);

/* S1 and S2 of f. */
void fds_sums(const struct fds_param *param, size_t n, const double *weight,
	      const double *y, double *s1, double *s2);

/* y^(-beta), with the share y of a task over its weight; the default needs no pow(). */
static inline double fds_inverse_power(double y, double beta)
{
	return beta == 2 ? 1 / (y * y) : pow(y, -beta);
}

#endif /* MGPU_FDS_H */

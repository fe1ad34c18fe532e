// SPDX-License-Identifier: GPL-2.0-only
/* f and its gradient. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fds.h"

const char *fds_param_check(const struct fds_param *param)
{
	double b = param->beta, l = param->lambda;

	if (!isfinite(b) || b < 0.05 || b > 50)
		return "beta must be from 0.05 to 50";
	if (fabs(b - 1) < 0.01)
		return "beta must differ from 1 by at least 0.01";
	if (!isfinite(l) || fabs(l) > 100)
		return "lambda must be from -100 to 100";
	if (b > 1 && l >= 0)
		return "lambda must be negative with beta above 1, or idle capacity is free";
	if (b < 1 && l <= 0)
		return "lambda must be positive with beta below 1, or idle capacity is free";
	if (fabs(l) < fabs((1 - b) / b) * (1 - 1e-9))
		return "lambda must be at least |(1 - beta) / beta| away from 0";
	return NULL;
}

double fds_mu(const struct fds_problem *p, size_t j)
{
	double mu = 0;

	for (size_t i = 0; i < p->m - p->bounds; i++)
		mu = fmax(mu, fds_need(p, i, j) / p->capacity[i]);
	return mu;
}

double fds_mean_weight(size_t n, const double *weight)
{
	double sum = 0;

	if (!weight)
		return 1;
	for (size_t j = 0; j < n; j++)
		sum += weight[j];
	return sum / (double)n;
}

bool fds_weights_valid(const struct fds_problem *p)
{
	double mean = fds_mean_weight(p->n, p->weight);

	if (!isfinite(mean))
		return false;
	for (size_t j = 0; j < p->n; j++)
		if (!(fds_weight(p, j) / mean > 0))
			return false;
	return true;
}

double fds_fair_rate(const struct fds_problem *p, size_t j, double mean)
{
	return fds_weight(p, j) / mean / ((double)p->n * fds_mu(p, j));
}

/* The weight of a task over the mean: exactly 1 when all are equal. */
static double relative(const double *weight, double mean, size_t j)
{
	return weight ? weight[j] / mean : 1;
}

void fds_sums(const struct fds_param *param, size_t n, const double *weight,
	      const double *y, double *s1, double *s2)
{
	double mean = fds_mean_weight(n, weight);

	*s1 = 0;
	*s2 = 0;
	for (size_t j = 0; j < n; j++) {
		double w = relative(weight, mean, j);

		*s1 += y[j];
		*s2 += y[j] * fds_inverse_power(y[j] / w, param->beta);
	}
}

double fds_value(const struct fds_param *param, size_t n, const double *weight,
		 const double *y)
{
	double b = param->beta, s1, s2, f;

	fds_sums(param, n, weight, y, &s1, &s2);
	f = pow(s1, 1 + param->lambda - 1 / b) * pow(s2, 1 / b);
	return b > 1 ? -f : f;
}

double fds_gradient(const struct fds_param *param, size_t n, const double *weight,
		    const double *y, double *grad)
{
	double b = param->beta, a = 1 + param->lambda - 1 / b;
	double s1, s2, f, common, own, mean = fds_mean_weight(n, weight);

	fds_sums(param, n, weight, y, &s1, &s2);
	f = pow(s1, a) * pow(s2, 1 / b);
	if (b > 1)
		f = -f;
	common = f * a / s1;
	own = f * (1 - b) / b / s2;
	for (size_t j = 0; j < n; j++)
		grad[j] = common + own * fds_inverse_power(y[j] / relative(weight, mean, j),
							   b);
	return f;
}

bool fds_feasible(const struct fds_problem *p, const double *x, double tolerance)
{
	for (size_t j = 0; j < p->n; j++)
		if (!(x[j] > 0) || !(x[j] <= p->demand[j] * (1 + tolerance)))
			return false;
	for (size_t i = 0; i < p->m; i++) {
		double use = 0;

		for (size_t j = 0; j < p->n; j++)
			use += fds_need(p, i, j) * x[j];
		if (!(use <= p->capacity[i] * (1 + tolerance)))
			return false;
	}
	return true;
}

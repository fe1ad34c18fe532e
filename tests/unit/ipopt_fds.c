// SPDX-License-Identifier: GPL-2.0-only
/*
 * minimise    sigma ((1 + lambda - 1 / beta) log S1 + 1 / beta log S2)
 * subject to  S1 = sum_j y_j,  S2 = sum_j w_j^beta y_j^(1 - beta)
 *             sum_j A_ij y_j <= 1,  low_j <= y_j <= high_j
 *
 * with sigma = 1 for beta > 1 (log -f) and -1 below (-log f). S1 and S2 are
 * variables, which keeps all second derivatives on the diagonal. Variables are
 * z_j = n y_j, S1, and log S2, so that all are of order 1. Where the factor of
 * log S1 is 0, sigma S2 itself is minimised, and there are no other variables.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <IpStdCInterface.h>

#include "ipopt_fds.h"

struct model {
	const struct fds_problem *p;
	size_t n, m;
	double beta, kappa, sign, scale;
	size_t extra;		/* 2 with S1 and S2, or 0 */
	const double *a;	/* A, m rows of n */
	const double *factor;	/* w_j^beta, with weights over their mean */
};

static double y_of(const struct model *s, const Number *v, size_t j)
{
	return v[j] / s->scale;
}

static Bool objective(Index nr, Number *v, Bool new_v, Number *value, UserDataPtr user)
{
	const struct model *s = user;

	(void)nr;
	(void)new_v;
	if (!s->extra) {
		*value = 0;
		for (size_t j = 0; j < s->n; j++)
			*value += s->sign * s->factor[j] * pow(v[j], 1 - s->beta) /
				s->scale;
		return TRUE;
	}
	*value = s->sign * (s->kappa * log(v[s->n]) + v[s->n + 1] / s->beta);
	return TRUE;
}

static Bool gradient(Index nr, Number *v, Bool new_v, Number *grad, UserDataPtr user)
{
	const struct model *s = user;

	(void)new_v;
	memset(grad, 0, (size_t)nr * sizeof(*grad));
	if (!s->extra) {
		for (size_t j = 0; j < s->n; j++)
			grad[j] = s->sign * s->factor[j] * (1 - s->beta) *
				pow(v[j], -s->beta) / s->scale;
		return TRUE;
	}
	grad[s->n] = s->sign * s->kappa / v[s->n];
	grad[s->n + 1] = s->sign / s->beta;
	return TRUE;
}

/* S1 - sum y, and S2 - sum w^beta z^(1 - beta) / n: a constant factor off S2. */
static Bool constraints(Index nr, Number *v, Bool new_v, Index nr_g, Number *g,
			UserDataPtr user)
{
	const struct model *s = user;
	double s1 = 0, s2 = 0;

	(void)nr;
	(void)new_v;
	(void)nr_g;
	if (s->extra) {
		for (size_t j = 0; j < s->n; j++) {
			s1 += y_of(s, v, j);
			s2 += s->factor[j] * pow(v[j], 1 - s->beta) / s->scale;
		}
		g[0] = v[s->n] - s1;
		g[1] = exp(v[s->n + 1]) - s2;
	}
	for (size_t i = 0; i < s->m; i++) {
		double *use = &g[s->extra + i];

		*use = 0;
		for (size_t j = 0; j < s->n; j++)
			*use += s->a[i * s->n + j] * y_of(s, v, j);
	}
	return TRUE;
}

/* Rows of n + 1, n + 1 and m times n entries; the first two may be missing. */
static Bool jacobian(Index nr, Number *v, Bool new_v, Index nr_g, Index nr_jac,
		     Index *row, Index *col, Number *value, UserDataPtr user)
{
	const struct model *s = user;
	size_t k = 0;

	(void)nr;
	(void)new_v;
	(void)nr_g;
	(void)nr_jac;
	for (size_t r = 2 - s->extra; r < 2 + s->m; r++) {
		size_t at = r + s->extra - 2;

		for (size_t j = 0; j < s->n; j++, k++) {
			if (!value) {
				row[k] = (Index)at;
				col[k] = (Index)j;
			} else if (r == 0) {
				value[k] = -1 / s->scale;
			} else if (r == 1) {
				value[k] = -(1 - s->beta) * s->factor[j] *
					pow(v[j], -s->beta) / s->scale;
			} else {
				value[k] = s->a[(r - 2) * s->n + j] / s->scale;
			}
		}
		if (r >= 2)
			continue;
		if (!value) {
			row[k] = (Index)at;
			col[k] = (Index)(s->n + at);
		} else {
			value[k] = r ? exp(v[s->n + 1]) : 1;
		}
		k++;
	}
	return TRUE;
}

static Bool hessian(Index nr, Number *v, Bool new_v, Number factor, Index nr_g,
		    Number *lambda, Bool new_lambda, Index nr_hess, Index *row,
		    Index *col, Number *value, UserDataPtr user)
{
	const struct model *s = user;

	(void)new_v;
	(void)nr_g;
	(void)new_lambda;
	(void)nr_hess;
	for (Index k = 0; k < nr; k++) {
		size_t j = (size_t)k;

		if (!value) {
			row[k] = k;
			col[k] = k;
		} else if (j < s->n) {
			/* from S2, in a constraint or in the objective */
			value[k] = (s->extra ? lambda[1] : -factor * s->sign) *
				(1 - s->beta) * s->beta * s->factor[j] *
				pow(v[j], -s->beta - 1) / s->scale;
		} else if (j == s->n) {
			value[k] = -factor * s->sign * s->kappa / (v[j] * v[j]);
		} else {
			value[k] = lambda[1] * exp(v[j]);
		}
	}
	return TRUE;
}

static int solve(struct model *s, const double *mu, double *x)
{
	size_t nr = s->n + s->extra, nr_g = s->m + s->extra;
	double *mem = calloc(3 * nr + 2 * nr_g, sizeof(*mem));
	double *low = mem, *high = mem + nr, *v = mem + 2 * nr;
	double *g_low = mem + 3 * nr, *g_high = g_low + nr_g, value, most = 1, z0 = 0;
	enum ApplicationReturnStatus status;
	IpoptProblem ip;

	if (!mem)
		return -ENOMEM;
	for (size_t j = 0; j < s->n; j++) {
		low[j] = fmax(fds_floor(s->p, j) * mu[j] * s->scale, 1e-9);
		high[j] = fmin(s->p->demand[j] * mu[j] * s->scale, s->scale);
		v[j] = fmin(fmax(0.5, low[j]), high[j]);
		z0 += s->factor[j] * pow(v[j], 1 - s->beta) / s->scale;
	}
	if (s->extra) {
		low[s->n] = 1e-12;
		high[s->n] = 2e19;
		low[s->n + 1] = -2e19;
		high[s->n + 1] = 2e19;
		v[s->n] = 0.5;
		v[s->n + 1] = log(z0);
	}
	for (size_t i = 0; i < s->m; i++) {
		g_low[s->extra + i] = -2e19;
		g_high[s->extra + i] = 1;
	}
	ip = CreateIpoptProblem((Index)nr, low, high, (Index)nr_g, g_low, g_high,
				(Index)(s->n * nr_g + s->extra), (Index)nr, 0, objective,
				constraints, gradient, jacobian, hessian);
	if (!ip) {
		free(mem);
		return -ENOMEM;
	}
	AddIpoptIntOption(ip, "print_level", 0);
	AddIpoptStrOption(ip, "sb", "yes");
	AddIpoptNumOption(ip, "tol", 1e-10);
	AddIpoptNumOption(ip, "constr_viol_tol", 1e-10);
	AddIpoptNumOption(ip, "compl_inf_tol", 1e-10);
	AddIpoptNumOption(ip, "bound_relax_factor", 0);
	AddIpoptIntOption(ip, "max_iter", 500);
	/* minimum degree: MUMPS's default for large matrices is slow with full rows */
	AddIpoptIntOption(ip, "mumps_pivot_order", 0);
	status = IpoptSolve(ip, v, NULL, &value, NULL, NULL, NULL, s);
	FreeIpoptProblem(ip);

	/* cut off what its tolerance leaves above the bounds */
	for (size_t i = 0; i < s->m; i++) {
		double use = 0;

		for (size_t j = 0; j < s->n; j++)
			use += s->a[i * s->n + j] * y_of(s, v, j);
		most = fmax(most, use);
	}
	for (size_t j = 0; j < s->n; j++)
		x[j] = y_of(s, v, j) / most / mu[j];
	free(mem);
	return (int)status;
}

int ipopt_fds(const struct fds_problem *p, double *x)
{
	double beta = p->param.beta, *mu, *a, *factor, weights = 0;
	struct model s = {
		.p = p, .n = p->n, .m = p->m, .beta = beta, .scale = (double)p->n,
		.kappa = 1 + p->param.lambda - 1 / beta, .sign = beta > 1 ? 1 : -1,
	};
	int ret;

	s.extra = fabs(s.kappa) > 1e-9 ? 2 : 0;
	mu = calloc(p->n * (2 + p->m), sizeof(*mu));
	if (!mu)
		return -ENOMEM;
	factor = mu + p->n;
	s.factor = factor;
	a = factor + p->n;
	s.a = a;
	for (size_t j = 0; j < p->n; j++)
		weights += p->weight ? p->weight[j] : 1;
	for (size_t j = 0; j < p->n; j++) {
		mu[j] = fds_mu(p, j);
		factor[j] = p->weight ?
			pow((double)p->n * p->weight[j] / weights, beta) : 1;
		for (size_t i = 0; i < p->m; i++)
			a[i * p->n + j] = fds_need(p, i, j) / (p->capacity[i] * mu[j]);
	}
	ret = solve(&s, mu, x);
	free(mu);
	return ret;
}

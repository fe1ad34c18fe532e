// SPDX-License-Identifier: GPL-2.0-only
/* f, its gradient and its maximum. Pure. */
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
		return "beta must not be 1 (nor closer to it than 0.01)";
	if (!isfinite(l) || fabs(l) > 100)
		return "lambda must be from -100 to 100";
	if (b > 1 && l >= 0)
		return "lambda must be negative with beta above 1, or idle capacity is no loss";
	if (b < 1 && l <= 0)
		return "lambda must be positive with beta below 1, or idle capacity is no loss";
	if (fabs(l) < fabs((1 - b) / b) * (1 - 1e-9))
		return "lambda must be at least |(1 - beta) / beta| away from 0";
	return NULL;
}

double fds_mu(const struct fds_problem *p, size_t j)
{
	double mu = 0;

	for (size_t i = 0; i < p->m; i++)
		mu = fmax(mu, fds_need(p, i, j) / p->capacity[i]);
	return mu;
}

/* y^(-beta); the default needs no pow() */
static double inverse_power(double y, double beta)
{
	return beta == 2 ? 1 / (y * y) : pow(y, -beta);
}

static void sums(const struct fds_param *param, size_t n, const double *y,
		 double *s1, double *s2)
{
	*s1 = 0;
	*s2 = 0;
	for (size_t j = 0; j < n; j++) {
		*s1 += y[j];
		*s2 += y[j] * inverse_power(y[j], param->beta);
	}
}

double fds_value(const struct fds_param *param, size_t n, const double *y)
{
	double b = param->beta, s1, s2, f;

	sums(param, n, y, &s1, &s2);
	f = pow(s1, 1 + param->lambda - 1 / b) * pow(s2, 1 / b);
	return b > 1 ? -f : f;
}

double fds_gradient(const struct fds_param *param, size_t n, const double *y,
		    double *grad)
{
	double b = param->beta, a = 1 + param->lambda - 1 / b;
	double s1, s2, f, common, own;

	sums(param, n, y, &s1, &s2);
	f = pow(s1, a) * pow(s2, 1 / b);
	if (b > 1)
		f = -f;
	common = f * a / s1;
	own = f * (1 - b) / b / s2;
	for (size_t j = 0; j < n; j++)
		grad[j] = common + own * inverse_power(y[j], b);
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

/*
 * The maximum, by a barrier method with Newton steps.
 *
 * With allowed parameters phi = -log(-f) (or log f, for beta < 1) is concave in
 * y and has the same maximum. Each step maximises a quadratic model of
 *
 *	t phi(y) + sum_j log(cap_j - y_j) + sum_i log(1 - sum_j A_ij y_j)
 *
 * where A_ij = R_ij / (C_i mu_j). Its Hessian is a diagonal and 2 + m outer
 * products, so a step costs n (m + 2)^2 operations. y_j > 0 needs no barrier:
 * phi goes to -infinity there, or (beta < 1) its slope to +infinity.
 */
#define RANK	(2 + MGPU_MAX_RES)

struct best {
	const struct fds_problem *p;
	size_t n, m;
	double alpha;		/* weight of log S1 in phi */
	double kappa;		/* weight of log of the power mean in phi */
	double *a;		/* A, m rows of n */
	double *mu, *cap, *y, *dy, *trial, *diag, *grad;
	double *u;		/* the outer products' vectors, RANK rows of n */
};

static double barrier(const struct best *s, const double *y, double t)
{
	double b = s->p->param.beta, s1, s2, v;

	for (size_t j = 0; j < s->n; j++)
		if (!(y[j] > 0) || y[j] >= s->cap[j])
			return -INFINITY;
	sums(&s->p->param, s->n, y, &s1, &s2);
	v = t * (s->alpha * log(s1) + (b > 1 ? -1 : 1) * log(s2) / b);
	for (size_t j = 0; j < s->n; j++)
		if (isfinite(s->cap[j]))
			v += log((s->cap[j] - y[j]) / s->cap[j]);
	for (size_t i = 0; i < s->m; i++) {
		double slack = 1;

		for (size_t j = 0; j < s->n; j++)
			slack -= s->a[i * s->n + j] * y[j];
		if (!(slack > 0))
			return -INFINITY;
		v += log(slack);
	}
	return v;
}

/* Solve a k x k system in place by elimination with pivots; 0 when singular. */
static int solve_small(double a[RANK][RANK], double *x, size_t k)
{
	for (size_t c = 0; c < k; c++) {
		size_t pivot = c;

		for (size_t r = c + 1; r < k; r++)
			if (fabs(a[r][c]) > fabs(a[pivot][c]))
				pivot = r;
		if (fabs(a[pivot][c]) < 1e-300)
			return 0;
		for (size_t q = 0; q < k; q++) {
			double swap = a[c][q];

			a[c][q] = a[pivot][q];
			a[pivot][q] = swap;
		}
		double swap = x[c];

		x[c] = x[pivot];
		x[pivot] = swap;
		for (size_t r = c + 1; r < k; r++) {
			double q = a[r][c] / a[c][c];

			for (size_t w = c; w < k; w++)
				a[r][w] -= q * a[c][w];
			x[r] -= q * x[c];
		}
	}
	for (size_t c = k; c-- > 0;) {
		for (size_t w = c + 1; w < k; w++)
			x[c] -= a[c][w] * x[w];
		x[c] /= a[c][c];
	}
	return 1;
}

/*
 * Newton direction dy = H^-1 grad for H = diag + sum_k w_k u_k u_k^T (the
 * negated Hessian), by the Woodbury identity. Returns grad . dy.
 */
static double newton(struct best *s, double t)
{
	const struct fds_param *param = &s->p->param;
	double b = param->beta, s1, s2, w[RANK], small[RANK][RANK], rhs[RANK];
	size_t k = 0, n = s->n;
	double decrement = 0;

	sums(param, n, s->y, &s1, &s2);
	for (size_t j = 0; j < n; j++) {
		double ip = inverse_power(s->y[j], b);

		s->grad[j] = t * (s->alpha / s1 + s->kappa * ip / s2);
		s->diag[j] = t * s->kappa * b * ip / s->y[j] / s2;
		if (isfinite(s->cap[j])) {
			double slack = s->cap[j] - s->y[j];

			s->grad[j] -= 1 / slack;
			s->diag[j] += 1 / (slack * slack);
		}
		s->u[j] = ip / s2;
	}
	/* second derivative of log S2: concave or convex with the sign of 1 - b */
	w[k++] = t * s->kappa * (1 - b);
	if (s->alpha > 0) {
		for (size_t j = 0; j < n; j++)
			s->u[k * n + j] = 1 / s1;
		w[k++] = t * s->alpha;
	}
	for (size_t i = 0; i < s->m; i++) {
		const double *a = s->a + i * n;
		double slack = 1;

		for (size_t j = 0; j < n; j++)
			slack -= a[j] * s->y[j];
		for (size_t j = 0; j < n; j++) {
			s->grad[j] -= a[j] / slack;
			s->u[k * n + j] = a[j] / slack;
		}
		w[k++] = 1;
	}

	for (size_t r = 0; r < k; r++) {
		const double *ur = s->u + r * n;

		rhs[r] = 0;
		for (size_t j = 0; j < n; j++)
			rhs[r] += ur[j] * s->grad[j] / s->diag[j];
		for (size_t c = 0; c < k; c++) {
			const double *uc = s->u + c * n;

			small[r][c] = r == c ? 1 / w[r] : 0;
			for (size_t j = 0; j < n; j++)
				small[r][c] += ur[j] * uc[j] / s->diag[j];
		}
	}
	if (!solve_small(small, rhs, k))
		return 0;
	for (size_t j = 0; j < n; j++) {
		double v = s->grad[j];

		for (size_t r = 0; r < k; r++)
			v -= s->u[r * n + j] * rhs[r];
		s->dy[j] = v / s->diag[j];
		decrement += s->dy[j] * s->grad[j];
	}
	return decrement;
}

static void maximise(struct best *s, double t)
{
	for (unsigned int i = 0; i < 60; i++) {
		double decrement = newton(s, t), step = 1, here;

		if (!(decrement > 1e-12))
			return;
		here = barrier(s, s->y, t);
		for (;;) {
			for (size_t j = 0; j < s->n; j++)
				s->trial[j] = s->y[j] + step * s->dy[j];
			if (barrier(s, s->trial, t) >= here + 0.2 * step * decrement)
				break;
			step /= 2;
			if (step < 1e-9)	/* as good as arithmetic gets */
				return;
		}
		memcpy(s->y, s->trial, s->n * sizeof(*s->y));
	}
}

int fds_best(const struct fds_problem *p, double *x)
{
	double b = p->param.beta, t_end;
	struct best s = { .p = p, .n = p->n, .m = p->m };
	double *mem;

	if (!p->n || !p->m || p->m > MGPU_MAX_RES || fds_param_check(&p->param))
		return -EINVAL;
	mem = calloc(p->n * (7 + p->m + RANK), sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	s.mu = mem;
	s.cap = mem + p->n;
	s.y = mem + 2 * p->n;
	s.dy = mem + 3 * p->n;
	s.trial = mem + 4 * p->n;
	s.diag = mem + 5 * p->n;
	s.grad = mem + 6 * p->n;
	s.a = mem + 7 * p->n;
	s.u = s.a + p->m * p->n;
	s.kappa = fabs(1 - b) / b;
	s.alpha = fabs(1 + p->param.lambda - 1 / b);
	if (s.alpha < 1e-9)
		s.alpha = 0;

	for (size_t j = 0; j < p->n; j++) {
		double most = 1;

		s.mu[j] = fds_mu(p, j);
		if (!(s.mu[j] > 0) || !(p->demand[j] > 0)) {
			free(mem);
			return -EINVAL;
		}
		s.cap[j] = p->demand[j] * s.mu[j];
		/* a cap that no allocation reaches is none */
		if (s.cap[j] > 2)
			s.cap[j] = INFINITY;
		for (size_t i = 0; i < p->m; i++)
			s.a[i * p->n + j] = fds_need(p, i, j) /
				(p->capacity[i] * s.mu[j]);
		most = fmin(most, s.cap[j]);
		s.y[j] = most / (2 * (double)p->n);
	}

	t_end = 1e10 * (double)(p->n + p->m);
	for (double t = (double)(p->n + p->m); t < t_end; t *= 20)
		maximise(&s, t);
	maximise(&s, t_end);

	for (size_t j = 0; j < p->n; j++)
		x[j] = s.y[j] / s.mu[j];
	free(mem);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The maximum of f by a barrier method with Newton steps (Boyd and
 * Vandenberghe, "Convex Optimization", chapter 11). Pure.
 *
 * With allowed parameters phi = -log(-f) (or log f, for beta < 1) is concave in
 * y and has the same maximum. Each step maximises a quadratic model of
 *
 *	t phi(y) + sum_j log(cap_j - y_j) + sum_j log(y_j - low_j) +
 *		sum_i log(1 - sum_j A_ij y_j)
 *
 * where A_ij = R_ij / (C_i mu_j). Its Hessian is a diagonal and 2 + m outer
 * products, so a step costs n (m + 2)^2 operations. y_j > 0 needs no barrier:
 * phi goes to -infinity there, or (beta < 1) its slope to +infinity.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fds_barrier.h"

/* Between the bounds of a task, relative, at least: there must be an inside. */
#define WIDTH	1e-9

#define RANK	(2 + MGPU_MAX_RES)

struct barrier {
	const struct fds_problem *p;
	size_t n, m;
	double alpha;		/* weight of log S1 in phi */
	double kappa;		/* weight of log of the power mean in phi */
	double *a;		/* A, m rows of n */
	double *mu, *cap, *low, *y, *dy, *trial, *diag, *grad;
	double *w;		/* weights over their mean */
	double *u;		/* the outer products' vectors, RANK rows of n */
};

static double objective(const struct barrier *s, const double *y, double t)
{
	double b = s->p->param.beta, s1, s2, v;

	for (size_t j = 0; j < s->n; j++)
		if (!(y[j] > s->low[j]) || y[j] >= s->cap[j])
			return -INFINITY;
	fds_sums(&s->p->param, s->n, s->w, y, &s1, &s2);
	v = t * (s->alpha * log(s1) + (b > 1 ? -1 : 1) * log(s2) / b);
	for (size_t j = 0; j < s->n; j++) {
		if (isfinite(s->cap[j]))
			v += log((s->cap[j] - y[j]) / s->cap[j]);
		if (s->low[j] > 0)
			v += log((y[j] - s->low[j]) / s->low[j]);
	}
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
static double newton(struct barrier *s, double t)
{
	const struct fds_param *param = &s->p->param;
	double b = param->beta, s1, s2, w[RANK], small[RANK][RANK], rhs[RANK];
	size_t k = 0, n = s->n;
	double decrement = 0;

	fds_sums(param, n, s->w, s->y, &s1, &s2);
	for (size_t j = 0; j < n; j++) {
		double ip = fds_inverse_power(s->y[j] / s->w[j], b);

		s->grad[j] = t * (s->alpha / s1 + s->kappa * ip / s2);
		s->diag[j] = t * s->kappa * b * ip / s->y[j] / s2;
		if (isfinite(s->cap[j])) {
			double slack = s->cap[j] - s->y[j];

			s->grad[j] -= 1 / slack;
			s->diag[j] += 1 / (slack * slack);
		}
		if (s->low[j] > 0) {
			double slack = s->y[j] - s->low[j];

			s->grad[j] += 1 / slack;
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

static void maximise(struct barrier *s, double t)
{
	for (unsigned int i = 0; i < 60; i++) {
		double decrement = newton(s, t), step = 1, here;

		if (!(decrement > 1e-12))
			return;
		here = objective(s, s->y, t);
		for (;;) {
			for (size_t j = 0; j < s->n; j++)
				s->trial[j] = s->y[j] + step * s->dy[j];
			if (objective(s, s->trial, t) >= here + 0.2 * step * decrement)
				break;
			step /= 2;
			if (step < 1e-9)	/* as good as arithmetic gets */
				return;
		}
		memcpy(s->y, s->trial, s->n * sizeof(*s->y));
	}
}

/* A start inside all bounds and capacities; false when there is none. */
static bool inside(struct barrier *s)
{
	double part = 1;

	for (size_t j = 0; j < s->n; j++) {
		double high = fmin(1, s->cap[j]);

		s->low[j] = fmin(s->low[j], high * (1 - WIDTH));
		s->dy[j] = (high - s->low[j]) / (2 * (double)s->n);
	}
	for (size_t i = 0; i < s->m; i++) {
		double least = 0, more = 0;

		for (size_t j = 0; j < s->n; j++) {
			least += s->a[i * s->n + j] * s->low[j];
			more += s->a[i * s->n + j] * s->dy[j];
		}
		if (more > 0)
			part = fmin(part, (1 - least) / (2 * more));
	}
	if (!(part > 1e-9))
		return false;
	for (size_t j = 0; j < s->n; j++)
		s->y[j] = s->low[j] + part * s->dy[j];
	return true;
}

int fds_barrier(const struct fds_problem *p, double *x, double *price)
{
	double b = p->param.beta, t_end, mean = fds_mean_weight(p->n, p->weight);
	struct barrier s = { .p = p, .n = p->n, .m = p->m };
	size_t bounds = 2 * p->n + p->m;
	double *mem;
	int ret = 0;

	if (!p->n || p->m <= p->bounds || p->m > MGPU_MAX_RES || fds_param_check(&p->param) ||
	    !fds_weights_valid(p))
		return -EINVAL;
	mem = calloc(p->n * (9 + p->m + RANK), sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	s.mu = mem;
	s.cap = mem + p->n;
	s.y = mem + 2 * p->n;
	s.dy = mem + 3 * p->n;
	s.trial = mem + 4 * p->n;
	s.diag = mem + 5 * p->n;
	s.grad = mem + 6 * p->n;
	s.low = mem + 7 * p->n;
	s.w = mem + 8 * p->n;
	s.a = mem + 9 * p->n;
	s.u = s.a + p->m * p->n;
	s.kappa = fabs(1 - b) / b;
	s.alpha = fabs(1 + p->param.lambda - 1 / b);
	if (s.alpha < 1e-9)
		s.alpha = 0;

	for (size_t j = 0; j < p->n; j++) {
		s.w[j] = fds_weight(p, j) / mean;
		s.mu[j] = fds_mu(p, j);
		if (!(s.mu[j] > 0) || !(p->demand[j] > 0)) {
			ret = -EINVAL;
			goto out;
		}
		s.cap[j] = p->demand[j] * s.mu[j];
		/* a cap that no allocation reaches is none */
		if (s.cap[j] > 2)
			s.cap[j] = INFINITY;
		s.low[j] = fds_floor(p, j) * s.mu[j];
		for (size_t i = 0; i < p->m; i++)
			s.a[i * p->n + j] = fds_need(p, i, j) /
				(p->capacity[i] * s.mu[j]);
	}
	if (!inside(&s)) {
		ret = -ERANGE;
		goto out;
	}

	t_end = (double)bounds / FDS_BARRIER_GAP;
	for (double t = (double)bounds; t < t_end; t *= 20)
		maximise(&s, t);
	maximise(&s, t_end);

	for (size_t j = 0; j < p->n; j++)
		x[j] = s.y[j] / s.mu[j];
	for (size_t i = 0; i < p->m; i++) {
		double slack = 1;

		for (size_t j = 0; j < p->n; j++)
			slack -= s.a[i * p->n + j] * s.y[j];
		price[i] = 1 / (t_end * slack);
	}
out:
	free(mem);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The maximum of f, by the few unknowns that it hangs on. Pure.
 *
 * In dominant shares y, with a = |1 + lambda - 1 / beta| and b = |1 - beta| / beta,
 * log |f| is up to its sign
 *
 *	F(y) = a log S1 + b log M,   M = S2^(1 / (1 - beta)),
 *
 * with S1 = sum_j y_j and S2 = sum_j w_j^beta y_j^(1 - beta): concave for all parameters
 * that fds_param_check() lets pass, as M is (it is a weighted mean of y). At the
 * maximum there are prices p_i >= 0, one per capacity, such that
 *
 *	y_j = clamp(w_j q_j^(-1 / beta), low_j, high_j)
 *	q_j = sum_i p_i A_ij - alpha,   alpha = a S2 / (b S1)
 *
 * and p_i is above 0 only where sum_j A_ij y_j = 1. So there are m + 1 unknowns,
 * whatever n is. For a fixed alpha, y maximises
 *
 *	sum_j alpha y_j + w_j^beta y_j^(1 - beta) / (1 - beta)
 *
 * and p minimises this problem's dual function, which is convex, by Newton steps
 * (solve_prices()); alpha is the root of a function of its own, again by Newton
 * steps, within a bracket (solve_alpha()). At the default parameters a is 0.
 *
 * The result is made feasible to the last digit and then judged: for any
 * feasible y and any p >= 0, no feasible allocation has an F above
 *
 *	F(y) + sum_i p_i + sum_j max(low_j <= z <= high_j) (F'_j - q_j) z - F' y
 *
 * (linear programming duality on the tangent plane of F). Where this leaves more
 * than FDS_GAP, a barrier method, which is slow, finds another start (help()).
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fds.h"
#include "fds_barrier.h"

#define STEPS		60	/* of Newton for the prices, at most */
#define ROOT_STEPS	60	/* for alpha, at most */
#define MOVE_STEPS	100	/* from one alpha to another, at most */
#define LINE_STEPS	8
#define EXACT		1e-14	/* of a capacity: as good as used up */
#define ROUNDING	1e-9	/* of a capacity: may be all that is left */
#define ROOT_EXACT	1e-12	/* relative change of alpha that ends it */
#define PIVOT		1e-13	/* of a diagonal element, at least */
#define SLOWEST		0.05	/* share of alpha's error in what y says of it */
#define SCALINGS	2	/* of the first prices */
#define CORRECTIONS	2	/* of y for rounding of q */
#define KEEP		0.1	/* of a task's q in one step */
#define FAR		10	/* of the highest price, in one step */
#define RAISE		1e-6	/* of prices, at most, to prove a result */
#define BESIDE_STEPS	100	/* for what engines leave of the CPUs, at most */
#define BESIDE_EXACT	1e-9	/* relative error of that which ends it */
#define BESIDE_MIN	0.1	/* CPUs that engines always leave */
#define LOW_MIN		1e-12	/* of its weight's share: y > 0 */

struct best {
	size_t n, m;
	double beta, a, b;
	double alpha;
	double p[MGPU_MAX_RES];
	const double *need;	/* A, m rows of n */
	const double *low, *high;
	const double *weight;	/* over the mean */
	double *y;
	/* what pass() adds up */
	double use[MGPU_MAX_RES];
	double h[MGPU_MAX_RES][MGPU_MAX_RES];
	double v[MGPU_MAX_RES];	/* sum of A_ij d_j */
	double d, d_q;		/* sums of d_j and of d_j q_j */
	double s1, s2;
};

/*
 * A pass over the tasks: y at the prices, its use of the capacities, and its derivative.
 * d_j = -dy_j / dq_j, 0 for a task at a bound. The loops are kept free of
 * branches, so that they become vector code.
 */
#define TASK(root)							\
	double y, d, inside;						\
									\
	q = q > 0 ? q : 0;						\
	y = s->weight[j] * (root);					\
	inside = y > s->low[j] && y < s->high[j] ? 1.0 : 0.0;		\
	y = y > s->low[j] ? y : s->low[j];				\
	y = y < s->high[j] ? y : s->high[j];				\
	d = inside * y / (s->beta * (q > 0 ? q : 1));			\
	s->y[j] = y

/* The common case, two capacities and the default parameters. */
static void pass_default(struct best *s)
{
	const double *a0 = s->need, *a1 = s->need + s->n;
	double p0 = s->p[0], p1 = s->p[1];
	double u0 = 0, u1 = 0, h00 = 0, h01 = 0, h11 = 0;

	_Pragma("omp simd reduction(+:u0, u1, h00, h01, h11)")
	for (size_t j = 0; j < s->n; j++) {
		double q = p0 * a0[j] + p1 * a1[j];

		TASK(1 / sqrt(q));
		u0 += a0[j] * y;
		u1 += a1[j] * y;
		h00 += a0[j] * a0[j] * d;
		h01 += a0[j] * a1[j] * d;
		h11 += a1[j] * a1[j] * d;
	}
	s->use[0] = u0;
	s->use[1] = u1;
	s->h[0][0] = h00;
	s->h[0][1] = s->h[1][0] = h01;
	s->h[1][1] = h11;
}

static void pass_any(struct best *s)
{
	double power = -1 / s->beta;

	memset(s->use, 0, sizeof(s->use));
	memset(s->h, 0, sizeof(s->h));
	memset(s->v, 0, sizeof(s->v));
	s->d = s->d_q = s->s1 = s->s2 = 0;
	for (size_t j = 0; j < s->n; j++) {
		double q = -s->alpha;

		for (size_t i = 0; i < s->m; i++)
			q += s->p[i] * s->need[i * s->n + j];
		TASK(s->beta == 2 ? 1 / sqrt(q) : pow(q, power));
		s->s1 += y;
		if (s->a > 0)
			s->s2 += y * (inside > 0 ? q :
				      fds_inverse_power(y / s->weight[j], s->beta));
		s->d += d;
		s->d_q += d * q;
		for (size_t i = 0; i < s->m; i++) {
			double ai = s->need[i * s->n + j];

			s->use[i] += ai * y;
			s->v[i] += ai * d;
			for (size_t k = 0; k <= i; k++)
				s->h[i][k] += ai * d * s->need[k * s->n + j];
		}
	}
	for (size_t i = 0; i < s->m; i++)
		for (size_t k = i + 1; k < s->m; k++)
			s->h[i][k] = s->h[k][i];
}

static void pass(struct best *s)
{
	if (s->m == 2 && s->beta == 2 && s->a == 0)
		pass_default(s);
	else
		pass_any(s);
}

/*
 * Solve h x = r for the capacities in @on by Cholesky's method; one that no free
 * task uses gets x = 0. Where the free tasks cannot tell capacities apart, h is
 * singular; a least pivot makes x large there and leaves its sign right.
 */
static void solve(const struct best *s, const bool *on, const double *r, double *x)
{
	double l[MGPU_MAX_RES][MGPU_MAX_RES] = { 0 };
	size_t at[MGPU_MAX_RES], k = 0;

	for (size_t i = 0; i < s->m; i++) {
		double d = s->h[i][i];

		x[i] = 0;
		if (!on[i])
			continue;
		for (size_t c = 0; c < k; c++) {
			double v = s->h[i][at[c]];

			for (size_t t = 0; t < c; t++)
				v -= l[k][t] * l[c][t];
			l[k][c] = v / l[c][c];
			d -= l[k][c] * l[k][c];
		}
		if (!(s->h[i][i] > 0))
			continue;
		l[k][k] = sqrt(fmax(d, PIVOT * s->h[i][i]));
		at[k++] = i;
	}
	for (size_t c = 0; c < k; c++) {
		double v = r[at[c]];

		for (size_t t = 0; t < c; t++)
			v -= l[c][t] * x[at[t]];
		x[at[c]] = v / l[c][c];
	}
	for (size_t c = k; c-- > 0;) {
		double v = x[at[c]];

		for (size_t t = c + 1; t < k; t++)
			v -= l[t][c] * x[at[t]];
		x[at[c]] = v / l[c][c];
	}
}

/*
 * How far use is from what the price of i says: used up where it is above 0, not
 * exceeded where it is 0. The effect of q's rounding on y cannot be mended; it is
 * large where alpha is large against q.
 */
static double wrong(const struct best *s, size_t i)
{
	double over = s->use[i] - 1;
	double off = s->p[i] > 0 ? fabs(over) : fmax(over, 0);

	return off > EXACT + 8 * DBL_EPSILON * s->alpha * s->v[i] ? off : 0;
}

/*
 * A Newton step: from p to the minimum of the quadratic model over prices >= 0,
 * by Lawson and Hanson's method for such problems ("Solving Least Squares
 * Problems", chapter 23). Where no free task answers to a price, h has nothing
 * to say of it: it goes up a bit, or to 0.
 */
static void newton(const struct best *s, const double *over, double *step)
{
	double to[MGPU_MAX_RES], c[MGPU_MAX_RES], z[MGPU_MAX_RES];
	double most = 0, longest = 0;
	bool on[MGPU_MAX_RES];

	for (size_t i = 0; i < s->m; i++) {
		most = fmax(most, s->p[i]);
		to[i] = s->p[i];
		on[i] = to[i] > 0;
		c[i] = over[i];
		for (size_t k = 0; k < s->m; k++)
			c[i] += s->h[i][k] * s->p[k];
	}
	for (size_t round = 0; round < 4 * s->m; round++) {
		double part = 1, best_gain = 0;
		size_t best_i = s->m, out = s->m;

		solve(s, on, c, z);
		for (size_t i = 0; i < s->m; i++) {
			if (!on[i])
				continue;
			if (!(s->h[i][i] > 0))
				z[i] = fabs(over[i]) <= EXACT ? s->p[i] :
					over[i] > 0 ? most + s->p[i] + 1 : 0;
			if (z[i] <= 0) {
				double far = to[i] > 0 ? to[i] / (to[i] - z[i]) : 0;

				if (far <= part) {
					part = far;
					out = i;
				}
			}
		}
		for (size_t i = 0; i < s->m; i++)
			if (on[i])
				to[i] += part * (z[i] - to[i]);
		if (out < s->m) {
			to[out] = 0;
			on[out] = false;
			continue;
		}
		/* the one at 0 that would gain most by a price */
		for (size_t i = 0; i < s->m; i++) {
			double gain = c[i];

			for (size_t k = 0; k < s->m; k++)
				gain -= s->h[i][k] * to[k];
			if (!on[i] && gain > best_gain) {
				best_gain = gain;
				best_i = i;
			}
		}
		if (!(best_gain > EXACT))
			break;
		on[best_i] = true;
	}
	for (size_t i = 0; i < s->m; i++) {
		step[i] = to[i] - s->p[i];
		longest = fmax(longest, fabs(step[i]));
	}
	most = FAR * (most + 1);
	if (longest > most)
		for (size_t i = 0; i < s->m; i++)
			step[i] *= most / longest;
}

/*
 * How far a step may go, 1 at most, before a task that is not at its upper bound
 * has lost nearly all of its q: below 0 it would jump there, and a step is made
 * for what is smooth.
 */
static double reach(const struct best *s, const double *step, double alpha_step)
{
	double most = 1;

	for (size_t j = 0; j < s->n; j++) {
		double q = -s->alpha, change = -alpha_step;

		for (size_t i = 0; i < s->m; i++) {
			q += s->p[i] * s->need[i * s->n + j];
			change += step[i] * s->need[i * s->n + j];
		}
		if (s->y[j] < s->high[j] && q + most * change < KEEP * q)
			most = (1 - KEEP) * q / -change;
	}
	return most;
}

/*
 * Where alpha is large, q is the small difference of large numbers for the few
 * tasks that fill the capacities up, and what it loses to rounding shows in use.
 * Take that out of y itself, along the direction of a last Newton step.
 */
static void correct(struct best *s)
{
	for (unsigned int k = 0; k < CORRECTIONS; k++) {
		double over[MGPU_MAX_RES], step[MGPU_MAX_RES];
		bool on[MGPU_MAX_RES];

		for (size_t i = 0; i < s->m; i++) {
			over[i] = s->use[i] - 1;
			on[i] = s->p[i] > 0 || over[i] > 0;
		}
		solve(s, on, over, step);
		memset(s->use, 0, sizeof(s->use));
		s->s1 = s->s2 = 0;
		for (size_t j = 0; j < s->n; j++) {
			double q = -s->alpha, change = 0, y = s->y[j];

			for (size_t i = 0; i < s->m; i++) {
				q += s->p[i] * s->need[i * s->n + j];
				change += step[i] * s->need[i * s->n + j];
			}
			if (y > s->low[j] && y < s->high[j] && q > 0) {
				y -= fmax(fmin(change / (s->beta * q), 0.5), -0.5) * y;
				y = fmin(fmax(y, s->low[j]), s->high[j]);
			}
			s->y[j] = y;
			s->s1 += y;
			s->s2 += y * fds_inverse_power(y / s->weight[j], s->beta);
			for (size_t i = 0; i < s->m; i++)
				s->use[i] += s->need[i * s->n + j] * y;
		}
	}
}

/*
 * The prices for a fixed alpha: projected Newton steps on the dual function,
 * whose gradient is 1 - use. It is convex, so where the slope along the step is
 * still negative at its end, the step was none too many; else the secant tells
 * how far to go.
 */
static bool solve_prices(struct best *s)
{
	double last = INFINITY;

	pass(s);
	for (unsigned int k = 0; k < STEPS; k++) {
		double step[MGPU_MAX_RES], old[MGPU_MAX_RES], over[MGPU_MAX_RES];
		double slope = 0, worst = 0, length = 1;

		for (size_t i = 0; i < s->m; i++) {
			over[i] = s->use[i] - 1;
			worst = fmax(worst, wrong(s, i));
		}
		/* rounding is all that is left when it gets no better any more */
		if (!(worst > 0) || (worst < ROUNDING && worst >= last / 2))
			return true;
		last = worst;
		memcpy(old, s->p, sizeof(old));
		newton(s, over, step);
		for (size_t i = 0; i < s->m; i++)
			slope -= over[i] * step[i];
		if (!(slope < 0))
			return worst < ROUNDING;
		if (s->alpha > 0)
			length = reach(s, step, 0);
		for (unsigned int t = 0; t < LINE_STEPS; t++) {
			double end = 0;

			for (size_t i = 0; i < s->m; i++)
				s->p[i] = fmax(old[i] + length * step[i], 0);
			pass(s);
			for (size_t i = 0; i < s->m; i++)
				end += (1 - s->use[i]) * step[i];
			if (end <= 0.5 * fabs(slope))
				break;
			length *= fmin(fmax(slope / (slope - end), 0.1), 0.7);
		}
	}
	return false;
}

/*
 * alpha as y has it; how that changes with alpha, and how the prices do. Where
 * only d_j and q_j are at hand: dp = h^-1 v on the capacities in use, and
 * dy = d (1 - A dp).
 */
static double next_alpha(const struct best *s, double *change, double *dp)
{
	bool on[MGPU_MAX_RES] = { false };
	double ds1, ds2;

	for (size_t i = 0; i < s->m; i++)
		on[i] = s->p[i] > 0;
	solve(s, on, s->v, dp);
	ds1 = s->d;
	for (size_t i = 0; i < s->m; i++)
		ds1 -= s->v[i] * dp[i];
	/* dS2 = (1 - beta) sum_j q_j dy_j */
	ds2 = s->d_q;
	for (size_t i = 0; i < s->m; i++) {
		double qwa = -s->alpha * s->v[i];

		for (size_t k = 0; k < s->m; k++)
			qwa += s->p[k] * s->h[i][k];
		ds2 -= qwa * dp[i];
	}
	ds2 *= 1 - s->beta;
	*change = s->a / s->b * (ds2 * s->s1 - s->s2 * ds1) / (s->s1 * s->s1);
	return s->a / s->b * s->s2 / s->s1;
}

/*
 * From the solution for one alpha to that for another. The nearer the prices are
 * to begin with, the surer it is that they are found: where they are not, in
 * smaller steps.
 */
static bool move_alpha(struct best *s, double alpha)
{
	double part = 1;

	for (unsigned int k = 0; k < MOVE_STEPS && s->alpha != alpha; k++) {
		double from = s->alpha, p[MGPU_MAX_RES], dp[MGPU_MAX_RES], change, far;

		memcpy(p, s->p, sizeof(p));
		next_alpha(s, &change, dp);
		for (size_t i = 0; i < s->m; i++)
			dp[i] *= alpha - from;
		far = fmin(part, reach(s, dp, alpha - from));
		s->alpha = far < 1 ? from + far * (alpha - from) : alpha;
		for (size_t i = 0; i < s->m; i++)
			s->p[i] = fmax(p[i] + far * dp[i], 0);
		if (solve_prices(s)) {
			part = fmin(4 * part, 1);
			continue;
		}
		part = far / 4;
		s->alpha = from;
		memcpy(s->p, p, sizeof(p));
		pass(s);
	}
	return s->alpha == alpha;
}

static bool solve_alpha(struct best *s)
{
	double low = 0, high = INFINITY;

	if (!solve_prices(s))
		return false;
	if (!(s->a > 0))
		return true;
	for (unsigned int k = 0; k < ROOT_STEPS; k++) {
		double to, change, next, dp[MGPU_MAX_RES];

		correct(s);
		to = next_alpha(s, &change, dp);
		if (!(to > 0) || !isfinite(to))
			return false;
		if (fabs(to - s->alpha) <= ROOT_EXACT * to)
			return true;
		if (s->alpha < to)
			low = fmax(low, s->alpha);
		else
			high = fmin(high, s->alpha);
		next = s->alpha + (to - s->alpha) / fmax(1 - change, SLOWEST);
		if (!(next > low && next < high))
			next = isfinite(high) ? (low + high) / 2 : to;
		if (!(next > low && next < high) || next == s->alpha)
			return true;	/* the bracket has no room left */
		if (!move_alpha(s, next))
			return false;
	}
	return false;
}

/* Take the excess that rounding in solve_prices() leaves off the part above @low. */
static void make_feasible(struct best *s)
{
	double part = 1;

	for (size_t i = 0; i < s->m; i++) {
		const double *a = s->need + i * s->n;
		double all = 0, least = 0;

		for (size_t j = 0; j < s->n; j++) {
			all += a[j] * s->y[j];
			least += a[j] * s->low[j];
		}
		if (all > 1)
			part = fmin(part, all > least ? (1 - least) / (all - least) : 0);
	}
	if (part < 1)
		for (size_t j = 0; j < s->n; j++)
			s->y[j] = s->low[j] + fmax(part, 0) * (s->y[j] - s->low[j]);
}

/* F' of one task over what its needs cost at the prices. */
static double slope(const struct best *s, double y, double scale, double alpha,
		    size_t j, double *cost)
{
	*cost = 0;
	for (size_t i = 0; i < s->m; i++)
		*cost += s->p[i] * s->need[i * s->n + j];
	*cost *= scale;
	return alpha + scale * fds_inverse_power(y / s->weight[j], s->beta);
}

/*
 * How much F could still rise. The bound holds for any prices: all are raised by
 * what makes no task below its bound look worth more, which is rounding where
 * they are right, and would count n times.
 */
static double gap(const struct best *s)
{
	double sum, scale, alpha, raise = 1, cost, worth;
	double s1 = 0, s2 = 0;

	for (size_t j = 0; j < s->n; j++) {
		s1 += s->y[j];
		s2 += s->y[j] * fds_inverse_power(s->y[j] / s->weight[j], s->beta);
	}
	scale = s->b / s2;
	alpha = s->a / s1;
	for (size_t j = 0; j < s->n; j++) {
		worth = slope(s, s->y[j], scale, alpha, j, &cost);
		if (worth < cost * (1 + RAISE))
			raise = fmax(raise, worth / cost);
	}
	sum = -(s->a + s->b);	/* F' y */
	for (size_t i = 0; i < s->m; i++)
		sum += scale * raise * s->p[i];
	for (size_t j = 0; j < s->n; j++) {
		worth = slope(s, s->y[j], scale, alpha, j, &cost) - raise * cost;
		sum += worth * (worth > 0 ? s->high[j] : s->low[j]);
	}
	return fmax(sum, 0);
}

/* The result is in y; into x with it if it is better than what is there. */
static void keep(struct best *s, const double *mu, double *x, double *left)
{
	double g;

	make_feasible(s);
	g = gap(s);
	if (!(g < *left))
		return;
	*left = g;
	for (size_t j = 0; j < s->n; j++)
		x[j] = s->y[j] / mu[j];
}

static void start(struct best *s, const double *price)
{
	bool known = false;

	s->alpha = 0;
	for (size_t i = 0; i < s->m; i++) {
		s->p[i] = price && price[i] > 0 && isfinite(price[i]) ? price[i] : 0;
		known |= s->p[i] > 0;
	}
	if (known)
		return;
	/* n tasks of equal weight that need only this would pay n^beta */
	for (size_t i = 0; i < s->m; i++) {
		double sum = 0;

		for (size_t j = 0; j < s->n; j++)
			sum += s->need[i * s->n + j] * s->weight[j];
		s->p[i] = pow(sum, s->beta);
	}
	/* y is of degree -1/beta in p: all prices so that one capacity is used up */
	for (unsigned int k = 0; k < SCALINGS; k++) {
		double most = 0;

		pass(s);
		for (size_t i = 0; i < s->m; i++)
			most = fmax(most, s->use[i]);
		most = pow(most, s->beta);
		for (size_t i = 0; i < s->m; i++)
			s->p[i] *= most;
	}
}

/* Where Newton's method needs a start nearer to the end. */
static void help(const struct fds_problem *p, struct best *s, const double *mu,
		 double *x, double *left)
{
	double *y = malloc(s->n * sizeof(*y)), s1, s2;

	if (y && !fds_barrier(p, y, s->p)) {
		for (size_t j = 0; j < s->n; j++)
			s->y[j] = fmin(fmax(y[j] * mu[j], s->low[j]), s->high[j]);
		fds_sums(&p->param, s->n, s->weight, s->y, &s1, &s2);
		for (size_t i = 0; i < s->m; i++)
			s->p[i] *= s2 / s->b;
		keep(s, mu, x, left);
		s->alpha = s->a * s2 / (s->b * s1);
		solve_alpha(s);
		keep(s, mu, x, left);
	}
	free(y);
}

int fds_best_from(const struct fds_problem *p, double *price, double *x, double *left)
{
	double beta = p->param.beta, *mem, *need, *mu, *low, *high, *weight, mean;
	struct best s = { .n = p->n, .m = p->m, .beta = beta };
	size_t n = p->n;
	int ret = 0;

	if (!n || p->m <= p->bounds || p->m > MGPU_MAX_RES || fds_param_check(&p->param) ||
	    !fds_weights_valid(p))
		return -EINVAL;
	mem = malloc(n * (5 + p->m) * sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	s.y = mem;
	mu = mem + n;
	s.low = low = mem + 2 * n;
	s.high = high = mem + 3 * n;
	s.weight = weight = mem + 4 * n;
	s.need = need = mem + 5 * n;
	s.b = fabs(1 - beta) / beta;
	s.a = fabs(1 + p->param.lambda - 1 / beta);
	if (s.a < 1e-9)
		s.a = 0;

	mean = fds_mean_weight(n, p->weight);
	for (size_t j = 0; j < n; j++) {
		mu[j] = 0;
		weight[j] = fds_weight(p, j) / mean;
	}
	for (size_t i = 0; i < p->m; i++) {
		double per = 1 / p->capacity[i];

		for (size_t j = 0; j < n; j++) {
			double share = fds_need(p, i, j) * per;

			need[i * n + j] = share;
			if (i < p->m - p->bounds)
				mu[j] = share > mu[j] ? share : mu[j];
		}
	}
	for (size_t j = 0; j < n; j++) {
		double one = 1 / mu[j], cap = p->demand[j] * mu[j];

		if (!(mu[j] > 0) || !(one > 0) || !(p->demand[j] > 0))
			ret = -EINVAL;
		for (size_t i = 0; i < p->m; i++)
			need[i * n + j] *= one;
		/* alone on the machine, it would have 1 */
		high[j] = cap < 1 ? cap : 1;
		low[j] = fmin(fmax(fds_floor(p, j) * mu[j],
				   LOW_MIN * weight[j] / (double)n), high[j]);
	}
	if (ret)
		goto out;

	*left = INFINITY;
	start(&s, price);
	solve_alpha(&s);
	keep(&s, mu, x, left);
	if (!(*left <= FDS_GAP))
		help(p, &s, mu, x, left);
	if (!isfinite(*left))
		ret = -ERANGE;
	if (price)
		memcpy(price, s.p, p->m * sizeof(*price));
out:
	free(mem);
	return ret;
}

int fds_best(const struct fds_problem *p, double *x)
{
	double left;

	return fds_best_from(p, NULL, x, &left);
}

int fds_best_beside_engines(const struct fds_problem *p, double *capacity,
			    const bool *on_cpus, double cpus, double *x)
{
	double price[MGPU_MAX_RES] = { 0 }, low = BESIDE_MIN, high = fmax(cpus, BESIDE_MIN);
	double before = 0, before_over = 0, left;
	bool any = false;

	for (size_t i = 1; i < p->m; i++)
		any |= on_cpus[i];
	/* the root of what is left over, by secants in a bracket that every third step halves */
	for (unsigned int k = 0;; k++) {
		int ret = fds_best_from(p, price, x, &left);
		double engines = 0, at = capacity[0], over, next;

		if (ret || !any || k == BESIDE_STEPS)
			return ret;
		for (size_t i = 1; i < p->m; i++)
			for (size_t j = 0; on_cpus[i] && j < p->n; j++)
				engines += fds_need(p, i, j) * x[j];
		over = fmax(cpus - engines, BESIDE_MIN) - at;
		if (fabs(over) <= BESIDE_EXACT * at)
			return 0;
		if (over > 0)
			low = fmax(low, at);
		else
			high = fmin(high, at);
		next = k ? at - over * (at - before) / (over - before_over) : at + over / 2;
		if (k % 3 == 2 || !(next > low && next < high))
			next = (low + high) / 2;
		before = at;
		before_over = over;
		capacity[0] = next;
	}
}

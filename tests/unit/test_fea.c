// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fairness on dominant shares and its allocators: facts about f, the exact
 * optimum against other ways to find it, and how close the iteration comes.
 */
#include <stdlib.h>

#include "fea.h"
#include "tap.h"

#define MAX_N	32
#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static const struct fds_param standard = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT };

static const struct fds_param params[] = {
	{ 2, -0.5 }, { 2, -1 }, { 3, -0.7 }, { 1.5, -0.4 }, { 5, -2 },
	{ 0.5, 1 }, { 0.5, 1.5 }, { 0.8, 0.25 },
};

struct instance {
	double need[2 * MAX_N];
	double capacity[2];
	double demand[MAX_N];
	double rate[MAX_N];
	double weight[MAX_N];
	struct fds_problem p;
};

/* The repeatable source of all random problems. */
static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

static double spread(double from, double to)
{
	return from * pow(to / from, uniform());
}

/*
 * CPUs from 1 to 8, one or two engines, frames that cost from 0.5 to 50 ms of
 * each, and rates as a machine without any control might have: everything in
 * use, somehow shared. @demand: of some tasks, below or above these rates.
 */
static void make(struct instance *in, size_t n, bool demand)
{
	double most = 0;

	in->capacity[0] = 1 + 7 * uniform();
	in->capacity[1] = uniform() < 0.7 ? 1 : 2;
	for (size_t j = 0; j < n; j++) {
		in->need[j] = spread(5e-4, 5e-2);
		in->need[n + j] = spread(5e-4, 5e-2);
		in->demand[j] = INFINITY;
		in->rate[j] = spread(1, 20);
	}
	for (size_t i = 0; i < 2; i++) {
		double use = 0;

		for (size_t j = 0; j < n; j++)
			use += in->need[i * n + j] * in->rate[j];
		most = fmax(most, use / in->capacity[i]);
	}
	for (size_t j = 0; j < n; j++) {
		in->rate[j] /= most;
		if (demand && uniform() < 0.4)
			in->demand[j] = in->rate[j] * (0.5 + uniform());
	}
	in->p = (struct fds_problem){
		.n = n, .m = 2, .need = in->need, .capacity = in->capacity,
		.demand = in->demand, .param = standard,
	};
}

/* Weights from 1 to @most. */
static void weigh(struct instance *in, double most)
{
	for (size_t j = 0; j < in->p.n; j++)
		in->weight[j] = spread(1, most);
	in->p.weight = in->weight;
}

static double value(const struct fds_problem *p, const double *x)
{
	double y[MAX_N];

	for (size_t j = 0; j < p->n; j++)
		y[j] = fds_mu(p, j) * x[j];
	return fds_value(&p->param, p->n, p->weight, y);
}

/* ---- f ---- */

static void scaling(void)
{
	for (size_t k = 0; k < NR(params); k++) {
		double y[] = { 0.11, 0.03, 0.27, 0.2 }, z[4], c = 1.7;

		for (size_t j = 0; j < 4; j++)
			z[j] = c * y[j];
		TAP_NEAR(fds_value(&params[k], 4, NULL, z) / fds_value(&params[k], 4, NULL, y),
			 pow(c, params[k].lambda), 1e-12);
	}
}

/* f as it is defined, not as it is computed */
static double by_definition(const struct fds_param *q, size_t n, const double *weight,
			    const double *y)
{
	double s1 = 0, sum = 0, weights = 0;

	for (size_t j = 0; j < n; j++) {
		s1 += y[j];
		weights += weight ? weight[j] : 1;
	}
	for (size_t j = 0; j < n; j++) {
		double w = (double)n * (weight ? weight[j] : 1) / weights;

		sum += w * pow(y[j] / w / s1, 1 - q->beta);
	}
	return (q->beta > 1 ? -1 : 1) * pow(sum, 1 / q->beta) * pow(s1, q->lambda);
}

static void definition(void)
{
	double y[5], w[5];

	seed = 3;
	for (unsigned int k = 0; k < 500; k++) {
		const struct fds_param *q = &params[k % NR(params)];
		const double *weight = k & 1 ? w : NULL;
		double want;

		for (size_t j = 0; j < NR(y); j++) {
			y[j] = spread(0.001, 1);
			w[j] = spread(1, 10000);
		}
		want = by_definition(q, NR(y), weight, y);
		TAP_NEAR(fds_value(q, NR(y), weight, y), want, 1e-10 * fabs(want));
	}
}

static void gradient(void)
{
	double y[5], w[5], up[5], down[5], grad[5];

	seed = 5;
	for (unsigned int k = 0; k < 500; k++) {
		const struct fds_param *q = &params[k % NR(params)];
		const double *weight = k & 1 ? w : NULL;

		for (size_t j = 0; j < NR(y); j++) {
			y[j] = spread(0.01, 1);
			w[j] = spread(1, 30);
		}
		TAP_NEAR(fds_gradient(q, NR(y), weight, y, grad),
			 fds_value(q, NR(y), weight, y), 0);
		for (size_t j = 0; j < NR(y); j++) {
			double h = 1e-5 * y[j], slope;

			memcpy(up, y, sizeof(y));
			memcpy(down, y, sizeof(y));
			up[j] += h;
			down[j] -= h;
			slope = (fds_value(q, NR(y), weight, up) -
				 fds_value(q, NR(y), weight, down)) / (2 * h);
			TAP_NEAR(grad[j], slope, 1e-6 * (fabs(slope) + 1));
			/* more for anyone is better */
			TAP_CHECK(grad[j] > 0);
		}
	}
}

/*
 * A task of weight k counts as k tasks of weight 1 that have a k-th of its share each,
 * but for the number of tasks: f = -n for a shared bottleneck at any weights.
 */
static void replication(void)
{
	for (size_t k = 0; k < NR(params); k++) {
		const struct fds_param *q = &params[k];
		double y[] = { 0.1, 0.24, 0.33 }, w[] = { 1, 2, 3 };
		double each[] = { 0.1, 0.12, 0.12, 0.11, 0.11, 0.11 };
		double f = fds_value(q, 6, NULL, each);

		/* weights over their mean: 6 tasks become 3, and S2 changes by 2^-beta */
		TAP_NEAR(fds_value(q, 3, w, y), f / 2, 1e-12 * fabs(f));
	}
}

/* Equal weights of any size change nothing, not even the last digit. */
static void equal_weights(void)
{
	struct instance in;
	double x[MAX_N], w[MAX_N];

	seed = 7;
	for (unsigned int k = 0; k < 200; k++) {
		static const double sizes[] = { 1, 100, 10000, 7 };
		struct alloc_state state[2] = { 0 };
		double plain[2][MAX_N], y[MAX_N], grad[2][MAX_N];
		size_t n = 1 + k % MAX_N;

		make(&in, n, k & 1);
		in.p.param = params[k % NR(params)];
		for (size_t j = 0; j < n; j++) {
			in.weight[j] = sizes[k % NR(sizes)];
			y[j] = in.rate[j] * fds_mu(&in.p, j);
		}
		memcpy(w, in.weight, sizeof(w));
		TAP_CHECK(fds_value(&in.p.param, n, NULL, y) ==
			  fds_value(&in.p.param, n, w, y));
		fds_gradient(&in.p.param, n, NULL, y, grad[0]);
		fds_gradient(&in.p.param, n, w, y, grad[1]);
		TAP_CHECK(!memcmp(grad[0], grad[1], n * sizeof(*y)));
		for (unsigned int i = 0; i < 2; i++) {
			in.p.weight = i ? in.weight : NULL;
			TAP_EQ(fds_best(&in.p, i ? x : plain[0]), 0);
			if (!i)
				memcpy(plain[1], in.rate, sizeof(in.rate));
			else
				memcpy(w, in.rate, sizeof(in.rate));
			TAP_EQ(alloc_fea.allocate(&state[i], &in.p, 30, i ? w : plain[1]), 0);
		}
		TAP_CHECK(!memcmp(x, plain[0], n * sizeof(*x)));
		TAP_CHECK(!memcmp(w, plain[1], n * sizeof(*w)));
	}
}

static void known_values(void)
{
	double thirds[] = { 1.0 / 3, 1.0 / 3, 1.0 / 3 };
	double whole[] = { 1, 1, 1 };

	TAP_NEAR(fds_value(&standard, 3, NULL, thirds), -3, 1e-12);
	TAP_NEAR(fds_value(&standard, 3, NULL, whole), -sqrt(3), 1e-12);
}

static void parameters(void)
{
	static const struct fds_param bad[] = {
		{ 1, -0.5 }, { 2, 0 }, { 2, 0.5 }, { 2, -0.49 }, { 0.5, -1 },
		{ 0.5, 0.9 }, { 0, 1 }, { -1, 1 }, { NAN, -1 }, { 2, NAN },
		{ INFINITY, -1 }, { 2, -INFINITY }, { 1.005, -1 },
	};

	for (size_t k = 0; k < NR(params); k++)
		TAP_CHECK(!fds_param_check(&params[k]));
	for (size_t k = 0; k < NR(bad); k++)
		if (!TAP_CHECK(fds_param_check(&bad[k])))
			tap_diag("beta %g lambda %g", bad[k].beta, bad[k].lambda);
}

/* ---- the optimum ---- */

/*
 * An independent way, for the default parameters and two resources. Where
 * f = -sqrt(sum 1/y), y_j = min(cap_j, s / sqrt(q_j)) with q_j = p A_0j +
 * (1 - p) A_1j: two unknowns, the price's split p and the level s. For each p
 * the largest s that fits is found by bisection; over p, the best is searched.
 */
static double level(const struct instance *in, const double *q, double *x)
{
	const struct fds_problem *p = &in->p;
	double low = 0, high = 1e6;

	for (unsigned int k = 0; k < 90; k++) {
		double s = k ? (low + high) / 2 : high;
		bool fits = true;

		for (size_t j = 0; j < p->n; j++)
			x[j] = fmin(p->demand[j], s / sqrt(q[j]) / fds_mu(p, j));
		for (size_t i = 0; i < p->m; i++) {
			double use = 0;

			for (size_t j = 0; j < p->n; j++)
				use += fds_need(p, i, j) * x[j];
			fits &= use <= p->capacity[i];
		}
		if (fits)
			low = s;
		else
			high = s;
		if (fits && !k)
			break;	/* every demand is met */
	}
	for (size_t j = 0; j < p->n; j++)
		x[j] = fmin(p->demand[j], low / sqrt(q[j]) / fds_mu(p, j));
	return value(p, x);
}

static double at_price(const struct instance *in, double price)
{
	double q[MAX_N], x[MAX_N];

	for (size_t j = 0; j < in->p.n; j++) {
		double mu = fds_mu(&in->p, j);

		q[j] = price * fds_need(&in->p, 0, j) / in->p.capacity[0] / mu +
			(1 - price) * fds_need(&in->p, 1, j) / in->p.capacity[1] / mu;
	}
	return level(in, q, x);
}

static double reference(const struct instance *in)
{
	double low = 0, high = 1, best = -INFINITY, at = 0;

	/* the neighbours of the best of 40 prices, again and again */
	for (unsigned int k = 0; k < 14; k++) {
		double step = (high - low) / 40;

		for (unsigned int i = 0; i <= 40; i++) {
			double f = at_price(in, low + i * step);

			if (f > best) {
				best = f;
				at = low + i * step;
			}
		}
		low = fmax(at - step, 0);
		high = fmin(at + step, 1);
	}
	return best;
}

static void best_agrees(void)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 12, MAX_N };
	double x[MAX_N], worst = 0;
	struct instance in;

	seed = 11;
	for (unsigned int k = 0; k < tap_some(100, 300); k++) {
		double want, got;

		make(&in, sizes[k % NR(sizes)], k & 1);
		TAP_EQ(fds_best(&in.p, x), 0);
		TAP_CHECK(fds_feasible(&in.p, x, 1e-9));
		want = reference(&in);
		got = value(&in.p, x);
		worst = fmax(worst, fabs(got - want) / fabs(want));
		if (fabs(got - want) > 1e-6 * fabs(want))
			tap_diag("n %zu: %.9g against %.9g", in.p.n, got, want);
	}
	tap_diag("largest difference from the independent solution: %.1e", worst);
	TAP_CHECK(worst < 1e-6);
}

/* For other parameters: nothing feasible near it or far from it is better. */
static void best_is_best(void)
{
	double x[MAX_N], other[MAX_N], far[MAX_N];
	struct instance in;

	seed = 13;
	for (unsigned int k = 0; k < 200; k++) {
		double most;

		make(&in, 2 + k % 6, k & 1);
		in.p.param = params[k % NR(params)];
		TAP_NEED(!fds_best(&in.p, x));
		TAP_CHECK(fds_feasible(&in.p, x, 1e-9));
		most = value(&in.p, x);
		for (unsigned int r = 0; r < 200; r++) {
			double near = spread(1e-4, 1), scale = 1;

			/* a random feasible point, and one between it and x */
			for (size_t j = 0; j < in.p.n; j++)
				far[j] = fmin(spread(0.01, 100) * x[j],
					      in.p.demand[j]);
			for (size_t i = 0; i < 2; i++) {
				double use = 0;

				for (size_t j = 0; j < in.p.n; j++)
					use += fds_need(&in.p, i, j) * far[j];
				scale = fmin(scale, in.p.capacity[i] / use);
			}
			for (size_t j = 0; j < in.p.n; j++)
				other[j] = x[j] + near * (far[j] * scale - x[j]);
			TAP_CHECK(value(&in.p, other) <= most + 1e-7 * fabs(most));
		}
	}
}

static void one_bottleneck(void)
{
	/* three tasks that need the engine most; each gets a third of it */
	double need[] = { 0.002, 0.004, 0.001, 0.010, 0.020, 0.005 };
	double capacity[] = { 2, 1 }, none[] = { INFINITY, INFINITY, INFINITY };
	double weight[] = { 600, 300, 100 };
	struct fds_problem p = { 3, 2, need, capacity, none, NULL, NULL, standard, 0 };
	struct alloc_state state = { 0 };
	double x[3] = { 1, 1, 1 };

	TAP_NEED(!fds_best(&p, x));
	TAP_NEAR(value(&p, x), -3, 1e-8);
	for (size_t j = 0; j < 3; j++)
		TAP_NEAR(fds_mu(&p, j) * x[j], 1.0 / 3, 1e-6);

	x[0] = 90, x[1] = 2, x[2] = 3;
	TAP_EQ(alloc_fea.allocate(&state, &p, 200, x), 0);
	TAP_NEAR(value(&p, x), -3, 1e-6);

	/* by weight: 6, 3 and 1 tenths of it, which score the same */
	p.weight = weight;
	TAP_NEED(!fds_best(&p, x));
	TAP_NEAR(value(&p, x), -3, 1e-8);
	for (size_t j = 0; j < 3; j++)
		TAP_NEAR(fds_mu(&p, j) * x[j], weight[j] / 1000, 1e-6);
	x[0] = 90, x[1] = 2, x[2] = 3;
	TAP_EQ(alloc_fea.allocate(&state, &p, 200, x), 0);
	TAP_NEAR(value(&p, x), -3, 1e-6);
	for (size_t j = 0; j < 3; j++)
		TAP_NEAR(fds_mu(&p, j) * x[j], weight[j] / 1000, 1e-3);
}

static void complementary(void)
{
	double need[] = { 0.010, 0.001, 0.001, 0.010 }, capacity[] = { 1, 1 };
	double none[] = { INFINITY, INFINITY }, x[2];
	struct fds_problem p = { 2, 2, need, capacity, none, NULL, NULL, standard, 0 };

	TAP_NEED(!fds_best(&p, x));
	TAP_CHECK(value(&p, x) > -2 + 0.4);
}

/*
 * The theory of dominant shares promises at the default parameters: each
 * task has at least 1/n of its dominant resource, no task would rather have
 * another's share, and no capacity is left that anyone could use.
 */
static void promises(void)
{
	double x[MAX_N];
	struct instance in;

	seed = 17;
	for (unsigned int k = 0; k < 200; k++) {
		double left = INFINITY;

		make(&in, 2 + k % 8, false);
		TAP_NEED(!fds_best(&in.p, x));
		for (size_t j = 0; j < in.p.n; j++)
			TAP_CHECK(fds_mu(&in.p, j) * x[j] * (double)in.p.n > 1 - 1e-6);
		for (size_t i = 0; i < 2; i++) {
			double use = 0;

			for (size_t j = 0; j < in.p.n; j++)
				use += fds_need(&in.p, i, j) * x[j];
			left = fmin(left, 1 - use / in.p.capacity[i]);
		}
		TAP_CHECK(left < 1e-7);
		for (size_t j = 0; j < in.p.n; j++) {
			for (size_t o = 0; o < in.p.n; o++) {
				double with = INFINITY;

				for (size_t i = 0; i < 2; i++)
					with = fmin(with, x[o] *
						    fds_need(&in.p, i, o) /
						    fds_need(&in.p, i, j));
				TAP_CHECK(with <= x[j] * (1 + 1e-6));
			}
		}
	}
}

static void best_refuses(void)
{
	double need[] = { 0.01, 0, 0.01, 0 }, capacity[] = { 1, 1 };
	double none[] = { INFINITY, INFINITY }, x[2];
	struct fds_problem p = { 2, 2, need, capacity, none, NULL, NULL, standard, 0 };

	TAP_CHECK(fds_best(&p, x) < 0);		/* a task that needs nothing */
	p.n = 0;
	TAP_CHECK(fds_best(&p, x) < 0);
	p.n = 1;
	p.param.lambda = 1;
	TAP_CHECK(fds_best(&p, x) < 0);
}

/* ---- FEA ---- */

struct distance {
	double mean[3], worst[3];
	unsigned int infeasible, worse;
};

static const unsigned int stops[] = { 10, 100, 1000 };

/*
 * Follow the iteration on many problems; every iterate must be feasible. @weight: the
 * largest weight over the smallest.
 */
static void follow(size_t n, bool demand, double weight, unsigned int problems,
		   struct distance *d)
{
	struct instance in;

	memset(d, 0, sizeof(*d));
	for (unsigned int k = 0; k < problems; k++) {
		struct alloc_state state = { 0 };
		double x[MAX_N], best[MAX_N], most, last = -INFINITY;
		struct fea_problem *fp;
		unsigned int i = 0;

		make(&in, n, demand);
		if (weight > 1)
			weigh(&in, weight);
		TAP_NEED(!fds_best(&in.p, best));
		most = value(&in.p, best);
		fp = fea_problem_new(&in.p);
		TAP_NEED(fp);
		fea_start(fp, &state, in.rate);
		for (size_t s = 0; s < NR(stops); s++) {
			double off, now = 0;

			for (; i < stops[s]; i++) {
				fea_iterate(fp, &state);
				fea_result(fp, x);
				d->infeasible += !fds_feasible(&in.p, x, 1e-12);
				now = value(&in.p, x);
				d->worse += now < last - 1e-12 * fabs(now);
				last = now;
			}
			off = (most - now) / fabs(most);
			d->mean[s] += off / problems;
			d->worst[s] = fmax(d->worst[s], off);
		}
		fea_problem_free(fp);
	}
	tap_diag("n = %2zu, demand %-3s, weights 1:%g: mean distance %.4f %%, %.4f %%, %.4f %% after 10, 100, 1000 iterations; largest %.2f %%, %.2f %%, %.4f %%",
		 n, demand ? "yes" : "no", weight, 100 * d->mean[0], 100 * d->mean[1],
		 100 * d->mean[2], 100 * d->worst[0], 100 * d->worst[1],
		 100 * d->worst[2]);
}

static void converges(void)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 10, 30 };
	struct distance d;

	seed = 19;
	for (size_t k = 0; k < NR(sizes); k++) {
		follow(sizes[k], false, 1, tap_some(150, 400), &d);
		TAP_EQ(d.infeasible, 0);
		TAP_EQ(d.worse, 0);
		/* twice as good as the source's step in the source's units */
		TAP_CHECK(d.mean[0] < (sizes[k] <= 3 ? 0.0025 : 0.04));
		TAP_CHECK(d.mean[1] < (sizes[k] <= 3 ? 0.0003 : 0.003));
		TAP_CHECK(d.mean[2] < 0.00001);
	}
}

static void converges_demand(void)
{
	static const size_t sizes[] = { 2, 3, 10, 30 };
	struct distance d;

	seed = 23;
	for (size_t k = 0; k < NR(sizes); k++) {
		follow(sizes[k], true, 1, tap_some(150, 400), &d);
		TAP_EQ(d.infeasible, 0);
		TAP_EQ(d.worse, 0);
		TAP_CHECK(d.mean[0] < 0.04);
		TAP_CHECK(d.mean[2] < 0.0005);
	}
}

/* Weights as cgroups have them, and the extremes. */
static void converges_weights(void)
{
	static const size_t sizes[] = { 2, 3, 10, 30 };
	static const double ratios[] = { 4, 10, 100, 10000 };
	struct distance d;

	seed = 37;
	for (size_t k = 0; k < NR(sizes) * NR(ratios); k++) {
		follow(sizes[k % NR(sizes)], k & 1, ratios[k / NR(sizes)],
		       tap_some(60, 400), &d);
		TAP_EQ(d.infeasible, 0);
		TAP_EQ(d.worse, 0);
		/* single periods from a start without control: weights of 1:10 and less */
		if (ratios[k / NR(sizes)] <= 10)
			TAP_CHECK(d.mean[0] < 0.1);
		TAP_CHECK(d.mean[1] < (ratios[k / NR(sizes)] <= 100 ? 0.005 : 0.5));
		TAP_CHECK(d.mean[2] < (ratios[k / NR(sizes)] <= 100 ? 0.0001 : 0.1));
	}
}

/*
 * Costs drift by up to 5 % each period, and one task in ten changes over. Ten
 * iterations a period keep up, the step length passing from one to the next.
 */
static void tracks(void)
{
	struct alloc_state state = { 0 };
	double x[MAX_N], best[MAX_N], mean = 0;
	unsigned int periods = 600;
	struct instance in;

	seed = 29;
	make(&in, 3, false);
	memcpy(x, in.rate, sizeof(x));
	for (unsigned int k = 0; k < periods; k++) {
		for (size_t j = 0; j < 2 * in.p.n; j++)
			in.need[j] *= 0.95 + 0.1 * uniform();
		if (uniform() < 0.1) {
			size_t j = (size_t)(uniform() * 3);

			in.need[j] = spread(5e-4, 5e-2);
			in.need[3 + j] = spread(5e-4, 5e-2);
		}
		TAP_EQ(alloc_fea.allocate(&state, &in.p, 10, x), 0);
		TAP_CHECK(fds_feasible(&in.p, x, 1e-9));
		TAP_NEED(!fds_best(&in.p, best));
		mean += (value(&in.p, best) - value(&in.p, x)) /
			fabs(value(&in.p, best)) / periods;
	}
	tap_diag("mean distance while costs move: %.3f %%", 100 * mean);
	TAP_CHECK(mean < 0.005);
}

static void from_anywhere(void)
{
	static const double starts[] = { 1e-9, 1e-3, 1, 1e3, 1e9 };
	struct instance in;

	seed = 31;
	for (unsigned int k = 0; k < 100; k++) {
		double x[MAX_N], best[MAX_N];
		struct alloc_state state = { 0 };

		make(&in, 4, k & 1);
		for (size_t j = 0; j < 4; j++)
			x[j] = starts[(k + j) % NR(starts)];
		for (unsigned int r = 0; r < 40; r++) {
			struct fea_problem *fp = fea_problem_new(&in.p);

			TAP_NEED(fp);
			fea_start(fp, &state, x);
			for (unsigned int i = 0; i < 50; i++)
				fea_iterate(fp, &state);
			fea_result(fp, x);
			fea_problem_free(fp);
			TAP_CHECK(fds_feasible(&in.p, x, 1e-12));
		}
		TAP_NEED(!fds_best(&in.p, best));
		TAP_NEAR(value(&in.p, x), value(&in.p, best),
			 0.01 * fabs(value(&in.p, best)));
	}
}

static void others(void)
{
	double need[] = { 0.01, 0.02, 0.01, 0.02 }, capacity[] = { 1, 1 };
	double demand[] = { 5, INFINITY }, x[] = { 4, 500 };
	struct fds_problem p = { 2, 2, need, capacity, demand, NULL, NULL, standard, 0 };
	struct alloc_state state = { 0 };

	TAP_EQ(alloc_vgasa.allocate(&state, &p, 10, x), 0);
	TAP_NEAR(x[0], 30, 0);
	TAP_NEAR(x[1], 30, 0);
	TAP_CHECK(!alloc_none.allocate);
	TAP_CHECK(alloc_find("fea") == &alloc_fea);
	TAP_CHECK(alloc_find("vgasa") == &alloc_vgasa);
	TAP_CHECK(alloc_find("none") == &alloc_none);
	TAP_CHECK(!alloc_find("fea-printed"));
	TAP_CHECK(!alloc_find(""));
}

int main(void)
{
	tap_run(definition, "f follows its definition");
	tap_run(scaling, "f(c x) = c^lambda f(x)");
	tap_run(gradient, "the gradient agrees with finite differences and is positive");
	tap_run(replication, "a task of weight k counts as k tasks with a k-th of its share");
	tap_run(equal_weights, "equal weights of any size change no digit");
	tap_run(known_values, "three thirds score -3");
	tap_run(parameters, "parameters that would leave capacity unused are refused");
	tap_run(best_agrees, "the optimum agrees with an independent solution");
	tap_run(best_is_best, "no feasible rates are better than the optimum, other parameters too");
	tap_run(one_bottleneck, "three tasks on one bottleneck score -3, a third each");
	tap_run(complementary, "complementary tasks score better than -n");
	tap_run(promises, "the optimum gives equal shares, no envy and no idle capacity");
	tap_run(best_refuses, "an invalid problem has no optimum");
	tap_run(converges, "FEA: feasible at each iteration, never worse, to the optimum");
	tap_run(converges_demand, "FEA: the same with limited demand");
	tap_run(converges_weights, "FEA: the same with weights");
	tap_run(tracks, "FEA: ten iterations a period follow moving costs");
	tap_run(from_anywhere, "FEA: any start leads there");
	tap_run(others, "vGASA caps at 30, none sets nothing, unknown names are none");
	return tap_done();
}

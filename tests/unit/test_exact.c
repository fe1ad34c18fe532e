// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exact optimum: against Ipopt on random problems of all sizes, and the
 * properties that the theory promises (Joe-Wong, Sen, Lan, Chiang,
 * "Multi-resource allocation: fairness-efficiency tradeoffs in a unifying
 * framework", IEEE/ACM Transactions on Networking 21(6), 2013).
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc.h"
#include "fds_barrier.h"
#include "ipopt_fds.h"
#include "random_problem.h"
#include "tap.h"

/* Random problems that Ipopt solves, too: without MGPU_LONG a fifth of them. */
#define PROBLEMS	1000
#define BOUNDS		100
#define NR(a)		(sizeof(a) / sizeof((a)[0]))

/* Ipopt keeps what it allocated once, and so does the solver that it uses. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libipopt\nleak:libdmumps\nleak:libcoinmumps\nleak:libgomp\nleak:libopenblas\n";
}

static double value(const struct fds_problem *p, const double *x)
{
	double *y = calloc(p->n, sizeof(*y)), f;

	for (size_t j = 0; j < p->n; j++)
		y[j] = fds_mu(p, j) * x[j];
	f = fds_value(&p->param, p->n, p->weight, y);
	free(y);
	return f;
}

/* Every other one at the default parameters, the rest all over the allowed ones. */
static struct fds_param some_param(uint64_t *seed, unsigned int k)
{
	struct fds_param param = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT };

	if (k % 2)
		return param;
	param.beta = random_uniform(seed) < 0.5 ? random_spread(seed, 0.3, 0.9) :
		random_spread(seed, 1.1, 3);
	param.lambda = (1 - param.beta) / param.beta;
	/* the least lambda, where all hangs on the prices; or more */
	if (random_uniform(seed) < 0.7)
		param.lambda *= 1 + 0.6 * random_uniform(seed);
	return param;
}

static bool floors_kept(const struct fds_problem *p, const double *x)
{
	for (size_t j = 0; j < p->n; j++)
		if (x[j] < fds_floor(p, j) * (1 - 1e-12))
			return false;
	return true;
}

static void ipopt_agrees(void)
{
	static const double demands[] = { 0, 0.4, 0.9 };
	unsigned int solved = 0, slow = 0;
	double worst = 0, proven = 0;
	struct random_problem r = { .seed = 2024 };
	unsigned int problems = tap_some(PROBLEMS / 5, PROBLEMS);

	for (unsigned int k = 0; k < problems; k++) {
		size_t n = (size_t)round(random_spread(&r.seed, 1.6, 1000.4));
		size_t m = 2 + (k % 5 == 0) * (1 + k % 3);
		double left, ours, theirs, *x, *other;
		int status;

		n = n < 2 ? 2 : n;
		TAP_NEED(random_problem(&r, n, m, demands[k % NR(demands)],
					k % 4 == 3 ? 0.3 : 0));
		r.p.param = some_param(&r.seed, k);
		if (k % 3 == 1)
			random_weights(&r, 1, k % 2 ? 10000 : 20);
		/* the last device bounds rates, but has no shares */
		r.p.bounds = m > 2 && k % 2;
		x = calloc(2 * n, sizeof(*x));
		other = x + n;
		TAP_EQ(fds_best_from(&r.p, NULL, x, &left), 0);
		TAP_CHECK(fds_feasible(&r.p, x, 1e-12));
		TAP_CHECK(floors_kept(&r.p, x));
		status = ipopt_fds(&r.p, other);
		ours = value(&r.p, x);
		theirs = value(&r.p, other);
		/* never worse than what Ipopt found; and where Ipopt is sure, equal */
		if (!(ours >= theirs - 1e-8 * fabs(theirs)) || left > FDS_GAP) {
			tap_diag("problem %u, n %zu, m %zu, beta %g, lambda %g: f %.12g, Ipopt %.12g, proven to %.1e",
				 k, n, m, r.p.param.beta, r.p.param.lambda, ours,
				 theirs, left);
			TAP_CHECK(ours >= theirs - 1e-8 * fabs(theirs));
			TAP_CHECK(left <= FDS_GAP);
		}
		worst = fmax(worst, (theirs - ours) / fabs(theirs));
		proven = fmax(proven, left);
		if (status == 0 || status == 1) {
			solved++;
			if (!(fabs(ours - theirs) <= 1e-6 * fabs(ours)))
				tap_diag("problem %u, n %zu, beta %g, lambda %g: f %.12g, Ipopt %.12g",
					 k, n, r.p.param.beta, r.p.param.lambda,
					 ours, theirs);
			TAP_CHECK(fabs(ours - theirs) <= 1e-6 * fabs(ours));
		} else {
			slow++;
		}
		free(x);
		random_problem_free(&r);
	}
	tap_diag("%u of %u problems compared: Ipopt solved %u, and %u not quite; Ipopt better by %.1e at most, proven to %.1e",
		 solved + slow, PROBLEMS, solved, slow, worst, proven);
	/* a comparison needs results of Ipopt */
	TAP_CHECK(solved >= problems * 9 / 10);
}

/* No task can have more without another having less: each depends on a capacity. */
static void pareto(void)
{
	struct random_problem r = { .seed = 3 };

	for (unsigned int k = 0; k < 300; k++) {
		double use[MGPU_MAX_RES], *x;

		TAP_NEED(random_problem(&r, 2 + k % 60, 2 + k % 3, 0.5, 0.2));
		r.p.param = some_param(&r.seed, k);
		if (k % 3 == 1)
			random_weights(&r, 1, 10000);
		x = calloc(r.p.n, sizeof(*x));
		TAP_EQ(fds_best(&r.p, x), 0);
		for (size_t i = 0; i < r.p.m; i++) {
			use[i] = 0;
			for (size_t j = 0; j < r.p.n; j++)
				use[i] += fds_need(&r.p, i, j) * x[j];
			use[i] /= r.p.capacity[i];
		}
		for (size_t j = 0; j < r.p.n; j++) {
			bool stuck = x[j] >= r.demand[j] * (1 - 1e-6);

			for (size_t i = 0; i < r.p.m; i++)
				stuck |= fds_need(&r.p, i, j) > 0 && use[i] > 1 - 1e-6;
			TAP_CHECK(stuck);
		}
		free(x);
		random_problem_free(&r);
	}
}

/* On a single bottleneck the shares are in proportion to the weights, always. */
static void shares_follow_weights(void)
{
	struct random_problem r = { .seed = 15 };

	for (unsigned int k = 0; k < 300; k++) {
		double *x, weights = 0;

		TAP_NEED(random_problem(&r, 1 + k % 40, 2, 0, 0));
		random_weights(&r, 1, k % 5 ? 30 : 10000);
		r.p.param = some_param(&r.seed, k);
		x = calloc(r.p.n, sizeof(*x));
		for (size_t j = 0; j < r.p.n; j++) {
			/* the CPUs have room whatever the engine does */
			r.need[j] = 1e-7;
			r.need[r.p.n + j] = random_spread(&r.seed, 5e-4, 5e-2);
			weights += r.weight[j];
		}
		r.capacity[0] = 8;
		TAP_EQ(fds_best(&r.p, x), 0);
		for (size_t j = 0; j < r.p.n; j++)
			TAP_NEAR(fds_mu(&r.p, j) * x[j] / (r.weight[j] / weights), 1, 1e-6);
		TAP_NEAR(value(&r.p, x), (r.p.param.beta > 1 ? -1.0 : 1.0) * (double)r.p.n,
			 1e-7 * (double)r.p.n);
		free(x);
		random_problem_free(&r);
	}
}

/*
 * Where engines are threads on the CPUs, tasks get what the engines leave: the result is
 * the best for the capacity that it leaves, and none is left over.
 */
static void beside_engines(void)
{
	static const bool on_cpus[3] = { false, true, false };
	static const bool none[3] = { false };
	struct random_problem r = { .seed = 25 };
	unsigned int engines_bind = 0;

	for (unsigned int k = 0; k < 200; k++) {
		double *x, *again, engines = 0, cpus;

		TAP_NEED(random_problem(&r, 2 + k % 20, 2 + k % 2, k % 4 ? 0.3 : 0, 0));
		if (k % 3 == 1)
			random_weights(&r, 1, 100);
		x = calloc(2 * r.p.n, sizeof(*x));
		again = x + r.p.n;
		cpus = r.capacity[0];
		TAP_EQ(fds_best_beside_engines(&r.p, r.capacity, none, cpus, x), 0);
		TAP_NEAR(r.capacity[0], cpus, 0);
		TAP_EQ(fds_best(&r.p, again), 0);
		TAP_NEAR(value(&r.p, x), value(&r.p, again), FDS_GAP * fabs(value(&r.p, x)));

		/* from a start that is too high, and from one that is too low */
		r.capacity[0] *= k % 2 ? 1 : 0.2;
		TAP_EQ(fds_best_beside_engines(&r.p, r.capacity, on_cpus, cpus, x), 0);
		TAP_CHECK(fds_feasible(&r.p, x, 1e-9));
		for (size_t j = 0; j < r.p.n; j++)
			engines += fds_need(&r.p, 1, j) * x[j];
		TAP_NEAR(r.capacity[0], fmax(cpus - engines, 0.1), 1e-5 * cpus);
		TAP_EQ(fds_best(&r.p, again), 0);
		TAP_NEAR(value(&r.p, x), value(&r.p, again), 1e-6 * fabs(value(&r.p, x)));
		engines_bind += r.capacity[0] < cpus * 0.99;
		free(x);
		random_problem_free(&r);
	}
	TAP_CHECK(engines_bind > 100);
}

/* Only the ratios of weights count. */
static void weights_have_no_unit(void)
{
	struct random_problem r = { .seed = 17 };

	for (unsigned int k = 0; k < 100; k++) {
		double *x;

		TAP_NEED(random_problem(&r, 2 + k % 30, 2, 0.3, 0));
		random_weights(&r, 1, 10000);
		r.p.param = some_param(&r.seed, k);
		x = calloc(2 * r.p.n, sizeof(*x));
		TAP_EQ(fds_best(&r.p, x), 0);
		for (size_t j = 0; j < r.p.n; j++)
			r.weight[j] *= k % 2 ? 1e-9 : 1e12;
		TAP_EQ(fds_best(&r.p, x + r.p.n), 0);
		TAP_NEAR(value(&r.p, x), value(&r.p, x + r.p.n),
			 2 * FDS_GAP * fabs(value(&r.p, x)));
		free(x);
		random_problem_free(&r);
	}
}

/* Invalid weights are refused; so is a sum of weights that is too large. */
static void bad_weights(void)
{
	static const double bad[] = { 0, -1, NAN, INFINITY, -INFINITY };
	struct random_problem r = { .seed = 19 };
	double x[5], price[MGPU_MAX_RES];
	struct alloc_state state = { 0 };

	TAP_NEED(random_problem(&r, 5, 2, 0, 0));
	random_weights(&r, 1, 10);
	for (size_t k = 0; k < NR(bad); k++) {
		r.weight[k] = bad[k];
		for (size_t j = 0; j < 5; j++)
			x[j] = r.rate[j];
		TAP_EQ(fds_best(&r.p, x), -EINVAL);
		TAP_EQ(fds_barrier(&r.p, x, price), -EINVAL);
		TAP_CHECK(alloc_fea.allocate(&state, &r.p, 10, x) < 0);
		r.weight[k] = 1;
	}
	r.weight[0] = r.weight[1] = 1.7e308;
	TAP_EQ(fds_best(&r.p, x), -EINVAL);
	r.weight[0] = r.weight[1] = 1e-320;
	TAP_CHECK(fds_best(&r.p, x) <= 0);
	random_problem_free(&r);
}

/*
 * With beta > 1 and the least lambda, no task has less than with an n-th of each
 * capacity, and no task would rather have the resources that another has (there,
 * theorem 3), provided that all have use for any rate. With weights: no less than with
 * its weight's part, and no envy of the same part of another's resources per weight.
 */
static void incentive_and_envy(void)
{
	static const double betas[] = { 1.2, 1.5, 2, 3, 5, 10 };
	struct random_problem r = { .seed = 5 };

	for (unsigned int k = 0; k < 300; k++) {
		double b = betas[k % NR(betas)], *x, mean;

		TAP_NEED(random_problem(&r, 2 + k % 40, 2, 0, 0));
		if (k % 2)
			random_weights(&r, 1, 100);
		mean = fds_mean_weight(r.p.n, r.p.weight);
		r.p.param = (struct fds_param){ b, (1 - b) / b };
		x = calloc(r.p.n, sizeof(*x));
		TAP_EQ(fds_best(&r.p, x), 0);
		for (size_t j = 0; j < r.p.n; j++) {
			double w = fds_weight(&r.p, j);

			TAP_CHECK(x[j] >= fds_fair_rate(&r.p, j, mean) * (1 - 1e-9));
			/* with what k has of each, j could run at this rate */
			for (size_t o = 0; o < r.p.n; o++) {
				double rate = INFINITY;

				for (size_t i = 0; i < r.p.m; i++)
					rate = fmin(rate, fds_need(&r.p, i, o) * x[o] /
						    fds_need(&r.p, i, j));
				rate *= w / fds_weight(&r.p, o);
				TAP_CHECK(rate <= x[j] * (1 + 1e-9));
			}
		}
		free(x);
		random_problem_free(&r);
	}
}

/* A start from another problem's prices changes nothing but the time. */
static void warm(void)
{
	struct random_problem r = { .seed = 7 };
	double price[MGPU_MAX_RES] = { 0 };

	for (unsigned int k = 0; k < 400; k++) {
		double left, *cold, *x;

		TAP_NEED(random_problem(&r, 2 + k % 50, 2 + k % 2, 0.4, k % 3 ? 0 : 0.3));
		if (k % 7 == 0)
			r.p.param = (struct fds_param){ 3, -1 };
		else if (k % 5 == 0)
			random_weights(&r, 1, 1000);
		if (k % 11 == 0)
			price[0] = k % 22 ? NAN : 1e300;
		x = calloc(2 * r.p.n, sizeof(*x));
		cold = x + r.p.n;
		TAP_EQ(fds_best(&r.p, cold), 0);
		TAP_EQ(fds_best_from(&r.p, price, x, &left), 0);
		TAP_CHECK(left <= FDS_GAP);
		TAP_NEAR(value(&r.p, x), value(&r.p, cold),
			 1e-8 * fabs(value(&r.p, cold)));
		free(x);
		random_problem_free(&r);
	}
}

/* The help that it has when few unknowns are too few agrees, too. */
static void barrier_agrees(void)
{
	struct random_problem r = { .seed = 9 };
	double price[MGPU_MAX_RES];

	for (unsigned int k = 0; k < 200; k++) {
		double *x;

		TAP_NEED(random_problem(&r, 2 + k % 30, 2, 0.4, k % 3 ? 0 : 0.3));
		r.p.param = some_param(&r.seed, k);
		if (k % 4 == 3)
			random_weights(&r, 1, 1000);
		x = calloc(2 * r.p.n, sizeof(*x));
		TAP_EQ(fds_best(&r.p, x), 0);
		TAP_EQ(fds_barrier(&r.p, x + r.p.n, price), 0);
		TAP_NEAR(value(&r.p, x), value(&r.p, x + r.p.n),
			 1e-7 * fabs(value(&r.p, x)));
		free(x);
		random_problem_free(&r);
	}
}

/* Numbers that no machine has, and shapes that only a hostile one has. */
static void extremes(void)
{
	struct random_problem r = { .seed = 11 };

	for (unsigned int k = 0; k < 500; k++) {
		double left, *x;

		TAP_NEED(random_problem(&r, 1 + k % 20, 1 + k % 4, 0.3, k % 2 ? 0.5 : 0));
		for (size_t j = 0; j < r.p.n * r.p.m; j++)
			if (random_uniform(&r.seed) < 0.2 && r.need[j] > 0)
				r.need[j] *= random_spread(&r.seed, 1e-6, 1e6);
		if (k % 3 == 0)
			random_weights(&r, 1, k % 2 ? 10000 : 1e12);
		if (r.p.floor)
			sla_floors(&r.p, r.floor, r.floor);
		r.p.param.beta = random_spread(&r.seed, 0.06, 40);
		if (fabs(r.p.param.beta - 1) < 0.02)
			r.p.param.beta = 2;
		r.p.param.lambda = (1 - r.p.param.beta) / r.p.param.beta *
			(1 + random_uniform(&r.seed));
		x = calloc(r.p.n, sizeof(*x));
		if (!fds_best_from(&r.p, NULL, x, &left)) {
			TAP_CHECK(left >= 0);
			TAP_CHECK(fds_feasible(&r.p, x, 1e-9));
			TAP_CHECK(floors_kept(&r.p, x));
		}
		free(x);
		random_problem_free(&r);
	}
}

/* The bound of a result also holds for a worse result. */
static void bound_holds(void)
{
	struct random_problem r = { .seed = 13 };
	unsigned int problems = tap_some(BOUNDS / 5, BOUNDS);

	for (unsigned int k = 0; k < problems; k++) {
		double left, best, *x;

		TAP_NEED(random_problem(&r, 2 + k % 10, 2, 0.4, 0));
		r.p.param = (struct fds_param){ 8, -1.7 };
		x = calloc(2 * r.p.n, sizeof(*x));
		TAP_EQ(fds_best_from(&r.p, NULL, x, &left), 0);
		ipopt_fds(&r.p, x + r.p.n);
		best = value(&r.p, x + r.p.n);
		/* log |f|: Ipopt may be better by so much and no more */
		TAP_CHECK(log(value(&r.p, x) / best) <= left + 1e-6);
		free(x);
		random_problem_free(&r);
	}
	tap_diag("%u of %u problems compared", problems, BOUNDS);
}

int main(int argc, char **argv)
{
	(void)argc;
	/* Ipopt's linear algebra starts threads for matrices that are small here */
	if (!getenv("OMP_NUM_THREADS")) {
		setenv("OMP_NUM_THREADS", "1", 1);
		execv("/proc/self/exe", argv);
	}
	tap_run_within(ipopt_agrees, "random problems, 2 to 1,000 tasks: never worse than Ipopt, and equal",
		       600);
	tap_run(pareto, "Pareto-efficient: all that could have more lack a capacity");
	tap_run(incentive_and_envy, "sharing incentive and no envy, where the theory promises it");
	tap_run(shares_follow_weights, "on one bottleneck shares follow weights, and |f| is n");
	tap_run(beside_engines, "engines on the CPUs leave tasks the rest of them");
	tap_run(weights_have_no_unit, "only the ratios of weights count");
	tap_run(bad_weights, "what is not a weight is refused");
	tap_run(warm, "where it starts does not matter");
	tap_run(barrier_agrees, "the barrier method finds the same");
	tap_run(extremes, "extreme numbers: feasible, floors kept, or refused");
	tap_run_within(bound_holds, "nothing is better by more than the bound says", 600);
	return tap_done();
}

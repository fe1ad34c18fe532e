/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random allocation problems, repeatable, header only: for the test of the
 * optimum and for the bench, which must not measure on other problems.
 */
#ifndef TESTS_UNIT_RANDOM_PROBLEM_H
#define TESTS_UNIT_RANDOM_PROBLEM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "sla.h"

/**
 * struct random_problem - a problem and the memory that it is made of
 * @p: the problem
 * @rate: n feasible rates, as on a machine without control
 * @seed: state of the random numbers
 */
struct random_problem {
	struct fds_problem p;
	double *rate;
	uint64_t seed;
	double *need, *demand, *floor, *weight, capacity[MGPU_MAX_RES];
};

static inline double random_uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

static inline double random_spread(uint64_t *seed, double from, double to)
{
	return from * pow(to / from, random_uniform(seed));
}

/*
 * Make a problem of @n tasks on 1 to 8 CPUs and @m - 1 devices of one or two engines,
 * each task on one of these; a frame costs from 0.5 to 50 ms of either. @demand: the
 * part of the tasks whose demand is limited, to between a tenth and twice their rate.
 * @floor: the part of the tasks with a floor, below their rate. Return false when out
 * of memory; random_problem_free() frees the problem.
 */
static inline bool random_problem(struct random_problem *r, size_t n, size_t m,
				  double demand, double floor)
{
	uint64_t *seed = &r->seed;
	double most = 0;

	r->need = calloc(n * (m + 4), sizeof(*r->need));
	if (!r->need)
		return false;
	r->demand = r->need + n * m;
	r->floor = r->demand + n;
	r->rate = r->floor + n;
	r->weight = r->rate + n;
	r->capacity[0] = (double)(1 + (int)(8 * random_uniform(seed)));
	for (size_t i = 1; i < m; i++)
		r->capacity[i] = random_uniform(seed) < 0.7 ? 1 : 2;
	for (size_t j = 0; j < n; j++) {
		size_t dev = 1 + (size_t)((double)(m - 1) * random_uniform(seed));

		r->need[j] = random_spread(seed, 5e-4, 5e-2);
		if (dev < m)
			r->need[dev * n + j] = random_spread(seed, 5e-4, 5e-2);
		r->rate[j] = random_spread(seed, 1, 20);
	}
	for (size_t i = 0; i < m; i++) {
		double use = 0;

		for (size_t j = 0; j < n; j++)
			use += r->need[i * n + j] * r->rate[j];
		most = fmax(most, use / r->capacity[i]);
	}
	for (size_t j = 0; j < n; j++) {
		r->rate[j] /= most;
		r->demand[j] = random_uniform(seed) < demand ?
			r->rate[j] * random_spread(seed, 0.1, 2) : INFINITY;
		r->floor[j] = random_uniform(seed) < floor ?
			r->rate[j] * random_uniform(seed) : 0;
	}
	r->p = (struct fds_problem){
		.n = n, .m = m, .need = r->need, .capacity = r->capacity,
		.demand = r->demand, .floor = floor > 0 ? r->floor : NULL,
		.param = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	if (floor > 0)
		sla_floors(&r->p, r->floor, r->floor);
	return true;
}

/* Give each task a weight from @from to @to. */
static inline void random_weights(struct random_problem *r, double from, double to)
{
	for (size_t j = 0; j < r->p.n; j++)
		r->weight[j] = random_spread(&r->seed, from, to);
	r->p.weight = r->weight;
}

static inline void random_problem_free(struct random_problem *r)
{
	free(r->need);
	r->need = NULL;
}

#endif /* TESTS_UNIT_RANDOM_PROBLEM_H */

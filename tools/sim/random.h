/* SPDX-License-Identifier: GPL-2.0-only */
/* Repeatable random numbers of scenarios. */
#ifndef MGPU_SIM_RANDOM_H
#define MGPU_SIM_RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* splitmix64, also as a hash: the same for a seed on every machine. */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Above 0, below 1. */
static inline double uniform(uint64_t x)
{
	return ((double)(mix(x) >> 11) + 0.5) / (double)(1ULL << 53);
}

struct random {
	uint64_t state;
};

static inline uint64_t stream(uint64_t seed, size_t vm, uint64_t what)
{
	return mix(mix(mix(seed) ^ vm) ^ what);
}

static inline double draw(struct random *r)
{
	return uniform(r->state++);
}

static inline double normal(struct random *r)
{
	double u = draw(r);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * draw(r));
}

/* A factor whose mean is 1 and whose logarithm has standard deviation s. */
static inline double factor(double s, double z)
{
	return exp(s * z - s * s / 2);
}

#endif /* MGPU_SIM_RANDOM_H */

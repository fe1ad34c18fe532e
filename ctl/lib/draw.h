/* SPDX-License-Identifier: GPL-2.0-only */
/* Repeatable random numbers (splitmix64), the same on every machine. */
#ifndef LIBMGPU_DRAW_H
#define LIBMGPU_DRAW_H

#include <stdint.h>

/* Return 64 random bits; @state begins as the seed. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Return a number below @n, which is above 0 and far below 2^64. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
	return random_next(state) % n;
}

/* Return a number from 0 to below 1. */
static inline double random_part(uint64_t *state)
{
	return (double)(random_next(state) >> 11) / (double)(UINT64_C(1) << 53);
}

#endif /* LIBMGPU_DRAW_H */

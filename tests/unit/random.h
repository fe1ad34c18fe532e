/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Repeatable random numbers for tests of random input (splitmix64), and memory of
 * an exact size for it, which the address sanitizer guards; header only.
 */
#ifndef TESTS_UNIT_RANDOM_H
#define TESTS_UNIT_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Set it to the seed. */
static uint64_t rng;

static inline uint64_t rnd(void)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline uint64_t below(uint64_t n)
{
	return rnd() % n;
}

static inline void *grab(size_t size)
{
	void *p = malloc(size);

	if (!p)
		abort();
	return p;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that do something at random moments, many times. */
#ifndef KSELFTEST_ROUNDS_H
#define KSELFTEST_ROUNDS_H

#include <stdlib.h>

#include "clock.h"

/* Return $MGPU_SEED, or another seed each time. */
static inline unsigned int seed_of_run(void)
{
	const char *env = getenv("MGPU_SEED");

	return env ? (unsigned int)strtoul(env, NULL, 0) : (unsigned int)now_ns();
}

/* Return $MGPU_ROUNDS, which tests/long sets, or what is a sample of them. */
static inline unsigned int rounds_of_run(unsigned int sample)
{
	const char *env = getenv("MGPU_ROUNDS");

	return env ? (unsigned int)strtoul(env, NULL, 0) : sample;
}

#endif /* KSELFTEST_ROUNDS_H */

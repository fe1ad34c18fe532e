// SPDX-License-Identifier: GPL-2.0-only
/* The allocation that maximises f, every period. */
#include "alloc.h"

static int exact_allocate(struct alloc_state *state, const struct fds_problem *p,
			  unsigned int iterations, double *x)
{
	(void)iterations;
	return fds_best_from(p, state->price, x, &state->gap);
}

const struct alloc_ops alloc_exact = {
	.name = "exact",
	.summary = "maximises fairness f on dominant shares, exactly",
	.reach = true,
	.fds = true,
	.floors = true,
	.weights = true,
	.allocate = exact_allocate,
};

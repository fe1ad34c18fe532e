// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fixed partitions: each task may use its weight's part of every capacity, and
 * no other task gets the rest.
 */
#include "alloc.h"

static int static_allocate(struct alloc_state *state, const struct fds_problem *p,
			   unsigned int iterations, double *x)
{
	double weights = 0;

	(void)state;
	(void)iterations;

	for (size_t j = 0; j < p->n; j++)
		weights += fds_weight(p, j);
	for (size_t j = 0; j < p->n; j++)
		x[j] = fds_weight(p, j) / (weights * fds_mu(p, j));
	return 0;
}

const struct alloc_ops alloc_static = {
	.name = "static",
	.summary = "gives each VM its weight's part of every capacity, used or not",
	.weights = true,
	.allocate = static_allocate,
};

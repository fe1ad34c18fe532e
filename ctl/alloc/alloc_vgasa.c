// SPDX-License-Identifier: GPL-2.0-only
/* vGASA's rule: every task is capped at 30 frames per second. */
#include "alloc.h"

static int vgasa_allocate(struct alloc_state *state, const struct fds_problem *p,
			  unsigned int iterations, double *x)
{
	(void)state;
	(void)iterations;

	for (size_t j = 0; j < p->n; j++)
		x[j] = ALLOC_VGASA_FPS;
	return 0;
}

const struct alloc_ops alloc_vgasa = {
	.name = "vgasa",
	.summary = "limits every VM to 30 frames per second, whatever its weight",
	.allocate = vgasa_allocate,
};

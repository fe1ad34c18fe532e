// SPDX-License-Identifier: GPL-2.0-only
/* Priors of the preemption policy, learned from pairs. */
#include "pairs.h"
#include "preempt.h"

void learn_pairs_prior(const struct learn_pairs *p, struct preempt_norm *norm)
{
	for (enum preempt_class a = 0; a < PREEMPT_CLASSES; a++)
		for (enum preempt_class b = 0; b < PREEMPT_CLASSES; b++)
			if (p->weight[a][b] > 0)
				preempt_norm_prior(norm, a, b, p->slow[a][b], p->weight[a][b]);
}

// SPDX-License-Identifier: GPL-2.0-only
/* The pace of the preemption loop: a token bucket. */
#include <math.h>

#include "pace.h"

/* Processor time for each nanosecond. */
static double part(unsigned int slots)
{
	return PACE_PART * (slots ? slots : 1);
}

void pace_spend(struct pace *p, uint64_t now_ns, uint64_t cpu_ns, unsigned int slots)
{
	double passed = now_ns > p->at_ns ? (double)(now_ns - p->at_ns) : 0;

	/* at the start nothing was spent yet */
	if (!p->at_ns)
		passed = PACE_BURST_NS;
	p->credit = fmin(p->credit + passed * part(slots), PACE_BURST_NS * part(slots)) -
		(double)cpu_ns;
	/* on a machine so slow that learning takes all of it, looks must go on */
	p->credit = fmax(p->credit, -PACE_REST_NS * part(slots));
	p->at_ns = now_ns;
}

uint64_t pace_ready_ns(const struct pace *p, unsigned int slots)
{
	if (p->credit >= 0)
		return p->at_ns;
	return p->at_ns + (uint64_t)ceil(-p->credit / part(slots));
}

// SPDX-License-Identifier: GPL-2.0-only
/* always: switches for each new context. */
#include "at_once.h"

static void always_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			  struct preempt_plan *plan)
{
	at_once_decide(s, p, plan, PREEMPT_SWITCH);
}

const struct preempt_ops preempt_always = {
	.name = "always",
	.summary = "a new context gets its slots at once; the state of the old one is saved",
	.decide = always_decide,
};

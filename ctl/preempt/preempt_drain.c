// SPDX-License-Identifier: GPL-2.0-only
/* drain: drains for each new context. */
#include "at_once.h"

static void drain_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			 struct preempt_plan *plan)
{
	at_once_decide(s, p, plan, PREEMPT_DRAIN);
}

const struct preempt_ops preempt_drain = {
	.name = "drain",
	.summary = "a new context gets its slots when the tiles running there complete",
	.decide = drain_decide,
};

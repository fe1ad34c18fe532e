// SPDX-License-Identifier: GPL-2.0-only
/* flush: flushes for each new context. */
#include "at_once.h"

static void flush_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			 struct preempt_plan *plan)
{
	at_once_decide(s, p, plan, PREEMPT_FLUSH);
}

const struct preempt_ops preempt_flush = {
	.name = "flush",
	.summary = "a new context gets its slots at once; idempotent work is dropped",
	.decide = flush_decide,
};

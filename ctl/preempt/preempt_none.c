// SPDX-License-Identifier: GPL-2.0-only
/* none: first come, first served; no context is preempted. */
#include "view.h"

static void none_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			struct preempt_plan *plan)
{
	struct view v;

	view_begin(&v, s, p, plan);
	view_launch(&v, false, false);
	view_grow(&v);
}

const struct preempt_ops preempt_none = {
	.name = "none",
	.summary = "first come, first served; no context is preempted",
	.decide = none_decide,
};

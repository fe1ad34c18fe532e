/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rule that the policies always, drain and flush share: a new context gets its
 * slots at once, whichever context holds them. Private to ctl/preempt.
 */
#ifndef MGPU_PREEMPT_AT_ONCE_H
#define MGPU_PREEMPT_AT_ONCE_H

#include "preempt.h"

/**
 * at_once_decide() - preempt for each new context
 * @s: the device
 * @p: parameters
 * @plan: result
 * @method: how slots are taken; PREEMPT_SWITCH instead of PREEMPT_FLUSH where work is
 *	not idempotent
 */
void at_once_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
		    struct preempt_plan *plan, enum preempt_method method);

#endif /* MGPU_PREEMPT_AT_ONCE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* What the socket tells about preemption. Pure. */
#ifndef MGPUD_PREEMPT_STATE_H
#define MGPUD_PREEMPT_STATE_H

#include "preempter.h"

struct json_object;

/* The operation that the analyser knows by this number; NULL: of none of ours. */
const char *preempt_state_op(uint32_t kind);

/**
 * preempt_state() - the object "preempt" of the state
 * @c: what is set
 * @s: what was done, NULL while no contexts are watched
 * @learned: what was learned of kinds of work
 * @restored: of how many kinds it was the state file that said it
 *
 * Returns a new object, NULL when out of memory.
 */
struct json_object *preempt_state(const struct preempter_config *c,
				  const struct preempter_stats *s,
				  const struct analyse *learned, size_t restored);

#endif /* MGPUD_PREEMPT_STATE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the preemption loop as JSON, for the socket. Pure. */
#ifndef MGPUD_PREEMPT_STATE_H
#define MGPUD_PREEMPT_STATE_H

#include "config/config.h"
#include "contexts/preempter.h"

struct json_object;

/* The operation that the analyser knows by this number; NULL: unknown. */
const char *preempt_state_op(uint32_t kind);

/**
 * preempt_state() - make the object "preempt" of the state
 * @c: settings
 * @s: statistics, NULL while no contexts are watched
 * @learned: what was learned of kinds of work
 * @restored: number of kinds of work that the state file had
 *
 * Return: a new object, NULL when out of memory.
 */
struct json_object *preempt_state(const struct config *c,
				  const struct preempter_stats *s,
				  const struct analyse *learned, size_t restored);

#endif /* MGPUD_PREEMPT_STATE_H */

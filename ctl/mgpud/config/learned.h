/* SPDX-License-Identifier: GPL-2.0-only */
/* The analyser's learned figures as JSON in the state file. Pure. */
#ifndef MGPUD_LEARNED_H
#define MGPUD_LEARNED_H

#include "analyse.h"

struct json_object;

/* Return a new object, to be freed with json_object_put(); NULL when out of memory. */
struct json_object *learned_to_json(const struct analyse *a);

/**
 * learned_from_json() - read what learned_to_json() made
 * @o: the object
 * @a: result; unchanged on error
 * @why: what is wrong, a sentence; on error only
 * @size: size of @why, bytes
 *
 * A single value that is missing or out of range invalidates all of it.
 *
 * Return: 0 or -EBADMSG.
 */
int learned_from_json(struct json_object *o, struct analyse *a, char *why, size_t size);

#endif /* MGPUD_LEARNED_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports of programs by their build id, below $XDG_CACHE_HOME/mgpu/defer, or ~/.cache where
 * that is not set.  A cache that cannot be read or written costs time, and is no error.
 */
#ifndef MGPU_DEFER_CACHE_H
#define MGPU_DEFER_CACHE_H

#include <json-c/json.h>
#include <stdbool.h>

/* Return the report of a program with that build id, or NULL; the caller releases it. */
struct json_object *cache_get(const char *build_id, bool assume_success);
void cache_put(const char *build_id, bool assume_success, struct json_object *report);

#endif /* MGPU_DEFER_CACHE_H */

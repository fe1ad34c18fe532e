/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values of a JSON object from a file, which is not trusted: a value counts only if
 * its key is there, its type is right and it is in its range.
 */
#ifndef MGPUD_JSON_GET_H
#define MGPUD_JSON_GET_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

/* Return whether @key is a number from @min to @max, then in @value. */
static inline bool json_get_number(struct json_object *o, const char *key, double min,
				   double max, double *value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    (!json_object_is_type(v, json_type_double) &&
	     !json_object_is_type(v, json_type_int)))
		return false;
	*value = json_object_get_double(v);
	return *value >= min && *value <= max;	/* false for NAN */
}

/* Return whether @key is a whole number from 0 to @max, then in @value. */
static inline bool json_get_whole(struct json_object *o, const char *key, uint64_t max,
				  uint64_t *value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    !json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0)
		return false;
	*value = json_object_get_uint64(v);
	return *value <= max;
}

/* Return the array @key; NULL if there is none or it has more than @max elements. */
static inline struct json_object *json_get_array(struct json_object *o, const char *key,
						 size_t max)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    !json_object_is_type(v, json_type_array) || json_object_array_length(v) > max)
		return NULL;
	return v;
}

#endif /* MGPUD_JSON_GET_H */

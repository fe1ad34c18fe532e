/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of JSON objects that another program wrote. */
#ifndef LIBMGPU_JSON_READ_H
#define LIBMGPU_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;

/* Number of a JSON object; NAN if there is none. */
double json_number(struct json_object *object, const char *key);

/* 1 or 0 for a boolean; NAN if there is none. */
double json_flag(struct json_object *object, const char *key);

/* Copy a string, or the text of a whole number, cut off at @size; "" if there is none. */
void json_text(struct json_object *object, const char *key, char *text, size_t size);

/* Member that is an object or an array; NULL if there is none of this type. */
struct json_object *json_member(struct json_object *object, const char *key);
struct json_object *json_list(struct json_object *object, const char *key);

#endif /* LIBMGPU_JSON_READ_H */

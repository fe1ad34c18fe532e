// SPDX-License-Identifier: GPL-2.0-only
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>

#include "json_read.h"

static struct json_object *member(struct json_object *object, const char *key, json_type type)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, key, &value) || !json_object_is_type(value, type))
		return NULL;
	return value;
}

double json_number(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_double);

	if (!value)
		value = member(object, key, json_type_int);
	return value ? json_object_get_double(value) : NAN;
}

double json_flag(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_boolean);

	return value ? json_object_get_boolean(value) : NAN;
}

void json_text(struct json_object *object, const char *key, char *text, size_t size)
{
	struct json_object *value = member(object, key, json_type_string);

	if (!value)
		value = member(object, key, json_type_int);
	snprintf(text, size, "%s", value ? json_object_get_string(value) : "");
}

struct json_object *json_member(struct json_object *object, const char *key)
{
	return member(object, key, json_type_object);
}

struct json_object *json_list(struct json_object *object, const char *key)
{
	return member(object, key, json_type_array);
}

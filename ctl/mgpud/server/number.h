/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers in the state. */
#ifndef MGPUD_NUMBER_H
#define MGPUD_NUMBER_H

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <json-c/json.h>

#include "mgpud_settings.h"

/* Six digits, more than measurements have; null for an unknown value (not finite). */
static inline struct json_object *number(double v)
{
	char text[32];

	if (!isfinite(v))
		return NULL;
	snprintf(text, sizeof(text), "%.6g", v);
	return json_object_new_double_s(v, text);
}

/*
 * Add the value of a setting to the state, under its name.  All times of the state are in
 * seconds: period_ms becomes period_s.
 */
static inline void add_setting(struct json_object *o, const char *name,
			       const struct mgpud_setting *s, struct json_object *value)
{
	const char *ms = strstr(name, "_ms");
	char key[48];

	if (!s->unit || strcmp(s->unit, "milliseconds") || !ms || ms[3]) {
		json_object_object_add(o, name, value);
		return;
	}
	snprintf(key, sizeof(key), "%.*s_s", (int)(ms - name), name);
	json_object_object_add(o, key, number(json_object_get_double(value) / 1e3));
	json_object_put(value);
}

#endif /* MGPUD_NUMBER_H */

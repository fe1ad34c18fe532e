/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers in the state. */
#ifndef MGPUD_NUMBER_H
#define MGPUD_NUMBER_H

#include <math.h>
#include <stdio.h>
#include <json-c/json.h>

/* Six digits, more than measurements have; null for an unknown value (not finite). */
static inline struct json_object *number(double v)
{
	char text[32];

	if (!isfinite(v))
		return NULL;
	snprintf(text, sizeof(text), "%.6g", v);
	return json_object_new_double_s(v, text);
}

#endif /* MGPUD_NUMBER_H */

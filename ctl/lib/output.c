// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <json-c/json.h>

#include "complain.h"
#include "output.h"

int end_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	complain("standard output: %s", strerror(errno));
	return 1;
}

struct json_object *rounded(double value, int digits)
{
	char text[64];

	if (!isfinite(value))
		return NULL;
	snprintf(text, sizeof(text), "%.*f", digits, value);
	return json_object_new_double_s(value, text);
}

int print_json(struct json_object *json)
{
	puts(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(json);
	return end_output();
}

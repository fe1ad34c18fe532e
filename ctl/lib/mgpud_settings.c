// SPDX-License-Identifier: GPL-2.0-only
/* The settings of mgpud. */
#include <stdio.h>
#include <string.h>

#include "mgpud_client.h"
#include "mgpud_settings.h"

#define MGPUD_SETTING(member, ...)	{ __VA_ARGS__ }

const struct mgpud_setting mgpud_settings[] = {
#include "mgpud_settings.h"
	{ .key = NULL },
};

/* "a b c" becomes "a, b or c". */
static void list(const char *values, char text[MGPUD_RANGE])
{
	text[0] = '\0';
	while (*values) {
		size_t len = strcspn(values, " "), at = strlen(text);
		bool last = !values[len];

		snprintf(text + at, MGPUD_RANGE - at, "%s%.*s",
			 !at ? "" : last ? " or " : ", ", (int)len, values);
		values += len + !last;
	}
}

void mgpud_setting_range(const struct mgpud_setting *s, char text[MGPUD_RANGE])
{
	switch (s->kind) {
	case MGPUD_WHOLE:
	case MGPUD_NUMBER:
	case MGPUD_MILLISECONDS:
		snprintf(text, MGPUD_RANGE, "%.10g to %.10g%s%s", s->min, s->max,
			 s->unit ? " " : "", s->unit ? s->unit : "");
		break;
	case MGPUD_ALLOCATOR:
	case MGPUD_PREEMPTION:
	case MGPUD_LOG:
	case MGPUD_CHOICE:
		list(s->values, text);
		break;
	case MGPUD_MODEL:
		list(s->values, text);
		snprintf(text + strlen(text), MGPUD_RANGE - strlen(text),
			 ", or a path that begins with /");
		break;
	case MGPUD_COST:
		strcpy(text, "fit or A,B");
		break;
	case MGPUD_SOCKET:
		strcpy(text, "a path");
		break;
	case MGPUD_FILE:
		strcpy(text, "a path or none");
		break;
	case MGPUD_GROUP:
		strcpy(text, "auto or a group");
		break;
	}
}

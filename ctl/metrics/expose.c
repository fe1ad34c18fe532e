// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expose.h"
#include "mgpu.h"
#include "utf8.h"

#define REPLACEMENT	"\xef\xbf\xbd"	/* U+FFFD */
#define US_DECIMALS	6

/* ---- text ---- */

static bool grow(struct text *t, size_t len)
{
	size_t room = t->room ? t->room : 4096;
	char *more;

	while (room < len)
		room *= 2;
	more = realloc(t->bytes, room);
	if (!more)
		return false;
	t->bytes = more;
	t->room = room;
	return true;
}

void text_add(struct text *t, const char *bytes, size_t len)
{
	if (t->failed || !len)
		return;
	if ((t->limit && len > t->limit - t->len) ||
	    (len > t->room - t->len && !grow(t, t->len + len))) {
		t->failed = true;
		return;
	}
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
}

void text_str(struct text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

void text_free(struct text *t)
{
	free(t->bytes);
	memset(t, 0, sizeof(*t));
}

void text_number(struct text *t, uint64_t value, unsigned int decimals)
{
	char digits[32], *at = digits + sizeof(digits), *end = at;
	bool zeros = true;	/* none but zeros so far, behind the point */

	for (; decimals; decimals--, value /= 10) {
		zeros = zeros && !(value % 10);
		if (!zeros)
			*--at = (char)('0' + value % 10);
	}
	if (!zeros)
		*--at = '.';
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	text_add(t, at, (size_t)(end - at));
}

void text_double(struct text *t, double value)
{
	char buf[40];

	if (isinf(value))
		text_str(t, value > 0 ? "+Inf" : "-Inf");
	else
		text_add(t, buf, (size_t)snprintf(buf, sizeof(buf), "%.15g", value));
}

static void add_escaped(struct text *t, const char *value)
{
	const unsigned char *s = (const unsigned char *)value;
	const unsigned char *end = s + EXPOSE_VALUE_MAX;
	size_t len;

	for (; *s; s += len ? len : 1) {
		len = utf8_len(s);
		if (s + (len ? len : 1) > end)
			break;
		if (*s == '\n')
			text_str(t, "\\n");
		else if (*s == '\\' || *s == '"')
			text_add(t, (const char[]){ '\\', (char)*s }, 2);
		else if (!len || *s < ' ' || *s == 0x7f)
			text_str(t, REPLACEMENT);
		else
			text_add(t, (const char *)s, len);
	}
}

void text_label(struct text *t, const char *name, const char *value)
{
	if (t->len)
		text_str(t, ",");
	text_str(t, name);
	text_str(t, "=\"");
	add_escaped(t, value);
	text_str(t, "\"");
}

/* ---- exposition ---- */

static const struct {
	const char *name;
	const char *suffix;
} types[] = {
	[EXPOSE_GAUGE] = { "gauge", "" },
	[EXPOSE_COUNTER] = { "counter", "_total" },
	[EXPOSE_INFO] = { "info", "_info" },
	[EXPOSE_HISTOGRAM] = { "histogram", "" },
};

const char *expose_type_name(enum expose_type type)
{
	return types[type].name;
}

const char *expose_suffix(enum expose_type type)
{
	return types[type].suffix;
}

void expose_family(struct expose *e, const struct expose_family *family)
{
	e->family = family;
	e->begun = false;
}

static void add_line(struct expose *e, const char *keyword, const char *value)
{
	const struct expose_family *f = e->family;

	text_str(e->text, "# ");
	text_str(e->text, keyword);
	text_str(e->text, " ");
	text_str(e->text, f->name);
	/* The text format knows names of samples only, and no type "info". */
	if (e->format == EXPOSE_TEXT)
		text_str(e->text, expose_suffix(f->type));
	text_str(e->text, " ");
	text_str(e->text, value);
	text_str(e->text, "\n");
}

static void begin(struct expose *e)
{
	const struct expose_family *f = e->family;
	enum expose_type type = f->type;

	if (e->begun)
		return;
	e->begun = true;
	if (e->format == EXPOSE_TEXT && type == EXPOSE_INFO)
		type = EXPOSE_GAUGE;
	add_line(e, "TYPE", expose_type_name(type));
	if (e->format == EXPOSE_OPENMETRICS && *f->unit)
		add_line(e, "UNIT", f->unit);
	add_line(e, "HELP", f->help);
}

/* Write a sample but for its value. @more: a further label, NULL for none */
static void begin_sample(struct expose *e, const char *suffix, const char *labels, size_t len,
			 const struct text *more)
{
	begin(e);
	text_str(e->text, e->family->name);
	text_str(e->text, suffix);
	if (len || more) {
		text_str(e->text, "{");
		text_add(e->text, labels, len);
		if (len && more)
			text_str(e->text, ",");
		if (more)
			text_add(e->text, more->bytes, more->len);
		text_str(e->text, "}");
	}
	text_str(e->text, " ");
}

void expose_number(struct expose *e, const char *labels, size_t len, uint64_t value,
		   unsigned int decimals)
{
	begin_sample(e, expose_suffix(e->family->type), labels, len, NULL);
	text_number(e->text, value, decimals);
	text_str(e->text, "\n");
}

void expose_double(struct expose *e, const char *labels, size_t len, double value)
{
	begin_sample(e, expose_suffix(e->family->type), labels, len, NULL);
	text_double(e->text, value);
	text_str(e->text, "\n");
}

static void add_bucket(struct expose *e, const char *labels, size_t len, unsigned int bucket,
		       uint64_t count)
{
	char buf[40];
	struct text more = { .bytes = buf, .room = sizeof(buf), .limit = sizeof(buf) };

	text_str(&more, "le=\"");
	if (bucket == MGPU_HIST_BUCKETS - 1)
		text_str(&more, "+Inf");
	else
		text_number(&more, UINT64_C(2) << bucket, US_DECIMALS);
	text_str(&more, "\"");
	begin_sample(e, "_bucket", labels, len, &more);
	text_number(e->text, count, 0);
	text_str(e->text, "\n");
}

void expose_histogram(struct expose *e, const char *labels, size_t len, const uint64_t *counts,
		      unsigned int first)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < MGPU_HIST_BUCKETS; i++) {
		if (__builtin_add_overflow(total, counts[i], &total))
			total = UINT64_MAX;
		if (i >= first)
			add_bucket(e, labels, len, i, total);
	}
	if (e->format == EXPOSE_OPENMETRICS)
		return;
	begin_sample(e, "_sum", labels, len, NULL);
	text_str(e->text, "NaN\n");
	begin_sample(e, "_count", labels, len, NULL);
	text_number(e->text, total, 0);
	text_str(e->text, "\n");
}

void expose_end(struct expose *e)
{
	if (e->format == EXPOSE_OPENMETRICS)
		text_str(e->text, "# EOF\n");
}

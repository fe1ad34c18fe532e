// SPDX-License-Identifier: GPL-2.0-only
/* Printing: JSON with the specification's names, or text for people. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "gpuctl.h"

static struct json_object *field_json(const struct mgpu_field *field,
				      const void *info)
{
	const char *str;

	if (!mgpu_field_present(field, info))
		return NULL;
	str = mgpu_field_str(field, info);
	if (str)
		return json_object_new_string(str);

	switch (field->type) {
	case MGPU_FIELD_U8:
		return json_object_new_boolean(mgpu_field_u64(field, info) != 0);
	case MGPU_FIELD_U32:
	case MGPU_FIELD_U64:
		return json_object_new_uint64(mgpu_field_u64(field, info));
	case MGPU_FIELD_NEST:
		return out_object(field->nest,
				  (const char *)info + field->offset);
	case MGPU_FIELD_STRING:
		break;
	}
	return NULL;
}

struct json_object *out_object(const struct mgpu_field *fields,
			       const void *info)
{
	struct json_object *object = json_object_new_object();

	for (; fields->attr; fields++)
		json_object_object_add(object, fields->name,
				       field_json(fields, info));
	return object;
}

int out_json(const struct gpuctl *ctl, struct json_object *object)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= ctl->pretty ? JSON_C_TO_STRING_PRETTY |
			       JSON_C_TO_STRING_SPACED :
			       JSON_C_TO_STRING_PLAIN;
	puts(json_object_to_json_string_ext(object, flags));
	json_object_put(object);
	return EXIT_OK;
}

/* ---- values for people ---- */

const char *out_fps(char *buf, size_t size, uint64_t millihertz)
{
	int n;

	n = snprintf(buf, size, "%" PRIu64 ".%03" PRIu64, millihertz / 1000,
		     millihertz % 1000);
	/* 30, 59.94 */
	while (n > 0 && buf[n - 1] == '0')
		buf[--n] = '\0';
	if (n > 0 && buf[n - 1] == '.')
		buf[--n] = '\0';
	return buf;
}

const char *out_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t i = 0;

	while (value >= 1024 && i + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		i++;
	}
	snprintf(buf, size, "%.*f %s", i && value < 100 ? 1 : 0, value,
		 units[i]);
	return buf;
}

const char *out_time(char *buf, size_t size)
{
	struct timeval tv;
	struct tm tm;
	char date[32];
	char zone[8];

	gettimeofday(&tv, NULL);
	localtime_r(&tv.tv_sec, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(buf, size, "%s.%03d%.3s:%s", date, (int)(tv.tv_usec / 1000),
		 zone, zone + 3);
	return buf;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name);
	size_t e = strlen(end);

	return n >= e && !strcmp(name + n - e, end);
}

static void print_value(const struct mgpu_field *field, const void *info)
{
	char buf[OUT_CELL];
	uint64_t value;
	const char *str;

	if (!mgpu_field_present(field, info)) {
		puts("-");
		return;
	}
	str = mgpu_field_str(field, info);
	if (str) {
		puts(str);
		return;
	}

	value = mgpu_field_u64(field, info);
	if (field->type == MGPU_FIELD_U8)
		puts(value ? "yes" : "no");
	else if (!strcmp(field->name, "fps-limit"))
		puts(value ? out_fps(buf, sizeof(buf), value) : "none");
	else if (ends_in(field->name, "-ns"))
		printf("%.6f s\n", (double)value / 1e9);
	else if (!strcmp(field->name, "bytes") ||
		 !strncmp(field->name, "mem-", 4))
		printf("%" PRIu64 " (%s)\n", value,
		       out_bytes(buf, sizeof(buf), value));
	else
		printf("%" PRIu64 "\n", value);
}

static void print_fields(const struct mgpu_field *fields, const void *info,
			 int indent)
{
	char name[OUT_CELL];
	int len;

	for (; fields->attr; fields++) {
		if (fields->type == MGPU_FIELD_NEST) {
			if (!mgpu_field_present(fields, info))
				continue;
			printf("%*s%s:\n", indent, "", fields->name);
			print_fields(fields->nest,
				     (const char *)info + fields->offset,
				     indent + 2);
			continue;
		}
		/* -ns is the unit of JSON; people get seconds */
		len = (int)strlen(fields->name);
		if (ends_in(fields->name, "-ns"))
			snprintf(name, sizeof(name), "%.*s-time:", len - 3,
				 fields->name);
		else
			snprintf(name, sizeof(name), "%s:", fields->name);
		printf("%*s%-*s ", indent, "", 20 - indent, name);
		print_value(fields, info);
	}
}

void out_fields(const struct mgpu_field *fields, const void *info)
{
	print_fields(fields, info, 0);
}

/* ---- tables ---- */

void table_cell(struct table *table, const char *fmt, ...)
{
	va_list ap;

	if (table->nr == table->room) {
		table->room = table->room ? table->room * 2 : 64;
		table->cells = reallocarray(table->cells, table->room,
					    sizeof(*table->cells));
		if (!table->cells) {
			fputs("gpuctl: out of memory\n", stderr);
			exit(EXIT_FAILED);
		}
	}
	va_start(ap, fmt);
	vsnprintf(table->cells[table->nr++], OUT_CELL, fmt, ap);
	va_end(ap);
}

static void print_cell(const char *text, size_t width, bool right, bool last)
{
	if (right)
		printf("%*s", (int)width, text);
	else if (last)
		fputs(text, stdout);
	else
		printf("%-*s", (int)width, text);
	fputs(last ? "\n" : "  ", stdout);
}

void table_print(struct table *table, size_t rows)
{
	size_t widths[16] = { 0 };
	bool right[16];
	size_t columns;
	size_t all;
	size_t i;

	for (columns = 0; table->columns[columns]; columns++) {
		right[columns] = table->columns[columns][0] == '>';
		widths[columns] = strlen(table->columns[columns]) -
				  right[columns];
	}
	for (i = 0; i < table->nr; i++)
		if (strlen(table->cells[i]) > widths[i % columns])
			widths[i % columns] = strlen(table->cells[i]);

	for (i = 0; i < columns; i++)
		print_cell(table->columns[i] + right[i], widths[i], right[i],
			   i + 1 == columns);
	all = table->nr / columns;
	for (i = 0; i < table->nr && i / columns < rows; i++)
		print_cell(table->cells[i], widths[i % columns],
			   right[i % columns], (i + 1) % columns == 0);
	if (all > rows)
		printf("and %zu more\n", all - rows);

	free(table->cells);
	table->cells = NULL;
	table->nr = 0;
	table->room = 0;
}

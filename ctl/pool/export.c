// SPDX-License-Identifier: GPL-2.0-only
/*
 * The history as CSV of RFC 4180: lines end with CR LF, and a field with a quote, a comma or an
 * end of line is in quotes.  Spreadsheets take a field that begins with = + - @ TAB or CR for a
 * formula, in quotes or not: such a text gets an apostrophe before it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export.h"

/* Rows that are read at a time: the history may be larger than memory. */
#define EXPORT_ROWS	1000

struct export {
	FILE *f;
	uint64_t last;
	unsigned int rows;
};

static void put_text(FILE *f, const char *text)
{
	bool quoted = strpbrk(text, "\",\r\n");

	if (quoted)
		fputc('"', f);
	if (*text && strchr("=+-@\t\r", *text))
		fputc('\'', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	if (quoted)
		fputc('"', f);
	fputc(',', f);
}

static void put_time(FILE *f, int64_t seconds)
{
	time_t t = (time_t)seconds;
	char text[40] = "";
	struct tm tm;

	if (seconds && gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(f, "%s,", text);
}

/* 0 of a field that may be unknown is an empty one. */
static void put_known(FILE *f, uint64_t number)
{
	if (number)
		fprintf(f, "%" PRIu64, number);
	fputc(',', f);
}

static int put_outcome(const struct pool_outcome *o, void *arg)
{
	struct export *e = arg;
	uint64_t us = (uint64_t)(o->seconds * 1e6 + 0.5);

	fprintf(e->f, "%" PRIu64 ",", o->request);
	put_text(e->f, o->project);
	put_text(e->f, o->kind);
	put_text(e->f, o->model);
	put_text(e->f, pool_target_name(o->target));
	put_text(e->f, pool_precision_name(o->precision));
	fprintf(e->f, "%" PRIu64 ",", o->size_mib);
	/* no decimal comma of a locale */
	fprintf(e->f, "%" PRIu64 ".%06" PRIu64 ",", us / 1000000, us % 1000000);
	fprintf(e->f, "%" PRIu64 ",", o->busy_ns);
	put_known(e->f, o->energy_mj);
	put_known(e->f, o->memory_mib);
	put_time(e->f, o->ended);
	fprintf(e->f, "%d\r\n", o->done);
	e->last = o->request;
	e->rows++;
	return ferror(e->f) ? 1 : 0;
}

static int put_all(struct store *store, struct export *e)
{
	int rc;

	fputs("request,project,kind,model,target,precision,size_mib,seconds,busy_ns,energy_mj,memory_mib,ended,done\r\n",
	      e->f);
	do {
		e->rows = 0;
		rc = store_outcomes_after(store, e->last, EXPORT_ROWS, put_outcome, e);
	} while (!rc && e->rows == EXPORT_ROWS);
	return rc;
}

int store_export(struct store *store, int fd)
{
	struct export e = { 0 };
	int copy = dup(fd), rc;
	char why[200];

	e.f = copy < 0 ? NULL : fdopen(copy, "w");
	if (!e.f) {
		if (copy >= 0)
			close(copy);
		return store_set_error(store, -EIO, "the export has no file");
	}
	rc = put_all(store, &e);
	if (fclose(e.f) || rc > 0) {
		snprintf(why, sizeof(why), "the export cannot be written: %s", strerror(errno));
		rc = store_set_error(store, -EIO, why);
	}
	return rc;
}

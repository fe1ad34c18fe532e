// SPDX-License-Identifier: GPL-2.0-only
/* Reads measured pairs. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "pairs_csv.h"

#define RECORD_MAX	65536
#define FIELDS_MAX	64

/* Columns of a job, whose names end in 1 or 2, and of a pair. */
enum {
	MODEL, DATASET, BATCH, SPEED, GPUS, AMP, GPU_ALONE, MEMORY_ALONE, OF_JOB,
	GPU_USE = 2 * OF_JOB, MEMORY_USE, KNOWN,
};

static const struct {
	const char *name;
	bool needed;
} of_job[OF_JOB] = {
	[MODEL] = { "model", true },
	[DATASET] = { "dataset", true },
	[BATCH] = { "batchsize", true },
	[SPEED] = { "speed", true },
	[GPUS] = { "gpu_num", false },
	[AMP] = { "amp", false },
	[GPU_ALONE] = { "gpu_alone", false },
	[MEMORY_ALONE] = { "gmem_alone", false },
};

/**
 * struct csv - a file that is being read
 * @f: the file
 * @file: its name
 * @line: number of the line, of its last record
 * @lines: lines read
 * @text: fields of the record, each ended by a NUL
 * @at: place of each field in @text
 * @nr: fields of the record
 * @columns: fields of the first record
 * @where: field of each column, -1: there is none
 * @why: for an error
 * @len: size of @why
 */
struct csv {
	FILE *f;
	const char *file;
	size_t line;
	size_t lines;
	char text[RECORD_MAX];
	size_t at[FIELDS_MAX];
	size_t nr;
	size_t columns;
	int where[KNOWN];
	char *why;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct csv *c, const char *fmt, ...)
{
	va_list args;
	int n;

	n = snprintf(c->why, c->len, "%s:%zu: ", c->file, c->line);
	va_start(args, fmt);
	if (n >= 0 && (size_t)n < c->len)
		vsnprintf(c->why + n, c->len - (size_t)n, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Return the next byte; a carriage return before the end of a line is none. */
static int next_byte(struct csv *c)
{
	int byte = getc(c->f);

	if (byte == '\r') {
		byte = getc(c->f);
		if (byte != '\n') {
			ungetc(byte, c->f);
			byte = '\r';
		}
	}
	c->lines += byte == '\n';
	return byte;
}

static int put(struct csv *c, size_t *size, int byte)
{
	if (!byte)
		return refuse(c, "a byte 0; the file must be text");
	if (*size == RECORD_MAX - 1)
		return refuse(c, "longer than %d bytes; is a quote missing?", RECORD_MAX);
	c->text[(*size)++] = (char)byte;
	return 0;
}

/* Read what is behind an opening quote, with the closing one. */
static int read_quoted(struct csv *c, size_t *size)
{
	for (;;) {
		int byte = next_byte(c), ret;

		if (byte == EOF)
			return refuse(c, "a quote that opens and does not close; add the second one");
		if (byte == '"') {
			byte = getc(c->f);
			if (byte != '"') {
				ungetc(byte, c->f);
				return 0;
			}
		}
		ret = put(c, size, byte);
		if (ret)
			return ret;
	}
}

/* Read a field; @end: the byte behind it. */
static int read_field(struct csv *c, size_t *size, int *end)
{
	bool quoted = false;

	if (c->nr == FIELDS_MAX)
		return refuse(c, "more than %d columns; remove some", FIELDS_MAX);
	c->at[c->nr++] = *size;
	for (;;) {
		int ret = 0;

		*end = next_byte(c);
		if (*end == ',' || *end == '\n' || *end == EOF)
			break;
		if (*end == '"' && *size == c->at[c->nr - 1] && !quoted) {
			quoted = true;
			ret = read_quoted(c, size);
		} else if (quoted) {
			ret = refuse(c, "something follows a closing quote; double quotes within quotes");
		} else {
			ret = put(c, size, *end);
		}
		if (ret)
			return ret;
	}
	if (*size == RECORD_MAX - 1)
		return refuse(c, "longer than %d bytes; is a quote missing?", RECORD_MAX);
	c->text[(*size)++] = '\0';
	return 0;
}

/* Read a record that is not empty. Return 1, 0 at the end, or -errno. */
static int next_record(struct csv *c)
{
	int end;

	do {
		size_t size = 0;

		c->line = c->lines + 1;
		c->nr = 0;
		do {
			int ret = read_field(c, &size, &end);

			if (ret)
				return ret;
		} while (end == ',');
		if (end == EOF && ferror(c->f))
			return -EIO;
	} while (end != EOF && c->nr == 1 && !c->text[0]);
	return c->nr > 1 || c->text[0];
}

static void column_name(int column, char name[16])
{
	if (column < 2 * OF_JOB)
		snprintf(name, 16, "%s%d", of_job[column % OF_JOB].name, 1 + column / OF_JOB);
	else
		strcpy(name, column == GPU_USE ? "gpu_util" : "gmem_util");
}

static bool is_needed(int column)
{
	return column < 2 * OF_JOB && of_job[column % OF_JOB].needed;
}

static int read_header(struct csv *c)
{
	int ret = next_record(c);
	char name[16];

	if (ret < 0)
		return ret;
	if (!ret)
		return refuse(c, "the file is empty; its first line must name its columns");
	c->columns = c->nr;
	for (int k = 0; k < KNOWN; k++) {
		c->where[k] = -1;
		column_name(k, name);
		for (size_t i = 0; i < c->nr; i++) {
			if (strcmp(c->text + c->at[i], name))
				continue;
			if (c->where[k] >= 0)
				return refuse(c, "duplicate column '%s'; remove one", name);
			c->where[k] = (int)i;
		}
		if (c->where[k] < 0 && is_needed(k))
			return refuse(c, "no column '%s'; pairs need model, dataset, batchsize and speed, each with 1 and 2 behind its name",
				      name);
	}
	return 0;
}

static const char *field(const struct csv *c, int column)
{
	return c->where[column] < 0 ? "" : c->text + c->at[c->where[column]];
}

/* Read a number. An empty field is @otherwise if it is @optional. */
static int number(struct csv *c, int column, double least, double most, bool optional,
		  double otherwise, double *value)
{
	const char *text = field(c, column);
	char name[16], *end;

	*value = otherwise;
	if (!text[0] && optional)
		return 0;
	*value = strtod(text, &end);
	if (end != text && !*end && *value >= least && *value <= most)
		return 0;
	column_name(column, name);
	return refuse(c, "%s is '%.40s'; it must be a number from %g to %g", name, text, least,
		      most);
}

static int name_of(struct csv *c, int column, char name[PAIRS_NAME])
{
	const char *text = field(c, column);
	char title[16];

	column_name(column, title);
	if (pairs_name(name, text))
		return 0;
	return refuse(c, "%s is '%.60s'; it must have 1 to %d bytes", title, text, PAIRS_NAME - 1);
}

static int read_job(struct csv *c, int first, struct pairs_job *j, double *speed)
{
	double amp;
	int ret;

	*j = (struct pairs_job){ 0 };
	ret = name_of(c, first + MODEL, j->model);
	if (!ret)
		ret = name_of(c, first + DATASET, j->dataset);
	if (!ret)
		ret = number(c, first + BATCH, 1, PAIRS_NUMBER_MAX, false, NAN, &j->batch);
	if (!ret)
		ret = number(c, first + SPEED, PAIRS_SPEED_MIN, PAIRS_SPEED_MAX, false, NAN, speed);
	if (!ret)
		ret = number(c, first + GPUS, 1, PAIRS_NUMBER_MAX, true, 1, &j->gpus);
	if (!ret)
		ret = number(c, first + AMP, 0, 1, true, 0, &amp);
	if (!ret)
		ret = number(c, first + GPU_ALONE, 0, 100, true, NAN, &j->gpu_use);
	if (!ret)
		ret = number(c, first + MEMORY_ALONE, 0, 100, true, NAN, &j->memory_use);
	j->gpu_use /= 100;
	j->memory_use /= 100;
	j->amp = !ret && amp > 0.5;
	return ret;
}

/* Make room for one more of @nr things of @size bytes. */
static void *grown(void *array, size_t nr, size_t size)
{
	/* at 0, 64, 128, 256, ... */
	if (nr && (nr < 64 || nr & (nr - 1)))
		return array;
	return realloc(array, (nr ? nr * 2 : 64) * size);
}

/* Find a job in the table, or add it. Return 0 or -errno. */
static int place_job(struct pairs_table *t, struct csv *c, const struct pairs_job *j, size_t *at)
{
	struct pairs_job *more;

	for (*at = 0; *at < t->jobs; (*at)++)
		if (pairs_same(&t->job[*at], j))
			return 0;
	if (t->jobs == PAIRS_JOBS_MAX)
		return refuse(c, "more than %d jobs; divide the file", PAIRS_JOBS_MAX);
	more = grown(t->job, t->jobs, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->job = more;
	t->job[t->jobs++] = *j;
	return 0;
}

static int read_row(struct pairs_table *t, struct csv *c)
{
	struct pairs_row row = { 0 }, *more;
	struct pairs_job job[2];
	int ret = 0;

	if (c->nr != c->columns)
		return refuse(c, "%zu fields; the first line names %zu columns", c->nr, c->columns);
	if (t->rows == PAIRS_ROWS_MAX)
		return refuse(c, "more than %d pairs; divide the file", PAIRS_ROWS_MAX);
	for (int i = 0; !ret && i < 2; i++)
		ret = read_job(c, i * OF_JOB, &job[i], &row.speed[i]);
	if (!ret)
		ret = number(c, GPU_USE, 0, 100, true, NAN, &row.gpu_use);
	if (!ret)
		ret = number(c, MEMORY_USE, 0, 100, true, NAN, &row.memory_use);
	for (int i = 0; !ret && i < 2; i++)
		ret = place_job(t, c, &job[i], &row.job[i]);
	if (ret)
		return ret;
	row.gpu_use /= 100;
	row.memory_use /= 100;
	more = grown(t->row, t->rows, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->row = more;
	t->row[t->rows++] = row;
	return 0;
}

int pairs_read(struct pairs_table *t, FILE *f, const char *file, char *why, size_t len)
{
	struct csv *c = calloc(1, sizeof(*c));
	int ret = -ENOMEM;

	*t = (struct pairs_table){ 0 };
	why[0] = '\0';
	if (c) {
		c->f = f;
		c->file = file;
		c->why = why;
		c->len = len;
		ret = read_header(c);
		while (!ret) {
			ret = next_record(c);
			if (ret <= 0)
				break;
			ret = read_row(t, c);
		}
		if (!ret && !t->rows)
			ret = refuse(c, "no pairs; each line after the first is a pair");
	}
	free(c);
	if (ret && !why[0])
		snprintf(why, len, "%s: %s", file, strerror(-ret));
	return ret;
}

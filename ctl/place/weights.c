// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file of weights is text: a line with the version, a line for each feature in their order,
 * and a line with a checksum of the lines before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "weights.h"

#define HEAD		"mgpu-place-weights"
#define NAME_LEN	32
#define LINE_LEN	80

/**
 * struct reader - a file that is being read
 * @f: the file
 * @file: its name
 * @line: number of the line
 * @text: the line, without its end
 * @sum: checksum of the lines before
 * @why: for an error
 * @size: size of @why
 */
struct reader {
	FILE *f;
	const char *file;
	unsigned int line;
	char text[LINE_LEN];
	uint64_t sum;
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct reader *r, const char *fmt, ...)
{
	va_list args;
	int len;

	len = snprintf(r->why, r->size, "%s:%u: ", r->file, r->line);
	va_start(args, fmt);
	if (len >= 0 && (size_t)len < r->size)
		vsnprintf(r->why + len, r->size - (size_t)len, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Read a line, which must end. */
static int next_line(struct reader *r)
{
	size_t len = 0;
	int c;

	r->line++;
	while ((c = getc(r->f)) != EOF && c != '\n') {
		if (len == sizeof(r->text) - 1 || !c)
			return refuse(r, "not a line of a file of weights");
		r->text[len++] = (char)c;
	}
	r->text[len] = '\0';
	if (c == EOF)
		return refuse(r, "the file ends too early; train again, or get a whole copy");
	return 0;
}

static void add_line(struct reader *r)
{
	r->sum = checksum_add(checksum_add(r->sum, r->text, strlen(r->text)), "\n", 1);
}

/* Read a whole number behind @prefix and a blank; false if the line is none. */
static bool read_number(const char *text, const char *prefix, long long *number)
{
	size_t len = strlen(prefix);
	char *end;

	if (strncmp(text, prefix, len) || text[len] != ' ' || !text[len + 1] ||
	    text[len + 1] == ' ')
		return false;
	errno = 0;
	*number = strtoll(text + len + 1, &end, 10);
	return !errno && !*end && end != text + len + 1;
}

static int read_version(struct reader *r)
{
	long long version;
	int ret = next_line(r);

	if (ret)
		return ret;
	if (!read_number(r->text, HEAD, &version))
		return refuse(r, "not a file of weights; 'mgpu-place train' writes one");
	if (version != WEIGHTS_VERSION)
		return refuse(r, "version %lld; this mgpu-place reads version %d: train again",
			      version, WEIGHTS_VERSION);
	add_line(r);
	return 0;
}

static int read_weight(struct reader *r, unsigned int feature, int32_t *value)
{
	char name[NAME_LEN];
	long long number;
	int ret = next_line(r);

	if (ret)
		return ret;
	place_feature_name(feature, name, sizeof(name));
	if (!read_number(r->text, name, &number))
		return refuse(r, "'%s' instead of the weight of %s: the features differ; train again",
			      r->text, name);
	if (number < -PLACE_MAX_WEIGHT || number > PLACE_MAX_WEIGHT)
		return refuse(r, "the weight of %s is %lld; it must be from %d to %d", name, number,
			      -PLACE_MAX_WEIGHT, PLACE_MAX_WEIGHT);
	*value = (int32_t)number;
	add_line(r);
	return 0;
}

int weights_read(struct place_weights *w, FILE *f, const char *file, char *why, size_t size)
{
	struct reader r = { .f = f, .file = file, .sum = CHECKSUM_START, .why = why, .size = size };
	char sum[LINE_LEN];
	int ret;

	why[0] = '\0';
	ret = read_version(&r);
	for (unsigned int i = 0; !ret && i < PLACE_FEATURES; i++)
		ret = read_weight(&r, i, &w->value[i]);
	if (!ret)
		ret = next_line(&r);
	if (ret)
		return ret;
	snprintf(sum, sizeof(sum), "checksum %016" PRIx64, r.sum);
	if (strcmp(r.text, sum))
		return refuse(&r, "the checksum is wrong: the file was changed; train again, or get a whole copy");
	r.line++;
	if (getc(f) != EOF)
		return refuse(&r, "something follows the checksum");
	return 0;
}

int weights_write(const struct place_weights *w, FILE *f)
{
	char line[LINE_LEN], name[NAME_LEN];
	uint64_t sum = CHECKSUM_START;

	snprintf(line, sizeof(line), HEAD " %d\n", WEIGHTS_VERSION);
	for (unsigned int i = 0;; i++) {
		sum = checksum_add(sum, line, strlen(line));
		fputs(line, f);
		if (i == PLACE_FEATURES)
			break;
		place_feature_name(i, name, sizeof(name));
		snprintf(line, sizeof(line), "%s %" PRId32 "\n", name, w->value[i]);
	}
	fprintf(f, "checksum %016" PRIx64 "\n", sum);
	return fflush(f) || ferror(f) ? -EIO : 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file of weights is text: a line with the version, a line for each feature in their order,
 * and a line with a checksum of the lines before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "checksum.h"
#include "weights.h"

#define HEAD		"mgpu-place-weights"
#define NAME_LEN	32
#define LINE_LEN	80

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

static int read_version(struct checked *c)
{
	long long version;
	int ret = checked_line(c);

	if (ret)
		return ret;
	if (!read_number(c->text, HEAD, &version))
		return checked_refuse(c, "not a file of weights; 'mgpu-place train' writes one");
	if (version != WEIGHTS_VERSION)
		return checked_refuse(c, "version %lld; this mgpu-place reads version %d: train again",
				      version, WEIGHTS_VERSION);
	return 0;
}

static int read_weight(struct checked *c, unsigned int feature, int32_t *value)
{
	char name[NAME_LEN];
	long long number;
	int ret = checked_line(c);

	if (ret)
		return ret;
	place_feature_name(feature, name, sizeof(name));
	if (!read_number(c->text, name, &number))
		return checked_refuse(c, "'%s' instead of the weight of %s: the features differ; train again",
				      c->text, name);
	if (number < -PLACE_MAX_WEIGHT || number > PLACE_MAX_WEIGHT)
		return checked_refuse(c, "the weight of %s is %lld; it must be from %d to %d",
				      name, number, -PLACE_MAX_WEIGHT, PLACE_MAX_WEIGHT);
	*value = (int32_t)number;
	return 0;
}

int weights_read(struct place_weights *w, FILE *f, const char *file, char *why, size_t size)
{
	struct checked c;
	int ret;

	checked_init(&c, f, file, why, size);
	ret = read_version(&c);
	for (unsigned int i = 0; !ret && i < PLACE_FEATURES; i++)
		ret = read_weight(&c, i, &w->value[i]);
	return ret ? ret : checked_end(&c);
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
	return checked_finish(sum, f);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Words to values. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl.h"

int parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	unsigned long long number;

	if (!*text || text[strspn(text, "0123456789")])
		return -EINVAL;
	errno = 0;
	number = strtoull(text, NULL, 10);
	if (errno || number < min || number > max)
		return -ERANGE;
	*value = (uint32_t)number;
	return 0;
}

int parse_fps(const char *text, uint32_t *millihertz)
{
	uint64_t value = 0;
	int decimals = -1;	/* no point yet */
	bool digits = false;

	if (!strcmp(text, "none")) {
		*millihertz = 0;
		return 0;
	}

	for (; *text; text++) {
		if (*text == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (*text < '0' || *text > '9')
			return -EINVAL;
		digits = true;
		/* Beyond millihertz there may be zeros only. */
		if (decimals == 3) {
			if (*text != '0')
				return -EINVAL;
			continue;
		}
		if (decimals >= 0)
			decimals++;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > UINT32_MAX)
			return -ERANGE;
	}
	if (!digits)
		return -EINVAL;
	for (decimals = decimals < 0 ? 0 : decimals; decimals < 3; decimals++)
		value *= 10;
	if (value < MGPU_FPS_LIMIT_MIN || value > MGPU_FPS_LIMIT_MAX)
		return -ERANGE;
	*millihertz = (uint32_t)value;
	return 0;
}

int parse_double(const char *text, double *value)
{
	double number;
	char *end;

	if (!*text || text[strspn(text, "+-.0123456789eE")])
		return -EINVAL;
	errno = 0;
	number = strtod(text, &end);
	if (*end || end == text)
		return -EINVAL;
	if (!isfinite(number))
		return -ERANGE;
	*value = number;
	return 0;
}

bool is_word(const char *word, const char *const *words)
{
	for (; words && *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

#define WORD_MAX	32

/* How many letters to insert, drop, replace or swap to make @b of @a. */
static size_t distance(const char *a, const char *b)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a);
	size_t lb = strlen(b);
	size_t i;
	size_t j;

	if (la > WORD_MAX || lb > WORD_MAX)
		return SIZE_MAX;
	for (i = 0; i <= la; i++)
		d[i][0] = i;
	for (j = 0; j <= lb; j++)
		d[0][j] = j;
	for (i = 1; i <= la; i++) {
		for (j = 1; j <= lb; j++) {
			size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[la][lb];
}

const char *suggest(const char *word, const char *const *words)
{
	const char *best = NULL;
	size_t least = 3;

	for (; words && *words; words++) {
		size_t n = distance(word, *words);

		/* An abbreviation is meant, whatever it leaves out. */
		if (*word && !strncmp(word, *words, strlen(word)))
			n = 0;
		/* Of a short word something must be left. */
		if (n < least && n < strlen(*words) - 1) {
			least = n;
			best = *words;
		}
	}
	return best;
}

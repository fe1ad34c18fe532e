// SPDX-License-Identifier: GPL-2.0-only
/* Reads lines of words. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

void lines_init(struct lines *l, const char *text, size_t size, char *why, size_t len)
{
	*l = (struct lines){ .at = text, .end = text + size, .why = why, .len = len };
	why[0] = '\0';
}

int lines_refuse(struct lines *l, const char *fmt, ...)
{
	va_list args;
	int n;

	n = snprintf(l->why, l->len, "line %zu of the weights: ", l->nr);
	va_start(args, fmt);
	if (n >= 0 && (size_t)n < l->len)
		vsnprintf(l->why + n, l->len - (size_t)n, fmt, args);
	va_end(args);
	return -EINVAL;
}

static int next_line(struct lines *l)
{
	const char *end = l->at < l->end ? memchr(l->at, '\n', (size_t)(l->end - l->at)) : NULL;

	l->nr++;
	if (!end)
		return lines_refuse(l, "the text ends too early; train again");
	l->rest = l->at;
	l->at = end + 1;
	return 0;
}

const char *lines_word(struct lines *l, const char *what)
{
	const char *word = l->rest, *blank;
	size_t size = word ? (size_t)(l->at - 1 - word) : 0;

	blank = size ? memchr(word, ' ', size) : NULL;
	if (blank)
		size = (size_t)(blank - word);
	l->rest = blank ? blank + 1 : NULL;
	if (!size) {
		lines_refuse(l, "no %s; train again", what);
		return NULL;
	}
	if (size >= sizeof(l->word) || memchr(word, 0, size)) {
		lines_refuse(l, "not a word of weights; train again");
		return NULL;
	}
	memcpy(l->word, word, size);
	l->word[size] = '\0';
	return l->word;
}

int lines_next(struct lines *l, const char *word)
{
	const char *first;

	if (next_line(l))
		return -EINVAL;
	first = lines_word(l, word);
	if (!first)
		return -EINVAL;
	if (strcmp(first, word))
		return lines_refuse(l, "\"%.32s\" instead of \"%s\"; train again", first, word);
	return 0;
}

int lines_number(struct lines *l, const char *what, double least, double most, double *value)
{
	const char *word = lines_word(l, what);
	char *end;

	if (!word)
		return -EINVAL;
	*value = strtod(word, &end);
	if ((*word != '-' && (*word < '0' || *word > '9')) || end == word || *end ||
	    !(*value >= least && *value <= most))
		return lines_refuse(l, "%s is \"%.32s\"; it must be a number from %g to %g; train again",
				    what, word, least, most);
	return 0;
}

int lines_whole(struct lines *l, const char *what, size_t least, size_t most, size_t *value)
{
	double number;
	int ret = lines_number(l, what, (double)least, (double)most, &number);

	if (!ret && number != floor(number))
		return lines_refuse(l, "%s must be a whole number; train again", what);
	*value = ret ? least : (size_t)number;
	return ret;
}

int lines_done(struct lines *l)
{
	return l->rest ? lines_refuse(l, "something follows \"%.32s\"; train again", l->word) : 0;
}

int lines_end(struct lines *l)
{
	return l->at < l->end ? lines_refuse(l, "something follows the last line; train again") : 0;
}

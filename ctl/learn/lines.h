/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the payloads of weights: lines of words with single blanks between them. They are not
 * trusted. Pure.
 */
#ifndef MGPU_LEARN_LINES_H
#define MGPU_LEARN_LINES_H

#include <stddef.h>

#define LINES_WORD	256	/* bytes of a word, with the NUL at its end */

/**
 * struct lines - text that is being read
 * @at: the rest of the text
 * @end: end of the text
 * @nr: number of the line
 * @rest: the rest of the line, up to the newline before @at; NULL after its last word
 * @word: the word last read
 * @why: for an error, a sentence
 * @len: size of @why
 */
struct lines {
	const char *at;
	const char *end;
	size_t nr;
	const char *rest;
	char word[LINES_WORD];
	char *why;
	size_t len;
};

void lines_init(struct lines *l, const char *text, size_t size, char *why, size_t len);

/* Write an error with the number of the line. Return -EINVAL. */
int lines_refuse(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Go to the next line, which must begin with @word. Return 0 or -EINVAL. */
int lines_next(struct lines *l, const char *word);

/* Return the next word of the line, which the one after it overwrites; NULL after an error. */
const char *lines_word(struct lines *l, const char *what);

/* Read a finite number in a range. Return 0 or -EINVAL. */
int lines_number(struct lines *l, const char *what, double least, double most, double *value);

/* Read a whole number likewise. */
int lines_whole(struct lines *l, const char *what, size_t least, size_t most, size_t *value);

/* Check that the line has no further word. Return 0 or -EINVAL. */
int lines_done(struct lines *l);

/* Check that there is no further line. Return 0 or -EINVAL. */
int lines_end(struct lines *l);

#endif /* MGPU_LEARN_LINES_H */

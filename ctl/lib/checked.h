/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of lines, which may have other bytes between them, and a last line with a checksum of
 * all before it: "checksum DIGITS". They are not trusted.
 */
#ifndef LIBMGPU_CHECKED_H
#define LIBMGPU_CHECKED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CHECKED_LINE	288	/* bytes of a line, with the NUL at its end */

/**
 * struct checked - a file that is being read
 * @f: the file
 * @name: its name
 * @line: number of the line
 * @text: the line, without its end
 * @sum: checksum of all that was read
 * @why: for an error, a sentence
 * @size: size of @why, bytes
 */
struct checked {
	FILE *f;
	const char *name;
	unsigned int line;
	char text[CHECKED_LINE];
	uint64_t sum;
	char *why;
	size_t size;
};

void checked_init(struct checked *c, FILE *f, const char *name, char *why, size_t size);

/* Write an error with the name of the file and the number of the line. Return -EINVAL. */
int checked_refuse(const struct checked *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Read a line. Return 0 or -EINVAL. */
int checked_line(struct checked *c);

/* Read so many bytes. Return 0 or -EINVAL. */
int checked_bytes(struct checked *c, char *data, size_t size);

/* Read the line with the checksum, which must be right and the last. Return 0 or -EINVAL. */
int checked_end(struct checked *c);

/* Write that line, @sum being checksum_add()'s of all before it. Return 0 or -EIO. */
int checked_finish(uint64_t sum, FILE *f);

#endif /* LIBMGPU_CHECKED_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of lines NAME=VALUE: settings, jobs, and what the agent keeps. */
#ifndef AGENT_LINES_H
#define AGENT_LINES_H

#include <stddef.h>
#include <stdint.h>

#define LINES_MAX	65536	/* bytes of a file */

/**
 * lines_parse() - read lines
 * @text: the text; changed
 * @fn: called for each line, with blanks at its ends cut off; other than 0 stops
 * @arg: for @fn
 * @why: sentence about an error, of 256 bytes
 *
 * Empty lines, and lines that begin with #, do not count.
 *
 * Return: 0, what @fn returned, or -EINVAL for a line without "=".
 */
int lines_parse(char *text, int (*fn)(void *arg, const char *name, const char *value, char *why),
		void *arg, char *why);

/**
 * lines_read_fd() - read a file whole
 * @fd: the file
 * @text: the text with a NUL, for the caller to free
 *
 * Return: 0, -EFBIG beyond LINES_MAX, -EINVAL for a file with a NUL, or -errno.
 */
int lines_read_fd(int fd, char **text);

/* The same, then lines_parse(). */
int lines_read(const char *path, int (*fn)(void *arg, const char *name, const char *value,
					   char *why), void *arg, char *why);

/* Read "512M", "4G" or "1T" in MiB. Return 0 or -EINVAL. */
int lines_size(const char *text, uint64_t *mib);
/* Read "90", "90s", "30m", "2h" or "1d" in seconds, up to 10 years. Return 0 or -EINVAL. */
int lines_duration(const char *text, uint32_t *seconds);

#endif /* AGENT_LINES_H */

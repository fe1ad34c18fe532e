// SPDX-License-Identifier: GPL-2.0-only
/* Files of lines NAME=VALUE. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lines.h"
#include "wire.h"

#define DURATION_MAX	(10u * 366 * 86400)

/* Cut off blanks at both ends. */
static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	for (length = strlen(text); length && strchr(" \t\r", text[length - 1]); length--)
		text[length - 1] = '\0';
	return text;
}

int lines_parse(char *text, int (*fn)(void *arg, const char *name, const char *value, char *why),
		void *arg, char *why)
{
	unsigned int nr = 0;
	char *line, *equals;
	int ret = 0;

	while (!ret && (line = strsep(&text, "\n"))) {
		nr++;
		line = trim(line);
		if (!*line || *line == '#')
			continue;
		equals = strchr(line, '=');
		if (!equals) {
			snprintf(why, 256, "line %u has no '=': write NAME=VALUE", nr);
			return -EINVAL;
		}
		*equals = '\0';
		ret = fn(arg, trim(line), trim(equals + 1), why);
	}
	return ret;
}

int lines_read_fd(int fd, char **text)
{
	char *buffer = malloc(LINES_MAX + 1);
	size_t have = 0;
	ssize_t n = 1;
	int ret = 0;

	if (!buffer)
		return -ENOMEM;
	while (have <= LINES_MAX && n > 0) {
		n = read(fd, buffer + have, LINES_MAX + 1 - have);
		if (n < 0)
			ret = -errno;
		else
			have += (size_t)n;
	}
	if (!ret && have > LINES_MAX)
		ret = -EFBIG;
	if (!ret && memchr(buffer, '\0', have))
		ret = -EINVAL;
	if (ret) {
		free(buffer);
		return ret;
	}
	buffer[have] = '\0';
	*text = buffer;
	return 0;
}

int lines_read(const char *path, int (*fn)(void *arg, const char *name, const char *value,
					   char *why), void *arg, char *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), ret;
	char *text;

	if (fd < 0)
		return -errno;
	ret = lines_read_fd(fd, &text);
	close(fd);
	if (ret) {
		snprintf(why, 256, "%s", strerror(-ret));
		return ret;
	}
	ret = lines_parse(text, fn, arg, why);
	free(text);
	return ret;
}

/* Read digits; @rest is what follows them. */
static int digits(const char *text, uint64_t max, uint64_t *value, const char **rest)
{
	size_t n = strspn(text, "0123456789");
	char number[24];

	if (!n || n >= sizeof(number))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)n, text);
	*rest = text + n;
	return wire_decimal(number, max, value);
}

int lines_size(const char *text, uint64_t *mib)
{
	static const char units[] = "MGT";
	const char *rest, *unit;
	uint64_t n;

	if (digits(text, UINT64_C(1) << 40, &n, &rest) || !*rest || rest[1])
		return -EINVAL;
	unit = strchr(units, *rest);
	if (!unit)
		return -EINVAL;
	*mib = n << (10 * (unit - units));
	return 0;
}

int lines_duration(const char *text, uint32_t *seconds)
{
	static const char units[] = "smhd";
	static const uint32_t factors[] = { 1, 60, 3600, 86400 };
	const char *rest, *unit = units;
	uint64_t n;

	if (digits(text, DURATION_MAX, &n, &rest))
		return -EINVAL;
	if (*rest) {
		unit = strchr(units, *rest);
		if (!unit || rest[1])
			return -EINVAL;
	}
	n *= factors[unit - units];
	if (n > DURATION_MAX)
		return -EINVAL;
	*seconds = (uint32_t)n;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Parse words to values. */
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

/*
 * Parse the first @len characters of @text, a number with at most @decimals decimals and
 * further zeros, times 10^decimals.
 */
static int parse_decimal(const char *text, size_t len, int decimals,
			 uint64_t *value)
{
	uint64_t number = 0;
	int seen = -1;		/* decimals so far; -1: before the point */
	bool digits = false;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] == '.' && seen < 0) {
			seen = 0;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		digits = true;
		if (seen == decimals) {
			if (text[i] != '0')
				return -EINVAL;
			continue;
		}
		if (seen >= 0)
			seen++;
		number = number * 10 + (uint64_t)(text[i] - '0');
		if (number > UINT32_MAX)
			return -ERANGE;
	}
	if (!digits)
		return -EINVAL;
	for (seen = seen < 0 ? 0 : seen; seen < decimals; seen++)
		number *= 10;
	*value = number;
	return 0;
}

int parse_fps(const char *text, uint32_t *millihertz)
{
	uint64_t value;
	int ret;

	if (!strcmp(text, "none")) {
		*millihertz = 0;
		return 0;
	}
	ret = parse_decimal(text, strlen(text), 3, &value);
	if (ret)
		return ret;
	if (value < MGPU_FPS_LIMIT_MIN || value > MGPU_FPS_LIMIT_MAX)
		return -ERANGE;
	*millihertz = (uint32_t)value;
	return 0;
}

int parse_share(const char *text, uint32_t *ppm)
{
	size_t len = strspn(text, "0123456789.");
	uint64_t value;
	int ret;

	if (!strcmp(text, "none")) {
		*ppm = 0;
		return 0;
	}
	if (!strcmp(text + len, "%"))
		ret = parse_decimal(text, len, 4, &value);
	else if (!strcmp(text + len, "ppm"))
		ret = parse_decimal(text, len, 0, &value);
	else
		return -EINVAL;
	if (ret)
		return ret;
	if (value < MGPU_GPU_LIMIT_MIN || value > MGPU_GPU_LIMIT_MAX)
		return -ERANGE;
	*ppm = (uint32_t)value;
	return 0;
}

int parse_time(const char *text, uint32_t unit_us, uint32_t min, uint32_t max,
	       uint32_t *value)
{
	static const struct {
		const char *name;
		int decimals;	/* down to a microsecond */
	} units[] = {
		{ "us", 0 }, { "ms", 3 }, { "s", 6 },
	};
	size_t len = strspn(text, "0123456789.");
	uint64_t us;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(text + len, units[i].name))
			break;
	/* 0 needs no unit */
	if (!strcmp(text, "0"))
		i = 0;
	if (i == sizeof(units) / sizeof(units[0]))
		return -EINVAL;
	ret = parse_decimal(text, len, units[i].decimals, &us);
	if (ret)
		return ret;
	if (us % unit_us)
		return -EINVAL;
	if (us / unit_us < min || us / unit_us > max)
		return -ERANGE;
	*value = (uint32_t)(us / unit_us);
	return 0;
}

int parse_mode(const char *text, uint32_t size[2])
{
	const char *x = strchr(text, 'x');
	uint32_t w, h;
	char width[16];
	size_t len;
	int ret;

	if (!strcmp(text, "max")) {
		size[0] = 0;
		size[1] = 0;
		return 0;
	}
	len = x ? (size_t)(x - text) : 0;
	if (!len || len >= sizeof(width))
		return -EINVAL;
	memcpy(width, text, len);
	width[len] = '\0';
	ret = parse_u32(width, MGPU_MODE_MIN, UINT32_MAX, &w);
	if (!ret)
		ret = parse_u32(x + 1, MGPU_MODE_MIN, UINT32_MAX, &h);
	if (ret)
		return ret;
	size[0] = w;
	size[1] = h;
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

int parse_bytes(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	const char *unit = NULL;
	unsigned long long number;
	int shift = 0;

	if (text[digits])
		unit = strchr(units, text[digits]);
	if (!digits || (text[digits] && (!unit || text[digits + 1])))
		return -EINVAL;
	if (unit)
		shift = 10 * (int)(unit - units + 1);
	errno = 0;
	number = strtoull(text, NULL, 10);
	if (errno || number > max >> shift || number << shift < min)
		return -ERANGE;
	*value = number << shift;
	return 0;
}

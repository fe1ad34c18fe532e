// SPDX-License-Identifier: GPL-2.0-only
/* Options with values, and what to say of wrong ones. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmdline.h"

void explain(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

int option_bad(const char *option, const char *value, const char *want)
{
	explain("--%s '%s': must be %s\n", option, value, want);
	return -EINVAL;
}

int option_number(const char *option, const char *value, double min, double max,
		  const char *want, double *v)
{
	char range[80], *end;

	errno = 0;
	*v = strtod(value, &end);
	/* Not the other way round: nan is in no range. */
	if (!errno && end != value && !*end && *v >= min && *v <= max)
		return 0;
	snprintf(range, sizeof(range), "a number from %.10g to %.10g", min, max);
	return option_bad(option, value, want ? want : range);
}

int option_u32(const char *option, const char *value, uint32_t min, uint32_t max,
	       uint32_t *v)
{
	double d;
	int ret = option_number(option, value, min, max, NULL, &d);

	if (!ret && d != (uint32_t)d)
		ret = option_bad(option, value, "a whole number");
	if (!ret)
		*v = (uint32_t)d;
	return ret;
}

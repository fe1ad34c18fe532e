// SPDX-License-Identifier: GPL-2.0-only
/* Messages of mgpu-renderd. */
#include <stdarg.h>
#include <stdio.h>

#include "complain.h"

void complain(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("mgpu-renderd: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Errors with a sentence. */
#ifndef MGPUD_FAIL_H
#define MGPUD_FAIL_H

#include <stdarg.h>
#include <stdio.h>

/* Write a sentence to @why, which has @size bytes; returns @code. */
__attribute__((format(printf, 4, 5)))
static inline int fail(char *why, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return code;
}

#endif /* MGPUD_FAIL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TAP output for unit tests, header only.
 *
 * A test is a function without arguments; main() runs each with the behaviour
 * it states and returns tap_done():
 *
 *	static void empty_ring(void)
 *	{
 *		TAP_EQ(pop(&ring), 0);		a failed check is reported and
 *		TAP_CHECK(ring.last == 0);	the test goes on
 *		TAP_NEED(ring.desc != NULL);	a failed need leaves the test
 *	}
 *
 *	int main(void)
 *	{
 *		tap_run(empty_ring, "an empty ring gives nothing");
 *		return tap_done();
 *	}
 *
 * A missing prerequisite is TAP_SKIP("reason"), which leaves the test too.
 */
#ifndef TESTS_UNIT_TAP_H
#define TESTS_UNIT_TAP_H

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct {
	unsigned int tests, failed, skipped;
	unsigned int bad;		/* checks failed in the current test */
	const char *skip;		/* why the current test was skipped */
} tap;

/* Print a diagnostic line. */
__attribute__((format(printf, 1, 2), unused))
static void tap_diag(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

__attribute__((unused))
static bool tap_check(bool good, const char *file, int line, const char *expr)
{
	if (!good) {
		tap.bad++;
		tap_diag("%s:%d: not true: %s", file, line, expr);
	}
	return good;
}

__attribute__((unused))
static bool tap_eq(long long got, long long want, const char *file, int line,
		   const char *expr)
{
	if (got == want)
		return true;
	tap.bad++;
	tap_diag("%s:%d: %s is %lld (0x%llx), not %lld (0x%llx)", file, line,
		 expr, got, (unsigned long long)got, want,
		 (unsigned long long)want);
	return false;
}

__attribute__((unused))
static bool tap_near(double got, double want, double tolerance,
		     const char *file, int line, const char *expr)
{
	/* written so that a NaN fails */
	if (fabs(got - want) <= tolerance)
		return true;
	tap.bad++;
	tap_diag("%s:%d: %s is %.9g, not %.9g within %.3g", file, line, expr,
		 got, want, tolerance);
	return false;
}

__attribute__((unused))
static bool tap_str(const char *got, const char *want, const char *file,
		    int line, const char *expr)
{
	if (got && want && !strcmp(got, want))
		return true;
	tap.bad++;
	tap_diag("%s:%d: %s is \"%s\", not \"%s\"", file, line, expr,
		 got ? got : "(null)", want ? want : "(null)");
	return false;
}

__attribute__((unused))
static bool tap_mem(const void *got, const void *want, size_t len,
		    const char *file, int line, const char *expr)
{
	const unsigned char *g = got, *w = want;
	size_t i;

	for (i = 0; i < len && g[i] == w[i]; i++)
		;
	if (i == len)
		return true;
	tap.bad++;
	tap_diag("%s:%d: %s differs at byte %zu of %zu: 0x%02x, not 0x%02x",
		 file, line, expr, i, len, g[i], w[i]);
	return false;
}

/* Each is a bool expression: TAP_EQ(a, b) || tap_diag(...) adds context. */
#define TAP_CHECK(cond) tap_check(!!(cond), __FILE__, __LINE__, #cond)
#define TAP_EQ(got, want) \
	tap_eq((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define TAP_NEAR(got, want, tolerance) \
	tap_near((got), (want), (tolerance), __FILE__, __LINE__, #got)
#define TAP_STR(got, want) tap_str((got), (want), __FILE__, __LINE__, #got)
#define TAP_MEM(got, want, len) \
	tap_mem((got), (want), (len), __FILE__, __LINE__, #got)

#define TAP_NEED(cond)							\
	do {								\
		if (!tap_check(!!(cond), __FILE__, __LINE__, #cond))	\
			return;						\
	} while (0)

#define TAP_SKIP(why)							\
	do {								\
		tap.skip = (why);					\
		return;							\
	} while (0)

__attribute__((unused))
static void tap_run(void (*test)(void), const char *behaviour)
{
	tap.bad = 0;
	tap.skip = NULL;
	if (!tap.tests)
		puts("TAP version 13");
	test();
	tap.tests++;
	if (tap.bad)
		tap.failed++;
	else if (tap.skip)
		tap.skipped++;
	printf("%sok %u %s%s%s\n", tap.bad ? "not " : "", tap.tests, behaviour,
	       tap.skip && !tap.bad ? " # SKIP " : "",
	       tap.skip && !tap.bad ? tap.skip : "");
	fflush(stdout);
}

/* The plan, and main()'s result: 0, or 1 when a test failed or none ran. */
__attribute__((unused))
static int tap_done(void)
{
	printf("1..%u\n", tap.tests);
	printf("# pass:%u fail:%u skip:%u\n",
	       tap.tests - tap.failed - tap.skipped, tap.failed, tap.skipped);
	fflush(stdout);
	return tap.failed || !tap.tests;
}

#endif /* TESTS_UNIT_TAP_H */

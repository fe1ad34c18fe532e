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
 *
 * Each test runs in a process of its own, forked from main(): a test inherits
 * main()'s state, and leaves none to the tests after it.  A test fails if
 *
 * - a check fails, or it executes no check;
 * - it crashes, or ends the process with any status;
 * - it exceeds its time limit, TAP_SECONDS, or that of tap_run_within(), times
 *   $MGPU_SLOW;
 * - it leaks memory, if the program has LeakSanitizer.
 *
 * A test's standard error, such as a sanitizer's report, follows its checks as
 * comments.
 */
#ifndef TESTS_UNIT_TAP_H
#define TESTS_UNIT_TAP_H

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAP_SECONDS	60

static struct {
	unsigned int tests, failed, skipped;
	/* of the current test, in its process: */
	unsigned int checks;		/* executed */
	unsigned int bad;		/* failed */
	const char *skip;		/* why it was skipped */
} tap;

/* Result that a test's process sends to main(), through a pipe. */
struct tap_result {
	unsigned int checks, bad;
	bool skipped, leaked;
	char skip[200];
};

/* Of LeakSanitizer, if the program has it: 1 if there are leaks. */
__attribute__((weak))
int __lsan_do_recoverable_leak_check(void);

/* A process that is ended for its time limit, or ends itself, tells where it was. */
const char *__asan_default_options(void);
__attribute__((weak))
const char *__asan_default_options(void)
{
	return "handle_abort=1";
}

/* Print a comment; each line of one that has several is marked. */
__attribute__((format(printf, 1, 2), unused))
static void tap_diag(const char *fmt, ...)
{
	char text[4096], *line = text, *end;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	do {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		printf("# %s\n", line);
		line = end;
	} while (line && *line);
}

__attribute__((unused))
static bool tap_check(bool good, const char *file, int line, const char *expr)
{
	tap.checks++;
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
	tap.checks++;
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
	tap.checks++;
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
	tap.checks++;
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

	tap.checks++;
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

/* The process of a test: run it, tell its result, end. */
__attribute__((noreturn, unused))
static void tap_child(void (*test)(void), pid_t parent, int result, int err)
{
	struct tap_result r = { 0 };

	/* a group of its own, so that what it starts ends with it */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(err, STDERR_FILENO) < 0)
		_exit(1);
	/* a crash must not lose output */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	tap.checks = 0;
	tap.bad = 0;
	tap.skip = NULL;
	test();
	fflush(stdout);
	r.leaked = __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check();
	r.checks = tap.checks;
	r.bad = tap.bad;
	r.skipped = tap.skip;
	snprintf(r.skip, sizeof(r.skip), "%s", tap.skip ? tap.skip : "");
	/* not exit(): main()'s exit handlers are not the test's */
	_exit(write(result, &r, sizeof(r)) != sizeof(r));
}

/* Print a test's standard error as comments. */
__attribute__((unused))
static void tap_stderr(int fd)
{
	char line[1024];
	FILE *f;

	f = fdopen(fd, "r");
	if (!f)
		return;
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		tap_diag("%s", line);
	}
	fclose(f);
}

/*
 * Wait for the process of a test; true if it ends in @seconds.  If not, SIGABRT
 * has a sanitizer tell where it is, if it can.
 */
__attribute__((unused))
static bool tap_wait(pid_t pid, unsigned int seconds, int *status)
{
	struct pollfd end = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	bool in_time;

	in_time = end.fd >= 0 && poll(&end, 1, (int)seconds * 1000) == 1;
	if (!in_time) {
		kill(pid, SIGABRT);
		poll(&end, 1, 5000);
	}
	/* and what it has left behind */
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, status, 0);
	if (end.fd >= 0)
		close(end.fd);
	return in_time;
}

/* Run a test in a process of its own; false, with the reason told, if it fails. */
__attribute__((unused))
static bool tap_fork(void (*test)(void), unsigned int seconds,
		     struct tap_result *r)
{
	int status = 0, result[2], err = memfd_create("stderr", MFD_CLOEXEC);
	pid_t pid, parent = getpid();
	bool in_time, told;

	pid = err < 0 || pipe(result) ? -1 : fork();
	if (pid < 0) {
		tap_diag("no process for the test: %s", strerror(errno));
		return false;
	}
	if (!pid) {
		close(result[0]);
		tap_child(test, parent, result[1], err);
	}
	close(result[1]);
	in_time = tap_wait(pid, seconds, &status);
	told = read(result[0], r, sizeof(*r)) == sizeof(*r);
	close(result[0]);
	tap_stderr(err);

	if (!in_time)
		tap_diag("not over after %u s", seconds);
	else if (WIFSIGNALED(status))
		tap_diag("died of signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (!told)
		tap_diag("ended with status %d before the test was over",
			 WEXITSTATUS(status));
	else if (r->leaked)
		tap_diag("memory leaked");
	else if (!r->checks && !r->skipped)
		tap_diag("no check was executed");
	else
		return !r->bad;
	return false;
}

/* A time limit on a machine that is $MGPU_SLOW times as slow. */
__attribute__((unused))
static unsigned int tap_limit(unsigned int seconds)
{
	const char *slow = getenv("MGPU_SLOW");

	return seconds * (slow && atoi(slow) > 1 ? (unsigned int)atoi(slow) : 1);
}

/* Return how many of @all cases to try: all with MGPU_LONG=1, else @few. */
__attribute__((unused))
static unsigned int tap_some(unsigned int few, unsigned int all)
{
	const char *every = getenv("MGPU_LONG");

	return every && !strcmp(every, "1") ? all : few;
}

/* Return whether tests/run --only selects this case; without it, all are selected. */
__attribute__((unused))
static bool tap_wanted(const char *behaviour)
{
	const char *only = getenv("MGPU_ONLY");

	return !only || !*only || strstr(behaviour, only);
}

/* Run a test that may take @seconds, times $MGPU_SLOW. */
__attribute__((unused))
static void tap_run_within(void (*test)(void), const char *behaviour,
			   unsigned int seconds)
{
	struct tap_result r = { 0 };
	bool good;

	if (!tap_wanted(behaviour))
		return;
	if (!tap.tests)
		puts("TAP version 13");
	fflush(stdout);
	good = tap_fork(test, tap_limit(seconds), &r);
	tap.tests++;
	if (!good)
		tap.failed++;
	else if (r.skipped)
		tap.skipped++;
	printf("%sok %u %s%s%s\n", good ? "" : "not ", tap.tests, behaviour,
	       good && r.skipped ? " # SKIP " : "",
	       good && r.skipped ? r.skip : "");
	fflush(stdout);
}

__attribute__((unused))
static void tap_run(void (*test)(void), const char *behaviour)
{
	tap_run_within(test, behaviour, TAP_SECONDS);
}

/* The plan, and main()'s result: 0, or 1 when a test failed or none ran. */
__attribute__((unused))
static int tap_done(void)
{
	if (!tap.tests && !tap_wanted("")) {
		puts("1..0 # SKIP no case is selected by --only");
		return 4;
	}
	printf("1..%u\n", tap.tests);
	printf("# pass:%u fail:%u skip:%u\n",
	       tap.tests - tap.failed - tap.skipped, tap.failed, tap.skipped);
	fflush(stdout);
	return tap.failed || !tap.tests;
}

#endif /* TESTS_UNIT_TAP_H */

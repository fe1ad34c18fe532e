// SPDX-License-Identifier: GPL-2.0-only
/* tap.h itself: the output for tests that go wrong. */
#include "tap.h"

/* Output and exit status of the inner program. */
static char out[32768];
static int status;

static int state;
static int left_behind[2];
static volatile int one = 1;

static void good(void)
{
	TAP_CHECK(one);
}

/* Run a program of two tests, of which the second is good. */
static void program(void (*test)(void), unsigned int seconds)
{
	int fd = memfd_create("out", 0);
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd, STDOUT_FILENO);
		memset(&tap, 0, sizeof(tap));
		unsetenv("MGPU_SLOW");
		tap_run_within(test, "first", seconds);
		tap_run(good, "second");
		_exit(tap_done());
	}
	TAP_EQ(waitpid(pid, &status, 0), pid);
	n = pread(fd, out, sizeof(out) - 1, 0);
	out[n > 0 ? n : 0] = '\0';
	close(fd);
}

static bool printed(const char *text)
{
	bool found = strstr(out, text);

	if (!found)
		tap_diag("not in the output of the inner program: %s", text);
	return found;
}

/* The first test failed, for this reason; the second was run, and is counted. */
static void fails(void (*test)(void), unsigned int seconds, const char *why)
{
	program(test, seconds);
	TAP_CHECK(printed(why));
	TAP_CHECK(printed("\nnot ok 1 first\n"));
	TAP_CHECK(printed("\nok 2 second\n1..2\n# pass:1 fail:1 skip:0\n"));
	TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void is_good(void)
{
	program(good, TAP_SECONDS);
	TAP_STR(out, "TAP version 13\nok 1 first\nok 2 second\n1..2\n"
		"# pass:2 fail:0 skip:0\n");
	TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fail_one(void)
{
	TAP_EQ(one, 1);
	TAP_EQ(one, 2);
	TAP_EQ(one, 1);
}

static void failing_check(void)
{
	fails(fail_one, TAP_SECONDS, ": one is 1 (0x1), not 2 (0x2)\n");
}

static void fail_with_lines(void)
{
	TAP_STR(one ? "first\nok 1 it is\nlast\n" : "", "");
}

static void lines_are_comments(void)
{
	fails(fail_with_lines, TAP_SECONDS, "\n# ok 1 it is\n# last\n# \", not \"\"\n");
}

static void need(void)
{
	TAP_NEED(one == 2);
	abort();
}

static void failing_need(void)
{
	fails(need, TAP_SECONDS, ": not true: one == 2\n");
}

static void check_nothing(void)
{
}

static void no_check(void)
{
	fails(check_nothing, TAP_SECONDS, "# no check was executed\n");
}

static void skip(void)
{
	TAP_SKIP("no such thing here");
}

static void skips(void)
{
	program(skip, TAP_SECONDS);
	TAP_CHECK(printed("\nok 1 first # SKIP no such thing here\nok 2 second\n"));
	TAP_CHECK(printed("\n# pass:1 fail:0 skip:1\n"));
	TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fail_and_skip(void)
{
	TAP_EQ(one, 2);
	TAP_SKIP("too late");
}

static void skip_hides_nothing(void)
{
	fails(fail_and_skip, TAP_SECONDS, ": one is 1 (0x1), not 2 (0x2)\n");
}

static void die(void)
{
	TAP_CHECK(one);
	printf("# the last words\n");
	raise(SIGKILL);
}

static void *volatile block;

static void overflow(void)
{
	TAP_NEED((block = malloc(1)));
	((char *)block)[one] = 'x';
	free(block);
}

static void give_up(void)
{
	TAP_CHECK(one);
	abort();
}

static void crash(void)
{
	fails(die, TAP_SECONDS, "# died of signal 9 (Killed)\n");
	TAP_CHECK(printed("\n# the last words\n"));
	fails(give_up, TAP_SECONDS, "\n# ");
}

static void sanitizer(void)
{
	if (!__lsan_do_recoverable_leak_check)
		TAP_SKIP("built without the address sanitizer");
	fails(overflow, TAP_SECONDS, "ERROR: AddressSanitizer: heap-buffer-overflow");
	TAP_CHECK(printed(" in overflow "));
	/* a line without its mark is no comment of TAP */
	for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"))
		if (!strchr("#okn1T", *line))
			TAP_STR(line, "a comment");
}

static void leave(void)
{
	TAP_CHECK(one);
	exit(0);
}

static void early_end(void)
{
	fails(leave, TAP_SECONDS, "# ended with status 0 before the test was over\n");
}

static void hang(void)
{
	TAP_CHECK(one);
	while (one)
		usleep(1000);
}

static void time_limit(void)
{
	fails(hang, 1, "# not over after 1 s\n");
}

static void slow_machine(void)
{
	setenv("MGPU_SLOW", "4", 1);
	TAP_EQ(tap_limit(60), 240);
	setenv("MGPU_SLOW", "1", 1);
	TAP_EQ(tap_limit(60), 60);
	setenv("MGPU_SLOW", "fast", 1);
	TAP_EQ(tap_limit(60), 60);
	unsetenv("MGPU_SLOW");
	TAP_EQ(tap_limit(60), 60);
}

static void lose(void)
{
	TAP_CHECK(one);
	for (int i = 0; i < 16; i++)
		block = malloc(100);
	block = NULL;
}

static void leak(void)
{
	if (!__lsan_do_recoverable_leak_check)
		TAP_SKIP("built without the leak sanitizer");
	fails(lose, TAP_SECONDS, "# memory leaked\n");
	TAP_CHECK(printed("ERROR: LeakSanitizer: detected memory leaks"));
}

static void change(void)
{
	TAP_EQ(++state, 1);
}

static void no_state_passes(void)
{
	program(change, TAP_SECONDS);
	TAP_EQ(state, 0);
	program(change, TAP_SECONDS);
	TAP_CHECK(printed("\nok 1 first\n"));
}

static void leave_a_child(void)
{
	TAP_CHECK(one);
	close(left_behind[0]);
	if (!fork()) {
		pause();
		_exit(0);
	}
}

static void children_end(void)
{
	struct pollfd p = { .events = POLLIN };

	TAP_NEED(!pipe(left_behind));
	program(leave_a_child, TAP_SECONDS);
	TAP_CHECK(printed("\nok 1 first\n"));
	close(left_behind[1]);
	/* the pipe ends with the last process that has it open for writing */
	p.fd = left_behind[0];
	TAP_EQ(poll(&p, 1, 10000), 1);
	TAP_CHECK(p.revents & POLLHUP);
	close(left_behind[0]);
}

static void none(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(STDOUT_FILENO);
		memset(&tap, 0, sizeof(tap));
		_exit(tap_done());
	}
	TAP_EQ(waitpid(pid, &status, 0), pid);
	TAP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

int main(void)
{
	tap_run(is_good, "two good tests are two results");
	tap_run(failing_check, "a failed check fails its test, with the values");
	tap_run(lines_are_comments, "a value that a check prints is no result, whatever is in it");
	tap_run(failing_need, "a failed need leaves its test");
	tap_run(no_check, "a test that executes no check fails");
	tap_run(skips, "a skipped test has a reason and is counted");
	tap_run(skip_hides_nothing, "a check that failed before a skip counts");
	tap_run(crash, "a crash fails one test, and keeps its output");
	tap_run(sanitizer, "a sanitizer's report becomes comments");
	tap_run(early_end, "exit(0) in a test fails it");
	tap_run(time_limit, "a test that hangs fails at its time limit");
	tap_run(slow_machine, "time limits are longer where MGPU_SLOW says so");
	tap_run(leak, "a leak fails the test that leaks");
	tap_run(no_state_passes, "a test leaves no state to the next one");
	tap_run(children_end, "processes that a test leaves behind are ended");
	tap_run(none, "a program without tests fails");
	return tap_done();
}

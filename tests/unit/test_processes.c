// SPDX-License-Identifier: GPL-2.0-only
/* CPU time of a server's processes; the server is this program's child. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "processes.h"
#include "tap.h"

#define MS		1000000ull
#define TICK		(10 * MS)	/* unit of the times in /proc */
#define CONTEXTS	30
#define WORK		(4 * MS)

static struct processes processes;
static int orders[2], answers[2];

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* A context: it uses its time, and ends when it is told to. */
static void context(int told)
{
	char c;

	while (cpu_ns() < WORK)
		;
	if (write(answers[1], "w", 1) == 1 && told >= 0 && read(told, &c, 1) < 0)
		_exit(1);
	_exit(0);
}

/*
 * A server: makes a context for each order, and waits for its end: 's' is one that ends at once,
 * 'l' one that ends with the next order.
 */
static void serve(void)
{
	char order, c = 'e';
	pid_t pid;

	while (read(orders[0], &order, 1) == 1) {
		pid = fork();
		if (!pid)
			context(order == 'l' ? orders[0] : -1);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid || write(answers[1], &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void up(void)
{
	memset(&processes, 0, sizeof(processes));
	TAP_NEED(!pipe(orders) && !pipe(answers));
	processes.server = fork();
	TAP_NEED(processes.server >= 0);
	if (!processes.server) {
		close(orders[1]);
		close(answers[0]);
		serve();
	}
	close(orders[0]);
	close(answers[1]);
}

static void down(void)
{
	close(orders[1]);
	TAP_EQ(waitpid(processes.server, NULL, 0), processes.server);
	close(answers[0]);
}

static void order(char c)
{
	TAP_NEED(write(orders[1], &c, 1) == 1);
}

static void await(char want)
{
	char c = 0;

	TAP_NEED(read(answers[0], &c, 1) == 1);
	TAP_EQ(c, want);
}

static uint64_t look(void)
{
	uint64_t now = now_ns();

	while (now_ns() - now <= PROCESSES_LOOK_NS)
		;
	return processes_ns(&processes);
}

/* Contexts that nobody saw. */
static void short_lives(void)
{
	up();
	TAP_EQ(look(), 0);
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		order('s');
		await('w');
		await('e');
	}
	TAP_CHECK(look() + 2 * TICK >= CONTEXTS * WORK);
	down();
}

/* A context that was seen is not counted twice when it has ended, and nothing is taken back. */
static void long_life(void)
{
	uint64_t before, after;

	up();
	order('l');
	await('w');
	before = look();
	TAP_CHECK(before >= WORK);
	order('x');
	await('e');
	after = look();
	TAP_CHECK(after >= before);
	TAP_CHECK(after < 2 * before);
	down();
}

int main(void)
{
	tap_run(short_lives, "the time of contexts that end between two looks is counted");
	tap_run(long_life, "the time of a context that is seen is counted once");
	return tap_done();
}

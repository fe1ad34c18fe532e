// SPDX-License-Identifier: GPL-2.0-only
/* Processes that execute for a worker. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "processes.h"

/* ---- the processes ---- */

int processes_start(struct processes *ps, int type, void (*run)(int fd, const void *arg),
		    const void *arg)
{
	int fds[2], ret;

	*ps = (struct processes){ 0 };
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds))
		return -errno;
	ps->server = fork();
	if (!ps->server) {
		setpgid(0, 0);
		if (!prctl(PR_SET_PDEATHSIG, SIGKILL))
			run(fds[1], arg);
		_exit(1);
	}
	ret = ps->server < 0 ? -errno : fds[0];
	close(fds[1]);
	if (ret < 0) {
		ps->server = 0;
		close(fds[0]);
		return ret;
	}
	/* The child does the same; the first call counts: processes_stop() must find the group. */
	setpgid(ps->server, ps->server);
	return ret;
}

void processes_stop(const struct processes *ps)
{
	if (ps->server)
		kill(-ps->server, SIGSTOP);
}

void processes_continue(const struct processes *ps)
{
	if (ps->server)
		kill(-ps->server, SIGCONT);
}

/* ---- time ---- */

/* Return the entry of a process, which is made if need be; NULL if the process has ended. */
static struct process *find(struct processes *ps, pid_t pid)
{
	struct process *p = ps->process;

	for (; p < ps->process + ps->nr; p++)
		if (p->clock.pid == pid)
			return p;
	if (ps->nr == PROCESSES)
		return NULL;
	*p = (struct process){ .ns = 0 };
	if (!process_clock_start(&p->clock, pid))
		return NULL;
	ps->nr++;
	return p;
}

/* Read the clock of a process. */
static void look(struct processes *ps, pid_t pid)
{
	struct process *p = find(ps, pid);
	uint64_t ns;

	if (!p)
		return;
	p->seen = true;
	ns = ps->engines ? process_clock_engine_ns(&p->clock, ps->looked_ns) :
			   process_clock_cpu_ns(&p->clock);
	if (ns > p->ns)
		p->ns = ns;
}

/*
 * Return the CPU time of processes that have ended, whether or not a look saw them; by /proc,
 * which rounds down to 10 ms.
 */
static uint64_t ended_ns(const struct processes *ps)
{
	unsigned long long user = 0, system = 0;
	char path[64], text[1024], *fields;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", ps->server);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* The program's name, in brackets, may have any character. */
	fields = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	if (!fields ||
	    sscanf(fields, ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu",
		   &user, &system) != 2)
		return 0;
	return (user + system) * (NSEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Read the clocks of all processes, and keep the time of those that have ended. */
static void look_at_all(struct processes *ps)
{
	uint64_t ended;
	char path[64];
	FILE *f;
	int pid;

	for (size_t i = 0; i < ps->nr; i++)
		ps->process[i].seen = false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", ps->server, ps->server);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1)
		look(ps, pid);
	if (f)
		fclose(f);
	ps->ns = 0;
	for (size_t i = 0; i < ps->nr;) {
		struct process *p = &ps->process[i];

		if (p->seen) {
			ps->ns += p->ns;
			i++;
		} else {
			ps->gone_ns += p->ns;
			*p = ps->process[--ps->nr];
		}
	}
	ended = ps->engines ? 0 : ended_ns(ps);
	if (ps->gone_ns < ended)
		ps->gone_ns = ended;
	ps->ns += ps->gone_ns;
}

uint64_t processes_ns(struct processes *ps)
{
	uint64_t now = ps->server ? now_ns() : 0;

	if (now - ps->looked_ns >= PROCESSES_LOOK_NS) {
		ps->looked_ns = now;
		look_at_all(ps);
	}
	return ps->ns;
}

bool processes_are_ready(const struct processes *ps)
{
	for (size_t i = 0; i < ps->nr && !ps->engines; i++)
		if (process_clock_is_ready(&ps->process[i].clock))
			return true;
	return false;
}

// SPDX-License-Identifier: GPL-2.0-only
/* The server of Venus. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "complain.h"
#include "sandbox.h"
#include "venus.h"

/* ---- the processes ---- */

/* Become the server. */
static void exec_server(int fd, bool sandbox, uint64_t memory)
{
	char text[16];

	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || (sandbox && sandbox_server(memory)))
		return;
	fcntl(fd, F_SETFD, 0);
	snprintf(text, sizeof(text), "%d", fd);
	execl(VENUS_SERVER, VENUS_SERVER, "--socket-fd", text, NULL);
	complain("cannot start %s: %s", VENUS_SERVER, strerror(errno));
}

int venus_start(struct venus *vs, bool sandbox, uint64_t memory)
{
	int fds[2], ret;

	*vs = (struct venus){ 0 };
	if (access(VENUS_SERVER, X_OK)) {
		complain("there is no %s: install virgl-server", VENUS_SERVER);
		return -ENOENT;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	vs->server = fork();
	if (!vs->server) {
		exec_server(fds[1], sandbox, memory);
		_exit(1);
	}
	ret = vs->server < 0 ? -errno : fds[0];
	close(fds[1]);
	if (ret < 0) {
		vs->server = 0;
		close(fds[0]);
		complain("cannot start %s: %s", VENUS_SERVER, strerror(-ret));
		return ret;
	}
	/* Whoever is first: venus_stop() must find the group. */
	setpgid(vs->server, vs->server);
	return ret;
}

void venus_stop(const struct venus *vs)
{
	if (vs->server)
		kill(-vs->server, SIGSTOP);
}

void venus_continue(const struct venus *vs)
{
	if (vs->server)
		kill(-vs->server, SIGCONT);
}

/* ---- time ---- */

/* Return the entry of a process, which is made if need be; NULL if the process has ended. */
static struct venus_process *find(struct venus *vs, pid_t pid)
{
	struct venus_process *p = vs->process;

	for (; p < vs->process + vs->nr; p++)
		if (p->pid == pid)
			return p;
	if (vs->nr == VENUS_PROCESSES)
		return NULL;
	*p = (struct venus_process){ .pid = pid };
	if (clock_getcpuclockid(pid, &p->clock))
		return NULL;
	vs->nr++;
	return p;
}

/* Read the engine time of a context. */
static void look_at_engines(struct venus *vs, struct venus_process *p)
{
	char fdinfo[32];
	uint64_t ns;

	if (!p->found_ns || vs->looked_ns - p->found_ns >= VENUS_FIND_NS) {
		snprintf(fdinfo, sizeof(fdinfo), "/proc/%d/fdinfo", p->pid);
		engine_clock_start(&p->engines, fdinfo);
		p->found_ns = vs->looked_ns;
	}
	ns = engine_clock_ns(&p->engines);
	/* A file that the context has closed took its time along. */
	if (ns > p->ns)
		p->ns = ns;
}

/* Read the clock of a context. */
static void look(struct venus *vs, pid_t pid)
{
	struct venus_process *p = find(vs, pid);
	struct timespec ts;

	if (!p)
		return;
	p->seen = true;
	if (vs->engines)
		look_at_engines(vs, p);
	else if (!clock_gettime(p->clock, &ts))
		p->ns = (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

/*
 * Return the CPU time of contexts that have ended, whether or not a look saw them; by /proc,
 * which rounds down to 10 ms.
 */
static uint64_t ended_ns(const struct venus *vs)
{
	unsigned long long user = 0, system = 0;
	char path[64], text[1024], *fields;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", vs->server);
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

/* Read the clocks of all contexts, and keep the time of those that have ended. */
static void look_at_all(struct venus *vs)
{
	uint64_t ended;
	char path[64];
	FILE *f;
	int pid;

	for (size_t i = 0; i < vs->nr; i++)
		vs->process[i].seen = false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", vs->server, vs->server);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1)
		look(vs, pid);
	if (f)
		fclose(f);
	vs->ns = 0;
	for (size_t i = 0; i < vs->nr;) {
		struct venus_process *p = &vs->process[i];

		if (p->seen) {
			vs->ns += p->ns;
			i++;
		} else {
			vs->gone_ns += p->ns;
			*p = vs->process[--vs->nr];
		}
	}
	ended = vs->engines ? 0 : ended_ns(vs);
	if (vs->gone_ns < ended)
		vs->gone_ns = ended;
	vs->ns += vs->gone_ns;
}

uint64_t venus_ns(struct venus *vs)
{
	uint64_t now = vs->server ? now_ns() : 0;

	if (now - vs->looked_ns >= VENUS_LOOK_NS) {
		vs->looked_ns = now;
		look_at_all(vs);
	}
	return vs->ns;
}

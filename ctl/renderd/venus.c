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

int venus_start(struct venus *vs, bool gpu, bool sandbox, uint64_t memory)
{
	int fds[2], ret;

	*vs = (struct venus){ .gpu = gpu };
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

static struct venus_process *find(struct venus *vs, pid_t pid)
{
	for (size_t i = 0; i < vs->nr; i++)
		if (vs->process[i].clock.pid == pid)
			return &vs->process[i];
	if (vs->nr == VENUS_PROCESSES)
		return NULL;
	vs->process[vs->nr] = (struct venus_process){ .clock.pid = pid };
	return &vs->process[vs->nr++];
}

/* Read the clock of a context, whose files of the GPU come and go. */
static void look(struct venus *vs, struct venus_process *p)
{
	uint64_t ns = 0;

	if (p->clock.cpu || engine_clock_start(&p->clock, p->clock.pid, vs->gpu))
		ns = engine_clock_ns(&p->clock);
	if (ns > p->ns)
		p->ns = ns;
	p->seen = true;
}

uint64_t venus_ns(struct venus *vs)
{
	uint64_t sum;
	char path[64];
	size_t i;
	FILE *f;
	int pid;

	if (!vs->server)
		return 0;
	for (i = 0; i < vs->nr; i++)
		vs->process[i].seen = false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", vs->server, vs->server);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1) {
		struct venus_process *p = find(vs, pid);

		if (p)
			look(vs, p);
	}
	if (f)
		fclose(f);
	for (i = 0; i < vs->nr;) {
		if (vs->process[i].seen) {
			i++;
			continue;
		}
		vs->gone_ns += vs->process[i].ns;
		vs->process[i] = vs->process[--vs->nr];
	}
	sum = vs->gone_ns;
	for (i = 0; i < vs->nr; i++)
		sum += vs->process[i].ns;
	return sum;
}

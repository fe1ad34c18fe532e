// SPDX-License-Identifier: GPL-2.0-only
/* The process that works with the GPU. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"

#define TERM_S	30	/* between SIGTERM and SIGKILL, once the GPU goes */

static void read_set(sigset_t *set)
{
	static const int read[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++)
		sigaddset(set, read[i]);
}

int child_signals(void)
{
	sigset_t set;

	read_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool ends(uint32_t signal)
{
	return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

bool child_stopped(int signals)
{
	struct signalfd_siginfo s;
	bool stop = false;

	while (read(signals, &s, sizeof(s)) == sizeof(s))
		stop |= ends(s.ssi_signo);
	return stop;
}

void child_prepare(pid_t parent)
{
	sigset_t set;

	read_set(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(CHILD_AGENT_FAILED);
}

void child_environment(const struct hold *h)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, h->kept.id);
	setenv("MGPU_REQUEST", number, 1);
	setenv("MGPU_GPU", h->kept.device, 1);
	setenv("MGPU_GPU_DRIVER", h->driver, 1);
	setenv("MGPU_GPU_TARGET", h->target, 1);
	if (*h->node)
		setenv("MGPU_RENDER_NODE", h->node, 1);
	else
		unsetenv("MGPU_RENDER_NODE");
}

/* Forward what another process sent: the terminal signals the whole group by itself. */
static void forward(int signals, pid_t pid, bool *stop)
{
	struct signalfd_siginfo s;

	while (read(signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		*stop |= ends(s.ssi_signo);
		if (s.ssi_code != SI_KERNEL)
			kill(pid, (int)s.ssi_signo);
	}
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_follow(struct hold *h, pid_t pid, int signals, bool *stop)
{
	struct pollfd p = { .fd = signals, .events = POLLIN };
	uint64_t kill_ns = 0;
	int status;

	for (;;) {
		uint64_t now = now_ns(), due = kill_ns ? kill_ns : hold_due(h);

		poll(&p, 1, due > now ? (int)((due - now) / 1000000) + 1 : 0);
		forward(signals, pid, stop);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status_of(status);
		now = now_ns();
		if (kill_ns && now >= kill_ns) {
			kill(pid, SIGKILL);
			kill_ns = now + TERM_S * NSEC;
		} else if (!kill_ns && hold_tick(h, now) == -ENODEV) {
			kill(pid, SIGTERM);
			kill_ns = now + TERM_S * NSEC;
		}
	}
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes for programs in a VM.  A worker of mgpu-renderd can start none: this process, in the
 * same sandbox, does so for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "complain.h"
#include "launch.h"

/* Ends of a connection: the worker's and the program's process's, the socket and the pipe. */
struct ends {
	int worker[2];
	int process[2];
};

static void close_both(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

static int make_ends(struct ends *e)
{
	int sockets[2], pipes[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK)) {
		close_both(sockets);
		return -errno;
	}
	*e = (struct ends){ { sockets[0], pipes[0] }, { sockets[1], pipes[1] } };
	/* The worker serves others meanwhile. */
	if (fcntl(sockets[0], F_SETFL, O_NONBLOCK)) {
		close_both(e->worker);
		close_both(e->process);
		return -errno;
	}
	return 0;
}

/* Start a program's process, which has the descriptors that --serve and --rests use. */
static int start(const struct ends *e, char **argv)
{
	sigset_t none;
	int high[2];
	pid_t pid = fork();

	if (pid)
		return pid > 0 ? 0 : -errno;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* They may be each other's number. */
	for (int i = 0; i < 2; i++)
		high[i] = fcntl(e->process[i], F_DUPFD_CLOEXEC, 16);
	for (int i = 0; i < 2; i++)
		if (dup2(high[i], LAUNCH_CONTROL + i) < 0)
			_exit(1);
	execv("/proc/self/exe", argv);
	complain("cannot start myself: %s", strerror(errno));
	_exit(1);
}

static int answer(const struct ends *e)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(e->worker))];
	} control = { 0 };
	struct iovec iov = { "", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (e) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(e->worker));
		memcpy(CMSG_DATA(&control.header), e->worker, sizeof(e->worker));
	}
	return sendmsg(LAUNCH_CONTROL, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Serve a request of the worker. Return 0 or a negative errno. */
static int serve(unsigned int *nr, unsigned int most, char **argv)
{
	struct ends e;
	char byte;
	ssize_t n = recv(LAUNCH_CONTROL, &byte, 1, 0);
	int ret;

	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	ret = *nr < most ? make_ends(&e) : -EAGAIN;
	if (ret) {
		complain("a program is turned away: %s", ret == -EAGAIN ?
			 "the VM has as many as it may" : strerror(-ret));
		return answer(NULL);
	}
	ret = start(&e, argv);
	if (!ret)
		(*nr)++;
	else
		complain("cannot start a process: %s", strerror(-ret));
	ret = answer(ret ? NULL : &e);
	close_both(e.worker);
	close_both(e.process);
	return ret;
}

int launch(int argc, char **argv, unsigned int most)
{
	char **own = calloc((size_t)argc + 4, sizeof(*own));
	struct signalfd_siginfo info;
	struct pollfd fds[2];
	unsigned int nr = 0;
	sigset_t set;
	int ret = 0;

	if (!own)
		return -ENOMEM;
	own[0] = argv[0];
	own[1] = (char *)"--serve=none";
	own[2] = (char *)"--rests";
	/* The worker's sandbox is narrower. */
	own[3] = (char *)"--confine=none";
	for (int i = 1; i < argc; i++)
		own[i + 3] = argv[i];
	fcntl(LAUNCH_CONTROL, F_SETFD, FD_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[0] = (struct pollfd){ .fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = LAUNCH_CONTROL, .events = POLLIN };
	while (!ret) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			ret = -errno;
		if (fds[0].revents && read(fds[0].fd, &info, sizeof(info)) == sizeof(info))
			while (waitpid(-1, NULL, WNOHANG) > 0)
				nr--;
		if (!ret && fds[1].revents)
			ret = serve(&nr, most, own);
	}
	free(own);
	return ret == -ECONNRESET ? 0 : ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Notices for the VM's people. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "complain.h"
#include "notice.h"

static void run_command(const struct conf *conf, const char *what, uint64_t request,
			const char *device, const char *text)
{
	char number[24];
	sigset_t none;

	snprintf(number, sizeof(number), "%" PRIu64, request);
	setenv("MGPU_NOTICE", what, 1);
	setenv("MGPU_REQUEST", number, 1);
	setenv("MGPU_GPU", device, 1);
	setenv("MGPU_TEXT", text, 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execl("/bin/sh", "sh", "-c", conf->notice, (char *)NULL);
	_exit(127);
}

void notice(const struct conf *conf, const char *what, uint64_t request, const char *device,
	    const char *text)
{
	pid_t pid;

	complain("%s", text);
	if (!*conf->notice)
		return;
	/* Two forks: the command is init's child, so that no one has to wait for it. */
	pid = fork();
	if (!pid) {
		if (!fork())
			run_command(conf, what, request, device, text);
		_exit(0);
	}
	if (pid < 0)
		complain("the notice's command cannot be run: %s", strerror(errno));
	else
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}

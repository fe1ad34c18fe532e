// SPDX-License-Identifier: GPL-2.0-only
/* The server of Venus. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "complain.h"
#include "sandbox.h"
#include "venus.h"

/* Memory of each context, bytes; 0 to start the server without a sandbox. */
static void exec_server(int fd, const void *arg)
{
	const uint64_t *memory = arg;
	char text[16];

	if (*memory && sandbox_server(*memory))
		return;
	fcntl(fd, F_SETFD, 0);
	snprintf(text, sizeof(text), "%d", fd);
	execl(VENUS_SERVER, VENUS_SERVER, "--socket-fd", text, NULL);
	complain("cannot start %s: %s", VENUS_SERVER, strerror(errno));
}

int venus_start(struct processes *ps, bool sandbox, uint64_t memory)
{
	int ret;

	if (access(VENUS_SERVER, X_OK)) {
		complain("there is no %s: install virgl-server", VENUS_SERVER);
		return -ENOENT;
	}
	if (!sandbox)
		memory = 0;
	ret = processes_start(ps, SOCK_SEQPACKET, exec_server, &memory);
	if (ret < 0)
		complain("cannot start %s: %s", VENUS_SERVER, strerror(-ret));
	return ret;
}

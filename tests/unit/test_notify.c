// SPDX-License-Identifier: GPL-2.0-only
/* Messages to a service manager whose queue is full, and to one that is gone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "notify.h"
#include "tap.h"

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int manager;

/* A service manager that reads nothing yet. */
static void begin(void)
{
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/mgpu-notify.%d", (int)getpid());
	unlink(address.sun_path);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	TAP_EQ(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

static void end(void)
{
	close(manager);
	unlink(address.sun_path);
}

/* As another service does that tells of itself all the time. */
static void fill(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	while (sendto(fd, "X", 1, MSG_DONTWAIT, (struct sockaddr *)&address,
		      sizeof(address)) == 1)
		;
	TAP_EQ(errno, EAGAIN);
	close(fd);
}

/* Read until a message comes that is not another service's. */
static const char *heard(void)
{
	static char text[1024];
	ssize_t n;

	do {
		n = recv(manager, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
	} while (!strcmp(text, "X"));
	return text;
}

static void told(void)
{
	begin();
	notify("READY=1\nSTATUS=%d hosts", 3);
	TAP_STR(heard(), "READY=1\nSTATUS=3 hosts");
	end();
}

/* The queue stays full for longer than notify() waits: later messages must come. */
static void full(void)
{
	char other[8];

	begin();
	fill();
	notify("WATCHDOG=1");
	TAP_CHECK(getenv("NOTIFY_SOCKET"));
	while (recv(manager, other, sizeof(other), MSG_DONTWAIT) > 0)
		;
	notify("WATCHDOG=1");
	TAP_STR(heard(), "WATCHDOG=1");
	end();
}

/* Messages that are sent once come as soon as the manager reads. */
static void waits(void)
{
	pid_t service;

	begin();
	fill();
	service = fork();
	if (!service) {
		notify("READY=1");
		_exit(!getenv("NOTIFY_SOCKET"));
	}
	TAP_STR(heard(), "READY=1");
	TAP_EQ(waitpid(service, NULL, 0), service);
	end();
}

static void gone(void)
{
	begin();
	end();
	notify("READY=1");
	TAP_CHECK(!getenv("NOTIFY_SOCKET"));
	/* no manager at all */
	notify("READY=1");
	TAP_CHECK(!getenv("NOTIFY_SOCKET"));
}

int main(void)
{
	tap_run(told, "a service manager is told");
	tap_run(full, "a queue that is full for long costs its message alone");
	tap_run(waits, "a message waits for room in the queue");
	tap_run(gone, "a service manager that is gone is left alone");
	return tap_done();
}

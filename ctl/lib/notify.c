// SPDX-License-Identifier: GPL-2.0-only
/* Datagrams to the service manager; the caller works without an answer. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "notify.h"

/*
 * The longest wait for room in the service manager's queue, which all services share: a
 * message that is lost is not sent again, but for the watchdog's.
 */
static const struct timeval patience = { .tv_sec = 1 };

void notify(const char *fmt, ...)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	char text[640];
	socklen_t len;
	va_list ap;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(addr.sun_path))
		return;
	strcpy(addr.sun_path, path);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&addr, len) < 0 &&
	    errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		unsetenv("NOTIFY_SOCKET");	/* no service manager: do not try again */
	close(fd);
}

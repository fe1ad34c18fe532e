// SPDX-License-Identifier: GPL-2.0-only
/* Sockets for HTTP clients. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "complain.h"
#include "http.h"

#define BACKLOG	64

/* An address for bind(). */
union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Parse numbers only: a name may have another address tomorrow. */
static bool parse(const char *where, union address *a, socklen_t *len)
{
	char host[INET6_ADDRSTRLEN + 2], *end;
	const char *colon = strrchr(where, ':');
	unsigned long port;
	size_t size;

	memset(a, 0, sizeof(*a));
	size = colon ? (size_t)(colon - where) : sizeof(host);
	if (size >= sizeof(host))
		return false;
	memcpy(host, where, size);
	host[size] = '\0';
	port = strtoul(colon + 1, &end, 10);
	if (colon[1] < '0' || colon[1] > '9' || *end || port > UINT16_MAX)
		return false;
	if (*host == '[' && size > 2 && host[size - 1] == ']') {
		host[size - 1] = '\0';
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons((uint16_t)port);
		*len = sizeof(a->v6);
		return inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) == 1;
	}
	a->v4.sin_family = AF_INET;
	a->v4.sin_port = htons((uint16_t)port);
	*len = sizeof(a->v4);
	return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1;
}

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
	return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

/* Port 0 is one that the kernel chooses: say which. */
static void tell(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	if (!getsockname(fd, &a.any, &len)) {
		printf("mgpu-exporter: listening at port %u\n", ntohs(a.v4.sin_port));
		fflush(stdout);
	}
}

int http_listen(const char *where, int any_address)
{
	union address a;
	int fd, on = 1;
	socklen_t len;

	if (!parse(where, &a, &len)) {
		complain("--listen '%s': give an address in numbers and a port, as in 127.0.0.1:9960 or [::1]:9960",
			 where);
		return -1;
	}
	if (!is_loopback(&a) && !any_address) {
		complain("--listen '%s' is no loopback address, and every host that reaches it could read what each VM does: give 127.0.0.1 or [::1], or --any-address too (see SECURITY in mgpu-exporter(1))",
			 where);
		return -1;
	}
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, &a.any, len) || listen(fd, BACKLOG)) {
		complain("--listen '%s': %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	tell(fd);
	return fd;
}

/* Remove a socket that an earlier run left; one that is in use stays, as another file does. */
static bool make_room(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, ret;

	if (lstat(addr->sun_path, &st))
		return true;
	if (!S_ISSOCK(st.st_mode)) {
		complain("--socket '%s': there is a file that is no socket", addr->sun_path);
		return false;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	close(fd);
	if (!ret || errno != ECONNREFUSED) {
		complain("--socket '%s' is in use", addr->sun_path);
		return false;
	}
	return !unlink(addr->sun_path);
}

int http_listen_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		complain("--socket '%s': a socket's path has at most %zu bytes", path,
			 sizeof(addr.sun_path) - 1);
		return -1;
	}
	strcpy(addr.sun_path, path);
	if (!make_room(&addr))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0117);
	ret = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&addr, sizeof(addr));
	umask(mask);
	if (ret || listen(fd, BACKLOG)) {
		complain("--socket '%s': %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

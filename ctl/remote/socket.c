// SPDX-License-Identifier: GPL-2.0-only
/* Sockets as the transport. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "transport.h"

struct socket_transport {
	struct transport t;
	int fd;
};

static int fd_of(const struct transport *t)
{
	return ((const struct socket_transport *)t)->fd;
}

static ssize_t socket_send(struct transport *t, const void *p, size_t len)
{
	ssize_t n;

	do {
		n = send(fd_of(t), p, len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t socket_send_file(struct transport *t, const void *p, size_t len, int file)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(file))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)p, len };
	const struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	control.header.cmsg_len = CMSG_LEN(sizeof(file));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
	return sendmsg(fd_of(t), &msg, MSG_NOSIGNAL);
}

static ssize_t socket_receive(struct transport *t, void *p, size_t len)
{
	ssize_t n;

	do {
		n = recv(fd_of(t), p, len, 0);
	} while (n < 0 && errno == EINTR);
	return n;
}

static void socket_shut(struct transport *t)
{
	shutdown(fd_of(t), SHUT_RDWR);
}

static void socket_close(struct transport *t)
{
	close(fd_of(t));
	free(t);
}

static const struct transport_ops socket_ops = {
	.send = socket_send, .send_file = socket_send_file, .receive = socket_receive,
	.shut = socket_shut, .close = socket_close,
};

struct transport *transport_socket(int fd)
{
	struct socket_transport *s = malloc(sizeof(*s));

	if (!s) {
		close(fd);
		return NULL;
	}
	s->t.ops = &socket_ops;
	s->fd = fd;
	return &s->t;
}

static int reach(struct transport **t, const struct sockaddr *addr, socklen_t len)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	if (connect(fd, addr, len)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	*t = transport_socket(fd);
	return *t ? 0 : -ENOMEM;
}

int transport_unix(struct transport **t, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	return reach(t, (struct sockaddr *)&addr, sizeof(addr));
}

int transport_vsock(struct transport **t, const char *where)
{
	struct sockaddr_vm addr = { .svm_family = AF_VSOCK };
	int end = 0;

	if (sscanf(where, "%u:%u%n", &addr.svm_cid, &addr.svm_port, &end) != 2 || where[end])
		return -EINVAL;
	return reach(t, (struct sockaddr *)&addr, sizeof(addr));
}

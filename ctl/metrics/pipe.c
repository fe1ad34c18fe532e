// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "pipe.h"

#define MS		1000000u

static int send_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* @deadline: CLOCK_MONOTONIC, ns; 0 for none */
static int receive_all(int fd, void *bytes, size_t len, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char *at = bytes;

	while (len) {
		int ready = poll(&p, 1, deadline ? poll_ms(deadline) : -1);
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		n = recv(fd, at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int pipe_ask(int fd, enum expose_format format, struct text *text)
{
	const uint64_t deadline = now_ns() + (uint64_t)PIPE_ANSWER_MS * MS;
	const char request = (char)format;
	size_t len;
	int ret = send_all(fd, &request, 1);

	if (!ret)
		ret = receive_all(fd, &len, sizeof(len), deadline);
	if (ret || !len)
		return ret;
	text->bytes = malloc(len);
	if (!text->bytes)
		return -ENOMEM;
	text->room = text->len = len;
	ret = receive_all(fd, text->bytes, len, deadline);
	if (ret)
		text_free(text);
	return ret;
}

int pipe_receive(int fd, enum expose_format *format)
{
	char request;
	int ret = receive_all(fd, &request, 1, 0);

	if (!ret)
		*format = request == EXPOSE_OPENMETRICS ? EXPOSE_OPENMETRICS : EXPOSE_TEXT;
	return ret;
}

int pipe_answer(int fd, const struct text *text)
{
	size_t len = text->failed ? 0 : text->len;
	int ret = send_all(fd, &len, sizeof(len));

	return ret ? ret : send_all(fd, text->bytes, len);
}

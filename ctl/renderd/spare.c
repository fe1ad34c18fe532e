// SPDX-License-Identifier: GPL-2.0-only
/* A worker's process that has no vGPU yet. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "spare.h"

/* ---- libraries ---- */

void spare_list_libraries(char *list, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128], access[5];
	size_t len = 0, n;
	int at;

	*list = '\0';
	while (maps && fgets(line, sizeof(line), maps)) {
		at = 0;
		if (sscanf(line, "%*s %4s %*s %*s %*s %n", access, &at) != 1 || !at ||
		    access[2] != 'x' || line[at] != '/')
			continue;
		n = strlen(line + at);
		if (line[at + n - 1] != '\n' || len + n >= size)
			continue;
		memcpy(list + len, line + at, n + 1);
		len += n;
	}
	if (maps)
		fclose(maps);
}

/*
 * Bind all symbols now, so that a worker does not.  Files that are no libraries, or are gone,
 * are left out: the renderer says what it misses.
 */
static void load(char *list)
{
	char *rest;

	for (char *path = strtok_r(list, "\n", &rest); path; path = strtok_r(NULL, "\n", &rest))
		dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool has_one_thread(void)
{
	struct stat st;

	return !stat("/proc/self/task", &st) && st.st_nlink == 3;
}

/* ---- orders ---- */

/* Room for both files of an order. */
union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

static int sent(ssize_t n, size_t len)
{
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int spare_load(int fd, const char *list)
{
	size_t len = strlen(list) + 1;

	return sent(send(fd, list, len, MSG_DONTWAIT | MSG_NOSIGNAL), len);
}

int spare_give(int fd, const struct spare_order *order)
{
	const int fds[2] = { order->fd, order->record };
	size_t len = (order->record < 0 ? 1 : 2) * sizeof(int);
	uint32_t vgpu = order->vgpu;
	union control control = { 0 };
	struct iovec iov = { &vgpu, sizeof(vgpu) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(len),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(&control.header), fds, len);
	return sent(sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL), sizeof(vgpu));
}

/* Return what a call that receives means: 0 or a negative errno. */
static int received(ssize_t n)
{
	return n < 0 ? -errno : n ? 0 : -ENODEV;
}

int spare_prepare(int fd)
{
	static char list[SPARE_LIBRARIES];
	ssize_t n = recv(fd, list, sizeof(list), 0);
	int ret = received(n);

	if (ret)
		return ret;
	list[n - 1] = '\0';
	load(list);
	return has_one_thread() ? 0 : -EOPNOTSUPP;
}

int spare_wait(int fd, struct spare_order *order)
{
	union control control;
	struct iovec iov = { &order->vgpu, sizeof(order->vgpu) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fds[2] = { -1, -1 };
	int ret = received(recvmsg(fd, &msg, MSG_CMSG_CLOEXEC));

	if (ret)
		return ret;
	/* The kernel leaves files away that the process has no room for. */
	if (msg.msg_flags & MSG_CTRUNC || !msg.msg_controllen)
		return -EMFILE;
	memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	order->fd = fds[0];
	order->record = fds[1];
	return 0;
}

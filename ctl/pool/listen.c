// SPDX-License-Identifier: GPL-2.0-only
/* The Unix socket of the service. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_private.h"

#define BACKLOG	128

/* The lock shows that no other service has the socket, which may then be replaced. */
static int lock(const char *path, char *why)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	int fd;

	snprintf(name, sizeof(name), "%s.lock", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		snprintf(why, POOL_TEXT_MAX, "%s: %s; make its folder, or set socket in [listen]",
			 name, strerror(errno));
		return -EINVAL;
	}
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	snprintf(why, POOL_TEXT_MAX, "another mgpu-poold has %s; end it, or set another socket in [listen]",
		 path);
	close(fd);
	return -EBUSY;
}

static bool bind_at(int fd, const struct sockaddr_un *addr, const struct auth_unix *rules)
{
	mode_t mask = umask(0777);
	int ret = bind(fd, (const struct sockaddr *)addr, sizeof(*addr));

	umask(mask);
	if (ret)
		return false;
	/* Group first: nobody may connect until the mode is there. */
	if (rules->group && chown(addr->sun_path, (uid_t)-1, rules->group))
		return false;
	return !chmod(addr->sun_path, rules->others ? 0666 : 0660) && !listen(fd, BACKLOG);
}

int listen_unix(const char *path, const struct auth_unix *rules, int *lock_fd, char *why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(why, POOL_TEXT_MAX, "socket '%s' has more than %zu bytes; shorten it",
			 path, sizeof(addr.sun_path) - 1);
		return -EINVAL;
	}
	strcpy(addr.sun_path, path);
	*lock_fd = lock(path, why);
	if (*lock_fd < 0)
		return *lock_fd;
	if (!lstat(path, &st) && (!S_ISSOCK(st.st_mode) || unlink(path))) {
		snprintf(why, POOL_TEXT_MAX, "%s: there is a file that is no socket; move it away",
			 path);
		close(*lock_fd);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind_at(fd, &addr, rules))
		return fd;
	snprintf(why, POOL_TEXT_MAX, "%s: %s; see socket and admin_group in [listen]", path,
		 strerror(errno));
	if (fd >= 0)
		close(fd);
	close(*lock_fd);
	return -EINVAL;
}

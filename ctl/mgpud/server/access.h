/* SPDX-License-Identifier: GPL-2.0-only */
/* The users that may connect to the socket, and those that may change settings. */
#ifndef MGPUD_ACCESS_H
#define MGPUD_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The group mgpu if it exists, else root, or the group that mgpud runs as if it is not root. */
#define ACCESS_AUTO	"auto"
#define ACCESS_GROUP	"mgpu"

/**
 * struct access - users of the socket
 * @gid: group whose members may connect and change settings
 * @everyone: every user may connect and read
 */
struct access {
	gid_t gid;
	bool everyone;
};

/* A user's rank. Each rank may do what the ranks before it may do, and displaces them. */
enum access_rank {
	ACCESS_READ,	/* may read */
	ACCESS_CHANGE,	/* may change settings */
	ACCESS_ROOT,	/* root, or the user that mgpud runs as */
};

/**
 * struct peer - the process at the other end of a connection
 * @uid: its user when it connected
 * @pid: its process ID then
 */
struct peer {
	uid_t uid;
	pid_t pid;
};

/**
 * access_group() - find the group of the socket
 * @name: name of a group, or ACCESS_AUTO
 * @gid: result
 * @why: what is wrong and what to do, a sentence; on error only
 * @size: size of @why, bytes
 *
 * Return: 0; -ENOENT: there is no such group; another negative errno.
 */
int access_group(const char *name, gid_t *gid, char *why, size_t size);

/* Give the socket at @path to the group. Returns 0, or -errno with a sentence in @why. */
int access_apply(const struct access *a, const char *path, char *why, size_t size);

/* Read the peer of a connected socket, and return its rank. */
enum access_rank access_peer(const struct access *a, int fd, struct peer *peer);

#endif /* MGPUD_ACCESS_H */

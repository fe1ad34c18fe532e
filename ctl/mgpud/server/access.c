// SPDX-License-Identifier: GPL-2.0-only
/* The users that may connect to the socket, and those that may change settings. */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "config/fail.h"
#include "server/access.h"

#define GROUP_ROOM	(1u << 20)	/* a group's entry with all its members, bytes */

int access_group(const char *name, gid_t *gid, char *why, size_t size)
{
	bool choose = !strcmp(name, ACCESS_AUTO);
	struct group group, *found = NULL;
	char *room = malloc(GROUP_ROOM);
	int ret;

	if (!room)
		return fail(why, size, -ENOMEM, "out of memory");
	ret = getgrnam_r(choose ? ACCESS_GROUP : name, &group, room, GROUP_ROOM, &found);
	free(room);
	if (found) {
		*gid = group.gr_gid;
		return 0;
	}
	*gid = geteuid() ? getegid() : 0;
	if (choose)
		return 0;
	return fail(why, size, ret ? -ret : -ENOENT,
		    "socket_group: %s: %s; create it with \"groupadd --system %s\", or choose another socket_group. Until then only root may use the socket",
		    name, ret ? strerror(ret) : "there is no such group", name);
}

int access_apply(const struct access *a, const char *path, char *why, size_t size)
{
	/* first take away, so that at no time a user has more than before and after */
	if (chmod(path, 0600) || chown(path, (uid_t)-1, a->gid))
		return fail(why, size, -errno,
			    "cannot give %s to the group %u: %s; until this is corrected only its owner may use it. %s needs CAP_CHOWN, or to be a member",
			    path, a->gid, strerror(errno), program_invocation_short_name);
	if (chmod(path, a->everyone ? 0666 : 0660))
		return fail(why, size, -errno, "cannot set the mode of %s: %s", path,
			    strerror(errno));
	return 0;
}

/* Is @gid among the supplementary groups that the peer had when it connected? */
static bool has_group(int fd, gid_t gid)
{
	gid_t some[64], *list = some;
	socklen_t len = sizeof(some);
	bool found = false;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &len)) {
		if (errno != ERANGE)
			return false;
		list = malloc(len);
		if (!list)
			return false;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &len))
			len = 0;
	}
	for (size_t i = 0; i < len / sizeof(*list) && !found; i++)
		found = list[i] == gid;
	if (list != some)
		free(list);
	return found;
}

enum access_rank access_peer(const struct access *a, int fd, struct peer *peer)
{
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		cred.uid = (uid_t)-1;
		cred.gid = (gid_t)-1;
	}
	*peer = (struct peer){ .uid = cred.uid, .pid = cred.pid };
	if (!cred.uid || cred.uid == geteuid())
		return ACCESS_ROOT;
	if (cred.gid == a->gid || has_group(fd, a->gid))
		return ACCESS_CHANGE;
	return ACCESS_READ;
}

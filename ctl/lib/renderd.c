// SPDX-License-Identifier: GPL-2.0-only
/* Records of running mgpu-renderds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "renderd.h"

#define PREFIX	"renderd-"
#define SUFFIX	".pid"

const char *const renderd_states[] = {
	[RENDERD_DEAD] = "dead",
	[RENDERD_STARTING] = "starting",
	[RENDERD_SERVING] = "serving",
	[RENDERD_STOPPING] = "stopping",
};

static bool record_path(char *path, size_t size, const char *root, const char *gpu)
{
	return (size_t)snprintf(path, size, "%s" RENDERD_DIR "/" PREFIX "%s" SUFFIX, root, gpu) <
		size;
}

/*
 * Inode number of a device's types in sysfs, 0 for none. Numbers are not used again until the
 * host boots: the types of a device made after the module was loaded once more have another
 * number, also where the device has the name of an old one, or is a GPU.
 */
static uint64_t types_inode(const char *root, const char *device)
{
	char path[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "%s/sys/class/mdev_bus/%s/mdev_supported_types",
			     root, device) >= sizeof(path) || stat(path, &st))
		return 0;
	return st.st_ino;
}

/**
 * struct content - what a record's file has besides the fields of struct renderd
 * @inode: inode number of the device's types
 * @stopping: the process waits for VMMs
 */
struct content {
	uint64_t inode;
	bool stopping;
};

/* Parse what the file has. A line without its end is one that is being written. */
static void parse(struct renderd *r, struct content *c, char *text)
{
	char *line, *end, *value;

	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		value = strchr(line, ' ');
		if (line == text)
			r->pid = (pid_t)strtol(line, NULL, 10);
		else if (!strcmp(line, "stopping"))
			c->stopping = true;
		else if (value && !strncmp(line, "node ", 5))
			snprintf(r->node, sizeof(r->node), "%s", value + 1);
		else if (value && !strncmp(line, "device ", 7))
			snprintf(r->device, sizeof(r->device), "%s", value + 1);
		else if (value && !strncmp(line, "inode ", 6))
			c->inode = strtoull(value + 1, NULL, 10);
		else if (value && !strncmp(line, "user ", 5))
			r->id = (uint32_t)strtoul(value + 1, NULL, 10);
	}
}

static void read_record(struct renderd *r, struct content *c, int fd)
{
	char text[512];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	memset(c, 0, sizeof(*c));
	parse(r, c, text);
}

/* Forget the device of a process that died if the device is gone, too. */
static void check_device(struct renderd *r, const struct content *c, const char *root)
{
	if (!c->inode || types_inode(root, r->device) != c->inode)
		*r->device = '\0';
}

bool renderd_read(const char *root, const char *gpu, struct renderd *r)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct content c;
	int fd;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	if (strlen(gpu) >= sizeof(r->gpu) ||
	    !record_path(r->path, sizeof(r->path), root, gpu))
		return false;
	strcpy(r->gpu, gpu);
	fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	read_record(r, &c, fd);
	if (fcntl(fd, F_GETLK, &lock))
		lock.l_type = F_UNLCK;
	/* A holder that did not write the file starts; 0 is one of another PID namespace. */
	if (lock.l_type == F_UNLCK || (lock.l_pid > 0 && lock.l_pid != r->pid)) {
		check_device(r, &c, root);
		r->state = lock.l_type == F_UNLCK ? RENDERD_DEAD : RENDERD_STARTING;
	} else {
		r->state = c.stopping ? RENDERD_STOPPING :
			   *r->device ? RENDERD_SERVING : RENDERD_STARTING;
	}
	if (r->state != RENDERD_DEAD && lock.l_pid > 0)
		r->pid = lock.l_pid;
	close(fd);
	return true;
}

static int by_gpu(const void *a, const void *b)
{
	return strcmp(((const struct renderd *)a)->gpu, ((const struct renderd *)b)->gpu);
}

int renderd_list(const char *root, struct renderd **list, size_t *nr, struct mgpu_error *err)
{
	char path[PATH_MAX], gpu[PCI_ADDRESS_LEN];
	const struct dirent *entry;
	struct renderd *more;
	int ret = 0;
	DIR *dir;

	*list = NULL;
	*nr = 0;
	if ((size_t)snprintf(path, sizeof(path), "%s" RENDERD_DIR, root) >= sizeof(path))
		return mgpu_fail(err, -ENAMETOOLONG, "%s is too long", root);
	dir = opendir(path);
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return mgpu_fail(err, -errno, "cannot read %s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), extra = strlen(PREFIX) + strlen(SUFFIX);

		if (len <= extra || len - extra >= sizeof(gpu) ||
		    strncmp(entry->d_name, PREFIX, strlen(PREFIX)) ||
		    strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX))
			continue;
		snprintf(gpu, sizeof(gpu), "%.*s", (int)(len - extra),
			 entry->d_name + strlen(PREFIX));
		more = reallocarray(*list, *nr + 1, sizeof(**list));
		if (!more) {
			ret = mgpu_fail(err, -ENOMEM, "out of memory");
			break;
		}
		*list = more;
		*nr += renderd_read(root, gpu, &more[*nr]);
	}
	closedir(dir);
	if (ret) {
		free(*list);
		*list = NULL;
		*nr = 0;
	} else if (*nr) {
		qsort(*list, *nr, sizeof(**list), by_gpu);
	}
	return ret;
}

int renderd_claim(const char *root, const char *gpu, struct renderd *r, struct mgpu_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET }, holder = lock;
	struct stat locked, now;
	struct content c;
	char dir[PATH_MAX];

	memset(r, 0, sizeof(*r));
	if (strlen(gpu) >= sizeof(r->gpu) || !record_path(r->path, sizeof(r->path), root, gpu) ||
	    (size_t)snprintf(dir, sizeof(dir), "%s" RENDERD_DIR, root) >= sizeof(dir))
		return mgpu_fail(err, -ENAMETOOLONG, "'%.64s' is too long", gpu);
	strcpy(r->gpu, gpu);
	if (mkdir(dir, 0755) && errno != EEXIST)
		return mgpu_fail(err, -errno, "cannot make %s: %s", dir, strerror(errno));
	/* Until the file that is locked is also the one of this name: its last owner removes it. */
	for (;;) {
		r->fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (r->fd < 0)
			return mgpu_fail(err, -errno, "cannot open %s: %s", r->path,
					 strerror(errno));
		if (fcntl(r->fd, F_SETLK, &lock)) {
			int ret = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;

			if (fcntl(r->fd, F_GETLK, &holder) || holder.l_type == F_UNLCK)
				holder.l_pid = 0;
			close(r->fd);
			if (ret == -EBUSY)
				return mgpu_fail(err, ret,
						 "another mgpu-renderd (process %d) renders %s%s; end it with 'gpuctl render stop %s'",
						 holder.l_pid,
						 strcmp(gpu, RENDERD_NONE) ? "on " : "without a GPU",
						 strcmp(gpu, RENDERD_NONE) ? gpu : "", gpu);
			return mgpu_fail(err, ret, "cannot lock %s: %s", r->path, strerror(-ret));
		}
		if (!fstat(r->fd, &locked) && !stat(r->path, &now) &&
		    locked.st_dev == now.st_dev && locked.st_ino == now.st_ino)
			break;
		close(r->fd);
	}
	read_record(r, &c, r->fd);
	check_device(r, &c, root);
	*r->node = '\0';
	return 0;
}

int renderd_publish(const char *root, const struct renderd *r, struct mgpu_error *err)
{
	char text[512];
	int len;

	len = snprintf(text, sizeof(text), "%d\n", getpid());
	if (*r->node)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "node %s\n", r->node);
	if (*r->device)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "device %s\ninode %" PRIu64 "\nuser %u\n",
				r->device, types_inode(root, r->device), r->id);
	if (ftruncate(r->fd, 0) || pwrite(r->fd, text, (size_t)len, 0) != len)
		return mgpu_fail(err, -errno, "cannot write %s: %s", r->path, strerror(errno));
	return 0;
}

void renderd_stopping(const struct renderd *r)
{
	static const char line[] = "stopping\n";
	struct stat st;

	/* Only a state for people. */
	if (!fstat(r->fd, &st) && pwrite(r->fd, line, sizeof(line) - 1, st.st_size) < 0)
		return;
}

void renderd_remove(const struct renderd *r)
{
	unlink(r->path);
	close(r->fd);
}

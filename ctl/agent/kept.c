// SPDX-License-Identifier: GPL-2.0-only
/* The agent's state on disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"
#include "kept.h"
#include "lines.h"
#include "sysfs.h"

#define PATH_SIZE	(CONF_PATH_MAX + KEPT_NAME + 32)
#define SLOTS		64	/* requests of one name */
#define SUFFIX		".request"

static void path_of(const struct conf *conf, const char *name, const char *suffix,
		    char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s/%s%s", conf->state, name, suffix);
}

int kept_folder(const struct conf *conf)
{
	if (!mkdir(conf->state, 0700) || errno == EEXIST)
		return 0;
	complain("%s: %s: mgpu-agent keeps its requests there; run it as root, or set state=",
		 conf->state, strerror(errno));
	return -1;
}

/* ---- files ---- */

/* Replace a file so that after a loss of power it is the old one or the new one. */
static int write_whole(const struct conf *conf, const char *name, const char *suffix,
		       const char *text)
{
	char path[PATH_SIZE], new[PATH_SIZE + 8];
	size_t size = strlen(text);
	int fd, folder, ret = -1;

	path_of(conf, name, suffix, path);
	snprintf(new, sizeof(new), "%s.new", path);
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		if (write(fd, text, size) == (ssize_t)size && !fsync(fd) && !rename(new, path))
			ret = 0;
		close(fd);
	}
	if (ret) {
		complain("%s: %s", path, strerror(errno));
		return -1;
	}
	folder = open(conf->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0) {
		fsync(folder);
		close(folder);
	}
	return 0;
}

/*
 * Lock a name. The lock's file may be removed by its last owner: see that it is still the one of
 * that name.
 */
static int lock_name(const struct conf *conf, const char *name)
{
	char path[PATH_SIZE];
	struct stat a, b;
	int fd;

	path_of(conf, name, ".lock", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &a) || stat(path, &b) ||
	    a.st_ino != b.st_ino) {
		close(fd);
		return -EBUSY;
	}
	return fd;
}

static int take_line(void *arg, const char *name, const char *value, char *why)
{
	struct kept *k = arg;
	uint64_t n = 0;

	(void)why;
	if (!strcmp(name, "key") && strlen(value) < sizeof(k->key))
		strcpy(k->key, value);
	else if (!strcmp(name, "device") && strlen(value) < sizeof(k->device))
		strcpy(k->device, value);
	else if (!strcmp(name, "before") && strlen(value) < sizeof(k->before))
		strcpy(k->before, value);
	else if (!strcmp(name, "boot") && strlen(value) < sizeof(k->boot))
		strcpy(k->boot, value);
	else if (wire_decimal(value, INT64_MAX, &n))
		return 0;
	else if (!strcmp(name, "id"))
		k->id = n;
	else if (!strcmp(name, "over"))
		k->over = n;
	else if (!strcmp(name, "done"))
		k->done = n;
	else if (!strcmp(name, "busy_ns"))
		k->busy_ns = n;
	return 0;
}

static void clear(struct kept *k, const struct conf *conf, const char *name)
{
	memset(k, 0, sizeof(*k));
	k->conf = conf;
	k->lock = -1;
	snprintf(k->name, sizeof(k->name), "%s", name);
}

static void read_boot(const struct conf *conf, char boot[KEPT_BOOT])
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/random/boot_id", conf->root);
	read_line(path, boot, KEPT_BOOT);
}

/* A file that is cut off or damaged is as none: the request gets a new key. */
static void read_request(struct kept *k)
{
	char path[PATH_SIZE], why[256], boot[KEPT_BOOT];

	path_of(k->conf, k->name, SUFFIX, path);
	lines_read(path, take_line, k, why);
	read_boot(k->conf, boot);
	if (strcmp(boot, k->boot))
		devices_forget_numbers(k->before);
}

int kept_take(struct kept *kept, const struct conf *conf, const char *name)
{
	int fd = lock_name(conf, name);

	if (fd < 0)
		return fd;
	clear(kept, conf, name);
	kept->lock = fd;
	read_request(kept);
	return 0;
}

int kept_open(struct kept *kept, const struct conf *conf, const char *name)
{
	char slot[KEPT_NAME];
	int ret = -EBUSY;

	if (kept_folder(conf))
		return -1;
	for (int i = 0; i < SLOTS && ret; i++) {
		snprintf(slot, sizeof(slot), "%.80s-%d", name, i);
		ret = kept_take(kept, conf, slot);
		/* Another process finishes a former request of this name. */
		if (!ret && kept->over) {
			kept_close(kept, false);
			ret = -EBUSY;
		}
		if (ret && ret != -EBUSY)
			break;
	}
	if (ret)
		complain("%s: %s", conf->state, ret == -EBUSY ? "too many requests of one name" :
			 strerror(-ret));
	return ret ? -1 : 0;
}

int kept_new_key(char key[KEPT_KEY])
{
	unsigned char random[16];

	if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
		complain("the kernel gives no random bytes: %s", strerror(errno));
		return -1;
	}
	strcpy(key, "agent-");
	for (size_t i = 0; i < sizeof(random); i++)
		sprintf(key + 6 + 2 * i, "%02x", random[i]);
	return 0;
}

int kept_renew(struct kept *kept)
{
	struct devices now;

	if (kept_new_key(kept->key))
		return -1;
	kept->id = 0;
	kept->busy_ns = 0;
	*kept->device = '\0';
	if (devices_scan(kept->conf->root, &now))
		now.nr = 0;
	devices_list(&now, kept->before, sizeof(kept->before));
	read_boot(kept->conf, kept->boot);
	return kept_write(kept);
}

int kept_write(const struct kept *kept)
{
	char text[KEPT_LIST + 512];

	snprintf(text, sizeof(text),
		 "key=%s\nid=%" PRIu64 "\ndevice=%s\nover=%d\ndone=%d\nbusy_ns=%" PRIu64 "\n"
		 "boot=%s\nbefore=%s\n",
		 kept->key, kept->id, kept->device, kept->over, kept->done, kept->busy_ns,
		 kept->boot, kept->before);
	return write_whole(kept->conf, kept->name, SUFFIX, text);
}

void kept_close(struct kept *kept, bool remove)
{
	char path[PATH_SIZE];

	if (kept->lock < 0)
		return;
	if (remove) {
		path_of(kept->conf, kept->name, SUFFIX, path);
		unlink(path);
		path_of(kept->conf, kept->name, ".lock", path);
		unlink(path);
	}
	close(kept->lock);
	kept->lock = -1;
}

void kept_each(const struct conf *conf, void (*fn)(const char *name, void *arg), void *arg)
{
	const struct dirent *e;
	DIR *dir = opendir(conf->state);

	if (!dir)
		return;
	while ((e = readdir(dir))) {
		size_t length = strlen(e->d_name), end = strlen(SUFFIX);
		char name[KEPT_NAME];

		if (length <= end || strcmp(e->d_name + length - end, SUFFIX) ||
		    length - end >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length - end), e->d_name);
		fn(name, arg);
	}
	closedir(dir);
}

/**
 * struct others - devices of the other requests
 * @kept: this one
 * @list: their addresses
 */
struct others {
	const struct kept *kept;
	char *list;
};

static void add_other(const char *name, void *arg)
{
	struct others *o = arg;
	size_t at = strlen(o->list);
	struct kept *other;

	if (!strcmp(name, o->kept->name))
		return;
	other = malloc(sizeof(*other));
	if (!other)
		return;
	clear(other, o->kept->conf, name);
	read_request(other);
	if (*other->device)
		snprintf(o->list + at, KEPT_LIST - at, "%s%s", at ? " " : "", other->device);
	free(other);
}

int kept_lock_devices(const struct conf *conf)
{
	int fd = open(conf->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	while ((ret = flock(fd, LOCK_EX)) && errno == EINTR)
		;
	if (!ret)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

void kept_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

void kept_others(const struct kept *kept, char list[KEPT_LIST])
{
	struct others o = { .kept = kept, .list = list };

	*list = '\0';
	kept_each(kept->conf, add_other, &o);
}

/**
 * struct sought - a key that is sought
 * @conf: settings
 * @key: the key
 * @but: name of what does not count
 * @found: a request has it
 */
struct sought {
	const struct conf *conf;
	const char *key;
	const char *but;
	bool found;
};

static void seek_key(const char *name, void *arg)
{
	struct sought *s = arg;
	struct kept *k = strcmp(name, s->but) ? malloc(sizeof(*k)) : NULL;

	if (!k)
		return;
	clear(k, s->conf, name);
	read_request(k);
	s->found |= !strcmp(k->key, s->key);
	free(k);
}

bool kept_has(const struct conf *conf, const char *key, const char *but)
{
	struct sought s = { .conf = conf, .key = key, .but = but };

	kept_each(conf, seek_key, &s);
	return s.found;
}

/* ---- consent ---- */

bool kept_consent(const struct conf *conf)
{
	char path[PATH_SIZE];

	path_of(conf, "consent", "", path);
	return !access(path, F_OK);
}

int kept_set_consent(const struct conf *conf, bool yes)
{
	char path[PATH_SIZE];

	if (kept_folder(conf))
		return -1;
	if (yes)
		return write_whole(conf, "consent", "", "yes\n");
	path_of(conf, "consent", "", path);
	if (!unlink(path) || errno == ENOENT)
		return 0;
	complain("%s: %s", path, strerror(errno));
	return -1;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Files of learned weights that settings name, which are not trusted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "config/fail.h"
#include "config/weights.h"

/* Open the file of an O_PATH descriptor for reading. Returns -1 with errno. */
static int open_again(int fd)
{
	char path[sizeof("/proc/self/fd/") + 10];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/*
 * Open a regular file. A client may name any path, and to open a device can have effects: look
 * at the type first, of the very file that is opened then.
 */
static FILE *open_file(const char *path, char *why, size_t size)
{
	int fd = -1, found = open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	FILE *f = NULL;

	if (found >= 0 && (fstat(found, &st) || !S_ISREG(st.st_mode))) {
		fail(why, size, 0, "%s: not a regular file; name one that 'mgpu-learn train' wrote",
		     path);
		close(found);
		return NULL;
	}
	if (found >= 0)
		fd = open_again(found);
	if (fd >= 0)
		f = fdopen(fd, "r");
	if (!f) {
		fail(why, size, 0, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	if (found >= 0)
		close(found);
	return f;
}

bool weights_read(struct learn_file *file, const char *path, char *why, size_t size)
{
	FILE *f = open_file(path, why, size);
	int ret;

	if (!f)
		return false;
	ret = learn_file_read(file, f, path, why, size);
	fclose(f);
	return !ret;
}

void weights_make_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

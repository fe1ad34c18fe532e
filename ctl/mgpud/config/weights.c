// SPDX-License-Identifier: GPL-2.0-only
/* Files of learned weights that settings name, which are not trusted. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "config/fail.h"
#include "config/weights.h"

static FILE *open_file(const char *path, char *why, size_t size)
{
	/* do not block on a pipe without a writer */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	FILE *f;

	if (fd < 0) {
		fail(why, size, 0, "%s: %s", path, strerror(errno));
		return NULL;
	}
	f = !fstat(fd, &st) && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	if (!f) {
		fail(why, size, 0, "%s: not a regular file; name one that 'mgpu-learn train' wrote",
		     path);
		close(fd);
	}
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

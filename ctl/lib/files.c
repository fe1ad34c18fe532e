// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"
#include "files.h"

int read_file(const char *path, void *data,
	      int (*read)(void *data, FILE *f, const char *file, char *why, size_t size))
{
	FILE *f = fopen(path, "re");
	char why[512];
	int ret;

	if (!f) {
		complain("%s: %s", path, strerror(errno));
		return -1;
	}
	ret = read(data, f, path, why, sizeof(why));
	fclose(f);
	if (!ret)
		return 0;
	complain("%s", why);
	return -1;
}

int check_replaceable(const char *path)
{
	char *copy = strdup(path), *dir;
	struct stat st;
	int ret = -1;

	if (!copy) {
		complain("out of memory");
		return -1;
	}
	dir = dirname(copy);
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		complain("%s is not a regular file: name another one", path);
	else if (stat(dir, &st))
		complain("%s: %s: make the folder, or name a file elsewhere", dir, strerror(errno));
	else if (access(dir, W_OK | X_OK))
		complain("%s: %s: name a file in a folder that you may write to", dir,
			 strerror(errno));
	else
		ret = 0;
	free(copy);
	return ret;
}

int replace_file(const char *path, const void *data, int (*write)(const void *data, FILE *f))
{
	char *beside = NULL;
	FILE *f = NULL;
	int ret = -1;

	if (asprintf(&beside, "%s.tmp", path) < 0) {
		beside = NULL;
	} else {
		/* A link of this name, in a directory of all users, is removed, not followed. */
		unlink(beside);
		f = fopen(beside, "wxe");
	}
	if (f) {
		ret = write(data, f);
		if (fclose(f))
			ret = -1;
		if (!ret)
			ret = rename(beside, path);
	}
	if (ret)
		complain("%s: %s", path, strerror(errno));
	if (ret && f)
		unlink(beside);
	free(beside);
	return ret ? -1 : 0;
}

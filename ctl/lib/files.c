// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int replace_file(const char *path, const void *data, int (*write)(const void *data, FILE *f))
{
	char *beside = NULL;
	FILE *f = NULL;
	int ret = -1;

	if (asprintf(&beside, "%s.tmp", path) < 0)
		beside = NULL;
	else
		f = fopen(beside, "we");
	if (f) {
		ret = write(data, f);
		if (fclose(f))
			ret = -1;
		if (!ret)
			ret = rename(beside, path);
	}
	if (ret)
		complain("%s: %s", path, strerror(errno));
	free(beside);
	return ret ? -1 : 0;
}

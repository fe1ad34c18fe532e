// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drm_usage.h"
#include "usage.h"

#define CLIENTS	64u	/* DRM files of a process that are told apart */

static void read_cpu(const char *root, pid_t pid, struct usage *u)
{
	unsigned long long user, system;
	char path[PATH_MAX], line[1024];
	FILE *file;
	char *at;

	snprintf(path, sizeof(path), "%s/proc/%d/stat", root, pid);
	file = fopen(path, "re");
	if (!file)
		return;
	/* The name of the command may have spaces and parentheses. */
	at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	if (at && sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			 &system) == 2)
		u->cpu_ns = (user + system) * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
	fclose(file);
}

static void read_engines(const char *root, pid_t pid, struct usage *u)
{
	struct drm_usage clients[CLIENTS], client;
	const struct dirent *entry;
	char folder[PATH_MAX / 2], path[PATH_MAX];
	unsigned int nr = 0, i;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/proc/%d/fdinfo", root, pid);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (*entry->d_name == '.' || !drm_usage_read(path, &client))
			continue;
		for (i = 0; i < nr && !drm_usage_same(&clients[i], &client); i++)
			;
		if (i < nr)
			continue;
		if (nr < CLIENTS)
			clients[nr++] = client;
		u->has_engine = true;
		u->engine_ns += client.engine_ns;
	}
	if (dir)
		closedir(dir);
}

void usage_read(const char *root, pid_t pid, struct usage *u)
{
	memset(u, 0, sizeof(*u));
	read_cpu(root, pid, u);
	read_engines(root, pid, u);
}

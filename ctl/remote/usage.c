// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/**
 * struct clients - DRM files of a process: those that were duplicated have the same counters
 * @seen: device and id
 * @nr: their number
 */
struct clients {
	char seen[CLIENTS][96];
	unsigned int nr;
};

/* Add the counters of a file, as drm-usage-stats.rst of the kernel has them. */
static void read_info(FILE *file, struct clients *c, struct usage *u)
{
	char line[256], id[32] = "", device[48] = "", key[96];
	unsigned long long ns, sum = 0;
	bool counts = false;

	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "drm-engine-capacity-", 20))
			continue;
		if (sscanf(line, "drm-client-id: %31s", id) == 1 ||
		    sscanf(line, "drm-pdev: %47s", device) == 1)
			continue;
		if (sscanf(line, "drm-engine-%*[^:]: %llu ns", &ns) == 1) {
			sum += ns;
			counts = true;
		}
	}
	if (!counts)
		return;
	u->has_engine = true;
	snprintf(key, sizeof(key), "%s %s", device, id);
	for (unsigned int i = 0; i < c->nr; i++)
		if (!strcmp(c->seen[i], key))
			return;
	if (c->nr < CLIENTS)
		strcpy(c->seen[c->nr++], key);
	u->engine_ns += sum;
}

static void read_engines(const char *root, pid_t pid, struct usage *u)
{
	struct clients c = { .nr = 0 };
	const struct dirent *entry;
	char path[PATH_MAX];
	FILE *file;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "%s/proc/%d/fdinfo", root, pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		file = fd < 0 ? NULL : fdopen(fd, "r");
		if (file) {
			read_info(file, &c, u);
			fclose(file);
		} else if (fd >= 0) {
			close(fd);
		}
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

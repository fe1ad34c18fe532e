// SPDX-License-Identifier: GPL-2.0-only
/* How long a GPU worked for a process, or the processors in its place for this one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drm_usage.h"
#include "engine_clock.h"

static bool read_client(const char *fdinfo, int fd, struct drm_usage *u)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%d", fdinfo, fd);
	/* The worker's channel has the time that this clock tells. */
	return drm_usage_read(path, u) && strcmp(u->driver, "mgpu") != 0;
}

bool engine_clock_start(struct engine_clock *c, const char *fdinfo)
{
	struct drm_usage clients[ENGINE_CLOCK_FDS], client;
	struct dirent *e;
	size_t i;
	DIR *dir;

	*c = (struct engine_clock){ 0 };
	snprintf(c->fdinfo, sizeof(c->fdinfo), "%s", fdinfo);
	dir = opendir(c->fdinfo);
	while (dir && c->nr < ENGINE_CLOCK_FDS && (e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (*e->d_name == '.' || !read_client(c->fdinfo, fd, &client))
			continue;
		for (i = 0; i < c->nr && !drm_usage_same(&clients[i], &client); i++)
			;
		if (i < c->nr)
			continue;
		clients[c->nr] = client;
		c->fds[c->nr++] = fd;
	}
	if (dir)
		closedir(dir);
	return c->nr;
}

void engine_clock_start_cpu(struct engine_clock *c)
{
	*c = (struct engine_clock){ .cpu = true };
}

uint64_t engine_clock_ns(const struct engine_clock *c)
{
	struct drm_usage u;
	struct timespec ts;
	uint64_t sum = 0;

	if (c->cpu) {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
		return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	}
	for (size_t i = 0; i < c->nr; i++)
		if (read_client(c->fdinfo, c->fds[i], &u))
			sum += u.engine_ns;
	return sum;
}

// SPDX-License-Identifier: GPL-2.0-only
/* How long a GPU worked for a process, or the processors in its place for this one. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine_clock.h"

bool engine_clock_parse(const char *text, uint64_t *client, uint64_t *ns)
{
	char driver[8], unit[8];
	bool found = false;
	uint64_t n;

	*client = 0;
	*ns = 0;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "drm-client-id: %" SCNu64, &n) == 1)
			*client = n;
		/* The worker's channel has the time that this clock tells. */
		if (sscanf(line, "drm-driver: %7s", driver) == 1 && !strcmp(driver, "mgpu"))
			return false;
		/* drm-engine-capacity-NAME has no unit. */
		if (sscanf(line, "drm-engine-%*[^: \t\n]: %" SCNu64 " %7s", &n, unit) == 2 &&
		    !strcmp(unit, "ns")) {
			*ns += n;
			found = true;
		}
	}
	return found;
}

static bool read_client(const char *fdinfo, int fd, uint64_t *client, uint64_t *ns)
{
	char path[64], text[4096];
	ssize_t len;
	int info;

	snprintf(path, sizeof(path), "%s/%d", fdinfo, fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	len = read(info, text, sizeof(text) - 1);
	close(info);
	if (len < 0)
		return false;
	text[len] = '\0';
	return engine_clock_parse(text, client, ns);
}

bool engine_clock_start(struct engine_clock *c, const char *fdinfo)
{
	uint64_t clients[ENGINE_CLOCK_FDS], client, ns;
	struct dirent *e;
	size_t i;
	DIR *dir;

	*c = (struct engine_clock){ 0 };
	snprintf(c->fdinfo, sizeof(c->fdinfo), "%s", fdinfo);
	dir = opendir(c->fdinfo);
	while (dir && c->nr < ENGINE_CLOCK_FDS && (e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (*e->d_name == '.' || !read_client(c->fdinfo, fd, &client, &ns))
			continue;
		/* Copies of a file have the same client. */
		for (i = 0; i < c->nr && clients[i] != client; i++)
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
	uint64_t sum = 0, client, ns;
	struct timespec ts;

	if (c->cpu) {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
		return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	}
	for (size_t i = 0; i < c->nr; i++)
		if (read_client(c->fdinfo, c->fds[i], &client, &ns))
			sum += ns;
	return sum;
}

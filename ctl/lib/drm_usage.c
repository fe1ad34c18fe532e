// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drm_usage.h"

bool drm_usage_parse(const char *text, struct drm_usage *u)
{
	bool found = false;
	char unit[8];
	uint64_t n;

	memset(u, 0, sizeof(*u));
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "drm-client-id: %" SCNu64, &n) == 1)
			u->client = n;
		if (sscanf(line, "drm-driver: %31s", u->driver) == 1 ||
		    sscanf(line, "drm-pdev: %31s", u->device) == 1)
			continue;
		/* drm-engine-capacity-NAME has no unit. */
		if (sscanf(line, "drm-engine-%*[^: \t\n]: %" SCNu64 " %7s", &n, unit) == 2 &&
		    !strcmp(unit, "ns")) {
			u->engine_ns += n;
			found = true;
		}
	}
	return found;
}

bool drm_usage_read(const char *path, struct drm_usage *u)
{
	char text[4096];
	ssize_t len;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return false;
	text[len] = '\0';
	return drm_usage_parse(text, u);
}

bool drm_usage_same(const struct drm_usage *a, const struct drm_usage *b)
{
	return a->client == b->client && !strcmp(a->device, b->device);
}

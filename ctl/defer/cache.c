// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "report.h"

#define MAX_NAME	4096

/* Write the name of the cache's folder; return whether there is one. */
static bool folder(char *name)
{
	const char *home = getenv("XDG_CACHE_HOME");

	if (home && *home == '/')
		return snprintf(name, MAX_NAME, "%s/mgpu/defer", home) < MAX_NAME - 128;
	home = getenv("HOME");
	return home && *home == '/' &&
	       snprintf(name, MAX_NAME, "%s/.cache/mgpu/defer", home) < MAX_NAME - 128;
}

static bool file_name(char *name, const char *build_id, bool assume_success)
{
	if (!*build_id || !folder(name))
		return false;
	sprintf(name + strlen(name), "/%s%s.json", build_id,
		assume_success ? "-assume-success" : "");
	return true;
}

struct json_object *cache_get(const char *build_id, bool assume_success)
{
	json_object *report, *version, *id, *loops;
	char name[MAX_NAME];

	if (!file_name(name, build_id, assume_success))
		return NULL;
	if (access(name, R_OK))
		return NULL;
	report = json_object_from_file(name);
	/* Of another version, or damaged: it is made anew. */
	if (report && json_object_is_type(report, json_type_object) &&
	    json_object_object_get_ex(report, "version", &version) &&
	    json_object_get_int(version) == REPORT_VERSION &&
	    json_object_object_get_ex(report, "build_id", &id) &&
	    id && !strcmp(json_object_get_string(id), build_id) &&
	    json_object_object_get_ex(report, "loops", &loops) &&
	    json_object_is_type(loops, json_type_array))
		return report;
	json_object_put(report);
	return NULL;
}

static bool make_folders(char *name)
{
	char *slash = name;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = 0;
		if (mkdir(name, 0700) && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return !mkdir(name, 0700) || errno == EEXIST;
}

void cache_put(const char *build_id, bool assume_success, struct json_object *report)
{
	char name[MAX_NAME], temporary[MAX_NAME + 8];
	int fd;

	if (!*build_id || !folder(name) || !make_folders(name) ||
	    !file_name(name, build_id, assume_success))
		return;
	sprintf(temporary, "%s.XXXXXX", name);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return;
	/* Another reader sees a whole file, or none. */
	if (json_object_to_fd(fd, report, JSON_C_TO_STRING_PLAIN) || rename(temporary, name))
		unlink(temporary);
	close(fd);
}

// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "process_clock.h"

bool process_clock_start(struct process_clock *c, pid_t pid)
{
	*c = (struct process_clock){ .pid = pid };
	return !clock_getcpuclockid(pid, &c->cpu);
}

uint64_t process_clock_engine_ns(struct process_clock *c, uint64_t now_ns)
{
	char fdinfo[32];
	uint64_t ns;

	if (!c->found_ns || now_ns - c->found_ns >= PROCESS_CLOCK_FIND_NS) {
		snprintf(fdinfo, sizeof(fdinfo), "/proc/%d/fdinfo", c->pid);
		engine_clock_start(&c->engines, fdinfo);
		c->found_ns = now_ns;
	}
	ns = engine_clock_ns(&c->engines);
	if (ns > c->engine_ns)
		c->engine_ns = ns;
	return c->engine_ns;
}

uint64_t process_clock_cpu_ns(const struct process_clock *c)
{
	struct timespec ts;

	if (clock_gettime(c->cpu, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static bool is_ready(const char *stat)
{
	char text[256];
	const char *state;
	FILE *f = fopen(stat, "re");

	/* The thread's name, in brackets, may have any character. */
	state = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	if (f)
		fclose(f);
	return state && !strncmp(state, ") R", 3);
}

bool process_clock_is_ready(const struct process_clock *c)
{
	const struct dirent *thread;
	char folder[32], path[300];
	bool ready = false;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/task", c->pid);
	dir = opendir(folder);
	while (!ready && dir && (thread = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s/stat", folder, thread->d_name);
		ready = *thread->d_name != '.' && is_ready(path);
	}
	if (dir)
		closedir(dir);
	return ready;
}

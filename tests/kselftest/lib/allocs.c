// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts of allocations, by counters of perf.
 */
#include <errno.h>
#include <glob.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "allocs.h"
#include "vmm.h"

#define KMEM	"/sys/kernel/tracing/events/kmem/"

/* Those with _node are in older kernels only. */
static const char * const events[] = {
	"kmalloc", "kmalloc_node", "kmem_cache_alloc", "kmem_cache_alloc_node",
	"mm_page_alloc",
};

static int count_in(struct allocs *a, pid_t thread)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1,
	};
	char path[128];
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(events); i++) {
		snprintf(path, sizeof(path), KMEM "%s/id", events[i]);
		if (access(path, R_OK))
			continue;
		attr.config = (uint64_t)sysfs_number(path);
		if (a->nr == ALLOCS_MAX)
			return -E2BIG;
		a->fd[a->nr] = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1,
					    PERF_FLAG_FD_CLOEXEC);
		if (a->fd[a->nr] < 0)
			return -errno;
		a->nr++;
	}
	return a->nr ? 0 : -ENOENT;
}

/* Count in the threads whose directories match @pattern, and whose names begin so. */
static int count_all(struct allocs *a, const char *pattern, const char *name)
{
	char path[128], comm[32];
	glob_t found;
	int ret = 0;
	size_t i;

	if (glob(pattern, 0, NULL, &found))
		return -ESRCH;
	for (i = 0; i < found.gl_pathc && !ret; i++) {
		snprintf(path, sizeof(path), "%s/comm", found.gl_pathv[i]);
		if (sysfs_read(path, comm, sizeof(comm)) <= 0 ||
		    strncmp(comm, name, strlen(name)))
			continue;
		ret = count_in(a, (pid_t)atoi(strrchr(found.gl_pathv[i], '/') + 1));
	}
	globfree(&found);
	return ret;
}

static void end(struct allocs *a)
{
	while (a->nr)
		close(a->fd[--a->nr]);
}

int allocs_begin(struct allocs *a)
{
	unsigned int i;
	int ret;

	a->nr = 0;
	ret = count_all(a, "/proc/[0-9]*", "mgpu");
	if (!ret)
		ret = count_all(a, "/proc/self/task/*", "");
	/* Opening a counter allocates; enabling and reading one does not. */
	for (i = 0; i < a->nr && !ret; i++)
		ret = ioctl(a->fd[i], PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
	if (ret)
		end(a);
	return ret;
}

long long allocs_end(struct allocs *a)
{
	long long sum = 0, n;
	unsigned int i;

	for (i = 0; i < a->nr && sum >= 0; i++)
		sum = read(a->fd[i], &n, sizeof(n)) == sizeof(n) ? sum + n : -EIO;
	end(a);
	return sum;
}

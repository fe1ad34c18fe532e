// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash.h"

const char *const crash_points[] = {
	"request-store", "request-stored", "change-store", "change-stored", "outcome-stored",
	"event-stored", "commit", "committed", "job", "job-begun", "answer", "answer-done",
	"reconcile", "reconcile-done", "reply", "load", "libvirt", "libvirt-done",
	NULL
};

#ifdef POOL_CRASH_POINTS
/* Threads of hosts reach points, too. */
void crash_point(const char *name)
{
	static int count;
	const char *want = getenv("MGPU_POOL_CRASH");
	size_t len = strlen(name);

	if (!want || strncmp(want, name, len) || (want[len] && want[len] != ':'))
		return;
	if (__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) >=
	    (want[len] ? atoi(want + len + 1) : 1))
		_exit(99);
}
#endif

// SPDX-License-Identifier: GPL-2.0-only
/* Keep-alives for the service manager. Pure. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "server/watchdog.h"

/* Parse a whole number without further characters. */
static bool parse(const char *text, unsigned long long *value)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !*end && !errno;
}

void watchdog_init(struct watchdog *w, const char *usec, const char *pid,
		   long self, uint64_t now_ns)
{
	unsigned long long limit, who;

	w->interval_ns = 0;
	w->next_ns = now_ns;
	if (!parse(usec, &limit) || !limit || limit > UINT64_MAX / 1000 / 2)
		return;
	/* for another process, such as a shell that started this one */
	if (pid && (!parse(pid, &who) || who != (unsigned long long)self))
		return;
	w->interval_ns = (uint64_t)limit * 1000 / 2;
}

int watchdog_wait_ms(const struct watchdog *w, uint64_t now_ns)
{
	uint64_t ms;

	if (!w->interval_ns)
		return -1;
	if (now_ns >= w->next_ns)
		return 0;
	ms = (w->next_ns - now_ns + 999999) / 1000000;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

bool watchdog_due(struct watchdog *w, uint64_t now_ns, uint64_t period_ns)
{
	if (!w->interval_ns || now_ns < w->next_ns)
		return false;
	w->next_ns = now_ns + w->interval_ns;
	return now_ns <= period_ns || now_ns - period_ns <= w->interval_ns;
}

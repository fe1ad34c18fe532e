/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keep-alives for the service manager: at half of the time that it allows, also within a
 * longer period; but not while a period is overdue. Pure.
 */
#ifndef MGPUD_WATCHDOG_H
#define MGPUD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct watchdog - keep-alives for the service manager
 * @interval_ns: time between two keep-alives, ns; 0 for no keep-alives
 * @next_ns: time at which the next keep-alive is due, ns
 */
struct watchdog {
	uint64_t interval_ns;
	uint64_t next_ns;
};

/*
 * @usec and @pid are WATCHDOG_USEC and WATCHDOG_PID of the environment, NULL if not set;
 * @self is the ID of this process.
 */
void watchdog_init(struct watchdog *w, const char *usec, const char *pid,
		   long self, uint64_t now_ns);

/* Return the timeout for poll(): milliseconds to the next keep-alive, -1 for none. */
int watchdog_wait_ms(const struct watchdog *w, uint64_t now_ns);

/*
 * Return true if a keep-alive must be sent now. @period_ns: end of the period under way,
 * ns; if it is past by more than an interval, the loop is stuck and sends none.
 */
bool watchdog_due(struct watchdog *w, uint64_t now_ns, uint64_t period_ns);

#endif /* MGPUD_WATCHDOG_H */

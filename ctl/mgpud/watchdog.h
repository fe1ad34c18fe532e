/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When to tell the service manager that the loop still turns: at half of the
 * time that it allows, however long a period is; and not while the loop has
 * missed the period that was due. Pure.
 */
#ifndef MGPUD_WATCHDOG_H
#define MGPUD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct watchdog - keep-alives
 * @interval_ns: between two of them, 0 for none
 * @next_ns: when the next one is due
 */
struct watchdog {
	uint64_t interval_ns;
	uint64_t next_ns;
};

/*
 * @usec and @pid are WATCHDOG_USEC and WATCHDOG_PID of the environment, NULL where
 * they are not set; @self is this process.
 */
void watchdog_init(struct watchdog *w, const char *usec, const char *pid,
		   long self, uint64_t now_ns);

/* Milliseconds to wait for the next one, -1 for any time; for poll(). */
int watchdog_wait_ms(const struct watchdog *w, uint64_t now_ns);

/*
 * Is one to be sent now? @period_ns: when the period under way is to end. Where
 * that is past by more than an interval, the loop does not do what it is for.
 */
bool watchdog_due(struct watchdog *w, uint64_t now_ns, uint64_t period_ns);

#endif /* MGPUD_WATCHDOG_H */

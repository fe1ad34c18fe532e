/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The service's time of day. It follows CLOCK_REALTIME, but never goes back, and a second of it is
 * a second of CLOCK_BOOTTIME give or take a tenth. A clock that is set, back or far ahead, neither
 * ends leases and idle times at once nor holds them up. Pure.
 */
#ifndef POOL_STEADY_H
#define POOL_STEADY_H

#include <stdint.h>

/**
 * struct steady - a time of day
 * @offset_ns: its time is this much after CLOCK_BOOTTIME
 * @boot_ns: CLOCK_BOOTTIME when it was last read
 */
struct steady {
	int64_t offset_ns;
	int64_t boot_ns;
};

/* Begin with a time of CLOCK_REALTIME at one of CLOCK_BOOTTIME, ns. */
void steady_start(struct steady *s, int64_t real_ns, int64_t boot_ns);
/* Go on from a time at least, seconds: that of what another run of the service stored. */
void steady_raise(struct steady *s, int64_t time);
/* Return the time, seconds. */
int64_t steady_read(struct steady *s, int64_t real_ns, int64_t boot_ns);
/* Return how far CLOCK_REALTIME is ahead of what was last read, seconds. */
int64_t steady_behind(const struct steady *s, int64_t real_ns);

#endif /* POOL_STEADY_H */

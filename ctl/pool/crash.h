/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points where a crash of the service is tested.  Only a program built with POOL_CRASH_POINTS has
 * them: MGPU_POOL_CRASH=POINT:COUNT in its environment ends it, without any cleanup, the
 * COUNTth time that it reaches POINT.
 */
#ifndef POOL_CRASH_H
#define POOL_CRASH_H

/*
 * crash_points[] in crash.c has the same names; a test compares them with the sources.
 */
#ifdef POOL_CRASH_POINTS
void crash_point(const char *name);
#else
static inline void crash_point(const char *name)
{
	(void)name;
}
#endif

/* Names of all points, NULL at the end. */
extern const char *const crash_points[];

#endif /* POOL_CRASH_H */

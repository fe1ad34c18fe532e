// SPDX-License-Identifier: GPL-2.0-only
/*
 * A clock that catches up: mgpu-poold is preloaded with it for the demo of the pool.
 *
 * MGPU_DEMO_CLOCK has two numbers, BEGIN and SPEED.  The time of day begins BEGIN ns after 1970
 * when the library is loaded, and goes SPEED times as fast as it should until it is the right time.
 * CLOCK_BOOTTIME, by which the service knows that the clock was not set, goes with it.
 * CLOCK_MONOTONIC stays as it is: pauses are of the length that they have.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NSEC	INT64_C(1000000000)

static int64_t begin, speed, loaded;

static int64_t real(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static int64_t played(void)
{
	int64_t now = real(), then = begin + (now - loaded) * speed;

	return begin && then < now ? then : now;
}

__attribute__((constructor))
static void load(void)
{
	const char *text = getenv("MGPU_DEMO_CLOCK");
	long long b, s;

	if (!text || sscanf(text, "%lld %lld", &b, &s) != 2 || b <= 0 || s < 1)
		return;
	loaded = real();
	speed = s;
	begin = b;
}

time_t time(time_t *result)
{
	time_t t = played() / NSEC;

	if (result)
		*result = t;
	return t;
}

int gettimeofday(struct timeval *restrict result, void *restrict zone)
{
	int64_t t = played();

	(void)zone;
	result->tv_sec = t / NSEC;
	result->tv_usec = t % NSEC / 1000;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *result)
{
	int64_t t;
	int ret = (int)syscall(SYS_clock_gettime, clock, result);

	if (ret || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
		return ret;
	t = played();
	if (clock == CLOCK_BOOTTIME)
		t += result->tv_sec * NSEC + result->tv_nsec - real();
	result->tv_sec = t / NSEC;
	result->tv_nsec = t % NSEC;
	return 0;
}

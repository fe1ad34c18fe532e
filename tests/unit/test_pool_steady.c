// SPDX-License-Identifier: GPL-2.0-only
/* The service's time of day, with clocks that are set. */
#include "clock.h"
#include "steady.h"
#include "tap.h"

#define T0	INT64_C(1800000000)
#define S	((int64_t)NSEC)
#define HOUR	3600

static struct steady s;

/* Read the time @boot seconds after the start, when the clock is @set seconds off. */
static int64_t at(int64_t boot, int64_t set)
{
	return steady_read(&s, (T0 + boot + set) * S, (500 + boot) * S) - T0;
}

static void follows(void)
{
	steady_start(&s, T0 * S, 500 * S);
	TAP_EQ(at(0, 0), 0);
	TAP_EQ(at(100, 0), 100);
	/* Corrections of NTP. */
	TAP_EQ(at(200, 3), 203);
	TAP_EQ(at(300, -4), 296);
	TAP_EQ(steady_behind(&s, (T0 + 296) * S), 0);
}

static void set_back(void)
{
	steady_start(&s, T0 * S, 500 * S);
	TAP_EQ(at(0, -HOUR), 0);
	TAP_EQ(steady_behind(&s, (T0 - HOUR) * S), -HOUR);
	TAP_EQ(at(100, -HOUR), 90);
	TAP_EQ(at(100, -HOUR), 90);
	TAP_EQ(at(1000, -HOUR), 900);
	/* The hour is made up for. */
	TAP_EQ(at(50000, -HOUR), 50000 - HOUR);
	TAP_EQ(steady_behind(&s, (T0 + 50000 - HOUR) * S), 0);
	TAP_EQ(at(50100, -HOUR), 50100 - HOUR);
}

static void far_ahead(void)
{
	int64_t year = INT64_C(365) * 24 * HOUR;

	steady_start(&s, T0 * S, 500 * S);
	TAP_EQ(at(0, 10 * year), 0);
	TAP_EQ(at(HOUR, 10 * year), HOUR + HOUR / 10);
	/* It is set right again. */
	TAP_EQ(at(2 * HOUR, 0), 2 * HOUR);
	/* A clock of 1970. */
	TAP_EQ(at(3 * HOUR, -T0 - 3 * HOUR), 3 * HOUR - HOUR / 10);
}

/* It never goes back, however often it is read. */
static void grows(void)
{
	int64_t last = 0, now;

	steady_start(&s, T0 * S, 500 * S);
	for (int64_t ms = 0; ms < 100000; ms += 7) {
		int64_t set = (ms / 700 % 3 - 1) * 1000 * S;

		now = steady_read(&s, T0 * S + ms * 1000000 + set, 500 * S + ms * 1000000) - T0;
		if (!TAP_CHECK(now >= last))
			break;
		last = now;
	}
	TAP_CHECK(last >= 89 && last <= 111);
}

static void goes_on(void)
{
	steady_start(&s, T0 * S, 500 * S);
	steady_raise(&s, T0 - 5);
	TAP_EQ(at(0, 0), 0);
	steady_raise(&s, T0 + 50);
	TAP_EQ(at(0, 0), 50);
	TAP_EQ(at(100, 0), 140);
	TAP_EQ(at(1000, 0), 1000);
}

int main(void)
{
	tap_run(follows, "it follows the clock");
	tap_run(set_back, "a clock that is set back slows it by a tenth");
	tap_run(far_ahead, "a clock that is far ahead hastens it by a tenth");
	tap_run(grows, "it never goes back");
	tap_run(goes_on, "it goes on from what is stored");
	return tap_done();
}

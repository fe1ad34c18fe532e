// SPDX-License-Identifier: GPL-2.0-only
/* The clock of a GPU by the times of fences (ctl/renderd/fence_clock.h). */
#include "../../ctl/renderd/fence_clock.h"
#include "tap.h"

static void pauses_do_not_count(void)
{
	struct fence_clock c = { 0 };

	fence_clock_end(&c, 1000, 1400);
	TAP_CHECK(c.worked_ns == 400);
	fence_clock_end(&c, 5000, 5010);
	TAP_CHECK(c.worked_ns == 410);
}

static void overlaps_count_once(void)
{
	struct fence_clock c = { 0 };

	fence_clock_end(&c, 1000, 1400);
	/* Given while the GPU had the work before. */
	fence_clock_end(&c, 1100, 1500);
	TAP_CHECK(c.worked_ns == 500);
	/* Two that are found complete at the same time. */
	fence_clock_end(&c, 1200, 1900);
	fence_clock_end(&c, 1300, 1900);
	TAP_CHECK(c.worked_ns == 900);
}

static void waits_of_commands_count(void)
{
	struct fence_clock c = { 0 };

	/* A command that ran for 100 ns waited for 300; its fence was complete 10 ns later. */
	fence_clock_end(&c, fence_clock_given(1000, 100, 1400), 1410);
	TAP_CHECK(c.worked_ns == 310);
	/* The two clocks differ by a little. */
	TAP_CHECK(fence_clock_given(2000, 110, 2100) == 2100);
}

int main(void)
{
	tap_run(pauses_do_not_count, "the time without work does not count");
	tap_run(overlaps_count_once, "work that is pending at the same time counts once");
	tap_run(waits_of_commands_count, "the time for which a command waits for the GPU counts");
	return tap_done();
}

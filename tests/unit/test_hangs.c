// SPDX-License-Identifier: GPL-2.0-only
/* The record of a vGPU's hangs. */
#include "sched/hangs.h"
#include "tap.h"

#define SEC	1000000000ULL

static void none(void)
{
	const struct mgpu_hangs h = { 0 };

	TAP_EQ(mgpu_hangs_recent(&h, 0), 0);
	TAP_EQ(mgpu_hangs_recent(&h, U64_MAX), 0);
}

static void each_counts_for_the_window(void)
{
	struct mgpu_hangs h = { .nr = 0 };
	const u64 window = MGPU_HANG_WINDOW * SEC;

	mgpu_hangs_add(&h, 0);
	mgpu_hangs_add(&h, 10 * SEC);
	mgpu_hangs_add(&h, 10 * SEC);
	TAP_EQ(mgpu_hangs_recent(&h, 10 * SEC), 3);
	TAP_EQ(mgpu_hangs_recent(&h, window - 1), 3);
	TAP_EQ(mgpu_hangs_recent(&h, window), 2);
	TAP_EQ(mgpu_hangs_recent(&h, window + 10 * SEC - 1), 2);
	TAP_EQ(mgpu_hangs_recent(&h, window + 10 * SEC), 0);
}

/* The oldest make room; the highest limit can still be reached. */
static void any_number_of_hangs(void)
{
	struct mgpu_hangs h = { .nr = 0 };
	u32 i;

	for (i = 0; i < 10 * MGPU_HANG_LIMIT_MAX + 3; i++) {
		mgpu_hangs_add(&h, i * SEC);
		TAP_EQ(mgpu_hangs_recent(&h, i * SEC),
		       i + 1 < MGPU_HANG_LIMIT_MAX ? i + 1 : MGPU_HANG_LIMIT_MAX);
	}
	/* Only the last MGPU_HANG_LIMIT_MAX are there to count. */
	TAP_EQ(mgpu_hangs_recent(&h, (MGPU_HANG_WINDOW + i - 1) * SEC - 1), 1);
}

static void a_count_that_wraps(void)
{
	struct mgpu_hangs h = { .nr = UINT32_MAX - 2 };
	u32 i;

	for (i = 0; i < MGPU_HANG_LIMIT_MAX; i++)
		h.at_ns[i] = 0;
	for (i = 0; i < 8; i++)
		mgpu_hangs_add(&h, 2 * MGPU_HANG_WINDOW * SEC);
	TAP_CHECK(mgpu_hangs_recent(&h, 2 * MGPU_HANG_WINDOW * SEC) >= 5);
}

static void forgiven(void)
{
	struct mgpu_hangs h = { .nr = 0 };

	mgpu_hangs_add(&h, 5 * SEC);
	mgpu_hangs_add(&h, 5 * SEC);
	mgpu_hangs_forgive(&h);
	TAP_EQ(mgpu_hangs_recent(&h, 5 * SEC), 0);
	mgpu_hangs_add(&h, 6 * SEC);
	TAP_EQ(mgpu_hangs_recent(&h, 6 * SEC), 1);
}

int main(void)
{
	tap_run(none, "a new vGPU has no hangs");
	tap_run(each_counts_for_the_window, "each hang counts for the window");
	tap_run(any_number_of_hangs, "any number of hangs can be recorded");
	tap_run(a_count_that_wraps, "a count that wraps loses a few hangs at most");
	tap_run(forgiven, "hangs that are forgiven do not count");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Record of a vGPU's hangs.  Pure; builds unchanged in user space.
 */
#include "sched/hangs.h"

#define WINDOW_NS	(MGPU_HANG_WINDOW * 1000000000ULL)

/**
 * mgpu_hangs_add - record a hang
 * @h: record
 * @now_ns: time of the hang, nanoseconds
 */
void mgpu_hangs_add(struct mgpu_hangs *h, u64 now_ns)
{
	h->at_ns[h->nr++ % MGPU_HANG_LIMIT_MAX] = now_ns;
}

/**
 * mgpu_hangs_recent - count the hangs of the last MGPU_HANG_WINDOW seconds
 * @h: record
 * @now_ns: current time, nanoseconds
 *
 * Return: the number of hangs, at most MGPU_HANG_LIMIT_MAX.
 */
u32 mgpu_hangs_recent(const struct mgpu_hangs *h, u64 now_ns)
{
	u32 known = h->nr < MGPU_HANG_LIMIT_MAX ? h->nr : MGPU_HANG_LIMIT_MAX;
	u32 nr = 0, i;

	for (i = 0; i < known; i++)
		nr += now_ns - h->at_ns[i] < WINDOW_NS;
	return nr;
}

/* Forget all hangs. */
void mgpu_hangs_forgive(struct mgpu_hangs *h)
{
	h->nr = 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_HANGS_H
#define MGPU_HANGS_H

#include <uapi/linux/mgpu.h>

#include "pure.h"

/**
 * struct mgpu_hangs - a vGPU's latest hangs
 * @at_ns: times of the last MGPU_HANG_LIMIT_MAX hangs, a ring, nanoseconds
 * @nr: number of hangs since the vGPU was created or forgiven
 *
 * A hang is a job that exceeded the device's job-timeout, or on which a physical GPU
 * had to be reset.  A guest's resets leave the record alone.
 *
 * Pure: the caller passes the time, which must not go back, and serialises.
 */
struct mgpu_hangs {
	u64 at_ns[MGPU_HANG_LIMIT_MAX];
	u32 nr;
};

void mgpu_hangs_add(struct mgpu_hangs *h, u64 now_ns);
u32 mgpu_hangs_recent(const struct mgpu_hangs *h, u64 now_ns);
void mgpu_hangs_forgive(struct mgpu_hangs *h);

#endif /* MGPU_HANGS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_BUCKET_H
#define MGPU_BUCKET_H

#include "pure.h"

/**
 * struct mgpu_bucket - an allowance of engine time that refills at a rate
 * @rate: engine nanoseconds gained per 10^9 nanoseconds; 0 for no limit
 * @cap_ns: upper bound on @level_ns between two pieces of work, engine nanoseconds
 * @level_ns: engine nanoseconds available; a negative level is debt, at most what the
 *	bucket gains in MGPU_BUCKET_MAX_WAIT_NS
 * @frac: part of a nanosecond gained, in 10^-9 ns
 * @at_ns: time up to which gains are counted, nanoseconds of the caller's clock
 *
 * Work may start while the level is above 0 and is charged when it completes or stops.
 * Over any time T it uses at most rate x T + cap and, on each engine, one job more, or
 * MGPU_BUCKET_SLICE_NS and a tile where the work can stop between tiles.  Debt is paid
 * back before more work starts, but for at most MGPU_BUCKET_MAX_WAIT_NS at a
 * time.  A vGPU that always has work gets the full rate: no gain is lost while work
 * is in flight.
 *
 * Pure: the caller passes the time and serialises; a time before @at_ns is read as
 * @at_ns.  No arithmetic overflows at any time, charge or setting.
 */
struct mgpu_bucket {
	u64 rate;
	u64 cap_ns;
	s64 level_ns;
	u32 frac;
	u64 at_ns;
};

#define MGPU_BUCKET_MAX_WAIT_NS	2000000000ULL
/* Work that can stop does so at this debt, engine nanoseconds. */
#define MGPU_BUCKET_SLICE_NS	1000000

void mgpu_bucket_set(struct mgpu_bucket *b, u64 rate, u64 cap_ns, u64 now_ns);
void mgpu_bucket_begin(struct mgpu_bucket *b, u64 now_ns);
void mgpu_bucket_charge(struct mgpu_bucket *b, u64 ns, u64 now_ns);
bool mgpu_bucket_spent(const struct mgpu_bucket *b, u64 ns, u64 now_ns);
void mgpu_bucket_trim(struct mgpu_bucket *b, u64 ns, u64 now_ns);
u64 mgpu_bucket_wait(const struct mgpu_bucket *b, u64 now_ns);

#endif /* MGPU_BUCKET_H */

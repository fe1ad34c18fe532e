/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_BUCKET_H
#define MGPU_BUCKET_H

#include "pure.h"

/**
 * struct mgpu_bucket - an allowance of engine time that refills at a rate
 * @rate: engine nanoseconds per 10^9 nanoseconds (parts per 10^9) that it
 *	gains; 0 for no bucket: everything is allowed
 * @cap_ns: most that it holds
 * @level_ns: what it holds; negative is debt, no more than
 *	MGPU_BUCKET_MAX_WAIT_NS pays back
 * @frac: part of a nanosecond gained, in 10^-9 ns
 * @at_ns: time up to which gains are counted
 *
 * Work may start while the level is above 0 and is charged when it is done, so
 * over any stretch of time T it uses at most rate x T + cap and, on each
 * engine, one job more.  What exceeds is paid back before anything starts
 * again, but for not more than MGPU_BUCKET_MAX_WAIT_NS at a time.  Whoever
 * always has work gets all of the rate: nothing is lost while work is done.
 *
 * Pure: the caller passes the time and serialises; a time before @at_ns counts
 * as @at_ns.  No arithmetic overflows at any time, charge or setting.
 */
struct mgpu_bucket {
	u64 rate;
	u64 cap_ns;
	s64 level_ns;
	u32 frac;
	u64 at_ns;
};

#define MGPU_BUCKET_MAX_WAIT_NS	2000000000ULL

void mgpu_bucket_set(struct mgpu_bucket *b, u64 rate, u64 cap_ns, u64 now_ns);
void mgpu_bucket_begin(struct mgpu_bucket *b, u64 now_ns);
void mgpu_bucket_charge(struct mgpu_bucket *b, u64 ns, u64 now_ns);
void mgpu_bucket_trim(struct mgpu_bucket *b, u64 ns, u64 now_ns);
u64 mgpu_bucket_wait(const struct mgpu_bucket *b, u64 now_ns);

#endif /* MGPU_BUCKET_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF programs and what they count. Reading is plain memory access.
 */
#ifndef MGPUD_COUNTERS_H
#define MGPUD_COUNTERS_H

#include <linux/types.h>

#include "account.h"
#include "sample.h"

struct counters;

/*
 * Load and attach. What cannot be loaded is left out, and @why says what and
 * how to mend it, a sentence each; "" when everything works. Fails with
 * -ENOMEM only.
 */
int counters_open(struct counters **counters, char *why, size_t len);
void counters_close(struct counters *c);

bool counters_account(const struct counters *c);	/* frames, jobs, engines */
bool counters_charge(const struct counters *c);		/* and charges */
bool counters_cputime(const struct counters *c);	/* CPU and idle time */

/* NULL for ids that are not counted. */
const struct mgpu_account *counters_vgpu(const struct counters *c, uint32_t id);

/*
 * Tell the CPU time program what the kernel module says of who has which vGPU
 * open. @at_once: also where program and module were of one mind before; else
 * a difference must last from one call to the next, since one of them may just
 * have been faster.
 */
void counters_owners(struct counters *c, const struct sample_vgpu *vgpus,
		     size_t nr, bool at_once);

/* Fills @s's now_ns, idle_ns and the cpu_ns of its VMMs; drops VMMs unknown. */
void counters_cpu(struct counters *c, struct sample *s);

/* Events that a program missed because it was running already. */
uint64_t counters_missed(const struct counters *c);

#endif /* MGPUD_COUNTERS_H */

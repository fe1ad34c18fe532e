/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF programs of the rate loop and their counters, which are in shared memory.
 */
#ifndef MGPUD_COUNTERS_H
#define MGPUD_COUNTERS_H

#include <linux/types.h>

#include "account.h"
#include "sample.h"

struct counters;

/*
 * Load and attach the programs. Programs that cannot be loaded are left out; @why has a
 * sentence for each with its cause and remedy, or "". Fails with -ENOMEM only.
 */
int counters_open(struct counters **counters, char *why, size_t len);
void counters_close(struct counters *c);

bool counters_account(const struct counters *c);	/* frames, jobs, engines */
bool counters_charge(const struct counters *c);		/* and charges */
bool counters_cputime(const struct counters *c);	/* CPU and idle time */

/* NULL for IDs that are not counted. */
const struct mgpu_account *counters_vgpu(const struct counters *c, uint32_t id);

/*
 * Tell the CPU time program which process has which vGPU open, according to the kernel
 * module. Unless @at_once, a difference between program and module must last from one
 * call to the next, since one of them may have seen a change first.
 */
void counters_owners(struct counters *c, const struct sample_vgpu *vgpus,
		     size_t nr, bool at_once);

/* Fill @s's now_ns, idle_ns and the cpu_ns of its VMMs; remove unknown VMMs. */
void counters_cpu(struct counters *c, struct sample *s);

/*
 * Number of events that a program missed because it was running already, and of VMMs whose
 * CPU time is not counted for lack of a slot.
 */
uint64_t counters_missed(const struct counters *c);

#endif /* MGPUD_COUNTERS_H */

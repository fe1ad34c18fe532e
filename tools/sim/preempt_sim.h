/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-sim-preempt: the preemption policy on a modelled device. Jobs come from a
 * stream, which says what is true of them; the policy is the one that mgpud runs,
 * and learns as it does there. Documentation/preemption.rst says what is modelled.
 */
#ifndef MGPU_PREEMPT_SIM_H
#define MGPU_PREEMPT_SIM_H

#include <stdio.h>

#include "analyse.h"
#include "preempt.h"

#define PSIM_HZ		2e9	/* cycles per second */
#define PSIM_JOBS_MAX	4000
#define PSIM_CLAIRVOYANT "clairvoyant"

/**
 * struct psim_job - a job as it is: one line of a stream
 * @arrival: cycles from the start
 * @vgpu: whose it is
 * @kind: of work
 * @size: of its input
 * @width: slots that it has use for
 * @inst: instructions
 * @ipc: per cycle on one slot, alone
 * @bound: part of its time alone in which it waits for memory, 0 to 1
 * @miss: cache misses per access
 * @bytes: live registers and shared memory per slot
 * @tile: cycles of a tile, alone
 * @idempotent: what runs may be dropped and run again
 */
struct psim_job {
	double arrival;
	uint32_t vgpu;
	uint32_t kind;
	double size;
	unsigned int width;
	double inst;
	double ipc;
	double bound;
	double miss;
	double bytes;
	double tile;
	bool idempotent;
};

struct psim_stream {
	size_t n;
	struct psim_job job[PSIM_JOBS_MAX];	/* in the order of arrival */
};

/**
 * struct psim_shape - of a stream to be generated
 * @seed: of everything that is random
 * @jobs: how many
 * @load: what arrives, in slots' time alone, over the slots' time
 * @slots: of the device that @load means
 * @wide: part of the jobs that have use for more than one slot
 */
struct psim_shape {
	uint64_t seed;
	unsigned int jobs;
	double load;
	unsigned int slots;
	double wide;
};

void psim_generate(struct psim_stream *s, const struct psim_shape *shape);
int psim_write(const struct psim_stream *s, const struct psim_shape *shape, FILE *f);
/* 0, or -errno with a sentence in @why. */
int psim_read(struct psim_stream *s, const char *path, char *why, size_t size);

/**
 * struct psim_setup - what runs
 * @policy: by which, NULL for the clairvoyant
 * @param: of the policy
 * @truth: what a switch really costs
 * @slots: of the device
 */
struct psim_setup {
	const struct preempt_ops *policy;
	struct preempt_param param;
	struct preempt_cost truth;
	unsigned int slots;
};

/**
 * struct psim_result - what came out
 * @norm_ipc: sum over running contexts, mean over the time with work
 * @busy: cycles with work
 * @mean: turnaround, seconds
 * @p99: the same of all but the slowest hundredth
 * @slowdown: turnaround over time alone, mean
 * @preemptions: slots were taken so often
 * @by: of these, by each method
 * @starved: launches because of the bound
 * @wasted: slots' cycles in which nothing was done or what was done was lost
 * @decisions: how often the policy was asked
 * @seconds_per_decision: real time
 */
struct psim_result {
	double norm_ipc;
	double busy;
	double mean, p99, slowdown;
	unsigned int preemptions, by[PREEMPT_METHODS], starved;
	double wasted;
	unsigned long decisions;
	double seconds_per_decision;
};

/* Returns 0, -ENOMEM, or -EDEADLK when the policy left jobs waiting for ever. */
int psim_run(const struct psim_stream *s, const struct psim_setup *setup,
	     struct psim_result *r);

/* norm_ipc as it is: of a job beside others, given their slots and boundness. */
double psim_norm(double bound, double memory, double compute, double others);

#endif /* MGPU_PREEMPT_SIM_H */

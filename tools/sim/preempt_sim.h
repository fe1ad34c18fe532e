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
 * struct psim_sharing - what is true of jobs beside each other; see psim_norm()
 * @memory: by how much waiting for memory slows down what waits for it, too
 * @compute: by how much computing slows down what computes
 * @any: by how much anything slows down anything
 * @decay: what a job that waits for memory all the time loses of its speed while
 *	another is switched
 */
struct psim_sharing {
	double memory;
	double compute;
	double any;
	double decay;
};

#define PSIM_SHARING ((struct psim_sharing){				\
	.memory = 0.9, .compute = 0.3, .any = 0.03, .decay = 0.12,	\
})

#define PSIM_HORIZON	(160e-3 * PSIM_HZ)

/**
 * struct psim_setup - what runs
 * @policy: by which, NULL for the clairvoyant
 * @param: of the policy
 * @truth: what a switch really costs
 * @slots: of the device
 * @sharing: what is true of sharing; NULL: PSIM_SHARING
 * @rest: least time from one decision to the next, cycles; 0: at each event
 * @horizon: how far the clairvoyant looks, cycles; 0: PSIM_HORIZON
 * @prior: what mgpud expects of kinds of work in the beginning; NULL: nothing
 * @norm: its table of norm_ipc in the beginning; NULL: that before any observation
 * @learned: result: what mgpud has learned in the end; NULL: not wanted
 */
struct psim_setup {
	const struct preempt_ops *policy;
	struct preempt_param param;
	struct preempt_cost truth;
	unsigned int slots;
	const struct psim_sharing *sharing;
	double rest;
	double horizon;
	const struct analyse *prior;
	const struct preempt_norm *norm;
	struct analyse *learned;
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
 * @guard: what the guard knows in the end
 */
struct psim_result {
	double norm_ipc;
	double busy;
	double mean, p99, slowdown;
	unsigned int preemptions, by[PREEMPT_METHODS], starved;
	double wasted;
	unsigned long decisions;
	double seconds_per_decision;
	struct guard guard;
};

/* Returns 0, -ENOMEM, or -EDEADLK when the policy left jobs waiting for ever. */
int psim_run(const struct psim_stream *s, const struct psim_setup *setup,
	     struct psim_result *r);

/*
 * norm_ipc as it is: of a job beside others' slots: the sum of the squares of what
 * they wait for memory, of what they do not, and their number.
 */
double psim_norm(const struct psim_sharing *t, double bound, double memory,
		 double compute, double others);

/* The clairvoyant for a device that is not modelled: its search, from what is now. */
struct psim_oracle;

#define PSIM_NO_JOB	((size_t)-1)

/* NULL: out of memory. @stream and @setup must stay. */
struct psim_oracle *psim_oracle_new(const struct psim_stream *stream,
				    const struct psim_setup *setup);
void psim_oracle_free(struct psim_oracle *o);

/**
 * psim_oracle_decide() - what to do now, knowing everything
 * @o: from psim_oracle_new()
 * @s: the device, on which preempt_snapshot_check() has nothing against
 * @job: of each context the place of its job in the stream, or PSIM_NO_JOB for one
 *	that is to be left alone
 * @done: of each context, instructions of the job that are done
 * @now: cycles since the stream began
 * @next: the first job of the stream that is still to come
 * @plan: the answer
 *
 * Takes as long as some dozens of looks into the future.
 */
void psim_oracle_decide(struct psim_oracle *o, const struct preempt_snapshot *s,
			const size_t *job, const double *done, double now, size_t next,
			struct preempt_plan *plan);

#endif /* MGPU_PREEMPT_SIM_H */

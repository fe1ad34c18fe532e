/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The analyser: predicts what a job will take from its kind and the size of its input,
 * learned from jobs that have completed. Pure, and of bounded size.
 */
#ifndef MGPU_PREEMPT_ANALYSE_H
#define MGPU_PREEMPT_ANALYSE_H

#include "guard.h"

#define ANALYSE_KINDS_MAX	64	/* a further kind replaces the one unused for longest */
#define ANALYSE_MEMORY		64.0	/* most jobs that an average goes over */
#define ANALYSE_RIDGE		0.5	/* weight of a slope of 1, squared logarithm */
#define ANALYSE_SLOPE_MAX	4.0
#define ANALYSE_SPREAD_MIN	0.02	/* smaller residuals are never outliers */
#define ANALYSE_OUTLIER		4.0	/* spreads: larger residuals are clamped */
#define ANALYSE_OVERRUN		0.1	/* of the work done: rest when the estimate was too low */

/* Before any job has completed: instructions per unit of size, and other estimates. */
#define ANALYSE_COLD_INST	8.0
#define ANALYSE_COLD_IPC	1.0
#define ANALYSE_COLD_MISS	0.3

/* Observations that what a prior knows of a kind counts as, at most. */
#define ANALYSE_PRIOR		4.0

/* Sizes and instruction counts are from 1 to this. */
#define ANALYSE_NUMBER_MAX	1e18

/* Observations; more cannot be made in the life of a machine. */
#define ANALYSE_NOW_MAX		(INT64_MAX / 2)

/**
 * struct analyse_kind - a kind of work
 * @kind: its number, chosen by the caller
 * @used: value of analyse.now when it was last observed
 * @jobs: weight of the regression, jobs, at most ANALYSE_MEMORY
 * @x: mean logarithm of sizes
 * @y: mean logarithm of instructions
 * @xx: sum of squared deviations of the logarithms of sizes from @x
 * @xy: sum of products of the deviations from @x and @y
 * @spread: mean absolute residual of the logarithms of instructions
 * @ipc: instructions per cycle on one slot, alone
 * @ipc_seen: weight of @ipc; below 1 if @ipc is derived from shared time only
 * @bound: part of the time spent waiting for memory, 0 to 1
 * @miss: cache misses per access, 0 to 1
 * @seen: weight of @bound and @miss
 */
struct analyse_kind {
	uint32_t kind;
	uint64_t used;
	double jobs, x, y, xx, xy, spread;
	double ipc, ipc_seen;
	double bound, miss, seen;
};

/**
 * struct analyse - the state of the analyser
 * @now: number of observations
 * @n: number of entries of @kind
 * @kind: kinds of work
 * @any: all kinds in one, for unknown kinds
 * @norm: norm_ipc of pairs of classes
 * @guard: what preemptions gained
 * @prior: what is expected of kinds that were observed too little, such as what another host
 *	has learned; NULL for nothing. The caller's; not kept over a restart
 */
struct analyse {
	uint64_t now;
	size_t n;
	struct analyse_kind kind[ANALYSE_KINDS_MAX];
	struct analyse_kind any;
	struct preempt_norm norm;
	struct guard guard;
	const struct analyse *prior;
};

/**
 * struct analyse_guess - estimates of a job
 * @inst: instructions
 * @ipc: instructions per cycle on one slot, alone
 * @bound: part of the time spent waiting for memory, NAN if unknown
 * @miss: cache misses per access, 0 to 1
 * @class: class by @bound
 * @known: at least one job of its kind has completed, here or where the prior comes from
 */
struct analyse_guess {
	double inst;
	double ipc;
	double bound;
	double miss;
	enum preempt_class class;
	bool known;
};

/* Set to the state before any observation. */
void analyse_init(struct analyse *a);

/**
 * analyse_done() - learn from a completed job
 * @a: the analyser
 * @kind: kind of work
 * @size: size of its input, in any unit that is the same for the kind; 1 to 1e18
 * @inst: instructions it took; 1 to 1e18. Other values are ignored
 */
void analyse_done(struct analyse *a, uint32_t kind, double size, double inst);

/**
 * analyse_alone() - learn from a stretch of time in which a job was alone on the device
 * @a: the analyser
 * @kind: kind of work
 * @ipc: instructions per cycle and slot
 */
void analyse_alone(struct analyse *a, uint32_t kind, double ipc);

/**
 * analyse_memory() - learn how a job uses memory, alone or not
 * @a: the analyser
 * @kind: kind of work
 * @bound: part of its time spent waiting for memory, 0 to 1
 * @miss: cache misses per access, 0 to 1
 */
void analyse_memory(struct analyse *a, uint32_t kind, double bound, double miss);

/**
 * analyse_shared() - learn from a stretch of time in which slots were shared
 * @a: the analyser
 * @p: parameters, for the class
 * @kind: kind of work
 * @others: slots of other contexts, by class
 * @ipc: instructions per cycle and slot
 *
 * Updates norm_ipc if the kind was observed alone, else the estimate of its ipc alone.
 */
void analyse_shared(struct analyse *a, const struct preempt_param *p, uint32_t kind,
		    const double others[PREEMPT_CLASSES + 1], double ipc);

/* Estimate a job. A @size out of range is clamped. */
void analyse_guess(const struct analyse *a, const struct preempt_param *p,
		   uint32_t kind, double size, struct analyse_guess *g);

/*
 * Return the instructions left of @inst expected ones when @done are done. Once @done
 * exceeds @inst, a tenth of @done, since estimates are wrong by factors.
 */
double analyse_rest(double inst, double done);

/*
 * Check a struct from a file before use. Return NULL, or a sentence about the first
 * value that analyse_init() and the functions above could not have left there.
 */
const char *analyse_check(const struct analyse *a);

#endif /* MGPU_PREEMPT_ANALYSE_H */

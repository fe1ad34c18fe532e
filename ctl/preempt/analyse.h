/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The analyser: what a piece of work will take, from its kind and the size of its
 * input, learned from work that was done. Pure, and of bounded size.
 */
#ifndef MGPU_PREEMPT_ANALYSE_H
#define MGPU_PREEMPT_ANALYSE_H

#include "preempt.h"

struct json_object;

#define ANALYSE_KINDS_MAX	64	/* beyond it the one unused for longest goes */
#define ANALYSE_MEMORY		64.0	/* jobs that averages go over */
#define ANALYSE_RIDGE		0.5	/* weight of a slope of 1, squared logarithm */
#define ANALYSE_SLOPE_MAX	4.0
#define ANALYSE_SPREAD_MIN	0.02	/* residuals below it are never outliers */
#define ANALYSE_OUTLIER		4.0	/* spreads: a residual beyond it is cut off */
#define ANALYSE_OVERRUN		0.1	/* of what was done: rest when the guess was short */

/* Before any job has ended: per unit of size, and the rest of what is guessed. */
#define ANALYSE_COLD_INST	8.0
#define ANALYSE_COLD_IPC	1.0
#define ANALYSE_COLD_MISS	0.3

/* Sizes and instruction counts are from 1 to this. */
#define ANALYSE_NUMBER_MAX	1e18

/**
 * struct analyse_kind - a kind of work
 * @kind: its number, whatever the caller calls it
 * @used: when it was last seen, in observations
 * @jobs: that the regression is made of, at most ANALYSE_MEMORY
 * @x: mean logarithm of sizes
 * @y: mean logarithm of instructions
 * @xx: sum of squares of logarithms of sizes around @x
 * @xy: the same of products
 * @spread: mean absolute residual of logarithms
 * @ipc: instructions per cycle on one slot, alone
 * @ipc_seen: weight of @ipc; below 1 it is only derived from shared time
 * @bound: part of the time in which it waits for memory
 * @miss: cache misses per access
 * @seen: weight of both
 */
struct analyse_kind {
	uint32_t kind;
	uint64_t used;
	double jobs, x, y, xx, xy, spread;
	double ipc, ipc_seen;
	double bound, miss, seen;
};

/**
 * struct analyse - all that was learned
 * @now: observations so far
 * @kind: @n kinds
 * @any: all kinds in one, for those that were never seen
 * @norm: of pairs of classes
 */
struct analyse {
	uint64_t now;
	size_t n;
	struct analyse_kind kind[ANALYSE_KINDS_MAX];
	struct analyse_kind any;
	struct preempt_norm norm;
};

/**
 * struct analyse_guess - what is expected of a job
 * @inst: instructions
 * @ipc: per cycle on one slot, alone
 * @bound: part of the time waiting for memory, NAN when not known
 * @miss: cache misses per access
 * @class: from @bound
 * @known: jobs of its kind have ended
 */
struct analyse_guess {
	double inst;
	double ipc;
	double bound;
	double miss;
	enum preempt_class class;
	bool known;
};

void analyse_init(struct analyse *a);

/**
 * analyse_done() - a job has ended
 * @a: what is known; adapted
 * @kind: of work
 * @size: of its input, in any unit that is the same for the kind; 1 to 1e18
 * @inst: instructions that it took; 1 to 1e18. Others teach nothing
 */
void analyse_done(struct analyse *a, uint32_t kind, double size, double inst);

/**
 * analyse_alone() - a stretch of time in which a job had the device for itself
 * @a: what is known; adapted
 * @kind: of work
 * @ipc: instructions per cycle and slot
 */
void analyse_alone(struct analyse *a, uint32_t kind, double ipc);

/**
 * analyse_memory() - how a job uses memory, alone or not
 * @a: what is known; adapted
 * @kind: of work
 * @bound: part of its time in which it waited for memory, 0 to 1
 * @miss: cache misses per access, 0 to 1
 */
void analyse_memory(struct analyse *a, uint32_t kind, double bound, double miss);

/**
 * analyse_shared() - a stretch of time in which slots were shared
 * @a: what is known; adapted
 * @p: for the class
 * @kind: of work
 * @others: slots of others, by class
 * @ipc: instructions per cycle and slot
 *
 * Teaches norm_ipc where the kind was seen alone; else what its ipc alone may be.
 */
void analyse_shared(struct analyse *a, const struct preempt_param *p, uint32_t kind,
		    const double others[PREEMPT_CLASSES + 1], double ipc);

/* What to expect of a job. @size beyond its range is taken as its next end. */
void analyse_guess(const struct analyse *a, const struct preempt_param *p,
		   uint32_t kind, double size, struct analyse_guess *g);

/*
 * Instructions that are left of @inst expected when @done are done: once they
 * are all done, a tenth of these, since a guess was wrong by some factor.
 */
double analyse_rest(double inst, double done);

/* For a state file; to be freed with json_object_put(). NULL when out of memory. */
struct json_object *analyse_to_json(const struct analyse *a);

/*
 * From what analyse_to_json() made. Returns 0, or -EBADMSG with a sentence in @why
 * and @a as it was: what is garbled in one place is not believed in another.
 */
int analyse_from_json(struct json_object *o, struct analyse *a, char *why, size_t size);

#endif /* MGPU_PREEMPT_ANALYSE_H */

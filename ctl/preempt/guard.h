/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guard: compares what preemptions were expected to gain with what came, by method,
 * and forbids a method that does not pay, until probes of it do. Pure, and of bounded
 * size. Documentation/preemption.rst, "The guard".
 */
#ifndef MGPU_PREEMPT_GUARD_H
#define MGPU_PREEMPT_GUARD_H

#include "preempt.h"

#define GUARD_MEMORY	32.0	/* most trials that a mean goes over */
#define GUARD_MIN	4.0	/* trials before which a method is not forbidden */
#define GUARD_ERRORS	2.0	/* standard errors by which a mean must be below 0 */
#define GUARD_PROBES	4u	/* trials of a probe */
#define GUARD_PRIOR	4.0	/* trials that the cold start counts as ... */
#define GUARD_SPREAD	0.1	/* ... with this standard deviation and no extra cost */
#define GUARD_WAIT_NS		1000000000ULL	/* until the first probe */
#define GUARD_WAIT_MAX_NS	64000000000ULL	/* doubled up to this after each that fails */
#define GUARD_FORGET_NS		10e9	/* time in which an extra cost falls to 1/e */
#define GUARD_SCALE_NS		100e6	/* time that the speed goes over */
#define GUARD_SCALE_MIN_NS	5e6	/* slots' time without which it is not known */
#define GUARD_EXTRA_MAX		1e15	/* cycles */

/**
 * struct guard_method - experience with a method of preemption
 * @trials: weight of the means, trials, at most GUARD_MEMORY
 * @expected: mean gain that was expected, relative to no preemption
 * @got: mean gain that came, relative to no preemption; -1 to 1
 * @square: mean squared deviation of the gains that came
 * @extra: what a preemption costs beyond what is expected of it, cycles of a slot; below 0
 *	if it gains more
 * @closed: the method is forbidden, except in probes
 * @probes: trials of the present probe so far
 * @probed: sum of their gains
 * @wait_ns: time from the end of one probe to the next, ns; 0 while open
 * @probe_ns: time of the next probe, ns; 0 for at once
 * @since_ns: time @closed last changed, ns; 0 if not since the start
 * @measured: number of trials, all in all
 * @closings: number of times it was forbidden
 *
 * Times are on the clock of the snapshots, which begins anew with each boot. They are not
 * kept in the state file: a method that is forbidden there is probed at once.
 */
struct guard_method {
	double trials, expected, got, square;
	double extra;
	bool closed;
	uint32_t probes;
	double probed;
	uint64_t wait_ns, probe_ns, since_ns;
	uint64_t measured, closings;
};

/**
 * struct guard - experience with all methods; all 0 at the start
 * @method: by enum preempt_method
 * @at_ns: time of the last look at any device, ns; 0 before the first
 */
struct guard {
	struct guard_method method[PREEMPT_METHODS];
	uint64_t at_ns;
};

/**
 * struct guard_watch - a device, watched from one look to the next
 * @dev: ID of the device
 * @at_ns: time of the last look, ns; 0 before the first
 * @rate: slots that worked at the last look, each times its norm_ipc by the table
 * @work: cycles of work at full speed, a moving sum over GUARD_SCALE_NS
 * @due: slots' time that @rate gives for the same time, ns
 * @trying: a trial is in progress
 * @method: its method
 * @began_ns: time it began, ns
 * @until_ns: time it ends, ns
 * @before: @rate without the preemption
 * @expected: expected gain, relative to @before
 * @done: work since it began, cycles
 */
struct guard_watch {
	uint32_t dev;
	uint64_t at_ns;
	double rate;
	double work, due;
	bool trying;
	enum preempt_method method;
	uint64_t began_ns, until_ns;
	double before, expected, done;
};

/* Return the slots at work in a snapshot, each times its norm_ipc by the table. */
double guard_rate(const struct preempt_snapshot *s);

/**
 * guard_look() - take in what happened since the last look at a device
 * @g: the guard; updated when a trial ends
 * @w: the device
 * @now_ns: time of this look, ns
 * @rate: of guard_rate() now
 * @work: work since the last look, in cycles that it takes alone on one slot; below 0 if
 *	work was lost
 * @waiting: a context waits, so that no slot was idle
 */
void guard_look(struct guard *g, struct guard_watch *w, uint64_t now_ns, double rate,
		double work, bool waiting);

/**
 * guard_begin() - begin a trial, if none is in progress
 *
 * A preemption for a context that has waited for the bound may lose. Its trial counts what
 * it lost beyond what was expected.
 *
 * @w: the device, of which guard_look() was told at @now_ns
 * @now_ns: time of the preemptions, ns
 * @d: the first preemption of a plan
 * @gain: gain of all preemptions of the plan, cycles
 *
 * Nothing is begun before the speed of the device is known.
 */
void guard_begin(struct guard_watch *w, uint64_t now_ns, const struct preempt_decision *d,
		 double gain);

/* Say what a policy may do on device @w at @now_ns. */
void guard_allow(const struct guard *g, const struct guard_watch *w, uint64_t now_ns,
		 struct preempt_guard *allowed);

/* Learn from a trial: relative gains, and @cycles that one of 1 means. */
void guard_learn(struct guard *g, enum preempt_method method, uint64_t now_ns,
		 double expected, double got, double cycles);

/* Check a guard from a file. Return NULL, or a sentence that says what is wrong. */
const char *guard_check(const struct guard *g);

#endif /* MGPU_PREEMPT_GUARD_H */

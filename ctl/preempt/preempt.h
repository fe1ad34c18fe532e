/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption policies: turn a snapshot of a device's slots, of the contexts that run or
 * wait, and of what is known of them, into decisions. Pure: no input or output, no clock
 * but the snapshot's, no memory but the caller's. Documentation/preemption.rst says why.
 *
 * Times that matter to a decision are engine cycles; only waiting is in
 * nanoseconds.
 */
#ifndef MGPU_PREEMPT_H
#define MGPU_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREEMPT_SLOTS_MAX	64	/* slots of a device */
#define PREEMPT_CTX_MAX		4096	/* contexts of a snapshot */

/* For a context of unknown class the mean of both classes is expected. */
enum preempt_class {
	PREEMPT_COMPUTE,
	PREEMPT_MEMORY,
	PREEMPT_UNKNOWN,
};

#define PREEMPT_CLASSES		2	/* known classes */

enum preempt_state {
	PREEMPT_IDLE,		/* has no work */
	PREEMPT_WAITING,	/* has work that never ran */
	PREEMPT_RUNNING,	/* has at least one slot */
	PREEMPT_PREEMPTED,	/* ran, its live state is saved, and it waits */
	PREEMPT_HELD,		/* stopped by an operator; never resumed here */
};

/* Use of the device by a vGPU, relative to the share that it was promised. */
enum preempt_share {
	PREEMPT_EVEN,		/* about its share, or no share was promised */
	PREEMPT_BELOW,
	PREEMPT_OVER,		/* gains no slot by preemption */
};

enum preempt_method {
	PREEMPT_SWITCH,		/* save the live state */
	PREEMPT_DRAIN,		/* start no further tile, wait for those that run */
	PREEMPT_FLUSH,		/* drop what runs, and run it again later */
};

#define PREEMPT_METHODS		3

enum preempt_action {
	PREEMPT_DO_LAUNCH,	/* give slots, or more slots, to a context that was not preempted */
	PREEMPT_DO_RESUME,	/* give slots to a preempted context */
	PREEMPT_DO_PREEMPT,	/* take slots */
};

enum preempt_reason {
	PREEMPT_FREE_SLOT,	/* slots were free, and the context was next */
	PREEMPT_GROW,		/* slots were free, and no context waits */
	PREEMPT_GAIN,		/* the preemption pays */
	PREEMPT_STARVED,	/* the newcomer has waited for the bound */
	PREEMPT_RULE,		/* the policy preempts without weighing */
};

/* ---- norm_ipc of contexts that share a device ---- */

/**
 * struct preempt_norm - norm_ipc for pairs of classes
 * @slow: [a][b]: time that one slot of class b adds to a context of class a, relative to
 *	its time alone: norm_ipc = 1 / (1 + slow)
 * @count: number of observations of each in @slow, at most PREEMPT_NORM_COUNT
 * @prior: number of observations that the value before any counts as, 0 to
 *	PREEMPT_NORM_COUNT; not kept over a restart
 *
 * The times that several slots add are summed up; see preempt_norm_ipc().
 */
struct preempt_norm {
	double slow[PREEMPT_CLASSES][PREEMPT_CLASSES];
	double count[PREEMPT_CLASSES][PREEMPT_CLASSES];
	double prior[PREEMPT_CLASSES][PREEMPT_CLASSES];
};

/*
 * norm_ipc of the first beside one slot of the second before any observation. The sums
 * of both keep the order of combinations: 1.77, 1.60, 1.20.
 */
#define PREEMPT_COLD_CM		0.92	/* compute beside memory */
#define PREEMPT_COLD_MC		0.85	/* memory beside compute */
#define PREEMPT_COLD_CC		0.80	/* compute beside compute */
#define PREEMPT_COLD_MM		0.60	/* memory beside memory */

/* Observations that the cold start counts as, and most that an average goes over. */
#define PREEMPT_NORM_PRIOR	4.0
#define PREEMPT_NORM_COUNT	1000.0

/* Range of an observation; values beyond it are clamped. */
#define PREEMPT_NORM_MIN	0.01
#define PREEMPT_NORM_MAX	1.25

/* Reset to the values before any observation. */
void preempt_norm_cold(struct preempt_norm *t);

/**
 * preempt_norm_prior() - set what is expected of a pair of classes before any observation
 * @t: the table
 * @a: class of the context that is slowed down
 * @b: class of the other one; with an unknown class nothing is done
 * @slow: value of preempt_norm.slow, clamped to its range
 * @weight: number of observations that it counts as, clamped to 0 to PREEMPT_NORM_COUNT
 *
 * A pair that was observed keeps its value, and gets the weight.
 */
void preempt_norm_prior(struct preempt_norm *t, enum preempt_class a, enum preempt_class b,
			double slow, double weight);

/**
 * preempt_norm_ipc() - predict the speed of a context beside others
 * @t: the table
 * @class: class of the context
 * @others: slots that other contexts hold, by class, 3 values
 *
 * Return: instructions per cycle on each slot of the context, relative to those when it
 * is alone on the device: above 0, at most 1.
 */
double preempt_norm_ipc(const struct preempt_norm *t, enum preempt_class class,
			const double others[PREEMPT_CLASSES + 1]);

/**
 * preempt_norm_observe() - learn from a stretch of time in which slots were shared
 * @t: the table; updated
 * @class: class of the context; PREEMPT_UNKNOWN is ignored
 * @others: as above; ignored if no slot is of a known class
 * @norm: measured value of preempt_norm_ipc(); ignored unless finite and above 0
 */
void preempt_norm_observe(struct preempt_norm *t, enum preempt_class class,
			  const double others[PREEMPT_CLASSES + 1], double norm);

/* Check a table from a file. Return NULL, or a sentence that says what is wrong. */
const char *preempt_norm_check(const struct preempt_norm *t);

/* ---- the device now ---- */

/**
 * struct preempt_ctx - a context
 * @id: unique in the snapshot
 * @vgpu: ID of its vGPU
 * @state: PREEMPT_RUNNING if and only if @held is above 0
 * @class: class of its work
 * @share: use of the device by its vGPU
 * @held: slots it holds, including those that are being taken from it
 * @leaving: slots of @held that an earlier decision takes and that are not free yet
 * @coming: slots that an earlier decision promised it and that still leave others
 * @wanted: slots it can use, at least 1 unless it is idle
 * @ipc: instructions per cycle on one slot when it is alone on the device
 * @rest_inst: estimated instructions until its work is complete; 0 or less when the
 *	estimate was too low
 * @done_inst: instructions that a flush of all its slots loses
 * @miss: cache misses per access, 0 to 1
 * @bytes: live registers and shared memory per slot, bytes
 * @tile_cycles: most cycles until a drained slot is free
 * @idempotent: running work may be dropped and run again
 * @was_preempted: its present work was preempted before
 * @arrival_ns: time its work arrived, ns
 * @since_ns: time it entered its present state, waiting or running, ns
 * @keep_until_ns: time until which no slot is taken from it, ns; of the decision that gave
 *	it slots, 0 for none
 */
struct preempt_ctx {
	uint64_t id;
	uint32_t vgpu;
	enum preempt_state state;
	enum preempt_class class;
	enum preempt_share share;
	unsigned int held;
	unsigned int leaving;
	unsigned int coming;
	unsigned int wanted;
	double ipc;
	double rest_inst;
	double done_inst;
	double miss;
	double bytes;
	double tile_cycles;
	bool idempotent;
	bool was_preempted;
	uint64_t arrival_ns;
	uint64_t since_ns;
	uint64_t keep_until_ns;
};

/**
 * struct preempt_guard - what experience says of each method of preemption
 * @closed: preemptions by it do not pay: only a context that has waited for the bound may
 *	get slots by it, if no other method can give it any
 * @extra: what a preemption by it costs beyond its cost and lost work, cycles of a slot
 *
 * All 0: nothing is known.
 */
struct preempt_guard {
	bool closed[PREEMPT_METHODS];
	double extra[PREEMPT_METHODS];
};

/**
 * struct preempt_snapshot - a device
 * @now_ns: present time, ns, on the clock of the contexts' times
 * @slots: number of slots K, 1 to PREEMPT_SLOTS_MAX
 * @free: slots that no context holds
 * @ctx: @n contexts, in any order
 * @n: number of contexts, at most PREEMPT_CTX_MAX
 * @norm: table of norm_ipc
 * @guard: what experience says of preemptions
 */
struct preempt_snapshot {
	uint64_t now_ns;
	unsigned int slots;
	unsigned int free;
	const struct preempt_ctx *ctx;
	size_t n;
	const struct preempt_norm *norm;
	struct preempt_guard guard;
};

/* Check a snapshot. Return NULL, or a sentence that says what is wrong. */
const char *preempt_snapshot_check(const struct preempt_snapshot *s);

/* ---- parameters ---- */

/**
 * struct preempt_cost - cost of a switch: (@a * miss + @b) cycles per byte
 * @a: cycles per byte at a miss rate of 1, in addition to @b
 * @b: cycles per byte at a miss rate of 0
 *
 * The miss rate is that of the contexts that stay, the bytes are the victim's live state
 * on the slots that it loses.
 */
struct preempt_cost {
	double a;
	double b;
};

#define PREEMPT_COST_A		0.09526
#define PREEMPT_COST_B		0.01633
#define PREEMPT_COST_PUBLISHED \
	((struct preempt_cost){ .a = PREEMPT_COST_A, .b = PREEMPT_COST_B })

/**
 * struct preempt_param - parameters of a policy
 * @cost: each coefficient 0 to 1000, not both 0
 * @decay_compute: factor of the speed of a compute-intensive context while another one
 *	is switched; 0.5 to 1
 * @decay_memory: the same for a memory-intensive context; 0.5 to 1
 * @class_threshold: least part of its time that a memory-intensive context waits for
 *	memory; 0.05 to 0.95. For preempt_classify()
 * @starve_ns: wait after which a context goes first, unless its vGPU is over its share,
 *	ns; 1 ms to 1 h
 * @min_gain: least gain of a preemption, as a part of the work done without it; 0 to 1
 */
struct preempt_param {
	struct preempt_cost cost;
	double decay_compute;
	double decay_memory;
	double class_threshold;
	uint64_t starve_ns;
	double min_gain;
};

#define PREEMPT_DECAY_COMPUTE	1.0
#define PREEMPT_DECAY_MEMORY	0.90
#define PREEMPT_DECAY_MIN	0.5
#define PREEMPT_THRESHOLD	0.5
#define PREEMPT_THRESHOLD_MIN	0.05
#define PREEMPT_THRESHOLD_MAX	0.95
#define PREEMPT_STARVE_NS	500000000ULL
#define PREEMPT_STARVE_MIN_NS	1000000ULL
#define PREEMPT_STARVE_MAX_NS	3600000000000ULL
#define PREEMPT_MIN_GAIN	0.02
#define PREEMPT_COST_MAX	1000.0

#define PREEMPT_PARAM_DEFAULT ((struct preempt_param){			\
	.cost = { .a = PREEMPT_COST_A, .b = PREEMPT_COST_B },		\
	.decay_compute = PREEMPT_DECAY_COMPUTE,				\
	.decay_memory = PREEMPT_DECAY_MEMORY,				\
	.class_threshold = PREEMPT_THRESHOLD,				\
	.starve_ns = PREEMPT_STARVE_NS,					\
	.min_gain = PREEMPT_MIN_GAIN,					\
})

/* Check parameters. Return NULL, or a sentence with the first that is out of range. */
const char *preempt_param_check(const struct preempt_param *p);

/* Return the class of work that waits for memory for @bound of its time; NAN: unknown. */
enum preempt_class preempt_classify(const struct preempt_param *p, double bound);

/* Return the cycles of a switch of @bytes in all beside contexts with miss rate @miss. */
double preempt_cost_cycles(const struct preempt_cost *c, double miss, double bytes);

/* ---- decisions ---- */

/**
 * struct preempt_decision - a decision
 * @action: launch, resume or preempt
 * @ctx: the context, its index in the snapshot
 * @slots: slots that the context gets or loses, at least 1
 * @method: DO_PREEMPT: how slots are taken
 * @newcomer: DO_PREEMPT: context that gets the slots, its index in the snapshot
 * @later: DO_LAUNCH, DO_RESUME: wait until the slots of the preceding DO_PREEMPTs with
 *	this newcomer are free
 * @reason: why the decision was made
 * @keep_until_ns: DO_LAUNCH, DO_RESUME: for struct preempt_ctx, 0 unless @reason is
 *	PREEMPT_STARVED
 * @window: W, cycles; this and the following members are 0 unless DO_PREEMPT
 * @cost: P, cycles until the newcomer has the slots
 * @before: sum of norm_ipc over the window without the preemption, cycles
 * @during: sum of norm_ipc over the time of the preemption, cycles
 * @after: sum of norm_ipc over the rest of the window, less lost work and what preemptions
 *	by this method cost beyond that, cycles
 * @gain: @during + @after - @before
 */
struct preempt_decision {
	enum preempt_action action;
	size_t ctx;
	unsigned int slots;
	enum preempt_method method;
	size_t newcomer;
	bool later;
	enum preempt_reason reason;
	uint64_t keep_until_ns;
	double window;
	double cost;
	double before;
	double during;
	double after;
	double gain;
};

/**
 * struct preempt_plan - the decisions about a snapshot, to be carried out in this order
 * @n: number of decisions
 * @decision: the decisions; at most one launch and one preemption per slot
 */
struct preempt_plan {
	size_t n;
	struct preempt_decision decision[3 * PREEMPT_SLOTS_MAX];
};

/**
 * struct preempt_ops - a preemption policy
 * @name: its name in mgpud's settings, on the socket and in the simulator
 * @summary: one line of help
 * @decide: writes a plan for a snapshot that preempt_snapshot_check() accepts. Called
 *	when work arrives or completes, when slots become free, and when a starvation
 *	bound passes; callers use preempt_decide(), which checks
 */
struct preempt_ops {
	const char *name;
	const char *summary;
	void (*decide)(const struct preempt_snapshot *s, const struct preempt_param *p,
		       struct preempt_plan *plan);
};

extern const struct preempt_ops preempt_none;
extern const struct preempt_ops preempt_always;
extern const struct preempt_ops preempt_drain;
extern const struct preempt_ops preempt_flush;
extern const struct preempt_ops preempt_mgpu;

/* All policies; the last entry is NULL. */
extern const struct preempt_ops *const preempt_all[];

/* Return the policy of this name, NULL if there is none. */
const struct preempt_ops *preempt_find(const char *name);

/**
 * preempt_decide() - make a plan
 * @ops: the policy
 * @s: the device
 * @p: parameters
 * @plan: result; empty when nothing is to be done, and on error
 *
 * Allocates no memory. Takes time in proportion to the number of contexts. The plan does
 * not depend on the order of contexts with different ids.
 *
 * Return: 0, or -EINVAL for a snapshot or parameters that a check refuses.
 */
int preempt_decide(const struct preempt_ops *ops, const struct preempt_snapshot *s,
		   const struct preempt_param *p, struct preempt_plan *plan);

/**
 * preempt_wake_ns() - find when time alone may change the plan
 * @s: a snapshot
 * @p: parameters
 *
 * Return: the first time after now, ns on the snapshot's clock, at which a waiting context
 * will have waited for the bound, or at which a context may lose slots that it got
 * because of the bound; UINT64_MAX if there is none.
 */
uint64_t preempt_wake_ns(const struct preempt_snapshot *s,
			 const struct preempt_param *p);

/* Return names for output and JSON; "?" for an invalid value, never NULL. */
const char *preempt_class_name(enum preempt_class c);
const char *preempt_state_name(enum preempt_state s);
const char *preempt_method_name(enum preempt_method m);
const char *preempt_action_name(enum preempt_action a);
const char *preempt_reason_name(enum preempt_reason r);

#endif /* MGPU_PREEMPT_H */

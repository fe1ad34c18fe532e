/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The preemption policy: who is on a device's slots, who waits and what is known
 * of them go in, decisions come out. Pure: no input or output, no clock but the
 * snapshot's, no memory but the caller's. Documentation/preemption.rst says why.
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

/* Of those whose class is not known yet the mean of both is expected. */
enum preempt_class {
	PREEMPT_COMPUTE,
	PREEMPT_MEMORY,
	PREEMPT_UNKNOWN,
};

#define PREEMPT_CLASSES		2	/* that are known */

enum preempt_state {
	PREEMPT_IDLE,		/* has no work */
	PREEMPT_WAITING,	/* has work that never ran */
	PREEMPT_RUNNING,	/* has a slot at least */
	PREEMPT_PREEMPTED,	/* ran, its live state is saved, and it waits */
	PREEMPT_HELD,		/* stopped by an operator; never resumed here */
};

/* How a vGPU stands against the share of the device that it was promised. */
enum preempt_share {
	PREEMPT_EVEN,		/* about at it, or nothing was promised */
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
	PREEMPT_DO_LAUNCH,	/* give slots to one that never ran, or more of them */
	PREEMPT_DO_RESUME,	/* give slots to one that was preempted */
	PREEMPT_DO_PREEMPT,	/* take slots */
};

enum preempt_reason {
	PREEMPT_FREE_SLOT,	/* slots were free, and its combination is the best */
	PREEMPT_GROW,		/* slots were free, and nobody waits */
	PREEMPT_GAIN,		/* it pays */
	PREEMPT_STARVED,	/* the newcomer has waited for too long */
	PREEMPT_RULE,		/* the policy preempts without asking */
};

/* ---- what is known of contexts that share a device ---- */

/**
 * struct preempt_norm - norm_ipc for pairs of classes
 * @slow: [a][b]: by how much one slot of class b slows a context of class a down,
 *	as the part of its time alone that is added: norm_ipc = 1 / (1 + slow)
 * @count: observations that @slow[a][b] is made of, at most PREEMPT_NORM_COUNT
 *
 * With several slots of others what they add is summed up; see preempt_norm_ipc().
 */
struct preempt_norm {
	double slow[PREEMPT_CLASSES][PREEMPT_CLASSES];
	double count[PREEMPT_CLASSES][PREEMPT_CLASSES];
};

/*
 * norm_ipc of the first beside one slot of the second before anything was
 * observed; its sums keep the order of combinations: 1.77, 1.60, 1.20.
 */
#define PREEMPT_COLD_CM		0.92	/* compute beside memory */
#define PREEMPT_COLD_MC		0.85	/* memory beside compute */
#define PREEMPT_COLD_CC		0.80	/* compute beside compute */
#define PREEMPT_COLD_MM		0.60	/* memory beside memory */

/* Observations that the cold start counts for, and that the average goes over. */
#define PREEMPT_NORM_PRIOR	4.0
#define PREEMPT_NORM_COUNT	1000.0

/* What an observation may say; beyond it is cut off. */
#define PREEMPT_NORM_MIN	0.01
#define PREEMPT_NORM_MAX	1.25

/* Forget all observations. */
void preempt_norm_cold(struct preempt_norm *t);

/**
 * preempt_norm_ipc() - what a context may expect of its slots
 * @t: what was observed
 * @class: of the context
 * @others: slots that contexts of each class hold beside it, 3 values
 *
 * Returns the instructions per cycle on each slot that it holds, as a part of
 * what it has there when it is alone on the device: above 0, at most 1.
 */
double preempt_norm_ipc(const struct preempt_norm *t, enum preempt_class class,
			const double others[PREEMPT_CLASSES + 1]);

/**
 * preempt_norm_observe() - learn from a stretch of time in which slots were shared
 * @t: what is known; adapted
 * @class: of the context; PREEMPT_UNKNOWN teaches nothing
 * @others: as above; without any known class in it nothing is learned
 * @norm: measured, as preempt_norm_ipc() returns it; what is not above 0 and
 *	finite is ignored
 */
void preempt_norm_observe(struct preempt_norm *t, enum preempt_class class,
			  const double others[PREEMPT_CLASSES + 1], double norm);

/* NULL, or a sentence that says why it is none (as one from a file may be). */
const char *preempt_norm_check(const struct preempt_norm *t);

/* ---- the device now ---- */

/**
 * struct preempt_ctx - a context
 * @id: unique in the snapshot
 * @vgpu: whose it is
 * @state: PREEMPT_RUNNING means that @held is above 0, any other that it is 0
 * @class: of its work
 * @share: how its vGPU stands
 * @held: slots that it has, with those that are being taken from it
 * @leaving: of these, slots that an earlier decision takes, and which are not
 *	free yet
 * @coming: slots that an earlier decision promised it, which still leave others
 * @wanted: slots that it has use for, at least 1 unless it is idle
 * @ipc: instructions per cycle on one slot when it is alone on the device
 * @rest_inst: estimated instructions until its work is done; 0 and below when
 *	the estimate ran out
 * @done_inst: instructions that a flush of all its slots would have to run again
 * @miss: cache misses per access, 0 to 1
 * @bytes: registers and shared memory that are live per slot, bytes
 * @tile_cycles: until a slot that is drained is free, at most; cycles
 * @idempotent: what runs may be dropped and run again
 * @was_preempted: its present work was preempted before
 * @arrival_ns: when its work came
 * @since_ns: since when it has been waiting or running in its present state
 * @keep_until_ns: until then nothing is taken from it; from the decision that gave
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
 * struct preempt_snapshot - a device
 * @now_ns: the time, on the clock of the contexts' times
 * @slots: K, 1 to PREEMPT_SLOTS_MAX
 * @free: slots that nobody holds and that may be given away now
 * @ctx: @n contexts, in any order
 * @n: at most PREEMPT_CTX_MAX
 * @norm: what was learned of sharing
 */
struct preempt_snapshot {
	uint64_t now_ns;
	unsigned int slots;
	unsigned int free;
	const struct preempt_ctx *ctx;
	size_t n;
	const struct preempt_norm *norm;
};

/* NULL, or a sentence that says what is wrong with it. */
const char *preempt_snapshot_check(const struct preempt_snapshot *s);

/* ---- parameters ---- */

/**
 * struct preempt_cost - what a switch costs: (@a * miss + @b) cycles per byte
 * @a: cycles per byte at a miss rate of 1, in addition to @b
 * @b: cycles per byte at a miss rate of 0
 *
 * The miss rate is that of the contexts that stay, the bytes are those that the
 * one that leaves has live on the slots that it leaves.
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
 * @decay_compute: what a compute-intensive context that stays keeps of its speed
 *	while another is switched; 0.5 to 1
 * @decay_memory: the same of a memory-intensive one; 0.5 to 1
 * @class_threshold: share of its time for which a context waits for memory from
 *	which on it is memory-intensive; 0.05 to 0.95. For preempt_classify()
 * @starve_ns: nobody whose vGPU is not over its share waits for longer without
 *	going first; 1 ms to 1 h
 * @min_gain: of `before': a smaller gain is none; 0 to 1
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

/* NULL, or a sentence that says which is out of its range and what that is. */
const char *preempt_param_check(const struct preempt_param *p);

/* The class of work that waits for memory for @bound of its time; NAN: unknown. */
enum preempt_class preempt_classify(const struct preempt_param *p, double bound);

/* Cycles that a switch takes: @bytes in all, beside contexts that miss so often. */
double preempt_cost_cycles(const struct preempt_cost *c, double miss, double bytes);

/* ---- decisions ---- */

/**
 * struct preempt_decision - something to be done
 * @action: what
 * @ctx: to which context, its place in the snapshot
 * @slots: how many slots it gets or loses, at least 1
 * @method: DO_PREEMPT: how
 * @newcomer: DO_PREEMPT: for which context, its place in the snapshot
 * @later: DO_LAUNCH, DO_RESUME: as soon as the slots of the DO_PREEMPTs before it
 *	with this newcomer are free
 * @reason: why
 * @keep_until_ns: DO_LAUNCH, DO_RESUME: for struct preempt_ctx, 0 unless @reason is
 *	PREEMPT_STARVED
 * @window: W, cycles, for this and what follows: DO_PREEMPT only, else 0
 * @cost: P, cycles, until the newcomer has the slots
 * @before: sum of norm_ipc over the window, cycles, if nothing is done
 * @during: the same over the time of the preemption
 * @after: the same over the rest of the window, less the work that is lost
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
 * struct preempt_plan - all decisions for a moment, to be done in this order
 * @n: how many
 * @decision: never more than one launch and one preemption per slot
 */
struct preempt_plan {
	size_t n;
	struct preempt_decision decision[3 * PREEMPT_SLOTS_MAX];
};

/**
 * struct preempt_ops - a policy
 * @name: what the socket and --policy call it
 * @summary: one line for people
 * @decide: writes a plan for a snapshot that preempt_snapshot_check() has nothing
 *	against. Called whenever work comes, ends, or slots become free, and once
 *	a starvation bound passes; use preempt_decide(), which checks
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

/* All policies, NULL at the end. */
extern const struct preempt_ops *const preempt_all[];

const struct preempt_ops *preempt_find(const char *name);	/* NULL: no such */

/**
 * preempt_decide() - what to do now
 * @ops: by which policy
 * @s: the device
 * @p: parameters
 * @plan: the answer; empty when nothing is to be done, and on error
 *
 * Needs no memory and takes time in proportion to the number of contexts; the same
 * for any order of the contexts, but for those that have one id.
 * Returns 0, or -EINVAL for a snapshot or parameters that a check refuses.
 */
int preempt_decide(const struct preempt_ops *ops, const struct preempt_snapshot *s,
		   const struct preempt_param *p, struct preempt_plan *plan);

/**
 * preempt_wake_ns() - when time alone may change what is decided
 * @s: a snapshot
 * @p: parameters
 *
 * Returns the first time after now, on the snapshot's clock, when one that waits will
 * have waited for the bound, or slots may be taken again that were given to one that
 * had; UINT64_MAX when there is none.
 */
uint64_t preempt_wake_ns(const struct preempt_snapshot *s,
			 const struct preempt_param *p);

/* Names for people and JSON: never NULL, "?" for what is none. */
const char *preempt_class_name(enum preempt_class c);
const char *preempt_state_name(enum preempt_state s);
const char *preempt_method_name(enum preempt_method m);
const char *preempt_action_name(enum preempt_action a);
const char *preempt_reason_name(enum preempt_reason r);

#endif /* MGPU_PREEMPT_H */

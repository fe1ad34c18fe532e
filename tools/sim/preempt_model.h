/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The modelled device, and what gives its slots to jobs: mgpud and the module, or the
 * clairvoyant. Private to mgpu-sim-preempt.
 */
#ifndef MGPU_PREEMPT_MODEL_H
#define MGPU_PREEMPT_MODEL_H

#include "contexts/ctx_view.h"
#include "preempt_sim.h"

#define PSIM_MOVES_MAX	PREEMPT_SLOTS_MAX

/**
 * struct psim_active - a job that has come and is not done; a context of its own
 * @job: its index in the stream
 * @state: PREEMPT_WAITING, PREEMPT_RUNNING or PREEMPT_PREEMPTED
 * @held: slots, with those that are being taken from it
 * @leaving: slots of @held that are being taken from it
 * @coming: slots that it will get from others; clairvoyant only
 * @idle: slots of @held that are being switched and do no work
 * @done: instructions
 * @rate: norm_ipc of each slot
 * @since: when it began to wait or run, cycles
 * @keep_until_ns: until when it keeps its slots; clairvoyant only
 * @preempted: it lost all its slots at least once
 * @lost: slots that were taken from it so far
 * @allowed: slots that mgpud lets it have
 * @queued: turn in the module's queue
 * @first: turn among those that mgpud put ahead of their vGPU's contexts; 0 for none
 * @parked: turn among those that mgpud keeps off; 0 for none
 */
struct psim_active {
	size_t job;
	enum preempt_state state;
	unsigned int held, leaving, coming;
	unsigned int idle;
	double done;
	double rate;
	double since;
	uint64_t keep_until_ns;
	bool preempted;
	uint64_t lost;
	unsigned int allowed;
	uint64_t queued, first, parked;
};

/**
 * struct psim_move - slots that are being taken
 * @victim: job that loses them
 * @newcomer: job that gets them; PSIM_NO_JOB: they become free
 * @slots: how many
 * @method: how
 * @end: when they are free, cycles
 */
struct psim_move {
	size_t victim, newcomer;
	unsigned int slots;
	enum preempt_method method;
	double end;
};

struct psim_mgpud;

/**
 * struct psim_device - a device with slots
 * @s: the stream
 * @setup: what runs
 * @sharing: how jobs slow each other down
 * @mgpud: told of each stretch of time; unused in a look ahead
 * @norm: table of norm_ipc, of mgpud
 * @result: figures of the run; NULL in a look ahead
 * @turnaround: of each job that is done, cycles; unused in a look ahead
 * @now: cycles since the stream began
 * @next: index of the next job to come
 * @slots: number of slots
 * @free: slots that no job holds
 * @move: slots that are being taken; @nr_moves entries
 * @nr_moves: number of entries of @move
 * @sum: integral of the sum of norm_ipc, less the work that was lost, cycles
 * @turn: last turn given out in one of the module's lists
 * @n: number of entries of @a
 * @a: jobs that have come and are not done, by arrival; last, as only @n are copied
 */
struct psim_device {
	const struct psim_stream *s;
	const struct psim_setup *setup;
	struct psim_sharing sharing;
	struct psim_mgpud *mgpud;
	const struct preempt_norm *norm;
	struct psim_result *result;
	double *turnaround;
	double now;
	size_t next;
	unsigned int slots;
	unsigned int free;
	struct psim_move move[PSIM_MOVES_MAX];
	size_t nr_moves;
	double sum;
	uint64_t turn;
	size_t n;
	struct psim_active a[PSIM_JOBS_MAX];
};

/* ---- preempt_model.c: the device ---- */

void psim_init(struct psim_device *m, const struct psim_stream *s,
	       const struct psim_setup *setup);
uint64_t psim_ns(double cycles);
const struct psim_job *psim_job_of(const struct psim_device *m, const struct psim_active *a);

/* Return the job's entry, NULL if it is not active. */
struct psim_active *psim_find(struct psim_device *m, size_t job);

/* Set the rate of each job by the others that run. Return the sum of norm_ipc. */
double psim_rates(struct psim_device *m);

/* Return instructions per cycle of a job on all its slots, after psim_rates(). */
double psim_speed(const struct psim_device *m, const struct psim_active *a);

/**
 * psim_true_cost() - what a preemption takes
 * @m: the device
 * @a: job that loses slots
 * @slots: how many
 * @method: how
 * @lost: result: instructions that are lost
 *
 * Return: cycles until the slots are free.
 */
double psim_true_cost(const struct psim_device *m, const struct psim_active *a,
		      unsigned int slots, enum preempt_method method, double *lost);

/* Begin to take @slots from @a, for @to or, if NULL, for the free ones. */
void psim_take(struct psim_device *m, struct psim_active *a, struct psim_active *to,
	       unsigned int slots, enum preempt_method method);

/* Give free slots to a job. */
void psim_launch(struct psim_device *m, struct psim_active *a, unsigned int slots);

/**
 * psim_step() - let time pass until the next event
 * @m: the device
 * @wake: stop then, cycles; INFINITY for never
 * @limit: stop then and take it for the end, cycles; INFINITY for never
 *
 * Return: whether there was an event before @limit, or @wake.
 */
bool psim_step(struct psim_device *m, double wake, double limit);

/* ---- preempt_module.c: slots as mgpu.ko gives them ---- */

/* Carry out an order of mgpud for a job. */
void psim_module_order(struct psim_device *m, struct psim_active *a,
		       const struct ctx_order *o);

/* Give free slots to the jobs in the queue, then to those that are kept off. */
void psim_module_give(struct psim_device *m);

/* ---- preempt_mgpud.c: decisions as mgpud makes them ---- */

/* NULL: out of memory. @setup must stay. */
struct psim_mgpud *psim_mgpud_new(const struct psim_setup *setup);
void psim_mgpud_free(struct psim_mgpud *d);

/* Return all that is learned. */
const struct analyse *psim_mgpud_learned(const struct psim_mgpud *d);

/* Return the table of norm_ipc that is learned. */
const struct preempt_norm *psim_mgpud_norm(const struct psim_mgpud *d);

/* Return what the guard knows. */
const struct guard *psim_mgpud_guard(const struct psim_mgpud *d);

/* Learn from a stretch of time of @cycles in which no speed changed. */
void psim_mgpud_ran(struct psim_mgpud *d, const struct psim_device *m, double cycles);

/* Look at all jobs, and learn from those that are done. Returns 0 or -errno. */
int psim_mgpud_look(struct psim_mgpud *d, const struct psim_device *m);

/**
 * psim_mgpud_decide() - look, decide by the policy of the setup, and give orders
 * @d: mgpud
 * @m: the device
 * @wake: result: when to look again if there is no event before, cycles; INFINITY for
 *	never
 *
 * Return: 0 or -errno.
 */
int psim_mgpud_decide(struct psim_mgpud *d, struct psim_device *m, double *wake);

/* ---- preempt_clairvoyant.c ---- */

struct psim_clairvoyant;

/* NULL: out of memory. */
struct psim_clairvoyant *psim_clairvoyant_new(const struct psim_setup *setup);
void psim_clairvoyant_free(struct psim_clairvoyant *c);
void psim_clairvoyant_decide(struct psim_clairvoyant *c, struct psim_device *m);

#endif /* MGPU_PREEMPT_MODEL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulate vGPUs, their jobs and a device's engines, in simulated time.  The simulation
 * drives kmod/sched/runq.c as kmod/sched/sched.c and a back end do, and computes the
 * expected results by simpler means.
 *
 * Each vGPU has one or two lanes, as it has queues: of a lane one job is in
 * flight, and the next one comes some time after its end.  A job runs tile by
 * tile; between two of them the run queue is asked whether it should yield.
 */
#ifndef TESTS_UNIT_TEST_RUNQ_H
#define TESTS_UNIT_TEST_RUNQ_H

#include <stdlib.h>

#include "sched/runq.h"
#include "sched/sched_policy.h"
#include "tap.h"
#include "test_bucket.h"

#define NSEC_US		1000ULL
#define NSEC_MS		1000000ULL
#define NSEC_S		1000000000ULL

#define NEVER		U64_MAX
#define MAX_VMS		1024
#define MAX_ENGINES	8
#define LANES		2

struct job {
	struct vm *vm;
	enum { JOB_NONE, JOB_WAITS, JOB_RUNS } state;
	u64 seq;
	u64 left;		/* remaining engine time */
	u64 ran;		/* engine time used and not charged yet */
	u64 next;		/* when the lane's next job comes */
};

struct vm {
	/* its load */
	u32 weight;
	u32 lanes;		/* 0 for nothing */
	u64 job_min, job_max;	/* length of its jobs */
	u64 gap_min, gap_max;	/* from the end of one to the next */

	/* state of the simulator */
	struct mgpu_sched_entity e;
	bool attached;
	struct job job[LANES];
	struct job *queue[LANES];	/* its waiting jobs, oldest first */
	u32 waiting;
	u32 running;
	struct model limit;
	u64 submitted, started, done, cancelled;

	/* state of the tests */
	u64 used;		/* engine time charged */
	u64 seen;		/* used when a test looked last */
	double low;		/* least that it was ahead of its rate */
	double ahead;		/* most that it was ahead of that */
};

struct sim {
	struct mgpu_runq rq;
	struct vm vm[MAX_VMS];
	u32 vms;
	u32 engines;
	struct job *engine[MAX_ENGINES];
	u64 tile_end[MAX_ENGINES];
	u64 tile;		/* 0 for jobs that cannot be stopped */
	u64 timer_late;		/* largest delay of the timer for due entities */
	u64 armed;		/* time that the timer was set to */
	u64 timer;		/* time at which it fires */
	u64 now;
	u64 seq;
	u64 idle;		/* unused engine time */
	u64 yields;
	bool broken;		/* enough has been reported */
	void (*charged)(struct sim *s, struct vm *v, u64 ns);
	void (*passed)(struct sim *s);	/* time, up to now */
};

static inline u64 between(u64 min, u64 max)
{
	u64 r = (u64)rand() << 31 ^ (u64)rand();

	return min + r % (max - min + 1);
}

#define SIM_CHECK(s, cond)						\
	do {								\
		if (!TAP_CHECK(cond)) {					\
			tap_diag("at %llu ns, policy %s",		\
				 (unsigned long long)(s)->now,		\
				 (s)->rq.policy->name);			\
			(s)->broken = true;				\
		}							\
	} while (0)

/* ---- invariants ---- */

static inline bool conserves(const struct sim *s)
{
	return !s->rq.policy->wait;
}

/*
 * Return whether the model lets it use an engine.  The run queue waits a few
 * nanoseconds too long at times, never too short.
 */
static inline bool may_run(const struct vm *v, u64 now)
{
	return v->waiting && model_allows(&v->limit, now);
}

static inline bool must_run(const struct vm *v, u64 now)
{
	return may_run(v, now) && may_run(v, now - 5);
}

static inline void check_pick(struct sim *s, struct mgpu_sched_entity *e)
{
	struct vm *v, *first = NULL;
	u32 i;

	if (!e) {
		for (i = 0; i < s->vms; i++) {
			v = &s->vm[i];
			if (!v->waiting)
				continue;
			/* A delayed entity has a due time. */
			SIM_CHECK(s, mgpu_runq_due(&s->rq) > s->now);
			SIM_CHECK(s, mgpu_runq_due(&s->rq) <=
				  s->now + MGPU_BUCKET_MAX_WAIT_NS);
			if (conserves(s))
				SIM_CHECK(s, !must_run(v, s->now));
			if (s->broken)
				return;
		}
		return;
	}

	v = rb_entry(e, struct vm, e);
	SIM_CHECK(s, v >= s->vm && v < s->vm + s->vms && v->attached);
	SIM_CHECK(s, v->waiting > 0);
	SIM_CHECK(s, may_run(v, s->now));
	SIM_CHECK(s, e->state == MGPU_ENTITY_IDLE && !e->queued);
	if (s->broken || s->rq.policy != &mgpu_policy_best_effort)
		return;
	for (i = 0; i < s->vms; i++) {
		if (must_run(&s->vm[i], s->now) &&
		    (!first || s->vm[i].queue[0]->seq < first->queue[0]->seq))
			first = &s->vm[i];
	}
	if (first)
		SIM_CHECK(s, v->queue[0]->seq <= first->queue[0]->seq);
}

/* Compare the state of each entity in the run queue with the state of its jobs. */
static inline void check_places(struct sim *s)
{
	u64 weights = 0, due = NEVER;
	u32 i, ready = 0, attached = 0, listed = 0;
	struct mgpu_sched_entity *e;
	struct vm *v;

	for (i = 0; i < s->vms; i++) {
		v = &s->vm[i];
		if (!v->attached)
			continue;
		attached++;
		weights += v->e.weight;
		ready += v->e.state == MGPU_ENTITY_READY;
		SIM_CHECK(s, (v->e.state != MGPU_ENTITY_IDLE) == !!v->waiting);
		SIM_CHECK(s, v->e.queued == (v->e.state == MGPU_ENTITY_READY));
		SIM_CHECK(s, !v->e.delayed_ns ==
			  (v->e.state != MGPU_ENTITY_DELAYED));
		if (v->e.state == MGPU_ENTITY_DELAYED && v->e.due_ns < due)
			due = v->e.due_ns;
		if (s->broken)
			return;
	}
	list_for_each_entry(e, &s->rq.entities, list)
		listed++;
	SIM_CHECK(s, listed == attached);
	SIM_CHECK(s, s->rq.weights == weights);
	SIM_CHECK(s, s->rq.nr_ready == ready);
	SIM_CHECK(s, mgpu_runq_due(&s->rq) == due);
}

/* ---- events ---- */

static inline void sim_init(struct sim *s, u32 vms, u32 engines,
			    const struct mgpu_policy_ops *policy)
{
	memset(s, 0, sizeof(*s));
	s->vms = vms;
	s->engines = engines;
	s->now = 1000 * NSEC_S;
	s->armed = NEVER;
	s->timer = NEVER;
	mgpu_runq_init(&s->rq, 1, engines, policy);
}

static inline void sim_attach(struct sim *s, u32 i)
{
	struct vm *v = &s->vm[i];
	u32 lane;

	memset(&v->e, 0, sizeof(v->e));
	memset(&v->limit, 0, sizeof(v->limit));
	v->running = 0;
	v->e.id = i + 1;
	v->e.weight = v->weight;
	for (lane = 0; lane < LANES; lane++) {
		v->job[lane] = (struct job) { .vm = v, .next = NEVER };
		if (lane < v->lanes)
			v->job[lane].next = s->now;
	}
	v->attached = true;
	mgpu_runq_attach(&s->rq, &v->e, s->now);
}

/* Add a vGPU with @lanes lanes, which always has jobs, of @min to @max ns. */
static inline struct vm *sim_vm(struct sim *s, u32 i, u32 weight, u32 lanes,
				u64 min, u64 max)
{
	struct vm *v = &s->vm[i];

	v->weight = weight;
	v->lanes = lanes;
	v->job_min = min;
	v->job_max = max;
	sim_attach(s, i);
	return v;
}

static inline void sim_head(struct sim *s, struct vm *v)
{
	v->e.head_ns = s->now;
	v->e.head_seq = v->queue[0]->seq;
}

static inline void sim_wake(struct sim *s, struct vm *v)
{
	if (!v->waiting)
		return;
	if (v->e.state == MGPU_ENTITY_IDLE)
		sim_head(s, v);
	mgpu_runq_wake(&s->rq, &v->e, s->now);
}

/* Make another of its jobs the oldest. */
static inline void sim_move(struct sim *s, struct vm *v)
{
	if (v->e.state == MGPU_ENTITY_IDLE) {
		sim_wake(s, v);
		return;
	}
	sim_head(s, v);
	mgpu_runq_move(&s->rq, &v->e, s->now);
}

static inline void sim_submit(struct sim *s, struct job *job)
{
	struct vm *v = job->vm;

	job->state = JOB_WAITS;
	job->seq = ++s->seq;
	job->left = between(v->job_min, v->job_max);
	job->ran = 0;
	job->next = NEVER;
	v->queue[v->waiting++] = job;
	v->submitted++;
	sim_wake(s, v);
}

static inline void sim_arrivals(struct sim *s)
{
	struct vm *v;
	u32 i, lane;

	for (i = 0; i < s->vms; i++) {
		v = &s->vm[i];
		for (lane = 0; v->attached && lane < v->lanes; lane++) {
			if (v->job[lane].state == JOB_NONE &&
			    v->job[lane].next <= s->now)
				sim_submit(s, &v->job[lane]);
		}
	}
}

static inline void sim_pick(struct sim *s, u32 i)
{
	struct mgpu_sched_entity *e = mgpu_runq_pick(&s->rq, s->now);
	struct job *job;
	struct vm *v;

	check_pick(s, e);
	if (!e || s->broken)
		return;
	v = rb_entry(e, struct vm, e);
	job = v->queue[0];
	v->queue[0] = v->queue[1];
	v->waiting--;
	SIM_CHECK(s, job->state == JOB_WAITS);
	job->state = JOB_RUNS;
	v->started += !job->ran;
	if (!v->running++)
		model_begin(&v->limit, s->now);
	job->ran = 0;
	s->engine[i] = job;
	s->tile_end[i] = s->now;
	sim_wake(s, v);
}

static inline void sim_charge_ns(struct sim *s, struct vm *v, u64 ns)
{
	if (v->running)
		v->running--;
	model_charge(&v->limit, ns, s->now);
	mgpu_runq_charge(&s->rq, &v->e, ns, s->now);
}

static inline void sim_charge(struct sim *s, struct job *job)
{
	struct vm *v = job->vm;

	v->used += job->ran;
	sim_charge_ns(s, v, job->ran);
	if (s->charged)
		s->charged(s, v, job->ran);
}

/* Return the engine time that it has had up to now. */
static inline u64 sim_used(const struct sim *s, const struct vm *v)
{
	u64 used = v->used;
	u32 i;

	for (i = 0; i < s->engines; i++) {
		if (s->engine[i] && s->engine[i]->vm == v)
			used += s->engine[i]->ran - (s->tile_end[i] - s->now);
	}
	return used;
}

/* Put a job back before all that wait. */
static inline void sim_yield(struct sim *s, u32 i)
{
	struct job *job = s->engine[i];
	struct vm *v = job->vm;

	s->yields++;
	s->engine[i] = NULL;
	sim_charge(s, job);
	v->queue[1] = v->queue[0];
	v->queue[0] = job;
	v->waiting++;
	job->state = JOB_WAITS;
	sim_move(s, v);
}

static inline void sim_done(struct sim *s, u32 i)
{
	struct job *job = s->engine[i];
	struct vm *v = job->vm;

	s->engine[i] = NULL;
	sim_charge(s, job);
	job->state = JOB_NONE;
	job->ran = 0;
	v->done++;
	job->next = s->now + between(v->gap_min, v->gap_max);
}

/* Let an engine's tile end, or let the engine look for work. */
static inline void sim_engine(struct sim *s, u32 i)
{
	struct job *job = s->engine[i];
	u64 tile;

	if (job && s->tile_end[i] <= s->now) {
		if (!job->left)
			sim_done(s, i);
		else if (s->tile && mgpu_runq_may_yield(&s->rq, &job->vm->e) &&
			 mgpu_runq_should_yield(&s->rq, &job->vm->e, job->ran,
						s->now))
			sim_yield(s, i);
		/* A quick guest has refilled its ring by now. */
		sim_arrivals(s);
	}
	if (!s->engine[i])
		sim_pick(s, i);
	job = s->engine[i];
	if (!job || s->tile_end[i] > s->now)
		return;
	tile = s->tile && s->tile < job->left ? s->tile : job->left;
	job->ran += tile;
	job->left -= tile;
	s->tile_end[i] = s->now + tile;
}

/* Return the time of the next event, at most @until. */
static inline u64 sim_next(struct sim *s, u64 until)
{
	u64 next = until, due;
	u32 i, lane;
	struct vm *v;

	for (i = 0; i < s->engines; i++) {
		if (s->engine[i] && s->tile_end[i] < next)
			next = s->tile_end[i];
	}
	for (i = 0; i < s->vms; i++) {
		v = &s->vm[i];
		for (lane = 0; v->attached && lane < v->lanes; lane++) {
			if (v->job[lane].state == JOB_NONE &&
			    v->job[lane].next < next)
				next = v->job[lane].next;
		}
	}
	due = mgpu_runq_due(&s->rq);
	if (due < s->armed) {
		s->armed = due;
		s->timer = due + between(0, s->timer_late);
	}
	if (s->timer < next)
		next = s->timer;
	return next > s->now ? next : s->now;
}

static inline void sim_run(struct sim *s, u64 until)
{
	u32 i, still = 0;
	u64 next;

	while (!s->broken) {
		/* Time must pass. */
		SIM_CHECK(s, still++ < 100000);
		sim_arrivals(s);
		if (s->timer <= s->now) {
			s->armed = NEVER;
			s->timer = NEVER;
			mgpu_runq_advance(&s->rq, s->now);
		}
		for (i = 0; i < s->engines; i++)
			sim_engine(s, i);
		if (s->now >= until)
			return;
		next = sim_next(s, until);
		for (i = 0; i < s->engines; i++)
			s->idle += s->engine[i] ? 0 : next - s->now;
		if (next > s->now)
			still = 0;
		s->now = next;
		if (s->passed)
			s->passed(s);
	}
}

/* Reset a vGPU: waiting jobs are dropped, running ones complete. */
static inline void sim_cancel(struct sim *s, struct vm *v)
{
	u32 i;

	mgpu_runq_sleep(&s->rq, &v->e);
	for (i = 0; i < v->waiting; i++) {
		v->queue[i]->state = JOB_NONE;
		v->queue[i]->next = s->now + between(v->gap_min, v->gap_max);
		/* Count it with the finished jobs. */
		v->cancelled++;
	}
	v->waiting = 0;
}

/* Drop and complete the jobs of a vGPU and detach it, as sched.c does. */
static inline void sim_detach(struct sim *s, struct vm *v)
{
	u32 i;

	sim_cancel(s, v);
	for (i = 0; i < s->engines; i++) {
		if (s->engine[i] && s->engine[i]->vm == v)
			sim_done(s, i);
	}
	mgpu_runq_detach(&s->rq, &v->e);
	v->attached = false;
}

static inline void sim_limit(struct sim *s, struct vm *v, u32 ppm, u32 period,
			     u32 burst)
{
	u64 engines = (u64)ppm * s->engines;

	mgpu_runq_set_limit(&s->rq, &v->e, ppm, period, burst, s->now);
	model_set(&v->limit, engines * 1000,
		  engines * period / 1000 + burst * 1000ULL, s->now);
}

#endif /* TESTS_UNIT_TEST_RUNQ_H */

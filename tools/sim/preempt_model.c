// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device with slots and the jobs on it, driven by events. Between two events
 * nothing changes but what is done.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preempt_sim.h"

#define LOOK		20000.0	/* cycles: shorter stretches are no measurement */
#define MOVES_MAX	PREEMPT_SLOTS_MAX

struct active {
	size_t job;
	enum preempt_state state;
	unsigned int held, leaving, coming;
	unsigned int idle;		/* of those held: being switched */
	double done;			/* instructions */
	double rate;			/* of each slot, of what it is alone */
	double since;			/* cycles */
	uint64_t keep_until_ns;
	bool preempted, looked;
};

/* Slots on their way from one job to another. */
struct move {
	size_t victim, newcomer;	/* jobs */
	unsigned int slots;
	enum preempt_method method;
	double end;
};

#define NO_JOB	PSIM_NO_JOB

struct sim {
	const struct psim_stream *s;
	const struct psim_setup *setup;
	struct psim_sharing sharing;
	struct psim_result *result;	/* NULL in a look ahead */
	double *turnaround;
	bool oracle;			/* the policy is told the truth */
	double now;
	size_t next;			/* job to come */
	unsigned int slots;
	unsigned int free;
	struct move move[MOVES_MAX];
	size_t nr_moves;
	double norm;			/* integral of the sum of norm_ipc, less what is lost */
	struct analyse analyse;
	size_t n;
	struct active a[PSIM_JOBS_MAX];	/* last: only @n are copied */
};

double psim_norm(const struct psim_sharing *t, double bound, double memory,
		 double compute, double others)
{
	return 1 / (1 + t->memory * bound * memory +
		    t->compute * (1 - bound) * compute + t->any * others);
}

static uint64_t ns_of(double cycles)
{
	return (uint64_t)(cycles / PSIM_HZ * 1e9);
}

static const struct psim_job *job_of(const struct sim *m, const struct active *a)
{
	return &m->s->job[a->job];
}

static struct active *find(struct sim *m, size_t job)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->a[i].job == job)
			return &m->a[i];
	return NULL;
}

/* ---- what is done in a stretch of time ---- */

/* How fast everyone is; returns the sum of norm_ipc. */
static double set_rates(struct sim *m)
{
	double memory = 0, compute = 0, others = 0, sum = 0;
	bool switching = false;

	for (size_t i = 0; i < m->n; i++)
		m->a[i].idle = 0;
	for (size_t k = 0; k < m->nr_moves; k++) {
		if (m->move[k].method != PREEMPT_SWITCH)
			continue;
		find(m, m->move[k].victim)->idle += m->move[k].slots;
		switching = true;
	}
	for (size_t i = 0; i < m->n; i++) {
		const struct active *a = &m->a[i];
		double works = a->held - a->idle, bound = job_of(m, a)->bound;

		memory += works * bound * bound;
		compute += works * (1 - bound);
		others += works;
	}
	for (size_t i = 0; i < m->n; i++) {
		struct active *a = &m->a[i];
		const struct psim_job *j = job_of(m, a);
		double works = a->held - a->idle, bound = j->bound;

		a->rate = 0;
		if (!(works > 0))
			continue;
		a->rate = psim_norm(&m->sharing, bound, memory - works * bound * bound,
				    compute - works * (1 - bound), others - works);
		if (switching)
			a->rate *= 1 - m->sharing.decay * bound;
		sum += a->rate * fmin(works / j->width, 1);
	}
	return sum;
}

static double speed(const struct sim *m, const struct active *a)
{
	return job_of(m, a)->ipc * (a->held - a->idle) * a->rate;
}

static enum preempt_class class_now(const struct sim *m, const struct active *a)
{
	struct analyse_guess g;

	analyse_guess(&m->analyse, &m->setup->param, job_of(m, a)->kind,
		      job_of(m, a)->size, &g);
	return g.class;
}

/* What mgpud would have measured in the stretch that ends now. */
static void observe(struct sim *m)
{
	double count[PREEMPT_CLASSES + 1] = { 0 };

	for (size_t i = 0; i < m->n; i++)
		if (m->a[i].held)
			count[class_now(m, &m->a[i])] += m->a[i].held;
	for (size_t i = 0; i < m->n; i++) {
		struct active *a = &m->a[i];
		const struct psim_job *j = job_of(m, a);
		double others[PREEMPT_CLASSES + 1], all = 0;

		if (!a->held)
			continue;
		memcpy(others, count, sizeof(others));
		others[class_now(m, a)] -= a->held;
		for (int c = 0; c <= PREEMPT_CLASSES; c++)
			all += others[c];
		if (all > 0)
			analyse_shared(&m->analyse, &m->setup->param, j->kind, others,
				       j->ipc * a->rate);
		else
			analyse_alone(&m->analyse, j->kind, j->ipc);
	}
	/* now that all were judged by what was known of them */
	for (size_t i = 0; i < m->n; i++) {
		if (!m->a[i].held || m->a[i].looked)
			continue;
		m->a[i].looked = true;
		analyse_memory(&m->analyse, job_of(m, &m->a[i])->kind,
			       job_of(m, &m->a[i])->bound, job_of(m, &m->a[i])->miss);
	}
}

static void advance(struct sim *m, double to, double sum)
{
	double dt = to - m->now;
	bool switching = false;

	for (size_t i = 0; i < m->n; i++) {
		m->a[i].done += speed(m, &m->a[i]) * dt;
		switching |= m->a[i].idle > 0;
		if (m->result)
			m->result->wasted += m->a[i].idle * dt;
	}
	m->norm += sum * dt;
	if (m->result) {
		m->result->busy += m->n ? dt : 0;
		if (dt >= LOOK && !switching)
			observe(m);
	}
	m->now = to;
}

/* ---- what happens ---- */

static void finish_move(struct sim *m, size_t k)
{
	struct move v = m->move[k];
	struct active *from = find(m, v.victim);
	struct active *to = v.newcomer == NO_JOB ? NULL : find(m, v.newcomer);

	m->move[k] = m->move[--m->nr_moves];
	from->held -= v.slots;
	from->leaving -= v.slots;
	if (!from->held) {
		from->state = PREEMPT_PREEMPTED;
		from->preempted = true;
		from->since = m->now;
	}
	if (!to) {
		m->free += v.slots;
		return;
	}
	to->coming -= v.slots;
	to->held += v.slots;
	if (to->state != PREEMPT_RUNNING) {
		to->state = PREEMPT_RUNNING;
		to->since = m->now;
	}
}

static void complete(struct sim *m, size_t i)
{
	struct active *a = &m->a[i];
	size_t job = a->job;

	for (size_t k = 0; k < m->nr_moves;) {
		if (m->move[k].victim == job) {
			finish_move(m, k);
			continue;
		}
		if (m->move[k].newcomer == job)
			m->move[k].newcomer = NO_JOB;
		k++;
	}
	m->free += a->held;
	if (m->result) {
		m->turnaround[job] = m->now - m->s->job[job].arrival;
		analyse_done(&m->analyse, m->s->job[job].kind, m->s->job[job].size,
			     m->s->job[job].inst);
	}
	m->n--;
	memmove(a, a + 1, (m->n - i) * sizeof(*a));
}

/* All that happens now; work within a cycle of its end has ended. */
static void happen(struct sim *m)
{
	for (size_t k = 0; k < m->nr_moves;) {
		if (m->move[k].end <= m->now)
			finish_move(m, k);
		else
			k++;
	}
	for (size_t i = 0; i < m->n;) {
		const struct active *a = &m->a[i];

		if (a->held && m->s->job[a->job].inst - a->done <= m->s->job[a->job].ipc)
			complete(m, i);
		else
			i++;
	}
	for (; m->next < m->s->n && m->s->job[m->next].arrival <= m->now; m->next++)
		m->a[m->n++] = (struct active){
			.job = m->next, .state = PREEMPT_WAITING, .since = m->now,
		};
}

static double next_event(const struct sim *m)
{
	double t = m->next < m->s->n ? m->s->job[m->next].arrival : INFINITY;

	for (size_t k = 0; k < m->nr_moves; k++)
		t = fmin(t, m->move[k].end);
	for (size_t i = 0; i < m->n; i++) {
		double v = speed(m, &m->a[i]);

		if (v > 0)
			t = fmin(t, m->now + fmax(job_of(m, &m->a[i])->inst -
						  m->a[i].done, 0) / v);
	}
	return fmax(t, m->now);
}

/* ---- decisions ---- */

struct asked {
	struct preempt_snapshot s;
	struct preempt_ctx ctx[PREEMPT_CTX_MAX];
	struct preempt_plan plan;
};

static void snapshot(const struct sim *m, struct asked *q)
{
	q->s = (struct preempt_snapshot){
		.now_ns = ns_of(m->now), .slots = m->slots, .free = m->free,
		.ctx = q->ctx, .n = m->n, .norm = &m->analyse.norm,
	};
	for (size_t i = 0; i < m->n; i++) {
		const struct active *a = &m->a[i];
		const struct psim_job *j = job_of(m, a);
		struct analyse_guess g = {
			.inst = j->inst, .ipc = j->ipc, .bound = j->bound, .miss = j->miss,
			.class = preempt_classify(&m->setup->param, j->bound),
		};

		if (!m->oracle)
			analyse_guess(&m->analyse, &m->setup->param, j->kind, j->size, &g);
		q->ctx[i] = (struct preempt_ctx){
			.id = a->job, .vgpu = j->vgpu, .state = a->state,
			.class = g.class, .held = a->held, .leaving = a->leaving,
			.coming = a->coming, .wanted = j->width, .ipc = g.ipc,
			.rest_inst = analyse_rest(g.inst, a->done),
			/* where in a tile it is nobody knows */
			.done_inst = m->setup->whole ? a->done :
				g.ipc * j->tile * a->held / 2,
			.miss = g.miss, .bytes = j->bytes,
			.tile_cycles = m->setup->whole ?
				analyse_rest(g.inst, a->done) /
				(g.ipc * fmax(a->held, 1)) : j->tile,
			.idempotent = j->idempotent, .was_preempted = a->preempted,
			.arrival_ns = ns_of(j->arrival), .since_ns = ns_of(a->since),
			.keep_until_ns = a->keep_until_ns,
		};
	}
}

/* Instructions of what is dropped or waited for, on each slot. */
static double tile_inst(const struct sim *m, const struct active *a)
{
	const struct psim_job *j = job_of(m, a);

	return m->setup->whole ? j->inst / j->width : j->tile * j->ipc;
}

/* Instructions that each slot has done of it. */
static double in_tile(const struct sim *m, const struct active *a)
{
	return fmod(a->done / job_of(m, a)->width, tile_inst(m, a));
}

/* What a preemption really costs: until the slots are free, and in work. */
static double true_cost(const struct sim *m, const struct active *a, unsigned int slots,
			enum preempt_method method, double *lost)
{
	double miss = 0, stay = 0;

	*lost = 0;
	if (method == PREEMPT_FLUSH) {
		*lost = fmin(in_tile(m, a) * slots, a->done);
		return 0;
	}
	if (method == PREEMPT_DRAIN) {
		return (tile_inst(m, a) - in_tile(m, a)) /
			(job_of(m, a)->ipc * fmax(a->rate, 0.01));
	}
	for (size_t i = 0; i < m->n; i++) {
		unsigned int held = m->a[i].held - m->a[i].leaving -
			(&m->a[i] == a ? slots : 0);

		miss += held * job_of(m, &m->a[i])->miss;
		stay += held;
	}
	return preempt_cost_cycles(&m->setup->truth, stay > 0 ? miss / stay : 0,
				   job_of(m, a)->bytes * slots);
}

static void take(struct sim *m, struct active *a, struct active *to, unsigned int slots,
		 enum preempt_method method)
{
	double lost, cost = true_cost(m, a, slots, method, &lost);

	a->leaving += slots;
	to->coming += slots;
	a->done -= lost;
	m->norm -= lost / (job_of(m, a)->ipc * job_of(m, a)->width);
	m->move[m->nr_moves++] = (struct move){
		.victim = a->job, .newcomer = to->job, .slots = slots, .method = method,
		.end = m->now + cost,
	};
	if (m->result) {
		m->result->preemptions++;
		m->result->by[method]++;
		m->result->wasted += lost / job_of(m, a)->ipc;
	}
}

static void launch(struct sim *m, struct active *a, unsigned int slots)
{
	m->free -= slots;
	a->held += slots;
	if (a->state == PREEMPT_RUNNING)
		return;
	a->state = PREEMPT_RUNNING;
	a->since = m->now;
}

static void carry_out(struct sim *m, const struct preempt_plan *plan)
{
	for (size_t k = 0; k < plan->n; k++) {
		const struct preempt_decision *d = &plan->decision[k];
		struct active *a = &m->a[d->ctx];

		if (d->action == PREEMPT_DO_PREEMPT) {
			take(m, a, &m->a[d->newcomer], d->slots, d->method);
			continue;
		}
		if (d->keep_until_ns)
			a->keep_until_ns = d->keep_until_ns;
		if (m->result && d->reason == PREEMPT_STARVED)
			m->result->starved++;
		if (!d->later)
			launch(m, a, d->slots);
	}
}

static void decide(struct sim *m, const struct preempt_ops *ops, struct asked *q)
{
	struct timespec from, to;

	snapshot(m, q);
	if (m->result)
		clock_gettime(CLOCK_MONOTONIC, &from);
	if (preempt_decide(ops, &q->s, &m->setup->param, &q->plan))
		abort();	/* a snapshot of ours is refused: a bug of the model */
	if (m->result) {
		clock_gettime(CLOCK_MONOTONIC, &to);
		m->result->decisions++;
		m->result->seconds_per_decision += (double)(to.tv_sec - from.tv_sec) +
			1e-9 * (double)(to.tv_nsec - from.tv_nsec);
	}
	carry_out(m, &q->plan);
}

/* To the next event, or to @limit; returns whether there is more to come. */
static bool step(struct sim *m, const struct preempt_ops *wakes, struct asked *q,
		 double limit)
{
	double sum = set_rates(m), t = next_event(m);

	if (wakes && m->n) {
		uint64_t wake;

		snapshot(m, q);
		wake = preempt_wake_ns(&q->s, &m->setup->param);
		/* a nanosecond later, so that the bound has passed in whole ones */
		if (wake != UINT64_MAX)
			t = fmin(t, fmax(((double)wake + 1) * 1e-9 * PSIM_HZ, m->now));
	}
	if (isinf(t) || t > limit) {
		if (!isinf(limit))
			advance(m, limit, sum);
		return false;
	}
	advance(m, t, sum);
	happen(m);
	return true;
}

/* ---- the clairvoyant ---- */

/*
 * At each event it tries what could be done now, and looks for each how much work
 * gets done within a time that is long against a job, if mgpu decides from then
 * on and is told the truth, arrivals included. What gets most done is done.
 */
#define LIST_MAX	8

struct clairvoyant {
	struct sim ahead, best;
	struct asked q;
	double horizon;
	double acted;	/* when it last preempted: once in a moment, or it has no end */
};

static void copy(struct sim *to, const struct sim *from)
{
	memcpy(to, from, offsetof(struct sim, a) + from->n * sizeof(from->a[0]));
}

static double look_ahead(struct clairvoyant *c, double until)
{
	double start = c->ahead.norm;

	while (step(&c->ahead, NULL, &c->q, until))
		decide(&c->ahead, &preempt_mgpu, &c->q);
	return c->ahead.norm - start;
}

/* Those that wait and differ: of each class the first, the shortest, the longest. */
static size_t shortlist(const struct sim *m, size_t list[LIST_MAX])
{
	size_t nr = 0;

	for (int memory = 0; memory < 2; memory++) {
		size_t pick[3] = { NO_JOB, NO_JOB, NO_JOB };
		double least = INFINITY, most = -1;

		for (size_t i = 0; i < m->n; i++) {
			const struct psim_job *j = job_of(m, &m->a[i]);
			double rest = (j->inst - m->a[i].done) / j->ipc;

			int slow = j->bound >= 0.5;

			if (m->a[i].held || m->a[i].coming || slow != memory)
				continue;
			if (pick[0] == NO_JOB)
				pick[0] = i;
			if (rest < least) {
				least = rest;
				pick[1] = i;
			}
			if (rest > most) {
				most = rest;
				pick[2] = i;
			}
		}
		for (int k = 0; k < 3; k++) {
			bool there = pick[k] == NO_JOB;

			for (size_t i = 0; i < nr; i++)
				there |= list[i] == pick[k];
			if (!there)
				list[nr++] = pick[k];
		}
	}
	return nr;
}

static enum preempt_method true_method(const struct sim *m, const struct active *a,
				       unsigned int slots)
{
	enum preempt_method best = PREEMPT_SWITCH;
	double least = INFINITY;

	for (enum preempt_method k = 0; k < PREEMPT_METHODS; k++) {
		double lost, cost = true_cost(m, a, slots, k, &lost);

		if (k == PREEMPT_FLUSH && !job_of(m, a)->idempotent)
			continue;
		/* slots' time without work; who drains works on, but not in time */
		cost = cost * (k == PREEMPT_DRAIN ? 0.2 : slots) +
			lost / job_of(m, a)->ipc;
		if (cost < least) {
			least = cost;
			best = k;
		}
	}
	return best;
}

static void try_it(struct clairvoyant *c, const struct sim *m, double *best)
{
	double got, norm = c->ahead.norm - m->norm;

	/* the start, of which only what was just decided is wanted, is kept aside */
	struct sim *start = &c->best;
	size_t bytes = offsetof(struct sim, a) + c->ahead.n * sizeof(c->ahead.a[0]);
	void *kept = malloc(bytes);

	if (!kept)
		abort();
	memcpy(kept, &c->ahead, bytes);
	got = norm + look_ahead(c, m->now + c->horizon);
	if (got > *best + 1e-6 * c->horizon) {
		*best = got;
		memcpy(start, kept, bytes);
	}
	free(kept);
}

/* The best start from where @m is, to @c->best. */
static void search(struct sim *m, struct clairvoyant *c)
{
	size_t list[LIST_MAX], nr = shortlist(m, list);
	double best = -INFINITY;

	copy(&c->ahead, m);
	if (c->acted < m->now) {
		decide(&c->ahead, &preempt_mgpu, &c->q);
		try_it(c, m, &best);
		copy(&c->ahead, m);
	} else {
		nr = 0;
	}
	decide(&c->ahead, &preempt_none, &c->q);
	try_it(c, m, &best);
	for (size_t k = 0; k < nr; k++) {
		unsigned int width = job_of(m, &m->a[list[k]])->width;

		if (m->free) {
			copy(&c->ahead, m);
			launch(&c->ahead, &c->ahead.a[list[k]],
			       width < m->free ? width : m->free);
			decide(&c->ahead, &preempt_mgpu, &c->q);
			try_it(c, m, &best);
		}
		for (size_t i = 0; i < m->n; i++) {
			unsigned int slots = m->a[i].held - m->a[i].leaving;
			struct active *a;

			if (!slots)
				continue;
			copy(&c->ahead, m);
			set_rates(&c->ahead);
			a = &c->ahead.a[i];
			slots = width < slots ? width : slots;
			take(&c->ahead, a, &c->ahead.a[list[k]], slots,
			     true_method(&c->ahead, a, slots));
			try_it(c, m, &best);
		}
	}
}

static void clairvoyant(struct sim *m, struct clairvoyant *c)
{
	struct psim_result *result = m->result;

	m->oracle = true;
	m->result = NULL;
	search(m, c);
	/* what was decided, in the real world */
	for (size_t k = m->nr_moves; k < c->best.nr_moves; k++) {
		result->preemptions++;
		result->by[c->best.move[k].method]++;
		c->acted = m->now;
	}
	for (size_t i = 0; i < m->n; i++)
		result->wasted += (m->a[i].done - c->best.a[i].done) /
			job_of(m, &m->a[i])->ipc;
	copy(m, &c->best);
	m->result = result;
}

/* ---- the same for a device that is not modelled ---- */

struct psim_oracle {
	struct sim m;
	struct clairvoyant c;
	size_t ctx[PREEMPT_CTX_MAX];	/* of the snapshot, of each that is active */
};

static void init(struct sim *m, const struct psim_stream *s,
		 const struct psim_setup *setup)
{
	m->s = s;
	m->setup = setup;
	m->sharing = setup->sharing ? *setup->sharing : PSIM_SHARING;
	m->slots = setup->slots;
	m->free = setup->slots;
	analyse_init(&m->analyse);
}

static double horizon(const struct psim_setup *setup)
{
	return setup->horizon > 0 ? setup->horizon : PSIM_HORIZON;
}

struct psim_oracle *psim_oracle_new(const struct psim_stream *stream,
				    const struct psim_setup *setup)
{
	struct psim_oracle *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	init(&o->m, stream, setup);
	o->m.oracle = true;
	o->c.horizon = horizon(setup);
	o->c.acted = -1;
	return o;
}

void psim_oracle_free(struct psim_oracle *o)
{
	free(o);
}

static uint64_t in_stream(const struct preempt_snapshot *s, double now, uint64_t ns)
{
	double at = now / PSIM_HZ * 1e9 - (double)s->now_ns + (double)ns;

	return at > 0 ? (uint64_t)at : 0;
}

/* Contexts as jobs of the stream, in the order in which they came. */
static void take_over(struct psim_oracle *o, const struct preempt_snapshot *s,
		      const size_t *job, const double *done, double now, size_t next)
{
	struct sim *m = &o->m;

	m->now = now;
	m->next = next;
	m->slots = s->slots;
	m->free = s->free;
	m->norm = 0;
	m->n = 0;
	m->nr_moves = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];
		size_t at = m->n;

		if (job[i] == NO_JOB || c->state == PREEMPT_IDLE ||
		    c->state == PREEMPT_HELD || m->n == PSIM_JOBS_MAX)
			continue;
		for (; at > 0 && m->a[at - 1].job > job[i]; at--) {
			m->a[at] = m->a[at - 1];
			o->ctx[at] = o->ctx[at - 1];
		}
		m->n++;
		o->ctx[at] = i;
		m->a[at] = (struct active){
			.job = job[i], .state = c->state, .held = c->held,
			/* within a cycle of its end it would have ended */
			.done = fmin(done[i], m->s->job[job[i]].inst -
				     2 * m->s->job[job[i]].ipc),
			.since = (double)in_stream(s, now, c->since_ns) * 1e-9 * PSIM_HZ,
			.keep_until_ns = c->keep_until_ns ?
				in_stream(s, now, c->keep_until_ns) : 0,
			.preempted = c->was_preempted,
		};
	}
	/* what earlier decisions are taking: nearly there */
	for (size_t i = 0; i < m->n; i++) {
		unsigned int leaving = s->ctx[o->ctx[i]].leaving;

		for (size_t k = 0; k < m->n && leaving; k++) {
			unsigned int n = s->ctx[o->ctx[k]].coming - m->a[k].coming;

			n = n < leaving ? n : leaving;
			if (!n || m->nr_moves == MOVES_MAX)
				continue;
			m->a[k].coming += n;
			m->a[i].leaving += n;
			leaving -= n;
			m->move[m->nr_moves++] = (struct move){
				.victim = m->a[i].job, .newcomer = m->a[k].job,
				.slots = n, .method = PREEMPT_SWITCH,
				.end = now + m->s->job[m->a[i].job].tile / 2,
			};
		}
		if (!leaving || m->nr_moves == MOVES_MAX)
			continue;
		m->a[i].leaving += leaving;
		m->move[m->nr_moves++] = (struct move){
			.victim = m->a[i].job, .newcomer = NO_JOB, .slots = leaving,
			.method = PREEMPT_SWITCH,
			.end = now + m->s->job[m->a[i].job].tile / 2,
		};
	}
}

static void add(struct preempt_plan *plan, struct preempt_decision d)
{
	if (plan->n < sizeof(plan->decision) / sizeof(plan->decision[0]))
		plan->decision[plan->n++] = d;
}

static enum preempt_action launch_of(const struct active *a)
{
	return a->preempted && a->state != PREEMPT_RUNNING ? PREEMPT_DO_RESUME :
							     PREEMPT_DO_LAUNCH;
}

void psim_oracle_decide(struct psim_oracle *o, const struct preempt_snapshot *s,
			const size_t *job, const double *done, double now, size_t next,
			struct preempt_plan *plan)
{
	struct sim *m = &o->m, *best = &o->c.best;

	plan->n = 0;
	take_over(o, s, job, done, now, next);
	snapshot(m, &o->c.q);
	/* what a list says may be of several moments: nothing is to be done about it */
	if (!m->n || preempt_snapshot_check(&o->c.q.s))
		return;
	set_rates(m);
	search(m, &o->c);
	for (size_t k = m->nr_moves; k < best->nr_moves; k++) {
		const struct move *v = &best->move[k];
		size_t from = (size_t)(find(m, v->victim) - m->a);
		size_t to = (size_t)(find(m, v->newcomer) - m->a);

		o->c.acted = now;
		add(plan, (struct preempt_decision){
			.action = PREEMPT_DO_PREEMPT, .ctx = o->ctx[from],
			.slots = v->slots, .method = v->method, .newcomer = o->ctx[to],
			.reason = PREEMPT_GAIN,
		});
		add(plan, (struct preempt_decision){
			.action = launch_of(&m->a[to]), .ctx = o->ctx[to],
			.slots = v->slots, .later = true, .reason = PREEMPT_GAIN,
		});
	}
	for (size_t i = 0; i < m->n; i++) {
		if (best->a[i].held <= m->a[i].held)
			continue;
		add(plan, (struct preempt_decision){
			.action = launch_of(&m->a[i]), .ctx = o->ctx[i],
			.slots = best->a[i].held - m->a[i].held,
			.reason = m->a[i].held ? PREEMPT_GROW : PREEMPT_FREE_SLOT,
		});
	}
}

/* ---- a run ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int psim_run(const struct psim_stream *s, const struct psim_setup *setup,
	     struct psim_result *r)
{
	struct sim *m = calloc(1, sizeof(*m));
	struct asked *q = calloc(1, sizeof(*q));
	struct clairvoyant *c = setup->policy ? NULL : calloc(1, sizeof(*c));
	double *turnaround = calloc(s->n, sizeof(*turnaround));
	int ret = -ENOMEM;

	if (!m || !q || !turnaround || (!setup->policy && !c))
		goto out;
	*r = (struct psim_result){ 0 };
	init(m, s, setup);
	m->result = r;
	m->turnaround = turnaround;
	if (c) {
		c->horizon = horizon(setup);
		c->acted = -1;
	}
	do {
		set_rates(m);
		if (setup->policy)
			decide(m, setup->policy, q);
		else
			clairvoyant(m, c);
	} while (step(m, setup->policy, q, INFINITY));
	if (m->n) {
		ret = -EDEADLK;	/* jobs wait and nobody runs: a bug of the policy */
		goto out;
	}
	r->norm_ipc = m->norm / r->busy;
	for (size_t i = 0; i < s->n; i++) {
		const struct psim_job *j = &s->job[i];

		r->mean += turnaround[i] / PSIM_HZ / (double)s->n;
		r->slowdown += turnaround[i] / (j->inst / (j->ipc * j->width)) /
			(double)s->n;
	}
	qsort(turnaround, s->n, sizeof(*turnaround), compare);
	r->p99 = turnaround[(size_t)ceil(0.99 * (double)s->n) - 1] / PSIM_HZ;
	if (r->decisions)
		r->seconds_per_decision /= (double)r->decisions;
	ret = 0;
out:
	free(m);
	free(q);
	free(c);
	free(turnaround);
	return ret;
}

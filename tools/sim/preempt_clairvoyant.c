// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clairvoyant: at each event it tries the decisions that could be made, and for
 * each runs the device ahead for a time that is long against a job. mgpu decides from
 * then on and is told the truth, arrivals included. The decision after which most work
 * is done is made.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "preempt_model.h"

/* ---- mgpu in the look ahead, which is told the truth ---- */

struct asked {
	struct preempt_snapshot s;
	struct preempt_ctx ctx[PREEMPT_CTX_MAX];
	struct preempt_plan plan;
};

static void snapshot(const struct psim_device *m, struct asked *q)
{
	q->s = (struct preempt_snapshot){
		.now_ns = psim_ns(m->now), .slots = m->slots, .free = m->free,
		.ctx = q->ctx, .n = m->n, .norm = m->norm,
	};
	for (size_t i = 0; i < m->n; i++) {
		const struct psim_active *a = &m->a[i];
		const struct psim_job *j = psim_job_of(m, a);

		q->ctx[i] = (struct preempt_ctx){
			.id = a->job, .vgpu = j->vgpu, .state = a->state,
			.class = preempt_classify(&m->setup->param, j->bound),
			.held = a->held, .leaving = a->leaving,
			.coming = a->coming, .wanted = j->width, .ipc = j->ipc,
			.rest_inst = analyse_rest(j->inst, a->done),
			.done_inst = a->done,
			.miss = j->miss, .bytes = j->bytes,
			.tile_cycles = analyse_rest(j->inst, a->done) /
				(j->ipc * fmax(a->held, 1)),
			.idempotent = j->idempotent, .was_preempted = a->preempted,
			.arrival_ns = psim_ns(j->arrival), .since_ns = psim_ns(a->since),
			.keep_until_ns = a->keep_until_ns,
		};
	}
}

static void carry_out(struct psim_device *m, const struct preempt_plan *plan)
{
	for (size_t k = 0; k < plan->n; k++) {
		const struct preempt_decision *d = &plan->decision[k];
		struct psim_active *a = &m->a[d->ctx];

		if (d->action == PREEMPT_DO_PREEMPT) {
			psim_take(m, a, &m->a[d->newcomer], d->slots, d->method);
			continue;
		}
		if (d->keep_until_ns)
			a->keep_until_ns = d->keep_until_ns;
		if (!d->later)
			psim_launch(m, a, d->slots);
	}
}

static void decide(struct psim_device *m, const struct preempt_ops *ops, struct asked *q)
{
	snapshot(m, q);
	if (preempt_decide(ops, &q->s, &m->setup->param, &q->plan))
		abort();	/* a snapshot of ours is refused: a bug of the model */
	carry_out(m, &q->plan);
}

/* ---- the search ---- */

#define LIST_MAX	8

struct psim_clairvoyant {
	struct psim_device ahead, best;
	struct asked q;
	double horizon;
	double acted;	/* when it last preempted: once in a moment, or it has no end */
};

static void copy(struct psim_device *to, const struct psim_device *from)
{
	memcpy(to, from, offsetof(struct psim_device, a) + from->n * sizeof(from->a[0]));
}

static double look_ahead(struct psim_clairvoyant *c, double until)
{
	double start = c->ahead.sum;

	while (psim_step(&c->ahead, INFINITY, until))
		decide(&c->ahead, &preempt_mgpu, &c->q);
	return c->ahead.sum - start;
}

/* Those that wait and differ: of each class the first, the shortest, the longest. */
static size_t shortlist(const struct psim_device *m, size_t list[LIST_MAX])
{
	size_t nr = 0;

	for (int memory = 0; memory < 2; memory++) {
		size_t pick[3] = { PSIM_NO_JOB, PSIM_NO_JOB, PSIM_NO_JOB };
		double least = INFINITY, most = -1;

		for (size_t i = 0; i < m->n; i++) {
			const struct psim_job *j = psim_job_of(m, &m->a[i]);
			double rest = (j->inst - m->a[i].done) / j->ipc;

			int slow = j->bound >= 0.5;

			if (m->a[i].held || m->a[i].coming || slow != memory)
				continue;
			if (pick[0] == PSIM_NO_JOB)
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
			bool there = pick[k] == PSIM_NO_JOB;

			for (size_t i = 0; i < nr; i++)
				there |= list[i] == pick[k];
			if (!there)
				list[nr++] = pick[k];
		}
	}
	return nr;
}

static enum preempt_method true_method(const struct psim_device *m, const struct psim_active *a,
				       unsigned int slots)
{
	enum preempt_method best = PREEMPT_SWITCH;
	double least = INFINITY;

	for (enum preempt_method k = 0; k < PREEMPT_METHODS; k++) {
		double lost, cost = psim_true_cost(m, a, slots, k, &lost);

		if (k == PREEMPT_FLUSH && !psim_job_of(m, a)->idempotent)
			continue;
		/* slots' time without work; who drains works on, but not in time */
		cost = cost * (k == PREEMPT_DRAIN ? 0.2 : slots) +
			lost / psim_job_of(m, a)->ipc;
		if (cost < least) {
			least = cost;
			best = k;
		}
	}
	return best;
}

static void try_it(struct psim_clairvoyant *c, const struct psim_device *m, double *best)
{
	double got, lost = c->ahead.sum - m->sum;

	/* the start, of which only what was just decided is wanted, is kept aside */
	struct psim_device *start = &c->best;
	size_t bytes = offsetof(struct psim_device, a) + c->ahead.n * sizeof(c->ahead.a[0]);
	void *kept = malloc(bytes);

	if (!kept)
		abort();
	memcpy(kept, &c->ahead, bytes);
	got = lost + look_ahead(c, m->now + c->horizon);
	if (got > *best + 1e-6 * c->horizon) {
		*best = got;
		memcpy(start, kept, bytes);
	}
	free(kept);
}

/* The best start from where @m is, to @c->best. */
static void search(struct psim_device *m, struct psim_clairvoyant *c)
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
		unsigned int width = psim_job_of(m, &m->a[list[k]])->width;

		if (m->free) {
			copy(&c->ahead, m);
			psim_launch(&c->ahead, &c->ahead.a[list[k]],
				    width < m->free ? width : m->free);
			decide(&c->ahead, &preempt_mgpu, &c->q);
			try_it(c, m, &best);
		}
		for (size_t i = 0; i < m->n; i++) {
			unsigned int slots = m->a[i].held - m->a[i].leaving;
			struct psim_active *a;

			if (!slots)
				continue;
			copy(&c->ahead, m);
			psim_rates(&c->ahead);
			a = &c->ahead.a[i];
			slots = width < slots ? width : slots;
			psim_take(&c->ahead, a, &c->ahead.a[list[k]], slots,
				  true_method(&c->ahead, a, slots));
			try_it(c, m, &best);
		}
	}
}

void psim_clairvoyant_decide(struct psim_clairvoyant *c, struct psim_device *m)
{
	struct psim_result *result = m->result;

	psim_rates(m);
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
			psim_job_of(m, &m->a[i])->ipc;
	copy(m, &c->best);
	m->result = result;
}

/* ---- the same for a device that is not modelled ---- */

struct psim_oracle {
	struct preempt_norm norm;	/* cold: the truth of pairs is not asked for */
	struct psim_device m;
	struct psim_clairvoyant c;
	size_t ctx[PREEMPT_CTX_MAX];	/* of the snapshot, of each that is active */
};

static double horizon(const struct psim_setup *setup)
{
	return setup->horizon > 0 ? setup->horizon : PSIM_HORIZON;
}

struct psim_clairvoyant *psim_clairvoyant_new(const struct psim_setup *setup)
{
	struct psim_clairvoyant *c = calloc(1, sizeof(*c));

	if (c) {
		c->horizon = horizon(setup);
		c->acted = -1;
	}
	return c;
}

void psim_clairvoyant_free(struct psim_clairvoyant *c)
{
	free(c);
}

struct psim_oracle *psim_oracle_new(const struct psim_stream *stream,
				    const struct psim_setup *setup)
{
	struct psim_oracle *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	psim_init(&o->m, stream, setup);
	preempt_norm_cold(&o->norm);
	o->m.norm = &o->norm;
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
	struct psim_device *m = &o->m;

	m->now = now;
	m->next = next;
	m->slots = s->slots;
	m->free = s->free;
	m->sum = 0;
	m->n = 0;
	m->nr_moves = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];
		size_t at = m->n;

		if (job[i] == PSIM_NO_JOB || c->state == PREEMPT_IDLE ||
		    c->state == PREEMPT_HELD || m->n == PSIM_JOBS_MAX)
			continue;
		for (; at > 0 && m->a[at - 1].job > job[i]; at--) {
			m->a[at] = m->a[at - 1];
			o->ctx[at] = o->ctx[at - 1];
		}
		m->n++;
		o->ctx[at] = i;
		m->a[at] = (struct psim_active){
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
			if (!n || m->nr_moves == PSIM_MOVES_MAX)
				continue;
			m->a[k].coming += n;
			m->a[i].leaving += n;
			leaving -= n;
			m->move[m->nr_moves++] = (struct psim_move){
				.victim = m->a[i].job, .newcomer = m->a[k].job,
				.slots = n, .method = PREEMPT_SWITCH,
				.end = now + m->s->job[m->a[i].job].tile / 2,
			};
		}
		if (!leaving || m->nr_moves == PSIM_MOVES_MAX)
			continue;
		m->a[i].leaving += leaving;
		m->move[m->nr_moves++] = (struct psim_move){
			.victim = m->a[i].job, .newcomer = PSIM_NO_JOB, .slots = leaving,
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

static enum preempt_action launch_of(const struct psim_active *a)
{
	return a->preempted && a->state != PREEMPT_RUNNING ? PREEMPT_DO_RESUME :
							     PREEMPT_DO_LAUNCH;
}

void psim_oracle_decide(struct psim_oracle *o, const struct preempt_snapshot *s,
			const size_t *job, const double *done, double now, size_t next,
			struct preempt_plan *plan)
{
	struct psim_device *m = &o->m, *best = &o->c.best;

	plan->n = 0;
	take_over(o, s, job, done, now, next);
	snapshot(m, &o->c.q);
	/* what a list says may be of several moments: nothing is to be done about it */
	if (!m->n || preempt_snapshot_check(&o->c.q.s))
		return;
	psim_rates(m);
	search(m, &o->c);
	for (size_t k = m->nr_moves; k < best->nr_moves; k++) {
		const struct psim_move *v = &best->move[k];
		size_t from = (size_t)(psim_find(m, v->victim) - m->a);
		size_t to = (size_t)(psim_find(m, v->newcomer) - m->a);

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


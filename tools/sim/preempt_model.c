// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device with slots and the jobs on it, driven by events. Between two events all
 * speeds are constant.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "preempt_model.h"

#define LOOK	20000.0	/* cycles: shorter stretches are no measurement */

double psim_norm(const struct psim_sharing *t, double bound, double memory,
		 double compute, double others)
{
	return 1 / (1 + t->memory * bound * memory +
		    t->compute * (1 - bound) * compute + t->any * others);
}

uint64_t psim_ns(double cycles)
{
	return (uint64_t)(cycles / PSIM_HZ * 1e9);
}

const struct psim_job *psim_job_of(const struct psim_device *m, const struct psim_active *a)
{
	return &m->s->job[a->job];
}

struct psim_active *psim_find(struct psim_device *m, size_t job)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->a[i].job == job)
			return &m->a[i];
	return NULL;
}

/* ---- what is done in a stretch of time ---- */

/* How fast everyone is; returns the sum of norm_ipc. */
double psim_rates(struct psim_device *m)
{
	double memory = 0, compute = 0, others = 0, sum = 0;
	bool switching = false;

	for (size_t i = 0; i < m->n; i++)
		m->a[i].idle = 0;
	for (size_t k = 0; k < m->nr_moves; k++) {
		if (m->move[k].method != PREEMPT_SWITCH)
			continue;
		psim_find(m, m->move[k].victim)->idle += m->move[k].slots;
		switching = true;
	}
	for (size_t i = 0; i < m->n; i++) {
		const struct psim_active *a = &m->a[i];
		double works = a->held - a->idle, bound = psim_job_of(m, a)->bound;

		memory += works * bound * bound;
		compute += works * (1 - bound);
		others += works;
	}
	for (size_t i = 0; i < m->n; i++) {
		struct psim_active *a = &m->a[i];
		const struct psim_job *j = psim_job_of(m, a);
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

double psim_speed(const struct psim_device *m, const struct psim_active *a)
{
	return psim_job_of(m, a)->ipc * (a->held - a->idle) * a->rate;
}

static void advance(struct psim_device *m, double to, double sum)
{
	double dt = to - m->now;
	bool switching = false;

	for (size_t i = 0; i < m->n; i++) {
		m->a[i].done += psim_speed(m, &m->a[i]) * dt;
		switching |= m->a[i].idle > 0;
		if (m->result)
			m->result->wasted += m->a[i].idle * dt;
	}
	m->sum += sum * dt;
	if (m->result) {
		m->result->busy += m->n ? dt : 0;
		if (dt >= LOOK && !switching)
			psim_mgpud_ran(m->mgpud, m, dt);
	}
	m->now = to;
}

/* ---- what happens ---- */

static void finish_move(struct psim_device *m, size_t k)
{
	struct psim_move v = m->move[k];
	struct psim_active *from = psim_find(m, v.victim);
	struct psim_active *to = v.newcomer == PSIM_NO_JOB ? NULL : psim_find(m, v.newcomer);

	m->move[k] = m->move[--m->nr_moves];
	from->held -= v.slots;
	from->leaving -= v.slots;
	from->lost += v.slots;
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

static void complete(struct psim_device *m, size_t i)
{
	struct psim_active *a = &m->a[i];
	size_t job = a->job;

	for (size_t k = 0; k < m->nr_moves;) {
		if (m->move[k].victim == job) {
			finish_move(m, k);
			continue;
		}
		if (m->move[k].newcomer == job)
			m->move[k].newcomer = PSIM_NO_JOB;
		k++;
	}
	m->free += a->held;
	if (m->result)
		m->turnaround[job] = m->now - m->s->job[job].arrival;
	m->n--;
	memmove(a, a + 1, (m->n - i) * sizeof(*a));
}

/* All that happens now; work within a cycle of its end has ended. */
static void happen(struct psim_device *m)
{
	for (size_t k = 0; k < m->nr_moves;) {
		if (m->move[k].end <= m->now)
			finish_move(m, k);
		else
			k++;
	}
	for (size_t i = 0; i < m->n;) {
		const struct psim_active *a = &m->a[i];

		if (a->held && m->s->job[a->job].inst - a->done <= m->s->job[a->job].ipc)
			complete(m, i);
		else
			i++;
	}
	for (; m->next < m->s->n && m->s->job[m->next].arrival <= m->now; m->next++)
		m->a[m->n++] = (struct psim_active){
			.job = m->next, .state = PREEMPT_WAITING, .since = m->now,
			.allowed = m->slots, .queued = ++m->turn,
		};
}

static double next_event(const struct psim_device *m)
{
	double t = m->next < m->s->n ? m->s->job[m->next].arrival : INFINITY;

	for (size_t k = 0; k < m->nr_moves; k++)
		t = fmin(t, m->move[k].end);
	for (size_t i = 0; i < m->n; i++) {
		double v = psim_speed(m, &m->a[i]);

		if (v > 0)
			t = fmin(t, m->now + fmax(psim_job_of(m, &m->a[i])->inst -
						  m->a[i].done, 0) / v);
	}
	return fmax(t, m->now);
}

/* ---- slots ---- */

double psim_true_cost(const struct psim_device *m, const struct psim_active *a,
		      unsigned int slots, enum preempt_method method, double *lost)
{
	double miss = 0, stay = 0;

	*lost = 0;
	if (method == PREEMPT_FLUSH) {
		*lost = a->done;
		return 0;
	}
	if (method == PREEMPT_DRAIN)
		return (psim_job_of(m, a)->inst - a->done) /
			(psim_job_of(m, a)->ipc * a->held * fmax(a->rate, 0.01));
	for (size_t i = 0; i < m->n; i++) {
		unsigned int held = m->a[i].held - m->a[i].leaving -
			(&m->a[i] == a ? slots : 0);

		miss += held * psim_job_of(m, &m->a[i])->miss;
		stay += held;
	}
	return preempt_cost_cycles(&m->setup->truth, stay > 0 ? miss / stay : 0,
				   psim_job_of(m, a)->bytes * slots);
}

void psim_take(struct psim_device *m, struct psim_active *a, struct psim_active *to,
	       unsigned int slots, enum preempt_method method)
{
	double lost, cost = psim_true_cost(m, a, slots, method, &lost);

	a->leaving += slots;
	if (to)
		to->coming += slots;
	a->done -= lost;
	m->sum -= lost / (psim_job_of(m, a)->ipc * psim_job_of(m, a)->width);
	m->move[m->nr_moves++] = (struct psim_move){
		.victim = a->job, .newcomer = to ? to->job : PSIM_NO_JOB, .slots = slots,
		.method = method,
		/* complete() ends a drain */
		.end = method == PREEMPT_DRAIN ? INFINITY : m->now + cost,
	};
	if (m->result) {
		m->result->preemptions++;
		m->result->by[method]++;
		m->result->wasted += lost / psim_job_of(m, a)->ipc;
	}
}

void psim_launch(struct psim_device *m, struct psim_active *a, unsigned int slots)
{
	m->free -= slots;
	a->held += slots;
	if (a->state == PREEMPT_RUNNING)
		return;
	a->state = PREEMPT_RUNNING;
	a->since = m->now;
}

bool psim_step(struct psim_device *m, double wake, double limit)
{
	double sum = psim_rates(m), t = fmin(next_event(m), fmax(wake, m->now));

	if (isinf(t) || t > limit) {
		if (!isinf(limit))
			advance(m, limit, sum);
		return false;
	}
	advance(m, t, sum);
	happen(m);
	return true;
}

void psim_init(struct psim_device *m, const struct psim_stream *s, const struct psim_setup *setup)
{
	m->s = s;
	m->setup = setup;
	m->sharing = setup->sharing ? *setup->sharing : PSIM_SHARING;
	m->slots = setup->slots;
	m->free = setup->slots;
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
	struct psim_device *m = calloc(1, sizeof(*m));
	struct psim_mgpud *mgpud = psim_mgpud_new(setup);
	struct psim_clairvoyant *c = setup->policy ? NULL : psim_clairvoyant_new(setup);
	double *turnaround = calloc(s->n, sizeof(*turnaround));
	double wake = INFINITY;
	int ret = -ENOMEM;

	if (!m || !mgpud || !turnaround || (!setup->policy && !c))
		goto out;
	*r = (struct psim_result){ 0 };
	psim_init(m, s, setup);
	m->mgpud = mgpud;
	m->norm = psim_mgpud_norm(mgpud);
	m->result = r;
	m->turnaround = turnaround;
	do {
		if (setup->policy)
			ret = psim_mgpud_decide(mgpud, m, &wake);
		else
			ret = psim_mgpud_look(mgpud, m);
		if (ret)
			goto out;
		if (c)
			psim_clairvoyant_decide(c, m);
	} while (psim_step(m, wake, INFINITY));
	if (m->n) {
		ret = -EDEADLK;	/* jobs wait and no job runs: a bug of the model */
		goto out;
	}
	r->guard = *psim_mgpud_guard(mgpud);
	if (setup->learned)
		*setup->learned = *psim_mgpud_learned(mgpud);
	r->norm_ipc = m->sum / r->busy;
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
	psim_mgpud_free(mgpud);
	psim_clairvoyant_free(c);
	free(turnaround);
	return ret;
}

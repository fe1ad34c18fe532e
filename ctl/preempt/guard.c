// SPDX-License-Identifier: GPL-2.0-only
/* The guard against preemptions that do not pay. */
#include <math.h>
#include <string.h>

#include "guard.h"

double guard_rate(const struct preempt_snapshot *s)
{
	double count[PREEMPT_CLASSES + 1] = { 0 }, rate = 0;

	for (size_t i = 0; i < s->n; i++)
		count[s->ctx[i].class] += s->ctx[i].held;
	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];
		double others[PREEMPT_CLASSES + 1];

		if (!c->held)
			continue;
		memcpy(others, count, sizeof(others));
		others[c->class] -= c->held;
		rate += fmin(c->held, c->wanted) * preempt_norm_ipc(s->norm, c->class, others);
	}
	return rate;
}

/* ---- open and closed ---- */

static void set_closed(struct guard_method *m, bool closed, uint64_t now_ns)
{
	m->closings += closed && !m->closed;
	m->closed = closed;
	m->since_ns = now_ns;
	m->probes = 0;
	m->probed = 0;
}

/* True if the mean gain is below 0, by more than chance. */
static bool loses(const struct guard_method *m)
{
	double square = (m->square * m->trials + GUARD_SPREAD * GUARD_SPREAD * GUARD_PRIOR) /
		(m->trials + GUARD_PRIOR);
	double error = sqrt(square / m->trials);

	return m->trials >= GUARD_MIN && m->got + GUARD_ERRORS * error < 0;
}

static void probe(struct guard_method *m, uint64_t now_ns, double got)
{
	m->probed += got;
	if (++m->probes < GUARD_PROBES)
		return;
	if (m->probed > 0) {
		/* what was learned before is of other work */
		m->trials = GUARD_PROBES;
		m->got = m->probed / GUARD_PROBES;
		m->extra = 0;
		m->wait_ns = 0;
		m->probe_ns = 0;
		set_closed(m, false, now_ns);
		return;
	}
	m->probes = 0;
	m->probed = 0;
	m->wait_ns = m->wait_ns > GUARD_WAIT_MAX_NS / 2 ? GUARD_WAIT_MAX_NS : 2 * m->wait_ns;
	m->probe_ns = now_ns + m->wait_ns;
}

void guard_learn(struct guard *g, enum preempt_method method, uint64_t now_ns,
		 double expected, double got, double cycles)
{
	struct guard_method *m = &g->method[method];
	double off;

	if (!isfinite(expected) || !isfinite(got) || !isfinite(cycles))
		return;
	expected = fmin(fmax(expected, -1), 1);
	got = fmin(fmax(got, -1), 1);
	m->measured++;
	m->trials = fmin(m->trials + 1, GUARD_MEMORY);
	m->expected += (expected - m->expected) / m->trials;
	off = got - m->got;
	m->got += off / m->trials;
	m->square += (off * (got - m->got) - m->square) / m->trials;
	m->extra += ((expected - got) * cycles - m->extra) / (m->trials + GUARD_PRIOR);
	m->extra = fmin(fmax(m->extra, -GUARD_EXTRA_MAX), GUARD_EXTRA_MAX);
	if (m->closed) {
		probe(m, now_ns, got);
	} else if (loses(m)) {
		set_closed(m, true, now_ns);
		m->wait_ns = GUARD_WAIT_NS;
		m->probe_ns = now_ns + GUARD_WAIT_NS;
	}
}

static void forget(struct guard *g, uint64_t now_ns)
{
	double passed = g->at_ns && now_ns > g->at_ns ? (double)(now_ns - g->at_ns) : 0;

	for (int m = 0; m < PREEMPT_METHODS; m++)
		g->method[m].extra *= fmax(1 - passed / GUARD_FORGET_NS, 0);
	g->at_ns = now_ns;
}

/* ---- trials ---- */

/* Cycles per nanosecond, as a factor of what the table gives; 0: unknown. */
static double scale(const struct guard_watch *w)
{
	return w->due >= GUARD_SCALE_MIN_NS && w->work > 0 ? w->work / w->due : 0;
}

static void end_trial(struct guard *g, struct guard_watch *w, uint64_t now_ns)
{
	double window = (double)(w->until_ns - w->began_ns);
	double took = (double)(now_ns - w->began_ns);
	double before = scale(w) * w->before * took, loss;

	w->trying = false;
	/* too little of the window, or too much after it, says nothing of the window */
	if (took < window / 4 || took > 2 * window || !(before > 0))
		return;
	/* a loss that was expected is the price of the bound on waiting */
	loss = fmin(w->expected, 0);
	guard_learn(g, w->method, now_ns, w->expected - loss, w->done / before - 1 - loss,
		    before);
}

void guard_look(struct guard *g, struct guard_watch *w, uint64_t now_ns, double rate,
		double work, bool waiting)
{
	double stretch = w->at_ns && now_ns > w->at_ns ? (double)(now_ns - w->at_ns) : 0;
	double due = (w->rate + rate) / 2 * stretch;

	forget(g, now_ns);
	if (w->trying) {
		w->done += work;
		if (now_ns >= w->until_ns || !waiting)
			end_trial(g, w, now_ns);
	} else if (due > 0) {
		double keep = fmax(1 - stretch / GUARD_SCALE_NS, 0);

		w->work = w->work * keep + (keep > 0 ? fmax(work, 0) : 0);
		/* in a longer stretch others ran than at its ends */
		w->due = w->due * keep + (keep > 0 ? due : 0);
	}
	w->at_ns = now_ns;
	w->rate = rate;
}

void guard_begin(struct guard_watch *w, uint64_t now_ns, const struct preempt_decision *d,
		 double gain)
{
	double window = scale(w) > 0 ? d->window / scale(w) : 0;

	/* nothing that ends later than a device's longest job; the clock must not overflow */
	if (w->trying || !(window >= 1 && window <= 1e15) || !(d->before > 0))
		return;
	w->trying = true;
	w->method = d->method;
	w->began_ns = now_ns;
	w->until_ns = now_ns + (uint64_t)window;
	w->before = d->before / d->window;
	w->expected = gain / d->before;
	w->done = 0;
}

void guard_allow(const struct guard *g, const struct guard_watch *w, uint64_t now_ns,
		 struct preempt_guard *allowed)
{
	for (int i = 0; i < PREEMPT_METHODS; i++) {
		const struct guard_method *m = &g->method[i];

		/* one trial at a time: a probe costs no more than its trials */
		allowed->closed[i] = m->closed && (now_ns < m->probe_ns || w->trying);
		allowed->extra[i] = m->closed ? 0 : fmax(m->extra, 0);
	}
}

static bool within(double x, double min, double max)
{
	return x >= min && x <= max;
}

const char *guard_check(const struct guard *g)
{
	for (int i = 0; i < PREEMPT_METHODS; i++) {
		const struct guard_method *m = &g->method[i];

		if (!within(m->trials, 0, GUARD_MEMORY) || !within(m->expected, -1, 1) ||
		    !within(m->got, -1, 1) || !within(m->square, 0, 4) ||
		    !within(m->extra, -GUARD_EXTRA_MAX, GUARD_EXTRA_MAX) ||
		    m->measured > INT64_MAX / 2 || m->closings > m->measured ||
		    m->probes >= GUARD_PROBES || !within(m->probed, -4, 4) ||
		    m->closed != !!m->wait_ns ||
		    (m->closed && (m->wait_ns < GUARD_WAIT_NS || m->wait_ns > GUARD_WAIT_MAX_NS)))
			return "experience with a method of preemption out of range";
	}
	return NULL;
}

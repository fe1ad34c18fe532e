// SPDX-License-Identifier: GPL-2.0-only
/* Cost and gain of a preemption. */
#include <math.h>
#include <string.h>

#include "gain.h"

/*
 * Return the norm_ipc of @c beside others, for each of @held slots, in slots: work is the
 * time alone times the slots, so that a wide context has no less on each slot than others.
 */
static double value(const struct view *v, const struct preempt_ctx *c, double held,
		    const double count[PREEMPT_CLASSES + 1])
{
	double others[PREEMPT_CLASSES + 1];

	if (!(held > 0))
		return 0;
	memcpy(others, count, sizeof(others));
	others[c->class] -= held;
	return fmin(held, c->wanted) * preempt_norm_ipc(v->s->norm, c->class, others);
}

double gain_window(const struct view *v)
{
	double least = INFINITY;

	for (size_t k = 0; k < v->nr_users; k++) {
		const struct view_user *u = &v->user[k];
		const struct preempt_ctx *c = view_ctx(v, u);
		double norm;

		if (u->origin == VIEW_PREEMPTING || u->origin == VIEW_COMING)
			continue;
		norm = value(v, c, u->held, v->count);
		least = fmin(least, fmax(c->rest_inst, 0) / (c->ipc * norm));
	}
	return least;
}

void gain_rates(const struct view *v, size_t victim, const struct view_newcomer *n,
		unsigned int slots, double rate[3], double *miss)
{
	const struct preempt_ctx *leaves = view_ctx(v, &v->user[victim]);
	const struct preempt_ctx *comes = &v->s->ctx[n->ctx];
	double count[PREEMPT_CLASSES + 1], stay = 0;

	memcpy(count, v->count, sizeof(count));
	count[leaves->class] -= slots;
	count[comes->class] += slots;
	rate[0] = 0;
	rate[1] = 0;
	rate[2] = n->user == VIEW_NO_USER ? value(v, comes, slots, count) : 0;
	*miss = 0;
	for (size_t k = 0; k < v->nr_users; k++) {
		const struct view_user *u = &v->user[k];
		const struct preempt_ctx *c = view_ctx(v, u);
		double norm = value(v, c, u->held, v->count);
		double decay = c->class == PREEMPT_COMPUTE ? v->p->decay_compute :
			c->class == PREEMPT_MEMORY ? v->p->decay_memory :
			(v->p->decay_compute + v->p->decay_memory) / 2;
		unsigned int held = u->held - (k == victim ? slots : 0);

		rate[0] += norm;
		rate[1] += norm * decay * held / u->held;
		rate[2] += value(v, c, held + (k == n->user ? slots : 0), count);
		*miss += c->miss * held;
		stay += held;
	}
	if (stay > 0)
		*miss /= stay;
}

/*
 * Compare what both combinations do to the backlog: norm_ipc of each class weighted by the
 * slots that all contexts of the class want (MaxWeight: Tassiulas and Ephremides, 1992). A
 * combination with the larger sum now is paid for later if it leaves over contexts that go
 * well only with those it uses up.
 */
static bool lasts(const struct view *v, size_t victim, const struct view_newcomer *n,
		  unsigned int slots)
{
	const struct preempt_ctx *leaves = view_ctx(v, &v->user[victim]);
	const struct preempt_ctx *comes = &v->s->ctx[n->ctx];
	double count[PREEMPT_CLASSES + 1], before = 0, after = 0;

	/* a short queue leaves next to nothing over: the sum now decides alone */
	if (!view_queued(v))
		return true;
	memcpy(count, v->count, sizeof(count));
	count[leaves->class] -= slots;
	count[comes->class] += slots;
	if (n->user == VIEW_NO_USER)
		after = v->backlog[comes->class] * value(v, comes, slots, count);
	for (size_t k = 0; k < v->nr_users; k++) {
		const struct view_user *u = &v->user[k];
		const struct preempt_ctx *c = view_ctx(v, u);
		unsigned int held = u->held - (k == victim ? slots : 0) +
			(k == n->user ? slots : 0);

		before += v->backlog[c->class] * value(v, c, u->held, v->count);
		after += v->backlog[c->class] * value(v, c, held, count);
	}
	return after > before * (1 + v->p->min_gain);
}

void gain_weigh(const struct view *v, size_t victim, const struct view_newcomer *n,
		unsigned int slots, enum preempt_method method, double w,
		const double rate[3], double miss, struct preempt_decision *d)
{
	const struct view_user *u = &v->user[victim];
	const struct preempt_ctx *c = view_ctx(v, u);

	*d = (struct preempt_decision){
		.action = PREEMPT_DO_PREEMPT, .ctx = u->ctx, .slots = slots,
		.method = method, .newcomer = n->ctx, .window = w,
		.before = w * rate[0],
	};
	switch (method) {
	case PREEMPT_SWITCH:
		d->cost = preempt_cost_cycles(&v->p->cost, miss, c->bytes * slots);
		d->during = fmin(d->cost, w) * rate[1];
		d->after = fmax(w - d->cost, 0) * rate[2];
		break;
	case PREEMPT_DRAIN:
		/* all contexts run on until the tiles complete */
		d->cost = c->tile_cycles;
		d->during = fmin(d->cost, w) * rate[0];
		d->after = fmax(w - d->cost, 0) * rate[2];
		break;
	case PREEMPT_FLUSH:
		/* all of the job is lost, whichever part of its slots is taken */
		d->after = w * rate[2] - c->done_inst / c->ipc;
		break;
	}
	d->after -= v->s->guard.extra[method];
	d->gain = d->during + d->after - d->before;
}

bool gain_more(const struct preempt_decision *a, const struct preempt_decision *b)
{
	bool ends = a->cost < a->window, other = b->cost < b->window;

	if (ends != other)
		return ends;
	return ends ? a->gain > b->gain : a->cost < b->cost;
}

/* True if experience forbids @m. With @must, @m is allowed where no other method works. */
static bool forbidden(const struct view *v, enum preempt_method m, bool flushes, bool must)
{
	bool other = false;

	for (enum preempt_method i = 0; i < PREEMPT_METHODS; i++)
		other |= !v->s->guard.closed[i] && (i != PREEMPT_FLUSH || flushes);
	return v->s->guard.closed[m] && (!must || other);
}

bool gain_best_method(const struct view *v, size_t victim, const struct view_newcomer *n,
		      unsigned int slots, double w, bool must, struct preempt_decision *d)
{
	const struct preempt_ctx *c = view_ctx(v, &v->user[victim]);
	/* a flush is of all slots of the job */
	bool found = false, flushes = c->idempotent && slots == v->user[victim].held;
	double rate[3], miss;

	gain_rates(v, victim, n, slots, rate, &miss);
	/* the new combination is no better, now or later: no cost can pay */
	if (!must && !(rate[2] > rate[0] && lasts(v, victim, n, slots)))
		return false;
	for (enum preempt_method m = 0; m < PREEMPT_METHODS; m++) {
		struct preempt_decision try;

		if ((m == PREEMPT_FLUSH && !flushes) || forbidden(v, m, flushes, must))
			continue;
		gain_weigh(v, victim, n, slots, m, w, rate, miss, &try);
		if (!must && !(try.cost < w && try.gain > v->p->min_gain * try.before))
			continue;
		if (!found || gain_more(&try, d)) {
			*d = try;
			found = true;
		}
	}
	return found;
}

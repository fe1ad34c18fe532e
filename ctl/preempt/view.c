// SPDX-License-Identifier: GPL-2.0-only
/* The working copy of a snapshot, and the order of waiting contexts. */
#include <math.h>
#include <string.h>

#include "view.h"

static void add_user(struct view *v, size_t ctx, unsigned int held,
		     enum view_origin origin, enum preempt_reason reason)
{
	v->user[v->nr_users++] = (struct view_user){
		.ctx = ctx, .held = held, .origin = origin, .reason = reason,
	};
	v->count[v->s->ctx[ctx].class] += held;
}

void view_begin(struct view *v, const struct preempt_snapshot *s,
		const struct preempt_param *p, struct preempt_plan *plan)
{
	unsigned int leaving = 0, coming = 0;

	v->s = s;
	v->p = p;
	v->plan = plan;
	v->nr_users = 0;
	v->nr_wait = 0;
	v->free = s->free;
	memset(v->count, 0, sizeof(v->count));
	memset(v->backlog, 0, sizeof(v->backlog));
	plan->n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];

		leaving += c->leaving;
		coming += c->coming;
		if (c->state != PREEMPT_IDLE && c->state != PREEMPT_HELD)
			v->backlog[c->class] += c->wanted;
		if (c->state == PREEMPT_RUNNING) {
			if (c->held + c->coming > c->leaving)
				add_user(v, i, c->held + c->coming - c->leaving,
					 c->coming ? VIEW_COMING : VIEW_RAN, 0);
		} else if (c->coming) {
			add_user(v, i, c->coming, VIEW_COMING, 0);
		} else if (c->state == PREEMPT_WAITING || c->state == PREEMPT_PREEMPTED) {
			v->wait[v->nr_wait++] = (uint16_t)i;
		}
	}
	v->backlog[PREEMPT_UNKNOWN] /= 2;
	for (int a = 0; a < PREEMPT_CLASSES; a++)
		v->backlog[a] += v->backlog[PREEMPT_UNKNOWN];
	v->backlog[PREEMPT_UNKNOWN] =
		(v->backlog[PREEMPT_COMPUTE] + v->backlog[PREEMPT_MEMORY]) / 2;
	v->leaving = leaving - coming;
	/* rounding of sums must not depend on the order of the snapshot */
	for (size_t i = 1; i < v->nr_users; i++) {
		struct view_user u = v->user[i];
		size_t k = i;

		for (; k && view_ctx(v, &v->user[k - 1])->id > view_ctx(v, &u)->id; k--)
			v->user[k] = v->user[k - 1];
		v->user[k] = u;
	}
}

static struct preempt_decision *decision(struct view *v)
{
	struct preempt_decision *d = &v->plan->decision[v->plan->n++];

	*d = (struct preempt_decision){ 0 };
	return d;
}

static void give(struct view *v, size_t ctx, unsigned int slots, bool later,
		 enum preempt_reason reason)
{
	struct preempt_decision *d = decision(v);

	d->action = v->s->ctx[ctx].state == PREEMPT_PREEMPTED ?
		PREEMPT_DO_RESUME : PREEMPT_DO_LAUNCH;
	d->ctx = ctx;
	d->newcomer = ctx;
	d->slots = slots;
	d->later = later;
	d->reason = reason;
	/* one slot's part of the bound: contexts on all slots can take turns within it */
	if (reason == PREEMPT_STARVED)
		d->keep_until_ns = v->s->now_ns + v->p->starve_ns / v->s->slots;
}

/* ---- the order of waiting contexts ---- */

/*
 * Priority of combinations. That of an unknown class is the mean of both classes.
 */
static const double pair_score[PREEMPT_CLASSES + 1][PREEMPT_CLASSES + 1] = {
	[PREEMPT_COMPUTE] = { 1, 2, 1.5 },
	[PREEMPT_MEMORY] = { 2, 0, 1 },
	[PREEMPT_UNKNOWN] = { 1.5, 1, 1.25 },
};

void view_scores(const struct view *v, double score[PREEMPT_CLASSES + 1])
{
	double held = 0;

	for (int b = 0; b <= PREEMPT_CLASSES; b++)
		held += v->count[b];
	for (int a = 0; a <= PREEMPT_CLASSES; a++) {
		score[a] = 0;
		for (int b = 0; b <= PREEMPT_CLASSES; b++)
			score[a] += held > 0 ? v->count[b] * pair_score[a][b] / held : 0;
		if (view_queued(v))
			score[a] *= sqrt(v->backlog[a]);
	}
}

static bool earlier(const struct preempt_ctx *a, const struct preempt_ctx *b)
{
	if (a->arrival_ns != b->arrival_ns)
		return a->arrival_ns < b->arrival_ns;
	return a->id < b->id;
}

bool view_goes_before(const struct view *v, const double *score,
		      const struct preempt_ctx *a, const struct preempt_ctx *b)
{
	bool late = view_starves(v, a), ran;

	if (late != view_starves(v, b))
		return late;
	if (late && a->since_ns != b->since_ns)
		return a->since_ns < b->since_ns;
	if (score && !late) {
		if (score[a->class] > score[b->class] + 1e-9)
			return true;
		if (score[b->class] > score[a->class] + 1e-9)
			return false;
		ran = a->state == PREEMPT_PREEMPTED;
		if (a->state != b->state && (ran || b->state == PREEMPT_PREEMPTED))
			return ran;
	}
	return earlier(a, b);
}

size_t view_next_waiting(const struct view *v, const double *score, bool bounded)
{
	size_t best = v->nr_wait;

	for (size_t k = 0; k < v->nr_wait; k++) {
		const struct preempt_ctx *a = &v->s->ctx[v->wait[k]], *b;

		b = best < v->nr_wait ? &v->s->ctx[v->wait[best]] : NULL;
		if (!b || (bounded ? view_goes_before(v, score, a, b) : earlier(a, b)))
			best = k;
	}
	return best;
}

static size_t take_waiting(struct view *v, size_t place)
{
	size_t ctx = v->wait[place];

	v->wait[place] = v->wait[--v->nr_wait];
	return ctx;
}

void view_grow(struct view *v)
{
	for (size_t k = 0; k < v->nr_users && v->free; k++) {
		struct view_user *u = &v->user[k];
		const struct preempt_ctx *c = view_ctx(v, u);
		unsigned int slots;

		/* slots that are being taken from a context must be free before it grows */
		if (u->origin != VIEW_RAN || c->leaving || u->held >= c->wanted)
			continue;
		slots = min_slots(c->wanted - u->held, v->free);
		v->free -= slots;
		u->held += slots;
		u->origin = VIEW_GREW;
		v->count[c->class] += slots;
		give(v, u->ctx, slots, false, PREEMPT_GROW);
	}
}

/* True if the waiting context that goes first has waited for the bound. */
static bool one_starves(const struct view *v)
{
	size_t first = view_next_waiting(v, NULL, true);

	return first < v->nr_wait && view_starves(v, &v->s->ctx[v->wait[first]]);
}

void view_launch(struct view *v, bool ranked, bool bounded)
{
	if (ranked && v->free && !one_starves(v))
		view_grow(v);
	while (v->nr_wait && v->free + v->leaving) {
		double score[PREEMPT_CLASSES + 1];
		enum preempt_reason reason;
		const struct preempt_ctx *c;
		unsigned int slots;
		size_t ctx;

		view_scores(v, score);
		ctx = take_waiting(v, view_next_waiting(v, ranked ? score : NULL, bounded));
		c = &v->s->ctx[ctx];
		reason = bounded && view_starves(v, c) ? PREEMPT_STARVED : PREEMPT_FREE_SLOT;
		slots = min_slots(c->wanted, v->free);
		if (slots) {
			v->free -= slots;
			give(v, ctx, slots, false, reason);
			add_user(v, ctx, slots, VIEW_LAUNCHED, reason);
		}
		if (slots < c->wanted && v->leaving) {
			unsigned int coming = min_slots(c->wanted - slots, v->leaving);

			v->leaving -= coming;
			if (!slots) {
				add_user(v, ctx, coming, VIEW_COMING, reason);
			} else {
				v->user[v->nr_users - 1].held += coming;
				v->count[c->class] += coming;
			}
		}
	}
}

void view_take(struct view *v, size_t victim, struct view_newcomer *n,
	       const struct preempt_decision *d)
{
	struct view_user *u = &v->user[victim];

	*decision(v) = *d;
	u->held -= d->slots;
	v->count[view_ctx(v, u)->class] -= d->slots;
	if (!u->held) {
		v->nr_users--;
		memmove(u, u + 1, (v->nr_users - victim) * sizeof(*u));
		if (n->user != VIEW_NO_USER && n->user > victim)
			n->user--;
	}
	if (n->user == VIEW_NO_USER) {
		for (size_t k = 0; k < v->nr_wait; k++) {
			if (v->wait[k] == n->ctx) {
				take_waiting(v, k);
				break;
			}
		}
		n->user = v->nr_users;
		add_user(v, n->ctx, d->slots, VIEW_PREEMPTING, d->reason);
	} else {
		v->user[n->user].held += d->slots;
		v->count[v->s->ctx[n->ctx].class] += d->slots;
	}
	v->user[n->user].taken += d->slots;
	n->lacks -= d->slots;
}

void view_give_taken(struct view *v)
{
	for (size_t k = 0; k < v->nr_users; k++) {
		const struct view_user *u = &v->user[k];

		if (u->taken)
			give(v, u->ctx, u->taken, true, u->reason);
	}
}

struct view_newcomer view_newcomer(const struct view *v, size_t ctx, size_t user)
{
	return (struct view_newcomer){
		.ctx = ctx, .user = user,
		.lacks = v->s->ctx[ctx].wanted -
			(user == VIEW_NO_USER ? 0 : min_slots(v->s->ctx[ctx].wanted,
							      v->user[user].held)),
	};
}

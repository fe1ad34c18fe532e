// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu: preempts when the sum of norm_ipc over the window, less what the preemption
 * costs, grows; and when a context has waited for the starvation bound.
 */
#include <string.h>

#include "gain.h"
#include "view.h"

/* ---- starving contexts ---- */

/* Order of victims: contexts over their share lose slots first. */
static int share_rank(const struct preempt_ctx *c)
{
	return c->share == PREEMPT_OVER ? 0 : c->share == PREEMPT_EVEN ? 1 : 2;
}

/* Take one slot for each starving context. */
static void relieve(struct view *v)
{
	for (;;) {
		size_t place = view_next_waiting(v, NULL, true), victim = v->nr_users;
		struct preempt_decision d = { 0 };
		struct view_newcomer n;
		double w;

		if (place == v->nr_wait || !view_starves(v, &v->s->ctx[v->wait[place]]))
			return;
		n = view_newcomer(v, v->wait[place], VIEW_NO_USER);
		w = gain_window(v);
		for (size_t k = 0; k < v->nr_users; k++) {
			const struct view_user *u = &v->user[k];
			struct preempt_decision try;
			int better;

			/* one slot ends the wait; preemption for more slots has to pay */
			if (!view_may_lose(v, u) ||
			    !gain_best_method(v, k, &n, 1, w, true, &try))
				continue;
			better = victim == v->nr_users ? -1 :
				share_rank(view_ctx(v, u)) -
				share_rank(view_ctx(v, &v->user[victim]));
			if (better < 0 || (!better && gain_more(&try, &d))) {
				victim = k;
				d = try;
			}
		}
		if (victim == v->nr_users)
			return;
		d.reason = PREEMPT_STARVED;
		view_take(v, victim, &n, &d);
	}
}

/* ---- preemptions that pay ---- */

/* List users that lack slots, and the next waiting context of each class. */
static size_t newcomers(const struct view *v, struct view_newcomer *n)
{
	size_t best[PREEMPT_CLASSES + 1], nr = 0;
	double score[PREEMPT_CLASSES + 1];

	for (size_t k = 0; k < v->nr_users; k++) {
		const struct view_user *u = &v->user[k];
		const struct preempt_ctx *c = view_ctx(v, u);

		if ((u->origin == VIEW_LAUNCHED || u->origin == VIEW_PREEMPTING) &&
		    c->share != PREEMPT_OVER && u->held < c->wanted)
			n[nr++] = view_newcomer(v, u->ctx, k);
	}
	for (int a = 0; a <= PREEMPT_CLASSES; a++)
		best[a] = v->nr_wait;
	view_scores(v, score);
	for (size_t k = 0; k < v->nr_wait; k++) {
		const struct preempt_ctx *c = &v->s->ctx[v->wait[k]];
		size_t *b = &best[c->class];

		if (c->share != PREEMPT_OVER &&
		    (*b == v->nr_wait ||
		     view_goes_before(v, score, c, &v->s->ctx[v->wait[*b]])))
			*b = k;
	}
	/* in the order of priority, which decides between equal gains */
	for (int a = 0; a <= PREEMPT_CLASSES; a++) {
		size_t first = PREEMPT_CLASSES + 1;

		for (size_t b = 0; b <= PREEMPT_CLASSES; b++) {
			if (best[b] < v->nr_wait &&
			    (first > PREEMPT_CLASSES ||
			     view_goes_before(v, score, &v->s->ctx[v->wait[best[b]]],
					      &v->s->ctx[v->wait[best[first]]])))
				first = b;
		}
		if (first > PREEMPT_CLASSES)
			break;
		n[nr++] = view_newcomer(v, v->wait[best[first]], VIEW_NO_USER);
		best[first] = v->nr_wait;
	}
	return nr;
}

static void mgpu_preempt(struct view *v)
{
	struct view_newcomer n[PREEMPT_SLOTS_MAX + PREEMPT_CLASSES + 1];

	for (;;) {
		size_t nr = newcomers(v, n), who = nr, victim = 0;
		struct preempt_decision d = { 0 };
		double w = gain_window(v);

		for (size_t i = 0; i < nr; i++) {
			for (size_t k = 0; k < v->nr_users; k++) {
				struct preempt_decision try;

				if (!view_may_lose(v, &v->user[k]) ||
				    !gain_best_method(v, k, &n[i],
						      min_slots(n[i].lacks, v->user[k].held),
						      w, false, &try))
					continue;
				if (who == nr || try.gain > d.gain) {
					who = i;
					victim = k;
					d = try;
				}
			}
		}
		if (who == nr)
			return;
		d.reason = PREEMPT_GAIN;
		view_take(v, victim, &n[who], &d);
	}
}

static void mgpu_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			struct preempt_plan *plan)
{
	struct view v;

	view_begin(&v, s, p, plan);
	view_launch(&v, true, true);
	view_grow(&v);
	relieve(&v);
	mgpu_preempt(&v);
	view_give_taken(&v);
}

const struct preempt_ops preempt_mgpu = {
	.name = "mgpu",
	.summary = "preempts when the gain in the sum of norm_ipc exceeds the cost",
	.decide = mgpu_decide,
};

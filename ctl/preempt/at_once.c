// SPDX-License-Identifier: GPL-2.0-only
/* The rule of the policies that preempt for each new context. */
#include "at_once.h"
#include "gain.h"
#include "view.h"

/* Preempt the contexts that have run for longest until @n has all slots it wants. */
static void take_oldest(struct view *v, struct view_newcomer *n, enum preempt_method method)
{
	while (n->lacks) {
		size_t victim = v->nr_users;
		struct preempt_decision d;
		const struct preempt_ctx *c;
		double rate[3], miss;
		unsigned int slots;

		for (size_t k = 0; k < v->nr_users; k++) {
			if (view_may_lose(v, &v->user[k]) &&
			    (victim == v->nr_users || view_ctx(v, &v->user[k])->since_ns <
						      view_ctx(v, &v->user[victim])->since_ns))
				victim = k;
		}
		if (victim == v->nr_users)
			return;
		c = view_ctx(v, &v->user[victim]);
		slots = min_slots(n->lacks, v->user[victim].held);
		gain_rates(v, victim, n, slots, rate, &miss);
		gain_weigh(v, victim, n, slots, method == PREEMPT_FLUSH && !c->idempotent ?
		      PREEMPT_SWITCH : method, gain_window(v), rate, miss, &d);
		d.reason = view_starves(v, &v->s->ctx[n->ctx]) ? PREEMPT_STARVED : PREEMPT_RULE;
		view_take(v, victim, n, &d);
	}
}

void at_once_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
		    struct preempt_plan *plan, enum preempt_method method)
{
	struct view_newcomer n;
	struct view v;

	view_begin(&v, s, p, plan);
	view_launch(&v, false, true);
	view_grow(&v);
	for (size_t k = 0; k < v.nr_users; k++) {
		if (v.user[k].origin != VIEW_LAUNCHED)
			continue;
		n = view_newcomer(&v, v.user[k].ctx, k);
		/* a preempted context must not preempt in turn: that would never end */
		if (s->ctx[n.ctx].state == PREEMPT_WAITING &&
		    s->ctx[n.ctx].share != PREEMPT_OVER) {
			take_oldest(&v, &n, method);
			k = n.user;
		}
	}
	for (;;) {
		size_t best = v.nr_wait;

		for (size_t k = 0; k < v.nr_wait; k++) {
			const struct preempt_ctx *c = &s->ctx[v.wait[k]];

			if (c->share != PREEMPT_OVER &&
			    (c->state == PREEMPT_WAITING || view_starves(&v, c)) &&
			    (best == v.nr_wait ||
			     view_goes_before(&v, NULL, c, &s->ctx[v.wait[best]])))
				best = k;
		}
		if (best == v.nr_wait)
			break;
		n = view_newcomer(&v, v.wait[best], VIEW_NO_USER);
		take_oldest(&v, &n, method);
		if (n.user == VIEW_NO_USER)
			break;
	}
	view_give_taken(&v);
}

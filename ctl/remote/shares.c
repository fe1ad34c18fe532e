// SPDX-License-Identifier: GPL-2.0-only
#include <stddef.h>

#include "shares.h"

/* More time than that is not counted at once, so that no product overflows. */
#define LONGEST_NS	1000000000000u
/* An account that had nothing to do may be so far ahead of the others. */
#define DEBT_NS		10000000000u

static uint64_t scaled(const struct share *s, uint64_t ns)
{
	return ns * MGPU_WEIGHT_MAX / s->weight;
}

void shares_add(struct shares *all, struct share *s)
{
	s->next = all->list;
	all->list = s;
	all->nr++;
}

/* The account has no turn any more, and waits for none. */
static void forget(struct shares *all, struct share *s)
{
	if (s->turns.state == TURNS_HAS)
		all->given--;
	if (turns_run(&s->turns) & TURNS_RUN)
		all->stop(s->arg, false);
	s->turns = (struct turns){ .state = TURNS_IDLE };
	s->asks = false;
}

void shares_remove(struct shares *all, struct share *s)
{
	struct share **at;

	forget(all, s);
	for (at = &all->list; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	all->nr--;
}

static bool must_share(const struct shares *all)
{
	if (all->nr > all->engines)
		return true;
	for (const struct share *s = all->list; s; s = s->next)
		if (s->limit_ppm)
			return true;
	return false;
}

/* Return the time in which a limit allows so much. */
static uint64_t time_for(const struct share *s, uint64_t ns)
{
	return ns * MGPU_GPU_LIMIT_MAX / s->limit_ppm;
}

/* Let time go by for an account's limit. */
static void fill(struct share *s, uint64_t now_ns)
{
	const int64_t most = (int64_t)SHARES_PERIOD_NS * s->limit_ppm / MGPU_GPU_LIMIT_MAX;
	uint64_t past = now_ns - s->filled_ns;

	if (past > LONGEST_NS)
		past = LONGEST_NS;
	s->left_ns += (int64_t)(past * s->limit_ppm / MGPU_GPU_LIMIT_MAX);
	if (s->left_ns > most)
		s->left_ns = most;
	s->filled_ns = now_ns;
}

static void charge(struct share *s, uint64_t used_ns)
{
	uint64_t ns = used_ns - s->used_ns;

	if (ns > LONGEST_NS)
		ns = LONGEST_NS;
	s->used_ns = used_ns;
	s->vtime += scaled(s, ns);
	if (s->limit_ppm)
		s->left_ns -= (int64_t)ns;
	if (s->left_ns < -(int64_t)LONGEST_NS)
		s->left_ns = -(int64_t)LONGEST_NS;
}

static void act(const struct shares *all, const struct share *s, unsigned int what)
{
	if (what & TURNS_STOP)
		all->stop(s->arg, true);
	if (what & TURNS_RUN)
		all->stop(s->arg, false);
}

static void look_at(struct shares *all, struct share *s, uint64_t now_ns, uint64_t used_ns)
{
	bool idle = s->turns.state == TURNS_IDLE;
	uint64_t ahead = s->vtime - all->vtime;
	unsigned int what;

	what = turns_look(&s->turns, now_ns, used_ns, false,
			  turns_seems_to_rest(&s->turns, now_ns, used_ns) && all->ready(s->arg));
	s->ended = what & TURNS_END;
	if (s->ended)
		all->given--;
	s->asks = what & TURNS_ASK;
	/* Time in which it had nothing to do earns no credit; virtual times wrap. */
	if (s->asks && idle && ahead > scaled(s, DEBT_NS))
		s->vtime = all->vtime;
	act(all, s, what);
}

/* Return the account whose turn is next, or NULL. */
static struct share *first(const struct shares *all)
{
	struct share *best = NULL;

	for (struct share *s = all->list; s; s = s->next) {
		if (!s->asks || (s->limit_ppm && s->left_ns < 0))
			continue;
		if (!best || (int64_t)(best->vtime - s->vtime) > 0)
			best = s;
	}
	return best;
}

static void give(struct shares *all, struct share *s, uint64_t now_ns)
{
	s->asks = false;
	all->given++;
	if ((int64_t)(s->vtime - all->vtime) > 0)
		all->vtime = s->vtime;
	act(all, s, turns_given(&s->turns, now_ns, s->used_ns));
}

/* Begin to count, or have all accounts go on. */
static void enforce(struct shares *all, uint64_t now_ns)
{
	for (struct share *s = all->list; s; s = s->next) {
		forget(all, s);
		if (!all->in_force)
			continue;
		s->used_ns = all->used(s->arg, now_ns);
		s->filled_ns = now_ns;
		s->left_ns = 0;
		s->turns.from_used_ns = s->used_ns;
		s->turns.looked_used_ns = s->used_ns;
		s->turns.looked_ns = now_ns;
	}
}

uint64_t shares_look(struct shares *all, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;
	struct share *s;

	if (all->in_force != must_share(all)) {
		all->in_force = !all->in_force;
		enforce(all, now_ns);
	}
	if (!all->in_force)
		return next;
	for (s = all->list; s; s = s->next) {
		uint64_t used_ns = all->used(s->arg, now_ns);

		fill(s, now_ns);
		charge(s, used_ns);
		look_at(all, s, now_ns, used_ns);
	}
	while (all->given < all->engines && (s = first(all)))
		give(all, s, now_ns);
	for (s = all->list; s; s = s->next) {
		uint64_t wait = turns_next(&s->turns);

		/* Another account has the turn that this one had. */
		if (s->ended && s->turns.state == TURNS_WAIT)
			act(all, s, turns_hold(&s->turns, s->used_ns));
		if (s->asks && s->limit_ppm && s->left_ns < 0 &&
		    time_for(s, (uint64_t)-s->left_ns) < wait)
			wait = time_for(s, (uint64_t)-s->left_ns) + 1;
		if (wait < next)
			next = wait;
	}
	return next;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The working copy of a snapshot in which the policies of ctl/preempt account for the
 * decisions of a plan: each decision changes the view, so that the next decision of
 * the same plan takes it into account. Private to ctl/preempt.
 */
#ifndef MGPU_PREEMPT_VIEW_H
#define MGPU_PREEMPT_VIEW_H

#include "preempt.h"

/* How a context came by its slots. */
enum view_origin {
	VIEW_RAN,		/* held them before this plan: slots may be taken from it */
	VIEW_GREW,		/* held some, and gets free slots in this plan */
	VIEW_LAUNCHED,		/* gets free slots in this plan, and may preempt for the rest */
	VIEW_PREEMPTING,	/* gets slots that this plan takes from others */
	VIEW_COMING,		/* gets slots that an earlier plan took from others */
};

/**
 * struct view_user - a context that holds slots once all decisions are carried out
 * @ctx: the context, an index into the snapshot
 * @held: slots it then holds
 * @taken: slots of @held that this plan preempts for it
 * @origin: how the context came by its slots
 * @reason: why it got them; only for contexts that got them in this plan
 */
struct view_user {
	size_t ctx;
	unsigned int held;
	unsigned int taken;
	enum view_origin origin;
	enum preempt_reason reason;
};

/**
 * struct view - a snapshot with the decisions of a plan applied
 * @s: the snapshot
 * @p: the parameters
 * @plan: the plan that decisions are added to
 * @user: contexts that hold slots, those of the snapshot by id, then in the order in
 *	which they got slots; @nr_users of them
 * @nr_users: number of entries of @user
 * @count: slots held, by class of the holder
 * @backlog: slots wanted by all contexts with work, by class; half of those of unknown
 *	class count for each class, and an unknown class has the mean of both
 * @free: slots that no context holds
 * @leaving: slots that an earlier plan takes and that are promised to no context
 * @wait: contexts that wait for slots, indices into the snapshot; unordered
 * @nr_wait: number of entries of @wait
 */
struct view {
	const struct preempt_snapshot *s;
	const struct preempt_param *p;
	struct preempt_plan *plan;
	struct view_user user[PREEMPT_SLOTS_MAX];
	size_t nr_users;
	double count[PREEMPT_CLASSES + 1];
	double backlog[PREEMPT_CLASSES + 1];
	unsigned int free;
	unsigned int leaving;
	uint16_t wait[PREEMPT_CTX_MAX];
	size_t nr_wait;
};

/**
 * struct view_newcomer - a context that slots may be preempted for
 * @ctx: the context, an index into the snapshot
 * @user: its index in the view's users, VIEW_NO_USER while it waits without slots
 * @lacks: slots it wants and does not have
 */
struct view_newcomer {
	size_t ctx;
	size_t user;
	unsigned int lacks;
};

#define VIEW_NO_USER	PREEMPT_SLOTS_MAX

static inline unsigned int min_slots(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static inline const struct preempt_ctx *view_ctx(const struct view *v,
						 const struct view_user *u)
{
	return &v->s->ctx[u->ctx];
}

/* Return whether @c has waited for the starvation bound and is not over its share. */
static inline bool view_starves(const struct view *v, const struct preempt_ctx *c)
{
	return c->share != PREEMPT_OVER && v->s->now_ns > c->since_ns &&
	       v->s->now_ns - c->since_ns >= v->p->starve_ns;
}

/*
 * Return whether more contexts wait than there are slots. Then the contexts that a choice
 * leaves over matter as much as those it takes.
 */
static inline bool view_queued(const struct view *v)
{
	return v->nr_wait > v->s->slots;
}

/*
 * Return whether slots may be taken from @u: not if it got slots in this plan or is
 * about to, nor within the keep time of a context that starved before.
 */
static inline bool view_may_lose(const struct view *v, const struct view_user *u)
{
	return u->origin == VIEW_RAN && view_ctx(v, u)->keep_until_ns <= v->s->now_ns;
}

/* Start an empty @plan for the snapshot @s, which preempt_snapshot_check() accepted. */
void view_begin(struct view *v, const struct preempt_snapshot *s,
		const struct preempt_param *p, struct preempt_plan *plan);

/**
 * view_scores() - rate each class by the combinations it would form
 * @v: the view
 * @score: result, per class: mean priority of its combinations with the slots held, times
 *	the square root of its backlog if view_queued(); 0 for all while no slot is held
 */
void view_scores(const struct view *v, double score[PREEMPT_CLASSES + 1]);

/**
 * view_goes_before() - compare two waiting contexts
 * @v: the view
 * @score: of view_scores(), or NULL for first come, first served
 * @a: a waiting context
 * @b: another one
 *
 * A starving context goes first, the one that waits longest among several.
 *
 * Return: whether @a gets slots before @b.
 */
bool view_goes_before(const struct view *v, const double *score,
		      const struct preempt_ctx *a, const struct preempt_ctx *b);

/**
 * view_next_waiting() - find the waiting context that gets slots next
 * @v: the view
 * @score: of view_scores(), or NULL for first come, first served
 * @bounded: use view_goes_before(); else arrival order alone counts
 *
 * Return: its index in @v->wait, or @v->nr_wait when no context waits.
 */
size_t view_next_waiting(const struct view *v, const double *score, bool bounded);

/**
 * view_launch() - give free slots to waiting contexts
 * @v: the view
 * @ranked: order contexts by view_scores(), else by arrival
 * @bounded: starving contexts go first
 *
 * If @ranked, running contexts that lack slots go before waiting ones that do not starve:
 * slots of one context do not slow each other down.
 *
 * When the free slots are used up, slots that an earlier plan is taking follow: no
 * further preemption is needed for them.
 */
void view_launch(struct view *v, bool ranked, bool bounded);

/* Give the free slots that are left to running contexts that want more. */
void view_grow(struct view *v);

/* Return context @ctx as a newcomer; @user as in struct view_newcomer. */
struct view_newcomer view_newcomer(const struct view *v, size_t ctx, size_t user);

/**
 * view_take() - add a preemption to the plan
 * @v: the view
 * @victim: index of the user that loses slots
 * @n: context that gets the slots; its @user and @lacks are updated
 * @d: the decision, of gain_weigh(), with its reason
 *
 * view_give_taken() adds the launch of @n.
 */
void view_take(struct view *v, size_t victim, struct view_newcomer *n,
	       const struct preempt_decision *d);

/* Add a launch for each context that view_take() took slots for. */
void view_give_taken(struct view *v);

#endif /* MGPU_PREEMPT_VIEW_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policies. Each works on a view of the snapshot that it changes with every
 * decision, so that the next one knows of it.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "preempt.h"

/* ---- norm_ipc ---- */

void preempt_norm_cold(struct preempt_norm *t)
{
	*t = (struct preempt_norm){
		.slow = {
			{ 1 / PREEMPT_COLD_CC - 1, 1 / PREEMPT_COLD_CM - 1 },
			{ 1 / PREEMPT_COLD_MC - 1, 1 / PREEMPT_COLD_MM - 1 },
		},
	};
}

static double slow_of(const struct preempt_norm *t, enum preempt_class a,
		      enum preempt_class b)
{
	if (a >= PREEMPT_CLASSES)
		return (slow_of(t, PREEMPT_COMPUTE, b) +
			slow_of(t, PREEMPT_MEMORY, b)) / 2;
	if (b >= PREEMPT_CLASSES)
		return (slow_of(t, a, PREEMPT_COMPUTE) +
			slow_of(t, a, PREEMPT_MEMORY)) / 2;
	/* noise may have it that company helps: nobody plans on that */
	return fmax(t->slow[a][b], 0);
}

double preempt_norm_ipc(const struct preempt_norm *t, enum preempt_class class,
			const double others[PREEMPT_CLASSES + 1])
{
	double slow = 0;

	for (enum preempt_class b = 0; b <= PREEMPT_CLASSES; b++)
		if (others[b] > 0)
			slow += others[b] * slow_of(t, class, b);
	return 1 / (1 + slow);
}

void preempt_norm_observe(struct preempt_norm *t, enum preempt_class class,
			  const double others[PREEMPT_CLASSES + 1], double norm)
{
	double expected[PREEMPT_CLASSES], sum = 0, known = 0, rest;

	if (class >= PREEMPT_CLASSES || !isfinite(norm) || !(norm > 0))
		return;
	for (int b = 0; b < PREEMPT_CLASSES; b++) {
		if (!(others[b] >= 0) || !isfinite(others[b]))
			return;
		known += others[b];
		/* a little for each, so that what seemed free can turn out not to be */
		expected[b] = others[b] * fmax(t->slow[class][b], 0.01);
		sum += expected[b];
	}
	if (!(known > 0))
		return;
	norm = fmin(fmax(norm, PREEMPT_NORM_MIN), PREEMPT_NORM_MAX);
	rest = 1 / norm - 1;
	if (others[PREEMPT_UNKNOWN] > 0) {
		double unknown = others[PREEMPT_UNKNOWN] *
			slow_of(t, class, PREEMPT_UNKNOWN);

		/* who is not known takes the part that it was expected to */
		rest *= sum / (sum + unknown);
	}
	for (int b = 0; b < PREEMPT_CLASSES; b++) {
		double part = expected[b] / sum, weight, *count = &t->count[class][b];

		if (!(others[b] > 0))
			continue;
		/* an observation that is shared with another class tells less */
		*count = fmin(*count + part, PREEMPT_NORM_COUNT);
		weight = part / (*count + PREEMPT_NORM_PRIOR);
		t->slow[class][b] += weight * (rest * part / others[b] -
					       t->slow[class][b]);
	}
}

const char *preempt_norm_check(const struct preempt_norm *t)
{
	for (int a = 0; a < PREEMPT_CLASSES; a++) {
		for (int b = 0; b < PREEMPT_CLASSES; b++) {
			if (!(t->slow[a][b] >= 1 / PREEMPT_NORM_MAX - 1 &&
			      t->slow[a][b] <= 1 / PREEMPT_NORM_MIN))
				return "a slowdown must be from -0.2 to 100";
			if (!(t->count[a][b] >= 0 && t->count[a][b] <= PREEMPT_NORM_COUNT))
				return "a count of observations must be from 0 to 1000";
		}
	}
	return NULL;
}

/* ---- checks ---- */

static bool within(double x, double min, double max)
{
	return x >= min && x <= max;	/* not so for a NaN */
}

const char *preempt_param_check(const struct preempt_param *p)
{
	if (!within(p->cost.a, 0, PREEMPT_COST_MAX) ||
	    !within(p->cost.b, 0, PREEMPT_COST_MAX))
		return "cost coefficients must be from 0 to 1000 cycles per byte";
	if (!(p->cost.a + p->cost.b > 0))
		return "one of the cost coefficients must be above 0";
	if (!within(p->decay_compute, PREEMPT_DECAY_MIN, 1))
		return "decay of compute-intensive contexts must be from 0.5 to 1";
	if (!within(p->decay_memory, PREEMPT_DECAY_MIN, 1))
		return "decay of memory-intensive contexts must be from 0.5 to 1";
	if (!within(p->class_threshold, PREEMPT_THRESHOLD_MIN, PREEMPT_THRESHOLD_MAX))
		return "class threshold must be from 0.05 to 0.95 of the time";
	if (p->starve_ns < PREEMPT_STARVE_MIN_NS || p->starve_ns > PREEMPT_STARVE_MAX_NS)
		return "starvation bound must be from 1 ms to 1 h";
	if (!within(p->min_gain, 0, 1))
		return "least gain must be from 0 to 1";
	return NULL;
}

/* Larger numbers are no measurement, and their products could overflow. */
#define NUMBER_MAX	1e30
#define IPC_MIN		1e-9
#define IPC_MAX		1e9

static const char *ctx_check(const struct preempt_ctx *c)
{
	bool runs;

	if (c->state > PREEMPT_HELD || c->class > PREEMPT_UNKNOWN ||
	    c->share > PREEMPT_OVER)
		return "a context's state, class or share is none";
	if (c->state == PREEMPT_IDLE)
		return c->held || c->coming || c->leaving ?
			"an idle context holds slots" : NULL;
	runs = c->state == PREEMPT_RUNNING;
	if (runs != !!c->held)
		return "a context holds slots exactly while it is running";
	if (c->leaving > c->held)
		return "a context leaves more slots than it holds";
	if (c->coming && c->state == PREEMPT_HELD)
		return "slots are coming for a context that is held";
	if (!c->wanted)
		return "a context that is not idle wants a slot at least";
	if (!within(c->ipc, IPC_MIN, IPC_MAX))
		return "a context's ipc must be above 0";
	if (!within(c->rest_inst, -NUMBER_MAX, NUMBER_MAX) ||
	    !within(c->done_inst, 0, NUMBER_MAX))
		return "a context's instructions are no number";
	if (!within(c->miss, 0, 1))
		return "a context's miss rate must be from 0 to 1";
	if (!within(c->bytes, 0, NUMBER_MAX) || !within(c->tile_cycles, 0, NUMBER_MAX))
		return "a context's bytes or cycles of a tile are no number";
	return NULL;
}

const char *preempt_snapshot_check(const struct preempt_snapshot *s)
{
	unsigned int used, leaving = 0;

	if (s->slots < 1 || s->slots > PREEMPT_SLOTS_MAX)
		return "a device has from 1 to 64 slots";
	if (s->n > PREEMPT_CTX_MAX)
		return "there are more than 4096 contexts";
	if (s->free > s->slots)
		return "more slots are free or held than there are";
	if (!s->norm || preempt_norm_check(s->norm))
		return "the table of norm_ipc is out of range";
	used = s->free;
	for (size_t i = 0; i < s->n; i++) {
		const char *why = ctx_check(&s->ctx[i]);

		if (why)
			return why;
		if (s->ctx[i].held > s->slots - used)
			return "more slots are free or held than there are";
		used += s->ctx[i].held;
		leaving += s->ctx[i].leaving;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (s->ctx[i].coming > leaving)
			return "more slots are coming than are leaving";
		leaving -= s->ctx[i].coming;
	}
	return NULL;
}

enum preempt_class preempt_classify(const struct preempt_param *p, double bound)
{
	if (isnan(bound))
		return PREEMPT_UNKNOWN;
	return bound >= p->class_threshold ? PREEMPT_MEMORY : PREEMPT_COMPUTE;
}

double preempt_cost_cycles(const struct preempt_cost *c, double miss, double bytes)
{
	return (c->a * miss + c->b) * bytes;
}

/* ---- the view ---- */

/* How one that has slots came to them. */
enum origin {
	RAN,		/* had them before: slots may be taken from it */
	LAUNCHED,	/* got free ones in this plan, and may take what it lacks */
	PREEMPTING,	/* gets what this plan takes from others */
	COMING,		/* gets what an earlier plan took from others */
};

struct user {
	size_t ctx;
	unsigned int held;	/* when all decisions are carried out */
	unsigned int taken;	/* of these, by preemption in this plan */
	enum origin origin;
	enum preempt_reason reason;
};

struct view {
	const struct preempt_snapshot *s;
	const struct preempt_param *p;
	struct preempt_plan *plan;
	struct user user[PREEMPT_SLOTS_MAX];	/* in the order of ids, then of coming */
	size_t nr_users;
	double count[PREEMPT_CLASSES + 1];	/* slots held, by class */
	unsigned int free;
	unsigned int leaving;	/* and promised to nobody */
	uint16_t wait[PREEMPT_CTX_MAX];
	size_t nr_wait;
};

static const struct preempt_ctx *ctx_of(const struct view *v, const struct user *u)
{
	return &v->s->ctx[u->ctx];
}

static bool starves(const struct view *v, const struct preempt_ctx *c)
{
	return c->share != PREEMPT_OVER && v->s->now_ns > c->since_ns &&
	       v->s->now_ns - c->since_ns >= v->p->starve_ns;
}

static struct user *add_user(struct view *v, size_t ctx, unsigned int held,
			     enum origin origin, enum preempt_reason reason)
{
	struct user *u = &v->user[v->nr_users++];

	*u = (struct user){
		.ctx = ctx, .held = held, .origin = origin, .reason = reason,
	};
	v->count[v->s->ctx[ctx].class] += held;
	return u;
}

static void begin(struct view *v, const struct preempt_snapshot *s,
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
	plan->n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];

		leaving += c->leaving;
		coming += c->coming;
		if (c->state == PREEMPT_RUNNING) {
			if (c->held + c->coming > c->leaving)
				add_user(v, i, c->held + c->coming - c->leaving,
					 c->coming ? COMING : RAN, 0);
		} else if (c->coming) {
			add_user(v, i, c->coming, COMING, 0);
		} else if (c->state == PREEMPT_WAITING || c->state == PREEMPT_PREEMPTED) {
			v->wait[v->nr_wait++] = (uint16_t)i;
		}
	}
	v->leaving = leaving - coming;
	/* sums come out the same for any order */
	for (size_t i = 1; i < v->nr_users; i++) {
		struct user u = v->user[i];
		size_t k = i;

		for (; k && ctx_of(v, &v->user[k - 1])->id > ctx_of(v, &u)->id; k--)
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
	/* one slot's part of the bound: as many as have slots can have their turn */
	if (reason == PREEMPT_STARVED)
		d->keep_until_ns = v->s->now_ns + v->p->starve_ns / v->s->slots;
}

/* ---- who is next ---- */

/* Combinations in the order of priority; who is not known is between. */
static const double pair_score[PREEMPT_CLASSES + 1][PREEMPT_CLASSES + 1] = {
	[PREEMPT_COMPUTE] = { 1, 2, 1.5 },
	[PREEMPT_MEMORY] = { 2, 0, 1 },
	[PREEMPT_UNKNOWN] = { 1.5, 1, 1.25 },
};

/* Of the combinations of each class with the slots that are held, the mean. */
static void scores(const struct view *v, double score[PREEMPT_CLASSES + 1])
{
	double held = 0;

	for (int b = 0; b <= PREEMPT_CLASSES; b++)
		held += v->count[b];
	for (int a = 0; a <= PREEMPT_CLASSES; a++) {
		score[a] = 0;
		for (int b = 0; b <= PREEMPT_CLASSES; b++)
			score[a] += held > 0 ? v->count[b] * pair_score[a][b] / held : 0;
	}
}

static bool earlier(const struct preempt_ctx *a, const struct preempt_ctx *b)
{
	if (a->arrival_ns != b->arrival_ns)
		return a->arrival_ns < b->arrival_ns;
	return a->id < b->id;
}

/* Without scores (those of a policy that knows none) first come, first served. */
static bool goes_before(const struct view *v, const double *score,
			const struct preempt_ctx *a, const struct preempt_ctx *b)
{
	bool late = starves(v, a), ran;

	if (late != starves(v, b))
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

/* The place in the list of who is next, or nr_wait. */
static size_t next_waiting(const struct view *v, const double *score, bool bounded)
{
	size_t best = v->nr_wait;

	for (size_t k = 0; k < v->nr_wait; k++) {
		const struct preempt_ctx *a = &v->s->ctx[v->wait[k]], *b;

		b = best < v->nr_wait ? &v->s->ctx[v->wait[best]] : NULL;
		if (!b || (bounded ? goes_before(v, score, a, b) : earlier(a, b)))
			best = k;
	}
	return best;
}

static unsigned int min_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static size_t take_waiting(struct view *v, size_t place)
{
	size_t ctx = v->wait[place];

	v->wait[place] = v->wait[--v->nr_wait];
	return ctx;
}

/*
 * Free slots to those that wait, and then those that an earlier plan is taking from
 * others, for which nobody need be preempted again. @ranked: by combination.
 * @bounded: who has waited for too long goes first.
 */
static void launch(struct view *v, bool ranked, bool bounded)
{
	while (v->nr_wait && v->free + v->leaving) {
		double score[PREEMPT_CLASSES + 1];
		enum preempt_reason reason;
		const struct preempt_ctx *c;
		unsigned int slots;
		size_t ctx;

		scores(v, score);
		ctx = take_waiting(v, next_waiting(v, ranked ? score : NULL, bounded));
		c = &v->s->ctx[ctx];
		reason = bounded && starves(v, c) ? PREEMPT_STARVED : PREEMPT_FREE_SLOT;
		slots = min_of(c->wanted, v->free);
		if (slots) {
			v->free -= slots;
			give(v, ctx, slots, false, reason);
			add_user(v, ctx, slots, LAUNCHED, reason);
		}
		if (slots < c->wanted && v->leaving) {
			unsigned int coming = min_of(c->wanted - slots, v->leaving);

			v->leaving -= coming;
			if (!slots) {
				add_user(v, ctx, coming, COMING, reason);
			} else {
				v->user[v->nr_users - 1].held += coming;
				v->count[c->class] += coming;
			}
		}
	}
}

/* What is left goes to those that run and have use for more. */
static void grow(struct view *v)
{
	for (size_t k = 0; k < v->nr_users && v->free; k++) {
		struct user *u = &v->user[k];
		const struct preempt_ctx *c = ctx_of(v, u);
		unsigned int slots;

		/* one that leaves is not called back before it is gone */
		if (u->origin != RAN || c->leaving || u->held >= c->wanted)
			continue;
		slots = min_of(c->wanted - u->held, v->free);
		v->free -= slots;
		u->held += slots;
		v->count[c->class] += slots;
		give(v, u->ctx, slots, false, PREEMPT_GROW);
	}
}

/* ---- what a preemption brings ---- */

/* A newcomer: one that waits, or a user that lacks slots. */
struct newcomer {
	size_t ctx;
	size_t user;		/* its place among the users, or NO_USER */
	unsigned int lacks;
};

#define NO_USER	PREEMPT_SLOTS_MAX

/* What @held slots of its @wanted are worth in company. */
static double value(const struct view *v, const struct preempt_ctx *c, double held,
		    const double count[PREEMPT_CLASSES + 1])
{
	double others[PREEMPT_CLASSES + 1];

	if (!(held > 0))
		return 0;
	memcpy(others, count, sizeof(others));
	others[c->class] -= held;
	return fmin(held / c->wanted, 1) * preempt_norm_ipc(v->s->norm, c->class, others);
}

/* Until the first of those that run ends, in cycles. */
static double window(const struct view *v)
{
	double least = INFINITY;

	for (size_t k = 0; k < v->nr_users; k++) {
		const struct user *u = &v->user[k];
		const struct preempt_ctx *c = ctx_of(v, u);
		double norm;

		if (u->origin == PREEMPTING || u->origin == COMING)
			continue;
		norm = value(v, c, u->held, v->count);
		least = fmin(least, fmax(c->rest_inst, 0) / (c->ipc * c->wanted * norm));
	}
	return least;
}

/*
 * Fills in what it means that user @victim gives @slots to @n, but for the method;
 * @rates: sums of norm_ipc before, of those that stay with decay, and after.
 */
static void rates(const struct view *v, size_t victim, const struct newcomer *n,
		  unsigned int slots, double rate[3], double *miss)
{
	const struct preempt_ctx *leaves = ctx_of(v, &v->user[victim]);
	const struct preempt_ctx *comes = &v->s->ctx[n->ctx];
	double count[PREEMPT_CLASSES + 1], stay = 0;

	memcpy(count, v->count, sizeof(count));
	count[leaves->class] -= slots;
	count[comes->class] += slots;
	rate[0] = 0;
	rate[1] = 0;
	rate[2] = n->user == NO_USER ? value(v, comes, slots, count) : 0;
	*miss = 0;
	for (size_t k = 0; k < v->nr_users; k++) {
		const struct user *u = &v->user[k];
		const struct preempt_ctx *c = ctx_of(v, u);
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

/* A decision with all figures; what it asks for is not judged. */
static void weigh(const struct view *v, size_t victim, const struct newcomer *n,
		  unsigned int slots, enum preempt_method method, double w,
		  const double rate[3], double miss, struct preempt_decision *d)
{
	const struct user *u = &v->user[victim];
	const struct preempt_ctx *c = ctx_of(v, u);

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
		/* all work on until the tiles end */
		d->cost = c->tile_cycles;
		d->during = fmin(d->cost, w) * rate[0];
		d->after = fmax(w - d->cost, 0) * rate[2];
		break;
	case PREEMPT_FLUSH:
		d->after = w * rate[2] - c->done_inst * slots / c->held /
			(c->ipc * c->wanted);
		break;
	}
	d->gain = d->during + d->after - d->before;
}

/* Nothing is taken from who just came, nor from who had waited for too long. */
static bool may_lose(const struct view *v, const struct user *u)
{
	return u->origin == RAN && ctx_of(v, u)->keep_until_ns <= v->s->now_ns;
}

/* Do it, and see to it that the slots are given to the newcomer in the end. */
static void take(struct view *v, size_t victim, struct newcomer *n,
		 const struct preempt_decision *d)
{
	struct user *u = &v->user[victim];

	*decision(v) = *d;
	u->held -= d->slots;
	v->count[ctx_of(v, u)->class] -= d->slots;
	if (!u->held) {
		v->nr_users--;
		memmove(u, u + 1, (v->nr_users - victim) * sizeof(*u));
		if (n->user != NO_USER && n->user > victim)
			n->user--;
	}
	if (n->user == NO_USER) {
		for (size_t k = 0; k < v->nr_wait; k++) {
			if (v->wait[k] == n->ctx) {
				take_waiting(v, k);
				break;
			}
		}
		n->user = v->nr_users;
		add_user(v, n->ctx, d->slots, PREEMPTING, d->reason);
	} else {
		v->user[n->user].held += d->slots;
		v->count[v->s->ctx[n->ctx].class] += d->slots;
	}
	v->user[n->user].taken += d->slots;
	n->lacks -= d->slots;
}

static void give_taken(struct view *v)
{
	for (size_t k = 0; k < v->nr_users; k++) {
		const struct user *u = &v->user[k];

		if (u->taken)
			give(v, u->ctx, u->taken, true, u->reason);
	}
}

/* A newcomer that lacks what it wants; a user's place when it has some already. */
static struct newcomer newcomer(const struct view *v, size_t ctx, size_t user)
{
	return (struct newcomer){
		.ctx = ctx, .user = user,
		.lacks = v->s->ctx[ctx].wanted -
			(user == NO_USER ? 0 : min_of(v->s->ctx[ctx].wanted,
						      v->user[user].held)),
	};
}

/*
 * Which of two is better. One that takes longer than the window has no figures to go
 * by, and must not win by losing nothing: then the sooner, the better.
 */
static bool gains_more(const struct preempt_decision *a, const struct preempt_decision *b)
{
	bool ends = a->cost < a->window, other = b->cost < b->window;

	if (ends != other)
		return ends;
	return ends ? a->gain > b->gain : a->cost < b->cost;
}

/*
 * The method that gains most for taking @slots, in @d. @must: whether it pays does
 * not matter. Returns whether there is one.
 */
static bool best_method(const struct view *v, size_t victim, const struct newcomer *n,
			unsigned int slots, double w, bool must,
			struct preempt_decision *d)
{
	const struct preempt_ctx *c = ctx_of(v, &v->user[victim]);
	double rate[3], miss;
	bool found = false;

	rates(v, victim, n, slots, rate, &miss);
	/* whatever it costs: what comes after is no better */
	if (!must && !(rate[2] > rate[0]))
		return false;
	for (enum preempt_method m = 0; m < PREEMPT_METHODS; m++) {
		struct preempt_decision try;

		if (m == PREEMPT_FLUSH && !c->idempotent)
			continue;
		weigh(v, victim, n, slots, m, w, rate, miss, &try);
		if (!must && !(try.cost < w && try.gain > v->p->min_gain * try.before))
			continue;
		if (!found || gains_more(&try, d)) {
			*d = try;
			found = true;
		}
	}
	return found;
}

/* ---- who has waited for too long ---- */

/* Whose slots are taken first when somebody's must be. */
static int share_rank(const struct preempt_ctx *c)
{
	return c->share == PREEMPT_OVER ? 0 : c->share == PREEMPT_EVEN ? 1 : 2;
}

static void relieve(struct view *v)
{
	for (;;) {
		size_t place = next_waiting(v, NULL, true), victim = v->nr_users;
		struct preempt_decision d = { 0 };
		struct newcomer n;
		double w;

		if (place == v->nr_wait || !starves(v, &v->s->ctx[v->wait[place]]))
			return;
		n = newcomer(v, v->wait[place], NO_USER);
		w = window(v);
		for (size_t k = 0; k < v->nr_users; k++) {
			const struct user *u = &v->user[k];
			struct preempt_decision try;
			int better;

			/* one slot ends its waiting; for the others it has to pay */
			if (!may_lose(v, u) ||
			    !best_method(v, k, &n, 1, w, true, &try))
				continue;
			better = victim == v->nr_users ? -1 :
				share_rank(ctx_of(v, u)) -
				share_rank(ctx_of(v, &v->user[victim]));
			if (better < 0 || (!better && gains_more(&try, &d))) {
				victim = k;
				d = try;
			}
		}
		if (victim == v->nr_users)
			return;
		d.reason = PREEMPT_STARVED;
		take(v, victim, &n, &d);
	}
}

/* ---- mgpu: if it pays ---- */

/* All who may take slots: those that lack some, and the next one of each class. */
static size_t newcomers(const struct view *v, struct newcomer *n)
{
	size_t best[PREEMPT_CLASSES + 1], nr = 0;
	double score[PREEMPT_CLASSES + 1];

	for (size_t k = 0; k < v->nr_users; k++) {
		const struct user *u = &v->user[k];
		const struct preempt_ctx *c = ctx_of(v, u);

		if ((u->origin == LAUNCHED || u->origin == PREEMPTING) &&
		    c->share != PREEMPT_OVER && u->held < c->wanted)
			n[nr++] = newcomer(v, u->ctx, k);
	}
	for (int a = 0; a <= PREEMPT_CLASSES; a++)
		best[a] = v->nr_wait;
	scores(v, score);
	for (size_t k = 0; k < v->nr_wait; k++) {
		const struct preempt_ctx *c = &v->s->ctx[v->wait[k]];
		size_t *b = &best[c->class];

		if (c->share != PREEMPT_OVER &&
		    (*b == v->nr_wait ||
		     goes_before(v, score, c, &v->s->ctx[v->wait[*b]])))
			*b = k;
	}
	/* in the order of priority, for equal gains */
	for (int a = 0; a <= PREEMPT_CLASSES; a++) {
		size_t first = PREEMPT_CLASSES + 1;

		for (size_t b = 0; b <= PREEMPT_CLASSES; b++) {
			if (best[b] < v->nr_wait &&
			    (first > PREEMPT_CLASSES ||
			     goes_before(v, score, &v->s->ctx[v->wait[best[b]]],
					 &v->s->ctx[v->wait[best[first]]])))
				first = b;
		}
		if (first > PREEMPT_CLASSES)
			break;
		n[nr++] = newcomer(v, v->wait[best[first]], NO_USER);
		best[first] = v->nr_wait;
	}
	return nr;
}

static void mgpu_preempt(struct view *v)
{
	struct newcomer n[PREEMPT_SLOTS_MAX + PREEMPT_CLASSES + 1];

	for (;;) {
		size_t nr = newcomers(v, n), who = nr, victim = 0;
		struct preempt_decision d = { 0 };
		double w = window(v);

		for (size_t i = 0; i < nr; i++) {
			for (size_t k = 0; k < v->nr_users; k++) {
				struct preempt_decision try;

				if (!may_lose(v, &v->user[k]) ||
				    !best_method(v, k, &n[i],
						 min_of(n[i].lacks, v->user[k].held),
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
		take(v, victim, &n[who], &d);
	}
}

static void mgpu_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			struct preempt_plan *plan)
{
	struct view v;

	begin(&v, s, p, plan);
	launch(&v, true, true);
	grow(&v);
	relieve(&v);
	mgpu_preempt(&v);
	give_taken(&v);
}

/* ---- the others ---- */

static void none_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			struct preempt_plan *plan)
{
	struct view v;

	begin(&v, s, p, plan);
	launch(&v, false, false);
	grow(&v);
}

/* Slots for @n from who has run for longest, until it has all or there are none. */
static void take_oldest(struct view *v, struct newcomer *n, enum preempt_method method)
{
	while (n->lacks) {
		size_t victim = v->nr_users;
		struct preempt_decision d;
		const struct preempt_ctx *c;
		double rate[3], miss;
		unsigned int slots;

		for (size_t k = 0; k < v->nr_users; k++) {
			if (may_lose(v, &v->user[k]) &&
			    (victim == v->nr_users || ctx_of(v, &v->user[k])->since_ns <
						      ctx_of(v, &v->user[victim])->since_ns))
				victim = k;
		}
		if (victim == v->nr_users)
			return;
		c = ctx_of(v, &v->user[victim]);
		slots = min_of(n->lacks, v->user[victim].held);
		rates(v, victim, n, slots, rate, &miss);
		weigh(v, victim, n, slots, method == PREEMPT_FLUSH && !c->idempotent ?
		      PREEMPT_SWITCH : method, window(v), rate, miss, &d);
		d.reason = starves(v, &v->s->ctx[n->ctx]) ? PREEMPT_STARVED : PREEMPT_RULE;
		take(v, victim, n, &d);
	}
}

/* Who has just come has its slots at once, whoever has them. */
static void always_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			  struct preempt_plan *plan, enum preempt_method method)
{
	struct newcomer n;
	struct view v;

	begin(&v, s, p, plan);
	launch(&v, false, true);
	grow(&v);
	for (size_t k = 0; k < v.nr_users; k++) {
		if (v.user[k].origin != LAUNCHED)
			continue;
		n = newcomer(&v, v.user[k].ctx, k);
		/* who was preempted does not preempt in turn: that would have no end */
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
			    (c->state == PREEMPT_WAITING || starves(&v, c)) &&
			    (best == v.nr_wait ||
			     goes_before(&v, NULL, c, &s->ctx[v.wait[best]])))
				best = k;
		}
		if (best == v.nr_wait)
			break;
		n = newcomer(&v, v.wait[best], NO_USER);
		take_oldest(&v, &n, method);
		if (n.user == NO_USER)
			break;
	}
	give_taken(&v);
}

static void switch_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			  struct preempt_plan *plan)
{
	always_decide(s, p, plan, PREEMPT_SWITCH);
}

static void drain_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			 struct preempt_plan *plan)
{
	always_decide(s, p, plan, PREEMPT_DRAIN);
}

static void flush_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
			 struct preempt_plan *plan)
{
	always_decide(s, p, plan, PREEMPT_FLUSH);
}

const struct preempt_ops preempt_none = {
	.name = "none",
	.summary = "first come, first served; nobody is preempted",
	.decide = none_decide,
};

const struct preempt_ops preempt_always = {
	.name = "always",
	.summary = "a newcomer has its slots at once, by switching",
	.decide = switch_decide,
};

const struct preempt_ops preempt_drain = {
	.name = "drain",
	.summary = "a newcomer has its slots when what runs there has ended",
	.decide = drain_decide,
};

const struct preempt_ops preempt_flush = {
	.name = "flush",
	.summary = "a newcomer has its slots at once, work that may be lost is",
	.decide = flush_decide,
};

const struct preempt_ops preempt_mgpu = {
	.name = "mgpu",
	.summary = "the combination with the largest sum of norm_ipc, if getting there pays",
	.decide = mgpu_decide,
};

const struct preempt_ops *const preempt_all[] = {
	&preempt_none, &preempt_always, &preempt_drain, &preempt_flush, &preempt_mgpu, NULL,
};

const struct preempt_ops *preempt_find(const char *name)
{
	for (size_t i = 0; preempt_all[i]; i++)
		if (!strcmp(preempt_all[i]->name, name))
			return preempt_all[i];
	return NULL;
}

int preempt_decide(const struct preempt_ops *ops, const struct preempt_snapshot *s,
		   const struct preempt_param *p, struct preempt_plan *plan)
{
	plan->n = 0;
	if (preempt_param_check(p) || preempt_snapshot_check(s))
		return -EINVAL;
	ops->decide(s, p, plan);
	return 0;
}

static uint64_t later_than(uint64_t now, uint64_t t, uint64_t best)
{
	return t > now && t < best ? t : best;
}

uint64_t preempt_wake_ns(const struct preempt_snapshot *s, const struct preempt_param *p)
{
	uint64_t wake = UINT64_MAX;
	bool waiting = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];

		if ((c->state != PREEMPT_WAITING && c->state != PREEMPT_PREEMPTED) ||
		    c->share == PREEMPT_OVER)
			continue;
		waiting = true;
		if (c->since_ns <= UINT64_MAX - p->starve_ns)
			wake = later_than(s->now_ns, c->since_ns + p->starve_ns, wake);
	}
	for (size_t i = 0; waiting && i < s->n; i++)
		if (s->ctx[i].state == PREEMPT_RUNNING)
			wake = later_than(s->now_ns, s->ctx[i].keep_until_ns, wake);
	return wake;
}

/* ---- names ---- */

#define NAME(table, i) \
	((unsigned int)(i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : "?")

const char *preempt_class_name(enum preempt_class c)
{
	static const char *const name[] = { "compute", "memory", "unknown" };

	return NAME(name, c);
}

const char *preempt_state_name(enum preempt_state s)
{
	static const char *const name[] = {
		"idle", "waiting", "running", "preempted", "held",
	};

	return NAME(name, s);
}

const char *preempt_method_name(enum preempt_method m)
{
	static const char *const name[] = { "switch", "drain", "flush" };

	return NAME(name, m);
}

const char *preempt_action_name(enum preempt_action a)
{
	static const char *const name[] = { "launch", "resume", "preempt" };

	return NAME(name, a);
}

const char *preempt_reason_name(enum preempt_reason r)
{
	static const char *const name[] = {
		"free-slot", "grow", "gain", "starved", "rule",
	};

	return NAME(name, r);
}

// SPDX-License-Identifier: GPL-2.0-only
/* mgpud's view of compute contexts, and requests to the kernel. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contexts/ctx_view.h"
#include "contexts/kind.h"

/* No limit: the kernel gives the job all slots that it can use. */
#define ALL	UINT32_MAX

void ctx_view_init(struct ctx_view *v, const struct preempt_param *param)
{
	memset(v, 0, sizeof(*v));
	v->param = *param;
	analyse_init(&v->analyse);
}

void ctx_view_free(struct ctx_view *v)
{
	free(v->tracks);
	free(v->vgpus);
	free(v->ctx);
	free(v->if_ended);
	free(v->info);
	memset(v, 0, sizeof(*v));
}

static int compare(const void *a, const void *b)
{
	const struct ctx_track *x = a, *y = b;

	if (x->vgpu != y->vgpu)
		return x->vgpu < y->vgpu ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static struct ctx_track *find(const struct ctx_view *v, uint32_t vgpu, uint32_t id)
{
	const struct ctx_track key = { .vgpu = vgpu, .id = id };

	if (!v->nr_tracks)
		return NULL;
	return bsearch(&key, v->tracks, v->nr_tracks, sizeof(*v->tracks), compare);
}

/* ---- what the guard is told ---- */

static size_t watched(const struct ctx_view *v, uint32_t dev)
{
	size_t i = 0;

	while (i < v->nr_watched && v->watch[i].dev != dev)
		i++;
	return i;
}

/* Return the device's entry, NULL if too many others are watched. */
static struct guard_watch *watch(struct ctx_view *v, uint32_t dev)
{
	size_t i = watched(v, dev);

	if (i == CTX_DEVS)
		return NULL;
	if (i == v->nr_watched)
		v->watch[v->nr_watched++] = (struct guard_watch){ .dev = dev };
	return &v->watch[i];
}

/* Account for work units that a context did since the last look. */
static void worked(struct ctx_view *v, const struct ctx_track *t, double inst)
{
	size_t i = watched(v, t->dev);
	struct analyse_guess g;

	if (i == v->nr_watched || !(inst > 0 || inst < 0))
		return;
	analyse_guess(&v->analyse, &v->param, t->kind, t->size, &g);
	v->work[i] += inst / g.ipc;
}

uint64_t ctx_view_trial_ns(const struct ctx_view *v, uint32_t dev)
{
	size_t i = watched(v, dev);

	return i < v->nr_watched && v->watch[i].trying ? v->watch[i].until_ns : UINT64_MAX;
}

/* ---- looking ---- */

/* The job of the last look is complete: there is none or another one. */
static void ended(struct ctx_view *v, const struct ctx_track *t)
{
	if (!t->arrived_ns)
		return;
	worked(v, t, t->job_inst - t->done);
	analyse_done(&v->analyse, t->kind, t->size, t->job_inst);
}

static double miss_of(const struct ctx_view *v, const char *op, double size)
{
	struct analyse_guess g;

	analyse_guess(&v->analyse, &v->param, kind_of(op), size, &g);
	return g.miss;
}

/* Mean miss rate of the contexts beside @c, weighted by slots; 0 if @c is alone. */
static double miss_beside(const struct ctx_view *v, const struct mgpu_ctx *c,
			  const struct mgpu_ctx *list, size_t n)
{
	double miss = 0, slots = 0;

	for (size_t i = 0; i < n; i++) {
		if (&list[i] == c || list[i].dev_id != c->dev_id || !list[i].slots)
			continue;
		miss += list[i].slots * miss_of(v, list[i].op, (double)list[i].job_bytes);
		slots += list[i].slots;
	}
	return slots > 0 ? miss / slots : 0;
}

/*
 * Measure the saves and restores since the last look. A switch counts as both, since a
 * slot that is taken is given back later.
 */
static void measure(struct ctx_view *v, struct ctx_track *t, const struct mgpu_ctx *c,
		    const struct mgpu_ctx *list, size_t n)
{
	bool same = t->arrived_ns && t->arrived_ns == c->arrived_ns;

	if (same && c->copies > t->copies && c->switch_ns > t->switch_ns &&
	    c->live_bytes && c->engine_ns)
		v->sample[v->nr_samples++ % CTX_SAMPLES] = (struct cost_sample){
			.miss = miss_beside(v, c, list, n),
			.bytes = c->live_bytes,
			.cycles = 2.0 * (double)(c->switch_ns - t->switch_ns) /
				(double)(c->copies - t->copies) *
				(double)c->engine_cycles / (double)c->engine_ns,
		};
	t->copies = c->copies;
	t->switch_ns = c->switch_ns;
}

static void look(struct ctx_view *v, struct ctx_track *t, const struct mgpu_ctx *c,
		 uint64_t now_ns)
{
	struct analyse_guess g;

	t->seen = true;
	if (t->arrived_ns != c->arrived_ns) {
		ended(v, t);
		t->arrived_ns = c->arrived_ns;
		t->keep_until_ns = 0;
		t->coming = 0;
		t->draining = 0;
		t->preemptions = c->preemptions;
		t->since_ns = c->slots ? now_ns : c->arrived_ns;
		if (c->arrived_ns) {
			t->kind = kind_of(c->op);
			t->size = fmax(1, (double)c->job_bytes);
			t->job_inst = fmax(1, (double)c->job_inst);
			analyse_guess(&v->analyse, &v->param, t->kind, t->size, &g);
			t->inst = g.inst;
		}
		t->done = 0;
	} else if (!t->slots != !c->slots) {
		t->since_ns = now_ns;
	}
	worked(v, t, (double)c->job_inst_done - t->done);
	t->done = (double)c->job_inst_done;
	if (c->slots > t->slots)
		t->coming -= t->coming < c->slots - t->slots ? t->coming :
							      c->slots - t->slots;
	t->slots = c->slots;
}

int ctx_view_look(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
		  uint64_t now_ns)
{
	struct ctx_track *tracks = calloc(n ? n : 1, sizeof(*tracks));

	if (!tracks)
		return -ENOMEM;
	for (size_t i = 0; i < v->nr_tracks; i++)
		v->tracks[i].seen = false;
	for (size_t i = 0; i < n; i++) {
		struct ctx_track *old = find(v, list[i].vgpu_id, list[i].id);

		if (old) {
			old->seen = true;
			tracks[i] = *old;
			measure(v, &tracks[i], &list[i], list, n);
		} else {
			tracks[i] = (struct ctx_track){
				.dev = list[i].dev_id,
				.vgpu = list[i].vgpu_id, .id = list[i].id,
				.switch_ns = list[i].switch_ns,
				.copies = list[i].copies,
			};
		}
		look(v, &tracks[i], &list[i], now_ns);
	}
	for (size_t i = 0; i < v->nr_tracks; i++)
		if (!v->tracks[i].seen)
			ended(v, &v->tracks[i]);
	qsort(tracks, n, sizeof(*tracks), compare);
	free(v->tracks);
	v->tracks = tracks;
	v->nr_tracks = n;
	return 0;
}

void ctx_view_ran(struct ctx_view *v, const struct mgpu_run_key *key,
		  const struct mgpu_run *more)
{
	const char *op = mgpu_ctx_op_name(key->op);
	double others[PREEMPT_CLASSES + 1] = { 0 }, inst, bytes, ipc, bound;
	const struct ctx_track *peer;
	struct analyse_guess g;
	uint32_t kind;

	if (!op || !more->engine_cycles || !more->inst)
		return;
	kind = kind_of(op);
	inst = (double)more->inst;
	bytes = (double)more->bytes;
	ipc = inst / (double)more->engine_cycles;
	bound = bytes / (bytes + CTX_BALANCE * inst);
	analyse_memory(&v->analyse, kind, bound, bound);
	if (!key->peer_vgpu) {
		analyse_alone(&v->analyse, kind, ipc);
		return;
	}
	/* learn nothing if the context beside it is gone or has no job */
	peer = find(v, key->peer_vgpu, key->peer);
	if (!peer || !peer->kind)
		return;
	analyse_guess(&v->analyse, &v->param, peer->kind, peer->size, &g);
	others[g.class] = 1;
	analyse_shared(&v->analyse, &v->param, kind, others, ipc);
}

/* ---- shares ---- */

bool ctx_view_promises(const struct mgpu_dev_info *dev)
{
	/* an older module does not tell: assume that its policy promises shares */
	return dev->policy_shares || !mgpu_has(dev, MGPU_A_DEV_POLICY_SHARES);
}

static int compare_vgpu(const void *a, const void *b)
{
	const struct ctx_vgpu *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static struct ctx_vgpu *find_vgpu(const struct ctx_view *v, uint32_t id)
{
	const struct ctx_vgpu key = { .id = id };

	if (!v->nr_vgpus)
		return NULL;
	return bsearch(&key, v->vgpus, v->nr_vgpus, sizeof(*v->vgpus), compare_vgpu);
}

/* Difference of two counters as a part of the time between them. */
static double used(uint64_t now, uint64_t then, uint64_t ns)
{
	return now > then && ns ? (double)(now - then) / (double)ns : 0;
}

int ctx_view_shares(struct ctx_view *v, const struct mgpu_vgpu_info *vgpus, size_t n,
		    const struct mgpu_dev_info *devs, size_t nr_devs, uint64_t now_ns)
{
	struct ctx_vgpu *list = calloc(n ? n : 1, sizeof(*list));
	double *use = calloc(n ? n : 1, sizeof(*use));

	if (!list || !use) {
		free(list);
		free(use);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct mgpu_vgpu_info *g = &vgpus[i];
		const struct ctx_vgpu *old = find_vgpu(v, g->id);

		list[i] = (struct ctx_vgpu){
			.id = g->id, .engine_ns = g->stats.engine_ns,
			.limited_ns = g->stats.limited_ns, .at_ns = now_ns,
		};
		if (!old || old->at_ns >= now_ns)
			continue;
		use[i] = used(g->stats.engine_ns, old->engine_ns, now_ns - old->at_ns);
		if (used(g->stats.limited_ns, old->limited_ns, now_ns - old->at_ns) >
		    CTX_LIMITED)
			list[i].share = PREEMPT_OVER;
	}
	for (size_t d = 0; d < nr_devs; d++) {
		double all = 0, weights = 0;

		if (!ctx_view_promises(&devs[d]))
			continue;
		for (size_t i = 0; i < n; i++) {
			if (vgpus[i].dev_id != devs[d].id || !(use[i] > 0))
				continue;
			all += use[i];
			weights += vgpus[i].weight;
		}
		/* with idle slots no vGPU is short of its share */
		if (all < CTX_BUSY * devs[d].slots)
			continue;
		for (size_t i = 0; i < n; i++) {
			double due = all * vgpus[i].weight / weights;

			if (vgpus[i].dev_id != devs[d].id || !(use[i] > 0) ||
			    list[i].share == PREEMPT_OVER)
				continue;
			if (use[i] > due * (1 + CTX_SHARE_SLACK))
				list[i].share = PREEMPT_OVER;
			else if (use[i] < due * (1 - CTX_SHARE_SLACK))
				list[i].share = PREEMPT_BELOW;
		}
	}
	free(use);
	qsort(list, n, sizeof(*list), compare_vgpu);
	free(v->vgpus);
	v->vgpus = list;
	v->nr_vgpus = n;
	return 0;
}

/* ---- a snapshot ---- */

static struct ctx_track *track(const struct ctx_view *v, size_t ctx)
{
	return find(v, v->info[ctx]->vgpu_id, v->info[ctx]->id);
}

static enum preempt_state state_of(const struct mgpu_ctx *c, uint64_t lost)
{
	if (c->slots)
		return PREEMPT_RUNNING;
	if (c->state == MGPU_CTX_STATE_HELD)
		return PREEMPT_HELD;
	if (!c->arrived_ns)
		return PREEMPT_IDLE;
	/* a context that is only kept off was not preempted */
	return lost ? PREEMPT_PREEMPTED : PREEMPT_WAITING;
}

static struct preempt_ctx describe(struct ctx_view *v, const struct mgpu_ctx *c,
				   const struct ctx_track *t, uint32_t slots)
{
	uint64_t lost = c->preemptions - t->preemptions;
	enum preempt_state state = state_of(c, lost);
	const struct ctx_vgpu *g = find_vgpu(v, c->vgpu_id);
	bool runs = state == PREEMPT_RUNNING;
	struct preempt_ctx p = {
		.id = (uint64_t)c->vgpu_id << 32 | c->id,
		.vgpu = c->vgpu_id,
		.state = state,
		.class = PREEMPT_UNKNOWN,
		.share = g ? g->share : PREEMPT_EVEN,
	};
	struct analyse_guess guess;
	unsigned int leaving = 0;

	if (state == PREEMPT_IDLE)
		return p;
	if (runs && c->slots > c->slots_allowed)
		leaving = c->slots - c->slots_allowed;
	if (runs && t->draining)
		leaving = c->slots;
	analyse_guess(&v->analyse, &v->param, t->kind, t->size, &guess);
	p.class = guess.class;
	p.held = runs ? c->slots : 0;
	p.leaving = leaving;
	p.wanted = c->slots_wanted < slots ? c->slots_wanted : slots;
	p.wanted = p.wanted ? p.wanted : 1;
	p.ipc = guess.ipc;
	p.rest_inst = analyse_rest(t->inst, (double)c->job_inst_done);
	/* the module drains and flushes whole jobs */
	p.done_inst = (double)c->job_inst_done;
	p.tile_cycles = fmin(p.rest_inst / (p.ipc * (runs ? c->slots : 1)), 1e30);
	p.miss = guess.miss;
	p.bytes = c->live_bytes;
	p.idempotent = c->idempotent;
	p.was_preempted = lost;
	p.arrival_ns = c->arrived_ns;
	p.since_ns = t->since_ns;
	p.keep_until_ns = t->keep_until_ns;
	return p;
}

static bool waits(const struct preempt_ctx *c)
{
	return c->state == PREEMPT_WAITING || c->state == PREEMPT_PREEMPTED;
}

/* Keep promises while slots are leaving, in the order of contexts. */
static void promise(struct ctx_view *v, struct preempt_snapshot *s)
{
	unsigned int leaving = 0;

	for (size_t i = 0; i < s->n; i++)
		leaving += v->ctx[i].leaving;
	for (size_t i = 0; i < s->n; i++) {
		struct ctx_track *t = track(v, i);
		struct preempt_ctx *c = &v->ctx[i];

		if (c->state == PREEMPT_HELD)
			t->coming = 0;
		if (t->coming > leaving)
			t->coming = leaving;
		leaving -= t->coming;
		c->coming = t->coming;
	}
}

/* Tell the guard of the device what happened since the last snapshot. */
static void guard(struct ctx_view *v, struct preempt_snapshot *s, uint32_t dev)
{
	struct guard_watch *w = watch(v, dev);
	bool waiting = false;

	if (!w)
		return;
	for (size_t i = 0; i < s->n; i++)
		waiting |= waits(&s->ctx[i]);
	guard_look(&v->analyse.guard, w, s->now_ns, guard_rate(s), v->work[w - v->watch],
		   waiting);
	v->work[w - v->watch] = 0;
	guard_allow(&v->analyse.guard, w, s->now_ns, &s->guard);
}

int ctx_view_snapshot(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
		      const struct mgpu_dev_info *dev, uint64_t now_ns,
		      struct preempt_snapshot *s)
{
	uint32_t slots = dev->slots < PREEMPT_SLOTS_MAX ? dev->slots : PREEMPT_SLOTS_MAX;
	uint32_t most = dev->engines > slots ? dev->engines : slots;
	size_t room = n ? n : 1;
	uint64_t held = 0;

	free(v->ctx);
	free(v->if_ended);
	free(v->info);
	v->ctx = calloc(room, sizeof(*v->ctx));
	v->if_ended = calloc(room, sizeof(*v->if_ended));
	v->info = calloc(room, sizeof(*v->info));
	if (!v->ctx || !v->if_ended || !v->info)
		return -ENOMEM;
	*s = (struct preempt_snapshot){
		.now_ns = now_ns,
		.ctx = v->ctx,
		.norm = &v->analyse.norm,
	};
	for (size_t i = 0; i < n; i++) {
		const struct ctx_track *t = find(v, list[i].vgpu_id, list[i].id);
		struct preempt_ctx c;

		if (list[i].dev_id != dev->id || !t)
			continue;
		c = describe(v, &list[i], t, slots ? slots : 1);
		held += c.held;
		/* skip idle contexts: guests may have any number of them */
		if (c.state == PREEMPT_IDLE || s->n == PREEMPT_CTX_MAX)
			continue;
		v->info[s->n] = &list[i];
		v->ctx[s->n++] = c;
	}
	if (held > most || held > PREEMPT_SLOTS_MAX)
		return -EAGAIN;
	/* slots that the device lost are held until their tiles end */
	s->slots = held > slots ? (unsigned int)held : slots;
	s->free = s->slots - (unsigned int)held;
	promise(v, s);
	guard(v, s, dev->id);
	return 0;
}

/* ---- orders ---- */

/* Effect of a plan on a context of the snapshot. */
struct fate {
	unsigned int gets, loses;
	enum preempt_method method;
	bool next;	/* gets the next slots that become free */
};

/* The context of @s whose job ends first; s->n if none is running. */
static size_t first_to_end(const struct preempt_snapshot *s)
{
	double least = INFINITY;
	size_t best = s->n;

	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];

		if (c->held && c->tile_cycles < least) {
			least = c->tile_cycles;
			best = i;
		}
	}
	return best;
}

/*
 * The kernel gives a slot that becomes free to a waiting context before mgpud can decide.
 * So let only that context wait to which the policy would give the slot of the job that
 * ends first.
 */
static void choose_next(struct ctx_view *v, const struct preempt_ops *ops,
			const struct preempt_snapshot *s, struct fate *fate)
{
	struct preempt_snapshot then = *s;
	size_t ends = first_to_end(s);

	memcpy(v->if_ended, v->ctx, s->n * sizeof(*v->ctx));
	then.ctx = v->if_ended;
	if (ends < s->n) {
		struct preempt_ctx *c = &v->if_ended[ends];

		then.free += c->held;
		c->held = 0;
		c->leaving = 0;
		c->state = PREEMPT_IDLE;
	}
	/* ask for the slots that are free then */
	if (preempt_decide(ops, &then, &v->param, &v->plan))
		return;
	for (size_t k = 0; k < v->plan.n; k++) {
		const struct preempt_decision *d = &v->plan.decision[k];

		if (d->action != PREEMPT_DO_PREEMPT && !d->later)
			fate[d->ctx].next = true;
	}
}

/* True if shares allow @gets to take slots from @loses. */
static bool shares_allow(const struct preempt_ctx *loses, const struct preempt_ctx *gets)
{
	return loses->vgpu == gets->vgpu ||
	       (loses->share == PREEMPT_OVER && gets->share == PREEMPT_BELOW);
}

/* Slots that a context keeps which loses some. */
static uint32_t keeps(const struct preempt_ctx *c, const struct fate *f)
{
	return f->method != PREEMPT_FLUSH && c->held > f->loses ? c->held - f->loses : 0;
}

/*
 * True if after the plan's preemptions the kernel's queue still has contexts of the vGPU
 * for all slots, or all but one of its contexts. A context that loses its slots stays out
 * of the queue until mgpud looks again; with too few contexts there the vGPU would lose
 * part of its share. A single context may always leave, or waits could not be bounded.
 */
static bool stays_ready(const struct ctx_view *v, const struct preempt_snapshot *s,
			const struct fate *fate, const struct preempt_ctx *loses)
{
	unsigned int ready = 0, all = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];
		const struct fate *f = &fate[i];

		if (c->vgpu != loses->vgpu || c->state == PREEMPT_HELD)
			continue;
		all++;
		if (f->loses && f->method != PREEMPT_DRAIN)
			ready += keeps(c, f) > 0;
		else
			ready += v->info[i]->slots_allowed > 0;
	}
	return ready >= s->slots || ready + 1 >= all;
}

/* Collect the effects of a plan; returns the number of decisions that are left out. */
static size_t take_plan(struct ctx_view *v, const struct preempt_snapshot *s, bool promises,
			const struct preempt_plan *plan, struct fate *fate)
{
	const struct preempt_decision *first = NULL;
	double gain = 0;
	size_t left = 0;

	for (size_t k = 0; k < plan->n; k++) {
		const struct preempt_decision *d = &plan->decision[k];
		struct ctx_track *t;

		if (d->action == PREEMPT_DO_PREEMPT) {
			const struct fate before = fate[d->ctx];

			fate[d->ctx].loses += d->slots;
			fate[d->ctx].method = d->method;
			if (promises &&
			    !(shares_allow(&s->ctx[d->ctx], &s->ctx[d->newcomer]) &&
			      stays_ready(v, s, fate, &s->ctx[d->ctx]))) {
				fate[d->ctx] = before;
				left++;
				continue;
			}
			t = track(v, d->newcomer);
			t->coming += d->slots;
			fate[d->newcomer].gets += d->slots;
			first = first ? first : d;
			gain += d->gain;
			continue;
		}
		t = track(v, d->ctx);
		if (d->keep_until_ns)
			t->keep_until_ns = d->keep_until_ns;
		if (!d->later)
			fate[d->ctx].gets += d->slots;
		else if (!fate[d->ctx].gets)
			left++;		/* the preemption for it was left out */
	}
	if (first) {
		struct guard_watch *w = watch(v, v->info[first->ctx]->dev_id);

		if (w)
			guard_begin(w, s->now_ns, first, gain);
	}
	return left;
}

static struct ctx_order *add(struct ctx_order *order, size_t *n, const struct mgpu_ctx *c)
{
	struct ctx_order *o = &order[(*n)++];

	*o = (struct ctx_order){ .vgpu = c->vgpu_id, .id = c->id };
	return o;
}

/* True if a context has waited for starve_ns. */
static bool starved(const struct preempt_snapshot *s, const struct preempt_param *p,
		    const struct preempt_ctx *c)
{
	return s->now_ns > c->since_ns && s->now_ns - c->since_ns >= p->starve_ns;
}

/* Slots to allow a context that loses none. */
static uint32_t allowance(const struct preempt_snapshot *s, const struct preempt_param *p,
			  bool promises, bool others_wait, const struct preempt_ctx *c,
			  const struct fate *f)
{
	if (promises || !others_wait)
		return ALL;
	if (c->state == PREEMPT_RUNNING)
		return f->gets || f->next ? ALL : c->held - c->leaving + c->coming;
	if (f->gets || f->next || c->coming || starved(s, p, c))
		return ALL;
	return 0;
}

size_t ctx_view_orders(struct ctx_view *v, const struct preempt_ops *ops,
		       const struct preempt_snapshot *s, bool promises,
		       const struct preempt_plan *plan, struct ctx_order *order,
		       size_t *n)
{
	struct fate *fate = calloc(s->n ? s->n : 1, sizeof(*fate));
	size_t nr_wait = 0, left;
	bool promised = false;

	*n = 0;
	if (!fate)
		return plan->n;
	left = take_plan(v, s, promises, plan, fate);
	for (size_t i = 0; i < s->n; i++) {
		nr_wait += waits(&s->ctx[i]);
		promised |= track(v, i)->coming;
	}
	if (nr_wait && !promised && !promises)
		choose_next(v, ops, s, fate);

	/* first requests that keep contexts off, then those that let contexts run */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->n; i++) {
			const struct preempt_ctx *c = &s->ctx[i];
			const struct mgpu_ctx *info = v->info[i];
			uint32_t allowed, has = info->slots_allowed;

			if (c->state == PREEMPT_HELD || fate[i].loses || c->leaving)
				continue;
			/*
			 * a context that lost a slot stays off until the other context
			 * has it
			 */
			if (promises && promised && !track(v, i)->coming &&
			    !(waits(c) && starved(s, &v->param, c)))
				continue;
			allowed = allowance(s, &v->param, promises,
					    nr_wait > waits(c), c, &fate[i]);
			if (has > info->slots_wanted)
				has = info->slots_wanted;
			if (!pass && allowed < has) {
				struct ctx_order *o = add(order, n, info);

				o->preempt = true;
				o->keep = allowed;
			}
			if (pass && (has < info->slots_wanted ? allowed > has :
							       fate[i].gets && waits(c)))
				add(order, n, info)->first = true;
		}
	}
	for (size_t i = 0; i < s->n; i++) {
		struct ctx_track *t = track(v, i);
		struct ctx_order *o;

		if (!fate[i].loses)
			continue;
		/*
		 * the kernel gives slots of a complete job to waiting contexts: no
		 * request
		 */
		if (fate[i].method == PREEMPT_DRAIN) {
			t->draining += fate[i].loses;
			continue;
		}
		o = add(order, n, v->info[i]);
		o->preempt = true;
		o->method = fate[i].method;
		o->keep = keeps(&s->ctx[i], &fate[i]);
	}
	free(fate);
	return left;
}

bool ctx_view_unsettled(const struct ctx_view *v, const struct preempt_snapshot *s)
{
	uint64_t coming = 0, draining = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct ctx_track *t = track(v, i);
		unsigned int held = s->ctx[i].held;

		coming += t->coming;
		/* it may have lost slots to other contexts than planned */
		draining += t->draining < held ? t->draining : held;
	}
	return coming > draining;
}

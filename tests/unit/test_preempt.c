// SPDX-License-Identifier: GPL-2.0-only
/* The preemption policy: each rule by hand, and what holds for any device. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "pace.h"
#include "preempt.h"
#include "tap.h"

#define MS	1000000ULL
#define MAX	600

static struct preempt_ctx ctx[MAX];
static struct preempt_norm norm;
static struct preempt_param param;
static struct preempt_snapshot now;
static struct preempt_plan plan;

static void begin(unsigned int slots)
{
	preempt_norm_cold(&norm);
	param = PREEMPT_PARAM_DEFAULT;
	now = (struct preempt_snapshot){
		.now_ns = 1000 * MS, .slots = slots, .free = slots, .ctx = ctx,
		.norm = &norm,
	};
}

/* Add a context with work: a million cycles, 100 bytes of state, and long tiles. */
static struct preempt_ctx *add(enum preempt_state state, enum preempt_class class)
{
	struct preempt_ctx *c = &ctx[now.n];
	bool runs = state == PREEMPT_RUNNING;

	*c = (struct preempt_ctx){
		.id = now.n, .vgpu = (uint32_t)now.n, .state = state, .class = class,
		.held = runs, .wanted = 1, .ipc = 1, .rest_inst = 1e6, .bytes = 1e5,
		.tile_cycles = 1e9, .arrival_ns = now.n * MS + 700 * MS,
		.since_ns = now.n * MS + 700 * MS,
		.was_preempted = state == PREEMPT_PREEMPTED,
	};
	now.n++;
	now.free -= runs;
	return c;
}

static void decide(const struct preempt_ops *ops)
{
	TAP_EQ(preempt_decide(ops, &now, &param, &plan), 0);
}

static void is(size_t k, enum preempt_action action, size_t who, unsigned int slots)
{
	if (!TAP_CHECK(k < plan.n))
		return;
	TAP_STR(preempt_action_name(plan.decision[k].action), preempt_action_name(action));
	TAP_EQ(plan.decision[k].ctx, who);
	TAP_EQ(plan.decision[k].slots, slots);
}

/* ---- cost ---- */

static void published(void)
{
	struct preempt_cost c = PREEMPT_COST_PUBLISHED;

	TAP_NEAR(preempt_cost_cycles(&c, 0, 304 * 1024), 5083, 0.5);
	TAP_NEAR(preempt_cost_cycles(&c, 1, 304 * 1024), 34738, 0.5);
}

/* ---- free slots ---- */

static void combinations(void)
{
	/* runs; waits, in the order of arrival; the context that is launched */
	static const struct {
		enum preempt_class runs, first, second;
		size_t who;
	} rule[] = {
		{ PREEMPT_COMPUTE, PREEMPT_COMPUTE, PREEMPT_MEMORY, 2 },
		{ PREEMPT_COMPUTE, PREEMPT_MEMORY, PREEMPT_COMPUTE, 1 },
		{ PREEMPT_MEMORY, PREEMPT_MEMORY, PREEMPT_COMPUTE, 2 },
		{ PREEMPT_MEMORY, PREEMPT_MEMORY, PREEMPT_UNKNOWN, 2 },
		{ PREEMPT_COMPUTE, PREEMPT_COMPUTE, PREEMPT_UNKNOWN, 2 },
		{ PREEMPT_COMPUTE, PREEMPT_COMPUTE, PREEMPT_COMPUTE, 1 },
	};

	for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
		begin(2);
		add(PREEMPT_RUNNING, rule[i].runs);
		add(PREEMPT_WAITING, rule[i].first);
		add(PREEMPT_WAITING, rule[i].second);
		decide(&preempt_mgpu);
		is(0, PREEMPT_DO_LAUNCH, rule[i].who, 1);
		TAP_EQ(plan.decision[0].reason, PREEMPT_FREE_SLOT);
	}
}

static void preempted_first(void)
{
	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	add(PREEMPT_PREEMPTED, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 1);
	is(0, PREEMPT_DO_RESUME, 2, 1);
	/* but not before a better combination */
	ctx[2].class = PREEMPT_MEMORY;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_LAUNCH, 1, 1);
}

static void free_first(void)
{
	begin(4);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE)->wanted = 2;
	decide(&preempt_always);
	TAP_EQ(plan.n, 1);
	is(0, PREEMPT_DO_LAUNCH, 2, 2);
	ctx[2].wanted = 3;
	decide(&preempt_always);
	TAP_EQ(plan.n, 3);
	is(0, PREEMPT_DO_LAUNCH, 2, 2);
	TAP_CHECK(!plan.decision[0].later);
	is(1, PREEMPT_DO_PREEMPT, 0, 1);
	is(2, PREEMPT_DO_LAUNCH, 2, 1);
	TAP_CHECK(plan.decision[2].later);
}

static void growing(void)
{
	begin(4);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->wanted = 3;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 1);
	is(0, PREEMPT_DO_LAUNCH, 0, 2);
	TAP_EQ(plan.decision[0].reason, PREEMPT_GROW);
	ctx[0].leaving = 1;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
}

/* Slots of one context do not slow each other down: it gets all it wants before others. */
static void growing_first(void)
{
	begin(4);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->wanted = 3;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE)->wanted = 4;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_LAUNCH, 0, 2);
	TAP_EQ(plan.decision[0].reason, PREEMPT_GROW);
	is(1, PREEMPT_DO_LAUNCH, 1, 1);
	/* no context that grew loses in the same plan */
	for (size_t i = 0; i < plan.n; i++)
		TAP_CHECK(plan.decision[i].action != PREEMPT_DO_PREEMPT);
	/* a context that has waited for the bound goes first */
	param.starve_ns = MS;
	ctx[1].since_ns = 0;
	now.now_ns = 2 * MS;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_LAUNCH, 1, 3);
	/* first come, first served keeps its order */
	param.starve_ns = PREEMPT_STARVE_NS;
	decide(&preempt_none);
	is(0, PREEMPT_DO_LAUNCH, 1, 3);
}

static void held(void)
{
	begin(2);
	add(PREEMPT_HELD, PREEMPT_COMPUTE);
	add(PREEMPT_IDLE, PREEMPT_COMPUTE);
	for (size_t i = 0; preempt_all[i]; i++) {
		decide(preempt_all[i]);
		TAP_EQ(plan.n, 0);
	}
}

/* ---- preempting ---- */

static void by_hand(void)
{
	double p = (0.09526 * 0.5 + 0.01633) * 1e5, w = 1e6 / 0.6;
	const struct preempt_decision *d = plan.decision;

	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->miss = 0.5;
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->miss = 0.5;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	ctx[1].rest_inst = 2e6;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 2);
	is(0, PREEMPT_DO_PREEMPT, 0, 1);
	is(1, PREEMPT_DO_LAUNCH, 2, 1);
	TAP_EQ(d->newcomer, 2);
	TAP_EQ(d->method, PREEMPT_SWITCH);
	TAP_EQ(d->reason, PREEMPT_GAIN);
	TAP_NEAR(d->cost, p, 1e-6);
	TAP_NEAR(d->window, w, 1e-6);
	TAP_NEAR(d->before, w * (0.6 + 0.6), 1e-6);
	TAP_NEAR(d->during, p * 0.6 * 0.9, 1e-6);
	TAP_NEAR(d->after, (w - p) * (0.85 + 0.92), 1e-6);
	TAP_NEAR(d->gain, d->during + d->after - d->before, 1e-6);
	/* decay of 1 for one that computes */
	ctx[0].class = PREEMPT_COMPUTE;
	ctx[1].class = PREEMPT_COMPUTE;
	ctx[2].class = PREEMPT_MEMORY;
	decide(&preempt_mgpu);
	TAP_NEAR(d->during, p * 0.8, 1e-6);
	/* the window is too short: the first one ends before it pays */
	ctx[0].rest_inst = p / 2;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
	/* the running context is as good as the waiting one */
	ctx[0].rest_inst = 1e6;
	ctx[2].class = PREEMPT_COMPUTE;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
}

/* Two that compute run, and one that waits for memory would do better in place of one. */
static void two_that_compute(void)
{
	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE);
	add(PREEMPT_WAITING, PREEMPT_MEMORY);
}

static size_t preemptions(void)
{
	size_t n = 0;

	for (size_t i = 0; i < plan.n; i++)
		n += plan.decision[i].action == PREEMPT_DO_PREEMPT;
	return n;
}

/*
 * The sum of norm_ipc grows from 1.6 to 1.77. With many more that compute in the queue,
 * those would later run beside each other all the longer, so that nothing is gained.
 */
static void borrowed(void)
{
	two_that_compute();
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	/* a queue no longer than the device */
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 0);
	/* with as many of each class it is a gain to keep */
	for (int i = 0; i < 5; i++)
		add(PREEMPT_WAITING, PREEMPT_MEMORY);
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	/* those that an operator holds are no backlog */
	two_that_compute();
	for (int i = 0; i < 8; i++)
		add(PREEMPT_HELD, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
}

/* A narrow context is worth no more than the slot of a wide one that it would take. */
static void wide_is_no_waste(void)
{
	begin(4);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE)->wanted = 4;
	ctx[0].held = 4;
	now.free = 0;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 0);
}

/* The module flushes whole jobs: all that is done of them is lost. */
static void flush_is_whole(void)
{
	begin(4);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->wanted = 4;
	ctx[0].held = 4;
	ctx[0].idempotent = true;
	ctx[0].tile_cycles = 1e9;
	ctx[0].rest_inst = 1e9;
	now.free = 0;
	norm.slow[PREEMPT_MEMORY][PREEMPT_COMPUTE] = 0;
	norm.slow[PREEMPT_COMPUTE][PREEMPT_MEMORY] = 0;
	param.cost = (struct preempt_cost){ 1000, 1000 };
	param.starve_ns = MS;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	TAP_CHECK(plan.decision[0].method != PREEMPT_FLUSH);
	ctx[1].wanted = 4;
	ctx[0].wanted = 1;
	ctx[0].held = 1;
	now.slots = 1;
	decide(&preempt_mgpu);
	TAP_EQ(plan.decision[0].method, PREEMPT_FLUSH);
	/* whatever is done is lost, at the speed that it was done with */
	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE)->wanted = 2;
	ctx[0].held = 2;
	ctx[0].done_inst = 3e5;
	ctx[0].idempotent = true;
	now.free = 0;
	add(PREEMPT_WAITING, PREEMPT_MEMORY)->wanted = 2;
	decide(&preempt_flush);
	is(0, PREEMPT_DO_PREEMPT, 0, 2);
	TAP_NEAR(plan.decision[0].before - plan.decision[0].after,
		 3e5 / ctx[0].ipc, 1e-6);
}

/* Experience forbids methods or makes them dearer; a bound on waiting is kept nevertheless. */
static void guarded(void)
{
	double gain;

	two_that_compute();
	decide(&preempt_mgpu);
	TAP_EQ(plan.decision[0].method, PREEMPT_SWITCH);
	gain = plan.decision[0].gain;
	now.guard.extra[PREEMPT_SWITCH] = gain / 4;
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	TAP_NEAR(plan.decision[0].gain, gain - gain / 4, 1e-6);
	now.guard.extra[PREEMPT_SWITCH] = gain;
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 0);
	/* of the methods that are left, one that pays is taken */
	now.guard = (struct preempt_guard){ .closed[PREEMPT_SWITCH] = true };
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 0);
	ctx[0].idempotent = true;
	ctx[1].idempotent = true;
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	TAP_EQ(plan.decision[0].method, PREEMPT_FLUSH);
	for (int m = 0; m < PREEMPT_METHODS; m++)
		now.guard.closed[m] = true;
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 0);
	param.starve_ns = MS;
	decide(&preempt_mgpu);
	TAP_EQ(preemptions(), 1);
	TAP_EQ(plan.decision[0].reason, PREEMPT_STARVED);
	/* by a method that pays, if there is one */
	TAP_EQ(plan.decision[0].method, PREEMPT_FLUSH);
	now.guard.closed[PREEMPT_DRAIN] = false;
	decide(&preempt_mgpu);
	TAP_EQ(plan.decision[0].method, PREEMPT_DRAIN);
	now.guard.extra[PREEMPT_DRAIN] = -1;
	TAP_EQ(preempt_decide(&preempt_mgpu, &now, &param, &plan), -EINVAL);
}

/* Any sequence of looks takes no more than its part of the time, after what was saved up. */
static void pace(void)
{
	const unsigned int slots = 2;
	struct pace p = { 0 };
	uint64_t t = 1, spent = 0, first;

	/* at the start a part of a second is saved up */
	pace_spend(&p, t, 0, slots);
	TAP_EQ(pace_ready_ns(&p, slots), t);
	for (int k = 0; k < 10000; k++) {
		uint64_t ready = pace_ready_ns(&p, slots), cost = 1 + k % 7 * (MS / 40);

		/* events all the time */
		t = t > ready ? t : ready;
		t += cost;
		spent += cost;
		pace_spend(&p, t, cost, slots);
	}
	TAP_CHECK((double)spent <= PACE_PART * slots * ((double)t + PACE_BURST_NS) + 2 * MS);
	TAP_CHECK((double)spent >= 0.9 * PACE_PART * slots * (double)t);
	/* a look that took long is paid for by a rest, which is bounded */
	pace_spend(&p, t, MS, slots);
	first = pace_ready_ns(&p, slots) - t;
	TAP_CHECK(first > 0 && first <= PACE_REST_NS);
	/* more slots, more time */
	TAP_CHECK(pace_ready_ns(&p, 2 * slots) - t < first);
	pace_spend(&p, t, 100000 * MS, slots);
	TAP_NEAR(pace_ready_ns(&p, slots) - t, PACE_REST_NS, 1);
	/* nothing is saved up beyond the burst, and a clock that stands still gives nothing */
	pace_spend(&p, t + 1000000 * MS, 0, slots);
	TAP_NEAR(p.credit, PACE_PART * slots * PACE_BURST_NS, 1);
	pace_spend(&p, t, 5, slots);
	TAP_NEAR(p.credit, PACE_PART * slots * PACE_BURST_NS - 5, 1);
}

static void methods(void)
{
	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->miss = 1;
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->miss = 1;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	ctx[0].tile_cycles = 100;
	ctx[0].done_inst = 1e5;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_PREEMPT, 0, 1);
	TAP_EQ(plan.decision[0].method, PREEMPT_DRAIN);
	TAP_NEAR(plan.decision[0].cost, 100, 0);
	/* little is lost, and it may be */
	ctx[0].done_inst = 10;
	ctx[0].idempotent = true;
	decide(&preempt_mgpu);
	TAP_EQ(plan.decision[0].method, PREEMPT_FLUSH);
	TAP_NEAR(plan.decision[0].after,
		 plan.decision[0].window * (0.85 + 0.92) - 10, 1e-6);
	ctx[0].done_inst = 1e6;
	ctx[0].tile_cycles = 1e9;
	decide(&preempt_mgpu);
	TAP_EQ(plan.decision[0].method, PREEMPT_SWITCH);
}

static void each_its_method(void)
{
	begin(1);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_none);
	TAP_EQ(plan.n, 0);
	decide(&preempt_always);
	TAP_EQ(plan.decision[0].method, PREEMPT_SWITCH);
	decide(&preempt_drain);
	TAP_EQ(plan.decision[0].method, PREEMPT_DRAIN);
	decide(&preempt_flush);
	TAP_EQ(plan.decision[0].method, PREEMPT_SWITCH);
	ctx[0].idempotent = true;
	decide(&preempt_flush);
	TAP_EQ(plan.decision[0].method, PREEMPT_FLUSH);
	/* a context that was preempted does not preempt in turn */
	ctx[1].state = PREEMPT_PREEMPTED;
	decide(&preempt_always);
	TAP_EQ(plan.n, 0);
}

static void which_leaves(void)
{
	begin(3);
	for (int i = 0; i < 3; i++)
		add(PREEMPT_RUNNING, PREEMPT_MEMORY)->bytes = 3e5 - 1e5 * i;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_PREEMPT, 2, 1);	/* the cheapest of three alike */
	ctx[2].keep_until_ns = now.now_ns + 1;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_PREEMPT, 1, 1);
}

/* A slot that a newcomer takes does not shorten the window for the next. */
static void two_newcomers(void)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE)->rest_inst = 10;
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_NEED(plan.n == 4);
	TAP_EQ(plan.decision[0].newcomer, 4);
	is(1, PREEMPT_DO_PREEMPT, 1, 1);
	TAP_EQ(plan.decision[1].newcomer, 5);
	TAP_CHECK(plan.decision[1].window > 1e6);
	is(2, PREEMPT_DO_LAUNCH, 4, 1);
	is(3, PREEMPT_DO_LAUNCH, 5, 1);
}

static void on_their_way(void)
{
	begin(3);
	for (int i = 0; i < 3; i++)
		add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 2);
	ctx[0].leaving = 1;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);

	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE);
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 2);
	ctx[0].leaving = 1;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
	ctx[2].coming = 1;
	add(PREEMPT_WAITING, PREEMPT_MEMORY);
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
	decide(&preempt_always);
	is(0, PREEMPT_DO_PREEMPT, 1, 1);
	TAP_EQ(plan.decision[0].newcomer, 3);
}

/* ---- shares ---- */

static void over_share(void)
{
	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY);
	add(PREEMPT_WAITING, PREEMPT_COMPUTE)->share = PREEMPT_OVER;
	now.now_ns += 2 * PREEMPT_STARVE_NS;
	for (size_t i = 0; preempt_all[i]; i++) {
		decide(preempt_all[i]);
		TAP_EQ(plan.n, 0);
	}
	/* a free slot is another matter */
	now.free = 1;
	now.slots = 3;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_LAUNCH, 2, 1);
}

static void bounded(void)
{
	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE);
	add(PREEMPT_RUNNING, PREEMPT_MEMORY)->share = PREEMPT_OVER;
	add(PREEMPT_WAITING, PREEMPT_MEMORY)->share = PREEMPT_BELOW;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
	TAP_EQ(preempt_wake_ns(&now, &param), ctx[2].since_ns + PREEMPT_STARVE_NS);
	now.now_ns = ctx[2].since_ns + PREEMPT_STARVE_NS - 1;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
	now.now_ns++;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_PREEMPT, 1, 1);	/* the context with too much loses first */
	is(1, PREEMPT_DO_LAUNCH, 2, 1);
	TAP_EQ(plan.decision[1].reason, PREEMPT_STARVED);
	/* not by waiting for a tile that goes on for longer than all else */
	TAP_EQ(plan.decision[0].method, PREEMPT_SWITCH);
	ctx[1].bytes = 1e15;
	ctx[1].tile_cycles = 1e8;
	decide(&preempt_mgpu);
	TAP_EQ(plan.decision[0].method, PREEMPT_DRAIN);
	ctx[1].bytes = 1e5;
	ctx[1].tile_cycles = 1e9;
	TAP_EQ(plan.decision[1].keep_until_ns, now.now_ns + PREEMPT_STARVE_NS / 2);
	/* also where the other one would be the better one to lose it */
	ctx[0].share = PREEMPT_OVER;
	ctx[1].share = PREEMPT_EVEN;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_PREEMPT, 0, 1);
	ctx[1].share = PREEMPT_OVER;
	/* no context can lose: it waits for those that had waited */
	ctx[0].keep_until_ns = now.now_ns + 5;
	ctx[1].keep_until_ns = now.now_ns + 7;
	decide(&preempt_mgpu);
	TAP_EQ(plan.n, 0);
	TAP_EQ(preempt_wake_ns(&now, &param), now.now_ns + 5);
	/* at a free slot it goes before a better combination */
	ctx[1].state = PREEMPT_WAITING;
	ctx[1].held = 0;
	now.free = 1;
	decide(&preempt_mgpu);
	is(0, PREEMPT_DO_LAUNCH, 2, 1);
}

/* Time goes on, all have endless work, and everyone gets its turn. */
static void no_starving(void)
{
	uint64_t waited = 0, bound;

	begin(2);
	param.starve_ns = 100 * MS;
	for (int i = 0; i < 8; i++)
		add(PREEMPT_WAITING, i < 2 ? PREEMPT_COMPUTE : PREEMPT_MEMORY)->since_ns =
			now.now_ns;
	/* at worst all others go before, two at a time, each for half of the bound */
	bound = param.starve_ns + 8 / 2 * (param.starve_ns / 2);
	for (int k = 0; k < 3000; k++) {
		decide(&preempt_mgpu);
		for (size_t i = 0; i < plan.n; i++) {
			const struct preempt_decision *d = &plan.decision[i];
			struct preempt_ctx *c = &ctx[d->ctx];

			if (d->action == PREEMPT_DO_PREEMPT) {
				c->state = PREEMPT_PREEMPTED;
				c->held = 0;
				now.free++;
			} else {
				c->state = PREEMPT_RUNNING;
				c->held = 1;
				c->keep_until_ns = d->keep_until_ns;
				now.free--;
			}
			c->since_ns = now.now_ns;
		}
		for (size_t i = 0; i < now.n; i++)
			if (!ctx[i].held && now.now_ns - ctx[i].since_ns > waited)
				waited = now.now_ns - ctx[i].since_ns;
		now.now_ns += MS;
	}
	tap_diag("longest wait %llu ms", (unsigned long long)(waited / MS));
	TAP_CHECK(waited <= bound);
	TAP_CHECK(waited >= param.starve_ns);	/* or the test is none */
}

/* ---- any device ---- */

static uint64_t seed = 7;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(uniform() * n);
}

static void random_device(void)
{
	begin(1 + below(below(8) ? 8 : PREEMPT_SLOTS_MAX));
	now.free = below(now.slots + 1);
	for (unsigned int used = now.free; used < now.slots;) {
		struct preempt_ctx *c = add(PREEMPT_RUNNING, below(3));

		c->held = 1 + below(now.slots - used);
		c->wanted = c->held + below(3);
		c->leaving = below(4) ? 0 : below(c->held + 1);
		now.free++;	/* which add() took */
		used += c->held;
	}
	for (unsigned int i = below(24); i; i--) {
		enum preempt_state state = below(5);

		add(state == PREEMPT_RUNNING ? PREEMPT_WAITING : state,
		    below(3))->wanted = 1 + below(4);
	}
	for (size_t i = 0; i < now.n; i++) {
		struct preempt_ctx *c = &ctx[i];

		c->share = below(3);
		c->ipc = 0.1 + 3 * uniform();
		c->rest_inst = 1e7 * uniform() - 1e5;
		c->done_inst = below(2) ? 1e6 * uniform() : 0;
		c->miss = uniform();
		c->bytes = 4e5 * uniform();
		c->tile_cycles = 1e6 * uniform();
		c->idempotent = below(2);
		c->since_ns = below(1200) * MS;
		c->arrival_ns = below(1000) * MS;
		c->keep_until_ns = below(10) ? 0 : below(2000) * MS;
	}
	param.starve_ns = below(2) ? 100 * MS : 3600000 * MS;
	for (int i = 0; i < 4; i++)
		norm.slow[i / 2][i % 2] = 2 * uniform() - 0.2;
}

static void sound(const struct preempt_ops *ops)
{
	unsigned int given = 0, taken = 0, later = 0, lost[MAX] = { 0 }, got[MAX] = { 0 };
	bool preempting = false;

	for (size_t i = 0; i < plan.n; i++) {
		const struct preempt_decision *d = &plan.decision[i];
		const struct preempt_ctx *c = &ctx[d->ctx];

		TAP_NEED(d->slots >= 1 && d->ctx < now.n && d->newcomer < now.n);
		TAP_CHECK(isfinite(d->window) && isfinite(d->cost) && isfinite(d->before) &&
			  isfinite(d->during) && isfinite(d->after) && isfinite(d->gain));
		if (d->action == PREEMPT_DO_PREEMPT) {
			const struct preempt_ctx *n = &ctx[d->newcomer];

			preempting = true;
			taken += d->slots;
			lost[d->ctx] += d->slots;
			TAP_CHECK(c->state == PREEMPT_RUNNING);
			TAP_CHECK(c->keep_until_ns <= now.now_ns);
			TAP_CHECK(n->share != PREEMPT_OVER);
			TAP_CHECK(d->method != PREEMPT_FLUSH || c->idempotent);
			TAP_CHECK(d->ctx != d->newcomer);
			if (ops == &preempt_mgpu && d->reason != PREEMPT_STARVED) {
				TAP_EQ(d->reason, PREEMPT_GAIN);
				TAP_CHECK(d->cost < d->window);
				TAP_CHECK(d->gain > 0 && d->during + d->after > d->before);
			}
			continue;
		}
		TAP_CHECK(c->state != PREEMPT_HELD && c->state != PREEMPT_IDLE);
		TAP_CHECK((d->action == PREEMPT_DO_RESUME) ==
			  (c->state == PREEMPT_PREEMPTED));
		got[d->ctx] += d->slots;
		if (d->later) {
			later += d->slots;
		} else {
			TAP_CHECK(!preempting);	/* free slots first */
			given += d->slots;
		}
	}
	TAP_CHECK(given <= now.free);
	TAP_EQ(later, taken);
	TAP_CHECK(!preempting || given == now.free);
	for (size_t i = 0; i < now.n; i++) {
		TAP_CHECK(lost[i] <= ctx[i].held - ctx[i].leaving);
		TAP_CHECK(!got[i] || ctx[i].held + got[i] <= ctx[i].wanted);
		TAP_CHECK(!got[i] || !lost[i]);
	}
	TAP_CHECK(ops != &preempt_none || !preempting);
}

static void any_device(void)
{
	size_t decisions = 0, preemptions = 0;

	for (int k = 0; k < 4000 && !tap.bad; k++) {
		random_device();
		if (!TAP_CHECK(!preempt_snapshot_check(&now)))
			tap_diag("%s", preempt_snapshot_check(&now));
		for (size_t i = 0; preempt_all[i]; i++) {
			decide(preempt_all[i]);
			sound(preempt_all[i]);
			decisions += plan.n;
			for (size_t j = 0; j < plan.n; j++)
				preemptions += plan.decision[j].reason == PREEMPT_GAIN;
		}
	}
	tap_diag("%zu decisions, %zu for gain", decisions, preemptions);
	TAP_CHECK(preemptions > 100);
}

static void any_order(void)
{
	static struct preempt_plan first;

	for (int k = 0; k < 1000 && !tap.bad; k++) {
		random_device();
		for (size_t i = 0; preempt_all[i]; i++) {
			decide(preempt_all[i]);
			first = plan;
			for (size_t j = 0; j < first.n; j++) {
				first.decision[j].ctx = ctx[first.decision[j].ctx].id;
				first.decision[j].newcomer =
					ctx[first.decision[j].newcomer].id;
			}
			for (size_t j = now.n; j > 1; j--) {
				size_t with = below((unsigned int)j);
				struct preempt_ctx c = ctx[j - 1];

				ctx[j - 1] = ctx[with];
				ctx[with] = c;
			}
			decide(preempt_all[i]);
			TAP_NEED(plan.n == first.n);
			for (size_t j = 0; j < plan.n; j++) {
				const struct preempt_decision *a = &plan.decision[j];
				const struct preempt_decision *b = &first.decision[j];

				TAP_EQ(ctx[a->ctx].id, b->ctx);
				TAP_EQ(ctx[a->newcomer].id, b->newcomer);
				TAP_EQ(a->slots, b->slots);
				TAP_EQ(a->method, b->method);
				TAP_NEAR(a->gain, b->gain, 0);
			}
		}
	}
}

/* ---- what is refused ---- */

static void refused(void)
{
	struct preempt_ctx good;

	begin(2);
	add(PREEMPT_RUNNING, PREEMPT_COMPUTE);
	good = ctx[0];
	TAP_CHECK(!preempt_snapshot_check(&now));
#define BAD(field, value) do {						\
		ctx[0] = good;						\
		ctx[0].field = (value);					\
		TAP_CHECK(preempt_snapshot_check(&now));		\
		TAP_EQ(preempt_decide(&preempt_mgpu, &now, &param, &plan), -EINVAL); \
		TAP_EQ(plan.n, 0);					\
	} while (0)
	BAD(ipc, 0);
	BAD(ipc, NAN);
	BAD(rest_inst, INFINITY);
	BAD(done_inst, -1);
	BAD(miss, 1.01);
	BAD(bytes, NAN);
	BAD(tile_cycles, -1);
	BAD(held, 0);
	BAD(held, 3);
	BAD(leaving, 2);
	BAD(coming, 1);
	BAD(wanted, 0);
	BAD(state, PREEMPT_WAITING);
	BAD(state, 9);
	BAD(class, 9);
#undef BAD
	ctx[0] = good;
	now.slots = PREEMPT_SLOTS_MAX + 1;
	TAP_CHECK(preempt_snapshot_check(&now));
	now.slots = 2;
	norm.slow[0][1] = NAN;
	TAP_CHECK(preempt_snapshot_check(&now));
	TAP_CHECK(!preempt_param_check(&param));
#define BAD(field, value) do {						\
		struct preempt_param p = PREEMPT_PARAM_DEFAULT;		\
									\
		p.field = (value);					\
		TAP_CHECK(preempt_param_check(&p));			\
	} while (0)
	BAD(cost.a, -1);
	BAD(cost.b, NAN);
	BAD(decay_compute, 0.49);
	BAD(decay_memory, 1.01);
	BAD(class_threshold, 0);
	BAD(starve_ns, 0);
	BAD(min_gain, NAN);
#undef BAD
	TAP_CHECK(!preempt_find("nobody"));
	TAP_CHECK(preempt_find("mgpu") == &preempt_mgpu);
	TAP_STR(preempt_reason_name(99), "?");
}

/* ---- many ---- */

static void scales(void)
{
	static const size_t many[] = { 2, 16, 256 };
	double us[3];

	for (int k = 0; k < 3; k++) {
		struct timespec from, to;

		begin(4);
		for (int i = 0; i < 4; i++)
			add(PREEMPT_RUNNING, PREEMPT_MEMORY);
		for (size_t i = 0; i < many[k]; i++)
			add(PREEMPT_WAITING, below(2));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		for (int i = 0; i < 200; i++)
			decide(&preempt_mgpu);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		us[k] = ((double)(to.tv_sec - from.tv_sec) * 1e6 +
			 (double)(to.tv_nsec - from.tv_nsec) * 1e-3) / 200;
		tap_diag("%zu waiting: %.1f us, with sanitizers", many[k], us[k]);
	}
	/* 16 times as many: not 256 times as long */
	TAP_CHECK(us[2] < 100 * us[1]);
}

int main(void)
{
	tap_run(published, "the published coefficients give the published cycles");
	tap_run(combinations, "compute and memory go together first, then two that compute");
	tap_run(preempted_first, "at equal priority a preempted context goes first");
	tap_run(free_first, "a newcomer takes free slots first, and only missing ones from others");
	tap_run(growing, "a context that can use more slots gets the remaining ones");
	tap_run(growing_first, "a running context gets the slots it lacks before others start");
	tap_run(held, "a context that is held or idle gets nothing");
	tap_run(by_hand, "it preempts exactly if during and after are more than before");
	tap_run(borrowed, "a long queue allows only gains that it does not pay for later");
	tap_run(wide_is_no_waste, "a wide context is worth as much on each slot as a narrow one");
	tap_run(flush_is_whole, "a flush loses all of a job, and is of all its slots");
	tap_run(guarded, "methods that do not pay are forbidden, and extra costs are weighed");
	tap_run(pace, "looks take no more than their part of the time");
	tap_run(methods, "of switch, drain and flush the one that gains most is taken");
	tap_run(each_its_method, "each policy preempts as it says");
	tap_run(which_leaves, "of several contexts that which gains most by leaving leaves");
	tap_run(two_newcomers, "two newcomers in one plan are weighed by those that ran");
	tap_run(on_their_way, "no context is preempted for slots that are on their way");
	tap_run(over_share, "a vGPU over its share gains nothing by preemption");
	tap_run(bounded, "a context that has waited for the bound goes first, whatever the gain");
	tap_run(no_starving, "with endless work everyone gets its turn");
	tap_run(any_device, "plans for random devices keep every promise");
	tap_run(any_order, "the order of contexts does not matter");
	tap_run(refused, "impossible snapshots are refused");
	tap_run(scales, "time grows with the number of contexts, not its square");
	return tap_done();
}

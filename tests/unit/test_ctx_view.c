// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test mgpud's snapshots of lists of contexts and its requests to the kernel; in the
 * end against a small model of the kernel's slots.
 */
#include <errno.h>
#include <linux/mgpu_compute.h>
#include <stdlib.h>

#include "contexts/ctx_view.h"
#include "contexts/kind.h"
#include "tap.h"

#define MS	1000000ULL

static struct ctx_view view;
static struct mgpu_dev_info dev;
static struct mgpu_ctx list[64];
static size_t nr;
static uint64_t now;
static struct preempt_snapshot snap;
static struct preempt_plan plan;
static struct ctx_order order[128];
static size_t nr_orders, left;

/* Scheduling policies as the kernel tells of them. */
#define SHARES		true
#define NO_SHARES	false

static void begin(bool policy_shares, uint32_t slots)
{
	const struct preempt_param param = PREEMPT_PARAM_DEFAULT;

	ctx_view_free(&view);
	ctx_view_init(&view, &param);
	dev = (struct mgpu_dev_info){
		.present = MGPU_HAS(MGPU_A_DEV_POLICY_SHARES),
		.id = 1, .engines = slots, .slots = slots, .policy_shares = policy_shares,
	};
	nr = 0;
	now = 1000 * MS;
	/* one kind that computes and one that waits for memory, both known */
	for (int i = 0; i < 20; i++) {
		analyse_done(&view.analyse, kind_of("matmul"), 1e6, 4e6);
		analyse_done(&view.analyse, kind_of("copy"), 1e6, 1e5);
	}
	analyse_alone(&view.analyse, kind_of("matmul"), 1);
	analyse_alone(&view.analyse, kind_of("copy"), 0.1);
	analyse_memory(&view.analyse, kind_of("matmul"), 0.05, 0.05);
	analyse_memory(&view.analyse, kind_of("copy"), 0.8, 0.8);
}

/* Add a context with a job that has not started. */
static struct mgpu_ctx *submit(uint32_t vgpu, uint32_t id, const char *op)
{
	struct mgpu_ctx *c = &list[nr++];

	*c = (struct mgpu_ctx){
		.vgpu_id = vgpu, .id = id, .dev_id = 1, .state = MGPU_CTX_STATE_WAITING,
		.slots_allowed = dev.engines, .slots_wanted = 1, .queued = 1,
		.idempotent = 1, .job_inst = 4000000, .job_bytes = 1000000,
		.live_bytes = 65536, .arrived_ns = now++,
	};
	strcpy(c->op, op);
	return c;
}

static struct mgpu_ctx *run(uint32_t vgpu, uint32_t id, const char *op)
{
	struct mgpu_ctx *c = submit(vgpu, id, op);

	c->state = MGPU_CTX_STATE_RUNNING;
	c->slots = 1;
	return c;
}

static void ask(const struct preempt_ops *ops)
{
	bool promises = ctx_view_promises(&dev);

	TAP_EQ(ctx_view_look(&view, list, nr, now), 0);
	TAP_EQ(ctx_view_snapshot(&view, list, nr, &dev, now, &snap), 0);
	TAP_CHECK(!preempt_snapshot_check(&snap));
	TAP_EQ(preempt_decide(ops, &snap, &view.param, &plan), 0);
	left = ctx_view_orders(&view, ops, &snap, promises, &plan, order, &nr_orders);
}

static const struct ctx_order *order_for(const struct mgpu_ctx *c)
{
	for (size_t i = 0; i < nr_orders; i++)
		if (order[i].vgpu == c->vgpu_id && order[i].id == c->id)
			return &order[i];
	return NULL;
}

static bool is_kept_off(const struct mgpu_ctx *c)
{
	const struct ctx_order *o = order_for(c);

	return o && o->preempt && !o->keep;
}

/* ---- looking ---- */

static void learns_ends(void)
{
	struct analyse_guess g;
	struct mgpu_ctx *c;

	begin(NO_SHARES, 1);
	c = run(1, 1, "hash");
	c->job_inst = 7000000;
	ask(&preempt_none);
	analyse_guess(&view.analyse, &view.param, kind_of("hash"), 1e6, &g);
	TAP_CHECK(!g.known);
	/* the next job, at once */
	c->arrived_ns = now++;
	ask(&preempt_none);
	analyse_guess(&view.analyse, &view.param, kind_of("hash"), 1e6, &g);
	TAP_CHECK(g.known);
	TAP_NEAR(g.inst, 7e6, 7e4);
	/* and one whose context goes with it */
	c->job_inst = 7000000;
	nr = 0;
	ask(&preempt_none);
	TAP_EQ(view.analyse.kind[view.analyse.n - 1].jobs, 2);
	TAP_EQ(view.nr_tracks, 0);
}

/* Protection of a context that starved ends with the job that it was given for. */
static void protection_ends_with_its_job(void)
{
	struct mgpu_ctx *c;

	begin(NO_SHARES, 1);
	c = run(1, 1, "copy");
	ask(&preempt_none);
	TAP_NEED(view.nr_tracks == 1);
	view.tracks[0].keep_until_ns = now + 1000 * MS;
	now += MS;
	ask(&preempt_none);
	TAP_NEED(snap.n == 1);
	TAP_EQ(snap.ctx[0].keep_until_ns, now + 999 * MS);
	c->arrived_ns = now++;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[0].keep_until_ns, 0);
}

static void learns_speeds(void)
{
	struct mgpu_run_key key = { .vgpu = 1, .ctx = 1, .op = MGPU_COMPUTE_COPY };
	struct mgpu_run run_of = { .inst = 1000, .bytes = 16000, .engine_cycles = 20000 };
	double before;
	struct analyse_guess g;

	begin(NO_SHARES, 2);
	run(1, 1, "copy");
	run(2, 7, "matmul");
	ask(&preempt_none);
	for (int i = 0; i < 50; i++)
		ctx_view_ran(&view, &key, &run_of);
	analyse_guess(&view.analyse, &view.param, kind_of("copy"), 1e6, &g);
	TAP_NEAR(g.ipc, 0.05, 0.005);
	TAP_EQ(g.class, PREEMPT_MEMORY);
	/* half as fast beside the other, which computes */
	before = view.analyse.norm.slow[PREEMPT_MEMORY][PREEMPT_COMPUTE];
	key.peer_vgpu = 2;
	key.peer = 7;
	run_of.engine_cycles = 40000;
	for (int i = 0; i < 50; i++)
		ctx_view_ran(&view, &key, &run_of);
	TAP_CHECK(view.analyse.norm.slow[PREEMPT_MEMORY][PREEMPT_COMPUTE] > before + 0.5);
	/* a peer that is gone, an operation that does not exist, no time passed */
	key.peer = 8;
	before = view.analyse.norm.slow[PREEMPT_MEMORY][PREEMPT_COMPUTE];
	ctx_view_ran(&view, &key, &run_of);
	key.op = 99;
	ctx_view_ran(&view, &key, &run_of);
	key.op = MGPU_COMPUTE_COPY;
	run_of.engine_cycles = 0;
	ctx_view_ran(&view, &key, &run_of);
	TAP_NEAR(view.analyse.norm.slow[PREEMPT_MEMORY][PREEMPT_COMPUTE], before, 0);
}

static void measures_switches(void)
{
	struct mgpu_ctx *a;

	begin(NO_SHARES, 2);
	a = run(1, 1, "matmul");
	run(2, 1, "copy");
	a->engine_ns = 1000;
	a->engine_cycles = 2000;
	ask(&preempt_none);
	TAP_EQ(view.nr_samples, 0);
	/* lost twice, got back twice, and three turns of its share: 100 us */
	a->preemptions = 2;
	a->resumes = 2;
	a->copies = 10;
	a->switch_ns = 100000;
	ask(&preempt_none);
	TAP_EQ(view.nr_samples, 1);
	TAP_NEAR(view.sample[0].cycles, 2 * 100000 / 10.0 * 2, 1e-6);
	TAP_NEAR(view.sample[0].bytes, 65536, 0);
	TAP_NEAR(view.sample[0].miss, 0.8, 1e-9);
	/* of a job that is not the same any more it is not known what was saved */
	a->arrived_ns = now++;
	a->copies = 11;
	a->switch_ns = 200000;
	ask(&preempt_none);
	TAP_EQ(view.nr_samples, 1);
}

static void waiting_counts_from_the_beginning(void)
{
	struct mgpu_ctx *a, *b;

	begin(NO_SHARES, 1);
	a = run(1, 1, "matmul");
	b = submit(2, 1, "copy");
	ask(&preempt_none);
	now += 100 * MS;
	/* kept off, it waits on */
	b->state = MGPU_CTX_STATE_PREEMPTED;
	b->slots_allowed = 0;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[1].state, PREEMPT_WAITING);
	TAP_CHECK(snap.ctx[1].since_ns == b->arrived_ns);
	/* a lost slot begins another wait */
	a->slots = 0;
	a->preemptions++;
	a->state = MGPU_CTX_STATE_PREEMPTED;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[0].state, PREEMPT_PREEMPTED);
	TAP_CHECK(snap.ctx[0].since_ns == now);
	TAP_CHECK(snap.ctx[0].was_preempted);
	/* an operator's word counts */
	a->state = MGPU_CTX_STATE_HELD;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[0].state, PREEMPT_HELD);
}

/* A list takes time, so a slot may be seen with the one that had it and the next. */
static void a_list_of_several_moments(void)
{
	struct mgpu_ctx *next, *comes;

	begin(NO_SHARES, 2);
	run(1, 1, "matmul");
	run(1, 2, "matmul");
	comes = submit(2, 1, "copy");
	next = submit(3, 1, "matmul");
	ask(&preempt_always);
	list[0].slots_allowed = 0;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[2].coming, 1);
	next->slots = 1;
	TAP_EQ(ctx_view_look(&view, list, nr, now), 0);
	TAP_EQ(ctx_view_snapshot(&view, list, nr, &dev, now, &snap), -EAGAIN);
	/* what was promised is not forgotten for it */
	next->slots = 0;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[2].coming, 1);
	TAP_EQ(snap.n, 4);
	/* slots that were taken from the device are in use until tiles end */
	dev.slots = 1;
	ask(&preempt_none);
	TAP_EQ(snap.slots, 2);
	TAP_EQ(snap.free, 0);
	/* no snapshot has room for more, whatever a device has */
	dev.engines = 80;
	dev.slots = 80;
	comes->slots = 63;
	TAP_EQ(ctx_view_look(&view, list, nr, now), 0);
	TAP_EQ(ctx_view_snapshot(&view, list, nr, &dev, now, &snap), -EAGAIN);
	comes->slots = 62;
	TAP_EQ(ctx_view_look(&view, list, nr, now), 0);
	TAP_EQ(ctx_view_snapshot(&view, list, nr, &dev, now, &snap), 0);
	TAP_EQ(snap.slots, 64);
}

static void idle_contexts_crowd_nobody_out(void)
{
	struct mgpu_ctx *many = calloc(PREEMPT_CTX_MAX + 3, sizeof(*many));
	struct mgpu_ctx *c;

	TAP_NEED(many);
	begin(NO_SHARES, 2);
	for (uint32_t i = 0; i < PREEMPT_CTX_MAX; i++)
		many[i] = (struct mgpu_ctx){ .vgpu_id = 1, .id = i, .dev_id = 1 };
	many[PREEMPT_CTX_MAX] = *submit(2, 1, "copy");
	many[PREEMPT_CTX_MAX + 1] = *run(2, 2, "copy");
	TAP_EQ(ctx_view_look(&view, many, PREEMPT_CTX_MAX + 2, now), 0);
	TAP_EQ(ctx_view_snapshot(&view, many, PREEMPT_CTX_MAX + 2, &dev, now, &snap), 0);
	TAP_EQ(snap.n, 2);
	TAP_EQ(snap.ctx[0].vgpu, 2);
	TAP_EQ(snap.free, 1);
	/* there may be more that wait, too: what others hold is not free for that */
	for (uint32_t i = 0; i < PREEMPT_CTX_MAX; i++) {
		c = &many[i];
		*c = many[PREEMPT_CTX_MAX];
		c->vgpu_id = 1;
		c->id = i;
	}
	TAP_EQ(ctx_view_look(&view, many, PREEMPT_CTX_MAX + 2, now), 0);
	TAP_EQ(ctx_view_snapshot(&view, many, PREEMPT_CTX_MAX + 2, &dev, now, &snap), 0);
	TAP_EQ(snap.n, PREEMPT_CTX_MAX);
	TAP_EQ(snap.free, 1);
	TAP_CHECK(!preempt_snapshot_check(&snap));
	free(many);
}

/* ---- orders ---- */

static void the_next_is_the_better_company(void)
{
	struct mgpu_ctx *copy, *matmul;

	begin(NO_SHARES, 2);
	run(1, 1, "copy")->job_inst_done = 1;
	run(2, 1, "copy")->job_inst_done = 2;
	/* first comes the one that waits for memory, too */
	copy = submit(3, 1, "copy");
	matmul = submit(4, 1, "matmul");
	view.param.min_gain = 1;	/* nothing pays */
	ask(&preempt_mgpu);
	TAP_CHECK(is_kept_off(copy));
	TAP_CHECK(!order_for(matmul));
	TAP_EQ(nr_orders, 1);
	/* once it is, nothing is asked again */
	copy->slots_allowed = 0;
	copy->state = MGPU_CTX_STATE_PREEMPTED;
	now += MS;
	ask(&preempt_mgpu);
	TAP_EQ(nr_orders, 0);
	/* a context that has waited for too long is let in whatever it is */
	now += PREEMPT_STARVE_NS;
	ask(&preempt_mgpu);
	TAP_CHECK(order_for(copy) && !order_for(copy)->preempt);
}

static void a_switch_in_its_order(void)
{
	struct mgpu_ctx *victim, *comes, *other;

	begin(NO_SHARES, 1);
	victim = run(1, 1, "matmul");
	other = submit(2, 1, "copy");
	ask(&preempt_none);
	now += MS;
	comes = submit(3, 1, "copy");
	ask(&preempt_always);
	/* the first of them is the newcomer, the second keeps out of its way */
	TAP_EQ(nr_orders, 3);
	TAP_CHECK(is_kept_off(comes));
	TAP_CHECK(order[1].vgpu == 2 && !order[1].preempt && order[1].first);
	TAP_CHECK(order[2].vgpu == 1 && order[2].preempt && !order[2].keep);
	TAP_EQ(order[2].method, PREEMPT_SWITCH);
	TAP_CHECK(ctx_view_unsettled(&view, &snap));
	/* while it leaves, the promise stands, and no other context is preempted for it */
	victim->slots_allowed = 0;
	comes->slots_allowed = 0;
	ask(&preempt_always);
	TAP_EQ(snap.ctx[0].leaving, 1);
	TAP_EQ(snap.ctx[1].coming, 1);
	TAP_EQ(nr_orders, 0);
	/* it is there */
	victim->slots = 0;
	victim->preemptions = 1;
	victim->state = MGPU_CTX_STATE_PREEMPTED;
	other->slots = 1;
	other->state = MGPU_CTX_STATE_RUNNING;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[1].coming, 0);
	TAP_CHECK(!ctx_view_unsettled(&view, &snap));
}

/* The slots of a promise come one by one, and the rest stays promised. */
static void a_promise_of_several_slots(void)
{
	struct mgpu_ctx *victim, *comes;

	begin(NO_SHARES, 3);
	victim = run(1, 1, "matmul");
	victim->slots = 3;
	victim->slots_wanted = 3;
	ask(&preempt_none);
	now += MS;
	comes = submit(2, 1, "copy");
	comes->slots_wanted = 3;
	ask(&preempt_always);
	TAP_NEED(view.nr_tracks == 2);
	TAP_EQ(view.tracks[1].coming, 3);
	victim->slots_allowed = 0;
	victim->slots = 2;
	victim->preemptions = 1;
	comes->slots = 1;
	comes->state = MGPU_CTX_STATE_RUNNING;
	ask(&preempt_always);
	TAP_EQ(snap.ctx[0].leaving, 2);
	TAP_EQ(snap.ctx[1].coming, 2);
	TAP_EQ(plan.n, 0);
	victim->slots = 0;
	victim->state = MGPU_CTX_STATE_PREEMPTED;
	comes->slots = 3;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[1].coming, 0);
}

static void a_drain_asks_for_nothing(void)
{
	struct mgpu_ctx *comes;

	begin(NO_SHARES, 1);
	run(1, 1, "matmul");
	comes = submit(2, 1, "copy");
	ask(&preempt_drain);
	TAP_EQ(plan.decision[0].action, PREEMPT_DO_PREEMPT);
	TAP_CHECK(!order_for(&list[0]));
	TAP_CHECK(!is_kept_off(comes));
	/* that the job has ended will be said */
	TAP_CHECK(!ctx_view_unsettled(&view, &snap));
	ask(&preempt_drain);
	TAP_EQ(snap.ctx[0].leaving, 1);
	TAP_EQ(snap.ctx[1].coming, 1);
	TAP_EQ(plan.n, 0);
	TAP_CHECK(!ctx_view_unsettled(&view, &snap));
	/* its job has ended, and it has another: that may stay */
	list[0].arrived_ns = now++;
	ask(&preempt_none);
	TAP_EQ(snap.ctx[0].leaving, 0);
}

static void a_switch_beside_a_drain(void)
{
	begin(NO_SHARES, 2);
	run(1, 1, "matmul");
	run(2, 1, "copy");
	submit(3, 1, "copy");
	ask(&preempt_drain);
	TAP_EQ(plan.decision[0].action, PREEMPT_DO_PREEMPT);
	TAP_CHECK(!ctx_view_unsettled(&view, &snap));
	/* the slot that is switched is there soon, the other when it is drained */
	submit(4, 1, "copy");
	ask(&preempt_always);
	TAP_EQ(plan.decision[0].action, PREEMPT_DO_PREEMPT);
	TAP_EQ(plan.decision[0].method, PREEMPT_SWITCH);
	TAP_CHECK(ctx_view_unsettled(&view, &snap));
}

static void a_flush_takes_all(void)
{
	begin(NO_SHARES, 2);
	run(1, 1, "matmul")->slots = 2;
	list[0].slots_wanted = 2;
	submit(2, 1, "copy");
	ask(&preempt_flush);
	TAP_CHECK(is_kept_off(&list[0]));
	TAP_EQ(order_for(&list[0])->method, PREEMPT_FLUSH);
	list[0].idempotent = 0;
	begin(NO_SHARES, 2);
	run(1, 1, "matmul")->slots = 2;
	list[0].slots_wanted = 2;
	list[0].idempotent = 0;
	submit(2, 1, "copy");
	ask(&preempt_flush);
	TAP_CHECK(order_for(&list[0])->preempt);
	TAP_EQ(order_for(&list[0])->method, PREEMPT_SWITCH);
	TAP_EQ(order_for(&list[0])->keep, 1);
}

static void one_that_grew_gives_way(void)
{
	struct mgpu_ctx *wide, *next;

	/* a job of two slots has one, and its other shard is before the newcomer */
	begin(NO_SHARES, 2);
	wide = run(1, 1, "matmul");
	wide->slots_wanted = 2;
	run(2, 1, "matmul");
	next = submit(3, 1, "copy");
	view.param.min_gain = 1;
	ask(&preempt_mgpu);
	TAP_CHECK(order_for(wide) && order_for(wide)->preempt);
	TAP_EQ(order_for(wide)->keep, 1);
	TAP_CHECK(!is_kept_off(next));
	/* no context waits: it may have all slots */
	wide->slots_allowed = 1;
	nr--;
	ask(&preempt_mgpu);
	TAP_CHECK(order_for(wide) && !order_for(wide)->preempt);
}

/* ---- shares ---- */

static void shares(const uint32_t weight[2], const uint64_t engine_ms[2], uint64_t limited_ms)
{
	struct mgpu_vgpu_info v[2] = {
		{ .id = 2, .dev_id = 1, .weight = weight[1] },
		{ .id = 1, .dev_id = 1, .weight = weight[0] },
	};

	TAP_EQ(ctx_view_shares(&view, v, 2, &dev, 1, now), 0);
	now += 1000 * MS;
	v[0].stats.engine_ns = engine_ms[1] * MS;
	v[1].stats.engine_ns = engine_ms[0] * MS;
	v[1].stats.limited_ns = limited_ms * MS;
	TAP_EQ(ctx_view_shares(&view, v, 2, &dev, 1, now), 0);
}

static void shares_are_judged(void)
{
	begin(SHARES, 1);
	shares((uint32_t[]){ 300, 100 }, (uint64_t[]){ 500, 500 }, 0);
	TAP_EQ(view.vgpus[0].share, PREEMPT_BELOW);
	TAP_EQ(view.vgpus[1].share, PREEMPT_OVER);
	shares((uint32_t[]){ 300, 100 }, (uint64_t[]){ 745, 255 }, 0);
	TAP_EQ(view.vgpus[0].share, PREEMPT_EVEN);
	TAP_EQ(view.vgpus[1].share, PREEMPT_EVEN);
	/* there are more slots than contexts use: no vGPU lacks any */
	shares((uint32_t[]){ 300, 100 }, (uint64_t[]){ 100, 500 }, 0);
	TAP_EQ(view.vgpus[0].share, PREEMPT_EVEN);
	/* a limit is one under every policy */
	begin(NO_SHARES, 1);
	shares((uint32_t[]){ 300, 100 }, (uint64_t[]){ 250, 250 }, 400);
	TAP_EQ(view.vgpus[0].share, PREEMPT_OVER);
	TAP_EQ(view.vgpus[1].share, PREEMPT_EVEN);
	begin(NO_SHARES, 1);
	shares((uint32_t[]){ 300, 100 }, (uint64_t[]){ 500, 500 }, 0);
	TAP_EQ(view.vgpus[0].share, PREEMPT_EVEN);
}

/* The kernel tells; one that does not may have any policy. */
static void promises(void)
{
	struct mgpu_dev_info old = { .policy = "best-effort" };

	begin(SHARES, 1);
	TAP_CHECK(ctx_view_promises(&dev));
	begin(NO_SHARES, 1);
	TAP_CHECK(!ctx_view_promises(&dev));
	/* whatever its name is */
	strcpy(dev.policy, "weighted");
	TAP_CHECK(!ctx_view_promises(&dev));
	TAP_CHECK(ctx_view_promises(&old));
}

static void promises_are_kept(void)
{
	struct mgpu_ctx *a, *b, *own;

	/* from one VM to another: the kernel's scheduling policy decides that */
	begin(SHARES, 1);
	a = run(1, 1, "matmul");
	b = submit(2, 1, "copy");
	ask(&preempt_always);
	TAP_EQ(nr_orders, 0);
	TAP_EQ(left, 2);
	TAP_CHECK(!ctx_view_unsettled(&view, &snap));
	/* unless it only brings about what was promised */
	shares((uint32_t[]){ 100, 100 }, (uint64_t[]){ 800, 200 }, 0);
	ask(&preempt_always);
	TAP_EQ(left, 0);
	TAP_CHECK(is_kept_off(a));
	TAP_CHECK(order[0].vgpu == 2 && order[0].first);
	/* as soon as that has its slot, the other waits as it did */
	a->slots_allowed = 0;
	ask(&preempt_always);
	TAP_EQ(nr_orders, 0);
	a->slots = 0;
	a->preemptions = 1;
	a->state = MGPU_CTX_STATE_PREEMPTED;
	b->slots = 1;
	b->state = MGPU_CTX_STATE_RUNNING;
	ask(&preempt_always);
	TAP_EQ(nr_orders, 1);
	TAP_CHECK(order_for(a) && !order_for(a)->preempt);
	/* among contexts of one VM no other VM is affected, and none is kept off */
	begin(SHARES, 1);
	a = run(1, 1, "matmul");
	own = submit(1, 2, "copy");
	b = submit(2, 1, "copy");
	ask(&preempt_always);
	TAP_CHECK(order_for(own) && !order_for(own)->preempt && order_for(own)->first);
	TAP_CHECK(is_kept_off(a));
	TAP_CHECK(!is_kept_off(b));
}

/* Count contexts that may run; those that wait only for the kernel's turns may. */
static unsigned int nr_ready(uint32_t vgpu)
{
	unsigned int n = 0;

	for (size_t i = 0; i < nr; i++)
		n += list[i].vgpu_id == vgpu && list[i].slots_allowed &&
		     !is_kept_off(&list[i]);
	return n;
}

static void shares_can_be_used(void)
{
	struct mgpu_ctx *a, *b, *c;

	/* four for two slots, of which one is off already: one more goes, and no other */
	begin(SHARES, 2);
	a = run(1, 1, "matmul");
	b = run(1, 2, "matmul");
	submit(1, 3, "copy");
	submit(1, 4, "copy")->slots_allowed = 0;
	list[3].state = MGPU_CTX_STATE_PREEMPTED;
	ask(&preempt_always);
	TAP_EQ(is_kept_off(a) + is_kept_off(b), 1);
	TAP_EQ(nr_ready(1), 2);
	TAP_CHECK(left > 0);
	/* when it is back, each goes for another */
	list[3].slots_allowed = dev.engines;
	ask(&preempt_always);
	TAP_EQ(is_kept_off(a) + is_kept_off(b), 2);
	TAP_EQ(nr_ready(1), 2);
	/* with no more contexts than slots, one at a time */
	begin(SHARES, 2);
	a = run(1, 1, "matmul");
	run(2, 1, "matmul");
	c = submit(1, 2, "copy");
	ask(&preempt_always);
	TAP_CHECK(is_kept_off(a));
	TAP_CHECK(order_for(c) && order_for(c)->first);
	/* a context that is kept off comes back when no slot changes hands, or after the bound */
	b = submit(3, 1, "copy");
	b->slots_allowed = 0;
	b->state = MGPU_CTX_STATE_PREEMPTED;
	a->slots_allowed = 0;
	ask(&preempt_always);
	TAP_CHECK(!order_for(b));
	now += view.param.starve_ns + 1;
	ask(&preempt_always);
	TAP_CHECK(order_for(b) && !order_for(b)->preempt);
}

/* ---- a model of the kernel's slots ---- */

#define CONTEXTS	24
#define BOUND_NS	(2000 * MS)

struct modelled {
	uint64_t left_ns;	/* of its job */
	uint64_t parked_ns;
	uint64_t order;		/* in the queue */
	uint64_t waited_ns;	/* longest */
};

static uint64_t seed;

static unsigned int below(unsigned int n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(seed >> 33) % n;
}

static uint64_t next_order;

static void model_order(struct modelled *m, const struct ctx_order *o)
{
	for (size_t i = 0; i < nr; i++) {
		struct mgpu_ctx *c = &list[i];

		if (c->vgpu_id != o->vgpu || c->id != o->id)
			continue;
		TAP_CHECK(c->arrived_ns != 0);
		if (o->preempt && o->method == PREEMPT_FLUSH) {
			TAP_CHECK(c->idempotent);
			m[i].left_ns += below(5) * MS;
		}
		if (o->preempt && c->slots_allowed)
			m[i].parked_ns = now;
		c->slots_allowed = o->preempt ? o->keep : dev.engines;
		if (!o->preempt)
			m[i].order = ++next_order;
		return;
	}
	TAP_CHECK(!"an order for a context that is not there");
}

/* Advance by a millisecond: tiles end, slots are given, unwanted ones to any context. */
static void model_step(struct modelled *m)
{
	unsigned int held = 0;

	now += MS;
	for (size_t i = 0; i < nr; i++) {
		struct mgpu_ctx *c = &list[i];

		if (c->slots && m[i].left_ns <= MS * c->slots) {
			c->slots = 0;
			c->arrived_ns = 0;
			c->state = MGPU_CTX_STATE_IDLE;
			c->op[0] = '\0';
			c->slots_wanted = 0;
			c->slots_allowed = dev.engines;
			continue;
		}
		m[i].left_ns -= MS * c->slots;
		if (c->slots > c->slots_allowed) {
			c->preemptions += c->slots - c->slots_allowed;
			c->slots = c->slots_allowed;
			m[i].parked_ns = now;
		}
		if (c->arrived_ns && c->slots_allowed < c->slots_wanted &&
		    now - m[i].parked_ns > BOUND_NS)
			c->slots_allowed = dev.engines;
		held += c->slots;
	}
	while (held < dev.slots) {
		size_t best = nr;
		bool unpark = true;

		for (size_t i = 0; i < nr; i++) {
			const struct mgpu_ctx *c = &list[i];
			bool queued = c->slots < c->slots_allowed;

			if (!c->arrived_ns || c->slots >= c->slots_wanted || (!queued && !unpark))
				continue;
			if (best == nr || (queued && unpark) || m[i].order < m[best].order)
				best = i;
			unpark &= !queued;
		}
		if (best == nr)
			break;
		if (unpark)
			list[best].slots_allowed = list[best].slots + 1;
		list[best].slots++;
		held++;
	}
	for (size_t i = 0; i < nr; i++) {
		struct mgpu_ctx *c = &list[i];

		if (c->arrived_ns)
			c->state = c->slots ? MGPU_CTX_STATE_RUNNING :
				c->slots_allowed ? MGPU_CTX_STATE_WAITING :
						   MGPU_CTX_STATE_PREEMPTED;
	}
}

static void in_the_long_run(const struct preempt_ops *ops, bool policy_shares)
{
	struct modelled m[CONTEXTS] = { 0 };
	uint64_t waits[CONTEXTS] = { 0 }, worst = 0;
	unsigned int jobs = 0, orders = 0, idle = 0, last = tap_some(6000, 20000);

	begin(policy_shares, 2);
	for (size_t i = 0; i < CONTEXTS; i++) {
		submit(1 + (uint32_t)i % 3, (uint32_t)i + 1, i % 2 ? "copy" : "matmul");
		list[i].arrived_ns = 0;
		list[i].state = MGPU_CTX_STATE_IDLE;
		list[i].slots_wanted = 0;
	}
	for (unsigned int ms = 0; ms < last; ms++) {
		unsigned int held = 0, work = 0;

		/* about as much as two slots can do */
		if (!below(32)) {
			size_t i = below(CONTEXTS);

			if (!list[i].arrived_ns) {
				list[i].arrived_ns = now;
				list[i].slots_wanted = 1 + !below(4);
				list[i].slots_allowed = dev.engines;
				list[i].idempotent = below(2) != 0;
				strcpy(list[i].op, below(2) ? "copy" : "matmul");
				m[i].left_ns = (10 + below(100)) * MS;
				m[i].order = ++next_order;
				waits[i] = 0;
				jobs++;
			}
		}
		model_step(m);
		for (size_t i = 0; i < nr; i++) {
			held += list[i].slots;
			work += list[i].slots_wanted;
			waits[i] = list[i].arrived_ns && !list[i].slots ? waits[i] + 1 : 0;
			if (waits[i] > worst)
				worst = waits[i];
		}
		idle += held < dev.slots && held < work;
		ask(ops);
		TAP_CHECK(nr_orders <= 2 * nr);
		orders += (unsigned int)nr_orders;
		for (size_t k = 0; k < nr_orders; k++)
			model_order(m, &order[k]);
		if (tap.bad)
			return;
	}
	tap_diag("%s, %s: %u jobs, %u orders, longest wait %u ms", ops->name,
		 policy_shares ? "shares" : "no shares", jobs,
		 orders, (unsigned int)worst);
	TAP_CHECK(jobs > 100);
	/* slots are never idle while there is work, whatever was ordered */
	TAP_EQ(idle, 0);
	/* the bound, and turns of those that had waited for as long */
	TAP_CHECK(worst * MS < PREEMPT_STARVE_NS + BOUND_NS);
}

static void nobody_is_forgotten(void)
{
	for (seed = 1; seed < 2000000; seed = seed * 1000 + 7)
		for (size_t i = 1; preempt_all[i]; i++) {
			uint64_t kept = seed;

			in_the_long_run(preempt_all[i], NO_SHARES);
			in_the_long_run(preempt_all[i], SHARES);
			seed = kept;
		}
}

/* ---- what a module says that is not ours ---- */

static void survives_nonsense(void)
{
	unsigned int planned = 0;

	seed = 99;
	for (int round = 0; round < 3000; round++) {
		begin(below(2), 1 + below(8));
		for (unsigned int i = below(32); i; i--) {
			struct mgpu_ctx *c = submit(below(3), below(4), below(2) ? "copy" : "");

			c->dev_id = below(2);
			c->state = below(6);
			c->slots = below(5);
			c->slots_allowed = below(5);
			c->slots_wanted = below(5);
			c->job_inst = below(2) ? below(1000) : UINT64_MAX;
			c->job_inst_done = below(2) ? below(1000) : UINT64_MAX;
			c->job_bytes = below(2) ? 0 : UINT64_MAX;
			c->live_bytes = below(2) ? 0 : UINT32_MAX;
			c->arrived_ns = below(3) ? below(1000) : UINT64_MAX;
			c->preemptions = below(3);
			c->resumes = below(3);
			c->copies = below(3);
			c->switch_ns = below(3);
			c->engine_ns = below(2);
			c->engine_cycles = below(1000);
		}
		dev.slots = below(80);
		for (int twice = 0; twice < 2; twice++) {
			int ret;

			TAP_EQ(ctx_view_look(&view, list, nr, now), 0);
			ret = ctx_view_snapshot(&view, list, nr, &dev, now, &snap);
			if (ret) {
				TAP_EQ(ret, -EAGAIN);
				continue;
			}
			/* never refused for its contexts, whatever they are */
			ret = preempt_decide(&preempt_mgpu, &snap, &view.param, &plan);
			if (!snap.slots) {
				TAP_EQ(ret, -EINVAL);
				continue;
			}
			if (!TAP_EQ(ret, 0))
				tap_diag("%s", preempt_snapshot_check(&snap));
			planned++;
			ctx_view_orders(&view, &preempt_mgpu, &snap, ctx_view_promises(&dev),
					&plan, order, &nr_orders);
			TAP_CHECK(nr_orders <= 2 * snap.n);
		}
	}
	tap_diag("%u plans", planned);
	TAP_CHECK(planned > 1000);
}

int main(void)
{
	tap_run(learns_ends, "the cost of a job is learned when it ends");
	tap_run(protection_ends_with_its_job, "a protection from preemption ends with the job");
	tap_run(learns_speeds, "speeds are learned alone and beside others");
	tap_run(measures_switches, "switches are measured for the fit of their cost");
	tap_run(waiting_counts_from_the_beginning, "being kept off does not begin a wait anew");
	tap_run(a_list_of_several_moments, "a list that cannot be is no reason to decide");
	tap_run(idle_contexts_crowd_nobody_out, "idle contexts crowd no context out");
	tap_run(the_next_is_the_better_company, "a slot that becomes free is the best company's");
	tap_run(a_switch_in_its_order,
		"a switch: other contexts aside, then the newcomer, then the victim");
	tap_run(a_promise_of_several_slots, "a promise of several slots is kept until the last");
	tap_run(a_drain_asks_for_nothing, "a drain waits for the job's end");
	tap_run(a_switch_beside_a_drain, "a slot that is switched is looked for beside a drain");
	tap_run(a_flush_takes_all, "a flush takes all slots, and only work that can be lost");
	tap_run(one_that_grew_gives_way, "free slots go to those that wait before those that grow");
	tap_run(shares_are_judged, "a vGPU is over its share, or below, or about at it");
	tap_run(promises, "the kernel says whether its scheduling policy promises shares");
	tap_run(promises_are_kept, "where shares are promised, the kernel chooses among vGPUs");
	tap_run(shares_can_be_used, "a vGPU has contexts for its share while some are kept off");
	tap_run(nobody_is_forgotten, "no slot is idle and no context waits for ever");
	tap_run(survives_nonsense, "whatever the kernel says");
	ctx_view_free(&view);
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-sim-preempt: that its decisions come through mgpud's ctx_view, and that its
 * slots go where the module's go.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "preempt_model.h"
#include "tap.h"

/* ---- between the simulator and ctx_view ---- */

static unsigned long looks, snapshots, counts, decided;
static bool drop_orders, drop_counts, in_orders;
static const struct preempt_ctx *described;

int __real_ctx_view_look(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
			 uint64_t now_ns);
int __wrap_ctx_view_look(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
			 uint64_t now_ns);
int __real_ctx_view_snapshot(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
			     const struct mgpu_dev_info *dev, uint64_t now_ns,
			     struct preempt_snapshot *s);
int __wrap_ctx_view_snapshot(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
			     const struct mgpu_dev_info *dev, uint64_t now_ns,
			     struct preempt_snapshot *s);
size_t __real_ctx_view_orders(struct ctx_view *v, const struct preempt_ops *ops,
			      const struct preempt_snapshot *s, bool promises,
			      const struct preempt_plan *plan, struct ctx_order *order,
			      size_t *n);
size_t __wrap_ctx_view_orders(struct ctx_view *v, const struct preempt_ops *ops,
			      const struct preempt_snapshot *s, bool promises,
			      const struct preempt_plan *plan, struct ctx_order *order,
			      size_t *n);
void __real_ctx_view_ran(struct ctx_view *v, const struct mgpu_run_key *key,
			 const struct mgpu_run *more);
void __wrap_ctx_view_ran(struct ctx_view *v, const struct mgpu_run_key *key,
			 const struct mgpu_run *more);

int __wrap_ctx_view_look(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
			 uint64_t now_ns)
{
	looks++;
	return __real_ctx_view_look(v, list, n, now_ns);
}

int __wrap_ctx_view_snapshot(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
			     const struct mgpu_dev_info *dev, uint64_t now_ns,
			     struct preempt_snapshot *s)
{
	int ret = __real_ctx_view_snapshot(v, list, n, dev, now_ns, s);

	TAP_EQ(ret, 0);
	snapshots++;
	described = s->ctx;
	return ret;
}

size_t __wrap_ctx_view_orders(struct ctx_view *v, const struct preempt_ops *ops,
			      const struct preempt_snapshot *s, bool promises,
			      const struct preempt_plan *plan, struct ctx_order *order,
			      size_t *n)
{
	size_t left = plan->n;

	TAP_CHECK(!promises);
	*n = 0;
	if (drop_orders)
		return left;
	in_orders = true;
	left = __real_ctx_view_orders(v, ops, s, promises, plan, order, n);
	in_orders = false;
	return left;
}

void __wrap_ctx_view_ran(struct ctx_view *v, const struct mgpu_run_key *key,
			 const struct mgpu_run *more)
{
	counts++;
	if (!drop_counts)
		__real_ctx_view_ran(v, key, more);
}

/* mgpu, which is only ever counts about what ctx_view describes. */
static void spy_decide(const struct preempt_snapshot *s, const struct preempt_param *p,
		       struct preempt_plan *plan)
{
	/* ctx_view asks about a copy, too: what if the first job that ends had ended */
	if (!in_orders) {
		decided++;
		TAP_CHECK(s->ctx == described);
	}
	preempt_mgpu.decide(s, p, plan);
}

static const struct preempt_ops spy = { .name = "spy", .decide = spy_decide };

/* ---- runs ---- */

static struct psim_stream stream;

static struct psim_result run(const struct preempt_ops *policy)
{
	const struct psim_setup setup = {
		.policy = policy, .param = PREEMPT_PARAM_DEFAULT,
		.truth = PREEMPT_COST_PUBLISHED, .slots = 2,
	};
	struct psim_result r = { 0 };

	looks = 0;
	snapshots = 0;
	counts = 0;
	decided = 0;
	TAP_EQ(psim_run(&stream, &setup, &r), 0);
	return r;
}

static void generate(uint64_t seed)
{
	psim_generate(&stream, &(struct psim_shape){
		.seed = seed, .jobs = 100, .load = 0.9, .slots = 2, .wide = 0.2,
	});
}

static void through_ctx_view(void)
{
	struct psim_result r, mgpu;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		generate(seed);
		r = run(&spy);
		TAP_CHECK(r.decisions > stream.n);
		TAP_EQ(decided, r.decisions);
		TAP_CHECK(snapshots >= r.decisions && looks == snapshots);
		TAP_CHECK(counts > stream.n);
		mgpu = run(&preempt_mgpu);
		TAP_NEAR(r.norm_ipc, mgpu.norm_ipc, 0);
		TAP_EQ(r.preemptions, mgpu.preemptions);
	}
}

static void orders_count(void)
{
	struct psim_result mgpu, none, r;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		generate(seed);
		mgpu = run(&preempt_mgpu);
		none = run(&preempt_none);
		TAP_CHECK(mgpu.norm_ipc != none.norm_ipc);
		drop_orders = true;
		r = run(&preempt_mgpu);
		drop_orders = false;
		TAP_NEAR(r.norm_ipc, none.norm_ipc, 0);
		TAP_NEAR(r.mean, none.mean, 0);
		TAP_NEAR(r.wasted, 0, 0);
	}
}

static void counts_teach(void)
{
	struct psim_result learned, r;

	generate(1);
	learned = run(&preempt_mgpu);
	drop_counts = true;
	r = run(&preempt_mgpu);
	drop_counts = false;
	TAP_CHECK(r.norm_ipc != learned.norm_ipc);
}

/* ---- the module's slots ---- */

static struct psim_device m;

static struct psim_active *arrive(uint32_t vgpu, unsigned int width)
{
	struct psim_active *a = &m.a[m.n];

	stream.job[m.n] = (struct psim_job){
		.vgpu = vgpu, .width = width, .inst = 1e6, .ipc = 1, .kind = 1,
	};
	*a = (struct psim_active){
		.job = m.n, .state = PREEMPT_WAITING, .allowed = m.slots,
		.queued = ++m.turn,
	};
	m.n++;
	return a;
}

static void empty(unsigned int slots)
{
	static struct psim_setup setup;

	setup = (struct psim_setup){
		.param = PREEMPT_PARAM_DEFAULT, .truth = PREEMPT_COST_PUBLISHED,
		.slots = slots,
	};
	memset(&m, 0, sizeof(m));
	psim_init(&m, &stream, &setup);
}

static void in_turn(void)
{
	struct psim_active *wide, *a, *b, *c;

	empty(3);
	wide = arrive(1, 2);
	a = arrive(1, 1);
	b = arrive(1, 1);
	c = arrive(2, 1);
	psim_module_give(&m);
	TAP_EQ(wide->held, 2);
	TAP_EQ(a->held, 1);
	TAP_EQ(m.free, 0);
	/* ahead of its vGPU's, not of another's that came before it */
	m.free = 1;
	psim_module_order(&m, c, &(struct ctx_order){ .first = true });
	psim_module_give(&m);
	TAP_EQ(b->held, 1);
	TAP_EQ(c->held, 0);
}

static void kept_off(void)
{
	struct psim_active *a, *b, *c;

	empty(1);
	a = arrive(1, 1);
	b = arrive(1, 1);
	c = arrive(1, 1);
	psim_module_order(&m, a, &(struct ctx_order){ .preempt = true });
	psim_module_order(&m, b, &(struct ctx_order){ .preempt = true });
	psim_module_give(&m);
	TAP_EQ(c->held, 1);
	/* a slot that no job in the queue wants goes to the job kept off for longest */
	m.free = 1;
	psim_module_give(&m);
	TAP_EQ(a->held, 1);
	TAP_EQ(b->held, 0);
	psim_module_order(&m, c, &(struct ctx_order){ .preempt = true });
	TAP_EQ(c->leaving, 1);
	TAP_EQ(m.nr_moves, 1);
	/* a job that is resumed is in the queue, and goes before those kept off */
	psim_module_order(&m, b, &(struct ctx_order){ .first = true });
	m.free = 1;
	psim_module_give(&m);
	TAP_EQ(b->held, 1);
}

int main(void)
{
	tap_run(through_ctx_view, "each decision is about a snapshot of ctx_view");
	tap_run(orders_count, "without the orders of ctx_view the module's order is in force");
	tap_run(counts_teach, "counts reach the analyser through ctx_view");
	tap_run(in_turn, "slots go by turn, and first is within a vGPU");
	tap_run(kept_off, "a job that is kept off gets only slots that no other wants");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The learner: what it knows of vGPUs, its questions, its expectations, and the watch over a
 * model. Estimates are scripted; models are stubs.
 */
#include <stdlib.h>

#include "allocations.h"
#include "decide.h"
#include "drift.h"
#include "due.h"
#include "learner.h"
#include "random.h"
#include "tap.h"

#define VMS	200
#define DEVS	3

static const struct fds_param standard = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT };

/* ---- a host ---- */

static double unit(void)
{
	return (double)(rnd() >> 11) / (1ULL << 53);
}

static double between(double low, double high)
{
	return low + (high - low) * unit();
}

static struct estimate_vgpu vms[VMS];
static struct estimate_dev devs[DEVS];
static struct sla sla[VMS];
static const char *text[VMS];
static struct expect expect[VMS];
static struct estimate e;

static void host(size_t n, size_t nr_devs)
{
	memset(vms, 0, sizeof(vms));
	e = (struct estimate){
		.seconds = 1, .cpu_capacity = 4, .cpu_capacity_smooth = 4,
		.vgpus = vms, .nr_vgpus = n, .devs = devs, .nr_devs = nr_devs,
	};
	for (uint32_t i = 0; i < nr_devs; i++)
		devs[i] = (struct estimate_dev){ .id = 10 + i, .engines = 2 };
	for (size_t j = 0; j < n; j++) {
		vms[j].last.id = (uint32_t)j + 1;
		snprintf(vms[j].last.uuid, sizeof(vms[j].last.uuid),
			 "00000000-0000-0000-0000-%012x", (unsigned int)j);
		vms[j].last.dev = 10;
		vms[j].last.weight = 100;
		sla[j] = SLA_NONE;
		text[j] = NULL;
	}
}

/* A vGPU that is active, with a rate and parts of the CPUs and of its device's engines. */
static void active(size_t j, double fps, double cpu, double gpu)
{
	struct estimate_vgpu *v = &vms[j];

	v->state = VGPU_ACTIVE;
	v->last.open = true;
	v->last.tgid = 100 + (uint32_t)j;
	v->last.frames += (uint64_t)fps;
	v->last.frames_total += (uint64_t)fps;
	v->fps = fps;
	v->cpu_share = cpu;
	v->gpu_share = gpu;
	v->cpu_use = cpu * 4;
	v->gpu_use = gpu * 2;
	v->cpu_cost = v->cpu_cost_smooth = v->cpu_use / fps;
	v->gpu_cost = v->gpu_cost_smooth = v->gpu_use / fps;
	v->share = fmax(cpu, gpu);
	v->reach = v->unheld = 1;
	v->demand = INFINITY;
}

static void quiet(size_t j, enum vgpu_state state)
{
	struct sample_vgpu last = vms[j].last;

	memset(&vms[j], 0, sizeof(vms[j]));
	vms[j].last = last;
	vms[j].last.open = state != VGPU_CLOSED;
	vms[j].state = state;
	vms[j].idle_ns = 2 * DECIDE_RELEASE_NS;
}

/* ---- models ---- */

/**
 * struct stub - a model that answers as it is told
 * @share: its answer
 * @add: what is added to the answer of the control instead
 * @as_control: with @add
 * @n: number of questions
 * @seen: the last questions
 */
struct stub {
	double share[LEARN_RESOURCES];
	double add;
	bool as_control;
	size_t n;
	struct learn_input seen[LEARNER_QUESTIONS];
};

static void stub_share(void *data, const struct learn_input *in, double share[LEARN_RESOURCES])
{
	struct stub *s = data;

	s->seen[s->n++ % LEARNER_QUESTIONS] = *in;
	memcpy(share, s->share, sizeof(s->share));
	if (!s->as_control)
		return;
	learn_static.share(NULL, in, share);
	for (int g = 0; g < LEARN_RESOURCES; g++)
		share[g] = fmin(share[g] + s->add, 1);
}

static const struct learn_model_ops stub_ops = { .name = "stub", .share = stub_share };
static struct stub stub;
static struct learner *l;

static void use(bool acts)
{
	learner_use(l, &(struct learner_model){ .ops = &stub_ops, .data = &stub, .acts = acts });
}

static void begin(size_t n, size_t nr_devs, bool acts)
{
	host(n, nr_devs);
	memset(&stub, 0, sizeof(stub));
	stub.share[LEARN_CPU] = 0.3;
	stub.share[LEARN_ENGINE] = 0.4;
	l = learner_new();
	if (!l)
		abort();
	use(acts);
}

static void update(void)
{
	TAP_EQ(learner_update(l, &e, text, sla, &standard, expect), 0);
}

static bool none(size_t j)
{
	return isnan(expect[j].cpu) && isnan(expect[j].gpu) && isinf(expect[j].fps) &&
		!expect[j].starting;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* The question for the vGPU with this weight, which tells vGPUs apart; NULL: none. */
static const struct learn_input *asked(double weight)
{
	for (size_t i = 0; i < stub.n && i < LEARNER_QUESTIONS; i++)
		if (stub.seen[i].task[0].weight == weight)
			return &stub.seen[i];
	return NULL;
}

/* ---- knowledge ---- */

static void knows(void)
{
	const struct learn_input *in;

	begin(2, 1, false);
	vms[1].last.weight = 7;
	for (int k = 0; k < 4; k++) {
		active(0, 50, 0.25, 0.5);
		active(1, 20, k < 2 ? 0.1 : 0.3, 0.2);
		update();
	}
	TAP_CHECK(learner_known(l, 1)->periods == 4);
	TAP_CHECK(near(learner_known(l, 1)->cost[LEARN_CPU], 0.3 * 4 / 20));
	TAP_CHECK(near(learner_known(l, 1)->cost[LEARN_ENGINE], 0.2 * 2 / 20));
	TAP_CHECK(near(learner_known(l, 1)->smooth[LEARN_CPU], 0.2));
	TAP_CHECK(!learner_known(l, 2));
	/* its VM is shut down, and another vGPU comes before it */
	quiet(1, VGPU_CLOSED);
	memmove(vms + 1, vms, 2 * sizeof(*vms));
	strcpy(vms[0].last.uuid, "11111111-0000-0000-0000-000000000000");
	e.nr_vgpus = 3;
	quiet(0, VGPU_CLOSED);
	stub.n = 0;
	update();
	TAP_CHECK(learner_known(l, 0)->periods == 0);
	TAP_CHECK(learner_known(l, 2)->periods == 4);
	in = asked(7);
	TAP_NEED(in);
	TAP_CHECK(in->task[0].periods == 4);
	TAP_CHECK(near(in->task[0].cost[LEARN_CPU], 0.06));
	TAP_CHECK(near(in->task[0].smooth[LEARN_CPU], 0.2));
	TAP_CHECK(in->task[0].fps == 0 && in->task[0].use[LEARN_CPU] == 0);
	TAP_EQ(in->n, 2);
	TAP_CHECK(in->task[1].periods == 5 && in->task[1].fps == 50);
	TAP_CHECK(near(in->task[1].use[LEARN_ENGINE], 0.5));
	/* it is removed, and made anew */
	e.nr_vgpus = 2;
	update();
	TAP_CHECK(learner_known(l, 2)->periods == 4);
	TAP_CHECK(!learner_known(l, 3));
	e.nr_vgpus = 3;
	update();
	TAP_CHECK(learner_known(l, 2)->periods == 4);
	TAP_CHECK(!learner_known(l, 3));
	learner_free(l);
}

/* The last vGPUs that were removed are remembered, those that never ran are not. */
static void removed(void)
{
	unsigned int gone = 0;

	begin(2, 1, false);
	for (unsigned int k = 0; k < 2 * LEARNER_GONE; k++) {
		snprintf(vms[0].last.uuid, sizeof(vms[0].last.uuid),
			 "22222222-0000-0000-0000-%012x", k);
		snprintf(vms[1].last.uuid, sizeof(vms[1].last.uuid),
			 "33333333-0000-0000-0000-%012x", k);
		active(0, 50, 0.25, 0.5);
		quiet(1, VGPU_CLOSED);
		update();
	}
	e.nr_vgpus = 0;
	update();
	for (size_t i = 0; learner_known(l, i); i++)
		gone += learner_known(l, i)->periods == 1;
	TAP_EQ(gone, LEARNER_GONE);
	TAP_CHECK(!learner_known(l, LEARNER_GONE));
	TAP_STR(learner_known(l, LEARNER_GONE - 1)->uuid, vms[0].last.uuid);
	e.nr_vgpus = 1;
	active(0, 50, 0.25, 0.5);
	update();
	TAP_CHECK(learner_known(l, 0)->periods == 2);
	TAP_CHECK(!learner_known(l, LEARNER_GONE));
	learner_free(l);
}

/* Without a model, and before there is one, it learns all the same. */
static void learns_without_model(void)
{
	begin(2, 1, true);
	learner_use(l, &(struct learner_model){ .ops = NULL });
	TAP_EQ(learner_report(l)->mode, LEARNER_OFF);
	active(0, 50, 0.25, 0.5);
	quiet(1, VGPU_IDLE);
	update();
	update();
	TAP_CHECK(none(0) && none(1));
	TAP_CHECK(learner_known(l, 0)->periods == 2);
	learner_fail(l, "there is none");
	TAP_EQ(learner_report(l)->mode, LEARNER_OFF);
	/* a sample that cannot be compared is no period */
	e.seconds = 0;
	update();
	TAP_CHECK(learner_known(l, 0)->periods == 2);
	learner_free(l);
}

static void begins_with(void)
{
	struct learner_known known[2] = {
		{ .uuid = "00000000-0000-0000-0000-000000000001", .periods = 9,
		  .cost = { 0.02, 0.01 }, .smooth = { 0.3, 0.2 } },
		{ .uuid = "11111111-0000-0000-0000-000000000001", .periods = 3 },
	};

	begin(2, 1, true);
	TAP_EQ(learner_know(l, known, 2), 0);
	vms[1].last.frames = 1000;
	vms[1].last.frames_total = 1000;
	quiet(1, VGPU_IDLE);
	update();
	TAP_CHECK(learner_known(l, 1)->periods == 9);
	TAP_CHECK(learner_known(l, 0)->periods == 0);
	/* a vGPU that is not there yet */
	TAP_CHECK(learner_known(l, 2)->periods == 3);
	/* min(0.3 * 4 / 0.02, 0.4 * 2 / 0.01) */
	TAP_CHECK(near(expect[1].fps, 60));
	/* frames of before this learner are no start */
	TAP_CHECK(!expect[1].starting);
	known[0].cost[LEARN_ENGINE] = -1;
	TAP_EQ(learner_know(l, known, 2), -EINVAL);
	known[0].cost[LEARN_ENGINE] = 0;
	known[1].periods = INFINITY;
	TAP_EQ(learner_know(l, known, 2), -EINVAL);
	known[1].periods = 1;
	known[1].smooth[LEARN_CPU] = NAN;
	TAP_EQ(learner_know(l, known, 2), -EINVAL);
	TAP_CHECK(learner_known(l, 1)->periods == 9);
	learner_free(l);
}

/* ---- questions ---- */

static void question(void)
{
	const struct learn_input *in;
	char longer[200];

	begin(20, 2, false);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	text[0] = "game at 1920x1080";
	text[1] = longer;
	vms[0].last.weight = 7;
	vms[19].last.weight = 9;
	quiet(0, VGPU_CLOSED);
	quiet(19, VGPU_IDLE);
	for (size_t j = 1; j < 19; j++) {
		active(j, 10, 0.01, 0.02);
		vms[j].last.dev = j % 2 ? 10 : 11;
	}
	update();
	in = asked(7);
	TAP_NEED(in);
	TAP_EQ(in->n, LEARN_CLIENTS);
	TAP_STR(in->task[0].text, "game at 1920x1080");
	TAP_EQ(strlen(in->task[1].text), LEARN_TEXT - 1);
	TAP_CHECK(in->task[0].periods == 0);
	/* nine on its device come first, then six on the other one */
	for (size_t a = 0; a < LEARN_CLIENTS; a++)
		for (size_t b = 0; b < LEARN_CLIENTS; b++)
			TAP_CHECK(in->distance[a][b] == (a == b ? 0 : (a < 10) == (b < 10) ?
							1 : 2));
	TAP_CHECK(in->now[LEARN_CPU] == 1 && in->now[LEARN_ENGINE] == 1);
	for (size_t t = 0; t < LEARN_PAST; t++) {
		TAP_CHECK(near(in->idle[LEARN_CPU][t], 1 - 18 * 0.01));
		TAP_CHECK(near(in->idle[LEARN_ENGINE][t], 1 - 9 * 0.02));
	}
	/* the present is the last of the past */
	active(1, 10, 0.11, 0.12);
	stub.n = 0;
	update();
	in = asked(7);
	TAP_NEED(in);
	TAP_CHECK(near(in->idle[LEARN_CPU][LEARN_PAST - 1], 1 - 18 * 0.01 - 0.1));
	TAP_CHECK(near(in->idle[LEARN_ENGINE][LEARN_PAST - 1], 1 - 9 * 0.02 - 0.1));
	TAP_CHECK(near(in->idle[LEARN_CPU][LEARN_PAST - 2], 1 - 18 * 0.01));
	TAP_CHECK(near(in->idle[LEARN_CPU][0], 1 - 18 * 0.01));
	TAP_CHECK(asked(9));
	learner_free(l);
}

/* An answer that can be checked is asked for as if nothing were known of the vGPU. */
static void newcomer(void)
{
	const struct learn_input *in;

	begin(3, 1, false);
	vms[0].last.weight = 5;
	vms[1].last.weight = 7;
	vms[2].last.weight = 9;
	for (int k = 0; k < 6; k++) {
		active(0, 50, 0.25, 0.5);
		active(1, 20, 0.15, 0.2);
		quiet(2, VGPU_CLOSED);
		stub.n = 0;
		update();
		TAP_EQ(stub.n, 2);
		in = asked(k % 2 ? 7 : 5);
		TAP_NEED(in);
		TAP_CHECK(!asked(k % 2 ? 5 : 7));
		TAP_CHECK(in->task[0].periods == 0 && in->task[0].fps == 0);
		for (int g = 0; g < LEARN_RESOURCES; g++)
			TAP_CHECK(in->task[0].cost[g] == 0 && in->task[0].use[g] == 0 &&
				  in->task[0].smooth[g] == 0);
		TAP_EQ(in->n, 2);
		TAP_CHECK(in->task[1].periods == k + 1);
		/* what it used itself counts as idle */
		for (size_t t = 0; k == 1 && t < LEARN_PAST; t++)
			TAP_CHECK(near(in->idle[LEARN_CPU][t], t < LEARN_PAST - 2 ?
				       0.6 : 0.75));
	}
	TAP_EQ(learner_report(l)->answers, 12);
	TAP_EQ(learner_report(l)->checked, 6);
	learner_free(l);
}

static void turns(void)
{
	unsigned int count[VMS] = { 0 };

	begin(VMS, 1, false);
	for (size_t j = 0; j < VMS; j++) {
		quiet(j, VGPU_CLOSED);
		vms[j].last.weight = (uint32_t)j + 1;
	}
	active(0, 50, 0.25, 0.5);
	for (int k = 0; k < 4; k++) {
		stub.n = 0;
		update();
		TAP_EQ(stub.n, LEARNER_QUESTIONS);
		for (size_t i = 0; i < stub.n; i++)
			count[(size_t)stub.seen[i].task[0].weight - 1]++;
	}
	for (size_t j = 0; j < VMS; j++)
		TAP_CHECK(count[j] >= 1);
	/* those that start need their answer at once */
	stub.n = 0;
	for (size_t j = 5; j < VMS; j += 50) {
		quiet(j, VGPU_IDLE);
		vms[j].last.frames++;
	}
	update();
	for (size_t j = 5; j < VMS; j += 50)
		TAP_CHECK(asked((double)j + 1));
	learner_free(l);
}

/* ---- expectations ---- */

static void modes(void)
{
	begin(2, 1, false);
	active(0, 50, 0.25, 0.5);
	quiet(1, VGPU_CLOSED);
	update();
	TAP_EQ(learner_report(l)->mode, LEARNER_SHADOW);
	TAP_CHECK(none(0) && none(1));
	TAP_CHECK(stub.n == 2);
	use(true);
	TAP_CHECK(isnan(learner_report(l)->error) && isnan(learner_report(l)->control));
	update();
	TAP_EQ(learner_report(l)->mode, LEARNER_ACTS);
	TAP_CHECK(none(0));
	TAP_CHECK(near(expect[1].cpu, 0.3) && near(expect[1].gpu, 0.4));
	TAP_CHECK(isinf(expect[1].fps) && !expect[1].starting);
	/* nothing is expected of a period that was not measured */
	e.seconds = 0;
	update();
	TAP_CHECK(none(1));
	learner_free(l);
}

static void starting(void)
{
	begin(3, 1, true);
	/* as right as the control for a VM that is alone */
	stub.share[LEARN_CPU] = 1;
	stub.share[LEARN_ENGINE] = 1;
	active(0, 50, 0.25, 0.5);
	quiet(1, VGPU_CLOSED);
	vms[1].last.frames = UINT64_MAX;	/* counters begin anywhere */
	e.nr_vgpus = 2;
	update();
	quiet(1, VGPU_IDLE);
	update();
	TAP_CHECK(!expect[1].starting && isfinite(expect[1].cpu));
	for (int k = 0; k < LEARNER_STARTING; k++) {
		vms[1].last.frames++;
		update();
		TAP_CHECK(expect[1].starting);
	}
	/* what is never measured takes nothing from others for long */
	vms[1].last.frames++;
	update();
	TAP_CHECK(!expect[1].starting && isfinite(expect[1].cpu));
	active(1, 10, 0.1, 0.1);
	update();
	TAP_CHECK(none(1));
	/* a counter that fell was reset */
	quiet(1, VGPU_IDLE);
	vms[1].last.frames -= 5;
	update();
	TAP_CHECK(!expect[1].starting);
	/* created in the period, and shows frames */
	e.nr_vgpus = 3;
	quiet(2, VGPU_IDLE);
	vms[2].last.frames_total = 3;
	update();
	TAP_CHECK(expect[2].starting);
	quiet(2, VGPU_CLOSED);
	vms[2].last.frames++;
	update();
	TAP_CHECK(!expect[2].starting);
	learner_free(l);
}

static void own_agreement(void)
{
	begin(2, 1, true);
	active(0, 50, 0.25, 0.5);
	active(1, 20, 0.1, 0.2);	/* costs 0.02 and 0.02 */
	update();
	quiet(1, VGPU_CLOSED);
	stub.share[LEARN_CPU] = 0.05;
	stub.share[LEARN_ENGINE] = 0.05;
	sla[1].floor = 40;		/* 0.2 and 0.4 */
	update();
	TAP_CHECK(near(expect[1].cpu, 0.2) && near(expect[1].gpu, 0.4));
	TAP_CHECK(near(expect[1].fps, 40));
	sla[1] = (struct sla){ .floor = 0, .ceiling = 4 };
	stub.share[LEARN_CPU] = 0.9;
	stub.share[LEARN_ENGINE] = 0.9;
	update();
	TAP_CHECK(near(expect[1].cpu, 0.02) && near(expect[1].gpu, 0.04));
	TAP_CHECK(near(expect[1].fps, 4));
	sla[1] = SLA_NONE;
	vms[1].last.fps_limit = 2000;
	update();
	TAP_CHECK(near(expect[1].fps, 2));
	TAP_CHECK(near(expect[1].cpu, LEARNER_PART_MIN) && near(expect[1].gpu, 0.02));
	/* there is always a little */
	vms[1].last.fps_limit = 0;
	use(true);
	stub.share[LEARN_CPU] = 0;
	stub.share[LEARN_ENGINE] = 0;
	update();
	TAP_CHECK(near(expect[1].cpu, LEARNER_PART_MIN) &&
		  near(expect[1].gpu, LEARNER_PART_MIN));
	learner_free(l);
}

/* Random hosts: whatever a model answers, there is room for it. */
static void room(void)
{
	size_t tight = 0, many = 0;

	rng = 1;
	for (int round = 0; round < 300; round++) {
		size_t n = 2 + below(20);
		struct decide_param param = {
			.allocator = &alloc_exact, .iterations = 1, .fds = standard,
		};

		begin(n, DEVS, true);
		for (int k = 0; k < 4; k++) {
			double need[1 + DEVS] = { 0 }, start[1 + DEVS] = { 0 };
			struct control control = { 0 };
			struct plan plan;

			for (size_t j = 0; j < n; j++) {
				vms[j].last.dev = 10 + (uint32_t)below(DEVS);
				sla[j].floor = unit() < 0.3 ?
					between(1, 60) : 0;
				if (unit() < 0.5) {
					active(j, between(1, 100),
					       between(0.001, 0.2),
					       between(0.001, 0.2));
				} else {
					quiet(j, unit() < 0.8 ? VGPU_IDLE :
					      VGPU_CLOSED);
					vms[j].last.frames += below(2);
				}
			}
			for (int g = 0; g < LEARN_RESOURCES; g++)
				stub.share[g] = unit();
			use(true);
			update();
			TAP_NEED(!decide(&e, &param, sla, NULL, &control, &plan));
			for (size_t j = 0; j < n; j++) {
				size_t i = vms[j].last.dev - 10 + 1;

				if (vms[j].state == VGPU_ACTIVE) {
					need[0] += plan.targets[j].granted *
						vms[j].cpu_cost_smooth / 4;
					need[i] += plan.targets[j].granted *
						vms[j].gpu_cost_smooth / 2;
				}
				if (!expect[j].starting)
					continue;
				many += start[0] > 0;
				start[0] += expect[j].cpu;
				start[i] += expect[j].gpu;
			}
			plan_free(&plan);
			for (size_t i = 0; i < 1 + DEVS; i++) {
				double left = fmax(1 - need[i], LEARNER_PART_MIN);

				tight += start[i] > 0.99 * left;
				if (!TAP_CHECK(start[i] <= left * (1 + 1e-9)))
					tap_diag("%zu: %g of %g", i, start[i], left);
			}
			for (size_t j = 0; j < n; j++) {
				size_t i = vms[j].last.dev - 10 + 1;

				if (none(j))
					continue;
				TAP_CHECK(expect[j].cpu > 0 && expect[j].gpu > 0);
				TAP_CHECK(expect[j].cpu <= fmax(1 - need[0], LEARNER_PART_MIN) *
					  (1 + 1e-9));
				TAP_CHECK(expect[j].gpu <= fmax(1 - need[i], LEARNER_PART_MIN) *
					  (1 + 1e-9));
			}
		}
		learner_free(l);
	}
	/* the test has cases in which it is the bound that decides */
	TAP_CHECK(tight > 100 && many > 100);
}

static void bounded_change(void)
{
	double before[2];
	size_t most = 0;

	rng = 1;
	/* no vGPU is active, so that no answer is checked */
	begin(2, 1, true);
	quiet(0, VGPU_CLOSED);
	for (int k = 0; k < 1000; k++) {
		quiet(1, k % 2 ? VGPU_CLOSED : VGPU_IDLE);
		stub.share[LEARN_CPU] = unit() < 0.5 ? 0 : 1;
		stub.share[LEARN_ENGINE] = unit();
		before[0] = expect[1].cpu;
		before[1] = expect[1].gpu;
		update();
		if (!k)
			continue;
		TAP_CHECK(expect[1].cpu <= before[0] * LEARNER_STEP * (1 + 1e-9));
		TAP_CHECK(expect[1].cpu >= before[0] / LEARNER_STEP * (1 - 1e-9));
		TAP_CHECK(expect[1].gpu <= before[1] * LEARNER_STEP * (1 + 1e-9));
		TAP_CHECK(expect[1].gpu >= before[1] / LEARNER_STEP * (1 - 1e-9));
		most += near(expect[1].cpu, before[0] * LEARNER_STEP);
	}
	TAP_CHECK(most > 100);
	learner_free(l);
}

/* ---- the watch ---- */

static void not_a_share(void)
{
	static const double bad[] = { NAN, INFINITY, -INFINITY, -0.01, 1.01 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(3, 1, true);
		active(0, 50, 0.25, 0.5);
		quiet(1, VGPU_CLOSED);
		quiet(2, VGPU_CLOSED);
		update();
		TAP_CHECK(!none(1) && !none(2));
		stub.share[i % 2] = bad[i];
		update();
		TAP_EQ(learner_report(l)->mode, LEARNER_FAILED);
		TAP_CHECK(none(0) && none(1) && none(2));
		TAP_CHECK(strstr(learner_report(l)->why, i % 2 ? "engines" : "CPUs"));
		TAP_CHECK(strstr(learner_report(l)->why, "stub expects"));
		/* it stays so, with a good answer, too */
		stub.share[i % 2] = 0.3;
		update();
		TAP_EQ(learner_report(l)->mode, LEARNER_FAILED);
		TAP_CHECK(none(1));
		use(true);
		TAP_STR(learner_report(l)->why, "");
		update();
		TAP_CHECK(!none(1));
		learner_free(l);
	}
	/* also where only the answer for a vGPU that is not active is none */
	begin(1, 1, true);
	quiet(0, VGPU_CLOSED);
	stub.share[LEARN_CPU] = NAN;
	update();
	TAP_EQ(learner_report(l)->mode, LEARNER_FAILED);
	TAP_CHECK(none(0));
	/* rounding is no failure */
	use(true);
	stub.share[LEARN_CPU] = 1 + 1e-9;
	stub.share[LEARN_ENGINE] = -1e-9;
	update();
	TAP_EQ(learner_report(l)->mode, LEARNER_ACTS);
	TAP_CHECK(expect[0].cpu == 1 && near(expect[0].gpu, LEARNER_PART_MIN));
	learner_free(l);
}

/* Shares of the plan are those of the allocator, and errors are against them. */
static void errors(void)
{
	const struct decide_param param = {
		.allocator = &alloc_exact, .iterations = 1, .fds = standard,
	};
	double error = 0, of_control = 0, rates[2], sum[LEARN_RESOURCES] = { 0 };
	struct control control = { 0 };
	struct due due = { 0 };
	struct plan plan;

	begin(2, 1, false);
	active(0, 50, 0.25, 0.5);
	active(1, 20, 0.4, 0.1);
	TAP_NEED(!decide(&e, &param, NULL, NULL, &control, &plan));
	rates[0] = plan.targets[0].fps;
	rates[1] = plan.targets[1].fps;
	plan_free(&plan);
	TAP_EQ(due_update(&due, &e, NULL, &standard), 0);
	for (size_t j = 0; j < 2; j++) {
		double cpu = rates[j] * vms[j].cpu_cost / 4;
		double gpu = rates[j] * vms[j].gpu_cost / 2;

		TAP_CHECK(fabs(due.share[j][LEARN_CPU] - cpu) < 1e-6);
		TAP_CHECK(fabs(due.share[j][LEARN_ENGINE] - gpu) < 1e-6);
		sum[LEARN_CPU] += cpu;
		sum[LEARN_ENGINE] += gpu;
	}
	/* parts of what the plan gives out */
	for (size_t j = 0; j < 2; j++) {
		double cpu = due.share[j][LEARN_CPU] / sum[LEARN_CPU];
		double gpu = due.share[j][LEARN_ENGINE] / sum[LEARN_ENGINE];

		error += (fabs(0.3 - cpu) + fabs(0.4 - gpu)) / 4;
		of_control += (fabs(0.5 - cpu) + fabs(0.5 - gpu)) / 4;
	}
	due_free(&due);
	/* each of both is checked in turn */
	update();
	update();
	TAP_EQ(learner_report(l)->checked, 2);
	TAP_CHECK(fabs(learner_report(l)->error - error) < 1e-6);
	TAP_CHECK(fabs(learner_report(l)->control - of_control) < 1e-6);
	/* without an active vGPU there is nothing to check */
	quiet(0, VGPU_IDLE);
	quiet(1, VGPU_CLOSED);
	update();
	TAP_EQ(learner_report(l)->checked, 2);
	learner_free(l);
}

static void forgets(void)
{
	struct drift d = { 0 };
	double mean = 1;

	for (int k = 0; k < DRIFT_KEEP; k++)
		drift_add(&d, 1, 2);
	TAP_CHECK(near(d.error, 1) && near(d.control, 2));
	for (int k = 0; k < 100; k++) {
		drift_add(&d, 0, 1);
		mean *= 1 - 1.0 / DRIFT_KEEP;
	}
	TAP_CHECK(near(d.error, mean));
	TAP_CHECK(near(d.control, 1 + mean));
	TAP_EQ(d.n, DRIFT_KEEP + 100);
}

/* Return the number of errors after which a model has drifted, 0 if that never happens. */
static unsigned int drifts_after(struct drift *d, double worse, double noise)
{
	for (unsigned int k = 1; k <= 20000; k++) {
		double control = 0.3 + noise * (unit() - 0.5);

		if (drift_add(d, fmax(0.3 + worse + noise * (unit() - 0.5), 0), control))
			return k;
	}
	return 0;
}

static void drifts(void)
{
	struct drift d = { 0 };

	rng = 1;
	/* DRIFT_LIMIT / (0.1 - DRIFT_SLACK), rounded up */
	TAP_EQ(drifts_after(&d, 0.1, 0), 38);
	memset(&d, 0, sizeof(d));
	TAP_EQ(drifts_after(&d, 0, 0.3), 0);
	memset(&d, 0, sizeof(d));
	TAP_EQ(drifts_after(&d, -0.1, 0.3), 0);
	/* a long good time does not outweigh what comes after it */
	TAP_CHECK(drifts_after(&d, 0.1, 0) <= 39);
}

/* Run until the model fails, at most @most periods; return how many there were. */
static unsigned int run(unsigned int most)
{
	for (unsigned int k = 1; k <= most; k++) {
		active(0, 50, 0.25, 0.5);
		active(1, 20, 0.4, 0.1);
		quiet(2, VGPU_CLOSED);
		update();
		if (learner_report(l)->mode == LEARNER_FAILED)
			return k;
		TAP_CHECK(!none(2));
	}
	return 0;
}

static void worse_than_control(void)
{
	begin(3, 1, true);
	stub.share[LEARN_CPU] = 0;
	stub.share[LEARN_ENGINE] = 0;
	TAP_CHECK(run(50) > 5);
	TAP_CHECK(none(2));
	TAP_CHECK(strstr(learner_report(l)->why, "the error of stub is 0."));
	TAP_CHECK(strstr(learner_report(l)->why, "that of static 0."));
	TAP_CHECK(strstr(learner_report(l)->why, "train it anew"));
	TAP_CHECK(learner_report(l)->error > learner_report(l)->control + DRIFT_SLACK);
	/* errors are measured further */
	update();
	TAP_CHECK(stub.n > 0 && learner_report(l)->mode == LEARNER_FAILED && none(2));
	/* the control itself never fails; a model that becomes bad does */
	use(true);
	stub.as_control = true;
	TAP_EQ(run(2000), 0);
	stub.add = 0.4;
	TAP_CHECK(run(60) > 0);
	learner_free(l);
}

static void controls(void)
{
	static const struct learn_model_ops *const all[] = {
		&learn_static, &learn_proportional, &learn_persistence, &learn_smoothing,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		begin(3, 1, true);
		learner_use(l, &(struct learner_model){ .ops = all[i], .acts = true });
		TAP_EQ(run(20), 0);
		/* both CPUs and engines are divided among three, one of which is unknown */
		TAP_CHECK(expect[2].cpu > 0.3 && expect[2].cpu < 0.4);
		learner_free(l);
	}
}

static void too_old(void)
{
	begin(2, 1, true);
	active(0, 50, 0.25, 0.5);
	quiet(1, VGPU_CLOSED);
	update();
	learner_fail(l, "it is too old");
	learner_fail(l, "the first reason counts");
	TAP_STR(learner_report(l)->why, "it is too old");
	update();
	TAP_EQ(learner_report(l)->mode, LEARNER_FAILED);
	TAP_CHECK(none(1));
	learner_free(l);
}

static void no_allocation(void)
{
	begin(VMS, DEVS, true);
	for (int k = 0; k < 10; k++) {
		for (size_t j = 0; j < VMS; j++) {
			vms[j].last.dev = 10 + (uint32_t)j % DEVS;
			if ((j + (size_t)k) % 4)
				quiet(j, j % 2 ? VGPU_IDLE : VGPU_CLOSED);
			else
				active(j, 10, 0.01, 0.02);
		}
		allocations = 0;
		update();
		/* the solver takes memory once, and gives it back */
		if (k)
			TAP_EQ(allocations, 1);
	}
	learner_free(l);
}

static void nothing(void)
{
	begin(0, 0, true);
	update();
	update();
	/* a vGPU on a device that is not listed */
	host(2, 0);
	quiet(0, VGPU_IDLE);
	active(1, 10, 0.1, 0.2);
	update();
	TAP_CHECK(near(expect[0].gpu, 0.4));
	TAP_EQ(learner_update(l, &e, NULL, NULL, &standard, expect), 0);
	TAP_CHECK(near(expect[0].gpu, 0.4));
	learner_free(l);
	learner_free(NULL);
}

int main(void)
{
	tap_run(knows, "what is known of a vGPU lasts while its VM is shut down");
	tap_run(removed, "the last vGPUs that were removed are remembered");
	tap_run(learns_without_model, "it learns without a model, and expects nothing");
	tap_run(begins_with, "it begins with what another learner knew, if that is valid");
	tap_run(question, "a question has the vGPU first, and neighbours before others");
	tap_run(newcomer, "active vGPUs are checked in turn, as if nothing were known of them");
	tap_run(turns, "questions of a period are bounded, and those that start come first");
	tap_run(modes, "only a model that acts is heard");
	tap_run(starting, "a vGPU is starting while it shows frames and is not measured");
	tap_run(own_agreement, "an expectation is within the vGPU's own floor and ceiling");
	tap_run(room, "expectations and the floors of others never exceed what there is");
	tap_run(bounded_change, "an expectation changes by a bounded factor");
	tap_run(not_a_share, "an answer that is no share ends the model's use at once");
	tap_run(errors, "errors are distances from the plan of exact");
	tap_run(forgets, "errors are forgotten");
	tap_run(drifts, "a model drifts when it is worse than the control, and only then");
	tap_run(worse_than_control, "a model that is worse than the control fails");
	tap_run(controls, "controls are models, too");
	tap_run(too_old, "a failure from outside stays, with its first reason");
	tap_run(no_allocation, "a period with the same vGPUs allocates nothing of its own");
	tap_run(nothing, "no vGPU, no device and no agreement are fine");
	return tap_done();
}

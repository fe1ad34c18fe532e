// SPDX-License-Identifier: GPL-2.0-only
/* Plans with expectations of vGPUs that are not measured. */
#include "decide.h"
#include "tap.h"

#define VMS	3		/* the last one starts */
#define NEW	(VMS - 1)
#define SEC	1000000000ULL
#define MS	1000000ULL

static struct sample_vgpu vgpus[VMS];
static struct sample_vmm vmms[VMS];
static struct sample_dev dev = { .id = 1, .engines = 1 };
static struct estimate e;
static struct expect expect[VMS];

/* Two VMs share an engine, and a third one has shown nothing so far. */
static void observe(void)
{
	struct sample s = {
		.now_ns = 5 * SEC, .cpus = 4, .vgpus = vgpus, .nr_vgpus = VMS,
		.vmms = vmms, .nr_vmms = VMS, .devs = &dev, .nr_devs = 1,
	};

	memset(vgpus, 0, sizeof(vgpus));
	for (size_t j = 0; j < VMS; j++) {
		vgpus[j] = (struct sample_vgpu){
			.id = (uint32_t)j, .dev = dev.id, .weight = 100, .open = true,
			.tgid = 10 + (uint32_t)j,
		};
		snprintf(vgpus[j].uuid, sizeof(vgpus[j].uuid), "uuid-%zu", j);
		vmms[j] = (struct sample_vmm){ .tgid = 10 + (uint32_t)j };
		expect[j] = EXPECT_NONE;
	}
	estimate_free(&e);
	TAP_EQ(estimate_update(&e, &s, ESTIMATE_HEADROOM), 0);
	s.now_ns += SEC;
	s.idle_ns += 3 * SEC;
	for (size_t j = 0; j < NEW; j++) {
		vgpus[j].frames += 50;
		vgpus[j].engine_ns += 500 * MS;
		vgpus[j].queue_ns += 400 * MS;
		vmms[j].cpu_ns += 50 * MS;
	}
	TAP_EQ(estimate_update(&e, &s, ESTIMATE_HEADROOM), 0);
	TAP_EQ(e.vgpus[NEW].state, VGPU_IDLE);
}

static void plan_with(const struct expect *with, struct plan *plan, bool rest)
{
	struct decide_param param = {
		.allocator = &alloc_exact,
		.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct control control = { .rest = { .in_force = !rest, .wait = REST_TRIAL_MIN } };

	plan_free(plan);
	TAP_EQ(decide(&e, &param, NULL, with, &control, plan), 0);
}

static void the_newcomer_is_limited(void)
{
	struct plan plan = { 0 };

	observe();
	expect[NEW].cpu = 0.1;
	expect[NEW].gpu = 0.25;
	plan_with(expect, &plan, false);
	TAP_NEAR(plan.targets[NEW].gpu, 0.25, 0);
	TAP_CHECK(isinf(plan.targets[NEW].limit));
	TAP_CHECK(!plan.targets[NEW].keep);
	/* the other vGPUs make room only once it starts */
	TAP_NEAR(plan.targets[0].fps, 50, 0.1);
	TAP_NEAR(plan.targets[1].fps, 50, 0.1);
	TAP_CHECK(isinf(plan.targets[0].gpu));
	/* a rate that follows from known costs leads as other limits do */
	expect[NEW].fps = 20;
	plan_with(expect, &plan, false);
	TAP_NEAR(plan.targets[NEW].limit, 20 * DECIDE_LEAD_MAX, 1e-9);
	plan_free(&plan);
	estimate_free(&e);
}

static void others_make_room(void)
{
	struct plan plan = { 0 };

	observe();
	expect[NEW] = (struct expect){
		.cpu = 0.1, .gpu = 0.25, .fps = INFINITY, .starting = true,
	};
	plan_with(expect, &plan, false);
	TAP_NEAR(plan.targets[0].fps, 37.5, 0.1);
	TAP_NEAR(plan.targets[1].fps, 37.5, 0.1);
	TAP_NEAR(plan.targets[NEW].gpu, 0.25, 0);
	/* however much is expected, they are left a part */
	expect[NEW].gpu = 1;
	plan_with(expect, &plan, false);
	TAP_NEAR(plan.targets[0].fps, 50 * DECIDE_MEASURED, 0.1);
	/* on another device it takes nothing of this one */
	e.vgpus[NEW].last.dev = dev.id + 1;
	plan_with(expect, &plan, false);
	TAP_NEAR(plan.targets[0].fps, 50, 0.1);
	plan_free(&plan);
	estimate_free(&e);
}

/* A frame that is late changes nothing; a longer pause does. */
static void a_late_frame(void)
{
	struct plan plan = { 0 };

	observe();
	e.vgpus[NEW].kept.frames = 10;
	e.vgpus[NEW].idle_ns = DECIDE_RELEASE_NS / 2;
	expect[NEW] = (struct expect){ .cpu = 0.1, .gpu = 0.25, .fps = 20 };
	plan_with(expect, &plan, false);
	TAP_CHECK(plan.targets[NEW].keep);
	e.vgpus[NEW].idle_ns = DECIDE_RELEASE_NS;
	plan_with(expect, &plan, false);
	TAP_CHECK(!plan.targets[NEW].keep);
	TAP_NEAR(plan.targets[NEW].gpu, 0.25, 0);
	plan_free(&plan);
	estimate_free(&e);
}

/* Where limits rest, an expectation is no reason for one. */
static void limits_rest(void)
{
	struct plan plan = { 0 };

	observe();
	expect[NEW] = (struct expect){ .cpu = 0.1, .gpu = 0.25, .fps = 20 };
	plan_with(expect, &plan, true);
	TAP_CHECK(isinf(plan.targets[NEW].gpu));
	TAP_NEAR(plan.targets[NEW].limit, 20 * REST_LEAD, 1e-9);
	plan_free(&plan);
	estimate_free(&e);
}

static void nothing_is_expected(void)
{
	struct plan plan = { 0 };

	observe();
	plan_with(expect, &plan, false);
	TAP_CHECK(isinf(plan.targets[NEW].gpu) && isinf(plan.targets[NEW].limit));
	TAP_CHECK(plan.targets[NEW].keep);
	/* what is measured counts, not what was expected */
	for (size_t j = 0; j < VMS; j++)
		expect[j] = (struct expect){ .cpu = 0.1, .gpu = 0.1, .fps = 3, .starting = true };
	expect[NEW].gpu = NAN;
	plan_with(expect, &plan, false);
	TAP_NEAR(plan.targets[0].fps, 50, 0.1);
	TAP_CHECK(isinf(plan.targets[0].gpu));
	TAP_CHECK(isinf(plan.targets[NEW].gpu));
	plan_free(&plan);
	estimate_free(&e);
}

/* Allocators whose targets must not be exceeded have no use for it. */
static void other_allocators(void)
{
	struct decide_param param = { .allocator = &alloc_none };
	struct control control = { 0 };
	struct plan plan = { 0 };

	observe();
	expect[NEW] = (struct expect){ .cpu = 0.1, .gpu = 0.25, .fps = 20 };
	TAP_EQ(decide(&e, &param, NULL, expect, &control, &plan), 0);
	TAP_CHECK(isinf(plan.targets[NEW].gpu) && isinf(plan.targets[NEW].limit));
	plan_free(&plan);
	estimate_free(&e);
}

int main(void)
{
	tap_run(the_newcomer_is_limited, "a vGPU is limited to what is expected of it");
	tap_run(others_make_room, "once it starts, others make room for it");
	tap_run(a_late_frame, "a vGPU whose frame is late keeps its limit");
	tap_run(limits_rest, "its limits rest as those of others");
	tap_run(nothing_is_expected, "without an expectation nothing changes");
	tap_run(other_allocators, "no limits, no expectations");
	return tap_done();
}

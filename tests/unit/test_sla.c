// SPDX-License-Identifier: GPL-2.0-only
/*
 * Max-min allocators, promises, and what becomes of both in a plan: targets and
 * limits.
 */
#include <stdlib.h>

#include "decide.h"
#include "random_problem.h"
#include "tap.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ULL
#define MS	1000000ULL

static const struct fds_param standard = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT };

static double use(const struct fds_problem *p, const double *x, size_t i)
{
	double sum = 0;

	for (size_t j = 0; j < p->n; j++)
		sum += fds_need(p, i, j) * x[j];
	return sum / p->capacity[i];
}

/* ---- max-min fairness ---- */

/*
 * An allocation is max-min fair if and only if each task has all it may have, or
 * a bottleneck: a capacity that is used up and of which no user is at a higher
 * level that could be lowered (Bertsekas and Gallager, section 6.5.2).
 */
static void check_maxmin(const struct random_problem *r, const double *x, bool dominant)
{
	const struct fds_problem *p = &r->p;

	TAP_CHECK(fds_feasible(p, x, 1e-9));
	for (size_t j = 0; j < p->n; j++) {
		double mu = fds_mu(p, j), level = x[j] * (dominant ? mu : 1) /
			p->weight[j];
		bool done = x[j] >= p->demand[j] * (1 - 1e-9);

		for (size_t i = 0; !done && i < p->m; i++) {
			if (!(fds_need(p, i, j) > 0) || use(p, x, i) < 1 - 1e-6)
				continue;
			done = true;
			for (size_t k = 0; k < p->n; k++) {
				double other = x[k] * (dominant ? fds_mu(p, k) : 1) /
					p->weight[k];

				if (fds_need(p, i, k) > 0 && other > level * (1 + 1e-6) &&
				    x[k] > fds_floor(p, k) * (1 + 1e-9))
					done = false;
			}
		}
		TAP_CHECK(done);
	}
}

static void maxmin(void)
{
	struct alloc_state state = { 0 };
	struct random_problem r = { .seed = 21 };

	for (unsigned int k = 0; k < 400; k++) {
		const struct alloc_ops *ops = k % 2 ? &alloc_drf : &alloc_maxmin;
		double *x, *weight;

		TAP_NEED(random_problem(&r, 1 + k % 40, 2 + k % 3, 0.4, k % 5 ? 0 : 0.3));
		x = calloc(2 * r.p.n, sizeof(*x));
		weight = x + r.p.n;
		for (size_t j = 0; j < r.p.n; j++)
			weight[j] = k % 3 ? 1 : random_spread(&r.seed, 1, 100);
		r.p.weight = weight;
		TAP_EQ(ops->allocate(&state, &r.p, 1, x), 0);
		check_maxmin(&r, x, ops == &alloc_drf);
		free(x);
		random_problem_free(&r);
	}
}

/* Problems of two tasks with known results. */
static const struct known {
	const struct alloc_ops *ops;
	size_t m;
	double need[4];		/* of the first resource, then of the second */
	double capacity[2];
	double weight[2];	/* 0: no weights */
	double want[2];
} examples[] = {
	/* The example of the paper on dominant resource fairness: 9 CPUs, 18 GB. */
	{ &alloc_drf, 2, { 1, 3, 4, 1 }, { 9, 18 }, { 0 }, { 3, 2 } },
	{ &alloc_maxmin, 2, { 1, 3, 4, 1 }, { 9, 18 }, { 0 }, { 2.25, 2.25 } },
	/* half of 18 GB is 2.25 times 4, half of 9 CPUs is 1.5 times 3 */
	{ &alloc_static, 2, { 1, 3, 4, 1 }, { 9, 18 }, { 0 }, { 2.25, 1.5 } },
}, weighted[] = {
	/* Equal tasks on an engine of 100 frames/s: 3/4 for three times the weight. */
	{ &alloc_maxmin, 1, { 0.01, 0.01 }, { 1 }, { 1, 3 }, { 25, 75 } },
	{ &alloc_drf, 1, { 0.01, 0.01 }, { 1 }, { 1, 3 }, { 25, 75 } },
	{ &alloc_maxmin, 1, { 0.01, 0.01 }, { 1 }, { 0 }, { 50, 50 } },
};

static void check_known(const struct known *k, size_t nr)
{
	double none[] = { INFINITY, INFINITY }, x[2];

	for (; nr; nr--, k++) {
		struct fds_problem p = {
			.n = 2, .m = k->m, .need = k->need, .capacity = k->capacity,
			.demand = none, .weight = k->weight[0] > 0 ? k->weight : NULL,
			.param = standard,
		};
		struct alloc_state state = { 0 };

		TAP_EQ(k->ops->allocate(&state, &p, 1, x), 0);
		TAP_NEAR(x[0], k->want[0], 1e-9);
		TAP_NEAR(x[1], k->want[1], 1e-9);
	}
}

static void drf_example(void)
{
	check_known(examples, NR(examples));
}

static void weights(void)
{
	check_known(weighted, NR(weighted));
}

/* ---- promises ---- */

static void floors_met(void)
{
	struct random_problem r = { .seed = 23 };

	for (unsigned int k = 0; k < 300; k++) {
		double *asked, *got, over = 0;
		size_t missing;

		TAP_NEED(random_problem(&r, 1 + k % 30, 2 + k % 2, 0.3, 0));
		asked = calloc(2 * r.p.n, sizeof(*asked));
		got = asked + r.p.n;
		/* from far too little to far too much */
		for (size_t j = 0; j < r.p.n; j++)
			if (random_uniform(&r.seed) < 0.6)
				asked[j] = r.rate[j] * random_spread(&r.seed, 0.1, 10);
		missing = sla_floors(&r.p, asked, got);
		for (size_t i = 0; i < r.p.m; i++)
			over = fmax(over, use(&r.p, got, i));
		TAP_CHECK(over <= 1 + 1e-9);
		for (size_t j = 0; j < r.p.n; j++) {
			double want = fmin(asked[j], r.demand[j]);

			TAP_CHECK(got[j] <= want * (1 + 1e-12));
			TAP_CHECK(!(want > 0) || got[j] > 0);
			if (got[j] < want * (1 - 1e-6)) {
				bool lacks = false;

				missing--;
				/* some capacity is why, but for the room left */
				for (size_t i = 0; i < r.p.m; i++)
					lacks |= fds_need(&r.p, i, j) > 0 &&
						use(&r.p, got, i) > 1 - SLA_ROOM - 2 * SLA_SPARE;
				TAP_CHECK(lacks);
			}
		}
		TAP_EQ(missing, 0);
		free(asked);
		random_problem_free(&r);
	}
}

/* Those that share what is short get the same part of what they were promised. */
static void equal_shortfall(void)
{
	double need[] = { 0.001, 0.001, 0.001, 0.001, 0.02, 0.01, 0.01, 0.001 };
	double capacity[] = { 4, 1 }, none[] = { INFINITY, INFINITY, INFINITY, INFINITY };
	double asked[] = { 60, 30, 60, 0 }, got[4];
	struct fds_problem p = { 4, 2, need, capacity, none, NULL, NULL, standard, 0 };

	/* 1.2, 0.3 and 0.6 engines are promised: about 0.47 of it can be had */
	TAP_EQ(sla_floors(&p, asked, got), 3);
	TAP_NEAR(got[0] / asked[0], got[1] / asked[1], 1e-9);
	TAP_NEAR(got[0] / asked[0], got[2] / asked[2], 1e-9);
	TAP_CHECK(got[0] / asked[0] > 0.45 && got[0] / asked[0] < 1 / 2.1);
	TAP_NEAR(got[3], 0, 0);
	/* one that hardly needs the engine has its promise kept */
	asked[3] = 40;
	need[7] = 0;
	TAP_EQ(sla_floors(&p, asked, got), 3);
	TAP_NEAR(got[3], 40, 1e-9);
	/* use for less than was promised is no shortfall */
	none[0] = 5, none[1] = 5, none[2] = 5;
	TAP_EQ(sla_floors(&p, asked, got), 0);
	TAP_NEAR(got[0], 5, 1e-9);
}

static void checked(void)
{
	struct sla good[] = { SLA_NONE, { 30, 60 }, { 0, 60 }, { 30, INFINITY }, { 1, 1 } };
	struct sla bad[] = { { -1, 60 }, { 0.5, 60 }, { 30, 20 }, { 30, 0 }, { NAN, 60 },
			     { 30, NAN }, { 20000, INFINITY }, { 0, 20000 },
			     { INFINITY, INFINITY } };

	for (size_t k = 0; k < NR(good); k++)
		TAP_CHECK(!sla_check(&good[k]));
	for (size_t k = 0; k < NR(bad); k++)
		TAP_CHECK(sla_check(&bad[k]));
}

/* ---- in a plan ---- */

#define VMS	4

static struct sample_vgpu vgpus[VMS];
static struct sample_vmm vmms[VMS];
static struct sample_dev dev = { .id = 0, .engines = 1 };
static struct estimate e;
static struct sla own[VMS];

static struct decide_param by(const struct alloc_ops *allocator)
{
	return (struct decide_param){
		.allocator = allocator, .iterations = 10, .fds = standard,
	};
}

/* VMs that showed so many frames of so many milliseconds of engine time. */
static void observe(const unsigned int *fps, const unsigned int *gpu_us, bool held)
{
	struct sample s = {
		.now_ns = 5 * SEC, .cpus = 4, .vgpus = vgpus, .nr_vgpus = VMS,
		.vmms = vmms, .nr_vmms = VMS, .devs = &dev, .nr_devs = 1,
	};

	memset(vgpus, 0, sizeof(vgpus));
	for (size_t j = 0; j < VMS; j++) {
		vgpus[j] = (struct sample_vgpu){
			.id = (uint32_t)j, .open = true, .tgid = 10 + (uint32_t)j,
		};
		snprintf(vgpus[j].uuid, sizeof(vgpus[j].uuid), "uuid-%zu", j);
		vmms[j] = (struct sample_vmm){ .tgid = 10 + (uint32_t)j };
		own[j] = SLA_NONE;
	}
	estimate_free(&e);
	TAP_EQ(estimate_update(&e, &s, ESTIMATE_HEADROOM), 0);
	s.now_ns += SEC;
	s.idle_ns += 3 * SEC;
	for (size_t j = 0; j < VMS; j++) {
		vgpus[j].frames += fps[j];
		vgpus[j].engine_ns += (uint64_t)fps[j] * gpu_us[j] * 1000;
		vgpus[j].throttled_ns += held ? 100 * MS : 0;
		vgpus[j].fps_target = held ? fps[j] * 1000 : 0;
		/* behind the frames of the others */
		vgpus[j].queue_ns += 600 * MS;
		vmms[j].cpu_ns += fps[j] * MS;
	}
	TAP_EQ(estimate_update(&e, &s, ESTIMATE_HEADROOM), 0);
}

static const unsigned int busy_fps[VMS] = { 25, 25, 25, 25 };
static const unsigned int heavy_us[VMS] = { 10000, 10000, 10000, 10000 };

/* Four alike share 100 frames/s; two are promised more than a quarter of it. */
static void plan_floors(void)
{
	static const struct alloc_ops *const keep[] = {
		&alloc_exact, &alloc_fea, &alloc_drf, &alloc_maxmin,
	};

	for (size_t k = 0; k < NR(keep); k++) {
		struct decide_param param = by(keep[k]);
		struct control control = { 0 };
		struct plan plan;

		observe(busy_fps, heavy_us, true);
		own[0].floor = 40;
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_EQ(plan.nr_short, 0);
		TAP_CHECK(plan.targets[0].fps >= 40 * (1 - 1e-9));
		TAP_NEAR(plan.targets[0].granted, 40, 1e-9);
		for (size_t j = 1; j < VMS; j++)
			TAP_NEAR(plan.targets[j].fps, (100 - 40 * SLA_MARGIN_START) / 3, 0.3);
		plan_free(&plan);

		/* 80 + 40 of 100: each gets the same part, and says so */
		own[0].floor = 80;
		own[1].floor = 40;
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_EQ(plan.nr_short, 2);
		TAP_NEAR(plan.targets[0].granted / 80, plan.targets[1].granted / 40, 1e-6);
		TAP_CHECK(plan.targets[0].granted < 80 && plan.targets[0].granted > 60);
		TAP_NEAR(plan.targets[0].floor, 80, 0);
		TAP_CHECK(plan.targets[0].fps >= plan.targets[0].granted * (1 - 1e-9));
		TAP_CHECK(plan.targets[2].fps > 0);
		TAP_NEAR(plan.targets[2].granted, 0, 0);
		plan_free(&plan);
	}
}

/* Observe a period after @plan in which each VM had a part of its planned rate. */
static void follow(struct estimate *estimate, const struct plan *plan, double part)
{
	for (size_t j = 0; j < VMS; j++) {
		struct estimate_vgpu *v = &estimate->vgpus[j];

		v->fps = plan->targets[j].fps * part;
		v->last.fps_target = (uint32_t)(plan->targets[j].limit * 1000);
	}
}

/* Limits do not rest. */
#define IN_FORCE { .rest = { .in_force = true, .active = VMS, .wait = REST_TRIAL_MIN } }

/*
 * Limits lead targets that are not reached, or while an engine is idle, by DECIDE_LEAD_MAX
 * at most. They never lag behind them, and the lead ends when rates exceed targets.
 */
static void plan_lead(void)
{
	static const unsigned int half_us[VMS] = { 5000, 5000, 5000, 5000 };
	static const struct {
		const unsigned int *us;
		double part;
		double lead;
	} cases[] = {
		{ half_us, 1, DECIDE_LEAD_MAX },
		{ heavy_us, 0.9, DECIDE_LEAD_MAX },
		{ heavy_us, 1, 1 },
		{ heavy_us, 1.1, 1 },
	};

	for (size_t i = 0; i < NR(cases); i++) {
		struct decide_param param = by(&alloc_exact);
		struct control control = IN_FORCE;
		struct plan plan;

		observe(busy_fps, cases[i].us, true);
		for (unsigned int k = 0; k < 60; k++) {
			control.rest.periods = 0;
			TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
			for (size_t j = 0; j < VMS; j++) {
				const struct target *t = &plan.targets[j];

				TAP_CHECK(t->limit >= t->fps * (1 - 1e-9));
				TAP_CHECK(t->limit <= t->fps * DECIDE_LEAD_MAX * (1 + 1e-9));
			}
			follow(&e, &plan, cases[i].part);
			plan_free(&plan);
		}
		for (size_t j = 0; j < VMS; j++)
			TAP_NEAR(e.vgpus[j].planned.lead, cases[i].lead, 0.01);
	}
}

/*
 * Limits rest, so that they lead by REST_LEAD, while rates are fair; they come into
 * force when one VM takes more, and for a promise.
 */
static void plan_rest(void)
{
	static const unsigned int greedy_fps[VMS] = { 70, 10, 10, 10 };
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;

	for (unsigned int k = 0; k < 50; k++) {
		observe(busy_fps, heavy_us, true);
		own[0].floor = k < 25 ? 0 : 20;
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		for (size_t j = 0; j < VMS; j++) {
			double lead = plan.targets[j].limit / plan.targets[j].fps;

			if (k < 25)
				TAP_NEAR(lead, REST_LEAD, 1e-9);
			else
				TAP_CHECK(lead <= DECIDE_LEAD_MAX);
			TAP_NEAR(plan.targets[j].lead, lead, 1e-9);
			TAP_CHECK(e.vgpus[j].planned.lead >= 1);
		}
		plan_free(&plan);
	}
	/* what was learned under one allocator does not count under the next one */
	param.allocator = &alloc_maxmin;
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_EQ(control.rest.in_force, false);
	plan_free(&plan);
	param.allocator = &alloc_exact;
	own[0].floor = 0;
	observe(greedy_fps, heavy_us, true);
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_CHECK(plan.targets[0].limit < plan.targets[0].fps * 1.2);
	plan_free(&plan);
}

/* While a promise is kept, the engine time of the others is even, too, and only then. */
static void plan_engine_time(void)
{
	for (const struct alloc_ops *const *ops = alloc_all; *ops; ops++) {
		struct decide_param param = by(*ops);
		struct control control = { 0 };
		struct plan plan;
		double sum;

		for (unsigned int k = 0; k < 3; k++) {
			bool promised = k == 1 && (*ops)->floors;

			observe(busy_fps, heavy_us, true);
			own[0].floor = k == 1 ? 40 : 0;
			TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
			TAP_CHECK(isinf(plan.targets[0].gpu));
			sum = plan.targets[0].fps * 0.010;
			for (size_t j = 1; j < VMS; j++) {
				const struct target *t = &plan.targets[j];

				sum += t->gpu;
				if (promised)
					TAP_NEAR(t->gpu, t->fps * 0.010, 1e-9);
				else
					TAP_CHECK(isinf(t->gpu));
			}
			/* the promise has room */
			TAP_CHECK(!promised || sum <= 1 + 1e-6);
			/* and so has its VM, to use what the others leave */
			if (promised && (*ops)->reach)
				TAP_CHECK(plan.targets[0].limit >=
					  plan.targets[0].fps * DECIDE_LEAD_MAX * (1 - 1e-9));
			plan_free(&plan);
		}
	}
}

static void units_of_the_module(void)
{
	TAP_EQ(decide_millihertz(INFINITY), 0);
	TAP_EQ(decide_millihertz(10001), 0);
	TAP_EQ(decide_millihertz(10000), 10000000);
	TAP_EQ(decide_millihertz(29.97), 29970);
	TAP_EQ(decide_millihertz(0.5), 1000);
	TAP_EQ(decide_ppm(INFINITY), 0);
	TAP_EQ(decide_ppm(1), 0);
	TAP_EQ(decide_ppm(0.9999999), 0);
	TAP_EQ(decide_ppm(0.305), 305000);
	TAP_EQ(decide_ppm(0), 1000);
}

/* f tells nothing of the worth of limits to those that do not maximise it. */
static void plan_rest_for_f_only(void)
{
	for (const struct alloc_ops *const *ops = alloc_all; *ops; ops++) {
		struct decide_param param = by(*ops);
		struct control control = { 0 };
		bool f = *ops == &alloc_exact || *ops == &alloc_fea;
		struct plan plan;

		if (!(*ops)->allocate)
			continue;
		observe(busy_fps, heavy_us, true);
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		for (size_t j = 0; j < VMS; j++)
			TAP_EQ(plan.targets[j].limit > plan.targets[j].fps * DECIDE_LEAD_MAX, f);
		plan_free(&plan);
	}
}

/*
 * A floor that is missed is planned with a margin, up to SLA_MARGIN_MAX, and with less again
 * when it is kept. A VM that could not have reached it has none.
 */
static void plan_margin(void)
{
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;
	double before = 1;

	observe(busy_fps, heavy_us, true);
	own[0].floor = 40;
	for (unsigned int k = 0; k < 40; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_NEAR(plan.targets[0].granted, 40, 1e-9);
		TAP_CHECK(plan.targets[0].fps >= before * (1 - 1e-9));
		before = plan.targets[0].fps;
		e.vgpus[0].fps = 36;
		e.vgpus[0].reach = 2;
		plan_free(&plan);
	}
	TAP_NEAR(before, 40 * SLA_MARGIN_MAX, 1e-6);
	for (unsigned int k = 0; k < 2 * SLA_PERIODS; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		e.vgpus[0].fps = 41;
		plan_free(&plan);
	}
	TAP_CHECK(e.vgpus[0].planned.margin < SLA_MARGIN_MAX * 0.95);
	TAP_CHECK(e.vgpus[0].planned.margin > SLA_MARGIN_MAX * 0.9);
	/* what is far above the floor takes less time */
	before = e.vgpus[0].planned.margin;
	for (unsigned int k = 0; k < 20; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		e.vgpus[0].fps = 40 * SLA_AMPLE + 1;
		plan_free(&plan);
	}
	TAP_CHECK(e.vgpus[0].planned.margin < before * 0.85);
	TAP_CHECK(e.vgpus[0].planned.margin > before * 0.8);

	observe(busy_fps, heavy_us, true);
	own[0].floor = 40;
	for (unsigned int k = 0; k < 10; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_CHECK(plan.targets[0].fps <= 40 * SLA_MARGIN_START * (1 + 1e-6));
		e.vgpus[0].fps = 36;
		e.vgpus[0].reach = 1.05;
		plan_free(&plan);
	}
	/* the promise ends, and so does its margin */
	own[0].floor = 0;
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_NEAR(e.vgpus[0].planned.margin, 0, 0);
	plan_free(&plan);
}

/* The margin of one promise takes nothing from another one. */
static void plan_margins(void)
{
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;

	observe(busy_fps, heavy_us, true);
	own[0].floor = 40;
	own[1].floor = 40;
	for (unsigned int k = 0; k < 40; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_EQ(plan.nr_short, 0);
		TAP_CHECK(plan.targets[0].fps >= 40 * (1 - 1e-9));
		TAP_CHECK(plan.targets[1].fps >= 40 * (1 - 1e-9));
		TAP_CHECK(plan.targets[2].fps > 0 && plan.targets[3].fps > 0);
		e.vgpus[0].fps = 30;
		e.vgpus[0].reach = 2;
		e.vgpus[1].fps = 45;
		plan_free(&plan);
	}
	TAP_NEAR(e.vgpus[0].planned.margin, SLA_MARGIN_MAX, 1e-6);
	TAP_CHECK(e.vgpus[1].planned.margin <= SLA_MARGIN_START);

	/* what was not granted was not missed */
	observe(busy_fps, heavy_us, true);
	own[0].floor = 80;
	own[1].floor = 80;
	for (unsigned int k = 0; k < 10; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_EQ(plan.nr_short, 2);
		e.vgpus[0].fps = e.vgpus[1].fps = 45;
		e.vgpus[0].reach = e.vgpus[1].reach = 2;
		plan_free(&plan);
	}
	TAP_CHECK(e.vgpus[0].planned.margin <= 1 && e.vgpus[1].planned.margin <= 1);
}

/* A lead that was learned under one allocator does not count under the next one. */
static void plan_lead_ends(void)
{
	struct decide_param param = by(&alloc_vgasa);
	struct control control = { 0 };
	struct plan plan;

	observe(busy_fps, heavy_us, true);
	for (size_t j = 0; j < VMS; j++)
		e.vgpus[j].planned.lead = 2;
	for (unsigned int k = 0; k < 5; k++) {
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		follow(&e, &plan, 0.9);
		plan_free(&plan);
	}
	for (size_t j = 0; j < VMS; j++)
		TAP_NEAR(e.vgpus[j].planned.lead, 0, 0);
}

/* No policy that limits anything goes above a ceiling, whatever leads it there. */
static void plan_ceilings(void)
{
	static const unsigned int light_us[VMS] = { 500, 500, 500, 500 };

	for (const struct alloc_ops *const *ops = alloc_all; *ops; ops++) {
		struct decide_param param = by(*ops);
		struct control control = { 0 };
		struct plan plan;

		if (!(*ops)->allocate)
			continue;
		observe(busy_fps, light_us, true);
		for (size_t j = 0; j < VMS; j++) {
			own[j] = (struct sla){ 0, 28 };
			e.vgpus[j].planned.lead = 2;
		}
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		for (size_t j = 0; j < VMS; j++) {
			TAP_CHECK(plan.targets[j].fps <= 28 + 1e-9);
			TAP_CHECK(plan.targets[j].limit <= 28 + 1e-9);
		}
		plan_free(&plan);
		/* one may have more */
		own[2] = SLA_NONE;
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		TAP_CHECK(plan.targets[2].limit > 28);
		plan_free(&plan);
	}
}

/* Capacity that the operator refuses a vGPU is planned for others, and is no shortfall. */
static void plan_operator(void)
{
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;

	observe(busy_fps, heavy_us, true);
	e.vgpus[0].last.fps_limit = 10000;
	own[0] = (struct sla){ 20, INFINITY };
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_NEAR(plan.targets[0].fps, 10, 1e-9);
	TAP_CHECK(plan.targets[0].limit <= 10 + 1e-9);
	for (size_t j = 1; j < VMS; j++)
		TAP_NEAR(plan.targets[j].fps, 30, 1e-3);
	TAP_EQ(plan.nr_short, 0);
	plan_free(&plan);
}

/* A limit of the operator's holds frames back for good: it is no reason to lead targets. */
static void plan_lead_operator(void)
{
	static const unsigned int half_us[VMS] = { 5000, 5000, 5000, 5000 };
	struct decide_param param = by(&alloc_exact);
	struct control control = IN_FORCE;
	struct plan plan;

	observe(busy_fps, half_us, true);
	for (size_t j = 0; j < VMS; j++)
		e.vgpus[j].last.fps_limit = 25000;
	for (unsigned int k = 0; k < 10; k++) {
		control.rest.periods = 0;
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		plan_free(&plan);
	}
	for (size_t j = 0; j < VMS; j++)
		TAP_NEAR(e.vgpus[j].planned.lead, 1, 1e-9);
}

/* Which allocators divide by weight, and by how much. */
static void plan_weights(void)
{
	static const uint32_t weight[VMS] = { 100, 100, 200, 400 };

	for (const struct alloc_ops *const *ops = alloc_all; *ops; ops++) {
		struct decide_param param = by(*ops);
		struct control control = { 0 };
		struct plan plan;

		observe(busy_fps, heavy_us, true);
		for (size_t j = 0; j < VMS; j++)
			e.vgpus[j].last.weight = weight[j];
		TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
		/* f by weight too: equal shares are not fair, and -4 is the best */
		TAP_NEAR(plan.fds_best, -4, 1e-3);
		TAP_CHECK(plan.fds < -4.5);
		for (size_t j = 0; j < VMS; j++)
			if ((*ops)->weights)
				TAP_NEAR(plan.targets[j].fps, weight[j] / 8.0, 0.01);
			else
				TAP_CHECK(plan.targets[j].fps == plan.targets[0].fps);
		plan_free(&plan);
	}
}

/* A vGPU whose weight is not known counts as one of the default weight. */
static void plan_unknown_weight(void)
{
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;

	observe(busy_fps, heavy_us, true);
	e.vgpus[1].last.weight = 100;
	e.vgpus[3].last.weight = 200;
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	for (size_t j = 0; j < VMS; j++)
		TAP_NEAR(plan.targets[j].fps, j == 3 ? 40 : 20, 0.01);
	plan_free(&plan);
}

/* Floors of others leave a VM a part of its share by weight. */
static void floors_leave_by_weight(void)
{
	double need[] = { 0.001, 0.001, 0.001, 0.01, 0.01, 0.01 }, capacity[] = { 8, 1 };
	double none[] = { INFINITY, INFINITY, INFINITY }, weight[] = { 1, 1, 8 };
	double asked[] = { 500, 0, 0 }, got[3], spare;
	struct fds_problem p = { 3, 2, need, capacity, none, NULL, NULL, standard, 0 };

	TAP_EQ(sla_floors(&p, asked, got), 1);
	spare = 1 - use(&p, got, 1) / (1 - SLA_ROOM);
	TAP_NEAR(spare, SLA_SPARE * 2 / 3, 1e-9);
	p.weight = weight;
	TAP_EQ(sla_floors(&p, asked, got), 1);
	spare = 1 - use(&p, got, 1) / (1 - SLA_ROOM);
	TAP_NEAR(spare, SLA_SPARE * 9 / 10, 1e-9);
}

/* A task with little use for the machine keeps room up to its share. */
static void plan_keeps_room(void)
{
	static const unsigned int fps[VMS] = { 2, 32, 33, 33 };
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;

	observe(fps, heavy_us, false);
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_NEAR(plan.targets[0].fps, 25, 1e-6);
	for (size_t j = 1; j < VMS; j++)
		TAP_CHECK(plan.targets[j].fps > 31);
	plan_free(&plan);
	for (size_t j = 0; j < VMS; j++)
		e.vgpus[j].last.weight = j ? 100 : 300;
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_NEAR(plan.targets[0].fps, 50, 1e-6);
	plan_free(&plan);
}

/* As many devices as can be divided, and more: what is beyond has no limits. */
static void plan_many_devices(void)
{
	static struct sample_vgpu many[20];
	static struct sample_vmm own_vmms[NR(many)];
	static struct sample_dev devs[NR(many)];

	for (size_t n = 13; n <= NR(many); n++) {
		struct decide_param param = by(&alloc_exact);
		struct control control = { 0 };
		struct estimate of = { 0 };
		struct plan plan;
		struct sample s = {
			.now_ns = 5 * SEC, .cpus = 4, .vgpus = many, .nr_vgpus = n,
			.vmms = own_vmms, .nr_vmms = n, .devs = devs, .nr_devs = n,
		};

		for (size_t j = 0; j < n; j++) {
			devs[j] = (struct sample_dev){ .id = (uint32_t)j, .engines = 1 };
			own_vmms[j] = (struct sample_vmm){ .tgid = 10 + (uint32_t)j };
			many[j] = (struct sample_vgpu){
				.id = (uint32_t)j, .dev = (uint32_t)j, .open = true,
				.tgid = 10 + (uint32_t)j,
			};
			snprintf(many[j].uuid, sizeof(many[j].uuid), "uuid-%zu", j);
		}
		TAP_EQ(estimate_update(&of, &s, ESTIMATE_HEADROOM), 0);
		s.now_ns += SEC;
		for (size_t j = 0; j < n; j++) {
			many[j].frames += 20;
			many[j].engine_ns += 100 * MS;
			many[j].queue_ns += 400 * MS;
			own_vmms[j].cpu_ns += 200 * MS;
		}
		TAP_EQ(estimate_update(&of, &s, ESTIMATE_HEADROOM), 0);
		TAP_EQ(decide(&of, &param, NULL, NULL, &control, &plan), 0);
		TAP_EQ(plan.active, n < MGPU_MAX_RES ? n : MGPU_MAX_RES - 1);
		TAP_CHECK(plan.fds <= plan.fds_best);
		for (size_t j = 0; j < n; j++)
			TAP_CHECK(isfinite(plan.targets[j].fps) == (j < MGPU_MAX_RES - 1));
		plan_free(&plan);
		estimate_free(&of);
	}
}

/* A promise to a VM that is idle, or under a policy without floors, is no event. */
static void plan_no_shortfall(void)
{
	static const unsigned int fps[VMS] = { 0, 33, 33, 33 };
	struct decide_param param = by(&alloc_exact);
	struct control control = { 0 };
	struct plan plan;

	observe(fps, heavy_us, true);
	own[0].floor = 5000;
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_EQ(plan.nr_short, 0);
	TAP_NEAR(plan.targets[0].granted, 5000, 0);
	plan_free(&plan);
	observe(busy_fps, heavy_us, true);
	own[0].floor = 5000;
	param.allocator = &alloc_static;
	TAP_EQ(decide(&e, &param, own, NULL, &control, &plan), 0);
	TAP_EQ(plan.nr_short, 0);
	TAP_NEAR(plan.targets[0].floor, 0, 0);
	plan_free(&plan);
}

int main(void)
{
	tap_run(maxmin, "max-min fair on rates and on dominant shares, by weight");
	tap_run(weights, "allocations follow weights");
	tap_run(drf_example, "the example of the paper on dominant resource fairness");
	tap_run(floors_met, "floors are met, or a capacity is why not");
	tap_run(equal_shortfall, "tasks that share a short capacity get the same part");
	tap_run(floors_leave_by_weight, "floors leave the others a part of their shares by weight");
	tap_run(checked, "invalid agreements are refused");
	tap_run(plan_floors, "a plan keeps floors, or grants equal parts and says so");
	tap_run(plan_lead, "limits lead targets by a bounded factor, and never lag");
	tap_run(plan_rest, "limits rest while rates are fair without them");
	tap_run(plan_engine_time, "engine time is limited while a promise is kept");
	tap_run(units_of_the_module, "limits in the units of the module");
	tap_run(plan_rest_for_f_only, "they rest under allocators that maximise f");
	tap_run(plan_margin, "a promise that is missed is planned with a margin");
	tap_run(plan_margins, "margins take nothing from other promises");
	tap_run(plan_lead_ends, "a lead ends with its allocator");
	tap_run(plan_ceilings, "a plan keeps ceilings");
	tap_run(plan_operator, "a plan keeps the operator's limits and gives the rest to others");
	tap_run(plan_lead_operator, "limits of the operator do not make targets lead");
	tap_run(plan_weights, "weights count for each allocator that says so, and for f");
	tap_run(plan_unknown_weight, "an unknown weight counts as the default");
	tap_run(plan_keeps_room, "a task at its demand keeps room up to its share");
	tap_run(plan_many_devices, "15 devices are divided, further ones have no limits");
	tap_run(plan_no_shortfall, "a task that needs nothing falls short of nothing");
	estimate_free(&e);
	return tap_done();
}

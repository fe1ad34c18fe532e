// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop of estimate and decide closed over a model of a machine: VMs that
 * take CPU time by their number of busy threads, an engine that serves one
 * frame of each in turn, work besides the frames, and frames that come unevenly.
 */
#include <stdlib.h>

#include "decide.h"
#include "machine.h"
#include "tap.h"

#define MAX_VM	8
#define SEC	1000000000ULL

/**
 * struct vm - a modelled VM
 * @cpu: CPU time of a frame, seconds
 * @gpu: engine time of a frame, seconds
 * @background: CPU time per second without frames, seconds
 * @threads: weight with the host's scheduler
 * @rate: rate that its program wants, frames per second
 * @uneven: part of a limit that is lost because frames are late
 */
struct vm {
	double cpu, gpu, background, threads, rate, uneven;
	/* the model's */
	double limit, fps, held, waits, queues;
	double frames, engine, cpu_time, throttled, waited, queued;
};

struct model {
	struct vm vm[MAX_VM];
	size_t n;
	double cpus, idle, noise;
	uint64_t now;
};

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

/*
 * Rates that weights and the engine's turns lead to: all grow in proportion to
 * their weight, each until its own bound, the CPUs or the engine are reached.
 */
static void run(struct model *m)
{
	double cpu_left = m->cpus, gpu_left = 1;
	bool done[MAX_VM] = { false };
	double wobble[MAX_VM];

	for (size_t j = 0; j < m->n; j++) {
		struct vm *v = &m->vm[j];

		wobble[j] = 1 + m->noise * (2 * uniform() - 1);
		v->fps = 0;
		v->held = 0;
		v->waits = 0;
		v->queues = 0;
		cpu_left -= v->background;
	}
	for (size_t left = m->n; left;) {
		left = m->n;
		for (size_t j = 0; j < m->n; j++) {
			struct vm *v = &m->vm[j];
			double cost = v->cpu * wobble[j];
			double step = 0.001 * v->threads / cost;
			double bound = fmin(v->rate, v->limit * (1 - v->uneven));

			left -= done[j];
			if (done[j])
				continue;
			step = fmin(step, bound - v->fps);
			step = fmin(step, cpu_left / cost);
			step = fmin(step, gpu_left / v->gpu);
			if (step <= 1e-12) {
				done[j] = true;
				/* what it does not use it is held, waits or sleeps */
				if (v->fps >= bound - 1e-6 && bound < v->rate)
					v->held = fmax(1 - v->fps * (cost + v->gpu), 0.03);
				else if (v->fps < bound - 1e-6)
					*(cpu_left / cost < gpu_left / v->gpu ?
					  &v->waits : &v->queues) =
						fmax(1 - v->fps * (cost + v->gpu), 0);
				continue;
			}
			v->fps += step;
			cpu_left -= step * cost;
			gpu_left -= step * v->gpu;
		}
	}
	m->now += SEC;
	m->idle += fmax(cpu_left, 0);
	for (size_t j = 0; j < m->n; j++) {
		struct vm *v = &m->vm[j];

		v->frames += v->fps;
		v->engine += v->fps * v->gpu;
		v->cpu_time += v->fps * v->cpu * wobble[j] + v->background;
		v->throttled += v->held;
		v->waited += v->waits;
		v->queued += v->queues;
	}
}

static void observe(const struct model *m, struct sample *s)
{
	static struct sample_vgpu vgpus[MAX_VM];
	static struct sample_vmm vmms[MAX_VM];
	static struct sample_dev dev = { .id = 0, .engines = 1 };

	*s = (struct sample){
		.now_ns = m->now,
		.cpus = (unsigned int)m->cpus,
		.idle_ns = (uint64_t)(m->idle * 1e9),
		.vgpus = vgpus, .nr_vgpus = m->n,
		.vmms = vmms, .nr_vmms = m->n,
		.devs = &dev, .nr_devs = 1,
	};
	for (size_t j = 0; j < m->n; j++) {
		const struct vm *v = &m->vm[j];

		vgpus[j] = (struct sample_vgpu){
			.id = (uint32_t)j, .open = true, .tgid = (uint32_t)j + 1,
			.frames = (uint64_t)v->frames,
			.engine_ns = (uint64_t)(v->engine * 1e9),
			.fps_target = v->limit < DECIDE_FPS_MAX ?
				      (uint32_t)lround(v->limit * 1000) : 0,
			.throttled_ns = (uint64_t)(v->throttled * 1e9),
			.queue_ns = (uint64_t)(v->queued * 1e9),
		};
		snprintf(vgpus[j].uuid, sizeof(vgpus[j].uuid), "%zu", j);
		vmms[j].tgid = (uint32_t)j + 1;
		vmms[j].cpu_ns = (uint64_t)(v->cpu_time * 1e9);
		vmms[j].wait_ns = (uint64_t)(v->waited * 1e9);
		vmms[j].wait_known = true;
	}
}

/* Mean f and mean distance of f from each period's best, after settling. */
static void live(struct model *m, const struct alloc_ops *policy, unsigned int periods,
		 double *fds, double *best)
{
	const struct decide_param param = {
		.allocator = policy, .iterations = 10,
		.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct estimate e = { 0 };
	struct control control = { 0 };
	struct sample s;
	unsigned int counted = 0;

	*fds = 0;
	*best = 0;
	m->now = SEC;
	for (size_t j = 0; j < m->n; j++)
		m->vm[j].limit = 1e9;
	for (unsigned int k = 0; k < periods; k++) {
		struct plan plan;

		run(m);
		observe(m, &s);
		TAP_NEED(!estimate_update(&e, &s, ESTIMATE_HEADROOM));
		TAP_NEED(!decide(&e, &param, NULL, NULL, &control, &plan));
		TAP_EQ(plan.nr, m->n);
		for (size_t j = 0; j < plan.nr; j++)
			if (!plan.targets[j].keep)
				m->vm[j].limit = fmin(plan.targets[j].limit, 1e9);
		if (k > 30) {
			*fds += plan.fds;
			*best += plan.fds_best;
			counted++;
			TAP_CHECK(plan.fds <= plan.fds_best);
		}
		plan_free(&plan);
	}
	*fds /= counted;
	*best /= counted;
	estimate_free(&e);
}

static void compare(const char *what, const struct model *m, double *none, double *fea,
		    double *best)
{
	struct model copy = *m;
	double unused, vgasa;

	live(&copy, &alloc_none, 150, none, &unused);
	copy = *m;
	live(&copy, &alloc_vgasa, 150, &vgasa, &unused);
	copy = *m;
	live(&copy, &alloc_fea, 150, fea, best);
	tap_diag("%s: none %.3f, vgasa %.3f, fea %.3f, best %.3f", what, *none, vgasa,
		 *fea, *best);
}

/* A VM with many busy threads takes most of the CPUs. */
static void greedy(void)
{
	struct model m = {
		.n = 3, .cpus = 2, .noise = 0.2,
		.vm = {
			{ .cpu = 0.010, .gpu = 0.001, .threads = 6, .rate = 1e6, .uneven = 0.1 },
			{ .cpu = 0.010, .gpu = 0.001, .threads = 1, .rate = 1e6, .uneven = 0.1 },
			{ .cpu = 0.010, .gpu = 0.001, .threads = 1, .rate = 1e6, .uneven = 0.1 },
		},
	};
	double none, fea, best;

	compare("a greedy VM", &m, &none, &fea, &best);
	TAP_CHECK(none < -3.5);
	TAP_CHECK(fea > best * 1.06);
}

/* An engine that serves frames in turn favours VMs with large frames. */
static void engine(void)
{
	struct model m = {
		.n = 3, .cpus = 8, .noise = 0.1,
		.vm = {
			{ .cpu = 0.001, .gpu = 0.020, .threads = 1, .rate = 1e6, .uneven = 0.05 },
			{ .cpu = 0.001, .gpu = 0.004, .threads = 1, .rate = 1e6, .uneven = 0.05 },
			{ .cpu = 0.001, .gpu = 0.002, .threads = 1, .rate = 1e6, .uneven = 0.05 },
		},
	};
	double none, fea, best;

	compare("an engine in turns", &m, &none, &fea, &best);
	TAP_CHECK(none < -3.5);
	TAP_CHECK(fea > best * 1.06);
}

/* Where the host is fair by itself, control must cost next to nothing. */
static void fair_already(void)
{
	struct model m = {
		.n = 3, .cpus = 2, .noise = 0.3,
		.vm = {
			{ .cpu = 0.030, .gpu = 0.004, .background = 0.1, .threads = 1,
			  .rate = 1e6, .uneven = 0.15 },
			{ .cpu = 0.035, .gpu = 0.004, .background = 0.2, .threads = 1,
			  .rate = 1e6, .uneven = 0.15 },
			{ .cpu = 0.020, .gpu = 0.002, .background = 0.1, .threads = 1,
			  .rate = 1e6, .uneven = 0.15 },
		},
	};
	double none, fea, best;

	compare("a fair host", &m, &none, &fea, &best);
	TAP_CHECK(fea > none - 0.12);
}

/* A VM with little to do is left alone, and the others get what it leaves. */
static void light(void)
{
	struct model m = {
		.n = 3, .cpus = 2, .noise = 0.1,
		.vm = {
			{ .cpu = 0.002, .gpu = 0.001, .threads = 1, .rate = 60, .uneven = 0.1 },
			{ .cpu = 0.010, .gpu = 0.001, .threads = 1, .rate = 1e6, .uneven = 0.1 },
			{ .cpu = 0.010, .gpu = 0.001, .threads = 4, .rate = 1e6, .uneven = 0.1 },
		},
	};
	double none, fea, best;

	compare("a light VM", &m, &none, &fea, &best);
	TAP_CHECK(fea > none);
	/* what it does not need does not make the best look better */
	TAP_CHECK(best < -4.2);
	TAP_NEAR(m.vm[0].rate, 60, 0);
	live(&m, &alloc_fea, 60, &fea, &best);
	TAP_NEAR(m.vm[0].fps, 60, 0.5);
	TAP_CHECK(m.vm[1].fps > 75);
}

/* ---- on the simulator's machine ---- */

#define RANDOM_VM	6

static uint64_t draw(uint64_t n)
{
	return (uint64_t)(uniform() * (double)n);
}

static void same_cost(void *data, size_t vm, uint64_t now_ns, struct machine_frame *f)
{
	const struct machine_frame *cost = data;

	(void)now_ns;
	*f = cost[vm];
}

/* A machine with VMs of constant costs, some of which keep a pace of their own. */
static struct machine *random_machine(struct machine_config *cfg, struct machine_vm *vms,
				      struct machine_frame *cost, unsigned int threads,
				      bool engines_on_cpus)
{
	static const char *const orders[] = { "weighted", "equal", "best-effort" };
	struct machine *m;

	*cfg = (struct machine_config){
		.cpus = 1 + (unsigned int)draw(6), .engines = 1 + (draw(4) == 0),
		.order = orders[draw(3)], .tile_ns = draw(2) * 1000000,
		.engines_on_cpus = engines_on_cpus, .vms = vms,
		.nr_vms = 1 + (size_t)draw(RANDOM_VM), .frame = same_cost, .data = cost,
	};
	for (size_t j = 0; j < cfg->nr_vms; j++) {
		vms[j] = (struct machine_vm){
			.threads = 1 + (unsigned int)draw(threads),
			.depth = 1 + (unsigned int)draw(3),
			.patience_ns = draw(2) * 50000000,
			.rate = draw(3) ? INFINITY : 5 + (double)draw(60),
			.weight = draw(2) ? 100 : 1 + (uint32_t)draw(10000),
		};
		snprintf(vms[j].uuid, sizeof(vms[j].uuid), "%zu", j);
		cost[j].cpu_ns = 5e5 + (double)draw(30000000);
		cost[j].engine_ns = 5e5 + (double)draw(30000000);
	}
	m = machine_new(cfg);
	for (size_t j = 0; m && j < cfg->nr_vms; j++)
		machine_open(m, j, true);
	return m;
}

/* f of the best rates for the costs of a period, if every VM could use any rate. */
static double unbounded(const struct estimate *e, const struct decide_param *param)
{
	double need[2 * RANDOM_VM] = { 0 }, demand[RANDOM_VM], weight[RANDOM_VM];
	double capacity[2] = { e->cpu_capacity, e->devs[0].engines }, x[RANDOM_VM];
	struct fds_problem p = {
		.m = 2, .need = need, .capacity = capacity, .demand = demand,
		.weight = weight, .param = param->fds,
	};
	double use = 0;
	size_t k = 0;

	for (size_t j = 0; j < e->nr_vgpus; j++)
		p.n += e->vgpus[j].state == VGPU_ACTIVE;
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		if (e->vgpus[j].state != VGPU_ACTIVE)
			continue;
		need[k] = e->vgpus[j].cpu_use;
		need[p.n + k] = e->vgpus[j].gpu_use;
		use += e->vgpus[j].gpu_use;
		demand[k] = INFINITY;
		weight[k++] = e->vgpus[j].last.weight;
	}
	/* a job that began in the period before may count for more than there is */
	capacity[1] = fmax(capacity[1], use);
	if (!p.n || fds_best(&p, x))
		return NAN;
	for (k = 0; k < p.n; k++)
		x[k] *= fds_mu(&p, k);
	return fds_value(&param->fds, p.n, weight, x);
}

/*
 * On any machine, under any allocator: no period's f is above its best, and the best is
 * not above what it would be if VMs had no bounds.
 */
static void best_is_between(void)
{
	unsigned int judged = 0, tighter = 0;

	seed = 5;
	for (unsigned int round = 0; round < tap_some(150, 1000); round++) {
		struct machine_frame cost[RANDOM_VM];
		struct machine_vm vms[RANDOM_VM];
		struct machine_config cfg;
		struct machine *m = random_machine(&cfg, vms, cost, 4, draw(3) == 0);
		struct decide_param param = {
			.allocator = alloc_all[draw(7)], .iterations = 10,
			.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
		};
		struct control control = { 0 };
		struct estimate e = { 0 };
		struct sample s;

		TAP_NEED(m);
		if (draw(3) == 0)
			param.fds = draw(2) ? (struct fds_param){ 0.5, 1.2 } :
				(struct fds_param){ 3, -0.8 };
		machine_sample(m, &s);
		TAP_NEED(!estimate_update(&e, &s, ESTIMATE_HEADROOM));
		for (unsigned int k = 1; k <= 12; k++) {
			struct plan plan;
			double most;

			machine_run(m, k * SEC);
			machine_sample(m, &s);
			TAP_NEED(!estimate_update(&e, &s, ESTIMATE_HEADROOM));
			TAP_NEED(!decide(&e, &param, NULL, NULL, &control, &plan));
			for (size_t j = 0; j < plan.nr; j++)
				if (!plan.targets[j].keep)
					machine_set_limit(m, j, plan.targets[j].limit > 1e4 ? 0 :
						(uint32_t)(plan.targets[j].limit * 1000));
			most = unbounded(&e, &param);
			if (plan.active) {
				TAP_CHECK(plan.fds <= plan.fds_best);
				if (!cfg.engines_on_cpus && plan.fds < most) {
					TAP_CHECK(plan.fds_best <= most + 1e-6 * fabs(most));
					judged++;
					tighter += plan.fds_best < most - 0.02 * fabs(most);
				}
			}
			plan_free(&plan);
		}
		estimate_free(&e);
		machine_free(m);
		if (tap.bad)
			return;
	}
	tap_diag("%u periods; in %u the best is by 2 %% or more below that without bounds",
		 judged, tighter);
	TAP_CHECK(judged > 500 && tighter > judged / 10);
}

/*
 * The rate of a VM with one thread, alone on the machine, is never above what the period
 * with others said that it could reach; and with a pace of its own not far below.
 */
static void reach_is_sound(void)
{
	double worst = 0, loose = 1;
	unsigned int paced = 0;

	seed = 7;
	for (unsigned int round = 0; round < tap_some(200, 1000); round++) {
		struct machine_frame cost[RANDOM_VM];
		struct machine_vm vms[RANDOM_VM];
		struct machine_config cfg;
		struct machine *m = random_machine(&cfg, vms, cost, 1, false);
		struct estimate e = { 0 };
		struct sample s;

		TAP_NEED(m);
		for (size_t j = 0; j < cfg.nr_vms; j++)
			if (draw(3) == 0)
				machine_set_limit(m, j, 1000 + (uint32_t)draw(60000));
		for (unsigned int k = 1; k <= 2; k++) {
			machine_run(m, 60 * k * SEC);
			machine_sample(m, &s);
			TAP_NEED(!estimate_update(&e, &s, ESTIMATE_HEADROOM));
		}
		for (size_t j = 0; j < cfg.nr_vms; j++) {
			const struct estimate_vgpu *v = &e.vgpus[j];
			double alone = machine_rate_alone(&cfg, &vms[j], &cost[j]), edge;

			if (v->state != VGPU_ACTIVE || v->fps < 1)
				continue;
			/* a frame at the end of the period is counted in part */
			edge = 3 * v->reach / (v->fps * e.seconds);
			worst = fmax(worst, alone / (v->fps * v->reach) - edge);
			if (v->fps > 0.99 * vms[j].rate) {
				paced++;
				loose += v->reach;
			}
		}
		estimate_free(&e);
		machine_free(m);
	}
	tap_diag("a VM alone reaches at most %.3f of its bound; VMs that keep their pace could do so %.2f times, in the mean",
		 worst, loose / paced);
	TAP_CHECK(worst < 1.01);
	TAP_CHECK(paced > 30 && loose / paced < 1.5);
}

/* Three VMs that play at any speed, capped at 30 by the rule of thumb. */
static void cap(void)
{
	struct model m = {
		.n = 2, .cpus = 4, .noise = 0,
		.vm = {
			{ .cpu = 0.005, .gpu = 0.002, .threads = 1, .rate = 1e6 },
			{ .cpu = 0.005, .gpu = 0.002, .threads = 1, .rate = 20 },
		},
	};
	double fds, best;

	live(&m, &alloc_vgasa, 40, &fds, &best);
	TAP_NEAR(m.vm[0].fps, 30, 0.01);
	TAP_NEAR(m.vm[1].fps, 20, 0.01);
	live(&m, &alloc_fea, 60, &fds, &best);
	TAP_CHECK(m.vm[0].fps > 400);
	TAP_NEAR(m.vm[1].fps, 20, 0.01);
}

int main(void)
{
	seed = 1;
	tap_run(greedy, "fea takes from a greedy VM");
	tap_run(engine, "fea shares an engine that large frames dominate");
	tap_run(fair_already, "fea costs little where the host is fair");
	tap_run(light, "fea leaves a light VM alone");
	tap_run(best_is_between, "the best f is not below f, nor above that of VMs without bounds");
	tap_run(reach_is_sound, "no VM alone exceeds what it could reach by its periods with others");
	tap_run(cap, "vgasa caps at 30, fea uses what is there");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop of estimate and decide closed over a model of a machine: VMs that
 * take CPU time by their number of busy threads, an engine that serves one
 * frame of each in turn, work besides the frames, and frames that come unevenly.
 */
#include <stdlib.h>

#include "decide.h"
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
	double limit, fps, held;
	double frames, engine, cpu_time, throttled;
};

struct machine {
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
static void run(struct machine *m)
{
	double cpu_left = m->cpus, gpu_left = 1;
	bool done[MAX_VM] = { false };
	double wobble[MAX_VM];

	for (size_t j = 0; j < m->n; j++) {
		struct vm *v = &m->vm[j];

		wobble[j] = 1 + m->noise * (2 * uniform() - 1);
		v->fps = 0;
		v->held = 0;
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
				if (v->fps >= bound - 1e-6 && bound < v->rate)
					v->held = 0.3;
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
	}
}

static void observe(const struct machine *m, struct sample *s)
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
			.throttled_ns = (uint64_t)(v->throttled * 1e9),
		};
		snprintf(vgpus[j].uuid, sizeof(vgpus[j].uuid), "%zu", j);
		vmms[j].tgid = (uint32_t)j + 1;
		vmms[j].cpu_ns = (uint64_t)(v->cpu_time * 1e9);
	}
}

/* Mean f and mean distance of f from each period's best, after settling. */
static void live(struct machine *m, const struct alloc_ops *policy, unsigned int periods,
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
		TAP_NEED(!decide(&e, &param, NULL, &control, &plan));
		TAP_EQ(plan.nr, m->n);
		for (size_t j = 0; j < plan.nr; j++)
			if (!plan.targets[j].keep)
				m->vm[j].limit = fmin(plan.targets[j].limit, 1e9);
		if (k > 30) {
			*fds += plan.fds;
			*best += plan.fds_best;
			counted++;
			TAP_CHECK(plan.fds <= plan.fds_best + 1e-3);
		}
		plan_free(&plan);
	}
	*fds /= counted;
	*best /= counted;
	estimate_free(&e);
}

static void compare(const char *what, const struct machine *m, double *none, double *fea,
		    double *best)
{
	struct machine copy = *m;
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
	struct machine m = {
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
	struct machine m = {
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
	struct machine m = {
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
	struct machine m = {
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
	TAP_NEAR(m.vm[0].rate, 60, 0);
	live(&m, &alloc_fea, 60, &fea, &best);
	TAP_NEAR(m.vm[0].fps, 60, 0.5);
	TAP_CHECK(m.vm[1].fps > 75);
}

/* Three VMs that play at any speed, capped at 30 by the rule of thumb. */
static void cap(void)
{
	struct machine m = {
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
	tap_run(cap, "vgasa caps at 30, fea uses what is there");
	return tap_done();
}

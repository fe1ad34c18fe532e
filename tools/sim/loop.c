// SPDX-License-Identifier: GPL-2.0-only
/* mgpud's loop over the machine, in simulated time. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fea_printed.h"
#include "sim.h"

static double cpu_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Is it there at a time, as far as the scenario knows? */
static bool away(const struct sim_away *a, double s)
{
	if (!(a->cycle_s > 0))
		return false;
	s = fmod(s, a->cycle_s);
	return s >= a->from_s && s < a->to_s;
}

static bool wants(const struct sim *s, size_t j, uint64_t ns)
{
	return !away(&s->vms[j].away, (double)ns * 1e-9) &&
		costs_wants(s->costs, j, ns);
}

/* Starts, ends and pauses VMs; they do so when a period begins. */
static void come_and_go(const struct sim *s, struct machine *m, uint64_t from,
			uint64_t to, struct sim_point *points)
{
	for (size_t j = 0; j < s->nr_vms; j++) {
		const struct sim_away *a = &s->vms[j].away;
		bool there = !away(a, (double)from * 1e-9);

		machine_open(m, j, there || !a->closed);
		machine_pause(m, j, !there || !costs_wants(s->costs, j, from));
		points[j].present = wants(s, j, from) && wants(s, j, to - 1);
	}
}

/* ---- the clairvoyant ---- */

/*
 * The best rates for the period's true costs. Leaves them in @x, INFINITY for VMs
 * that are not present, and returns their f; NAN for none.
 */
static double foresee(const struct sim *s, const struct sim_point *points, uint64_t from,
		      uint64_t to, bool agreements, double *x)
{
	size_t n = 0, *who = calloc(s->nr_vms, sizeof(*who));
	double *mem = calloc(s->nr_vms * 7, sizeof(*mem));
	double *need = mem, *demand = mem + 2 * s->nr_vms;
	double *floors = demand + s->nr_vms, *rate = floors + s->nr_vms;
	double *share = rate + s->nr_vms, *weight = share + s->nr_vms, f = NAN;
	double capacity[2] = {
		s->machine.cpus - s->machine.host, s->machine.engines,
	};
	const bool on_cpus[2] = { false, s->machine.engines_on_cpus };
	struct fds_problem p = {
		.m = 2, .need = need, .capacity = capacity, .demand = demand,
		.floor = agreements ? floors : NULL, .weight = weight,
		.param = s->param.fds,
	};
	struct machine_frame *frames = calloc(s->nr_vms, sizeof(*frames));

	if (!who || !mem || !frames)
		goto out;
	for (size_t j = 0; j < s->nr_vms; j++) {
		x[j] = INFINITY;
		if (points[j].present &&
		    costs_mean(s->costs, j, from, to, &frames[n]))
			who[n++] = j;
		if (!away(&s->vms[j].away, (double)from * 1e-9))
			capacity[0] -= s->vms[j].machine.background;
	}
	p.n = n;
	if (!n)
		goto out;
	for (size_t k = 0; k < n; k++) {
		const struct sim_vm *v = &s->vms[who[k]];

		need[k] = frames[k].cpu_ns * 1e-9;
		need[n + k] = frames[k].engine_ns * 1e-9;
		demand[k] = machine_rate_alone(&s->machine, &v->machine, &frames[k]);
		if (agreements)
			demand[k] = fmin(demand[k], v->sla.ceiling);
		floors[k] = v->sla.floor;
		weight[k] = v->machine.weight;
	}
	if (agreements) {
		p.floor = NULL;
		sla_floors(&p, floors, floors);
		p.floor = floors;
	}
	if (fds_best_beside_engines(&p, capacity, on_cpus, capacity[0], rate))
		goto out;
	for (size_t k = 0; k < n; k++) {
		share[k] = fds_mu(&p, k) * rate[k];
		x[who[k]] = rate[k];
	}
	f = fds_value(&s->param.fds, n, weight, share);
out:
	free(frames);
	free(who);
	free(mem);
	return f;
}

/* ---- a period ---- */

static void observe(const struct sim *s, const struct estimate *e,
		    const struct plan *plan, struct sim_period *period,
		    struct sim_point *points)
{
	bool all = plan->active > 0;

	for (size_t j = 0; j < s->nr_vms; j++) {
		const struct estimate_vgpu *v = &e->vgpus[j];
		struct sim_point *p = &points[j];
		double floor = fmin(s->vms[j].sla.floor, s->vms[j].machine.rate);

		p->fps = v->fps;
		p->cpu_share = v->cpu_share;
		p->gpu_share = v->gpu_share;
		p->active = v->state == VGPU_ACTIVE;
		p->limit = v->last.fps_target ? v->last.fps_target / 1000.0 : INFINITY;
		p->below = p->present && v->fps * e->seconds < floor * e->seconds - 1;
		all &= p->active == p->present;
	}
	period->end_s = (double)e->now_ns * 1e-9 - 1;
	period->fds = all ? plan->fds : NAN;
	period->best = all ? plan->fds_best : NAN;
	if (!all)
		period->bound = NAN;
	period->nr_short = plan->nr_short;
}

static void set_limits(struct machine *m, size_t vm, const struct target *t)
{
	if (t->keep)
		return;
	machine_set_limit(m, vm, decide_millihertz(t->limit));
	machine_set_gpu_limit(m, vm, decide_ppm(t->gpu));
}

static int live(const struct sim *s, struct machine *m, const struct alloc_ops *allocator,
		struct sim_run *run)
{
	uint64_t step = s->period_ms * 1000000ULL, now = 0;
	size_t settle = (size_t)ceil(SIM_SETTLE_S * 1000 / s->period_ms);
	double *x = calloc(s->nr_vms, sizeof(*x));
	struct sim_point *spare = calloc(s->nr_vms, sizeof(*spare));
	struct sim_period unused;
	struct decide_param param = s->param;
	struct sla *sla = calloc(s->nr_vms, sizeof(*sla));
	struct control control = { 0 };
	struct estimate e = { 0 };
	struct sample sample;
	int ret = x && spare && sla ? 0 : -ENOMEM;

	/* the clairvoyant measures like none, and sets limits of its own */
	param.allocator = allocator ? allocator : &alloc_none;
	if (!ret) {
		/* vGPUs are sampled in the order of the VMs */
		for (size_t j = 0; j < s->nr_vms; j++)
			sla[j] = s->vms[j].sla;
		machine_sample(m, &sample);
		ret = estimate_update(&e, &sample, s->headroom);
	}
	for (size_t k = 0; !ret && k < settle + run->nr; k++) {
		bool counts = k >= settle;
		struct sim_period *period = counts ? &run->periods[k - settle] : &unused;
		struct sim_point *points = counts ?
			&run->points[(k - settle) * s->nr_vms] : spare;
		struct plan plan;

		come_and_go(s, m, now, now + step, points);
		if (!allocator) {
			foresee(s, points, now, now + step, true, x);
			for (size_t j = 0; j < s->nr_vms; j++)
				machine_set_limit(m, j, decide_millihertz(x[j]));
		}
		period->bound = counts ? foresee(s, points, now, now + step, false, x) : NAN;
		now += step;
		machine_run(m, now);
		machine_sample(m, &sample);
		ret = estimate_update(&e, &sample, s->headroom);
		if (ret)
			break;
		ret = decide(&e, &param, sla, NULL, &control, &plan);
		if (!ret)
			observe(s, &e, &plan, period, points);
		for (size_t j = 0; !ret && j < plan.nr && param.allocator->allocate; j++)
			set_limits(m, j, &plan.targets[j]);
		plan_free(&plan);
	}
	estimate_free(&e);
	free(spare);
	free(sla);
	free(x);
	return ret;
}

const struct alloc_ops *sim_allocator(const char *name)
{
	return strcmp(name, alloc_fea_printed.name) ? alloc_find(name) : &alloc_fea_printed;
}

int sim_run(const struct sim *s, const char *allocator, struct sim_run *run)
{
	const struct alloc_ops *ops = sim_allocator(allocator);
	struct machine_config cfg = s->machine;
	struct machine_vm *vms = calloc(s->nr_vms, sizeof(*vms));
	double began = cpu_clock();
	struct machine *m = NULL;
	int ret = -ENOMEM;

	memset(run, 0, sizeof(*run));
	if (!ops && strcmp(allocator, SIM_CLAIRVOYANT)) {
		free(vms);
		return -ENOENT;
	}
	run->allocator = ops ? ops->name : SIM_CLAIRVOYANT;
	run->nr = (size_t)fmax(floor(s->seconds * 1000 / s->period_ms), 1);
	run->periods = calloc(run->nr, sizeof(*run->periods));
	run->points = calloc(run->nr * s->nr_vms, sizeof(*run->points));
	if (!vms || !run->periods || !run->points)
		goto out;
	for (size_t j = 0; j < s->nr_vms; j++)
		vms[j] = s->vms[j].machine;
	cfg.vms = vms;
	cfg.nr_vms = s->nr_vms;
	cfg.frame = costs_frame;
	cfg.data = s->costs;
	costs_rewind(s->costs);
	m = machine_new(&cfg);
	if (!m)
		goto out;
	ret = live(s, m, ops, run);
	run->use = *machine_use(m);
	run->simulated_s = (double)run->use.now_ns * 1e-9;
	run->cpu_s = cpu_clock() - began;
out:
	machine_free(m);
	free(vms);
	return ret;
}

void sim_run_free(struct sim_run *run)
{
	free(run->periods);
	free(run->points);
	memset(run, 0, sizeof(*run));
}

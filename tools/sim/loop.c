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
	return (s >= a->from_s && s < a->to_s) || s + a->cycle_s < a->to_s;
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

static void set_limits(struct machine *m, size_t vm, const struct target *t)
{
	if (t->keep)
		return;
	machine_set_limit(m, vm, decide_millihertz(t->limit));
	machine_set_gpu_limit(m, vm, decide_ppm(t->gpu));
}

/**
 * struct live - a run
 * @s: what is simulated
 * @m: the machine
 * @allocator: NULL for the clairvoyant, which measures like none, and sets limits of its own
 * @param: how rates are divided
 * @learner: NULL for an allocator without expectations
 * @e: the estimate of the last period
 * @control: what decide() keeps
 * @sla: agreements
 * @text: descriptions
 * @expect: what is expected of each VM
 * @x: the clairvoyant's rates
 * @was: VMs that were present in the period before
 * @came_s: when a VM came last, seconds
 * @now: begin of the period, nanoseconds
 */
struct live {
	const struct sim *s;
	struct machine *m;
	const struct alloc_ops *allocator;
	struct decide_param param;
	struct learner *learner;
	struct estimate e;
	struct control control;
	struct sla *sla;
	const char **text;
	struct expect *expect;
	double *x;
	bool *was;
	double came_s;
	uint64_t now;
};

static void live_end(struct live *l)
{
	estimate_free(&l->e);
	learner_free(l->learner);
	machine_free(l->m);
	free(l->sla);
	free(l->text);
	free(l->expect);
	free(l->x);
	free(l->was);
}

static int live_begin(struct live *l, const struct learner_model *model)
{
	const struct sim *s = l->s;
	struct sample sample;

	l->param = s->param;
	l->param.allocator = l->allocator ? l->allocator : &alloc_none;
	l->came_s = -INFINITY;
	l->sla = calloc(s->nr_vms, sizeof(*l->sla));
	l->text = calloc(s->nr_vms, sizeof(*l->text));
	l->expect = calloc(s->nr_vms, sizeof(*l->expect));
	l->x = calloc(s->nr_vms, sizeof(*l->x));
	l->was = calloc(s->nr_vms, sizeof(*l->was));
	if (!l->sla || !l->text || !l->expect || !l->x || !l->was)
		return -ENOMEM;
	/* vGPUs are sampled in the order of the VMs */
	for (size_t j = 0; j < s->nr_vms; j++) {
		l->sla[j] = s->vms[j].sla;
		l->text[j] = s->vms[j].text;
	}
	if (model) {
		l->learner = learner_new();
		if (!l->learner)
			return -ENOMEM;
		learner_use(l->learner, model);
	}
	machine_sample(l->m, &sample);
	return estimate_update(&l->e, &sample, s->headroom);
}

/* Note when VMs come. */
static void note_comers(struct live *l, const struct sim_point *points)
{
	for (size_t j = 0; j < l->s->nr_vms; j++) {
		if (points[j].present && !l->was[j])
			l->came_s = (double)l->now * 1e-9;
		l->was[j] = points[j].present;
	}
}

static void observe(const struct live *l, const struct plan *plan, struct sim_period *period,
		    struct sim_point *points)
{
	const struct estimate *e = &l->e;
	const struct sim *s = l->s;
	double end_s = (double)e->now_ns * 1e-9 - 1;
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
	period->end_s = end_s;
	period->fds = all ? plan->fds : NAN;
	period->since_s = end_s - l->came_s;
	period->best = all ? plan->fds_best : NAN;
	if (!all)
		period->bound = NAN;
	period->nr_short = plan->nr_short;
}

/* Plan the next period, as mgpud does. */
static int plan_next(struct live *l, struct plan *plan)
{
	int ret = 0;

	if (l->learner)
		ret = learner_update(l->learner, &l->e, l->text, l->sla, &l->param.fds,
				     l->expect);
	return ret ? ret : decide(&l->e, &l->param, l->sla, l->learner ? l->expect : NULL,
				  &l->control, plan);
}

static int live_period(struct live *l, struct sim_period *period, struct sim_point *points)
{
	const struct sim *s = l->s;
	uint64_t end = l->now + s->period_ms * 1000000ULL;
	struct plan plan = { 0 };
	struct sample sample;
	int ret;

	come_and_go(s, l->m, l->now, end, points);
	note_comers(l, points);
	if (!l->allocator) {
		foresee(s, points, l->now, end, true, l->x);
		for (size_t j = 0; j < s->nr_vms; j++)
			machine_set_limit(l->m, j, decide_millihertz(l->x[j]));
	}
	period->bound = foresee(s, points, l->now, end, false, l->x);
	machine_run(l->m, end);
	l->now = end;
	machine_sample(l->m, &sample);
	ret = estimate_update(&l->e, &sample, s->headroom);
	if (!ret)
		ret = plan_next(l, &plan);
	if (!ret)
		observe(l, &plan, period, points);
	if (!ret && s->log)
		ret = sim_log_period(s, &l->e);
	for (size_t j = 0; !ret && j < plan.nr && l->param.allocator->allocate; j++)
		set_limits(l->m, j, &plan.targets[j]);
	plan_free(&plan);
	return ret;
}

static int live(struct live *l, struct sim_run *run)
{
	size_t settle = (size_t)ceil(SIM_SETTLE_S * 1000 / l->s->period_ms);
	struct sim_point *spare = calloc(l->s->nr_vms, sizeof(*spare));
	struct sim_period unused;
	int ret = spare ? 0 : -ENOMEM;

	for (size_t k = 0; !ret && k < settle; k++)
		ret = live_period(l, &unused, spare);
	for (size_t k = 0; !ret && k < run->nr; k++)
		ret = live_period(l, &run->periods[k], &run->points[k * l->s->nr_vms]);
	free(spare);
	return ret;
}

bool sim_policy(const char *policy, const struct alloc_ops **allocator,
		const struct learn_model_ops **model)
{
	const char *with = strchr(policy, SIM_WITH);
	char name[SIM_NAME_LEN] = "";
	size_t len = with ? (size_t)(with - policy) : strlen(policy);

	*allocator = NULL;
	*model = NULL;
	if (!strcmp(policy, SIM_CLAIRVOYANT))
		return true;
	if (len >= sizeof(name))
		return false;
	memcpy(name, policy, len);
	*allocator = strcmp(name, alloc_fea_printed.name) ? alloc_find(name) : &alloc_fea_printed;
	if (with)
		*model = learn_model_find(with + 1);
	return *allocator && (!with || *model);
}

/* Find a model that the caller has; NULL for none. */
static const struct learner_model *find_model(const struct sim *s,
					      const struct learn_model_ops *ops)
{
	for (size_t i = 0; i < s->nr_models; i++)
		if (s->models[i].ops == ops)
			return &s->models[i];
	return NULL;
}

static struct machine *make_machine(const struct sim *s)
{
	struct machine_vm *vms = calloc(s->nr_vms, sizeof(*vms));
	struct machine_config cfg = s->machine;
	struct machine *m = NULL;

	for (size_t j = 0; vms && j < s->nr_vms; j++)
		vms[j] = s->vms[j].machine;
	cfg.vms = vms;
	cfg.nr_vms = s->nr_vms;
	cfg.frame = costs_frame;
	cfg.data = s->costs;
	if (vms)
		m = machine_new(&cfg);
	free(vms);
	return m;
}

int sim_run(const struct sim *s, const char *policy, struct sim_run *run)
{
	const struct learn_model_ops *with;
	const struct learner_model *model;
	struct live l = { .s = s };
	double began = cpu_clock();
	int ret;

	memset(run, 0, sizeof(*run));
	if (!sim_policy(policy, &l.allocator, &with))
		return -EINVAL;
	model = find_model(s, with);
	if (with && !model)
		return -ENOENT;
	run->allocator = policy;
	run->nr = (size_t)fmax(floor(s->seconds * 1000 / s->period_ms), 1);
	run->periods = calloc(run->nr, sizeof(*run->periods));
	run->points = calloc(run->nr * s->nr_vms, sizeof(*run->points));
	costs_rewind(s->costs);
	l.m = make_machine(s);
	ret = run->periods && run->points && l.m ? live_begin(&l, model) : -ENOMEM;
	if (!ret) {
		ret = live(&l, run);
		run->use = *machine_use(l.m);
		run->simulated_s = (double)run->use.now_ns * 1e-9;
		run->cpu_s = cpu_clock() - began;
	}
	live_end(&l);
	return ret;
}

void sim_run_free(struct sim_run *run)
{
	free(run->periods);
	free(run->points);
	memset(run, 0, sizeof(*run));
}

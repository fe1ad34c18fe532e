// SPDX-License-Identifier: GPL-2.0-only
/* Turns an estimate into a plan. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide.h"
#include "division.h"

static bool is_expected(const struct estimate *e, const struct expect *expect, size_t vgpu)
{
	return expect && e->vgpus[vgpu].state != VGPU_ACTIVE && expect[vgpu].cpu >= 0 &&
		expect[vgpu].gpu >= 0;
}

/*
 * Set aside what is expected of vGPUs that start: they show frames, and nothing is known of
 * these before the next period.
 */
static void make_room(struct division *d, const struct estimate *e, const struct expect *expect)
{
	double left[MGPU_MAX_RES];

	for (size_t i = 0; i < d->m; i++)
		left[i] = 1;
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		if (!is_expected(e, expect, j) || !expect[j].starting)
			continue;
		left[RES_CPU] -= expect[j].cpu;
		for (size_t i = 1; i < d->m; i++)
			if (d->dev[i] == e->vgpus[j].last.dev)
				left[i] -= expect[j].gpu;
	}
	for (size_t i = 0; i < d->m; i++)
		d->capacity[i] *= fmax(left[i], DECIDE_MEASURED);
}

/*
 * Bound what all tasks together can use of the capacities that they waited for. VMs that
 * wait for one another leave capacity idle that none of them could have used: an engine
 * is idle while all VMs prepare frames. A task that does more adds to the waits at each
 * resource, in proportion to its use. So use, weighed by the waits for a unit of it, is
 * bounded by the use of the period; with room for the work of VMs that were held back.
 *
 * Adds the bound to @p and @d behind the resources. There is none without waits, and no
 * room for it with the most devices, whose best f is then only bounded by each VM.
 */
static void bound_contention(struct division *d, const struct estimate *e,
			     struct fds_problem *p)
{
	double wait[MGPU_MAX_RES] = { 0 }, use[MGPU_MAX_RES] = { 0 }, most = 0;
	double *need = d->need + d->m * d->n;

	if (d->m == MGPU_MAX_RES)
		return;
	for (size_t k = 0; k < d->n; k++) {
		const struct estimate_vgpu *v = &e->vgpus[d->who[k]];
		size_t i = d->device[k];

		wait[RES_CPU] += v->cpu_wait;
		wait[i] += v->queue;
		use[RES_CPU] += v->cpu_use;
		use[i] += v->gpu_use;
	}
	for (size_t k = 0; k < d->n; k++) {
		const struct estimate_vgpu *v = &e->vgpus[d->who[k]];

		need[k] = 0;
		for (size_t i = 0; i < d->m; i++)
			if (use[i] > 0)
				need[k] += wait[i] / use[i] * fds_need(p, i, k);
		/* not 0 times INFINITY */
		if (need[k] > 0)
			most += need[k] * v->unheld;
	}
	if (!(most > 0) || !isfinite(most))
		return;
	d->capacity[p->m++] = most;
	p->bounds = 1;
}

/*
 * The largest f that a period allowed: with its capacities, no VM beyond what it could
 * have reached alone, and all together within the bound above. NAN when that cannot be
 * computed.
 */
static double best(struct division *d, const struct estimate *e,
		   const struct decide_param *param)
{
	double *x = calloc(d->n, sizeof(*x)), cpus = d->capacity[RES_CPU], f = NAN;
	struct fds_problem p = division_problem(d, &param->fds);

	if (!x)
		return NAN;
	for (size_t i = 1; i < d->m; i++) {
		double use = 0;

		for (size_t k = 0; k < d->n; k++)
			use += fds_need(&p, i, k);
		cpus += d->on_cpus[i] ? use : 0;
		/* a job that began in the period before may count for more than there is */
		d->capacity[i] = fmax(d->capacity[i], use);
	}
	bound_contention(d, e, &p);
	if (!fds_best_beside_engines(&p, d->capacity, d->on_cpus, cpus, x)) {
		for (size_t k = 0; k < d->n; k++)
			x[k] *= fds_mu(&p, k);
		f = fds_value(&param->fds, d->n, d->weight, x);
	}
	free(x);
	return f;
}

/* Compute f of the period and the best f that it allowed, which is at least its own. */
static int judge(const struct estimate *e, const struct decide_param *param,
		 struct plan *plan)
{
	struct division d = { 0 };
	int ret;

	ret = division_update(&d, e, DIVISION_PAST);
	if (ret)
		return ret;
	plan->active = d.n;
	if (d.n) {
		plan->fds = fds_value(&param->fds, d.n, d.weight, d.share);
		plan->fds_best = best(&d, e, param);
		if (plan->fds_best < plan->fds)
			plan->fds_best = plan->fds;
	}
	division_free(&d);
	return 0;
}

static double limit(double x)
{
	return x > DECIDE_FPS_MAX ? INFINITY : fmax(x, DECIDE_FPS_MIN);
}

/* Return whether the controller's target, not the operator's limit, held the vGPU back. */
static bool target_held(const struct estimate_vgpu *v)
{
	return v->held && v->last.fps_target &&
	       (!v->last.fps_limit || v->last.fps_target < v->last.fps_limit);
}

/*
 * Return whether a VM missed a promised rate in the period that it could have reached. A
 * period has whole frames: less than one frame does not count.
 */
static bool missed(const struct estimate *e, const struct estimate_vgpu *v, double floor)
{
	return v->fps + 1 / e->seconds <= floor && v->fps * v->reach >= floor;
}

/* Follow how a promise that was granted is kept. See SLA_MARGIN_MAX. */
static void update_margin(const struct estimate *e, struct estimate_vgpu *v, double floor)
{
	double *margin = &v->planned.margin;

	if (!(*margin > 0))
		*margin = SLA_MARGIN_START;
	else if (missed(e, v, floor))
		*margin *= fmin(floor / v->fps, SLA_MARGIN_MAX) + SLA_MISSED;
	else if (v->fps > floor * SLA_AMPLE)
		*margin *= 1 - SLA_EASE;
	else
		*margin *= 1 - SLA_MISSED / SLA_PERIODS;
	*margin = fmin(fmax(*margin, 1), SLA_MARGIN_MAX);
}

/*
 * Raise granted floors by their margins, as far as there is room. Return whether a promise
 * needs one, so that nothing is idle that others may use.
 */
static bool add_margins(struct division *d, const struct fds_problem *p, struct estimate *e,
			const struct plan *plan)
{
	double *want = calloc(d->n, sizeof(*want));
	bool tight = false;

	/* out of memory: there are none this time */
	for (size_t k = 0; want && k < d->n; k++) {
		struct estimate_vgpu *v = &e->vgpus[d->who[k]];
		double floor = plan->targets[d->who[k]].floor;

		if (floor > 0)
			update_margin(e, v, floor);
		else
			v->planned.margin = 0;
		want[k] = floor * v->planned.margin;
		tight |= v->planned.margin > 1;
	}
	if (tight)
		sla_raise(p, want, d->floor);
	free(want);
	return tight;
}

/*
 * Bring the agreements into the problem: no demand above a ceiling, and as much
 * of the floors as there is room for. Return what add_margins() does.
 */
static bool keep_agreements(struct division *d, const struct fds_problem *p,
			    struct estimate *e, const struct decide_param *param,
			    const struct sla *sla, struct plan *plan)
{
	division_agree(d, e, sla, param->allocator->floors);
	plan->nr_short = sla_floors(p, d->floor, d->floor);
	for (size_t k = 0; k < d->n; k++) {
		struct target *t = &plan->targets[d->who[k]];

		if (d->floor[k] < fmin(t->floor, d->demand[k]) * (1 - 1e-6))
			t->granted = d->floor[k];
	}
	/* where not even the floors fit, it is no matter of margins */
	return !plan->nr_short && add_margins(d, p, e, plan);
}

/* Compute the idle part of each resource. */
static void find_idle(const struct division *d, const struct estimate *e,
		      double idle[MGPU_MAX_RES])
{
	for (size_t i = 0; i < d->m; i++)
		idle[i] = 1;
	for (size_t k = 0; k < d->n; k++) {
		idle[RES_CPU] -= e->vgpus[d->who[k]].cpu_share;
		idle[d->device[k]] -= e->vgpus[d->who[k]].gpu_share;
	}
}

/* Return whether a promise is to be kept in the next period, by the limits of others. */
static bool promised(const struct division *d)
{
	for (size_t k = 0; k < d->n; k++)
		if (d->floor[k] > 0)
			return true;
	return false;
}

/* Return whether limits rest in the next period. */
static bool rests(const struct division *d, const struct decide_param *param,
		  const struct plan *plan, struct rest *rest)
{
	if (!param->allocator->fds)
		return false;
	return rest_update(rest, (plan->fds_best - plan->fds) / fabs(plan->fds_best),
			   plan->active, !promised(d));
}

/*
 * Follow what limits in force need to lead their targets by. See DECIDE_LEAD_REACH; @rest:
 * they are not in force; @give: let them use what is idle.
 */
static void update_leads(const struct division *d, struct estimate *e, bool rest, bool give)
{
	double idle[MGPU_MAX_RES], mean = 0;

	find_idle(d, e, idle);
	for (size_t k = 0; k < d->n; k++)
		mean += d->share[k] / d->weight[k] / d->n;
	for (size_t k = 0; k < d->n; k++) {
		struct estimate_vgpu *v = &e->vgpus[d->who[k]];
		size_t most = v->cpu_share >= v->gpu_share ? RES_CPU : d->device[k];
		double ratio = v->planned.target / v->fps;
		double *lead = &v->planned.lead;

		*lead = fmax(*lead, 1);
		if (rest)
			continue;
		if (v->planned.target > 0 && (ratio < 1 || target_held(v))) {
			ratio = fmin(fmax(ratio, 1 / DECIDE_LEAD_STEP), DECIDE_LEAD_STEP);
			*lead *= pow(ratio, DECIDE_LEAD_REACH);
			if (give && d->share[k] / d->weight[k] <= mean * (1 + 1e-9))
				*lead *= exp(DECIDE_LEAD_IDLE * idle[most]);
		} else {
			*lead = 1 + (*lead - 1) * DECIDE_LEAD_DECAY;
		}
		*lead = fmin(fmax(*lead, 1), DECIDE_LEAD_MAX);
	}
}

/*
 * Turn the allocator's rates into targets and limits. A task that gets its whole
 * demand takes nothing from others, so it is limited only to its weight's share: it
 * finds room at once when it wants more.
 *
 * Frames are whole: a heavy task's engine time differs from one second to the next by that
 * of a frame, whatever its limit of frames is. A promise to another task needs it to be
 * even, so it is limited, too, while there is one.
 */
static void set_targets(const struct division *d, const struct fds_problem *p,
			struct estimate *e, const struct decide_param *param,
			const struct sla *sla, bool rest, struct plan *plan)
{
	bool reach = param->allocator->reach;
	double mean = fds_mean_weight(p->n, p->weight);
	bool even = promised(d);

	for (size_t k = 0; k < d->n; k++) {
		struct estimate_vgpu *v = &e->vgpus[d->who[k]];
		struct target *t = &plan->targets[d->who[k]];
		size_t i = d->device[k];
		double most = division_ceiling(e, sla, d->who[k]);
		double rate = d->rate[k];

		if (reach && rate >= d->demand[k] * (1 - DECIDE_AT_DEMAND))
			rate = fmax(rate, fds_fair_rate(p, k, mean));
		t->fps = fmin(rate, most);
		t->limit = limit(t->fps);
		if (!reach)
			continue;
		v->planned.target = t->fps;
		t->lead = rest ? REST_LEAD : v->planned.lead;
		if (d->floor[k] > 0)
			t->lead = fmax(t->lead, DECIDE_LEAD_MAX);
		t->limit = limit(fmin(rate * t->lead, most));
		if (even && !(d->floor[k] > 0) && fds_need(p, i, k) > 0)
			t->gpu = fmin(rate * fds_need(p, i, k) / d->capacity[i], 1);
	}
}

/*
 * Limit vGPUs without measurements to their expectations. A vGPU with a late frame has
 * measurements, and keeps its limit.
 */
static void limit_expected(const struct estimate *e, const struct expect *expect,
			   const struct sla *sla, bool rest, struct plan *plan)
{
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		struct target *t = &plan->targets[j];

		if (!is_expected(e, expect, j) || (t->keep && e->vgpus[j].kept.frames > 0))
			continue;
		t->keep = false;
		t->fps = fmin(expect[j].fps, division_ceiling(e, sla, j));
		t->limit = limit(fmin(t->fps * (rest ? REST_LEAD : DECIDE_LEAD_MAX),
				      division_ceiling(e, sla, j)));
		t->gpu = rest ? INFINITY : expect[j].gpu;
	}
}

int decide(struct estimate *e, const struct decide_param *param,
	   const struct sla *sla, const struct expect *expect, struct control *control,
	   struct plan *plan)
{
	const struct alloc_ops *allocator = param->allocator;
	struct fds_problem p;
	struct division d = { 0 };
	bool tight, rest = false;
	int ret;

	memset(plan, 0, sizeof(*plan));
	plan->fds = NAN;
	plan->fds_best = NAN;
	plan->targets = calloc(e->nr_vgpus ? e->nr_vgpus : 1, sizeof(*plan->targets));
	if (!plan->targets)
		return -ENOMEM;
	plan->nr = e->nr_vgpus;
	ret = judge(e, param, plan);
	if (ret)
		return ret;

	for (size_t j = 0; j < e->nr_vgpus; j++) {
		struct estimate_vgpu *v = &e->vgpus[j];
		struct target *t = &plan->targets[j];

		t->id = v->last.id;
		t->fps = INFINITY;
		t->limit = INFINITY;
		t->gpu = INFINITY;
		t->lead = NAN;
		t->floor = allocator->floors ? division_sla(sla, j)->floor : 0;
		t->granted = t->floor;
		/* one frame that is late, or held back, does not free it */
		t->keep = allocator->allocate && v->state == VGPU_IDLE &&
			v->idle_ns < DECIDE_RELEASE_NS;
		if (!allocator->reach)
			memset(&v->planned, 0, sizeof(v->planned));
		else if (v->state != VGPU_ACTIVE)
			v->planned.target = 0;
	}
	if (!allocator->fds)
		memset(&control->rest, 0, sizeof(control->rest));
	if (allocator->reach)
		limit_expected(e, expect, sla, allocator->fds && !control->rest.in_force,
			       plan);
	if (!allocator->allocate || !plan->active)
		return 0;

	ret = division_update(&d, e, DIVISION_NEXT);
	if (ret)
		return ret;
	if (allocator->reach)
		make_room(&d, e, expect);
	p = division_problem(&d, &param->fds);
	tight = keep_agreements(&d, &p, e, param, sla, plan);
	if (allocator->reach) {
		rest = rests(&d, param, plan, &control->rest);
		update_leads(&d, e, rest, !tight);
	}
	ret = allocator->allocate(&control->alloc, &p, param->iterations, d.rate);
	if (!ret)
		set_targets(&d, &p, e, param, sla, rest, plan);
	else
		for (size_t k = 0; k < d.n; k++)
			plan->targets[d.who[k]].keep = true;
	division_free(&d);
	return ret;
}

uint32_t decide_millihertz(double fps)
{
	double mhz = round(fps * 1000);

	if (!isfinite(fps) || mhz > DECIDE_FPS_MAX * 1000)
		return 0;
	return (uint32_t)fmax(mhz, DECIDE_FPS_MIN * 1000);
}

uint32_t decide_ppm(double share)
{
	double ppm = round(share * 1e6);

	if (!isfinite(share) || ppm >= 1e6)
		return 0;
	return (uint32_t)fmax(ppm, DECIDE_GPU_MIN * 1e6);
}

void plan_free(struct plan *plan)
{
	free(plan->targets);
	memset(plan, 0, sizeof(*plan));
}

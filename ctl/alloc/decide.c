// SPDX-License-Identifier: GPL-2.0-only
/* Turns an estimate into a plan. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decide.h"

/* Resource 0 is the CPUs; each device with an active vGPU is one more. */
#define RES_CPU	0

struct division {
	size_t n, m;
	size_t *who;		/* of each task, its index in the estimate */
	uint32_t dev[MGPU_MAX_RES];
	double *need;		/* MGPU_MAX_RES rows of n */
	double *rate, *share, *demand, *floor, *weight;
	double capacity[MGPU_MAX_RES];
};

static void division_free(struct division *d)
{
	free(d->who);
	free(d->need);
	free(d->rate);
}

/* The resource of a device, or 0 when there are too many of them. */
static size_t resource(struct division *d, const struct estimate *e, uint32_t dev)
{
	size_t i;

	for (i = 1; i < d->m; i++)
		if (d->dev[i] == dev)
			return i;
	if (i == MGPU_MAX_RES)
		return 0;
	d->dev[i] = dev;
	d->capacity[i] = 1;
	for (size_t k = 0; k < e->nr_devs; k++)
		if (e->devs[k].id == dev)
			d->capacity[i] = e->devs[k].engines;
	d->m++;
	return i;
}

/*
 * The tasks and the resources of a period. @smooth: costs and capacities that
 * are to hold for the next period too, instead of this one's own.
 */
static int divide(struct division *d, const struct estimate *e, bool smooth)
{
	size_t room = e->nr_vgpus ? e->nr_vgpus : 1;

	memset(d, 0, sizeof(*d));
	d->who = calloc(room, sizeof(*d->who));
	d->need = calloc(room * MGPU_MAX_RES, sizeof(*d->need));
	d->rate = calloc(5 * room, sizeof(*d->rate));
	if (!d->who || !d->need || !d->rate) {
		division_free(d);
		return -ENOMEM;
	}
	d->m = 1;
	d->capacity[RES_CPU] = smooth ? e->cpu_capacity_smooth : e->cpu_capacity;
	for (size_t j = 0; j < e->nr_vgpus; j++)
		if (e->vgpus[j].state == VGPU_ACTIVE &&
		    resource(d, e, e->vgpus[j].last.dev))
			d->who[d->n++] = j;
	d->share = d->rate + d->n;
	d->demand = d->share + d->n;
	d->floor = d->demand + d->n;
	d->weight = d->floor + d->n;
	for (size_t k = 0; k < d->n; k++) {
		const struct estimate_vgpu *v = &e->vgpus[d->who[k]];
		size_t i = resource(d, e, v->last.dev);

		d->need[k] = smooth ? v->cpu_cost_smooth : v->cpu_cost;
		d->need[i * d->n + k] = smooth ? v->gpu_cost_smooth : v->gpu_cost;
		d->rate[k] = fmax(v->fps, DECIDE_RATE_MIN);
		d->share[k] = v->share;
		d->demand[k] = smooth ? v->demand : INFINITY;
		d->weight[k] = v->last.weight ? v->last.weight : 1;
	}
	return 0;
}

static struct fds_problem problem(const struct division *d,
				  const struct decide_param *param)
{
	return (struct fds_problem){
		.n = d->n,
		.m = d->m,
		.need = d->need,
		.capacity = d->capacity,
		.demand = d->demand,
		.floor = d->floor,
		.weight = d->weight,
		.param = param->fds,
	};
}

/* @sla as in decide(). */
static const struct sla *agreement(const struct sla *sla, size_t vgpu)
{
	static const struct sla none = { .floor = 0, .ceiling = INFINITY };

	return sla ? &sla[vgpu] : &none;
}

/* Compute f of the period and the best f that it allowed. */
static int judge(const struct estimate *e, const struct decide_param *param,
		 struct plan *plan)
{
	struct fds_problem p;
	struct division d;
	double *best;
	int ret;

	ret = divide(&d, e, false);
	if (ret)
		return ret;
	plan->active = d.n;
	if (d.n) {
		p = problem(&d, param);
		plan->fds = fds_value(&param->fds, d.n, d.share);
		best = calloc(d.n, sizeof(*best));
		if (!best) {
			division_free(&d);
			return -ENOMEM;
		}
		if (!fds_best(&p, best)) {
			for (size_t k = 0; k < d.n; k++)
				best[k] *= fds_mu(&p, k);
			plan->fds_best = fds_value(&param->fds, d.n, best);
		}
		free(best);
	}
	division_free(&d);
	return 0;
}

static double limit(double x)
{
	return x > DECIDE_FPS_MAX ? INFINITY : fmax(x, DECIDE_FPS_MIN);
}

/* Measured use of the busiest of the capacities that were to be used up. */
static double busy(const struct division *d, const struct estimate *e,
		   const struct control *c)
{
	double most = 0, use;

	for (size_t i = 0; i < d->m; i++) {
		size_t before = 0;

		/* devices may have other places than in the last plan */
		if (i != RES_CPU)
			for (before = 1; before < MGPU_MAX_RES; before++)
				if (c->binds[before] && c->dev[before] == d->dev[i])
					break;
		if (before == MGPU_MAX_RES || !c->binds[before])
			continue;
		use = 0;
		for (size_t k = 0; k < d->n; k++) {
			const struct estimate_vgpu *v = &e->vgpus[d->who[k]];

			if (i == RES_CPU)
				use += v->cpu_share;
			else if (v->last.dev == d->dev[i])
				use += v->gpu_share;
		}
		most = fmax(most, use);
	}
	return most;
}

static void update_lead(const struct division *d, const struct estimate *e,
			struct control *c)
{
	bool held = false;
	double use = busy(d, e, c);

	if (!(c->lead > 0))
		c->lead = 1;
	for (size_t k = 0; k < d->n; k++)
		held |= e->vgpus[d->who[k]].held;
	if (held && use > 0)
		c->lead *= 1 + DECIDE_LEAD_GAIN * (DECIDE_BUSY - use);
	else
		c->lead = 1 + (c->lead - 1) * DECIDE_LEAD_DECAY;
	c->lead = fmin(fmax(c->lead, 1), DECIDE_LEAD_MAX);
}

/* Record the capacities that the new plan is to use up. */
static void remember(const struct division *d, struct control *c)
{
	memset(c->binds, 0, sizeof(c->binds));
	for (size_t i = 0; i < d->m; i++) {
		double use = 0;

		for (size_t k = 0; k < d->n; k++)
			use += d->need[i * d->n + k] * fmin(d->rate[k], d->demand[k]);
		c->binds[i] = use >= d->capacity[i] * DECIDE_BINDS;
		c->dev[i] = d->dev[i];
	}
}

/*
 * Bring the agreements into the problem: no demand above a ceiling, and as much
 * of the floors as there is room for.
 */
static void keep_agreements(struct division *d, const struct fds_problem *p,
			    const struct decide_param *param, const struct sla *sla,
			    struct plan *plan)
{
	for (size_t k = 0; k < d->n; k++) {
		const struct sla *s = agreement(sla, d->who[k]);

		d->demand[k] = fmin(d->demand[k], s->ceiling);
		d->floor[k] = param->allocator->floors ? s->floor : 0;
	}
	plan->nr_short = sla_floors(p, d->floor, d->floor);
	for (size_t k = 0; k < d->n; k++) {
		struct target *t = &plan->targets[d->who[k]];

		if (d->floor[k] < fmin(t->floor, d->demand[k]) * (1 - 1e-6))
			t->granted = d->floor[k];
	}
}

/*
 * Turn the allocator's rates into targets and limits. A task that gets its whole
 * demand takes nothing from others, so it is limited only to its equal share: it
 * finds room at once when it wants more.
 */
static void set_targets(const struct division *d, const struct fds_problem *p,
			const struct decide_param *param, const struct sla *sla,
			struct control *c, struct plan *plan)
{
	bool reach = param->allocator->reach;

	for (size_t k = 0; k < d->n; k++) {
		struct target *t = &plan->targets[d->who[k]];
		double ceiling = agreement(sla, d->who[k])->ceiling;
		double rate = d->rate[k];

		if (reach && rate >= d->demand[k] * (1 - DECIDE_AT_DEMAND))
			rate = fmax(rate, 1 / ((double)d->n * fds_mu(p, k)));
		t->fps = fmin(rate, ceiling);
		t->limit = limit(fmin(reach ? rate * c->lead : rate, ceiling));
	}
	remember(d, c);
}

int decide(const struct estimate *e, const struct decide_param *param,
	   const struct sla *sla, struct control *control, struct plan *plan)
{
	const struct alloc_ops *allocator = param->allocator;
	struct fds_problem p;
	struct division d;
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
		const struct estimate_vgpu *v = &e->vgpus[j];
		struct target *t = &plan->targets[j];

		t->id = v->last.id;
		t->fps = INFINITY;
		t->limit = INFINITY;
		t->floor = allocator->floors ? agreement(sla, j)->floor : 0;
		t->granted = t->floor;
		/* one frame that is late, or held back, does not free it */
		t->keep = allocator->allocate && v->state == VGPU_IDLE &&
			v->idle_ns < DECIDE_RELEASE_NS;
	}
	if (!allocator->allocate || !plan->active)
		return 0;

	ret = divide(&d, e, true);
	if (ret)
		return ret;
	p = problem(&d, param);
	keep_agreements(&d, &p, param, sla, plan);
	update_lead(&d, e, control);
	ret = allocator->allocate(&control->alloc, &p, param->iterations, d.rate);
	if (!ret)
		set_targets(&d, &p, param, sla, control, plan);
	else
		for (size_t k = 0; k < d.n; k++)
			plan->targets[d.who[k]].keep = true;
	division_free(&d);
	return ret;
}

void plan_free(struct plan *plan)
{
	free(plan->targets);
	memset(plan, 0, sizeof(*plan));
}

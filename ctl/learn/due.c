// SPDX-License-Identifier: GPL-2.0-only
/* Shares that are due to active vGPUs. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "due.h"

/* Resource 0 is the CPUs; each device with an active vGPU is one more. */
#define RES_CPU	0

/* Numbers per vGPU: rows of needs, and rate, demand, floor, weight. */
#define ROWS	(MGPU_MAX_RES + 4)

/**
 * struct tasks - the active vGPUs as a problem
 * @p: the problem
 * @need: its needs
 * @rate: rates of the plan
 * @demand: its demands
 * @floor: its floors
 * @weight: its weights
 * @capacity: its capacities
 * @dev: id of the device that each resource is
 * @who: of each task, its index in the estimate
 * @res: of each task, the resource that its device is
 */
struct tasks {
	struct fds_problem p;
	double *need, *rate, *demand, *floor, *weight;
	double capacity[MGPU_MAX_RES];
	uint32_t dev[MGPU_MAX_RES];
	size_t *who, *res;
};

static int make_room(struct due *d, size_t n)
{
	void *mem;

	if (n <= d->room)
		return 0;
	mem = malloc(n * (ROWS * sizeof(double) + 2 * sizeof(size_t) +
			  sizeof(*d->share) + sizeof(*d->floor)));
	if (!mem)
		return -ENOMEM;
	free(d->mem);
	d->mem = mem;
	d->room = n;
	d->share = mem;
	d->floor = d->share + n;
	return 0;
}

/* The resource of a device, or 0 when there are too many of them. */
static size_t resource(struct tasks *t, const struct estimate *e, uint32_t dev)
{
	size_t i;

	for (i = 1; i < t->p.m; i++)
		if (t->dev[i] == dev)
			return i;
	if (i == MGPU_MAX_RES)
		return RES_CPU;
	t->dev[i] = dev;
	t->capacity[i] = 1;
	for (size_t k = 0; k < e->nr_devs; k++)
		if (e->devs[k].id == dev)
			t->capacity[i] = e->devs[k].engines;
	t->p.m++;
	return i;
}

static void find_active(struct tasks *t, const struct estimate *e)
{
	t->p.m = 1;
	t->capacity[RES_CPU] = e->cpu_capacity_smooth;
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		size_t i;

		if (e->vgpus[j].state != VGPU_ACTIVE)
			continue;
		i = resource(t, e, e->vgpus[j].last.dev);
		t->res[t->p.n] = i;
		t->who[t->p.n] = j;
		t->p.n += i != RES_CPU;
	}
}

static void fill_problem(struct tasks *t, const struct estimate *e, const struct sla *sla)
{
	size_t n = t->p.n;

	memset(t->need, 0, t->p.m * n * sizeof(*t->need));
	for (size_t k = 0; k < n; k++) {
		const struct estimate_vgpu *v = &e->vgpus[t->who[k]];
		uint32_t operator = v->last.fps_limit;

		t->need[k] = v->cpu_cost_smooth;
		t->need[t->res[k] * n + k] = v->gpu_cost_smooth;
		t->demand[k] = operator ? fmin(v->demand, operator / 1000.0) : v->demand;
		t->floor[k] = 0;
		t->weight[k] = v->last.weight ? v->last.weight : SAMPLE_WEIGHT;
		if (!sla)
			continue;
		t->demand[k] = fmin(t->demand[k], sla[t->who[k]].ceiling);
		t->floor[k] = sla[t->who[k]].floor;
	}
}

/* Compute the parts of both resources that a rate of a task needs. */
static void part_of(const struct tasks *t, size_t k, double rate, double part[LEARN_RESOURCES])
{
	size_t i = t->res[k];

	part[LEARN_CPU] = rate * t->need[k] / t->capacity[RES_CPU];
	part[LEARN_ENGINE] = rate * t->need[i * t->p.n + k] / t->capacity[i];
}

int due_update(struct due *d, const struct estimate *e, const struct sla *sla,
	       const struct fds_param *param)
{
	struct tasks t = { .p.param = *param };
	double *numbers, left;

	if (make_room(d, e->nr_vgpus))
		return -ENOMEM;
	for (size_t j = 0; j < e->nr_vgpus; j++)
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			d->share[j][g] = NAN;
			d->floor[j][g] = 0;
		}
	if (!e->nr_vgpus)
		return 0;
	numbers = (double *)(d->floor + d->room);
	t.who = (size_t *)(numbers + ROWS * d->room);
	t.res = t.who + d->room;
	find_active(&t, e);
	if (!t.p.n)
		return 0;
	t.p.capacity = t.capacity;
	t.p.need = t.need = numbers;
	t.rate = numbers + MGPU_MAX_RES * d->room;
	t.p.demand = t.demand = t.rate + d->room;
	t.p.floor = t.floor = t.demand + d->room;
	t.p.weight = t.weight = t.floor + d->room;
	fill_problem(&t, e, sla);
	sla_floors(&t.p, t.floor, t.floor);
	for (size_t k = 0; k < t.p.n; k++)
		part_of(&t, k, t.floor[k], d->floor[t.who[k]]);
	/* floors hold without a plan, too */
	if (fds_best_from(&t.p, d->price, t.rate, &left))
		return 0;
	for (size_t k = 0; k < t.p.n; k++)
		part_of(&t, k, t.rate[k], d->share[t.who[k]]);
	return 0;
}

void due_free(struct due *d)
{
	free(d->mem);
	memset(d, 0, sizeof(*d));
}

// SPDX-License-Identifier: GPL-2.0-only
/* The tasks of a period, and the capacities that they share. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "division.h"

void division_free(struct division *d)
{
	free(d->who);
	free(d->need);
	free(d->rate);
	memset(d, 0, sizeof(*d));
}

/* The resource of a device, or RES_CPU when there are too many of them. */
static size_t resource(struct division *d, const struct estimate *e, uint32_t dev)
{
	size_t i;

	for (i = 1; i < d->m; i++)
		if (d->dev[i] == dev)
			return i;
	if (i == MGPU_MAX_RES)
		return RES_CPU;
	d->dev[i] = dev;
	d->capacity[i] = 1;
	d->on_cpus[i] = false;
	for (size_t k = 0; k < e->nr_devs; k++)
		if (e->devs[k].id == dev) {
			d->capacity[i] = e->devs[k].engines;
			d->on_cpus[i] = e->devs[k].on_cpus;
		}
	d->m++;
	return i;
}

static int make_room(struct division *d, size_t n)
{
	struct division new = { .room = n ? n : 1 };

	if (d->room >= new.room)
		return 0;
	new.who = calloc(2 * new.room, sizeof(*new.who));
	new.need = calloc(new.room * MGPU_MAX_RES, sizeof(*new.need));
	new.rate = calloc(5 * new.room, sizeof(*new.rate));
	if (!new.who || !new.need || !new.rate) {
		division_free(&new);
		return -ENOMEM;
	}
	division_free(d);
	*d = new;
	return 0;
}

int division_update(struct division *d, const struct estimate *e, enum division_time time)
{
	bool past = time == DIVISION_PAST;
	int ret = make_room(d, e->nr_vgpus);

	if (ret)
		return ret;
	d->n = 0;
	d->device = d->who + d->room;
	d->m = 1;
	d->capacity[RES_CPU] = past ? e->cpu_capacity : e->cpu_capacity_smooth;
	for (size_t j = 0; j < e->nr_vgpus; j++)
		if (e->vgpus[j].state == VGPU_ACTIVE) {
			d->device[d->n] = resource(d, e, e->vgpus[j].last.dev);
			d->who[d->n] = j;
			d->n += d->device[d->n] != RES_CPU;
		}
	memset(d->need, 0, d->n * d->m * sizeof(*d->need));
	d->share = d->rate + d->n;
	d->demand = d->share + d->n;
	d->floor = d->demand + d->n;
	d->weight = d->floor + d->n;
	for (size_t k = 0; k < d->n; k++) {
		const struct estimate_vgpu *v = &e->vgpus[d->who[k]];
		size_t i = d->device[k];

		d->need[k] = past ? v->cpu_use : v->cpu_cost_smooth;
		d->need[i * d->n + k] = past ? v->gpu_use : v->gpu_cost_smooth;
		d->rate[k] = past ? 1 : fmax(v->fps, DIVISION_RATE_MIN);
		d->share[k] = v->share;
		d->demand[k] = past ? v->reach : v->demand;
		d->floor[k] = 0;
		d->weight[k] = v->last.weight ? v->last.weight : SAMPLE_WEIGHT;
	}
	return 0;
}

struct fds_problem division_problem(const struct division *d, const struct fds_param *param)
{
	return (struct fds_problem){
		.n = d->n,
		.m = d->m,
		.need = d->need,
		.capacity = d->capacity,
		.demand = d->demand,
		.floor = d->floor,
		.weight = d->weight,
		.param = *param,
	};
}

const struct sla *division_sla(const struct sla *sla, size_t vgpu)
{
	static const struct sla none = { .floor = 0, .ceiling = INFINITY };

	return sla ? &sla[vgpu] : &none;
}

double division_ceiling(const struct estimate *e, const struct sla *sla, size_t vgpu)
{
	uint32_t operator = e->vgpus[vgpu].last.fps_limit;

	return fmin(division_sla(sla, vgpu)->ceiling,
		    operator ? operator / 1000.0 : INFINITY);
}

void division_agree(struct division *d, const struct estimate *e, const struct sla *sla,
		    bool floors)
{
	for (size_t k = 0; k < d->n; k++) {
		size_t vgpu = d->who[k];

		d->demand[k] = fmin(d->demand[k], division_ceiling(e, sla, vgpu));
		d->floor[k] = floors ? division_sla(sla, vgpu)->floor : 0;
	}
}

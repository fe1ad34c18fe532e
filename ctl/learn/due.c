// SPDX-License-Identifier: GPL-2.0-only
/* Shares that are due to active vGPUs. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "due.h"

static int make_room(struct due *d, size_t n)
{
	void *mem;

	if (n <= d->room)
		return 0;
	mem = malloc(n * (sizeof(*d->share) + sizeof(*d->floor)));
	if (!mem)
		return -ENOMEM;
	free(d->mem);
	d->mem = mem;
	d->room = n;
	d->share = mem;
	d->floor = d->share + n;
	return 0;
}

/* Compute the parts of both resources that a rate of a task needs. */
static void part_of(const struct division *d, size_t k, double rate, double part[LEARN_RESOURCES])
{
	size_t i = d->device[k];

	part[LEARN_CPU] = rate * d->need[k] / d->capacity[RES_CPU];
	part[LEARN_ENGINE] = rate * d->need[i * d->n + k] / d->capacity[i];
}

int due_update(struct due *d, const struct estimate *e, const struct sla *sla,
	       const struct fds_param *param)
{
	struct division *t = &d->tasks;
	struct fds_problem p;
	double left;
	int ret;

	if (make_room(d, e->nr_vgpus))
		return -ENOMEM;
	for (size_t j = 0; j < e->nr_vgpus; j++)
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			d->share[j][g] = NAN;
			d->floor[j][g] = 0;
		}
	ret = division_update(t, e, DIVISION_NEXT);
	if (ret)
		return ret;
	p = division_problem(t, param);
	division_agree(t, e, sla, true);
	sla_floors(&p, t->floor, t->floor);
	for (size_t k = 0; k < t->n; k++)
		part_of(t, k, t->floor[k], d->floor[t->who[k]]);
	/* floors hold without a plan, too */
	if (t->n && !fds_best_from(&p, d->price, t->rate, &left))
		for (size_t k = 0; k < t->n; k++)
			part_of(t, k, t->rate[k], d->share[t->who[k]]);
	return 0;
}

void due_free(struct due *d)
{
	free(d->mem);
	division_free(&d->tasks);
	memset(d, 0, sizeof(*d));
}

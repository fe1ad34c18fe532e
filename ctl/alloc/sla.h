/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Agreements of vGPUs: a least rate, a largest rate, and the division of a shortfall
 * when not all promises can be kept. Pure.
 */
#ifndef MGPU_SLA_H
#define MGPU_SLA_H

#include <math.h>

#include "fds.h"

/**
 * struct sla - a service level agreement
 * @floor: rate that the vGPU gets if it can use it, frames per second; 0 for no promise
 * @ceiling: largest rate of the vGPU, frames per second, not below @floor; INFINITY for
 *	no limit
 */
struct sla {
	double floor;
	double ceiling;
};

#define SLA_NONE ((struct sla){ .floor = 0, .ceiling = INFINITY })

/* Range of both, frames per second; beside 0 and INFINITY. */
#define SLA_FPS_MIN	1.0
#define SLA_FPS_MAX	10000.0

/*
 * Plans need more than a floor to keep it: frames come unevenly, and where a plan uses
 * capacities up, none is left for that. So floors are planned with a margin, a factor from 1
 * to SLA_MARGIN_MAX, which begins with SLA_MARGIN_START. A period with less than the floor
 * raises it by the part that was missing and SLA_MISSED. A period with more than SLA_AMPLE of
 * the floor lowers it by SLA_EASE, and every other one by so little that one in SLA_PERIODS
 * misses. Margins leave each task without a promise SLA_MARGIN_SPARE of its equal share.
 */
#define SLA_MARGIN_MAX	1.5
#define SLA_MARGIN_START	1.35
#define SLA_AMPLE	1.25
#define SLA_EASE	0.01
#define SLA_MISSED	0.03
#define SLA_PERIODS	100
#define SLA_MARGIN_SPARE	0.3

/* Check an agreement. Return NULL, or a sentence that says what is wrong. */
const char *sla_check(const struct sla *sla);

/*
 * Grant floors. @asked: n values >= 0. Writes the granted rate of each task to @floor,
 * which may be the same memory: all of @asked, or the same part of it, as large as
 * possible, for all tasks that need a capacity which is short. A task without a floor
 * keeps room for SLA_SPARE of its equal share. A grant never exceeds @p's demand.
 * Return the number of tasks that are granted less than they asked for and can use,
 * beyond rounding.
 */
size_t sla_floors(const struct fds_problem *p, const double *asked, double *floor);

/*
 * Raise granted floors. @want: n values >= 0, 0 for a task without a promise. @floor: as
 * granted by sla_floors(); raised up to @want, as far as there is room beside the floors of
 * all tasks and SLA_MARGIN_SPARE of the others, and never lowered. Without memory, it is left.
 */
void sla_raise(const struct fds_problem *p, const double *want, double *floor);

/* Part of the equal share of a task that floors of others always leave it. */
#define SLA_SPARE	0.01

/* Part of a floor that cannot be met in full, which the allocator divides. */
#define SLA_ROOM	1e-3

#endif /* MGPU_SLA_H */

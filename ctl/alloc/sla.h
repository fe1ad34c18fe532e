/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a vGPU was promised: a rate that it gets at least, one that it gets at
 * most, and what happens when not all promises can be kept. Pure.
 */
#ifndef MGPU_SLA_H
#define MGPU_SLA_H

#include <math.h>

#include "fds.h"
#include "sample.h"

/**
 * struct sla - a service level agreement
 * @floor: frames per second that the vGPU gets if it has use for them; 0 for no
 *	promise
 * @ceiling: frames per second that it gets at most; INFINITY for no such limit.
 *	Not below @floor
 */
struct sla {
	double floor;
	double ceiling;
};

#define SLA_NONE ((struct sla){ .floor = 0, .ceiling = INFINITY })

/* Range of both, frames per second; beside 0 and INFINITY. */
#define SLA_FPS_MIN	1.0
#define SLA_FPS_MAX	10000.0

/**
 * struct sla_vgpu - the agreement of one vGPU
 * @uuid: of the vGPU, as text in lower case
 * @sla: instead of the one for all
 */
struct sla_vgpu {
	char uuid[SAMPLE_UUID_LEN];
	struct sla sla;
};

/* NULL, or a sentence that says why it is none. */
const char *sla_check(const struct sla *sla);

/*
 * Which floors can be met. @asked: n values >= 0. Writes into @floor, which may
 * be the same memory, what each task is granted: all of it, or of each task that
 * a capacity cannot serve fully the same share, as large as possible; a task
 * without a floor keeps room for SLA_SPARE of its equal share. Never more than
 * @p's demand. Returns how many tasks were granted less than they asked for and
 * have use for, beyond rounding.
 */
size_t sla_floors(const struct fds_problem *p, const double *asked, double *floor);

/* Of the equal share of a task: what floors of others leave it in any case. */
#define SLA_SPARE	0.01

/* Of a floor that cannot be met in full: left to the allocator to divide. */
#define SLA_ROOM	1e-3

#endif /* MGPU_SLA_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns an estimate into a plan: the fairness of the period, and the limit of each vGPU
 * in the next one. Pure.
 */
#ifndef MGPU_DECIDE_H
#define MGPU_DECIDE_H

#include "alloc.h"
#include "estimate.h"
#include "expect.h"
#include "rest.h"
#include "sla.h"

/* Time without a frame after which a vGPU loses its limit. */
#define DECIDE_RELEASE_NS	ESTIMATE_IDLE_NS

/* Range of the module's limits, frames per second. */
#define DECIDE_FPS_MIN		1.0
#define DECIDE_FPS_MAX		10000.0

/* Least limit of engine time of the module, a part of it. */
#define DECIDE_GPU_MIN		0.001

/*
 * A limit caps the pace of frames, so tasks whose frames come unevenly stay below it on
 * average, and costs are never known exactly. With limits equal to targets, capacity that
 * another task could use stays idle, and f loses more by that than by slightly uneven shares.
 * So each limit leads its target by a factor of its own, from 1 to DECIDE_LEAD_MAX. While
 * the target holds frames back, or the rate exceeds it, the factor's logarithm changes each
 * period by
 *
 *	DECIDE_LEAD_REACH * log(target / rate) + DECIDE_LEAD_IDLE * idle
 *
 * where idle is the idle part of the resource of which the task needs most. The first term
 * lets a task reach its target, and takes back what exceeds it. The second gives it what
 * nobody else uses, if its share for its weight is not above the mean. Else the lead decays
 * towards 1. The limit of a task with a promise leads by DECIDE_LEAD_MAX.
 */
#define DECIDE_LEAD_REACH	0.5
#define DECIDE_LEAD_IDLE	3.0
#define DECIDE_LEAD_MAX		2.0
#define DECIDE_LEAD_DECAY	0.9	/* of what a lead is above 1 */
#define DECIDE_LEAD_STEP	2.0	/* most that target / rate counts for, and least */

/* Part of each capacity that vGPUs which are measured have beside those that start. */
#define DECIDE_MEASURED	0.1

#define DECIDE_AT_DEMAND	1e-3	/* below demand that counts as at it */

/**
 * struct decide_param - how rates are divided
 * @allocator: the allocator
 * @iterations: iterations per period, for allocators that iterate
 * @fds: parameters of f
 */
struct decide_param {
	const struct alloc_ops *allocator;
	unsigned int iterations;
	struct fds_param fds;
};

/**
 * struct target - the target of a vGPU
 * @id: ID of the vGPU
 * @keep: leave its limit unchanged
 * @fps: target rate, frames per second, INFINITY for any
 * @limit: limit to set, frames per second, INFINITY for none
 * @gpu: limit of engine time to set, a part of that of all engines of its device; INFINITY
 *	for none
 * @lead: factor of @limit over @fps, but for a ceiling and the range of limits; NAN where
 *	limits are targets, are kept, or are not set
 * @floor: promised rate, frames per second; 0 for none
 * @granted: part of @floor that it gets if it can use it, frames per second
 *
 * @granted is below @floor only while the vGPU is active and the promises to all active
 * vGPUs exceed a capacity.
 */
struct target {
	uint32_t id;
	bool keep;
	double fps;
	double limit;
	double gpu;
	double lead;
	double floor;
	double granted;
};

/**
 * struct control - the state that is kept from one period to the next
 * @alloc: state of the allocator
 * @rest: whether limits rest
 */
struct control {
	struct alloc_state alloc;
	struct rest rest;
};

/**
 * struct plan - the result of a period
 * @fds: f of the measured rates, NAN if no vGPU was active
 * @fds_best: the largest f that the period allowed, by its capacities and by what the
 *	VMs could have reached; at least @fds, NAN if no vGPU was active
 * @active: number of active vGPUs
 * @targets: one target per vGPU of the estimate, in its order
 * @nr: number of targets
 * @nr_short: number of vGPUs that are granted less than their floor
 */
struct plan {
	double fds;
	double fds_best;
	size_t active;
	struct target *targets;
	size_t nr;
	size_t nr_short;
};

/**
 * decide() - divide the capacities of the next period
 * @e: the estimate of the last period; what the vGPUs keep of the plan is updated
 * @param: how rates are divided
 * @sla: the agreement of each vGPU of @e, in its order; NULL if there are none
 * @expect: what is expected of each vGPU of @e, in its order, while it is not active; NULL
 *	for nothing. Counts for allocators whose targets are to be reached
 * @control: state kept from one period to the next; updated
 * @plan: result, to be freed with plan_free() in any case
 *
 * Return: 0, -ENOMEM, or what the allocator returned.
 */
int decide(struct estimate *e, const struct decide_param *param,
	   const struct sla *sla, const struct expect *expect, struct control *control,
	   struct plan *plan);
void plan_free(struct plan *plan);

/* Return a limit in the module's units: frames in 1000 seconds; 0 for none. */
uint32_t decide_millihertz(double fps);
/* Likewise: parts per million of the engines' time; 0 for none, or for all of it. */
uint32_t decide_ppm(double share);

#endif /* MGPU_DECIDE_H */

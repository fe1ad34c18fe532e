/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns an estimate into a plan: the fairness of the period, and the limit of each vGPU
 * in the next one. Pure.
 */
#ifndef MGPU_DECIDE_H
#define MGPU_DECIDE_H

#include "alloc.h"
#include "estimate.h"
#include "sla.h"

/* Time without a frame after which a vGPU loses its limit. */
#define DECIDE_RELEASE_NS	ESTIMATE_IDLE_NS

/* Rate that allocators start from if no frame was measured, frames per second. */
#define DECIDE_RATE_MIN		0.1

/* Range of the module's limits, frames per second. */
#define DECIDE_FPS_MIN		1.0
#define DECIDE_FPS_MAX		10000.0

/*
 * A limit caps the pace of frames, so tasks whose frames come unevenly stay
 * below it on average, and costs are never known exactly: with limits equal to
 * targets, capacity that another task could use stays idle, and f loses more by
 * that than by slightly uneven shares. So all limits lead their
 * targets by one factor. It grows while a capacity that is to be used up is
 * used less than DECIDE_BUSY and limits hold frames back, and shrinks towards 1
 * when it is used more.
 */
#define DECIDE_BUSY		0.97
#define DECIDE_LEAD_GAIN	1.5	/* relative change per unit of use missed */
#define DECIDE_LEAD_MAX		2.0
#define DECIDE_LEAD_DECAY	0.9	/* of a lead while no limit holds anything */
#define DECIDE_AT_DEMAND	1e-3	/* below demand that counts as at it */
#define DECIDE_BINDS		0.98	/* planned use of a capacity to be used up */

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
	double floor;
	double granted;
};

/**
 * struct control - the state that is kept from one period to the next
 * @alloc: state of the allocator
 * @lead: factor of limits over targets; 0 before the first period
 * @binds: the last plan uses up this capacity: the CPUs' first, then devices'
 * @dev: ID of the device of each capacity but the first
 */
struct control {
	struct alloc_state alloc;
	double lead;
	bool binds[MGPU_MAX_RES];
	uint32_t dev[MGPU_MAX_RES];
};

/**
 * struct plan - the result of a period
 * @fds: f of the measured rates, NAN if no vGPU was active
 * @fds_best: the largest f that the period's costs and capacities allow if every VM
 *	could use any rate; NAN if no vGPU was active
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
 * @e: the estimate of the last period
 * @param: how rates are divided
 * @sla: the agreement of each vGPU of @e, in its order; NULL if there are none
 * @control: state kept from one period to the next; updated
 * @plan: result, to be freed with plan_free() in any case
 *
 * Return: 0, -ENOMEM, or what the allocator returned.
 */
int decide(const struct estimate *e, const struct decide_param *param,
	   const struct sla *sla, struct control *control, struct plan *plan);
void plan_free(struct plan *plan);

#endif /* MGPU_DECIDE_H */

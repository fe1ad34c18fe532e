/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From an estimate to a plan: how fair the period was, and which limit each
 * vGPU is to have in the next one. Pure.
 */
#ifndef MGPU_DECIDE_H
#define MGPU_DECIDE_H

#include "alloc.h"
#include "estimate.h"
#include "sla.h"

/* A vGPU that shows no frames for so long loses its limit. */
#define DECIDE_RELEASE_NS	ESTIMATE_IDLE_NS

/* What allocators start from where no frame was measured. */
#define DECIDE_RATE_MIN		0.1

/* What the module takes as a limit, frames per second. */
#define DECIDE_FPS_MIN		1.0
#define DECIDE_FPS_MAX		10000.0

/*
 * A limit caps the pace of frames, so tasks whose frames come unevenly stay
 * below it on average, and costs are never known exactly: with limits equal to
 * targets, capacity that somebody could use stays idle, and f loses more by
 * that than by shares which are a little uneven. So all limits lead their
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
 * struct settings - what can be set while mgpud runs
 * @policy: who allocates
 * @period_ms: length of a period
 * @iterations: of allocators that iterate, per period
 * @headroom: demand over the rate measured, of a vGPU that nothing holds back
 * @param: of f
 * @sla: of vGPUs that are not in @vgpus
 * @vgpus: vGPUs with an agreement of their own, in the order of their UUIDs
 * @nr_vgpus: number of these
 */
struct settings {
	const struct alloc_ops *policy;
	unsigned int period_ms;
	unsigned int iterations;
	double headroom;
	struct fds_param param;
	struct sla sla;
	struct sla_vgpu *vgpus;
	size_t nr_vgpus;
};

/**
 * struct target - what a vGPU is to have
 * @id: of the vGPU
 * @keep: leave its limit as it is
 * @fps: the rate, frames per second, INFINITY for any
 * @limit: the limit to set, INFINITY for none
 * @floor: what its agreement promises, frames per second; 0 for nothing
 * @granted: how much of @floor it gets if it has use for it
 *
 * @granted is below @floor only while the vGPU is active and the promises to all
 * active ones exceed a capacity.
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
 * struct control - what is kept from one period to the next
 * @alloc: the allocator's
 * @lead: of limits over targets; 0 before the first period
 * @binds: capacities that the last plan uses up: the CPUs' and devices'
 * @dev: of each that is not the CPUs'
 */
struct control {
	struct alloc_state alloc;
	double lead;
	bool binds[MGPU_MAX_RES];
	uint32_t dev[MGPU_MAX_RES];
};

/**
 * struct plan - a period's result
 * @fds: f of the rates measured, NAN when no vGPU was active
 * @fds_best: the largest f that the period's costs and capacities allow, if
 *	every VM had use for any rate; NAN when no vGPU was active
 * @active: number of vGPUs that were active
 * @targets: one for each vGPU of the estimate, in its order
 * @nr: number of targets
 * @nr_short: vGPUs that are granted less than they are promised
 */
struct plan {
	double fds;
	double fds_best;
	size_t active;
	struct target *targets;
	size_t nr;
	size_t nr_short;
};

/* The agreement of a vGPU: its own, or the one for all others. */
const struct sla *settings_sla(const struct settings *set, const char *uuid);

/* Returns 0, -ENOMEM, or what the allocator returned; @plan is to be freed. */
int decide(const struct estimate *e, const struct settings *set,
	   struct control *control, struct plan *plan);
void plan_free(struct plan *plan);

#endif /* MGPU_DECIDE_H */

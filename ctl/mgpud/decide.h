/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From an estimate to a plan: how fair the period was, and which limit each
 * vGPU is to have in the next one. Pure.
 */
#ifndef MGPUD_DECIDE_H
#define MGPUD_DECIDE_H

#include "alloc.h"
#include "estimate.h"

/* A vGPU that shows no frames for so long loses its limit. */
#define DECIDE_RELEASE_NS	3000000000ULL

/* What the module takes as a limit, frames per second. */
#define DECIDE_FPS_MIN		1.0
#define DECIDE_FPS_MAX		10000.0

/**
 * struct settings - what can be set while mgpud runs
 * @policy: who allocates
 * @period_ms: length of a period
 * @iterations: of allocators that iterate, per period
 * @param: of f
 */
struct settings {
	const struct alloc_ops *policy;
	unsigned int period_ms;
	unsigned int iterations;
	struct fds_param param;
};

/**
 * struct target - the limit that a vGPU is to have
 * @id: of the vGPU
 * @keep: leave it as it is
 * @fps: frames per second, INFINITY for no limit
 */
struct target {
	uint32_t id;
	bool keep;
	double fps;
};

/**
 * struct plan - a period's result
 * @fds: f of the rates measured, NAN when no vGPU was active
 * @fds_best: the largest f that the period's costs and capacities allow, if
 *	every VM had use for any rate; NAN when no vGPU was active
 * @active: number of vGPUs that were active
 * @targets: one for each vGPU of the estimate, in its order
 * @nr: number of targets
 */
struct plan {
	double fds;
	double fds_best;
	size_t active;
	struct target *targets;
	size_t nr;
};

/* Returns 0, -ENOMEM, or what the allocator returned; @plan is to be freed. */
int decide(const struct estimate *e, const struct settings *set,
	   struct alloc_state *state, struct plan *plan);
void plan_free(struct plan *plan);

#endif /* MGPUD_DECIDE_H */

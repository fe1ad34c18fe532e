/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The active vGPUs of an estimate, and the capacities that they share, as a problem of
 * fds.h. Pure.
 */
#ifndef MGPU_DIVISION_H
#define MGPU_DIVISION_H

#include "estimate.h"
#include "fds.h"
#include "sla.h"

/* Resource 0 is the CPUs; each device with an active vGPU is one more. */
#define RES_CPU	0

/* Rate that allocators start from if no frame was measured, frames per second. */
#define DIVISION_RATE_MIN	0.1

/**
 * enum division_time - the period that a division is for
 * @DIVISION_NEXT: the next one: costs and capacities that are to hold for it
 * @DIVISION_PAST: the period of the estimate: a task's unit is what it did in a second of
 *	the period, so that its rate is 1, and demand is what it could have reached
 */
enum division_time { DIVISION_NEXT, DIVISION_PAST };

/**
 * struct division - tasks and resources; all zero at first
 * @n: tasks
 * @m: resources, at least 1
 * @who: of each task, its index in the estimate
 * @device: of each task, the resource that its device is
 * @dev: of each resource but the CPUs, the id of the device
 * @need: MGPU_MAX_RES rows of @n; see struct fds_problem, as for what follows
 * @rate: of each task, what it had; where an allocator starts, and leaves its result
 * @share: of each task, its part of what it would reach alone
 * @demand: of each task
 * @floor: of each task; 0 at first
 * @weight: of each task
 * @capacity: of each resource
 * @on_cpus: of each resource, whether it is a device that works on the host's CPUs
 * @room: tasks for which there is memory
 */
struct division {
	size_t n, m;
	size_t *who;
	size_t *device;
	uint32_t dev[MGPU_MAX_RES];
	double *need;
	double *rate, *share, *demand, *floor, *weight;
	double capacity[MGPU_MAX_RES];
	bool on_cpus[MGPU_MAX_RES];
	size_t room;
};

/**
 * division_update() - find what is divided
 * @d: result, in the memory of the last one
 * @e: an estimate; a device beyond MGPU_MAX_RES - 1 is left out, with its vGPUs
 * @time: the period
 *
 * Return: 0; -ENOMEM, with @d as it was.
 */
int division_update(struct division *d, const struct estimate *e, enum division_time time);
void division_free(struct division *d);

/* The problem of a division, whose memory it uses. */
struct fds_problem division_problem(const struct division *d, const struct fds_param *param);

/* The agreement of a vGPU of the estimate. @sla: one for each of them; NULL for none. */
const struct sla *division_sla(const struct sla *sla, size_t vgpu);

/*
 * The highest rate that an agreement or the operator allows a vGPU, frames per second;
 * INFINITY for any.  A plan for a higher rate would waste what the module refuses.
 */
double division_ceiling(const struct estimate *e, const struct sla *sla, size_t vgpu);

/*
 * Bring the agreements into a division: no demand above a ceiling; with @floors, the floors
 * that were asked for, which sla_floors() is to grant.
 */
void division_agree(struct division *d, const struct estimate *e, const struct sla *sla,
		    bool floors);

#endif /* MGPU_DIVISION_H */

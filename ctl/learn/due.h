/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The share of each resource that is due to each active vGPU, in the plan of the allocator
 * "exact" for the costs of now, and what floors need of it. Pure.
 */
#ifndef MGPU_LEARN_DUE_H
#define MGPU_LEARN_DUE_H

#include "division.h"
#include "estimate.h"
#include "learn.h"
#include "sla.h"

/**
 * struct due - shares of a period; all zero at first
 * @share: of each vGPU of the estimate, its part of each resource in the plan, 0 to 1; NAN
 *	for a vGPU that is not in it, for all without a plan
 * @floor: of each vGPU, the part of each resource that its granted floor needs; 0 for none
 * @room: vGPUs for which there is memory
 * @mem: this memory
 * @tasks: the active vGPUs
 * @price: prices of the last plan, where the next one starts
 */
struct due {
	double (*share)[LEARN_RESOURCES];
	double (*floor)[LEARN_RESOURCES];
	size_t room;
	void *mem;
	struct division tasks;
	double price[MGPU_MAX_RES];
};

/**
 * due_update() - compute shares and floors of a period
 * @d: result; updated
 * @e: the estimate of the period
 * @sla: agreements of its vGPUs, in their order; NULL for none
 * @param: parameters of f
 *
 * Return: 0; -ENOMEM without any result.
 */
int due_update(struct due *d, const struct estimate *e, const struct sla *sla,
	       const struct fds_param *param);
void due_free(struct due *d);

#endif /* MGPU_LEARN_DUE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Set the limits of a plan in the kernel module, in one batch. */
#ifndef MGPUD_APPLY_H
#define MGPUD_APPLY_H

#include "config/settings.h"
#include "mgpu.h"

/**
 * struct applier - state kept between two plans
 * @freed: UUIDs by ID of the vGPUs whose limit was removed under an allocator without
 *	targets, so that a limit set by hand later stays
 * @allocator: allocator of the plan before
 */
struct applier {
	char (*freed)[MGPU_UUID_LEN];
	const struct alloc_ops *allocator;
};

/* IDs of vGPUs are below this. */
#define APPLY_IDS	4096

/**
 * struct applied - result of apply()
 * @changed: number of limits that were set or, in a dry run, would have been
 * @set: the batch; the caller must free it
 */
struct applied {
	size_t changed;
	struct mgpu_vgpu_setting *set;
};

/*
 * Set the limits that differ from the plan. @mgpu NULL: a dry run, which sets nothing.
 * Returns 0 or -errno.
 */
int apply(struct applier *a, struct mgpu *mgpu, const struct settings *set,
	  const struct estimate *e, const struct plan *plan,
	  struct applied *result, struct mgpu_error *err);
void applier_free(struct applier *a);

#endif /* MGPUD_APPLY_H */

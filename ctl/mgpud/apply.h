/* SPDX-License-Identifier: GPL-2.0-only */
/* Act: a plan becomes limits in the kernel module, in one batch. */
#ifndef MGPUD_APPLY_H
#define MGPUD_APPLY_H

#include "decide.h"
#include "mgpu.h"

/**
 * struct applier - what has to be remembered between two plans
 * @freed: without targets: the vGPUs whose limit is gone already, so that one
 *	set by hand later stays; UUIDs by id
 * @policy: of the plan before
 */
struct applier {
	char (*freed)[MGPU_UUID_LEN];
	const struct alloc_ops *policy;
};

/* Ids of vGPUs are below this. */
#define APPLY_IDS	4096

/**
 * struct applied - what became of a plan
 * @changed: limits that were set or, in a dry run, would have been
 * @set: the batch; belongs to the caller, free(set)
 */
struct applied {
	size_t changed;
	struct mgpu_vgpu_setting *set;
};

/*
 * Sets the limits that are not as planned. Without @mgpu nothing is set, but
 * all the rest happens. Returns 0 or -errno.
 */
int apply(struct applier *a, struct mgpu *mgpu, const struct settings *set,
	  const struct estimate *e, const struct plan *plan,
	  struct applied *result, struct mgpu_error *err);
void applier_free(struct applier *a);

#endif /* MGPUD_APPLY_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Set the targets of a plan in the kernel module, in one batch. */
#ifndef MGPUD_APPLY_H
#define MGPUD_APPLY_H

#include "decide.h"
#include "mgpu.h"

/**
 * struct applied - result of apply()
 * @changed: number of targets that were set or, in a dry run, would have been
 * @set: the batch; the caller must free it
 */
struct applied {
	size_t changed;
	struct mgpu_vgpu_setting *set;
};

/*
 * Set the targets, of frames and of engine time, that differ from the limits of the plan.
 * The module applies the stricter of a target and the operator's limit, which stays as it
 * is.  @mgpu NULL: a dry run, which sets nothing.  Returns 0 or -errno.
 */
int apply(struct mgpu *mgpu, const struct estimate *e, const struct plan *plan,
	  struct applied *result, struct mgpu_error *err);

/*
 * Remove the targets of all vGPUs, as mgpud leaves them when it ends. @nr: their number.
 * Returns 0 or -errno.
 */
int apply_release(struct mgpu *mgpu, size_t *nr, struct mgpu_error *err);

#endif /* MGPUD_APPLY_H */

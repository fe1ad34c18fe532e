/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_DRAW_H
#define MGPU_DRAW_H

#include "gpu/cmd_decode.h"
#include "sched/sched.h"

struct mgpu_resource;

/**
 * struct mgpu_draw - a 2D job: flush, transfer or cursor, executed on a CPU
 * @job: the job
 * @res: resource that it reads or writes, holds a reference; NULL for none
 * @rect: rectangle in the resource, pixels
 * @offset: TRANSFER: first byte in the backing
 * @row: rows that are done, so that the job can be preempted between tiles
 */
struct mgpu_draw {
	struct mgpu_job job;
	struct mgpu_resource *res;
	struct mgpu_rect rect;
	u64 offset;
	u32 row;
};

#define to_mgpu_draw(j) container_of(j, struct mgpu_draw, job)

void mgpu_draw_prepare(struct mgpu_draw *draw, enum mgpu_job_kind kind,
		       const struct mgpu_cmd *cmd, struct mgpu_resource *res);
void mgpu_draw_put(struct mgpu_draw *draw);

#endif /* MGPU_DRAW_H */

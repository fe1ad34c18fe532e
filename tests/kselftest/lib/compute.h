/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest's compute contexts and jobs, for machines of vmm.h.  Commands return the
 * answer's type or a negative errno.
 */
#ifndef KSELFTEST_COMPUTE_H
#define KSELFTEST_COMPUTE_H

#include "../../../include/uapi/linux/mgpu_compute.h"
#include "vmm.h"

#define RENDER_FEATURES	(VMM_FEATURES | VMM_F(VIRTIO_GPU_F_VIRGL) | \
			 VMM_F(VIRTIO_GPU_F_CONTEXT_INIT))

int ctx_create(struct vm *vm, uint32_t id, uint32_t capset);
int ctx_destroy(struct vm *vm, uint32_t id);
/* VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE or ..._DETACH_RESOURCE. */
int ctx_resource(struct vm *vm, uint32_t id, uint32_t res, uint32_t type);
int ctx_attach(struct vm *vm, uint32_t id, uint32_t res);

/* Submit a job and return the head at once.  @flags: in addition to FENCE */
int ctx_submit_bytes(struct vm *vm, uint32_t id, uint32_t flags, const void *p,
		     uint32_t len);
int ctx_submit(struct vm *vm, uint32_t id, const struct mgpu_compute_cmd *c);
/* Wait for the answer and return it; a negative head is returned as it is. */
int ctx_result(struct vm *vm, int head);

struct mgpu_compute_cmd job_new(uint32_t op, uint32_t nr, uint32_t r0, uint32_t r1,
				uint32_t r2);
/* Make a job whose histogram follows the picture. */
struct mgpu_compute_cmd job_mandelbrot(uint32_t res, uint32_t width, uint32_t height,
				       uint32_t iterations);
size_t job_mandelbrot_size(uint32_t width, uint32_t height, uint32_t iterations);

#endif /* KSELFTEST_COMPUTE_H */

// SPDX-License-Identifier: GPL-2.0-only
/* A guest's compute contexts and jobs. */
#include <string.h>

#include "compute.h"

int ctx_create(struct vm *vm, uint32_t id, uint32_t capset)
{
	struct virtio_gpu_ctx_create c = { .nlen = 4, .context_init = capset };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_CTX_CREATE);
	c.hdr.ctx_id = id;
	memcpy(c.debug_name, "test", 4);
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

int ctx_destroy(struct vm *vm, uint32_t id)
{
	struct virtio_gpu_ctx_destroy c;

	memset(&c, 0, sizeof(c));
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_CTX_DESTROY);
	c.hdr.ctx_id = id;
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

int ctx_resource(struct vm *vm, uint32_t id, uint32_t res, uint32_t type)
{
	struct virtio_gpu_ctx_resource c;

	memset(&c, 0, sizeof(c));
	gpu_hdr(&c.hdr, type);
	c.hdr.ctx_id = id;
	c.resource_id = res;
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

int ctx_attach(struct vm *vm, uint32_t id, uint32_t res)
{
	return ctx_resource(vm, id, res, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE);
}

/* The head, without a wait.  @flags: beside FENCE */
int ctx_submit_bytes(struct vm *vm, uint32_t id, uint32_t flags,
		     const void *p, uint32_t len)
{
	uint8_t buf[sizeof(struct virtio_gpu_cmd_submit) + 512];
	struct virtio_gpu_cmd_submit c;

	memset(&c, 0, sizeof(c));
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_SUBMIT_3D);
	c.hdr.ctx_id = id;
	c.hdr.flags = VIRTIO_GPU_FLAG_FENCE | flags;
	c.hdr.fence_id = ++vm->next_fence;
	c.size = len;
	memcpy(buf, &c, sizeof(c));
	memcpy(buf + sizeof(c), p, len);
	return gpu_send(vm, VMM_CONTROL, buf, sizeof(c) + len,
			sizeof(struct virtio_gpu_ctrl_hdr));
}

int ctx_submit(struct vm *vm, uint32_t id, const struct mgpu_compute_cmd *c)
{
	return ctx_submit_bytes(vm, id, VIRTIO_GPU_FLAG_INFO_RING_IDX, c,
			    sizeof(*c));
}

int ctx_result(struct vm *vm, int head)
{
	if (head < 0)
		return head;
	return gpu_result(vm, VMM_CONTROL, head, NULL, 0, VMM_TIMEOUT);
}

struct mgpu_compute_cmd job_new(uint32_t op, uint32_t nr, uint32_t r0,
				uint32_t r1, uint32_t r2)
{
	struct mgpu_compute_cmd c = {
		.magic = MGPU_COMPUTE_MAGIC,
		.version = MGPU_COMPUTE_VERSION,
		.op = op,
		.nr_res = nr,
		.res = { r0, r1, r2 },
	};

	return c;
}

struct mgpu_compute_cmd job_mandelbrot(uint32_t res, uint32_t width,
				       uint32_t height, uint32_t iterations)
{
	struct mgpu_compute_cmd c = job_new(MGPU_COMPUTE_MANDELBROT, 1, res, 0, 0);
	int64_t one = 1ll << MGPU_COMPUTE_FIXED_SHIFT;

	c.mandelbrot.hist_offset = (uint64_t)width * height * 4;
	c.mandelbrot.width = width;
	c.mandelbrot.height = height;
	c.mandelbrot.iterations = iterations;
	c.mandelbrot.left = (uint64_t)(-2 * one);
	c.mandelbrot.top = (uint64_t)(-one);
	c.mandelbrot.dx = 3 * one / width;
	c.mandelbrot.dy = 2 * one / height;
	return c;
}

size_t job_mandelbrot_size(uint32_t width, uint32_t height,
			   uint32_t iterations)
{
	return (size_t)width * height * 4 + ((size_t)iterations + 1) * 8;
}

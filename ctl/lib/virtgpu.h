/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions that Linux's virtio_gpu driver has had since 5.16 and a distribution's libdrm may
 * lack (include/uapi/drm/virtgpu_drm.h of the kernel); under other names, so that libdrm may have
 * them, too.
 */
#ifndef MGPU_VIRTGPU_H
#define MGPU_VIRTGPU_H

#include <stdint.h>

#include <virtgpu_drm.h>

#define VIRTGPU_CAPSETS		7	/* parameter: a bit each */
#define VIRTGPU_FENCE_OUT	0x02	/* flags of a stream */
#define VIRTGPU_RING		0x04
#define VIRTGPU_BLOB_GUEST	1
#define VIRTGPU_BLOB_MAPPABLE	1
#define VIRTGPU_CONTEXT_CAPSET	1	/* parameters of a context */
#define VIRTGPU_CONTEXT_RINGS	2

struct virtgpu_execbuffer {
	uint32_t flags;
	uint32_t size;
	uint64_t command;
	uint64_t bo_handles;
	uint32_t num_bo_handles;
	int32_t fence_fd;
	uint32_t ring_idx;
	uint32_t pad;
};

struct virtgpu_create_blob {
	uint32_t blob_mem;
	uint32_t blob_flags;
	uint32_t bo_handle;
	uint32_t res_handle;
	uint64_t size;
	uint32_t pad;
	uint32_t cmd_size;
	uint64_t cmd;
	uint64_t blob_id;
};

struct virtgpu_context_param {
	uint64_t param;
	uint64_t value;
};

struct virtgpu_context_init {
	uint32_t num_params;
	uint32_t pad;
	uint64_t params;
};

#define VIRTGPU_IOCTL_EXECBUFFER \
	DRM_IOWR(DRM_COMMAND_BASE + 0x02, struct virtgpu_execbuffer)
#define VIRTGPU_IOCTL_CREATE_BLOB \
	DRM_IOWR(DRM_COMMAND_BASE + 0x0a, struct virtgpu_create_blob)
#define VIRTGPU_IOCTL_CONTEXT_INIT \
	DRM_IOWR(DRM_COMMAND_BASE + 0x0b, struct virtgpu_context_init)

#endif /* MGPU_VIRTGPU_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_RESOURCE_H
#define MGPU_RESOURCE_H

#include <linux/kref.h>

#include "virgl/virgl.h"

struct mgpu_cmd;
struct mgpu_hostmap;
struct mgpu_mem;
struct mgpu_vgpu;

/**
 * struct mgpu_resource - a virtio-gpu resource
 * @ref: references of the table, a scanout, the cursor and each job
 * @vgpu: vGPU of the guest
 * @id: the guest's number of the resource
 * @blob: the resource is a blob: without @mappable, its bytes are in the backing, without
 *	a copy on the host
 * @mappable: the blob is in the device's memory, and the guest may map it
 * @format: enum virtio_gpu_formats; unused for a blob
 * @width: width in pixels, 0 for a blob
 * @height: height in rows, 0 for a blob
 * @stride: bytes from one row to the next, 0 for a blob
 * @size: size of the pixels (2D) or of the blob, bytes
 * @host: 2D: the host's copy of the pixels
 * @backing: guest pages, NULL when detached; ring_lock, and no job of the resource
 *	is in flight when it changes
 * @map: range of the BAR that shows the blob, or NULL; hostmem->lock
 * @charged: bytes charged for the resource against the memory limit
 * @backing_charged: bytes charged for an attached backing
 * @dev: shape of the resource on the device, and the device's number of it; 0 if the
 *	resource is not on the device
 * @dev_gen: generation of the device when it got the resource, 0 before and after
 * @dev_leaving: the device has got the command that releases the resource
 * @dev_unclear: the device has the resource and failed to clear it: it may be released
 *	and not be used
 */
struct mgpu_resource {
	struct kref ref;
	struct mgpu_vgpu *vgpu;
	u32 id;
	bool blob;
	bool mappable;
	u32 format;
	u32 width;
	u32 height;
	u32 stride;
	u64 size;
	void *host;
	struct mgpu_mem *backing;
	struct mgpu_hostmap *map;
	u64 charged;
	u64 backing_charged;
	struct mgpu_virgl_res dev;
	u32 dev_gen;
	bool dev_leaving;
	bool dev_unclear;
};

void mgpu_resource_init(struct mgpu_vgpu *vgpu);
struct mgpu_resource *mgpu_resource_find(struct mgpu_vgpu *vgpu, u32 id);
struct mgpu_resource *mgpu_resource_new(struct mgpu_vgpu *vgpu, u32 id,
					u64 size, u32 *err);
u32 mgpu_resource_add(struct mgpu_resource *res);
u32 mgpu_resource_create_2d(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_resource_create_blob(struct mgpu_vgpu *vgpu,
			      const struct mgpu_cmd *cmd);
u32 mgpu_resource_pin(struct mgpu_resource *res, const struct mgpu_cmd *cmd);
u32 mgpu_resource_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_resource_detach(struct mgpu_vgpu *vgpu, u32 id);
u32 mgpu_resource_unref(struct mgpu_vgpu *vgpu, u32 id);
void mgpu_resource_get(struct mgpu_resource *res);
void mgpu_resource_put(struct mgpu_resource *res);
bool mgpu_resource_put_unless_last(struct mgpu_resource *res);
void mgpu_resource_release_all(struct mgpu_vgpu *vgpu);

#endif /* MGPU_RESOURCE_H */

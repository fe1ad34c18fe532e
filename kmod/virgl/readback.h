/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_READBACK_H
#define MGPU_READBACK_H

#include <linux/mutex.h>
#include <linux/wait.h>

#include "backend.h"
#include "gpu/cmd_decode.h"
#include "vfio/guest_mem.h"

struct mgpu_devcmd;
struct mgpu_job;
struct mgpu_vgpu;
struct vfio_device_gfx_plane_info;

/**
 * enum mgpu_readback_state - progress of a picture
 * @MGPU_READBACK_IDLE: no picture is pending
 * @MGPU_READBACK_BUSY: the device has the command
 * @MGPU_READBACK_READY: the picture is in memory
 */
enum mgpu_readback_state {
	MGPU_READBACK_IDLE,
	MGPU_READBACK_BUSY,
	MGPU_READBACK_READY,
};

/**
 * struct mgpu_picture - a resource of the module on the device, with its memory
 * @pixels: four bytes a pixel, rows of @width pixels; the device reads and writes there
 * @dma: @pixels mapped for the device
 * @size: size of @pixels, bytes
 * @width: width of the picture, pixels
 * @height: height of the picture, rows
 * @res: the device's number of the resource; 0 for none
 * @export: the resource as a dma-buf, on a device that exports
 * @id: number of the dma-buf, which no other of the vGPU has
 */
struct mgpu_picture {
	void *pixels;
	struct mgpu_dma dma;
	size_t size;
	u32 width;
	u32 height;
	u32 res;
	struct mgpu_export export;
	u32 id;
};

/**
 * struct mgpu_readback - copying of pictures from the device to the screen
 * @lock: mutex, taken before screen.lock; held while waiting for the device
 * @state: progress of the picture; the engine thread changes BUSY to READY
 * @cmd: command in flight or completed; NULL while @state is IDLE
 * @picture: B8G8R8X8; the device copies the scanout there
 * @cursor: B8G8R8A8; image of the cursor, for a VMM that shows dma-bufs
 * @image: number of the image in @cursor, as screen.image_nr; 0 for none
 * @rect: the part that is copied, in the scanout's pixels
 * @mark: colours of the first pixel of @rect before the copy
 * @exporting: the last copy was for a VMM that shows dma-bufs: @picture.pixels does not have it
 * @ctx: the device's number of the context that draws into the resource
 * @gen: generation of the device when it got @ctx and the pictures, 0 while it does not have
 *	them
 * @last_id: number of the last dma-buf
 * @looked_ns: when a VMM read the screen last, CLOCK_MONOTONIC
 * @wait: woken when @state changed
 */
struct mgpu_readback {
	struct mutex lock;	/* protects all fields, but @state while it is BUSY */
	enum mgpu_readback_state state;
	struct mgpu_devcmd *cmd;
	struct mgpu_picture picture;
	struct mgpu_picture cursor;
	u32 image;
	struct mgpu_rect rect;
	u32 mark;
	bool exporting;
	u32 ctx;
	u32 gen;
	u32 last_id;
	u64 looked_ns;
	wait_queue_head_t wait;
};

void mgpu_readback_init(struct mgpu_vgpu *vgpu);
void mgpu_readback_update(struct mgpu_vgpu *vgpu);
void mgpu_readback_plane(struct mgpu_vgpu *vgpu, struct vfio_device_gfx_plane_info *plane);
int mgpu_readback_get_buf(struct mgpu_vgpu *vgpu, u32 id);
void mgpu_readback_done(struct mgpu_devcmd *dc);
void mgpu_readback_quiesce(struct mgpu_vgpu *vgpu);
void mgpu_readback_stop(struct mgpu_vgpu *vgpu);

#endif /* MGPU_READBACK_H */

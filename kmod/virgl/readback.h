/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_READBACK_H
#define MGPU_READBACK_H

#include <linux/mutex.h>
#include <linux/wait.h>

#include "gpu/cmd_decode.h"
#include "vfio/guest_mem.h"

struct mgpu_devcmd;
struct mgpu_job;
struct mgpu_vgpu;

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
 * struct mgpu_readback - copying of pictures from the device to the screen
 * @lock: mutex, taken before screen.lock; held while waiting for the device
 * @state: progress of the picture; the engine thread changes BUSY to READY
 * @cmd: command in flight or completed; NULL while @state is IDLE
 * @pixels: B8G8R8X8, rows of @width pixels; the device writes there
 * @dma: @pixels mapped for the device
 * @size: size of @pixels, bytes
 * @width: width of the picture, pixels
 * @height: height of the picture, rows
 * @rect: the part that is read, in the scanout's pixels
 * @mark: colours of the first pixel of @rect before the copy
 * @res: the device's number of the resource that @pixels belongs to
 * @ctx: the device's number of the context that draws into the resource
 * @gen: generation of the device when it got @res and @ctx, 0 while it does not have
 *	them
 * @looked_ns: when a VMM read the screen last, CLOCK_MONOTONIC
 * @wait: woken when @state changed
 */
struct mgpu_readback {
	struct mutex lock;	/* protects all fields, but @state while it is BUSY */
	enum mgpu_readback_state state;
	struct mgpu_devcmd *cmd;
	void *pixels;
	struct mgpu_dma dma;
	size_t size;
	u32 width;
	u32 height;
	struct mgpu_rect rect;
	u32 mark;
	u32 res;
	u32 ctx;
	u32 gen;
	u64 looked_ns;
	wait_queue_head_t wait;
};

void mgpu_readback_init(struct mgpu_vgpu *vgpu);
void mgpu_readback_update(struct mgpu_vgpu *vgpu);
void mgpu_readback_done(struct mgpu_devcmd *dc);
void mgpu_readback_quiesce(struct mgpu_vgpu *vgpu);
void mgpu_readback_stop(struct mgpu_vgpu *vgpu);

#endif /* MGPU_READBACK_H */

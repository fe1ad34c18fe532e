/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_CMD_DECODE_H
#define MGPU_CMD_DECODE_H

#include <linux/virtio_gpu.h>

#include "device.h"
#include "pure.h"
#include "virgl.h"

/**
 * struct mgpu_rect - a rectangle in pixels
 * @x: left, counted from 0
 * @y: top, counted from 0
 * @width: pixels; @x + @width never overflows
 * @height: rows; @y + @height never overflows
 */
struct mgpu_rect {
	u32 x;
	u32 y;
	u32 width;
	u32 height;
};

/**
 * struct mgpu_entry - a range of guest memory
 * @addr: guest (I/O virtual) address; @addr + @length never overflows
 * @length: bytes, not 0
 */
struct mgpu_entry {
	u64 addr;
	u32 length;
};

/* Bytes of a context's name, as in struct virtio_gpu_ctx_create, and a NUL. */
#define MGPU_CMD_NAME_LEN	65

/**
 * struct mgpu_cmd - a virtio-gpu command, checked as far as that is possible
 * without the vGPU's state
 * @type: enum virtio_gpu_ctrl_type
 * @flags: of the header: VIRTIO_GPU_FLAG_*
 * @fence_id: to be echoed when @flags has VIRTIO_GPU_FLAG_FENCE
 * @ctx_id: to be echoed
 * @ring_idx: to be echoed when @flags has VIRTIO_GPU_FLAG_INFO_RING_IDX
 * @res_id: resource; 0 only where the command allows it
 * @rect: rectangle, where the command has one
 * @format: enum virtio_gpu_formats, one that mgpu_format_ok() accepts
 * @width: pixels, 1..MGPU_MAX_DIM
 * @height: rows, 1..MGPU_MAX_DIM
 * @shape: CREATE_3D: as the guest has it, unchecked
 * @transfer: TRANSFER_TO_HOST_3D, TRANSFER_FROM_HOST_3D: the same
 * @stride: SET_SCANOUT_BLOB: bytes from row to row
 * @offset: TRANSFER: first byte in the backing; SET_SCANOUT_BLOB: first byte
 *	in the blob
 * @size: CREATE_BLOB, SUBMIT_3D: bytes
 * @blob_mem: CREATE_BLOB: VIRTIO_GPU_BLOB_MEM_*
 * @blob_flags: CREATE_BLOB: VIRTIO_GPU_BLOB_FLAG_*
 * @nr_entries: entries that follow the command
 * @entries: where they are in the buffer handed to mgpu_cmd_decode(), in wire
 *	order; read them with mgpu_cmd_entry()
 * @backing_size: sum of their lengths
 * @pos_x: cursor commands: left column of the image on the screen, as the Linux
 *	driver means it; two's complement
 * @pos_y: cursor commands: top row of the image
 * @hot_x: UPDATE_CURSOR: hot spot in the image
 * @hot_y: UPDATE_CURSOR: hot spot in the image
 * @capset: GET_CAPSET, CTX_CREATE: capability set; of the latter 0 for none
 * @capset_index: GET_CAPSET_INFO: which of the device's sets
 * @name: CTX_CREATE: what the guest calls it, for people; printable, terminated
 * @payload: SUBMIT_3D: command stream, @size bytes in the buffer handed to
 *	mgpu_cmd_decode(), 32 from its beginning
 */
struct mgpu_cmd {
	u32 type;
	u32 flags;
	u64 fence_id;
	u32 ctx_id;
	u8 ring_idx;

	u32 res_id;
	struct mgpu_rect rect;
	u32 format;
	u32 width;
	u32 height;
	struct mgpu_virgl_shape shape;
	struct mgpu_virgl_transfer transfer;
	u32 stride;
	u64 offset;
	u64 size;
	u32 blob_mem;
	u32 blob_flags;
	u32 nr_entries;
	const struct virtio_gpu_mem_entry *entries;
	u64 backing_size;
	u32 pos_x;
	u32 pos_y;
	u32 hot_x;
	u32 hot_y;
	u32 capset;
	u32 capset_index;
	char name[MGPU_CMD_NAME_LEN];
	const void *payload;
};

/* Longest command there is, but for a stream to the device's contexts. */
#define MGPU_MAX_CMD	(sizeof(struct virtio_gpu_resource_create_blob) + \
			 MGPU_MAX_ENTRIES * \
			 sizeof(struct virtio_gpu_mem_entry))

/* Longest such stream: four times what Mesa sends at once. */
#define MGPU_MAX_STREAM	0x100000

u32 mgpu_cmd_decode(const void *buf, size_t len, u32 vq, struct mgpu_cmd *cmd);
struct mgpu_entry mgpu_cmd_entry(const struct mgpu_cmd *cmd, u32 i);
void mgpu_cmd_reply(const struct mgpu_cmd *cmd, u32 type,
		    struct virtio_gpu_ctrl_hdr *hdr);
bool mgpu_format_ok(u32 format);
bool mgpu_rect_inside(const struct mgpu_rect *r, u32 width, u32 height);

#endif /* MGPU_CMD_DECODE_H */

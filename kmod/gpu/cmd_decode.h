/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_CMD_DECODE_H
#define MGPU_CMD_DECODE_H

#include <linux/virtio_gpu.h>

#include "vfio/device.h"
#include "pure.h"
#include "virgl/virgl.h"

/**
 * struct mgpu_rect - a rectangle in pixels
 * @x: left column, from 0
 * @y: top row, from 0
 * @width: width in pixels; @x + @width never overflows
 * @height: height in rows; @y + @height never overflows
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
 * struct mgpu_cmd - a virtio-gpu command, checked except for the vGPU's state
 * @type: enum virtio_gpu_ctrl_type
 * @flags: flags of the header, VIRTIO_GPU_FLAG_*
 * @fence_id: number of the fence; the answer has it if @flags has FENCE
 * @ctx_id: number of the context; the answer has it
 * @ring_idx: number of the context's ring; the answer has it if @flags has
 *	INFO_RING_IDX
 * @res_id: number of the resource; 0 only if the command allows it
 * @rect: rectangle, if the command has one
 * @format: enum virtio_gpu_formats that mgpu_format_ok() accepts
 * @width: width in pixels, 1 to MGPU_MAX_DIM
 * @height: height in rows, 1 to MGPU_MAX_DIM
 * @shape: CREATE_3D: shape from the guest, unchecked
 * @transfer: TRANSFER_TO_HOST_3D, TRANSFER_FROM_HOST_3D: transfer from the guest,
 *	unchecked
 * @stride: SET_SCANOUT_BLOB: bytes from one row to the next
 * @offset: TRANSFER: first byte in the backing; SET_SCANOUT_BLOB: first byte
 *	in the blob; MAP_BLOB: first byte in the host-visible memory
 * @size: CREATE_BLOB: size of the blob, SUBMIT_3D: size of the stream, bytes
 * @blob_mem: CREATE_BLOB: VIRTIO_GPU_BLOB_MEM_*
 * @blob_flags: CREATE_BLOB: VIRTIO_GPU_BLOB_FLAG_*
 * @blob_id: CREATE_BLOB: the context's number of the blob; 0 for guest memory
 * @nr_entries: number of memory entries of the command
 * @entries: the memory entries, in the buffer that was passed to mgpu_cmd_decode(), in
 *	wire order; read with mgpu_cmd_entry()
 * @backing_size: sum of the lengths of @entries, bytes
 * @pos_x: cursor commands: left column of the image on the screen, as in the Linux
 *	driver; two's complement
 * @pos_y: cursor commands: top row of the image
 * @hot_x: UPDATE_CURSOR: hot spot in the image, pixels
 * @hot_y: UPDATE_CURSOR: hot spot in the image, rows
 * @capset: GET_CAPSET, CTX_CREATE: capability set; 0 for none in CTX_CREATE
 * @capset_index: GET_CAPSET_INFO: index of the capability set
 * @name: CTX_CREATE: name of the context; printable, NUL-terminated
 * @payload: SUBMIT_3D: command stream of @size bytes, at offset 32 of the buffer that
 *	was passed to mgpu_cmd_decode()
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
	u64 blob_id;
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

/* Longest command but a stream to a context of the device, bytes. */
#define MGPU_MAX_CMD	(sizeof(struct virtio_gpu_resource_create_blob) + \
			 MGPU_MAX_ENTRIES * \
			 sizeof(struct virtio_gpu_mem_entry))

/* Longest such stream, bytes: four times the longest of Mesa. */
#define MGPU_MAX_STREAM	0x100000

u32 mgpu_cmd_decode(const void *buf, size_t len, u32 vq, struct mgpu_cmd *cmd);
struct mgpu_entry mgpu_cmd_entry(const struct mgpu_cmd *cmd, u32 i);
void mgpu_cmd_reply(const struct mgpu_cmd *cmd, u32 type,
		    struct virtio_gpu_ctrl_hdr *hdr);
bool mgpu_format_ok(u32 format);
bool mgpu_rect_inside(const struct mgpu_rect *r, u32 width, u32 height);

#endif /* MGPU_CMD_DECODE_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decode and check virtio-gpu commands (VIRTIO 1.2, section 5.7.6).  Pure: no kernel
 * calls, builds in user space too.
 *
 * The caller has copied the bytes out of guest memory, so they do not change any more.
 * Every error is a virtio-gpu response type.
 */
#include "gpu/cmd_decode.h"

#define BYTES_PER_PIXEL	4

/**
 * mgpu_format_ok - check a pixel format
 * @format: enum virtio_gpu_formats
 *
 * Return: true if the format is known.
 */
bool mgpu_format_ok(u32 format)
{
	switch (format) {
	case VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM:
	case VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM:
	case VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM:
	case VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM:
	case VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM:
	case VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM:
	case VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM:
	case VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM:
		return true;
	default:
		return false;
	}
}

/**
 * mgpu_rect_inside - check that a rectangle is within a picture
 * @r: rectangle
 * @width: width of the picture, pixels
 * @height: height of the picture, rows
 *
 * Return: true if it is.
 */
bool mgpu_rect_inside(const struct mgpu_rect *r, u32 width, u32 height)
{
	return r->x <= width && r->width <= width - r->x &&
	       r->y <= height && r->height <= height - r->y;
}

static bool dims_ok(u32 width, u32 height)
{
	return width && width <= MGPU_MAX_DIM &&
	       height && height <= MGPU_MAX_DIM;
}

/* Copy the fixed part of a command; return false if the command is shorter. */
static bool decode_fetch(void *to, size_t size, const void *buf, size_t len)
{
	if (len < size)
		return false;
	memcpy(to, buf, size);
	return true;
}

static bool rect_decode(const struct virtio_gpu_rect *wire,
			struct mgpu_rect *r)
{
	u32 end;

	r->x = le32_to_cpu(wire->x);
	r->y = le32_to_cpu(wire->y);
	r->width = le32_to_cpu(wire->width);
	r->height = le32_to_cpu(wire->height);

	return !check_add_overflow(r->x, r->width, &end) &&
	       !check_add_overflow(r->y, r->height, &end);
}

static u32 entries_decode(const void *buf, size_t len, size_t fixed, u32 nr,
			  struct mgpu_cmd *cmd)
{
	struct mgpu_entry e;
	u64 end;
	u32 i;

	if (nr > MGPU_MAX_ENTRIES)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if ((len - fixed) / sizeof(*cmd->entries) < nr)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	cmd->nr_entries = nr;
	cmd->entries = (const void *)((const u8 *)buf + fixed);
	for (i = 0; i < nr; i++) {
		e = mgpu_cmd_entry(cmd, i);
		if (!e.length || check_add_overflow(e.addr, (u64)e.length, &end))
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		cmd->backing_size += e.length;
	}
	return 0;
}

static u32 decode_create_2d(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_create_2d c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	cmd->format = le32_to_cpu(c.format);
	cmd->width = le32_to_cpu(c.width);
	cmd->height = le32_to_cpu(c.height);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!mgpu_format_ok(cmd->format) || !dims_ok(cmd->width, cmd->height))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

/* UNREF, DETACH_BACKING and UNMAP_BLOB have the same layout: header, id, padding. */
static u32 decode_res(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_unref c;

	static_assert(sizeof(c) ==
		      sizeof(struct virtio_gpu_resource_detach_backing) &&
		      sizeof(c) == sizeof(struct virtio_gpu_resource_unmap_blob),
		      "one decoder serves all");
	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	return 0;
}

static u32 decode_attach(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_attach_backing c;
	u32 nr;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	nr = le32_to_cpu(c.nr_entries);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!nr)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return entries_decode(buf, len, sizeof(c), nr, cmd);
}

static u32 decode_scanout(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_set_scanout c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (le32_to_cpu(c.scanout_id) >= MGPU_NR_SCANOUTS)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	/* Resource 0 turns the scanout off; the rectangle is ignored. */
	if (cmd->res_id &&
	    (!rect_decode(&c.r, &cmd->rect) ||
	     !dims_ok(cmd->rect.width, cmd->rect.height)))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

static u32 decode_scanout_blob(const void *buf, size_t len,
			       struct mgpu_cmd *cmd)
{
	struct virtio_gpu_set_scanout_blob c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (le32_to_cpu(c.scanout_id) >= MGPU_NR_SCANOUTS)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	if (!cmd->res_id)
		return 0;

	cmd->width = le32_to_cpu(c.width);
	cmd->height = le32_to_cpu(c.height);
	cmd->format = le32_to_cpu(c.format);
	cmd->stride = le32_to_cpu(c.strides[0]);
	cmd->offset = le32_to_cpu(c.offsets[0]);
	if (!rect_decode(&c.r, &cmd->rect) ||
	    !dims_ok(cmd->width, cmd->height) ||
	    !dims_ok(cmd->rect.width, cmd->rect.height) ||
	    !mgpu_rect_inside(&cmd->rect, cmd->width, cmd->height) ||
	    !mgpu_format_ok(cmd->format) ||
	    cmd->stride < cmd->width * BYTES_PER_PIXEL ||
	    cmd->stride % BYTES_PER_PIXEL || cmd->offset % BYTES_PER_PIXEL)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

static u32 decode_flush(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_flush c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!rect_decode(&c.r, &cmd->rect))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

static u32 decode_transfer(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_transfer_to_host_2d c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	cmd->offset = le64_to_cpu(c.offset);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!rect_decode(&c.r, &cmd->rect))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

static u32 decode_create_3d(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_create_3d c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	cmd->shape = (struct mgpu_virgl_shape){
		.target = le32_to_cpu(c.target),
		.format = le32_to_cpu(c.format),
		.bind = le32_to_cpu(c.bind),
		.width = le32_to_cpu(c.width),
		.height = le32_to_cpu(c.height),
		.depth = le32_to_cpu(c.depth),
		.array_size = le32_to_cpu(c.array_size),
		.last_level = le32_to_cpu(c.last_level),
		.nr_samples = le32_to_cpu(c.nr_samples),
		.flags = le32_to_cpu(c.flags),
	};
	return 0;
}

static u32 decode_transfer_3d(const void *buf, size_t len,
			      struct mgpu_cmd *cmd)
{
	struct virtio_gpu_transfer_host_3d c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	cmd->transfer = (struct mgpu_virgl_transfer){
		.box.x = le32_to_cpu(c.box.x),
		.box.y = le32_to_cpu(c.box.y),
		.box.z = le32_to_cpu(c.box.z),
		.box.width = le32_to_cpu(c.box.w),
		.box.height = le32_to_cpu(c.box.h),
		.box.depth = le32_to_cpu(c.box.d),
		.level = le32_to_cpu(c.level),
		.stride = le32_to_cpu(c.stride),
		.layer_stride = le32_to_cpu(c.layer_stride),
		.offset = le64_to_cpu(c.offset),
	};
	return 0;
}

static u32 decode_create_blob(const void *buf, size_t len,
			      struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_create_blob c;
	bool host_only;
	u32 nr, err;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	cmd->blob_mem = le32_to_cpu(c.blob_mem);
	cmd->blob_flags = le32_to_cpu(c.blob_flags);
	cmd->blob_id = le64_to_cpu(c.blob_id);
	cmd->size = le64_to_cpu(c.size);
	nr = le32_to_cpu(c.nr_entries);
	if (!cmd->res_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	host_only = cmd->blob_mem == VIRTIO_GPU_BLOB_MEM_HOST3D;
	if (!cmd->size || cmd->blob_mem < VIRTIO_GPU_BLOB_MEM_GUEST ||
	    cmd->blob_mem > VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST || host_only != !nr)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (cmd->blob_flags & ~(VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE |
				VIRTIO_GPU_BLOB_FLAG_USE_SHAREABLE |
				VIRTIO_GPU_BLOB_FLAG_USE_CROSS_DEVICE))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	err = entries_decode(buf, len, sizeof(c), nr, cmd);
	if (err)
		return err;
	/* A blob must fit into its backing, if it has one. */
	if (nr && cmd->backing_size < cmd->size)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return 0;
}

static u32 decode_map_blob(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_resource_map_blob c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	cmd->offset = le64_to_cpu(c.offset);
	return cmd->res_id ? 0 : VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
}

static u32 decode_edid(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_cmd_get_edid c;

	(void)cmd;
	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (le32_to_cpu(c.scanout) >= MGPU_NR_SCANOUTS)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	return 0;
}

static u32 decode_cursor(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_update_cursor c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (le32_to_cpu(c.pos.scanout_id) >= MGPU_NR_SCANOUTS)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	cmd->pos_x = le32_to_cpu(c.pos.x);
	cmd->pos_y = le32_to_cpu(c.pos.y);
	cmd->res_id = le32_to_cpu(c.resource_id);
	cmd->hot_x = le32_to_cpu(c.hot_x);
	cmd->hot_y = le32_to_cpu(c.hot_y);
	return 0;
}

static u32 decode_capset_info(const void *buf, size_t len,
			      struct mgpu_cmd *cmd)
{
	struct virtio_gpu_get_capset_info c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->capset_index = le32_to_cpu(c.capset_index);
	return 0;
}

static u32 decode_capset(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_get_capset c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->capset = le32_to_cpu(c.capset_id);
	return 0;
}

static u32 decode_ctx_create(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_ctx_create c;
	u32 i, nlen;

	static_assert(sizeof(c.debug_name) == MGPU_CMD_NAME_LEN - 1,
		      "a name and its end fit");
	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (!cmd->ctx_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	nlen = le32_to_cpu(c.nlen);
	if (nlen > sizeof(c.debug_name))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	/* The name goes to terminals and logs: keep printable characters only. */
	for (i = 0; i < nlen && c.debug_name[i]; i++)
		cmd->name[i] = c.debug_name[i] >= ' ' &&
			       c.debug_name[i] <= '~' ? c.debug_name[i] : '?';
	cmd->capset = le32_to_cpu(c.context_init) &
		      VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK;
	return 0;
}

static u32 decode_ctx_destroy(const void *buf, size_t len,
			      struct mgpu_cmd *cmd)
{
	(void)buf;
	if (len < sizeof(struct virtio_gpu_ctx_destroy))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return cmd->ctx_id ? 0 : VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
}

static u32 decode_ctx_resource(const void *buf, size_t len,
			       struct mgpu_cmd *cmd)
{
	struct virtio_gpu_ctx_resource c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->res_id = le32_to_cpu(c.resource_id);
	if (!cmd->ctx_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	return cmd->res_id ? 0 : VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
}

static u32 decode_submit(const void *buf, size_t len, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_cmd_submit c;

	if (!decode_fetch(&c, sizeof(c), buf, len))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (!cmd->ctx_id)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	cmd->size = le32_to_cpu(c.size);
	/* A stream without commands is a fence behind those before it. */
	if (cmd->size > len - sizeof(c))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	cmd->payload = (const u8 *)buf + sizeof(c);
	return 0;
}

/**
 * mgpu_cmd_decode - decode and check a command
 * @buf: private copy of the command
 * @len: length of the command, bytes
 * @vq: MGPU_VQ_CONTROL or MGPU_VQ_CURSOR
 * @cmd: result; the header fields are valid, for the answer, even after an error
 *
 * Return: 0, or the VIRTIO_GPU_RESP_ERR_* to answer with.
 */
u32 mgpu_cmd_decode(const void *buf, size_t len, u32 vq, struct mgpu_cmd *cmd)
{
	struct virtio_gpu_ctrl_hdr hdr;

	memset(cmd, 0, sizeof(*cmd));
	if (!decode_fetch(&hdr, sizeof(hdr), buf, len))
		return VIRTIO_GPU_RESP_ERR_UNSPEC;

	cmd->type = le32_to_cpu(hdr.type);
	cmd->flags = le32_to_cpu(hdr.flags);
	cmd->fence_id = le64_to_cpu(hdr.fence_id);
	cmd->ctx_id = le32_to_cpu(hdr.ctx_id);
	cmd->ring_idx = hdr.ring_idx;

	if (vq == MGPU_VQ_CURSOR) {
		switch (cmd->type) {
		case VIRTIO_GPU_CMD_UPDATE_CURSOR:
		case VIRTIO_GPU_CMD_MOVE_CURSOR:
			return decode_cursor(buf, len, cmd);
		default:
			return VIRTIO_GPU_RESP_ERR_UNSPEC;
		}
	}

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
		return 0;
	case VIRTIO_GPU_CMD_GET_EDID:
		return decode_edid(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return decode_create_2d(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return decode_create_blob(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		return decode_map_blob(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		return decode_res(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return decode_attach(buf, len, cmd);
	case VIRTIO_GPU_CMD_SET_SCANOUT:
		return decode_scanout(buf, len, cmd);
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
		return decode_scanout_blob(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
		return decode_flush(buf, len, cmd);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		return decode_transfer(buf, len, cmd);
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
		return decode_capset_info(buf, len, cmd);
	case VIRTIO_GPU_CMD_GET_CAPSET:
		return decode_capset(buf, len, cmd);
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return decode_ctx_create(buf, len, cmd);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return decode_ctx_destroy(buf, len, cmd);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return decode_ctx_resource(buf, len, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		return decode_create_3d(buf, len, cmd);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		return decode_transfer_3d(buf, len, cmd);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		return decode_submit(buf, len, cmd);
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

/**
 * mgpu_cmd_entry - get a memory entry of a command
 * @cmd: decoded command
 * @i: number of the entry, less than @cmd->nr_entries
 *
 * Return: the entry.
 */
struct mgpu_entry mgpu_cmd_entry(const struct mgpu_cmd *cmd, u32 i)
{
	struct virtio_gpu_mem_entry wire;
	struct mgpu_entry e;

	/* The entries need not be aligned in the buffer. */
	memcpy(&wire, (const u8 *)cmd->entries + (size_t)i * sizeof(wire),
	       sizeof(wire));
	e.addr = le64_to_cpu(wire.addr);
	e.length = le32_to_cpu(wire.length);
	return e;
}

/**
 * mgpu_cmd_reply - make the header of an answer
 * @cmd: command that is answered
 * @type: VIRTIO_GPU_RESP_*
 * @hdr: result
 *
 * The Linux guest signals a fence only if the answer has the command's FENCE flag,
 * fence_id, ctx_id and ring_idx, on errors too.
 */
void mgpu_cmd_reply(const struct mgpu_cmd *cmd, u32 type,
		    struct virtio_gpu_ctrl_hdr *hdr)
{
	memset(hdr, 0, sizeof(*hdr));
	hdr->type = cpu_to_le32(type);
	if (!(cmd->flags & VIRTIO_GPU_FLAG_FENCE))
		return;
	hdr->flags = cpu_to_le32(cmd->flags & (VIRTIO_GPU_FLAG_FENCE |
					       VIRTIO_GPU_FLAG_INFO_RING_IDX));
	hdr->fence_id = cpu_to_le64(cmd->fence_id);
	hdr->ctx_id = cpu_to_le32(cmd->ctx_id);
	if (cmd->flags & VIRTIO_GPU_FLAG_INFO_RING_IDX)
		hdr->ring_idx = cmd->ring_idx;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command decoder against well-formed, truncated and hostile commands.
 * Every command is decoded from a heap block of exactly its length, so that the
 * address sanitizer sees any read past the end.
 */
#include <stdlib.h>

#include "gpu/cmd_decode.h"
#include "tap.h"

#define UNSPEC	VIRTIO_GPU_RESP_ERR_UNSPEC
#define PARAM	VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER
#define NORES	VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID
#define NOSCAN	VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID
#define NOCTX	VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID

#define FENCE_ID	0x1122334455667788ULL
#define CTX_ID		0xcafe0001u
#define RING_IDX	7

/* Large enough for the commands of these tests, entries included. */
union wire {
	struct virtio_gpu_ctrl_hdr hdr;
	struct virtio_gpu_cmd_get_edid edid;
	struct virtio_gpu_resource_create_2d create_2d;
	struct virtio_gpu_resource_unref unref;
	struct virtio_gpu_resource_attach_backing attach;
	struct virtio_gpu_resource_detach_backing detach;
	struct virtio_gpu_set_scanout scanout;
	struct virtio_gpu_set_scanout_blob scanout_blob;
	struct virtio_gpu_resource_flush flush;
	struct virtio_gpu_transfer_to_host_2d transfer;
	struct virtio_gpu_resource_create_blob create_blob;
	struct virtio_gpu_resource_map_blob map_blob;
	struct virtio_gpu_resource_unmap_blob unmap_blob;
	struct virtio_gpu_update_cursor cursor;
	struct virtio_gpu_get_capset_info capset_info;
	struct virtio_gpu_get_capset capset;
	struct virtio_gpu_ctx_create ctx_create;
	struct virtio_gpu_ctx_resource ctx_resource;
	struct virtio_gpu_resource_create_3d create_3d;
	struct virtio_gpu_transfer_host_3d transfer_3d;
	struct virtio_gpu_cmd_submit submit;
	u8 bytes[512];
};

static struct virtio_gpu_rect rect(u32 x, u32 y, u32 w, u32 h)
{
	return (struct virtio_gpu_rect){
		cpu_to_le32(x), cpu_to_le32(y), cpu_to_le32(w), cpu_to_le32(h)
	};
}

static void header(union wire *w, u32 type)
{
	memset(w, 0, sizeof(*w));
	w->hdr.type = cpu_to_le32(type);
	w->hdr.flags = cpu_to_le32(VIRTIO_GPU_FLAG_FENCE |
				   VIRTIO_GPU_FLAG_INFO_RING_IDX);
	w->hdr.fence_id = cpu_to_le64(FENCE_ID);
	w->hdr.ctx_id = cpu_to_le32(CTX_ID);
	w->hdr.ring_idx = RING_IDX;
}

static size_t put_entry(union wire *w, size_t at, u64 addr, u32 len)
{
	struct virtio_gpu_mem_entry e = {
		.addr = cpu_to_le64(addr), .length = cpu_to_le32(len),
	};

	memcpy(w->bytes + at, &e, sizeof(e));
	return at + sizeof(e);
}

/* A valid command of a type; returns its length. */
static size_t valid(union wire *w, u32 type)
{
	size_t len;

	header(w, type);
	switch (type) {
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
		return sizeof(w->hdr);
	case VIRTIO_GPU_CMD_GET_EDID:
		return sizeof(w->edid);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		w->create_2d.resource_id = cpu_to_le32(3);
		w->create_2d.format =
			cpu_to_le32(VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM);
		w->create_2d.width = cpu_to_le32(640);
		w->create_2d.height = cpu_to_le32(480);
		return sizeof(w->create_2d);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		w->unref.resource_id = cpu_to_le32(3);
		return sizeof(w->unref);
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
		w->map_blob.resource_id = cpu_to_le32(3);
		w->map_blob.offset = cpu_to_le64(0x123456000ULL);
		return sizeof(w->map_blob);
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		w->unmap_blob.resource_id = cpu_to_le32(3);
		return sizeof(w->unmap_blob);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		w->detach.resource_id = cpu_to_le32(3);
		return sizeof(w->detach);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		w->attach.resource_id = cpu_to_le32(3);
		w->attach.nr_entries = cpu_to_le32(2);
		len = put_entry(w, sizeof(w->attach), 0x123456000, 0x1000);
		return put_entry(w, len, 0x777, 0x2001);
	case VIRTIO_GPU_CMD_SET_SCANOUT:
		w->scanout.resource_id = cpu_to_le32(3);
		w->scanout.r = rect(1, 2, 638, 478);
		return sizeof(w->scanout);
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
		w->flush.resource_id = cpu_to_le32(3);
		w->flush.r = rect(5, 6, 7, 8);
		return sizeof(w->flush);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		w->transfer.resource_id = cpu_to_le32(3);
		w->transfer.r = rect(5, 6, 7, 8);
		w->transfer.offset = cpu_to_le64(0x123456789aULL);
		return sizeof(w->transfer);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		w->create_blob.resource_id = cpu_to_le32(3);
		w->create_blob.blob_mem =
			cpu_to_le32(VIRTIO_GPU_BLOB_MEM_GUEST);
		w->create_blob.blob_flags =
			cpu_to_le32(VIRTIO_GPU_BLOB_FLAG_USE_SHAREABLE);
		w->create_blob.size = cpu_to_le64(0x2000);
		w->create_blob.nr_entries = cpu_to_le32(2);
		len = put_entry(w, sizeof(w->create_blob), 0xabc000, 0x1000);
		return put_entry(w, len, 0xdef000, 0x1000);
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
		w->scanout_blob.resource_id = cpu_to_le32(3);
		w->scanout_blob.r = rect(1, 2, 638, 478);
		w->scanout_blob.width = cpu_to_le32(640);
		w->scanout_blob.height = cpu_to_le32(480);
		w->scanout_blob.format =
			cpu_to_le32(VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM);
		w->scanout_blob.strides[0] = cpu_to_le32(2624);
		w->scanout_blob.offsets[0] = cpu_to_le32(64);
		return sizeof(w->scanout_blob);
	case VIRTIO_GPU_CMD_UPDATE_CURSOR:
	case VIRTIO_GPU_CMD_MOVE_CURSOR:
		w->cursor.resource_id = cpu_to_le32(3);
		w->cursor.pos.x = cpu_to_le32(100);
		w->cursor.pos.y = cpu_to_le32(0xfffffff0u);
		w->cursor.hot_x = cpu_to_le32(4);
		w->cursor.hot_y = cpu_to_le32(5);
		return sizeof(w->cursor);
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
		w->capset_info.capset_index = cpu_to_le32(6);
		return sizeof(w->capset_info);
	case VIRTIO_GPU_CMD_GET_CAPSET:
		w->capset.capset_id = cpu_to_le32(10);
		return sizeof(w->capset);
	case VIRTIO_GPU_CMD_CTX_CREATE:
		w->ctx_create.nlen = cpu_to_le32(5);
		w->ctx_create.context_init = cpu_to_le32(10);
		memcpy(w->ctx_create.debug_name, "a\033\377cde", 6);
		return sizeof(w->ctx_create);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return sizeof(struct virtio_gpu_ctx_destroy);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		w->ctx_resource.resource_id = cpu_to_le32(3);
		return sizeof(w->ctx_resource);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_3D:
		w->create_3d.resource_id = cpu_to_le32(3);
		w->create_3d.target = cpu_to_le32(7);
		w->create_3d.format = cpu_to_le32(11);
		w->create_3d.bind = cpu_to_le32(12);
		w->create_3d.width = cpu_to_le32(13);
		w->create_3d.height = cpu_to_le32(14);
		w->create_3d.depth = cpu_to_le32(15);
		w->create_3d.array_size = cpu_to_le32(16);
		w->create_3d.last_level = cpu_to_le32(17);
		w->create_3d.nr_samples = cpu_to_le32(18);
		w->create_3d.flags = cpu_to_le32(19);
		return sizeof(w->create_3d);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D:
	case VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D:
		w->transfer_3d.resource_id = cpu_to_le32(3);
		w->transfer_3d.box.x = cpu_to_le32(21);
		w->transfer_3d.box.y = cpu_to_le32(22);
		w->transfer_3d.box.z = cpu_to_le32(23);
		w->transfer_3d.box.w = cpu_to_le32(24);
		w->transfer_3d.box.h = cpu_to_le32(25);
		w->transfer_3d.box.d = cpu_to_le32(26);
		w->transfer_3d.offset = cpu_to_le64(0x123456789aULL);
		w->transfer_3d.level = cpu_to_le32(27);
		w->transfer_3d.stride = cpu_to_le32(28);
		w->transfer_3d.layer_stride = cpu_to_le32(29);
		return sizeof(w->transfer_3d);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		w->submit.size = cpu_to_le32(24);
		memset(w->bytes + sizeof(w->submit), 0x5a, 24);
		return sizeof(w->submit) + 24;
	}
	abort();
}

static const u32 control_types[] = {
	VIRTIO_GPU_CMD_GET_DISPLAY_INFO,
	VIRTIO_GPU_CMD_GET_EDID,
	VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
	VIRTIO_GPU_CMD_RESOURCE_UNREF,
	VIRTIO_GPU_CMD_SET_SCANOUT,
	VIRTIO_GPU_CMD_RESOURCE_FLUSH,
	VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
	VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
	VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
	VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
	VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
	VIRTIO_GPU_CMD_GET_CAPSET_INFO,
	VIRTIO_GPU_CMD_GET_CAPSET,
	VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
	VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB,
	VIRTIO_GPU_CMD_CTX_CREATE,
	VIRTIO_GPU_CMD_CTX_DESTROY,
	VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
	VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
	VIRTIO_GPU_CMD_RESOURCE_CREATE_3D,
	VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D,
	VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D,
	VIRTIO_GPU_CMD_SUBMIT_3D,
};

static const u32 cursor_types[] = {
	VIRTIO_GPU_CMD_UPDATE_CURSOR,
	VIRTIO_GPU_CMD_MOVE_CURSOR,
};

#define NR(a) (sizeof(a) / sizeof((a)[0]))

static bool is_control(u32 type)
{
	size_t i;

	for (i = 0; i < NR(control_types); i++)
		if (control_types[i] == type)
			return true;
	return false;
}

static bool is_cursor(u32 type)
{
	return type == VIRTIO_GPU_CMD_UPDATE_CURSOR ||
	       type == VIRTIO_GPU_CMD_MOVE_CURSOR;
}

/*
 * Decodes from a block of exactly @len bytes.  The entries of the result point
 * into it, so it stays until the next call.
 */
static u8 *block;

static u32 decode_at(const void *bytes, size_t len, size_t skew, u32 vq,
		     struct mgpu_cmd *cmd)
{
	free(block);
	block = malloc(len + skew ? len + skew : 1);
	if (!block)
		abort();
	if (len)
		memcpy(block + skew, bytes, len);
	return mgpu_cmd_decode(block + skew, len, vq, cmd);
}

static u32 decode(const union wire *w, size_t len, struct mgpu_cmd *cmd)
{
	return decode_at(w, len, 0, MGPU_VQ_CONTROL, cmd);
}

static void check_header(const struct mgpu_cmd *cmd, u32 type)
{
	TAP_EQ(cmd->type, type);
	TAP_EQ(cmd->flags, VIRTIO_GPU_FLAG_FENCE |
			   VIRTIO_GPU_FLAG_INFO_RING_IDX);
	TAP_EQ(cmd->fence_id, FENCE_ID);
	TAP_EQ(cmd->ctx_id, CTX_ID);
	TAP_EQ(cmd->ring_idx, RING_IDX);
}

static void every_command_accepted(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(control_types); i++) {
		len = valid(&w, control_types[i]);
		TAP_EQ(decode(&w, len, &cmd), 0) ||
			(tap_diag("type 0x%x", control_types[i]), 0);
		check_header(&cmd, control_types[i]);
	}
	for (i = 0; i < NR(cursor_types); i++) {
		len = valid(&w, cursor_types[i]);
		TAP_EQ(decode_at(&w, len, 0, MGPU_VQ_CURSOR, &cmd), 0);
		check_header(&cmd, cursor_types[i]);
	}
}

static void fields_arrive(void)
{
	struct mgpu_entry e;
	struct mgpu_cmd cmd;
	union wire w;
	size_t len;

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.format, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM);
	TAP_EQ(cmd.width, 640);
	TAP_EQ(cmd.height, 480);

	len = valid(&w, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.offset, 0x123456789aULL);
	TAP_EQ(cmd.rect.x, 5);
	TAP_EQ(cmd.rect.y, 6);
	TAP_EQ(cmd.rect.width, 7);
	TAP_EQ(cmd.rect.height, 8);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.rect.x, 5);
	TAP_EQ(cmd.rect.height, 8);

	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.rect.x, 1);
	TAP_EQ(cmd.rect.y, 2);
	TAP_EQ(cmd.rect.width, 638);
	TAP_EQ(cmd.rect.height, 478);

	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.width, 640);
	TAP_EQ(cmd.height, 480);
	TAP_EQ(cmd.stride, 2624);
	TAP_EQ(cmd.offset, 64);
	TAP_EQ(cmd.rect.width, 638);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.nr_entries, 2);
	TAP_EQ(cmd.backing_size, 0x3001);
	e = mgpu_cmd_entry(&cmd, 0);
	TAP_EQ(e.addr, 0x123456000);
	TAP_EQ(e.length, 0x1000);
	e = mgpu_cmd_entry(&cmd, 1);
	TAP_EQ(e.addr, 0x777);
	TAP_EQ(e.length, 0x2001);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.blob_mem, VIRTIO_GPU_BLOB_MEM_GUEST);
	TAP_EQ(cmd.blob_flags, VIRTIO_GPU_BLOB_FLAG_USE_SHAREABLE);
	TAP_EQ(cmd.size, 0x2000);
	TAP_EQ(cmd.nr_entries, 2);
	e = mgpu_cmd_entry(&cmd, 1);
	TAP_EQ(e.addr, 0xdef000);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.offset, 0x123456000ULL);

	len = valid(&w, VIRTIO_GPU_CMD_UPDATE_CURSOR);
	TAP_EQ(decode_at(&w, len, 0, MGPU_VQ_CURSOR, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.pos_x, 100);
	TAP_EQ(cmd.pos_y, 0xfffffff0u);
	TAP_EQ(cmd.hot_x, 4);
	TAP_EQ(cmd.hot_y, 5);

	len = valid(&w, VIRTIO_GPU_CMD_GET_CAPSET_INFO);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.capset_index, 6);

	len = valid(&w, VIRTIO_GPU_CMD_GET_CAPSET);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.capset, 10);

	len = valid(&w, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.shape.target, 7);
	TAP_EQ(cmd.shape.format, 11);
	TAP_EQ(cmd.shape.bind, 12);
	TAP_EQ(cmd.shape.width, 13);
	TAP_EQ(cmd.shape.height, 14);
	TAP_EQ(cmd.shape.depth, 15);
	TAP_EQ(cmd.shape.array_size, 16);
	TAP_EQ(cmd.shape.last_level, 17);
	TAP_EQ(cmd.shape.nr_samples, 18);
	TAP_EQ(cmd.shape.flags, 19);

	len = valid(&w, VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 3);
	TAP_EQ(cmd.transfer.box.x, 21);
	TAP_EQ(cmd.transfer.box.y, 22);
	TAP_EQ(cmd.transfer.box.z, 23);
	TAP_EQ(cmd.transfer.box.width, 24);
	TAP_EQ(cmd.transfer.box.height, 25);
	TAP_EQ(cmd.transfer.box.depth, 26);
	TAP_EQ(cmd.transfer.offset, 0x123456789aULL);
	TAP_EQ(cmd.transfer.level, 27);
	TAP_EQ(cmd.transfer.stride, 28);
	TAP_EQ(cmd.transfer.layer_stride, 29);

	len = valid(&w, VIRTIO_GPU_CMD_SUBMIT_3D);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.size, 24);
	TAP_CHECK(!memcmp(cmd.payload, w.bytes + sizeof(w.submit), 24));
}

static void context_names(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	size_t len;

	/* as long as it says, and nothing that a terminal obeys */
	len = valid(&w, VIRTIO_GPU_CMD_CTX_CREATE);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.capset, 10);
	TAP_CHECK(!strcmp(cmd.name, "a??cd"));

	memset(w.ctx_create.debug_name, 'x', 64);
	w.ctx_create.nlen = cpu_to_le32(64);
	w.ctx_create.context_init = cpu_to_le32(0x1234560a);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.capset, 10);
	TAP_EQ(strlen(cmd.name), 64);
	w.ctx_create.nlen = cpu_to_le32(65);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.ctx_create.nlen = cpu_to_le32(0xffffffff);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
}

static void context_zero(void)
{
	static const u32 types[] = {
		VIRTIO_GPU_CMD_CTX_CREATE, VIRTIO_GPU_CMD_CTX_DESTROY,
		VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
		VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, VIRTIO_GPU_CMD_SUBMIT_3D,
	};
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(types); i++) {
		len = valid(&w, types[i]);
		w.hdr.ctx_id = 0;
		TAP_EQ(decode(&w, len, &cmd), NOCTX);
	}
}

static void stream_sizes(void)
{
	static const u32 bad[] = { 25, 0x10000, 0xffffffff };
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	len = valid(&w, VIRTIO_GPU_CMD_SUBMIT_3D);
	for (i = 0; i < NR(bad); i++) {
		w.submit.size = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
	}
	w.submit.size = 0;
	TAP_EQ(decode(&w, sizeof(w.submit), &cmd), 0);
	TAP_EQ(cmd.size, 0);
}

static void truncate_all(u32 type, u32 vq)
{
	size_t len, full;
	struct mgpu_cmd cmd;
	union wire w;
	u32 want;

	full = valid(&w, type);
	for (len = 0; len < full; len++) {
		want = len < sizeof(w.hdr) ? UNSPEC : PARAM;
		if (!TAP_EQ(decode_at(&w, len, 0, vq, &cmd), want))
			tap_diag("type 0x%x, %zu of %zu bytes", type, len,
				 full);
		if (len >= sizeof(w.hdr))
			check_header(&cmd, type);
		else
			TAP_EQ(cmd.flags, 0);
	}
}

static void truncation_refused(void)
{
	size_t i;

	for (i = 0; i < NR(control_types); i++)
		truncate_all(control_types[i], MGPU_VQ_CONTROL);
	for (i = 0; i < NR(cursor_types); i++)
		truncate_all(cursor_types[i], MGPU_VQ_CURSOR);
}

static void trailing_bytes_ignored(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(control_types); i++) {
		len = valid(&w, control_types[i]);
		memset(w.bytes + len, 0xff, sizeof(w) - len);
		TAP_EQ(decode(&w, sizeof(w), &cmd), 0);
	}
}

static void unaligned_command(void)
{
	struct mgpu_entry e;
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len, skew;

	for (i = 0; i < NR(control_types); i++)
		for (skew = 1; skew < 8; skew++) {
			len = valid(&w, control_types[i]);
			TAP_EQ(decode_at(&w, len, skew, MGPU_VQ_CONTROL,
					 &cmd), 0);
			if (!cmd.nr_entries)
				continue;
			e = mgpu_cmd_entry(&cmd, 1);
			TAP_CHECK(e.addr == 0x777 || e.addr == 0xdef000);
		}
}

static void unknown_types(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	u32 type;

	memset(&w, 0, sizeof(w));
	for (type = 0; type <= 0x10000; type++) {
		if (!is_control(type)) {
			header(&w, type);
			if (!TAP_EQ(decode(&w, 64, &cmd), UNSPEC))
				tap_diag("type 0x%x", type);
			check_header(&cmd, type);
		}
		if (!is_cursor(type)) {
			header(&w, type);
			TAP_EQ(decode_at(&w, 64, 0, MGPU_VQ_CURSOR, &cmd),
			       UNSPEC);
		}
	}
	header(&w, 0xffffffff);
	TAP_EQ(decode(&w, 64, &cmd), UNSPEC);
}

static void wrong_queue(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(control_types); i++) {
		len = valid(&w, control_types[i]);
		TAP_EQ(decode_at(&w, len, 0, MGPU_VQ_CURSOR, &cmd), UNSPEC);
	}
	for (i = 0; i < NR(cursor_types); i++) {
		len = valid(&w, cursor_types[i]);
		TAP_EQ(decode(&w, len, &cmd), UNSPEC);
	}
}

static void resource_zero(void)
{
	static const u32 refused[] = {
		VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
		VIRTIO_GPU_CMD_RESOURCE_UNREF,
		VIRTIO_GPU_CMD_RESOURCE_FLUSH,
		VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
		VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
		VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
		VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
		VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB,
		VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
		VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
	};
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(refused); i++) {
		len = valid(&w, refused[i]);
		switch (refused[i]) {
		case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
			w.flush.resource_id = 0;
			break;
		case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
			w.transfer.resource_id = 0;
			break;
		default:	/* right behind the header */
			w.unref.resource_id = 0;
		}
		TAP_EQ(decode(&w, len, &cmd), NORES) ||
			(tap_diag("type 0x%x", refused[i]), 0);
	}

	/* Resource 0 turns the scanout off, whatever the rest says. */
	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT);
	w.scanout.resource_id = 0;
	w.scanout.r = rect(~0u, ~0u, ~0u, ~0u);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 0);
	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
	w.scanout_blob.resource_id = 0;
	w.scanout_blob.format = cpu_to_le32(99);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.res_id, 0);
}

static void scanout_out_of_range(void)
{
	static const u32 ids[] = { MGPU_NR_SCANOUTS, 16, 0x80000000u, ~0u };
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(ids); i++) {
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT);
		w.scanout.scanout_id = cpu_to_le32(ids[i]);
		TAP_EQ(decode(&w, len, &cmd), NOSCAN);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
		w.scanout_blob.scanout_id = cpu_to_le32(ids[i]);
		TAP_EQ(decode(&w, len, &cmd), NOSCAN);
		len = valid(&w, VIRTIO_GPU_CMD_GET_EDID);
		w.edid.scanout = cpu_to_le32(ids[i]);
		TAP_EQ(decode(&w, len, &cmd), NOSCAN);
		len = valid(&w, VIRTIO_GPU_CMD_UPDATE_CURSOR);
		w.cursor.pos.scanout_id = cpu_to_le32(ids[i]);
		TAP_EQ(decode_at(&w, len, 0, MGPU_VQ_CURSOR, &cmd), NOSCAN);
		len = valid(&w, VIRTIO_GPU_CMD_MOVE_CURSOR);
		w.cursor.pos.scanout_id = cpu_to_le32(ids[i]);
		TAP_EQ(decode_at(&w, len, 0, MGPU_VQ_CURSOR, &cmd), NOSCAN);
	}
}

static void dimensions(void)
{
	static const u32 bad[] = { 0, MGPU_MAX_DIM + 1, 0x10000, 0x40000000u,
				   0x80000000u, ~0u };
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(bad); i++) {
		len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
		w.create_2d.width = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
		w.create_2d.height = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT);
		w.scanout.r.width = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT);
		w.scanout.r.height = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
		w.scanout_blob.width = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
		w.scanout_blob.height = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
		w.scanout_blob.r.width = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
	}

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	w.create_2d.width = cpu_to_le32(MGPU_MAX_DIM);
	w.create_2d.height = cpu_to_le32(1);
	TAP_EQ(decode(&w, len, &cmd), 0);
}

static void rectangles_that_wrap(void)
{
	static const u32 types[] = { VIRTIO_GPU_CMD_RESOURCE_FLUSH,
				     VIRTIO_GPU_CMD_SET_SCANOUT,
				     VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
				     VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D };
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	/* In all four the rectangle follows the header. */
	for (i = 0; i < NR(types); i++) {
		len = valid(&w, types[i]);
		w.flush.r = rect(0xffffffff, 0, 1, 1);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		w.flush.r = rect(0, 0xfffffff0, 16, 16);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
		w.flush.r = rect(0x80000000, 0, 0x80000000, 1);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
	}
}

static void formats(void)
{
	static const u32 good[] = { 1, 2, 3, 4, 67, 68, 121, 134 };
	struct mgpu_cmd cmd;
	size_t len, i;
	union wire w;
	bool ok;
	u32 f;

	for (f = 0; f < 1024; f++) {
		for (ok = false, i = 0; i < NR(good); i++)
			ok |= good[i] == f;
		TAP_EQ(mgpu_format_ok(f), ok);
		len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
		w.create_2d.format = cpu_to_le32(f);
		TAP_EQ(decode(&w, len, &cmd), ok ? 0 : PARAM);
		len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
		w.scanout_blob.format = cpu_to_le32(f);
		TAP_EQ(decode(&w, len, &cmd), ok ? 0 : PARAM);
	}
	TAP_CHECK(!mgpu_format_ok(~0u));
}

static void blob_geometry(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	size_t len;

	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
	w.scanout_blob.strides[0] = cpu_to_le32(640 * 4);
	TAP_EQ(decode(&w, len, &cmd), 0);
	w.scanout_blob.strides[0] = cpu_to_le32(640 * 4 - 4);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.scanout_blob.strides[0] = cpu_to_le32(640 * 4 + 2);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.scanout_blob.strides[0] = 0;
	TAP_EQ(decode(&w, len, &cmd), PARAM);

	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
	w.scanout_blob.offsets[0] = cpu_to_le32(2);
	TAP_EQ(decode(&w, len, &cmd), PARAM);

	len = valid(&w, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
	w.scanout_blob.r = rect(0, 0, 640, 480);
	TAP_EQ(decode(&w, len, &cmd), 0);
	w.scanout_blob.r = rect(1, 0, 640, 480);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.scanout_blob.r = rect(0, 1, 640, 480);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
}

static void blob_creation(void)
{
	static const u32 mem[] = { 0, VIRTIO_GPU_BLOB_MEM_HOST3D, 4, ~0u };
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(mem); i++) {
		len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
		w.create_blob.blob_mem = cpu_to_le32(mem[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
	}

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	w.create_blob.blob_flags = cpu_to_le32(8);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.create_blob.blob_flags = cpu_to_le32(7);
	TAP_EQ(decode(&w, len, &cmd), 0);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	w.create_blob.size = 0;
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.create_blob.size = cpu_to_le64(0x2001);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.create_blob.size = cpu_to_le64(~0ull);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.create_blob.size = cpu_to_le64(1);
	TAP_EQ(decode(&w, len, &cmd), 0);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	w.create_blob.nr_entries = 0;
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	/* memory of the host: without entries, or beside the guest's */
	w.create_blob.blob_mem = cpu_to_le32(VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	w.create_blob.blob_mem = cpu_to_le32(VIRTIO_GPU_BLOB_MEM_HOST3D);
	w.create_blob.blob_id = cpu_to_le64(0x123456789);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.blob_id, 0x123456789);
	TAP_EQ(cmd.nr_entries, 0);
	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	w.create_blob.blob_mem = cpu_to_le32(VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST);
	TAP_EQ(decode(&w, len, &cmd), 0);
}

static void entry_counts(void)
{
	static const u32 bad[] = { 0, 3, MGPU_MAX_ENTRIES,
				   MGPU_MAX_ENTRIES + 1, 0x10000000u,
				   0x10000002u, 0x80000000u, ~0u };
	struct mgpu_cmd cmd;
	union wire w;
	size_t i, len;

	for (i = 0; i < NR(bad); i++) {
		len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
		w.attach.nr_entries = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM) ||
			(tap_diag("%u entries", bad[i]), 0);
		len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
		w.create_blob.nr_entries = cpu_to_le32(bad[i]);
		TAP_EQ(decode(&w, len, &cmd), PARAM);
	}
}

static void entry_limits(void)
{
	struct mgpu_cmd cmd;
	union wire w;
	size_t len, at = sizeof(w.attach);

	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	put_entry(&w, at, 0x1000, 0);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	put_entry(&w, at, ~0ull, 1);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	put_entry(&w, at, ~0ull - 0xffe, 0x1000);
	TAP_EQ(decode(&w, len, &cmd), PARAM);
	put_entry(&w, at, ~0ull - 0x1000, 0x1000);
	TAP_EQ(decode(&w, len, &cmd), 0);
	put_entry(&w, at, 0, ~0u);
	TAP_EQ(decode(&w, len, &cmd), 0);
	TAP_EQ(cmd.backing_size, 0xffffffffull + 0x2001);
}

static void most_entries(void)
{
	struct virtio_gpu_resource_create_blob *c;
	struct virtio_gpu_mem_entry *e;
	struct mgpu_cmd cmd;
	u32 i;
	u8 *b;

	/* With room for one entry too many. */
	b = calloc(1, MGPU_MAX_CMD + sizeof(*e));
	TAP_NEED(b);
	c = (void *)b;
	c->hdr.type = cpu_to_le32(VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	c->resource_id = cpu_to_le32(1);
	c->blob_mem = cpu_to_le32(VIRTIO_GPU_BLOB_MEM_GUEST);
	c->nr_entries = cpu_to_le32(MGPU_MAX_ENTRIES);
	/* The sum of the lengths does not fit into 32 bits. */
	c->size = cpu_to_le64((u64)MGPU_MAX_ENTRIES * 0xfffff000ull);
	e = (void *)(c + 1);
	for (i = 0; i < MGPU_MAX_ENTRIES; i++) {
		e[i].addr = cpu_to_le64((u64)i << 32);
		e[i].length = cpu_to_le32(0xfffff000u);
	}
	TAP_EQ(mgpu_cmd_decode(b, MGPU_MAX_CMD, MGPU_VQ_CONTROL, &cmd), 0);
	TAP_EQ(cmd.nr_entries, MGPU_MAX_ENTRIES);
	TAP_EQ(cmd.backing_size, (u64)MGPU_MAX_ENTRIES * 0xfffff000ull);
	TAP_EQ(mgpu_cmd_entry(&cmd, MGPU_MAX_ENTRIES - 1).addr,
	       (u64)(MGPU_MAX_ENTRIES - 1) << 32);
	TAP_EQ(mgpu_cmd_decode(b, MGPU_MAX_CMD - 1, MGPU_VQ_CONTROL, &cmd),
	       PARAM);
	c->nr_entries = cpu_to_le32(MGPU_MAX_ENTRIES + 1);
	e[MGPU_MAX_ENTRIES].length = cpu_to_le32(1);
	TAP_EQ(mgpu_cmd_decode(b, MGPU_MAX_CMD + sizeof(*e), MGPU_VQ_CONTROL,
			       &cmd), PARAM);
	free(b);
}

static void reply_echo(void)
{
	struct virtio_gpu_ctrl_hdr h;
	struct mgpu_cmd cmd;
	union wire w;
	size_t len;

	/* On success and on error alike. */
	len = valid(&w, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	decode(&w, len, &cmd);
	memset(&h, 0xee, sizeof(h));
	mgpu_cmd_reply(&cmd, VIRTIO_GPU_RESP_OK_NODATA, &h);
	TAP_EQ(le32_to_cpu(h.type), VIRTIO_GPU_RESP_OK_NODATA);
	TAP_EQ(le32_to_cpu(h.flags), VIRTIO_GPU_FLAG_FENCE |
				     VIRTIO_GPU_FLAG_INFO_RING_IDX);
	TAP_EQ(le64_to_cpu(h.fence_id), FENCE_ID);
	TAP_EQ(le32_to_cpu(h.ctx_id), CTX_ID);
	TAP_EQ(h.ring_idx, RING_IDX);
	TAP_EQ(h.padding[0] | h.padding[1] | h.padding[2], 0);

	w.hdr.type = cpu_to_le32(0x4242);
	TAP_EQ(decode(&w, sizeof(w.hdr), &cmd), UNSPEC);
	mgpu_cmd_reply(&cmd, UNSPEC, &h);
	TAP_EQ(le32_to_cpu(h.type), UNSPEC);
	TAP_EQ(le64_to_cpu(h.fence_id), FENCE_ID);
	TAP_EQ(le32_to_cpu(h.ctx_id), CTX_ID);
	TAP_EQ(h.ring_idx, RING_IDX);

	/* No ring index without its flag; unknown flags do not come back. */
	w.hdr.flags = cpu_to_le32(VIRTIO_GPU_FLAG_FENCE | 0xfffffffcu);
	decode(&w, sizeof(w.hdr), &cmd);
	mgpu_cmd_reply(&cmd, UNSPEC, &h);
	TAP_EQ(le32_to_cpu(h.flags), VIRTIO_GPU_FLAG_FENCE);
	TAP_EQ(le64_to_cpu(h.fence_id), FENCE_ID);
	TAP_EQ(h.ring_idx, 0);

	/* No fence, no echo. */
	w.hdr.flags = cpu_to_le32(VIRTIO_GPU_FLAG_INFO_RING_IDX);
	decode(&w, sizeof(w.hdr), &cmd);
	mgpu_cmd_reply(&cmd, UNSPEC, &h);
	TAP_EQ(le32_to_cpu(h.flags), 0);
	TAP_EQ(le64_to_cpu(h.fence_id), 0);
}

static void rect_inside(void)
{
	static const u32 v[] = { 0, 1, 2, 99, 100, 101, 0x7fffffff,
				 0x80000000u, 0xffffff9cu, ~0u };
	struct mgpu_rect r;
	size_t x, y, w, h;
	bool want;

	for (x = 0; x < NR(v); x++)
		for (y = 0; y < NR(v); y++)
			for (w = 0; w < NR(v); w++)
				for (h = 0; h < NR(v); h++) {
					r = (struct mgpu_rect){ v[x], v[y],
								v[w], v[h] };
					want = (u64)v[x] + v[w] <= 100 &&
					       (u64)v[y] + v[h] <= 100;
					TAP_EQ(mgpu_rect_inside(&r, 100, 100),
					       want);
				}
}

/* Any bytes at all: no crash, and what is accepted keeps the promises. */
static void random_bytes(void)
{
	struct mgpu_entry e;
	struct mgpu_cmd cmd;
	unsigned int round, i, flips, accepted = 0;
	u64 sum, end;
	union wire w;
	size_t len;
	u32 vq;

	srand(20240229);
	for (round = 0; round < 200000; round++) {
		vq = rand() % 2;
		len = valid(&w, vq ? cursor_types[rand() % 2] :
				control_types[rand() % NR(control_types)]);
		flips = rand() % 6;
		for (i = 0; i < flips; i++)
			w.bytes[4 + rand() % (len - 4)] = rand();
		if (rand() % 4 == 0)
			len = rand() % (len + 1);
		if (decode_at(&w, len, rand() % 8, vq, &cmd))
			continue;
		accepted++;
		TAP_CHECK(!__builtin_add_overflow(cmd.rect.x, cmd.rect.width,
						  &(u32){0}));
		TAP_CHECK(!__builtin_add_overflow(cmd.rect.y, cmd.rect.height,
						  &(u32){0}));
		TAP_CHECK(cmd.width <= MGPU_MAX_DIM);
		TAP_CHECK(cmd.nr_entries <= MGPU_MAX_ENTRIES);
		for (sum = 0, i = 0; i < cmd.nr_entries; i++) {
			e = mgpu_cmd_entry(&cmd, i);
			sum += e.length;
			TAP_CHECK(e.length &&
				  !__builtin_add_overflow(e.addr,
							  (u64)e.length,
							  &end));
		}
		TAP_EQ(cmd.backing_size, sum);
		TAP_CHECK(memchr(cmd.name, 0, sizeof(cmd.name)));
		TAP_CHECK(!cmd.payload ||
			  (const u8 *)cmd.payload + cmd.size <= block + len + 8);
	}
	TAP_CHECK(accepted > 1000);
}

int main(void)
{
	tap_run(every_command_accepted, "every command is accepted");
	tap_run(fields_arrive, "every field arrives");
	tap_run(truncation_refused, "a command cut at any length is refused");
	tap_run(trailing_bytes_ignored, "bytes after a command do no harm");
	tap_run(unaligned_command, "a command may lie at any address");
	tap_run(unknown_types, "an unknown type is answered UNSPEC");
	tap_run(wrong_queue, "a command on the wrong queue is answered UNSPEC");
	tap_run(resource_zero, "resource 0 names none but to turn a scanout off");
	tap_run(scanout_out_of_range, "a scanout that is not there is refused");
	tap_run(dimensions, "sizes of 0 or beyond the maximum are refused");
	tap_run(rectangles_that_wrap, "rectangles that wrap are refused");
	tap_run(formats, "exactly the eight 32 bit formats are known");
	tap_run(blob_geometry, "a blob's stride, offset and rectangle must fit");
	tap_run(blob_creation, "a blob must be guest memory and be backed");
	tap_run(entry_counts, "an entry count that does not fit is refused");
	tap_run(entry_limits, "empty and wrapping entries are refused");
	tap_run(most_entries, "the longest command is accepted, sizes add up");
	tap_run(reply_echo, "fence, context and ring index come back");
	tap_run(context_names, "a context's name is text, and as long as it says");
	tap_run(context_zero, "context 0 names none");
	tap_run(stream_sizes, "a command stream lies within its command");
	tap_run(rect_inside, "a rectangle inside is told from one outside");
	tap_run(random_bytes, "whatever is accepted keeps the promises");
	free(block);
	return tap_done();
}

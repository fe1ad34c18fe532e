// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the command decoder.  First byte of the input: which queue; the rest:
 * the command.  Beyond the sanitizers' checks, whatever is accepted must keep
 * what cmd_decode.h promises.
 */
#include "gpu/cmd_decode.h"
#include "fuzz.h"

static int response_ok(u32 r)
{
	return r >= VIRTIO_GPU_RESP_ERR_UNSPEC &&
	       r <= VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}

static void check(const struct mgpu_cmd *c, const u8 *buf, size_t len)
{
	struct mgpu_entry e;
	u64 sum = 0, end64;
	u32 i, end;

	FUZZ_ASSERT(!__builtin_add_overflow(c->rect.x, c->rect.width, &end));
	FUZZ_ASSERT(!__builtin_add_overflow(c->rect.y, c->rect.height, &end));
	FUZZ_ASSERT(c->width <= MGPU_MAX_DIM && c->height <= MGPU_MAX_DIM);
	FUZZ_ASSERT(c->nr_entries <= MGPU_MAX_ENTRIES);
	for (i = 0; i < c->nr_entries; i++) {
		FUZZ_ASSERT((const u8 *)c->entries >= buf);
		FUZZ_ASSERT((const u8 *)c->entries +
			    (i + 1) * sizeof(*c->entries) <= buf + len);
		e = mgpu_cmd_entry(c, i);
		FUZZ_ASSERT(e.length);
		FUZZ_ASSERT(!__builtin_add_overflow(e.addr, (u64)e.length,
						    &end64));
		sum += e.length;
	}
	FUZZ_ASSERT(sum == c->backing_size);

	switch (c->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		FUZZ_ASSERT(c->res_id && c->width && c->height);
		FUZZ_ASSERT(mgpu_format_ok(c->format));
		break;
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		FUZZ_ASSERT(c->res_id && c->size);
		FUZZ_ASSERT(c->blob_mem == VIRTIO_GPU_BLOB_MEM_HOST3D ? !c->nr_entries :
			    c->nr_entries && c->size <= c->backing_size);
		break;
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
		if (!c->res_id)
			break;
		FUZZ_ASSERT(mgpu_format_ok(c->format));
		FUZZ_ASSERT(mgpu_rect_inside(&c->rect, c->width, c->height));
		FUZZ_ASSERT(c->stride >= c->width * 4);
		break;
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		FUZZ_ASSERT(c->nr_entries);
		/* fall through */
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		FUZZ_ASSERT(c->res_id);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct virtio_gpu_ctrl_hdr hdr;
	struct mgpu_cmd cmd;
	u32 ret;
	u8 *buf;

	if (!size)
		return 0;
	/* A block of the exact size, aligned as the module's is. */
	buf = malloc(size - 1 ? size - 1 : 1);
	if (!buf)
		abort();
	memcpy(buf, data + 1, size - 1);

	ret = mgpu_cmd_decode(buf, size - 1, data[0] & 1, &cmd);
	if (ret)
		FUZZ_ASSERT(response_ok(ret));
	else
		check(&cmd, buf, size - 1);

	mgpu_cmd_reply(&cmd, ret ? ret : VIRTIO_GPU_RESP_OK_NODATA, &hdr);
	if (cmd.flags & VIRTIO_GPU_FLAG_FENCE)
		FUZZ_ASSERT(le64_to_cpu(hdr.fence_id) == cmd.fence_id);
	else
		FUZZ_ASSERT(!hdr.fence_id && !hdr.flags);
	free(buf);
	return 0;
}

static void seeds(const char *dir)
{
	static const struct {
		u32 type;
		size_t size;
	} cmds[] = {
		{ VIRTIO_GPU_CMD_GET_DISPLAY_INFO, 24 },
		{ VIRTIO_GPU_CMD_GET_EDID,
		  sizeof(struct virtio_gpu_cmd_get_edid) },
		{ VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
		  sizeof(struct virtio_gpu_resource_create_2d) },
		{ VIRTIO_GPU_CMD_RESOURCE_UNREF,
		  sizeof(struct virtio_gpu_resource_unref) },
		{ VIRTIO_GPU_CMD_SET_SCANOUT,
		  sizeof(struct virtio_gpu_set_scanout) },
		{ VIRTIO_GPU_CMD_RESOURCE_FLUSH,
		  sizeof(struct virtio_gpu_resource_flush) },
		{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
		  sizeof(struct virtio_gpu_transfer_to_host_2d) },
		{ VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		  sizeof(struct virtio_gpu_resource_attach_backing) + 64 },
		{ VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
		  sizeof(struct virtio_gpu_resource_detach_backing) },
		{ VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
		  sizeof(struct virtio_gpu_resource_create_blob) + 64 },
		{ VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB,
		  sizeof(struct virtio_gpu_resource_map_blob) },
		{ VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB,
		  sizeof(struct virtio_gpu_resource_unmap_blob) },
		{ VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
		  sizeof(struct virtio_gpu_set_scanout_blob) },
		{ VIRTIO_GPU_CMD_UPDATE_CURSOR,
		  sizeof(struct virtio_gpu_update_cursor) },
		{ VIRTIO_GPU_CMD_MOVE_CURSOR,
		  sizeof(struct virtio_gpu_update_cursor) },
	};
	u8 buf[1 + 256];
	size_t i, at;
	char name[32];
	u32 word;

	for (i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		/* Small numbers are what most fields want. */
		memset(buf, 0, sizeof(buf));
		buf[0] = cmds[i].type >= VIRTIO_GPU_CMD_UPDATE_CURSOR;
		word = cpu_to_le32(cmds[i].type);
		memcpy(buf + 1, &word, 4);
		for (at = 24; at < cmds[i].size; at += 4)
			buf[1 + at] = 1;
		snprintf(name, sizeof(name), "%04x", cmds[i].type);
		fuzz_seed(dir, name, buf, 1 + cmds[i].size);
		buf[1 + 4] = VIRTIO_GPU_FLAG_FENCE |
			     VIRTIO_GPU_FLAG_INFO_RING_IDX;
		snprintf(name, sizeof(name), "%04x-fenced", cmds[i].type);
		fuzz_seed(dir, name, buf, 1 + cmds[i].size);
	}
}

FUZZ_SEEDS(seeds)

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Execute checked virtio-gpu commands (VIRTIO 1.2, section 5.7.6).
 */
#include <linux/string.h>
#include <linux/virtio_gpu.h>
#include <uapi/linux/mgpu_compute.h>

#include "compute/context.h"
#include "gpu/resource.h"
#include "mgpu.h"
#include "virgl/devcmd.h"

static u32 cmd_get_display_info(struct mgpu_vgpu *vgpu, void *resp, size_t *len)
{
	struct virtio_gpu_resp_display_info *info = resp;
	u32 width, height;

	mgpu_vgpu_mode(vgpu, &width, &height);
	memset(info, 0, sizeof(*info));
	info->pmodes[0].r.width = cpu_to_le32(width);
	info->pmodes[0].r.height = cpu_to_le32(height);
	info->pmodes[0].enabled = cpu_to_le32(1);
	*len = sizeof(*info);
	return VIRTIO_GPU_RESP_OK_DISPLAY_INFO;
}

static u32 cmd_get_edid(struct mgpu_vgpu *vgpu, void *resp, size_t *len)
{
	struct virtio_gpu_resp_edid *e = resp;
	u32 width, height;

	mgpu_vgpu_mode(vgpu, &width, &height);
	memset(e, 0, sizeof(*e));
	mgpu_edid(e->edid, width, height, vgpu->id);
	e->size = cpu_to_le32(128);
	*len = sizeof(*e);
	return VIRTIO_GPU_RESP_OK_EDID;
}

static u32 cmd_flush(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		     enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	const struct mgpu_view *view = &vgpu->screen.view;
	struct mgpu_resource *res;

	res = mgpu_resource_find(vgpu, cmd->res_id);
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	lockdep_assert_held(&vgpu->ring_lock);	/* the view changes under it */
	if (view->res != res) {
		/* A blob has no size in pixels until a scanout gives it one. */
		if (!res->blob && !mgpu_rect_inside(&cmd->rect, res->width,
						    res->height))
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		return VIRTIO_GPU_RESP_OK_NODATA;
	}

	if (!mgpu_rect_inside(&cmd->rect, view->width, view->height))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (mgpu_screen_alloc(vgpu))
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	mgpu_draw_prepare(&lane->draw, MGPU_JOB_FLUSH, cmd, res);
	lane->draw.job.frame = true;
	/* Pixels on the device stay there. */
	if (mgpu_on_device(vgpu))
		lane->draw.job.bytes = 0;
	*next = MGPU_CMD_JOB;
	return 0;
}

static u32 cmd_transfer(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_resource *res;
	u64 last;

	res = mgpu_resource_find(vgpu, cmd->res_id);
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* A guest blob has no copy on the host to transfer to. */
	if (res->blob)
		return VIRTIO_GPU_RESP_OK_NODATA;
	if (!res->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (!mgpu_rect_inside(&cmd->rect, res->width, res->height))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (!cmd->rect.width || !cmd->rect.height)
		return VIRTIO_GPU_RESP_OK_NODATA;

	/* The backing has the resource's stride from the offset on. */
	last = (u64)(cmd->rect.height - 1) * res->stride +
	       (u64)cmd->rect.width * 4;
	if (cmd->offset > res->backing->len ||
	    last > res->backing->len - cmd->offset)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	mgpu_draw_prepare(&lane->draw, MGPU_JOB_TRANSFER, cmd, res);
	*next = MGPU_CMD_JOB;
	return 0;
}

static u32 cmd_cursor(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		      enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = NULL;
	u32 err;

	err = mgpu_screen_cursor(vgpu, &lane->cmd);
	if (err)
		return err;
	/* mgpu_screen_cursor() has copied the image of a resource on the device. */
	if (lane->cmd.type == VIRTIO_GPU_CMD_UPDATE_CURSOR &&
	    lane->cmd.res_id && !mgpu_on_device(vgpu))
		res = mgpu_resource_find(vgpu, lane->cmd.res_id);

	mgpu_draw_prepare(&lane->draw, MGPU_JOB_CURSOR, &lane->cmd, res);
	lane->draw.job.bytes = MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * 4;
	*next = MGPU_CMD_JOB;
	return 0;
}

static u32 cmd_get_capset_info(const struct mgpu_cmd *cmd, void *resp, size_t *len)
{
	struct virtio_gpu_resp_capset_info *info = resp;

	if (cmd->capset_index)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	memset(info, 0, sizeof(*info));
	info->capset_id = cpu_to_le32(MGPU_CAPSET_COMPUTE);
	info->capset_max_version = cpu_to_le32(MGPU_COMPUTE_VERSION);
	info->capset_max_size = cpu_to_le32(sizeof(struct mgpu_capset_compute));
	*len = sizeof(*info);
	return VIRTIO_GPU_RESP_OK_CAPSET_INFO;
}

static u32 cmd_get_capset(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd,
			  void *resp, size_t *len)
{
	struct virtio_gpu_resp_capset *capset = resp;
	struct mgpu_capset_compute compute;

	BUILD_BUG_ON(sizeof(*capset) + sizeof(compute) > MGPU_MAX_RESP);
	if (cmd->capset != MGPU_CAPSET_COMPUTE)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	mgpu_compute_capset(&compute, vgpu->mdev->caps.engines);
	memset(capset, 0, sizeof(*capset));
	memcpy(capset->capset_data, &compute, sizeof(compute));
	*len = sizeof(*capset) + sizeof(compute);
	return VIRTIO_GPU_RESP_OK_CAPSET;
}

/**
 * mgpu_cmd_offered - tell whether a vGPU offers a command
 * @vgpu: vGPU
 * @cmd: command, which may be malformed
 *
 * Return: true if the vGPU's type has the command.
 */
bool mgpu_cmd_offered(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
	case VIRTIO_GPU_CMD_GET_CAPSET:
	case VIRTIO_GPU_CMD_CTX_CREATE ... VIRTIO_GPU_CMD_SUBMIT_3D:
		return vgpu->type->desc->render;
	case VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB:
	case VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB:
		return mgpu_hostmem_size(vgpu);
	default:
		return true;
	}
}

/* Execute a command that only guests of a render type have. */
static u32 cmd_render(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		      size_t *resp_len, enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	u32 err;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
		return cmd_get_capset_info(cmd, resp, resp_len);
	case VIRTIO_GPU_CMD_GET_CAPSET:
		return cmd_get_capset(vgpu, cmd, resp, resp_len);
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return mgpu_context_create(vgpu, cmd);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return mgpu_context_destroy(vgpu, cmd->ctx_id);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
		return mgpu_context_attach(vgpu, cmd);
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return mgpu_context_detach(vgpu, cmd);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		err = mgpu_context_submit(vgpu, lane, next);
		if (!err)
			*next = MGPU_CMD_WORK;
		return err;
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

/**
 * mgpu_cmd_run - execute a command
 * @vgpu: vGPU
 * @lane: queue with the decoded command
 * @resp: buffer of MGPU_MAX_RESP bytes for an answer with data; the caller writes the
 *	header
 * @resp_len: set to the length of such an answer, bytes
 * @next: set unless the command is complete
 *
 * Context: must hold ring_lock; may sleep.
 * Return: VIRTIO_GPU_RESP_*; undefined if @next is set.
 */
u32 mgpu_cmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		 size_t *resp_len, enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
		return cmd_get_display_info(vgpu, resp, resp_len);
	case VIRTIO_GPU_CMD_GET_EDID:
		return cmd_get_edid(vgpu, resp, resp_len);
	case VIRTIO_GPU_CMD_SET_SCANOUT:
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
		return mgpu_screen_set(vgpu, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
		return cmd_flush(vgpu, lane, next);
	case VIRTIO_GPU_CMD_UPDATE_CURSOR:
	case VIRTIO_GPU_CMD_MOVE_CURSOR:
		return cmd_cursor(vgpu, lane, next);
	}
	if (mgpu_on_device(vgpu))
		return mgpu_devcmd_run(vgpu, lane, resp, resp_len, next);

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_2D:
		return mgpu_resource_create_2d(vgpu, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return mgpu_resource_create_blob(vgpu, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return mgpu_resource_unref(vgpu, cmd->res_id);
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return mgpu_resource_attach(vgpu, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
		return mgpu_resource_detach(vgpu, cmd->res_id);
	case VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D:
		return cmd_transfer(vgpu, lane, next);
	default:
		return cmd_render(vgpu, lane, resp, resp_len, next);
	}
}

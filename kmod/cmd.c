// SPDX-License-Identifier: GPL-2.0-only
/*
 * Carries out checked virtio-gpu commands (VIRTIO 1.2, section 5.7.6).
 */
#include <linux/string.h>
#include <linux/virtio_gpu.h>
#include <uapi/linux/mgpu_compute.h>

#include "mgpu.h"

static u32 get_display_info(struct mgpu_vgpu *vgpu, void *resp, size_t *len)
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

static u32 get_edid(struct mgpu_vgpu *vgpu, void *resp, size_t *len)
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

static void prepare_job(struct mgpu_lane *lane, enum mgpu_job_kind kind,
			struct mgpu_resource *res)
{
	struct mgpu_job *job = &lane->job;

	job->kind = kind;
	job->rect = lane->cmd.rect;
	job->offset = lane->cmd.offset;
	job->bytes = (u64)job->rect.width * job->rect.height * 4;
	job->row = 0;
	job->frame = false;
	job->cancelled = false;
	job->expired = false;
	job->error = 0;
	job->res = res;
	if (res)
		mgpu_resource_get(res);
}

static u32 flush(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		 enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	const struct mgpu_view *view = &vgpu->screen.view;
	struct mgpu_resource *res;

	res = mgpu_resource_find(vgpu, cmd->res_id);
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* Only this worker changes the view. */
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

	prepare_job(lane, MGPU_JOB_FLUSH, res);
	lane->job.frame = true;
	/* What the device has stays there. */
	if (mgpu_on_device(vgpu))
		lane->job.bytes = 0;
	*next = MGPU_CMD_JOB;
	return 0;
}

static u32 transfer(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		    enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_resource *res;
	u64 last;

	res = mgpu_resource_find(vgpu, cmd->res_id);
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* A guest blob's pixels are where they belong already. */
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

	prepare_job(lane, MGPU_JOB_TRANSFER, res);
	*next = MGPU_CMD_JOB;
	return 0;
}

static u32 cursor(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
		  enum mgpu_cmd_next *next)
{
	struct mgpu_resource *res = NULL;
	u32 err;

	err = mgpu_screen_cursor(vgpu, &lane->cmd);
	if (err)
		return err;
	/* From the device, the image was taken already. */
	if (lane->cmd.type == VIRTIO_GPU_CMD_UPDATE_CURSOR &&
	    lane->cmd.res_id && !mgpu_on_device(vgpu))
		res = mgpu_resource_find(vgpu, lane->cmd.res_id);

	prepare_job(lane, MGPU_JOB_CURSOR, res);
	lane->job.bytes = MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * 4;
	*next = MGPU_CMD_JOB;
	return 0;
}

static u32 get_capset_info(const struct mgpu_cmd *cmd, void *resp, size_t *len)
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

static u32 get_capset(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd,
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
 * mgpu_cmd_offered - whether a vGPU has a command at all
 * @vgpu: vGPU
 * @cmd: command, which may be malformed
 */
bool mgpu_cmd_offered(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
	case VIRTIO_GPU_CMD_GET_CAPSET:
	case VIRTIO_GPU_CMD_CTX_CREATE ... VIRTIO_GPU_CMD_SUBMIT_3D:
		return vgpu->type->desc->render;
	default:
		return true;
	}
}

/* What only guests of a render type may ask for. */
static u32 render(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		  size_t *resp_len, enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	u32 err;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
		return get_capset_info(cmd, resp, resp_len);
	case VIRTIO_GPU_CMD_GET_CAPSET:
		return get_capset(vgpu, cmd, resp, resp_len);
	case VIRTIO_GPU_CMD_CTX_CREATE:
		return mgpu_context_create(vgpu, cmd);
	case VIRTIO_GPU_CMD_CTX_DESTROY:
		return mgpu_context_destroy(vgpu, cmd->ctx_id);
	case VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE:
		return mgpu_context_attach(vgpu, cmd);
	case VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE:
		return mgpu_context_detach(vgpu, cmd);
	case VIRTIO_GPU_CMD_SUBMIT_3D:
		err = mgpu_context_submit(vgpu, lane);
		if (!err)
			*next = MGPU_CMD_WORK;
		return err;
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

/**
 * mgpu_cmd_run - carry out a command
 * @vgpu: vGPU
 * @lane: queue with the decoded command
 * @resp: where to build an answer with data, MGPU_MAX_RESP bytes; the caller
 *	writes the header
 * @resp_len: its length, 0 when the answer is a header only
 * @next: set unless the command is done
 *
 * Context: ring_lock held.
 * Return: VIRTIO_GPU_RESP_*; meaningless with @next set.
 */
u32 mgpu_cmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		 size_t *resp_len, enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;

	switch (cmd->type) {
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
		return get_display_info(vgpu, resp, resp_len);
	case VIRTIO_GPU_CMD_GET_EDID:
		return get_edid(vgpu, resp, resp_len);
	case VIRTIO_GPU_CMD_SET_SCANOUT:
	case VIRTIO_GPU_CMD_SET_SCANOUT_BLOB:
		return mgpu_screen_set(vgpu, cmd);
	case VIRTIO_GPU_CMD_RESOURCE_FLUSH:
		return flush(vgpu, lane, next);
	case VIRTIO_GPU_CMD_UPDATE_CURSOR:
	case VIRTIO_GPU_CMD_MOVE_CURSOR:
		return cursor(vgpu, lane, next);
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
		return transfer(vgpu, lane, next);
	default:
		return render(vgpu, lane, resp, resp_len, next);
	}
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of guests whose contexts and resources are on the device.
 */
#ifndef MGPU_DEVCMD_H
#define MGPU_DEVCMD_H

#include <linux/kref.h>
#include <linux/llist.h>
#include <linux/virtio_gpu.h>
#include <linux/xarray.h>

#include "backend.h"
#include "gpu/ring.h"
#include "sched/sched.h"
#include "virgl/slice.h"

struct mgpu_devctx;
struct mgpu_mem;
struct mgpu_resource;

/* Longest message that has a place in its command, bytes: CTX_CREATE. */
#define MGPU_SMALL_MSG	96

/**
 * struct mgpu_devcmd - a guest's command that the device executes
 * @job: job of the command; unused if @local
 * @node: in vgpu->devcmds, in the ring's order, until the command is answered; in
 *	vgpu->devcmds_kept afterwards, if @keep
 * @done_node: in vgpu->devcmds_done
 * @vgpu: vGPU of the guest
 * @type: VIRTIO_GPU_CMD_*; 0 for a readback
 * @local: the command is refused and not sent to the device; it only waits to be
 *	answered in order
 * @done: the command can be answered; ring_lock
 * @fenced: the guest wants a fence: the answer waits for all earlier fenced commands of
 *	the same @timeline
 * @timeline: see mgpu_timeline_of()
 * @guest_ctx: the guest's number of the context, 0 for none
 * @ctx: CTX_CREATE, CTX_DESTROY: the context, holds a reference
 * @mem: ATTACH_BACKING, DETACH_BACKING, CREATE_BLOB: the memory
 * @res: resource of the command, holds a reference; NULL for none
 * @clear_ctx: the device's number of the context that clears the resource, 0 for none
 * @stream: buffer of the first message if that is a guest's stream; its size is charged
 *	against the type's memory limit
 * @answer: answer to the guest, VIRTIO_GPU_RESP_*
 * @last: the last slice of the stream that this command is a slice of, which answers the
 *	guest; NULL for other commands, and for the last slice itself
 * @slices: slices of the stream before this last one that have not ended; ring_lock
 * @slice_answer: answer of the first of them that failed; 0 for none; ring_lock
 * @dev_ctx: the device's number of the context that a stream is for
 * @load: expected cost of the stream or slice
 * @engine_ns: engine time that it took, nanoseconds
 * @behind: the device got it before it ended the vGPU's previous command
 * @gfp: how to allocate the command and its messages
 * @keep: the command has the size of those that are kept, and is freed under ring_lock
 * @nr_msgs: entries of @msgs and @resp
 * @max_msgs: room in @msgs and @resp
 * @msgs: messages to the device, in this order; the last is answered last
 * @resp: the device's answers
 * @small: buffer of the first message if that fits
 * @reply: reply to the guest
 * @segs: segments of @reply
 */
struct mgpu_devcmd {
	struct mgpu_job job;
	struct list_head node;
	struct llist_node done_node;
	struct mgpu_vgpu *vgpu;
	u32 type;
	bool local;
	bool done;
	bool fenced;
	u64 timeline;
	u32 guest_ctx;
	struct mgpu_devctx *ctx;
	struct mgpu_mem *mem;
	struct mgpu_resource *res;
	u32 clear_ctx;
	struct mgpu_cmdbuf stream;
	u32 answer;
	struct mgpu_devcmd *last;
	u32 slices;
	u32 slice_answer;
	u32 dev_ctx;
	struct mgpu_slice_load load;
	u64 engine_ns;
	bool behind;
	gfp_t gfp;
	bool keep;
	u32 nr_msgs;
	u32 max_msgs;
	struct mgpu_msg *msgs;
	struct virtio_gpu_ctrl_hdr *resp;
	u64 small[MGPU_SMALL_MSG / sizeof(u64)];
	struct mgpu_reply reply;
	struct mgpu_seg segs[];
};

#define to_mgpu_devcmd(j) container_of(j, struct mgpu_devcmd, job)

/**
 * struct mgpu_devstorage - storage of a blob that a stream has named
 * @blob_id: the context's number of it; 0 for none
 * @shape: shape of the storage, a buffer
 */
struct mgpu_devstorage {
	u32 blob_id;
	struct mgpu_virgl_shape shape;
};

/* Storage of a context that no blob has taken yet: Linux makes the blob at once. */
#define MGPU_MAX_STORAGE	16

/**
 * struct mgpu_devctx - a context that a guest has on the device
 * @ref: references of the table and of each command that makes or ends the context
 * @vgpu: vGPU of the guest
 * @id: the guest's number of the context
 * @dev_id: the device's number of the context
 * @virgl: its streams are virgl's
 * @dev_gen: generation of the device when it got the context, 0 before and after
 * @attached: resources by the guest's id, without references: a resource that is
 *	unreferenced by the guest is taken out; ring_lock
 * @nr_attached: entries of @attached
 * @subs: sub-contexts by the guest's number; ring_lock
 * @nr_subs: entries of @subs
 * @storage: storage that streams have named and no blob has taken; ring_lock
 * @next_storage: entry of @storage that the next one takes
 * @slicer: cuts the context's streams; ring_lock
 */
struct mgpu_devctx {
	struct kref ref;
	struct mgpu_vgpu *vgpu;
	u32 id;
	u32 dev_id;
	bool virgl;
	u32 dev_gen;
	struct xarray attached;
	u32 nr_attached;
	struct xarray subs;
	u32 nr_subs;
	struct mgpu_devstorage storage[MGPU_MAX_STORAGE];
	u32 next_storage;
	struct mgpu_slicer *slicer;
};

/* translate.c: from the guest's terms to the device's */
u32 mgpu_devcmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		    size_t *resp_len, enum mgpu_cmd_next *next);

/* devcmd.c: a command's way to the device and back */
void mgpu_devcmd_init_vgpu(struct mgpu_vgpu *vgpu);
struct mgpu_devcmd *mgpu_devcmd_alloc(struct mgpu_vgpu *vgpu, u32 msgs, u32 segs,
				      gfp_t gfp);
struct mgpu_devcmd *mgpu_devcmd_take(struct mgpu_vgpu *vgpu, gfp_t gfp);
struct mgpu_devcmd *mgpu_devcmd_new(struct mgpu_vgpu *vgpu,
				    const struct mgpu_lane *lane, u32 msgs);
void *mgpu_devcmd_msg(struct mgpu_devcmd *dc, u32 type, size_t len);
void mgpu_devcmd_submit(struct mgpu_devcmd *dc);
void mgpu_devcmd_free(struct mgpu_devcmd *dc);
bool mgpu_devcmd_refuse(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			u32 answer);
u64 mgpu_timeline_of(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
bool mgpu_devcmd_fence_waits(const struct mgpu_vgpu *vgpu, u64 timeline,
			     const struct mgpu_devcmd *until);
bool mgpu_devcmd_mem_waits(const struct mgpu_devcmd *dc);
bool mgpu_devcmd_slice_ends(struct mgpu_devcmd *dc);
bool mgpu_devcmd_release(struct mgpu_devcmd *dc, bool nowait);
void mgpu_devcmd_end(struct mgpu_devcmd *dc);
void mgpu_devcmd_stop(struct mgpu_vgpu *vgpu);

/* devstate.c: state that the device has, and its release ahead of jobs */
bool mgpu_vgpu_has(const struct mgpu_vgpu *vgpu, u32 gen);
bool mgpu_devstate_settle(struct mgpu_devcmd *dc, bool ok);
u32 mgpu_devcmd_exec(struct mgpu_vgpu *vgpu, void *buf, size_t len,
		     struct mgpu_export *export);
void mgpu_devcmd_forget(struct mgpu_vgpu *vgpu, u32 type, u32 ctx, u32 res);
struct mgpu_devctx *mgpu_devctx_new(struct mgpu_vgpu *vgpu, u32 id, u32 capset);
void mgpu_devctx_put(struct mgpu_devctx *ctx);
void mgpu_devctx_release_all(struct mgpu_vgpu *vgpu);
void mgpu_devres_release(struct mgpu_resource *res);
void mgpu_devres_release_all(struct mgpu_vgpu *vgpu);
void mgpu_devmem_release(struct mgpu_mem *mem);

#endif /* MGPU_DEVCMD_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of a vGPU: commands in, answers out.
 */
#ifndef MGPU_RING_H
#define MGPU_RING_H

#include <linux/gfp_types.h>
#include <linux/virtio_gpu.h>

#include "backend.h"
#include "gpu/cmd_decode.h"
#include "gpu/cmdbuf.h"
#include "gpu/draw.h"
#include "vfio/vring.h"

struct mgpu_devcmd;
struct mgpu_mem;
struct mgpu_work;

/* Bytes of the longest answer. */
#define MGPU_MAX_RESP	(sizeof(struct virtio_gpu_resp_capset) + MGPU_MAX_CAPSET)

/**
 * struct mgpu_reply - the answer to a command that does not hold up its queue
 * @hdr: the answer's header; its type is set when the command completes
 * @map: the same, and what follows in the answer OK_MAP_INFO; its map_info is set before that
 * @chain: descriptors that the answer goes to
 */
struct mgpu_reply {
	union {
		struct virtio_gpu_ctrl_hdr hdr;
		struct virtio_gpu_resp_map_info map;
	};
	struct mgpu_chain chain;
};

/**
 * enum mgpu_lane_state - progress of a queue's oldest command
 * @MGPU_LANE_IDLE: the queue has no command in progress
 * @MGPU_LANE_HELD: pacing holds a frame back; the hold timer is armed
 * @MGPU_LANE_BUSY: the scheduler has the command's job, or the queue waits for a
 *	context's job
 * @MGPU_LANE_DONE: the job is done and the answer is not sent
 */
enum mgpu_lane_state {
	MGPU_LANE_IDLE,
	MGPU_LANE_HELD,
	MGPU_LANE_BUSY,
	MGPU_LANE_DONE,
};

/**
 * struct mgpu_lane - a queue and its command in progress
 * @vring: the queue
 * @mem: descriptor table, available ring, used ring
 * @ready: @vring is set up
 * @broken: the guest broke the ring; it is not read until a reset
 * @state: see mgpu_lane_state; the owner of the lane in a state changes it:
 *	the holder of ring_lock in IDLE and DONE, the timer or the holder of
 *	ring_lock (cmpxchg decides) in HELD, the engine thread in BUSY
 * @cmd: the command, unless IDLE
 * @chain: descriptors of the command and of its answer
 * @buf: copy of the guest's bytes that @cmd points into
 * @gfp: how to allocate in this run of the ring: without waiting in an engine's thread
 * @answered: answers were pushed that no interrupt has announced
 * @awaited: the guest may be waiting for one of them
 * @held_ns: when the command was first held back, 0 when it was not
 * @draw: the command's job
 */
struct mgpu_lane {
	struct mgpu_vring vring;
	struct mgpu_mem *mem[3];
	bool ready;
	bool broken;
	enum mgpu_lane_state state;
	struct mgpu_cmd cmd;
	struct mgpu_chain chain;
	struct mgpu_cmdbuf buf;
	gfp_t gfp;
	bool answered;
	bool awaited;
	u64 held_ns;
	struct mgpu_draw draw;
};

/**
 * enum mgpu_cmd_next - how a command goes on
 * @MGPU_CMD_ANSWER: it is complete; the caller answers it
 * @MGPU_CMD_JOB: the lane's job is ready; its completion answers the command
 * @MGPU_CMD_WORK: a context or the device has it; the completion there answers
 *	the command, and the queue goes on unless the lane is BUSY
 * @MGPU_CMD_AGAIN: nothing has happened; an engine's thread has no memory for it
 *	without waiting: the worker takes it
 * @MGPU_CMD_WAIT: nothing has happened; the queue waits until a command that the device
 *	has is complete
 */
enum mgpu_cmd_next {
	MGPU_CMD_ANSWER,
	MGPU_CMD_JOB,
	MGPU_CMD_WORK,
	MGPU_CMD_AGAIN,
	MGPU_CMD_WAIT,
};

/* ring.c */
void mgpu_ring_init(struct mgpu_vgpu *vgpu);
int mgpu_ring_open(struct mgpu_vgpu *vgpu);
void mgpu_ring_close(struct mgpu_vgpu *vgpu);
void mgpu_ring_start(struct mgpu_vgpu *vgpu);
void mgpu_ring_enable_vq(struct mgpu_vgpu *vgpu, u32 vq);
void mgpu_ring_wait(struct mgpu_vgpu *vgpu);
void mgpu_ring_quiesce(struct mgpu_vgpu *vgpu);
void mgpu_ring_cancel(struct mgpu_vgpu *vgpu);
void mgpu_ring_reset(struct mgpu_vgpu *vgpu);
void mgpu_ring_kick(struct mgpu_vgpu *vgpu);
void mgpu_ring_work(struct mgpu_vgpu *vgpu);
void mgpu_ring_doorbell(struct mgpu_vgpu *vgpu);
void mgpu_ring_draw_done(struct mgpu_job *job);
void mgpu_ring_work_done(struct mgpu_vgpu *vgpu, struct mgpu_work *work);
void mgpu_ring_devcmd_done(struct mgpu_devcmd *dc);
void mgpu_lane_wait_context(struct mgpu_lane *lane);
u32 mgpu_lane_no_memory(const struct mgpu_lane *lane, enum mgpu_cmd_next *next);
u32 mgpu_reply_segs(const struct mgpu_lane *lane);
void mgpu_reply_init(struct mgpu_reply *reply, const struct mgpu_lane *lane,
		     struct mgpu_seg *segs);

/* cmd.c: a checked command against the vGPU's state */
u32 mgpu_cmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		 size_t *resp_len, enum mgpu_cmd_next *next);
bool mgpu_cmd_offered(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);

#endif /* MGPU_RING_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: engine time of a vGPU that no command of its guest stands for.
 */
#ifndef MGPU_TURN_H
#define MGPU_TURN_H

#include <linux/mutex.h>
#include <linux/virtio_gpu.h>

#include "backend.h"
#include "sched/sched.h"

/* The back end may have a turn while the next one waits. */
#define MGPU_TURNS	2

/**
 * struct mgpu_turn - a turn of a vGPU
 * @busy: the scheduler or the back end has the job
 * @begun: the back end has had it
 * @job: job of the turn
 * @msg: its only message
 * @cmd: what @msg has: nothing but a type of 0
 * @resp: the answer
 */
struct mgpu_turn {
	bool busy;
	bool begun;
	struct mgpu_job job;
	struct mgpu_msg msg;
	struct virtio_gpu_ctrl_hdr cmd;
	struct virtio_gpu_ctrl_hdr resp;
};

/**
 * struct mgpu_turns - the turns of a vGPU
 * @lock: held while a turn is submitted
 * @turn: turns, of which one may wait
 */
struct mgpu_turns {
	struct mutex lock;	/* see above */
	struct mgpu_turn turn[MGPU_TURNS];
};

void mgpu_turn_init(struct mgpu_vgpu *vgpu);
void mgpu_turn_quiesce(struct mgpu_vgpu *vgpu);
void mgpu_turn_stop(struct mgpu_vgpu *vgpu);

#endif /* MGPU_TURN_H */

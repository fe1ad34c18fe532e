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

/**
 * struct mgpu_turn - the turn of a vGPU
 * @lock: held while a turn is submitted
 * @busy: the scheduler or the back end has the job
 * @job: job of the turn
 * @msg: its only message
 * @cmd: what @msg has: nothing but a type of 0
 * @resp: the answer
 */
struct mgpu_turn {
	struct mutex lock;	/* see above */
	bool busy;
	struct mgpu_job job;
	struct mgpu_msg msg;
	struct virtio_gpu_ctrl_hdr cmd;
	struct virtio_gpu_ctrl_hdr resp;
};

void mgpu_turn_init(struct mgpu_vgpu *vgpu);
void mgpu_turn_quiesce(struct mgpu_vgpu *vgpu);
void mgpu_turn_stop(struct mgpu_vgpu *vgpu);

#endif /* MGPU_TURN_H */

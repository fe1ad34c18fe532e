/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vGPU's worker: a kernel thread that works for the guest at the VMM's expense.
 */
#ifndef MGPU_WORKER_H
#define MGPU_WORKER_H

#include <linux/kcov.h>
#include <linux/kthread.h>

struct mem_cgroup;
struct mgpu_vgpu;

/**
 * struct mgpu_worker - a kernel thread of a vGPU that is open
 * @kcov: kcov handle of the thread that opened the vGPU; without CONFIG_KCOV, and while kcov
 *	does not collect, a handle of nothing
 * @thread: the thread; NULL while the vGPU is closed; RCU for threads that queue work
 * @work: the work, which runs the ring
 * @memcg: memory control group of the VMM, holds a reference
 */
struct mgpu_worker {
	typeof(kcov_common_handle()) kcov;
	struct kthread_worker __rcu *thread;
	struct kthread_work work;
	struct mem_cgroup *memcg;
};

int mgpu_worker_start(struct mgpu_vgpu *vgpu);
void mgpu_worker_stop(struct mgpu_vgpu *vgpu);
void mgpu_worker_queue(struct mgpu_vgpu *vgpu);
void mgpu_worker_cancel(struct mgpu_vgpu *vgpu);

#endif /* MGPU_WORKER_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vGPU's worker.  It decodes commands, pins guest memory and allocates for a guest
 * when no thread of the VMM is there to do it.  So that a VM does not get more of the
 * host that way, the worker is in the control groups of the VMM, has its nice value,
 * and charges memory to its memory control group, as vhost's worker does.
 *
 * The VMM's groups are those at the time of the open.
 */
#include <linux/cgroup.h>
#include <linux/kcov.h>
#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "mgpu.h"

static void worker_run(struct kthread_work *work)
{
	struct mgpu_vgpu *vgpu = container_of(work, struct mgpu_vgpu, worker.work);
	struct mem_cgroup *old = set_active_memcg(vgpu->worker.memcg);

	kcov_remote_start_common(vgpu->worker.kcov);
	mgpu_ring_work(vgpu);
	kcov_remote_stop();
	set_active_memcg(old);
}

/**
 * mgpu_worker_start - start a vGPU's worker
 * @vgpu: vGPU without a worker
 *
 * Context: the VMM's thread; may sleep.
 * Return: 0; -ENOMEM; -EINTR if the VMM is being killed; or an error of the control
 * groups.
 */
int mgpu_worker_start(struct mgpu_vgpu *vgpu)
{
	struct mgpu_worker *w = &vgpu->worker;
	struct kthread_worker *thread;
	int ret;

	thread = kthread_create_worker(0, "mgpu-%u", vgpu->id);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	ret = cgroup_attach_task_all(current, thread->task);
	if (ret) {
		kthread_destroy_worker(thread);
		return ret;
	}
	set_user_nice(thread->task, task_nice(current));
	w->memcg = get_mem_cgroup_from_mm(current->mm);
	w->kcov = kcov_common_handle();
	kthread_init_work(&w->work, worker_run);
	rcu_assign_pointer(w->thread, thread);
	return 0;
}

/**
 * mgpu_worker_stop - end a vGPU's worker
 * @vgpu: vGPU that is not live
 *
 * Context: may sleep.
 */
void mgpu_worker_stop(struct mgpu_vgpu *vgpu)
{
	struct mgpu_worker *w = &vgpu->worker;
	struct kthread_worker *thread = rcu_dereference_protected(w->thread, true);

	if (!thread)
		return;
	RCU_INIT_POINTER(w->thread, NULL);
	/* A setting may just be queueing the work. */
	synchronize_rcu_expedited();
	kthread_destroy_worker(thread);
	mem_cgroup_put(w->memcg);
	w->memcg = NULL;
}

/* Have the worker run the ring; no effect while the vGPU is closed.  Any context. */
void mgpu_worker_queue(struct mgpu_vgpu *vgpu)
{
	struct kthread_worker *thread;

	rcu_read_lock();
	thread = rcu_dereference(vgpu->worker.thread);
	if (thread)
		kthread_queue_work(thread, &vgpu->worker.work);
	rcu_read_unlock();
}

/* Take the work back, and wait for it if it runs.  The vGPU is open; may sleep. */
void mgpu_worker_cancel(struct mgpu_vgpu *vgpu)
{
	kthread_cancel_work_sync(&vgpu->worker.work);
}

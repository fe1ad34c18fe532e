// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life cycle of a vGPU: the steps of each part of the module, in order, when a
 * vGPU is created, opened by a VMM, reset, closed and freed.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compute/context.h"
#include "gpu/resource.h"
#include "mgpu.h"
#include "trace.h"
#include "virgl/devcmd.h"

/**
 * mgpu_vgpu_init - initialize a vGPU that is zeroed
 * @vgpu: vGPU
 *
 * Context: before anything else uses it; device and type need not be set.
 */
void mgpu_vgpu_init(struct mgpu_vgpu *vgpu)
{
	mutex_init(&vgpu->lock);
	spin_lock_init(&vgpu->irq_lock);
	mgpu_config_init(vgpu);
	mgpu_mem_init(vgpu);
	mgpu_ring_init(vgpu);
	mgpu_resource_init(vgpu);
	mgpu_context_init(vgpu);
	mgpu_devcmd_init_vgpu(vgpu);
	mgpu_screen_init(vgpu);
	mgpu_hostmem_init(vgpu);
	mgpu_readback_init(vgpu);
	mgpu_turn_init(vgpu);
	mgpu_netlink_init_vgpu(vgpu);
}

/* Release the remaining memory of a closed vGPU; VFIO frees the vGPU itself. */
void mgpu_vgpu_exit(struct mgpu_vgpu *vgpu)
{
	/* VFIO may unmap until the vGPU has left its container. */
	mgpu_mem_drop_unmapping(vgpu);
	kfree(vgpu->hists);
}

/**
 * mgpu_vgpu_open - open a vGPU for a VMM
 * @vgpu: closed vGPU
 *
 * Context: called by VFIO in the VMM's thread; may sleep.
 * Return: 0, or a negative errno that refuses the open.
 */
int mgpu_vgpu_open(struct mgpu_vgpu *vgpu)
{
	const struct mgpu_backend_ops *ops = vgpu->mdev->ops;
	int ret;

	/* VFIO pins only this module. */
	if (!try_module_get(ops->owner))
		return -ENODEV;

	ret = mgpu_worker_start(vgpu);
	if (ret)
		goto err_module;
	ret = mgpu_ring_open(vgpu);
	if (ret)
		goto err_worker;
	ret = mgpu_hostmem_open(vgpu);
	if (ret)
		goto err_ring;
	if (ops->vgpu_open) {
		ret = ops->vgpu_open(vgpu);
		if (ret)
			goto err_hostmem;
	}

	mutex_lock(&vgpu->lock);
	mgpu_config_reset(vgpu);
	mgpu_vgpu_reset(vgpu);
	mutex_unlock(&vgpu->lock);

	WRITE_ONCE(vgpu->tgid, task_tgid_nr(current));
	trace_mgpu_vgpu_open(vgpu->id, vgpu->mdev->id, vgpu->tgid);
	mgpu_netlink_event(vgpu, MGPU_EVENT_OPENED);
	return 0;

err_hostmem:
	mgpu_hostmem_close(vgpu);
err_ring:
	mgpu_ring_close(vgpu);
err_worker:
	mgpu_worker_stop(vgpu);
err_module:
	module_put(ops->owner);
	return ret;
}

/**
 * mgpu_vgpu_close - stop and release a vGPU that the VMM has closed
 * @vgpu: open vGPU
 *
 * Context: called by VFIO in the VMM's thread; may sleep.
 */
void mgpu_vgpu_close(struct mgpu_vgpu *vgpu)
{
	const struct mgpu_backend_ops *ops = vgpu->mdev->ops;

	mutex_lock(&vgpu->lock);
	mgpu_irq_release(vgpu);
	mgpu_vgpu_reset(vgpu);
	mutex_unlock(&vgpu->lock);

	mgpu_worker_stop(vgpu);
	mgpu_netlink_stop(vgpu);
	mgpu_mem_drop_cache(vgpu);
	mgpu_mem_drop_unmapping(vgpu);
	mgpu_ring_close(vgpu);
	mgpu_hostmem_close(vgpu);
	mgpu_screen_release(vgpu);
	WARN_ON(!RB_EMPTY_ROOT(&vgpu->mem.tree.rb_root));
	WARN_ON(atomic64_read(&vgpu->mem.used));

	if (ops->vgpu_close)
		ops->vgpu_close(vgpu);

	trace_mgpu_vgpu_close(vgpu->id, vgpu->mdev->id, vgpu->tgid);
	WRITE_ONCE(vgpu->tgid, 0);
	mgpu_netlink_event(vgpu, MGPU_EVENT_CLOSED);
	module_put(ops->owner);
}

/*
 * Stop everything that runs for the vGPU, in the order in which work gets there: the
 * ring takes no commands, no thread of the VMM asks for a picture, the back end for no turn,
 * contexts start no jobs, and no job is in flight.
 */
static void vgpu_stop(struct mgpu_vgpu *vgpu)
{
	mgpu_ring_quiesce(vgpu);
	mgpu_readback_quiesce(vgpu);
	mgpu_turn_quiesce(vgpu);
	mgpu_ring_cancel(vgpu);
	mgpu_context_end_all(vgpu);
	mgpu_sched_cancel(vgpu);
	mgpu_worker_cancel(vgpu);
}

/**
 * mgpu_vgpu_reset - reset the device that the guest sees
 * @vgpu: vGPU
 *
 * Afterwards no job is in flight, no answer is owed, the vGPU holds no resource and
 * no guest memory but the cache of single pages, and the registers have their
 * initial values.
 *
 * Context: must hold vgpu->lock; may sleep.
 */
void mgpu_vgpu_reset(struct mgpu_vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);

	vgpu_stop(vgpu);

	mutex_lock(&vgpu->ring_lock);
	mgpu_work_free_all(vgpu);
	mgpu_devcmd_stop(vgpu);
	mgpu_readback_stop(vgpu);
	mgpu_turn_stop(vgpu);
	mgpu_ring_reset(vgpu);
	mutex_unlock(&vgpu->ring_lock);

	mgpu_screen_reset(vgpu);
	mgpu_devctx_release_all(vgpu);
	mgpu_resource_release_all(vgpu);
	mgpu_transport_reset(vgpu);
}

/**
 * mgpu_hist_add - count a time in a histogram
 * @h: histogram
 * @ns: nanoseconds
 *
 * Context: any.
 */
void mgpu_hist_add(struct mgpu_hist *h, u64 ns)
{
	u64 us = div_u64(ns, NSEC_PER_USEC);
	u32 bucket = us ? ilog2(us) : 0;

	atomic64_inc(&h->count[min(bucket, MGPU_HIST_BUCKETS - 1)]);
}

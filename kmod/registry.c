// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of devices and vGPUs, and their settings.
 */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "mgpu.h"

DEFINE_MUTEX(mgpu_registry_lock);	/* devices, vGPUs and their settings */
LIST_HEAD(mgpu_devices);
DEFINE_XARRAY_ALLOC1(mgpu_vgpus);

static u32 next_device_id = 1;	/* mgpu_registry_lock */

/**
 * mgpu_device_register - offer a GPU to virtual machines
 * @parent: the device that becomes the mdev parent; its driver's name is the
 *	prefix of the types in sysfs
 * @ops: the back end's callbacks; must stay valid
 * @caps: capabilities of the device; copied
 * @priv: private data of the back end, for mgpu_device_priv()
 *
 * Context: task context, may sleep.  vGPUs may be created and jobs submitted before it
 * returns.
 * Return: the device, or an ERR_PTR: -EINVAL; -ENOMEM; -EEXIST, @parent has mediated
 * devices already; or an error of the mdev core.
 */
struct mgpu_device *mgpu_device_register(struct device *parent,
					 const struct mgpu_backend_ops *ops,
					 const struct mgpu_device_caps *caps,
					 void *priv)
{
	struct mgpu_device *mdev;
	int ret;

	if (!caps->engines || !caps->max_vgpus ||
	    (caps->nr_capsets && (caps->compute || !ops->exec)) ||
	    (!caps->nr_capsets && (caps->context_init || caps->blobs)))
		return ERR_PTR(-EINVAL);

	mdev = kzalloc(sizeof(*mdev), GFP_KERNEL);
	if (!mdev)
		return ERR_PTR(-ENOMEM);

	mdev->dev = parent;
	mdev->name = dev_name(parent);
	mdev->ops = ops;
	mdev->caps = *caps;
	mdev->priv = priv;
	INIT_LIST_HEAD(&mdev->vgpus);
	atomic_set(&mdev->gen, 1);
	mgpu_devnums_init(&mdev->res_nums);
	mgpu_devnums_init(&mdev->ctx_nums);
	ret = mgpu_clear_init(mdev);
	if (ret) {
		kfree(mdev);
		return ERR_PTR(ret);
	}

	mutex_lock(&mgpu_registry_lock);
	mdev->id = next_device_id++;
	mgpu_sched_init(mdev);
	list_add_tail(&mdev->node, &mgpu_devices);
	mgpu_policy_bpf_device_added(mdev);
	mutex_unlock(&mgpu_registry_lock);

	ret = mgpu_mdev_register(mdev);
	if (ret)
		goto err_list;
	return mdev;

err_list:
	mutex_lock(&mgpu_registry_lock);
	mgpu_policy_bpf_device_gone(mdev);
	list_del(&mdev->node);
	mutex_unlock(&mgpu_registry_lock);
	/* A setting of user space may have started the watchdog. */
	mgpu_device_free(mdev);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(mgpu_device_register);

/**
 * mgpu_device_unregister - remove a GPU
 * @mdev: from mgpu_device_register()
 *
 * Asks the VMMs to close its vGPUs and waits until all are closed.  The core calls no
 * callback and submits no job afterwards.  The back end then stops its engines and
 * calls mgpu_device_free().
 *
 * Context: task context; may sleep until the last VMM has closed its vGPU.
 */
void mgpu_device_unregister(struct mgpu_device *mdev)
{
	mgpu_mdev_unregister(mdev);

	mutex_lock(&mgpu_registry_lock);
	WARN_ON(!list_empty(&mdev->vgpus));
	mgpu_policy_bpf_device_gone(mdev);
	list_del(&mdev->node);
	mutex_unlock(&mgpu_registry_lock);
}
EXPORT_SYMBOL_GPL(mgpu_device_unregister);

/**
 * mgpu_device_free - free an unregistered device
 * @mdev: device whose engines have stopped
 */
void mgpu_device_free(struct mgpu_device *mdev)
{
	mgpu_sched_exit(mdev);
	WARN_ON(!xa_empty(&mdev->res_nums.used) || !xa_empty(&mdev->ctx_nums.used));
	mgpu_clear_exit(mdev);
	kfree(mdev);
}
EXPORT_SYMBOL_GPL(mgpu_device_free);

/**
 * mgpu_device_lost - start a new generation after the hardware was reset
 * @mdev: device that does not answer earlier messages any more
 * @culprit: job that made the reset necessary, in flight; NULL if that is not known
 *
 * The contexts and resources of guests on the device are lost; guests get errors until
 * they reset their vGPUs.  The reset counts as a hang of the culprit's vGPU.
 *
 * Context: the back end calls this before it completes the lost jobs.
 */
void mgpu_device_lost(struct mgpu_device *mdev, struct mgpu_job *culprit)
{
	mgpu_sched_lost(mdev, NULL, culprit);
	atomic_inc(&mdev->gen);
}
EXPORT_SYMBOL_GPL(mgpu_device_lost);

/**
 * mgpu_vgpu_lost - start a new generation of one vGPU
 * @vgpu: vGPU whose messages the hardware does not answer any more
 * @culprit: job that it was lost for, in flight; NULL if that is not known
 *
 * Like mgpu_device_lost(), of a device that executes each vGPU's commands apart from the
 * others'.
 *
 * Context: the back end calls this before it completes the lost jobs.
 */
void mgpu_vgpu_lost(struct mgpu_vgpu *vgpu, struct mgpu_job *culprit)
{
	mgpu_sched_lost(vgpu->mdev, vgpu, culprit);
	atomic_inc(&vgpu->losses);
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_lost);

/*
 * Return the generation of a vGPU on its device, from 1.  mgpu_device_lost() and
 * mgpu_vgpu_lost() start the next.
 */
u32 mgpu_vgpu_gen(const struct mgpu_vgpu *vgpu)
{
	return atomic_read(&vgpu->mdev->gen) + atomic_read(&vgpu->losses);
}

/* Return the device of a vGPU. */
struct mgpu_device *mgpu_vgpu_device(const struct mgpu_vgpu *vgpu)
{
	return vgpu->mdev;
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_device);

/* Return the ID of a vGPU. */
u32 mgpu_vgpu_id(const struct mgpu_vgpu *vgpu)
{
	return vgpu->id;
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_id);

/* Return how many bytes of resources a vGPU may have. */
u64 mgpu_vgpu_mem_limit(const struct mgpu_vgpu *vgpu)
{
	return vgpu->type->desc->mem_limit;
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_mem_limit);

/* Return how many bytes of resources a vGPU has. */
u64 mgpu_vgpu_mem_used(const struct mgpu_vgpu *vgpu)
{
	return atomic64_read(&vgpu->mem.used);
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_mem_used);

/* Return the engine time that a vGPU has used since it was created, nanoseconds. */
u64 mgpu_vgpu_engine_ns(const struct mgpu_vgpu *vgpu)
{
	return atomic64_read(&vgpu->stats.engine_ns);
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_engine_ns);

/* Return the UUID of a vGPU. */
const guid_t *mgpu_vgpu_uuid(const struct mgpu_vgpu *vgpu)
{
	return &vgpu->uuid;
}
EXPORT_SYMBOL_GPL(mgpu_vgpu_uuid);

/* Return the generation of the device, from 1; mgpu_device_lost() starts the next. */
u32 mgpu_device_gen(const struct mgpu_device *mdev)
{
	return atomic_read(&mdev->gen);
}
EXPORT_SYMBOL_GPL(mgpu_device_gen);

/**
 * mgpu_device_priv - get the back end's private data
 * @mdev: device
 *
 * Return: @priv of mgpu_device_register().
 */
void *mgpu_device_priv(struct mgpu_device *mdev)
{
	return mdev->priv;
}
EXPORT_SYMBOL_GPL(mgpu_device_priv);

/* Return the device with an ID, or NULL; valid under mgpu_registry_lock. */
struct mgpu_device *mgpu_device_find(u32 id)
{
	struct mgpu_device *mdev;

	lockdep_assert_held(&mgpu_registry_lock);
	list_for_each_entry(mdev, &mgpu_devices, node) {
		if (mdev->id == id)
			return mdev;
	}
	return NULL;
}

/* Return the vGPU with an ID, or NULL; valid under mgpu_registry_lock. */
struct mgpu_vgpu *mgpu_vgpu_find(u32 id)
{
	lockdep_assert_held(&mgpu_registry_lock);
	return xa_load(&mgpu_vgpus, id);
}

/* Return the vGPU with a UUID, or NULL; valid under mgpu_registry_lock. */
struct mgpu_vgpu *mgpu_vgpu_find_uuid(const guid_t *uuid)
{
	struct mgpu_vgpu *vgpu;
	unsigned long id;

	lockdep_assert_held(&mgpu_registry_lock);
	xa_for_each(&mgpu_vgpus, id, vgpu) {
		if (guid_equal(&vgpu->uuid, uuid))
			return vgpu;
	}
	return NULL;
}

/**
 * mgpu_vgpu_mode - get the preferred mode of a guest
 * @vgpu: vGPU
 * @width: set to the width, pixels
 * @height: set to the height, rows
 *
 * Context: any.
 */
void mgpu_vgpu_mode(const struct mgpu_vgpu *vgpu, u32 *width, u32 *height)
{
	const struct mgpu_type_desc *d = vgpu->type->desc;
	u32 mode = READ_ONCE(vgpu->mode) ?: MGPU_MODE(d->max_width,
						      d->max_height);

	*width = mode >> 16;
	*height = mode & 0xffff;
}

/**
 * mgpu_vgpu_apply - put checked settings in force
 * @vgpu: vGPU
 * @set: settings in range
 *
 * A frame that is being held is paced again with the new limit, and the guest gets an
 * event for a new mode.
 *
 * Context: may sleep; must hold mgpu_registry_lock.
 */
void mgpu_vgpu_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set)
{
	lockdep_assert_held(&mgpu_registry_lock);

	mgpu_sched_apply(vgpu, set);
	if (set->mask & MGPU_SET_FPS_FLOOR)
		WRITE_ONCE(vgpu->fps_floor, set->fps_floor);
	if (set->mask & (MGPU_SET_FPS_LIMIT | MGPU_SET_FPS_TARGET))
		mgpu_ring_kick(vgpu);
	if (set->mask & MGPU_SET_MODE && vgpu->mode != set->mode) {
		WRITE_ONCE(vgpu->mode, set->mode);
		mgpu_irq_event(vgpu, VIRTIO_GPU_EVENT_DISPLAY);
	}
}

/**
 * mgpu_device_apply - put checked settings in force
 * @mdev: device
 * @set: settings in range
 *
 * Setting a built-in policy evicts the BPF policy in force.
 *
 * Context: may sleep; must hold mgpu_registry_lock.
 */
void mgpu_device_apply(struct mgpu_device *mdev,
		       const struct mgpu_dev_settings *set)
{
	struct mgpu_policy_exit why = {
		.kind = MGPU_POLICY_EXIT_KIND_SWITCHED,
	};

	lockdep_assert_held(&mgpu_registry_lock);

	if (set->mask & MGPU_DEV_SET_JOB_TIMEOUT) {
		WRITE_ONCE(mdev->sched.job_timeout_ms, set->job_timeout_ms);
		/* The watchdog's next check is due by the old timeout. */
		mod_delayed_work(mgpu_wq, &mdev->sched.watchdog, 0);
	}
	if (set->mask & MGPU_DEV_SET_HANG_LIMIT)
		WRITE_ONCE(mdev->sched.hang_limit, set->hang_limit);
	if (set->mask & MGPU_DEV_SET_SLOTS)
		mgpu_sched_slots(mdev, set->slots);
	if (!(set->mask & MGPU_DEV_SET_POLICY))
		return;

	if (mdev->sched.builtin == set->policy && !mdev->sched.bpf)
		return;
	mdev->sched.builtin = set->policy;
	if (mdev->sched.bpf) {
		snprintf(why.message, sizeof(why.message),
			 "the built-in policy %s was chosen",
			 set->policy->name);
		mgpu_policy_bpf_evict(mdev, &why);
	} else {
		mgpu_sched_use(mdev, set->policy, NULL);
	}
	mgpu_netlink_dev_event(mdev, MGPU_DEV_EVENT_POLICY);
}

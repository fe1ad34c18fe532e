// SPDX-License-Identifier: GPL-2.0-only
/*
 * vGPU types in sysfs, creation and removal of vGPUs.
 */
#include <linux/mdev.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "compute/context.h"
#include "mgpu.h"

/* Highest ID of a vGPU; IDs index arrays that BPF programs and user space share. */
#define MGPU_MAX_ID	4095

#define SMALL	.weight = 100, .mem_limit = 32ULL << 20, .max_resources = 4096, \
		.max_width = 1024, .max_height = 768, .max_instances = 1024
#define MEDIUM	.weight = 200, .mem_limit = 128ULL << 20, .max_resources = 16384, \
		.max_width = 1920, .max_height = 1080, .max_instances = 256
#define LARGE	.weight = 400, .mem_limit = 512ULL << 20, .max_resources = 65536, \
		.max_width = 3840, .max_height = 2160, .max_instances = 64

/* Types with contexts come last: a device without contexts does not register them. */
static const struct mgpu_type_desc mgpu_types[] = {
	{ .name = "small", .pretty = "mgpu small", SMALL },
	{ .name = "medium", .pretty = "mgpu medium", MEDIUM },
	{ .name = "large", .pretty = "mgpu large", LARGE },
	{ .name = "small-render", .pretty = "mgpu small, render",
	  .render = true, SMALL },
	{ .name = "medium-render", .pretty = "mgpu medium, render",
	  .render = true, MEDIUM },
	{ .name = "large-render", .pretty = "mgpu large, render",
	  .render = true, LARGE },
};

static struct mgpu_type *to_mgpu_type(struct mdev_type *mtype)
{
	return container_of(mtype, struct mgpu_type, mtype);
}

static unsigned int type_available(const struct mgpu_type *type)
{
	u32 left = type->mdev->caps.max_vgpus - type->mdev->nr_vgpus;

	lockdep_assert_held(&mgpu_registry_lock);
	return min(left, type->desc->max_instances - type->used);
}

static unsigned int mgpu_get_available(struct mdev_type *mtype)
{
	unsigned int n;

	mutex_lock(&mgpu_registry_lock);
	n = type_available(to_mgpu_type(mtype));
	mutex_unlock(&mgpu_registry_lock);
	return n;
}

static ssize_t mgpu_show_description(struct mdev_type *mtype, char *buf)
{
	const struct mgpu_type *type = to_mgpu_type(mtype);
	const struct mgpu_type_desc *d = type->desc;

	return sysfs_emit(buf,
			  "virtio-gpu %s, largest mode %ux%u, memory %llu MiB, weight %u, resources %u, contexts %u\n",
			  !d->render ? "2D" :
			  type->mdev->caps.nr_capsets ? "2D and OpenGL" :
							"2D and compute",
			  d->max_width,
			  d->max_height, d->mem_limit >> 20, d->weight,
			  d->max_resources, d->render ? MGPU_MAX_CONTEXTS : 0);
}

/*
 * Create a vGPU.  mgpu_registry_lock must not be held across calls into VFIO: they take
 * locks under which open_device() and close_device() run.
 */
static int mgpu_probe(struct mdev_device *mdevice)
{
	struct mgpu_type *type = to_mgpu_type(mdevice->type);
	struct mgpu_device *mdev = type->mdev;
	static u32 next_id;	/* mgpu_registry_lock */
	struct mgpu_vgpu *vgpu;
	int ret;

	vgpu = vfio_alloc_device(mgpu_vgpu, vdev, &mdevice->dev,
				 &mgpu_vfio_ops);
	if (IS_ERR(vgpu))
		return PTR_ERR(vgpu);

	vgpu->mdev = mdev;
	vgpu->type = type;
	guid_copy(&vgpu->uuid, &mdevice->uuid);

	mutex_lock(&mgpu_registry_lock);
	if (!type_available(type)) {
		ret = -ENOSPC;
		goto err_unlock;
	}
	ret = xa_alloc_cyclic(&mgpu_vgpus, &vgpu->id, vgpu,
			      XA_LIMIT(1, MGPU_MAX_ID), &next_id, GFP_KERNEL);
	if (ret < 0)
		goto err_unlock;
	type->used++;
	mdev->nr_vgpus++;
	list_add_tail(&vgpu->node, &mdev->vgpus);
	mgpu_sched_attach(vgpu);
	mutex_unlock(&mgpu_registry_lock);

	dev_set_drvdata(&mdevice->dev, vgpu);
	/*
	 * Not as dev_groups of the driver: without memory for them, Linux 6.1 warns that it
	 * cannot remove what it could not add.
	 */
	ret = sysfs_create_groups(&mdevice->dev.kobj, mgpu_vgpu_groups);
	if (ret)
		goto err_forget;
	ret = vfio_register_emulated_iommu_dev(&vgpu->vdev);
	if (ret)
		goto err_groups;

	mgpu_netlink_event(vgpu, MGPU_EVENT_ADDED);
	return 0;

err_unlock:
	mutex_unlock(&mgpu_registry_lock);
	vfio_put_device(&vgpu->vdev);
	return ret;

err_groups:
	sysfs_remove_groups(&mdevice->dev.kobj, mgpu_vgpu_groups);
err_forget:
	mutex_lock(&mgpu_registry_lock);
	mgpu_sched_detach(vgpu);
	list_del(&vgpu->node);
	mdev->nr_vgpus--;
	type->used--;
	xa_erase(&mgpu_vgpus, vgpu->id);
	mutex_unlock(&mgpu_registry_lock);
	synchronize_rcu_expedited();
	vfio_put_device(&vgpu->vdev);
	return ret;
}

static void mgpu_remove(struct mdev_device *mdevice)
{
	struct mgpu_vgpu *vgpu = dev_get_drvdata(&mdevice->dev);

	/* This waits for reads and writes. */
	sysfs_remove_groups(&mdevice->dev.kobj, mgpu_vgpu_groups);

	/* This asks the VMM to close the device, and waits until it has. */
	vfio_unregister_group_dev(&vgpu->vdev);

	mutex_lock(&mgpu_registry_lock);
	mgpu_sched_detach(vgpu);
	list_del(&vgpu->node);
	vgpu->mdev->nr_vgpus--;
	vgpu->type->used--;
	xa_erase(&mgpu_vgpus, vgpu->id);
	mutex_unlock(&mgpu_registry_lock);

	mgpu_netlink_event(vgpu, MGPU_EVENT_REMOVED);

	/* BPF policies look vGPUs up under RCU. */
	synchronize_rcu_expedited();
	vfio_put_device(&vgpu->vdev);
}

static struct mdev_driver mgpu_mdev_driver = {
	.device_api = VFIO_DEVICE_API_PCI_STRING,
	.probe = mgpu_probe,
	.remove = mgpu_remove,
	.get_available = mgpu_get_available,
	.show_description = mgpu_show_description,
	.driver = {
		.name = "mgpu",
		.owner = THIS_MODULE,
		.mod_name = KBUILD_MODNAME,
	},
};

int mgpu_mdev_init(void)
{
	return mdev_register_driver(&mgpu_mdev_driver);
}

void mgpu_mdev_exit(void)
{
	mdev_unregister_driver(&mgpu_mdev_driver);
}

/* Return whether a device has types of mediated devices, which may be another module's. */
static bool is_parent(const struct device *dev)
{
	struct kernfs_node *types = sysfs_get_dirent(dev->kobj.sd, "mdev_supported_types");

	sysfs_put(types);
	return types;
}

/*
 * Register the vGPU types of a device.  They are allocated for each device, because a
 * struct mdev_type cannot be registered twice.
 */
int mgpu_mdev_register(struct mgpu_device *mdev)
{
	unsigned int nr = ARRAY_SIZE(mgpu_types), i;
	int ret;

	/* sysfs would warn of the second folder of types. */
	if (is_parent(mdev->dev))
		return -EEXIST;
	while (!mdev->caps.compute && !mdev->caps.nr_capsets &&
	       mgpu_types[nr - 1].render)
		nr--;

	mdev->types = kcalloc(nr, sizeof(*mdev->types), GFP_KERNEL);
	mdev->mtypes = kcalloc(nr, sizeof(*mdev->mtypes), GFP_KERNEL);
	if (!mdev->types || !mdev->mtypes) {
		ret = -ENOMEM;
		goto err_free;
	}

	for (i = 0; i < nr; i++) {
		mdev->types[i].desc = &mgpu_types[i];
		mdev->types[i].mdev = mdev;
		mdev->types[i].mtype.sysfs_name = mgpu_types[i].name;
		mdev->types[i].mtype.pretty_name = mgpu_types[i].pretty;
		mdev->mtypes[i] = &mdev->types[i].mtype;
	}

	ret = mdev_register_parent(&mdev->parent, mdev->dev, &mgpu_mdev_driver,
				   mdev->mtypes, nr);
	if (ret)
		goto err_free;
	return 0;

err_free:
	kfree(mdev->mtypes);
	kfree(mdev->types);
	return ret;
}

void mgpu_mdev_unregister(struct mgpu_device *mdev)
{
	mdev_unregister_parent(&mdev->parent);
	kfree(mdev->mtypes);
	kfree(mdev->types);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vGPU as a VFIO device: regions, interrupts, reset, the screen.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vfio.h>

#include "compat.h"
#include "mgpu.h"
#include "trace.h"

#define MGPU_NR_REGIONS		(MGPU_REGION_DISPLAY + 1)
#define MGPU_NR_IRQS		VFIO_PCI_NUM_IRQS

/* A region's index is in the upper bits of the file offset. */
#define MGPU_OFFSET_SHIFT	40
#define MGPU_OFFSET(index)	((u64)(index) << MGPU_OFFSET_SHIFT)
#define MGPU_OFFSET_MASK	(MGPU_OFFSET(1) - 1)

static_assert(MGPU_REGION_DISPLAY == VFIO_PCI_NUM_REGIONS);

static int mgpu_vfio_init(struct vfio_device *vdev)
{
	mgpu_vgpu_init(to_mgpu_vgpu(vdev));
	return 0;
}

static void mgpu_vfio_release(struct vfio_device *vdev)
{
	mgpu_vgpu_exit(to_mgpu_vgpu(vdev));
	mgpu_compat_free_device(vdev);
}

/*
 * VFIO completes a device removal when no file has the device open.  On kernels where
 * the VMM's container must be closed before that (MGPU_CONTAINER_CLOSE_RACES), the
 * module opens a file for each open vGPU, which holds a reference to the device.  A
 * task that ends closes device and container in one round of its task work.  Closing
 * the device puts the module's file, which is released in the next round.
 */
#if MGPU_CONTAINER_CLOSE_RACES
static int hold_release(struct inode *inode, struct file *file)
{
	struct vfio_device *vdev = file->private_data;

	mgpu_compat_put_registration(vdev);
	return 0;
}

static const struct file_operations hold_fops = {
	.owner = THIS_MODULE,
	.release = hold_release,
};

static int mgpu_vfio_hold(struct mgpu_vgpu *vgpu)
{
	struct file *file = anon_inode_getfile("[mgpu]", &hold_fops, &vgpu->vdev,
					       O_RDONLY);

	if (IS_ERR(file))
		return PTR_ERR(file);
	mgpu_compat_get_registration(&vgpu->vdev);
	vgpu->hold = file;
	return 0;
}

static void mgpu_vfio_let_go(struct mgpu_vgpu *vgpu)
{
	fput(vgpu->hold);
}
#else
static int mgpu_vfio_hold(struct mgpu_vgpu *vgpu)
{
	return 0;
}

static void mgpu_vfio_let_go(struct mgpu_vgpu *vgpu)
{
}
#endif

static int mgpu_vfio_open(struct vfio_device *vdev)
{
	struct mgpu_vgpu *vgpu = to_mgpu_vgpu(vdev);
	int ret = mgpu_vfio_hold(vgpu);

	if (ret)
		return ret;
	ret = mgpu_vgpu_open(vgpu);
	if (ret)
		mgpu_vfio_let_go(vgpu);
	return ret;
}

static void mgpu_vfio_close(struct vfio_device *vdev)
{
	struct mgpu_vgpu *vgpu = to_mgpu_vgpu(vdev);

	mgpu_vgpu_close(vgpu);
	mgpu_vfio_let_go(vgpu);
}

/* ---- regions ---- */

/* Read at most four bytes of a region.  Return 0 or a negative errno. */
static int region_read(struct mgpu_vgpu *vgpu, u32 index, u64 off, void *buf,
		       u32 len)
{
	int ret;

	switch (index) {
	case VFIO_PCI_CONFIG_REGION_INDEX:
		mutex_lock(&vgpu->lock);
		ret = mgpu_config_read(vgpu, off, buf, len);
		mutex_unlock(&vgpu->lock);
		return ret;
	case MGPU_BAR_VIRTIO:
		mutex_lock(&vgpu->lock);
		ret = mgpu_bar_read(vgpu, off, buf, len);
		mutex_unlock(&vgpu->lock);
		return ret;
	case MGPU_BAR_MSIX:
		/* The VMM emulates the table, and applies it with SET_IRQS. */
		if (off + len > MGPU_BAR_MSIX_SIZE)
			return -EINVAL;
		memset(buf, 0, len);
		return 0;
	case MGPU_BAR_HOSTMEM:
		return mgpu_hostmem_access(vgpu, off, buf, len, false);
	default:
		return -EINVAL;
	}
}

static int region_write(struct mgpu_vgpu *vgpu, u32 index, u64 off,
			void *buf, u32 len)
{
	int ret;

	switch (index) {
	case VFIO_PCI_CONFIG_REGION_INDEX:
		mutex_lock(&vgpu->lock);
		ret = mgpu_config_write(vgpu, off, buf, len);
		mutex_unlock(&vgpu->lock);
		return ret;
	case MGPU_BAR_VIRTIO:
		/* The doorbell is the hot path and needs no lock. */
		if (off >= MGPU_NOTIFY_OFF && off < MGPU_BAR_VIRTIO_SIZE) {
			atomic64_inc(&vgpu->stats.doorbells);
			mgpu_ring_doorbell(vgpu);
			return 0;
		}
		mutex_lock(&vgpu->lock);
		ret = mgpu_bar_write(vgpu, off, buf, len);
		mutex_unlock(&vgpu->lock);
		return ret;
	case MGPU_BAR_MSIX:
		return off + len > MGPU_BAR_MSIX_SIZE ? -EINVAL : 0;
	case MGPU_BAR_HOSTMEM:
		return mgpu_hostmem_access(vgpu, off, buf, len, true);
	default:
		return -EINVAL;
	}
}

/* Return the width of the largest naturally aligned access, bytes. */
static u32 access_width(u64 off, size_t left)
{
	if (left >= 4 && !(off & 3))
		return 4;
	if (left >= 2 && !(off & 1))
		return 2;
	return 1;
}

static ssize_t mgpu_vfio_read(struct vfio_device *vdev, char __user *buf,
			      size_t count, loff_t *ppos)
{
	struct mgpu_vgpu *vgpu = to_mgpu_vgpu(vdev);
	u32 index = *ppos >> MGPU_OFFSET_SHIFT;
	u64 off = *ppos & MGPU_OFFSET_MASK;
	size_t done = 0;
	ssize_t n;
	u32 val, w;
	int ret;

	if (index == MGPU_REGION_DISPLAY) {
		n = mgpu_screen_read(vgpu, buf, count, off);
		if (n > 0)
			*ppos += n;
		return n;
	}

	while (done < count) {
		w = access_width(off + done, count - done);
		val = 0;
		ret = region_read(vgpu, index, off + done, &val, w);
		if (ret)
			return ret;
		if (copy_to_user(buf + done, &val, w))
			return -EFAULT;
		done += w;
	}
	*ppos += done;
	return done;
}

static ssize_t mgpu_vfio_write(struct vfio_device *vdev,
			       const char __user *buf, size_t count,
			       loff_t *ppos)
{
	struct mgpu_vgpu *vgpu = to_mgpu_vgpu(vdev);
	u32 index = *ppos >> MGPU_OFFSET_SHIFT;
	u64 off = *ppos & MGPU_OFFSET_MASK;
	size_t done = 0;
	u32 val, w;
	int ret;

	while (done < count) {
		w = access_width(off + done, count - done);
		if (copy_from_user(&val, buf + done, w))
			return -EFAULT;
		ret = region_write(vgpu, index, off + done, &val, w);
		if (ret)
			return ret;
		done += w;
	}
	*ppos += done;
	return done;
}

static int mgpu_vfio_mmap(struct vfio_device *vdev,
			  struct vm_area_struct *vma)
{
	u64 off = (u64)vma->vm_pgoff << PAGE_SHIFT;

	switch (off >> MGPU_OFFSET_SHIFT) {
	case MGPU_REGION_DISPLAY:
		return off & MGPU_OFFSET_MASK ? -EINVAL :
		       mgpu_screen_mmap(to_mgpu_vgpu(vdev), vma);
	case MGPU_BAR_HOSTMEM:
		return mgpu_hostmem_mmap(to_mgpu_vgpu(vdev), vma,
					 MGPU_OFFSET(MGPU_BAR_HOSTMEM));
	default:
		return -EINVAL;
	}
}

/* ---- ioctls ---- */

static long get_info(struct mgpu_vgpu *vgpu, unsigned long arg)
{
	unsigned long minsz = offsetofend(struct vfio_device_info, num_irqs);
	struct vfio_device_info info = {};

	if (copy_from_user(&info, (void __user *)arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;

	info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	info.num_regions = MGPU_NR_REGIONS;
	info.num_irqs = MGPU_NR_IRQS;
	return copy_to_user((void __user *)arg, &info, minsz) ? -EFAULT : 0;
}

/* Describe the region @info->index. No region has a capability to add to @caps. */
static int get_region_info(struct vfio_device *vdev, struct vfio_region_info *info,
			   struct vfio_info_cap *caps)
{
	struct mgpu_vgpu *vgpu = to_mgpu_vgpu(vdev);

	if (info->index >= MGPU_NR_REGIONS)
		return -EINVAL;

	info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	info->size = 0;
	info->cap_offset = 0;
	info->offset = MGPU_OFFSET(info->index);

	switch (info->index) {
	case VFIO_PCI_CONFIG_REGION_INDEX:
		info->size = MGPU_CFG_SIZE;
		break;
	case MGPU_BAR_VIRTIO:
		info->size = MGPU_BAR_VIRTIO_SIZE;
		break;
	case MGPU_BAR_MSIX:
		info->size = MGPU_BAR_MSIX_SIZE;
		break;
	case MGPU_BAR_HOSTMEM:
		info->size = mgpu_hostmem_size(vgpu);
		info->flags |= VFIO_REGION_INFO_FLAG_MMAP;
		if (!info->size)
			info->flags = 0;
		break;
	case MGPU_REGION_DISPLAY:
		info->size = mgpu_screen_size(vgpu);
		info->flags = VFIO_REGION_INFO_FLAG_READ |
			      VFIO_REGION_INFO_FLAG_MMAP;
		break;
	default:
		info->flags = 0;
		break;
	}
	return 0;
}

static int nr_irqs_of(u32 index)
{
	switch (index) {
	case VFIO_PCI_INTX_IRQ_INDEX:
	case VFIO_PCI_ERR_IRQ_INDEX:
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return MGPU_MSIX_VECTORS;
	default:
		return 0;
	}
}

static long get_irq_info(struct mgpu_vgpu *vgpu, unsigned long arg)
{
	unsigned long minsz = offsetofend(struct vfio_irq_info, count);
	struct vfio_irq_info info = {};

	if (copy_from_user(&info, (void __user *)arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz || info.index >= MGPU_NR_IRQS)
		return -EINVAL;

	info.count = nr_irqs_of(info.index);
	info.flags = info.count ? VFIO_IRQ_INFO_EVENTFD : 0;
	if (info.index == VFIO_PCI_INTX_IRQ_INDEX)
		info.flags |= VFIO_IRQ_INFO_MASKABLE |
			      VFIO_IRQ_INFO_AUTOMASKED;
	else if (info.count)
		info.flags |= VFIO_IRQ_INFO_NORESIZE;
	return copy_to_user((void __user *)arg, &info, minsz) ? -EFAULT : 0;
}

static long set_irqs(struct mgpu_vgpu *vgpu, unsigned long arg)
{
	unsigned long minsz = offsetofend(struct vfio_irq_set, count);
	struct vfio_irq_set hdr;
	size_t data_size = 0;
	void *data = NULL;
	int ret;

	if (copy_from_user(&hdr, (void __user *)arg, minsz))
		return -EFAULT;
	if (hdr.index >= MGPU_NR_IRQS)
		return -EINVAL;
	ret = vfio_set_irqs_validate_and_prepare(&hdr, nr_irqs_of(hdr.index),
						 MGPU_NR_IRQS, &data_size);
	if (ret)
		return ret;
	if (data_size) {
		data = memdup_user((void __user *)(arg + minsz), data_size);
		if (IS_ERR(data))
			return PTR_ERR(data);
	}

	mutex_lock(&vgpu->lock);
	ret = mgpu_irq_set(vgpu, hdr.flags, hdr.index, hdr.start, hdr.count,
			   data);
	mutex_unlock(&vgpu->lock);
	kfree(data);
	return ret;
}

static long vfio_reset(struct mgpu_vgpu *vgpu)
{
	mutex_lock(&vgpu->lock);
	mgpu_config_reset(vgpu);
	mgpu_vgpu_reset(vgpu);
	mutex_unlock(&vgpu->lock);
	return 0;
}

static long query_gfx_plane(struct mgpu_vgpu *vgpu, unsigned long arg)
{
	unsigned long minsz = offsetofend(struct vfio_device_gfx_plane_info,
					  region_index);
	struct vfio_device_gfx_plane_info plane = {};
	int ret;

	if (copy_from_user(&plane, (void __user *)arg, minsz))
		return -EFAULT;
	if (plane.argsz < minsz)
		return -EINVAL;

	ret = mgpu_screen_query(vgpu, &plane);
	if (ret)
		return ret;
	return copy_to_user((void __user *)arg, &plane, minsz) ? -EFAULT : 0;
}

static long get_gfx_dmabuf(struct mgpu_vgpu *vgpu, unsigned long arg)
{
	u32 id;

	if (get_user(id, (u32 __user *)arg))
		return -EFAULT;
	return mgpu_screen_get_buf(vgpu, id);
}

static long mgpu_vfio_ioctl(struct vfio_device *vdev, unsigned int cmd,
			    unsigned long arg)
{
	struct mgpu_vgpu *vgpu = to_mgpu_vgpu(vdev);

	switch (cmd) {
	case VFIO_DEVICE_GET_INFO:
		return get_info(vgpu, arg);
	case VFIO_DEVICE_GET_REGION_INFO:
		return mgpu_compat_region_info(vdev, arg, get_region_info);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return get_irq_info(vgpu, arg);
	case VFIO_DEVICE_SET_IRQS:
		return set_irqs(vgpu, arg);
	case VFIO_DEVICE_RESET:
		return vfio_reset(vgpu);
	case VFIO_DEVICE_QUERY_GFX_PLANE:
		return query_gfx_plane(vgpu, arg);
	case VFIO_DEVICE_GET_GFX_DMABUF:
		return get_gfx_dmabuf(vgpu, arg);
	default:
		return -ENOTTY;
	}
}

static void mgpu_vfio_request(struct vfio_device *vdev, unsigned int count)
{
	mgpu_irq_request(to_mgpu_vgpu(vdev));
}

static void mgpu_vfio_dma_unmap(struct vfio_device *vdev, u64 iova, u64 len)
{
	mgpu_mem_unmap(to_mgpu_vgpu(vdev), iova, len);
}

const struct vfio_device_ops mgpu_vfio_ops = {
	.name = "mgpu",
	.init = mgpu_vfio_init,
	.release = mgpu_vfio_release,
	.open_device = mgpu_vfio_open,
	.close_device = mgpu_vfio_close,
	.read = mgpu_vfio_read,
	.write = mgpu_vfio_write,
	.ioctl = mgpu_vfio_ioctl,
	.mmap = mgpu_vfio_mmap,
	.request = mgpu_vfio_request,
	.dma_unmap = mgpu_vfio_dma_unmap,
	MGPU_REGION_INFO_OPS(get_region_info)
	MGPU_IOMMUFD_OPS
};

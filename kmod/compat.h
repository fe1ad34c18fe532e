/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel versions, and nothing else: no other file tests
 * LINUX_VERSION_CODE.  Each entry starts with the first kernel that has the newer form;
 * remove the entry when that is the oldest supported kernel (6.1 now).
 */
#ifndef MGPU_COMPAT_H
#define MGPU_COMPAT_H

#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <linux/vfio.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "mgpu needs Linux 6.1 or later"
#endif

/* 6.3: vfio_iommufd_emulated_*(); older kernels have no such callbacks. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0) && \
	IS_ENABLED(CONFIG_IOMMUFD)
#define MGPU_IOMMUFD_OPS						\
	.bind_iommufd = vfio_iommufd_emulated_bind,			\
	.unbind_iommufd = vfio_iommufd_emulated_unbind,			\
	.attach_ioas = vfio_iommufd_emulated_attach_ioas,		\
	.detach_ioas = vfio_iommufd_emulated_detach_ioas,
#else
#define MGPU_IOMMUFD_OPS
#endif

/* 6.3: the core frees the device after ->release(). */
static inline void mgpu_compat_free_device(struct vfio_device *vdev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vfio_free_device(vdev);
#endif
}

/*
 * 6.3: VFIO does not notify the IOMMU driver when a container is closed.  Before, VFIO
 * notifies it without a lock, and the kernel crashes if a device removal frees the
 * container's last group meanwhile.  See mgpu_vfio_hold().
 */
#define MGPU_CONTAINER_CLOSE_RACES					\
	(LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0))

/*
 * Hold a device's removal up.  The members are private to VFIO, which exports no
 * function for that: vfio_unregister_group_dev() drops the first reference and waits for
 * the completion.  These are vfio_device_try_get_registration() and
 * vfio_device_put_registration() of those kernels, which are not changed any more.  The
 * caller is in ->open_device(), where VFIO itself has a reference.
 */
#if MGPU_CONTAINER_CLOSE_RACES
static inline void mgpu_compat_get_registration(struct vfio_device *vdev)
{
	refcount_inc(&vdev->refcount);
}

static inline void mgpu_compat_put_registration(struct vfio_device *vdev)
{
	if (refcount_dec_and_test(&vdev->refcount))
		complete(&vdev->comp);
}
#endif

/* 6.3: vma->vm_flags is changed through helpers. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_clear(struct vm_area_struct *vma,
				  unsigned long flags)
{
	vma->vm_flags &= ~flags;
}

static inline void vm_flags_set(struct vm_area_struct *vma,
				unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/* 6.4: __bpf_kfunc marks kfuncs. */
#ifndef __bpf_kfunc
#define __bpf_kfunc __used noinline
#endif

/*
 * 6.6: a fault at a mapping of a file may have the lock of the VMA in place of mmap_lock, and
 * a helper releases what it has.
 */
static inline void mgpu_compat_release_fault_lock(struct vm_fault *vmf)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	release_fault_lock(vmf);
#else
	mmap_read_unlock(vmf->vma->vm_mm);
#endif
}

/* 6.8: eventfd_signal() has no count and always adds 1. */
static inline void mgpu_compat_eventfd_signal(struct eventfd_ctx *ctx)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	eventfd_signal(ctx, 1);
#else
	eventfd_signal(ctx);
#endif
}

/* 6.9: sets of kfuncs have a flag of their own. */
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START(name)	BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)	BTF_SET8_END(name)
#endif

/* 7.3 at the latest: arguments of every kfunc are trusted, and there is no flag for it. */
#ifndef KF_TRUSTED_ARGS
#define KF_TRUSTED_ARGS		0
#endif

/* 6.9: modules can have struct_ops, which BPF programs implement. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0) &&			\
	IS_ENABLED(CONFIG_BPF_SYSCALL) && IS_ENABLED(CONFIG_BPF_JIT) &&	\
	IS_ENABLED(CONFIG_DEBUG_INFO_BTF_MODULES)
#define MGPU_HAS_STRUCT_OPS	1
#else
#define MGPU_HAS_STRUCT_OPS	0
#endif

#if MGPU_HAS_STRUCT_OPS
/* 6.10: the sleepable flag moved from prog->aux to the program. */
static inline bool mgpu_compat_prog_sleepable(const struct bpf_prog *prog)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	return prog->sleepable;
#else
	return prog->aux->sleepable;
#endif
}

/*
 * 6.11: the callbacks of struct_ops get the link, which they may detach.  Before, they
 * get no link, and there is nothing to detach.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define MGPU_STRUCT_OPS_LINK(reg, unreg, update)			\
	static int reg##_compat(void *kdata, struct bpf_link *link)	\
	{								\
		return reg(kdata, link);				\
	}								\
	static void unreg##_compat(void *kdata, struct bpf_link *link)	\
	{								\
		unreg(kdata);						\
	}								\
	static int update##_compat(void *kdata, void *old,		\
				   struct bpf_link *link)		\
	{								\
		return update(kdata, old);				\
	}
static inline bool mgpu_compat_link_get(struct bpf_link *link)
{
	return !IS_ERR(bpf_link_inc_not_zero(link));
}
#else
#define MGPU_STRUCT_OPS_LINK(reg, unreg, update)			\
	static int reg##_compat(void *kdata)				\
	{								\
		return reg(kdata, NULL);				\
	}								\
	static void unreg##_compat(void *kdata)				\
	{								\
		unreg(kdata);						\
	}								\
	static int update##_compat(void *kdata, void *old)		\
	{								\
		return update(kdata, old);				\
	}
static inline bool mgpu_compat_link_get(struct bpf_link *link)
{
	return false;
}
#endif
#endif /* MGPU_HAS_STRUCT_OPS */

/* 6.11: platform drivers' ->remove() returns nothing. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define MGPU_PLATFORM_REMOVE(fn)					\
	static void fn##_compat(struct platform_device *pdev)		\
	{								\
		fn(pdev);						\
	}
#else
#define MGPU_PLATFORM_REMOVE(fn)					\
	static int fn##_compat(struct platform_device *pdev)		\
	{								\
		fn(pdev);						\
		return 0;						\
	}
#endif

/*
 * 6.12: follow_pfnmap_start() replaces follow_pte(), which takes a VMA since 6.10.
 *
 * Get the page frame at an address of a VM_PFNMAP mapping; @vma->vm_mm's mmap_lock must be
 * held.  Return false if there is none that can be written.
 */
static inline bool mgpu_compat_writable_pfn(struct vm_area_struct *vma, unsigned long addr,
					    unsigned long *pfn)
{
	bool writable;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	struct follow_pfnmap_args args = { .vma = vma, .address = addr };

	if (follow_pfnmap_start(&args))
		return false;
	*pfn = args.pfn;
	writable = args.writable;
	follow_pfnmap_end(&args);
#else
	spinlock_t *ptl;	/* of the page table */
	pte_t *pte;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	if (follow_pte(vma, addr, &pte, &ptl))
#else
	if (follow_pte(vma->vm_mm, addr, &pte, &ptl))
#endif
		return false;
	/* It locks, and is not annotated so. */
	__acquire(ptl);
	*pfn = pte_pfn(*pte);
	writable = pte_write(*pte);
	pte_unmap_unlock(pte, ptl);
#endif
	return writable;
}

/* 6.13: hrtimer_setup() replaces hrtimer_init(). */
static inline void
mgpu_compat_hrtimer_setup(struct hrtimer *timer,
			  enum hrtimer_restart (*fn)(struct hrtimer *),
			  clockid_t clock, enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fn, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
#endif
}

/* 6.13: the name of a namespace of symbols is a string. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define MGPU_IMPORT_DMA_BUF()	MODULE_IMPORT_NS(DMA_BUF)
#else
#define MGPU_IMPORT_DMA_BUF()	MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * 6.19: VFIO answers VFIO_DEVICE_GET_REGION_INFO: it copies the structure, and calls
 * ->get_region_info_caps() in place of ->ioctl().
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define MGPU_REGION_INFO_OPS(fn)	.get_region_info_caps = fn,
#else
#define MGPU_REGION_INFO_OPS(fn)
#endif

/* Answer VFIO_DEVICE_GET_REGION_INFO in ->ioctl(), which older kernels call for it. */
static inline long
mgpu_compat_region_info(struct vfio_device *vdev, unsigned long arg,
			int (*fn)(struct vfio_device *vdev, struct vfio_region_info *info,
				  struct vfio_info_cap *caps))
{
	unsigned long minsz = offsetofend(struct vfio_region_info, offset);
	struct vfio_region_info info = {};
	int ret;

	if (copy_from_user(&info, (void __user *)arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	ret = fn(vdev, &info, NULL);
	if (ret)
		return ret;
	return copy_to_user((void __user *)arg, &info, minsz) ? -EFAULT : 0;
}

#endif /* MGPU_COMPAT_H */

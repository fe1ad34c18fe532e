// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of the device that a guest maps.
 *
 * The back end hands pages over that hold a blob (host_pages.c).  A fault of the VMM puts a page
 * of them into its page tables; VM_PFNMAP keeps others from pinning it there.  When the guest
 * unmaps or releases the blob, the pages are taken from the VMM before they are released.
 * Where nothing is mapped, the VMM finds a page of the vGPU's own: a guest that accesses it
 * must not be able to have its VMM killed.
 *
 * Faults run under the VMM's mmap_lock and take hostmem->lock: nothing under that takes
 * mmap_lock, or waits for the device.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "backend.h"
#include "compat.h"
#include "gpu/host_pages.h"
#include "gpu/hostmem.h"
#include "gpu/resource.h"
#include "mgpu.h"

/**
 * struct mgpu_hostmap - a blob in the BAR
 * @node: in hostmem->maps
 * @offset: first byte in the BAR, a multiple of PAGE_SIZE
 * @size: bytes, a multiple of PAGE_SIZE
 * @pages: the blob; NULL until the device has mapped it; hostmem->lock
 */
struct mgpu_hostmap {
	struct rb_node node;
	u64 offset;
	u64 size;
	struct mgpu_host_pages *pages;
};

#define to_hostmap(n)	rb_entry(n, struct mgpu_hostmap, node)

/* Initialize; the type need not be set. */
void mgpu_hostmem_init(struct mgpu_vgpu *vgpu)
{
	struct mgpu_hostmem *hm = &vgpu->hostmem;

	mutex_init(&hm->lock);
	hm->maps = RB_ROOT;
	address_space_init_once(&hm->mapping);
	hm->mapping.a_ops = &empty_aops;
}

/**
 * mgpu_hostmem_size - get the size of the BAR
 * @vgpu: vGPU with a type
 *
 * Return: bytes, a power of 2, or 0 for a vGPU without this BAR.
 */
u64 mgpu_hostmem_size(const struct mgpu_vgpu *vgpu)
{
	if (!mgpu_on_device(vgpu) || !vgpu->mdev->caps.blobs)
		return 0;
	/* Twice the memory leaves a guest room in spite of gaps. */
	return roundup_pow_of_two(2 * vgpu->type->desc->mem_limit);
}

/* Allocate what only an open vGPU needs.  Return 0 or -ENOMEM. */
int mgpu_hostmem_open(struct mgpu_vgpu *vgpu)
{
	if (!mgpu_hostmem_size(vgpu))
		return 0;
	vgpu->hostmem.dump = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	return vgpu->hostmem.dump ? 0 : -ENOMEM;
}

/* The VMM's mappings hold the device open: there are none. */
void mgpu_hostmem_close(struct mgpu_vgpu *vgpu)
{
	struct mgpu_hostmem *hm = &vgpu->hostmem;

	WARN_ON(!RB_EMPTY_ROOT(&hm->maps));
	if (hm->dump)
		__free_page(hm->dump);
	hm->dump = NULL;
}

/* ---- blobs in the BAR ---- */

/* Add a range, unless it overlaps another. */
static bool add(struct mgpu_hostmem *hm, struct mgpu_hostmap *map)
{
	struct rb_node **at = &hm->maps.rb_node, *parent = NULL;
	struct mgpu_hostmap *other;

	while (*at) {
		parent = *at;
		other = to_hostmap(parent);
		if (map->offset + map->size <= other->offset)
			at = &parent->rb_left;
		else if (other->offset + other->size <= map->offset)
			at = &parent->rb_right;
		else
			return false;
	}
	rb_link_node(&map->node, parent, at);
	rb_insert_color(&map->node, &hm->maps);
	return true;
}

/* Return the blob at an offset in the BAR, or NULL if the guest finds none there. */
static struct mgpu_hostmap *map_at(struct mgpu_hostmem *hm, u64 offset)
{
	struct rb_node *n = hm->maps.rb_node;
	struct mgpu_hostmap *map;

	lockdep_assert_held(&hm->lock);
	while (n) {
		map = to_hostmap(n);
		if (offset < map->offset)
			n = n->rb_left;
		else if (offset - map->offset >= map->size)
			n = n->rb_right;
		else
			return map->pages ? map : NULL;
	}
	return NULL;
}

/* Take a range of the BAR from the VMM. */
static void zap(struct mgpu_hostmem *hm, const struct mgpu_hostmap *map)
{
	lockdep_assert_held(&hm->lock);
	unmap_mapping_range(&hm->mapping, map->offset, map->size, 1);
}

/**
 * mgpu_hostmem_reserve - reserve a range of the BAR for a blob
 * @vgpu: vGPU
 * @res: blob
 * @offset: where the guest wants it, bytes
 *
 * Context: must hold ring_lock; may sleep.
 * Return: VIRTIO_GPU_RESP_*.
 */
u32 mgpu_hostmem_reserve(struct mgpu_vgpu *vgpu, struct mgpu_resource *res, u64 offset)
{
	struct mgpu_hostmem *hm = &vgpu->hostmem;
	u64 bar = mgpu_hostmem_size(vgpu), size = PAGE_ALIGN(res->size);
	struct mgpu_hostmap *map;
	bool added;

	if (offset % PAGE_SIZE || offset > bar || size > bar - offset)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	map->offset = offset;
	map->size = size;
	mutex_lock(&hm->lock);
	added = !res->map && add(hm, map);
	if (added)
		res->map = map;
	mutex_unlock(&hm->lock);
	if (added)
		return VIRTIO_GPU_RESP_OK_NODATA;
	kfree(map);
	return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
}

/**
 * mgpu_hostmem_fill - have the guest find a blob in its range of the BAR
 * @res: after mgpu_hostmem_reserve()
 * @pages: pages of the blob, which are the range's from now on; NULL for none
 *
 * Context: may sleep.
 * Return: false if the pages are not as many as the blob has; they stay the caller's.
 */
bool mgpu_hostmem_fill(struct mgpu_resource *res, struct mgpu_host_pages *pages)
{
	struct mgpu_hostmem *hm = &res->vgpu->hostmem;
	struct mgpu_hostmap *map;
	bool filled;

	mutex_lock(&hm->lock);
	map = res->map;
	filled = map && !map->pages && pages &&
		 mgpu_host_pages_nr(pages) == map->size >> PAGE_SHIFT;
	if (filled) {
		map->pages = pages;
		mgpu_host_pages_show(pages, &hm->mapping, map->offset);
		/* A guest that looked early has got the page in place of it. */
		zap(hm, map);
	}
	mutex_unlock(&hm->lock);
	return filled;
}

/**
 * mgpu_hostmem_remove - take a blob from the BAR
 * @res: resource
 * @filled: only if the guest can find it there
 *
 * Context: may sleep.
 * Return: false if it is not there.
 */
bool mgpu_hostmem_remove(struct mgpu_resource *res, bool filled)
{
	struct mgpu_hostmem *hm = &res->vgpu->hostmem;
	struct mgpu_hostmap *map;

	/* Most resources never are. One that the guest maps has its map first, under ring_lock. */
	if (!READ_ONCE(res->map))
		return false;
	mutex_lock(&hm->lock);
	map = res->map;
	if (map && filled && !map->pages)
		map = NULL;
	if (map) {
		res->map = NULL;
		rb_erase(&map->node, &hm->maps);
		zap(hm, map);
		if (map->pages)
			mgpu_host_pages_hide(map->pages);
	}
	mutex_unlock(&hm->lock);
	if (!map)
		return false;
	mgpu_host_pages_put(map->pages);
	kfree(map);
	return true;
}

/* ---- the VMM's side ---- */

static vm_fault_t hostmem_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct mgpu_vgpu *vgpu = vma->vm_private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	struct mgpu_hostmem *hm = &vgpu->hostmem;
	struct mgpu_host_pages *pages;
	struct mgpu_hostmap *map;
	vm_fault_t ret;
	u32 page;

	/* Under the lock, so that a page is not mapped after it was taken. */
	mutex_lock(&hm->lock);
	map = map_at(hm, offset);
	if (!map) {
		ret = vmf_insert_pfn(vma, vmf->address, page_to_pfn(hm->dump));
	} else {
		pages = map->pages;
		page = (offset - map->offset) >> PAGE_SHIFT;
		ret = mgpu_host_pages_fault(pages, page, vmf, hm->dump);
		if (ret == VM_FAULT_RETRY)
			mgpu_host_pages_get(pages);
	}
	mutex_unlock(&hm->lock);
	if (ret != VM_FAULT_RETRY)
		return ret;

	/* The driver's fault takes the lock of another process: give up the VMM's first. */
	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY)) {
		ret = VM_FAULT_SIGBUS;
	} else if (!(vmf->flags & FAULT_FLAG_RETRY_NOWAIT)) {
		mgpu_compat_release_fault_lock(vmf);
		mgpu_host_pages_find(pages, page);
	}
	mgpu_host_pages_put(pages);
	return ret;
}

static const struct vm_operations_struct hostmem_vm_ops = {
	.fault = hostmem_fault,
};

/* Return whether a VMA maps the BAR of a vGPU. */
bool mgpu_hostmem_is(const struct vm_area_struct *vma)
{
	return vma->vm_ops == &hostmem_vm_ops;
}

static int hostmem_release(struct inode *inode, struct file *file)
{
	fput(file->private_data);
	return 0;
}

static const struct file_operations hostmem_fops = {
	.owner = THIS_MODULE,
	.release = hostmem_release,
};

/**
 * mgpu_hostmem_mmap - map the BAR
 * @vgpu: vGPU
 * @vma: mapping of the VFIO device's file
 * @base: offset of the BAR in that file, bytes
 *
 * VFIO's files of all devices may share an address space, in which the pages of one vGPU
 * could not be found: the mapping gets a file of its own, which keeps the device open.
 *
 * Context: the VMM's thread.
 * Return: 0 or a negative errno.
 */
int mgpu_hostmem_mmap(struct mgpu_vgpu *vgpu, struct vm_area_struct *vma, u64 base)
{
	u64 size = mgpu_hostmem_size(vgpu), len = vma->vm_end - vma->vm_start;
	u64 first = ((u64)vma->vm_pgoff << PAGE_SHIFT) - base;
	struct mgpu_hostmem *hm = &vgpu->hostmem;
	struct file *file;

	if (!(vma->vm_flags & VM_SHARED) || !size || first > size || len > size - first)
		return -EINVAL;
	file = anon_inode_getfile("[mgpu-hostmem]", &hostmem_fops, NULL, O_RDWR);
	if (IS_ERR(file))
		return PTR_ERR(file);
	file->private_data = get_file(vma->vm_file);
	hm->mapping.host = file_inode(file);
	file->f_mapping = &hm->mapping;
	vma_set_file(vma, file);
	fput(file);
	vma->vm_pgoff = first >> PAGE_SHIFT;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYEXEC);
	vma->vm_ops = &hostmem_vm_ops;
	vma->vm_private_data = vgpu;
	return 0;
}

/**
 * mgpu_hostmem_access - read or write the BAR for a VMM that has not mapped it
 * @vgpu: vGPU
 * @offset: first byte
 * @buf: bytes
 * @len: their number; the access must not cross a page
 * @write: write
 *
 * Context: may sleep.
 * Return: 0, or -EINVAL if the access exceeds the BAR.
 */
int mgpu_hostmem_access(struct mgpu_vgpu *vgpu, u64 offset, void *buf, u32 len, bool write)
{
	struct mgpu_hostmem *hm = &vgpu->hostmem;
	struct mgpu_host_pages *pages = NULL;
	u64 size = mgpu_hostmem_size(vgpu);
	struct mgpu_hostmap *map;
	void *p;

	if (offset > size || len > size - offset || offset_in_page(offset) + len > PAGE_SIZE)
		return -EINVAL;
	mutex_lock(&hm->lock);
	map = map_at(hm, offset);
	if (map) {
		pages = map->pages;
		mgpu_host_pages_get(pages);
		offset -= map->offset;
	}
	mutex_unlock(&hm->lock);
	if (pages) {
		mgpu_host_pages_copy(pages, offset, buf, len, write);
		mgpu_host_pages_put(pages);
		return 0;
	}
	p = page_address(hm->dump) + offset_in_page(offset);
	if (write)
		memcpy(p, buf, len);
	else
		memcpy(buf, p, len);
	return 0;
}

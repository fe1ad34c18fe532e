/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of the device that a guest maps: the host-visible shared memory of virtio-gpu
 * (VIRTIO 1.2, section 5.7.7.1), a BAR of the vGPU.
 */
#ifndef MGPU_HOSTMEM_H
#define MGPU_HOSTMEM_H

#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>

struct mgpu_host_pages;
struct mgpu_resource;
struct mgpu_vgpu;
struct vm_area_struct;

/**
 * struct mgpu_hostmem - the BAR of a vGPU
 * @lock: protects @maps and what is mapped of it
 * @maps: struct mgpu_hostmap by offset; they do not overlap
 * @dump: page that is there while nothing is mapped; the vGPU's own
 * @mapping: of the VMM's mappings of the BAR
 */
struct mgpu_hostmem {
	struct mutex lock;	/* see above */
	struct rb_root maps;
	struct page *dump;
	struct address_space mapping;
};

void mgpu_hostmem_init(struct mgpu_vgpu *vgpu);
int mgpu_hostmem_open(struct mgpu_vgpu *vgpu);
void mgpu_hostmem_close(struct mgpu_vgpu *vgpu);
u64 mgpu_hostmem_size(const struct mgpu_vgpu *vgpu);
u32 mgpu_hostmem_reserve(struct mgpu_vgpu *vgpu, struct mgpu_resource *res, u64 offset);
bool mgpu_hostmem_fill(struct mgpu_resource *res, struct mgpu_host_pages *pages);
bool mgpu_hostmem_remove(struct mgpu_resource *res, bool filled);
int mgpu_hostmem_mmap(struct mgpu_vgpu *vgpu, struct vm_area_struct *vma, u64 base);
bool mgpu_hostmem_is(const struct vm_area_struct *vma);
int mgpu_hostmem_access(struct mgpu_vgpu *vgpu, u64 offset, void *buf, u32 len, bool write);

#endif /* MGPU_HOSTMEM_H */

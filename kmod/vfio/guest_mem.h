/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guest memory: pinned, mapped for the kernel where it needs an address, and mapped for
 * the device.
 */
#ifndef MGPU_GUEST_MEM_H
#define MGPU_GUEST_MEM_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

struct mgpu_cmd;
struct mgpu_vgpu;
struct task_struct;
struct virtio_gpu_mem_entry;

/*
 * Memory that a guest chooses the size of.  It is charged to the VMM's memory control
 * group.  Above the group's limit the guest is refused, and no process is killed.
 */
#define GFP_GUEST	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * struct mgpu_mem_chunk - contiguous bytes
 * @start: offset in the memory, bytes
 * @at: offset from the first page, bytes
 */
struct mgpu_mem_chunk {
	u64 start;
	u64 at;
};

/**
 * struct mgpu_dma - pages mapped for the device
 * @sgt: the pages; empty while they are not mapped
 * @dev: device that they are mapped for, NULL for physical addresses
 */
struct mgpu_dma {
	struct sg_table sgt;
	struct device *dev;
};

/**
 * struct mgpu_mem_run - contiguous guest addresses
 * @rb: in the vGPU's tree
 * @first: first byte
 * @last: last byte
 * @subtree_last: largest @last below @rb
 * @mem: the memory at these addresses
 */
struct mgpu_mem_run {
	struct rb_node rb;
	u64 first;
	u64 last;
	u64 subtree_last;
	struct mgpu_mem *mem;
};

/**
 * struct mgpu_mem - guest memory that is pinned
 * @node: in the vGPU's list of dead memory, while @dead and not @gone
 * @runs: the guest addresses, in the order of the pages
 * @nr_runs: entries of @runs
 * @nr_listed: entries of @runs that were added to the vGPU's tree; they are there until
 *	the pages are released, or dma_unmap() finds them; mem.lock
 * @vgpu: the vGPU of the guest
 * @len: bytes
 * @nr_pages: entries of @pages and @iova
 * @nr_pinned: number of @pages that are pinned
 * @pages: the pages, in order
 * @iova: guest address of each page
 * @base: kernel address of the first page; NULL unless there is a single page, or the
 *	memory is mapped by mgpu_mem_map()
 * @nr_chunks: entries of @chunks
 * @chunks: location of the bytes in the pages; one chunk unless the guest's entries
 *	begin or end inside of pages
 * @dma: the pages mapped for the device, if it uses them
 * @dev_gen: generation of the device when it got the memory; 0 while it does not
 *	use the memory; mem.lock
 * @dev_leaving: the device has got a command that releases the memory and has not
 *	answered it; mem.lock
 * @dev_res: the device's number of the resource that the memory belongs to
 * @users: mgpu_mem_get() without mgpu_mem_put(); mem.lock
 * @caller: thread in a call into VFIO about the pages, or NULL; mem.lock
 * @pinning: its owner adds it to the tree, or pins the pages; mem.lock
 * @dead: the VMM unmapped a part of the memory: no new users; mem.lock
 * @claimed: a thread is releasing the pages; mem.lock
 * @gone: the pages are released; mem.lock
 */
struct mgpu_mem {
	struct list_head node;
	struct mgpu_vgpu *vgpu;
	struct mgpu_mem_run *runs;
	u32 nr_runs;
	u32 nr_listed;
	u64 len;
	u32 nr_pages;
	u32 nr_pinned;
	struct page **pages;
	dma_addr_t *iova;
	void *base;
	u32 nr_chunks;
	struct mgpu_mem_chunk *chunks;
	struct mgpu_dma dma;
	u32 dev_gen;
	bool dev_leaving;
	u32 dev_res;
	u32 users;
	struct task_struct *caller;
	bool pinning;
	bool dead;
	bool claimed;
	bool gone;
};

#define MGPU_PIN_CACHE		256	/* single pages for commands; a power of 2 */

/**
 * struct mgpu_unmapping - a thread that unmaps a range, until it returns to user space
 * @node: in the vGPU's list
 * @gm: owner of that list; NULL when the record is not in it
 * @task: the thread, to compare with
 * @first: first byte
 * @last: last byte
 * @again: calls of dma_unmap() for the range before the last one
 * @in_kernel: the thread has not returned to user space: its file is not released
 * @until: time after which a record without a file ends, jiffies
 */
struct mgpu_unmapping {
	struct list_head node;
	struct mgpu_guest_mem *gm;
	const struct task_struct *task;
	u64 first;
	u64 last;
	unsigned int again;
	bool in_kernel;
	unsigned long until;
};

/**
 * struct mgpu_guest_mem - guest memory that a vGPU uses
 * @lock: protects @tree, @dying and the state of the memory in them
 * @tree: the addresses of all struct mgpu_mem that are neither dead nor released
 * @dying: struct mgpu_mem that are dead and not released
 * @wait: woken when @users, @pinning, @dev_leaving or @gone of a struct mgpu_mem changed
 * @cache: single pages that commands are read from; ring_lock
 * @unmapping: struct mgpu_unmapping, one per thread; none of their pages is pinned
 * @pinned: number of pinned pages
 * @used: bytes charged against the type's memory limit
 * @streams: bytes of these for streams that the device has
 */
struct mgpu_guest_mem {
	spinlock_t lock;	/* see above */
	struct rb_root_cached tree;
	struct list_head dying;
	wait_queue_head_t wait;
	struct mgpu_mem *cache[MGPU_PIN_CACHE];
	struct list_head unmapping;
	atomic64_t pinned;
	atomic64_t used;
	atomic64_t streams;
};

/* guest_mem.c */
void mgpu_mem_init(struct mgpu_vgpu *vgpu);
u64 mgpu_mem_cmd_bytes(const struct mgpu_cmd *cmd);
struct mgpu_mem *mgpu_mem_pin_range(struct mgpu_vgpu *vgpu, u64 addr, u32 len);
struct mgpu_mem *mgpu_mem_pin_cmd(struct mgpu_vgpu *vgpu,
				  const struct mgpu_cmd *cmd);
void mgpu_mem_free(struct mgpu_mem *mem);
bool mgpu_mem_get_all(struct mgpu_mem *const *mem, u32 n);
void mgpu_mem_put_all(struct mgpu_mem *const *mem, u32 n);
bool mgpu_mem_get(struct mgpu_mem *mem);
void mgpu_mem_put(struct mgpu_mem *mem);
int mgpu_mem_map(struct mgpu_mem *mem);
void *mgpu_mem_addr(const struct mgpu_mem *mem);
void mgpu_mem_copy(const struct mgpu_mem *mem, u64 off, void *to, size_t len);
int mgpu_guest_read(struct mgpu_vgpu *vgpu, u64 addr, void *buf, size_t len,
		    bool nowait);
int mgpu_guest_write(struct mgpu_vgpu *vgpu, u64 addr, const void *buf,
		     size_t len, bool nowait);
bool mgpu_guest_ready(struct mgpu_vgpu *vgpu, u64 addr, size_t len);
void mgpu_mem_drop_cache(struct mgpu_vgpu *vgpu);
void mgpu_mem_drop_unmapping(struct mgpu_vgpu *vgpu);
void mgpu_mem_unmap(struct mgpu_vgpu *vgpu, u64 iova, u64 len);
int mgpu_mem_charge(struct mgpu_vgpu *vgpu, u64 bytes);
void mgpu_mem_uncharge(struct mgpu_vgpu *vgpu, u64 bytes);

/* guest_dma.c */
int mgpu_dma_map(struct mgpu_dma *dma, struct page **pages, u32 nr,
		 struct device *dev);
void mgpu_dma_unmap(struct mgpu_dma *dma);
u32 mgpu_dma_entries(const struct mgpu_dma *dma,
		     const struct mgpu_mem_chunk *chunks, u32 nr_chunks, u64 len,
		     struct virtio_gpu_mem_entry *entries, u32 max);

#endif /* MGPU_GUEST_MEM_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory that a worker maps.
 *
 * The core attaches memory with physical addresses, since the device has no dma_dev.  A
 * worker gets an offset instead.  Its page tables get a page when it first uses the page, and
 * lose all pages of a memory when the core has the device release the memory, before the
 * core unpins them.  VM_PFNMAP keeps anybody from pinning the pages through the worker.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>

#include "compat.h"
#include "user/user.h"

/**
 * struct user_run - contiguous pages
 * @pfn: page frame of the first one
 * @first: its number in the memory
 */
struct user_run {
	unsigned long pfn;
	u32 first;
};

/**
 * struct user_mem - memory that is attached to a resource
 * @id: in channel->mems
 * @res: the device's number of the resource
 * @zeros: it is all zeros, and must not be written
 * @nr_pages: number of pages
 * @nr_runs: length of @runs
 * @runs: pages, in order; one run per entry of the command
 */
struct user_mem {
	u32 id;
	u32 res;
	bool zeros;
	u32 nr_pages;
	u32 nr_runs;
	struct user_run runs[];
};

static u64 mem_offset(u32 id)
{
	return MGPU_USER_OFF_MEM + ((u64)id << USER_MEM_SHIFT);
}

/* Get the entries of a command that gives memory to a resource. */
static struct virtio_gpu_mem_entry *entries_of(void *cmd, u32 *nr, u32 *res)
{
	struct virtio_gpu_resource_attach_backing *a = cmd;
	struct virtio_gpu_resource_create_blob *b = cmd;

	if (le32_to_cpu(a->hdr.type) == VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING) {
		*nr = le32_to_cpu(a->nr_entries);
		*res = le32_to_cpu(a->resource_id);
		return (void *)(a + 1);
	}
	*nr = le32_to_cpu(b->nr_entries);
	*res = le32_to_cpu(b->resource_id);
	return (void *)(b + 1);
}

/* Return whether a command gives memory to a resource. */
bool user_mem_attaches(const struct mgpu_msg *msg)
{
	const struct virtio_gpu_resource_create_blob *c = msg->buf;

	switch (le32_to_cpu(c->hdr.type)) {
	case VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING:
		return true;
	case VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB:
		return c->nr_entries;
	default:
		return false;
	}
}

/**
 * user_mem_make - read the memory of a command
 * @msg: from the core, for which user_mem_attaches() is true
 *
 * Context: may sleep.
 * Return: memory that is in no channel; NULL if out of memory.
 */
struct user_mem *user_mem_make(const struct mgpu_msg *msg)
{
	const struct virtio_gpu_mem_entry *e;
	struct user_mem *mem;
	u64 addr, last;
	u32 nr, res, i;

	e = entries_of(msg->buf, &nr, &res);
	mem = kvzalloc(struct_size(mem, runs, nr), GFP_KERNEL);
	if (!mem)
		return NULL;
	mem->res = res;
	mem->zeros = msg->zeros;
	mem->nr_runs = nr;
	for (i = 0; i < nr; i++) {
		addr = le64_to_cpu(e[i].addr);
		last = addr + le32_to_cpu(e[i].length) - 1;
		mem->runs[i].pfn = addr >> PAGE_SHIFT;
		mem->runs[i].first = mem->nr_pages;
		mem->nr_pages += (last >> PAGE_SHIFT) - (addr >> PAGE_SHIFT) + 1;
	}
	return mem;
}

/**
 * user_mem_reserve - give memory an ID and a range of offsets, at which nothing is yet
 * @ch: channel
 * @mem: from user_mem_make()
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int user_mem_reserve(struct user_channel *ch, struct user_mem *mem)
{
	int ret = xa_alloc_cyclic(&ch->mems, &mem->id, NULL, XA_LIMIT(0, USER_MEM_IDS - 1),
				  &ch->next_mem, GFP_KERNEL);

	if (ret < 0)
		return ret;
	ret = xa_reserve(&ch->mem_of_res, mem->res, GFP_KERNEL);
	if (ret)
		xa_erase(&ch->mems, mem->id);
	return ret;
}

/**
 * user_mem_publish - have the worker map memory from now on
 * @ch: channel
 * @mem: after user_mem_reserve(); the channel's
 *
 * Context: after mgpu_msg_begin(), in the same section of @ch->lock: the core has the
 * device release the memory before it unpins it.
 */
void user_mem_publish(struct user_channel *ch, struct user_mem *mem)
{
	/* The entries are there, so that this needs no memory. */
	WARN_ON(xa_err(xa_store(&ch->mems, mem->id, mem, GFP_ATOMIC)) ||
		xa_err(xa_store(&ch->mem_of_res, mem->res, xa_mk_value(mem->id),
				GFP_ATOMIC)));
}

/* Return the ID of memory that is reserved. */
u32 user_mem_id(const struct user_mem *mem)
{
	return mem->id;
}

/**
 * user_mem_detach - get the memory that a command takes from a resource
 * @ch: channel
 * @res: the device's number of the resource
 *
 * Commands are put in the device's order, so that this is the memory of the last command
 * that was put and attaches some.  A later command may attach other memory before this one
 * is answered.
 *
 * Context: must hold @ch->lock.
 * Return: ID for user_mem_revoke(); USER_NO_MEM if the resource has none.
 */
u32 user_mem_detach(struct user_channel *ch, u32 res)
{
	void *id;

	lockdep_assert_held(&ch->lock);
	id = xa_erase(&ch->mem_of_res, res);
	return id ? xa_to_value(id) : USER_NO_MEM;
}

/* Free memory that was reserved and not published; NULL is ignored. */
void user_mem_drop(struct user_channel *ch, struct user_mem *mem)
{
	if (!mem)
		return;
	xa_erase(&ch->mems, mem->id);
	xa_release(&ch->mem_of_res, mem->res);
	kvfree(mem);
}

/**
 * user_mem_rewrite - count a command's addresses from the beginning of its memory
 * @mem: memory
 * @cmd: copy of the command that it was made of
 * @len: set to the length of the range of offsets, bytes
 *
 * Return: offset of the range.
 */
u64 user_mem_rewrite(const struct user_mem *mem, void *cmd, u64 *len)
{
	struct virtio_gpu_mem_entry *e;
	u32 nr, res, i;
	u64 at;

	e = entries_of(cmd, &nr, &res);

	for (i = 0; i < mem->nr_runs; i++) {
		at = (u64)mem->runs[i].first << PAGE_SHIFT;
		at += offset_in_page(le64_to_cpu(e[i].addr));
		e[i].addr = cpu_to_le64(at);
	}
	*len = (u64)mem->nr_pages << PAGE_SHIFT;
	return mem_offset(mem->id);
}

/* ---- releasing ---- */

static void mem_release(struct user_channel *ch, struct user_mem *mem)
{
	lockdep_assert_held(&ch->mem_lock);

	xa_erase(&ch->mems, mem->id);
	/* Of memory that no command detaches. */
	xa_cmpxchg(&ch->mem_of_res, mem->res, xa_mk_value(mem->id), NULL, 0);
	unmap_mapping_range(&ch->mapping, mem_offset(mem->id), 1ULL << USER_MEM_SHIFT, 1);
	kvfree(mem);
}

/**
 * user_mem_revoke - take memory from the worker
 * @ch: channel
 * @id: ID of memory that was published; nothing happens if it is taken already
 *
 * Afterwards the worker does not access the memory.
 *
 * Context: may sleep.
 */
void user_mem_revoke(struct user_channel *ch, u32 id)
{
	struct user_mem *mem;

	mutex_lock(&ch->mem_lock);
	mem = xa_load(&ch->mems, id);
	if (mem)
		mem_release(ch, mem);
	mutex_unlock(&ch->mem_lock);
}

/* Take all memory from the worker; may sleep. */
void user_mem_revoke_all(struct user_channel *ch)
{
	struct user_mem *mem;
	unsigned long id;

	mutex_lock(&ch->mem_lock);
	xa_for_each(&ch->mems, id, mem)
		mem_release(ch, mem);
	mutex_unlock(&ch->mem_lock);
}

/* ---- mapping ---- */

static struct user_mem *mem_at(struct user_channel *ch, u64 offset, u64 *page)
{
	u64 at = offset - MGPU_USER_OFF_MEM;
	struct user_mem *mem = xa_load(&ch->mems, at >> USER_MEM_SHIFT);

	lockdep_assert_held(&ch->mem_lock);
	*page = (at & ((1ULL << USER_MEM_SHIFT) - 1)) >> PAGE_SHIFT;
	return mem && *page < mem->nr_pages ? mem : NULL;
}

static unsigned long pfn_of(const struct user_mem *mem, u64 page)
{
	u32 lo = 0, hi = mem->nr_runs, mid;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (mem->runs[mid].first <= page)
			lo = mid;
		else
			hi = mid;
	}
	return mem->runs[lo].pfn + (page - mem->runs[lo].first);
}

static vm_fault_t mem_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct user_channel *ch = vma->vm_private_data;
	pgprot_t prot = vma->vm_page_prot;
	unsigned long pfn;
	struct user_mem *mem;
	vm_fault_t ret;
	u64 page;

	/* Under the lock, so that a page is not mapped after its memory was released. */
	mutex_lock(&ch->mem_lock);
	mem = mem_at(ch, (u64)vmf->pgoff << PAGE_SHIFT, &page);
	if (!mem) {
		pfn = page_to_pfn(ch->dump);
	} else if (mem->zeros) {
		pfn = page_to_pfn(ZERO_PAGE(0));
		prot = vm_get_page_prot(vma->vm_flags & ~VM_WRITE);
	} else {
		pfn = pfn_of(mem, page);
	}
	ret = vmf_insert_pfn_prot(vma, vmf->address, pfn, prot);
	mutex_unlock(&ch->mem_lock);
	return ret;
}

/* A write to a page that is mapped for reading. */
static vm_fault_t mem_mkwrite(struct vm_fault *vmf)
{
	struct user_channel *ch = vmf->vma->vm_private_data;
	struct user_mem *mem;
	bool zeros;
	u64 page;

	mutex_lock(&ch->mem_lock);
	mem = mem_at(ch, (u64)vmf->pgoff << PAGE_SHIFT, &page);
	zeros = mem && mem->zeros;
	mutex_unlock(&ch->mem_lock);
	return zeros ? VM_FAULT_SIGBUS : 0;
}

static const struct vm_operations_struct mem_vm_ops = {
	.fault = mem_fault,
	.pfn_mkwrite = mem_mkwrite,
};

/* Map guest memory.  The file keeps the channel. */
int user_mem_mmap(struct user_channel *ch, struct vm_area_struct *vma)
{
	u64 first = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 len = vma->vm_end - vma->vm_start;

	if (!(vma->vm_flags & VM_SHARED) || first < MGPU_USER_OFF_MEM ||
	    len > mem_offset(USER_MEM_IDS) || first > mem_offset(USER_MEM_IDS) - len)
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYEXEC);
	vma->vm_ops = &mem_vm_ops;
	vma->vm_private_data = ch;
	return 0;
}

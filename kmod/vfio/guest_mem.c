// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory: pinned, and released when the VMM unmaps it.
 *
 * The VMM may unmap any range at any time, and vfio_iommu_type1 requires that no page
 * of the range is pinned when dma_unmap() returns.  So every mapping is in one tree
 * per vGPU, by guest address, from before its first page is pinned until after its last
 * page is unpinned.  dma_unmap() takes overlapping mappings out of the tree, which makes
 * them dead: they get no new users.  It waits for their users and releases them, and
 * returns when no dead mapping is left.
 *
 * Type 1 looks for pinned pages again after dma_unmap() has returned.  If it finds some
 * in eleven looks during one ioctl, it panics (BUG_ON).  A VMM can keep its threads from
 * running for a long time, at any point (SCHED_IDLE, cpu.max).  So time is no measure:
 *
 * - dma_unmap() waits without limit for users.  A user is a tile or a command, and waits
 *   for nothing that a caller of dma_unmap() may hold.
 * - A thread in vfio_pin_pages() or vfio_unpin_pages() may wait for the caller of
 *   dma_unmap().  dma_unmap() gives up if that thread sleeps for UNMAP_WAIT.  It does not
 *   give up while the thread could run.  Whenever dma_unmap() gives up, type 1 drops the
 *   lock that the thread waits for.
 * - Until the unmapping thread has returned to user space, no page of the range is pinned
 *   anew.
 *
 * Memory that a device has for DMA is revoked first; that takes until the device
 * answers or is reset.
 *
 * mem.lock is never held across a call into VFIO.  A guest may have very many mappings,
 * and mappings in very many pieces; engines take the lock for each tile.  So threads
 * hold it for LOCK_BATCH steps at most.
 */
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/interval_tree_generic.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vfio.h>
#include <linux/vmalloc.h>

#include "mgpu.h"
#include "virgl/devcmd.h"

#define PIN_BATCH		512	/* pages in one vfio_pin_pages() */
#define UNMAP_WAIT		HZ	/* doubled each time that dma_unmap() gives up */
#define UNMAP_MAX_SHIFT		9U
#define UNMAP_SETTLE		max(HZ / 50, 2)
#define UNMAP_POLL_MS		5
#define UNMAP_POLLS		40
#define LOCK_BATCH		64	/* steps in one section of mem.lock */

#define run_first(run)		((run)->first)
#define run_last(run)		((run)->last)
INTERVAL_TREE_DEFINE(struct mgpu_mem_run, rb, u64, subtree_last, run_first, run_last,
		     static __maybe_unused, run)

void mgpu_mem_init(struct mgpu_vgpu *vgpu)
{
	spin_lock_init(&vgpu->mem.lock);
	vgpu->mem.tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&vgpu->mem.dying);
	init_waitqueue_head(&vgpu->mem.wait);
	INIT_LIST_HEAD(&vgpu->mem.unmapping);
}

/**
 * mgpu_mem_charge - count bytes against the type's memory limit
 * @vgpu: vGPU
 * @bytes: number of bytes
 *
 * Context: must hold ring_lock.
 * Return: 0, or -ENOSPC if the limit would be exceeded.
 */
int mgpu_mem_charge(struct mgpu_vgpu *vgpu, u64 bytes)
{
	u64 used = atomic64_read(&vgpu->mem.used);

	/* Only the holder of ring_lock adds, so that the limit holds. */
	if (bytes > vgpu->type->desc->mem_limit ||
	    used > vgpu->type->desc->mem_limit - bytes)
		return -ENOSPC;
	atomic64_add(bytes, &vgpu->mem.used);
	return 0;
}

void mgpu_mem_uncharge(struct mgpu_vgpu *vgpu, u64 bytes)
{
	atomic64_sub(bytes, &vgpu->mem.used);
}

/* Return the number of pages from @i on, at most @max, that are contiguous in the guest. */
static u32 iova_run(const struct mgpu_mem *mem, u32 i, u32 end, u32 max)
{
	u32 n = 1;

	while (i + n < end && n < max &&
	       mem->iova[i + n] == mem->iova[i] + ((dma_addr_t)n << PAGE_SHIFT))
		n++;
	return n;
}

/* Add the addresses to the tree, in sections of LOCK_BATCH. */
static void mem_list(struct mgpu_mem *mem)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	u32 n;

	while (mem->nr_listed < mem->nr_runs) {
		spin_lock(&gm->lock);
		for (n = 0; n < LOCK_BATCH && mem->nr_listed < mem->nr_runs; n++)
			run_insert(&mem->runs[mem->nr_listed++], &gm->tree);
		spin_unlock(&gm->lock);
		cond_resched();
	}
}

/* Take an address out of the tree; must hold mem.lock. */
static void run_unlist(struct mgpu_guest_mem *gm, struct mgpu_mem_run *run)
{
	run_remove(run, &gm->tree);
	RB_CLEAR_NODE(&run->rb);
}

/* Take the addresses out that dma_unmap() has left in the tree. */
static void mem_unlist(struct mgpu_mem *mem)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	u32 n;

	while (mem->nr_listed) {
		spin_lock(&gm->lock);
		for (n = 0; n < LOCK_BATCH && mem->nr_listed; n++) {
			struct mgpu_mem_run *run = &mem->runs[--mem->nr_listed];

			if (!RB_EMPTY_NODE(&run->rb))
				run_unlist(gm, run);
		}
		spin_unlock(&gm->lock);
		cond_resched();
	}
}

/* Begin a call into VFIO about the pages of @mem, for dma_unmap() to know. */
static void vfio_begin(struct mgpu_mem *mem)
{
	spin_lock(&mem->vgpu->mem.lock);
	mem->caller = current;
	spin_unlock(&mem->vgpu->mem.lock);
}

static void vfio_end(struct mgpu_mem *mem)
{
	spin_lock(&mem->vgpu->mem.lock);
	mem->caller = NULL;
	spin_unlock(&mem->vgpu->mem.lock);
}

/* Unmap and unpin the pages; the caller has claimed @mem, which has no users. */
static void mem_release(struct mgpu_mem *mem)
{
	struct mgpu_vgpu *vgpu = mem->vgpu;
	u32 i, n;

	mgpu_devmem_release(mem);
	mgpu_dma_unmap(&mem->dma);
	if (mem->base && mem->nr_pages > 1)
		vunmap(mem->base);
	mem->base = NULL;
	for (i = 0; i < mem->nr_pinned; i += n) {
		n = iova_run(mem, i, mem->nr_pinned, PIN_BATCH);
		vfio_begin(mem);
		vfio_unpin_pages(&vgpu->vdev, mem->iova[i], n);
		vfio_end(mem);
	}
	atomic64_sub(mem->nr_pinned, &vgpu->mem.pinned);
	mem->nr_pinned = 0;
	mem_unlist(mem);

	spin_lock(&vgpu->mem.lock);
	mem->gone = true;
	if (mem->dead)
		list_del(&mem->node);
	/*
	 * Wake waiters under the lock: mgpu_mem_free() may be waiting for this,
	 * and frees the structure.
	 */
	wake_up_all(&vgpu->mem.wait);
	spin_unlock(&vgpu->mem.lock);
}

static void mem_destroy(struct mgpu_mem *mem)
{
	kvfree(mem->runs);
	kvfree(mem->chunks);
	kvfree(mem->pages);
	kvfree(mem->iova);
	kfree(mem);
}

static bool mem_gone(struct mgpu_mem *mem)
{
	bool gone;

	spin_lock(&mem->vgpu->mem.lock);
	gone = mem->gone;
	spin_unlock(&mem->vgpu->mem.lock);
	return gone;
}

/**
 * mgpu_mem_free - release a mapping
 * @mem: mapping without users, or NULL
 *
 * Context: may sleep.
 */
void mgpu_mem_free(struct mgpu_mem *mem)
{
	struct mgpu_vgpu *vgpu;
	bool mine;

	if (!mem)
		return;

	vgpu = mem->vgpu;
	spin_lock(&vgpu->mem.lock);
	WARN_ON_ONCE(mem->users);
	mine = !mem->claimed && !mem->gone;
	if (mine)
		mem->claimed = true;
	spin_unlock(&vgpu->mem.lock);

	if (mine)
		mem_release(mem);
	else
		wait_event(vgpu->mem.wait, mem_gone(mem));

	mem_destroy(mem);
}

static int mem_pin(struct mgpu_mem *mem)
{
	struct mgpu_vgpu *vgpu = mem->vgpu;
	u32 n;
	int ret;

	while (mem->nr_pinned < mem->nr_pages) {
		if (READ_ONCE(mem->dead))
			return -EFAULT;
		n = iova_run(mem, mem->nr_pinned, mem->nr_pages, PIN_BATCH);
		vfio_begin(mem);
		ret = vfio_pin_pages(&vgpu->vdev, mem->iova[mem->nr_pinned], n,
				     IOMMU_READ | IOMMU_WRITE,
				     mem->pages + mem->nr_pinned);
		vfio_end(mem);
		if (ret < 0)
			return ret;
		mem->nr_pinned += ret;
		atomic64_add(ret, &vgpu->mem.pinned);
		if (ret != n)
			return -EFAULT;
	}
	if (mem->nr_pages == 1)
		mem->base = page_address(mem->pages[0]);
	return 0;
}

static struct mgpu_mem *mem_alloc(struct mgpu_vgpu *vgpu, u32 pages,
				  u32 chunks)
{
	struct mgpu_mem *mem = kzalloc(sizeof(*mem), GFP_GUEST);

	if (!mem)
		return NULL;
	INIT_LIST_HEAD(&mem->node);
	mem->vgpu = vgpu;
	mem->nr_pages = pages;
	mem->pages = kvcalloc(pages, sizeof(*mem->pages), GFP_GUEST);
	mem->iova = kvcalloc(pages, sizeof(*mem->iova), GFP_GUEST);
	mem->chunks = kvcalloc(chunks, sizeof(*mem->chunks), GFP_GUEST);
	if (mem->pages && mem->iova && mem->chunks)
		return mem;
	mem_destroy(mem);
	return NULL;
}

static u64 pages_of(u64 addr, u32 len)
{
	return ((addr + len - 1) >> PAGE_SHIFT) - (addr >> PAGE_SHIFT) + 1;
}

/* Append a range of guest memory; @page is the index of its first page. */
static void mem_add(struct mgpu_mem *mem, u32 *page, u64 addr, u32 len)
{
	u64 n = pages_of(addr, len), at, i;

	at = ((u64)*page << PAGE_SHIFT) + offset_in_page(addr);
	/* Bytes that are contiguous with the previous chunk extend it. */
	if (!mem->nr_chunks ||
	    at != mem->chunks[mem->nr_chunks - 1].at +
		  (mem->len - mem->chunks[mem->nr_chunks - 1].start)) {
		mem->chunks[mem->nr_chunks].start = mem->len;
		mem->chunks[mem->nr_chunks].at = at;
		mem->nr_chunks++;
	}
	for (i = 0; i < n; i++)
		mem->iova[(*page)++] = (addr & PAGE_MASK) + (i << PAGE_SHIFT);
	mem->len += len;
}

/* Find the runs of the pages that mem_add() collected.  Return 0 or -ENOMEM. */
static int mem_find_runs(struct mgpu_mem *mem)
{
	u32 i, n, nr = 0;

	for (i = 0; i < mem->nr_pages; i += n) {
		n = iova_run(mem, i, mem->nr_pages, U32_MAX);
		nr++;
	}
	mem->runs = kvcalloc(nr, sizeof(*mem->runs), GFP_GUEST);
	if (!mem->runs)
		return -ENOMEM;
	for (i = 0; i < mem->nr_pages; i += n) {
		struct mgpu_mem_run *run = &mem->runs[mem->nr_runs++];

		n = iova_run(mem, i, mem->nr_pages, U32_MAX);
		run->mem = mem;
		run->first = mem->iova[i];
		run->last = mem->iova[i] + ((u64)n << PAGE_SHIFT) - 1;
	}
	return 0;
}

static bool mem_overlaps(const struct mgpu_mem *mem, u64 first, u64 last)
{
	u32 i;

	for (i = 0; i < mem->nr_runs; i++) {
		if (mem->runs[i].first <= last && mem->runs[i].last >= first)
			return true;
	}
	return false;
}

/* ---- threads that unmap ---- */

/* Protects each vGPU's list of threads that unmap, and the records themselves. */
static DEFINE_MUTEX(unmappings_lock);

/* Take a record out of its vGPU's list. */
static void unmapping_drop(struct mgpu_unmapping *u)
{
	lockdep_assert_held(&unmappings_lock);
	list_del(&u->node);
	u->gm = NULL;
	/* Else the release of its file frees it. */
	if (!u->in_kernel)
		kfree(u);
}

/* The thread is about to return to user space, or to end: its unmapping is complete. */
static int unmapping_release(struct inode *inode, struct file *file)
{
	struct mgpu_unmapping *u = file->private_data;

	mutex_lock(&unmappings_lock);
	u->in_kernel = false;
	if (u->gm)
		unmapping_drop(u);
	else
		kfree(u);
	mutex_unlock(&unmappings_lock);
	return 0;
}

static const struct file_operations unmapping_fops = {
	.owner = THIS_MODULE,
	.release = unmapping_release,
};

/*
 * Have unmapping_release() called when this thread has left the ioctl.  VFIO does not
 * tell when an unmapping ends, but a file that a thread puts is released on the thread's
 * way back to user space.  Without memory for a file, the range is kept from being pinned
 * for UNMAP_SETTLE after each dma_unmap().
 */
static void unmapping_watch(struct mgpu_unmapping *u)
{
	struct file *file = anon_inode_getfile("[mgpu-unmap]", &unmapping_fops, u,
					       O_RDONLY);

	lockdep_assert_held(&unmappings_lock);
	u->until = jiffies + UNMAP_SETTLE;
	if (IS_ERR(file))
		return;
	u->in_kernel = true;
	fput(file);
}

/*
 * Keep the range from being pinned until this thread has returned to user space.
 *
 * Return how often this thread has noted the range since it came into the kernel.
 */
static unsigned int note_unmapping(struct mgpu_guest_mem *gm, u64 first, u64 last)
{
	struct mgpu_unmapping *u, *mine = NULL;
	unsigned int before = 0;

	mutex_lock(&unmappings_lock);
	list_for_each_entry(u, &gm->unmapping, node) {
		if (u->task == current)
			mine = u;
	}
	if (!mine) {
		mine = kzalloc(sizeof(*mine), GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
		mine->gm = gm;
		mine->task = current;
		list_add(&mine->node, &gm->unmapping);
	} else if (mine->first == first && mine->last == last) {
		before = ++mine->again;
	} else {
		mine->again = 0;
	}
	/* The thread's earlier ranges are unmapped. */
	mine->first = first;
	mine->last = last;
	if (mine->in_kernel)
		mine->until = jiffies + UNMAP_SETTLE;
	else
		unmapping_watch(mine);
	mutex_unlock(&unmappings_lock);
	return before;
}

/* Return whether a thread is unmapping a part of the memory. */
static bool being_unmapped(const struct mgpu_mem *mem)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	struct mgpu_unmapping *u, *next;
	bool found = false;

	mutex_lock(&unmappings_lock);
	list_for_each_entry_safe(u, next, &gm->unmapping, node) {
		if (!u->in_kernel && time_after(jiffies, u->until))
			unmapping_drop(u);
		else
			found |= mem_overlaps(mem, u->first, u->last);
	}
	mutex_unlock(&unmappings_lock);
	return found;
}

/* ---- pinning ---- */

/* Wait until the pages may be pinned; they are in the tree that dma_unmap() searches. */
static int mem_begin_pinning(struct mgpu_mem *mem)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	bool begin, dead;
	int polls;

	for (polls = 0; polls < UNMAP_POLLS; polls++) {
		/* A thread that begins to unmap later finds it in the tree. */
		begin = !being_unmapped(mem);
		spin_lock(&gm->lock);
		dead = mem->dead;
		begin &= !dead;
		mem->pinning = begin;
		if (!begin)
			wake_up_all(&gm->wait);
		spin_unlock(&gm->lock);
		if (begin)
			return 0;
		if (dead)
			break;
		msleep(UNMAP_POLL_MS);
	}
	return -EFAULT;
}

/* Pin the pages that mem_add() collected; free @mem on error. */
static struct mgpu_mem *mem_finish(struct mgpu_mem *mem)
{
	struct mgpu_vgpu *vgpu = mem->vgpu;
	int ret;

	ret = mem_find_runs(mem);
	if (ret) {
		mem_destroy(mem);
		return ERR_PTR(ret);
	}
	/* dma_unmap() does not release it before it is in the tree as a whole. */
	mem->pinning = true;
	mem_list(mem);
	ret = mem_begin_pinning(mem);
	if (ret)
		goto out;
	ret = mem_pin(mem);

	spin_lock(&vgpu->mem.lock);
	mem->pinning = false;
	if (!ret && mem->dead)
		ret = -EFAULT;
	spin_unlock(&vgpu->mem.lock);
	wake_up_all(&vgpu->mem.wait);
out:
	if (!ret)
		return mem;
	mgpu_mem_free(mem);
	return ERR_PTR(ret);
}

/**
 * mgpu_mem_pin_range - pin one range of guest memory
 * @vgpu: vGPU
 * @addr: guest address
 * @len: bytes, not 0; the range does not wrap
 *
 * Context: may sleep; calls into VFIO.
 * Return: the mapping or an ERR_PTR.
 */
struct mgpu_mem *mgpu_mem_pin_range(struct mgpu_vgpu *vgpu, u64 addr, u32 len)
{
	struct mgpu_mem *mem;
	u32 page = 0;

	mem = mem_alloc(vgpu, pages_of(addr, len), 1);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	mem_add(mem, &page, addr, len);
	return mem_finish(mem);
}

/**
 * mgpu_mem_cmd_bytes - compute the memory that pinning a command's entries takes
 * @cmd: decoded command
 *
 * Return: bytes, in whole pages: a page that is used in part counts in full.
 */
u64 mgpu_mem_cmd_bytes(const struct mgpu_cmd *cmd)
{
	struct mgpu_entry e;
	u64 pages = 0;
	u32 i;

	for (i = 0; i < cmd->nr_entries; i++) {
		e = mgpu_cmd_entry(cmd, i);
		pages += pages_of(e.addr, e.length);
	}
	return pages << PAGE_SHIFT;
}

/**
 * mgpu_mem_pin_cmd - pin the memory entries of a command
 * @vgpu: vGPU
 * @cmd: decoded command with at least one entry; the caller has charged its
 *	mgpu_mem_cmd_bytes() against the memory limit
 *
 * Context: may sleep; calls into VFIO.
 * Return: the mapping or an ERR_PTR.
 */
struct mgpu_mem *mgpu_mem_pin_cmd(struct mgpu_vgpu *vgpu,
				  const struct mgpu_cmd *cmd)
{
	struct mgpu_mem *mem;
	struct mgpu_entry e;
	u32 i, page = 0;

	mem = mem_alloc(vgpu, mgpu_mem_cmd_bytes(cmd) >> PAGE_SHIFT,
			cmd->nr_entries);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < cmd->nr_entries; i++) {
		e = mgpu_cmd_entry(cmd, i);
		mem_add(mem, &page, e.addr, e.length);
	}
	return mem_finish(mem);
}

/**
 * mgpu_mem_get_all - begin to use mappings of a vGPU
 * @mem: mappings
 * @n: number of @mem, not 0
 *
 * Until mgpu_mem_put_all(), the caller must not wait for VFIO, for a page of user
 * space, or for a lock whose holder may do so: dma_unmap() waits for the caller.
 *
 * Context: any.
 * Return: false, with no mapping in use, if the VMM unmapped one.
 */
bool mgpu_mem_get_all(struct mgpu_mem *const *mem, u32 n)
{
	struct mgpu_guest_mem *gm = &mem[0]->vgpu->mem;
	bool dead = false;
	u32 i;

	spin_lock(&gm->lock);
	for (i = 0; i < n; i++)
		dead |= mem[i]->dead;
	for (i = 0; i < n && !dead; i++)
		mem[i]->users++;
	spin_unlock(&gm->lock);
	return !dead;
}

/* End the use of mappings; any context. */
void mgpu_mem_put_all(struct mgpu_mem *const *mem, u32 n)
{
	struct mgpu_guest_mem *gm = &mem[0]->vgpu->mem;
	bool wake = false;
	u32 i;

	spin_lock(&gm->lock);
	for (i = 0; i < n; i++)
		wake |= !--mem[i]->users && mem[i]->dead;
	if (wake)
		wake_up_all(&gm->wait);
	spin_unlock(&gm->lock);
}

/* As mgpu_mem_get_all(), for one mapping. */
bool mgpu_mem_get(struct mgpu_mem *mem)
{
	return mgpu_mem_get_all(&mem, 1);
}

void mgpu_mem_put(struct mgpu_mem *mem)
{
	mgpu_mem_put_all(&mem, 1);
}

/**
 * mgpu_mem_map - map memory for the kernel as one piece
 * @mem: memory without users
 *
 * Memory that is only copied or given to a device needs no such mapping.
 *
 * Context: may sleep; the caller keeps others from mapping it at the same time.
 * Return: 0; -ENOMEM; or -EFAULT if the VMM unmapped the memory.
 */
int mgpu_mem_map(struct mgpu_mem *mem)
{
	if (mem->base)
		return 0;
	if (!mgpu_mem_get(mem))
		return -EFAULT;
	mem->base = vmap(mem->pages, mem->nr_pages, VM_MAP, PAGE_KERNEL);
	mgpu_mem_put(mem);
	return mem->base ? 0 : -ENOMEM;
}

/**
 * mgpu_mem_addr - get the address of mapped memory
 * @mem: memory in use, after mgpu_mem_map(), or of a single page
 *
 * Return: address of the first byte, valid until mgpu_mem_put().
 */
void *mgpu_mem_addr(const struct mgpu_mem *mem)
{
	return mem->base + mem->chunks[0].at;
}

/**
 * mgpu_mem_copy - copy out of a mapping
 * @mem: mapping, between mgpu_mem_get() and mgpu_mem_put()
 * @off: offset of the first byte; @off + @len is at most @mem->len
 * @to: kernel memory
 * @len: bytes
 */
void mgpu_mem_copy(const struct mgpu_mem *mem, u64 off, void *to, size_t len)
{
	u32 lo = 0, hi = mem->nr_chunks, mid;
	u64 end, at, n;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (mem->chunks[mid].start <= off)
			lo = mid;
		else
			hi = mid;
	}
	while (len) {
		end = lo + 1 < mem->nr_chunks ? mem->chunks[lo + 1].start :
						mem->len;
		if (off == end) {
			lo++;
			continue;
		}
		at = mem->chunks[lo].at + (off - mem->chunks[lo].start);
		n = min3((u64)len, end - off, (u64)PAGE_SIZE - offset_in_page(at));
		memcpy_from_page(to, mem->pages[at >> PAGE_SHIFT],
				 offset_in_page(at), n);
		to += n;
		off += n;
		len -= n;
	}
}

/* ---- unmapping ---- */

/* Take mappings that overlap the range out of the tree, and make them dead. */
static void mark_dead(struct mgpu_guest_mem *gm, u64 first, u64 last)
{
	struct mgpu_mem_run *run;
	u32 n;

	do {
		spin_lock(&gm->lock);
		for (n = 0; n < LOCK_BATCH; n++) {
			run = run_iter_first(&gm->tree, first, last);
			if (!run)
				break;
			run_unlist(gm, run);
			if (!run->mem->dead) {
				run->mem->dead = true;
				list_add_tail(&run->mem->node, &gm->dying);
			}
		}
		spin_unlock(&gm->lock);
		cond_resched();
	} while (run);
}

/*
 * Claim a dead mapping that is idle, or return NULL in @mem.  Return false if there is
 * none to claim, but there are others.
 *
 * A mapping is busy only because of a thread, so the list has few of them.
 */
static bool claim_or_idle(struct mgpu_guest_mem *gm, struct mgpu_mem **mem)
{
	struct mgpu_mem *m;
	bool idle;

	*mem = NULL;
	spin_lock(&gm->lock);
	list_for_each_entry(m, &gm->dying, node) {
		if (!m->users && !m->pinning && !m->claimed) {
			m->claimed = true;
			*mem = m;
			break;
		}
	}
	idle = list_empty(&gm->dying);
	spin_unlock(&gm->lock);
	return *mem || idle;
}

/* Return whether a thread sleeps in VFIO that has a dead mapping. */
static bool sleeps_in_vfio(struct mgpu_guest_mem *gm)
{
	struct mgpu_mem *mem;
	bool sleeps = false;

	spin_lock(&gm->lock);
	list_for_each_entry(mem, &gm->dying, node)
		sleeps |= mem->caller && !task_is_running(mem->caller);
	spin_unlock(&gm->lock);
	return sleeps;
}

/**
 * mgpu_mem_unmap - release guest memory that the VMM unmaps
 * @vgpu: vGPU
 * @iova: first byte
 * @len: bytes, not 0
 *
 * Context: called by VFIO with its locks held; may sleep.
 */
void mgpu_mem_unmap(struct mgpu_vgpu *vgpu, u64 iova, u64 len)
{
	struct mgpu_guest_mem *gm = &vgpu->mem;
	u64 last = iova + len - 1;
	unsigned int again = note_unmapping(gm, iova, last);
	long wait = (long)UNMAP_WAIT << min(again, UNMAP_MAX_SHIFT);
	struct mgpu_mem *mem;

	mark_dead(gm, iova, last);
	for (;;) {
		if (wait_event_timeout(gm->wait, claim_or_idle(gm, &mem), wait)) {
			if (!mem)
				return;
			mem_release(mem);
		} else if (sleeps_in_vfio(gm)) {
			break;
		}
	}
	dev_warn_ratelimited(vgpu->vdev.dev,
			     "guest memory is still in use while the VMM unmaps it: VFIO tries again\n");
}

/* ---- single pages, for commands and their answers ---- */

/*
 * Get the mapping of a page, for use; NULL when it cannot be pinned, or with @nowait
 * when it is not pinned already.
 */
static struct mgpu_mem *cache_get(struct mgpu_vgpu *vgpu, u64 page, bool nowait)
{
	struct mgpu_mem **slot, *mem;
	u64 pfn = page >> PAGE_SHIFT;

	slot = &vgpu->mem.cache[(pfn ^ pfn >> 8) & (MGPU_PIN_CACHE - 1)];
	if (*slot && (*slot)->iova[0] == page && mgpu_mem_get(*slot))
		return *slot;
	if (nowait)
		return NULL;

	mgpu_mem_free(*slot);
	*slot = NULL;
	mem = mgpu_mem_pin_range(vgpu, page, PAGE_SIZE);
	if (IS_ERR(mem))
		return NULL;
	if (!mgpu_mem_get(mem)) {
		mgpu_mem_free(mem);
		return NULL;
	}
	*slot = mem;
	return mem;
}

static int guest_rw(struct mgpu_vgpu *vgpu, u64 addr, void *buf, size_t len,
		    bool write, bool nowait)
{
	struct mgpu_mem *mem;
	size_t n, off;
	void *p;
	int ret;

	while (len) {
		off = offset_in_page(addr);
		n = min_t(size_t, len, PAGE_SIZE - off);
		mem = cache_get(vgpu, addr & PAGE_MASK, nowait);
		if (mem) {
			p = mgpu_mem_addr(mem) + off;
			if (write)
				memcpy(p, buf, n);
			else
				memcpy(buf, p, n);
			mgpu_mem_put(mem);
		} else {
			/* Read-only memory, for example, cannot be pinned. */
			ret = nowait ? -EAGAIN :
			      vfio_dma_rw(&vgpu->vdev, addr, buf, n, write);
			if (ret)
				return ret;
		}
		addr += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/**
 * mgpu_guest_read - copy from guest memory
 * @vgpu: vGPU
 * @addr: guest address; the range does not wrap
 * @buf: kernel memory
 * @len: bytes
 * @nowait: fail instead of waiting for VFIO
 *
 * Context: must hold ring_lock; may sleep unless @nowait.
 * Return: 0; -EAGAIN if @nowait is set and the copy would have to wait; or a negative
 * errno of VFIO.
 */
int mgpu_guest_read(struct mgpu_vgpu *vgpu, u64 addr, void *buf, size_t len,
		    bool nowait)
{
	return guest_rw(vgpu, addr, buf, len, false, nowait);
}

/* Copy to guest memory; otherwise as mgpu_guest_read(). */
int mgpu_guest_write(struct mgpu_vgpu *vgpu, u64 addr, const void *buf,
		     size_t len, bool nowait)
{
	return guest_rw(vgpu, addr, (void *)buf, len, true, nowait);
}

/*
 * Return whether a copy to or from guest memory would succeed without waiting.  Must
 * hold ring_lock.
 */
bool mgpu_guest_ready(struct mgpu_vgpu *vgpu, u64 addr, size_t len)
{
	struct mgpu_mem *mem;
	size_t n;

	while (len) {
		n = min_t(size_t, len, PAGE_SIZE - offset_in_page(addr));
		mem = cache_get(vgpu, addr & PAGE_MASK, true);
		if (!mem)
			return false;
		mgpu_mem_put(mem);
		addr += n;
		len -= n;
	}
	return true;
}

/* Drop the records of threads that unmap; the vGPU is closed. */
void mgpu_mem_drop_unmapping(struct mgpu_vgpu *vgpu)
{
	struct mgpu_guest_mem *gm = &vgpu->mem;
	struct mgpu_unmapping *u, *next;

	mutex_lock(&unmappings_lock);
	list_for_each_entry_safe(u, next, &gm->unmapping, node)
		unmapping_drop(u);
	mutex_unlock(&unmappings_lock);
}

/* Release the cached pages of a vGPU whose ring is stopped. */
void mgpu_mem_drop_cache(struct mgpu_vgpu *vgpu)
{
	int i;

	for (i = 0; i < MGPU_PIN_CACHE; i++) {
		mgpu_mem_free(vgpu->mem.cache[i]);
		vgpu->mem.cache[i] = NULL;
	}
}

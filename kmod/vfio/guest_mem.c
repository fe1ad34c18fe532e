// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory: pinned, mapped, and released when the VMM unmaps it.
 *
 * The VMM may unmap any range at any time, and vfio_iommu_type1 requires that no page
 * of the range is pinned when dma_unmap() returns.  So every mapping is in one tree
 * per vGPU, by guest address, from before its first page is pinned until after its last
 * page is unpinned.  dma_unmap() marks overlapping mappings dead, waits for their users (a
 * tile, a command: short) and releases them.  If the owner is releasing a mapping
 * already, dma_unmap() waits for the owner.
 * That wait has a time limit, because a user may be inside of vfio_pin_pages(), which
 * can be waiting for the caller of dma_unmap(); type 1 calls dma_unmap() again.
 * Memory that a device has for DMA is revoked first; that takes until the device
 * answers or is reset.
 *
 * Between the return of dma_unmap() and the end of the unmapping, type 1 drops its
 * lock, and the range can be pinned again.  Type 1 then calls dma_unmap() again, but
 * only ten times before it panics (BUG_ON).  A guest that submits backings in a loop
 * must not win that race: for UNMAP_SETTLE after dma_unmap(), the module pins no page
 * of the range.
 *
 * mem.lock is never held across a call into VFIO.  A guest may have very many mappings,
 * and mappings in very many pieces; engines take the lock for each tile.  So threads
 * hold it for LOCK_BATCH steps at most, but to look for what is in use.
 */
#include <linux/delay.h>
#include <linux/interval_tree_generic.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vfio.h>
#include <linux/vmalloc.h>

#include "mgpu.h"
#include "virgl/devcmd.h"

#define PIN_BATCH		512	/* pages in one vfio_pin_pages() */
#define UNMAP_WAIT		HZ
#define UNMAP_SETTLE		max(HZ / 50, 2)
#define SETTLE_POLL_MS		5
#define SETTLE_POLLS		40
#define LOCK_BATCH		64	/* steps in one section of mem.lock */

#define run_first(run)		((run)->first)
#define run_last(run)		((run)->last)
INTERVAL_TREE_DEFINE(struct mgpu_mem_run, rb, u64, subtree_last, run_first, run_last,
		     static, run)

void mgpu_mem_init(struct mgpu_vgpu *vgpu)
{
	spin_lock_init(&vgpu->mem.lock);
	vgpu->mem.tree = RB_ROOT_CACHED;
	init_waitqueue_head(&vgpu->mem.wait);
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

/* Add the addresses to the tree, or remove them, in sections of LOCK_BATCH. */
static void mem_list(struct mgpu_mem *mem, bool list)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	u32 end = list ? mem->nr_runs : 0, n;

	while (READ_ONCE(mem->nr_listed) != end) {
		spin_lock(&gm->lock);
		for (n = 0; n < LOCK_BATCH && mem->nr_listed != end; n++) {
			if (list)
				run_insert(&mem->runs[mem->nr_listed++], &gm->tree);
			else
				run_remove(&mem->runs[--mem->nr_listed], &gm->tree);
		}
		spin_unlock(&gm->lock);
		cond_resched();
	}
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
		vfio_unpin_pages(&vgpu->vdev, mem->iova[i], n);
	}
	atomic64_sub(mem->nr_pinned, &vgpu->mem.pinned);
	mem->nr_pinned = 0;
	mem_list(mem, false);

	spin_lock(&vgpu->mem.lock);
	mem->gone = true;
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
		ret = vfio_pin_pages(&vgpu->vdev, mem->iova[mem->nr_pinned], n,
				     IOMMU_READ | IOMMU_WRITE,
				     mem->pages + mem->nr_pinned);
		if (ret < 0)
			return ret;
		mem->nr_pinned += ret;
		atomic64_add(ret, &vgpu->mem.pinned);
		if (ret != n)
			return -EFAULT;
	}

	if (mem->nr_pages == 1)
		mem->base = page_address(mem->pages[0]);
	else
		mem->base = vmap(mem->pages, mem->nr_pages, VM_MAP,
				 PAGE_KERNEL);
	return mem->base ? 0 : -ENOMEM;
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

/* Return whether VFIO is unmapping a part of the memory. */
static bool being_unmapped(const struct mgpu_mem *mem)
{
	const struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	int i;

	lockdep_assert_held(&gm->lock);
	for (i = 0; i < ARRAY_SIZE(gm->unmapping); i++) {
		const struct mgpu_unmapping *u = &gm->unmapping[i];

		if (u->last && time_before(jiffies, u->until) &&
		    mem_overlaps(mem, u->first, u->last))
			return true;
	}
	return false;
}

/* Wait until the pages may be pinned; they are in the tree that dma_unmap() searches. */
static int mem_begin_pinning(struct mgpu_mem *mem)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	bool begin, dead;
	int polls;

	for (polls = 0; polls < SETTLE_POLLS; polls++) {
		spin_lock(&gm->lock);
		dead = mem->dead;
		begin = !dead && !being_unmapped(mem);
		mem->pinning = begin;
		if (!begin)
			wake_up_all(&gm->wait);
		spin_unlock(&gm->lock);
		if (begin)
			return 0;
		if (dead)
			break;
		msleep(SETTLE_POLL_MS);
	}
	return -EFAULT;
}

/* Pin and map the pages that mem_add() collected; free @mem on error. */
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
	mem_list(mem, true);
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
 * mgpu_mem_pin_range - pin and map one range of guest memory
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
 * mgpu_mem_pin_cmd - pin and map the memory entries of a command
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
 * mgpu_mem_get - begin to use a mapping
 * @mem: mapping
 *
 * Return: the address of its first byte, valid until mgpu_mem_put(); NULL if the VMM
 * unmapped the memory.
 */
void *mgpu_mem_get(struct mgpu_mem *mem)
{
	void *p = NULL;

	spin_lock(&mem->vgpu->mem.lock);
	if (!mem->dead) {
		mem->users++;
		p = mem->base + mem->chunks[0].at;
	}
	spin_unlock(&mem->vgpu->mem.lock);
	return p;
}

void mgpu_mem_put(struct mgpu_mem *mem)
{
	struct mgpu_guest_mem *gm = &mem->vgpu->mem;
	bool wake;

	spin_lock(&gm->lock);
	wake = !--mem->users && mem->dead;
	if (wake)
		wake_up_all(&gm->wait);
	spin_unlock(&gm->lock);
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
	u64 end, n;

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
		n = min_t(u64, len, end - off);
		memcpy(to, mem->base + mem->chunks[lo].at +
			   (off - mem->chunks[lo].start), n);
		to += n;
		off += n;
		len -= n;
		lo++;
	}
}

/*
 * Mark mappings dead that overlap the range, and claim those without users, LOCK_BATCH
 * at most.  @busy is set if an overlapping mapping is in use or being released.
 */
static void claim_dead(struct mgpu_vgpu *vgpu, u64 iova, u64 last,
		       struct list_head *claimed, bool *busy)
{
	struct mgpu_mem_run *run;
	struct mgpu_mem *mem;
	u32 nr = 0;

	*busy = false;
	spin_lock(&vgpu->mem.lock);
	for (run = run_iter_first(&vgpu->mem.tree, iova, last); run;
	     run = run_iter_next(run, iova, last)) {
		mem = run->mem;
		mem->dead = true;
		/* Another run of what was claimed in this section makes it busy, too. */
		if (mem->users || mem->pinning || mem->claimed) {
			*busy = true;
		} else {
			mem->claimed = true;
			list_add_tail(&mem->node, claimed);
		}
		if (++nr >= LOCK_BATCH && !list_empty(claimed))
			break;
	}
	spin_unlock(&vgpu->mem.lock);
}

/* Return whether dma_unmap() can go on: it has mappings to release, or none is left. */
static bool claim_or_idle(struct mgpu_vgpu *vgpu, u64 iova, u64 last,
			  struct list_head *claimed, bool *busy)
{
	claim_dead(vgpu, iova, last, claimed, busy);
	return !list_empty(claimed) || !*busy;
}

/* Keep the range from being pinned for UNMAP_SETTLE. */
static void note_unmapping(struct mgpu_vgpu *vgpu, u64 iova, u64 last)
{
	struct mgpu_guest_mem *gm = &vgpu->mem;
	struct mgpu_unmapping *u = NULL;
	int i;

	spin_lock(&gm->lock);
	for (i = 0; i < ARRAY_SIZE(gm->unmapping) && !u; i++) {
		if (gm->unmapping[i].first == iova &&
		    gm->unmapping[i].last == last)
			u = &gm->unmapping[i];
	}
	if (!u)
		u = &gm->unmapping[gm->next_unmapping++ %
				   ARRAY_SIZE(gm->unmapping)];
	u->first = iova;
	u->last = last;
	u->until = jiffies + UNMAP_SETTLE;
	spin_unlock(&gm->lock);
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
	u64 last = iova + len - 1;
	struct mgpu_mem *mem, *next;
	long left = UNMAP_WAIT;
	LIST_HEAD(claimed);
	bool busy, found;

	note_unmapping(vgpu, iova, last);
	do {
		left = wait_event_timeout(vgpu->mem.wait,
					  claim_or_idle(vgpu, iova, last,
							&claimed, &busy),
					  left);
		found = !list_empty(&claimed);
		list_for_each_entry_safe(mem, next, &claimed, node) {
			/* The owner may free it once it is released. */
			list_del_init(&mem->node);
			mem_release(mem);
		}
	} while (found);
	/* Restart the time of the range. */
	note_unmapping(vgpu, iova, last);
	if (busy)
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
			p = mem->base + off;
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

/* Release the cached pages of a vGPU whose ring is stopped. */
void mgpu_mem_drop_cache(struct mgpu_vgpu *vgpu)
{
	int i;

	for (i = 0; i < MGPU_PIN_CACHE; i++) {
		mgpu_mem_free(vgpu->mem.cache[i]);
		vgpu->mem.cache[i] = NULL;
	}
}

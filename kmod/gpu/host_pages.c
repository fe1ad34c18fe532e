// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a process that a guest maps.
 *
 * Most memory is pinned.  A driver's mapping of its GPU's memory cannot be: its VMA is
 * VM_PFNMAP, and the driver moves the memory when it has to, by taking the pages from all page
 * tables first.  The kernel tells MMU notifiers of the process about that.  As KVM does, the
 * module reads page frames out of the page tables of the process, forgets them when the
 * notifier says so, and takes them from the VMM before the notifier returns
 * (Documentation/mm/mmu_notifier.rst of the kernel).
 *
 * The notifier may be called from reclaim.  Under hp->lock, which it takes, nothing
 * allocates: a fault allocates the VMM's page table before it takes the lock.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "backend.h"
#include "compat.h"
#include "gpu/host_pages.h"
#include "gpu/hostmem.h"

/* Page frames of memory that is not pinned; no such frame is ever mapped. */
#define PFN_UNKNOWN	0UL	/* see mgpu_host_pages_find() */
#define PFN_NONE	(~0UL)	/* the process has nothing there */

/* So many pages are looked up at once: what TTM puts into page tables with a fault. */
#define FIND_PAGES	16

/**
 * struct mgpu_host_pages - memory of a process
 * @ref: references
 * @nr: number of pages
 * @cache: VIRTIO_GPU_MAP_CACHE_*
 * @page: the pages, pinned by pin_user_pages() for writing; NULL if they cannot be pinned, and
 *	only then the following are used
 * @mni: notifier of the process's page tables
 * @addr: first address in the process
 * @lock: protects the following, and what the VMM has of the pages in its page tables
 * @pfn: page frames, or PFN_UNKNOWN, PFN_NONE
 * @mapping: of the VMM's mappings in which the pages are; NULL if in none
 * @at: offset of the first page in @mapping, bytes
 */
struct mgpu_host_pages {
	struct kref ref;
	u32 nr;
	u32 cache;
	struct page **page;

	struct mmu_interval_notifier mni;
	unsigned long addr;
	struct mutex lock;	/* see above */
	unsigned long *pfn;
	struct address_space *mapping;
	u64 at;
};

/* Takes pages from VMMs; reclaim may wait for it. */
static struct workqueue_struct *zap_wq;

u32 mgpu_host_pages_nr(const struct mgpu_host_pages *hp)
{
	return hp->nr;
}

u32 mgpu_host_pages_cache(const struct mgpu_host_pages *hp)
{
	return hp->cache;
}

/* ---- taking pages from VMMs ---- */

struct zap {
	struct work_struct work;
	struct completion done;
	struct address_space *mapping;
	u64 at;
	u64 len;
};

static void zap_work(struct work_struct *work)
{
	struct zap *z = container_of(work, struct zap, work);

	unmap_mapping_range(z->mapping, z->at, z->len, 1);
	complete(&z->done);
}

/*
 * Take pages from the VMM.  The notifier's caller may hold the lock of another mapping, and
 * taking pages from the VMM calls notifiers of the VMM.  Both are other objects of the same
 * kind, which lockdep cannot know: another thread does it.
 */
static void zap(struct mgpu_host_pages *hp, u32 first, u32 nr)
{
	struct zap z = {
		.mapping = hp->mapping,
		.at = hp->at + ((u64)first << PAGE_SHIFT),
		.len = (u64)nr << PAGE_SHIFT,
	};

	lockdep_assert_held(&hp->lock);
	INIT_WORK_ONSTACK(&z.work, zap_work);
	init_completion(&z.done);
	queue_work(zap_wq, &z.work);
	wait_for_completion(&z.done);
	destroy_work_on_stack(&z.work);
}

/* Return whether a VMM may have one of these pages in its page tables. */
static bool any_shown(const struct mgpu_host_pages *hp, u32 first, u32 end)
{
	u32 i;

	lockdep_assert_held(&hp->lock);
	if (!hp->mapping)
		return false;
	for (i = first; i < end; i++)
		if (hp->pfn[i] != PFN_UNKNOWN)
			return true;
	return false;
}

static bool invalidate(struct mmu_interval_notifier *mni, const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct mgpu_host_pages *hp = container_of(mni, struct mgpu_host_pages, mni);
	unsigned long start = max(range->start, hp->addr);
	unsigned long end = min(range->end, hp->addr + ((unsigned long)hp->nr << PAGE_SHIFT));
	u32 first = (start - hp->addr) >> PAGE_SHIFT;
	u32 last = DIV_ROUND_UP(end - hp->addr, PAGE_SIZE);
	bool shown;

	if (mmu_notifier_range_blockable(range))
		mutex_lock(&hp->lock);
	else if (!mutex_trylock(&hp->lock))
		return false;
	shown = any_shown(hp, first, last);
	if (shown && !mmu_notifier_range_blockable(range)) {
		mutex_unlock(&hp->lock);
		return false;
	}
	mmu_interval_set_seq(mni, seq);
	memset(hp->pfn + first, 0, (last - first) * sizeof(*hp->pfn));
	if (shown)
		zap(hp, first, last - first);
	mutex_unlock(&hp->lock);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* ---- making and releasing ---- */

static void hp_free(struct mgpu_host_pages *hp)
{
	kvfree(hp->page);
	kvfree(hp->pfn);
	kfree(hp);
}

static int pin(struct mgpu_host_pages *hp)
{
	int ret;

	hp->page = kvcalloc(hp->nr, sizeof(*hp->page), GFP_KERNEL_ACCOUNT);
	if (!hp->page)
		return -ENOMEM;
	ret = pin_user_pages_fast(hp->addr, hp->nr, FOLL_WRITE | FOLL_LONGTERM, hp->page);
	if (ret == hp->nr)
		return 0;
	if (ret > 0)
		unpin_user_pages(hp->page, ret);
	kvfree(hp->page);
	hp->page = NULL;
	return ret < 0 ? ret : -EFAULT;
}

/*
 * Return whether page frames can be read out of a VMA: all are the driver's.  Pages of a
 * private mapping may be copies.
 */
static bool is_drivers(const struct vm_area_struct *vma)
{
	const vm_flags_t flags = VM_PFNMAP | VM_SHARED | VM_WRITE;

	return (vma->vm_flags & flags) == flags && !mgpu_hostmem_is(vma);
}

/* Return whether all of the memory is a driver's now. */
static bool all_drivers(struct mgpu_host_pages *hp)
{
	unsigned long at = hp->addr, end = at + ((unsigned long)hp->nr << PAGE_SHIFT);
	struct mm_struct *mm = hp->mni.mm;
	struct vm_area_struct *vma;

	mmap_read_lock(mm);
	while (at < end) {
		vma = vma_lookup(mm, at);
		if (!vma || !is_drivers(vma))
			break;
		at = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return at >= end;
}

static int follow(struct mgpu_host_pages *hp)
{
	int ret;

	hp->pfn = kvcalloc(hp->nr, sizeof(*hp->pfn), GFP_KERNEL_ACCOUNT);
	if (!hp->pfn)
		return -ENOMEM;
	ret = mmu_interval_notifier_insert(&hp->mni, current->mm, hp->addr,
					   (unsigned long)hp->nr << PAGE_SHIFT, &notifier_ops);
	if (ret)
		return ret;
	if (all_drivers(hp))
		return 0;
	mmu_interval_notifier_remove(&hp->mni);
	return -EFAULT;
}

/**
 * mgpu_host_pages_take - take memory of the calling process for a guest
 * @addr: address, a multiple of PAGE_SIZE
 * @nr: number of pages, from 1
 * @cache: VIRTIO_GPU_MAP_CACHE_*, which the guest is told
 *
 * The memory is pinned.  Where it is a shared, writable mapping of a driver, which cannot be
 * pinned, it is followed: the guest has what the process has at these addresses, and nothing
 * once the process has unmapped them or has ended.
 *
 * Context: the process's thread; may sleep.
 * Return: memory for the core, or an ERR_PTR(): -EFAULT if it can neither be pinned nor
 * followed.
 */
struct mgpu_host_pages *mgpu_host_pages_take(unsigned long addr, u32 nr, u32 cache)
{
	struct mgpu_host_pages *hp = kzalloc(sizeof(*hp), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!hp)
		return ERR_PTR(-ENOMEM);
	kref_init(&hp->ref);
	mutex_init(&hp->lock);
	hp->addr = addr;
	hp->nr = nr;
	hp->cache = cache;
	ret = pin(hp);
	if (ret == -EFAULT)
		ret = follow(hp);
	if (!ret)
		return hp;
	hp_free(hp);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(mgpu_host_pages_take);

void mgpu_host_pages_get(struct mgpu_host_pages *hp)
{
	kref_get(&hp->ref);
}

static void release(struct kref *ref)
{
	struct mgpu_host_pages *hp = container_of(ref, struct mgpu_host_pages, ref);

	if (hp->page)
		unpin_user_pages_dirty_lock(hp->page, hp->nr, true);
	else
		mmu_interval_notifier_remove(&hp->mni);
	hp_free(hp);
}

/**
 * mgpu_host_pages_put - drop a reference
 * @hp: memory, in no VMM's page tables if this is the last reference; or NULL
 *
 * Context: may sleep.
 */
void mgpu_host_pages_put(struct mgpu_host_pages *hp)
{
	if (hp)
		kref_put(&hp->ref, release);
}
EXPORT_SYMBOL_GPL(mgpu_host_pages_put);

/* ---- showing it to a VMM ---- */

/**
 * mgpu_host_pages_show - let faults find the memory
 * @hp: memory
 * @mapping: of the VMM's mappings; stays until mgpu_host_pages_hide()
 * @at: offset of the memory in @mapping, bytes
 *
 * Context: may sleep.
 */
void mgpu_host_pages_show(struct mgpu_host_pages *hp, struct address_space *mapping, u64 at)
{
	mutex_lock(&hp->lock);
	hp->mapping = mapping;
	hp->at = at;
	mutex_unlock(&hp->lock);
}

/* Forget the mapping; the caller has taken the pages from it.  May sleep. */
void mgpu_host_pages_hide(struct mgpu_host_pages *hp)
{
	mutex_lock(&hp->lock);
	hp->mapping = NULL;
	mutex_unlock(&hp->lock);
}

/* Of apply_to_page_range(), which allocates the page table. */
static int no_pte(pte_t *pte, unsigned long addr, void *data)
{
	return 0;
}

/**
 * mgpu_host_pages_fault - put a page into the VMM's page tables
 * @hp: memory, after mgpu_host_pages_show()
 * @page: number of the page
 * @vmf: fault at it
 * @none: page that the VMM gets where the process has nothing any more
 *
 * Context: may sleep.
 * Return: VM_FAULT_*; VM_FAULT_RETRY, with the VMM's lock held, if mgpu_host_pages_find() has
 * to look for the page first.
 */
vm_fault_t mgpu_host_pages_fault(struct mgpu_host_pages *hp, u32 page, struct vm_fault *vmf,
				 struct page *none)
{
	unsigned long pfn;
	vm_fault_t ret;

	if (hp->page)
		return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(hp->page[page]));
	if (apply_to_page_range(vmf->vma->vm_mm, vmf->address & PAGE_MASK, PAGE_SIZE, no_pte,
				NULL))
		return VM_FAULT_OOM;
	/* Under the lock, so that no page is mapped after the notifier. */
	mutex_lock(&hp->lock);
	pfn = hp->pfn[page];
	if (pfn == PFN_UNKNOWN)
		ret = VM_FAULT_RETRY;
	else
		ret = vmf_insert_pfn(vmf->vma, vmf->address,
				     pfn == PFN_NONE ? page_to_pfn(none) : pfn);
	mutex_unlock(&hp->lock);
	return ret;
}

/* Get the page frame at an address of the process, whose mmap_lock is held. */
static unsigned long pfn_at(struct mm_struct *mm, unsigned long addr, bool have_driver)
{
	struct vm_area_struct *vma = vma_lookup(mm, addr);
	unsigned long pfn;

	if (!vma || !is_drivers(vma))
		return PFN_NONE;
	if (mgpu_compat_writable_pfn(vma, addr, &pfn))
		return pfn;
	if (!have_driver)
		return PFN_UNKNOWN;
	if (fixup_user_fault(mm, addr, FAULT_FLAG_WRITE, NULL))
		return PFN_NONE;
	/* If the driver has taken it again, the VMM asks again. */
	return mgpu_compat_writable_pfn(vma, addr, &pfn) ? pfn : PFN_UNKNOWN;
}

/*
 * Look for the page frames of @nr pages.  The driver may have to bring page @want back; others are
 * found where they are in the process's page tables.
 */
static void look(struct mgpu_host_pages *hp, u32 first, u32 nr, u32 want, unsigned long *pfn)
{
	unsigned long at = hp->addr + ((unsigned long)first << PAGE_SHIFT);
	struct mm_struct *mm = hp->mni.mm;
	u32 i;

	if (!mmget_not_zero(mm)) {
		pfn[want] = PFN_NONE;
		return;
	}
	/* It fails if the VMM is being killed. */
	if (!mmap_read_lock_killable(mm)) {
		/* First, since the driver may bring others with it. */
		pfn[want] = pfn_at(mm, at + ((unsigned long)want << PAGE_SHIFT), true);
		for (i = 0; i < nr; i++)
			if (i != want)
				pfn[i] = pfn_at(mm, at + ((unsigned long)i << PAGE_SHIFT), false);
		mmap_read_unlock(mm);
	}
	mmput(mm);
}

/**
 * mgpu_host_pages_find - look for a page frame, and those around it
 * @hp: memory that is not pinned
 * @page: number of a page
 *
 * Context: takes the mmap_lock of the process: the caller must hold none.
 */
void mgpu_host_pages_find(struct mgpu_host_pages *hp, u32 page)
{
	u32 first = round_down(page, FIND_PAGES), nr = min(hp->nr - first, FIND_PAGES), i;
	unsigned long pfn[FIND_PAGES] = {}, seq;

	seq = mmu_interval_read_begin(&hp->mni);
	look(hp, first, nr, page - first, pfn);
	mutex_lock(&hp->lock);
	/* Else the driver has moved some meanwhile, and the VMM asks again. */
	if (!mmu_interval_read_retry(&hp->mni, seq))
		for (i = 0; i < nr; i++)
			if (pfn[i] != PFN_UNKNOWN)
				hp->pfn[first + i] = pfn[i];
	mutex_unlock(&hp->lock);
}

/* ---- accesses of a VMM that has not mapped the BAR ---- */

struct copy {
	struct work_struct work;
	struct mgpu_host_pages *hp;
	u64 offset;
	void *buf;
	u32 len;
	bool write;
};

/* The driver may move the memory between finding and copying it, but not for ever. */
#define COPY_TRIES	100

/* In the process's address space, whose mappings stay as they are meanwhile. */
static void copy_work(struct work_struct *work)
{
	struct copy *c = container_of(work, struct copy, work);
	struct mm_struct *mm = c->hp->mni.mm;
	unsigned long addr = c->hp->addr + c->offset;
	void __user *at = (void __user *)addr;
	long ret = -EFAULT;
	int n;

	if (mmget_not_zero(mm)) {
		kthread_use_mm(mm);
		mmap_read_lock(mm);
		for (n = 0; ret && n < COPY_TRIES && pfn_at(mm, addr, true) != PFN_NONE; n++)
			ret = c->write ? copy_to_user_nofault(at, c->buf, c->len) :
					 copy_from_user_nofault(c->buf, at, c->len);
		mmap_read_unlock(mm);
		kthread_unuse_mm(mm);
		mmput(mm);
	}
	if (ret && !c->write)
		memset(c->buf, 0, c->len);
}

/**
 * mgpu_host_pages_copy - read or write the memory
 * @hp: memory
 * @offset: first byte in it
 * @buf: bytes
 * @len: their number; the access must not cross a page
 * @write: write
 *
 * Where the process has nothing any more, reads find zeros and writes are lost.
 *
 * Context: may sleep; must hold no lock that a fault takes.
 */
void mgpu_host_pages_copy(struct mgpu_host_pages *hp, u64 offset, void *buf, u32 len,
			  bool write)
{
	struct copy c = { .hp = hp, .offset = offset, .buf = buf, .len = len, .write = write };
	void *p;

	if (hp->page) {
		p = kmap_local_page(hp->page[offset >> PAGE_SHIFT]) + offset_in_page(offset);
		if (write)
			memcpy(p, buf, len);
		else
			memcpy(buf, p, len);
		kunmap_local(p);
		return;
	}
	INIT_WORK_ONSTACK(&c.work, copy_work);
	queue_work(system_unbound_wq, &c.work);
	flush_work(&c.work);
	destroy_work_on_stack(&c.work);
}

int __init mgpu_host_pages_init(void)
{
	zap_wq = alloc_workqueue("mgpu-zap", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return zap_wq ? 0 : -ENOMEM;
}

void mgpu_host_pages_exit(void)
{
	destroy_workqueue(zap_wq);
}

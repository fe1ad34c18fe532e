// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest memory for the device: the DMA mapping, and the memory entries of a
 * virtio-gpu command (VIRTIO 1.2, section 5.7.6.8).
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/virtio_gpu.h>

#include "mgpu.h"

/*
 * Return whether device and guest can access the same pages at the same time.  An
 * IOMMU maps the pages themselves.  Without an IOMMU the kernel may copy them (swiotlb)
 * or flush caches at each dma_sync_*() call, and the module makes no such calls.
 */
static bool dma_reaches(struct device *dev, struct sg_table *sgt)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	struct scatterlist *sg;
	int i;

	if (domain && domain->type & __IOMMU_DOMAIN_PAGING)
		return true;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (dma_need_sync(dev, sg_dma_address(sg)))
			return false;
	}
	return true;
}

/**
 * mgpu_dma_map - map pages for a device
 * @dma: result
 * @pages: pages to map
 * @nr: number of pages
 * @dev: device, or NULL if the device uses physical addresses
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, with nothing mapped; -EOPNOTSUPP if @dev cannot
 * access the pages at the same time as the guest.
 */
int mgpu_dma_map(struct mgpu_dma *dma, struct page **pages, u32 nr,
		 struct device *dev)
{
	int ret;

	ret = sg_alloc_table_from_pages(&dma->sgt, pages, nr, 0,
					(size_t)nr << PAGE_SHIFT, GFP_GUEST);
	if (ret)
		return ret;
	dma->dev = dev;
	if (!dev)
		return 0;
	ret = dma_map_sgtable(dev, &dma->sgt, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto err_free;
	if (dma_reaches(dev, &dma->sgt))
		return 0;

	dev_err_ratelimited(dev, "cannot share memory with guests, because the kernel copies it (swiotlb) or flushes it: enable an IOMMU for the GPU, or do not force swiotlb\n");
	ret = -EOPNOTSUPP;
	/* Skip copying back: the guest may have written to the pages meanwhile. */
	dma_unmap_sgtable(dev, &dma->sgt, DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
err_free:
	sg_free_table(&dma->sgt);
	dma->sgt = (struct sg_table){};
	return ret;
}

/* Undo mgpu_dma_map(); no effect if nothing is mapped. */
void mgpu_dma_unmap(struct mgpu_dma *dma)
{
	if (!dma->sgt.sgl)
		return;
	if (dma->dev)
		dma_unmap_sgtable(dma->dev, &dma->sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&dma->sgt);
	dma->sgt = (struct sg_table){};
}

static u64 sg_at(const struct mgpu_dma *dma, struct scatterlist *sg)
{
	return dma->dev ? sg_dma_address(sg) : sg_phys(sg);
}

static u64 sg_bytes(const struct mgpu_dma *dma, struct scatterlist *sg)
{
	return dma->dev ? sg_dma_len(sg) : sg->length;
}

/**
 * mgpu_dma_entries - make the memory entries of a command to the device
 * @dma: mapped pages
 * @chunks: location of the bytes in the pages, in order
 * @nr_chunks: entries of @chunks
 * @len: length of the memory, bytes
 * @entries: result; NULL to count only
 * @max: size of @entries, entries
 *
 * Contiguous bytes make one entry, even if they were several entries of the guest.
 *
 * Return: the number of entries, or @max + 1 if there are more than @max.
 */
u32 mgpu_dma_entries(const struct mgpu_dma *dma,
		     const struct mgpu_mem_chunk *chunks, u32 nr_chunks, u64 len,
		     struct virtio_gpu_mem_entry *entries, u32 max)
{
	struct scatterlist *sg = dma->sgt.sgl;
	u64 sg_start = 0, addr = 0, run = 0, next, n, at, end;
	u32 nr = 0, i;

	for (i = 0; i < nr_chunks; i++) {
		at = chunks[i].at;
		end = at + (i + 1 < nr_chunks ? chunks[i + 1].start : len) -
		      chunks[i].start;
		for (; at < end; at += n) {
			while (at >= sg_start + sg_bytes(dma, sg)) {
				sg_start += sg_bytes(dma, sg);
				sg = sg_next(sg);
			}
			n = min(end, sg_start + sg_bytes(dma, sg)) - at;
			next = sg_at(dma, sg) + (at - sg_start);
			if (nr && next == addr + run && run + n <= U32_MAX) {
				run += n;
			} else {
				if (nr++ == max)
					return nr;
				addr = next;
				run = n;
			}
			if (!entries)
				continue;
			entries[nr - 1] = (struct virtio_gpu_mem_entry){
				.addr = cpu_to_le64(addr),
				.length = cpu_to_le32(run),
			};
		}
	}
	return nr;
}

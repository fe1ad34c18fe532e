/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of a process that a guest maps: pages that stay pinned, or memory of a driver that
 * the driver may move.
 */
#ifndef MGPU_HOST_PAGES_H
#define MGPU_HOST_PAGES_H

#include <linux/mm.h>

struct address_space;
struct mgpu_host_pages;

u32 mgpu_host_pages_nr(const struct mgpu_host_pages *hp);
u32 mgpu_host_pages_cache(const struct mgpu_host_pages *hp);
void mgpu_host_pages_get(struct mgpu_host_pages *hp);
void mgpu_host_pages_show(struct mgpu_host_pages *hp, struct address_space *mapping, u64 at);
void mgpu_host_pages_hide(struct mgpu_host_pages *hp);
vm_fault_t mgpu_host_pages_fault(struct mgpu_host_pages *hp, u32 page, struct vm_fault *vmf,
				 struct page *none);
void mgpu_host_pages_find(struct mgpu_host_pages *hp, u32 page);
void mgpu_host_pages_copy(struct mgpu_host_pages *hp, u64 offset, void *buf, u32 len,
			  bool write);

int mgpu_host_pages_init(void);
void mgpu_host_pages_exit(void);

#endif /* MGPU_HOST_PAGES_H */

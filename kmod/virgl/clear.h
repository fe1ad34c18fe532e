/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clearing of new resources on the device.
 */
#ifndef MGPU_CLEAR_H
#define MGPU_CLEAR_H

#include <linux/types.h>

struct mgpu_devcmd;
struct mgpu_device;
struct mgpu_resource;
struct mgpu_virgl_shape;
struct page;

/**
 * struct mgpu_zeros - zeroed memory that new resources are filled from
 * @page: the first page, NULL for a device without resources of guests
 * @order: number of pages, as a power of two
 * @addr: address of the memory for the device
 */
struct mgpu_zeros {
	struct page *page;
	u32 order;
	u64 addr;
};

int mgpu_clear_init(struct mgpu_device *mdev);
void mgpu_clear_exit(struct mgpu_device *mdev);
u32 mgpu_clear_msgs(const struct mgpu_virgl_shape *shape);
int mgpu_clear_add(struct mgpu_devcmd *dc, const struct mgpu_resource *res);

#endif /* MGPU_CLEAR_H */

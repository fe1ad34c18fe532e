/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of contexts and resources on a device.
 */
#ifndef MGPU_DEVNUMS_H
#define MGPU_DEVNUMS_H

#include <linux/gfp_types.h>
#include <linux/xarray.h>

struct mgpu_device;

/**
 * struct mgpu_devnums - numbers of one kind of object
 * @used: numbers in use that the module has chosen
 * @next: where the search for the next one starts
 */
struct mgpu_devnums {
	struct xarray used;
	u32 next;
};

void mgpu_devnums_init(struct mgpu_devnums *nums);
u32 mgpu_devnum_new(const struct mgpu_device *mdev, struct mgpu_devnums *nums, u32 guest,
		    gfp_t gfp);
void mgpu_devnum_free(struct mgpu_devnums *nums, u32 num);

#endif /* MGPU_DEVNUMS_H */

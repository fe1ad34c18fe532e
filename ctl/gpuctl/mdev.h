/* SPDX-License-Identifier: GPL-2.0-only */
/* Create and remove mediated devices, through sysfs. */
#ifndef GPUCTL_MDEV_H
#define GPUCTL_MDEV_H

#include "mgpu.h"
#include "pci_gpu.h"

/* Return whether a text is a UUID, of letters of either case. */
bool mdev_is_uuid(const char *text);

/**
 * mdev_find_type() - find a type of vGPU by its name
 * @host: the machine
 * @parent: the device, as in /sys/class/mdev_bus
 * @name: the type, or what follows the parent's part of it: "mgpu_soft-small" or "small"
 * @type: result
 * @err: sentence about an error
 *
 * Return: 0; -ENOENT, the device has no such type; or the kernel's error.
 */
int mdev_find_type(const struct pci_host *host, const char *parent, const char *name,
		   struct mdev_type *type, struct mgpu_error *err);

/**
 * mdev_create() - create a vGPU
 * @host: the machine
 * @parent: the device, as in /sys/class/mdev_bus
 * @type: whole name of its type
 * @uuid: UUID of the vGPU
 * @err: sentence about an error
 *
 * Return: 0; -EINVAL, no UUID; -EEXIST, there is one with this UUID; -ENOSPC, the device has
 * no room for another one; -EACCES; or the kernel's error.
 */
int mdev_create(const struct pci_host *host, const char *parent, const char *type,
		const char *uuid, struct mgpu_error *err);

/**
 * mdev_remove() - remove a vGPU
 * @host: the machine
 * @uuid: its UUID
 * @err: sentence about an error
 *
 * Waits until the VMM that has it open has closed it.
 *
 * Return: 0; -ENODEV, there is none; -EACCES; or the kernel's error.
 */
int mdev_remove(const struct pci_host *host, const char *uuid, struct mgpu_error *err);

/* Make a random UUID. Returns 0 or -errno. */
int mdev_random_uuid(char uuid[MGPU_UUID_LEN], struct mgpu_error *err);

#endif /* GPUCTL_MDEV_H */

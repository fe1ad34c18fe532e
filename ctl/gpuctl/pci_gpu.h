/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A physical virtio-gpu and its driver: the distribution's virtio_gpu, for the host's
 * desktop, or mgpu_virtio, which shares the GPU among VMs.
 */
#ifndef GPUCTL_PCI_GPU_H
#define GPUCTL_PCI_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "mgpu.h"
#include "pci.h"

#define PCI_GPU_OURS	"mgpu_virtio"
#define PCI_GPU_THEIRS	"virtio_gpu"

#define PCI_GPU_NAME	PCI_ADDRESS_LEN
#define PCI_GPU_PATH	512

/**
 * struct pci_host - access to the machine, or to a test's model of one
 * @root: prefix of /sys, /proc and /dev, "" for the machine
 * @write: write @text into the file @path, which includes @root; returns 0 or -errno
 * @modprobe: load a module; returns 0, -ENOENT if there is no such module, or -ECHILD if
 *	loading failed for a reason that is on stderr
 * @vgpus: list the vGPUs of all devices, as mgpu_vgpu_list()
 * @waits: called before a step that waits for VMMs
 */
struct pci_host {
	const char *root;
	int (*write)(const struct pci_host *host, const char *path,
		     const char *text);
	int (*modprobe)(const struct pci_host *host, const char *module);
	int (*vgpus)(const struct pci_host *host,
		     struct mgpu_vgpu_info **vgpus, size_t *nr,
		     struct mgpu_error *err);
	void (*waits)(const struct pci_host *host, size_t vgpus);
};

extern const struct pci_host pci_machine;

/**
 * struct pci_gpu - a physical virtio-gpu
 * @address: address of the PCI function, with its domain: 0000:00:10.0
 * @virtio: name of the virtio device of the function
 * @driver: current driver, "" for none
 * @before: driver before the command
 * @missing: unbind: there is no driver to return the GPU to
 */
struct pci_gpu {
	char address[PCI_GPU_NAME];
	char virtio[PCI_GPU_NAME];
	char driver[PCI_GPU_NAME];
	char before[PCI_GPU_NAME];
	bool missing;
};

/**
 * pci_gpu_bind() - bind a GPU to mgpu_virtio
 * @host: the machine
 * @address: address of the PCI function, with or without its domain
 * @force: bind it even if it is in use
 * @gpu: result
 * @err: sentence about an error
 *
 * Loads the module if necessary, which then also binds every other virtio-gpu without a
 * driver.  A GPU that mgpu_virtio does not bind is returned to its driver.
 *
 * Return: 0, also if it is bound already; -EINVAL, not an address; -ENODEV, no virtio-gpu
 * at this address; -EBUSY, in use; -ENOPKG, no module; or the kernel's error.
 */
int pci_gpu_bind(const struct pci_host *host, const char *address, bool force,
		 struct pci_gpu *gpu, struct mgpu_error *err);

/**
 * pci_gpu_unbind() - unbind a GPU from mgpu_virtio, and bind it to virtio_gpu
 * @host: the machine
 * @address: address of the PCI function, with or without its domain
 * @leave: leave it without a driver
 * @force: unbind it even if VMMs have vGPUs open, and wait until they release them
 * @gpu: result
 * @err: sentence about an error
 *
 * Its vGPUs are removed.
 *
 * Return: as pci_gpu_bind(); 0 with @gpu->missing if there is no virtio_gpu.
 */
int pci_gpu_unbind(const struct pci_host *host, const char *address,
		   bool leave, bool force, struct pci_gpu *gpu,
		   struct mgpu_error *err);

/**
 * struct mdev_type - type of vGPU that a device has
 * @name: name of its folder in sysfs
 * @description: the module's description
 * @available: number of vGPUs that can be added
 */
struct mdev_type {
	char name[PCI_GPU_NAME];
	char description[192];
	unsigned long available;
};

/*
 * Read the types of an mdev parent, named as in /sys/class/mdev_bus: a GPU by its PCI
 * address. Sorted by name; the caller must free *types. Returns 0 or -errno.
 */
int mdev_types(const struct pci_host *host, const char *parent,
	       struct mdev_type **types, size_t *nr, struct mgpu_error *err);

struct json_object *types_array(const struct mdev_type *types, size_t nr);
void print_types(const struct mdev_type *types, size_t nr);

#endif /* GPUCTL_PCI_GPU_H */

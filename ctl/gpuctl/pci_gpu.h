/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A physical virtio-gpu and who drives it: the distribution's virtio_gpu, which
 * shows the host's desktop on it, or mgpu_virtio, which shares it between VMs.
 */
#ifndef GPUCTL_PCI_GPU_H
#define GPUCTL_PCI_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "mgpu.h"

#define PCI_GPU_OURS	"mgpu_virtio"
#define PCI_GPU_THEIRS	"virtio_gpu"

#define PCI_GPU_NAME	64
#define PCI_GPU_PATH	512

/**
 * struct pci_host - the machine, or a test's idea of one
 * @root: what stands before /sys, /proc and /dev, "" for the machine
 * @write: write @text into the file @path, which has @root in it; 0 or -errno
 * @modprobe: have a module loaded; 0, or -ENOENT when there is none of the name,
 *	-ECHILD when it was not loaded for another reason, which is on stderr
 * @vgpus: the vGPUs of all devices, as mgpu_vgpu_list()
 * @waits: called before something that takes as long as a VMM does
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
 * struct pci_gpu - a GPU
 * @address: of the PCI function, with its domain: 0000:00:10.0
 * @virtio: name of the virtio device below it
 * @driver: who drives it now, "" for nobody
 * @before: who did when the command began
 * @missing: unbind: there is no driver to give it to
 */
struct pci_gpu {
	char address[PCI_GPU_NAME];
	char virtio[PCI_GPU_NAME];
	char driver[PCI_GPU_NAME];
	char before[PCI_GPU_NAME];
	bool missing;
};

/**
 * pci_gpu_bind() - have mgpu_virtio drive a GPU
 * @host: the machine
 * @address: of the PCI function, with or without its domain
 * @force: although somebody uses it
 * @gpu: what became of it
 * @err: where a sentence goes
 *
 * Loads the module if need be, which then takes every other virtio-gpu, too, that
 * has no driver.  One that mgpu_virtio does not take goes back to the driver that
 * it had.
 *
 * Return: 0, also when it was so already; -EINVAL, that is no address; -ENODEV,
 * there is no virtio-gpu at it; -EBUSY, somebody uses it; -ENOPKG, the module is
 * not there; or what the kernel says.
 */
int pci_gpu_bind(const struct pci_host *host, const char *address, bool force,
		 struct pci_gpu *gpu, struct mgpu_error *err);

/**
 * pci_gpu_unbind() - take a GPU from mgpu_virtio, and give it to virtio_gpu
 * @host: the machine
 * @address: of the PCI function, with or without its domain
 * @leave: leave it without a driver instead
 * @force: although VMMs have vGPUs of it open: wait until they let go
 * @gpu: what became of it
 * @err: where a sentence goes
 *
 * Its vGPUs are removed.
 *
 * Return: as pci_gpu_bind(); 0 with @gpu->missing when there is no virtio_gpu.
 */
int pci_gpu_unbind(const struct pci_host *host, const char *address,
		   bool leave, bool force, struct pci_gpu *gpu,
		   struct mgpu_error *err);

/**
 * struct pci_gpu_type - a type of vGPU that a GPU has
 * @name: of its folder in sysfs
 * @description: what the module says of it
 * @available: how many more there may be
 */
struct pci_gpu_type {
	char name[PCI_GPU_NAME];
	char description[128];
	unsigned long available;
};

/* In the order of their names; free(*types).  0 or -errno. */
int pci_gpu_types(const struct pci_host *host, const struct pci_gpu *gpu,
		  struct pci_gpu_type **types, size_t *nr,
		  struct mgpu_error *err);

#endif /* GPUCTL_PCI_GPU_H */

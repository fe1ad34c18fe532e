/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest-visible map of a vGPU: PCI identity, BARs, capabilities and queue
 * geometry.  Shared by the driver and by the tests that drive the device as a
 * VMM would; it must stay includable from user space.
 *
 * Source: Virtual I/O Device (VIRTIO) version 1.2, sections 4.1 (PCI
 * transport) and 5.7 (GPU device).
 */
#ifndef MGPU_DEVICE_H
#define MGPU_DEVICE_H

#define MGPU_PCI_VENDOR		0x1af4	/* virtio */
#define MGPU_PCI_DEVICE		0x1050	/* 0x1040 + VIRTIO_ID_GPU */
#define MGPU_PCI_REVISION	0x01	/* modern only */
#define MGPU_PCI_CLASS		0x038000 /* display controller, other */
#define MGPU_PCI_SUBVENDOR	0x1af4
#define MGPU_PCI_SUBDEVICE	0x1100

/* BAR 0: virtio structures, one 4 KiB page each.  32 bit, not prefetchable. */
#define MGPU_BAR_VIRTIO		0
#define MGPU_BAR_VIRTIO_SIZE	0x4000
#define MGPU_COMMON_OFF		0x0000
#define MGPU_COMMON_LEN		0x38	/* up to and including queue_used_hi */
#define MGPU_ISR_OFF		0x1000
#define MGPU_ISR_LEN		0x1
#define MGPU_DEVCFG_OFF		0x2000
#define MGPU_DEVCFG_LEN		0x10	/* struct virtio_gpu_config */
#define MGPU_NOTIFY_OFF		0x3000
#define MGPU_NOTIFY_LEN		0x1000
#define MGPU_NOTIFY_MULT	4	/* bytes between two queues' doorbells */

/* BAR 2: MSI-X table and pending bits.  32 bit, not prefetchable. */
#define MGPU_BAR_MSIX		2
#define MGPU_BAR_MSIX_SIZE	0x1000
#define MGPU_MSIX_TABLE_OFF	0x0000
#define MGPU_MSIX_PBA_OFF	0x0800
#define MGPU_MSIX_VECTORS	3	/* config changes, control, cursor */

/*
 * BAR 4: memory of the device that the guest maps; 64 bit, prefetchable.  Its size depends
 * on the type (mgpu_hostmem_size()), and most vGPUs do not have it.
 */
#define MGPU_BAR_HOSTMEM	4

/* Configuration space. */
#define MGPU_CFG_SIZE		256
#define MGPU_CAP_MSIX		0x40
#define MGPU_CAP_COMMON		0x50
#define MGPU_CAP_ISR		0x60
#define MGPU_CAP_DEVCFG		0x70
#define MGPU_CAP_NOTIFY		0x80	/* 20 bytes */
#define MGPU_CAP_PCICFG		0x98	/* 20 bytes */
#define MGPU_CAP_AF		0xb0	/* Advanced Features: function level reset */
#define MGPU_CAP_HOSTMEM	0xb8	/* 24 bytes, with BAR 4 */

/* Queues. */
#define MGPU_VQ_CONTROL		0
#define MGPU_VQ_CURSOR		1
#define MGPU_NR_VQS		2
#define MGPU_VQ_CONTROL_SIZE	64
#define MGPU_VQ_CURSOR_SIZE	16

#define MGPU_NR_SCANOUTS	1

/*
 * The screen: one device-specific region behind the PCI ones.  It shows the
 * scanout from offset 0, rows packed, and is as large as the type's largest
 * mode.
 */
#define MGPU_REGION_DISPLAY	9	/* VFIO_PCI_NUM_REGIONS */

/* Limits of one command. */
#define MGPU_MAX_INDIRECT	1024	/* descriptors in an indirect table */
#define MGPU_MAX_ENTRIES	16384	/* virtio_gpu_mem_entry per resource */
#define MGPU_MAX_DIM		16384	/* pixels, width or height */

#endif /* MGPU_DEVICE_H */

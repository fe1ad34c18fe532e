/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registers of a vGPU that a VMM accesses: PCI configuration space and the virtio
 * registers in BAR 0.
 */
#ifndef MGPU_TRANSPORT_H
#define MGPU_TRANSPORT_H

#include <linux/vfio.h>

struct mgpu_vgpu;

/**
 * struct mgpu_vq_regs - registers of a queue; vgpu->lock
 * @size: entries
 * @enabled: the driver enabled the queue
 * @desc: guest address of the descriptor table
 * @avail: guest address of the available ring
 * @used: guest address of the used ring
 */
struct mgpu_vq_regs {
	u16 size;
	bool enabled;
	u64 desc;
	u64 avail;
	u64 used;
};

/* vfio.c */
extern const struct vfio_device_ops mgpu_vfio_ops;

/* pci_config.c */
void mgpu_config_init(struct mgpu_vgpu *vgpu);
void mgpu_config_reset(struct mgpu_vgpu *vgpu);
int mgpu_config_read(struct mgpu_vgpu *vgpu, u32 off, void *buf, u32 len);
bool mgpu_config_may_dma(const struct mgpu_vgpu *vgpu);
int mgpu_config_write(struct mgpu_vgpu *vgpu, u32 off, const void *buf,
		      u32 len);

/* virtio_pci.c */
void mgpu_transport_reset(struct mgpu_vgpu *vgpu);
int mgpu_bar_read(struct mgpu_vgpu *vgpu, u32 off, void *buf, u32 len);
int mgpu_bar_write(struct mgpu_vgpu *vgpu, u32 off, const void *buf, u32 len);
void mgpu_virtio_broken(struct mgpu_vgpu *vgpu, u32 vq, const char *why);
void mgpu_virtio_needs_reset(struct mgpu_vgpu *vgpu, const char *why);

#endif /* MGPU_TRANSPORT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts of a vGPU: MSI-X and INTx to the guest, requests to the VMM.
 */
#ifndef MGPU_IRQ_H
#define MGPU_IRQ_H

#include <linux/types.h>

#include "vfio/device.h"

struct eventfd_ctx;
struct mgpu_vgpu;
struct virqfd;

/**
 * struct mgpu_irq - interrupt state; vgpu->irq_lock
 * @msix: eventfds of the MSI-X vectors, NULL for none
 * @intx: eventfd of INTx, or NULL
 * @err: eventfd for errors; no back end has such an error yet
 * @req: eventfd that asks the VMM to close the device
 * @intx_unmask: eventfd with which the VMM unmasks INTx
 * @use_msix: the VMM set up MSI-X
 * @intx_disabled: the guest set PCI_COMMAND_INTX_DISABLE
 * @intx_masked: INTx was signalled, or masked by the VMM, and is not unmasked
 * @isr: ISR status (VIRTIO 1.2, section 4.1.4.5)
 * @config_vector: MSI-X vector of configuration changes
 * @vq_vector: MSI-X vectors of the queues
 */
struct mgpu_irq {
	struct eventfd_ctx *msix[MGPU_MSIX_VECTORS];
	struct eventfd_ctx *intx;
	struct eventfd_ctx *err;
	struct eventfd_ctx *req;
	struct virqfd *intx_unmask;
	bool use_msix;
	bool intx_disabled;
	bool intx_masked;
	u8 isr;
	u16 config_vector;
	u16 vq_vector[MGPU_NR_VQS];
};

int mgpu_irq_set(struct mgpu_vgpu *vgpu, u32 flags, u32 index, u32 start,
		 u32 count, void *data);
void mgpu_irq_release(struct mgpu_vgpu *vgpu);
void mgpu_irq_reset(struct mgpu_vgpu *vgpu);
void mgpu_irq_queue(struct mgpu_vgpu *vgpu, u32 vq);
void mgpu_irq_config(struct mgpu_vgpu *vgpu);
void mgpu_irq_event(struct mgpu_vgpu *vgpu, u32 event);
u32 mgpu_irq_events(struct mgpu_vgpu *vgpu);
void mgpu_irq_clear_events(struct mgpu_vgpu *vgpu, u32 events);
void mgpu_irq_intx_disable(struct mgpu_vgpu *vgpu, bool disable);
u8 mgpu_irq_read_isr(struct mgpu_vgpu *vgpu);
void mgpu_irq_request(struct mgpu_vgpu *vgpu);

#endif /* MGPU_IRQ_H */

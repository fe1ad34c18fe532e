// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts to the guest: MSI-X, INTx as the fallback, configuration events; and the
 * request that asks the VMM to release the device.
 */
#include <linux/eventfd.h>
#include <linux/virtio_config.h>
#include <linux/virtio_pci.h>

#include "compat.h"
#include "mgpu.h"

#define ISR_QUEUE	0x1	/* VIRTIO 1.2, section 4.1.4.5 */

static void irq_signal(struct mgpu_vgpu *vgpu, struct eventfd_ctx *ctx)
{
	lockdep_assert_held(&vgpu->irq_lock);
	if (!ctx)
		return;
	/* Count before the signal: the woken thread may read the counter. */
	atomic64_inc(&vgpu->stats.interrupts);
	mgpu_compat_eventfd_signal(ctx);
}

/*
 * Signal INTx if the line is up and not masked.  The line is up while the ISR has a
 * bit set; VFIO masks INTx by signalling it.
 */
static void intx_update(struct mgpu_vgpu *vgpu)
{
	struct mgpu_irq *irq = &vgpu->irq;

	lockdep_assert_held(&vgpu->irq_lock);
	if (irq->use_msix || irq->intx_disabled || !irq->isr ||
	    irq->intx_masked || !irq->intx)
		return;
	irq->intx_masked = true;
	irq_signal(vgpu, irq->intx);
}

static void irq_raise(struct mgpu_vgpu *vgpu, u16 vector, u8 isr)
{
	struct mgpu_irq *irq = &vgpu->irq;

	lockdep_assert_held(&vgpu->irq_lock);
	if (irq->use_msix) {
		if (vector < MGPU_MSIX_VECTORS)
			irq_signal(vgpu, irq->msix[vector]);
	} else {
		irq->isr |= isr;
		intx_update(vgpu);
	}
}

/* Interrupt the guest for used buffers in a queue. */
void mgpu_irq_queue(struct mgpu_vgpu *vgpu, u32 vq)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	irq_raise(vgpu, vgpu->irq.vq_vector[vq], ISR_QUEUE);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/* Interrupt the guest after the device's configuration or status changed. */
void mgpu_irq_config(struct mgpu_vgpu *vgpu)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	irq_raise(vgpu, vgpu->irq.config_vector,
		  VIRTIO_PCI_ISR_CONFIG);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/*
 * Count a configuration change, and interrupt the guest if its driver is running.
 * Must hold irq_lock.
 */
static void raise_event(struct mgpu_vgpu *vgpu)
{
	vgpu->config_generation++;
	if (READ_ONCE(vgpu->status) & VIRTIO_CONFIG_S_DRIVER_OK)
		irq_raise(vgpu, vgpu->irq.config_vector, VIRTIO_PCI_ISR_CONFIG);
}

/**
 * mgpu_irq_event - send a configuration event to the guest
 * @vgpu: vGPU
 * @event: VIRTIO_GPU_EVENT_*; the caller has changed the configuration already
 *
 * Context: any; also while a reset is in progress.
 */
void mgpu_irq_event(struct mgpu_vgpu *vgpu, u32 event)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	vgpu->events_read |= event;
	vgpu->events_new |= event;
	raise_event(vgpu);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/* Return the pending events to the guest, which has then read all of them. */
u32 mgpu_irq_events(struct mgpu_vgpu *vgpu)
{
	unsigned long flags;
	u32 events;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	events = vgpu->events_read;
	vgpu->events_new = 0;
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
	return events;
}

/*
 * Clear events that the guest has handled.  An event that was sent again after the
 * guest last read the events stays pending, and the guest is interrupted again.
 */
void mgpu_irq_clear_events(struct mgpu_vgpu *vgpu, u32 events)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	vgpu->events_read &= ~events | vgpu->events_new;
	if (events & vgpu->events_read)
		raise_event(vgpu);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/* Read and clear the ISR; that lowers the INTx line. */
u8 mgpu_irq_read_isr(struct mgpu_vgpu *vgpu)
{
	unsigned long flags;
	u8 isr;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	isr = vgpu->irq.isr;
	vgpu->irq.isr = 0;
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
	return isr;
}

/* Apply INTX_DISABLE after the guest wrote the PCI command register. */
void mgpu_irq_intx_disable(struct mgpu_vgpu *vgpu, bool disable)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	vgpu->irq.intx_disabled = disable;
	intx_update(vgpu);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/* Ask the VMM to close the device. */
void mgpu_irq_request(struct mgpu_vgpu *vgpu)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	irq_signal(vgpu, vgpu->irq.req);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/*
 * Reset the guest-visible interrupt state; the VMM's eventfds stay.  No event raises
 * an interrupt afterwards: vgpu->status is 0 already.
 */
void mgpu_irq_reset(struct mgpu_vgpu *vgpu)
{
	struct mgpu_irq *irq = &vgpu->irq;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	irq->isr = 0;
	vgpu->events_read = 0;
	vgpu->events_new = 0;
	irq->config_vector = VIRTIO_MSI_NO_VECTOR;
	for (i = 0; i < MGPU_NR_VQS; i++)
		irq->vq_vector[i] = VIRTIO_MSI_NO_VECTOR;
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/* Put an eventfd into a slot; fd -1 clears the slot. */
static int set_eventfd(struct mgpu_vgpu *vgpu, struct eventfd_ctx **slot,
		       int fd)
{
	struct eventfd_ctx *ctx = NULL, *old;
	unsigned long flags;

	if (fd >= 0) {
		ctx = eventfd_ctx_fdget(fd);
		if (IS_ERR(ctx))
			return PTR_ERR(ctx);
	} else if (fd != -1) {
		return -EINVAL;
	}

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	old = *slot;
	*slot = ctx;
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
	if (old)
		eventfd_ctx_put(old);
	return 0;
}

static void set_mode(struct mgpu_vgpu *vgpu, bool msix)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	vgpu->irq.use_msix = msix;
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

static void msix_disable(struct mgpu_vgpu *vgpu)
{
	int i;

	for (i = 0; i < MGPU_MSIX_VECTORS; i++)
		set_eventfd(vgpu, &vgpu->irq.msix[i], -1);
	set_mode(vgpu, false);
}

static int msix_trigger(struct mgpu_vgpu *vgpu, u32 flags, u32 start,
			u32 count, void *data)
{
	unsigned long irqflags;
	s32 *fds = data;
	u8 *on = data;
	u32 i;
	int ret;

	if (!count && (flags & VFIO_IRQ_SET_DATA_NONE)) {
		msix_disable(vgpu);
		return 0;
	}

	if (flags & VFIO_IRQ_SET_DATA_EVENTFD) {
		for (i = 0; i < count; i++) {
			ret = set_eventfd(vgpu, &vgpu->irq.msix[start + i],
					  fds[i]);
			if (ret)
				goto err_clear;
		}
		set_mode(vgpu, true);
		return 0;
	}

	/* Loopback: the VMM triggers interrupts of the device. */
	spin_lock_irqsave(&vgpu->irq_lock, irqflags);
	for (i = 0; i < count; i++) {
		if ((flags & VFIO_IRQ_SET_DATA_NONE) || on[i])
			irq_signal(vgpu, vgpu->irq.msix[start + i]);
	}
	spin_unlock_irqrestore(&vgpu->irq_lock, irqflags);
	return 0;

err_clear:
	while (i--)
		set_eventfd(vgpu, &vgpu->irq.msix[start + i], -1);
	return ret;
}

static void intx_set_mask(struct mgpu_vgpu *vgpu, bool mask)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	vgpu->irq.intx_masked = mask;
	intx_update(vgpu);
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

/*
 * The VMM unmasks INTx through an eventfd.  The handler runs inside of that
 * eventfd's wake-up, where no other eventfd may be signalled: leave it to the
 * thread.
 */
static int intx_unmask_handler(void *opaque, void *data)
{
	return 1;
}

static void intx_unmask_thread(void *opaque, void *data)
{
	intx_set_mask(opaque, false);
}

static void intx_disable(struct mgpu_vgpu *vgpu)
{
	vfio_virqfd_disable(&vgpu->irq.intx_unmask);
	set_eventfd(vgpu, &vgpu->irq.intx, -1);
}

/* Set, clear or trigger the interrupt of an index that has one. */
static int single_trigger(struct mgpu_vgpu *vgpu, struct eventfd_ctx **slot,
			  u32 flags, u32 count, void *data)
{
	unsigned long irqflags;

	if (flags & VFIO_IRQ_SET_DATA_EVENTFD)
		return set_eventfd(vgpu, slot, *(s32 *)data);
	if (!count)
		return set_eventfd(vgpu, slot, -1);
	if ((flags & VFIO_IRQ_SET_DATA_NONE) || *(u8 *)data) {
		spin_lock_irqsave(&vgpu->irq_lock, irqflags);
		irq_signal(vgpu, *slot);
		spin_unlock_irqrestore(&vgpu->irq_lock, irqflags);
	}
	return 0;
}

static int intx_trigger(struct mgpu_vgpu *vgpu, u32 flags, u32 count,
			void *data)
{
	int ret;

	if (!count && (flags & VFIO_IRQ_SET_DATA_NONE)) {
		intx_disable(vgpu);
		return 0;
	}
	ret = single_trigger(vgpu, &vgpu->irq.intx, flags, count, data);
	if (ret || !(flags & VFIO_IRQ_SET_DATA_EVENTFD))
		return ret;
	set_mode(vgpu, false);
	intx_set_mask(vgpu, false);
	return 0;
}

static int intx_unmask(struct mgpu_vgpu *vgpu, u32 flags, void *data)
{
	if (flags & VFIO_IRQ_SET_DATA_EVENTFD) {
		int fd = *(s32 *)data;

		if (fd < 0) {
			vfio_virqfd_disable(&vgpu->irq.intx_unmask);
			return 0;
		}
		return vfio_virqfd_enable(vgpu, intx_unmask_handler,
					  intx_unmask_thread, NULL,
					  &vgpu->irq.intx_unmask, fd);
	}
	if ((flags & VFIO_IRQ_SET_DATA_NONE) || *(u8 *)data)
		intx_set_mask(vgpu, false);
	return 0;
}

/**
 * mgpu_irq_set - carry out VFIO_DEVICE_SET_IRQS
 * @vgpu: vGPU
 * @flags: VFIO_IRQ_SET_*, validated
 * @index: VFIO_PCI_*_IRQ_INDEX
 * @start: first subindex, validated with @count
 * @count: number of subindexes
 * @data: @count entries of the type in @flags
 *
 * Context: may sleep; must hold vgpu->lock.
 * Return: 0 or a negative errno; -ENOTTY if the index has no such action.
 */
int mgpu_irq_set(struct mgpu_vgpu *vgpu, u32 flags, u32 index, u32 start,
		 u32 count, void *data)
{
	u32 action = flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;

	lockdep_assert_held(&vgpu->lock);

	/* Only "none" may come without entries: @data is empty then. */
	if (!count && !(flags & VFIO_IRQ_SET_DATA_NONE))
		return -EINVAL;

	switch (index) {
	case VFIO_PCI_MSIX_IRQ_INDEX:
		if (action != VFIO_IRQ_SET_ACTION_TRIGGER)
			return -ENOTTY;
		return msix_trigger(vgpu, flags, start, count, data);
	case VFIO_PCI_INTX_IRQ_INDEX:
		if (action == VFIO_IRQ_SET_ACTION_TRIGGER)
			return intx_trigger(vgpu, flags, count, data);
		if (!count)
			return -EINVAL;
		if (action == VFIO_IRQ_SET_ACTION_UNMASK)
			return intx_unmask(vgpu, flags, data);
		if (flags & VFIO_IRQ_SET_DATA_EVENTFD)
			return -ENOTTY;
		if ((flags & VFIO_IRQ_SET_DATA_NONE) || *(u8 *)data)
			intx_set_mask(vgpu, true);
		return 0;
	case VFIO_PCI_ERR_IRQ_INDEX:
		if (action != VFIO_IRQ_SET_ACTION_TRIGGER)
			return -ENOTTY;
		return single_trigger(vgpu, &vgpu->irq.err, flags, count,
				      data);
	case VFIO_PCI_REQ_IRQ_INDEX:
		if (action != VFIO_IRQ_SET_ACTION_TRIGGER)
			return -ENOTTY;
		return single_trigger(vgpu, &vgpu->irq.req, flags, count,
				      data);
	default:
		return -ENOTTY;
	}
}

/* Release all eventfds after the VMM closed the device. */
void mgpu_irq_release(struct mgpu_vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	msix_disable(vgpu);
	intx_disable(vgpu);
	set_eventfd(vgpu, &vgpu->irq.err, -1);
	set_eventfd(vgpu, &vgpu->irq.req, -1);
	intx_set_mask(vgpu, false);
}

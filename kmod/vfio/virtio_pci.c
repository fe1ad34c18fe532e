// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtio PCI transport: common configuration, ISR and device
 * configuration in BAR 0 (VIRTIO 1.2, sections 4.1.4.3 to 4.1.4.6).
 */
#include <linux/ratelimit.h>
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>

#include "mgpu.h"

#define MGPU_FEATURES (BIT_ULL(VIRTIO_F_VERSION_1) |			\
		       BIT_ULL(VIRTIO_F_ACCESS_PLATFORM) |		\
		       BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC) |		\
		       BIT_ULL(VIRTIO_GPU_F_EDID) |			\
		       BIT_ULL(VIRTIO_GPU_F_RESOURCE_BLOB))

/* Return the features that the guest may negotiate. */
static u64 transport_features(const struct mgpu_vgpu *vgpu)
{
	u64 f = MGPU_FEATURES;

	if (!vgpu->type->desc->render)
		return f;
	f |= BIT_ULL(VIRTIO_GPU_F_VIRGL);
	if (!mgpu_on_device(vgpu) || vgpu->mdev->caps.context_init)
		f |= BIT_ULL(VIRTIO_GPU_F_CONTEXT_INIT);
	if (mgpu_on_device(vgpu) && !vgpu->mdev->caps.blobs)
		f &= ~BIT_ULL(VIRTIO_GPU_F_RESOURCE_BLOB);
	return f;
}

static const u16 vq_size_max[MGPU_NR_VQS] = {
	[MGPU_VQ_CONTROL] = MGPU_VQ_CONTROL_SIZE,
	[MGPU_VQ_CURSOR] = MGPU_VQ_CURSOR_SIZE,
};

/* Set DEVICE_NEEDS_RESET; return false if it was set already. */
static bool set_needs_reset(struct mgpu_vgpu *vgpu)
{
	if (vgpu->needs_reset)
		return false;
	WRITE_ONCE(vgpu->needs_reset, true);
	mgpu_irq_config(vgpu);
	return true;
}

/**
 * mgpu_virtio_broken - stop a queue that the guest broke
 * @vgpu: vGPU
 * @vq: queue
 * @why: reason, for the host's log
 *
 * Set DEVICE_NEEDS_RESET, interrupt the guest, and log it once per reset.
 *
 * Context: must hold ring_lock or vgpu->lock.
 */
void mgpu_virtio_broken(struct mgpu_vgpu *vgpu, u32 vq, const char *why)
{
	vgpu->lane[vq].broken = true;
	if (set_needs_reset(vgpu))
		dev_notice_ratelimited(vgpu->vdev.dev,
				       "queue %u is broken (%s): the guest must reset the device\n",
				       vq, why);
}

/**
 * mgpu_virtio_needs_reset - ask the guest to reset the device
 * @vgpu: vGPU
 * @why: reason, for the host's log
 *
 * Like mgpu_virtio_broken(), but no queue is stopped.
 */
void mgpu_virtio_needs_reset(struct mgpu_vgpu *vgpu, const char *why)
{
	if (set_needs_reset(vgpu))
		dev_notice_ratelimited(vgpu->vdev.dev,
				       "%s: the guest must reset the device\n", why);
}

/**
 * mgpu_transport_reset - reset the registers of the transport
 * @vgpu: vGPU whose ring is reset
 *
 * Context: must hold vgpu->lock.
 */
void mgpu_transport_reset(struct mgpu_vgpu *vgpu)
{
	int i;

	lockdep_assert_held(&vgpu->lock);

	if (vgpu->status)
		atomic64_inc(&vgpu->stats.resets);
	WRITE_ONCE(vgpu->status, 0);
	mgpu_irq_reset(vgpu);
	WRITE_ONCE(vgpu->needs_reset, false);
	vgpu->guest_features = 0;
	vgpu->feature_select = 0;
	vgpu->driver_feature_select = 0;
	vgpu->queue_select = 0;
	for (i = 0; i < MGPU_NR_VQS; i++)
		vgpu->vq_regs[i] = (struct mgpu_vq_regs){
			.size = vq_size_max[i],
		};
}

static u8 get_status(const struct mgpu_vgpu *vgpu)
{
	u8 status = vgpu->status;

	if (READ_ONCE(vgpu->needs_reset))
		status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	return status;
}

static void set_status(struct mgpu_vgpu *vgpu, u8 status)
{
	u8 set = status & ~vgpu->status;

	if (!status) {
		mgpu_vgpu_reset(vgpu);
		return;
	}

	/* Section 3.1.1: without VERSION_1 this device cannot work. */
	if ((set & VIRTIO_CONFIG_S_FEATURES_OK) &&
	    (vgpu->guest_features & ~transport_features(vgpu) ||
	     !(vgpu->guest_features & BIT_ULL(VIRTIO_F_VERSION_1))))
		status &= ~VIRTIO_CONFIG_S_FEATURES_OK;
	if ((set & VIRTIO_CONFIG_S_DRIVER_OK) &&
	    !(status & VIRTIO_CONFIG_S_FEATURES_OK))
		status &= ~VIRTIO_CONFIG_S_DRIVER_OK;

	/* Bits are only ever added; section 2.1.1. */
	WRITE_ONCE(vgpu->status, vgpu->status |
		   (status & ~VIRTIO_CONFIG_S_NEEDS_RESET));
	if (set & status & VIRTIO_CONFIG_S_DRIVER_OK)
		mgpu_ring_start(vgpu);
}

static struct mgpu_vq_regs *transport_selected(struct mgpu_vgpu *vgpu)
{
	return vgpu->queue_select < MGPU_NR_VQS ?
		&vgpu->vq_regs[vgpu->queue_select] : NULL;
}

static void common_fill(struct mgpu_vgpu *vgpu,
			struct virtio_pci_common_cfg *c)
{
	const struct mgpu_vq_regs *q = transport_selected(vgpu);

	memset(c, 0, sizeof(*c));
	c->device_feature_select = cpu_to_le32(vgpu->feature_select);
	if (vgpu->feature_select < 2)
		c->device_feature = cpu_to_le32(transport_features(vgpu) >>
						(32 * vgpu->feature_select));
	c->guest_feature_select = cpu_to_le32(vgpu->driver_feature_select);
	if (vgpu->driver_feature_select < 2)
		c->guest_feature =
			cpu_to_le32(vgpu->guest_features >>
				    (32 * vgpu->driver_feature_select));
	c->msix_config = cpu_to_le16(vgpu->irq.config_vector);
	c->num_queues = cpu_to_le16(MGPU_NR_VQS);
	c->device_status = get_status(vgpu);
	c->config_generation = READ_ONCE(vgpu->config_generation);
	c->queue_select = cpu_to_le16(vgpu->queue_select);
	if (!q) {
		c->queue_msix_vector = cpu_to_le16(VIRTIO_MSI_NO_VECTOR);
		return;
	}
	c->queue_size = cpu_to_le16(q->size);
	c->queue_msix_vector =
		cpu_to_le16(vgpu->irq.vq_vector[vgpu->queue_select]);
	c->queue_enable = cpu_to_le16(q->enabled);
	c->queue_notify_off = cpu_to_le16(vgpu->queue_select);
	c->queue_desc_lo = cpu_to_le32(q->desc);
	c->queue_desc_hi = cpu_to_le32(q->desc >> 32);
	c->queue_avail_lo = cpu_to_le32(q->avail);
	c->queue_avail_hi = cpu_to_le32(q->avail >> 32);
	c->queue_used_lo = cpu_to_le32(q->used);
	c->queue_used_hi = cpu_to_le32(q->used >> 32);
}

static void set_half(u64 *reg, u32 val, bool high)
{
	if (high)
		*reg = (*reg & U32_MAX) | (u64)val << 32;
	else
		*reg = (*reg & ~(u64)U32_MAX) | val;
}

/* Set a vector; one that the device does not have reads back as none (4.1.5.1.2). */
static void set_vector(struct mgpu_vgpu *vgpu, u16 *reg, u16 val)
{
	unsigned long flags;

	spin_lock_irqsave(&vgpu->irq_lock, flags);
	*reg = val < MGPU_MSIX_VECTORS ? val : VIRTIO_MSI_NO_VECTOR;
	spin_unlock_irqrestore(&vgpu->irq_lock, flags);
}

#define REG(field)	offsetof(struct virtio_pci_common_cfg, field)

static void common_write(struct mgpu_vgpu *vgpu, u32 off, u32 val, u32 len)
{
	struct mgpu_vq_regs *q = transport_selected(vgpu);
	bool setup = q && !q->enabled;

	switch (off) {
	case REG(device_feature_select):
		if (len == 4)
			vgpu->feature_select = val;
		return;
	case REG(guest_feature_select):
		if (len == 4)
			vgpu->driver_feature_select = val;
		return;
	case REG(guest_feature):
		if (len == 4 && vgpu->driver_feature_select < 2 &&
		    !(vgpu->status & VIRTIO_CONFIG_S_FEATURES_OK))
			set_half(&vgpu->guest_features, val,
				 vgpu->driver_feature_select);
		return;
	case REG(msix_config):
		if (len == 2)
			set_vector(vgpu, &vgpu->irq.config_vector, val);
		return;
	case REG(device_status):
		if (len == 1)
			set_status(vgpu, val);
		return;
	case REG(queue_select):
		if (len == 2)
			vgpu->queue_select = val;
		return;
	case REG(queue_msix_vector):
		if (len == 2 && q)
			set_vector(vgpu,
				   &vgpu->irq.vq_vector[vgpu->queue_select],
				   val);
		return;
	case REG(queue_size):
		if (len == 2 && setup && val && !(val & (val - 1)) &&
		    val <= vq_size_max[vgpu->queue_select])
			q->size = val;
		return;
	case REG(queue_enable):
		if (len == 2 && setup && val == 1) {
			q->enabled = true;
			if (vgpu->status & VIRTIO_CONFIG_S_DRIVER_OK)
				mgpu_ring_enable_vq(vgpu, vgpu->queue_select);
		}
		return;
	}

	if (len != 4 || !setup)
		return;
	switch (off) {
	case REG(queue_desc_lo):
	case REG(queue_desc_hi):
		set_half(&q->desc, val, off == REG(queue_desc_hi));
		return;
	case REG(queue_avail_lo):
	case REG(queue_avail_hi):
		set_half(&q->avail, val, off == REG(queue_avail_hi));
		return;
	case REG(queue_used_lo):
	case REG(queue_used_hi):
		set_half(&q->used, val, off == REG(queue_used_hi));
		return;
	}
}

static void devcfg_fill(struct mgpu_vgpu *vgpu, struct virtio_gpu_config *c)
{
	memset(c, 0, sizeof(*c));
	c->num_scanouts = cpu_to_le32(MGPU_NR_SCANOUTS);
	c->num_capsets = cpu_to_le32(!vgpu->type->desc->render ? 0 :
				     vgpu->mdev->caps.nr_capsets ?: 1);
}

/*
 * Return whether an access is within one structure.  Bytes between the structures
 * read as zero and ignore writes.
 */
static bool transport_within(u32 off, u32 len, u32 base, u32 size)
{
	return off >= base && off + len <= base + size;
}

int mgpu_bar_read(struct mgpu_vgpu *vgpu, u32 off, void *buf, u32 len)
{
	lockdep_assert_held(&vgpu->lock);
	if (off >= MGPU_BAR_VIRTIO_SIZE || len > MGPU_BAR_VIRTIO_SIZE - off)
		return -EINVAL;

	memset(buf, 0, len);
	if (transport_within(off, len, MGPU_COMMON_OFF, MGPU_COMMON_LEN)) {
		struct virtio_pci_common_cfg c;

		common_fill(vgpu, &c);
		memcpy(buf, (u8 *)&c + off - MGPU_COMMON_OFF, len);
	} else if (transport_within(off, len, MGPU_DEVCFG_OFF, MGPU_DEVCFG_LEN)) {
		struct virtio_gpu_config c;

		devcfg_fill(vgpu, &c);
		if (off - MGPU_DEVCFG_OFF < sizeof(c.events_read))
			c.events_read = cpu_to_le32(mgpu_irq_events(vgpu));
		memcpy(buf, (u8 *)&c + off - MGPU_DEVCFG_OFF, len);
	} else if (off == MGPU_ISR_OFF) {
		*(u8 *)buf = mgpu_irq_read_isr(vgpu);
	}
	return 0;
}

int mgpu_bar_write(struct mgpu_vgpu *vgpu, u32 off, const void *buf, u32 len)
{
	u32 val = 0;

	lockdep_assert_held(&vgpu->lock);
	if (off >= MGPU_BAR_VIRTIO_SIZE || len > MGPU_BAR_VIRTIO_SIZE - off ||
	    len > sizeof(val))
		return -EINVAL;

	switch (len) {
	case 1:
		val = *(const u8 *)buf;
		break;
	case 2:
		val = le16_to_cpup(buf);
		break;
	case 4:
		val = le32_to_cpup(buf);
		break;
	}

	if (transport_within(off, len, MGPU_COMMON_OFF, MGPU_COMMON_LEN)) {
		common_write(vgpu, off - MGPU_COMMON_OFF, val, len);
	} else if (off == MGPU_DEVCFG_OFF +
		   offsetof(struct virtio_gpu_config, events_clear)) {
		if (len == 4)
			mgpu_irq_clear_events(vgpu, val);
	} else if (off >= MGPU_NOTIFY_OFF) {
		atomic64_inc(&vgpu->stats.doorbells);
		mgpu_ring_kick(vgpu);
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI configuration space of a vGPU.
 *
 * Source: PCI Local Bus 3.0, section 6; VIRTIO 1.2, section 4.1.4.
 */
#include <linux/pci_regs.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>

#include "mgpu.h"

static void put16(struct mgpu_vgpu *vgpu, u32 off, u16 val)
{
	vgpu->config[off] = val;
	vgpu->config[off + 1] = val >> 8;
}

static void put32(struct mgpu_vgpu *vgpu, u32 off, u32 val)
{
	put16(vgpu, off, val);
	put16(vgpu, off + 2, val >> 16);
}

static u32 get32(const struct mgpu_vgpu *vgpu, u32 off)
{
	const u8 *c = &vgpu->config[off];

	return c[0] | c[1] << 8 | c[2] << 16 | (u32)c[3] << 24;
}

static void add_virtio_cap(struct mgpu_vgpu *vgpu, u32 pos, u32 next, u32 len,
			   u32 type, u32 off, u32 size)
{
	vgpu->config[pos] = PCI_CAP_ID_VNDR;
	vgpu->config[pos + 1] = next;
	vgpu->config[pos + offsetof(struct virtio_pci_cap, cap_len)] = len;
	vgpu->config[pos + offsetof(struct virtio_pci_cap, cfg_type)] = type;
	vgpu->config[pos + offsetof(struct virtio_pci_cap, bar)] =
		MGPU_BAR_VIRTIO;
	put32(vgpu, pos + offsetof(struct virtio_pci_cap, offset), off);
	put32(vgpu, pos + offsetof(struct virtio_pci_cap, length), size);
}

/* Set the configuration space to its power-on state. */
void mgpu_config_init(struct mgpu_vgpu *vgpu)
{
	const u32 cap = sizeof(struct virtio_pci_cap);

	memset(vgpu->config, 0, sizeof(vgpu->config));
	put16(vgpu, PCI_VENDOR_ID, MGPU_PCI_VENDOR);
	put16(vgpu, PCI_DEVICE_ID, MGPU_PCI_DEVICE);
	put16(vgpu, PCI_STATUS, PCI_STATUS_CAP_LIST);
	put32(vgpu, PCI_CLASS_REVISION,
	      MGPU_PCI_CLASS << 8 | MGPU_PCI_REVISION);
	put16(vgpu, PCI_SUBSYSTEM_VENDOR_ID, MGPU_PCI_SUBVENDOR);
	put16(vgpu, PCI_SUBSYSTEM_ID, MGPU_PCI_SUBDEVICE);
	vgpu->config[PCI_INTERRUPT_PIN] = 1;
	vgpu->config[PCI_CAPABILITY_LIST] = MGPU_CAP_MSIX;

	vgpu->config[MGPU_CAP_MSIX] = PCI_CAP_ID_MSIX;
	vgpu->config[MGPU_CAP_MSIX + 1] = MGPU_CAP_COMMON;
	put16(vgpu, MGPU_CAP_MSIX + PCI_MSIX_FLAGS, MGPU_MSIX_VECTORS - 1);
	put32(vgpu, MGPU_CAP_MSIX + PCI_MSIX_TABLE,
	      MGPU_MSIX_TABLE_OFF | MGPU_BAR_MSIX);
	put32(vgpu, MGPU_CAP_MSIX + PCI_MSIX_PBA,
	      MGPU_MSIX_PBA_OFF | MGPU_BAR_MSIX);

	add_virtio_cap(vgpu, MGPU_CAP_COMMON, MGPU_CAP_ISR, cap,
		       VIRTIO_PCI_CAP_COMMON_CFG, MGPU_COMMON_OFF,
		       MGPU_COMMON_LEN);
	add_virtio_cap(vgpu, MGPU_CAP_ISR, MGPU_CAP_DEVCFG, cap,
		       VIRTIO_PCI_CAP_ISR_CFG, MGPU_ISR_OFF, MGPU_ISR_LEN);
	add_virtio_cap(vgpu, MGPU_CAP_DEVCFG, MGPU_CAP_NOTIFY, cap,
		       VIRTIO_PCI_CAP_DEVICE_CFG, MGPU_DEVCFG_OFF,
		       MGPU_DEVCFG_LEN);
	add_virtio_cap(vgpu, MGPU_CAP_NOTIFY, MGPU_CAP_PCICFG,
		       sizeof(struct virtio_pci_notify_cap),
		       VIRTIO_PCI_CAP_NOTIFY_CFG, MGPU_NOTIFY_OFF,
		       MGPU_NOTIFY_LEN);
	put32(vgpu, MGPU_CAP_NOTIFY + cap, MGPU_NOTIFY_MULT);
	add_virtio_cap(vgpu, MGPU_CAP_PCICFG, MGPU_CAP_AF,
		       sizeof(struct virtio_pci_cfg_cap),
		       VIRTIO_PCI_CAP_PCI_CFG, 0, 0);

	vgpu->config[MGPU_CAP_AF] = PCI_CAP_ID_AF;
	vgpu->config[MGPU_CAP_AF + PCI_AF_LENGTH] = PCI_CAP_AF_SIZEOF;
	vgpu->config[MGPU_CAP_AF + PCI_AF_CAP] = PCI_AF_CAP_TP |
						 PCI_AF_CAP_FLR;
}

/* Add the BAR with memory of the device, and its capability behind all others. */
static void add_hostmem(struct mgpu_vgpu *vgpu)
{
	u64 size = mgpu_hostmem_size(vgpu);
	u8 *cap = &vgpu->config[MGPU_CAP_HOSTMEM];

	if (!size)
		return;
	put32(vgpu, PCI_BASE_ADDRESS_0 + 4 * MGPU_BAR_HOSTMEM,
	      PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	vgpu->config[MGPU_CAP_AF + 1] = MGPU_CAP_HOSTMEM;
	add_virtio_cap(vgpu, MGPU_CAP_HOSTMEM, 0, sizeof(struct virtio_pci_cap64),
		       VIRTIO_PCI_CAP_SHARED_MEMORY_CFG, 0, size);
	cap[offsetof(struct virtio_pci_cap, bar)] = MGPU_BAR_HOSTMEM;
	cap[offsetof(struct virtio_pci_cap, id)] = VIRTIO_GPU_SHM_ID_HOST_VISIBLE;
	put32(vgpu, MGPU_CAP_HOSTMEM + offsetof(struct virtio_pci_cap64, length_hi),
	      size >> 32);
}

/* Reset the configuration space to its power-on state; the type must be set. */
void mgpu_config_reset(struct mgpu_vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	mgpu_config_init(vgpu);
	add_hostmem(vgpu);
	mgpu_irq_intx_disable(vgpu, false);
}

/* Return the bits of a byte that the guest may write. */
static u8 config_writable(u32 off)
{
	switch (off) {
	case PCI_COMMAND:
		return PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	case PCI_COMMAND + 1:
		return PCI_COMMAND_INTX_DISABLE >> 8;
	case PCI_CACHE_LINE_SIZE:
	case PCI_LATENCY_TIMER:
	case PCI_INTERRUPT_LINE:
		return 0xff;
	case MGPU_CAP_MSIX + PCI_MSIX_FLAGS + 1:
		return (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8;
	/* The window: BAR, offset and length. */
	case MGPU_CAP_PCICFG + 4:
	case MGPU_CAP_PCICFG + 8 ... MGPU_CAP_PCICFG + 15:
		return 0xff;
	default:
		return 0;
	}
}

/* Return the writable bits of a BAR's byte; bits below the BAR's size read as zero. */
static u8 writable_bar(const struct mgpu_vgpu *vgpu, u32 off)
{
	u32 byte = (off - PCI_BASE_ADDRESS_0) % 4, mask;
	u64 hostmem = -mgpu_hostmem_size(vgpu);

	switch ((off - PCI_BASE_ADDRESS_0) / 4) {
	case MGPU_BAR_VIRTIO:
		mask = ~(MGPU_BAR_VIRTIO_SIZE - 1);
		break;
	case MGPU_BAR_MSIX:
		mask = ~(MGPU_BAR_MSIX_SIZE - 1);
		break;
	case MGPU_BAR_HOSTMEM:
		mask = hostmem;
		break;
	case MGPU_BAR_HOSTMEM + 1:
		mask = hostmem >> 32;
		break;
	default:
		return 0;
	}
	return mask >> (8 * byte);
}

/*
 * Return whether an access is to the data of the window through which firmware
 * accesses the BAR (VIRTIO 1.2, section 4.1.4.9).
 */
static bool is_window(u32 off, u32 len)
{
	return off >= MGPU_CAP_PCICFG + sizeof(struct virtio_pci_cap) &&
	       off + len <= MGPU_CAP_PCICFG + sizeof(struct virtio_pci_cfg_cap);
}

static bool config_window(const struct mgpu_vgpu *vgpu, u32 len, u32 *bar_off)
{
	const u32 pos = MGPU_CAP_PCICFG;
	u32 size = get32(vgpu, pos + offsetof(struct virtio_pci_cap, length));

	*bar_off = get32(vgpu, pos + offsetof(struct virtio_pci_cap, offset));
	return vgpu->config[pos + offsetof(struct virtio_pci_cap, bar)] ==
		       MGPU_BAR_VIRTIO &&
	       size == len && *bar_off % len == 0;
}

int mgpu_config_read(struct mgpu_vgpu *vgpu, u32 off, void *buf, u32 len)
{
	u32 bar_off;

	lockdep_assert_held(&vgpu->lock);
	if (off >= MGPU_CFG_SIZE || len > MGPU_CFG_SIZE - off)
		return -EINVAL;
	if (is_window(off, len) && config_window(vgpu, len, &bar_off))
		return mgpu_bar_read(vgpu, bar_off, buf, len);
	memcpy(buf, &vgpu->config[off], len);
	return 0;
}

/* Return whether the guest lets the device access memory (bus mastering). Any context. */
bool mgpu_config_may_dma(const struct mgpu_vgpu *vgpu)
{
	return READ_ONCE(vgpu->config[PCI_COMMAND]) & PCI_COMMAND_MASTER;
}

int mgpu_config_write(struct mgpu_vgpu *vgpu, u32 off, const void *buf,
		      u32 len)
{
	const u8 *b = buf;
	u32 i, bar_off;
	u8 mask;

	lockdep_assert_held(&vgpu->lock);
	if (off >= MGPU_CFG_SIZE || len > MGPU_CFG_SIZE - off)
		return -EINVAL;
	if (is_window(off, len)) {
		if (config_window(vgpu, len, &bar_off))
			return mgpu_bar_write(vgpu, bar_off, buf, len);
		return 0;
	}

	for (i = 0; i < len; i++) {
		u32 at = off + i;

		if (at == MGPU_CAP_AF + PCI_AF_CTRL &&
		    (b[i] & PCI_AF_CTRL_FLR)) {
			mgpu_config_reset(vgpu);
			mgpu_vgpu_reset(vgpu);
			return 0;
		}

		if (at >= PCI_BASE_ADDRESS_0 && at < PCI_BASE_ADDRESS_0 + 24)
			mask = writable_bar(vgpu, at);
		else
			mask = config_writable(at);
		WRITE_ONCE(vgpu->config[at],
			   (vgpu->config[at] & ~mask) | (b[i] & mask));
		if (at == PCI_COMMAND && mgpu_config_may_dma(vgpu))
			mgpu_ring_kick(vgpu);
		else if (at == PCI_COMMAND)
			mgpu_ring_wait(vgpu);
		if (at == PCI_COMMAND + 1)
			mgpu_irq_intx_disable(vgpu, vgpu->config[at] &
					      (PCI_COMMAND_INTX_DISABLE >> 8));
	}
	return 0;
}

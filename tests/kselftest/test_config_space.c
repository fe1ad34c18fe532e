// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI configuration space as firmware and drivers see it.
 */
#include <errno.h>
#include <linux/pci_regs.h>
#include <sys/ioctl.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "vmm.h"

FIXTURE(config)
{
	struct vm vm;
};

FIXTURE_SETUP(config)
{
	ASSERT_EQ(0, vm_new(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(config)
{
	vm_delete(&self->vm);
}

TEST_F(config, identity_is_a_modern_virtio_gpu)
{
	struct vm *vm = &self->vm;

	EXPECT_EQ(MGPU_PCI_VENDOR, cfg_read(vm, PCI_VENDOR_ID, 2));
	EXPECT_EQ(MGPU_PCI_DEVICE, cfg_read(vm, PCI_DEVICE_ID, 2));
	/* 0x1040 + 16, section 5.7.1; revision at least 1, section 4.1.2.1 */
	EXPECT_EQ(0x10501af4u, cfg_read(vm, PCI_VENDOR_ID, 4));
	EXPECT_LE(1, cfg_read(vm, PCI_REVISION_ID, 1));
	EXPECT_EQ(MGPU_PCI_CLASS, cfg_read(vm, PCI_CLASS_REVISION, 4) >> 8);
	EXPECT_EQ(MGPU_PCI_SUBVENDOR, cfg_read(vm, PCI_SUBSYSTEM_VENDOR_ID, 2));
	EXPECT_EQ(MGPU_PCI_SUBDEVICE, cfg_read(vm, PCI_SUBSYSTEM_ID, 2));
	EXPECT_EQ(0, cfg_read(vm, PCI_HEADER_TYPE, 1));
	EXPECT_EQ(1, cfg_read(vm, PCI_INTERRUPT_PIN, 1));
}

TEST_F(config, identity_cannot_be_written)
{
	static const uint8_t regs[] = {
		PCI_VENDOR_ID, PCI_CLASS_REVISION, PCI_HEADER_TYPE,
		PCI_SUBSYSTEM_VENDOR_ID, PCI_CAPABILITY_LIST,
	};
	struct vm *vm = &self->vm;
	uint32_t before, mask;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(regs); i++) {
		before = cfg_read(vm, regs[i] & ~3u, 4);
		EXPECT_EQ(0, cfg_write(vm, regs[i] & ~3u, 4, ~before));
		/* Cache line size and latency timer may be scratch registers. */
		mask = regs[i] == PCI_HEADER_TYPE ? 0xffff0000 : ~0u;
		EXPECT_EQ(before & mask, cfg_read(vm, regs[i] & ~3u, 4) & mask)
			TH_LOG("register 0x%02x", regs[i]);
	}
}

TEST_F(config, reads_of_any_width_agree)
{
	struct vm *vm = &self->vm;
	uint32_t off, dword;

	for (off = 0; off < 256; off += 4) {
		dword = cfg_read(vm, off, 4);
		EXPECT_EQ(dword & 0xffff, cfg_read(vm, off, 2));
		EXPECT_EQ(dword >> 16, cfg_read(vm, off + 2, 2));
		EXPECT_EQ(dword & 0xff, cfg_read(vm, off, 1));
		EXPECT_EQ(dword >> 24, cfg_read(vm, off + 3, 1));
	}
}

TEST_F(config, access_past_the_end_is_refused)
{
	struct vm *vm = &self->vm;
	uint8_t buf[8];

	EXPECT_GT(0, vm_read(vm, VFIO_PCI_CONFIG_REGION_INDEX, 256, buf, 4));
	EXPECT_GT(0, vm_read(vm, VFIO_PCI_CONFIG_REGION_INDEX, 254, buf, 4));
	EXPECT_GT(0, cfg_write(vm, 256, 4, 0));
	EXPECT_GT(0, vm_read(vm, VFIO_PCI_CONFIG_REGION_INDEX, 0xffffffffffull,
			     buf, 1));
}

TEST_F(config, capability_list_is_well_formed)
{
	uint8_t pos, id, used[256] = { 0 };
	struct vm *vm = &self->vm;
	unsigned int n = 0, i, len;
	bool msix = false, af = false;

	ASSERT_TRUE(cfg_read(vm, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	pos = cfg_read(vm, PCI_CAPABILITY_LIST, 1);
	while (pos) {
		ASSERT_LE(PCI_STD_HEADER_SIZEOF, pos);
		ASSERT_EQ(0, pos & 3);
		ASSERT_GT(48, ++n);
		id = cfg_read(vm, pos, 1);
		switch (id) {
		case PCI_CAP_ID_VNDR:
			len = cfg_read(vm, pos + 2, 1);
			EXPECT_LE(16, len);
			break;
		case PCI_CAP_ID_MSIX:
			len = PCI_CAP_MSIX_SIZEOF;
			msix = true;
			break;
		case PCI_CAP_ID_AF:
			len = PCI_CAP_AF_SIZEOF;
			af = true;
			EXPECT_EQ(PCI_CAP_AF_SIZEOF,
				  cfg_read(vm, pos + PCI_AF_LENGTH, 1));
			break;
		default:
			len = 4;
			EXPECT_EQ(0, id) TH_LOG("an unknown capability");
		}
		/* Capabilities do not overlap. */
		for (i = pos; i < pos + len && i < 256; i++) {
			EXPECT_EQ(0, used[i]++);
		}
		pos = cfg_read(vm, pos + 1, 1);
	}
	EXPECT_TRUE(msix);
	EXPECT_TRUE(af);
}

TEST_F(config, virtio_structures_are_where_capabilities_say)
{
	static const struct {
		unsigned int type, pos, bar, offset, length;
	} want[] = {
		{ VIRTIO_PCI_CAP_COMMON_CFG, MGPU_CAP_COMMON, MGPU_BAR_VIRTIO,
		  MGPU_COMMON_OFF, MGPU_COMMON_LEN },
		{ VIRTIO_PCI_CAP_NOTIFY_CFG, MGPU_CAP_NOTIFY, MGPU_BAR_VIRTIO,
		  MGPU_NOTIFY_OFF, MGPU_NOTIFY_LEN },
		{ VIRTIO_PCI_CAP_ISR_CFG, MGPU_CAP_ISR, MGPU_BAR_VIRTIO,
		  MGPU_ISR_OFF, MGPU_ISR_LEN },
		{ VIRTIO_PCI_CAP_DEVICE_CFG, MGPU_CAP_DEVCFG, MGPU_BAR_VIRTIO,
		  MGPU_DEVCFG_OFF, MGPU_DEVCFG_LEN },
	};
	const struct vmm_cap *cap;
	struct vm *vm = &self->vm;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(want); i++) {
		cap = &vm->cap[want[i].type];
		EXPECT_TRUE(cap->found);
		EXPECT_EQ(want[i].pos, cap->pos);
		EXPECT_EQ(want[i].bar, cap->bar);
		EXPECT_EQ(want[i].offset, cap->offset);
		EXPECT_EQ(want[i].length, cap->length);
		/* Section 4.1.4: within the BAR. */
		EXPECT_LE(cap->offset + cap->length,
			  vm->region[cap->bar].size);
	}
	EXPECT_TRUE(vm->cap[VIRTIO_PCI_CAP_PCI_CFG].found);
	EXPECT_EQ(MGPU_NOTIFY_MULT, vm->notify_mult);
	EXPECT_EQ(MGPU_CAP_MSIX, vm->msix_pos);
	EXPECT_EQ(MGPU_MSIX_VECTORS, vm->nr_vectors);
}

TEST_F(config, bars_tell_their_size)
{
	struct vm *vm = &self->vm;
	uint32_t reg, mask, before;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		reg = PCI_BASE_ADDRESS_0 + 4 * i;
		before = cfg_read(vm, reg, 4);
		EXPECT_EQ(0, cfg_write(vm, reg, 4, ~0u));
		mask = cfg_read(vm, reg, 4);
		EXPECT_EQ(0, cfg_write(vm, reg, 4, before));
		EXPECT_EQ(before, cfg_read(vm, reg, 4));
		if (!vm->region[i].size) {
			EXPECT_EQ(0, mask);
			continue;
		}
		/* Memory, 32 bit, not prefetchable. */
		EXPECT_EQ(0, mask & 0xf);
		EXPECT_EQ(vm->region[i].size, ~(mask & ~0xfu) + 1);
	}
	EXPECT_EQ(MGPU_BAR_VIRTIO_SIZE, vm->region[MGPU_BAR_VIRTIO].size);
	EXPECT_EQ(MGPU_BAR_MSIX_SIZE, vm->region[MGPU_BAR_MSIX].size);
}

TEST_F(config, bars_keep_an_address)
{
	struct vm *vm = &self->vm;

	EXPECT_EQ(0, cfg_write(vm, PCI_BASE_ADDRESS_0, 4, 0xfebf0000));
	EXPECT_EQ(0xfebf0000, cfg_read(vm, PCI_BASE_ADDRESS_0, 4) & ~0xfu);
	/* Bits below the size stay zero. */
	EXPECT_EQ(0, cfg_write(vm, PCI_BASE_ADDRESS_0, 4, 0xfebf1234));
	EXPECT_EQ(0xfebf0000, cfg_read(vm, PCI_BASE_ADDRESS_0, 4) & ~0xfu);
}

TEST_F(config, command_register_keeps_its_bits)
{
	struct vm *vm = &self->vm;
	uint16_t all = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
		       PCI_COMMAND_INTX_DISABLE;

	EXPECT_EQ(0, cfg_write(vm, PCI_COMMAND, 2, 0));
	EXPECT_EQ(0, cfg_read(vm, PCI_COMMAND, 2) & all);
	EXPECT_EQ(0, cfg_write(vm, PCI_COMMAND, 2, all));
	EXPECT_EQ(all, cfg_read(vm, PCI_COMMAND, 2) & all);
	/* No I/O space to enable. */
	EXPECT_EQ(0, cfg_write(vm, PCI_COMMAND, 2, PCI_COMMAND_IO));
	EXPECT_EQ(0, cfg_read(vm, PCI_COMMAND, 2) & PCI_COMMAND_IO);
}

TEST_F(config, regions_and_interrupts_are_told)
{
	struct vfio_irq_info irq = { .argsz = sizeof(irq) };
	struct vm *vm = &self->vm;

	EXPECT_TRUE(vm->info.flags & VFIO_DEVICE_FLAGS_PCI);
	EXPECT_TRUE(vm->info.flags & VFIO_DEVICE_FLAGS_RESET);
	EXPECT_EQ(MGPU_REGION_DISPLAY + 1, vm->info.num_regions);
	EXPECT_EQ(VFIO_PCI_NUM_IRQS, vm->info.num_irqs);
	EXPECT_EQ(1024 * 768 * 4, vm->region[MGPU_REGION_DISPLAY].size);
	EXPECT_TRUE(vm->region[MGPU_REGION_DISPLAY].flags &
		    VFIO_REGION_INFO_FLAG_MMAP);

	irq.index = VFIO_PCI_MSIX_IRQ_INDEX;
	ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq));
	EXPECT_EQ(MGPU_MSIX_VECTORS, irq.count);
	EXPECT_TRUE(irq.flags & VFIO_IRQ_INFO_EVENTFD);
	irq.index = VFIO_PCI_INTX_IRQ_INDEX;
	ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq));
	EXPECT_EQ(1, irq.count);
	EXPECT_TRUE(irq.flags & VFIO_IRQ_INFO_AUTOMASKED);
	irq.index = VFIO_PCI_REQ_IRQ_INDEX;
	ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq));
	EXPECT_EQ(1, irq.count);
	irq.index = VFIO_PCI_NUM_IRQS;
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(config, short_and_unknown_requests_are_refused)
{
	struct vfio_device_info info = { .argsz = 4 };
	struct vfio_region_info region = { .argsz = 8 };
	struct vm *vm = &self->vm;

	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_GET_INFO, &info));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region));
	EXPECT_EQ(EINVAL, errno);
	region.argsz = sizeof(region);
	region.index = 1000;
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_PCI_HOT_RESET, NULL));
	EXPECT_EQ(ENOTTY, errno);
}

/* Section 4.1.4.9: BAR access through configuration space. */
static uint32_t window_read(struct vm *vm, uint8_t bar, uint32_t off,
			    unsigned int len)
{
	uint8_t pos = vm->cap[VIRTIO_PCI_CAP_PCI_CFG].pos;

	cfg_write(vm, pos + VIRTIO_PCI_CAP_BAR, 1, bar);
	cfg_write(vm, pos + VIRTIO_PCI_CAP_OFFSET, 4, off);
	cfg_write(vm, pos + VIRTIO_PCI_CAP_LENGTH, 4, len);
	return cfg_read(vm, pos + sizeof(struct virtio_pci_cap), len);
}

static void window_write(struct vm *vm, uint8_t bar, uint32_t off,
			 unsigned int len, uint32_t val)
{
	uint8_t pos = vm->cap[VIRTIO_PCI_CAP_PCI_CFG].pos;

	cfg_write(vm, pos + VIRTIO_PCI_CAP_BAR, 1, bar);
	cfg_write(vm, pos + VIRTIO_PCI_CAP_OFFSET, 4, off);
	cfg_write(vm, pos + VIRTIO_PCI_CAP_LENGTH, 4, len);
	cfg_write(vm, pos + sizeof(struct virtio_pci_cap), len, val);
}

TEST_F(config, window_reaches_the_bars)
{
	struct vm *vm = &self->vm;
	struct vmm_cap *cc = &vm->cap[VIRTIO_PCI_CAP_COMMON_CFG];

	EXPECT_EQ(2, window_read(vm, cc->bar, cc->offset +
				 VIRTIO_PCI_COMMON_NUMQ, 2));
	window_write(vm, cc->bar, cc->offset + VIRTIO_PCI_COMMON_STATUS, 1,
		     VIRTIO_CONFIG_S_ACKNOWLEDGE);
	EXPECT_EQ(VIRTIO_CONFIG_S_ACKNOWLEDGE, vio_status(vm));
	window_write(vm, cc->bar, cc->offset + VIRTIO_PCI_COMMON_Q_SELECT, 2,
		     1);
	EXPECT_EQ(1, cc_read(vm, queue_select));
	EXPECT_EQ(MGPU_VQ_CURSOR_SIZE,
		  window_read(vm, cc->bar, cc->offset +
			      VIRTIO_PCI_COMMON_Q_SIZE, 2));
	window_write(vm, cc->bar, cc->offset + VIRTIO_PCI_COMMON_DFSELECT, 4,
		     1);
	EXPECT_EQ(cc_read(vm, device_feature),
		  window_read(vm, cc->bar, cc->offset + VIRTIO_PCI_COMMON_DF,
			      4));
}

TEST_F(config, window_refuses_accesses_out_of_bounds)
{
	struct vm *vm = &self->vm;
	struct vmm_cap *cc = &vm->cap[VIRTIO_PCI_CAP_COMMON_CFG];
	static const uint32_t offs[] = {
		MGPU_BAR_VIRTIO_SIZE, MGPU_BAR_VIRTIO_SIZE - 2, 0xfffffffc,
		0x80000000,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(offs); i++) {
		window_write(vm, cc->bar, offs[i], 4, 0xffffffff);
		window_read(vm, cc->bar, offs[i], 4);
	}
	for (i = 1; i < 256; i += 3) {
		window_write(vm, i, 0, 4, 0xffffffff);
		window_read(vm, i, 0, 4);
	}
	/* Lengths other than 1, 2 and 4 do nothing. */
	window_write(vm, cc->bar, cc->offset + VIRTIO_PCI_COMMON_STATUS, 3, 1);
	window_write(vm, cc->bar, cc->offset + VIRTIO_PCI_COMMON_STATUS, 0, 1);
	EXPECT_EQ(0, vio_status(vm));
	EXPECT_EQ(0, vm_start(vm));
}

TEST_F(config, a_write_to_every_byte_leaves_a_device_that_resets)
{
	struct vm *vm = &self->vm;
	uint32_t off;

	for (off = 0; off < 256; off++)
		cfg_write(vm, off, 1, 0xff);
	for (off = 0; off < 256; off += 4)
		cfg_write(vm, off, 4, 0xa5a5a5a5);
	ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_RESET));
	EXPECT_EQ(0x10501af4u, cfg_read(vm, PCI_VENDOR_ID, 4));
	EXPECT_EQ(0, cfg_read(vm, PCI_COMMAND, 2));
	EXPECT_EQ(0, cfg_read(vm, PCI_BASE_ADDRESS_0, 4) & ~0xfu);
	ASSERT_EQ(0, vm_discover(vm));
	EXPECT_EQ(0, vm_start(vm));
}

TEST_HARNESS_MAIN

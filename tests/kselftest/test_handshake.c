// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtio handshake and every way to reset (VIRTIO 1.2, sections 2.1, 3.1
 * and 4.1.4.3).
 */
#include <errno.h>
#include <linux/pci_regs.h>
#include <sys/ioctl.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "vmm.h"

#define ACK		VIRTIO_CONFIG_S_ACKNOWLEDGE
#define DRIVER		VIRTIO_CONFIG_S_DRIVER
#define FEATURES_OK	VIRTIO_CONFIG_S_FEATURES_OK
#define DRIVER_OK	VIRTIO_CONFIG_S_DRIVER_OK

FIXTURE(handshake)
{
	struct vm vm;
};

FIXTURE_SETUP(handshake)
{
	ASSERT_EQ(0, vm_new(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(handshake)
{
	vm_delete(&self->vm);
}

TEST_F(handshake, features_are_those_of_a_2d_gpu)
{
	EXPECT_EQ(VMM_FEATURES, vio_features(&self->vm));
}

TEST_F(handshake, feature_words_beyond_the_second_are_empty)
{
	struct vm *vm = &self->vm;

	cc_write(vm, device_feature_select, 2);
	EXPECT_EQ(0, cc_read(vm, device_feature));
	cc_write(vm, device_feature_select, 0xffffffff);
	EXPECT_EQ(0, cc_read(vm, device_feature));
	cc_write(vm, guest_feature_select, 2);
	cc_write(vm, guest_feature, 0xffffffff);
	EXPECT_EQ(0, vio_negotiate(vm, VMM_FEATURES));
}

TEST_F(handshake, features_ok_accepts_any_subset_with_version_1)
{
	static const unsigned int optional[] = {
		VIRTIO_F_ACCESS_PLATFORM, VIRTIO_RING_F_INDIRECT_DESC,
		VIRTIO_GPU_F_EDID, VIRTIO_GPU_F_RESOURCE_BLOB,
	};
	struct vm *vm = &self->vm;
	unsigned int i;

	ASSERT_EQ(0, vio_negotiate(vm, VMM_F(VIRTIO_F_VERSION_1)));
	for (i = 0; i < ARRAY_LEN(optional); i++) {
		ASSERT_EQ(0, vio_reset(vm));
		EXPECT_EQ(0, vio_negotiate(vm, VMM_FEATURES &
					   ~VMM_F(optional[i])));
	}
}

TEST_F(handshake, features_ok_refused_without_version_1)
{
	struct vm *vm = &self->vm;

	EXPECT_EQ(-ENOTSUP, vio_negotiate(vm, VMM_FEATURES &
					  ~VMM_F(VIRTIO_F_VERSION_1)));
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_EQ(-ENOTSUP, vio_negotiate(vm, 0));
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_EQ(0, vm_start(vm));
}

TEST_F(handshake, features_ok_refused_for_features_not_offered)
{
	struct vm *vm = &self->vm;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		if (VMM_FEATURES & VMM_F(bit))
			continue;
		EXPECT_EQ(-ENOTSUP, vio_negotiate(vm, VMM_FEATURES |
						  VMM_F(bit)))
			TH_LOG("feature %u", bit);
		ASSERT_EQ(0, vio_reset(vm));
	}
}

TEST_F(handshake, features_are_fixed_after_features_ok)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, vio_negotiate(vm, VMM_FEATURES));
	cc_write(vm, guest_feature_select, 0);
	cc_write(vm, guest_feature, 0xffffffff);
	EXPECT_EQ((uint32_t)VMM_FEATURES, cc_read(vm, guest_feature));
}

TEST_F(handshake, driver_ok_needs_features_ok)
{
	struct vm *vm = &self->vm;

	cc_write(vm, device_status, ACK | DRIVER);
	cc_write(vm, device_status, ACK | DRIVER | DRIVER_OK);
	EXPECT_EQ(0, vio_status(vm) & DRIVER_OK);
}

TEST_F(handshake, queues_have_their_sizes)
{
	struct vm *vm = &self->vm;

	EXPECT_EQ(MGPU_NR_VQS, cc_read(vm, num_queues));
	cc_write(vm, queue_select, VMM_CONTROL);
	EXPECT_EQ(64, cc_read(vm, queue_size));
	cc_write(vm, queue_select, VMM_CURSOR);
	EXPECT_EQ(16, cc_read(vm, queue_size));
	/* Section 4.1.4.3.1: 0 for a queue that is not there. */
	cc_write(vm, queue_select, 2);
	EXPECT_EQ(0, cc_read(vm, queue_size));
	cc_write(vm, queue_select, 0xffff);
	EXPECT_EQ(0, cc_read(vm, queue_size));
	cc_write(vm, queue_enable, 1);
	EXPECT_EQ(0, cc_read(vm, queue_enable));
}

TEST_F(handshake, a_queue_may_be_made_smaller)
{
	struct vm *vm = &self->vm;

	cc_write(vm, queue_select, VMM_CONTROL);
	cc_write(vm, queue_size, 32);
	EXPECT_EQ(32, cc_read(vm, queue_size));
	/* Not larger than offered, not a broken power of two. */
	cc_write(vm, queue_size, 128);
	EXPECT_GE(64, cc_read(vm, queue_size));
	cc_write(vm, queue_size, 33);
	EXPECT_NE(33, cc_read(vm, queue_size));
	cc_write(vm, queue_size, 0);
	EXPECT_NE(0, cc_read(vm, queue_size));
	/* A reset brings the size back. */
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_EQ(64, cc_read(vm, queue_size));
}

TEST_F(handshake, a_smaller_queue_works)
{
	struct vm *vm = &self->vm;
	uint32_t w, h;
	int i;

	ASSERT_EQ(0, vio_reset(vm));
	ASSERT_EQ(0, vio_negotiate(vm, VMM_FEATURES));
	ASSERT_EQ(0, irq_msix(vm, 3));
	cc_write(vm, queue_select, VMM_CONTROL);
	cc_write(vm, queue_msix_vector, 1);
	cc_write(vm, queue_size, 4);
	ASSERT_EQ(0, vio_setup_queue(vm, VMM_CONTROL));
	ASSERT_EQ(4, vm->vq[VMM_CONTROL].size);
	ASSERT_EQ(0, vio_driver_ok(vm));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
			  gpu_display_info(vm, &w, &h));
	}
}

TEST_F(handshake, a_queue_that_is_enabled_is_fixed)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, vm_start(vm));
	cc_write(vm, queue_select, VMM_CONTROL);
	EXPECT_EQ(1, cc_read(vm, queue_enable));
	cc_write(vm, queue_size, 8);
	EXPECT_EQ(64, cc_read(vm, queue_size));
	cc_write(vm, queue_desc_lo, 0x1000);
	EXPECT_EQ((uint32_t)vm_addr(vm, vm->vq[VMM_CONTROL].desc),
		  cc_read(vm, queue_desc_lo));
	/* Section 4.1.4.3.2: a driver must not write 0; it has no effect. */
	cc_write(vm, queue_enable, 0);
	EXPECT_EQ(1, cc_read(vm, queue_enable));
}

TEST_F(handshake, a_single_queue_works)
{
	struct vm *vm = &self->vm;
	uint32_t w, h;

	ASSERT_EQ(0, vio_negotiate(vm, VMM_FEATURES));
	ASSERT_EQ(0, irq_msix(vm, 3));
	cc_write(vm, queue_select, VMM_CONTROL);
	cc_write(vm, queue_msix_vector, 1);
	ASSERT_EQ(0, vio_setup_queue(vm, VMM_CONTROL));
	ASSERT_EQ(0, vio_driver_ok(vm));
	EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_display_info(vm, &w, &h));
	/* A doorbell of the queue that is not there does nothing. */
	EXPECT_EQ(0, vio_write(vm, VIRTIO_PCI_CAP_NOTIFY_CFG, vm->notify_mult,
			       2, 1));
	EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_display_info(vm, &w, &h));
}

TEST_F(handshake, nothing_is_processed_before_driver_ok)
{
	struct virtio_gpu_ctrl_hdr c;
	struct vm *vm = &self->vm;
	int head;

	ASSERT_EQ(0, vio_negotiate(vm, VMM_FEATURES));
	ASSERT_EQ(0, irq_msix(vm, 3));
	cc_write(vm, queue_select, VMM_CONTROL);
	cc_write(vm, queue_msix_vector, 1);
	ASSERT_EQ(0, vio_setup_queue(vm, VMM_CONTROL));
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408);
	ASSERT_LE(0, head);
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, VMM_QUIET));
	/* Pending buffers are processed at DRIVER_OK, without a doorbell. */
	ASSERT_EQ(0, vio_driver_ok(vm));
	EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_result(vm, VMM_CONTROL, head, NULL, 0, VMM_TIMEOUT));
}

TEST_F(handshake, device_config_has_one_scanout)
{
	struct vm *vm = &self->vm;

	EXPECT_EQ(0, vio_read(vm, VIRTIO_PCI_CAP_DEVICE_CFG, 0, 4));
	EXPECT_EQ(MGPU_NR_SCANOUTS, vio_read(vm, VIRTIO_PCI_CAP_DEVICE_CFG,
					     8, 4));
	EXPECT_EQ(0, vio_read(vm, VIRTIO_PCI_CAP_DEVICE_CFG, 12, 4));
	vio_write(vm, VIRTIO_PCI_CAP_DEVICE_CFG, 8, 4, 5);
	EXPECT_EQ(MGPU_NR_SCANOUTS, vio_read(vm, VIRTIO_PCI_CAP_DEVICE_CFG,
					     8, 4));
}

/* ---- resets ---- */

TEST_F(handshake, without_bus_mastering_the_ring_rests)
{
	struct virtio_gpu_ctrl_hdr c, answer;
	struct vm *vm = &self->vm;
	uint32_t w, h;
	int head;

	ASSERT_EQ(0, vm_start(vm));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	EXPECT_EQ(0, cfg_write(vm, PCI_COMMAND, 2, PCI_COMMAND_MEMORY));
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408);
	ASSERT_LE(0, head);
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, VMM_QUIET));
	/* The device has not read the command: the guest may still change it. */
	gpu_hdr((void *)(vm->vq[VMM_CONTROL].req + (size_t)head * 4096), 0x4242);

	EXPECT_EQ(0, cfg_write(vm, PCI_COMMAND, 2,
			       PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER));
	EXPECT_EQ(UNSPEC, gpu_result(vm, VMM_CONTROL, head, &answer, sizeof(answer),
				     VMM_TIMEOUT));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
}

FIXTURE(reset)
{
	struct vm vm;
	struct gpu_screen screen;
};

FIXTURE_VARIANT(reset)
{
	int kind;
};

FIXTURE_VARIANT_ADD(reset, by_status)
{
	.kind = 0,
};

FIXTURE_VARIANT_ADD(reset, by_vfio)
{
	.kind = 1,
};

FIXTURE_VARIANT_ADD(reset, by_function_level_reset)
{
	.kind = 2,
};

static int do_reset(struct vm *vm, int kind)
{
	uint8_t pos;

	switch (kind) {
	case 0:
		return vio_reset(vm);
	case 1:
		return ioctl(vm->device, VFIO_DEVICE_RESET) ? -errno : 0;
	default:
		for (pos = cfg_read(vm, PCI_CAPABILITY_LIST, 1); pos;
		     pos = cfg_read(vm, pos + 1, 1))
			if (cfg_read(vm, pos, 1) == PCI_CAP_ID_AF)
				return cfg_write(vm, pos + PCI_AF_CTRL, 1,
						 PCI_AF_CTRL_FLR);
		return -ENODEV;
	}
}

FIXTURE_SETUP(reset)
{
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_2d(&self->vm, &self->screen, 1,
				   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 64, 64));
	ASSERT_EQ(0, gpu_show(&self->vm, &self->screen));
}

FIXTURE_TEARDOWN(reset)
{
	vm_delete(&self->vm);
}

TEST_F(reset, returns_every_register_to_its_start)
{
	struct vm *vm = &self->vm;
	unsigned int q;

	ASSERT_EQ(0, do_reset(vm, variant->kind));
	EXPECT_EQ(0, vio_status(vm));
	cc_write(vm, guest_feature_select, 0);
	EXPECT_EQ(0, cc_read(vm, guest_feature));
	EXPECT_EQ(VIRTIO_MSI_NO_VECTOR, cc_read(vm, msix_config));
	for (q = 0; q < VMM_NR_VQS; q++) {
		cc_write(vm, queue_select, q);
		EXPECT_EQ(0, cc_read(vm, queue_enable));
		EXPECT_EQ(VIRTIO_MSI_NO_VECTOR, cc_read(vm, queue_msix_vector));
		EXPECT_EQ(0, cc_read(vm, queue_desc_lo));
		EXPECT_EQ(0, cc_read(vm, queue_used_hi));
	}
}

TEST_F(reset, stops_processing)
{
	struct vm *vm = &self->vm;
	struct virtio_gpu_ctrl_hdr c;

	ASSERT_EQ(0, do_reset(vm, variant->kind));
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	ASSERT_LE(0, gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408));
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, VMM_QUIET));
}

TEST_F(reset, forgets_resources_and_screen)
{
	struct vfio_device_gfx_plane_info plane;
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, display_plane(vm, &plane));
	ASSERT_EQ(64, plane.width);
	ASSERT_EQ(0, do_reset(vm, variant->kind));
	ASSERT_EQ(0, display_plane(vm, &plane));
	EXPECT_EQ(0, plane.width);
	EXPECT_EQ(0, plane.height);
	EXPECT_EQ(0, plane.drm_format);
	ASSERT_EQ(0, vm_discover(vm));
	ASSERT_EQ(0, vm_start(vm));
	EXPECT_EQ(VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID, gpu_unref(vm, 1));
}

TEST_F(reset, leaves_a_device_that_starts_again)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, do_reset(vm, variant->kind));
		ASSERT_EQ(0, vm_discover(vm));
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1,
					   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
					   64, 64));
		ASSERT_EQ(0, gpu_show(vm, &s));
	}
}

TEST_F(reset, in_the_middle_of_submissions_is_safe)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	int i, k;

	for (i = 0; i < 20; i++) {
		for (k = 0; k < 20; k++) {
			ASSERT_LE(0, gpu_flush_send(vm, 1,
						    gpu_rect(0, 0, 64, 64)));
		}
		ASSERT_EQ(0, do_reset(vm, variant->kind));
		/* Nothing writes into the old rings from now on. */
		ASSERT_EQ(0, vm_discover(vm));
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_TRUE(vq_quiet(vm, VMM_CONTROL, 5));
		ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1,
					   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
					   64, 64));
	}
	EXPECT_EQ(0, gpu_show(vm, &s));
}

TEST_HARNESS_MAIN

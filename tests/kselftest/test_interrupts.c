// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: MSI-X, INTx with the ISR, masks, configuration changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "vmm.h"

#define MASK_NONE	(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK)
#define UNMASK_NONE	(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK)
#define TRIGGER_NONE	(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)
#define TRIGGER_BOOL	(VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER)

FIXTURE(irq)
{
	struct vm vm;
};

FIXTURE_SETUP(irq)
{
	ASSERT_EQ(0, vm_new(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(irq)
{
	vm_delete(&self->vm);
}

/* A command without a wait for its interrupt. */
static int send_command(struct vm *vm, unsigned int q)
{
	struct virtio_gpu_update_cursor c = { .resource_id = 0 };

	gpu_hdr(&c.hdr, q == VMM_CURSOR ? VIRTIO_GPU_CMD_MOVE_CURSOR :
					  VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	return gpu_send(vm, q, &c, sizeof(c), q == VMM_CURSOR ? 0 : 408);
}

/* Waits on the ring alone. */
static bool used(struct vm *vm, unsigned int q)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (!vq_collect(vm, q)) {
		if (now_ms() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* A ring that is broken raises a configuration interrupt. */
static void break_ring(struct vm *vm, unsigned int q)
{
	vq_publish(vm, q, 0xffff);
	vq_kick(vm, q);
}

TEST_F(irq, each_queue_has_its_vector)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, vm_start(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_LT(0, irq_wait(vm->irq[1], VMM_TIMEOUT));
	ASSERT_TRUE(used(vm, VMM_CONTROL));
	ASSERT_LE(0, send_command(vm, VMM_CURSOR));
	EXPECT_LT(0, irq_wait(vm->irq[2], VMM_TIMEOUT));
	ASSERT_TRUE(used(vm, VMM_CURSOR));
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));
	EXPECT_EQ(0, irq_wait(vm->irq[1], 0));
}

TEST_F(irq, queues_may_share_a_vector)
{
	struct vm *vm = &self->vm;
	unsigned int q;

	ASSERT_EQ(0, vm_start(vm));
	for (q = 0; q < VMM_NR_VQS; q++) {
		cc_write(vm, queue_select, q);
		cc_write(vm, queue_msix_vector, 0);
		EXPECT_EQ(0, cc_read(vm, queue_msix_vector));
	}
	for (q = 0; q < VMM_NR_VQS; q++) {
		ASSERT_LE(0, send_command(vm, q));
		EXPECT_LT(0, irq_wait(vm->irq[0], VMM_TIMEOUT));
		ASSERT_TRUE(used(vm, q));
	}
	EXPECT_EQ(0, irq_wait(vm->irq[1], 0));
	EXPECT_EQ(0, irq_wait(vm->irq[2], 0));
}

TEST_F(irq, a_vector_that_is_not_there_reads_back_as_none)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, irq_msix(vm, 3));
	cc_write(vm, msix_config, vm->nr_vectors);
	EXPECT_EQ(VIRTIO_MSI_NO_VECTOR, cc_read(vm, msix_config));
	cc_write(vm, queue_select, 0);
	cc_write(vm, queue_msix_vector, 0x1234);
	EXPECT_EQ(VIRTIO_MSI_NO_VECTOR, cc_read(vm, queue_msix_vector));
}

TEST_F(irq, without_a_vector_there_is_no_interrupt)
{
	struct vm *vm = &self->vm;
	int i;

	ASSERT_EQ(0, vm_start(vm));
	cc_write(vm, queue_select, VMM_CONTROL);
	cc_write(vm, queue_msix_vector, VIRTIO_MSI_NO_VECTOR);
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	ASSERT_TRUE(used(vm, VMM_CONTROL));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, irq_wait(vm->irq[i], VMM_QUIET / 3));
	}
}

TEST_F(irq, the_driver_can_ask_for_none)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, vm_start(vm));
	vm->vq[VMM_CONTROL].avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	ASSERT_TRUE(used(vm, VMM_CONTROL));
	EXPECT_EQ(0, irq_wait(vm->irq[1], VMM_QUIET));
	vm->vq[VMM_CONTROL].avail->flags = 0;
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_LT(0, irq_wait(vm->irq[1], VMM_TIMEOUT));
}

TEST_F(irq, msix_leaves_the_isr_alone)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, vm_start(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_LT(0, irq_wait(vm->irq[1], VMM_TIMEOUT));
	EXPECT_EQ(0, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
}

TEST_F(irq, loopback_triggers_the_eventfd)
{
	struct vm *vm = &self->vm;
	int i;

	ASSERT_EQ(0, irq_msix(vm, 3));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, irq_action(vm, VFIO_PCI_MSIX_IRQ_INDEX, i,
					TRIGGER_NONE, 0));
		EXPECT_EQ(1, irq_wait(vm->irq[i], VMM_TIMEOUT));
		EXPECT_EQ(0, irq_action(vm, VFIO_PCI_MSIX_IRQ_INDEX, i,
					TRIGGER_BOOL, 1));
		EXPECT_EQ(1, irq_wait(vm->irq[i], VMM_TIMEOUT));
		EXPECT_EQ(0, irq_action(vm, VFIO_PCI_MSIX_IRQ_INDEX, i,
					TRIGGER_BOOL, 0));
		EXPECT_EQ(0, irq_wait(vm->irq[i], 0));
	}
}

TEST_F(irq, requests_out_of_range_are_refused)
{
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + 16];
	} u = { .set = {
		.argsz = sizeof(u),
		.flags = VFIO_IRQ_SET_DATA_EVENTFD |
			 VFIO_IRQ_SET_ACTION_TRIGGER,
		.index = VFIO_PCI_MSIX_IRQ_INDEX,
	} };
	struct vm *vm = &self->vm;
	int fd = 0;

	EXPECT_EQ(-EINVAL, irq_action(vm, VFIO_PCI_MSIX_IRQ_INDEX, 3,
				      TRIGGER_NONE, 0));
	EXPECT_EQ(-EINVAL, irq_action(vm, VFIO_PCI_MSIX_IRQ_INDEX, ~0u,
				      TRIGGER_NONE, 0));
	EXPECT_EQ(-EINVAL, irq_action(vm, VFIO_PCI_NUM_IRQS, 0, TRIGGER_NONE,
				      0));
	EXPECT_EQ(-EINVAL, irq_action(vm, VFIO_PCI_MSI_IRQ_INDEX, 0,
				      TRIGGER_NONE, 0));
	EXPECT_GT(0, irq_action(vm, VFIO_PCI_MSIX_IRQ_INDEX, 0, 0xffffffff,
				0));
	/* An fd that is no eventfd. */
	u.set.count = 1;
	memcpy(u.set.data, &fd, sizeof(fd));
	fd = open("/dev/null", O_RDWR);
	memcpy(u.set.data, &fd, sizeof(fd));
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &u.set));
	close(fd);
	u.set.count = 4;
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &u.set));
	EXPECT_EQ(EINVAL, errno);
	u.set.start = 0xfffffffe;
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &u.set));
	EXPECT_EQ(EINVAL, errno);
	/* All of that left it in order. */
	EXPECT_EQ(0, vm_start(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_LT(0, irq_wait(vm->irq[1], VMM_TIMEOUT));
}

/* ---- INTx ---- */

static int start_intx(struct vm *vm)
{
	unsigned int q;
	int ret;

	ret = vio_negotiate(vm, VMM_FEATURES);
	if (!ret)
		ret = irq_intx(vm);
	for (q = 0; !ret && q < VMM_NR_VQS; q++)
		ret = vio_setup_queue(vm, q);
	return ret ? ret : vio_driver_ok(vm);
}

TEST_F(irq, intx_sets_the_isr_and_reading_clears_it)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, start_intx(vm));
	EXPECT_EQ(0, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	ASSERT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	EXPECT_EQ(1, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
	EXPECT_EQ(0, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
	EXPECT_TRUE(used(vm, VMM_CONTROL));
}

TEST_F(irq, intx_is_masked_by_firing)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, start_intx(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	ASSERT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	EXPECT_TRUE(used(vm, VMM_CONTROL));
	vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1);
	/* Not unmasked yet: the next one waits ... */
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_TRUE(used(vm, VMM_CONTROL));
	EXPECT_EQ(0, irq_wait(vm->intx, VMM_QUIET));
	/* ... and fires then. */
	EXPECT_EQ(0, irq_action(vm, VFIO_PCI_INTX_IRQ_INDEX, 0, UNMASK_NONE,
				0));
	EXPECT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
}

TEST_F(irq, intx_unmasked_with_the_isr_cleared_stays_quiet)
{
	struct vm *vm = &self->vm;
	int i;

	ASSERT_EQ(0, start_intx(vm));
	for (i = 0; i < 5; i++) {
		ASSERT_LE(0, send_command(vm, VMM_CURSOR));
		ASSERT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
		EXPECT_TRUE(used(vm, VMM_CURSOR));
		EXPECT_EQ(1, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
		EXPECT_EQ(0, irq_action(vm, VFIO_PCI_INTX_IRQ_INDEX, 0,
					UNMASK_NONE, 0));
		EXPECT_EQ(0, irq_wait(vm->intx, 20));
	}
}

TEST_F(irq, intx_can_be_masked)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, start_intx(vm));
	EXPECT_EQ(0, irq_action(vm, VFIO_PCI_INTX_IRQ_INDEX, 0, MASK_NONE,
				0));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_TRUE(used(vm, VMM_CONTROL));
	EXPECT_EQ(0, irq_wait(vm->intx, VMM_QUIET));
	EXPECT_EQ(0, irq_action(vm, VFIO_PCI_INTX_IRQ_INDEX, 0, UNMASK_NONE,
				0));
	EXPECT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
}

TEST_F(irq, intx_is_unmasked_through_an_eventfd)
{
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + 4];
	} u = { .set = {
		.argsz = sizeof(struct vfio_irq_set) + 4,
		.flags = VFIO_IRQ_SET_DATA_EVENTFD |
			 VFIO_IRQ_SET_ACTION_UNMASK,
		.index = VFIO_PCI_INTX_IRQ_INDEX,
		.count = 1,
	} };
	struct vm *vm = &self->vm;
	uint64_t one = 1;
	int fd;

	ASSERT_EQ(0, start_intx(vm));
	fd = eventfd(0, EFD_CLOEXEC);
	ASSERT_LE(0, fd);
	memcpy(u.set.data, &fd, sizeof(fd));
	ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &u.set));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	ASSERT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	/* As level triggered: unmasked with the cause standing, it refires. */
	ASSERT_EQ(8, write(fd, &one, sizeof(one)));
	EXPECT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	EXPECT_EQ(1, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
	ASSERT_EQ(8, write(fd, &one, sizeof(one)));
	EXPECT_EQ(0, irq_wait(vm->intx, VMM_QUIET));
	close(fd);
}

TEST_F(irq, intx_disabled_in_the_command_register_stays_quiet)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, start_intx(vm));
	cfg_write(vm, 4, 2, 0x406);
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_TRUE(used(vm, VMM_CONTROL));
	EXPECT_EQ(0, irq_wait(vm->intx, VMM_QUIET));
	/* Still pending when it is enabled again. */
	cfg_write(vm, 4, 2, 0x006);
	EXPECT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
}

TEST_F(irq, msix_takes_over_from_intx_and_gives_back)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, start_intx(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	ASSERT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	ASSERT_EQ(0, vm_start(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_LT(0, irq_wait(vm->irq[1], VMM_TIMEOUT));
	EXPECT_EQ(0, irq_wait(vm->intx, 0));
	ASSERT_EQ(0, vio_reset(vm));
	ASSERT_EQ(0, irq_msix_off(vm));
	ASSERT_EQ(0, start_intx(vm));
	ASSERT_LE(0, send_command(vm, VMM_CONTROL));
	EXPECT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	EXPECT_EQ(0, irq_wait(vm->irq[1], 0));
}

/* ---- configuration changes ---- */

TEST_F(irq, a_broken_ring_raises_the_config_vector_once)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, vm_start(vm));
	break_ring(vm, VMM_CONTROL);
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_TRUE(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	vq_kick(vm, VMM_CONTROL);
	vq_kick(vm, VMM_CONTROL);
	break_ring(vm, VMM_CURSOR);
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));
}

TEST_F(irq, a_broken_ring_sets_the_config_bit_of_the_isr)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, start_intx(vm));
	break_ring(vm, VMM_CONTROL);
	EXPECT_EQ(1, irq_wait(vm->intx, VMM_TIMEOUT));
	EXPECT_TRUE(vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1) &
		    VIRTIO_PCI_ISR_CONFIG);
	EXPECT_EQ(0, vio_read(vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
}

TEST_F(irq, a_broken_ring_without_a_vector_is_silent)
{
	struct vm *vm = &self->vm;
	uint64_t end = now_ms() + VMM_TIMEOUT;
	int i;

	ASSERT_EQ(0, vm_start(vm));
	cc_write(vm, msix_config, VIRTIO_MSI_NO_VECTOR);
	break_ring(vm, VMM_CONTROL);
	while (!(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET)) {
		ASSERT_GT(end, now_ms());
		sleep_ms(1);
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, irq_wait(vm->irq[i], VMM_QUIET / 3));
	}
}

TEST_F(irq, entries_that_are_not_there_are_refused)
{
	static const uint32_t index[] = {
		VFIO_PCI_INTX_IRQ_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
		VFIO_PCI_ERR_IRQ_INDEX, VFIO_PCI_REQ_IRQ_INDEX,
	};
	static const uint32_t type[] = {
		VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_BOOL,
	};
	struct vfio_irq_set set = { .argsz = sizeof(set) };
	size_t i, j;

	for (i = 0; i < sizeof(index) / sizeof(index[0]); i++) {
		for (j = 0; j < sizeof(type) / sizeof(type[0]); j++) {
			set.index = index[i];
			set.flags = VFIO_IRQ_SET_ACTION_TRIGGER | type[j];
			errno = 0;
			EXPECT_EQ(-1, ioctl(self->vm.device,
					    VFIO_DEVICE_SET_IRQS, &set));
			EXPECT_EQ(EINVAL, errno);
		}
	}
}

TEST_F(irq, eventfds_are_given_back_at_close)
{
	struct vm *vm = &self->vm;
	int fd, i;

	/* A leaked reference shows as memory that grows; a crash as itself. */
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, vm_start(vm));
		fd = dup(vm->irq[1]);
		ASSERT_LE(0, fd);
		vm_close(vm);
		EXPECT_EQ(0, irq_wait(fd, 0));
		close(fd);
		ASSERT_EQ(0, vm_open(vm, vm->uuid, VMM_RAM));
		vm->made = true;
	}
}

TEST_HARNESS_MAIN

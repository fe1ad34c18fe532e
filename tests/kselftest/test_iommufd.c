// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMMs that open the vGPU's own node (/dev/vfio/devices/vfioN) and manage its memory
 * with an iommufd instead of a group and a container.  For kernels with
 * CONFIG_VFIO_DEVICE_CDEV.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define BGRX		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define SIDE		128
#define ALIAS		0x80000000ull
#define ALIAS_LEN	(SIDE * SIDE * 4u)

FIXTURE(iommufd)
{
	struct vm vm;
	struct nl nl;
	char uuid[VMM_UUID_LEN + 1];
	int opened;
};

FIXTURE_SETUP(iommufd)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	mdev_uuid_new(self->uuid);
	ASSERT_EQ(0, mdev_create("small", self->uuid));
	self->opened = vm_open_iommufd(&self->vm, self->uuid, VMM_RAM);
}

FIXTURE_TEARDOWN(iommufd)
{
	struct nl_vgpu v;

	vm_close(&self->vm);
	if (mdev_exists(self->uuid)) {
		EXPECT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.pinned);
		EXPECT_EQ(0, v.mem_used);
		mdev_remove(self->uuid);
	}
	nl_close(&self->nl);
}

/* In the tests: the harness of older kernels runs them after a skip in setup. */
#define NEEDS_IOMMUFD() do {						\
	if (self->opened == -EOPNOTSUPP)				\
		SKIP(return, "this kernel has no VFIO device nodes (CONFIG_VFIO_DEVICE_CDEV)"); \
	ASSERT_EQ(0, self->opened);					\
} while (0)

static uint64_t pinned(struct nl *nl, const char *uuid)
{
	struct nl_vgpu v;

	return nl_vgpu_get(nl, uuid, &v) ? ~0ull : v.pinned;
}

/* Return whether a picture of one colour arrives. */
static bool shows(struct vm *vm, struct gpu_screen *s, uint32_t rgb)
{
	uint32_t i, *seen;
	size_t len;

	for (i = 0; i < SIDE * SIDE; i++)
		s->pixels[i] = rgb;
	if (gpu_show(vm, s))
		return false;
	seen = display_map(vm, &len);
	for (i = 0; seen && i < SIDE * SIDE; i++)
		if ((seen[i] & 0xffffff) != rgb)
			return false;
	return seen;
}

TEST_F(iommufd, a_machine_works_and_can_be_reset_and_closed)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	struct nl_vgpu v;
	int i, round;

	NEEDS_IOMMUFD();
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, SIDE, SIDE));
		for (i = 0; i < 10; i++) {
			EXPECT_TRUE(shows(vm, &s, i * 0x123456 & 0xffffff));
		}
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &v));
		EXPECT_TRUE(v.open);
		EXPECT_EQ(getpid(), v.tgid);
		EXPECT_EQ(10 * (round + 1), v.stats[MGPU_A_STATS_FRAMES]);
		EXPECT_LT(0, v.pinned);
		if (round == 0) {
			ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_RESET));
			vm_forget(vm);
			ASSERT_EQ(0, vm_discover(vm));
		} else if (round == 1) {
			vm_close(vm);
			EXPECT_EQ(0, pinned(&self->nl, self->uuid));
			ASSERT_EQ(0, vm_open_iommufd(vm, self->uuid, VMM_RAM));
		}
	}
}

TEST_F(iommufd, memory_can_be_unmapped_while_it_is_in_use)
{
	struct virtio_gpu_mem_entry e = { ALIAS, ALIAS_LEN, 0 };
	struct vm *vm = &self->vm;
	unsigned int round, i;
	struct gpu_screen s;
	uint64_t before;
	uint8_t *mem;
	int head[8];

	NEEDS_IOMMUFD();
	mem = aligned_alloc(4096, ALIAS_LEN);
	ASSERT_NE(NULL, mem);
	memset(mem, 0x11, ALIAS_LEN);
	ASSERT_EQ(0, vm_start(vm));
	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, SIDE, SIDE));
	ASSERT_EQ(OK, gpu_create_2d(vm, 2, BGRX, SIDE, SIDE));
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, vm_map(vm, mem, ALIAS_LEN, ALIAS));
		EXPECT_TRUE(shows(vm, &s, round));
		before = pinned(&self->nl, self->uuid);
		ASSERT_EQ(OK, gpu_attach_entries(vm, 2, &e, 1));
		EXPECT_EQ(before + ALIAS_LEN / 4096,
			  pinned(&self->nl, self->uuid));
		for (i = 0; i < ARRAY_LEN(head); i++) {
			struct virtio_gpu_transfer_to_host_2d c = {
				.resource_id = 2,
				.r = gpu_rect(0, 0, SIDE, SIDE),
			};

			gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
			head[i] = gpu_send(vm, VMM_CONTROL, &c, sizeof(c),
					   sizeof(c.hdr));
			ASSERT_LE(0, head[i]);
		}
		ASSERT_EQ(0, vm_unmap(vm, ALIAS, ALIAS_LEN));
		for (i = 0; i < ARRAY_LEN(head); i++)
			EXPECT_LT(0, gpu_result(vm, VMM_CONTROL, head[i], NULL,
						0, VMM_TIMEOUT));
		EXPECT_TRUE(shows(vm, &s, round + 1000));
		/* The first time, pages of these commands come to be pinned. */
		if (round)
			EXPECT_EQ(before, pinned(&self->nl, self->uuid));
		EXPECT_NE(OK, gpu_transfer(vm, 2, gpu_rect(0, 0, SIDE, SIDE), 0));
		EXPECT_EQ(OK, gpu_detach(vm, 2));
		EXPECT_EQ(0, vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	}
	/* All of it, the rings too. */
	ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE, vm->ram_size));
	EXPECT_EQ(0, pinned(&self->nl, self->uuid));
	ASSERT_EQ(0, vm_map(vm, vm->ram, vm->ram_size, VMM_RAM_BASE));
	ASSERT_EQ(0, vm_start(vm));
	vm->ram_used = 2 << 20;
	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, SIDE, SIDE));
	EXPECT_TRUE(shows(vm, &s, 0xabcdef));
	free(mem);
}

TEST_F(iommufd, a_vgpu_has_one_vmm_whichever_way_it_came)
{
	struct vm other;

	NEEDS_IOMMUFD();
	EXPECT_GT(0, vm_open(&other, self->uuid, VMM_RAM));
	EXPECT_GT(0, vm_open_iommufd(&other, self->uuid, VMM_RAM));
	ASSERT_EQ(0, vm_start(&self->vm));
	vm_close(&self->vm);
	ASSERT_EQ(0, vm_open(&other, self->uuid, VMM_RAM));
	EXPECT_GT(0, vm_open_iommufd(&self->vm, self->uuid, VMM_RAM));
	ASSERT_EQ(0, vm_start(&other));
	vm_close(&other);
	ASSERT_EQ(0, vm_open_iommufd(&self->vm, self->uuid, VMM_RAM));
	ASSERT_EQ(0, vm_start(&self->vm));
}

TEST_F(iommufd, removing_an_open_vgpu_asks_the_vmm_and_waits)
{
	struct vm *vm = &self->vm;
	char path[256];
	uint32_t w, h;
	pid_t pid;

	NEEDS_IOMMUFD();
	ASSERT_EQ(0, vm_start(vm));
	ASSERT_EQ(0, irq_request(vm));
	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, self->uuid);
	pid = sysfs_write_aside(path, "1");
	ASSERT_LT(0, pid);
	EXPECT_LT(0, irq_wait(vm->req_irq, VMM_TIMEOUT));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	vm_close(vm);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	EXPECT_FALSE(mdev_exists(self->uuid));
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VMM that may lock little memory (RLIMIT_MEMLOCK): a pin over the limit is refused
 * to the guest and leaves nothing pinned or accounted, and succeeds when the limit is
 * raised.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define BIG		(3u << 20)	/* more than is pinned in one go */
#define BIG_PAGES	(BIG / 4096)
#define LITTLE		(5u << 19)	/* enough for commands and a part of BIG */

/* This process, and no other, does without CAP_IPC_LOCK. */
static int drop_ipc_lock(void)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return -errno;
	d[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

/* The soft limit: it may be raised again. */
static int may_lock(rlim_t bytes)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r))
		return -errno;
	if (r.rlim_max != RLIM_INFINITY && r.rlim_max < bytes)
		r.rlim_max = bytes;
	r.rlim_cur = bytes;
	return setrlimit(RLIMIT_MEMLOCK, &r) ? -errno : 0;
}

/* Return the memory that is accounted to this process as locked, bytes. */
static long locked(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %ld kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

static long pinned(struct nl *nl, struct vm *vm)
{
	struct nl_vgpu v;

	return nl_vgpu_get(nl, vm->uuid, &v) ? -1 : (long)v.pinned;
}

FIXTURE(memlock)
{
	struct vm vm;
	struct nl nl;
};

FIXTURE_SETUP(memlock)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, drop_ipc_lock());
	ASSERT_EQ(0, may_lock(LITTLE));
	ASSERT_EQ(0, locked());
	ASSERT_EQ(0, vm_new(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(memlock)
{
	vm_close(&self->vm);
	EXPECT_EQ(0, pinned(&self->nl, &self->vm));
	EXPECT_EQ(0, locked());
	vm_delete(&self->vm);
	nl_close(&self->nl);
}

TEST_F(memlock, memory_over_the_limit_is_refused_and_leaves_nothing)
{
	struct vm *vm = &self->vm;
	long before, accounted;
	void *big, *other;
	uint32_t w, h;
	int i;

	ASSERT_EQ(0, vm_start(vm));
	big = vm_alloc(vm, BIG, 4096);
	other = vm_alloc(vm, BIG, 4096);
	ASSERT_NE(NULL, other);
	ASSERT_EQ(OK, gpu_create_2d(vm, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				    1024, 512));
	/* Commands of each kind that follow, so that their pages are pinned. */
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
	}
	before = pinned(&self->nl, vm);
	accounted = locked();
	EXPECT_LT(0, before);
	EXPECT_EQ(before * 4096, accounted);

	for (i = 0; i < 10; i++) {
		EXPECT_EQ(NOMEM, gpu_create_blob(vm, 2, big, BIG));
		EXPECT_EQ(NOMEM, gpu_attach(vm, 1, big, BIG));
		EXPECT_EQ(before, pinned(&self->nl, vm));
		EXPECT_EQ(accounted, locked());
	}
	/* The guest goes on, and what is small enough is pinned. */
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	EXPECT_EQ(OK, gpu_create_blob(vm, 3, big, 65536));
	EXPECT_EQ(before + 16, pinned(&self->nl, vm));
	EXPECT_EQ(OK, gpu_unref(vm, 3));

	/* With more to lock, the same goes well. */
	ASSERT_EQ(0, may_lock(LITTLE + BIG));
	EXPECT_EQ(OK, gpu_create_blob(vm, 2, big, BIG));
	EXPECT_EQ(before + BIG_PAGES, pinned(&self->nl, vm));
	EXPECT_EQ(accounted + BIG, locked());
	EXPECT_EQ(NOMEM, gpu_attach(vm, 1, other, BIG));
	EXPECT_EQ(OK, gpu_unref(vm, 2));
	EXPECT_EQ(OK, gpu_attach(vm, 1, other, BIG));
	EXPECT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(0, 0, 1024, 512), 0));
	EXPECT_EQ(accounted + BIG, locked());
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_GE(before, pinned(&self->nl, vm));
	EXPECT_EQ(pinned(&self->nl, vm) * 4096, locked());
}

/* Rings are pinned while the driver uses them. */
TEST_F(memlock, with_nothing_to_lock_a_ring_asks_for_a_reset)
{
	struct virtio_gpu_ctrl_hdr c;
	struct vm *vm = &self->vm;
	uint32_t w, h;

	ASSERT_EQ(0, may_lock(0));
	ASSERT_EQ(0, vm_start(vm));
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	ASSERT_LE(0, gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_TRUE(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	EXPECT_EQ(0, pinned(&self->nl, vm));
	EXPECT_EQ(0, locked());

	ASSERT_EQ(0, may_lock(LITTLE));
	ASSERT_EQ(0, vm_start(vm));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	EXPECT_LT(0, pinned(&self->nl, vm));
	EXPECT_EQ(pinned(&self->nl, vm) * 4096, locked());
}

TEST_HARNESS_MAIN

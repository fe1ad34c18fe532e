// SPDX-License-Identifier: GPL-2.0-only
/*
 * Orders of removal: VMMs that die, vGPUs and parents that are taken away, modules
 * that are unloaded.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define DRIVER	"/sys/bus/platform/drivers/mgpu_soft"

FIXTURE(lifetime)
{
	struct vm vm;
	struct nl nl;
};

FIXTURE_SETUP(lifetime)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(lifetime)
{
	vm_delete(&self->vm);
	nl_close(&self->nl);
}

/* ---- VMMs that die ---- */

static void submit_for_ever(struct vm *vm)
{
	struct gpu_screen s;

	if (gpu_screen_blob(vm, &s, 1, 512, 512))
		_exit(1);
	for (;;) {
		if (gpu_flush_send(vm, 1, gpu_rect(0, 0, 512, 512)) < 0)
			sleep_ms(1);
	}
}

TEST_F_TIMEOUT(lifetime, a_vmm_that_is_killed_leaves_nothing, 120)
{
	uint64_t end, before;
	struct nl_vgpu v;
	struct vm *vm = &self->vm;
	int i, status;
	uint32_t w, h;
	pid_t pid;

	for (i = 0; i < 15; i++) {
		vm_close(vm);
		before = nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_JOBS);
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			struct vm child;

			if (vm_open(&child, vm->uuid, VMM_RAM) ||
			    vm_start(&child))
				_exit(1);
			submit_for_ever(&child);
		}
		end = now_ms() + VMM_TIMEOUT;
		do {
			ASSERT_GT(end, now_ms());
			ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		} while (v.stats[MGPU_A_STATS_JOBS] < before + 5);
		EXPECT_TRUE(v.open);
		EXPECT_EQ(pid, v.tgid);
		sleep_ms(i * 3);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.pinned);
		EXPECT_EQ(0, v.mem_used);
		ASSERT_EQ(0, vm_open(vm, vm->uuid, VMM_RAM));
		vm->made = true;
		ASSERT_EQ(0, vm_start(vm));
		EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	}
}

TEST_F_TIMEOUT(lifetime, a_vmm_that_is_killed_with_a_held_frame_leaves_nothing,
	       60)
{
	struct vm *vm = &self->vm;
	struct trials t = { 0 };
	uint64_t start, before;
	struct nl_vgpu v;
	int status;
	pid_t pid;

	vm_close(vm);
	while (trials_go_on(&t)) {
		/* The first frame goes at once, the next one after a second. */
		ASSERT_EQ(0, nl_vgpu_set(&self->nl, vm->uuid, -1, 0));
		ASSERT_EQ(0, nl_vgpu_set(&self->nl, vm->uuid, -1, 1000));
		before = nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_FRAMES);
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			struct vm child;

			if (vm_open(&child, vm->uuid, VMM_RAM) ||
			    vm_start(&child))
				_exit(1);
			submit_for_ever(&child);
		}
		start = now_ms();
		do {
			ASSERT_GT(start + VMM_TIMEOUT, now_ms());
			ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		} while (v.stats[MGPU_A_STATS_FRAMES] == before);
		start = now_ms();
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		/* With the kernel's checkers, the end of a process alone may take that long. */
		trial(&t, now_ms() - start < 800 * (uint64_t)vmm_slow());
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.pinned);
	}
	EXPECT_TRUE(mostly_right(&t));
}

TEST_F(lifetime, a_vgpu_has_one_vmm)
{
	struct vm second;

	EXPECT_EQ(-EBUSY, vm_open(&second, self->vm.uuid, VMM_RAM));
	vm_close(&self->vm);
	ASSERT_EQ(0, vm_open(&second, self->vm.uuid, VMM_RAM));
	vm_close(&second);
}

TEST_F(lifetime, open_and_close_do_not_wear_it_out)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	size_t len;
	int i;

	for (i = 0; i < 100; i++) {
		vm_close(vm);
		ASSERT_EQ(0, vm_open(vm, vm->uuid, 2 << 20));
		vm->made = true;
		if (i % 10)
			continue;
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1,
					   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
					   64, 64));
		ASSERT_EQ(0, gpu_show(vm, &s));
		ASSERT_NE(NULL, display_map(vm, &len));
	}
}

/* ---- many at once ---- */

TEST_F_TIMEOUT(lifetime, sixty_four_vgpus_at_once, 240)
{
	static struct vm vm[64];
	static struct gpu_screen s[64];
	static int head[64];
	struct nl_vgpu v;
	int i, round;

	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, vm_new_started(&vm[i], "small", 2 << 20)) {
			TH_LOG("number %d", i);
		}
		ASSERT_EQ(0, gpu_screen_blob(&vm[i], &s[i], 1, 64, 64));
	}
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 64; i++) {
			head[i] = gpu_flush_send(&vm[i], 1,
						 gpu_rect(0, 0, 64, 64));
			ASSERT_LE(0, head[i]);
		}
		for (i = 0; i < 64; i++) {
			ASSERT_EQ(OK, gpu_result(&vm[i], VMM_CONTROL, head[i],
						 NULL, 0, VMM_TIMEOUT));
		}
	}
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm[i].uuid, &v));
		EXPECT_EQ(10, v.stats[MGPU_A_STATS_FRAMES]);
		vm_close(&vm[i]);
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm[i].uuid, &v));
		EXPECT_EQ(0, v.pinned);
	}
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(0, mdev_remove(vm[i].uuid));
	}
}

/* ---- devices that are taken away ---- */

TEST_F(lifetime, removing_an_open_vgpu_asks_the_vmm_and_waits)
{
	struct vm *vm = &self->vm;
	char path[256];
	uint32_t w, h;
	pid_t pid;

	ASSERT_EQ(0, irq_request(vm));
	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, vm->uuid);
	pid = sysfs_write_aside(path, "1");
	ASSERT_LT(0, pid);
	EXPECT_LT(0, irq_wait(vm->req_irq, VMM_TIMEOUT));
	/* The vGPU works until the VMM closes it. */
	EXPECT_FALSE(ends(pid, 300));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	vm_close(vm);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	EXPECT_FALSE(mdev_exists(vm->uuid));
	vm->made = false;
}

/*
 * Make the end of a task slow after it has closed its vGPU. A task that ends closes its
 * files from the last to the first: the vGPU, then a file that takes its time, then the
 * rest.
 */
static int release_slowly(struct vm *vm)
{
	const int last = 900;
	int fd = memfd_create("slow", MFD_CLOEXEC);

	if (fd < 0 || fallocate(fd, 0, 0, 256 << 20) ||
	    dup3(vm->device, last, O_CLOEXEC) < 0)
		return -errno;
	close(vm->device);
	vm->device = last;
	return 0;
}

/* Before Linux 6.3 a container must not be closed while its last group goes. */
static bool containers_close_first(void)
{
	struct utsname u;
	int major, minor;

	return !uname(&u) && sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 3));
}

TEST_F(lifetime, removing_a_vgpu_waits_for_all_that_a_killed_vmm_had_open)
{
	struct vm *vm = &self->vm;
	char path[256], uuid[VMM_UUID_LEN + 1];
	pid_t vmm, remover;
	struct pollfd vmms = { 0 };
	int fds[2], status;
	char c;

	memcpy(uuid, vm->uuid, sizeof(uuid));
	vm_close(vm);
	ASSERT_EQ(0, pipe(fds));
	vmm = fork();
	ASSERT_LE(0, vmm);
	if (!vmm) {
		struct vm child;

		if (vm_open(&child, uuid, VMM_RAM) || vm_start(&child) ||
		    release_slowly(&child) || write(fds[1], "x", 1) != 1)
			_exit(1);
		submit_for_ever(&child);
	}
	close(fds[1]);
	ASSERT_EQ(1, read(fds[0], &c, 1));
	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, uuid);
	remover = sysfs_write_aside(path, "1");
	ASSERT_LT(0, remover);
	EXPECT_FALSE(ends(remover, 300));
	kill(vmm, SIGKILL);
	EXPECT_TRUE(ends(remover, VMM_TIMEOUT));
	/* its end of the pipe was the first file that it had */
	vmms.fd = fds[0];
	if (containers_close_first()) {
		EXPECT_EQ(1, poll(&vmms, 1, 0));
		EXPECT_TRUE(vmms.revents & POLLHUP);
	}
	ASSERT_EQ(vmm, waitpid(vmm, &status, 0));
	EXPECT_FALSE(mdev_exists(uuid));
	vm->made = false;
	close(fds[0]);
}

TEST_F_TIMEOUT(lifetime, unbinding_the_parent_asks_the_vmm_and_waits, 60)
{
	struct vm *vm = &self->vm;
	char idle[VMM_UUID_LEN + 1];
	struct gpu_screen s;
	struct nl_vgpu v;
	uint32_t w, h;
	pid_t pid;

	mdev_uuid_new(idle);
	ASSERT_EQ(0, mdev_create("large", idle));
	ASSERT_EQ(0, irq_request(vm));
	ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 64, 64));
	pid = sysfs_write_aside(DRIVER "/unbind", VMM_PARENT);
	ASSERT_LT(0, pid);
	EXPECT_LT(0, irq_wait(vm->req_irq, VMM_TIMEOUT));
	EXPECT_FALSE(ends(pid, 300));
	EXPECT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64)));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	vm_close(vm);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	vm->made = false;
	EXPECT_EQ(0, mdev_count());
	EXPECT_GT(0, mdev_available("small"));
	EXPECT_EQ(0, nl_vgpu_dump(&self->nl, &v, 1));
	ASSERT_EQ(0, sysfs_write(DRIVER "/bind", VMM_PARENT));
	ASSERT_EQ(0, vm_new_started(vm, "small", VMM_RAM));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
}

/* ---- modules ---- */

TEST_F(lifetime, modules_in_use_stay)
{
	struct vm *vm = &self->vm;
	uint32_t w, h;

	EXPECT_EQ(-EWOULDBLOCK, module_remove("mgpu_soft"));
	EXPECT_EQ(-EWOULDBLOCK, module_remove("mgpu"));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	vm_close(vm);
	/* Closed, the core is in use by the back end still. */
	EXPECT_EQ(-EWOULDBLOCK, module_remove("mgpu"));
}

TEST_F_TIMEOUT(lifetime, the_back_end_can_be_loaded_again_and_again, 120)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	int i, ret;

	vm_delete(vm);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, module_remove("mgpu_soft"));
		ret = module_insert("mgpu_soft");
		if (ret == -ENOENT) {
			SKIP(return, "BUILD and KERNEL do not say where mgpu_soft.ko is");
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, vm_new_started(vm, "small", VMM_RAM));
		ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 64, 64));
		ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64)));
		/* With a closed vGPU left, unloading takes it along. */
		if (i % 2)
			vm_delete(vm);
		else
			vm_close(vm);
		vm->made = false;
	}
	ASSERT_EQ(0, mdev_count());
}

TEST_F(lifetime, both_modules_can_be_loaded_again)
{
	struct vm *vm = &self->vm;
	uint32_t w, h;
	int i, ret;

	vm_delete(vm);
	nl_close(&self->nl);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, module_remove("mgpu_soft"));
		ASSERT_EQ(0, module_remove("mgpu"));
		ret = module_insert("mgpu");
		if (ret == -ENOENT) {
			SKIP(return, "BUILD and KERNEL do not say where mgpu.ko is");
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, module_insert("mgpu_soft"));
		ASSERT_EQ(0, vm_new_started(vm, "small", VMM_RAM));
		ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
		vm_delete(vm);
	}
	ASSERT_EQ(0, nl_open(&self->nl));
}

/* ---- everything at once ---- */

TEST_F_TIMEOUT(lifetime, vgpus_that_come_and_go_do_not_disturb_another,
	       120)
{
	uint64_t end = now_ms() + (vmm_long() ? 60000 : 3000);
	struct vm *vm = &self->vm, other;
	unsigned int rounds = 0, n = 0;
	struct gpu_screen s;
	int status;
	pid_t pid;

	ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 64, 64));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* The fixture's descriptors are the parent's business. */
		while (goes_on(end, rounds)) {
			if (vm_new_started(&other, "small", 2 << 20))
				_exit(1);
			if (gpu_screen_blob(&other, &s, 1, 64, 64))
				_exit(2);
			gpu_flush_send(&other, 1, gpu_rect(0, 0, 64, 64));
			gpu_flush_send(&other, 1, gpu_rect(0, 0, 64, 64));
			vm_delete(&other);
			if (mdev_exists(other.uuid))
				_exit(3);
			rounds++;
		}
		_exit(rounds ? 0 : 4);
	}
	while (goes_on(end, n)) {
		ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64)));
		n++;
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_LT(0, n);
}

TEST_HARNESS_MAIN

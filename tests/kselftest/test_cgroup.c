// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VMM in a control group: a vGPU's worker is in the group, and memory that the
 * guest makes the module allocate is the group's.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define ROOT		"/sys/fs/cgroup"
#define GROUP		ROOT "/mgpu-test"
#define PICTURE		1024u		/* pixels, both ways: 4 MiB */
#define PICTURE_BYTES	(PICTURE * PICTURE * 4)

/* Return whether a file of text contains a line. */
static bool has_line(const char *path, const char *line)
{
	char buf[256] = "";
	bool found = false;
	FILE *f = fopen(path, "re");

	while (f && fgets(buf, sizeof(buf), f)) {
		buf[strcspn(buf, "\n")] = '\0';
		found |= !strcmp(buf, line);
	}
	if (f)
		fclose(f);
	return found;
}

/* Return the thread of the kernel with a name, or 0. */
static int thread_of(const char *name)
{
	char path[64], comm[32];
	struct dirent *e;
	int pid = 0;
	DIR *d = opendir("/proc");

	while (d && !pid && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/comm", e->d_name);
		if (sysfs_read(path, comm, sizeof(comm)) > 0 && !strcmp(comm, name))
			pid = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return pid;
}

static int nice_of(int pid)
{
	char path[64], stat[512];
	const char *p;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (sysfs_read(path, stat, sizeof(stat)) < 0)
		return -100;
	/* Field 19; the name ends with the second one. */
	p = strrchr(stat, ')');
	for (i = 2; p && i < 19; i++)
		p = strchr(p + 1, ' ');
	return p ? atoi(p) : -100;
}

FIXTURE(cgroup)
{
	struct vm vm;
	struct nl nl;
	struct nl_vgpu v;
	bool memory;
};

FIXTURE_SETUP(cgroup)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	self->memory = !sysfs_write(ROOT "/cgroup.subtree_control", "+memory");
	ASSERT_EQ(0, mkdir(GROUP, 0755)) {
		TH_LOG("%s: %s", GROUP, strerror(errno));
	}
	mdev_uuid_new(self->vm.uuid);
	ASSERT_EQ(0, mdev_create("large", self->vm.uuid));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->vm.uuid, &self->v));
}

FIXTURE_TEARDOWN(cgroup)
{
	vm_close(&self->vm);
	EXPECT_EQ(0, sysfs_write(ROOT "/cgroup.procs", "0"));
	EXPECT_EQ(0, mdev_remove(self->v.uuid));
	/* Only a group without threads can be removed. */
	EXPECT_EQ(0, rmdir(GROUP));
	nl_close(&self->nl);
}

static int join_and_open(struct vm *vm, const char *uuid)
{
	int ret = sysfs_write(GROUP "/cgroup.procs", "0");

	if (!ret)
		ret = vm_open(vm, uuid, VMM_RAM);
	return ret ? ret : vm_start(vm);
}

/* Send a command for which nobody rings, and have the worker find it. */
static int call_by_worker(struct vm *vm, struct nl *nl, const void *req, size_t len)
{
	static int64_t fps = 1000000;
	int head = gpu_send(vm, VMM_CONTROL, req, len,
			    sizeof(struct virtio_gpu_ctrl_hdr));
	struct virtio_gpu_ctrl_hdr hdr;

	if (head < 0)
		return head;
	nl_vgpu_set(nl, vm->uuid, -1, fps++);
	return gpu_result(vm, VMM_CONTROL, head, &hdr, sizeof(hdr), VMM_TIMEOUT);
}

TEST_F(cgroup, the_worker_is_in_the_vmms_groups)
{
	char name[32], path[64];
	int worker;

	snprintf(name, sizeof(name), "mgpu-%u", self->v.id);
	EXPECT_EQ(0, thread_of(name));
	ASSERT_EQ(5, nice(5));
	ASSERT_EQ(0, join_and_open(&self->vm, self->v.uuid));
	worker = thread_of(name);
	ASSERT_LT(0, worker);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", worker);
	EXPECT_TRUE(has_line(path, "0::/mgpu-test"));
	EXPECT_EQ(5, nice_of(worker));
	vm_close(&self->vm);
	EXPECT_EQ(0, thread_of(name));
}

static int create(struct vm *vm, struct nl *nl, uint32_t id, bool by_worker)
{
	struct virtio_gpu_resource_create_2d c = {
		.resource_id = id,
		.format = VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
		.width = PICTURE,
		.height = PICTURE,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	return by_worker ? call_by_worker(vm, nl, &c, sizeof(c)) :
			   gpu_call(vm, &c, sizeof(c), NULL, 0);
}

TEST_F(cgroup, pictures_are_the_vmms_memory)
{
	struct vm *vm = &self->vm;
	long long before, after;
	uint32_t id;

	if (!self->memory)
		SKIP(return, "no memory controller in this kernel");
	ASSERT_EQ(0, join_and_open(vm, self->v.uuid));
	before = sysfs_number(GROUP "/memory.current");
	for (id = 1; id <= 8; id++)
		ASSERT_EQ(OK, create(vm, &self->nl, id, id % 2));
	after = sysfs_number(GROUP "/memory.current");
	TH_LOG("%lld KiB more after 32 MiB of pictures", (after - before) / 1024);
	/* The counter is exact up to a few pages a processor. */
	EXPECT_LE(7ll * PICTURE_BYTES, after - before);
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_GT(after - 6ll * PICTURE_BYTES, sysfs_number(GROUP "/memory.current"));
}

/* The type allows 512 MiB, the group less. */
TEST_F(cgroup, a_guest_is_refused_more_than_its_vmm_may_have)
{
	struct vm *vm = &self->vm;
	uint32_t id, nr, w, h;

	if (!self->memory)
		SKIP(return, "no memory controller in this kernel");
	ASSERT_EQ(0, sysfs_write(GROUP "/memory.max", "64M"));
	ASSERT_EQ(0, join_and_open(vm, self->v.uuid));
	for (id = 1; id <= 32 && create(vm, &self->nl, id, id % 2) == OK; id++)
		;
	nr = id - 1;
	TH_LOG("%u pictures of 4 MiB in 64 MiB", nr);
	EXPECT_LT(0, nr);
	EXPECT_GT(16, nr);
	EXPECT_EQ(NOMEM, create(vm, &self->nl, 40, false));
	EXPECT_EQ(NOMEM, create(vm, &self->nl, 40, true));

	/* The guest goes on, and may have as much as it gives back. */
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	EXPECT_EQ(OK, gpu_unref(vm, 1));
	EXPECT_EQ(OK, create(vm, &self->nl, 40, true));
}

TEST_HARNESS_MAIN

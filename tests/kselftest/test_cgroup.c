// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VMM in a control group: a vGPU's worker is in the group; memory that the guest makes
 * the module allocate, and processor time that the module spends for it, are the group's.
 *
 * needs: quiet
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "load.h"
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
	EXPECT_EQ(0, cgroup_remove(GROUP));
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

/* ---- processor time ---- */

#define QUOTA		0.2		/* of a processor */
#define MAX		"20000 100000"
#define PERIOD_NS	1e8
#define STILL_NS	1e8
#define WINDOW_MS	3000
#define BLOB		(2u << 20)	/* of each command: 512 pages to pin */
#define COMMANDS	30

/* Return the processor time of the group, nanoseconds. */
static uint64_t group_ns(void)
{
	unsigned long long us = 0;
	char line[128];
	FILE *f = fopen(GROUP "/cpu.stat", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "usage_usec %llu", &us) == 1)
			break;
	if (f)
		fclose(f);
	return us * 1000;
}

#define MAX_THREADS	1024

/* A kernel thread outside of the group, and its processor time. */
struct thread {
	unsigned int pid;
	unsigned long long ns;
};

/* List the kernel's threads outside of the group in @t, in the order of their pids. */
static unsigned int kernel_threads(struct thread t[MAX_THREADS])
{
	unsigned int nr = 0;
	char path[64], text[512];
	struct dirent *e;
	DIR *d = opendir("/proc");
	int parent;

	while (d && nr < MAX_THREADS && (e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/stat", e->d_name);
		if (sysfs_read(path, text, sizeof(text)) < 0 || !strrchr(text, ')') ||
		    sscanf(strrchr(text, ')'), ") %*c %d", &parent) != 1 || parent != 2)
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/cgroup", e->d_name);
		if (has_line(path, "0::/mgpu-test"))
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/schedstat", e->d_name);
		if (sysfs_read(path, text, sizeof(text)) < 0 ||
		    sscanf(text, "%llu", &t[nr].ns) != 1)
			continue;
		t[nr++].pid = (unsigned int)atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return nr;
}

/*
 * Return the processor time that the kernel's threads outside of the group took between
 * two lists, nanoseconds.  A thread that ended or entered the group between them counts
 * for nothing: its earlier time is no part of the window.
 */
static uint64_t kernel_ns(const struct thread *before, unsigned int nr_before,
			  const struct thread *after, unsigned int nr_after)
{
	uint64_t sum = 0;
	unsigned int i, j = 0;

	for (i = 0; i < nr_after; i++) {
		while (j < nr_before && before[j].pid < after[i].pid)
			j++;
		sum += after[i].ns;
		if (j < nr_before && before[j].pid == after[i].pid)
			sum -= before[j].ns;
	}
	return sum;
}

/* Processor time in a window, as parts of a processor. */
struct times {
	double group;
	double rest;	/* of the kernel's threads outside of the group */
	double slack;	/* what a group may have above its quota in the window */
};

/* Measure a window; @nl, if any, makes the worker of @uuid run the ring all the time. */
static struct times measure(struct nl *nl, const char *uuid)
{
	static struct thread before[MAX_THREADS], after[MAX_THREADS];
	unsigned int nr_before = kernel_threads(before), nr_after;
	uint64_t group = group_ns(), start = now_ns(), ns;
	int64_t fps = 1000000;
	struct times t;

	do {
		if (nl)
			nl_vgpu_set(nl, uuid, -1, fps++);
		sleep_ms(2);
		ns = now_ns() - start;
	} while (ns < WINDOW_MS * 1000000ull);
	t.group = (double)(group_ns() - group) / (double)ns;
	nr_after = kernel_threads(after);
	t.rest = (double)kernel_ns(before, nr_before, after, nr_after) / (double)ns;
	/* A period's worth at both ends, and a processor that stood still. */
	t.slack = (2 * QUOTA * PERIOD_NS + STILL_NS) / (double)ns;
	return t;
}

enum flood { NO_FLOOD, BY_WORKER, BY_DOORBELL, BY_RESET };

static const char *const flood_name[] = {
	"nothing", "left to the worker", "doorbells", "resets",
};

/* Publish commands in turn that make a blob and release it, as many as are answered. */
static void pin_for_ever(struct vm *vm, enum flood how)
{
	struct virtio_gpu_resource_unref u = { .resource_id = 1 };
	struct {
		struct virtio_gpu_resource_create_blob c;
		struct virtio_gpu_mem_entry e;
	} *c = vm_alloc(vm, sizeof(*c), 8);
	void *req = vm_alloc(vm, sizeof(u), 8), *resp = vm_alloc(vm, 64, 8);
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	struct vmm_seg segs[2] = { { 0, 0, false }, { vm_addr(vm, resp), 64, true } };
	int head[COMMANDS];
	unsigned int i;

	memset(c, 0, sizeof(*c));
	gpu_hdr(&c->c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	c->c.resource_id = 1;
	c->c.blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST;
	c->c.nr_entries = 1;
	c->c.size = BLOB;
	c->e = (struct virtio_gpu_mem_entry){ VMM_RAM_BASE + VMM_RAM / 2, BLOB, 0 };
	gpu_hdr(&u.hdr, VIRTIO_GPU_CMD_RESOURCE_UNREF);
	memcpy(req, &u, sizeof(u));
	for (i = 0; i < COMMANDS; i++) {
		segs[0].addr = vm_addr(vm, i % 2 ? req : (void *)c);
		segs[0].len = i % 2 ? sizeof(u) : sizeof(*c);
		head[i] = vq_add(vm, VMM_CONTROL, segs, 2, false);
	}
	for (;;) {
		for (i = 0; i < COMMANDS; i++)
			vq_publish(vm, VMM_CONTROL, (uint16_t)head[i]);
		if (how == BY_DOORBELL)
			vq_kick(vm, VMM_CONTROL);
		while (vq->used->idx != vq->avail->idx)
			usleep(500);
	}
}

static pid_t flood(const char *uuid, enum flood how)
{
	struct vm vm;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (join_and_open(&vm, uuid))
		_exit(1);
	while (how == BY_RESET) {
		gpu_create_blob(&vm, 1, vm.ram + VMM_RAM / 2, BLOB);
		if (ioctl(vm.device, VFIO_DEVICE_RESET))
			_exit(1);
		vm_forget(&vm);
		if (vm_discover(&vm) || vm_start(&vm))
			_exit(1);
	}
	pin_for_ever(&vm, how);
	_exit(0);
}

static void flood_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The child's vGPU works: it pins. */
static bool is_pinning(struct nl *nl, const char *uuid, enum flood how)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	int64_t fps = 900000;
	struct nl_vgpu v;

	while (now_ms() < end) {
		if (how == BY_WORKER)
			nl_vgpu_set(nl, uuid, -1, fps++);
		if (!nl_vgpu_get(nl, uuid, &v) && v.pinned >= BLOB / 4096)
			return true;
		usleep(500);
	}
	return false;
}

TEST_F_TIMEOUT(cgroup, no_work_gives_a_vmm_more_processor_time_than_its_group, 180)
{
	struct times none, t;
	enum flood how;
	struct nl *nl;
	pid_t pid;

	if (sysfs_write(ROOT "/cgroup.subtree_control", "+cpu"))
		SKIP(return, "no cpu controller in this kernel");
	ASSERT_EQ(0, sysfs_write(GROUP "/cpu.max", MAX));
	for (how = BY_WORKER; how <= BY_RESET; how++) {
		/* Settings wake kernel threads, too, also those of an idle vGPU. */
		nl = how == BY_WORKER ? &self->nl : NULL;
		none = measure(nl, self->v.uuid);
		pid = flood(self->v.uuid, how);
		ASSERT_LT(0, pid);
		EXPECT_TRUE(is_pinning(&self->nl, self->v.uuid, how));
		t = measure(nl, self->v.uuid);
		flood_end(pid);
		TH_LOG("%s: group %.3f, rest %.3f (without %.3f), of a processor",
		       flood_name[how], t.group, t.rest, none.rest);
		EXPECT_GT(QUOTA + t.slack, t.group);
		/* It took what it may, so that it would take more outside. */
		EXPECT_LT(QUOTA / 4, t.group);
		/* A worker outside of the group takes a processor. */
		EXPECT_GT(2 * QUOTA, t.rest - none.rest);
	}
}

#define JOB_TIMEOUT_MS	500

/* Return how long a job of a new vGPU hangs, in milliseconds, or UINT64_MAX. */
static uint64_t hang_ms(struct nl *nl)
{
	uint64_t end, ms = UINT64_MAX;
	struct nl_vgpu v;
	struct load l;

	if (load_open(&l, 64) || nl_vgpu_get(nl, l.vm.uuid, &v) ||
	    load_hang(&l, v.id))
		return UINT64_MAX;
	ms = now_ms();
	end = ms + VMM_TIMEOUT;
	while (now_ms() < end && !nl_stat(nl, l.vm.uuid, MGPU_A_STATS_TIMEOUTS))
		sleep_ms(1);
	ms = now_ms() < end ? now_ms() - ms : UINT64_MAX;
	vm_delete(&l.vm);
	return ms;
}

/* The watchdog does not queue behind what the throttled VM has the module do. */
TEST_F_TIMEOUT(cgroup, the_watchdog_is_on_time_beside_a_throttled_vm, 180)
{
	uint64_t alone = UINT64_MAX, beside = UINT64_MAX, ms;
	struct nl_dev d;
	enum flood how;
	pid_t pid;

	if (sysfs_write(ROOT "/cgroup.subtree_control", "+cpu"))
		SKIP(return, "no cpu controller in this kernel");
	ASSERT_EQ(0, sysfs_write(GROUP "/cpu.max", MAX));
	ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &d));
	ASSERT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, d.builtin, JOB_TIMEOUT_MS));
	for (how = NO_FLOOD; how <= BY_RESET; how++) {
		pid = 0;
		if (how) {
			pid = flood(self->v.uuid, how);
			ASSERT_LT(0, pid);
			EXPECT_TRUE(is_pinning(&self->nl, self->v.uuid, how));
		}
		ms = hang_ms(&self->nl);
		TH_LOG("%s: ended after %lu ms", flood_name[how], ms);
		if (!how)
			alone = ms;
		else if (ms < beside)
			beside = ms;
		if (pid)
			flood_end(pid);
	}
	ASSERT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, d.builtin,
				(int)d.job_timeout));
	EXPECT_NE(UINT64_MAX, alone);
	/* The least of three: a busy machine only adds to a time. */
	EXPECT_GT(2 * alone, beside);
}

TEST_HARNESS_MAIN

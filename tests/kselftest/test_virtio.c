// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu_virtio: orders of removal while the GPU has work, memory that is unmapped, a GPU
 * that hangs, and how it is shared.  test_virgl.c tests what guests draw.
 *
 * needs: gpu
 * needs: quiet
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "footprint.h"
#include "mgpud.h"
#include "neighbour.h"
#include "rounds.h"
#include "virgl.h"

#define RAM	(16u << 20)
#define SIDE	128u
#define PIXELS	(SIDE * SIDE)
#define ALIAS	0x200000000ull	/* a second name for guest memory */
#define PARAMS	"/sys/module/mgpu_virtio/parameters/"
#define HANG	PARAMS "hang"
#define SLICE_BANDS "/sys/module/mgpu/parameters/slice_bands"
#define ROOT	"/sys/fs/cgroup"
#define GROUP	ROOT "/mgpu-test"
#define SLOTS	2	/* jobs that the GPU has at once */
#define RESET_MS "10000"	/* a busy machine makes the GPU slow */

/*
 * The GPU is silent from now on, and reset after so long; only then may the time be
 * short, since whatever holds up the machine makes it silent, too.
 */
static int gpu_hangs(const char *how, const char *reset_ms)
{
	int ret = sysfs_write(PARAMS "reset_ms", reset_ms);

	return ret ? ret : sysfs_write(HANG, how);
}

static int gpu_goes_on(void)
{
	int ret = sysfs_write(PARAMS "reset_ms", RESET_MS);

	return ret ? ret : sysfs_write(HANG, "0");
}

FIXTURE(gpu)
{
	struct gl g;
};

FIXTURE_SETUP(gpu)
{
	ASSERT_EQ(0, gl_new(&self->g, "small-render", RAM));
	ASSERT_EQ(0, sysfs_write(PARAMS "reset_ms", RESET_MS));
	ASSERT_EQ(0, nl_dev_set_hang_limit(&self->g.nl, vmm_parent(), 0));
}

FIXTURE_TEARDOWN(gpu)
{
	gpu_goes_on();
	vm_close(&self->g.vm);
	EXPECT_EQ(0, self->g.vm.made ? gl_left(&self->g) : 0);
	gl_delete(&self->g);
}

/*
 * A context with two pictures and a job between them in the guest's memory: enough
 * for it to take a while.
 */
struct work {
	uint32_t *pixels;
	uint32_t *stream;
	uint32_t len;
};

static int work_new(struct gl *g, struct work *w, unsigned int blits)
{
	struct gl_stream s;

	gl_begin(&s);
	while (blits--)
		gl_blit(&s, 1, SIDE, SIDE, 2, SIDE / 2, SIDE / 2);
	if (!w->stream)
		w->stream = (uint32_t *)g->stream;
	w->len = s.n * 4;
	memcpy(w->stream, s.w, w->len);
	if (gl_ctx(&g->vm, 1) != OK)
		return -EPROTO;
	w->pixels = gl_picture(&g->vm, 1, 1, SIDE, SIDE, 0);
	return w->pixels && gl_picture(&g->vm, 1, 2, SIDE, SIDE, 0) ?
		0 : -ENOMEM;
}

static int work_send(struct gl *g, const struct work *w)
{
	return gl_send_bytes(&g->vm, 1, ++g->vm.next_fence, w->stream, w->len,
			     w->len);
}

/* Draws a colour and looks whether it is there. */
static bool draws(struct gl *g, const struct work *w, uint32_t rgb)
{
	unsigned int i;

	if (gl_fill(&g->vm, 1, 1, 0xff000000 | rgb) != OK ||
	    gl_fetch(&g->vm, 1, 1, SIDE, SIDE) != OK)
		return false;
	for (i = 0; i < PIXELS; i++)
		if ((w->pixels[i] & 0xffffff) != rgb)
			return false;
	return true;
}

/* After a reset: from the beginning, in the same memory. */
static int begin_anew(struct gl *g, struct work *w)
{
	size_t used = g->vm.ram_used;
	int ret;

	/* The queues and the stream stay where they are. */
	g->vm.ram_used = (size_t)(g->stream - g->vm.ram) + GL_STREAM_MAX + 4096;
	ret = vm_discover(&g->vm);
	if (!ret)
		ret = gl_restart(g);
	if (!ret)
		ret = work_new(g, w, 4);
	if (g->vm.ram_used < used)
		g->vm.ram_used = used;
	return ret;
}

static uint64_t mem_used(struct gl *g)
{
	struct nl_vgpu v;

	return nl_vgpu_get(&g->nl, g->vm.uuid, &v) ? ~0ull : v.mem_used;
}

static uint64_t pinned(struct gl *g)
{
	struct nl_vgpu v;

	return nl_vgpu_get(&g->nl, g->vm.uuid, &v) ? ~0ull : v.pinned;
}

/* ---- memory that goes ---- */

TEST_F(gpu, memory_that_is_unmapped_is_the_gpus_no_more)
{
	struct virtio_gpu_mem_entry e = { .addr = ALIAS, .length = PIXELS * 4 };
	struct vm *vm = &self->g.vm;
	/* Of no context, which would be of no use after a transfer that fails. */
	struct gl_move m = {
		.res = 3, .box = { .w = SIDE, .h = SIDE, .d = 1 },
	};
	struct work w = { 0 };
	unsigned int round, i, n;
	uint64_t before;
	uint32_t *p;
	int head[16];

	ASSERT_EQ(0, work_new(&self->g, &w, 8));
	p = vm_alloc(vm, PIXELS * 4, 4096);
	ASSERT_EQ(OK, gl_texture(vm, 3, SIDE, SIDE, 0));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 3));
	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, vm_map(vm, p, PIXELS * 4, ALIAS));
		/* For a moment nothing of it is pinned: see guest_mem.c. */
		ASSERT_EQ(OK, gpu_attach_entries(vm, 3, &e, 1));
		ASSERT_EQ(OK, gl_fill(vm, 1, 3, 0xff123456));
		before = pinned(&self->g);
		/* Nothing, or a queue full of work with it, is under way. */
		for (n = 0; round % 2 && n < 12; n++) {
			head[n] = n % 3 ? gl_move_send(vm, &m, n + 1) :
					  work_send(&self->g, &w);
			ASSERT_LE(0, head[n]);
		}
		ASSERT_EQ(0, vm_unmap(vm, ALIAS, PIXELS * 4));
		memset(p, 0x5a, PIXELS * 4);
		/* A busy queue pins answers of its own meanwhile. */
		if (!n)
			EXPECT_EQ(before - PIXELS * 4 / 4096,
				  pinned(&self->g));
		for (i = 0; i < n; i++)
			EXPECT_LE(OK, gl_result(vm, head[i], NULL));
		EXPECT_LE(OK, gl_move(vm, &m));
		for (i = 0; i < PIXELS && p[i] == 0x5a5a5a5a; i++)
			;
		EXPECT_EQ(PIXELS, i);
		/* To the guest it is attached until it says otherwise. */
		EXPECT_EQ(UNSPEC, gpu_attach(vm, 3, p, PIXELS * 4));
		EXPECT_EQ(OK, gpu_detach(vm, 3));
		EXPECT_EQ(OK, gpu_attach(vm, 3, p, PIXELS * 4));
		EXPECT_EQ(OK, gl_move(vm, &m));
		EXPECT_EQ(0x123456, p[PIXELS / 2] & 0xffffff);
		EXPECT_EQ(OK, gpu_detach(vm, 3));
	}
	EXPECT_TRUE(draws(&self->g, &w, 0x00aa55));
}

/* The VMM takes memory while the guest attaches and detaches it. */
TEST_F_TIMEOUT(gpu, memory_that_comes_and_goes_under_load, 90)
{
	struct virtio_gpu_mem_entry e = { .addr = ALIAS, .length = PIXELS * 4 };
	uint64_t end = now_ms() + (vmm_long() ? 30000 : 3000);
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int n = 0;
	uint32_t *p;
	pid_t pid;

	ASSERT_EQ(0, work_new(&self->g, &w, 2));
	p = vm_alloc(vm, PIXELS * 4, 4096);
	ASSERT_EQ(OK, gl_texture(vm, 3, SIDE, SIDE, 0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* VFIO accounts pins to the process that mapped: this one only unmaps. */
		while (now_ms() < end + 1000) {
			vm_unmap(vm, ALIAS, PIXELS * 4);
			sleep_ms(3);
		}
		_exit(0);
	}
	while (now_ms() < end) {
		int ret = vm_map(vm, p, PIXELS * 4, ALIAS);

		ASSERT_TRUE(!ret || ret == -EEXIST);
		ASSERT_LE(0, work_send(&self->g, &w));
		ret = gpu_attach_entries(vm, 3, &e, 1);
		ASSERT_TRUE(ret == OK || ret == PARAM || ret == UNSPEC) {
			TH_LOG("attach: %#x", ret);
		}
		ASSERT_EQ(OK, ret == OK ? gpu_detach(vm, 3) : OK);
		n++;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	TH_LOG("%u times", n);
	EXPECT_TRUE(draws(&self->g, &w, 0x00aa55));
}

/*
 * The VMM takes memory while the guest detaches it and attaches other memory: that stays.
 * The GPU may have answered the guest's command already when the module is to have the GPU
 * release the memory.
 */
TEST_F_TIMEOUT(gpu, new_memory_is_not_taken_for_the_old, 120)
{
	struct virtio_gpu_mem_entry e = { .addr = ALIAS, .length = PIXELS * 4 };
	struct virtio_gpu_resource_detach_backing detach = { .resource_id = 3 };
	struct gl_move m = { .res = 3, .box = { .w = SIDE, .h = SIDE, .d = 1 } };
	unsigned int rounds = vmm_long() ? 5000 : 200, round, i, lost = 0;
	struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e;
	} attach = { .c = { .resource_id = 3, .nr_entries = 1 } };
	/* Rounds that the VMM's other process is to begin, and has ended. */
	struct {
		unsigned int begun;
		unsigned int ended;
	} *shared;
	struct vm *vm = &self->g.vm;
	uint32_t *p, *q;
	int head[2];
	pid_t pid;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	p = vm_alloc(vm, PIXELS * 4, 4096);
	q = vm_alloc(vm, PIXELS * 4, 4096);
	gpu_hdr(&detach.hdr, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING);
	gpu_hdr(&attach.c.hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	attach.e.addr = vm_addr(vm, q);
	attach.e.length = PIXELS * 4;
	ASSERT_EQ(OK, gl_texture(vm, 3, SIDE, SIDE, 0));
	ASSERT_EQ(OK, gpu_attach(vm, 3, q, PIXELS * 4));
	memset(q, 0x33, PIXELS * 4);
	m.up = true;
	ASSERT_EQ(OK, gl_move(vm, &m));
	m.up = false;
	ASSERT_EQ(OK, gpu_detach(vm, 3));

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		for (round = 1; round <= rounds; round++) {
			while (__atomic_load_n(&shared->begun, __ATOMIC_ACQUIRE) < round)
				sched_yield();
			/* From before the GPU's answer until after it. */
			usleep(round * 37 % 1500);
			vm_unmap(vm, ALIAS, PIXELS * 4);
			__atomic_store_n(&shared->ended, round, __ATOMIC_RELEASE);
		}
		_exit(0);
	}
	for (round = 1; round <= rounds; round++) {
		ASSERT_EQ(0, vm_map(vm, p, PIXELS * 4, ALIAS));
		ASSERT_EQ(OK, gpu_attach_entries(vm, 3, &e, 1));
		__atomic_store_n(&shared->begun, round, __ATOMIC_RELEASE);
		head[0] = gpu_send(vm, VMM_CONTROL, &detach, sizeof(detach),
				   sizeof(detach.hdr));
		ASSERT_LE(0, head[0]);
		head[1] = gpu_send(vm, VMM_CONTROL, &attach, sizeof(attach),
				   sizeof(attach.c.hdr));
		ASSERT_LE(0, head[1]);
		EXPECT_EQ(OK, gl_result(vm, head[0], NULL));
		ASSERT_EQ(OK, gl_result(vm, head[1], NULL));
		while (__atomic_load_n(&shared->ended, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		memset(q, 0x5a, PIXELS * 4);
		EXPECT_EQ(OK, gl_move(vm, &m));
		for (i = 0; i < PIXELS && q[i] == 0x33333333; i++)
			;
		lost += i < PIXELS;
		EXPECT_EQ(OK, gpu_detach(vm, 3));
	}
	EXPECT_EQ(0, lost) {
		TH_LOG("%u of %u times the new memory was detached", lost, rounds);
	}
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	munmap(shared, 4096);
}

/* ---- in the middle of it ---- */

TEST_F_TIMEOUT(gpu, resets_in_the_middle, 120)
{
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int round, i;

	ASSERT_EQ(0, work_new(&self->g, &w, 4));
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 1 + round % 20; i++)
			ASSERT_LE(0, work_send(&self->g, &w));
		ASSERT_EQ(0, round % 2 ? vio_reset(vm) :
					 ioctl(vm->device, VFIO_DEVICE_RESET));
		EXPECT_EQ(0, mem_used(&self->g));
		ASSERT_EQ(0, begin_anew(&self->g, &w));
		EXPECT_TRUE(draws(&self->g, &w, round * 0x030507));
	}
}

/* Return the engine time of the first command after a reset with @nr resources. */
static uint64_t first_after_reset(struct gl *g, uint32_t nr)
{
	uint64_t before;
	uint32_t i;

	for (i = 1; i <= nr; i++) {
		if (gl_texture(&g->vm, i, 16, 16, 0) != OK)
			return 0;
	}
	if (gl_restart(g))
		return 0;
	before = nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_ENGINE_NS);
	if (gl_ctx(&g->vm, 1) != OK)
		return 0;
	return nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_ENGINE_NS) - before;
}

/* The GPU releases a guest's resources at its reset, at the guest's expense. */
TEST_F_TIMEOUT(gpu, a_reset_is_paid_for, 60)
{
	uint64_t few = UINT64_MAX, many, ns;
	unsigned int i;

	/* The least of three: a busy machine only adds to it. */
	for (i = 0; i < 3; i++) {
		ns = first_after_reset(&self->g, 0);
		ASSERT_NE(0, ns);
		few = ns < few ? ns : few;
	}
	many = first_after_reset(&self->g, 500);
	TH_LOG("%lu us after a reset, %lu us after one with 500 resources",
	       few / 1000, many / 1000);
	EXPECT_LT(4 * few, many);
}

TEST_F_TIMEOUT(gpu, vmms_that_go_in_the_middle, 120)
{
	char uuid[VMM_UUID_LEN + 1];
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int round, i;

	memcpy(uuid, vm->uuid, sizeof(uuid));
	for (round = 0; round < 10; round++) {
		memset(&w, 0, sizeof(w));
		ASSERT_EQ(0, work_new(&self->g, &w, 8));
		for (i = 0; i < 16; i++)
			ASSERT_LE(0, work_send(&self->g, &w));
		vm_close(vm);
		EXPECT_EQ(0, gl_left(&self->g));
		ASSERT_EQ(0, vm_open(vm, uuid, RAM));
		vm->made = true;
		ASSERT_EQ(0, gl_restart(&self->g));
		self->g.stream = vm_alloc(vm, GL_STREAM_MAX + 4096, 4096);
	}
	memset(&w, 0, sizeof(w));
	ASSERT_EQ(0, work_new(&self->g, &w, 1));
	EXPECT_TRUE(draws(&self->g, &w, 0x808080));
}

TEST_F_TIMEOUT(gpu, a_vmm_that_is_killed, 60)
{
	struct work w = { 0 };
	struct nl_vgpu v;
	uint64_t end;
	char uuid[VMM_UUID_LEN + 1];
	int fds[2], status;
	char c;
	pid_t pid;

	memcpy(uuid, self->g.vm.uuid, sizeof(uuid));
	vm_close(&self->g.vm);
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct gl g = { .vm.made = false };

		if (vm_open(&g.vm, uuid, RAM) || gl_restart(&g))
			_exit(1);
		g.stream = vm_alloc(&g.vm, GL_STREAM_MAX + 4096, 4096);
		if (work_new(&g, &w, 8))
			_exit(2);
		for (;;) {
			if (work_send(&g, &w) < 0 && write(fds[1], "x", 1) == 1)
				sleep_ms(1);
		}
	}
	ASSERT_EQ(1, read(fds[0], &c, 1));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	end = now_ms() + VMM_TIMEOUT;
	do {
		sleep_ms(10);
		ASSERT_EQ(0, nl_vgpu_get(&self->g.nl, uuid, &v));
	} while (v.open && now_ms() < end);
	EXPECT_FALSE(v.open);
	EXPECT_EQ(0, v.mem_used);
	EXPECT_EQ(0, v.pinned);
	close(fds[0]);
	close(fds[1]);
}

TEST_F(gpu, removal_asks_the_vmm_and_waits)
{
	char path[256], uuid[VMM_UUID_LEN + 1];
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int i;
	pid_t pid;

	ASSERT_EQ(0, work_new(&self->g, &w, 4));
	ASSERT_EQ(0, irq_request(vm));
	memcpy(uuid, vm->uuid, sizeof(uuid));
	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, uuid);
	pid = sysfs_write_aside(path, "1");
	ASSERT_LT(0, pid);
	EXPECT_LT(0, irq_wait(vm->req_irq, VMM_TIMEOUT));
	EXPECT_FALSE(ends(pid, 300));
	EXPECT_TRUE(draws(&self->g, &w, 0x00ff80));
	for (i = 0; i < 16; i++)
		ASSERT_LE(0, work_send(&self->g, &w));
	vm_close(vm);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	EXPECT_FALSE(mdev_exists(uuid));
	vm->made = false;
}

TEST_F_TIMEOUT(gpu, unbinding_the_gpu_asks_the_vmm_and_waits, 60)
{
	static const char *const drivers[] = {
		"/sys/bus/virtio/drivers/mgpu_virtio",
		"/sys/bus/pci/drivers/virtio-pci",
	};
	struct vm *vm = &self->g.vm;
	char path[256], name[64];
	struct work w = { 0 };
	struct nl_vgpu v;
	unsigned int i, k;
	pid_t pid;

	for (i = 0; i < ARRAY_LEN(drivers); i++) {
		if (i)
			snprintf(name, sizeof(name), "%s", vmm_parent());
		else
			gl_virtio_name(name, sizeof(name));
		memset(&w, 0, sizeof(w));
		ASSERT_EQ(0, work_new(&self->g, &w, 4));
		ASSERT_EQ(0, irq_request(vm));
		snprintf(path, sizeof(path), "%s/unbind", drivers[i]);
		pid = sysfs_write_aside(path, name);
		ASSERT_LT(0, pid);
		EXPECT_LT(0, irq_wait(vm->req_irq, VMM_TIMEOUT));
		EXPECT_FALSE(ends(pid, 300));
		EXPECT_TRUE(draws(&self->g, &w, 0x123456));
		for (k = 0; k < 16; k++)
			ASSERT_LE(0, work_send(&self->g, &w));
		vm_close(vm);
		EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
		vm->made = false;
		EXPECT_EQ(0, nl_vgpu_dump(&self->g.nl, &v, 1));
		EXPECT_GT(0, mdev_available("small-render"));
		nl_close(&self->g.nl);
		snprintf(path, sizeof(path), "%s/bind", drivers[i]);
		ASSERT_EQ(0, sysfs_write(path, name));
		ASSERT_EQ(0, gl_new(&self->g, "small-render", RAM));
	}
	memset(&w, 0, sizeof(w));
	ASSERT_EQ(0, work_new(&self->g, &w, 4));
	EXPECT_TRUE(draws(&self->g, &w, 0x654321));
}

/* ---- a GPU that hangs ---- */

/* Lines of the kernel's log since kmsg was opened that have a text. */
static unsigned int said(int kmsg, const char *text)
{
	unsigned int n = 0;
	char line[2048];
	ssize_t len;

	for (;;) {
		len = read(kmsg, line, sizeof(line) - 1);
		if (len < 0 && errno == EPIPE)
			continue;
		if (len <= 0)
			return n;
		line[len] = 0;
		n += strstr(line, text) != NULL;
	}
}

static bool needs_reset(struct vm *vm)
{
	return vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET;
}

TEST_F_TIMEOUT(gpu, a_gpu_that_hangs_is_reset, 120)
{
	struct work w[2] = { 0 };
	struct vm *vm[2];
	struct gl other;
	struct gpu_screen s;
	struct vm flat;
	unsigned int round, i, k, done;
	int head[2][6], kmsg, flat_head;
	uint32_t ret;

	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	vm[0] = &self->g.vm;
	vm[1] = &other.vm;
	ASSERT_EQ(0, vm_new(&flat, "small", VMM_RAM));
	ASSERT_EQ(0, vm_start_with(&flat, VMM_FEATURES));
	ASSERT_EQ(0, gpu_screen_2d(&flat, &s, 1,
				   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 64, 64));
	ASSERT_EQ(0, work_new(&self->g, &w[0], 4));
	ASSERT_EQ(0, work_new(&other, &w[1], 4));
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, kmsg);
	for (round = 0; round < 3; round++) {
		lseek(kmsg, 0, SEEK_END);
		EXPECT_TRUE(draws(&self->g, &w[0], 0x223344));
		EXPECT_TRUE(draws(&other, &w[1], 0x556677));
		EXPECT_FALSE(needs_reset(vm[0]));
		ASSERT_EQ(0, gpu_hangs("1", "1000"));
		/* In round 1, the second machine has nothing in flight. */
		for (i = 0; i < (round == 1 ? 1 : 2); i++) {
			for (k = 0; k < 6; k++) {
				head[i][k] = work_send(i ? &other : &self->g,
						       &w[i]);
				ASSERT_LE(0, head[i][k]);
			}
		}
		/* A command that does not need the GPU waits for a slot at most. */
		EXPECT_EQ(0, gpu_show(&flat, &s));
		flat_head = gpu_flush_send(&flat, 1, gpu_rect(0, 0, 64, 64));
		EXPECT_EQ(OK, gl_result(&flat, flat_head, NULL));

		/* A notice of before may have it look once more. */
		done = 0;
		for (i = 0; i < (round == 1 ? 1 : 2); i++) {
			for (k = 0; k < 6; k++) {
				ret = gl_result(vm[i], head[i][k], NULL);
				done += ret == OK;
				if (ret != OK)
					EXPECT_EQ(UNSPEC, ret);
			}
		}
		EXPECT_GE(SLOTS, done);
		EXPECT_EQ(0, sysfs_number(HANG));
		EXPECT_EQ(0, gpu_goes_on());
		EXPECT_EQ(1, said(kmsg, "resetting the GPU"));
		for (i = 0; i < 2; i++) {
			EXPECT_EQ(UNSPEC, gl_fetch(vm[i], 1, 1, SIDE, SIDE));
			EXPECT_EQ(UNSPEC, gl_ctx(vm[i], 9));
			EXPECT_TRUE(needs_reset(vm[i]));
			EXPECT_LT(0, irq_wait(vm[i]->irq[0], VMM_TIMEOUT));
		}
		EXPECT_FALSE(needs_reset(&flat));
		EXPECT_EQ(0, gpu_show(&flat, &s));
		for (i = 0; i < 2; i++) {
			struct gl *g = i ? &other : &self->g;

			ASSERT_EQ(0, vio_reset(vm[i]));
			EXPECT_EQ(0, mem_used(g));
			ASSERT_EQ(0, begin_anew(g, &w[i]));
			EXPECT_FALSE(needs_reset(vm[i]));
		}
	}
	EXPECT_TRUE(draws(&self->g, &w[0], 0x223344));
	EXPECT_TRUE(draws(&other, &w[1], 0x556677));
	vm_close(&other.vm);
	EXPECT_EQ(0, gl_left(&other));
	gl_delete(&other);
	vm_delete(&flat);
	close(kmsg);
}

/* A fence that does not come is not hidden by what others are answered. */
TEST_F_TIMEOUT(gpu, a_fence_that_never_comes_is_seen, 120)
{
	const struct gl_move move = {
		.ctx = 1, .res = 1, .box = { .w = 1, .h = 1, .d = 1 },
	};
	struct work w[2] = { 0 };
	struct gl other;
	unsigned int answered = 0;
	uint64_t start;
	int head, ret;

	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	ASSERT_EQ(0, work_new(&self->g, &w[0], 4));
	ASSERT_EQ(0, work_new(&other, &w[1], 4));
	EXPECT_TRUE(draws(&self->g, &w[0], 0x223344));
	EXPECT_TRUE(draws(&other, &w[1], 0x556677));

	ASSERT_EQ(0, gpu_hangs("2", "5000"));
	/* The other slot serves jobs that complete. */
	head = work_send(&self->g, &w[0]);
	ASSERT_LE(0, head);
	start = now_ms();
	do {
		ret = gl_result(&other.vm, gl_move_send(&other.vm, &move, 0),
				NULL);
		answered += ret == OK;
	} while (ret == OK && (int)(now_ms() - start) < 5000 + VMM_TIMEOUT);
	/* Far more often than reset_ms, so it was never quiet. */
	EXPECT_LT(20, answered);
	EXPECT_EQ(UNSPEC, ret);
	EXPECT_EQ(0, sysfs_number(HANG));
	EXPECT_EQ(UNSPEC, gl_result(&self->g.vm, head, NULL));
	EXPECT_EQ(0, gpu_goes_on());

	ASSERT_EQ(0, vio_reset(&self->g.vm));
	ASSERT_EQ(0, vio_reset(&other.vm));
	ASSERT_EQ(0, begin_anew(&self->g, &w[0]));
	ASSERT_EQ(0, begin_anew(&other, &w[1]));
	EXPECT_TRUE(draws(&self->g, &w[0], 0x223344));
	EXPECT_TRUE(draws(&other, &w[1], 0x556677));
	vm_close(&other.vm);
	EXPECT_EQ(0, gl_left(&other));
	gl_delete(&other);
}

/* Have a guest's job hang the GPU, beside a job of another guest. */
static void hang_beside(struct __test_metadata *_metadata, struct gl *g,
			const struct work *w, struct gl *other,
			const struct work *v, bool fenced)
{
	const struct gl_move move = {
		.ctx = 1, .res = 1, .box = { .w = 1, .h = 1, .d = 1 },
	};
	uint64_t end = now_ms() + VMM_TIMEOUT, waited;
	int head[2];

	ASSERT_EQ(0, gpu_hangs("2", "1000"));
	waited = nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_QUEUE_NS);
	head[0] = work_send(g, w);
	ASSERT_LE(0, head[0]);
	/* The GPU has it, and it is the oldest: the scheduler might take the other first. */
	while (nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_QUEUE_NS) == waited &&
	       now_ms() < end)
		sched_yield();
	/* Without a fence, the GPU would answer while the other job hangs. */
	head[1] = fenced ? work_send(other, v) :
			   gl_move_send(&other->vm, &move, 0);
	ASSERT_LE(0, head[1]);
	EXPECT_EQ(UNSPEC, gl_result(&g->vm, head[0], NULL));
	EXPECT_EQ(UNSPEC, gl_result(&other->vm, head[1], NULL));
	EXPECT_EQ(0, gpu_goes_on());
}

TEST_F_TIMEOUT(gpu, a_vgpu_that_hangs_it_runs_alone_and_then_not_at_all, 120)
{
	struct work w[2] = { 0 };
	struct nl *nl = &self->g.nl;
	const char *uuid = self->g.vm.uuid;
	struct gl other;
	struct nl events;
	struct nl_event e;
	struct nl_vgpu v;
	unsigned int i;

	ASSERT_EQ(0, nl_dev_set_hang_limit(nl, vmm_parent(), 3));
	ASSERT_EQ(0, nl_open(&events));
	ASSERT_EQ(0, nl_subscribe(&events));
	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	ASSERT_EQ(0, work_new(&self->g, &w[0], 4));
	ASSERT_EQ(0, work_new(&other, &w[1], 4));
	for (i = 1; i <= 3; i++) {
		EXPECT_TRUE(draws(&self->g, &w[0], 0x223344));
		EXPECT_TRUE(draws(&other, &w[1], 0x556677));
		/* At first the GPU has both jobs, then only the one that hangs. */
		hang_beside(_metadata, &self->g, &w[0], &other, &w[1], i == 1);
		ASSERT_EQ(0, nl_vgpu_get(nl, uuid, &v));
		EXPECT_EQ(i, v.stats[MGPU_A_STATS_HANGS]);
		EXPECT_EQ(i, v.stats[MGPU_A_STATS_LOST]);
		EXPECT_EQ(i == 3, v.quarantine);
		ASSERT_EQ(0, nl_vgpu_get(nl, other.vm.uuid, &v));
		EXPECT_EQ(0, v.stats[MGPU_A_STATS_HANGS]);
		EXPECT_EQ(1, v.stats[MGPU_A_STATS_LOST]);
		ASSERT_EQ(0, vio_reset(&self->g.vm));
		ASSERT_EQ(0, vio_reset(&other.vm));
		ASSERT_EQ(0, begin_anew(&other, &w[1]));
		if (i < 3)
			ASSERT_EQ(0, begin_anew(&self->g, &w[0]));
	}
	EXPECT_TRUE(nl_event_wait(&events, MGPU_CMD_VGPU_QUARANTINE_NTF, uuid, &e,
				  VMM_TIMEOUT));
	EXPECT_EQ(1, e.vgpu.quarantine);
	ASSERT_EQ(0, gl_restart(&self->g));
	EXPECT_EQ(UNSPEC, gl_ctx(&self->g.vm, 1));
	EXPECT_TRUE(draws(&other, &w[1], 0x556677));

	ASSERT_EQ(0, nl_vgpu_set_quarantine(nl, uuid, 0));
	ASSERT_EQ(0, begin_anew(&self->g, &w[0]));
	EXPECT_TRUE(draws(&self->g, &w[0], 0x223344));
	vm_close(&other.vm);
	EXPECT_EQ(0, gl_left(&other));
	gl_delete(&other);
	nl_close(&events);
}

/* ---- memory for what is in flight ---- */

/* Wait until so many bytes are charged, or for VMM_TIMEOUT. */
static void used_reaches(struct gl *g, uint64_t bytes)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (mem_used(g) < bytes && now_ms() < end)
		sleep_ms(5);
}

/* Give the GPU a stream of @len bytes of NOPs. */
static int send_nops(struct gl *g, uint32_t len)
{
	return gl_send_bytes(&g->vm, 1, 0, g->stream, len, len);
}

/*
 * The GPU keeps no stream from now on: SLOTS are with it, and the others wait.  All of
 * their memory is in use until gpu_goes_on_anew().
 */
static int gpu_keeps_streams(struct gl *g)
{
	memset(g->stream, 0, GL_STREAM_MAX);
	return gpu_hangs("2", "60000");
}

/* Have all streams end with an error, by a reset of the GPU. */
static int gpu_goes_on_anew(struct vm *vm, const int *head, unsigned int n)
{
	int ret = sysfs_write(PARAMS "reset_ms", "1000");
	unsigned int i;

	for (i = 0; i < n && !ret; i++)
		ret = gl_result(vm, head[i], NULL) == UNSPEC ? 0 : -EPROTO;
	return ret ? ret : gpu_goes_on();
}

/* A stream takes the memory of its buffer, with any history; the type limits it. */
TEST_F_TIMEOUT(gpu, streams_are_the_types_memory, 120)
{
	struct vm *vm = &self->g.vm;
	uint64_t before, used;
	struct nl_vgpu v;
	unsigned int i;
	int head[20];

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	memset(self->g.stream, 0, GL_STREAM_MAX);
	ASSERT_EQ(OK, gl_result(vm, send_nops(&self->g, GL_STREAM_MAX), NULL));
	before = mem_used(&self->g);
	EXPECT_EQ(0, before);
	ASSERT_EQ(0, gpu_keeps_streams(&self->g));
	for (i = 0; i < ARRAY_LEN(head); i++) {
		head[i] = send_nops(&self->g, 100);
		ASSERT_LE(0, head[i]);
	}
	/* The smallest buffer has 512 bytes. */
	used_reaches(&self->g, before + ARRAY_LEN(head) * 512);
	EXPECT_EQ(before + ARRAY_LEN(head) * 512, mem_used(&self->g));
	ASSERT_EQ(0, gpu_goes_on_anew(vm, head, ARRAY_LEN(head)));

	/* 24 of 32 MiB are gone: as many of 1 MiB as fit, and the others wait. */
	ASSERT_EQ(0, vio_reset(vm));
	self->g.vm.ram_used = (size_t)(self->g.stream - vm->ram) + GL_STREAM_MAX + 4096;
	ASSERT_EQ(0, vm_discover(vm));
	ASSERT_EQ(0, gl_restart(&self->g));
	ASSERT_EQ(OK, gl_ctx(vm, 1));
	for (i = 1; i <= 3; i++)
		ASSERT_EQ(OK, gl_texture(vm, i, 2048, 1024, 0));
	ASSERT_EQ(0, nl_vgpu_get(&self->g.nl, vm->uuid, &v));
	ASSERT_EQ(0, gpu_keeps_streams(&self->g));
	for (i = 0; i < ARRAY_LEN(head); i++) {
		head[i] = send_nops(&self->g, GL_STREAM_MAX);
		ASSERT_LE(0, head[i]);
	}
	used_reaches(&self->g, v.mem_limit - (2u << 20) + 1);
	sleep_ms(VMM_QUIET);
	used = mem_used(&self->g);
	EXPECT_LT(v.mem_limit - (2u << 20), used);
	EXPECT_GE(v.mem_limit, used);
	ASSERT_EQ(0, gpu_goes_on_anew(vm, head, ARRAY_LEN(head)));
}

/* A VMM in a control group pays for streams and pictures, up to the group's limit. */
TEST_F_TIMEOUT(gpu, what_the_gpu_is_sent_is_the_vmms_memory, 120)
{
	const uint32_t w = 1024, h = 768, picture = w * h * 4;
	long long before, after;
	struct gpu_screen s;
	char max[32];
	struct gl g;
	unsigned int i;
	int head[16], ret;
	size_t len;

	if (sysfs_write(ROOT "/cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory controller in this kernel");
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, sysfs_write(GROUP "/cgroup.procs", "0"));
	ASSERT_EQ(0, gl_new(&g, "small-render", RAM));
	ASSERT_EQ(OK, gl_ctx(&g.vm, 1));

	/* The display, and what the GPU writes the picture to. */
	ASSERT_EQ(0, gpu_screen_2d(&g.vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, w, h));
	memset(s.pixels, 0x44, picture);
	ASSERT_EQ(0, gpu_show(&g.vm, &s));
	before = sysfs_number(GROUP "/memory.current");
	ASSERT_NE(NULL, display_map(&g.vm, &len));
	ASSERT_EQ(0, display_plane(&g.vm, &(struct vfio_device_gfx_plane_info){ 0 }));
	after = sysfs_number(GROUP "/memory.current");
	TH_LOG("%lld KiB more with a screen of %u", (after - before) / 1024, picture / 1024);
	EXPECT_LE(picture * 9ll / 5 - picture, after - before);

	/* Streams, written before so that the guest's memory does not count. */
	ASSERT_EQ(0, gpu_keeps_streams(&g));
	before = sysfs_number(GROUP "/memory.current");
	for (i = 0; i < ARRAY_LEN(head); i++) {
		head[i] = send_nops(&g, GL_STREAM_MAX);
		ASSERT_LE(0, head[i]);
	}
	used_reaches(&g, ARRAY_LEN(head) << 20);
	after = sysfs_number(GROUP "/memory.current");
	TH_LOG("%lld KiB more with %zu streams of 1024", (after - before) / 1024,
	       ARRAY_LEN(head));
	EXPECT_LE((long long)(ARRAY_LEN(head) - 1) << 20, after - before);
	EXPECT_GT((long long)(ARRAY_LEN(head) + 2) << 20, after - before);

	/* No more than that: the guest is refused, and the VMM lives. */
	snprintf(max, sizeof(max), "%lld", after + (256 << 10));
	ASSERT_EQ(0, sysfs_write(GROUP "/memory.max", max));
	ret = gl_result(&g.vm, send_nops(&g, GL_STREAM_MAX), NULL);
	EXPECT_EQ(NOMEM, ret);
	ASSERT_EQ(0, sysfs_write(GROUP "/memory.max", "max"));
	ASSERT_EQ(0, gpu_goes_on_anew(&g.vm, head, ARRAY_LEN(head)));
	vm_close(&g.vm);
	EXPECT_EQ(0, gl_left(&g));
	gl_delete(&g);
	EXPECT_EQ(0, sysfs_write(ROOT "/cgroup.procs", "0"));
	EXPECT_EQ(0, cgroup_remove(GROUP));
}

/* Guests and VMMs that do not wait for it. */
TEST_F_TIMEOUT(gpu, a_gpu_that_hangs_holds_no_process, 120)
{
	struct virtio_gpu_mem_entry e = { .addr = ALIAS, .length = PIXELS * 4 };
	char uuid[VMM_UUID_LEN + 1];
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int round, i;
	uint64_t start;
	uint32_t *p;

	memcpy(uuid, vm->uuid, sizeof(uuid));
	for (round = 0; round < 4; round++) {
		memset(&w, 0, sizeof(w));
		ASSERT_EQ(0, work_new(&self->g, &w, 4));
		p = vm_alloc(vm, PIXELS * 4, 4096);
		ASSERT_EQ(0, vm_map(vm, p, PIXELS * 4, ALIAS));
		ASSERT_EQ(OK, gl_texture(vm, 3, SIDE, SIDE, 0));
		ASSERT_EQ(OK, gpu_attach_entries(vm, 3, &e, 1));
		ASSERT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(0, 0, SIDE, SIDE)));
		ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, SIDE, SIDE)));
		ASSERT_EQ(0, gpu_hangs("1", "1000"));
		for (i = 0; i < 6; i++)
			ASSERT_LE(0, work_send(&self->g, &w));
		start = now_ms();
		switch (round) {
		case 0:
			EXPECT_EQ(0, vm_unmap(vm, ALIAS, PIXELS * 4));
			break;
		case 1:
			EXPECT_EQ(0, vio_reset(vm));
			EXPECT_EQ(0, mem_used(&self->g));
			break;
		case 2: {
			struct vfio_device_gfx_plane_info plane;
			size_t len;

			EXPECT_NE(NULL, display_map(vm, &len));
			EXPECT_EQ(0, display_plane(vm, &plane));
			break;
		}
		}
		vm_close(vm);
		EXPECT_GT(1000 + VMM_TIMEOUT, (int)(now_ms() - start));
		EXPECT_EQ(0, gl_left(&self->g));
		/* The next one finds the GPU as new. */
		ASSERT_EQ(0, gpu_goes_on());
		ASSERT_EQ(0, vm_open(vm, uuid, RAM));
		vm->made = true;
		ASSERT_EQ(0, gl_restart(&self->g));
		self->g.stream = vm_alloc(vm, GL_STREAM_MAX + 4096, 4096);
	}
}

static int attach_send(struct gl *g, uint32_t id, const void *p)
{
	struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e;
	} c = {
		.c = { .resource_id = id, .nr_entries = 1 },
		.e = { .addr = vm_addr(&g->vm, p), .length = 4096 },
	};

	gpu_hdr(&c.c.hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	return gpu_send(&g->vm, VMM_CONTROL, &c, sizeof(c), sizeof(c.c.hdr));
}

/* A number that has been given anew when the old one's commands are lost. */
TEST_F_TIMEOUT(gpu, numbers_used_again_when_it_hangs, 120)
{
	struct virtio_gpu_resource_create_3d cr = {
		.resource_id = 5, .target = GL_2D, .format = GL_B8G8R8A8,
		.bind = GL_SAMPLED, .width = 16, .height = 16, .depth = 1,
		.array_size = 1,
	};
	struct virtio_gpu_resource_unref un = { .resource_id = 5 };
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int round, i;
	void *p;

	gpu_hdr(&cr.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D);
	gpu_hdr(&un.hdr, VIRTIO_GPU_CMD_RESOURCE_UNREF);
	ASSERT_EQ(0, work_new(&self->g, &w, 4));
	for (round = 0; round < 3; round++) {
		p = vm_alloc(vm, 4096, 4096);
		ASSERT_EQ(0, gpu_hangs("1", "1000"));
		for (i = 0; i < 8; i++) {
			ASSERT_LE(0, gpu_send(vm, VMM_CONTROL, &cr, sizeof(cr),
					      sizeof(cr.hdr)));
			ASSERT_LE(0, attach_send(&self->g, 5, p));
			if (i == 7)
				break;
			ASSERT_LE(0, gpu_send(vm, VMM_CONTROL, &un, sizeof(un),
					      sizeof(un.hdr)));
		}
		/* All that are answered, whatever with. */
		EXPECT_LE(OK, gl_result(vm, work_send(&self->g, &w), NULL));
		ASSERT_EQ(0, vio_reset(vm));
		EXPECT_EQ(0, gpu_goes_on());
		EXPECT_EQ(0, mem_used(&self->g));
		ASSERT_EQ(0, begin_anew(&self->g, &w));
		EXPECT_TRUE(draws(&self->g, &w, 0x336699));
	}
}

/* A stream that the GPU does not like spoils its own context, and no other. */
TEST_F(gpu, a_context_with_an_error_is_its_own)
{
	struct vm *vm = &self->g.vm;
	struct work w = { 0 }, v = { 0 };
	struct gl other;
	struct gl_stream s;

	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	ASSERT_EQ(0, work_new(&self->g, &w, 1));
	ASSERT_EQ(0, work_new(&other, &v, 1));
	ASSERT_EQ(OK, gl_ctx(vm, 2));
	gl_begin(&s);
	gl_draw_to(&s, 4711);	/* no such surface */
	gl_clear(&s, 1, 1, 1, 1);
	EXPECT_LE(OK, gl_run(vm, 2, &s));
	EXPECT_LE(OK, gl_run(vm, 2, &s));
	EXPECT_TRUE(draws(&self->g, &w, 0x010203));
	EXPECT_TRUE(draws(&other, &v, 0x040506));
	EXPECT_EQ(OK, gl_ctx_end(vm, 2));
	EXPECT_EQ(OK, gl_ctx(vm, 2));
	EXPECT_EQ(OK, gl_ctx_attach(vm, 2, 1));
	EXPECT_EQ(OK, gl_ctx_end(vm, 1));
	EXPECT_EQ(OK, gl_fill(vm, 2, 1, 0xff070809));
	EXPECT_EQ(OK, gl_fetch(vm, 2, 1, SIDE, SIDE));
	EXPECT_EQ(0x070809, w.pixels[PIXELS / 3] & 0xffffff);
	gl_delete(&other);
}

/* ---- how it is shared ---- */

/*
 * Keeps some jobs of each of @nr machines under way for a time; how often one of them
 * was found with nothing to do, or -errno.
 */
static int flood(struct gl **g, const struct work *w, unsigned int nr,
		 unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	unsigned int i, sent;
	struct vmm_vq *vq;
	int head, dry = 0;

	while (now_ms() < end) {
		for (i = 0, sent = 0; i < nr; i++) {
			vq = &g[i]->vm.vq[VMM_CONTROL];
			vq_collect(&g[i]->vm, VMM_CONTROL);
			dry += vq->used_idx == vq->avail_idx;
			do {
				head = work_send(g[i], &w[i]);
				if (head < 0 && head != -EBUSY)
					return head;
				sent += head >= 0;
				/* After a reset of the GPU, no ring gets full. */
			} while (head >= 0 && now_ms() < end);
		}
		if (!sent)
			sleep_ms(1);
	}
	return dry;
}

/* Wait until everything in the ring is answered. */
static bool drain(struct gl *g)
{
	struct vmm_vq *vq = &g->vm.vq[VMM_CONTROL];
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (vq_collect(&g->vm, VMM_CONTROL), vq->used_idx != vq->avail_idx) {
		if (now_ms() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

static uint64_t engine_ns(struct gl *g)
{
	return nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_ENGINE_NS);
}

static uint64_t nr_jobs(struct gl *g)
{
	return nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_JOBS);
}

/*
 * Flood both machines for 50 ms; add to @used what their engine time, so far @was, grew by,
 * and let @longest be the most that it grew by in one call.  Like flood() otherwise.
 */
static int flood_step(struct gl **g, const struct work *w, uint64_t was[2], uint64_t used[2],
		      uint64_t *longest)
{
	int i, dry = flood(g, w, 2, 50);
	uint64_t ns;

	for (i = 0; i < 2; i++) {
		ns = engine_ns(g[i]) - was[i];
		was[i] += ns;
		used[i] += ns;
		if (ns > *longest)
			*longest = ns;
	}
	return dry;
}

/*
 * A share that is too low makes the other too high: the first measurement counts.  At its
 * start, a vGPU may still be held back for a job that took long, since the machine stood
 * still; so it goes on until the longest step is little beside what is measured.
 */
TEST_F_TIMEOUT(gpu, weights_share_the_engine, 120)
{
	uint64_t end = now_ms() + 3 * (uint64_t)VMM_TIMEOUT;
	struct gl other, *g[2] = { &self->g, &other };
	uint64_t was[2], used[2] = { 0 }, jobs[2], longest;
	struct work w[2] = { 0 };
	double ratio;
	int dry, n, i;

	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	ASSERT_EQ(0, nl_dev_set(&self->g.nl, vmm_parent(), "weighted",
				NL_KEEP));
	ASSERT_EQ(0, nl_vgpu_set(&self->g.nl, self->g.vm.uuid, 300, -1));
	ASSERT_EQ(0, nl_vgpu_set(&self->g.nl, other.vm.uuid, 100, -1));
	ASSERT_EQ(0, work_new(g[0], &w[0], 8));
	ASSERT_EQ(0, work_new(g[1], &w[1], 8));
	was[0] = engine_ns(g[0]);
	was[1] = engine_ns(g[1]);
	do {
		longest = 0;
		for (i = 0; i < 10; i++)
			ASSERT_LE(0, flood_step(g, w, was, used, &longest));
		memset(used, 0, sizeof(used));
		jobs[0] = nr_jobs(g[0]);
		jobs[1] = nr_jobs(g[1]);
		dry = 0;
		/* Long enough for one job to make no difference. */
		do {
			n = flood_step(g, w, was, used, &longest);
			ASSERT_LE(0, n);
			dry += n;
		} while ((used[0] + used[1] < 3000000000 || used[1] < 16 * longest ||
			  nr_jobs(g[1]) - jobs[1] < 50) && now_ms() < end);
		jobs[0] = nr_jobs(g[0]) - jobs[0];
		jobs[1] = nr_jobs(g[1]) - jobs[1];
		ratio = (double)used[0] / (double)used[1];
		TH_LOG("%lu and %lu us: %.2f, in %lu and %lu jobs, longest step %lu us (%d times one had nothing to do)",
		       used[0] / 1000, used[1] / 1000, ratio, jobs[0], jobs[1],
		       longest / 1000, dry);
	} while (dry && now_ms() < end);
	gl_delete(&other);
	EXPECT_EQ(0, dry);
	/* Steps that long move the ratio by more than it may differ. */
	if (used[1] < 16 * longest)
		SKIP(return, "the GPU stood still for too much of the time to measure a ratio");
	EXPECT_LT(2.4, ratio);
	EXPECT_GT(3.6, ratio);
}

/*
 * 20 per cent, in periods of 100 ms.  When a job starts, what is charged is paid for;
 * one other job may be with the GPU that is not charged yet.
 */
TEST_F_TIMEOUT(gpu, a_limit_holds_its_vgpu_back, 60)
{
	struct gl *g = &self->g;
	struct work w = { 0 };
	uint64_t first, last, now, start, ns, longest, allowed, end;
	unsigned int try;

	ASSERT_EQ(0, work_new(g, &w, 4));
	ASSERT_EQ(0, nl_vgpu_set_full(&g->nl, g->vm.uuid, NL_KEEP, NL_KEEP,
				      200000, 100000, NL_KEEP));
	for (try = 0; try < 2; try++) {
		ASSERT_TRUE(drain(g));
		longest = 0;
		start = now_ns();
		first = engine_ns(g);
		last = first;
		end = now_ms() + 2500;
		/* Up to what is not before the start of a job. */
		for (;;) {
			ASSERT_LE(0, flood(&g, &w, 1, 2));
			now = engine_ns(g);
			if (now - last > longest)
				longest = now - last;
			if (now != last && now_ms() >= end)
				break;
			ASSERT_GT(end + VMM_TIMEOUT, now_ms());
			last = now;
		}
		ns = now_ns() - start;
		allowed = ns / 5 + 20000000 + longest;
		TH_LOG("%llu of %llu us of the engine, in %llu us",
		       (unsigned long long)(last - first) / 1000,
		       (unsigned long long)allowed / 1000,
		       (unsigned long long)ns / 1000);
		/* Of what one job takes, two seconds' worth counts. */
		if (longest < 400000000)
			EXPECT_GE(allowed, last - first);
		if (last - first >= ns / 50)
			break;
		if (!try)
			measured_again("use with a limit (got %llu us, wanted %llu us)",
				       (unsigned long long)(last - first) / 1000,
				       (unsigned long long)ns / 50000);
	}
	EXPECT_GT(2, try);
	EXPECT_LT(0, nl_stat(&g->nl, g->vm.uuid, MGPU_A_STATS_LIMITED));
}

TEST_F_TIMEOUT(gpu, ebpf_charges_jobs, 120)
{
	uint64_t end = now_ms() + 3 * (uint64_t)VMM_TIMEOUT;
	struct nl_vgpu before, after;
	struct gl *g = &self->g;
	struct work w = { 0 };
	pid_t pid;

	ASSERT_EQ(0, work_new(g, &w, 2));
	pid = mgpud_start();
	if (!pid)
		SKIP(return, "mgpud is not built");
	ASSERT_LT(0, pid);
	do {
		ASSERT_LE(0, flood(&g, &w, 1, 50));
		ASSERT_TRUE(drain(g));
		ASSERT_EQ(0, nl_vgpu_get(&g->nl, g->vm.uuid, &before));
	} while (before.charge_source != MGPU_CHARGE_SOURCE_BPF &&
		 now_ms() < end);
	ASSERT_LE(0, flood(&g, &w, 1, 300));
	ASSERT_TRUE(drain(g));
	ASSERT_EQ(0, nl_vgpu_get(&g->nl, g->vm.uuid, &after));
	EXPECT_TRUE(charged_by_ebpf(&before, &after));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

TEST_F(gpu, slots_are_how_many_jobs_it_has)
{
	struct gl *g = &self->g;
	struct work w = { 0 };
	struct nl_dev dev;
	uint32_t n;

	ASSERT_EQ(0, nl_dev_get(&g->nl, vmm_parent(), &dev));
	ASSERT_EQ(0, work_new(g, &w, 2));
	for (n = 1; n <= 64; n += 9) {
		EXPECT_EQ(0, nl_dev_set_slots(&g->nl, dev.id, n));
		ASSERT_LE(0, flood(&g, &w, 1, 200));
	}
	EXPECT_EQ(0, nl_dev_set_slots(&g->nl, dev.id, 64));
	EXPECT_GT(0, nl_dev_set_slots(&g->nl, dev.id, 65));
	EXPECT_NE(NULL, strstr(g->nl.text, "slots is 1 to"));
	EXPECT_GT(0, nl_dev_set_slots(&g->nl, dev.id, ~0u));
	EXPECT_EQ(0, nl_dev_set_slots(&g->nl, dev.id, 1));
	ASSERT_TRUE(drain(g));
	EXPECT_TRUE(draws(g, &w, 0x00ff00));
	EXPECT_EQ(0, nl_dev_set_slots(&g->nl, dev.id, 2));
}

/*
 * A job that comes behind a stream is executed between two of the stream's slices.  Where
 * all slices were ahead of it, it would always be the second to be answered.  A machine
 * that is slow to submit it makes it the second, too, but not each time.
 */
TEST_F_TIMEOUT(gpu, another_vms_job_goes_between_slices, 120)
{
	static const unsigned int tries = 20;
	const struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = 4, .h = 4, .d = 1 },
	};
	struct work w[2] = { 0 };
	unsigned int i, first = 0;
	struct nl_dev dev;
	struct vmm_vq *vq;
	struct gl other;
	uint16_t used;
	int head[2];

	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	ASSERT_EQ(0, nl_dev_get(&self->g.nl, vmm_parent(), &dev));
	ASSERT_EQ(0, nl_dev_set_policy(&self->g.nl, vmm_parent(), "weighted"));
	ASSERT_EQ(0, nl_dev_set_slots(&self->g.nl, dev.id, 8));
	ASSERT_EQ(0, work_new(&self->g, &w[0], 16));
	ASSERT_EQ(0, work_new(&other, &w[1], 1));
	ASSERT_EQ(0, sysfs_write(SLICE_BANDS, "1"));
	vq = &self->g.vm.vq[VMM_CONTROL];
	for (i = 0; i < tries; i++) {
		used = vq->used->idx;
		head[0] = work_send(&self->g, &w[0]);
		head[1] = gl_move_send(&other.vm, &m, ++other.vm.next_fence);
		EXPECT_EQ(OK, gl_result(&other.vm, head[1], NULL));
		first += vq->used->idx == used;
		EXPECT_EQ(OK, gl_result(&self->g.vm, head[0], NULL));
	}
	EXPECT_EQ(0, sysfs_write(SLICE_BANDS, "0"));
	EXPECT_EQ(0, nl_dev_set_slots(&self->g.nl, dev.id, 2));
	TH_LOG("answered first %u times of %u", first, tries);
	EXPECT_LT(tries / 4, first);
	gl_delete(&other);
}

TEST_F(gpu, frames_are_paced)
{
	struct vm *vm = &self->g.vm;
	struct work w = { 0 };
	unsigned int n = 0;
	uint64_t begin;
	int ms = 0;

	ASSERT_EQ(0, work_new(&self->g, &w, 1));
	ASSERT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(0, 0, SIDE, SIDE)));
	ASSERT_EQ(0, nl_vgpu_set(&self->g.nl, vm->uuid, -1, 20000));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, SIDE, SIDE)));
	begin = now_ms();
	while (n < 40 && ms < VMM_TIMEOUT) {
		ASSERT_LE(0, work_send(&self->g, &w));
		ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, SIDE, SIDE)));
		n++;
		ms = (int)(now_ms() - begin);
	}
	TH_LOG("%u frames in %d ms", n, ms);
	EXPECT_EQ(40, n);
	EXPECT_LE(40 * 1000 / 20 - 250, ms);
}

/* ---- again and again: MGPU_ROUNDS, MGPU_SEED ---- */

/* Open a vGPU that is there, and start it. */
static int open_anew(struct gl *g)
{
	char uuid[VMM_UUID_LEN + 1];
	int ret;

	memcpy(uuid, g->vm.uuid, sizeof(uuid));
	ret = vm_open(&g->vm, uuid, RAM);
	g->vm.made = true;
	if (!ret)
		ret = gl_restart(g);
	g->stream = vm_alloc(&g->vm, GL_STREAM_MAX + 4096, 4096);
	return ret ? ret : g->stream ? 0 : -ENOMEM;
}

/* Keep the rings of two machines full until both need a reset. */
static int flood_until_reset(struct gl **g, const struct work *w)
{
	uint64_t end = now_ms() + 2 * (uint64_t)VMM_TIMEOUT;
	int ret = 0;

	while (ret >= 0 && !(needs_reset(&g[0]->vm) && needs_reset(&g[1]->vm))) {
		if (now_ms() >= end)
			return -ETIMEDOUT;
		ret = flood(g, w, 2, 20);
	}
	return ret < 0 ? ret : 0;
}

static void hang_rounds(struct __test_metadata *_metadata, struct gl **g,
			struct neighbour *n, unsigned int rounds, unsigned int *seed)
{
	unsigned int round, i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, open_anew(g[i]));
	for (round = 0; round < rounds; round++) {
		struct work w[2] = { 0 };

		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, begin_anew(g[i], &w[i]));
			EXPECT_TRUE(draws(g[i], &w[i], round * 0x10305 & 0xffffff));
		}
		ASSERT_LE(0, flood(g, w, 2, (unsigned int)rand_r(seed) % 50));
		/* All is lost from now on, or one fence. */
		ASSERT_EQ(0, gpu_hangs(rand_r(seed) % 2 ? "1" : "2", "1000"));
		ASSERT_EQ(0, flood_until_reset(g, w));
		EXPECT_EQ(0, sysfs_number(HANG));
		ASSERT_EQ(0, gpu_goes_on());
		for (i = 0; i < 2; i++) {
			EXPECT_TRUE(drain(g[i]));
			EXPECT_EQ(UNSPEC, gl_ctx(&g[i]->vm, 9));
			ASSERT_EQ(0, rand_r(seed) % 2 ? vio_reset(&g[i]->vm) :
					ioctl(g[i]->vm.device, VFIO_DEVICE_RESET));
			EXPECT_EQ(0, mem_used(g[i]));
		}
		EXPECT_TRUE(neighbour_goes_on(n));
	}
	for (i = 0; i < 2; i++) {
		struct work w = { 0 };

		ASSERT_EQ(0, begin_anew(g[i], &w));
		EXPECT_TRUE(draws(g[i], &w, 0x123456));
		vm_close(&g[i]->vm);
		EXPECT_EQ(0, gl_left(g[i]));
	}
}

TEST_F_TIMEOUT(gpu, resets_under_load_again_and_again, 14400)
{
	unsigned int rounds = rounds_of_run(3), seed = seed_of_run();
	struct neighbour n = { .pid = 0 };
	struct gl other, *g[2] = { &self->g, &other };
	struct footprint before;

	TH_LOG("seed %u", seed);
	ASSERT_EQ(0, neighbour_begin(&n, "small"));
	ASSERT_EQ(0, gl_new(&other, "small-render", RAM));
	vm_close(&other.vm);
	vm_close(&self->g.vm);
	hang_rounds(_metadata, g, &n, 2, &seed);
	footprint_take(&before);
	hang_rounds(_metadata, g, &n, rounds, &seed);
	EXPECT_TRUE(footprint_kept(&before, rounds));
	EXPECT_TRUE(neighbour_end(&n));
	gl_delete(&other);
}

/* A VMM that draws, and resets now and then, until it is killed. */
static int draw_for_ever(const char *uuid, unsigned int seed)
{
	struct gl g = { .vm.made = false };
	struct work w = { 0 };

	snprintf(g.vm.uuid, sizeof(g.vm.uuid), "%s", uuid);
	if (open_anew(&g))
		return 1;
	g.vm.made = false;
	for (;;) {
		w.stream = NULL;
		if (work_new(&g, &w, 4))
			return 2;
		while (rand_r(&seed) % 64) {
			vq_collect(&g.vm, VMM_CONTROL);
			if (work_send(&g, &w) < 0)
				sleep_ms(1);
		}
		if (rand_r(&seed) % 2)
			ioctl(g.vm.device, VFIO_DEVICE_RESET);
		g.vm.ram_used = (size_t)(g.stream - g.vm.ram) + GL_STREAM_MAX + 4096;
		if (vm_discover(&g.vm) || gl_restart(&g))
			return 3;
	}
}

static void kill_rounds(struct __test_metadata *_metadata, struct gl *bystander,
			const struct work *w, const char *uuid, unsigned int rounds,
			unsigned int *seed)
{
	unsigned int round, us;
	struct nl_vgpu v;
	int status;
	pid_t pid;

	for (round = 0; round < rounds; round++) {
		us = (unsigned int)rand_r(seed);
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(draw_for_ever(uuid, us));
		usleep(us % (300000 * (unsigned int)vmm_slow()));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status)) {
			TH_LOG("the VMM ended by itself: %#x", status);
		}
		ASSERT_EQ(0, nl_vgpu_get_closed(&bystander->nl, uuid, &v));
		EXPECT_EQ(0, v.mem_used);
		EXPECT_EQ(0, v.pinned);
		EXPECT_TRUE(draws(bystander, w, round * 0x10305 & 0xffffff));
	}
}

TEST_F_TIMEOUT(gpu, vmms_are_killed_again_and_again, 14400)
{
	unsigned int rounds = rounds_of_run(10), seed = seed_of_run();
	char uuid[VMM_UUID_LEN + 1];
	struct footprint before;
	struct work w = { 0 };

	TH_LOG("seed %u", seed);
	mdev_uuid_new(uuid);
	ASSERT_EQ(0, mdev_create("small-render", uuid));
	ASSERT_EQ(0, work_new(&self->g, &w, 4));
	kill_rounds(_metadata, &self->g, &w, uuid, 4, &seed);
	footprint_take(&before);
	kill_rounds(_metadata, &self->g, &w, uuid, rounds, &seed);
	EXPECT_TRUE(footprint_kept(&before, rounds));
	EXPECT_EQ(0, mdev_remove(uuid));
}

/* ---- guests without GL on the same GPU ---- */

TEST_F(gpu, types_without_gl_have_none)
{
	struct virtio_gpu_ctrl_hdr c;
	struct gpu_screen s;
	uint32_t i, wrong = 0, *d;
	struct vm flat;
	size_t len;

	ASSERT_EQ(0, vm_new(&flat, "small", VMM_RAM));
	EXPECT_EQ(0, vio_features(&flat) & VMM_F(VIRTIO_GPU_F_VIRGL));
	ASSERT_EQ(0, vm_start_with(&flat, VMM_FEATURES));
	EXPECT_EQ(UNSPEC, gl_ctx(&flat, 1));
	EXPECT_EQ(UNSPEC, gl_texture(&flat, 1, 16, 16, 0));
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_CAPSET_INFO);
	EXPECT_EQ(UNSPEC, gpu_call(&flat, &c, sizeof(c), NULL, 0));
	ASSERT_EQ(0, gpu_screen_blob(&flat, &s, 1, 64, 64));
	for (i = 0; i < 64 * 64; i++)
		s.pixels[i] = i * 40503u;
	ASSERT_EQ(OK, gpu_flush(&flat, 1, gpu_rect(0, 0, 64, 64)));
	d = display_map(&flat, &len);
	ASSERT_NE(NULL, d);
	for (i = 0; i < 64 * 64; i++)
		wrong += (d[i] & 0xffffff) != (s.pixels[i] & 0xffffff);
	EXPECT_EQ(0, wrong);
	vm_delete(&flat);
}

static void __attribute__((constructor)) find_gpu(void)
{
	gl_need_gpu();
}

TEST_HARNESS_MAIN

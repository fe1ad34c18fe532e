// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VMM some of whose threads hardly run: they have the policy SCHED_IDLE, on a processor
 * that other threads keep busy.  Such a thread stands still for seconds at any point of
 * the kernel where it may be preempted.
 *
 * vfio_iommu_type1 ends the host with a BUG if a page of a range is pinned whenever it
 * looks, in eleven looks during one unmapping.
 *
 * needs: quiet
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "starve.h"
#include "vmm.h"

#define ALIAS		0x100000000ull	/* memory that comes and goes */
#define ALIAS_LEN	(4u << 20)

FIXTURE(starved)
{
	struct vm vm;
	struct nl nl;
	struct hogs hogs;
	uint8_t *alias;
	int busy;		/* the hogs' processor */
	int free;		/* another one */
};

static uint64_t pinned(struct nl *nl, const struct vm *vm)
{
	struct nl_vgpu v;

	return nl_vgpu_get(nl, vm->uuid, &v) ? UINT64_MAX : v.pinned;
}

FIXTURE_SETUP(starved)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "medium", VMM_RAM));
	self->alias = aligned_alloc(4096, ALIAS_LEN);
	ASSERT_NE(NULL, self->alias);
	memset(self->alias, 1, ALIAS_LEN);
	if (!two_processors(&self->busy, &self->free))
		SKIP(return, "one processor only");
	ASSERT_EQ(0, stay_on(self->free));
}

FIXTURE_TEARDOWN(starved)
{
	struct vm *vm = &self->vm;
	uint32_t w, h;

	hogs_stop(&self->hogs);
	vm_forget(vm);
	EXPECT_EQ(0, vm_start(vm));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	vm_close(vm);
	EXPECT_EQ(0, pinned(&self->nl, vm));
	vm_delete(vm);
	nl_close(&self->nl);
	free(self->alias);
}

/* ---- a thread that stands still in a doorbell ---- */

#define RING_COMMANDS	30

struct ringer {
	struct vm *vm;
	int cpu;
	pthread_t thread;
	struct calls calls;
	atomic_bool stop;
};

/* Keep the ring full of commands that pin a page and release it, and ring. */
static void *ring(void *arg)
{
	struct ringer *r = arg;
	struct virtio_gpu_resource_unref u = { .resource_id = 1 };
	struct {
		struct virtio_gpu_resource_create_blob c;
		struct virtio_gpu_mem_entry e;
	} c = {
		.c = { .resource_id = 1, .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
		       .nr_entries = 1, .size = 4096 },
		.e = { ALIAS, 4096, 0 },
	};
	struct vm *vm = r->vm;
	int head[RING_COMMANDS];
	unsigned int i;

	be_starved_on(r->cpu);
	gpu_hdr(&c.c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	gpu_hdr(&u.hdr, VIRTIO_GPU_CMD_RESOURCE_UNREF);
	for (i = 0; i < RING_COMMANDS; i++) {
		void *req = vm_alloc(vm, sizeof(c), 8);
		struct vmm_seg segs[2] = {
			{ vm_addr(vm, req), sizeof(c), false },
			{ vm_addr(vm, vm_alloc(vm, 64, 8)), 64, true },
		};

		if (i % 2)
			memcpy(req, &u, sizeof(u));
		else
			memcpy(req, &c, sizeof(c));
		head[i] = vq_add(vm, VMM_CONTROL, segs, 2, true);
	}
	while (!atomic_load(&r->stop)) {
		for (i = 0; i < RING_COMMANDS; i++)
			vq_publish(vm, VMM_CONTROL, (uint16_t)head[i]);
		call_begin(&r->calls);
		if (vq_kick(vm, VMM_CONTROL))
			break;
		call_end(&r->calls);
		while (vm->vq[VMM_CONTROL].used->idx !=
		       vm->vq[VMM_CONTROL].avail->idx && !atomic_load(&r->stop))
			sched_yield();
	}
	return NULL;
}

/*
 * The guest's memory is unmapped while such a thread runs the ring.  A turn of the starved
 * thread comes every ten seconds or so, later on a busy machine.
 */
TEST_F_TIMEOUT(starved, a_doorbell_that_stands_still_holds_up_no_unmapping, 400)
{
	struct vm *vm = &self->vm;
	struct ringer r = { .vm = vm, .cpu = self->busy };
	bool stood = false;
	unsigned int trial;
	long call;

	ASSERT_EQ(0, vm_map(vm, self->alias, ALIAS_LEN, ALIAS));
	for (trial = 0; trial < 5 && !stood; trial++) {
		atomic_store(&r.stop, false);
		ASSERT_EQ(0, pthread_create(&r.thread, NULL, ring, &r));
		sleep_ms(200);
		ASSERT_EQ(0, hogs_start(&self->hogs, self->busy, MAX_HOGS));
		/* Below 0: it stands still between two calls, which is no trial. */
		call = stands_in_a_call(&r.calls);
		ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE, vm->ram_size));
		ASSERT_EQ(0, vm_unmap(vm, ALIAS, ALIAS_LEN));
		stood = call >= 0 && still_stands(&r.calls, call);
		TH_LOG("call %ld %s", call, stood ? "stood still" : "went on");
		atomic_store(&r.stop, true);
		hogs_stop(&self->hogs);
		ASSERT_EQ(0, pthread_join(r.thread, NULL));
		EXPECT_EQ(0, pinned(&self->nl, vm));
		ASSERT_EQ(0, vm_map(vm, self->alias, ALIAS_LEN, ALIAS));
		ASSERT_EQ(0, vm_map(vm, vm->ram, vm->ram_size, VMM_RAM_BASE));
		vm_forget(vm);
		ASSERT_EQ(0, vm_start(vm));
	}
	EXPECT_TRUE(stood);
}

/* ---- a thread that stands still while it unmaps ---- */

struct unmapper {
	struct vm *vm;
	uint8_t *mem;
	int cpu;
	pthread_t thread;
	atomic_bool stop;
	unsigned int rounds;
	int error;
};

static void *unmap_and_map(void *arg)
{
	struct unmapper *u = arg;

	/* With SCHED_IDLE, it would not get far enough for eleven looks. */
	stay_on(u->cpu);
	setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
	while (!atomic_load(&u->stop) && !u->error) {
		u->error = vm_unmap(u->vm, ALIAS, ALIAS_LEN);
		if (!u->error)
			u->error = vm_map(u->vm, u->mem, ALIAS_LEN, ALIAS);
		u->rounds++;
	}
	return NULL;
}

/* The guest pins memory of the range again and again. */
TEST_F_TIMEOUT(starved, an_unmapping_that_stands_still_ends, 180)
{
	uint64_t end = now_ms() + (vmm_long() ? 60000 : 10000);
	struct vm *vm = &self->vm;
	struct unmapper u = { .vm = vm, .mem = self->alias, .cpu = self->busy };
	unsigned int good = 0, bad = 0;

	ASSERT_EQ(0, vm_map(vm, self->alias, ALIAS_LEN, ALIAS));
	ASSERT_EQ(0, hogs_start(&self->hogs, self->busy, 4));
	ASSERT_EQ(0, pthread_create(&u.thread, NULL, unmap_and_map, &u));
	while (goes_on(end, good && u.rounds > 1)) {
		if (gpu_create_blob_at(vm, 1, ALIAS, 1 << 16) == OK) {
			good++;
			ASSERT_EQ(OK, gpu_unref(vm, 1));
		} else {
			bad++;
		}
	}
	atomic_store(&u.stop, true);
	hogs_stop(&self->hogs);
	ASSERT_EQ(0, pthread_join(u.thread, NULL));
	TH_LOG("%u unmappings, %u pins, %u refused", u.rounds, good, bad);
	EXPECT_EQ(0, u.error);
	EXPECT_LT(0, u.rounds);
}

/* ---- a thread that stands still while it copies its screen ---- */

/*
 * The largest screen: a copy takes several ticks of the scheduler's on a fast machine, too,
 * so that the copying thread is preempted in it.
 */
#define WIDTH		3840
#define HEIGHT		2160
#define SCREEN_RAM	(WIDTH * HEIGHT * 4 + VMM_RAM)
#define NEIGHBOUR_FRAMES 20

struct looker {
	struct vm *vm;
	int cpu;
	pthread_t thread;
	struct calls calls;
	atomic_bool stop;
};

static void *look(void *arg)
{
	struct vfio_device_gfx_plane_info plane;
	struct looker *l = arg;

	be_starved_on(l->cpu);
	while (!atomic_load(&l->stop)) {
		call_begin(&l->calls);
		if (display_plane(l->vm, &plane))
			break;
		call_end(&l->calls);
		sched_yield();
	}
	return NULL;
}

/* Make a white cursor on a black screen. */
static int black_and_white(struct vm *vm, struct gpu_screen *s)
{
	uint32_t *white = vm_alloc(vm, 64 * 64 * 4, 4096);
	int ret = gpu_screen_blob(vm, s, 1, WIDTH, HEIGHT);

	if (ret || !white)
		return -ENOMEM;
	memset(white, 0xff, 64 * 64 * 4);
	ret = gpu_show(vm, s);
	if (!ret && gpu_create_blob(vm, 2, white, 64 * 64 * 4) != OK)
		ret = -EPROTO;
	return ret ? ret : gpu_cursor(vm, 2, 0, 0, 0, 0);
}

/*
 * A cursor that moves is drawn by the engine, unless the VMM has the picture.  Then the
 * engine goes on without, and a neighbour has its frames.
 */
TEST_F_TIMEOUT(starved, a_screen_that_is_looked_at_slowly_keeps_no_engine, 500)
{
	struct vm screen, *vm = &screen, neighbour;
	struct looker l = { .vm = vm, .cpu = self->busy };
	struct gpu_screen s, other;
	bool stood = false, shown;
	unsigned int i, trial;
	uint32_t *seen, x;
	size_t len;
	long call;

	ASSERT_EQ(0, vm_new_started(vm, "large", SCREEN_RAM));
	ASSERT_EQ(0, vm_new_started(&neighbour, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&neighbour, &other, 1, 64, 64));
	ASSERT_EQ(0, black_and_white(vm, &s));
	seen = display_map(vm, &len);
	ASSERT_NE(NULL, seen);
	ASSERT_EQ(0, hogs_start(&self->hogs, self->busy, 1));
	ASSERT_EQ(0, pthread_create(&l.thread, NULL, look, &l));
	for (trial = 0; trial < 20 && !stood; trial++) {
		ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, WIDTH, HEIGHT)));
		call = stands_in_a_call(&l.calls);
		x = 64 + trial % 2 * 128;
		ASSERT_EQ(0, gpu_cursor_move(vm, (int32_t)x, 640));
		shown = seen[650 * WIDTH + x + 10] & 0xffffff;
		for (i = 0; i < NEIGHBOUR_FRAMES; i++) {
			ASSERT_EQ(OK, gpu_flush(&neighbour, 1,
						gpu_rect(0, 0, 64, 64)));
		}
		stood = call >= 0 && still_stands(&l.calls, call) && !shown;
	}
	hogs_stop(&self->hogs);
	TH_LOG("%u trials, call %ld %s", trial, call,
	       stood ? "had the picture" : "did not have the picture");
	EXPECT_TRUE(stood);
	atomic_store(&l.stop, true);
	ASSERT_EQ(0, pthread_join(l.thread, NULL));
	vm_delete(&neighbour);
	vm_delete(vm);
}

TEST_HARNESS_MAIN

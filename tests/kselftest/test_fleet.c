// SPDX-License-Identifier: GPL-2.0-only
/*
 * As many open vGPUs as there can be (1,024 of type small), all of them started: each
 * does its work, its counters are its own, a list has all of them, and all can go.
 * Prints how long each part took.  For make check-long; test_lifetime has 64.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define MOST		1024
#define RAM		(1u << 20)
#define SIDE		32
#define FDS		16	/* of one machine, or fewer */
/* A screen has its memory only when something is shown: not on every one. */
#define SHOWS(i)	((i) % 8 == 0)

static struct vm vm[MOST];
static struct gpu_screen screen[MOST];
static struct nl_vgpu list[MOST + 1];

FIXTURE(fleet)
{
	struct nl nl;
	unsigned int nr;
};

FIXTURE_SETUP(fleet)
{
	struct rlimit files = { MOST * FDS, MOST * FDS };
	long long room;

	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	room = mdev_available("small");
	ASSERT_LT(100, room);
	self->nr = room < MOST ? room : MOST;
}

FIXTURE_TEARDOWN(fleet)
{
	nl_close(&self->nl);
}

/* Frames of those that show some, work of the others. */
static int one_more(struct vm *v, struct gpu_screen *s, bool shows)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, SIDE, SIDE);
	int ret = gpu_transfer(v, 1, all, 0);

	if (ret == OK && shows)
		ret = gpu_flush(v, s->id, all);
	return ret;
}

#define STEP(what) do {							\
	now = now_ms();							\
	TH_LOG("%s: %lu ms", what, now - start);			\
	start = now;							\
} while (0)

TEST_F_TIMEOUT(fleet, as_many_vgpus_as_there_can_be, 600)
{
	unsigned int i, k, nr = self->nr, frames = 0, jobs = 0;
	uint64_t start = now_ms(), now;
	char uuid[VMM_UUID_LEN + 1];
	int n;

	TH_LOG("%u vGPUs", nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, vm_new(&vm[i], "small", RAM)) {
			TH_LOG("number %u", i);
		}
	}
	mdev_uuid_new(uuid);
	EXPECT_EQ(0, mdev_available("small"));
	EXPECT_GT(0, mdev_create("small", uuid));
	STEP("create and open");

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, vm_start(&vm[i])) {
			TH_LOG("number %u", i);
		}
		if (SHOWS(i)) {
			ASSERT_EQ(0, gpu_screen_2d(&vm[i], &screen[i], 1,
						   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
						   SIDE, SIDE));
		} else {
			void *p = vm_alloc(&vm[i], SIDE * SIDE * 4, 4096);

			ASSERT_NE(NULL, p);
			ASSERT_EQ(OK, gpu_create_2d(&vm[i], 1,
						    VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
						    SIDE, SIDE));
			ASSERT_EQ(OK, gpu_attach(&vm[i], 1, p, SIDE * SIDE * 4));
		}
	}
	STEP("start");

	/* So that no two neighbours have the same counts. */
	for (k = 0; k < 3; k++) {
		for (i = 0; i < nr; i++) {
			if (k > i % 3)
				continue;
			ASSERT_EQ(OK, one_more(&vm[i], &screen[i], SHOWS(i)));
		}
	}
	STEP("work");

	n = nl_vgpu_dump(&self->nl, list, ARRAY_LEN(list));
	EXPECT_EQ(nr, n);
	STEP("list");
	for (i = 0; i < nr && n == (int)nr; i++) {
		for (k = 0; k < nr && strcmp(list[k].uuid, vm[i].uuid); k++)
			;
		ASSERT_GT(nr, k) {
			TH_LOG("%s is not listed", vm[i].uuid);
		}
		EXPECT_TRUE(list[k].open);
		frames = SHOWS(i) ? i % 3 + 1 : 0;
		jobs = i % 3 + 1 + frames;
		EXPECT_EQ(frames, list[k].stats[MGPU_A_STATS_FRAMES]);
		EXPECT_EQ(jobs, list[k].stats[MGPU_A_STATS_JOBS]);
		EXPECT_EQ(0, list[k].stats[MGPU_A_STATS_JOB_ERRORS]);
	}

	for (i = 0; i < nr; i++)
		vm_close(&vm[i]);
	STEP("close");
	n = nl_vgpu_dump(&self->nl, list, ARRAY_LEN(list));
	EXPECT_EQ(nr, n);
	for (i = 0; i < nr; i++) {
		EXPECT_FALSE(list[i].open);
		EXPECT_EQ(0, list[i].pinned);
		EXPECT_EQ(0, list[i].mem_used);
	}
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, mdev_remove(vm[i].uuid));
	}
	STEP("remove");
	EXPECT_EQ(0, nl_vgpu_dump(&self->nl, list, ARRAY_LEN(list)));
	EXPECT_EQ(nr, mdev_available("small"));
}

TEST_HARNESS_MAIN

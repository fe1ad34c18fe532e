// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu_soft with the engine of a described GPU (engine=modelled).  The time of a job is that
 * of the description, so lower bounds are exact; upper bounds leave the machine room.
 */
#include <errno.h>
#include <stdlib.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define PARAMETER	"/sys/module/mgpu_soft/parameters/engine"
#define DEVICE		"/sys/devices/platform/mgpu_soft.0/"
#define WIDTH		1024u
#define HEIGHT		768u
#define FRAMES		20
/* kmod/soft/soft.c: MAX_LAG_NS; a modelled engine catches up by that much. */
#define MAX_LAG_NS	5000000ull

FIXTURE(modelled)
{
	struct vm vm;
	struct gpu_screen screen;
	struct nl nl;
	uint64_t frame_ns;	/* of a flush of the whole screen */
};

/* A value of the description that is in force. */
static uint64_t described(const char *key)
{
	char text[256] = "", word[32];
	const char *at;

	sysfs_read(DEVICE "model", text, sizeof(text));
	snprintf(word, sizeof(word), "%s=", key);
	at = strstr(text, word);
	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static uint64_t number(const char *file)
{
	char path[128], text[32] = "0";

	snprintf(path, sizeof(path), DEVICE "%s", file);
	sysfs_read(path, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

#define modelled_data FIXTURE_DATA(modelled)

FIXTURE_SETUP(modelled)
{
	char engine[32] = "";

	sysfs_read(PARAMETER, engine, sizeof(engine));
	if (strncmp(engine, "modelled", 8))
		SKIP(return, "mgpu_soft has engine=cpu");
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_2d(&self->vm, &self->screen, 1,
				   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, WIDTH, HEIGHT));
	ASSERT_NE(0, described("fill"));
	self->frame_ns = described("command") +
			 WIDTH * HEIGHT * 1000ull / described("fill");
	self->frame_ns *= described("slowdown");
}

FIXTURE_TEARDOWN(modelled)
{
	vm_delete(&self->vm);
	nl_close(&self->nl);
}

static uint64_t engine_ns(modelled_data *self)
{
	return nl_stat(&self->nl, self->vm.uuid, MGPU_A_STATS_ENGINE_NS);
}

static struct virtio_gpu_rect whole(void)
{
	return gpu_rect(0, 0, WIDTH, HEIGHT);
}

TEST_F_TIMEOUT(modelled, a_frame_takes_the_time_of_the_gpu, 60)
{
	uint64_t want = FRAMES * self->frame_ns, used, cpu, start;
	unsigned int i;

	used = engine_ns(self);
	cpu = number("emulation_cpu_ns");
	start = now_ns();
	for (i = 0; i < FRAMES; i++) {
		ASSERT_EQ(OK, gpu_flush(&self->vm, 1, whole()));
	}
	start = now_ns() - start;
	used = engine_ns(self) - used;
	cpu = number("emulation_cpu_ns") - cpu;
	TH_LOG("%u frames of %llu ns: %llu ns of engine time in %llu ns, %llu ns of CPU time, late by %llu ns",
	       FRAMES, (unsigned long long)self->frame_ns, (unsigned long long)used,
	       (unsigned long long)start, (unsigned long long)cpu,
	       (unsigned long long)number("emulation_late_ns"));
	EXPECT_LE(want - MAX_LAG_NS, start);
	/* The engine's time on the ring is added. */
	EXPECT_LE(want, used);
	EXPECT_GE(want + want / 4, used);
	EXPECT_LT(0, cpu);
}

TEST_F_TIMEOUT(modelled, half_a_frame_takes_half_the_time, 60)
{
	uint64_t used = engine_ns(self), half;
	unsigned int i;

	for (i = 0; i < FRAMES; i++) {
		ASSERT_EQ(OK, gpu_flush(&self->vm, 1, gpu_rect(0, 0, WIDTH, HEIGHT / 2)));
	}
	half = engine_ns(self) - used;
	EXPECT_LE(FRAMES * self->frame_ns / 2, half);
	EXPECT_GE(FRAMES * self->frame_ns * 5 / 8, half);
}

/* A job that waits for the engine is not slowed down by the memory that it will need. */
TEST_F_TIMEOUT(modelled, a_preempted_job_needs_no_memory, 60)
{
	struct virtio_gpu_rect rows = gpu_rect(0, 0, WIDTH, 8);
	struct gpu_screen other;
	uint64_t alone, beside;
	struct vm neighbour;
	unsigned int i;

	ASSERT_EQ(0, vm_new_started(&neighbour, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_2d(&neighbour, &other, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   WIDTH, HEIGHT));
	alone = engine_ns(self);
	for (i = 0; i < FRAMES; i++) {
		ASSERT_EQ(OK, gpu_flush(&self->vm, 1, rows));
	}
	alone = engine_ns(self) - alone;
	for (i = 0; i < 20; i++) {
		ASSERT_LE(0, gpu_flush_send(&neighbour, 1, whole()));
	}
	beside = engine_ns(self);
	for (i = 0; i < FRAMES; i++) {
		ASSERT_EQ(OK, gpu_flush(&self->vm, 1, rows));
	}
	beside = engine_ns(self) - beside;
	TH_LOG("%u flushes of 8 rows: %llu ns of engine time alone, %llu ns beside a neighbour",
	       FRAMES, (unsigned long long)alone, (unsigned long long)beside);
	EXPECT_GE(alone + alone / 2, beside);
	vm_delete(&neighbour);
}

TEST_F(modelled, pictures_are_right)
{
	uint32_t *seen, i;
	size_t len;

	for (i = 0; i < WIDTH * HEIGHT; i++)
		self->screen.pixels[i] = i * 2654435761u;
	ASSERT_EQ(0, gpu_show(&self->vm, &self->screen));
	seen = display_map(&self->vm, &len);
	ASSERT_NE(NULL, seen);
	for (i = 0; i < WIDTH * HEIGHT; i++)
		if ((seen[i] ^ self->screen.pixels[i]) & 0xffffff)
			break;
	EXPECT_EQ(WIDTH * HEIGHT, i);
}

/* A guest resets the device while the GPU has work for a second. */
TEST_F_TIMEOUT(modelled, a_reset_ends_a_job_that_takes_long, 60)
{
	struct trials t = { 0 };
	uint64_t start;
	unsigned int i;

	while (trials_go_on(&t)) {
		for (i = 0; i < 10; i++) {
			ASSERT_LE(0, gpu_flush_send(&self->vm, 1, whole()));
		}
		start = now_ns();
		ASSERT_EQ(0, vio_reset(&self->vm));
		/* a slice of the job at most, not all of it */
		trial(&t, now_ns() - start < self->frame_ns);
		ASSERT_EQ(0, vm_start(&self->vm));
		self->vm.ram_used = 0;
		ASSERT_EQ(0, gpu_screen_2d(&self->vm, &self->screen, 1,
					   VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, WIDTH,
					   HEIGHT));
	}
	EXPECT_TRUE(mostly_right(&t));
}

TEST_F(modelled, its_time_is_not_that_of_a_processor)
{
	struct nl_dev d;

	ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &d));
	EXPECT_FALSE(d.engine_on_cpu);
}

TEST_HARNESS_MAIN

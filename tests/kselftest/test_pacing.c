// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frame pacing: what the operator's fps_limit does to a guest.  The machine may
 * be slow and busy: rates are bounded from above closely (a held frame never
 * goes early) and from below generously.
 */
#include <errno.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define BGRX	VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM

/*
 * That something does not wait is seen by the clock, and a busy machine can
 * spoil that once, but not every time.
 */
#define ATTEMPTS	5

FIXTURE(pacing)
{
	struct vm vm;
	struct gpu_screen screen;
	struct virtio_gpu_rect all;
	struct nl nl;
};

FIXTURE_SETUP(pacing)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&self->vm, &self->screen, 1, 32, 32));
	self->all = gpu_rect(0, 0, 32, 32);
}

FIXTURE_TEARDOWN(pacing)
{
	vm_delete(&self->vm);
	nl_close(&self->nl);
}

static int limit(struct nl *nl, struct vm *vm, uint32_t mhz)
{
	return nl_vgpu_set(nl, vm->uuid, -1, mhz);
}

/* Flushes for a time as fast as the device takes them. */
static unsigned int flush_for(struct vm *vm, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	unsigned int n = 0;

	while (now_ms() < end) {
		if (gpu_flush(vm, 1, gpu_rect(0, 0, 32, 32)) != OK)
			return 0;
		n++;
	}
	return n;
}

static int send_info(struct vm *vm)
{
	struct virtio_gpu_ctrl_hdr c;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	return gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408);
}

/* Without a limit, one frame, so that an old schedule is forgotten. */
static int forget(struct nl *nl, struct vm *vm)
{
	int ret = limit(nl, vm, 0);

	if (ret)
		return ret;
	ret = gpu_flush(vm, 1, gpu_rect(0, 0, 32, 32));
	return ret == OK ? 0 : -EPROTO;
}

/* Two flushes: the first goes, the second is held for a second. */
static int hold_one(struct nl *nl, struct vm *vm)
{
	int ret;

	ret = forget(nl, vm);
	if (!ret)
		ret = limit(nl, vm, 1000);
	if (ret)
		return ret;
	ret = gpu_flush(vm, 1, gpu_rect(0, 0, 32, 32));
	if (ret != OK)
		return -EPROTO;
	return gpu_flush_send(vm, 1, gpu_rect(0, 0, 32, 32));
}

/* Whether nothing was used since vq_wait() or vq_collect(). */
static bool still_held(struct vm *vm)
{
	return vq_quiet(vm, VMM_CONTROL, 1);
}

TEST_F_TIMEOUT(pacing, the_rate_is_held, 90)
{
	static const unsigned int fps[] = { 10, 25, 60 };
	struct vm *vm = &self->vm;
	unsigned int i, n, try, free_run;
	bool reached;

	free_run = flush_for(vm, 500) * 2;
	for (i = 0; i < ARRAY_LEN(fps); i++) {
		ASSERT_EQ(0, limit(&self->nl, vm, fps[i] * 1000));
		reached = free_run < fps[i] * 4;
		for (try = 0; try < ATTEMPTS; try++) {
			n = flush_for(vm, 3000);
			TH_LOG("%u frames in 3 s at %u frames/s (%u/s without)",
			       n, fps[i], free_run);
			/* One at each end, and one that keeps the phase. */
			EXPECT_GE(fps[i] * 3 + 3, n);
			if (reached || n >= fps[i] * 3 * 7 / 10)
				break;
		}
		EXPECT_GT(ATTEMPTS, try);
	}
}

TEST_F(pacing, a_lifted_limit_is_forgotten)
{
	struct vm *vm = &self->vm;
	struct nl_vgpu a, b;

	ASSERT_EQ(0, limit(&self->nl, vm, 2000));
	flush_for(vm, 1000);
	ASSERT_EQ(0, limit(&self->nl, vm, 0));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &a));
	EXPECT_LT(0, a.stats[MGPU_A_STATS_THROTTLED]);
	ASSERT_LT(0, flush_for(vm, 500));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &b));
	EXPECT_EQ(a.stats[MGPU_A_STATS_THROTTLED],
		  b.stats[MGPU_A_STATS_THROTTLED]);
}

TEST_F(pacing, the_first_frame_goes_at_once)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(0, limit(&self->nl, vm, 1000));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	EXPECT_EQ(0, nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_THROTTLED));
}

TEST_F(pacing, what_is_behind_a_held_frame_waits_and_keeps_its_order)
{
	struct vm *vm = &self->vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	uint64_t start = 0;
	bool quiet = false;
	uint16_t used = 0;
	int flush = -1, info = -1, try;

	for (try = 0; try < ATTEMPTS && !quiet; try++) {
		start = now_ms();
		flush = hold_one(&self->nl, vm);
		ASSERT_LE(0, flush);
		used = vq->used_idx;
		info = send_info(vm);
		ASSERT_LE(0, info);
		quiet = vq_quiet(vm, VMM_CONTROL, 300);
		ASSERT_EQ(INFO, gpu_result(vm, VMM_CONTROL, info, NULL, 0,
					   VMM_TIMEOUT));
		EXPECT_EQ(flush, vq->used->ring[used % vq->size].id);
		EXPECT_EQ(info, vq->used->ring[(used + 1) % vq->size].id);
		/* The frame before it went after the start. */
		EXPECT_LE(950, now_ms() - start);
	}
	EXPECT_TRUE(quiet);
}

TEST_F(pacing, the_cursor_is_not_held)
{
	struct vm *vm = &self->vm;
	bool good = false;
	int flush, try, i;

	for (try = 0; try < ATTEMPTS && !good; try++) {
		flush = hold_one(&self->nl, vm);
		ASSERT_LE(0, flush);
		for (i = 0; i < 10; i++) {
			ASSERT_EQ(0, gpu_cursor_move(vm, i, i));
		}
		good = still_held(vm);
		ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
					 VMM_TIMEOUT));
	}
	EXPECT_TRUE(good);
}

TEST_F(pacing, what_is_no_frame_is_not_held)
{
	struct vm *vm = &self->vm;
	uint32_t w, h;
	int i;

	ASSERT_EQ(OK, gpu_create_2d(vm, 2, BGRX, 8, 8));
	ASSERT_EQ(0, limit(&self->nl, vm, 1000));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(OK, gpu_flush(vm, 2, gpu_rect(0, 0, 8, 8)));
		ASSERT_EQ(OK, gpu_transfer(vm, 1, self->all, 0));
		ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
	}
	EXPECT_EQ(0, nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_THROTTLED));
	EXPECT_EQ(1, nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_FRAMES));
}

/* Lets a held frame go by another limit; whether it went before its time. */
static int release(struct nl *nl, struct vm *vm, uint32_t mhz)
{
	uint64_t start;
	int flush, ret;

	flush = hold_one(nl, vm);
	if (flush < 0)
		return flush;
	start = now_ms();
	ret = limit(nl, vm, mhz);
	if (ret)
		return ret;
	ret = gpu_result(vm, VMM_CONTROL, flush, NULL, 0, VMM_TIMEOUT);
	return ret == OK ? now_ms() - start < 600 : -EPROTO;
}

TEST_F(pacing, a_lifted_limit_releases_at_once)
{
	int ret = 0, try;

	for (try = 0; try < ATTEMPTS && !ret; try++)
		ret = release(&self->nl, &self->vm, 0);
	EXPECT_EQ(1, ret);
}

TEST_F(pacing, a_raised_limit_releases_soon)
{
	int ret = 0, try;

	for (try = 0; try < ATTEMPTS && !ret; try++)
		ret = release(&self->nl, &self->vm, 50000);
	EXPECT_EQ(1, ret);
}

TEST_F_TIMEOUT(pacing, a_reset_drops_a_held_frame_at_once, 60)
{
	struct vm *vm = &self->vm;
	bool quick = false;
	uint64_t start;
	int try;

	for (try = 0; try < ATTEMPTS && !quick; try++) {
		ASSERT_LE(0, hold_one(&self->nl, vm));
		start = now_ms();
		ASSERT_EQ(0, vio_reset(vm));
		quick = now_ms() - start < 600;
		ASSERT_EQ(0, vm_start(vm));
		/* It never comes back, not even when its time is over. */
		EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, 1300));
		vm->ram_used = 2 << 20;
		ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	}
	EXPECT_TRUE(quick);
	/* The limit is the operator's and stays. */
	start = now_ms();
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	EXPECT_LE(950, now_ms() - start);
}

TEST_F_TIMEOUT(pacing, a_close_with_a_held_frame_is_quick, 60)
{
	struct vm *vm = &self->vm;
	bool quick = false;
	struct nl_vgpu v;
	uint64_t start;
	int try;

	for (try = 0; try < ATTEMPTS && !quick; try++) {
		ASSERT_LE(0, hold_one(&self->nl, vm));
		start = now_ms();
		vm_close(vm);
		quick = now_ms() - start < 700;
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.pinned);
		ASSERT_EQ(0, vm_open(vm, vm->uuid, VMM_RAM));
		vm->made = true;
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	}
	EXPECT_TRUE(quick);
}

TEST_F_TIMEOUT(pacing, memory_can_be_unmapped_under_a_held_frame, 60)
{
	struct vm *vm = &self->vm;
	bool quick = false;
	struct nl_vgpu v;
	uint64_t start;
	int try;

	for (try = 0; try < ATTEMPTS && !quick; try++) {
		ASSERT_LE(0, hold_one(&self->nl, vm));
		start = now_ms();
		ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE, vm->ram_size));
		quick = now_ms() - start < 700;
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		EXPECT_EQ(0, v.pinned);
		ASSERT_EQ(0, vm_map(vm, vm->ram, vm->ram_size, VMM_RAM_BASE));
		ASSERT_EQ(0, vm_start(vm));
		vm->ram_used = 2 << 20;
		ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	}
	EXPECT_TRUE(quick);
}

TEST_F(pacing, another_vgpu_is_not_held)
{
	struct vm *vm = &self->vm, other;
	struct gpu_screen s;
	bool good = false;
	int flush, i, try;

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&other, &s, 1, 32, 32));
	for (try = 0; try < ATTEMPTS && !good; try++) {
		flush = hold_one(&self->nl, vm);
		ASSERT_LE(0, flush);
		for (i = 0; i < 5; i++) {
			ASSERT_EQ(OK, gpu_flush(&other, 1, self->all));
		}
		good = still_held(vm);
		ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
					 VMM_TIMEOUT));
	}
	EXPECT_TRUE(good);
	EXPECT_EQ(0, nl_stat(&self->nl, other.uuid, MGPU_A_STATS_THROTTLED));
	vm_delete(&other);
}

TEST_F_TIMEOUT(pacing, two_vgpus_keep_two_rates, 60)
{
	struct vm *vm = &self->vm, other;
	unsigned int n[2] = { 0, 0 };
	struct gpu_screen s;
	uint64_t end;
	int head[2], try;

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&other, &s, 1, 32, 32));
	ASSERT_EQ(0, limit(&self->nl, vm, 10000));
	ASSERT_EQ(0, limit(&self->nl, &other, 20000));
	head[0] = gpu_flush_send(vm, 1, self->all);
	head[1] = gpu_flush_send(&other, 1, self->all);
	for (try = 0; try < ATTEMPTS; try++) {
		n[0] = 0;
		n[1] = 0;
		end = now_ms() + 3000;
		while (now_ms() < end) {
			if (gpu_result(vm, VMM_CONTROL, head[0], NULL, 0, 5) ==
			    OK) {
				n[0]++;
				head[0] = gpu_flush_send(vm, 1, self->all);
			}
			if (gpu_result(&other, VMM_CONTROL, head[1], NULL, 0,
				       5) == OK) {
				n[1]++;
				head[1] = gpu_flush_send(&other, 1, self->all);
			}
			ASSERT_LE(0, head[0]);
			ASSERT_LE(0, head[1]);
		}
		TH_LOG("%u and %u frames in 3 s at 10 and 20 frames/s", n[0],
		       n[1]);
		EXPECT_GE(33, n[0]);
		EXPECT_GE(63, n[1]);
		if (n[0] >= 21 && n[1] >= 42)
			break;
	}
	EXPECT_GT(ATTEMPTS, try);
	vm_delete(&other);
}

TEST_F(pacing, holds_are_counted)
{
	struct vm *vm = &self->vm;
	struct nl_vgpu a, b;
	int flush;

	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &a));
	EXPECT_EQ(0, a.stats[MGPU_A_STATS_THROTTLED]);
	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
				 VMM_TIMEOUT));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &b));
	/* A host that sleeps for the whole second has nothing left to hold. */
	EXPECT_GE(1, b.stats[MGPU_A_STATS_THROTTLED]);
	EXPECT_EQ(!b.stats[MGPU_A_STATS_THROTTLED],
		  !b.stats[MGPU_A_STATS_THROTTLED_NS]);
	EXPECT_EQ(3, b.stats[MGPU_A_STATS_FRAMES] -
		     a.stats[MGPU_A_STATS_FRAMES]);
}

TEST_F(pacing, time_spent_idle_buys_no_burst)
{
	struct vm *vm = &self->vm;
	unsigned int n;

	ASSERT_EQ(0, limit(&self->nl, vm, 10000));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	sleep_ms(2000);
	n = flush_for(vm, 1000);
	EXPECT_GE(13, n);
}

TEST_HARNESS_MAIN

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

#define OK	VIRTIO_GPU_RESP_OK_NODATA
#define INFO	VIRTIO_GPU_RESP_OK_DISPLAY_INFO
#define BGRX	VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM

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

/* Two flushes: the first goes, the second is held for a second. */
static int hold_one(struct nl *nl, struct vm *vm)
{
	int ret;

	ret = limit(nl, vm, 1000);
	if (ret)
		return ret;
	ret = gpu_flush(vm, 1, gpu_rect(0, 0, 32, 32));
	if (ret != OK)
		return -EPROTO;
	return gpu_flush_send(vm, 1, gpu_rect(0, 0, 32, 32));
}

TEST_F(pacing, the_rate_is_held)
{
	static const unsigned int fps[] = { 10, 25, 60 };
	struct vm *vm = &self->vm;
	unsigned int i, n, free_run;

	free_run = flush_for(vm, 500) * 2;
	for (i = 0; i < ARRAY_LEN(fps); i++) {
		ASSERT_EQ(0, limit(&self->nl, vm, fps[i] * 1000));
		n = flush_for(vm, 3000);
		TH_LOG("%u frames in 3 s at %u frames/s (%u/s without)", n,
		       fps[i], free_run);
		/* One at the start, one that keeps the phase, one at the end. */
		EXPECT_GE(fps[i] * 3 + 3, n);
		if (free_run > fps[i] * 4) {
			EXPECT_LE(fps[i] * 3 * 7 / 10, n);
		}
	}
	ASSERT_EQ(0, limit(&self->nl, vm, 0));
	n = flush_for(vm, 500) * 2;
	if (free_run > fps[2] * 4) {
		EXPECT_LT(fps[2], n);
	}
}

TEST_F(pacing, the_first_frame_goes_at_once)
{
	uint64_t start;

	ASSERT_EQ(0, limit(&self->nl, &self->vm, 1000));
	start = now_ms();
	ASSERT_EQ(OK, gpu_flush(&self->vm, 1, self->all));
	EXPECT_GT(700, now_ms() - start);
}

TEST_F(pacing, what_is_behind_a_held_frame_waits_and_keeps_its_order)
{
	struct vm *vm = &self->vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	uint64_t start = now_ms();
	uint16_t used;
	int flush, info;

	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	used = vq->used_idx;
	info = send_info(vm);
	ASSERT_LE(0, info);
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, 300));
	ASSERT_EQ(INFO, gpu_result(vm, VMM_CONTROL, info, NULL, 0,
				   VMM_TIMEOUT));
	EXPECT_LE(950, now_ms() - start);
	EXPECT_EQ(flush, vq->used->ring[used % vq->size].id);
	EXPECT_EQ(info, vq->used->ring[(used + 1) % vq->size].id);
}

TEST_F(pacing, the_cursor_is_not_held)
{
	struct vm *vm = &self->vm;
	uint64_t start;
	int flush, i;

	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	start = now_ms();
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, gpu_cursor_move(vm, i, i));
	}
	EXPECT_GT(700, now_ms() - start);
	EXPECT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
				 VMM_TIMEOUT));
}

TEST_F(pacing, what_is_no_frame_is_not_held)
{
	struct vm *vm = &self->vm;
	uint64_t start;
	uint32_t w, h;
	int i;

	ASSERT_EQ(OK, gpu_create_2d(vm, 2, BGRX, 8, 8));
	ASSERT_EQ(0, limit(&self->nl, vm, 1000));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	start = now_ms();
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(OK, gpu_flush(vm, 2, gpu_rect(0, 0, 8, 8)));
		ASSERT_EQ(OK, gpu_transfer(vm, 1, self->all, 0));
		ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
	}
	EXPECT_GT(800, now_ms() - start);
}

TEST_F(pacing, a_lifted_limit_releases_at_once)
{
	struct vm *vm = &self->vm;
	uint64_t start;
	int flush;

	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, 100));
	start = now_ms();
	ASSERT_EQ(0, limit(&self->nl, vm, 0));
	ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
				 VMM_TIMEOUT));
	EXPECT_GT(600, now_ms() - start);
}

TEST_F(pacing, a_raised_limit_releases_soon)
{
	struct vm *vm = &self->vm;
	uint64_t start;
	int flush;

	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	start = now_ms();
	ASSERT_EQ(0, limit(&self->nl, vm, 50000));
	ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
				 VMM_TIMEOUT));
	EXPECT_GT(700, now_ms() - start);
}

TEST_F(pacing, a_reset_drops_a_held_frame_at_once)
{
	struct vm *vm = &self->vm;
	uint64_t start;
	int flush;

	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	start = now_ms();
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_GT(600, now_ms() - start);
	ASSERT_EQ(0, vm_start(vm));
	/* It never comes back, not even when its time is over. */
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, 1300));
	/* The limit is the operator's and stays. */
	ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	start = now_ms();
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	EXPECT_LE(950, now_ms() - start);
}

TEST_F(pacing, a_close_with_a_held_frame_is_quick)
{
	struct vm *vm = &self->vm;
	struct nl_vgpu v;
	uint64_t start;

	ASSERT_LE(0, hold_one(&self->nl, vm));
	start = now_ms();
	vm_close(vm);
	EXPECT_GT(700, now_ms() - start);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_FALSE(v.open);
	EXPECT_EQ(0, v.pinned);
}

TEST_F(pacing, memory_can_be_unmapped_under_a_held_frame)
{
	struct vm *vm = &self->vm;
	uint64_t start;
	struct nl_vgpu v;

	ASSERT_LE(0, hold_one(&self->nl, vm));
	start = now_ms();
	ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE, vm->ram_size));
	EXPECT_GT(700, now_ms() - start);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_EQ(0, v.pinned);
}

TEST_F(pacing, another_vgpu_is_not_held)
{
	struct vm *vm = &self->vm, other;
	struct gpu_screen s;
	uint64_t start;
	int flush, i;

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&other, &s, 1, 32, 32));
	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	start = now_ms();
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(OK, gpu_flush(&other, 1, self->all));
	}
	EXPECT_GT(800, now_ms() - start);
	EXPECT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,
				 VMM_TIMEOUT));
	vm_delete(&other);
}

TEST_F(pacing, two_vgpus_keep_two_rates)
{
	struct vm *vm = &self->vm, other;
	unsigned int n[2] = { 0, 0 };
	struct gpu_screen s;
	uint64_t end;
	int head[2];

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&other, &s, 1, 32, 32));
	ASSERT_EQ(0, limit(&self->nl, vm, 10000));
	ASSERT_EQ(0, limit(&self->nl, &other, 20000));
	end = now_ms() + 3000;
	head[0] = gpu_flush_send(vm, 1, self->all);
	head[1] = gpu_flush_send(&other, 1, self->all);
	while (now_ms() < end) {
		if (gpu_result(vm, VMM_CONTROL, head[0], NULL, 0, 5) == OK) {
			n[0]++;
			head[0] = gpu_flush_send(vm, 1, self->all);
		}
		if (gpu_result(&other, VMM_CONTROL, head[1], NULL, 0, 5) ==
		    OK) {
			n[1]++;
			head[1] = gpu_flush_send(&other, 1, self->all);
		}
		ASSERT_LE(0, head[0]);
		ASSERT_LE(0, head[1]);
	}
	TH_LOG("%u and %u frames in 3 s at 10 and 20 frames/s", n[0], n[1]);
	EXPECT_GE(33, n[0]);
	EXPECT_GE(63, n[1]);
	EXPECT_LE(21, n[0]);
	EXPECT_LE(42, n[1]);
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
	EXPECT_EQ(1, b.stats[MGPU_A_STATS_THROTTLED]);
	EXPECT_LE(500000000, b.stats[MGPU_A_STATS_THROTTLED_NS]);
	EXPECT_EQ(2, b.stats[MGPU_A_STATS_FRAMES] -
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

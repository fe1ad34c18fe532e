// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frame pacing: the effect of fps_limit on a guest.  The machine may
 * be slow and busy: rates are bounded from above closely, and at once (a held frame
 * never goes early), and from below generously.
 *
 * The clock shows that an action does not wait.  A frame that is held goes a
 * second after the one before it: an action that completes earlier did not wait for it.
 * This must be so in most trials.
 *
 * needs: quiet
 */
#include <errno.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define BGRX	VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM

#define HOLD_MS		1000	/* of hold_one() */
#define QUICK_MS	900	/* before that, with room for the clock */

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

/*
 * Flushes for a time as fast as the device takes them; how many it took, and in
 * *@took_ms how long that was.
 */
static unsigned int flush_for(struct vm *vm, unsigned int ms,
			      unsigned int *took_ms)
{
	uint64_t start = now_ms();
	unsigned int n = 0;

	do {
		if (gpu_flush(vm, 1, gpu_rect(0, 0, 32, 32)) != OK)
			return 0;
		n++;
		*took_ms = (unsigned int)(now_ms() - start);
	} while (*took_ms < ms);
	return n;
}

/* Return the most frames in a time: one at each end, and one that keeps the phase. */
static unsigned int most(unsigned int fps, unsigned int ms)
{
	return (fps * (ms + 1) + 999) / 1000 + 2;
}

/* Fewest, in a second measurement at the latest. */
static unsigned int fewest(unsigned int fps, unsigned int ms)
{
	return fps * ms * 7 / 10000;
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

/* Return whether no buffer was used since vq_wait() or vq_collect(). */
static bool still_held(struct vm *vm)
{
	return vq_quiet(vm, VMM_CONTROL, 1);
}

TEST_F_TIMEOUT(pacing, the_rate_is_held, 90)
{
	static const struct {
		unsigned int fps;
		unsigned int ms;
	} t[] = { { 10, 2000 }, { 25, 1500 }, { 60, 1500 } };
	struct vm *vm = &self->vm;
	unsigned int i, n, try, ms, free_run;

	n = flush_for(vm, 300, &ms);
	free_run = n * 1000 / ms;
	for (i = 0; i < ARRAY_LEN(t); i++) {
		ASSERT_EQ(0, limit(&self->nl, vm, t[i].fps * 1000));
		for (try = 0; try < 2; try++) {
			n = flush_for(vm, t[i].ms, &ms);
			TH_LOG("%u frames in %u ms at %u frames/s (%u/s without)",
			       n, ms, t[i].fps, free_run);
			EXPECT_GE(most(t[i].fps, ms), n);
			if (n >= fewest(t[i].fps, ms) ||
			    free_run < t[i].fps * 4)
				break;
			if (!try)
				measured_again("frames at %u frames/s (got %u, wanted %u)",
					       t[i].fps, n,
					       fewest(t[i].fps, ms));
		}
		EXPECT_GT(2, try);
	}
}

TEST_F_TIMEOUT(pacing, the_stricter_of_limit_and_target_is_held, 60)
{
	static const struct {
		unsigned int limit, target, fps;
	} t[] = { { 20, 10, 10 }, { 10, 20, 10 }, { 10, 0, 10 }, { 0, 10, 10 } };
	struct vm *vm = &self->vm;
	unsigned int i, n, ms;

	for (i = 0; i < ARRAY_LEN(t); i++) {
		ASSERT_EQ(0, limit(&self->nl, vm, t[i].limit * 1000));
		ASSERT_EQ(0, nl_vgpu_set_target(&self->nl, vm->uuid,
						t[i].target * 1000));
		n = flush_for(vm, 1000, &ms);
		TH_LOG("%u frames in %u ms with limit %u and target %u", n, ms,
		       t[i].limit, t[i].target);
		EXPECT_LT(0, n);
		EXPECT_GE(most(t[i].fps, ms), n);
	}
}

TEST_F(pacing, a_removed_limit_leaves_the_target_in_force)
{
	uint64_t start;

	ASSERT_EQ(0, nl_vgpu_set_target(&self->nl, self->vm.uuid, 1000));
	ASSERT_EQ(0, limit(&self->nl, &self->vm, 50000));
	start = now_ms();
	ASSERT_EQ(OK, gpu_flush(&self->vm, 1, self->all));
	ASSERT_LE(0, gpu_flush_send(&self->vm, 1, self->all));
	ASSERT_EQ(0, limit(&self->nl, &self->vm, 0));
	/* Unless the machine stood still for the second of the frame. */
	EXPECT_TRUE(still_held(&self->vm) || now_ms() - start >= 990);
}

TEST_F(pacing, a_lifted_limit_is_forgotten)
{
	struct vm *vm = &self->vm;
	struct nl_vgpu a, b;
	unsigned int ms;

	ASSERT_EQ(0, limit(&self->nl, vm, 2000));
	ASSERT_LT(0, flush_for(vm, 600, &ms));
	ASSERT_EQ(0, limit(&self->nl, vm, 0));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &a));
	EXPECT_LT(0, a.stats[MGPU_A_STATS_THROTTLED]);
	ASSERT_LT(0, flush_for(vm, 200, &ms));
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

/*
 * Hold a frame, and check that another action completes before the frame would go.
 * Where the machine took long to get there, there is no trial.
 */
#define WHILE_HELD(vm, flush, t, action) do {				\
	uint64_t start_ = now_ms();					\
	bool late_;							\
									\
	flush = hold_one(&self->nl, vm);				\
	ASSERT_LE(0, flush);						\
	late_ = now_ms() - start_ > QUICK_MS / 2;			\
	action								\
	if (!late_)							\
		trial(t, still_held(vm));				\
	ASSERT_EQ(0, limit(&self->nl, vm, 0));				\
	ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, flush, NULL, 0,	\
				 VMM_TIMEOUT));				\
} while (0)

TEST_F_TIMEOUT(pacing, commands_behind_a_held_frame_wait_and_keep_their_order, 60)
{
	struct vm *vm = &self->vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	uint64_t start;
	uint16_t used;
	int flush, info;

	start = now_ms();
	flush = hold_one(&self->nl, vm);
	ASSERT_LE(0, flush);
	used = vq->used_idx;
	info = send_info(vm);
	ASSERT_LE(0, info);
	ASSERT_EQ(INFO, gpu_result(vm, VMM_CONTROL, info, NULL, 0,
				   VMM_TIMEOUT));
	EXPECT_EQ(flush, vq->used->ring[used % vq->size].id);
	EXPECT_EQ(info, vq->used->ring[(used + 1) % vq->size].id);
	/* The frame before it went after the start. */
	EXPECT_LE(HOLD_MS - 1, now_ms() - start);
}

TEST_F_TIMEOUT(pacing, the_cursor_is_not_held, 60)
{
	struct vm *vm = &self->vm;
	struct trials t = { 0 };
	int flush, i;

	while (trials_go_on(&t))
		WHILE_HELD(vm, flush, &t, {
			for (i = 0; i < 10; i++) {
				ASSERT_EQ(0, gpu_cursor_move(vm, i, i));
			}
		});
	EXPECT_TRUE(mostly_right(&t));
}

TEST_F(pacing, other_commands_than_frames_are_not_held)
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

/*
 * Lets a held frame go by another limit; whether it went before its time.  -EAGAIN:
 * its time was over before the limit was changed.
 */
static int release(struct nl *nl, struct vm *vm, uint32_t mhz)
{
	uint64_t start = now_ms();
	int flush, ret;

	flush = hold_one(nl, vm);
	if (flush < 0)
		return flush;
	ret = limit(nl, vm, mhz);
	if (ret)
		return ret;
	if (now_ms() - start > QUICK_MS / 2) {
		gpu_result(vm, VMM_CONTROL, flush, NULL, 0, VMM_TIMEOUT);
		return -EAGAIN;
	}
	ret = gpu_result(vm, VMM_CONTROL, flush, NULL, 0, VMM_TIMEOUT);
	return ret == OK ? now_ms() - start < QUICK_MS : -EPROTO;
}

static int releases(struct nl *nl, struct vm *vm, uint32_t mhz)
{
	uint64_t end = now_ms() + 2 * (uint64_t)VMM_TIMEOUT;
	struct trials t = { 0 };
	int ret;

	while (trials_go_on(&t)) {
		ret = release(nl, vm, mhz);
		if (ret >= 0)
			trial(&t, ret);
		else if (ret != -EAGAIN || now_ms() > end)
			return ret;
	}
	return mostly_right(&t);
}

TEST_F_TIMEOUT(pacing, a_lifted_limit_releases_at_once, 60)
{
	EXPECT_EQ(1, releases(&self->nl, &self->vm, 0));
}

TEST_F_TIMEOUT(pacing, a_raised_limit_releases_soon, 60)
{
	EXPECT_EQ(1, releases(&self->nl, &self->vm, 50000));
}

/* An action on a held frame takes effect before its time, counted from its hold. */
#define QUICKLY(vm, t, action) do {					\
	uint64_t start_ = now_ms();					\
	bool late_;							\
									\
	ASSERT_LE(0, hold_one(&self->nl, vm));				\
	late_ = now_ms() - start_ > QUICK_MS / 2;			\
	action								\
	if (!late_)							\
		trial(t, now_ms() - start_ < QUICK_MS);			\
} while (0)

TEST_F_TIMEOUT(pacing, a_reset_drops_a_held_frame_at_once, 60)
{
	struct vm *vm = &self->vm;
	struct trials t = { 0 };
	uint64_t start;

	while (trials_go_on(&t)) {
		QUICKLY(vm, &t, ASSERT_EQ(0, vio_reset(vm)););
		ASSERT_EQ(0, vm_start(vm));
		vm->ram_used = 2 << 20;
		ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	}
	EXPECT_TRUE(mostly_right(&t));
	/* It never comes back, not even when its time is over. */
	ASSERT_LE(0, hold_one(&self->nl, vm));
	ASSERT_EQ(0, vio_reset(vm));
	ASSERT_EQ(0, vm_start(vm));
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, HOLD_MS + VMM_QUIET));
	vm->ram_used = 2 << 20;
	ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	/* The limit is the operator's and stays. */
	start = now_ms();
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	EXPECT_LE(HOLD_MS - 1, now_ms() - start);
}

TEST_F_TIMEOUT(pacing, a_close_with_a_held_frame_is_quick, 60)
{
	struct vm *vm = &self->vm;
	struct trials t = { 0 };
	struct nl_vgpu v;

	while (trials_go_on(&t)) {
		QUICKLY(vm, &t, vm_close(vm););
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.pinned);
		ASSERT_EQ(0, vm_open(vm, vm->uuid, VMM_RAM));
		vm->made = true;
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	}
	EXPECT_TRUE(mostly_right(&t));
}

TEST_F_TIMEOUT(pacing, memory_can_be_unmapped_under_a_held_frame, 60)
{
	struct vm *vm = &self->vm;
	struct trials t = { 0 };
	struct nl_vgpu v;

	while (trials_go_on(&t)) {
		QUICKLY(vm, &t, ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE,
						      vm->ram_size)););
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
		EXPECT_EQ(0, v.pinned);
		ASSERT_EQ(0, vm_map(vm, vm->ram, vm->ram_size, VMM_RAM_BASE));
		ASSERT_EQ(0, vm_start(vm));
		vm->ram_used = 2 << 20;
		ASSERT_EQ(0, gpu_screen_blob(vm, &self->screen, 1, 32, 32));
	}
	EXPECT_TRUE(mostly_right(&t));
}

TEST_F_TIMEOUT(pacing, another_vgpu_is_not_held, 60)
{
	struct vm *vm = &self->vm, other;
	struct trials t = { 0 };
	struct gpu_screen s;
	int flush, i;

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&other, &s, 1, 32, 32));
	while (trials_go_on(&t))
		WHILE_HELD(vm, flush, &t, {
			for (i = 0; i < 5; i++) {
				ASSERT_EQ(OK, gpu_flush(&other, 1, self->all));
			}
		});
	EXPECT_TRUE(mostly_right(&t));
	EXPECT_EQ(0, nl_stat(&self->nl, other.uuid, MGPU_A_STATS_THROTTLED));
	vm_delete(&other);
}

TEST_F_TIMEOUT(pacing, two_vgpus_keep_two_rates, 60)
{
	static const unsigned int fps[] = { 10, 20 };
	struct vm *vm = &self->vm, other, *both[] = { vm, &other };
	unsigned int n[2], ms, i, try;
	struct gpu_screen s;
	uint64_t start;
	int head[2];

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&other, &s, 1, 32, 32));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, limit(&self->nl, both[i], fps[i] * 1000));
		head[i] = gpu_flush_send(both[i], 1, self->all);
		ASSERT_LE(0, head[i]);
	}
	for (try = 0; try < 2; try++) {
		n[0] = 0;
		n[1] = 0;
		start = now_ms();
		do {
			for (i = 0; i < 2; i++) {
				if (gpu_result(both[i], VMM_CONTROL, head[i],
					       NULL, 0, 5) != OK)
					continue;
				n[i]++;
				head[i] = gpu_flush_send(both[i], 1, self->all);
				ASSERT_LE(0, head[i]);
			}
			ms = (unsigned int)(now_ms() - start);
		} while (ms < 2000);
		TH_LOG("%u and %u frames in %u ms at 10 and 20 frames/s", n[0],
		       n[1], ms);
		/* Each may show one frame more at the start of the window. */
		EXPECT_GE(most(fps[0], ms) + 1, n[0]);
		EXPECT_GE(most(fps[1], ms) + 1, n[1]);
		if (n[0] >= fewest(fps[0], ms) && n[1] >= fewest(fps[1], ms))
			break;
		if (!try)
			measured_again("frames of two vGPUs (got %u and %u, wanted %u and %u)",
				       n[0], n[1], fewest(fps[0], ms),
				       fewest(fps[1], ms));
	}
	EXPECT_GT(2, try);
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
	unsigned int n, ms;

	ASSERT_EQ(0, limit(&self->nl, vm, 10000));
	ASSERT_EQ(OK, gpu_flush(vm, 1, self->all));
	sleep_ms(1000);
	n = flush_for(vm, 700, &ms);
	EXPECT_GE(most(10, ms), n);
}

TEST_HARNESS_MAIN

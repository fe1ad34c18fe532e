// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: queries, settings, and errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "compute.h"
#include "nl.h"
#include "vmm.h"

#define MANY	1024

#define DEFAULT_POLICY	"weighted"

static const char *const policies[] = {
	"best-effort", "equal", "fixed", "weighted"
};

FIXTURE(nl)
{
	struct nl nl;
	char uuid[2][VMM_UUID_LEN + 1];
};

FIXTURE_SETUP(nl)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	mdev_uuid_new(self->uuid[0]);
	mdev_uuid_new(self->uuid[1]);
	ASSERT_EQ(0, mdev_create("small", self->uuid[0]));
	ASSERT_EQ(0, mdev_create("large", self->uuid[1]));
}

FIXTURE_TEARDOWN(nl)
{
	nl_dev_set(&self->nl, VMM_PARENT, DEFAULT_POLICY,
		   MGPU_JOB_TIMEOUT_DEFAULT);
	mdev_remove(self->uuid[0]);
	mdev_remove(self->uuid[1]);
	nl_close(&self->nl);
}

static void put_setting(struct nl_msg *m, const char *uuid, int64_t weight,
			int64_t fps)
{
	nl_put_setting(m, uuid, weight, fps, NL_KEEP, NL_KEEP, NL_KEEP);
}

TEST_F(nl, a_new_vgpu_has_its_type_s_settings)
{
	struct nl_vgpu v, w;

	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_STREQ(self->uuid[0], v.uuid);
	EXPECT_STREQ("small", v.type);
	EXPECT_STREQ(VMM_PARENT, v.dev_name);
	EXPECT_NE(0, v.id);
	EXPECT_FALSE(v.open);
	EXPECT_EQ(0, v.tgid);
	EXPECT_EQ(0, v.fps_limit);
	EXPECT_EQ(0, v.gpu_limit);
	EXPECT_EQ(MGPU_GPU_PERIOD_DEFAULT, v.gpu_period);
	EXPECT_EQ(0, v.gpu_burst);
	EXPECT_EQ(1024, v.mode_width);
	EXPECT_EQ(768, v.mode_height);
	EXPECT_FALSE(v.has_interval);
	EXPECT_FALSE(v.has_latency);
	EXPECT_EQ(0, v.mem_used);
	EXPECT_EQ(0, v.pinned);
	EXPECT_EQ(~0u, v.charge_source);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[1], &w));
	EXPECT_NE(v.id, w.id);
	EXPECT_EQ(v.dev_id, w.dev_id);
	EXPECT_LT(v.weight, w.weight);
	EXPECT_LT(v.mem_limit, w.mem_limit);
}

TEST_F(nl, a_dump_lists_every_vgpu_once)
{
	static struct nl_vgpu v[64];
	int n, i, seen[2] = { 0, 0 };

	n = nl_vgpu_dump(&self->nl, v, ARRAY_LEN(v));
	ASSERT_LE(2, n);
	EXPECT_EQ(mdev_count(), n);
	for (i = 0; i < n; i++) {
		seen[0] += !strcmp(v[i].uuid, self->uuid[0]);
		seen[1] += !strcmp(v[i].uuid, self->uuid[1]);
	}
	EXPECT_EQ(1, seen[0]);
	EXPECT_EQ(1, seen[1]);
}

TEST_F(nl, an_open_vgpu_names_its_vmm)
{
	struct nl_vgpu v;
	struct vm vm;

	ASSERT_EQ(0, vm_open(&vm, self->uuid[0], VMM_RAM));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_TRUE(v.open);
	EXPECT_EQ(getpid(), v.tgid);
	vm_close(&vm);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_FALSE(v.open);
}

TEST_F(nl, settings_are_set_one_by_one)
{
	struct nl_vgpu v;

	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->uuid[0], 777, -1));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_EQ(777, v.weight);
	EXPECT_EQ(0, v.fps_limit);
	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->uuid[0], -1, 59940));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_EQ(777, v.weight);
	EXPECT_EQ(59940, v.fps_limit);
	ASSERT_EQ(0, nl_vgpu_set(&self->nl, self->uuid[0], 1, 0));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_EQ(1, v.weight);
	EXPECT_EQ(0, v.fps_limit);
}

TEST_F(nl, a_limit_and_a_target_are_two_settings)
{
	struct nl *nl = &self->nl;
	struct nl_vgpu v;

	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(0, v.fps_limit);
	EXPECT_EQ(0, v.fps_target);
	EXPECT_STREQ("", v.fps_limit_by);
	EXPECT_STREQ("", v.fps_target_by);

	ASSERT_EQ(0, prctl(PR_SET_NAME, "operator"));
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], -1, 30000));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "a controller of 20 bytes"));
	ASSERT_EQ(0, nl_vgpu_set_target(nl, self->uuid[0], 20000));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(30000, v.fps_limit);
	EXPECT_EQ(20000, v.fps_target);
	EXPECT_STREQ("operator", v.fps_limit_by);
	EXPECT_STREQ("a controller of", v.fps_target_by);

	/* Whichever is removed, the other one stays. */
	ASSERT_EQ(0, nl_vgpu_set_target(nl, self->uuid[0], 0));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(30000, v.fps_limit);
	EXPECT_EQ(0, v.fps_target);
	EXPECT_STREQ("operator", v.fps_limit_by);
	EXPECT_STREQ("", v.fps_target_by);
	ASSERT_EQ(0, nl_vgpu_set_target(nl, self->uuid[0], 1000));
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], 7, 0));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(0, v.fps_limit);
	EXPECT_EQ(1000, v.fps_target);
	EXPECT_STREQ("", v.fps_limit_by);

	EXPECT_EQ(-ERANGE, nl_vgpu_set_target(nl, self->uuid[0], 999));
	EXPECT_EQ(-ERANGE, nl_vgpu_set_target(nl, self->uuid[0], 10000001));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(1000, v.fps_target);
	EXPECT_EQ(7, v.weight);
}

TEST_F(nl, engine_time_has_a_limit_and_a_target)
{
	struct nl *nl = &self->nl;
	struct nl_vgpu v;

	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(0, v.gpu_limit);
	EXPECT_EQ(0, v.gpu_target);
	EXPECT_STREQ("", v.gpu_limit_by);
	EXPECT_STREQ("", v.gpu_target_by);

	ASSERT_EQ(0, prctl(PR_SET_NAME, "operator"));
	ASSERT_EQ(0, nl_vgpu_set_full(nl, self->uuid[0], -1, -1, 300000,
				      -1, -1));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "controller"));
	ASSERT_EQ(0, nl_vgpu_set_gpu_target(nl, self->uuid[0], 200000));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(300000, v.gpu_limit);
	EXPECT_EQ(200000, v.gpu_target);
	EXPECT_STREQ("operator", v.gpu_limit_by);
	EXPECT_STREQ("controller", v.gpu_target_by);
	EXPECT_EQ(0, v.fps_target);

	ASSERT_EQ(0, nl_vgpu_set_gpu_target(nl, self->uuid[0], 0));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(300000, v.gpu_limit);
	EXPECT_EQ(0, v.gpu_target);
	EXPECT_STREQ("", v.gpu_target_by);

	EXPECT_EQ(-ERANGE, nl_vgpu_set_gpu_target(nl, self->uuid[0], 999));
	EXPECT_EQ(-ERANGE, nl_vgpu_set_gpu_target(nl, self->uuid[0], 1000001));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(0, v.gpu_target);
}

static int set_gpu(struct nl *nl, const char *uuid, int64_t limit,
		   int64_t period, int64_t burst)
{
	return nl_vgpu_set_full(nl, uuid, NL_KEEP, NL_KEEP, limit, period,
				burst);
}

TEST_F(nl, gpu_settings_are_set_one_by_one)
{
	struct nl *nl = &self->nl;
	struct nl_vgpu v;

	ASSERT_EQ(0, set_gpu(nl, self->uuid[0], 305000, NL_KEEP, NL_KEEP));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(305000, v.gpu_limit);
	EXPECT_EQ(MGPU_GPU_PERIOD_DEFAULT, v.gpu_period);
	EXPECT_EQ(0, v.gpu_burst);
	ASSERT_EQ(0, set_gpu(nl, self->uuid[0], NL_KEEP, 10000, NL_KEEP));
	ASSERT_EQ(0, set_gpu(nl, self->uuid[0], NL_KEEP, NL_KEEP, 500));
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], 77, 30000));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(77, v.weight);
	EXPECT_EQ(30000, v.fps_limit);
	EXPECT_EQ(305000, v.gpu_limit);
	EXPECT_EQ(10000, v.gpu_period);
	EXPECT_EQ(500, v.gpu_burst);
	/* Without a limit the other two are kept for the next one. */
	ASSERT_EQ(0, set_gpu(nl, self->uuid[0], 0, NL_KEEP, NL_KEEP));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(0, v.gpu_limit);
	EXPECT_EQ(10000, v.gpu_period);
	EXPECT_EQ(500, v.gpu_burst);
	ASSERT_EQ(0, nl_vgpu_set_full(nl, self->uuid[0], 1, 2000, 1000000,
				      1000, 0));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(1, v.weight);
	EXPECT_EQ(2000, v.fps_limit);
	EXPECT_EQ(1000000, v.gpu_limit);
	EXPECT_EQ(1000, v.gpu_period);
	EXPECT_EQ(0, v.gpu_burst);
	/* And the other vGPU's are its own. */
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[1], &v));
	EXPECT_EQ(0, v.gpu_limit);
	EXPECT_EQ(MGPU_GPU_PERIOD_DEFAULT, v.gpu_period);
}

TEST_F(nl, limits_of_gpu_settings_are_kept)
{
	static const struct {
		int64_t limit, period, burst;
		const char *says;	/* NULL: it is set */
	} t[] = {
		{ 0, -1, -1, NULL }, { 1000, -1, -1, NULL },
		{ 1000000, -1, -1, NULL },
		{ 1, -1, -1, "parts per million" },
		{ 999, -1, -1, "parts per million" },
		{ 1000001, -1, -1, "1000000" },
		{ 0xffffffff, -1, -1, "parts per million" },
		{ -1, 1000, -1, NULL }, { -1, 1000000, -1, NULL },
		{ -1, 0, -1, "microseconds" }, { -1, 999, -1, "1000" },
		{ -1, 1000001, -1, "1000000" },
		{ -1, 0xffffffff, -1, "microseconds" },
		{ -1, -1, 0, NULL }, { -1, -1, 1000000, NULL },
		{ -1, -1, 1000001, "1000000" },
		{ -1, -1, 0xffffffff, "microseconds" },
		/* A single wrong setting: none is set. */
		{ 500000, 20000, 1000001, "gpu-burst" },
		{ 500000, 999, 2000, "gpu-period" },
		{ 999, 20000, 2000, "gpu-limit" },
	};
	struct nl *nl = &self->nl;
	struct nl_vgpu v;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_LEN(t); i++) {
		ASSERT_EQ(0, set_gpu(nl, self->uuid[0], 250000, 5000, 700));
		ret = set_gpu(nl, self->uuid[0], t[i].limit, t[i].period,
			      t[i].burst);
		EXPECT_EQ(t[i].says ? -ERANGE : 0, ret);
		if (t[i].says) {
			EXPECT_NE(NULL, strstr(nl->text, t[i].says)) {
				TH_LOG("%u: %s", i, nl->text);
			}
			EXPECT_NE(0, nl->text_off);
		}
		ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
		EXPECT_EQ(t[i].says || t[i].limit < 0 ? 250000 : t[i].limit,
			  v.gpu_limit);
		EXPECT_EQ(t[i].says || t[i].period < 0 ? 5000 : t[i].period,
			  v.gpu_period);
		EXPECT_EQ(t[i].says || t[i].burst < 0 ? 700 : t[i].burst,
			  v.gpu_burst);
	}
}

TEST_F(nl, a_mode_is_at_most_the_type_s_largest)
{
	static const struct {
		int64_t width, height;
		int err;		/* 0: it is set */
		const char *says;
	} t[] = {
		{ 64, 64, 0, NULL }, { 1024, 768, 0, NULL },
		{ 641, 481, 0, NULL }, { 1024, 64, 0, NULL },
		{ 64, 768, 0, NULL },
		{ 63, 480, -ERANGE, "64 x 64" },
		{ 640, 63, -ERANGE, "64 x 64" },
		{ 0, 480, -ERANGE, "64 x 64" }, { 640, 0, -ERANGE, "64 x 64" },
		{ 1025, 768, -ERANGE, "larger type" },
		{ 1024, 769, -ERANGE, "larger type" },
		{ 0xffffffff, 480, -ERANGE, "larger type" },
		/* Not what is left of them in 16 bits. */
		{ 65536 + 640, 65536 + 480, -ERANGE, "larger type" },
		{ 640, -1, -EINVAL, "mode-height" },
		{ -1, 480, -EINVAL, "mode-width" },
		{ 0, -1, -EINVAL, "mode-height" },
	};
	struct nl *nl = &self->nl;
	struct nl_vgpu v;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(t); i++) {
		ASSERT_EQ(0, nl_vgpu_set_mode(nl, self->uuid[0], 800, 600));
		EXPECT_EQ(t[i].err, nl_vgpu_set_mode(nl, self->uuid[0],
						     t[i].width, t[i].height));
		if (t[i].err) {
			EXPECT_NE(NULL, strstr(nl->text, t[i].says)) {
				TH_LOG("%u: %s", i, nl->text);
			}
			EXPECT_NE(0, nl->text_off);
		}
		ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
		EXPECT_EQ(t[i].err ? 800 : t[i].width, v.mode_width);
		EXPECT_EQ(t[i].err ? 600 : t[i].height, v.mode_height);
	}
	/* Other settings leave it, and its default comes back. */
	ASSERT_EQ(0, nl_vgpu_set_mode(nl, self->uuid[0], 800, 600));
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], 77, 30000));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(800, v.mode_width);
	ASSERT_EQ(0, nl_vgpu_set_mode(nl, self->uuid[0], 0, 0));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(77, v.weight);
	EXPECT_EQ(1024, v.mode_width);
	EXPECT_EQ(768, v.mode_height);
	/* The other one is of a type with a larger mode. */
	ASSERT_EQ(0, nl_vgpu_set_mode(nl, self->uuid[1], 1025, 769));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[1], &v));
	EXPECT_EQ(1025, v.mode_width);
	EXPECT_EQ(769, v.mode_height);
}

TEST_F(nl, limits_of_settings_are_kept)
{
	static const struct {
		int64_t weight, fps;
		bool ok;
	} t[] = {
		{ 1, -1, true }, { 10000, -1, true }, { 0, -1, false },
		{ 10001, -1, false }, { 0xffffffff, -1, false },
		{ -1, 0, true }, { -1, 1000, true }, { -1, 10000000, true },
		{ -1, 1, false }, { -1, 999, false }, { -1, 10000001, false },
		{ -1, 0xffffffff, false },
	};
	struct nl *nl = &self->nl;
	struct nl_vgpu v;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_LEN(t); i++) {
		ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], 50, 5000));
		ret = nl_vgpu_set(nl, self->uuid[0], t[i].weight, t[i].fps);
		ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
		if (t[i].ok) {
			EXPECT_EQ(0, ret);
			EXPECT_EQ(t[i].weight < 0 ? 50 : t[i].weight, v.weight);
			EXPECT_EQ(t[i].fps < 0 ? 5000 : t[i].fps, v.fps_limit);
		} else {
			EXPECT_EQ(-ERANGE, ret);
			EXPECT_EQ(50, v.weight);
			EXPECT_EQ(5000, v.fps_limit);
		}
	}
}

TEST_F(nl, every_refusal_says_why)
{
	struct nl *nl = &self->nl;
	char none[VMM_UUID_LEN + 1];
	struct nl_vgpu v;
	struct nl_msg m;
	size_t at;

	mdev_uuid_new(none);
	EXPECT_EQ(-ENODEV, nl_vgpu_get(nl, none, &v));
	EXPECT_LT(10, strlen(nl->text));
	EXPECT_NE(0, nl->text_off);
	EXPECT_EQ(-EINVAL, nl_vgpu_get(nl, "not a uuid", &v));
	EXPECT_LT(10, strlen(nl->text));
	EXPECT_EQ(-ENODEV, nl_vgpu_set(nl, none, 5, -1));
	EXPECT_LT(10, strlen(nl->text));
	EXPECT_EQ(-ERANGE, nl_vgpu_set(nl, self->uuid[0], -1, 5));
	EXPECT_NE(NULL, strstr(nl->text, "millihertz"));
	EXPECT_NE(0, nl->text_off);
	EXPECT_EQ(-ERANGE, nl_vgpu_set(nl, self->uuid[0], 0, -1));
	EXPECT_LT(5, strlen(nl->text));
	EXPECT_EQ(-EINVAL, nl_vgpu_set(nl, self->uuid[0], -1, -1));
	EXPECT_LT(10, strlen(nl->text));

	/* Nothing at all. */
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	EXPECT_EQ(-EINVAL, nl_talk(nl, &m));
	EXPECT_LT(10, strlen(nl->text));

	/* No vGPU is named. */
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	at = nl_nest(&m, MGPU_A_BATCH_VGPU);
	nl_put_u32(&m, MGPU_A_VGPU_WEIGHT, 5);
	nl_nest_end(&m, at);
	EXPECT_EQ(-EINVAL, nl_talk(nl, &m));
	EXPECT_LT(10, strlen(nl->text));

	/* Named twice over. */
	nl_begin(nl, &m, MGPU_CMD_VGPU_GET, 0);
	nl_put_u32(&m, MGPU_A_VGPU_ID, 1);
	nl_put_str(&m, MGPU_A_VGPU_UUID, self->uuid[0]);
	EXPECT_EQ(-EINVAL, nl_talk(nl, &m));
	EXPECT_LT(10, strlen(nl->text));
}

TEST_F(nl, unknown_and_read_only_attributes_are_refused)
{
	static const uint16_t attrs[] = {
		MGPU_A_VGPU_MEM_LIMIT, MGPU_A_VGPU_OPEN, MGPU_A_VGPU_STATS,
		MGPU_A_VGPU_FRAME_INTERVAL_HIST, MGPU_A_VGPU_LATENCY_HIST,
		MGPU_A_VGPU_MAX + 1, 200,
	};
	struct nl *nl = &self->nl;
	struct nl_msg m;
	struct nl_vgpu v;
	unsigned int i;
	size_t at;

	for (i = 0; i < ARRAY_LEN(attrs); i++) {
		nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
		at = nl_nest(&m, MGPU_A_BATCH_VGPU);
		nl_put_str(&m, MGPU_A_VGPU_UUID, self->uuid[0]);
		nl_put_u32(&m, MGPU_A_VGPU_WEIGHT, 5);
		nl_put_u32(&m, attrs[i], 5);
		nl_nest_end(&m, at);
		EXPECT_GT(0, nl_talk(nl, &m)) {
			TH_LOG("attribute %u", attrs[i]);
		}
	}
	/* Also in the message itself, and wrong sizes. */
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	put_setting(&m, self->uuid[0], 5, -1);
	nl_put_u32(&m, 77, 1);
	EXPECT_GT(0, nl_talk(nl, &m));
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	at = nl_nest(&m, MGPU_A_BATCH_VGPU);
	nl_put_str(&m, MGPU_A_VGPU_UUID, self->uuid[0]);
	nl_put(&m, MGPU_A_VGPU_WEIGHT, "\5", 2);
	nl_nest_end(&m, at);
	EXPECT_GT(0, nl_talk(nl, &m));
	nl_begin(nl, &m, 99, 0);
	EXPECT_GT(0, nl_talk(nl, &m));

	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_NE(5, v.weight);
}

TEST_F(nl, a_batch_is_all_or_nothing)
{
	struct nl *nl = &self->nl;
	struct nl_vgpu v[2];
	char none[VMM_UUID_LEN + 1];
	struct nl_msg m;
	unsigned int i;
	int kind;

	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], 10, 0));
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[1], 20, 0));
	mdev_uuid_new(none);
	for (kind = 0; kind < 7; kind++) {
		nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
		nl_put_setting(&m, self->uuid[0], 11, 30000, 300000, 10000, 9);
		put_setting(&m, self->uuid[1], 21, 60000);
		switch (kind) {
		case 0:
			put_setting(&m, none, 5, -1);
			break;
		case 1:
			put_setting(&m, self->uuid[0], 12, -1);
			break;
		case 2:
			put_setting(&m, self->uuid[1], -1, 7);
			break;
		case 3:
			put_setting(&m, "rubbish", 5, -1);
			break;
		case 4:
			nl_put_setting(&m, self->uuid[1], -1, -1, 999, -1, -1);
			break;
		case 5:
			nl_put_setting(&m, self->uuid[1], -1, -1, -1, -1,
				       MGPU_GPU_BURST_MAX + 1);
			break;
		case 6:
			nl_put_mode(&m, self->uuid[1], 640, 63);
			break;
		}
		EXPECT_GT(0, nl_talk(nl, &m));
		EXPECT_LT(5, strlen(nl->text));
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[i], &v[i]));
			EXPECT_EQ(i ? 20 : 10, v[i].weight);
			EXPECT_EQ(0, v[i].fps_limit);
			EXPECT_EQ(0, v[i].gpu_limit);
			EXPECT_EQ(MGPU_GPU_PERIOD_DEFAULT, v[i].gpu_period);
			EXPECT_EQ(0, v[i].gpu_burst);
		}
	}
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	nl_put_setting(&m, self->uuid[0], 11, 30000, 300000, 10000, 9);
	put_setting(&m, self->uuid[1], 21, 60000);
	EXPECT_EQ(0, nl_talk(nl, &m));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v[0]));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[1], &v[1]));
	EXPECT_EQ(11, v[0].weight);
	EXPECT_EQ(30000, v[0].fps_limit);
	EXPECT_EQ(300000, v[0].gpu_limit);
	EXPECT_EQ(10000, v[0].gpu_period);
	EXPECT_EQ(9, v[0].gpu_burst);
	EXPECT_EQ(21, v[1].weight);
	EXPECT_EQ(0, v[1].gpu_limit);
	EXPECT_EQ(60000, v[1].fps_limit);
}

/*
 * Try all that the family offers on a socket of the initial network namespace.  Return
 * 0 if each try is refused with -EPERM, or else the number of the first that is not.
 */
static int refused(struct nl *nl, uint32_t vgpu, const char *uuid)
{
	struct sockaddr_nl sa;
	socklen_t len = sizeof(sa);
	struct nl_vgpu v;
	struct nl_dev d;
	struct nl_ctx c;
	struct nl_msg m;
	uint8_t cmd;

	if (nl_vgpu_get(nl, uuid, &v) != -EPERM)
		return 1;
	if (nl_vgpu_dump(nl, &v, 1) != -EPERM)
		return 2;
	if (nl_dev_get_id(nl, 0, &d) != -EPERM)
		return 3;
	if (nl_dev_get(nl, VMM_PARENT, &d) != -EPERM)
		return 4;
	if (nl_ctx_get(nl, vgpu, 1, &c) != -EPERM)
		return 5;
	if (nl_ctx_dump(nl, 0, &c, 1) != -EPERM)
		return 6;
	if (nl_subscribe(nl) != -EPERM)
		return 7;
	if (nl_subscribe_contexts(nl) != -EPERM)
		return 8;
	if (nl->events <= 32) {
		if (getsockname(nl->fd, (struct sockaddr *)&sa, &len))
			return 20;
		sa.nl_groups = 1u << (nl->events - 1);
		if (!bind(nl->fd, (struct sockaddr *)&sa, sizeof(sa)) ||
		    errno != EPERM)
			return 9;
	}
	if (nl_vgpu_set(nl, uuid, 5, -1) != -EPERM)
		return 10;
	/* No command that the family has is left out; events are none. */
	for (cmd = MGPU_CMD_DEV_GET; cmd <= MGPU_CMD_MAX; cmd++) {
		int ret;

		nl_begin(nl, &m, cmd, 0);
		ret = nl_talk(nl, &m);
		if (ret != -EPERM && ret != -EOPNOTSUPP)
			return 100 + cmd;
	}
	return 0;
}

TEST_F(nl, without_cap_net_admin_nothing_is_told)
{
	struct nl_vgpu v;
	int status, kind;
	pid_t pid;

	ASSERT_NE(0, self->nl.events);
	ASSERT_NE(0, self->nl.contexts);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	/* 0: its own socket; 1: one that root opened */
	for (kind = 0; kind < 2; kind++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			struct nl nl;

			if (setgid(65534) || setuid(65534))
				_exit(200);
			if (nl_open(&nl))
				_exit(201);
			_exit(refused(kind ? &self->nl : &nl, v.id,
				      self->uuid[0]));
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status) {
			TH_LOG("socket %d, status %#x", kind, status);
		}
	}
	/* Root may, and nothing was changed. */
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_NE(5, v.weight);
	EXPECT_EQ(0, nl_subscribe_contexts(&self->nl));
}

TEST_F(nl, root_of_a_user_namespace_is_told_nothing)
{
	struct nl_vgpu v;
	int status;
	pid_t pid;

	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct nl nl;
		int ret;

		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(200);
		ret = nl_open(&nl);
		if (ret != -ENOENT)
			_exit(201);
		_exit(refused(&self->nl, v.id, self->uuid[0]));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 200)
		SKIP(return, "the kernel has no user namespaces");
	EXPECT_EQ(0, status) {
		TH_LOG("status %#x", status);
	}
}

TEST_F(nl, a_device_tells_its_policy_and_its_timeout)
{
	struct nl_dev d, same;
	struct nl_vgpu v;

	ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &d));
	EXPECT_STREQ("soft", d.backend);
	EXPECT_STREQ(DEFAULT_POLICY, d.policy);
	EXPECT_STREQ(DEFAULT_POLICY, d.builtin);
	EXPECT_EQ(MGPU_JOB_TIMEOUT_DEFAULT, d.job_timeout);
	EXPECT_EQ(mdev_count(), d.vgpus);
	EXPECT_EQ(0, d.waiting);
	EXPECT_LT(0, d.engines);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_EQ(d.id, v.dev_id);
	ASSERT_EQ(0, nl_dev_get_id(&self->nl, d.id, &same));
	EXPECT_EQ(0, memcmp(&d, &same, sizeof(d)));
}

TEST_F(nl, every_built_in_policy_can_be_chosen_and_is_told)
{
	struct nl *nl = &self->nl;
	struct nl_event e;
	struct nl_dev d;
	unsigned int i;
	struct nl ev;

	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_subscribe(&ev));
	for (i = 0; i < ARRAY_LEN(policies); i++) {
		EXPECT_EQ(0, nl_dev_set_policy(nl, VMM_PARENT, policies[i])) {
			TH_LOG("%s: %s", policies[i], nl->text);
		}
		ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
		EXPECT_STREQ(policies[i], d.policy);
		EXPECT_STREQ(policies[i], d.builtin);
		/* All but best-effort give each vGPU its share. */
		EXPECT_EQ(!!strcmp(policies[i], "best-effort"), d.policy_shares);
		EXPECT_EQ(MGPU_JOB_TIMEOUT_DEFAULT, d.job_timeout);
		ASSERT_EQ(MGPU_CMD_DEV_POLICY_NTF,
			  nl_event_next(&ev, &e, VMM_TIMEOUT));
		EXPECT_EQ(d.id, e.dev.id);
		EXPECT_STREQ(VMM_PARENT, e.dev.name);
		EXPECT_STREQ(policies[i], e.dev.policy);
		EXPECT_EQ(d.policy_shares, e.dev.policy_shares);
	}
	EXPECT_EQ(0, nl_event_next(&ev, &e, VMM_QUIET));
	nl_close(&ev);
}

TEST_F(nl, an_unknown_policy_is_refused_with_those_that_there_are)
{
	static const char *const names[] = {
		"", "fair", "Weighted", "weighted ", "none",
		"a-name-of-only-32-letters-in-all",
	};
	struct nl *nl = &self->nl;
	struct nl_dev d;
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		/* The other setting is not made, either. */
		EXPECT_EQ(-EINVAL, nl_dev_set(nl, VMM_PARENT, names[i], 777));
		EXPECT_NE(0, nl->text_off);
		for (k = 0; k < ARRAY_LEN(policies); k++) {
			EXPECT_NE(NULL, strstr(nl->text, policies[k])) {
				TH_LOG("'%s': %s", names[i], nl->text);
			}
		}
		ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
		EXPECT_STREQ(DEFAULT_POLICY, d.policy);
		EXPECT_EQ(MGPU_JOB_TIMEOUT_DEFAULT, d.job_timeout);
	}
	/* Longer than any name can be. */
	EXPECT_EQ(-EINVAL, nl_dev_set_policy(nl, VMM_PARENT,
					     "a-name-of-more-than-thirty-two-letters"));
	EXPECT_NE(0, nl->text_off);
}

TEST_F(nl, limits_of_a_device_s_settings_are_kept)
{
	static const struct {
		int64_t ms;
		bool ok;
	} t[] = {
		{ 100, true }, { 60000, true }, { 2500, true }, { 0, false },
		{ 99, false }, { 60001, false }, { 0xffffffff, false },
	};
	struct nl *nl = &self->nl;
	struct nl_dev d;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_LEN(t); i++) {
		ASSERT_EQ(0, nl_dev_set(nl, VMM_PARENT, "equal", 1234));
		ret = nl_dev_set(nl, VMM_PARENT, "fixed", t[i].ms);
		EXPECT_EQ(t[i].ok ? 0 : -ERANGE, ret);
		if (!t[i].ok) {
			EXPECT_NE(NULL, strstr(nl->text, "milliseconds"));
			EXPECT_NE(0, nl->text_off);
		}
		ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
		EXPECT_EQ(t[i].ok ? t[i].ms : 1234, d.job_timeout);
		EXPECT_STREQ(t[i].ok ? "fixed" : "equal", d.policy);
	}
	/* Alone it leaves the policy as it is. */
	ASSERT_EQ(0, nl_dev_set(nl, VMM_PARENT, NULL, 5000));
	ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
	EXPECT_EQ(5000, d.job_timeout);
	EXPECT_STREQ("equal", d.policy);
}

TEST_F(nl, quarantine_and_its_limit_have_ranges)
{
	static const uint32_t limits[] = { 0, 1, MGPU_HANG_LIMIT_MAX };
	struct nl *nl = &self->nl;
	struct nl_vgpu v;
	struct nl_dev d;
	unsigned int i;

	ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
	EXPECT_EQ(MGPU_HANG_LIMIT_DEFAULT, d.hang_limit);
	for (i = 0; i < ARRAY_LEN(limits); i++) {
		EXPECT_EQ(0, nl_dev_set_hang_limit(nl, VMM_PARENT, limits[i]));
		EXPECT_EQ(-ERANGE, nl_dev_set_hang_limit(nl, VMM_PARENT,
							 MGPU_HANG_LIMIT_MAX + 1));
		EXPECT_NE(NULL, strstr(nl->text, "1 to 16"));
		EXPECT_NE(0, nl->text_off);
		ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
		EXPECT_EQ(limits[i], d.hang_limit);
	}
	EXPECT_EQ(0, nl_dev_set_hang_limit(nl, VMM_PARENT,
					   MGPU_HANG_LIMIT_DEFAULT));

	EXPECT_EQ(0, nl_vgpu_set_quarantine(nl, self->uuid[0], 1));
	EXPECT_EQ(-ERANGE, nl_vgpu_set_quarantine(nl, self->uuid[0], 2));
	EXPECT_NE(NULL, strstr(nl->text, "lift"));
	EXPECT_NE(0, nl->text_off);
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(1, v.quarantine);
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[1], &v));
	EXPECT_EQ(0, v.quarantine);
	EXPECT_EQ(0, nl_vgpu_set_quarantine(nl, self->uuid[0], 0));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(0, v.quarantine);
}

TEST_F(nl, every_refusal_of_a_device_s_setting_says_why)
{
	static const uint16_t attrs[] = {
		MGPU_A_DEV_NAME, MGPU_A_DEV_VGPUS, MGPU_A_DEV_BUILTIN_POLICY,
		MGPU_A_DEV_WAITING, MGPU_A_DEV_POLICY_EXIT,
		MGPU_A_DEV_POLICY_SHARES, MGPU_A_DEV_MAX + 1, 200,
	};
	struct nl *nl = &self->nl;
	struct nl_dev d;
	struct nl_msg m;
	unsigned int i;

	ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));

	/* Which one? */
	nl_begin(nl, &m, MGPU_CMD_DEV_SET, 0);
	nl_put_str(&m, MGPU_A_DEV_POLICY, "fixed");
	EXPECT_EQ(-EINVAL, nl_talk(nl, &m));
	EXPECT_LT(10, strlen(nl->text));

	/* No setting. */
	nl_begin(nl, &m, MGPU_CMD_DEV_SET, 0);
	nl_put_u32(&m, MGPU_A_DEV_ID, d.id);
	EXPECT_EQ(-EINVAL, nl_talk(nl, &m));
	EXPECT_NE(NULL, strstr(nl->text, "job-timeout"));

	/* None has this id. */
	nl_begin(nl, &m, MGPU_CMD_DEV_SET, 0);
	nl_put_u32(&m, MGPU_A_DEV_ID, d.id + 1000);
	nl_put_str(&m, MGPU_A_DEV_POLICY, "fixed");
	EXPECT_EQ(-ENODEV, nl_talk(nl, &m));
	EXPECT_LT(10, strlen(nl->text));
	EXPECT_NE(0, nl->text_off);

	for (i = 0; i < ARRAY_LEN(attrs); i++) {
		nl_begin(nl, &m, MGPU_CMD_DEV_SET, 0);
		nl_put_u32(&m, MGPU_A_DEV_ID, d.id);
		nl_put_str(&m, MGPU_A_DEV_POLICY, "fixed");
		nl_put_u32(&m, attrs[i], 5);
		EXPECT_GT(0, nl_talk(nl, &m)) {
			TH_LOG("attribute %u", attrs[i]);
		}
	}
	/* Not a string that ends. */
	nl_begin(nl, &m, MGPU_CMD_DEV_SET, 0);
	nl_put_u32(&m, MGPU_A_DEV_ID, d.id);
	nl_put(&m, MGPU_A_DEV_POLICY, "fixed", 5);
	EXPECT_GT(0, nl_talk(nl, &m));

	ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
	EXPECT_STREQ(DEFAULT_POLICY, d.policy);
}

/* Waits until so many are counted. */
static bool counted(struct nl *nl, const char *uuid, int64_t intervals,
		    int64_t latencies)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	do {
		if (nl_vgpu_hist(nl, uuid, MGPU_A_VGPU_FRAME_INTERVAL_HIST,
				 NULL) == intervals &&
		    nl_vgpu_hist(nl, uuid, MGPU_A_VGPU_LATENCY_HIST, NULL) ==
		    latencies)
			return true;
		sleep_ms(10);
	} while (now_ms() < end);
	return false;
}

TEST_F(nl, histograms_add_up_to_frames_and_jobs)
{
	uint64_t hist[MGPU_HIST_BUCKETS];
	static struct nl_vgpu all[64];
	struct nl *nl = &self->nl;
	struct gpu_screen s;
	unsigned int below;
	struct nl_vgpu v;
	struct nl_event e;
	struct vm vm;
	struct nl ev;
	int n, i;

	EXPECT_EQ(-ENODATA, nl_vgpu_hist(nl, self->uuid[0],
					 MGPU_A_VGPU_LATENCY_HIST, NULL));
	ASSERT_EQ(0, vm_open(&vm, self->uuid[0], VMM_RAM));
	ASSERT_EQ(0, vm_start(&vm));
	EXPECT_TRUE(counted(nl, self->uuid[0], 0, 0));
	ASSERT_EQ(0, gpu_screen_2d(&vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   64, 64));
	/* 20 frames/s: no interval is below 32.768 ms, bucket 15. */
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], -1, 20000));
	for (i = 0; i < 21; i++) {
		ASSERT_EQ(0, gpu_show(&vm, &s));
	}
	/* Intervals lie between frames; a job each for transfer and flush. */
	EXPECT_TRUE(counted(nl, self->uuid[0], 20, 42));
	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_EQ(21, v.stats[MGPU_A_STATS_FRAMES]);
	EXPECT_EQ(42, v.stats[MGPU_A_STATS_JOBS]);
	EXPECT_EQ(20, nl_vgpu_hist(nl, self->uuid[0],
				   MGPU_A_VGPU_FRAME_INTERVAL_HIST, hist));
	for (i = 0, below = 0; i < 15; i++)
		below += hist[i];
	/* A frame that was late is followed by one that is not. */
	EXPECT_GE(10, below) {
		TH_LOG("%u intervals below 32 ms", below);
	}

	/* Neither dumps nor events carry them. */
	n = nl_vgpu_dump(nl, all, ARRAY_LEN(all));
	ASSERT_LE(2, n);
	for (i = 0; i < n; i++) {
		EXPECT_FALSE(all[i].has_interval || all[i].has_latency);
	}
	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_subscribe(&ev));
	vm_close(&vm);
	ASSERT_TRUE(nl_event_wait(&ev, MGPU_CMD_VGPU_CLOSED_NTF, self->uuid[0],
				  &e, VMM_TIMEOUT));
	EXPECT_FALSE(e.vgpu.has_interval || e.vgpu.has_latency);
	nl_close(&ev);

	/* They outlive the VMM, as counters do. */
	EXPECT_TRUE(counted(nl, self->uuid[0], 20, 42));
}

TEST_F(nl, events_tell_of_a_vgpu_s_life)
{
	char uuid[VMM_UUID_LEN + 1];
	struct nl_vgpu v;
	struct nl ev;
	struct vm vm;

	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_NE(0, ev.events);
	ASSERT_EQ(0, nl_subscribe(&ev));
	mdev_uuid_new(uuid);
	ASSERT_EQ(0, mdev_create("medium", uuid));
	EXPECT_EQ(MGPU_CMD_VGPU_ADDED_NTF, nl_event(&ev, &v, VMM_TIMEOUT));
	EXPECT_STREQ(uuid, v.uuid);
	EXPECT_STREQ("medium", v.type);
	EXPECT_FALSE(v.open);
	ASSERT_EQ(0, vm_open(&vm, uuid, VMM_RAM));
	EXPECT_EQ(MGPU_CMD_VGPU_OPENED_NTF, nl_event(&ev, &v, VMM_TIMEOUT));
	EXPECT_STREQ(uuid, v.uuid);
	EXPECT_TRUE(v.open);
	EXPECT_EQ(getpid(), v.tgid);
	vm_close(&vm);
	EXPECT_EQ(MGPU_CMD_VGPU_CLOSED_NTF, nl_event(&ev, &v, VMM_TIMEOUT));
	EXPECT_STREQ(uuid, v.uuid);
	EXPECT_FALSE(v.open);
	ASSERT_EQ(0, mdev_remove(uuid));
	EXPECT_EQ(MGPU_CMD_VGPU_REMOVED_NTF, nl_event(&ev, &v, VMM_TIMEOUT));
	EXPECT_STREQ(uuid, v.uuid);
	EXPECT_EQ(0, nl_event(&ev, &v, VMM_QUIET));
	nl_close(&ev);
}

TEST_F(nl, without_a_bpf_program_the_module_charges_all_of_it)
{
	struct gpu_screen s;
	struct nl_vgpu v;
	struct vm vm;
	int i;

	ASSERT_EQ(0, vm_open(&vm, self->uuid[0], VMM_RAM));
	ASSERT_EQ(0, vm_start(&vm));
	ASSERT_EQ(0, gpu_screen_2d(&vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   256, 256));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, gpu_show(&vm, &s));
	}
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_EQ(40, v.stats[MGPU_A_STATS_JOBS]);
	EXPECT_EQ(20, v.stats[MGPU_A_STATS_FRAMES]);
	EXPECT_EQ(0, v.stats[MGPU_A_STATS_JOB_ERRORS]);
	EXPECT_LT(0, v.stats[MGPU_A_STATS_ENGINE_NS]);
	EXPECT_LT(0, v.stats[MGPU_A_STATS_ENGINE_CYCLES]);
	EXPECT_EQ(0, v.stats[MGPU_A_STATS_CHARGED_BPF_NS]);
	EXPECT_EQ(v.stats[MGPU_A_STATS_ENGINE_NS],
		  v.stats[MGPU_A_STATS_CHARGED_SELF_NS]);
	EXPECT_EQ(MGPU_CHARGE_SOURCE_MODULE, v.charge_source);
	EXPECT_EQ(256, v.width);
	EXPECT_EQ(256, v.height);
	vm_close(&vm);
	/* Counters outlive the VMM; the vGPU's life is longer. */
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid[0], &v));
	EXPECT_EQ(20, v.stats[MGPU_A_STATS_FRAMES]);
}

TEST_F_TIMEOUT(nl, as_many_vgpus_as_there_may_be_are_set_in_one_message, 240)
{
	static char uuid[MANY][VMM_UUID_LEN + 1];
	static struct nl_vgpu v[MANY + 8];
	struct nl *nl = &self->nl;
	unsigned int n, i, hits = 0;
	struct nl_msg m;
	long long room;

	room = mdev_available("small");
	ASSERT_LT(100, room);
	n = room < MANY ? room : MANY;
	for (i = 0; i < n; i++) {
		mdev_uuid_new(uuid[i]);
		ASSERT_EQ(0, mdev_create("small", uuid[i]));
	}
	/* At 56 bytes an entry the message has more than 16 bits can count. */
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	for (i = 0; i < n; i++)
		put_setting(&m, uuid[i], 1 + i, 1000 + i);
	put_setting(&m, self->uuid[0], 5000, 30000);
	put_setting(&m, self->uuid[1], 5001, 30001);
	EXPECT_LT(65536, m.len);
	EXPECT_EQ(0, nl_talk(nl, &m)) {
		TH_LOG("%s", nl->text);
	}
	ASSERT_EQ(n + 2, nl_vgpu_dump(nl, v, ARRAY_LEN(v)));
	for (i = 0; i < n + 2; i++) {
		if (v[i].weight < 5000)
			hits += v[i].fps_limit == 1000 + v[i].weight - 1 &&
				!strcmp(v[i].uuid, uuid[v[i].weight - 1]);
	}
	EXPECT_EQ(n, hits);

	/* A bad entry at the end: nothing has been done, and nothing is undone. */
	nl_begin(nl, &m, MGPU_CMD_VGPU_SET, 0);
	for (i = 0; i < n; i++)
		put_setting(&m, uuid[i], 9999, -1);
	put_setting(&m, uuid[0], 9999, -1);
	EXPECT_EQ(-EINVAL, nl_talk(nl, &m));
	ASSERT_EQ(0, nl_vgpu_get(nl, uuid[n / 2], &v[0]));
	EXPECT_EQ(1 + n / 2, v[0].weight);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(0, mdev_remove(uuid[i]));
	}
}

/* ---- events that come faster than they are read ---- */

#define BURST	600

/* Changes a setting back and forth; each change is an event. */
static int change(struct nl *nl, unsigned int n)
{
	return nl_dev_set_policy(nl, VMM_PARENT, n % 2 ? DEFAULT_POLICY :
							 "equal");
}

/* Read all events. Return their number, and in @lost the number of reported losses. */
static unsigned int read_all(struct nl *nl, unsigned int *lost)
{
	static uint8_t buf[65536];
	unsigned int n = 0;

	*lost = 0;
	for (;;) {
		if (recv(nl->fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			n++;
		else if (errno == ENOBUFS)
			++*lost;
		else
			return n;
	}
}

TEST_F_TIMEOUT(nl, lost_events_are_reported_to_their_socket_only, 60)
{
	struct nl *nl = &self->nl, slow, ev;
	unsigned int i, n, lost;
	struct nl_event e;
	struct nl_vgpu v;
	struct nl_dev d;
	int size = 1;

	ASSERT_EQ(0, nl_open(&slow));
	/* As small as there is. */
	ASSERT_EQ(0, setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &size,
				sizeof(size)));
	ASSERT_EQ(0, nl_subscribe(&slow));
	ASSERT_EQ(0, nl_open(&ev));
	ASSERT_EQ(0, nl_subscribe(&ev));
	for (i = 0; i < BURST; i++) {
		ASSERT_EQ(0, change(nl, i));
		/* A reader gets each event, in order. */
		ASSERT_EQ(MGPU_CMD_DEV_POLICY_NTF,
			  nl_event_next(&ev, &e, VMM_TIMEOUT));
		ASSERT_STREQ(i % 2 ? DEFAULT_POLICY : "equal", e.dev.policy);
	}
	n = read_all(&slow, &lost);
	TH_LOG("%u of %u events, %u times some were lost", n, BURST, lost);
	EXPECT_GT(BURST, n);
	EXPECT_LE(1, lost);
	n = read_all(&ev, &lost);
	EXPECT_EQ(0, n);
	EXPECT_EQ(0, lost);

	/* It is told what is, and what comes. */
	ASSERT_EQ(0, change(nl, 0));
	ASSERT_EQ(0, nl_vgpu_set(nl, self->uuid[0], 4321, -1));
	EXPECT_TRUE(nl_event_wait(&slow, MGPU_CMD_DEV_POLICY_NTF, NULL, &e,
				  VMM_TIMEOUT));
	EXPECT_STREQ("equal", e.dev.policy);
	ASSERT_EQ(0, nl_dev_get(&slow, VMM_PARENT, &d));
	EXPECT_STREQ("equal", d.policy);
	ASSERT_EQ(0, nl_vgpu_get(&slow, self->uuid[0], &v));
	EXPECT_EQ(4321, v.weight);
	nl_close(&slow);
	nl_close(&ev);
}

/* A line of a program's output that has a text, within the time. */
static bool line_with(FILE *f, const char *text, int timeout_ms)
{
	uint64_t end = now_ms() + (uint64_t)timeout_ms, now;
	struct pollfd p = { .fd = fileno(f), .events = POLLIN };
	static char buf[65536];
	static size_t len;
	ssize_t n;
	char *eol;

	for (;;) {
		while ((eol = memchr(buf, '\n', len))) {
			*eol = 0;
			n = eol + 1 - buf;
			if (strstr(buf, text)) {
				len -= (size_t)n;
				memmove(buf, eol + 1, len);
				return true;
			}
			len -= (size_t)n;
			memmove(buf, eol + 1, len);
		}
		now = now_ms();
		if (now >= end || poll(&p, 1, (int)(end - now)) <= 0)
			return false;
		n = read(p.fd, buf + len, sizeof(buf) - len);
		if (n <= 0)
			return false;
		len += (size_t)n;
	}
}

/*
 * Events that are more than the socket of gpuctl holds. It asks for 1 MiB, of which it gets
 * what net.core.rmem_max allows: 208 KiB, and 4 MiB since Linux 6.16.
 */
static unsigned int more_than_it_holds(void)
{
	long long most = sysfs_number("/proc/sys/net/core/rmem_max");

	if (most > 1 << 20)
		most = 1 << 20;
	return most > 208 << 10 ? (unsigned int)(3 * BURST * most / (208 << 10)) : 3 * BURST;
}

TEST_F_TIMEOUT(nl, a_monitor_that_stood_still_says_so_and_goes_on, 120)
{
	const char *build = getenv("BUILD");
	struct nl *nl = &self->nl;
	unsigned int i, nr;
	char path[512];
	int fds[2];
	pid_t pid;
	FILE *f;

	snprintf(path, sizeof(path), "%s/ctl/gpuctl",
		 build ? build : "../../build");
	if (access(path, X_OK))
		SKIP(return, "gpuctl is not built");
	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl(path, path, "monitor", NULL);
		_exit(127);
	}
	close(fds[1]);
	f = fdopen(fds[0], "r");
	ASSERT_NE(NULL, f);
	/* Wait until it listens. */
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, change(nl, i));
		if (line_with(f, "equal", 100))
			break;
	}
	EXPECT_GT(100, i);
	ASSERT_EQ(0, kill(pid, SIGSTOP));
	nr = more_than_it_holds();
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, change(nl, i));
	}
	ASSERT_EQ(0, kill(pid, SIGCONT));
	EXPECT_TRUE(line_with(f, "lost", VMM_TIMEOUT));
	ASSERT_EQ(0, nl_dev_set_policy(nl, VMM_PARENT, "best-effort"));
	EXPECT_TRUE(line_with(f, "best-effort", VMM_TIMEOUT));
	kill(pid, SIGTERM);
	EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
	fclose(f);
}

/* ---- garbage ---- */

/* The largest number of an attribute, of any of the sets. */
#define LARGER(a, b)	((int)(a) > (int)(b) ? (int)(a) : (int)(b))
#define A_MAX		LARGER(LARGER(MGPU_A_DEV_MAX, MGPU_A_VGPU_MAX),	\
			       LARGER(MGPU_A_CTX_MAX, MGPU_A_STATS_MAX))

/* Some of what a command on a context takes, mostly right. */
static void put_ctx(struct nl_msg *m, uint8_t cmd, uint32_t vgpu, uint32_t ctx)
{
	uint8_t flag = rand() % 3;
	/* CTX_RESUME has none of these. */
	bool preempt = cmd != MGPU_CMD_CTX_RESUME || rand() % 8 == 0;

	if (rand() % 8)
		nl_put_u32(m, MGPU_A_CTX_VGPU_ID, rand() % 8 ? vgpu :
			   (uint32_t)rand());
	if (rand() % 8)
		nl_put_u32(m, MGPU_A_CTX_ID, rand() % 8 ? ctx :
			   (uint32_t)rand());
	if (preempt && rand() % 2)
		nl_put_u32(m, MGPU_A_CTX_METHOD, rand() % 5);
	if (preempt && rand() % 2)
		nl_put_u32(m, MGPU_A_CTX_SLOTS, rand() % 3);
	if (preempt && rand() % 2)
		nl_put(m, MGPU_A_CTX_HOLD, &flag, rand() % 8 ? 1 : 4);
	if (rand() % 4 == 0)
		nl_put(m, MGPU_A_CTX_FIRST, &flag, rand() % 8 ? 1 : 0);
}

static void put_junk(struct nl_msg *m, const char *uuid)
{
	unsigned int i, k;
	uint8_t junk[64];
	size_t at;

	for (i = rand() % 4; i; i--) {
		at = nl_nest(m, rand() % (A_MAX + 2));
		for (k = rand() % 6; k; k--) {
			memset(junk, rand(), sizeof(junk));
			nl_put(m, rand() % (A_MAX + 2) | (rand() % 8 ? 0 :
			       0x8000), junk, rand() % sizeof(junk));
		}
		if (rand() % 3 == 0)
			nl_put_str(m, MGPU_A_VGPU_UUID, uuid);
		nl_nest_end(m, at);
	}
}

static void flip_bits(struct nl_msg *m)
{
	unsigned int i;
	size_t at;

	for (i = rand() % 3; i && m->len > 24; i--) {
		at = 20 + (size_t)rand() % (m->len - 20);
		m->buf[at] ^= 1 << rand() % 8;
	}
}

/*
 * Any bytes, for every command that there is: the kernel answers each, and settings
 * stay within bounds.
 */
TEST_F_TIMEOUT(nl, garbage_is_refused, 120)
{
	uint64_t end = now_ms() + (vmm_long() ? 60000 : 3000);
	unsigned int n = 0, cmd, ok[MGPU_CMD_MAX + 2] = { 0 };
	struct mgpu_compute_cmd job = job_mandelbrot(1, 64, 64, 100);
	unsigned int tried[MGPU_CMD_MAX + 2] = { 0 };
	struct nl *nl = &self->nl;
	struct nl_msg m;
	struct nl_vgpu v;
	struct nl_dev d;
	struct vm vm;
	uint32_t id;
	int head;

	ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
	/* A context with a job, for commands that are about one. */
	ASSERT_EQ(0, vm_new(&vm, "small-render", VMM_RAM));
	ASSERT_EQ(0, vm_start_with(&vm, RENDER_FEATURES));
	ASSERT_EQ(0, nl_vgpu_get(nl, vm.uuid, &v));
	id = v.id;
	ASSERT_EQ(OK, ctx_create(&vm, 1, MGPU_CAPSET_COMPUTE));
	ASSERT_EQ(OK, gpu_create_blob(&vm, 1, vm_alloc(&vm, 1 << 16, 4096),
				      1 << 16));
	ASSERT_EQ(OK, ctx_attach(&vm, 1, 1));
	head = ctx_submit(&vm, 1, &job);
	ASSERT_LE(0, head);

	srand(1234);
	TH_LOG("seed 1234");
	while (goes_on(end, n > 100 * (MGPU_CMD_MAX + 2) &&
		       ok[MGPU_CMD_CTX_GET] && ok[MGPU_CMD_CTX_PREEMPT] &&
		       ok[MGPU_CMD_CTX_RESUME])) {
		cmd = rand() % (MGPU_CMD_MAX + 2);
		nl_begin(nl, &m, cmd, rand() % 4 ? 0 : NLM_F_DUMP);
		if (rand() % 4 == 0)
			nl_put_u32(&m, MGPU_A_DEV_ID, d.id);
		if (rand() % 4 == 0)
			nl_put(&m, MGPU_A_DEV_POLICY, "weighted", rand() % 10);
		if (cmd >= MGPU_CMD_CTX_GET && rand() % 4)
			put_ctx(&m, cmd, id, 1);
		if (rand() % 2) {
			put_junk(&m, self->uuid[0]);
			flip_bits(&m);
		}
		tried[cmd]++;
		ok[cmd] += !nl_talk(nl, &m);
		n++;
	}
	for (cmd = 0; cmd < MGPU_CMD_MAX + 2; cmd++) {
		EXPECT_LT(0, tried[cmd]) {
			TH_LOG("command %u", cmd);
		}
	}
	/* Some of the context commands must have reached a context. */
	EXPECT_LT(0, ok[MGPU_CMD_CTX_GET]);
	EXPECT_LT(0, ok[MGPU_CMD_CTX_PREEMPT]);
	EXPECT_LT(0, ok[MGPU_CMD_CTX_RESUME]);
	TH_LOG("%u messages, %u of CTX_PREEMPT and %u of CTX_RESUME were carried out",
	       n, ok[MGPU_CMD_CTX_PREEMPT], ok[MGPU_CMD_CTX_RESUME]);

	/* The job is done, whatever it was told. */
	nl_begin(nl, &m, MGPU_CMD_CTX_RESUME, 0);
	nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, id);
	nl_put_u32(&m, MGPU_A_CTX_ID, 1);
	nl_talk(nl, &m);
	EXPECT_EQ(OK, ctx_result(&vm, head));
	vm_delete(&vm);

	ASSERT_EQ(0, nl_vgpu_get(nl, self->uuid[0], &v));
	EXPECT_LE(1, v.weight);
	EXPECT_GE(10000, v.weight);
	EXPECT_TRUE(!v.fps_limit || (v.fps_limit >= 1000 &&
				     v.fps_limit <= 10000000));
	EXPECT_TRUE(!v.gpu_limit || (v.gpu_limit >= MGPU_GPU_LIMIT_MIN &&
				     v.gpu_limit <= MGPU_GPU_LIMIT_MAX));
	EXPECT_LE(MGPU_GPU_PERIOD_MIN, v.gpu_period);
	EXPECT_GE(MGPU_GPU_PERIOD_MAX, v.gpu_period);
	EXPECT_GE(MGPU_GPU_BURST_MAX, v.gpu_burst);
	EXPECT_LE(MGPU_MODE_MIN, v.mode_width);
	EXPECT_GE(1024, v.mode_width);
	EXPECT_LE(MGPU_MODE_MIN, v.mode_height);
	EXPECT_GE(768, v.mode_height);
	ASSERT_EQ(0, nl_dev_get(nl, VMM_PARENT, &d));
	EXPECT_STREQ(DEFAULT_POLICY, d.policy);
	EXPECT_LE(MGPU_JOB_TIMEOUT_MIN, d.job_timeout);
	EXPECT_GE(MGPU_JOB_TIMEOUT_MAX, d.job_timeout);
}

TEST_HARNESS_MAIN

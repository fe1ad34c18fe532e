// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sysfs interface: types, creation and removal of vGPUs, and their settings.
 */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

FIXTURE(types)
{
	char uuid[VMM_UUID_LEN + 1];
};

FIXTURE_SETUP(types)
{
	mdev_uuid_new(self->uuid);
}

FIXTURE_TEARDOWN(types)
{
	if (mdev_exists(self->uuid))
		mdev_remove(self->uuid);
}

FIXTURE_VARIANT(types)
{
	const char *name;
	const char *mode;
};

FIXTURE_VARIANT_ADD(types, small)
{
	.name = "small", .mode = "1024x768",
};

FIXTURE_VARIANT_ADD(types, medium)
{
	.name = "medium", .mode = "1920x1080",
};

FIXTURE_VARIANT_ADD(types, large)
{
	.name = "large", .mode = "3840x2160",
};

TEST_F(types, each_describes_itself)
{
	char path[256], text[4096];

	mdev_type_path(variant->name, "device_api", path, sizeof(path));
	ASSERT_LT(0, sysfs_read(path, text, sizeof(text)));
	EXPECT_STREQ("vfio-pci", text);
	mdev_type_path(variant->name, "description", path, sizeof(path));
	ASSERT_LT(0, sysfs_read(path, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, variant->mode)) TH_LOG("%s", text);
	mdev_type_path(variant->name, "name", path, sizeof(path));
	ASSERT_LT(0, sysfs_read(path, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, variant->name)) TH_LOG("%s", text);
	EXPECT_LT(0, mdev_available(variant->name));
}

TEST_F(types, create_and_remove_change_available_instances)
{
	long long before = mdev_available(variant->name);
	unsigned int count = mdev_count();

	ASSERT_LT(0, before);
	ASSERT_EQ(0, mdev_create(variant->name, self->uuid));
	EXPECT_TRUE(mdev_exists(self->uuid));
	EXPECT_EQ(count + 1, mdev_count());
	EXPECT_EQ(before - 1, mdev_available(variant->name));
	ASSERT_EQ(0, mdev_remove(self->uuid));
	EXPECT_FALSE(mdev_exists(self->uuid));
	EXPECT_EQ(before, mdev_available(variant->name));
}

TEST_F(types, a_vgpu_names_its_type_and_parent)
{
	char path[256], to[256];
	ssize_t n;

	ASSERT_EQ(0, mdev_create(variant->name, self->uuid));
	snprintf(path, sizeof(path), "%s/%s/mdev_type", VMM_DEVICES,
		 self->uuid);
	n = readlink(path, to, sizeof(to) - 1);
	ASSERT_LT(0, n);
	to[n] = 0;
	snprintf(path, sizeof(path), "mgpu_soft-%s", variant->name);
	EXPECT_STREQ(path, strrchr(to, '/') + 1);
	snprintf(path, sizeof(path), "%s/%s/%s", VMM_BUS, VMM_PARENT,
		 self->uuid);
	EXPECT_EQ(0, access(path, F_OK));
}

TEST_F(types, an_uuid_in_use_is_refused)
{
	long long before;

	ASSERT_EQ(0, mdev_create(variant->name, self->uuid));
	before = mdev_available(variant->name);
	EXPECT_EQ(-EEXIST, mdev_create(variant->name, self->uuid));
	EXPECT_EQ(-EEXIST, mdev_create("small", self->uuid));
	EXPECT_EQ(before, mdev_available(variant->name));
}

TEST(garbage_for_an_uuid_is_refused)
{
	static const char *const bad[] = {
		"", "1", "hello",
		"00000000-0000-0000-0000-00000000000",
		"00000000-0000-0000-0000-00000000000000",
		"zzzzzzzz-0000-0000-0000-000000000000",
		"00000000+0000+0000+0000+000000000000",
	};
	unsigned int i, count = mdev_count();

	/* A write of no bytes never reaches the driver. */
	for (i = 1; i < ARRAY_LEN(bad); i++) {
		EXPECT_GT(0, mdev_create("small", bad[i]))
			TH_LOG("accepted: %s", bad[i]);
	}
	EXPECT_EQ(count, mdev_count());
}

TEST(a_removed_uuid_can_be_used_again)
{
	char uuid[VMM_UUID_LEN + 1];
	int i;

	mdev_uuid_new(uuid);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, mdev_create(i % 2 ? "small" : "large", uuid));
		ASSERT_EQ(0, mdev_remove(uuid));
	}
}

/* The smallest limit is that of "large", so this is quick. */
TEST(the_type_limit_is_enforced)
{
	static char uuid[4096][VMM_UUID_LEN + 1];
	char more[VMM_UUID_LEN + 1];
	long long n, i;

	n = mdev_available("large");
	ASSERT_LT(0, n);
	ASSERT_GT(4096, n);
	for (i = 0; i < n; i++) {
		mdev_uuid_new(uuid[i]);
		EXPECT_EQ(0, mdev_create("large", uuid[i]));
	}
	EXPECT_EQ(0, mdev_available("large"));
	mdev_uuid_new(more);
	EXPECT_EQ(-ENOSPC, mdev_create("large", more));
	EXPECT_FALSE(mdev_exists(more));
	/* Other types are not touched by it. */
	EXPECT_EQ(0, mdev_create("small", more));
	EXPECT_EQ(0, mdev_remove(more));
	for (i = 0; i < n; i++) {
		EXPECT_EQ(0, mdev_remove(uuid[i]));
	}
	EXPECT_EQ(n, mdev_available("large"));
}

/* ---- settings ---- */

FIXTURE(settings)
{
	struct nl nl;
	char uuid[VMM_UUID_LEN + 1];
	char path[256];
};

FIXTURE_SETUP(settings)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	mdev_uuid_new(self->uuid);
	ASSERT_EQ(0, mdev_create("small", self->uuid));
}

FIXTURE_TEARDOWN(settings)
{
	if (mdev_exists(self->uuid))
		mdev_remove(self->uuid);
	nl_close(&self->nl);
}

/* Attributes whose values are numbers, with a value that is not the first one. */
static const struct {
	const char *name;
	uint16_t attr;
	size_t field;
	const char *other;
} numbers[] = {
	{ "weight", MGPU_A_VGPU_WEIGHT, offsetof(struct nl_vgpu, weight), "250" },
	{ "fps_limit", MGPU_A_VGPU_FPS_LIMIT, offsetof(struct nl_vgpu, fps_limit), "29970" },
	{ "fps_floor", MGPU_A_VGPU_FPS_FLOOR, offsetof(struct nl_vgpu, fps_floor), "20000" },
	{ "gpu_limit", MGPU_A_VGPU_GPU_LIMIT, offsetof(struct nl_vgpu, gpu_limit), "305000" },
	{ "gpu_period", MGPU_A_VGPU_GPU_PERIOD, offsetof(struct nl_vgpu, gpu_period),
	  "50000" },
	{ "gpu_burst", MGPU_A_VGPU_GPU_BURST, offsetof(struct nl_vgpu, gpu_burst), "7000" },
};

static const char *path_of(const char *uuid, const char *name, char *path, size_t len)
{
	snprintf(path, len, "%s/%s/mgpu/%s", VMM_DEVICES, uuid, name);
	return path;
}

/* The value by netlink, which the attribute must have, too; -1 if they differ. */
static long long agreed(struct nl *nl, const char *uuid, size_t i)
{
	struct nl_vgpu v;
	char path[256];
	uint32_t value;

	if (nl_vgpu_get(nl, uuid, &v))
		return -1;
	memcpy(&value, (char *)&v + numbers[i].field, sizeof(value));
	path_of(uuid, numbers[i].name, path, sizeof(path));
	return sysfs_number(path) == value ? (long long)value : -1;
}

TEST_F(settings, an_attribute_and_netlink_are_two_ways_to_one_setting)
{
	struct nl_vgpu v;
	size_t i;

	for (i = 0; i < ARRAY_LEN(numbers); i++) {
		long long first = agreed(&self->nl, self->uuid, i);
		long long other = atoll(numbers[i].other);

		EXPECT_LE(0, first) TH_LOG("%s", numbers[i].name);
		ASSERT_NE(first, other);
		path_of(self->uuid, numbers[i].name, self->path, sizeof(self->path));
		EXPECT_EQ(0, sysfs_write(self->path, numbers[i].other));
		EXPECT_EQ(other, agreed(&self->nl, self->uuid, i))
			TH_LOG("%s", numbers[i].name);
		ASSERT_EQ(0, nl_vgpu_set_one(&self->nl, self->uuid, numbers[i].attr, first));
		EXPECT_EQ(first, agreed(&self->nl, self->uuid, i))
			TH_LOG("%s", numbers[i].name);
	}
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &v));
	path_of(self->uuid, "id", self->path, sizeof(self->path));
	EXPECT_EQ(v.id, sysfs_number(self->path));
}

TEST_F(settings, the_mode_is_one_attribute)
{
	char text[32];
	struct nl_vgpu v;

	path_of(self->uuid, "mode", self->path, sizeof(self->path));
	ASSERT_LT(0, sysfs_read(self->path, text, sizeof(text)));
	EXPECT_STREQ("1024x768", text);
	ASSERT_EQ(0, sysfs_write(self->path, "800x600\n"));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &v));
	EXPECT_EQ(800, v.mode_width);
	EXPECT_EQ(600, v.mode_height);
	ASSERT_EQ(0, nl_vgpu_set_mode(&self->nl, self->uuid, 640, 480));
	ASSERT_LT(0, sysfs_read(self->path, text, sizeof(text)));
	EXPECT_STREQ("640x480", text);
	ASSERT_EQ(0, sysfs_write(self->path, "0x0"));
	ASSERT_LT(0, sysfs_read(self->path, text, sizeof(text)));
	EXPECT_STREQ("1024x768", text);
}

TEST_F(settings, a_limit_has_the_name_of_its_writer_and_leaves_the_target)
{
	struct nl_vgpu v;

	ASSERT_EQ(0, nl_vgpu_set_target(&self->nl, self->uuid, 10000));
	ASSERT_EQ(0, nl_vgpu_set_gpu_target(&self->nl, self->uuid, 100000));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "operator"));
	path_of(self->uuid, "fps_limit", self->path, sizeof(self->path));
	ASSERT_EQ(0, sysfs_write(self->path, "30000\n"));
	path_of(self->uuid, "gpu_limit", self->path, sizeof(self->path));
	ASSERT_EQ(0, sysfs_write(self->path, "500000\n"));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &v));
	EXPECT_STREQ("operator", v.fps_limit_by);
	EXPECT_STREQ("operator", v.gpu_limit_by);
	EXPECT_EQ(30000, v.fps_limit);
	EXPECT_EQ(10000, v.fps_target);
	EXPECT_EQ(500000, v.gpu_limit);
	EXPECT_EQ(100000, v.gpu_target);
}

TEST_F(settings, bad_values_are_refused_and_change_nothing)
{
	static const struct {
		const char *name;
		const char *value;
		int error;
	} bad[] = {
		{ "weight", "0", -ERANGE }, { "weight", "10001", -ERANGE },
		{ "weight", "", 0 },	/* no bytes reach no driver */
		{ "weight", "\n", -EINVAL }, { "weight", "-1", -EINVAL },
		{ "weight", "4294967297", -ERANGE }, { "weight", "1.5", -EINVAL },
		{ "weight", "0x10", -EINVAL }, { "weight", "12 13", -EINVAL },
		{ "weight", "99999999999999999999999999", -ERANGE },
		{ "fps_limit", "999", -ERANGE }, { "fps_limit", "10000001", -ERANGE },
		{ "fps_limit", "none", -EINVAL },
		{ "fps_floor", "999", -ERANGE }, { "fps_floor", "10000001", -ERANGE },
		{ "gpu_limit", "999", -ERANGE }, { "gpu_limit", "1000001", -ERANGE },
		{ "gpu_limit", "50%", -EINVAL },
		{ "gpu_period", "0", -ERANGE }, { "gpu_period", "999", -ERANGE },
		{ "gpu_period", "1000001", -ERANGE },
		{ "gpu_burst", "1000001", -ERANGE },
		{ "mode", "63x64", -ERANGE }, { "mode", "64x63", -ERANGE },
		{ "mode", "1025x768", -ERANGE }, { "mode", "1024x769", -ERANGE },
		{ "mode", "65600x64", -ERANGE }, { "mode", "4294967360x64", -ERANGE },
		{ "mode", "0x64", -ERANGE }, { "mode", "800", -EINVAL },
		{ "mode", "800x", -EINVAL }, { "mode", "x600", -EINVAL },
		{ "mode", "800x600x1", -EINVAL }, { "mode", "-800x600", -EINVAL },
		{ "mode", "800x000000000000000000000000600", -EINVAL },
		{ "id", "1", -EACCES },
	};
	struct nl_vgpu before, after;
	size_t i;

	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &before));
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		path_of(self->uuid, bad[i].name, self->path, sizeof(self->path));
		EXPECT_EQ(bad[i].error, sysfs_write(self->path, bad[i].value))
			TH_LOG("%s: %s", bad[i].name, bad[i].value);
	}
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->uuid, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

/* Run a write in a process with other rights; return its result. Reading is allowed to all. */
static int write_as(void (*become)(void), const char *path, const char *text)
{
	pid_t pid = fork();
	char value[64];
	int status;

	if (pid < 0)
		return -errno;
	if (!pid) {
		become();
		_exit(sysfs_read(path, value, sizeof(value)) > 0 ? -sysfs_write(path, text) :
								   253);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -ECHILD;
	return -WEXITSTATUS(status);
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	    setresuid(65534, 65534, 65534))
		_exit(254);
}

/* Root that lacks the capability. */
static void lose_net_admin(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &hdr, data))
		_exit(254);
	data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective &= ~CAP_TO_MASK(CAP_NET_ADMIN);
	if (syscall(SYS_capset, &hdr, data))
		_exit(254);
}

static void stay(void)
{
}

TEST_F(settings, writing_takes_the_rights_that_netlink_takes)
{
	static const char *const names[] = { "weight", "mode" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = i ? "800x600" : "77";

		path_of(self->uuid, names[i], self->path, sizeof(self->path));
		EXPECT_EQ(-EACCES, write_as(become_nobody, self->path, value));
		EXPECT_EQ(-EPERM, write_as(lose_net_admin, self->path, value));
		EXPECT_EQ(0, write_as(stay, self->path, value));
	}
}

TEST_F(settings, attributes_come_and_go_with_the_vgpu)
{
	size_t i, round;

	for (round = 0; round < 20; round++) {
		pid_t pid = fork();

		ASSERT_LE(0, pid);
		/* a writer that is there when the vGPU goes */
		path_of(self->uuid, "weight", self->path, sizeof(self->path));
		if (!pid) {
			while (sysfs_write(self->path, "3") != -ENOENT)
				;
			_exit(0);
		}
		/* all but the weight, which changes in between */
		for (i = 1; i < ARRAY_LEN(numbers); i++) {
			EXPECT_LE(0, agreed(&self->nl, self->uuid, i))
				TH_LOG("%s", numbers[i].name);
		}
		EXPECT_EQ(0, mdev_remove(self->uuid));
		EXPECT_EQ(-1, access(self->path, F_OK));
		EXPECT_TRUE(ends(pid, VMM_TIMEOUT));
		ASSERT_EQ(0, mdev_create("small", self->uuid));
		/* no setting of the one before */
		EXPECT_EQ(100, agreed(&self->nl, self->uuid, 0));
	}
}

TEST_HARNESS_MAIN

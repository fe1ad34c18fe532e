// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sysfs interface: types, creation and removal of vGPUs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kselftest_harness.h>

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

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings of a vGPU as attributes of its mediated device, in the group mgpu.  mdevctl and
 * libvirt store attributes, and write them again whenever they create the device.
 * Documentation/ABI/testing/sysfs-mgpu describes each.
 *
 * mgpu_probe() adds the attributes, and mgpu_remove() first removes them, which waits for their
 * users: the vGPU exists meanwhile.
 */
#include <linux/capability.h>
#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "mgpu.h"

/**
 * struct setting_attr - attribute that is a setting with a number as its value
 * @attr: attribute
 * @bit: MGPU_SET_*
 * @offset: of the value in struct mgpu_vgpu
 */
struct setting_attr {
	struct device_attribute attr;
	u32 bit;
	size_t offset;
};

static struct mgpu_vgpu *to_vgpu(struct device *dev)
{
	return dev_get_drvdata(dev);
}

/* Settings need the capability that they need by netlink. */
static int may_set(void)
{
	return capable(CAP_NET_ADMIN) ? 0 : -EPERM;
}

/* A write has no other answer than an errno: the log has the sentence. */
static ssize_t refuse(struct device *dev, const struct device_attribute *attr, const char *why)
{
	dev_notice_ratelimited(dev, "mgpu/%s: %s\n", attr->attr.name, why);
	return -ERANGE;
}

/* Parse a number. The largest stands for one of more than 32 bits: no setting has it. */
static int parse_u32(const char *text, u32 *value)
{
	int err = kstrtou32(text, 10, value);

	if (err != -ERANGE)
		return err;
	*value = U32_MAX;
	return 0;
}

static void apply(struct mgpu_vgpu *vgpu, struct mgpu_settings *set)
{
	char by[TASK_COMM_LEN];

	get_task_comm(by, current);
	set->by = by;
	mutex_lock(&mgpu_registry_lock);
	mgpu_vgpu_apply(vgpu, set);
	mutex_unlock(&mgpu_registry_lock);
}

static ssize_t setting_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	const struct setting_attr *a = container_of(attr, struct setting_attr, attr);
	const u32 *value = (const u32 *)((const char *)to_vgpu(dev) + a->offset);

	return sysfs_emit(buf, "%u\n", READ_ONCE(*value));
}

static ssize_t setting_store(struct device *dev, struct device_attribute *attr,
			     const char *buf, size_t count)
{
	const struct setting_attr *a = container_of(attr, struct setting_attr, attr);
	struct mgpu_settings set = { .mask = a->bit };
	const char *why;
	u32 bad;
	int err;

	err = may_set() ?: parse_u32(buf, mgpu_setting_value(&set, a->bit));
	if (err)
		return err;
	why = mgpu_settings_check(&set, &bad);
	if (why)
		return refuse(dev, attr, why);
	apply(to_vgpu(dev), &set);
	return count;
}

#define SETTING_ATTR(name, BIT, member)						\
static struct setting_attr attr_##name = {					\
	.attr = __ATTR(name, 0644, setting_show, setting_store),		\
	.bit = MGPU_SET_##BIT,							\
	.offset = offsetof(struct mgpu_vgpu, member),				\
}

SETTING_ATTR(weight, WEIGHT, entity.weight);
SETTING_ATTR(fps_limit, FPS_LIMIT, fps.limit);
SETTING_ATTR(fps_floor, FPS_FLOOR, fps_floor);
SETTING_ATTR(gpu_limit, GPU_LIMIT, gpu.limit);
SETTING_ATTR(gpu_period, GPU_PERIOD, gpu_period);
SETTING_ATTR(gpu_burst, GPU_BURST, gpu_burst);

static ssize_t mode_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u32 width, height;

	mgpu_vgpu_mode(to_vgpu(dev), &width, &height);
	return sysfs_emit(buf, "%ux%u\n", width, height);
}

/* Parse WIDTHxHEIGHT. */
static int parse_mode(const char *buf, u32 *width, u32 *height)
{
	char text[24], *x;

	if (strscpy(text, buf, sizeof(text)) < 0)
		return -EINVAL;
	x = strchr(text, 'x');
	if (!x)
		return -EINVAL;
	*x = '\0';
	return parse_u32(text, width) ?: parse_u32(x + 1, height);
}

static ssize_t mode_store(struct device *dev, struct device_attribute *attr, const char *buf,
			  size_t count)
{
	struct mgpu_settings set = { .mask = MGPU_SET_MODE };
	struct mgpu_vgpu *vgpu = to_vgpu(dev);
	u32 width, height;
	const char *why;
	bool is_width;
	int err;

	err = may_set() ?: parse_mode(buf, &width, &height);
	if (err)
		return err;
	why = mgpu_mode_check(vgpu->type->desc, width, height, &set.mode, &is_width);
	if (why)
		return refuse(dev, attr, why);
	apply(vgpu, &set);
	return count;
}
static DEVICE_ATTR_RW(mode);

static ssize_t id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_vgpu(dev)->id);
}
static DEVICE_ATTR_RO(id);

static struct attribute *mgpu_attrs[] = {
	&dev_attr_id.attr,
	&attr_weight.attr.attr,
	&attr_fps_limit.attr.attr,
	&attr_fps_floor.attr.attr,
	&attr_gpu_limit.attr.attr,
	&attr_gpu_period.attr.attr,
	&attr_gpu_burst.attr.attr,
	&dev_attr_mode.attr,
	NULL
};

static const struct attribute_group mgpu_group = {
	.name = "mgpu",
	.attrs = mgpu_attrs,
};

const struct attribute_group *mgpu_vgpu_groups[] = { &mgpu_group, NULL };

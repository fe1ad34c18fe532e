// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges of a vGPU's settings.  Netlink requests and the attributes in sysfs are checked
 * here, so that both take the same values.
 */
#include <linux/kernel.h>
#include <uapi/linux/mgpu.h>

#include "mgpu.h"

/**
 * struct setting_range - range of a setting that is a number
 * @bit: MGPU_SET_*
 * @offset: of the value in struct mgpu_settings
 * @min: smallest value
 * @max: largest value
 * @none: 0 is valid, too
 * @why: error message
 */
struct setting_range {
	u32 bit;
	size_t offset;
	u32 min;
	u32 max;
	bool none;
	const char *why;
};

#define BAD_RATE	\
	"fps-limit, fps-target and fps-floor are in millihertz: 0 for none, or 1000 (1 frame/s) to 10000000"
#define BAD_SHARE	\
	"gpu-limit and gpu-target are in parts per million of the device's engine time: 0 for none, or 1000 (0.1 %) to 1000000 (all of it)"

#define MODE_TOO_SMALL	\
	"a mode has at least 64 x 64 pixels, below which guests ignore it; 0 x 0 is the type's largest"
#define MODE_TOO_LARGE	\
	"larger than the largest mode of the vGPU's type: see the type's description in sysfs, or make a vGPU of a larger type"

#define RANGE(BIT, member, lowest, highest, zero, text)			\
	{								\
		.bit = MGPU_SET_##BIT,					\
		.offset = offsetof(struct mgpu_settings, member),	\
		.min = lowest, .max = highest, .none = zero, .why = text, \
	}

static const struct setting_range ranges[] = {
	RANGE(WEIGHT, weight, MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX, false,
	      "weight is 1 to 10000"),
	RANGE(FPS_LIMIT, fps_limit, MGPU_FPS_LIMIT_MIN, MGPU_FPS_LIMIT_MAX, true, BAD_RATE),
	RANGE(FPS_TARGET, fps_target, MGPU_FPS_LIMIT_MIN, MGPU_FPS_LIMIT_MAX, true, BAD_RATE),
	RANGE(FPS_FLOOR, fps_floor, MGPU_FPS_LIMIT_MIN, MGPU_FPS_LIMIT_MAX, true, BAD_RATE),
	RANGE(QUARANTINE, quarantine, 0, 1, false,
	      "quarantine is 1 to begin it, or 0 to lift it"),
	RANGE(GPU_LIMIT, gpu_limit, MGPU_GPU_LIMIT_MIN, MGPU_GPU_LIMIT_MAX, true, BAD_SHARE),
	RANGE(GPU_TARGET, gpu_target, MGPU_GPU_LIMIT_MIN, MGPU_GPU_LIMIT_MAX, true, BAD_SHARE),
	RANGE(GPU_PERIOD, gpu_period, MGPU_GPU_PERIOD_MIN, MGPU_GPU_PERIOD_MAX, false,
	      "gpu-period is in microseconds: 1000 (1 ms) to 1000000 (1 s)"),
	RANGE(GPU_BURST, gpu_burst, 0, MGPU_GPU_BURST_MAX, false,
	      "gpu-burst is in microseconds of engine time: 0 to 1000000 (1 s)"),
};

static_assert(MGPU_WEIGHT_MIN == 1 && MGPU_WEIGHT_MAX == 10000 &&
	      MGPU_FPS_LIMIT_MIN == 1000 && MGPU_FPS_LIMIT_MAX == 10000000 &&
	      MGPU_GPU_LIMIT_MIN == 1000 && MGPU_GPU_LIMIT_MAX == 1000000 &&
	      MGPU_GPU_PERIOD_MIN == 1000 && MGPU_GPU_PERIOD_MAX == 1000000 &&
	      MGPU_GPU_BURST_MAX == 1000000 && MGPU_MODE_MIN == 64,
	      "an error message has this number");

/* Return the place of a setting that is a number, NULL for other settings. */
u32 *mgpu_setting_value(struct mgpu_settings *set, u32 bit)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		if (ranges[i].bit == bit)
			return (u32 *)((char *)set + ranges[i].offset);
	return NULL;
}

/**
 * mgpu_settings_check - check settings that are numbers
 * @set: settings
 * @bad: set to the first setting that is out of range, MGPU_SET_*
 *
 * Return: NULL, or a sentence that says which values are valid.
 */
const char *mgpu_settings_check(const struct mgpu_settings *set, u32 *bad)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		const struct setting_range *r = &ranges[i];
		u32 value = *(const u32 *)((const char *)set + r->offset);

		if (!(set->mask & r->bit) || (r->none && !value) ||
		    (value >= r->min && value <= r->max))
			continue;
		*bad = r->bit;
		return r->why;
	}
	return NULL;
}

/**
 * mgpu_mode_check - check the preferred mode of a guest
 * @d: type of its vGPU
 * @width: width, pixels
 * @height: height, rows; 0 with a width of 0: the type's largest mode
 * @mode: set to the mode as struct mgpu_settings has it
 * @is_width: set to whether the width is what is wrong
 *
 * Return: NULL, or a sentence that says which modes are valid.
 */
const char *mgpu_mode_check(const struct mgpu_type_desc *d, u32 width, u32 height, u32 *mode,
			    bool *is_width)
{
	/* The largest mode is the default: it is not stored. */
	*mode = 0;
	if (!width && !height)
		return NULL;
	*is_width = width < MGPU_MODE_MIN;
	if (*is_width || height < MGPU_MODE_MIN)
		return MODE_TOO_SMALL;
	*is_width = width > d->max_width;
	if (*is_width || height > d->max_height)
		return MODE_TOO_LARGE;
	if (width != d->max_width || height != d->max_height)
		*mode = MGPU_MODE(width, height);
	return NULL;
}

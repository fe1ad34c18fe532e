/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine time of an open file of a DRM driver, as the driver tells it
 * (Documentation/gpu/drm-usage-stats.rst of the kernel).
 */
#ifndef MGPU_DRM_USAGE_H
#define MGPU_DRM_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct drm_usage - engine time of a file
 * @driver: name of the driver
 * @device: PCI address of the device
 * @client: number of the client: duplicates of a file have the same
 * @engine_ns: sum over the engines, nanoseconds
 *
 * A text is empty, and a number 0, if the driver does not tell it.
 */
struct drm_usage {
	char driver[32];
	char device[32];
	uint64_t client;
	uint64_t engine_ns;
};

/**
 * drm_usage_parse() - take engine time from the text about a file
 * @text: contents of /proc/PID/fdinfo/FD
 * @u: result
 *
 * Return: false if the text has no engine time.
 */
bool drm_usage_parse(const char *text, struct drm_usage *u);

/**
 * drm_usage_read() - read the engine time of a file
 * @path: name of /proc/PID/fdinfo/FD
 * @u: result
 *
 * Return: false if the file is none of a DRM driver that tells engine time.
 */
bool drm_usage_read(const char *path, struct drm_usage *u);

/* Are two files one client of a device? */
bool drm_usage_same(const struct drm_usage *a, const struct drm_usage *b);

#endif /* MGPU_DRM_USAGE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings made at run time: values that count more than the configuration file and the
 * command line, until they are reset. An overlay is a JSON object as a client sends it to
 * set settings: values by the names on the socket, agreements under TABLE_SLA, and
 * descriptions under TABLE_DESCRIPTIONS. It holds both values of each agreement, also if the
 * client sent only one of them, and null for a vGPU whose agreement or description of the
 * file was removed. Pure.
 */
#ifndef MGPUD_OVERLAY_H
#define MGPUD_OVERLAY_H

#include "config/config.h"

struct json_object;

/**
 * overlay_set() - add what a client sets
 * @overlay: overlay before, NULL for none
 * @base: configuration without an overlay
 * @now: configuration with @settings in force
 * @settings: what the client set, which table_json() took
 *
 * Return: a new overlay, or NULL when out of memory.
 */
struct json_object *overlay_set(struct json_object *overlay, const struct config *base,
				const struct config *now, struct json_object *settings);

/**
 * overlay_reset() - remove values
 * @overlay: overlay before, NULL for none
 * @keys: array of names of settings, TABLE_SLA for all agreements, TABLE_DESCRIPTIONS for
 *	all descriptions, a UUID for those of one vGPU, or "default" for the agreement of the
 *	others; NULL for all. A name without a value in @overlay changes nothing.
 * @to: new overlay
 * @err: why a key is refused
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int overlay_reset(struct json_object *overlay, struct json_object *keys,
		  struct json_object **to, struct settings_error *err);

/**
 * overlay_apply() - make the configuration that is in force
 * @base: configuration without an overlay
 * @overlay: NULL for none
 * @to: result; unchanged on error
 * @err: why a value is refused
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int overlay_apply(const struct config *base, struct json_object *overlay,
		  struct config *to, struct settings_error *err);

/**
 * overlay_keep_valid() - drop values that this mgpud refuses
 * @overlay: from a file, which is not trusted
 * @base: configuration without an overlay
 * @to: new overlay, which overlay_apply() takes
 * @why: sentences about the values that were dropped, "" for none
 * @size: size of @why, bytes
 *
 * Return: 0 or -ENOMEM.
 */
int overlay_keep_valid(struct json_object *overlay, const struct config *base,
		       struct json_object **to, char *why, size_t size);

/* Number of settings, agreements and descriptions in an overlay, which may be NULL. */
size_t overlay_count(struct json_object *overlay);

#endif /* MGPUD_OVERLAY_H */

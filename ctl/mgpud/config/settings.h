/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Agreements and descriptions of vGPUs as text and JSON, and the check of settings that
 * belong together. Pure.
 */
#ifndef MGPUD_SETTINGS_H
#define MGPUD_SETTINGS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "decide.h"
#include "learn.h"

struct json_object;

#define SETTINGS_VGPUS_MAX	4096	/* vGPUs with an agreement of their own; described ones */

/**
 * struct sla_vgpu - the agreement of one vGPU
 * @uuid: UUID of the vGPU, text in lower case
 * @sla: its agreement, which replaces the one for all
 */
struct sla_vgpu {
	char uuid[SAMPLE_UUID_LEN];
	struct sla sla;
};

/**
 * struct description - what the owner of a vGPU's VM says that it is for
 * @uuid: UUID of the vGPU, text in lower case
 * @text: UTF-8 without control characters, not ""
 */
struct description {
	char uuid[SAMPLE_UUID_LEN];
	char text[LEARN_TEXT];
};

/**
 * struct settings - what can be set while mgpud runs
 * @allocator: the allocator
 * @period_ms: length of a period, ms
 * @iterations: iterations per period, for allocators that iterate
 * @headroom: demand of a vGPU that no limit holds back, in measured rates
 * @param: parameters of f
 * @sla: agreement of the vGPUs that are not in @vgpus
 * @vgpus: vGPUs with an agreement of their own, sorted by UUID
 * @nr_vgpus: number of entries of @vgpus
 * @descriptions: vGPUs that are described, sorted by UUID
 * @nr_descriptions: number of entries of @descriptions
 */
struct settings {
	const struct alloc_ops *allocator;
	unsigned int period_ms;
	unsigned int iterations;
	double headroom;
	struct fds_param param;
	struct sla sla;
	struct sla_vgpu *vgpus;
	size_t nr_vgpus;
	struct description *descriptions;
	size_t nr_descriptions;
};

/**
 * struct settings_error - why a setting is refused
 * @key: the setting, by the name that the caller used
 * @text: a sentence
 */
struct settings_error {
	char key[32];
	char text[384];
};

/* Fill @err with a key and a sentence; returns -EINVAL. */
__attribute__((format(printf, 3, 4)))
static inline int settings_wrong(struct settings_error *err, const char *key, const char *fmt, ...)
{
	va_list ap;

	snprintf(err->key, sizeof(err->key), "%s", key);
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Return whether a text is UTF-8 without control characters. */
bool settings_is_text(const char *text);

/* Return the text of a JSON string, valid as long as this; "" if it has bytes with the value 0. */
const char *settings_string(struct json_object *string);

/* Copy settings, which own their lists of vGPUs. Returns 0 or -ENOMEM. */
int settings_copy(struct settings *to, const struct settings *from);
void settings_free(struct settings *set);

/* ---- agreements ---- */

/* Return the agreement of a vGPU: its own, or the one for all others. */
const struct sla *settings_sla(const struct settings *set, const char *uuid);

/*
 * Set the agreement of a vGPU, or remove it: @sla NULL. @uuid NULL: the agreement of all
 * vGPUs without their own. Returns 0, or -EINVAL or -ENOMEM with @set unchanged.
 */
int settings_sla_set(struct settings *set, const char *uuid, const struct sla *sla,
		     struct settings_error *err);

/* Convert a UUID to lower case; return false if @text is not a UUID. */
bool settings_uuid(const char *text, char uuid[SAMPLE_UUID_LEN]);

/* Set @key, floor or ceiling, from frames per second or none. Returns 0 or -EINVAL. */
int settings_sla_parse(struct sla *sla, const char *key, const char *value,
		       struct settings_error *err);

/**
 * settings_sla_json() - set agreements from JSON
 * @set: settings; agreements before one that is refused have changed
 * @e: vGPUs whose own settings count, or NULL
 * @obj: an object of agreements by UUID or "default"
 * @err: why one is refused
 *
 * A floor or a ceiling that is not given stays as it is in force: a new agreement takes over the
 * floor that the vGPU's setting has.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int settings_sla_json(struct settings *set, const struct estimate *e, struct json_object *obj,
		      struct settings_error *err);

/* ---- descriptions ---- */

/* Return the description of a vGPU, NULL if it has none. */
const char *settings_description(const struct settings *set, const char *uuid);

/*
 * Describe a vGPU, or remove its description: @text NULL. Returns 0, or -EINVAL or -ENOMEM
 * with @set unchanged.
 */
int settings_describe(struct settings *set, const char *uuid, const char *text,
		      struct settings_error *err);

/* An object of descriptions, or null, by UUID. Returns 0, -EINVAL or -ENOMEM. */
int settings_describe_json(struct settings *set, struct json_object *obj,
			   struct settings_error *err);

/* ---- the use ---- */

/* Check the settings that belong together: beta and lambda. Returns 0 or -EINVAL. */
int settings_check(const struct settings *set, struct settings_error *err);

/* Return whether the floor in force for a vGPU is that of its setting. */
bool settings_floor_is_vgpus(const struct settings *set, const struct sample_vgpu *v);

/*
 * Return the agreement in force for a vGPU: its own, or the one for all others with the floor
 * that the vGPU's setting has, if it has one.
 */
struct sla settings_sla_of(const struct settings *set, const struct sample_vgpu *v);

/* Return the agreement of each vGPU of @e, to be freed; NULL when out of memory. */
struct sla *settings_slas(const struct settings *set, const struct estimate *e);

/*
 * Run decide() with these settings. @expect: what is expected of each vGPU of @e, in its
 * order; NULL for nothing. Returns what decide() returns.
 */
int settings_decide(const struct settings *set, struct estimate *e,
		    const struct expect *expect, struct control *control,
		    struct plan *plan);

#endif /* MGPUD_SETTINGS_H */

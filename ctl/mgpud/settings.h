/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be set while mgpud runs, and how it is said on the command line and
 * on the socket. Pure.
 */
#ifndef MGPUD_SETTINGS_H
#define MGPUD_SETTINGS_H

#include "decide.h"

struct json_object;

#define SETTINGS_PERIOD_MIN	100	/* ms */
#define SETTINGS_PERIOD_MAX	60000
#define SETTINGS_ITERATIONS_MAX	10000
#define SETTINGS_HEADROOM_MIN	1.05
#define SETTINGS_HEADROOM_MAX	4.0
#define SETTINGS_VGPUS_MAX	4096	/* with an agreement of their own */

/**
 * struct settings_error - what is wrong
 * @key: the setting that is wrong, as the socket calls it
 * @text: a sentence
 */
struct settings_error {
	char key[32];
	char text[256];
};

/* A key and a sentence; returns -EINVAL. */
int settings_wrong(struct settings_error *err, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void settings_default(struct settings *set);

/* struct settings owns its list of vGPUs. Returns 0 or -ENOMEM. */
int settings_copy(struct settings *to, const struct settings *from);
void settings_free(struct settings *set);

/* One setting from text. Returns 0 or -EINVAL; @set is then unchanged. */
int settings_parse(struct settings *set, const char *key, const char *value,
		   struct settings_error *err);

/* Of the settings that are numbers or names: policy to lambda. */
bool settings_is_key(const char *key);

/* ---- agreements ---- */

/*
 * Give the vGPU an agreement of its own, or take it away: @sla NULL. @uuid NULL is
 * the agreement of all others. Returns 0, -EINVAL or -ENOMEM; @set is then
 * unchanged.
 */
int settings_sla_set(struct settings *set, const char *uuid, const struct sla *sla,
		     struct settings_error *err);

/* A UUID in either case to the lower case of @uuid; false when it is none. */
bool settings_uuid(const char *text, char uuid[SAMPLE_UUID_LEN]);

/* "floor" or "ceiling": frames per second, or none. Returns 0 or -EINVAL. */
int settings_sla_parse(struct sla *sla, const char *key, const char *value,
		       struct settings_error *err);

/* beta and lambda belong together: check once all are set. */
int settings_check(const struct settings *set, struct settings_error *err);

/* Any number of settings from an object: all of them or none. */
int settings_json(struct settings *set, struct json_object *obj,
		  struct settings_error *err);

#endif /* MGPUD_SETTINGS_H */

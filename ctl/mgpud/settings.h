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

/**
 * struct settings_error - what is wrong
 * @key: the setting that is wrong, as the socket calls it
 * @text: a sentence
 */
struct settings_error {
	char key[32];
	char text[256];
};

void settings_default(struct settings *set);

/* One setting from text. Returns 0 or -EINVAL; @set is then unchanged. */
int settings_parse(struct settings *set, const char *key, const char *value,
		   struct settings_error *err);

/* beta and lambda belong together: check once all are set. */
int settings_check(const struct settings *set, struct settings_error *err);

/* Any number of settings from an object: all of them or none. */
int settings_json(struct settings *set, struct json_object *obj,
		  struct settings_error *err);

#endif /* MGPUD_SETTINGS_H */

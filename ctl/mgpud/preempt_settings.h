/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of preemption: the configuration file's section [preemption], and the
 * settings of the socket whose names begin with preempt. Pure.
 */
#ifndef MGPUD_PREEMPT_SETTINGS_H
#define MGPUD_PREEMPT_SETTINGS_H

#include "preempter.h"
#include "settings.h"

#define PREEMPT_SETTINGS	7
#define PREEMPT_SETTINGS_TEXT	256

/* The keys of [preemption], NULL at the end. */
extern const char *const preempt_settings_keys[PREEMPT_SETTINGS + 1];

/*
 * One key of [preemption] from text. Returns 0, or -EINVAL with @c as it was and a
 * sentence in @err.
 */
int preempt_settings_parse(struct preempter_config *c, const char *key, const char *value,
			   struct settings_error *err);

/* The socket calls policy preempt, and any other KEY preempt_KEY. */
bool preempt_settings_is(const char *name);
/* The same by its name there, as the command line has it. */
int preempt_settings_parse_named(struct preempter_config *c, const char *name,
				 const char *value, struct settings_error *err);

/**
 * preempt_settings_json() - any number of settings, of preemption and others
 * @set: changed by those that are none of preemption
 * @c: changed by those that are
 * @obj: settings by the names that the socket has for them
 * @err: what is wrong
 *
 * Returns 0, or -EINVAL or -ENOMEM with @set and @c as they were.
 */
int preempt_settings_json(struct settings *set, struct preempter_config *c,
			  struct json_object *obj, struct settings_error *err);

/* All of them as name=value, for the log. */
void preempt_settings_text(const struct preempter_config *c,
			   char text[PREEMPT_SETTINGS_TEXT]);

#endif /* MGPUD_PREEMPT_SETTINGS_H */

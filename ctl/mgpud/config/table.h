/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the table of settings in mgpud_settings.h to struct config and back: text of
 * the configuration file and the command line, JSON of the socket. Pure.
 */
#ifndef MGPUD_TABLE_H
#define MGPUD_TABLE_H

#include "config/config.h"
#include "mgpud_settings.h"

struct json_object;

#define TABLE_TEXT	CONFIG_PATH
#define TABLE_ALL_TEXT	768
/* Among the names on the socket: agreements and descriptions of vGPUs. */
#define TABLE_SLA	"sla"
#define TABLE_DESCRIPTIONS	"descriptions"

/* NULL: there is none. */
const struct mgpud_setting *table_key(const char *section, const char *key);
const struct mgpud_setting *table_name(const char *name);
/* The setting whose key or name this was before; NULL: there is none. */
const struct mgpud_setting *table_was(const char *section, const char *was);
/* The setting at this offset of struct config. */
const struct mgpud_setting *table_member(size_t offset);

/**
 * table_parse() - set a setting from text
 * @c: configuration, unchanged on error
 * @s: setting
 * @as: name of the setting for the error text
 * @value: text
 * @err: why it is refused
 *
 * Return: 0 or -EINVAL.
 */
int table_parse(struct config *c, const struct mgpud_setting *s, const char *as,
		const char *value, struct settings_error *err);

/**
 * table_json() - set any number of settings, agreements and descriptions, from JSON
 * @c: configuration, unchanged on error
 * @e: vGPUs for settings_sla_json(), or NULL
 * @obj: values by the names on the socket; TABLE_SLA and TABLE_DESCRIPTIONS for those of vGPUs
 * @err: why one is refused
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int table_json(struct config *c, const struct estimate *e, struct json_object *obj,
	       struct settings_error *err);

/*
 * Set a single setting, or agreements or descriptions, from JSON, without settings_check().
 * Those before one that is refused have changed. Returns as table_json().
 */
int table_json_one(struct config *c, const struct estimate *e, const char *name,
		   struct json_object *value, struct settings_error *err);

/* The name of a setting on the socket, or its key if it has none. */
const char *table_name_of(const struct mgpud_setting *s);

/* The value of a setting; of one with a path only as text. NULL: out of memory. */
struct json_object *table_value(const struct config *c, const struct mgpud_setting *s);
void table_text(const struct config *c, const struct mgpud_setting *s,
		char text[TABLE_TEXT]);

/* All settings that the socket can change, as name=value, for the log. */
void table_all(const struct config *c, char text[TABLE_ALL_TEXT]);

#endif /* MGPUD_TABLE_H */

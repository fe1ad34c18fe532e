// SPDX-License-Identifier: GPL-2.0-only
/* Settings as text and JSON, by their table. Pure. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <json-c/json.h>

#include "config/table.h"
#include "server/number.h"

#define MS_NS		1e6

/* In the order of mgpud_settings[]. */
static const size_t offset[] = {
#define MGPUD_SETTING(member, ...)	offsetof(struct config, member)
#include "mgpud_settings.h"
};

_Static_assert(sizeof(offset) / sizeof(offset[0]) <= CONFIG_SETTINGS_MAX,
	       "room for each setting");

static void *at(struct config *c, const struct mgpud_setting *s)
{
	return (char *)c + offset[s - mgpud_settings];
}

static const void *at_const(const struct config *c, const struct mgpud_setting *s)
{
	return (const char *)c + offset[s - mgpud_settings];
}

const struct mgpud_setting *table_key(const char *section, const char *key)
{
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (!strcmp(s->section, section) && !strcmp(s->key, key))
			return s;
	return NULL;
}

const struct mgpud_setting *table_name(const char *name)
{
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (s->name && !strcmp(s->name, name))
			return s;
	return NULL;
}

const struct mgpud_setting *table_was(const char *section, const char *was)
{
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (s->was && !strcmp(s->section, section) && !strcmp(s->was, was))
			return s;
	return NULL;
}

const struct mgpud_setting *table_member(size_t member)
{
	const struct mgpud_setting *s = mgpud_settings;

	while (s->key && offset[s - mgpud_settings] != member)
		s++;
	return s;
}

/* ---- setting ---- */

static int refuse(const struct mgpud_setting *s, const char *as, const char *value,
		  struct settings_error *err)
{
	char range[MGPUD_RANGE];

	mgpud_setting_range(s, range);
	return settings_wrong(err, as, "%s must be %s, not \"%.32s\"", as, range, value);
}

static int set_number(struct config *c, const struct mgpud_setting *s, const char *as,
		      double value, struct settings_error *err)
{
	bool whole = s->kind == MGPUD_WHOLE;
	char range[MGPUD_RANGE];

	/* NAN is in no range */
	if (!(value >= s->min && value <= s->max) || (whole && value != floor(value))) {
		mgpud_setting_range(s, range);
		return settings_wrong(err, as, "%s must be a %snumber from %s", as,
				      whole ? "whole " : "", range);
	}
	if (whole)
		*(unsigned int *)at(c, s) = (unsigned int)value;
	else if (s->kind == MGPUD_MILLISECONDS)
		*(uint64_t *)at(c, s) = (uint64_t)llround(value * MS_NS);
	else
		*(double *)at(c, s) = value;
	return 0;
}

/* "fit", or "A,B". */
static int set_cost(struct config *c, const struct mgpud_setting *s, const char *as,
		    const char *value, struct settings_error *err)
{
	struct preempter_config new = c->preempt;
	const char *why;
	char *end;

	/* do not keep coefficients that were set until there is a fit */
	new.fit = !strcmp(value, s->values);
	new.param.cost = PREEMPT_COST_PUBLISHED;
	if (!new.fit) {
		new.param.cost.a = strtod(value, &end);
		if (end == value || *end != ',')
			goto err;
		value = end + 1;
		new.param.cost.b = strtod(value, &end);
		if (end == value || *end)
			goto err;
	}
	why = preempt_param_check(&new.param);
	if (why)
		return settings_wrong(err, as, "%s", why);
	c->preempt = new;
	return 0;
err:
	return settings_wrong(err, as, "%s must be fit, or two coefficients in cycles per byte, such as %g,%g",
			      as, PREEMPT_COST_A, PREEMPT_COST_B);
}

static int set_path(struct config *c, const struct mgpud_setting *s, const char *as,
		    const char *value, struct settings_error *err)
{
	bool file = s->kind == MGPUD_FILE;
	size_t max = file ? CONFIG_PATH : sizeof(((struct sockaddr_un *)NULL)->sun_path);

	if (!*value)
		return refuse(s, as, value, err);
	if (file && !strcmp(value, "none"))
		value = "";
	if (strlen(value) >= max)
		return settings_wrong(err, as, "%s must be a path of at most %zu bytes", as,
				      max - 1);
	strcpy(at(c, s), value);
	return 0;
}

/* The index of a name among those that the setting offers, -1 if it is none of them. */
static int index_of(const struct mgpud_setting *s, const char *name)
{
	const char *at_name = s->values;

	for (int i = 0; *at_name; i++) {
		size_t len = strcspn(at_name, " ");

		if (strlen(name) == len && !strncmp(at_name, name, len))
			return i;
		at_name += len + (at_name[len] == ' ');
	}
	return -1;
}

/* A name among those that the setting offers becomes its index. */
static int set_choice(struct config *c, const struct mgpud_setting *s, const char *as,
		      const char *value, struct settings_error *err)
{
	int i = index_of(s, value);

	if (i < 0)
		return refuse(s, as, value, err);
	*(unsigned int *)at(c, s) = (unsigned int)i;
	return 0;
}

/* A relative path would depend on the folder that a service manager starts mgpud in. */
static int set_model(struct config *c, const struct mgpud_setting *s, const char *as,
		     const char *value, struct settings_error *err)
{
	if (index_of(s, value) < 0 && *value != '/')
		return refuse(s, as, value, err);
	/* a client names it, and the terminal of another user shows it */
	if (strlen(value) >= CONFIG_PATH || !settings_is_text(value))
		return settings_wrong(err, as, "%s must be a path of at most %d bytes in UTF-8 without control characters",
				      as, CONFIG_PATH - 1);
	strcpy(at(c, s), strcmp(value, "none") ? value : "");
	return 0;
}

static void choice_text(const struct mgpud_setting *s, unsigned int i, char text[TABLE_TEXT])
{
	const char *name = s->values;

	while (i--)
		name += strcspn(name, " ") + 1;
	snprintf(text, TABLE_TEXT, "%.*s", (int)strcspn(name, " "), name);
}

static int set_group(struct config *c, const struct mgpud_setting *s, const char *as,
		     const char *value, struct settings_error *err)
{
	if (!*value || strlen(value) >= CONFIG_GROUP || strpbrk(value, " :/"))
		return refuse(s, as, value, err);
	strcpy(at(c, s), value);
	return 0;
}

static int set_text(struct config *c, const struct mgpud_setting *s, const char *as,
		    const char *value, struct settings_error *err)
{
	const struct preempt_ops *preempt;
	const struct alloc_ops *alloc;

	switch (s->kind) {
	case MGPUD_ALLOCATOR:
		alloc = alloc_find(value);
		if (!alloc)
			return refuse(s, as, value, err);
		*(const struct alloc_ops **)at(c, s) = alloc;
		return 0;
	case MGPUD_PREEMPTION:
		preempt = preempt_find(value);
		if (!preempt)
			return refuse(s, as, value, err);
		*(const struct preempt_ops **)at(c, s) = preempt;
		return 0;
	case MGPUD_COST:
		return set_cost(c, s, as, value, err);
	case MGPUD_LOG:
		return log_mode_parse(value, at(c, s)) ? 0 : refuse(s, as, value, err);
	case MGPUD_CHOICE:
		return set_choice(c, s, as, value, err);
	case MGPUD_GROUP:
		return set_group(c, s, as, value, err);
	case MGPUD_MODEL:
		return set_model(c, s, as, value, err);
	default:
		return set_path(c, s, as, value, err);
	}
}

int table_parse(struct config *c, const struct mgpud_setting *s, const char *as,
		const char *value, struct settings_error *err)
{
	double number;
	char *end;

	if (!mgpud_setting_is_number(s))
		return set_text(c, s, as, value, err);
	errno = 0;
	number = strtod(value, &end);
	if (end == value || *end || errno == ERANGE)
		return settings_wrong(err, as, "%s must be a number, not \"%.32s\"", as, value);
	return set_number(c, s, as, number, err);
}

/* ---- all at once ---- */

static int unknown(const char *name, struct settings_error *err)
{
	const struct mgpud_setting *renamed = table_was(MGPUD_RATES, name);

	if (renamed)
		return settings_wrong(err, name, "%s is called %s now: use \"%s\"", name,
				      renamed->name, renamed->name);
	settings_wrong(err, name, "unknown setting \"%.32s\"; the settings are ", name);
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		size_t len = strlen(err->text);

		if (s->name)
			snprintf(err->text + len, sizeof(err->text) - len, "%s, ", s->name);
	}
	strncat(err->text, TABLE_SLA " and " TABLE_DESCRIPTIONS,
		sizeof(err->text) - 1 - strlen(err->text));
	return -EINVAL;
}

int table_json_one(struct config *c, const struct estimate *e, const char *name,
		   struct json_object *value, struct settings_error *err)
{
	const struct mgpud_setting *s = table_name(name);
	enum json_type type = json_object_get_type(value);

	if (!strcmp(name, TABLE_SLA))
		return settings_sla_json(&c->set, e, value, err);
	if (!strcmp(name, TABLE_DESCRIPTIONS))
		return settings_describe_json(&c->set, value, err);
	if (!s)
		return unknown(name, err);
	if (!mgpud_setting_is_number(s)) {
		if (type != json_type_string)
			return settings_wrong(err, name, "%s must be a string", name);
		return set_text(c, s, name, settings_string(value), err);
	}
	if (type != json_type_int && type != json_type_double)
		return settings_wrong(err, name, "%s must be a number", name);
	return set_number(c, s, name, json_object_get_double(value), err);
}

int table_json(struct config *c, const struct estimate *e, struct json_object *obj,
	       struct settings_error *err)
{
	struct config new;
	int ret = 0;

	if (!json_object_is_type(obj, json_type_object))
		return settings_wrong(err, "settings", "settings must be an object, such as {\"%s\":\"%s\"}",
				      mgpud_settings[0].name, mgpud_settings[0].initial);
	if (config_copy(&new, c)) {
		settings_wrong(err, "settings", "out of memory");
		return -ENOMEM;
	}
	json_object_object_foreach(obj, name, value) {
		ret = table_json_one(&new, e, name, value, err);
		if (ret)
			break;
	}
	if (!ret)
		ret = settings_check(&new.set, err);
	if (ret) {
		settings_free(&new.set);
		return ret;
	}
	settings_free(&c->set);
	*c = new;
	return 0;
}

/* ---- telling ---- */

static double get_number(const struct config *c, const struct mgpud_setting *s)
{
	switch (s->kind) {
	case MGPUD_WHOLE:
		return *(const unsigned int *)at_const(c, s);
	case MGPUD_MILLISECONDS:
		return (double)*(const uint64_t *)at_const(c, s) / MS_NS;
	default:
		return *(const double *)at_const(c, s);
	}
}

void table_text(const struct config *c, const struct mgpud_setting *s,
		char text[TABLE_TEXT])
{
	const void *value = at_const(c, s);

	switch (s->kind) {
	case MGPUD_WHOLE:
	case MGPUD_NUMBER:
	case MGPUD_MILLISECONDS:
		snprintf(text, TABLE_TEXT, "%.10g", get_number(c, s));
		break;
	case MGPUD_ALLOCATOR:
		strcpy(text, (*(const struct alloc_ops *const *)value)->name);
		break;
	case MGPUD_PREEMPTION:
		strcpy(text, (*(const struct preempt_ops *const *)value)->name);
		break;
	case MGPUD_COST:
		if (c->preempt.fit)
			strcpy(text, s->values);
		else
			snprintf(text, TABLE_TEXT, "%g,%g", c->preempt.param.cost.a,
				 c->preempt.param.cost.b);
		break;
	case MGPUD_LOG:
		strcpy(text, log_mode_name(*(const enum log_mode *)value));
		break;
	case MGPUD_CHOICE:
		choice_text(s, *(const unsigned int *)value, text);
		break;
	case MGPUD_SOCKET:
	case MGPUD_FILE:
	case MGPUD_GROUP:
	case MGPUD_MODEL:
		strcpy(text, *(const char *)value ? value : "none");
		break;
	}
}

const char *table_name_of(const struct mgpud_setting *s)
{
	return s->name ? s->name : s->key;
}

struct json_object *table_value(const struct config *c, const struct mgpud_setting *s)
{
	char text[TABLE_TEXT];

	if (s->kind == MGPUD_WHOLE)
		return json_object_new_int64(*(const unsigned int *)at_const(c, s));
	if (mgpud_setting_is_number(s))
		return number(get_number(c, s));
	table_text(c, s, text);
	return json_object_new_string(text);
}

void table_all(const struct config *c, char text[TABLE_ALL_TEXT])
{
	char value[TABLE_TEXT];
	size_t len = 0;

	text[0] = '\0';
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		if (!s->name)
			continue;
		table_text(c, s, value);
		snprintf(text + len, TABLE_ALL_TEXT - len, "%s%s=%.64s", len ? " " : "",
			 s->name, value);
		len = strlen(text);
	}
}

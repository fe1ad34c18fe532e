// SPDX-License-Identifier: GPL-2.0-only
/* Settings made at run time. Pure. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <json-c/json.h>

#include "config/fail.h"
#include "config/overlay.h"
#include "config/table.h"

#define OTHERS	"default"	/* the agreement for all others */

/* An own copy; NULL when out of memory. */
static struct json_object *copy(struct json_object *overlay)
{
	struct json_object *new = NULL;

	if (!overlay)
		return json_object_new_object();
	return json_object_deep_copy(overlay, &new, NULL) ? NULL : new;
}

/* Values by UUID: the names under which an overlay has them. */
static const char *const of_vgpus[] = { TABLE_SLA, TABLE_DESCRIPTIONS };

#define NR_OF_VGPUS	(sizeof(of_vgpus) / sizeof(of_vgpus[0]))

static bool is_of_vgpus(const char *name)
{
	for (size_t i = 0; i < NR_OF_VGPUS; i++)
		if (!strcmp(name, of_vgpus[i]))
			return true;
	return false;
}

/* The agreements or the descriptions of an overlay; NULL: there are none. */
static struct json_object *by_uuid(struct json_object *overlay, const char *name)
{
	struct json_object *all = NULL;

	return json_object_object_get_ex(overlay, name, &all) &&
		json_object_is_type(all, json_type_object) ? all : NULL;
}

/* The same; made if there are none. NULL when out of memory. */
static struct json_object *make_by_uuid(struct json_object *overlay, const char *name)
{
	struct json_object *all = by_uuid(overlay, name);

	if (all)
		return all;
	all = json_object_new_object();
	if (!all || !json_object_object_add(overlay, name, all))
		return all;
	json_object_put(all);
	return NULL;
}

static void drop_if_empty(struct json_object *overlay, const char *name)
{
	struct json_object *all = by_uuid(overlay, name);

	if (all && !json_object_object_length(all))
		json_object_object_del(overlay, name);
}

static int add(struct json_object *o, const char *key, struct json_object *value)
{
	if (!value)
		return -ENOMEM;
	if (!json_object_object_add(o, key, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static bool has_own(const struct settings *set, const char *uuid)
{
	return settings_sla(set, uuid) != &set->sla;
}

static int add_value(struct json_object *o, const char *key, double value, bool none)
{
	/* null for none */
	return none ? json_object_object_add(o, key, NULL) :
		add(o, key, json_object_new_double(value));
}

static int add_agreement(struct json_object *all, const char *key, const struct sla *sla)
{
	struct json_object *o = json_object_new_object();
	int ret = add(all, key, o);

	if (!ret)
		ret = add_value(o, "floor", sla->floor, !(sla->floor > 0));
	if (!ret)
		ret = add_value(o, "ceiling", sla->ceiling, !isfinite(sla->ceiling));
	return ret;
}

static int set_agreements(struct json_object *new, const struct config *base,
			  const struct config *now, struct json_object *set)
{
	struct json_object *all = make_by_uuid(new, TABLE_SLA);
	char uuid[SAMPLE_UUID_LEN];
	int ret = 0;

	if (!all)
		return -ENOMEM;
	json_object_object_foreach(set, key, value) {
		if (!settings_uuid(key, uuid))
			ret = add_agreement(all, OTHERS, &now->set.sla);
		else if (value)
			ret = add_agreement(all, uuid, settings_sla(&now->set, uuid));
		else if (has_own(&base->set, uuid))
			ret = json_object_object_add(all, uuid, NULL);
		else
			json_object_object_del(all, uuid);
		if (ret)
			return ret;
	}
	drop_if_empty(new, TABLE_SLA);
	return 0;
}

static int set_descriptions(struct json_object *new, const struct config *base,
			    struct json_object *set)
{
	struct json_object *all = make_by_uuid(new, TABLE_DESCRIPTIONS);
	char uuid[SAMPLE_UUID_LEN];
	int ret = 0;

	if (!all)
		return -ENOMEM;
	json_object_object_foreach(set, key, value) {
		settings_uuid(key, uuid);
		if (value)
			ret = add(all, uuid, json_object_get(value));
		else if (settings_description(&base->set, uuid))
			ret = json_object_object_add(all, uuid, NULL);
		else
			json_object_object_del(all, uuid);
		if (ret)
			return ret;
	}
	drop_if_empty(new, TABLE_DESCRIPTIONS);
	return 0;
}

struct json_object *overlay_set(struct json_object *overlay, const struct config *base,
				const struct config *now, struct json_object *settings)
{
	struct json_object *new = copy(overlay);
	int ret = new ? 0 : -ENOMEM;

	json_object_object_foreach(settings, name, value) {
		if (ret)
			break;
		if (!strcmp(name, TABLE_SLA))
			ret = set_agreements(new, base, now, value);
		else if (!strcmp(name, TABLE_DESCRIPTIONS))
			ret = set_descriptions(new, base, value);
		else
			ret = add(new, name, json_object_get(value));
	}
	if (!ret)
		return new;
	json_object_put(new);
	return NULL;
}

static int reset_one(struct json_object *new, struct json_object *key,
		     struct settings_error *err)
{
	char uuid[SAMPLE_UUID_LEN];
	const char *name;

	if (!json_object_is_type(key, json_type_string))
		return settings_wrong(err, "keys", "keys must be an array of names, such as [\"%s\",\"%s\"]",
				      mgpud_settings[0].name, TABLE_SLA);
	name = json_object_get_string(key);
	if (is_of_vgpus(name) || table_name(name)) {
		json_object_object_del(new, name);
		return 0;
	}
	if (!strcmp(name, OTHERS))
		strcpy(uuid, OTHERS);
	else if (!settings_uuid(name, uuid))
		return settings_wrong(err, "keys", "\"%.40s\" is neither a setting, nor \"%s\" for all agreements, \"%s\" for all descriptions, nor a UUID or \"%s\" for one",
				      name, TABLE_SLA, TABLE_DESCRIPTIONS, OTHERS);
	for (size_t i = 0; i < NR_OF_VGPUS; i++) {
		struct json_object *all = by_uuid(new, of_vgpus[i]);

		if (!all)
			continue;
		json_object_object_del(all, uuid);
		drop_if_empty(new, of_vgpus[i]);
	}
	return 0;
}

int overlay_reset(struct json_object *overlay, struct json_object *keys,
		  struct json_object **to, struct settings_error *err)
{
	struct json_object *new = copy(keys ? overlay : NULL);
	int ret = 0;

	if (!new) {
		settings_wrong(err, "keys", "out of memory");
		return -ENOMEM;
	}
	if (keys && !json_object_is_type(keys, json_type_array))
		ret = settings_wrong(err, "keys", "keys must be an array; without it all settings are reset");
	for (size_t i = 0; !ret && keys && i < json_object_array_length(keys); i++)
		ret = reset_one(new, json_object_array_get_idx(keys, i), err);
	if (ret)
		json_object_put(new);
	else
		*to = new;
	return ret;
}

int overlay_apply(const struct config *base, struct json_object *overlay,
		  struct config *to, struct settings_error *err)
{
	struct config new;
	int ret;

	if (config_copy(&new, base)) {
		settings_wrong(err, "settings", "out of memory");
		return -ENOMEM;
	}
	ret = overlay ? table_json(&new, NULL, overlay, err) : 0;
	if (ret) {
		config_free(&new);
		return ret;
	}
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (s->name && json_object_object_get_ex(overlay, s->name, NULL))
			new.origin[s - mgpud_settings] = ORIGIN_RUN_TIME;
	if (json_object_object_get_ex(by_uuid(overlay, TABLE_SLA), OTHERS, NULL))
		new.sla_origin = ORIGIN_RUN_TIME;
	config_free(to);
	*to = new;
	return 0;
}

/* ---- an overlay from a file ---- */

/* Append a sentence about a value that is dropped, as long as there is room. */
static void drop(char *why, size_t size, const char *name, const char *text)
{
	size_t len = strlen(why);
	bool named = !strncmp(text, name, strlen(name));

	if (size - len > 8)
		snprintf(why + len, size - len, "%s%s%s%s", len ? "; " : "",
			 named ? "" : name, named ? "" : ": ", text);
}

/* Take the value if it is valid by itself. */
static int take(struct config *try, struct json_object *to, const char *name,
		const char *label, struct json_object *value, struct json_object *set,
		char *why, size_t size)
{
	struct settings_error err = { .text = "" };
	int ret = table_json_one(try, NULL, name, set, &err);

	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		drop(why, size, label, err.text);
		return 0;
	}
	if (!value)
		return json_object_object_add(to, label, NULL);
	return add(to, label, json_object_get(value));
}

/* Take values by UUID, each by itself. */
static int take_of_vgpus(struct config *try, struct json_object *to, const char *name,
			 struct json_object *from, char *why, size_t size)
{
	struct json_object *all = make_by_uuid(to, name);
	int ret = 0;

	if (!all)
		return -ENOMEM;
	if (!json_object_is_type(from, json_type_object)) {
		drop(why, size, name, "it must be an object of values by UUID");
	} else {
		json_object_object_foreach(from, key, value) {
			struct json_object *one = json_object_new_object();
			char uuid[SAMPLE_UUID_LEN];

			if (settings_uuid(key, uuid))
				key = uuid;
			if (!one || json_object_object_add(one, key, json_object_get(value)))
				ret = -ENOMEM;
			else
				ret = take(try, all, name, key, value, one, why, size);
			json_object_put(one);
			if (ret)
				return ret;
		}
	}
	drop_if_empty(to, name);
	return 0;
}

int overlay_keep_valid(struct json_object *overlay, const struct config *base,
		       struct json_object **to, char *why, size_t size)
{
	static const size_t together[] = {
		offsetof(struct config, set.param.beta),
		offsetof(struct config, set.param.lambda),
	};
	struct json_object *new = json_object_new_object();
	struct settings_error err;
	struct config try;
	int ret = 0;

	why[0] = '\0';
	if (!new)
		return -ENOMEM;
	if (config_copy(&try, base)) {
		json_object_put(new);
		return -ENOMEM;
	}
	if (!json_object_is_type(overlay, json_type_object)) {
		drop(why, size, "settings", "they must be an object");
		overlay = NULL;
	}
	if (overlay) {
		json_object_object_foreach(overlay, name, value) {
			if (is_of_vgpus(name))
				ret = take_of_vgpus(&try, new, name, value, why, size);
			else
				ret = take(&try, new, name, name, value, value, why, size);
			if (ret)
				break;
		}
	}
	if (!ret && settings_check(&try.set, &err)) {
		/* each is valid, but not with the other */
		for (size_t i = 0; i < sizeof(together) / sizeof(together[0]); i++) {
			const char *name = table_member(together[i])->name;

			if (!json_object_object_get_ex(new, name, NULL))
				continue;
			drop(why, size, name, err.text);
			json_object_object_del(new, name);
		}
	}
	config_free(&try);
	if (ret)
		json_object_put(new);
	else
		*to = new;
	return ret;
}

size_t overlay_count(struct json_object *overlay)
{
	size_t count;

	if (!overlay)
		return 0;
	count = (size_t)json_object_object_length(overlay);
	for (size_t i = 0; i < NR_OF_VGPUS; i++) {
		struct json_object *all = by_uuid(overlay, of_vgpus[i]);

		if (all)
			count += (size_t)json_object_object_length(all) - 1;
	}
	return count;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Agreements, descriptions, and the check of settings that belong together. Pure. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "config/settings.h"

/* An own copy of a list, not NULL; NULL when out of memory. */
static void *copy(const void *list, size_t n, size_t size)
{
	void *to = calloc(n ? n : 1, size);

	if (to && n)
		memcpy(to, list, n * size);
	return to;
}

int settings_copy(struct settings *to, const struct settings *from)
{
	struct description *descriptions = copy(from->descriptions, from->nr_descriptions,
						sizeof(*descriptions));
	struct sla_vgpu *vgpus = copy(from->vgpus, from->nr_vgpus, sizeof(*vgpus));

	if (!vgpus || !descriptions) {
		free(vgpus);
		free(descriptions);
		return -ENOMEM;
	}
	*to = *from;
	to->vgpus = vgpus;
	to->descriptions = descriptions;
	return 0;
}

void settings_free(struct settings *set)
{
	free(set->vgpus);
	set->vgpus = NULL;
	set->nr_vgpus = 0;
	free(set->descriptions);
	set->descriptions = NULL;
	set->nr_descriptions = 0;
}

int settings_check(const struct settings *set, struct settings_error *err)
{
	const char *why = fds_param_check(&set->param);

	if (!why)
		return 0;
	return settings_wrong(err, strncmp(why, "beta", 4) ? "lambda" : "beta", "%s", why);
}

/* ---- texts ---- */

/*
 * Length of the character of UTF-8 that @c begins with, in bytes; 0 if it is none, or a
 * control character.
 */
static size_t character(const unsigned char *c)
{
	static const uint32_t least[] = { 0, 0x20, 0xa0, 0x800, 0x10000 };
	size_t len = *c < 0x80 ? 1 : *c < 0xc0 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 :
		*c < 0xf8 ? 4 : 0;
	uint32_t code = len == 1 ? *c : *c & (0x7fu >> len);

	for (size_t i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3f);
	}
	if (!len || code < least[len] || code == 0x7f || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return len;
}

bool settings_is_text(const char *text)
{
	while (*text) {
		size_t len = character((const unsigned char *)text);

		if (!len)
			return false;
		text += len;
	}
	return true;
}

const char *settings_string(struct json_object *string)
{
	const char *text = json_object_get_string(string);

	return strlen(text) == (size_t)json_object_get_string_len(string) ? text : "";
}

/* ---- lists of vGPUs ---- */

/* An entry begins with the UUID of its vGPU, by which the list is sorted. */
static int compare(const void *uuid, const void *entry)
{
	return strcmp(uuid, entry);
}

static void *find(const void *list, size_t n, size_t size, const char *uuid)
{
	return n ? bsearch(uuid, list, n, size, compare) : NULL;
}

/* Insert an entry. Return the list, which may move; NULL when out of memory. */
static void *insert(void *list, size_t *n, size_t size, const void *entry)
{
	char *more = realloc(list, (*n + 1) * size), *at = more;

	if (!more)
		return NULL;
	while (at < more + *n * size && compare(entry, at) > 0)
		at += size;
	memmove(at + size, at, (size_t)(more + *n * size - at));
	memcpy(at, entry, size);
	++*n;
	return more;
}

static void drop(void *list, size_t *n, size_t size, void *entry)
{
	char *next = (char *)entry + size;

	memmove(entry, next, (size_t)((char *)list + *n * size - next));
	--*n;
}

/* ---- agreements ---- */

const struct sla *settings_sla(const struct settings *set, const char *uuid)
{
	const struct sla_vgpu *own = find(set->vgpus, set->nr_vgpus, sizeof(*own), uuid);

	return own ? &own->sla : &set->sla;
}

bool settings_uuid(const char *text, char uuid[SAMPLE_UUID_LEN])
{
	char lower[SAMPLE_UUID_LEN];

	if (strlen(text) != SAMPLE_UUID_LEN - 1)
		return false;
	for (size_t i = 0; i < SAMPLE_UUID_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		lower[i] = (char)tolower((unsigned char)text[i]);
		if (i < SAMPLE_UUID_LEN - 1 &&
		    (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i])))
			return false;
	}
	memcpy(uuid, lower, sizeof(lower));
	return true;
}

static int not_a_uuid(struct settings_error *err, const char *key, const char *text)
{
	return settings_wrong(err, key, "\"%.40s\" is not a UUID: write 32 hexadecimal digits in groups of 8-4-4-4-12",
			      text);
}

static int add_sla(struct settings *set, const char *uuid, const struct sla *sla,
		   struct settings_error *err)
{
	struct sla_vgpu new = { .sla = *sla }, *more;

	if (set->nr_vgpus == SETTINGS_VGPUS_MAX)
		return settings_wrong(err, "sla", "at most %d vGPUs may have an agreement of their own; remove that of another vGPU first",
				      SETTINGS_VGPUS_MAX);
	strcpy(new.uuid, uuid);
	more = insert(set->vgpus, &set->nr_vgpus, sizeof(new), &new);
	if (!more) {
		settings_wrong(err, "sla", "out of memory");
		return -ENOMEM;
	}
	set->vgpus = more;
	return 0;
}

int settings_sla_set(struct settings *set, const char *uuid, const struct sla *sla,
		     struct settings_error *err)
{
	const char *why = sla ? sla_check(sla) : NULL;
	char lower[SAMPLE_UUID_LEN];
	struct sla_vgpu *own;

	if (why)
		return settings_wrong(err, strncmp(why, "ceiling", 7) ? "floor" : "ceiling",
				      "%s", why);
	if (!uuid) {
		set->sla = sla ? *sla : SLA_NONE;
		return 0;
	}
	if (!settings_uuid(uuid, lower))
		return not_a_uuid(err, "sla", uuid);
	own = find(set->vgpus, set->nr_vgpus, sizeof(*own), lower);
	if (own && sla)
		own->sla = *sla;
	else if (sla)
		return add_sla(set, lower, sla, err);
	else if (own)
		drop(set->vgpus, &set->nr_vgpus, sizeof(*own), own);
	return 0;
}

/* @value NAN: none. */
static int set_fps(struct sla *sla, const char *key, double value,
		   struct settings_error *err)
{
	bool is_floor = !strcmp(key, "floor");

	if (!isnan(value) && !(value >= SLA_FPS_MIN && value <= SLA_FPS_MAX))
		return settings_wrong(err, key, "%s must be from %g to %g frames per second, or none",
				      key, SLA_FPS_MIN, SLA_FPS_MAX);
	if (is_floor)
		sla->floor = isnan(value) ? 0 : value;
	else
		sla->ceiling = isnan(value) ? INFINITY : value;
	return 0;
}

int settings_sla_parse(struct sla *sla, const char *key, const char *value,
		       struct settings_error *err)
{
	double number;
	char *end;

	if (strcmp(key, "floor") && strcmp(key, "ceiling"))
		return settings_wrong(err, key, "an agreement has floor and ceiling, and a vGPU also a description, not \"%.32s\"",
				      key);
	if (!strcmp(value, "none"))
		return set_fps(sla, key, NAN, err);
	number = strtod(value, &end);
	if (end == value || *end || isnan(number))
		return settings_wrong(err, key, "%s must be frames per second or none, not \"%.32s\"",
				      key, value);
	return set_fps(sla, key, number, err);
}

/* The agreement in force for a vGPU of @e, or for one that is not there; @uuid NULL: for all. */
static struct sla in_force(const struct settings *set, const struct estimate *e, const char *uuid)
{
	if (!uuid)
		return set->sla;
	for (size_t j = 0; e && j < e->nr_vgpus; j++)
		if (!strcmp(e->vgpus[j].last.uuid, uuid))
			return settings_sla_of(set, &e->vgpus[j].last);
	return *settings_sla(set, uuid);
}

/* {"floor":30,"ceiling":null}: null is none; a missing key stays unchanged. */
static int json_one_sla(struct settings *set, const struct estimate *e, const char *uuid,
			struct json_object *obj, struct settings_error *err)
{
	struct sla sla = in_force(set, e, uuid);
	int ret;

	if (!obj)
		return settings_sla_set(set, uuid, NULL, err);
	if (!json_object_is_type(obj, json_type_object))
		return settings_wrong(err, "sla", "an agreement must be an object, such as {\"floor\":30,\"ceiling\":null}, or null");
	json_object_object_foreach(obj, key, value) {
		enum json_type type = json_object_get_type(value);
		double number = NAN;

		if (strcmp(key, "floor") && strcmp(key, "ceiling"))
			return settings_wrong(err, "sla", "an agreement has floor and ceiling, not \"%.32s\"",
					      key);
		if (type == json_type_int || type == json_type_double)
			number = json_object_get_double(value);
		if (value && !isfinite(number))
			return settings_wrong(err, key, "%s must be a number or null", key);
		ret = set_fps(&sla, key, number, err);
		if (ret)
			return ret;
	}
	return settings_sla_set(set, uuid, &sla, err);
}

int settings_sla_json(struct settings *set, const struct estimate *e, struct json_object *obj,
		      struct settings_error *err)
{
	char uuid[SAMPLE_UUID_LEN];
	int ret;

	if (!json_object_is_type(obj, json_type_object))
		return settings_wrong(err, "sla", "sla must be an object of agreements by UUID or \"default\"");
	json_object_object_foreach(obj, key, value) {
		bool others = !strcmp(key, "default");

		if (!others && !settings_uuid(key, uuid))
			return settings_wrong(err, "sla", "\"%.40s\" is neither a UUID nor \"default\"",
					      key);
		ret = json_one_sla(set, e, others ? NULL : uuid, value, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- descriptions ---- */

const char *settings_description(const struct settings *set, const char *uuid)
{
	const struct description *d = find(set->descriptions, set->nr_descriptions, sizeof(*d),
					   uuid);

	return d ? d->text : NULL;
}

static int add_description(struct settings *set, const char *uuid, const char *text,
			   struct settings_error *err)
{
	struct description new = { 0 }, *more;

	if (set->nr_descriptions == SETTINGS_VGPUS_MAX)
		return settings_wrong(err, "description", "at most %d vGPUs may be described; remove the description of another vGPU first",
				      SETTINGS_VGPUS_MAX);
	strcpy(new.uuid, uuid);
	strcpy(new.text, text);
	more = insert(set->descriptions, &set->nr_descriptions, sizeof(new), &new);
	if (!more) {
		settings_wrong(err, "description", "out of memory");
		return -ENOMEM;
	}
	set->descriptions = more;
	return 0;
}

int settings_describe(struct settings *set, const char *uuid, const char *text,
		      struct settings_error *err)
{
	char lower[SAMPLE_UUID_LEN];
	struct description *own;

	if (!settings_uuid(uuid, lower))
		return not_a_uuid(err, "description", uuid);
	if (text && (!*text || strlen(text) >= LEARN_TEXT || !settings_is_text(text)))
		return settings_wrong(err, "description", "description must be a text of 1 to %d bytes in UTF-8 without control characters, or none",
				      LEARN_TEXT - 1);
	own = find(set->descriptions, set->nr_descriptions, sizeof(*own), lower);
	if (own && text)
		strcpy(own->text, text);
	else if (text)
		return add_description(set, lower, text, err);
	else if (own)
		drop(set->descriptions, &set->nr_descriptions, sizeof(*own), own);
	return 0;
}

int settings_describe_json(struct settings *set, struct json_object *obj,
			   struct settings_error *err)
{
	if (!json_object_is_type(obj, json_type_object))
		return settings_wrong(err, "descriptions", "descriptions must be an object of texts, or null, by UUID");
	json_object_object_foreach(obj, uuid, value) {
		int ret;

		if (value && !json_object_is_type(value, json_type_string))
			return settings_wrong(err, "descriptions", "the description of \"%.40s\" must be a string or null",
					      uuid);
		ret = settings_describe(set, uuid, value ? settings_string(value) : NULL, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- the use ---- */

bool settings_floor_is_vgpus(const struct settings *set, const struct sample_vgpu *v)
{
	return v->fps_floor && settings_sla(set, v->uuid) == &set->sla;
}

struct sla settings_sla_of(const struct settings *set, const struct sample_vgpu *v)
{
	struct sla sla = *settings_sla(set, v->uuid);

	/* a floor of the vGPU itself replaces the one for all others, below their ceiling */
	if (settings_floor_is_vgpus(set, v))
		sla.floor = fmin(v->fps_floor / 1000.0, sla.ceiling);
	return sla;
}

struct sla *settings_slas(const struct settings *set, const struct estimate *e)
{
	struct sla *sla = calloc(e->nr_vgpus ? e->nr_vgpus : 1, sizeof(*sla));

	for (size_t j = 0; sla && j < e->nr_vgpus; j++)
		sla[j] = settings_sla_of(set, &e->vgpus[j].last);
	return sla;
}

int settings_decide(const struct settings *set, struct estimate *e,
		    const struct expect *expect, struct control *control,
		    struct plan *plan)
{
	const struct decide_param param = {
		.allocator = set->allocator, .iterations = set->iterations,
		.fds = set->param,
	};
	struct sla *sla = settings_slas(set, e);
	int ret;

	if (!sla) {
		memset(plan, 0, sizeof(*plan));
		return -ENOMEM;
	}
	ret = decide(e, &param, sla, expect, control, plan);
	free(sla);
	return ret;
}

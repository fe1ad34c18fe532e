// SPDX-License-Identifier: GPL-2.0-only
/* Settings of preemption: names, values, and what to say when one is wrong. Pure. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "preempt_settings.h"

#define PREFIX	"preempt"

#define MS_NS	1e6

const char *const preempt_settings_keys[PREEMPT_SETTINGS + 1] = {
	"policy", "cost", "decay_compute", "decay_memory", "class_threshold", "starve_ms",
	"min_gain", NULL
};

/* The key that the socket has this name for, NULL when it is none of preemption. */
static const char *key_of(const char *name)
{
	if (!strcmp(name, PREFIX))
		return "policy";
	if (strncmp(name, PREFIX "_", strlen(PREFIX "_")))
		return NULL;
	name += strlen(PREFIX "_");
	for (size_t i = 0; preempt_settings_keys[i]; i++)
		if (!strcmp(name, preempt_settings_keys[i]) && strcmp(name, "policy"))
			return preempt_settings_keys[i];
	return NULL;
}

bool preempt_settings_is(const char *name)
{
	return key_of(name);
}

static int set_policy(struct preempter_config *c, const char *name,
		      struct settings_error *err)
{
	const struct preempt_ops *ops = preempt_find(name);
	char names[128] = "";

	if (ops) {
		c->ops = ops;
		return 0;
	}
	for (const struct preempt_ops *const *p = preempt_all; *p; p++) {
		size_t len = strlen(names);

		snprintf(names + len, sizeof(names) - len, "%s%s",
			 p == preempt_all ? "" : p[1] ? ", " : " or ", (*p)->name);
	}
	return settings_wrong(err, "policy", "there is no policy of preemption \"%.32s\"; it is %s",
			      name, names);
}

/* @to is valid but for @key, so that what is wrong is this. */
static int take(struct preempter_config *c, const struct preempter_config *to,
		const char *key, struct settings_error *err)
{
	const char *why = preempt_param_check(&to->param);

	if (why)
		return settings_wrong(err, key, "%s", why);
	*c = *to;
	return 0;
}

/* "fit", or "A,B". */
static int set_cost(struct preempter_config *c, const char *value,
		    struct settings_error *err)
{
	struct preempter_config new = *c;
	char *end;

	/* what was set before does not linger until there is a fit */
	new.fit = !strcmp(value, "fit");
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
	return take(c, &new, "cost", err);
err:
	return settings_wrong(err, "cost", "cost must be fit, or two coefficients in cycles per byte, such as %g,%g",
			      PREEMPT_COST_A, PREEMPT_COST_B);
}

static int set_number(struct preempter_config *c, const char *key, double value,
		      struct settings_error *err)
{
	struct preempter_config new = *c;

	if (!strcmp(key, "decay_compute"))
		new.param.decay_compute = value;
	else if (!strcmp(key, "decay_memory"))
		new.param.decay_memory = value;
	else if (!strcmp(key, "class_threshold"))
		new.param.class_threshold = value;
	else if (!strcmp(key, "min_gain"))
		new.param.min_gain = value;
	else if (value >= 0 && value <= (double)PREEMPT_STARVE_MAX_NS)
		new.param.starve_ns = (uint64_t)llround(value * MS_NS);
	else
		new.param.starve_ns = 0;	/* out of any range, and of the type's */
	return take(c, &new, key, err);
}

static bool is_text(const char *key)
{
	return !strcmp(key, "policy") || !strcmp(key, "cost");
}

static int set_text(struct preempter_config *c, const char *key, const char *value,
		    struct settings_error *err)
{
	return !strcmp(key, "policy") ? set_policy(c, value, err) : set_cost(c, value, err);
}

/* "a, b, c", each with what goes before it. */
static void all_keys(char *keys, size_t size)
{
	keys[0] = '\0';
	for (size_t i = 0; preempt_settings_keys[i]; i++)
		snprintf(keys + strlen(keys), size - strlen(keys), "%s%s",
			 i ? ", " : "", preempt_settings_keys[i]);
}

int preempt_settings_parse(struct preempter_config *c, const char *key, const char *value,
			   struct settings_error *err)
{
	char keys[128];
	double number;
	char *end;
	size_t i;

	for (i = 0; preempt_settings_keys[i]; i++)
		if (!strcmp(key, preempt_settings_keys[i]))
			break;
	if (!preempt_settings_keys[i]) {
		all_keys(keys, sizeof(keys));
		return settings_wrong(err, key, "there is no key \"%.32s\" in [preemption]; they are %s",
				      key, keys);
	}
	if (is_text(key))
		return set_text(c, key, value, err);
	number = strtod(value, &end);
	if (end == value || *end)
		return settings_wrong(err, key, "%s must be a number, not \"%.32s\"", key,
				      value);
	return set_number(c, key, number, err);
}

/* What is wrong with a key is wrong with what was named. */
static int named(int ret, const char *name, struct settings_error *err)
{
	if (ret)
		snprintf(err->key, sizeof(err->key), "%s", name);
	return ret;
}

int preempt_settings_parse_named(struct preempter_config *c, const char *name,
				 const char *value, struct settings_error *err)
{
	return named(preempt_settings_parse(c, key_of(name), value, err), name, err);
}

/* ---- all at once ---- */

static int unknown(const char *name, struct settings_error *err)
{
	char keys[128];

	all_keys(keys, sizeof(keys));
	/* without policy, which is the first */
	return settings_wrong(err, name, "there is no setting \"%.32s\"; of preemption there are preempt, and preempt_ with %s",
			      name, keys + strlen("policy, "));
}

static int json_setting(struct preempter_config *c, const char *name,
			struct json_object *value, struct settings_error *err)
{
	enum json_type type = json_object_get_type(value);
	const char *key = key_of(name);

	if (!key)
		return unknown(name, err);
	if (is_text(key)) {
		if (type != json_type_string)
			return settings_wrong(err, name, "%s must be a string", name);
		return named(set_text(c, key, json_object_get_string(value), err), name, err);
	}
	if (type != json_type_int && type != json_type_double)
		return settings_wrong(err, name, "%s must be a number", name);
	return named(set_number(c, key, json_object_get_double(value), err), name, err);
}

int preempt_settings_json(struct settings *set, struct preempter_config *c,
			  struct json_object *obj, struct settings_error *err)
{
	struct preempter_config new = *c;
	struct json_object *others;
	int ret = 0;

	if (!json_object_is_type(obj, json_type_object))
		return settings_json(set, obj, err);	/* which says so */
	others = json_object_new_object();
	if (!others)
		goto no_memory;
	json_object_object_foreach(obj, name, value) {
		if (!strncmp(name, PREFIX, strlen(PREFIX)))
			ret = json_setting(&new, name, value, err);
		else if (json_object_object_add(others, name, json_object_get(value)))
			goto no_memory;
		if (ret)
			break;
	}
	if (!ret)
		ret = settings_json(set, others, err);
	json_object_put(others);
	if (!ret)
		*c = new;
	return ret;
no_memory:
	json_object_put(others);
	settings_wrong(err, "settings", "out of memory");
	return -ENOMEM;
}

void preempt_settings_text(const struct preempter_config *c,
			   char text[PREEMPT_SETTINGS_TEXT])
{
	const struct preempt_param *p = &c->param;
	char cost[64] = "fit";

	if (!c->fit)
		snprintf(cost, sizeof(cost), "%g,%g", p->cost.a, p->cost.b);
	snprintf(text, PREEMPT_SETTINGS_TEXT,
		 "preempt=%s preempt_cost=%s preempt_decay_compute=%g preempt_decay_memory=%g preempt_class_threshold=%g preempt_starve_ms=%g preempt_min_gain=%g",
		 c->ops->name, cost, p->decay_compute, p->decay_memory, p->class_threshold,
		 (double)p->starve_ns / MS_NS, p->min_gain);
}

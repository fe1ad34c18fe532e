// SPDX-License-Identifier: GPL-2.0-only
/* Settings: names, ranges, and what to say when one is wrong. Pure. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "settings.h"

__attribute__((format(printf, 3, 4)))
static int wrong(struct settings_error *err, const char *key, const char *fmt, ...)
{
	va_list ap;

	snprintf(err->key, sizeof(err->key), "%s", key);
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void settings_default(struct settings *set)
{
	*set = (struct settings){
		.policy = &alloc_exact,
		.period_ms = 1000,
		.iterations = 10,
		.headroom = ESTIMATE_HEADROOM,
		.sla = SLA_NONE,
		.param = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
}

static int set_policy(struct settings *set, const char *name,
		      struct settings_error *err)
{
	const struct alloc_ops *ops = alloc_find(name);
	char names[128] = "";

	if (ops) {
		set->policy = ops;
		return 0;
	}
	for (const struct alloc_ops *const *p = alloc_all; *p; p++) {
		size_t len = strlen(names);

		snprintf(names + len, sizeof(names) - len, "%s%s",
			 p == alloc_all ? "" : p[1] ? ", " : " or ", (*p)->name);
	}
	return wrong(err, "policy", "there is no policy \"%.32s\"; it is %s", name, names);
}

static int set_whole(unsigned int *to, const char *key, double value,
		     unsigned int min, unsigned int max, const char *unit,
		     struct settings_error *err)
{
	if (!(value >= min && value <= max) || value != floor(value))
		return wrong(err, key, "%s must be a whole number from %u to %u%s",
			     key, min, max, unit);
	*to = (unsigned int)value;
	return 0;
}

static int set_number(struct settings *set, const char *key, double value,
		      struct settings_error *err)
{
	if (!strcmp(key, "period_ms"))
		return set_whole(&set->period_ms, key, value, SETTINGS_PERIOD_MIN,
				 SETTINGS_PERIOD_MAX, " milliseconds", err);
	if (!strcmp(key, "iterations"))
		return set_whole(&set->iterations, key, value, 1,
				 SETTINGS_ITERATIONS_MAX, "", err);
	if (!isfinite(value))
		return wrong(err, key, "%s must be a finite number", key);
	if (!strcmp(key, "beta"))
		set->param.beta = value;
	else
		set->param.lambda = value;
	return 0;
}

static bool is_number(const char *key)
{
	return !strcmp(key, "period_ms") || !strcmp(key, "iterations") ||
		!strcmp(key, "beta") || !strcmp(key, "lambda");
}

static int unknown(const char *key, struct settings_error *err)
{
	return wrong(err, key, "there is no setting \"%.32s\"; they are policy, period_ms, iterations, beta and lambda",
		     key);
}

int settings_parse(struct settings *set, const char *key, const char *value,
		   struct settings_error *err)
{
	double number;
	char *end;

	if (!strcmp(key, "policy"))
		return set_policy(set, value, err);
	if (!is_number(key))
		return unknown(key, err);
	errno = 0;
	number = strtod(value, &end);
	if (end == value || *end || errno == ERANGE)
		return wrong(err, key, "%s must be a number, not \"%.32s\"", key, value);
	return set_number(set, key, number, err);
}

int settings_check(const struct settings *set, struct settings_error *err)
{
	const char *why = fds_param_check(&set->param);

	if (!why)
		return 0;
	return wrong(err, strncmp(why, "beta", 4) ? "lambda" : "beta", "%s", why);
}

int settings_json(struct settings *set, struct json_object *obj,
		  struct settings_error *err)
{
	struct settings new = *set;
	int ret;

	if (!json_object_is_type(obj, json_type_object))
		return wrong(err, "settings", "settings must be an object, such as {\"policy\":\"fea\"}");
	json_object_object_foreach(obj, key, value) {
		enum json_type type = json_object_get_type(value);

		if (!strcmp(key, "policy")) {
			if (type != json_type_string)
				return wrong(err, key, "policy must be a string");
			ret = set_policy(&new, json_object_get_string(value), err);
		} else if (is_number(key)) {
			if (type != json_type_int && type != json_type_double)
				return wrong(err, key, "%s must be a number", key);
			ret = set_number(&new, key, json_object_get_double(value), err);
		} else {
			ret = unknown(key, err);
		}
		if (ret)
			return ret;
	}
	ret = settings_check(&new, err);
	if (ret)
		return ret;
	*set = new;
	return 0;
}

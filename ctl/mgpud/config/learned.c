// SPDX-License-Identifier: GPL-2.0-only
/* The analyser's learned figures as JSON in the state file. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <json-c/json.h>

#include "config/json_get.h"
#include "config/learned.h"

/* The numbers of a kind of work. analyse_check() knows their ranges. */
static const struct {
	const char *key;
	size_t offset;
} field[] = {
#define FIELD(name) { #name, offsetof(struct analyse_kind, name) }
	FIELD(jobs), FIELD(x), FIELD(y), FIELD(xx), FIELD(xy), FIELD(spread),
	FIELD(ipc), FIELD(ipc_seen), FIELD(bound), FIELD(miss), FIELD(seen),
#undef FIELD
};

#define NR_FIELDS (sizeof(field) / sizeof(field[0]))

/* Members that are kept of a method of preemption. Its times are of a clock that begins anew. */
static const struct {
	const char *key;
	size_t offset;
} guard_field[] = {
#define FIELD(name) { #name, offsetof(struct guard_method, name) }
	FIELD(trials), FIELD(expected), FIELD(got), FIELD(square), FIELD(extra),
#undef FIELD
};

#define NR_GUARD_FIELDS	(sizeof(guard_field) / sizeof(guard_field[0]))

/* ---- writing ---- */

static void add_number(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, json_object_new_double(value));
}

static struct json_object *kind_object(const struct analyse_kind *k)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "kind", json_object_new_int64(k->kind));
	json_object_object_add(o, "used", json_object_new_int64((int64_t)k->used));
	for (size_t i = 0; i < NR_FIELDS; i++)
		add_number(o, field[i].key,
			   *(const double *)((const char *)k + field[i].offset));
	return o;
}

static struct json_object *guard_object(const struct guard *g)
{
	struct json_object *all = json_object_new_object();

	for (enum preempt_method i = 0; all && i < PREEMPT_METHODS; i++) {
		const struct guard_method *m = &g->method[i];
		struct json_object *o = json_object_new_object();

		if (!o)
			continue;
		for (size_t k = 0; k < NR_GUARD_FIELDS; k++)
			add_number(o, guard_field[k].key,
				   *(const double *)((const char *)m + guard_field[k].offset));
		json_object_object_add(o, "wait_ns", json_object_new_int64((int64_t)m->wait_ns));
		json_object_object_add(o, "measured",
				       json_object_new_int64((int64_t)m->measured));
		json_object_object_add(o, "closings",
				       json_object_new_int64((int64_t)m->closings));
		json_object_object_add(all, preempt_method_name(i), o);
	}
	return all;
}

struct json_object *learned_to_json(const struct analyse *a)
{
	struct json_object *o = json_object_new_object();
	struct json_object *kinds = json_object_new_array();
	struct json_object *norm = json_object_new_array();

	if (!o || !kinds || !norm) {
		json_object_put(o);
		json_object_put(kinds);
		json_object_put(norm);
		return NULL;
	}
	for (size_t i = 0; i < a->n; i++)
		json_object_array_add(kinds, kind_object(&a->kind[i]));
	for (int i = 0; i < PREEMPT_CLASSES * PREEMPT_CLASSES; i++) {
		struct json_object *pair = json_object_new_object();
		int from = i / PREEMPT_CLASSES, to = i % PREEMPT_CLASSES;

		if (pair) {
			add_number(pair, "slow", a->norm.slow[from][to]);
			add_number(pair, "count", a->norm.count[from][to]);
		}
		json_object_array_add(norm, pair);
	}
	json_object_object_add(o, "now", json_object_new_int64((int64_t)a->now));
	json_object_object_add(o, "kinds", kinds);
	json_object_object_add(o, "any", kind_object(&a->any));
	json_object_object_add(o, "norm", norm);
	json_object_object_add(o, "guard", guard_object(&a->guard));
	return o;
}

/* ---- reading ---- */

static bool get_double(struct json_object *o, const char *key, double *value)
{
	return json_get_number(o, key, -INFINITY, INFINITY, value);
}

static bool get_kind(struct json_object *o, struct analyse_kind *k)
{
	uint64_t kind;

	if (!json_object_is_type(o, json_type_object) ||
	    !json_get_whole(o, "kind", UINT32_MAX, &kind) ||
	    !json_get_whole(o, "used", UINT64_MAX, &k->used))
		return false;
	k->kind = (uint32_t)kind;
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (!get_double(o, field[i].key,
				(double *)((char *)k + field[i].offset)))
			return false;
	return true;
}

static bool get_guard(struct json_object *all, struct guard *g)
{
	for (enum preempt_method i = 0; i < PREEMPT_METHODS; i++) {
		struct guard_method *m = &g->method[i];
		struct json_object *o;

		if (!json_object_object_get_ex(all, preempt_method_name(i), &o) ||
		    !json_object_is_type(o, json_type_object) ||
		    !json_get_whole(o, "wait_ns", UINT64_MAX, &m->wait_ns) ||
		    !json_get_whole(o, "measured", UINT64_MAX, &m->measured) ||
		    !json_get_whole(o, "closings", UINT64_MAX, &m->closings))
			return false;
		for (size_t k = 0; k < NR_GUARD_FIELDS; k++)
			if (!get_double(o, guard_field[k].key,
					(double *)((char *)m + guard_field[k].offset)))
				return false;
		m->closed = m->wait_ns;
	}
	return true;
}

/* Return NULL, or what is wrong. */
static const char *parse(struct json_object *o, struct analyse *a)
{
	struct json_object *kinds, *norm, *any, *guard;

	if (!json_object_is_type(o, json_type_object) ||
	    !json_get_whole(o, "now", UINT64_MAX, &a->now))
		return "no number of observations";
	kinds = json_get_array(o, "kinds", ANALYSE_KINDS_MAX);
	norm = json_get_array(o, "norm", PREEMPT_CLASSES * PREEMPT_CLASSES);
	if (!kinds || !norm || !json_object_object_get_ex(o, "any", &any) ||
	    json_object_array_length(norm) != PREEMPT_CLASSES * PREEMPT_CLASSES)
		return "kinds of work or pairs of classes are missing or too many";
	a->n = json_object_array_length(kinds);
	for (size_t i = 0; i < a->n; i++)
		if (!get_kind(json_object_array_get_idx(kinds, i), &a->kind[i]))
			return "value of a kind of work is missing or of the wrong type";
	if (!get_kind(any, &a->any))
		return "value of the sum of all kinds is missing or of the wrong type";
	for (int i = 0; i < PREEMPT_CLASSES * PREEMPT_CLASSES; i++) {
		struct json_object *pair = json_object_array_get_idx(norm, (size_t)i);
		int from = i / PREEMPT_CLASSES, to = i % PREEMPT_CLASSES;

		if (!json_object_is_type(pair, json_type_object) ||
		    !get_double(pair, "slow", &a->norm.slow[from][to]) ||
		    !get_double(pair, "count", &a->norm.count[from][to]))
			return "value of a pair of classes is missing or of the wrong type";
	}
	/* an older mgpud had no guard: it begins anew */
	if (json_object_object_get_ex(o, "guard", &guard) && !get_guard(guard, &a->guard))
		return "value of a method of preemption is missing or of the wrong type";
	return analyse_check(a);
}

int learned_from_json(struct json_object *o, struct analyse *a, char *why, size_t size)
{
	struct analyse new;
	const char *wrong;

	analyse_init(&new);
	wrong = parse(o, &new);
	if (wrong) {
		snprintf(why, size, "%s", wrong);
		return -EBADMSG;
	}
	*a = new;
	return 0;
}

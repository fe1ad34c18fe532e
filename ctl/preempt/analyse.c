// SPDX-License-Identifier: GPL-2.0-only
/*
 * The analyser. Instructions are a power of the size in all the work that there is:
 * a line in logarithms, whose slope is 1 until sizes differ enough to tell.
 */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse.h"

#define IPC_MIN	1e-6
#define IPC_MAX	1e6

void analyse_init(struct analyse *a)
{
	memset(a, 0, sizeof(*a));
	preempt_norm_cold(&a->norm);
}

static bool within(double x, double min, double max)
{
	return x >= min && x <= max;
}

static const struct analyse_kind *find(const struct analyse *a, uint32_t kind)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->kind[i].kind == kind)
			return &a->kind[i];
	return NULL;
}

static struct analyse_kind *find_or_add(struct analyse *a, uint32_t kind)
{
	struct analyse_kind *k = (struct analyse_kind *)find(a, kind);

	a->now++;
	if (!k && a->n < ANALYSE_KINDS_MAX) {
		k = &a->kind[a->n++];
		*k = (struct analyse_kind){ .kind = kind };
	} else if (!k) {
		k = &a->kind[0];
		for (size_t i = 1; i < a->n; i++)
			if (a->kind[i].used < k->used)
				k = &a->kind[i];
		*k = (struct analyse_kind){ .kind = kind };
	}
	k->used = a->now;
	return k;
}

/* ---- instructions ---- */

static double predict(const struct analyse_kind *k, double x)
{
	double slope = (k->xy + ANALYSE_RIDGE) / (k->xx + ANALYSE_RIDGE);

	return k->y + fmin(fmax(slope, 0), ANALYSE_SLOPE_MAX) * (x - k->x);
}

static void learn(struct analyse_kind *k, double x, double y)
{
	double keep, dx, dy;

	if (k->jobs >= 2) {
		double expected = predict(k, x), off = y - expected;
		double most = ANALYSE_OUTLIER * fmax(k->spread, ANALYSE_SPREAD_MIN);

		/* a first few may be anything, and something new must get through */
		if (k->jobs < 4)
			most = fmax(most, 1);
		off = fmin(fmax(off, -most), most);
		y = expected + off;
		k->spread += (fabs(off) - k->spread) / fmin(k->jobs, ANALYSE_MEMORY / 4);
	}
	keep = fmin(k->jobs, ANALYSE_MEMORY - 1) / fmax(k->jobs, 1);
	k->jobs = k->jobs * keep + 1;
	dx = x - k->x;
	dy = y - k->y;
	k->x += dx / k->jobs;
	k->y += dy / k->jobs;
	k->xx = k->xx * keep + dx * (x - k->x);
	k->xy = k->xy * keep + dx * (y - k->y);
}

void analyse_done(struct analyse *a, uint32_t kind, double size, double inst)
{
	if (!within(size, 1, ANALYSE_NUMBER_MAX) || !within(inst, 1, ANALYSE_NUMBER_MAX))
		return;
	learn(find_or_add(a, kind), log(size), log(inst));
	learn(&a->any, log(size), log(inst));
}

double analyse_rest(double inst, double done)
{
	return fmax(inst - done, ANALYSE_OVERRUN * done);
}

/* ---- speed and memory ---- */

static void average(double *mean, double *seen, double value, double weight)
{
	*seen = fmin(*seen + weight, ANALYSE_MEMORY);
	*mean += (value - *mean) * weight / *seen;
}

static void learn_ipc(struct analyse_kind *k, double ipc)
{
	/* the first real one replaces what was derived */
	if (k->ipc_seen < 1)
		k->ipc_seen = 0;
	average(&k->ipc, &k->ipc_seen, ipc, 1);
}

void analyse_alone(struct analyse *a, uint32_t kind, double ipc)
{
	if (!within(ipc, IPC_MIN, IPC_MAX))
		return;
	learn_ipc(find_or_add(a, kind), ipc);
	learn_ipc(&a->any, ipc);
}

void analyse_memory(struct analyse *a, uint32_t kind, double bound, double miss)
{
	struct analyse_kind *k;
	double seen;

	if (!within(bound, 0, 1) || !within(miss, 0, 1))
		return;
	k = find_or_add(a, kind);
	seen = k->seen;
	average(&k->bound, &seen, bound, 1);
	average(&k->miss, &k->seen, miss, 1);
	seen = a->any.seen;
	average(&a->any.bound, &seen, bound, 1);
	average(&a->any.miss, &a->any.seen, miss, 1);
}

static enum preempt_class class_of(const struct preempt_param *p,
				   const struct analyse_kind *k)
{
	return preempt_classify(p, k && k->seen > 0 ? k->bound : NAN);
}

void analyse_shared(struct analyse *a, const struct preempt_param *p, uint32_t kind,
		    const double others[PREEMPT_CLASSES + 1], double ipc)
{
	struct analyse_kind *k;
	enum preempt_class class;
	double alone;

	if (!within(ipc, IPC_MIN, IPC_MAX))
		return;
	for (int b = 0; b <= PREEMPT_CLASSES; b++)
		if (!within(others[b], 0, PREEMPT_SLOTS_MAX))
			return;
	k = find_or_add(a, kind);
	class = class_of(p, k);
	if (k->ipc_seen >= 1) {
		preempt_norm_observe(&a->norm, class, others, ipc / k->ipc);
		return;
	}
	/* a hint, which never weighs as much as one look at it alone */
	alone = ipc / preempt_norm_ipc(&a->norm, class, others);
	if (!within(alone, IPC_MIN, IPC_MAX))
		return;
	if (!(k->ipc_seen > 0))
		k->ipc = alone;
	else
		k->ipc += (alone - k->ipc) / 4;
	k->ipc_seen = 0.5;
}

void analyse_guess(const struct analyse *a, const struct preempt_param *p,
		   uint32_t kind, double size, struct analyse_guess *g)
{
	const struct analyse_kind *k = find(a, kind), *any = &a->any;
	double x = log(fmin(fmax(size, 1), ANALYSE_NUMBER_MAX));
	const struct analyse_kind *from;

	from = k && k->jobs > 0 ? k : any;
	g->known = from == k;
	g->inst = from->jobs > 0 ? exp(predict(from, x)) : ANALYSE_COLD_INST * exp(x);
	g->inst = fmin(fmax(g->inst, 1), ANALYSE_NUMBER_MAX);
	from = k && k->ipc_seen > 0 ? k : any;
	g->ipc = from->ipc_seen > 0 ? from->ipc : ANALYSE_COLD_IPC;
	/* the class of the crowd says nothing of a stranger; its cache misses may */
	g->class = class_of(p, k);
	g->bound = k && k->seen > 0 ? k->bound : NAN;
	from = k && k->seen > 0 ? k : any;
	g->miss = from->seen > 0 ? from->miss : ANALYSE_COLD_MISS;
}

/* ---- JSON ---- */

/* The numbers of a kind, and what they may be. */
static const struct {
	const char *key;
	size_t offset;
	double min, max;
} field[] = {
#define FIELD(name, from, to) { #name, offsetof(struct analyse_kind, name), from, to }
	FIELD(jobs, 0, ANALYSE_MEMORY),
	FIELD(x, 0, 42),
	/* cut off, but a line may lead out of the range before it is */
	FIELD(y, -1000, 1000),
	FIELD(xx, 0, 1e6),
	FIELD(xy, -1e6, 1e6),
	FIELD(spread, 0, 1000),
	FIELD(ipc, 0, IPC_MAX),
	FIELD(ipc_seen, 0, ANALYSE_MEMORY),
	FIELD(bound, 0, 1),
	FIELD(miss, 0, 1),
	FIELD(seen, 0, ANALYSE_MEMORY),
#undef FIELD
};

#define NR_FIELDS (sizeof(field) / sizeof(field[0]))

static bool add_number(struct json_object *o, const char *key, double value)
{
	return !json_object_object_add(o, key, json_object_new_double(value));
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

struct json_object *analyse_to_json(const struct analyse *a)
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
	return o;
}

static bool get_number(struct json_object *o, const char *key, double min, double max,
		       double *value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    (!json_object_is_type(v, json_type_double) &&
	     !json_object_is_type(v, json_type_int)))
		return false;
	*value = json_object_get_double(v);
	return within(*value, min, max);
}

static bool get_whole(struct json_object *o, const char *key, uint64_t max,
		      uint64_t *value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    !json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0)
		return false;
	*value = json_object_get_uint64(v);
	return *value <= max;
}

static bool get_kind(struct json_object *o, uint64_t now, struct analyse_kind *k)
{
	uint64_t kind;

	if (!json_object_is_type(o, json_type_object) ||
	    !get_whole(o, "kind", UINT32_MAX, &kind) || !get_whole(o, "used", now, &k->used))
		return false;
	k->kind = (uint32_t)kind;
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (!get_number(o, field[i].key, field[i].min, field[i].max,
				(double *)((char *)k + field[i].offset)))
			return false;
	return k->ipc >= IPC_MIN || !(k->ipc_seen > 0);
}

static struct json_object *get_array(struct json_object *o, const char *key, size_t max)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    !json_object_is_type(v, json_type_array) || json_object_array_length(v) > max)
		return NULL;
	return v;
}

/* NULL, or what is wrong. */
static const char *parse(struct json_object *o, struct analyse *a)
{
	struct json_object *kinds, *norm, *any;

	if (!json_object_is_type(o, json_type_object) ||
	    !get_whole(o, "now", INT64_MAX / 2, &a->now))
		return "it is not what an analyser has learned";
	kinds = get_array(o, "kinds", ANALYSE_KINDS_MAX);
	norm = get_array(o, "norm", PREEMPT_CLASSES * PREEMPT_CLASSES);
	if (!kinds || !norm || !json_object_object_get_ex(o, "any", &any) ||
	    json_object_array_length(norm) != PREEMPT_CLASSES * PREEMPT_CLASSES)
		return "kinds of work or pairs of classes are missing or too many";
	a->n = json_object_array_length(kinds);
	for (size_t i = 0; i < a->n; i++) {
		if (!get_kind(json_object_array_get_idx(kinds, i), a->now, &a->kind[i]))
			return "a kind of work has values that are missing or out of range";
		for (size_t k = 0; k < i; k++)
			if (a->kind[k].kind == a->kind[i].kind)
				return "a kind of work is there twice";
	}
	if (!get_kind(any, a->now, &a->any))
		return "the sum of all kinds has values that are missing or out of range";
	for (int i = 0; i < PREEMPT_CLASSES * PREEMPT_CLASSES; i++) {
		struct json_object *pair = json_object_array_get_idx(norm, (size_t)i);
		int from = i / PREEMPT_CLASSES, to = i % PREEMPT_CLASSES;

		if (!json_object_is_type(pair, json_type_object) ||
		    !get_number(pair, "slow", -1, 1e6, &a->norm.slow[from][to]) ||
		    !get_number(pair, "count", 0, 1e6, &a->norm.count[from][to]))
			return "a pair of classes has values that are missing";
	}
	return preempt_norm_check(&a->norm);
}

int analyse_from_json(struct json_object *o, struct analyse *a, char *why, size_t size)
{
	struct analyse new = { 0 };
	const char *wrong = parse(o, &new);

	if (wrong) {
		snprintf(why, size, "%s", wrong);
		return -EBADMSG;
	}
	*a = new;
	return 0;
}

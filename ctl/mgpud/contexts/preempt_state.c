// SPDX-License-Identifier: GPL-2.0-only
/* The state of preemption, as the socket reports it. Pure. */
#include <string.h>
#include <linux/mgpu_compute.h>

#include "config/table.h"
#include "contexts/kind.h"
#include "server/number.h"
#include "contexts/preempt_state.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))

/* Find the operation with this hash. */
const char *preempt_state_op(uint32_t kind)
{
	for (uint32_t op = 0; op < MGPU_COMPUTE_NR_OPS; op++) {
		const char *name = mgpu_ctx_op_name(op);

		if (name && kind_of(name) == kind)
			return name;
	}
	return NULL;
}

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	add(o, key, text ? json_object_new_string(text) : NULL);
}

static void add_count(struct json_object *o, const char *key, uint64_t count)
{
	add(o, key, json_object_new_uint64(count));
}

static struct json_object *policies(void)
{
	struct json_object *list = json_object_new_array();

	for (const struct preempt_ops *const *p = preempt_all; list && *p; p++)
		json_object_array_add(list, json_object_new_string((*p)->name));
	return list;
}

static struct json_object *cost(const struct preempter_config *c,
				const struct preempter_stats *s)
{
	const struct preempt_cost *now = s ? &s->cost : &c->param.cost;
	struct json_object *o = json_object_new_object();
	bool fit;

	if (!o)
		return NULL;
	/* a fit may exist and not be in force: compare the coefficients */
	fit = c->fit && s && s->fit.samples && s->fit.cost.a == now->a &&
		s->fit.cost.b == now->b;
	add(o, "a", number(now->a));
	add(o, "b", number(now->b));
	add_text(o, "source", fit ? "fit" : c->fit ? "default" : "set");
	add_count(o, "samples", s ? s->fit.samples : 0);
	add(o, "median_error", s && s->fit.samples ? number(s->fit.median_error) : NULL);
	add(o, "r2", s && s->fit.samples ? number(s->fit.r2) : NULL);
	add_text(o, "no_fit", s && s->no_fit && s->no_fit[0] ? s->no_fit : NULL);
	return o;
}

static struct json_object *decisions(const struct preempter_stats *s)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; o && i < NR(s->decisions); i++)
		add_count(o, preempt_action_name((enum preempt_action)i), s->decisions[i]);
	return o;
}

static struct json_object *methods(const struct preempter_stats *s)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; o && i < NR(s->by); i++)
		add_count(o, preempt_method_name((enum preempt_method)i), s->by[i]);
	return o;
}

/* Null is unknown: no job of this kind is complete, or was counted. */
static struct json_object *kind(const struct preempt_param *p,
				const struct analyse_kind *k)
{
	struct json_object *o = json_object_new_object();
	double bound = k->seen > 0 ? k->bound : NAN;
	char text[16];

	if (!o)
		return NULL;
	snprintf(text, sizeof(text), "0x%08x", k->kind);
	add_text(o, "kind", text);
	add_text(o, "op", preempt_state_op(k->kind));
	add(o, "jobs", number(k->jobs));
	/* of the mean job, in logarithms */
	add(o, "size", number(k->jobs > 0 ? exp(k->x) : NAN));
	add(o, "inst_per_size", number(k->jobs > 0 ? exp(k->y - k->x) : NAN));
	add(o, "ipc", number(k->ipc_seen > 0 ? k->ipc : NAN));
	add(o, "alone", json_object_new_boolean(k->ipc_seen >= 1));
	add(o, "bound", number(bound));
	add(o, "miss", number(k->seen > 0 ? k->miss : NAN));
	add_text(o, "class", preempt_class_name(preempt_classify(p, bound)));
	return o;
}

static struct json_object *kinds(const struct preempt_param *p, const struct analyse *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < a->n; i++)
		json_object_array_add(list, kind(p, &a->kind[i]));
	return list;
}

/* norm_ipc of each class beside one slot of each class. */
static struct json_object *pairs(const struct preempt_norm *t)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; list && i < PREEMPT_CLASSES * PREEMPT_CLASSES; i++) {
		enum preempt_class a = (enum preempt_class)(i / PREEMPT_CLASSES);
		enum preempt_class b = (enum preempt_class)(i % PREEMPT_CLASSES);
		struct json_object *o = json_object_new_object();
		double others[PREEMPT_CLASSES + 1] = { 0 };

		if (!o)
			continue;
		others[b] = 1;
		add_text(o, "class", preempt_class_name(a));
		add_text(o, "beside", preempt_class_name(b));
		add(o, "norm_ipc", number(preempt_norm_ipc(t, a, others)));
		add(o, "count", number(t->count[a][b]));
		json_object_array_add(list, o);
	}
	return list;
}

/* A time on CLOCK_MONOTONIC in seconds, null for none. */
static struct json_object *at_time(uint64_t ns)
{
	return ns ? number((double)ns / 1e9) : NULL;
}

/* Gains that preemptions by each method were expected to have, and had. */
static struct json_object *guard(const struct guard *g)
{
	struct json_object *all = json_object_new_object();

	for (enum preempt_method i = 0; all && i < PREEMPT_METHODS; i++) {
		const struct guard_method *m = &g->method[i];
		struct json_object *o = json_object_new_object();

		if (!o)
			continue;
		add(o, "open", json_object_new_boolean(!m->closed));
		add_count(o, "trials", m->measured);
		add(o, "expected", number(m->trials > 0 ? m->expected : NAN));
		add(o, "got", number(m->trials > 0 ? m->got : NAN));
		add(o, "extra_cycles", number(m->extra));
		add_count(o, "closings", m->closings);
		add(o, "since_s", at_time(m->since_ns));
		add(o, "probe_s", m->closed ? at_time(m->probe_ns) : NULL);
		add(all, preempt_method_name(i), o);
	}
	return all;
}

struct json_object *preempt_state(const struct config *c,
				  const struct preempter_stats *s,
				  const struct analyse *learned, size_t restored)
{
	static const struct preempter_stats nothing;
	struct json_object *o = json_object_new_object();
	const struct preempt_param *p = &c->preempt.param;
	const struct preempter_stats *did = s ? s : &nothing;

	if (!o)
		return NULL;
	add(o, "watched", json_object_new_boolean(!!s));
	add(o, "bpf", json_object_new_boolean(did->bpf));
	add(o, "policies", policies());
	for (const struct mgpud_setting *t = mgpud_settings; t->key; t++)
		if (!strcmp(t->section, MGPUD_CONTEXTS))
			add_setting(o, t->key, t, t->kind == MGPUD_COST ?
				    cost(&c->preempt, s) : table_value(c, t));
	add_count(o, "looks", did->looks);
	add_count(o, "put_off", did->put_off);
	add(o, "cpu_s", number((double)did->cpu_ns / 1e9));
	add(o, "decisions", decisions(did));
	add(o, "by", methods(did));
	add_count(o, "left", did->left);
	add_count(o, "contexts", did->contexts);
	add_count(o, "waiting", did->waiting);
	add_count(o, "restored", restored);
	add(o, "learned", kinds(p, learned));
	add(o, "norm", pairs(&learned->norm));
	add(o, "guard", guard(&learned->guard));
	return o;
}

// SPDX-License-Identifier: GPL-2.0-only
/* The state for the socket, events, and lines of the log. */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <json-c/json.h>

#include "clock.h"
#include "config/table.h"
#include "daemon.h"
#include "server/number.h"
#include "contexts/preempt_state.h"
#include "mgpud_client.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

/* Number of vGPUs that a period's line of the log has at most. */
#define LOG_VGPUS	8

static struct json_object *precise(double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.3f", v);
	return json_object_new_double_s(v, text);
}

static const char *state_name(enum vgpu_state state)
{
	static const char *const names[] = {
		[VGPU_CLOSED] = "closed",
		[VGPU_IDLE] = "idle",
		[VGPU_ACTIVE] = "active",
	};

	return names[state];
}

static double capacity_gpu(const struct estimate *e)
{
	double engines = 0;

	for (size_t i = 0; i < e->nr_devs; i++)
		engines += e->devs[i].engines;
	return engines;
}

static double mu(const struct estimate *e, const struct estimate_vgpu *v)
{
	double m;

	if (v->state != VGPU_ACTIVE)
		return NAN;
	m = v->cpu_cost / e->cpu_capacity;
	for (size_t i = 0; i < e->nr_devs; i++)
		if (e->devs[i].id == v->last.dev)
			m = fmax(m, v->gpu_cost / e->devs[i].engines);
	return m;
}

/* The factor of the limit over the target, NAN where the allocator's limits have none. */
static double lead(const struct daemon *d, size_t j)
{
	return j < d->plan.nr ? d->plan.targets[j].lead : NAN;
}

/* The rate that it could have reached alone, NAN when nothing bounds it. */
static double reach(const struct estimate_vgpu *v)
{
	return v->state == VGPU_ACTIVE ? v->reach * v->fps : NAN;
}

/* The rate that the allocator grants, INFINITY when it sets none. */
static double target(const struct daemon *d, size_t j)
{
	const struct sample_vgpu *v = &d->estimate.vgpus[j].last;

	if (!d->config.set.allocator->allocate || j >= d->plan.nr)
		return INFINITY;
	if (!d->plan.targets[j].keep)
		return d->plan.targets[j].fps;
	return v->fps_target ? v->fps_target / 1000.0 : INFINITY;
}

/* The part of the engine time that it is limited to, INFINITY when it is not. */
static double gpu_target(const struct daemon *d, size_t j)
{
	const struct sample_vgpu *v = &d->estimate.vgpus[j].last;

	if (j >= d->plan.nr)
		return INFINITY;
	if (!d->plan.targets[j].keep)
		return d->plan.targets[j].gpu;
	return v->gpu_target ? v->gpu_target / 1e6 : INFINITY;
}

/* Null: no floor, no ceiling. */
static void add_agreement(struct json_object *o, const struct sla *sla)
{
	json_object_object_add(o, "floor_fps", sla->floor > 0 ? number(sla->floor) : NULL);
	json_object_object_add(o, "ceiling_fps", number(sla->ceiling));
}

static struct json_object *agreement(const struct sla *sla)
{
	struct json_object *o = json_object_new_object();

	if (o)
		add_agreement(o, sla);
	return o;
}

/*
 * Part of its floor that the vGPU is granted, fps; NAN without a floor or if the
 * allocator keeps none.
 */
static double granted(const struct daemon *d, size_t j)
{
	if (j >= d->plan.nr || !(d->plan.targets[j].floor > 0))
		return NAN;
	return d->plan.targets[j].granted;
}

/* @origin: enum config_origin */
static void add_origin(struct json_object *o, const char *key, unsigned char origin)
{
	static const char *const names[] = {
		[ORIGIN_DEFAULT] = "default", [ORIGIN_FILE] = "file",
		[ORIGIN_ENVIRONMENT] = "environment", [ORIGIN_OPTION] = "command-line",
		[ORIGIN_RUN_TIME] = "run-time",
	};

	json_object_object_add(o, key, json_object_new_string(names[origin]));
}

/* Where each setting comes from, and the agreement for all others. */
static struct json_object *sources(const struct config *c)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		add_origin(o, table_name_of(s), c->origin[s - mgpud_settings]);
	add_origin(o, TABLE_SLA, c->sla_origin);
	return o;
}

static struct json_object *troubles(const struct daemon *d)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; list && i < TROUBLES; i++)
		if (d->trouble[i][0])
			json_object_array_add(list, json_object_new_string(d->trouble[i]));
	return list;
}

/* A floor that is a setting of the vGPU, with the ceiling for all. */
static void add_vgpus_own(struct json_object *list, const struct settings *set,
			  const struct sample_vgpu *v)
{
	struct sla sla = settings_sla_of(set, v);
	struct json_object *o = agreement(&sla);

	if (!o)
		return;
	json_object_object_add(o, "uuid", json_object_new_string(v->uuid));
	json_object_object_add(o, "source", json_object_new_string("vgpu"));
	json_object_array_add(list, o);
}

/* Agreements of vGPUs, and whether each was made at run time; then those by settings of vGPUs. */
static struct json_object *agreements(const struct daemon *d)
{
	const struct settings *set = &d->config.set;
	struct json_object *list = json_object_new_array(), *made = NULL;

	json_object_object_get_ex(d->overlay, TABLE_SLA, &made);

	for (size_t i = 0; list && i < set->nr_vgpus; i++) {
		struct json_object *o = agreement(&set->vgpus[i].sla);

		if (!o)
			continue;
		json_object_object_add(o, "uuid",
				       json_object_new_string(set->vgpus[i].uuid));
		add_origin(o, "source",
			   json_object_object_get_ex(made, set->vgpus[i].uuid, NULL) ?
			   ORIGIN_RUN_TIME : ORIGIN_FILE);
		json_object_array_add(list, o);
	}
	for (size_t j = 0; list && j < d->estimate.nr_vgpus; j++)
		if (settings_floor_is_vgpus(set, &d->estimate.vgpus[j].last))
			add_vgpus_own(list, set, &d->estimate.vgpus[j].last);
	return list;
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, text && *text ? json_object_new_string(text) : NULL);
}

/* Descriptions of vGPUs, and whether each was set at run time. */
static struct json_object *descriptions(const struct daemon *d)
{
	const struct settings *set = &d->config.set;
	struct json_object *list = json_object_new_array(), *made = NULL;

	json_object_object_get_ex(d->overlay, TABLE_DESCRIPTIONS, &made);
	for (size_t i = 0; list && i < set->nr_descriptions; i++) {
		const struct description *one = &set->descriptions[i];
		struct json_object *o = json_object_new_object();

		if (!o)
			continue;
		add_text(o, "uuid", one->uuid);
		add_text(o, "description", one->text);
		add_origin(o, "source", json_object_object_get_ex(made, one->uuid, NULL) ?
			   ORIGIN_RUN_TIME : ORIGIN_FILE);
		json_object_array_add(list, o);
	}
	return list;
}

/* The model, its settings by their keys, and how it does. */
static struct json_object *model(const struct daemon *d)
{
	static const char *const names[] = {
		[LEARNER_OFF] = "off", [LEARNER_SHADOW] = "shadow", [LEARNER_ACTS] = "acts",
		[LEARNER_FAILED] = "failed",
	};
	const struct learner_report *r = learner_report(d->model.learner);
	const struct model *m = &d->model;
	struct json_object *o = json_object_new_object();
	bool learned = m->ops && m->ops->learned;

	if (!o)
		return NULL;
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (!strcmp(s->section, MGPUD_EXPECT))
			add_setting(o, s->key, s, table_value(&d->config, s));
	json_object_object_add(o, "state", json_object_new_string(names[r->mode]));
	add_text(o, "name", m->ops ? m->ops->name : NULL);
	add_text(o, "file", learned ? m->config.use : NULL);
	json_object_object_add(o, "made_s", learned ?
			       json_object_new_uint64(m->made_s) : NULL);
	json_object_object_add(o, "age_s", number(model_age_s(m, (uint64_t)time(NULL))));
	add_text(o, "evaluation", m->evaluation);
	json_object_object_add(o, "answers", json_object_new_uint64(r->answers));
	json_object_object_add(o, "checked", json_object_new_uint64(r->checked));
	json_object_object_add(o, "error", number(r->error));
	json_object_object_add(o, "control_error", number(r->control));
	add_text(o, "why", r->why);
	return o;
}

static struct json_object *vgpu(const struct daemon *d, size_t j)
{
	const struct estimate_vgpu *v = &d->estimate.vgpus[j];
	struct json_object *o = json_object_new_object();
	struct sla sla = settings_sla_of(&d->config.set, &v->last);
	double cost_mu = mu(&d->estimate, v);

	if (!o)
		return NULL;
	json_object_object_add(o, "id", json_object_new_int64(v->last.id));
	json_object_object_add(o, "uuid", json_object_new_string(v->last.uuid));
	json_object_object_add(o, "device", json_object_new_int64(v->last.dev));
	json_object_object_add(o, "weight", json_object_new_int64(v->last.weight));
	json_object_object_add(o, "fps", number(v->fps));
	json_object_object_add(o, "target_fps", number(target(d, j)));
	json_object_object_add(o, "gpu_target_share", number(gpu_target(d, j)));
	json_object_object_add(o, "lead", number(lead(d, j)));
	json_object_object_add(o, "reach_fps", number(reach(v)));
	json_object_object_add(o, "cpu_share", number(v->cpu_share));
	json_object_object_add(o, "gpu_share", number(v->gpu_share));
	json_object_object_add(o, "cpu_s_per_frame", number(v->cpu_cost));
	json_object_object_add(o, "gpu_s_per_frame", number(v->gpu_cost));
	json_object_object_add(o, "mu", number(isfinite(cost_mu) ? cost_mu : 0));
	json_object_object_add(o, "frames",
			       json_object_new_uint64(v->last.frames_total));
	json_object_object_add(o, "state", json_object_new_string(state_name(v->state)));
	add_text(o, "description", settings_description(&d->config.set, v->last.uuid));
	add_agreement(o, &sla);
	json_object_object_add(o, "granted_fps", number(granted(d, j)));
	json_object_object_add(o, "shortfall",
			       json_object_new_boolean(sla_watch_has(&d->sla_watch,
								     v->last.uuid)));
	return o;
}

static bool bpf_charges(const struct daemon *d)
{
	const struct estimate *e = &d->estimate;

	/* by what was charged; before the first charge, by what is attached */
	if (e->charged_bpf + e->charged_self > 0)
		return e->charged_bpf >= e->charged_self;
	return d->observer && observer_charge(d->observer);
}

/* Proven bound on the distance of the plan's f from the optimum. */
static double gap(const struct daemon *d)
{
	return d->config.set.allocator == &alloc_exact && d->plan.active ?
		d->control.alloc.gap : NAN;
}

/* Settings of the rate loop, by their names; preempt_state() has the others. */
static void add_settings(struct json_object *o, const struct daemon *d)
{
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (s->name && !strcmp(s->section, MGPUD_RATES))
			add_setting(o, s->name, s, table_value(&d->config, s));
}

static struct json_object *preemption(const struct daemon *d)
{
	if (!d->preempter)
		return preempt_state(&d->config, NULL, &d->learned,
				     d->restored_kinds);
	return preempt_state(&d->config, preempter_stats(d->preempter),
			     preempter_analyse(d->preempter), d->restored_kinds);
}

struct json_object *daemon_state(const struct daemon *d)
{
	const struct estimate *e = &d->estimate;
	struct json_object *o = json_object_new_object();
	struct json_object *allocators = json_object_new_array();
	struct json_object *capacity = json_object_new_object();
	struct json_object *vgpus = json_object_new_array();

	if (!o || !allocators || !capacity || !vgpus) {
		json_object_put(o);
		json_object_put(allocators);
		json_object_put(capacity);
		json_object_put(vgpus);
		return NULL;
	}
	for (const struct alloc_ops *const *p = alloc_all; *p; p++)
		json_object_array_add(allocators, json_object_new_string((*p)->name));
	json_object_object_add(capacity, "cpu_cores", number(e->cpu_capacity));
	json_object_object_add(capacity, "gpu_engines", number(capacity_gpu(e)));
	for (size_t j = 0; j < e->nr_vgpus; j++)
		json_object_array_add(vgpus, vgpu(d, j));

	json_object_object_add(o, "version", json_object_new_int(MGPU_JSON_VERSION));
	json_object_object_add(o, "release", json_object_new_string(MGPU_VERSION));
	json_object_object_add(o, "pid", json_object_new_int(getpid()));
	add_settings(o, d);
	json_object_object_add(o, "allocators", allocators);
	json_object_object_add(o, "floors",
			       json_object_new_boolean(d->config.set.allocator->floors));
	json_object_object_add(o, "weights",
			       json_object_new_boolean(d->config.set.allocator->weights));
	json_object_object_add(o, "sla", agreement(&d->config.set.sla));
	json_object_object_add(o, "agreements", agreements(d));
	json_object_object_add(o, "descriptions", descriptions(d));
	json_object_object_add(o, "shortfalls", json_object_new_uint64(d->sla_watch.nr));
	json_object_object_add(o, "dry_run", json_object_new_boolean(d->opt->dry_run));
	json_object_object_add(o, "bpf",
			       json_object_new_boolean(d->observer &&
						       observer_bpf(d->observer)));
	json_object_object_add(o, "charge_source",
			       json_object_new_string(bpf_charges(d) ? "bpf" : "module"));
	json_object_object_add(o, "config", d->config.found ?
			       json_object_new_string(d->opt->source.path) : NULL);
	json_object_object_add(o, "log",
			       json_object_new_string(log_mode_name(d->config.log)));
	json_object_object_add(o, "state_file", d->config.state_file[0] ?
			       json_object_new_string(d->config.state_file) : NULL);
	json_object_object_add(o, "restored", json_object_new_uint64(d->restored));
	json_object_object_add(o, "reloads", json_object_new_uint64(d->reloads));
	json_object_object_add(o, "periods", json_object_new_uint64(d->periods));
	json_object_object_add(o, "uptime_s",
			       precise((double)(now_ns() - d->start_ns) / 1e9));
	json_object_object_add(o, "capacity", capacity);
	json_object_object_add(o, "fds", number(d->plan.fds));
	json_object_object_add(o, "fds_optimal", number(d->plan.fds_best));
	json_object_object_add(o, "gap", number(gap(d)));
	json_object_object_add(o, "preempt", preemption(d));
	json_object_object_add(o, "model", model(d));
	json_object_object_add(o, "sources", sources(&d->config));
	json_object_object_add(o, "run_time", json_object_get(d->overlay));
	json_object_object_add(o, "trouble", troubles(d));
	json_object_object_add(o, "vgpus", vgpus);
	return o;
}

/* Age of the last sample, seconds; NAN if there is none. */
static double sample_age(const struct daemon *d)
{
	return d->estimate.now_ns ? (double)(now_ns() - d->estimate.now_ns) / 1e9 : NAN;
}

void daemon_fresh(const struct daemon *d, char *text, size_t size)
{
	double age = sample_age(d);

	if (isnan(age))
		snprintf(text, size, "\"sample_age_s\":null");
	else
		snprintf(text, size, "\"sample_age_s\":%.3f", age);
}

struct json_object *daemon_event(const struct daemon *d, const struct sla_event *event)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "version", json_object_new_int(MGPU_JSON_VERSION));
	json_object_object_add(o, "event", json_object_new_string(event->shortfall ?
								  "sla-shortfall" : "sla-met"));
	json_object_object_add(o, "time_s", precise((double)d->estimate.now_ns / 1e9));
	json_object_object_add(o, "id", json_object_new_int64(event->id));
	json_object_object_add(o, "uuid", json_object_new_string(event->uuid));
	json_object_object_add(o, "floor_fps", event->floor > 0 ? number(event->floor) : NULL);
	json_object_object_add(o, "granted_fps", number(event->granted));
	json_object_object_add(o, "gone", json_object_new_boolean(event->gone));
	return o;
}

struct json_object *daemon_model_event(const struct daemon *d, const char *event)
{
	const struct learn_model_ops *ops = d->model.ops;
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "version", json_object_new_int(MGPU_JSON_VERSION));
	json_object_object_add(o, "event", json_object_new_string(event));
	json_object_object_add(o, "time_s", precise((double)now_ns() / 1e9));
	add_text(o, "model", ops ? ops->name : NULL);
	add_text(o, "file", ops && ops->learned ? d->model.config.use : NULL);
	add_text(o, "why", learner_report(d->model.learner)->why);
	return o;
}

void daemon_log_json(const struct daemon *d, FILE *to)
{
	struct json_object *o = daemon_state(d);

	if (!o)
		return;
	json_object_object_add(o, "time_s", precise((double)d->estimate.now_ns / 1e9));
	json_object_object_add(o, "sample_age_s", number(sample_age(d)));
	fprintf(to, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	fflush(to);
	json_object_put(o);
}

static void value(FILE *to, const char *key, double v)
{
	if (isfinite(v))
		fprintf(to, " %s=%.3f", key, v);
	else
		fprintf(to, " %s=-", key);
}

/* Log a line for the period: measured rates, and behind a slash the rates allowed. */
void daemon_log(const struct daemon *d, FILE *to)
{
	const struct estimate *e = &d->estimate;
	double cpu = 0, gpu = 0;
	size_t shown = 0;

	for (size_t j = 0; j < e->nr_vgpus; j++) {
		cpu += e->vgpus[j].cpu_use;
		gpu += e->vgpus[j].gpu_use;
	}
	fprintf(to, "%speriod=%llu allocator=%s vgpus=%zu active=%zu",
		log_prefix(LEVEL_INFO, to), (unsigned long long)d->periods,
		d->config.set.allocator->name, e->nr_vgpus,
		d->plan.active);
	value(to, "fds", d->plan.fds);
	value(to, "best", d->plan.fds_best);
	fprintf(to, " cpu=%.2f/%.2f gpu=%.2f/%.2f charge=%s %s=%zu took_s=%.5f",
		cpu, e->cpu_capacity, gpu, capacity_gpu(e),
		bpf_charges(d) ? "bpf" : "module",
		d->opt->dry_run ? "would_set" : "set", d->changed, d->took_ms / 1e3);
	if (d->plan.nr_short)
		fprintf(to, " short=%zu", d->plan.nr_short);
	for (size_t j = 0; j < e->nr_vgpus && shown < LOG_VGPUS; j++) {
		double t = target(d, j);

		if (e->vgpus[j].state != VGPU_ACTIVE)
			continue;
		fprintf(to, " v%u=%.1f/", e->vgpus[j].last.id, e->vgpus[j].fps);
		fprintf(to, isfinite(t) ? "%.1f" : "-", t);
		shown++;
	}
	fprintf(to, "\n");
	fflush(to);
}

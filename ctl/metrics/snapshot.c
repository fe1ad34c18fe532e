// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json_read.h"
#include "snapshot.h"

void snapshot_init(struct snapshot *s)
{
	static const char *const names[] = {
		[SOURCE_MODULE] = "module", [SOURCE_MGPUD] = "mgpud", [SOURCE_REMOTED] = "remoted",
		[SOURCE_RENDERD] = "renderd",
	};

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < NR_SOURCES; i++)
		s->reads[i] = (struct snapshot_read){ names[i], 0, NAN };
}

void snapshot_free(struct snapshot *s)
{
	free(s->devs);
	free(s->vgpus);
	free(s->programs);
	free(s->accounts);
	free(s->renderds);
	memset(s, 0, sizeof(*s));
}

/* Return how many of @nr more objects there is room for beyond @have; count the others. */
static size_t admit(struct snapshot *s, size_t have, size_t nr, size_t most)
{
	size_t room = have < most ? most - have : 0;

	if (nr <= room)
		return nr;
	s->left_out += nr - room;
	return room;
}

/* Names that tell objects apart are plain, so that no two become the same label. */
static bool is_key(const char *name)
{
	const char *c = name;

	while (*c > ' ' && *c < 0x7f && *c != '"' && *c != '\\')
		c++;
	return *name && !*c;
}

static void unmeasured(struct snapshot_vgpu *v)
{
	v->fps = v->floor = v->ceiling = v->granted = v->kept = v->cpu_share = v->gpu_share =
		v->active = NAN;
}

/* ---- the module ---- */

int snapshot_add_vgpus(struct snapshot *s, const struct mgpu_vgpu_info *vgpus, size_t nr)
{
	struct snapshot_vgpu *more;

	nr = admit(s, s->nr_vgpus, nr, SNAPSHOT_VGPUS);
	more = reallocarray(s->vgpus, s->nr_vgpus + nr + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->vgpus = more;
	more += s->nr_vgpus;
	memset(more, 0, nr * sizeof(*more));
	for (size_t i = 0; i < nr; i++) {
		more[i].info = vgpus[i];
		memcpy(more[i].uuid, vgpus[i].uuid, sizeof(more[i].uuid));
		unmeasured(&more[i]);
	}
	s->nr_vgpus += nr;
	return 0;
}

/* ---- mgpud ---- */

/* Number of a JSON object, @value for null; a key that is missing is not known. */
static double none_is(double value, struct json_object *object, const char *key)
{
	struct json_object *found;

	if (json_object_object_get_ex(object, key, &found) && !found)
		return value;
	return json_number(object, key);
}

static void read_vgpu(struct snapshot_vgpu *v, struct json_object *o)
{
	char state[16];
	double short_of;

	json_text(o, "description", v->description, sizeof(v->description));
	json_text(o, "state", state, sizeof(state));
	v->active = *state ? !strcmp(state, "active") : NAN;
	v->fps = json_number(o, "fps");
	v->floor = json_number(o, "floor_fps");
	v->ceiling = none_is(INFINITY, o, "ceiling_fps");
	v->granted = json_number(o, "granted_fps");
	short_of = json_flag(o, "shortfall");
	v->kept = isnan(v->floor) || isnan(short_of) ? NAN : !short_of;
	v->cpu_share = json_number(o, "cpu_share");
	v->gpu_share = json_number(o, "gpu_share");
}

/* The entry of the module comes before that of mgpud. */
static int by_uuid(const void *a, const void *b)
{
	const struct snapshot_vgpu *x = a, *y = b;
	int order = strcasecmp(x->uuid, y->uuid);

	return order ? order : !x->info.present - !y->info.present;
}

/*
 * Merge entries of one UUID.  Two samples with the same labels would be an error of the whole
 * exposition.
 */
static void merge(struct snapshot *s)
{
	struct snapshot_vgpu *last = NULL, *next;

	qsort(s->vgpus, s->nr_vgpus, sizeof(*s->vgpus), by_uuid);
	for (size_t i = 0; i < s->nr_vgpus; i++) {
		next = &s->vgpus[i];
		if (!last || strcasecmp(last->uuid, next->uuid)) {
			last = last ? last + 1 : next;
			*last = *next;
			continue;
		}
		next->info = last->info;
		next->has_cpu = last->has_cpu;
		next->cpu_ns = last->cpu_ns;
		*last = *next;
	}
	if (last)
		s->nr_vgpus = (size_t)(last + 1 - s->vgpus);
	s->nr_vgpus = admit(s, 0, s->nr_vgpus, SNAPSHOT_VGPUS);
}

static int read_vgpus(struct snapshot *s, struct json_object *list)
{
	size_t nr = list ? json_object_array_length(list) : 0;
	struct snapshot_vgpu *all, *next;

	nr = admit(s, 0, nr, SNAPSHOT_VGPUS);
	all = reallocarray(s->vgpus, s->nr_vgpus + nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	s->vgpus = all;
	for (size_t i = 0; i < nr; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		next = &all[s->nr_vgpus];
		memset(next, 0, sizeof(*next));
		json_text(o, "uuid", next->uuid, sizeof(next->uuid));
		read_vgpu(next, o);
		s->nr_vgpus += is_key(next->uuid);
	}
	merge(s);
	return 0;
}

static void read_preemption(struct snapshot_controller *c, struct json_object *o)
{
	struct json_object *decisions = json_member(o, "decisions"), *by = json_member(o, "by");

	json_text(o, "policy", c->preempt, sizeof(c->preempt));
	c->preempt_watched = json_flag(o, "watched");
	c->preempt_contexts = json_number(o, "contexts");
	c->preempt_waiting = json_number(o, "waiting");
	c->preempt_cpu = json_number(o, "cpu_s");
	c->preempt_left = json_number(o, "left");
	c->launched = json_number(decisions, "launch");
	c->resumed = json_number(decisions, "resume");
	c->preempted = json_number(decisions, "preempt");
	c->switches = json_number(by, "switch");
	c->drains = json_number(by, "drain");
	c->flushes = json_number(by, "flush");
}

static void read_model(struct snapshot_controller *c, struct json_object *o)
{
	char state[16];

	json_text(o, "name", c->model, sizeof(c->model));
	json_text(o, "file", c->model_file, sizeof(c->model_file));
	json_text(o, "state", state, sizeof(state));
	c->model_off = *state ? !strcmp(state, "off") : NAN;
	c->model_shadow = *state ? !strcmp(state, "shadow") : NAN;
	c->model_acts = *state ? !strcmp(state, "acts") : NAN;
	c->model_failed = *state ? !strcmp(state, "failed") : NAN;
	c->model_age = json_number(o, "age_s");
	c->model_answers = json_number(o, "answers");
	c->model_checked = json_number(o, "checked");
	c->model_error = json_number(o, "error");
	c->model_control_error = json_number(o, "control_error");
}

int snapshot_add_mgpud(struct snapshot *s, struct json_object *state)
{
	struct json_object *trouble = json_list(state, "trouble");
	struct json_object *capacity = json_member(state, "capacity");
	struct snapshot_controller *c = &s->controller;

	json_text(state, "release", c->release, sizeof(c->release));
	json_text(state, "allocator", c->allocator, sizeof(c->allocator));
	json_text(state, "charge_source", c->charge_source, sizeof(c->charge_source));
	c->uptime = json_number(state, "uptime_s");
	c->period = json_number(state, "period_s");
	c->sample_age = json_number(state, "sample_age_s");
	c->periods = json_number(state, "periods");
	c->reloads = json_number(state, "reloads");
	c->bpf = json_flag(state, "bpf");
	c->dry_run = json_flag(state, "dry_run");
	c->troubles = trouble ? (double)json_object_array_length(trouble) : NAN;
	c->shortfalls = json_number(state, "shortfalls");
	c->fairness = json_number(state, "fds");
	c->fairness_best = json_number(state, "fds_optimal");
	c->cpu_cores = json_number(capacity, "cpu_cores");
	c->gpu_engines = json_number(capacity, "gpu_engines");
	read_preemption(c, json_member(state, "preempt"));
	read_model(c, json_member(state, "model"));
	return read_vgpus(s, json_list(state, "vgpus"));
}

/* ---- mgpu-remoted ---- */

static void read_program(struct snapshot_program *p, struct json_object *o)
{
	json_text(o, "process", p->process, sizeof(p->process));
	json_text(o, "pid", p->pid, sizeof(p->pid));
	json_text(o, "uid", p->uid, sizeof(p->uid));
	json_text(o, "cid", p->cid, sizeof(p->cid));
	json_text(o, "command", p->command, sizeof(p->command));
	json_text(o, "api", p->api, sizeof(p->api));
	json_text(o, "mode", p->mode, sizeof(p->mode));
	json_text(o, "busy_source", p->busy, sizeof(p->busy));
	p->age = json_number(o, "age_s");
	p->calls = json_number(o, "calls");
	p->waits = json_number(o, "round_trips");
	p->received = json_number(o, "received_bytes");
	p->sent = json_number(o, "sent_bytes");
	p->busy_s = json_number(o, "busy_s");
	p->memory = json_number(o, "memory_bytes");
	p->pending = json_number(o, "pending_bytes");
	p->handles = json_number(o, "handles");
	p->groups = json_number(o, "groups");
	p->grouped = json_number(o, "grouped_calls");
	p->wrong = json_number(o, "mispredictions");
	p->demoted = json_number(o, "loops_demoted");
}

static void read_account(struct snapshot_account *a, struct json_object *o)
{
	json_text(o, "account", a->name, sizeof(a->name));
	a->weight = json_number(o, "weight");
	a->limit = none_is(INFINITY, o, "gpu_limit_share");
	a->programs = json_number(o, "programs");
	a->waits = json_flag(o, "waits");
}

/* A name that is there already, or none, is left out. */
static bool is_new_program(const struct snapshot *s, const struct snapshot_program *p)
{
	for (size_t i = 0; i < s->nr_programs; i++)
		if (!strcmp(s->programs[i].process, p->process))
			return false;
	return is_key(p->process);
}

static bool is_new_account(const struct snapshot *s, const struct snapshot_account *a)
{
	for (size_t i = 0; i < s->nr_accounts; i++)
		if (!strcmp(s->accounts[i].name, a->name))
			return false;
	return is_key(a->name);
}

int snapshot_add_remoted(struct snapshot *s, struct json_object *state)
{
	struct json_object *programs = json_list(state, "applications");
	struct json_object *accounts = json_list(state, "accounts");
	size_t nr_programs = programs ? json_object_array_length(programs) : 0;
	size_t nr_accounts = accounts ? json_object_array_length(accounts) : 0;

	nr_programs = admit(s, 0, nr_programs, SNAPSHOT_PROGRAMS);
	nr_accounts = admit(s, 0, nr_accounts, SNAPSHOT_PROGRAMS);
	s->programs = calloc(nr_programs + 1, sizeof(*s->programs));
	s->accounts = calloc(nr_accounts + 1, sizeof(*s->accounts));
	if (!s->programs || !s->accounts)
		return -ENOMEM;
	for (size_t i = 0; i < nr_programs; i++) {
		struct snapshot_program *p = &s->programs[s->nr_programs];

		read_program(p, json_object_array_get_idx(programs, i));
		s->nr_programs += is_new_program(s, p);
	}
	for (size_t i = 0; i < nr_accounts; i++) {
		struct snapshot_account *a = &s->accounts[s->nr_accounts];

		read_account(a, json_object_array_get_idx(accounts, i));
		s->nr_accounts += is_new_account(s, a);
	}
	return 0;
}

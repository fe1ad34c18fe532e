// SPDX-License-Identifier: GPL-2.0-only
/* Objects of the pool as JSON, as openapi.yaml has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_private.h"
#include "auth.h"
#include "checksum.h"
#include "output.h"
#include "utf8.h"

/* Texts of hosts and agents may have any bytes: JSON has UTF-8 only. */
void add_text(struct json_object *object, const char *key, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return;
	utf8_clean(copy);
	json_object_object_add(object, key, json_object_new_string(copy));
	free(copy);
}

void add_text_or_null(struct json_object *object, const char *key, const char *text)
{
	if (*text)
		add_text(object, key, text);
	else
		json_object_object_add(object, key, NULL);
}

void add_number(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

void add_number_or_null(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, value ? json_object_new_uint64(value) : NULL);
}

void add_flag(struct json_object *object, const char *key, bool value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

/* Times are not negative. */
static void add_time(struct json_object *object, const char *key, int64_t value)
{
	add_number_or_null(object, key, value > 0 ? (uint64_t)value : 0);
}

static void add_name(struct json_object *object, const char *key, const char *name)
{
	add_text(object, key, name ? name : "any");
}

static void add_capabilities(struct json_object *object, uint32_t capabilities)
{
	struct json_object *list = json_object_new_array();

	if (capabilities & POOL_3D)
		json_object_array_add(list, json_object_new_string("3d"));
	if (capabilities & POOL_COMPUTE)
		json_object_array_add(list, json_object_new_string("compute"));
	json_object_object_add(object, "capabilities", list);
}

static void add_precisions(struct json_object *object, uint32_t precisions)
{
	struct json_object *list = json_object_new_array();

	for (enum pool_precision p = POOL_FP64; p < POOL_PRECISIONS; p++)
		if (precisions & 1u << p)
			json_object_array_add(list,
					      json_object_new_string(pool_precision_name(p)));
	json_object_object_add(object, "precisions", list);
}

/* ---- requests ---- */

static uint64_t add_number_to(uint64_t sum, uint64_t value)
{
	return checksum_add(sum, &value, sizeof(value));
}

static uint64_t add_text_to(uint64_t sum, const char *text)
{
	return checksum_add(sum, text, strlen(text) + 1);
}

/* All that changes, as a number that JavaScript has exactly. */
static uint64_t version(const struct pool_request *r, const struct pool_place *place)
{
	uint64_t sum = add_number_to(CHECKSUM_START, r->state);

	sum = add_text_to(sum, r->gpu);
	sum = add_text_to(sum, r->uuid);
	sum = add_text_to(sum, r->why);
	sum = add_number_to(sum, (uint64_t)r->attached);
	sum = add_number_to(sum, (uint64_t)r->ended);
	sum = add_number_to(sum, (uint64_t)r->until);
	sum = add_number_to(sum, (uint64_t)r->warned);
	sum = add_number_to(sum, place->place);
	sum = add_text_to(sum, place->reason);
	return sum >> 11 ? sum >> 11 : 1;
}

static void where(const struct api *api, const struct pool_request *r, struct pool_place *place)
{
	memset(place, 0, sizeof(*place));
	if (r->state == POOL_QUEUED)
		pool_where(api->pool, r->id, place);
}

uint64_t api_version(const struct api *api, uint64_t request)
{
	const struct pool_request *r = pool_request(api->pool, request);
	struct pool_request stored;
	struct pool_place place;

	if (!r && !find_request(api, request, &stored))
		r = &stored;
	if (!r)
		return 0;
	where(api, r, &place);
	return version(r, &place);
}

static void add_wishes(struct json_object *o, const struct pool_request *r)
{
	add_text(o, "kind", r->kind);
	add_name(o, "target", pool_target_name(r->target));
	add_name(o, "precision", pool_precision_name(r->precision));
	add_number(o, "size_mib", r->size_mib);
	add_number_or_null(o, "memory_mib", r->memory_mib);
	add_capabilities(o, r->capabilities);
	add_text_or_null(o, "type", r->type);
	add_number_or_null(o, "weight", r->weight);
	json_object_object_add(o, "floor_fps", r->floor_mhz ? rounded(r->floor_mhz / 1000., 3) :
			       NULL);
	add_number_or_null(o, "lease_s", r->lease);
}

/* The GPU's host and model; a request that is over may have outlived its GPU. */
static void add_gpu(struct json_object *o, const struct api *api, const struct pool_request *r)
{
	const struct pool_gpu *gpu = *r->gpu ? pool_gpu(api->pool, r->gpu) : NULL;
	char host[2 * POOL_NAME_MAX];

	snprintf(host, sizeof(host), "%.*s", (int)strcspn(r->gpu, "/"), r->gpu);
	add_text_or_null(o, "gpu", r->gpu);
	add_text_or_null(o, "host", host);
	add_text_or_null(o, "model", gpu ? gpu->model : "");
	add_text_or_null(o, "uuid", r->uuid);
}

struct json_object *request_json(const struct api *api, const struct pool_request *r)
{
	struct json_object *o = json_object_new_object();
	struct pool_place place;

	where(api, r, &place);
	add_number(o, "id", r->id);
	add_text(o, "key", r->key);
	add_text(o, "project", r->project);
	add_text(o, "vm", r->vm);
	add_wishes(o, r);
	add_text(o, "state", pool_state_name(r->state));
	add_number_or_null(o, "place", place.place);
	add_gpu(o, api, r);
	add_text(o, "why", *place.reason ? place.reason : r->why);
	add_time(o, "asked", r->asked);
	add_time(o, "chosen", r->chosen);
	add_time(o, "attached", r->attached);
	add_time(o, "ended", r->ended);
	add_time(o, "until", r->until);
	add_time(o, "warned", r->warned);
	add_number(o, "version", version(r, &place));
	return o;
}

/* ---- GPUs, VMs, projects ---- */

static struct json_object *holder_json(const struct pool_request *r)
{
	struct json_object *o = json_object_new_object();

	add_number(o, "id", r->id);
	add_text(o, "vm", r->vm);
	add_text(o, "project", r->project);
	add_text(o, "state", pool_state_name(r->state));
	return o;
}

static struct json_object *types_json(const struct pool_gpu *gpu)
{
	struct json_object *list = json_object_new_array();
	char copy[POOL_TEXT_MAX], *save;

	pool_type_names(gpu, copy);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		json_object_array_add(list, json_object_new_string(w));
	return list;
}

struct json_object *gpu_json(struct context *c, const struct pool_gpu *gpu)
{
	struct json_object *o = json_object_new_object(), *functions = json_object_new_array();
	struct json_object *holders = json_object_new_array();
	const struct pool_request *r = NULL;

	for (unsigned int i = 0; i < gpu->nr_functions && i < POOL_FUNCTIONS_MAX; i++)
		json_object_array_add(functions, json_object_new_string(gpu->functions[i]));
	while ((r = pool_request_of_gpu(c->api->pool, gpu->name, r)))
		if (sees_request(&c->call->actor, r))
			json_object_array_add(holders, holder_json(r));
	add_text(o, "name", gpu->name);
	add_text(o, "host", gpu->host);
	add_text(o, "addr", gpu->addr);
	json_object_object_add(o, "functions", functions);
	json_object_object_add(o, "group", gpu->group < 0 ? NULL : json_object_new_int(gpu->group));
	add_name(o, "target", pool_target_name(gpu->target));
	add_text(o, "model", gpu->model);
	json_object_object_add(o, "types", types_json(gpu));
	add_number(o, "slots", gpu->slots);
	add_number(o, "used", gpu->used);
	add_number_or_null(o, "memory_mib", gpu->memory_mib);
	add_capabilities(o, gpu->capabilities);
	add_precisions(o, gpu->precisions);
	add_flag(o, "offline", gpu->offline);
	add_text(o, "why", gpu->why);
	add_flag(o, "present", gpu->present);
	json_object_object_add(o, "requests", holders);
	return o;
}

struct json_object *vm_json(struct context *c, const struct pool_vm *vm)
{
	struct json_object *o = json_object_new_object(), *requests = json_object_new_array();
	const struct pool_request *r = NULL;

	while ((r = pool_request_of_vm(c->api->pool, vm->name, r)))
		json_object_array_add(requests, json_object_new_uint64(r->id));
	add_text(o, "name", vm->name);
	add_text(o, "host", vm->host);
	add_text(o, "uuid", vm->uuid);
	add_text_or_null(o, "project", vm->project);
	add_flag(o, "pinned", vm->pinned);
	add_time(o, "consent", vm->consent);
	add_time(o, "seen", vm->seen);
	json_object_object_add(o, "requests", requests);
	return o;
}

struct json_object *project_json(const struct api *api, const struct pool_project *project)
{
	struct json_object *o = json_object_new_object();
	const struct pool_request *r;
	uint64_t used = 0, queued = 0;

	for (size_t i = 0; (r = pool_request_at(api->pool, i)); i++) {
		if (pool_over(r->state) || strcmp(r->project, project->name))
			continue;
		queued += r->state == POOL_QUEUED;
		used += r->state != POOL_QUEUED;
	}
	add_text(o, "name", project->name);
	add_number(o, "weight", project->weight);
	add_number_or_null(o, "max_gpus", project->max_gpus);
	add_number(o, "used", used);
	add_number(o, "queued", queued);
	return o;
}

/* ---- records ---- */

struct json_object *event_json(const struct pool_event *event)
{
	struct json_object *o = json_object_new_object();

	add_number(o, "id", event->id);
	add_number(o, "time", (uint64_t)event->time);
	add_text(o, "actor", event->actor);
	add_text(o, "what", event->what);
	add_number_or_null(o, "request", event->request);
	add_text(o, "object", event->object);
	add_text(o, "text", event->text);
	return o;
}

struct json_object *use_json(const struct pool_use *use)
{
	struct json_object *o = json_object_new_object();

	add_number(o, "time", (uint64_t)use->time);
	add_number(o, "busy_ns", use->busy_ns);
	add_number_or_null(o, "energy_mj", use->energy_mj);
	add_number_or_null(o, "memory_mib", use->memory_mib);
	add_text(o, "source", use->source == 'h' ? "host" : use->source == 'a' ? "agent" :
		 "power");
	return o;
}

struct json_object *outcome_json(const struct pool_outcome *outcome)
{
	struct json_object *o = json_object_new_object();

	add_number(o, "request", outcome->request);
	add_text(o, "project", outcome->project);
	add_text(o, "kind", outcome->kind);
	add_text(o, "model", outcome->model);
	add_name(o, "target", pool_target_name(outcome->target));
	add_name(o, "precision", pool_precision_name(outcome->precision));
	add_number(o, "size_mib", outcome->size_mib);
	json_object_object_add(o, "seconds", rounded(outcome->seconds, 3));
	add_number(o, "busy_ns", outcome->busy_ns);
	add_number_or_null(o, "energy_mj", outcome->energy_mj);
	add_number_or_null(o, "memory_mib", outcome->memory_mib);
	add_number(o, "ended", (uint64_t)outcome->ended);
	add_flag(o, "done", outcome->done);
	return o;
}

struct json_object *token_json(const struct store_token *token)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", token->name);
	add_text(o, "role", store_role_name(token->role));
	add_text_or_null(o, "project", token->project);
	add_time(o, "expires", token->expires);
	return o;
}

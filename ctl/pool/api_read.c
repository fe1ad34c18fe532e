// SPDX-License-Identifier: GPL-2.0-only
/* Routes that read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_private.h"
#include "auth.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

#define DAY		86400
#define SPANS_MAX	500	/* spans of an answer */
#define SPANS_SCAN	5000	/* requests that are looked at for them */
#define SPAN_POINTS	200	/* looks of a span, and up to two more */
#define EVENTS_SCAN	2000	/* events that are looked at for others' eyes */
#define HISTORY_SCAN	20000

/* ---- the pool ---- */

static struct json_object *you_json(const struct api_actor *actor)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", actor->name);
	add_text(o, "role", store_role_name(actor->role));
	add_text_or_null(o, "project", actor->project);
	return o;
}

static void add_host(struct context *c, struct json_object *list, const char *name, bool up,
		     const char *why)
{
	const struct api_actor *actor = &c->call->actor;
	struct json_object *o = json_object_new_object();
	const struct pool_gpu *gpu;
	const struct pool_vm *vm;
	uint64_t gpus = 0, vms = 0;

	for (size_t n = 0; (gpu = pool_gpu_at(c->api->pool, n)); n++)
		gpus += !strcmp(gpu->host, name);
	for (size_t n = 0; (vm = pool_vm_at(c->api->pool, n)); n++)
		vms += !strcmp(vm->host, name) && sees_vm(actor, vm);
	add_text(o, "name", name);
	add_flag(o, "up", up);
	add_text(o, "why", actor->role == STORE_ADMIN ? why : "");
	add_number(o, "gpus", gpus);
	add_number(o, "vms", vms);
	json_object_array_add(list, o);
}

/* A host that left the configuration, and has open requests. */
static void add_left(struct context *c, struct json_object *list, const char *name)
{
	char why[POOL_TEXT_MAX];
	struct json_object *listed;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *host = json_object_array_get_idx(list, i);

		if (json_object_object_get_ex(host, "name", &listed) &&
		    !strcmp(json_object_get_string(listed), name))
			return;
	}
	snprintf(why, sizeof(why), "%s: not in the configuration, and its requests wait; add it to the file again, or end them with DELETE /v1/hosts/%s",
		 name, name);
	add_host(c, list, name, false, why);
}

static struct json_object *hosts_json(struct context *c)
{
	struct json_object *list = json_object_new_array();
	const struct pool *pool = c->api->pool;
	const struct pool_gpu *gpu;
	const struct pool_vm *vm;

	for (size_t i = 0; i < c->api->nr_hosts; i++) {
		const struct api_host *h = &c->api->hosts[i];

		add_host(c, list, h->name, h->up, h->why);
	}
	for (size_t i = 0; (gpu = pool_gpu_at(pool, i)); i++)
		if (pool_request_of_gpu(pool, gpu->name, NULL))
			add_left(c, list, gpu->host);
	for (size_t i = 0; (vm = pool_vm_at(pool, i)); i++)
		if (pool_request_of_vm(pool, vm->name, NULL) && sees_vm(&c->call->actor, vm))
			add_left(c, list, vm->host);
	return list;
}

static struct json_object *states_json(struct context *c, uint64_t *queued)
{
	struct json_object *o = json_object_new_object();
	const struct pool_request *r;
	uint64_t count[POOL_STATES] = { 0 };

	*queued = 0;
	for (size_t i = 0; (r = pool_request_at(c->api->pool, i)); i++) {
		*queued += r->state == POOL_QUEUED;
		count[r->state] += sees_request(&c->call->actor, r);
	}
	for (enum pool_state s = POOL_QUEUED; s <= POOL_RELEASING; s++)
		add_number(o, pool_state_name(s), count[s]);
	return o;
}

void get_status(struct context *c)
{
	struct json_object *o = json_object_new_object();
	const struct pool_gpu *gpu;
	uint64_t gpus = 0, slots = 0, used = 0, queued;

	for (size_t i = 0; (gpu = pool_gpu_at(c->api->pool, i)); i++) {
		gpus++;
		slots += gpu->slots;
		used += gpu->used;
	}
	add_text(o, "version", MGPU_VERSION);
	add_number(o, "now", (uint64_t)c->call->now);
	add_number(o, "uptime", c->call->now > c->api->started ?
		   (uint64_t)(c->call->now - c->api->started) : 0);
	add_text(o, "database", store_kind(c->api->store));
	json_object_object_add(o, "you", you_json(&c->call->actor));
	json_object_object_add(o, "hosts", hosts_json(c));
	json_object_object_add(o, "requests", states_json(c, &queued));
	add_number(o, "gpus", gpus);
	add_number(o, "slots", slots);
	add_number(o, "used", used);
	add_number(o, "queued", queued);
	add_number(o, "last_event", c->api->last_event);
	answer_json(c, 200, o);
}

static void answer_list(struct context *c, const char *name, struct json_object *list)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, name, list);
	answer_json(c, 200, o);
}

void get_hosts(struct context *c)
{
	answer_list(c, "hosts", hosts_json(c));
}

void get_gpus(struct context *c)
{
	struct json_object *list = json_object_new_array();
	const struct pool_gpu *gpu;

	for (size_t i = 0; (gpu = pool_gpu_at(c->api->pool, i)); i++)
		json_object_array_add(list, gpu_json(c, gpu));
	answer_list(c, "gpus", list);
}

void get_vms(struct context *c)
{
	struct json_object *list = json_object_new_array();
	const struct pool_vm *vm;

	for (size_t i = 0; (vm = pool_vm_at(c->api->pool, i)); i++)
		if (sees_vm(&c->call->actor, vm))
			json_object_array_add(list, vm_json(c, vm));
	answer_list(c, "vms", list);
}

void get_projects(struct context *c)
{
	struct json_object *list = json_object_new_array();
	const struct pool_project *p;

	for (size_t i = 0; (p = pool_project_at(c->api->pool, i)); i++)
		if (sees_project(&c->call->actor, p->name))
			json_object_array_add(list, project_json(c->api, p));
	answer_list(c, "projects", list);
}

/* ---- requests ---- */

/**
 * struct list - rows of the database that become JSON
 * @c: the call
 * @json: the rows
 * @left: rows that have room
 * @last: number of the last row that was looked at
 */
struct list {
	struct context *c;
	struct json_object *json;
	uint64_t left;
	uint64_t last;
};

static int add_request(const struct pool_request *r, void *arg)
{
	struct list *l = arg;

	if (!sees_request(&l->c->call->actor, r))
		return 0;
	json_object_array_add(l->json, request_json(l->c->api, r));
	return !--l->left;
}

/* Those in memory, the newest first. */
static void add_open(struct list *l, const char *project, uint64_t before)
{
	const struct pool *pool = l->c->api->pool;
	size_t n = 0;

	while (pool_request_at(pool, n))
		n++;
	while (n--) {
		const struct pool_request *r = pool_request_at(pool, n);

		if (!pool_over(r->state) && (!before || r->id < before) &&
		    (!*project || !strcmp(project, r->project)) && add_request(r, l))
			return;
	}
}

void get_requests(struct context *c)
{
	const char *project = c->call->actor.project;
	char wanted[POOL_NAME_MAX];
	uint64_t open = 0, before = 0, limit = 100;
	struct list l = { .c = c };
	int ret = 0;

	if (!query_number(c, "open", 0, 1, &open) ||
	    !query_number(c, "before", 1, INT64_MAX, &before) ||
	    !query_number(c, "limit", 1, API_LIMIT_MAX, &limit) ||
	    !query_name(c, "project", wanted))
		return;
	/* Rights are looked at again for each row. */
	if (*wanted)
		project = wanted;
	l.json = json_object_new_array();
	l.left = limit;
	if (open)
		add_open(&l, project, before);
	else
		ret = store_requests(c->api->store, *project ? project : NULL, before,
				     (unsigned int)limit, add_request, &l);
	if (ret < 0) {
		json_object_put(l.json);
		fail_store(c);
		return;
	}
	answer_list(c, "requests", l.json);
}

void get_one_request(struct context *c)
{
	uint64_t wait = 0, seen = 0;
	struct pool_request r;

	if (!query_number(c, "wait", 0, API_WAIT_MAX, &wait) ||
	    !query_number(c, "seen", 0, (UINT64_C(1) << 53) - 1, &seen) || !get_request(c, &r))
		return;
	answer_json(c, 200, request_json(c->api, &r));
	/* A request that is over does not change any more. */
	if (wait && query_has(c, "seen") && !pool_over(r.state) &&
	    api_version(c->api, c->id) == seen) {
		c->answer->wait = (unsigned int)wait;
		c->answer->request = c->id;
		c->answer->seen = seen;
	}
}

static int add_use(const struct pool_use *use, void *arg)
{
	struct list *l = arg;

	json_object_array_add(l->json, use_json(use));
	return 0;
}

void get_request_use(struct context *c)
{
	uint64_t since = 0, limit = 100;
	struct list l = { .c = c };
	struct pool_request r;

	if (!query_number(c, "since", 0, INT64_MAX, &since) ||
	    !query_number(c, "limit", 1, API_LIMIT_MAX, &limit) || !get_request(c, &r))
		return;
	l.json = json_object_new_array();
	if (store_uses(c->api->store, c->id, (int64_t)since, (unsigned int)limit, add_use,
		       &l) >= 0) {
		answer_list(c, "uses", l.json);
		return;
	}
	json_object_put(l.json);
	fail_store(c);
}

/* ---- events ---- */

/**
 * struct events - events of the database
 * @event: the events
 * @nr: their number
 * @room: room for so many
 */
struct events {
	struct pool_event *event;
	size_t nr;
	size_t room;
};

static int collect_event(const struct pool_event *event, void *arg)
{
	struct events *e = arg;

	if (e->nr == e->room)
		return 1;
	e->event[e->nr++] = *event;
	return 0;
}

/* Read up to @limit events behind @after; the caller frees them. */
static int read_events(struct api *api, uint64_t after, uint64_t request, size_t limit,
		       struct events *e)
{
	*e = (struct events){ .event = malloc(limit * sizeof(*e->event)), .room = limit };
	if (!e->event)
		return -ENOMEM;
	if (store_events(api->store, after, request, (unsigned int)limit, collect_event, e) >= 0)
		return 0;
	free(e->event);
	e->event = NULL;
	return -EIO;
}

/* Not admins see the events of their requests only. */
static bool sees_event(const struct api *api, const struct api_actor *actor,
		       const struct pool_event *event)
{
	struct pool_request r;

	if (actor->role == STORE_ADMIN)
		return true;
	return event->request && !find_request(api, event->request, &r) &&
	       sees_request(actor, &r);
}

/* Answer with events, and free them; unless @seen, with those that the client's rights show. */
static void answer_events(struct context *c, struct events *e, uint64_t next, size_t limit,
			  bool seen)
{
	struct json_object *o, *list = json_object_new_array();

	for (size_t i = 0; i < e->nr && json_object_array_length(list) < limit; i++) {
		if (seen || sees_event(c->api, &c->call->actor, &e->event[i]))
			json_object_array_add(list, event_json(&e->event[i]));
		next = e->event[i].id;
	}
	free(e->event);
	o = json_object_new_object();
	json_object_object_add(o, "events", list);
	add_number(o, "next", next);
	answer_json(c, 200, o);
}

void get_request_events(struct context *c)
{
	uint64_t after = 0, limit = 100;
	struct pool_request r;
	struct events e;

	if (!query_number(c, "after", 0, INT64_MAX, &after) ||
	    !query_number(c, "limit", 1, API_LIMIT_MAX, &limit) || !get_request(c, &r))
		return;
	if (read_events(c->api, after, c->id, limit, &e))
		fail_store(c);
	else
		answer_events(c, &e, after, limit, true);
}

void get_events(struct context *c)
{
	bool all = c->call->actor.role == STORE_ADMIN;
	uint64_t after = 0, limit = 100;
	struct events e;

	if (!query_number(c, "after", 0, INT64_MAX, &after) ||
	    !query_number(c, "limit", 1, API_LIMIT_MAX, &limit))
		return;
	if (read_events(c->api, after, 0, all ? limit : EVENTS_SCAN, &e))
		fail_store(c);
	else
		answer_events(c, &e, after, limit, all);
}

void get_stream(struct context *c)
{
	uint64_t after = c->api->last_event;

	if (!query_number(c, "after", 0, INT64_MAX, &after))
		return;
	c->answer->status = 200;
	c->answer->type = "text/event-stream";
	c->answer->stream = true;
	c->answer->after = after;
}

ssize_t api_stream(struct api *api, const struct api_actor *actor, uint64_t *after, char **text)
{
	size_t size = 0;
	struct events e;
	FILE *f;

	*text = NULL;
	if (*after >= api->last_event)
		return 0;
	if (read_events(api, *after, 0, API_STREAM_BATCH, &e))
		return -EIO;
	f = open_memstream(text, &size);
	for (size_t i = 0; f && i < e.nr; i++) {
		*after = e.event[i].id;
		if (!sees_event(api, actor, &e.event[i]))
			continue;
		struct json_object *o = event_json(&e.event[i]);

		/* JSON without spaces has no line ends. */
		fprintf(f, "id: %llu\ndata: %s\n\n", (unsigned long long)e.event[i].id,
			json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(o);
	}
	/* Events behind the last one may have been deleted. */
	if (!e.nr)
		*after = api->last_event;
	free(e.event);
	if (!f || fclose(f)) {
		free(*text);
		*text = NULL;
		return -ENOMEM;
	}
	return (ssize_t)size;
}

/* ---- history ---- */

static int add_outcome(const struct pool_outcome *outcome, void *arg)
{
	struct list *l = arg;

	if (!sees_project(&l->c->call->actor, outcome->project))
		return 0;
	json_object_array_add(l->json, outcome_json(outcome));
	return !--l->left;
}

void get_history(struct context *c)
{
	bool all = !*c->call->actor.project;
	uint64_t before = 0, limit = 100;
	struct list l = { .c = c };

	if (!query_number(c, "before", 1, INT64_MAX, &before) ||
	    !query_number(c, "limit", 1, API_LIMIT_MAX, &limit))
		return;
	l.json = json_object_new_array();
	l.left = limit;
	if (store_outcomes(c->api->store, before, all ? (unsigned int)limit : HISTORY_SCAN,
			   add_outcome, &l) >= 0) {
		answer_list(c, "history", l.json);
		return;
	}
	json_object_put(l.json);
	fail_store(c);
}

/* A file without a name. The history grows without end: memory is for want of a disk only. */
static int open_temporary(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? memfd_create("history", MFD_CLOEXEC) : fd;
}

void get_history_csv(struct context *c)
{
	int fd;

	if (c->call->no_file) {
		c->answer->retry = 30;
		fail(c, 503, "busy", "too many histories are being sent; ask again");
		return;
	}
	fd = open_temporary();
	if (fd < 0 || store_export(c->api->store, fd) < 0) {
		if (fd >= 0)
			close(fd);
		fail_store(c);
		return;
	}
	c->answer->status = 200;
	c->answer->type = "text/csv; charset=utf-8; header=present";
	c->answer->fd = fd;
}

/* ---- use over time ---- */

/**
 * struct spans - requests that had a GPU
 * @c: the call
 * @since: begin of the time
 * @r: the requests
 * @nr: their number
 */
struct spans {
	struct context *c;
	int64_t since;
	struct pool_request *r;
	size_t nr;
};

static int collect_span(const struct pool_request *r, void *arg)
{
	struct spans *s = arg;

	if (!r->attached || (r->ended && r->ended < s->since) ||
	    !sees_request(&s->c->call->actor, r))
		return 0;
	s->r[s->nr++] = *r;
	return s->nr == SPANS_MAX;
}

/**
 * struct course - looks of a span
 * @json: looks of the best source: the host's counters, else the agent's, else power
 * @source: that source, 0 for none
 */
struct course {
	struct json_object *json;
	char source;
};

static bool better(char source, char than)
{
	static const char best_first[] = "hap";

	return !than || strchr(best_first, source) < strchr(best_first, than);
}

/* Counters of two sources have nothing to do with each other. */
static int add_point(const struct pool_use *use, void *arg)
{
	struct course *course = arg;
	struct json_object *point;

	if (use->source != course->source && !better(use->source, course->source))
		return 0;
	if (use->source != course->source) {
		json_object_put(course->json);
		course->json = json_object_new_array();
		course->source = use->source;
	}
	point = json_object_new_array();
	json_object_array_add(point, json_object_new_int64(use->time));
	json_object_array_add(point, json_object_new_uint64(use->busy_ns));
	json_object_array_add(course->json, point);
	return 0;
}

static struct json_object *span_json(const struct spans *s, const struct pool_request *r, int *ret)
{
	int64_t seconds = s->c->call->now > s->since ? s->c->call->now - s->since : 0;
	struct json_object *o = json_object_new_object();
	struct course course = { .json = json_object_new_array() };

	*ret = store_course(s->c->api->store, r->id, s->since, seconds / SPAN_POINTS + 1, add_point,
			    &course);
	add_text(o, "gpu", r->gpu);
	add_number(o, "request", r->id);
	add_text(o, "vm", r->vm);
	add_text(o, "project", r->project);
	add_text(o, "kind", r->kind);
	add_text(o, "state", pool_state_name(r->state));
	add_number(o, "from", (uint64_t)r->attached);
	add_number_or_null(o, "to", (uint64_t)r->ended);
	json_object_object_add(o, "points", course.json);
	return o;
}

void get_use(struct context *c)
{
	const char *project = c->call->actor.project;
	uint64_t since = c->call->now > DAY ? (uint64_t)c->call->now - DAY : 0;
	struct json_object *o, *list;
	struct spans s = { .c = c };
	int ret;

	if (!query_number(c, "since", 0, INT64_MAX, &since))
		return;
	s.since = (int64_t)since;
	s.r = malloc(SPANS_MAX * sizeof(*s.r));
	if (!s.r) {
		fail(c, 503, "busy", "out of memory; ask again");
		return;
	}
	ret = store_requests(c->api->store, *project ? project : NULL, 0, SPANS_SCAN, collect_span,
			     &s);
	list = json_object_new_array();
	for (size_t i = 0; i < s.nr && ret >= 0; i++)
		json_object_array_add(list, span_json(&s, &s.r[i], &ret));
	free(s.r);
	o = json_object_new_object();
	add_number(o, "since", since);
	add_number(o, "now", (uint64_t)c->call->now);
	json_object_object_add(o, "spans", list);
	if (ret >= 0) {
		answer_json(c, 200, o);
		return;
	}
	json_object_put(o);
	fail_store(c);
}

/* ---- tokens ---- */

static int add_token(const struct store_token *token, void *arg)
{
	json_object_array_add(arg, token_json(token));
	return 0;
}

void get_tokens(struct context *c)
{
	struct json_object *list = json_object_new_array();

	if (store_tokens(c->api->store, add_token, list) >= 0) {
		answer_list(c, "tokens", list);
		return;
	}
	json_object_put(list);
	fail_store(c);
}

struct wanted_token {
	const char *name;
	struct store_token token;
};

static int find_token(const struct store_token *token, void *arg)
{
	struct wanted_token *w = arg;

	if (strcmp(token->name, w->name))
		return 0;
	w->token = *token;
	return 1;
}

void get_token(struct context *c)
{
	struct wanted_token w = { .name = c->part[0] };
	int ret = store_tokens(c->api->store, find_token, &w);

	if (ret < 0)
		fail_store(c);
	else if (!ret)
		fail(c, 404, "not_found", "no token '%s'; see /v1/tokens", c->part[0]);
	else
		answer_json(c, 200, token_json(&w.token));
}

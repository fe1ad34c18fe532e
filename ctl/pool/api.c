// SPDX-License-Identifier: GPL-2.0-only
/* Routes of the API, and what all of them need. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_private.h"
#include "auth.h"

#define PREFIX	"/v1/"

/* The roles that may call a route. */
enum right {
	READ,		/* every role, each its own project's objects */
	READ_ALL,	/* admins, and viewers of all projects */
	CHANGE,		/* admins and projects */
	ADMIN,
};

/**
 * struct route - a route
 * @method: method
 * @path: path; {id} is a number, any other {WORD} a name
 * @right: callers
 * @run: does it
 * @query: parameters of the query, separated by spaces
 */
static const struct route {
	const char *method;
	const char *path;
	enum right right;
	void (*run)(struct context *c);
	const char *query;
} routes[] = {
	{ "GET", "/v1/status", READ, get_status, "" },
	{ "GET", "/v1/hosts", READ, get_hosts, "" },
	{ "DELETE", "/v1/hosts/{name}", ADMIN, delete_host, "" },
	{ "GET", "/v1/gpus", READ, get_gpus, "" },
	{ "PUT", "/v1/gpus/{host}/{addr}", ADMIN, put_gpu, "" },
	{ "GET", "/v1/vms", READ, get_vms, "" },
	{ "PUT", "/v1/vms/{name}", ADMIN, put_vm, "" },
	{ "DELETE", "/v1/vms/{name}", ADMIN, delete_vm, "" },
	{ "POST", "/v1/vms/{name}/key", ADMIN, post_vm_key, "" },
	{ "GET", "/v1/projects", READ, get_projects, "" },
	{ "PUT", "/v1/projects/{name}", ADMIN, put_project, "" },
	{ "DELETE", "/v1/projects/{name}", ADMIN, delete_project, "" },
	{ "GET", "/v1/requests", READ, get_requests, "open project before limit" },
	{ "POST", "/v1/requests", CHANGE, post_request, "" },
	{ "GET", "/v1/requests/{id}", READ, get_one_request, "wait seen" },
	{ "POST", "/v1/requests/{id}/release", CHANGE, post_release, "" },
	{ "POST", "/v1/requests/{id}/extend", CHANGE, post_extend, "" },
	{ "GET", "/v1/requests/{id}/use", READ, get_request_use, "since limit" },
	{ "GET", "/v1/requests/{id}/events", READ, get_request_events, "after limit" },
	{ "GET", "/v1/events", READ, get_events, "after limit" },
	{ "GET", "/v1/events/stream", READ, get_stream, "after" },
	{ "GET", "/v1/history", READ, get_history, "before limit" },
	{ "GET", "/v1/history.csv", READ_ALL, get_history_csv, "" },
	{ "GET", "/v1/use", READ, get_use, "since" },
	{ "GET", "/v1/tokens", ADMIN, get_tokens, "" },
	{ "GET", "/v1/tokens/{name}", ADMIN, get_token, "" },
	{ "PUT", "/v1/tokens/{name}", ADMIN, put_token, "" },
	{ "DELETE", "/v1/tokens/{name}", ADMIN, delete_token, "" },
	{ "GET", "/v1/openapi.yaml", READ, get_openapi, "" },
};

#define NR_ROUTES	(sizeof(routes) / sizeof(routes[0]))
#define NR_QUERY	4

bool api_route(size_t i, const char **method, const char **path)
{
	if (i >= NR_ROUTES)
		return false;
	*method = routes[i].method;
	*path = routes[i].path;
	return true;
}

/* ---- answers ---- */

void api_error(struct api_answer *answer, int status, const char *code, const char *fmt, ...)
{
	struct json_object *o = json_object_new_object(), *error = json_object_new_object();
	char text[POOL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_text(error, "code", code);
	add_text(error, "text", text);
	json_object_object_add(o, "error", error);
	free(answer->body);
	answer->status = status;
	answer->type = "application/json";
	answer->body = strdup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE));
	answer->size = answer->body ? strlen(answer->body) : 0;
	json_object_put(o);
}

void answer_text(struct context *c, const char *type, const char *text, size_t size)
{
	c->answer->body = malloc(size + 1);
	if (!c->answer->body) {
		fail(c, 503, "busy", "out of memory; ask again");
		return;
	}
	memcpy(c->answer->body, text, size);
	c->answer->body[size] = '\0';
	c->answer->size = size;
	c->answer->status = 200;
	c->answer->type = type;
}

void answer_json(struct context *c, int status, struct json_object *object)
{
	size_t len;
	const char *text = json_object_to_json_string_length(object,
				JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

	if (text)
		answer_text(c, "application/json", text, len);
	else
		fail(c, 503, "busy", "out of memory; ask again");
	if (c->answer->status == 200)
		c->answer->status = status;
	json_object_put(object);
}

void fail_store(struct context *c)
{
	c->answer->retry = 5;
	fail(c, 503, "database", "the database failed; ask again, with the same key for a request");
}

/* ---- the log ---- */

static void log_event(struct api *api, const char *actor, const char *what, uint64_t request,
		      const char *object, const char *text, int64_t now)
{
	struct pool_event event = { .time = now, .request = request };

	snprintf(event.actor, sizeof(event.actor), "%s", actor);
	snprintf(event.what, sizeof(event.what), "%s", what);
	snprintf(event.object, sizeof(event.object), "%s", object);
	snprintf(event.text, sizeof(event.text), "%s", text);
	effects_log(api->effects, &event);
}

void log_change(struct context *c, const char *what, const char *object, const char *fmt, ...)
{
	char text[POOL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_event(c->api, c->actor, what, c->id, object, text, c->call->now);
}

/*
 * A client that is refused again and again must not fill the database: so many lines a minute,
 * then their number.
 */
void api_refused(struct api *api, const char *actor, const char *object, const char *text,
		 int64_t now)
{
	char more[96];

	if (now / 60 != api->refused_minute) {
		if (api->refused > API_REFUSED_MAX) {
			snprintf(more, sizeof(more), "%u more attempts were refused in a minute",
				 api->refused - API_REFUSED_MAX);
			log_event(api, "service", "refused", 0, "", more, now);
		}
		api->refused_minute = now / 60;
		api->refused = 0;
	}
	if (api->refused++ < API_REFUSED_MAX)
		log_event(api, actor, "refused", 0, object, text, now);
}

/* ---- rights ---- */

bool sees_project(const struct api_actor *actor, const char *project)
{
	if (actor->role == STORE_ADMIN)
		return true;
	/* A project's role without a project sees nothing. */
	if (!*actor->project)
		return actor->role == STORE_VIEWER;
	return !strcmp(actor->project, project);
}

bool sees_request(const struct api_actor *actor, const struct pool_request *r)
{
	return sees_project(actor, r->project) && (!*actor->vm || !strcmp(actor->vm, r->vm));
}

bool sees_vm(const struct api_actor *actor, const struct pool_vm *vm)
{
	return sees_project(actor, vm->project) && (!*actor->vm || !strcmp(actor->vm, vm->name));
}

int find_request(const struct api *api, uint64_t id, struct pool_request *r)
{
	const struct pool_request *open = pool_request(api->pool, id);
	int ret = 0;

	if (open)
		*r = *open;
	else
		ret = store_get_request(api->store, id, r);
	return ret && ret != -ENOENT ? -EIO : ret;
}

bool get_request(struct context *c, struct pool_request *r)
{
	int ret = find_request(c->api, c->id, r);

	if (ret == -EIO) {
		fail_store(c);
		return false;
	}
	if (!ret && sees_request(&c->call->actor, r))
		return true;
	fail(c, 404, "not_found", "no request %llu; see /v1/requests", (unsigned long long)c->id);
	return false;
}

static bool may(const struct api_actor *actor, enum right right)
{
	switch (right) {
	case READ:
		return true;
	case READ_ALL:
		return actor->role != STORE_PROJECT && !*actor->project && !*actor->vm;
	case CHANGE:
		return actor->role == STORE_ADMIN ||
		       (actor->role == STORE_PROJECT && *actor->project);
	default:
		return actor->role == STORE_ADMIN && !*actor->vm;
	}
}

static void refuse(struct context *c, const struct route *route)
{
	static const char *const need[] = {
		[READ_ALL] = "admin, or viewer of all projects", [CHANGE] = "project or admin",
		[ADMIN] = "admin",
	};

	char text[128];

	snprintf(text, sizeof(text), "%s needs the role %s", route->method, need[route->right]);
	api_refused(c->api, c->actor, route->path, text, c->call->now);
	fail(c, 403, "forbidden", "%s %s needs the role %s; use a token or certificate with it",
	     route->method, route->path, need[route->right]);
}

/* ---- paths ---- */

static bool read_id(const char *text, size_t len, uint64_t *id)
{
	*id = 0;
	if (!len || len > 18)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		*id = *id * 10 + (uint64_t)(text[i] - '0');
	}
	return *id;
}

/* Names of VMs and hosts, and PCI addresses, which have colons. */
static bool part_ok(const char *part)
{
	for (const char *c = part; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._:-", *c))
			return false;
	return *part && *part != '.' && *part != '-';
}

/* Whether a path is the one of a route; fills the parts. */
static bool match(struct context *c, const char *pattern, const char *path)
{
	size_t part = 0;

	while (*pattern && *path) {
		size_t len = strcspn(path, "/"), want = strcspn(pattern, "/");

		if (*pattern != '{') {
			if (len != want || strncmp(pattern, path, len))
				return false;
		} else if (!strncmp(pattern, "{id}", want)) {
			if (!read_id(path, len, &c->id))
				return false;
		} else if (part == API_PARTS || !decode(path, len, c->part[part], POOL_NAME_MAX) ||
			   !part_ok(c->part[part++])) {
			return false;
		}
		pattern += want;
		path += len;
		if (*pattern == '/' && *path == '/') {
			pattern++;
			path++;
			if (!*path)
				return false;
		}
	}
	return !*pattern && !*path;
}

static const struct route *find(struct context *c, char allow[64])
{
	const struct api_call *call = c->call;

	*allow = '\0';
	for (size_t i = 0; i < NR_ROUTES; i++) {
		size_t len = strlen(allow);

		if (strncmp(call->path, PREFIX, strlen(PREFIX)) ||
		    !match(c, routes[i].path + 1, call->path + 1))
			continue;
		if (!strcmp(routes[i].method, call->method))
			return &routes[i];
		snprintf(allow + len, 64 - len, "%s%s", len ? ", " : "", routes[i].method);
	}
	return NULL;
}

static bool check_query(struct context *c, const struct route *route)
{
	const char *names[NR_QUERY + 1] = { NULL };
	char copy[64], *save;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", route->query);
	for (char *w = strtok_r(copy, " ", &save); w && n < NR_QUERY;
	     w = strtok_r(NULL, " ", &save))
		names[n++] = w;
	return query_check(c, names);
}

static void set_actor(struct context *c)
{
	const struct api_actor *actor = &c->call->actor;

	if (*actor->vm)
		snprintf(c->actor, sizeof(c->actor), "vm:%s", actor->vm);
	else
		snprintf(c->actor, sizeof(c->actor), "%s:%s", store_role_name(actor->role),
			 actor->name);
}

/* A change is one transaction. */
static void change(struct context *c, const struct route *route)
{
	if (effects_begin(c->api->effects)) {
		fail_store(c);
		return;
	}
	route->run(c);
	if (effects_commit(c->api->effects))
		fail_store(c);
}

static const char *allow_of(const char *allow)
{
	static const char *const lists[] = {
		"GET", "GET, POST", "GET, PUT, DELETE", "PUT, DELETE", "POST", "PUT",
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (!strcmp(lists[i], allow))
			return lists[i];
	return NULL;
}

void api_handle(struct api *api, const struct api_call *call, struct api_answer *answer)
{
	struct context c = { .api = api, .call = call, .answer = answer };
	const struct route *route;
	char allow[64];

	*answer = (struct api_answer){ .fd = -1 };
	set_actor(&c);
	route = find(&c, allow);
	if (!route && *allow) {
		fail(&c, 405, "method", "this path takes only %s", allow);
		answer->allow = allow_of(allow);
	} else if (!route) {
		fail(&c, 404, "not_found", "no such path; /v1/openapi.yaml describes all");
	} else if (!may(&call->actor, route->right)) {
		refuse(&c, route);
	} else if (check_query(&c, route)) {
		if (strcmp(route->method, "GET"))
			change(&c, route);
		else
			route->run(&c);
	}
}

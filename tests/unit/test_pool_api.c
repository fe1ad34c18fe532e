// SPDX-License-Identifier: GPL-2.0-only
/*
 * The API of mgpu-poold without its transport: rights, validation, answers, and what it leaves in
 * the database; its callers, limits and configuration.
 *
 * With the word routes it prints the table of routes, for test_poold.py.
 */
#include <errno.h>
#include <ftw.h>
#include <json-c/json.h>

#include "auth.h"
#include "config.h"
#include "hosts.h"
#include "limit.h"
#include "tap.h"

#include "pool_api_world.h"

static const struct api_actor admin = { .role = STORE_ADMIN, .name = "root" };
static const struct api_actor of_p = { .role = STORE_PROJECT, .name = "tp", .project = "p" };
static const struct api_actor of_q = { .role = STORE_PROJECT, .name = "tq", .project = "q" };
static const struct api_actor viewer = { .role = STORE_VIEWER, .name = "v" };
static const struct api_actor viewer_p = { .role = STORE_VIEWER, .name = "vp", .project = "p" };
static const struct api_actor agent_a = {
	.role = STORE_PROJECT, .name = "a", .project = "p", .vm = "a",
};

static struct api_answer answer;
static bool commit_fails;

int __real_store_commit(struct store *store);
int __wrap_store_commit(struct store *store);
int __wrap_store_commit(struct store *store)
{
	return commit_fails ? -EIO : __real_store_commit(store);
}

static unsigned int exports;

int __real_store_export(struct store *store, int fd);
int __wrap_store_export(struct store *store, int fd);
int __wrap_store_export(struct store *store, int fd)
{
	exports++;
	return __real_store_export(store, fd);
}

static bool no_file;

/* Make a call; its answer is in @answer, and as JSON the result, if it is an object. */
static struct json_object *call(const struct api_actor *actor, const char *method,
				const char *target, const char *body)
{
	char path[512];
	char *query;
	struct api_call c = { .method = method, .actor = *actor, .now = WORLD_NOW,
			      .no_file = no_file };

	snprintf(path, sizeof(path), "%s", target);
	query = strchr(path, '?');
	if (query)
		*query++ = '\0';
	c.path = path;
	c.query = query ? query : "";
	c.body = body ? body : "";
	c.body_size = strlen(c.body);
	free(answer.body);
	if (answer.fd > 0)
		close(answer.fd);
	api_handle(&world.api, &c, &answer);
	return answer.body && !strcmp(answer.type, "application/json") ?
	       json_tokener_parse(answer.body) : NULL;
}

static int status(const struct api_actor *actor, const char *method, const char *target,
		  const char *body)
{
	json_object_put(call(actor, method, target, body));
	return answer.status;
}

static const char *error_text(void)
{
	static char text[POOL_TEXT_MAX];
	struct json_object *o = answer.body ? json_tokener_parse(answer.body) : NULL, *e = NULL;

	json_object_object_get_ex(o, "error", &e);
	json_object_object_get_ex(e, "text", &e);
	snprintf(text, sizeof(text), "%s", e ? json_object_get_string(e) : "");
	json_object_put(o);
	return text;
}

#define WISH(key, vm)	"{\"key\":\"" key "\",\"vm\":\"" vm "\",\"kind\":\"training\"}"

static uint64_t number(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, key, &value);
	return json_object_get_uint64(value);
}

static size_t rows(const struct api_actor *actor, const char *target, const char *name)
{
	struct json_object *o = call(actor, "GET", target, NULL), *list = NULL;
	size_t n;

	json_object_object_get_ex(o, name, &list);
	n = list ? json_object_array_length(list) : 9999;
	json_object_put(o);
	return n;
}

/* ---- requests ---- */

static void asks_once(void)
{
	struct json_object *o;
	uint64_t id;

	world_begin();
	o = call(&of_p, "POST", "/v1/requests", WISH("k", "a"));
	TAP_EQ(answer.status, 201);
	id = number(o, "id");
	json_object_put(o);
	TAP_EQ(world.jobs, 1);
	TAP_STR(world.job.vm.name, "a");
	o = call(&of_p, "POST", "/v1/requests", WISH("k", "a"));
	TAP_EQ(answer.status, 200);
	TAP_EQ(number(o, "id"), id);
	json_object_put(o);
	TAP_EQ(world.jobs, 1);
	TAP_EQ(status(&of_p, "POST", "/v1/requests",
		      "{\"key\":\"k\",\"vm\":\"a\",\"kind\":\"other\"}"), 409);
	/* Another project's key is another key. */
	TAP_EQ(status(&of_q, "POST", "/v1/requests", WISH("k", "b")), 201);
	TAP_EQ(rows(&admin, "/v1/requests", "requests"), 2);
	world_end();
}

static void former_key_of_what_is_over(void)
{
	world_begin();
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	TAP_EQ(pool_attached(world.pool, 1, "", WORLD_NOW), 0);
	TAP_EQ(status(&of_p, "POST", "/v1/requests/1/release", NULL), 200);
	TAP_EQ(pool_detached(world.pool, 1, WORLD_NOW), 0);
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 200);
	TAP_CHECK(strstr(answer.body, "\"state\":\"released\""));
	/* Released again: no change, no error. */
	TAP_EQ(status(&of_p, "POST", "/v1/requests/1/release", "{\"done\":true}"), 200);
	TAP_EQ(status(&of_p, "POST", "/v1/requests/1/extend", "{\"seconds\":5}"), 409);
	world_end();
}

/* Points of the first span, and the last of them. */
static size_t points(const char *target, uint64_t *time, uint64_t *busy_ns)
{
	struct json_object *o = call(&of_p, "GET", target, NULL), *list = NULL, *last;
	size_t n;

	*time = *busy_ns = 0;
	json_object_object_get_ex(o, "spans", &list);
	json_object_object_get_ex(json_object_array_get_idx(list, 0), "points", &list);
	n = json_object_array_length(list);
	if (n) {
		last = json_object_array_get_idx(list, n - 1);
		*time = json_object_get_uint64(json_object_array_get_idx(last, 0));
		*busy_ns = json_object_get_uint64(json_object_array_get_idx(last, 1));
	}
	json_object_put(o);
	return n;
}

static void use_reaches_the_end(void)
{
	struct pool_use use = { .request = 1 };
	uint64_t time, busy_ns;

	world_begin();
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	TAP_EQ(pool_attached(world.pool, 1, "", WORLD_NOW - 20000), 0);
	TAP_EQ(points("/v1/use", &time, &busy_ns), 0);
	TAP_EQ(store_begin(world.store), 0);
	for (use.time = WORLD_NOW - 20000; use.time <= WORLD_NOW; use.time += 10)
		for (const char *source = "pa"; *source; source++) {
			use.source = *source;
			use.busy_ns = (uint64_t)(*source == 'a' ? 5 : 7) * (uint64_t)use.time;
			TAP_EQ(store_add_use(world.store, &use), 0);
		}
	TAP_EQ(store_commit(world.store), 0);
	TAP_EQ(points("/v1/use", &time, &busy_ns), 20000 / (86400 / 200 + 1) + 1);
	TAP_EQ(time, WORLD_NOW);
	TAP_EQ(busy_ns, 5ull * WORLD_NOW);
	TAP_EQ(points("/v1/use?since=999000", &time, &busy_ns), 101);
	TAP_EQ(time, WORLD_NOW);
	/* The host's counters are better than an agent's. */
	use = (struct pool_use){ .request = 1, .time = WORLD_NOW - 5, .source = 'h', .busy_ns = 3 };
	TAP_EQ(store_add_use(world.store, &use), 0);
	TAP_EQ(points("/v1/use", &time, &busy_ns), 1);
	TAP_EQ(busy_ns, 3);
	world_end();
}

static void own_project_only(void)
{
	world_begin();
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	TAP_EQ(status(&of_q, "POST", "/v1/requests", WISH("k", "a")), 404);
	TAP_CHECK(strstr(error_text(), "no VM 'a'"));
	TAP_EQ(status(&of_q, "POST", "/v1/requests",
		      "{\"key\":\"x\",\"vm\":\"b\",\"kind\":\"t\",\"project\":\"p\"}"), 403);
	TAP_EQ(status(&admin, "POST", "/v1/requests", WISH("x", "c")), 409);
	TAP_CHECK(strstr(error_text(), "has no project"));
	for (size_t i = 0; i < 4; i++) {
		static const char *const paths[] = {
			"/v1/requests/1", "/v1/requests/1/use", "/v1/requests/1/events",
			"/v1/requests/1?wait=1&seen=0",
		};

		TAP_EQ(status(&of_p, "GET", paths[i], NULL), 200);
		TAP_EQ(status(&viewer_p, "GET", paths[i], NULL), 200);
		TAP_EQ(status(&of_q, "GET", paths[i], NULL), 404);
	}
	TAP_EQ(status(&of_q, "POST", "/v1/requests/1/release", NULL), 404);
	TAP_EQ(status(&of_q, "POST", "/v1/requests/1/extend", "{\"seconds\":1}"), 404);
	TAP_EQ(rows(&of_q, "/v1/requests", "requests"), 0);
	TAP_EQ(rows(&of_q, "/v1/requests?project=p", "requests"), 0);
	TAP_EQ(rows(&of_q, "/v1/requests?open=1&project=p", "requests"), 0);
	TAP_EQ(rows(&of_p, "/v1/requests?open=1", "requests"), 1);
	TAP_EQ(rows(&of_q, "/v1/events", "events"), 0);
	TAP_CHECK(rows(&of_p, "/v1/events", "events") > 0);
	TAP_EQ(rows(&of_q, "/v1/vms", "vms"), 1);
	TAP_EQ(rows(&of_q, "/v1/projects", "projects"), 1);
	TAP_EQ(rows(&viewer, "/v1/vms", "vms"), 3);
	TAP_EQ(rows(&of_q, "/v1/history", "history"), 0);
	TAP_EQ(rows(&of_q, "/v1/use", "spans"), 0);
	/* The GPU is seen, its holder is not. */
	TAP_EQ(rows(&of_q, "/v1/gpus", "gpus"), 1);
	TAP_CHECK(!strstr(answer.body, "\"vm\":"));
	TAP_EQ(rows(&of_p, "/v1/gpus", "gpus"), 1);
	TAP_CHECK(strstr(answer.body, "\"vm\":\"a\""));
	world_end();
}

static void agents_vm_only(void)
{
	world_begin();
	world_vm("a2", "p");
	world_gpu("0000:42:00.0");
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a2")), 201);
	TAP_EQ(status(&agent_a, "GET", "/v1/requests/1", NULL), 404);
	TAP_EQ(status(&agent_a, "POST", "/v1/requests", WISH("l", "a2")), 404);
	TAP_EQ(status(&agent_a, "POST", "/v1/requests", WISH("l", "a")), 201);
	TAP_EQ(rows(&agent_a, "/v1/vms", "vms"), 1);
	TAP_EQ(rows(&agent_a, "/v1/requests", "requests"), 1);
	world_end();
}

static void waits(void)
{
	struct json_object *o;
	char target[96];
	uint64_t version;

	world_begin();
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	o = call(&of_p, "GET", "/v1/requests/1?wait=7&seen=0", NULL);
	version = number(o, "version");
	json_object_put(o);
	TAP_EQ(answer.wait, 0);
	TAP_EQ(api_version(&world.api, 1), version);
	snprintf(target, sizeof(target), "/v1/requests/1?wait=7&seen=%" PRIu64, version);
	TAP_EQ(status(&of_p, "GET", target, NULL), 200);
	TAP_EQ(answer.wait, 7);
	TAP_EQ(answer.request, 1);
	TAP_EQ(answer.seen, version);
	/* Without seen there is nothing to wait for. */
	TAP_EQ(status(&of_p, "GET", "/v1/requests/1?wait=7", NULL), 200);
	TAP_EQ(answer.wait, 0);
	TAP_EQ(pool_attached(world.pool, 1, "", WORLD_NOW), 0);
	TAP_CHECK(api_version(&world.api, 1) != version);
	TAP_CHECK(api_version(&world.api, 1) < UINT64_C(1) << 53);
	TAP_EQ(api_version(&world.api, 77), 0);
	world_end();
}

static void queued_requests_have_a_place(void)
{
	struct json_object *o;
	uint64_t version;

	world_begin();
	world_vm("a2", "p");
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	o = call(&of_p, "POST", "/v1/requests", WISH("l", "a2"));
	TAP_EQ(number(o, "place"), 1);
	TAP_CHECK(strstr(answer.body, "\"state\":\"queued\""));
	version = number(o, "version");
	json_object_put(o);
	TAP_CHECK(!strstr(answer.body, "\"why\":\"\""));
	TAP_EQ(status(&of_p, "POST", "/v1/requests/1/release", NULL), 200);
	TAP_EQ(pool_failed(world.pool, 1, false, "no", WORLD_NOW), 0);
	TAP_EQ(pool_detached(world.pool, 1, WORLD_NOW), 0);
	pool_run(world.pool, WORLD_NOW);
	TAP_CHECK(api_version(&world.api, 2) != version);
	TAP_EQ(world.job.request.id, 2);
	world_end();
}

/* ---- validation ---- */

static void bad_bodies(void)
{
	static const struct {
		const char *body, *text;
	} cases[] = {
		{ "", "the body is empty" },
		{ "{", "no JSON" },
		{ "[]", "must be a JSON object" },
		{ "{} {}", "no JSON" },
		{ "{\"key\":\"k\"}x", "no JSON" },
		{ "{'key':'k'}", "no JSON" },
		{ "{\"a\":[[[[[[[[[[1]]]]]]]]]]}", "no JSON" },
		{ "{\"key\":\"\xff\"}", "no JSON" },
		{ "{}", "member 'key' is missing" },
		{ "{\"key\":\"k\",\"vm\":\"a\"}", "member 'kind' is missing" },
		{ "{\"key\":1}", "member 'key' must be a text" },
		{ "{\"key\":null}", "member 'key' must be a value" },
		{ "{\"key\":\"\"}", "member 'key' must be 1 to 63" },
		{ "{\"key\":\"a\\u0000b\"}", "member 'key'" },
		{ "{\"key\":\"a b\"}", "member 'key'" },
		{ "{\"vm\":\"../x\"}", "member 'vm' must be a name" },
		{ "{\"kind\":\"Training\"}", "member 'kind'" },
		{ "{\"kidn\":\"x\"}", "did you mean 'kind'" },
		{ "{\"nothing_like_it\":1}", "the members are key, vm, kind" },
		{ "{\"target\":\"half\"}", "any, whole or vgpu" },
		{ "{\"precision\":3}", "any, fp64" },
		{ "{\"size_mib\":-1}", "whole number of 0 to" },
		{ "{\"size_mib\":1.5}", "whole number of 0 to" },
		{ "{\"size_mib\":99999999999999999999}", "whole number of 0 to" },
		{ "{\"memory_mib\":16777217}", "whole number of 0 to 16777216" },
		{ "{\"weight\":0}", "whole number of 1 to 10000" },
		{ "{\"floor_fps\":-0.5}", "a number of 0 to 1000" },
		{ "{\"floor_fps\":1001}", "a number of 0 to 1000" },
		{ "{\"floor_fps\":\"x\"}", "a number of 0 to 1000" },
		{ "{\"capabilities\":\"3d\"}", "a list of 3d and compute" },
		{ "{\"capabilities\":[\"3d\",\"3d\"]}", "a list of 3d and compute" },
		{ "{\"capabilities\":[\"3d,compute\"]}", "a list of 3d and compute" },
		{ "{\"capabilities\":[1]}", "a list of 3d and compute" },
		{ "{\"lease_s\":true}", "whole number" },
		{ "{\"type\":\"a\\nb\"}", "without control characters" },
	};
	struct json_object *o;
	char longest[200];

	world_begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TAP_EQ(status(&of_p, "POST", "/v1/requests", cases[i].body), 400);
		if (!TAP_CHECK(strstr(error_text(), cases[i].text)))
			tap_diag("%s: %s", cases[i].body, error_text());
	}
	memset(longest, 'k', sizeof(longest));
	memcpy(longest, "{\"key\":\"", 8);
	strcpy(longest + 8 + 64, "\"}");
	TAP_EQ(status(&of_p, "POST", "/v1/requests", longest), 400);
	TAP_CHECK(strstr(error_text(), "at most 63 bytes"));
	TAP_EQ(rows(&admin, "/v1/requests", "requests"), 0);
	o = call(&of_p, "POST", "/v1/requests",
		 "{\"key\":\"k\",\"vm\":\"a\",\"kind\":\"t\",\"floor_fps\":29.97,\"target\":\"any\",\"capabilities\":[\"3d\",\"compute\"],\"weight\":200,\"precision\":\"fp16\",\"size_mib\":5,\"memory_mib\":6,\"lease_s\":7}");
	TAP_EQ(answer.status, 201);
	json_object_put(o);
	TAP_CHECK(strstr(answer.body, "\"floor_fps\":29.97"));
	world_end();
}

static void bad_paths(void)
{
	static const struct {
		const char *method, *target;
		int status;
	} cases[] = {
		{ "GET", "/", 404 }, { "GET", "/v1", 404 }, { "GET", "/v1/", 404 },
		{ "GET", "/v1/requests/", 404 }, { "GET", "/v1/requests/0", 404 },
		{ "GET", "/v1/requests/-1", 404 }, { "GET", "/v1/requests/1x", 404 },
		{ "GET", "/v1/requests/9999999999999999999", 404 },
		{ "GET", "/v1/requests/999999999999999999", 404 },
		{ "GET", "/v1/requests/7", 404 }, { "GET", "/v1//requests", 404 },
		{ "GET", "/v1/requests/1/use/", 404 }, { "GET", "v1/requests", 404 },
		{ "PUT", "/v1/vms/%00", 404 }, { "PUT", "/v1/vms/%2e%2e", 404 },
		{ "PUT", "/v1/vms/a%2fb", 404 }, { "PUT", "/v1/vms/%zz", 404 },
		{ "PUT", "/v1/vms/a%", 404 }, { "PUT", "/v1/vms/nothing", 404 },
		{ "POST", "/v1/status", 405 }, { "DELETE", "/v1/requests/1", 405 },
		{ "PATCH", "/v1/vms/a", 405 },
		{ "GET", "/v1/requests?limit=0", 400 }, { "GET", "/v1/requests?limit=1001", 400 },
		{ "GET", "/v1/requests?limit=", 400 },
		{ "GET", "/v1/requests?limit=1&limit=2", 400 },
		{ "GET", "/v1/requests?what=1", 400 }, { "GET", "/v1/requests?limit", 400 },
		{ "GET", "/v1/requests?project=../x", 400 }, { "GET", "/v1/status?x=1", 400 },
		{ "GET", "/v1/requests?before=18446744073709551616", 400 },
		{ "GET", "/v1/requests?%6cimit=5", 400 },
		{ "GET", "/v1/requests/1?wait=61", 400 },
	};

	world_begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!TAP_EQ(status(&admin, cases[i].method, cases[i].target, "{}"),
			    cases[i].status))
			tap_diag("%s %s: %s", cases[i].method, cases[i].target, error_text());
	TAP_EQ(status(&admin, "POST", "/v1/tokens/x", NULL), 405);
	TAP_STR(answer.allow, "GET, PUT, DELETE");
	/* A colon may be encoded, as JavaScript does. */
	TAP_EQ(status(&admin, "PUT", "/v1/gpus/h/0000%3A41%3a00.0", "{\"offline\":false}"), 200);
	world_end();
}

/* ---- rights ---- */

static void roles(void)
{
	static const struct {
		const char *method, *target, *body;
		/* admin, project, viewer, viewer of a project: 1 may */
		char may[5];
	} cases[] = {
		{ "GET", "/v1/status", NULL, "1111" },
		{ "GET", "/v1/hosts", NULL, "1111" },
		{ "GET", "/v1/gpus", NULL, "1111" },
		{ "GET", "/v1/openapi.yaml", NULL, "1111" },
		{ "GET", "/v1/history.csv", NULL, "1010" },
		{ "GET", "/v1/tokens", NULL, "1000" },
		{ "GET", "/v1/tokens/x", NULL, "1000" },
		{ "POST", "/v1/requests", WISH("r", "a"), "1100" },
		{ "POST", "/v1/requests/1/extend", "{\"seconds\":9}", "1100" },
		{ "POST", "/v1/requests/1/release", NULL, "1100" },
		{ "PUT", "/v1/projects/p", "{}", "1000" },
		{ "DELETE", "/v1/projects/none", NULL, "1000" },
		{ "PUT", "/v1/vms/a", "{\"pinned\":true}", "1000" },
		{ "POST", "/v1/vms/a/key", NULL, "1000" },
		{ "DELETE", "/v1/vms/none", NULL, "1000" },
		{ "DELETE", "/v1/hosts/none", NULL, "1000" },
		{ "PUT", "/v1/gpus/h/0000:41:00.0", "{\"offline\":true}", "1000" },
		{ "PUT", "/v1/tokens/x", "{\"role\":\"viewer\"}", "1000" },
		{ "DELETE", "/v1/tokens/x", NULL, "1000" },
	};
	const struct api_actor *const actors[] = { &admin, &of_p, &viewer, &viewer_p };
	const struct api_actor nothing = { .role = STORE_PROJECT, .name = "n" };

	world_begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t a = 0; a < 4; a++) {
			bool may = status(actors[a], cases[i].method, cases[i].target,
					  cases[i].body) != 403;

			if (!TAP_EQ(may, cases[i].may[a] == '1'))
				tap_diag("%s %s by %zu", cases[i].method, cases[i].target, a);
		}
	/* A role of a project without one sees nothing, and changes nothing. */
	TAP_EQ(rows(&nothing, "/v1/requests", "requests"), 0);
	TAP_EQ(status(&nothing, "POST", "/v1/requests", WISH("z", "a")), 403);
	world_end();
}

static unsigned int events_with(const char *what)
{
	struct json_object *o = call(&admin, "GET", "/v1/events?limit=1000", NULL), *list = NULL;
	unsigned int n = 0;

	json_object_object_get_ex(o, "events", &list);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *word = NULL;

		json_object_object_get_ex(json_object_array_get_idx(list, i), "what", &word);
		n += !strcmp(json_object_get_string(word), what);
	}
	json_object_put(o);
	return n;
}

static void audit(void)
{
	world_begin();
	TAP_EQ(status(&admin, "PUT", "/v1/projects/new", "{\"weight\":300,\"max_gpus\":2}"), 200);
	TAP_EQ(status(&admin, "PUT", "/v1/vms/c", "{\"project\":\"new\"}"), 200);
	TAP_EQ(status(&admin, "PUT", "/v1/tokens/t", "{\"role\":\"viewer\"}"), 201);
	TAP_EQ(status(&admin, "POST", "/v1/vms/a/key", NULL), 201);
	TAP_EQ(events_with("project"), 1);
	TAP_EQ(events_with("vm"), 1);
	TAP_EQ(events_with("token"), 1);
	TAP_EQ(events_with("vm-key"), 1);
	TAP_EQ(world.told, 2);
	for (unsigned int i = 0; i < 5 * API_REFUSED_MAX; i++)
		TAP_EQ(status(&viewer, "DELETE", "/v1/tokens/t", NULL), 403);
	TAP_EQ(events_with("refused"), API_REFUSED_MAX);
	api_refused(&world.api, "nobody", "x", "y", WORLD_NOW + 60);
	TAP_EQ(events_with("refused"), API_REFUSED_MAX + 2);
	TAP_CHECK(strstr(answer.body, "120 more attempts were refused"));
	world_end();
}

/* ---- administration ---- */

static void projects_and_vms(void)
{
	world_begin();
	TAP_EQ(status(&admin, "PUT", "/v1/projects/p", "{\"max_gpus\":3}"), 200);
	TAP_CHECK(strstr(answer.body, "\"weight\":100,\"max_gpus\":3,"));
	TAP_EQ(status(&admin, "PUT", "/v1/projects/p", "{\"max_gpus\":null}"), 200);
	TAP_CHECK(strstr(answer.body, "\"max_gpus\":null"));
	TAP_EQ(status(&admin, "PUT", "/v1/projects/p", "{\"weight\":0}"), 400);
	TAP_EQ(status(&admin, "PUT", "/v1/projects/a:b", "{}"), 400);
	TAP_EQ(status(&admin, "DELETE", "/v1/projects/p", NULL), 409);
	TAP_EQ(status(&admin, "DELETE", "/v1/projects/none", NULL), 404);
	TAP_EQ(status(&admin, "PUT", "/v1/vms/a", "{\"project\":\"none\"}"), 404);
	TAP_EQ(status(&admin, "PUT", "/v1/vms/a", "{\"pinned\":true}"), 200);
	TAP_CHECK(strstr(answer.body, "\"pinned\":true"));
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	TAP_EQ(status(&admin, "PUT", "/v1/vms/a", "{\"project\":\"q\"}"), 409);
	TAP_EQ(status(&admin, "DELETE", "/v1/vms/a", NULL), 409);
	TAP_EQ(status(&admin, "DELETE", "/v1/vms/c", NULL), 204);
	TAP_EQ(status(&admin, "DELETE", "/v1/vms/c", NULL), 404);
	TAP_EQ(status(&admin, "PUT", "/v1/vms/b", "{\"project\":null}"), 200);
	TAP_EQ(status(&admin, "DELETE", "/v1/projects/q", NULL), 204);
	world_end();
}

/* A host leaves the configuration: its requests are seen, wait, and can be ended. */
static void host_is_gone(void)
{
	struct pool_request r;
	char why[POOL_TEXT_MAX];

	world_begin();
	TAP_EQ(status(&admin, "DELETE", "/v1/hosts/h", NULL), 409);
	TAP_EQ(status(&admin, "POST", "/v1/requests", WISH("k1", "a")), 201);
	TAP_EQ(pool_attached(world.pool, 1, "", WORLD_NOW), 0);
	TAP_EQ(status(&admin, "POST", "/v1/requests", WISH("k2", "b")), 201);
	world.api.nr_hosts = 0;
	TAP_EQ(rows(&admin, "/v1/hosts", "hosts"), 1);
	TAP_EQ(status(&admin, "GET", "/v1/status", NULL), 200);
	TAP_CHECK(strstr(answer.body, "\"name\":\"h\",\"up\":false,\"why\":\"h: not in the"));
	TAP_CHECK(strstr(answer.body, "configuration, and its requests wait; "));
	/* Released by hand, it still waits for the host: the VM may have the GPU. */
	TAP_EQ(pool_release(world.pool, 1, true, WORLD_NOW, "x", why), 0);
	TAP_EQ(pool_request(world.pool, 1)->state, POOL_RELEASING);
	TAP_EQ(status(&admin, "DELETE", "/v1/hosts/none", NULL), 404);
	TAP_EQ(status(&admin, "DELETE", "/v1/hosts/h", NULL), 204);
	TAP_EQ(store_get_request(world.store, 1, &r), 0);
	TAP_EQ(r.state, POOL_RELEASED);
	TAP_STR(r.why, "admin:root took host h out of the pool");
	TAP_EQ(store_get_request(world.store, 2, &r), 0);
	TAP_EQ(r.state, POOL_CANCELLED);
	TAP_EQ(rows(&admin, "/v1/hosts", "hosts"), 0);
	TAP_EQ(pool_gpu(world.pool, "h/0000:41:00.0")->used, 0);
	TAP_EQ(status(&admin, "DELETE", "/v1/hosts/h", NULL), 404);
	world_end();
}

static int only_hash(const struct store_token *token, void *arg)
{
	TAP_CHECK(!strstr(token->hash, arg));
	TAP_EQ(strlen(token->hash), 64);
	return 0;
}

static void tokens(void)
{
	static const char *const bad[] = {
		"{}", "{\"role\":\"root\"}", "{\"role\":\"project\"}",
		"{\"role\":\"admin\",\"project\":\"p\"}", "{\"role\":\"viewer\",\"project\":\"no\"}",
		"{\"role\":\"viewer\",\"expires\":1000000}", "{\"role\":\"viewer\",\"token\":\"x\"}",
	};
	struct json_object *o, *value = NULL;
	struct api_actor actor;
	char text[AUTH_TOKEN_SIZE], other[AUTH_TOKEN_SIZE];

	world_begin();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TAP_EQ(status(&admin, "PUT", "/v1/tokens/t", bad[i]), 400);
	o = call(&admin, "PUT", "/v1/tokens/t",
		 "{\"role\":\"project\",\"project\":\"p\",\"expires\":1000100}");
	TAP_EQ(answer.status, 201);
	json_object_object_get_ex(o, "token", &value);
	snprintf(text, sizeof(text), "%s", json_object_get_string(value));
	json_object_put(o);
	TAP_EQ(auth_token(world.store, text, WORLD_NOW, &actor), 0);
	TAP_EQ(actor.role, STORE_PROJECT);
	TAP_STR(actor.project, "p");
	TAP_STR(actor.name, "t");
	TAP_EQ(auth_token(world.store, text, WORLD_NOW + 99, &actor), 0);
	TAP_EQ(auth_token(world.store, text, WORLD_NOW + 100, &actor), -EACCES);
	TAP_EQ(auth_token(world.store, "", WORLD_NOW, &actor), -EACCES);
	TAP_EQ(auth_token(world.store, "mgpu-", WORLD_NOW, &actor), -EACCES);
	strcpy(other, text);
	other[strlen(other) - 1] ^= 1;
	TAP_EQ(auth_token(world.store, other, WORLD_NOW, &actor), -EACCES);
	TAP_EQ(store_tokens(world.store, only_hash, text), 0);
	TAP_EQ(status(&admin, "GET", "/v1/tokens/t", NULL), 200);
	TAP_CHECK(!strstr(answer.body, text));
	TAP_CHECK(!strstr(answer.body, "hash"));
	TAP_EQ(status(&admin, "GET", "/v1/events", NULL), 200);
	TAP_CHECK(!strstr(answer.body, text));
	/* A new one takes its place. */
	TAP_EQ(status(&admin, "PUT", "/v1/tokens/t", "{\"role\":\"viewer\"}"), 201);
	TAP_EQ(auth_token(world.store, text, WORLD_NOW, &actor), -EACCES);
	TAP_EQ(status(&admin, "DELETE", "/v1/tokens/t", NULL), 204);
	TAP_EQ(status(&admin, "DELETE", "/v1/tokens/t", NULL), 404);
	TAP_EQ(status(&admin, "GET", "/v1/tokens/t", NULL), 404);
	world_end();
}

static void token_text(void)
{
	char one[AUTH_TOKEN_SIZE], two[AUTH_TOKEN_SIZE], hash[65], again[65];

	TAP_EQ(auth_new_token(one, hash), 0);
	TAP_EQ(auth_new_token(two, again), 0);
	TAP_EQ(strlen(one), 5 + 43);
	TAP_CHECK(strcmp(one, two));
	auth_hash(one, again);
	TAP_STR(hash, again);
	auth_hash("abc", hash);
	TAP_STR(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void gpu_changes(void)
{
	static const char gpu[] = "/v1/gpus/h/0000:41:00.0";

	world_begin();
	TAP_EQ(status(&admin, "PUT", gpu, "{\"offline\":true,\"why\":\"fan\"}"), 200);
	TAP_CHECK(strstr(answer.body, "\"why\":\"admin: fan\""));
	TAP_EQ(status(&admin, "PUT", gpu, "{\"memory_mib\":4096}"), 200);
	TAP_CHECK(strstr(answer.body, "\"why\":\"admin: fan\""));
	TAP_CHECK(strstr(answer.body, "\"memory_mib\":4096"));
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	TAP_CHECK(strstr(answer.body, "\"state\":\"queued\""));
	TAP_EQ(status(&admin, "PUT", gpu, "{\"offline\":true}"), 200);
	TAP_CHECK(strstr(answer.body, "\"why\":\"admin: root\""));
	TAP_EQ(status(&admin, "PUT", gpu,
		      "{\"offline\":false,\"precisions\":[\"fp16\",\"fp64\"],\"model\":\"B\"}"),
	       200);
	TAP_CHECK(strstr(answer.body, "\"why\":\"\""));
	TAP_CHECK(strstr(answer.body, "\"precisions\":[\"fp64\",\"fp16\"]"));
	TAP_EQ(status(&admin, "PUT", gpu, "{\"precisions\":[\"any\"]}"), 400);
	TAP_EQ(status(&admin, "PUT", "/v1/gpus/h/0000:42:00.0", "{\"offline\":true}"), 404);
	world_end();
}

static void database_fails(void)
{
	world_begin();
	commit_fails = true;
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 503);
	TAP_CHECK(strstr(answer.body, "\"code\":\"database\""));
	TAP_EQ(answer.retry, 5);
	TAP_EQ(world.jobs, 0);
	TAP_CHECK(effects_failed(&world.effects));
	/* Memory is ahead of the database: no further change. */
	commit_fails = false;
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("l", "a")), 503);
	TAP_EQ(world.jobs, 0);
	TAP_EQ(effects_begin(&world.effects), -EIO);
	world_end();
}

static void stream(void)
{
	uint64_t after = 0, none = 0;
	char *text = NULL;

	world_begin();
	TAP_EQ(status(&of_p, "POST", "/v1/requests", WISH("k", "a")), 201);
	TAP_EQ(status(&admin, "GET", "/v1/events/stream", NULL), 200);
	TAP_CHECK(answer.stream);
	TAP_EQ(answer.after, world.api.last_event);
	TAP_EQ(status(&admin, "GET", "/v1/events/stream?after=1", NULL), 200);
	TAP_EQ(answer.after, 1);
	TAP_CHECK(api_stream(&world.api, &admin, &after, &text) > 0);
	TAP_CHECK(!strncmp(text, "id: 1\ndata: {\"id\":1,", 20));
	TAP_EQ(after, world.api.last_event);
	free(text);
	/* Others' events move on, and are not shown. */
	TAP_EQ(api_stream(&world.api, &of_q, &none, &text), 0);
	TAP_EQ(none, after);
	free(text);
	TAP_EQ(api_stream(&world.api, &admin, &after, &text), 0);
	TAP_CHECK(!text);
	world_end();
}

static void csv(void)
{
	char text[256] = "";

	world_begin();
	exports = 0;
	TAP_EQ(status(&admin, "GET", "/v1/history.csv", NULL), 200);
	TAP_NEED(answer.fd > 0);
	TAP_CHECK(pread(answer.fd, text, sizeof(text) - 1, 0) > 0);
	TAP_CHECK(strstr(text, "kind"));
	close(answer.fd);
	answer.fd = -1;
	TAP_EQ(exports, 1);
	/* Nothing is written for an answer that may not be sent. */
	no_file = true;
	TAP_EQ(status(&admin, "GET", "/v1/history.csv", NULL), 503);
	TAP_EQ(answer.retry, 30);
	TAP_EQ(status(&admin, "GET", "/v1/history", NULL), 200);
	no_file = false;
	TAP_EQ(exports, 1);
	world_end();
}

/* ---- callers, limits, hosts, configuration ---- */

static void unix_users(void)
{
	const gid_t groups[] = { 5, 70 };
	struct auth_unix rules = { .group = 70 };
	enum store_role role;

	TAP_CHECK(auth_unix_role(0, NULL, 0, &rules, &role));
	TAP_EQ(role, STORE_ADMIN);
	TAP_CHECK(auth_unix_role(1000, groups, 2, &rules, &role));
	TAP_EQ(role, STORE_ADMIN);
	TAP_CHECK(!auth_unix_role(1000, groups, 1, &rules, &role));
	rules.others = true;
	TAP_CHECK(auth_unix_role(1000, groups, 1, &rules, &role));
	TAP_EQ(role, STORE_VIEWER);
	/* Without a group, the group 0 is no admin. */
	rules = (struct auth_unix){ 0 };
	TAP_CHECK(!auth_unix_role(1000, (const gid_t[]){ 0 }, 1, &rules, &role));
}

static void names_of_certificates(void)
{
	static const struct auth_client clients[] = {
		{ "ops.example", STORE_ADMIN, "" }, { "urn:p", STORE_PROJECT, "p" },
	};
	struct api_actor actor;

	TAP_CHECK(auth_named("urn:p", clients, 2, &actor));
	TAP_EQ(actor.role, STORE_PROJECT);
	TAP_STR(actor.project, "p");
	TAP_CHECK(!auth_named("urn:p ", clients, 2, &actor));
	TAP_CHECK(!auth_named("", clients, 2, &actor));
	TAP_CHECK(!auth_named("OPS.example", clients, 2, &actor));
}

static void rates(void)
{
	static struct limit limit;
	char name[24];

	limit_init(&limit, 10, 3);
	for (int i = 0; i < 3; i++)
		TAP_EQ(limit_take(&limit, "a", 1, 1000), 0);
	TAP_EQ(limit_take(&limit, "a", 1, 1000), 1);
	TAP_EQ(limit_look(&limit, "a", 1, 1000), 1);
	TAP_EQ(limit_take(&limit, "b", 1, 1000), 0);
	TAP_EQ(limit_look(&limit, "a", 1, 1100), 0);
	TAP_EQ(limit_take(&limit, "a", 1, 1100), 0);
	TAP_EQ(limit_take(&limit, "a", 1, 1100), 1);
	/* The clock goes on for long: full again, not more. */
	for (int i = 0; i < 3; i++)
		TAP_EQ(limit_take(&limit, "a", 1, 1000000000), 0);
	TAP_EQ(limit_take(&limit, "a", 1, 1000000000), 1);
	/* A call that cost much is paid off later, by a minute's tokens at most. */
	limit_charge(&limit, "c", 1, 1000, 13);
	TAP_EQ(limit_take(&limit, "c", 1, 1000), 2);
	TAP_EQ(limit_take(&limit, "c", 1, 2099), 1);
	TAP_EQ(limit_take(&limit, "c", 1, 2100), 0);
	for (int i = 0; i < 3; i++)
		limit_charge(&limit, "c", 1, 3000, UINT32_MAX);
	TAP_EQ(limit_take(&limit, "c", 1, 3000), 61);
	TAP_EQ(limit_take(&limit, "c", 1, 3000 + 60099), 1);
	TAP_EQ(limit_take(&limit, "c", 1, 3000 + 60100), 0);
	TAP_EQ(limit_take(&limit, "c", 1, 3000 + 60100), 1);
	limit_init(&limit, 1, 1);
	TAP_EQ(limit_take(&limit, "a", 1, 0), 0);
	/* Many others do not reset a client that is at its limit. */
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "other%d", i);
		limit_take(&limit, name, strlen(name), 0);
	}
	TAP_EQ(limit_take(&limit, "a", 1, 0), 1);
}

static void merges_gpus(void)
{
	struct pool_gpu old = {
		.model = "A", .memory_mib = 5, .offline = true, .why = "admin: fan", .slots = 1,
	};
	struct pool_gpu gpu = { .model = "PCI", .memory_mib = 9, .slots = 4, .capabilities = 3 };

	hosts_merge_gpu(&gpu, &old);
	TAP_STR(gpu.model, "A");
	TAP_EQ(gpu.memory_mib, 5);
	TAP_EQ(gpu.slots, 4);
	TAP_EQ(gpu.capabilities, 3);
	TAP_CHECK(gpu.offline);
	/* A GPU that the host held back is the host's to free. */
	strcpy(old.why, "group 7 is in use");
	gpu = (struct pool_gpu){ .model = "PCI" };
	hosts_merge_gpu(&gpu, &old);
	TAP_CHECK(!gpu.offline);
	TAP_CHECK(!hosts_merge_gpu(&gpu, NULL));
	TAP_STR(gpu.model, "A");
	/* Of a free GPU the drivers of now count, of one in use those before. */
	old.managed = 3;
	gpu = (struct pool_gpu){ .managed = 4 };
	hosts_merge_gpu(&gpu, &old);
	TAP_EQ(gpu.managed, 4);
	old.used = 1;
	hosts_merge_gpu(&gpu, &old);
	TAP_EQ(gpu.managed, 7);
	/* The card is not known of a row of an older service; then it is. */
	gpu = (struct pool_gpu){ .model = "PCI", .device = "10de:2684" };
	TAP_CHECK(!hosts_merge_gpu(&gpu, &old));
	TAP_STR(gpu.model, "A");
	strcpy(old.device, "10de:2684");
	TAP_CHECK(!hosts_merge_gpu(&gpu, &old));
	/* Another card in the slot: what was described is of the former one. */
	strcpy(old.why, "admin: fan");
	gpu = (struct pool_gpu){ .model = "New", .device = "1002:744c", .capabilities = 1 };
	TAP_CHECK(hosts_merge_gpu(&gpu, &old));
	TAP_STR(gpu.model, "New");
	TAP_EQ(gpu.memory_mib, 0);
	TAP_EQ(gpu.capabilities, 1);
	TAP_EQ(gpu.managed, 0);
	TAP_CHECK(gpu.offline);
}

static void merges_vms(void)
{
	const struct pool_vm old = {
		.name = "a", .host = "h", .uuid = "1", .project = "p", .pinned = true, .consent = 5,
		.seq = 9, .seen = 8,
	};
	struct pool_vm vm = { .name = "a", .host = "h2", .uuid = "1" };

	TAP_EQ(hosts_merge_vm(&vm, NULL, "d"), 0);
	TAP_STR(vm.project, "d");
	TAP_EQ(hosts_merge_vm(&vm, &old, "d"), 0);
	TAP_STR(vm.project, "p");
	TAP_STR(vm.host, "h2");
	TAP_EQ(vm.seq, 9);
	TAP_CHECK(vm.pinned);
	/* Another VM of this name: what the first was allowed is void. */
	vm = (struct pool_vm){ .name = "a", .host = "h", .uuid = "2" };
	TAP_EQ(hosts_merge_vm(&vm, &old, "d"), 1);
	TAP_STR(vm.project, "d");
	TAP_EQ(vm.consent, 0);
	TAP_EQ(vm.seq, 0);
	vm = (struct pool_vm){ .name = "a", .host = "h2", .uuid = "2" };
	TAP_EQ(hosts_merge_vm(&vm, &old, "d"), -EEXIST);
}

static char why[512];

static int parse(struct config *c, const char *text)
{
	return config_parse(c, "f", text, strlen(text), why, sizeof(why));
}

static void good_configuration(void)
{
	struct config c;

	TAP_EQ(parse(&c, ""), 0);
	TAP_EQ(c.pool.look1, 3600);
	TAP_EQ(c.pool.look2, 1200);
	TAP_STR(c.pool.policy, "history");
	TAP_STR(c.default_project, "default");
	TAP_EQ(c.nr_agents, 0);
	config_free(&c);
	TAP_EQ(parse(&c, "# comment\n[database]\nurl = postgresql:///x\n\n[listen]\n"
		     "  address = [::1]:0\ncertificate=/c\nkey=/k ; comment\nothers = viewer\n"
		     "[agents]\nlisten = vsock 127.0.0.1:9653\n[idle]\nlook1_s = 60\n"
		     "[host a]\nuri = qemu:///system\n[host b]\nuri = qemu+tls://b/system\n"
		     "[project p]\nweight = 7\n[project q]\n[client ops]\nrole = admin\n"
		     "[client x@y]\nrole = project\nproject = p\n"), 0);
	TAP_STR(why, "");
	TAP_STR(c.database, "postgresql:///x");
	TAP_STR(c.key, "/k");
	TAP_CHECK(c.others);
	TAP_EQ(c.nr_agents, 2);
	TAP_STR(c.agents[1], "127.0.0.1:9653");
	TAP_EQ(c.pool.look1, 60);
	TAP_EQ(c.nr_hosts, 2);
	TAP_STR(c.hosts[1].uri, "qemu+tls://b/system");
	TAP_EQ(c.nr_projects, 2);
	TAP_EQ(c.projects[0].weight, 7);
	TAP_EQ(c.projects[1].weight, 100);
	TAP_EQ(c.nr_clients, 2);
	TAP_EQ(c.clients[1].role, STORE_PROJECT);
	config_free(&c);
}

static void bad_configuration(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "x = 1\n", "f:1: 'x' is in no section" },
		{ "[databse]\n", "f:1: unknown section 'databse'; did you mean 'database'?" },
		{ "[database]\n\nulr = x\n", "f:3: unknown key 'ulr'; did you mean 'url'?" },
		{ "[idle]\nlook1_s = 0\n",
		  "f:2: look1_s '0': write a whole number of 1 to 31536000 seconds" },
		{ "[idle]\nlook1_s = 5s\n", "f:2: look1_s '5s'" },
		{ "[idle]\nlook1_s = 5\nlook1_s = 6\n",
		  "f:3: duplicate key 'look1_s', first in line 2" },
		{ "[choice]\npolicy = best_fit\n",
		  "f:2: unknown value of policy 'best_fit'; did you mean 'best-fit'?" },
		{ "[listen]\nothers = all\n",
		  "f:2: unknown value of others 'all'; use one of none, viewer" },
		{ "[listen]\nsocket = relative\n", "f:2: socket 'relative': write a path" },
		{ "[listen]\nsocket = none\n", "f:2: neither socket nor address" },
		{ "[listen]\naddress = 1.2.3.4:5\n", "f:2: address needs certificate and key" },
		{ "[listen]\nclient_ca = /x\n", "f:2: client_ca needs address" },
		{ "[host]\nuri = x\n", "f:1: [host] has no name" },
		{ "[host a b]\nuri = x\n", "f:1: [host a b]: the name" },
		{ "[host a]\n[host b]\nuri = x\n", "f:2: [host a] before this line has no uri" },
		{ "[host a]\nuri = x\n[project p]\n[host a]\n", "f:4: duplicate section [host a]" },
		{ "[host a]\nurl = x\n", "f:2: unknown key 'url'; did you mean 'uri'?" },
		{ "[project p]\nweight = 0\n",
		  "f:2: weight '0': write a whole number of 1 to 10000" },
		{ "[project p]\nweight = 1\nweight = 1\n", "f:3: duplicate key 'weight'" },
		{ "[client c]\n", "f:1: [client c] before this line has no role" },
		{ "[client c]\nrole = boss\n", "f:2: unknown role 'boss'; use one of viewer" },
		{ "[client c]\nrole = project\n", "has the role project, but no project" },
		{ "[client c]\nrole = admin\nproject = p\n", "has a project, but the role admin" },
		{ "[pool]\ndefault_project = a/b\n", "f:2: default_project 'a/b'" },
		{ "[pool\n", "f:1: the section lacks its ]" },
		{ "[pool]\nnonsense\n", "f:2: write \"key = value\"" },
		{ "[agents]\nlisten = a b c d e f g h i\n", "more than 8 addresses" },
		{ "[database]\nurl =\n", "f:2: url: the value is empty" },
	};
	struct config c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TAP_EQ(parse(&c, cases[i].text), -EINVAL);
		if (!TAP_CHECK(strstr(why, cases[i].why)))
			tap_diag("%s", why);
	}
	TAP_EQ(config_parse(&c, "f", "[pool]\n\0x", 9, why, sizeof(why)), -EINVAL);
	TAP_EQ(config_load(&c, "/nonexistent", true, why, sizeof(why)), -ENOENT);
	TAP_CHECK(strstr(why, "--config"));
	TAP_EQ(config_load(&c, "/nonexistent", false, why, sizeof(why)), 0);
	config_free(&c);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int print_routes(void)
{
	const char *method, *path;

	for (size_t i = 0; api_route(i, &method, &path); i++)
		printf("%s %s\n", method, path);
	return 0;
}

int main(int argc, char **argv)
{
	char home[] = "/dev/shm/pool-api-XXXXXX";
	int status;

	answer.fd = -1;
	if (argc == 2 && !strcmp(argv[1], "routes"))
		return print_routes();
	world_home = mkdtemp(home);
	if (!world_home)
		return 1;
	tap_run(asks_once, "a key asks once");
	tap_run(former_key_of_what_is_over, "the key of a request that is over gives that request");
	tap_run(use_reaches_the_end, "the use of a span is one source's, to its end");
	tap_run(own_project_only, "a project sees and reaches only its own");
	tap_run(agents_vm_only, "an agent sees and reaches only its VM's");
	tap_run(waits, "a long poll waits for another version");
	tap_run(queued_requests_have_a_place, "a queued request has a place and a reason");
	tap_run(bad_bodies, "bad bodies are refused with what is wrong");
	tap_run(bad_paths, "bad paths, methods and queries are refused");
	tap_run(roles, "each role has its rights");
	tap_run(audit, "changes and refused attempts are logged, in bounded number");
	tap_run(projects_and_vms, "projects and VMs change, unless they are in use");
	tap_run(host_is_gone, "requests of a host that left the configuration are seen, and can be ended");
	tap_run(tokens, "tokens are made, replaced and revoked, and only hashes are stored");
	tap_run(token_text, "tokens are random, and their hash is SHA-256");
	tap_run(gpu_changes, "an admin takes a GPU out, and describes it");
	tap_run(database_fails, "no job begins when the database fails");
	tap_run(stream, "a stream has the events that its client may see");
	tap_run(csv, "the history comes as CSV");
	tap_run(unix_users, "root and the group are admins at the socket");
	tap_run(names_of_certificates,
		"a certificate's name must be exactly one of the configuration");
	tap_run(rates, "a bucket empties, and fills with time");
	tap_run(merges_gpus, "an admin's words about a GPU stay");
	tap_run(merges_vms, "another VM of the same name gets nothing of the first");
	tap_run(good_configuration, "the configuration is read");
	tap_run(bad_configuration, "a mistake in the configuration has its line and a remedy");
	status = tap_done();
	/* A test that fails leaves its folder. */
	if (nftw(home, remove_entry, 8, FTW_DEPTH | FTW_PHYS))
		perror(home);
	return status;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the API of mgpu-poold, on a pool with a database.  The input is calls, a line each: a
 * digit for the caller, the method, the target, the body, with a space between two.  A line that
 * begins with + - or ! is a host's answer to the last job.  Whatever the calls are, each answer is
 * JSON of the shape that its status has, a project gets no name of another one, and a reader
 * changes nothing.
 */
#include <json-c/json.h>

#include "fuzz.h"
#include "../unit/pool_api_world.h"

#define CALLS	24
#define HIDDEN	"hidden-vm"	/* a VM of the project p */

static const struct api_actor actors[] = {
	{ .role = STORE_ADMIN, .name = "root" },
	{ .role = STORE_PROJECT, .name = "tp", .project = "p" },
	{ .role = STORE_PROJECT, .name = "tq", .project = "q" },
	{ .role = STORE_VIEWER, .name = "v" },
	{ .role = STORE_VIEWER, .name = "vq", .project = "q" },
	{ .role = STORE_PROJECT, .name = "b", .project = "q", .vm = "b" },
};

static void check_error(const struct api_answer *answer, struct json_object *o)
{
	struct json_object *error = NULL, *code = NULL, *text = NULL;

	FUZZ_ASSERT(json_object_object_get_ex(o, "error", &error));
	FUZZ_ASSERT(json_object_object_get_ex(error, "code", &code));
	FUZZ_ASSERT(json_object_object_get_ex(error, "text", &text));
	FUZZ_ASSERT(json_object_get_string_len(text) > 0);
	FUZZ_ASSERT(answer->status >= 400 && answer->status < 600);
}

static void check(const struct api_call *call, const struct api_answer *answer, const char *line)
{
	struct json_tokener *t;
	struct json_object *o;

	FUZZ_ASSERT(answer->status == 200 || answer->status == 201 || answer->status == 204 ||
		    answer->status >= 400);
	if (answer->fd >= 0)
		close(answer->fd);
	if (!answer->body)
		return;
	if (*call->actor.project && *call->actor.project != 'p' && !strstr(line, "hidden") &&
	    strcmp(answer->type, "application/yaml"))
		FUZZ_ASSERT(!memmem(answer->body, answer->size, HIDDEN, strlen(HIDDEN)));
	if (strcmp(answer->type, "application/json"))
		return;
	t = json_tokener_new();
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(t, answer->body, (int)answer->size);
	FUZZ_ASSERT(json_object_is_type(o, json_type_object));
	if (answer->status >= 400)
		check_error(answer, o);
	json_object_put(o);
	json_tokener_free(t);
}

static void answer_job(char kind)
{
	uint64_t id = world.job.request.id;

	if (kind == '+')
		pool_attached(world.pool, id, "", WORLD_NOW);
	else if (kind == '-')
		pool_detached(world.pool, id, WORLD_NOW);
	else
		pool_failed(world.pool, id, false, "the host refused", WORLD_NOW);
}

/* Cut off the next word. */
static char *word(char **at)
{
	char *begin = *at;

	*at += strcspn(*at, " ");
	if (**at)
		*(*at)++ = '\0';
	return begin;
}

static void stream(const struct api_call *call, uint64_t after)
{
	char *text = NULL;
	ssize_t size = api_stream(&world.api, &call->actor, &after, &text);

	FUZZ_ASSERT(size >= 0);
	if (size && *call->actor.project == 'q')
		FUZZ_ASSERT(!strstr(text, HIDDEN));
	free(text);
}

static void make_call(char *line)
{
	struct api_call call = { .now = WORLD_NOW };
	unsigned int events = world.events;
	char *at = line, *whole = strdup(line), *query;
	struct api_answer answer;

	call.actor = actors[(unsigned char)*at % (sizeof(actors) / sizeof(actors[0]))];
	word(&at);
	call.method = word(&at);
	call.path = word(&at);
	query = strchr(call.path, '?');
	if (query)
		*query++ = '\0';
	call.query = query ? query : "";
	/* A body of its exact size, without a NUL. */
	call.body_size = strlen(at);
	call.body = memcpy(malloc(call.body_size + 1), at, call.body_size);
	call.body = realloc((void *)call.body, call.body_size ? call.body_size : 1);
	api_handle(&world.api, &call, &answer);
	check(&call, &answer, whole);
	if (answer.stream)
		stream(&call, answer.after);
	/* A refused attempt is logged; nothing else is of a reader's. */
	if (call.actor.role == STORE_VIEWER)
		FUZZ_ASSERT(world.events - events <= 1 && world.jobs == world.jobs_before);
	world.jobs_before = world.jobs;
	free(answer.body);
	free((void *)call.body);
	free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *line = text, *end;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	world_begin();
	world_vm(HIDDEN, "p");
	for (unsigned int n = 0; n < CALLS && line && *line; n++, line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (strchr("+-!", *line) && *line)
			answer_job(*line);
		else
			make_call(line);
		pool_run(world.pool, WORLD_NOW);
		world.jobs_before = world.jobs;
		FUZZ_ASSERT(!effects_failed(&world.effects));
	}
	world_end();
	free(text);
	return 0;
}

#define ASK(who, key, vm) \
	who " POST /v1/requests {\"key\":\"" key "\",\"vm\":\"" vm "\",\"kind\":\"training\"}\n"

static void seeds(const char *dir)
{
	static const char *const inputs[] = {
		ASK("1", "k", "hidden-vm") "+\n2 GET /v1/requests\n2 GET /v1/gpus\n"
		"2 GET /v1/events\n1 GET /v1/requests/1?wait=5&seen=0\n"
		"1 POST /v1/requests/1/extend {\"seconds\":60}\n"
		"1 POST /v1/requests/1/release {\"done\":true}\n-\n0 GET /v1/history\n",
		ASK("1", "k", "a") ASK("2", "k", "b") "!\n2 GET /v1/requests/2/events?after=1\n"
		"2 POST /v1/requests/2/release\n0 GET /v1/use?since=5\n",
		"0 PUT /v1/projects/new {\"weight\":5,\"max_gpus\":null}\n"
		"0 PUT /v1/vms/c {\"project\":\"new\",\"pinned\":true}\n0 DELETE /v1/vms/c\n"
		"0 DELETE /v1/projects/new\n0 POST /v1/vms/a/key\n0 GET /v1/projects\n",
		"0 PUT /v1/gpus/h/0000%3a41:00.0 {\"offline\":true,\"why\":\"fan\",\"memory_mib\":4,\"capabilities\":[\"3d\",\"compute\"],\"precisions\":[\"fp16\"],\"model\":\"M\"}\n"
		"0 GET /v1/gpus\n3 GET /v1/status\n4 GET /v1/hosts\n",
		"0 PUT /v1/tokens/t {\"role\":\"project\",\"project\":\"p\",\"expires\":2000000}\n"
		"0 GET /v1/tokens\n0 GET /v1/tokens/t\n0 DELETE /v1/tokens/t\n3 GET /v1/tokens\n",
		"0 POST /v1/requests {\"key\":\"a.b\",\"vm\":\"b\",\"kind\":\"x\",\"project\":\"q\",\"target\":\"any\",\"size_mib\":5,\"memory_mib\":6,\"precision\":\"fp32\",\"capabilities\":[],\"type\":\"t\",\"weight\":7,\"floor_fps\":29.97,\"lease_s\":8}\n"
		"5 GET /v1/requests?open=1&project=q&before=9&limit=3\n5 GET /v1/vms\n"
		"3 GET /v1/events/stream?after=0\n3 GET /v1/history.csv\n0 GET /v1/openapi.yaml\n",
	};
	char name[16];

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, inputs[i], strlen(inputs[i]));
	}
}

FUZZ_SEEDS(seeds)

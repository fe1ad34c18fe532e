/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the files of the API. */
#ifndef POOL_API_PRIVATE_H
#define POOL_API_PRIVATE_H

#include <json-c/json.h>

#include "api.h"

#define API_PARTS	2	/* names in a path */
#define API_JSON_DEPTH	8
#define API_ACTOR_MAX	(2 * POOL_NAME_MAX)

/**
 * struct context - a call that is being done
 * @api: the API
 * @call: the call
 * @answer: its answer
 * @part: names in the path, decoded
 * @id: number of the request in the path
 * @actor: the caller, for the log
 */
struct context {
	struct api *api;
	const struct api_call *call;
	struct api_answer *answer;
	char part[API_PARTS][POOL_NAME_MAX];
	uint64_t id;
	char actor[API_ACTOR_MAX];
};

/* ---- answers ---- */

/* Answer with an object, which is freed. */
void answer_json(struct context *c, int status, struct json_object *object);

/* Answer a text, which is copied. */
void answer_text(struct context *c, const char *type, const char *text, size_t size);

#define fail(c, ...)	api_error((c)->answer, __VA_ARGS__)

/* Answer an error of the database. */
void fail_store(struct context *c);

/* ---- rights ---- */

bool sees_project(const struct api_actor *actor, const char *project);
bool sees_request(const struct api_actor *actor, const struct pool_request *r);
bool sees_vm(const struct api_actor *actor, const struct pool_vm *vm);

/* The request of the path, if the caller may see it; else answers. */
bool get_request(struct context *c, struct pool_request *r);
/* A request, over or not. Return 0, -ENOENT or -EIO. */
int find_request(const struct api *api, uint64_t id, struct pool_request *r);

/* ---- objects as JSON ---- */

void add_text(struct json_object *object, const char *key, const char *text);
/* null for "" */
void add_text_or_null(struct json_object *object, const char *key, const char *text);
void add_number(struct json_object *object, const char *key, uint64_t value);
/* null for 0 */
void add_number_or_null(struct json_object *object, const char *key, uint64_t value);
void add_flag(struct json_object *object, const char *key, bool value);

struct json_object *request_json(const struct api *api, const struct pool_request *r);
struct json_object *gpu_json(struct context *c, const struct pool_gpu *gpu);
struct json_object *vm_json(struct context *c, const struct pool_vm *vm);
struct json_object *project_json(const struct api *api, const struct pool_project *project);
struct json_object *event_json(const struct pool_event *event);
struct json_object *use_json(const struct pool_use *use);
struct json_object *outcome_json(const struct pool_outcome *outcome);
struct json_object *token_json(const struct store_token *token);

/* ---- what calls give ---- */

enum field_kind {
	FIELD_NAME, FIELD_KEY, FIELD_KIND, FIELD_TEXT, FIELD_U32, FIELD_U64, FIELD_MILLI,
	FIELD_FLAG, FIELD_TARGET, FIELD_PRECISION, FIELD_CAPABILITIES, FIELD_PRECISIONS,
	FIELD_ROLE,
};

/**
 * struct field - a member of a body
 * @name: name of the member
 * @kind: its type
 * @offset: where it goes
 * @size: size of a text, bytes
 * @min: lowest number
 * @max: highest number
 * @needed: it must be there
 * @null: it may be null, which is 0 or ""
 */
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	size_t size;
	uint64_t min;
	uint64_t max;
	bool needed;
	bool null;
};

/**
 * read_body() - read the body, an object
 * @fields: members that it may have, a member without a name at the end
 * @result: what they are written to
 * @given: bit I for a member I that is there; may be NULL
 * @empty: there may be no body
 *
 * Return: whether it is good; else there is an answer with the mistake.
 */
bool read_body(struct context *c, const struct field *fields, void *result, uint32_t *given,
	       bool empty);

/* Read a number of the query, @value as it was if it is absent. Answers a mistake. */
bool query_number(struct context *c, const char *name, uint64_t min, uint64_t max, uint64_t *value);
/* Read a name, "" if it is absent. */
bool query_name(struct context *c, const char *name, char value[POOL_NAME_MAX]);
bool query_has(const struct context *c, const char *name);
/* Refuse parameters that are not among @names, or are there twice. */
bool query_check(struct context *c, const char *const *names);

/* Decode %XX up to @end or the NUL. False: no room, a bad code, or a control character. */
bool decode(const char *text, size_t len, char *result, size_t size);

/* ---- routes ---- */

/* Log a change. */
void log_change(struct context *c, const char *what, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

void get_status(struct context *c);
void get_hosts(struct context *c);
void get_gpus(struct context *c);
void get_vms(struct context *c);
void get_projects(struct context *c);
void get_requests(struct context *c);
void get_one_request(struct context *c);
void get_request_use(struct context *c);
void get_request_events(struct context *c);
void get_events(struct context *c);
void get_stream(struct context *c);
void get_history(struct context *c);
void get_history_csv(struct context *c);
void get_use(struct context *c);
void get_tokens(struct context *c);
void get_token(struct context *c);
void get_openapi(struct context *c);

void post_request(struct context *c);
void post_release(struct context *c);
void post_extend(struct context *c);
void put_project(struct context *c);
void delete_project(struct context *c);
void put_vm(struct context *c);
void delete_vm(struct context *c);
void delete_host(struct context *c);
void post_vm_key(struct context *c);
void put_gpu(struct context *c);
void put_token(struct context *c);
void delete_token(struct context *c);

#endif /* POOL_API_PRIVATE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The API without its transport: a call goes in, an answer comes out.  http.c, the unit tests
 * and the fuzz target call it.  ctl/pool/openapi.yaml describes it; tests compare.
 */
#ifndef POOL_API_H
#define POOL_API_H

#include <sys/types.h>

#include "effects.h"
#include "pool.h"
#include "store.h"

#define API_BODY_MAX	(64 * 1024)
#define API_WAIT_MAX	60	/* seconds of a long poll */
#define API_LIMIT_MAX	1000	/* rows of a list */
#define API_REFUSED_MAX	30	/* refused attempts that are logged one by one, a minute */
#define API_OFFLINE	"admin: "	/* begins the reason of a GPU that an admin took out */
#define API_STREAM_BATCH 32	/* events that a stream is given at a time */

/**
 * struct api_actor - the caller, as the transport found out
 * @role: what it may do
 * @name: of a token, certificate or user
 * @project: its project, "": all (admins, and viewers of all)
 * @vm: an agent: only this VM; "" for others
 * @expires: when the token or certificate does, 0: never; streams end then
 */
struct api_actor {
	enum store_role role;
	char name[POOL_NAME_MAX];
	char project[POOL_NAME_MAX];
	char vm[POOL_NAME_MAX];
	int64_t expires;
};

/**
 * struct api_call - a call
 * @method: GET, POST, PUT or DELETE
 * @path: path, still encoded
 * @query: what follows the question mark, still encoded; "" for none
 * @body: the body, which need not end with a NUL
 * @body_size: its size, bytes
 * @actor: the caller
 * @now: time, seconds
 * @no_file: the answer may not be a file, of which many are being sent
 */
struct api_call {
	const char *method;
	const char *path;
	const char *query;
	const char *body;
	size_t body_size;
	struct api_actor actor;
	int64_t now;
	bool no_file;
};

/**
 * struct api_answer - an answer
 * @status: status of HTTP
 * @type: media type, a constant
 * @body: free() by the caller; NULL: none
 * @size: size of @body, bytes
 * @fd: a file with the body in place of @body, which the caller closes; -1 for none
 * @allow: methods of the path, for status 405; NULL for none
 * @retry: seconds after which the caller may try again, 0 for none
 * @wait: long poll: the caller may wait so many seconds until api_version() of @request
 *	differs from @seen, and make the call again without a wait; 0: answer now
 * @request: see @wait
 * @seen: see @wait
 * @stream: a stream without an end, whose text is from api_stream()
 * @after: for api_stream()
 */
struct api_answer {
	int status;
	const char *type;
	char *body;
	size_t size;
	int fd;
	const char *allow;
	unsigned int retry;
	unsigned int wait;
	uint64_t request;
	uint64_t seen;
	bool stream;
	uint64_t after;
};

/**
 * struct api_host - a host for the API
 * @name: its name
 * @up: libvirt answers
 * @why: why not
 */
struct api_host {
	char name[POOL_NAME_MAX];
	bool up;
	char why[POOL_TEXT_MAX];
};

/**
 * enum api_change - changes that other parts must learn of
 * @API_TOKEN: a token was made, replaced or revoked
 * @API_VM_KEY: a VM has a new key, or none any more
 */
enum api_change { API_TOKEN, API_VM_KEY };

/**
 * struct api - the API
 * @pool: the pool
 * @store: its database
 * @effects: its hooks, which store and log
 * @started: time that the service started, seconds
 * @hosts: hosts, of the caller
 * @nr_hosts: their number
 * @changed: called after a change of the object @name; may be NULL
 * @arg: for @changed
 * @last_event: id of the last event, which the caller sets
 * @refused_minute: minute of the last refused attempt
 * @refused: refused attempts of that minute
 */
struct api {
	struct pool *pool;
	struct store *store;
	struct effects *effects;
	int64_t started;
	const struct api_host *hosts;
	size_t nr_hosts;
	void (*changed)(void *arg, enum api_change what, const char *name);
	void *arg;
	uint64_t last_event;
	int64_t refused_minute;
	unsigned int refused;
};

/**
 * api_handle() - do what a call wants
 *
 * A change is in the database when it returns.
 */
void api_handle(struct api *api, const struct api_call *call, struct api_answer *answer);

/* Make an answer with an error: @code as in openapi.yaml. */
void api_error(struct api_answer *answer, int status, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Version of a request: differs after each change of what a caller sees; 0: no such request. */
uint64_t api_version(const struct api *api, uint64_t request);

/**
 * api_stream() - write the events after @after that the actor may see, for Server-Sent Events
 * @after: id of the last event that was looked at; grows
 * @text: result, free() by the caller
 *
 * Return: size of @text, 0 for no event, or -errno.
 */
ssize_t api_stream(struct api *api, const struct api_actor *actor, uint64_t *after, char **text);

/* Routes, in order: @i from 0; false behind the last. */
bool api_route(size_t i, const char **method, const char **path);

/* Log a refused attempt, in bounded number, with no secret in @text. */
void api_refused(struct api *api, const char *actor, const char *object, const char *text,
		 int64_t now);

#endif /* POOL_API_H */

// SPDX-License-Identifier: GPL-2.0-only
/* One call: who makes it, whether it may, and its answer. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "auth.h"
#include "clock.h"
#include "crash.h"
#include "http_private.h"
#include "page.h"

#define BLOCK	4096	/* of a stream, bytes */
#define TIME_PART	4	/* a caller that is no admin has this part of the time */

static const char *header(struct call *call, const char *name)
{
	return MHD_lookup_connection_value(call->c, MHD_HEADER_KIND, name);
}

/* ---- answers ---- */

static void add_headers(struct call *call, struct MHD_Response *r, bool page)
{
	static const char *const headers[][2] = {
		{ "X-Content-Type-Options", "nosniff" }, { "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(r, headers[i][0], headers[i][1]);
	MHD_add_response_header(r, "Content-Security-Policy", page ? PAGE_POLICY :
				"default-src 'none'; frame-ancestors 'none'");
	MHD_add_response_header(r, "Cache-Control", page ? "no-cache" : "no-store");
	if (call->client->tls)
		MHD_add_response_header(r, "Strict-Transport-Security", "max-age=31536000");
}

static enum MHD_Result send_response(struct call *call, int status, struct MHD_Response *r)
{
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	ret = MHD_queue_response(call->c, (unsigned int)status, r);
	MHD_destroy_response(r);
	call->state = CALL_DONE;
	return ret;
}

static struct MHD_Response *answer_response(struct api_answer *answer)
{
	struct stat st;

	if (answer->fd < 0)
		return MHD_create_response_from_buffer(answer->size, answer->body ? answer->body :
						       "", answer->body ? MHD_RESPMEM_MUST_FREE :
						       MHD_RESPMEM_PERSISTENT);
	if (fstat(answer->fd, &st))
		return NULL;
	return MHD_create_response_from_fd((size_t)st.st_size, answer->fd);
}

/* Send an answer, which is freed. */
static enum MHD_Result send_answer(struct call *call, struct api_answer *answer)
{
	struct MHD_Response *r = answer_response(answer);
	char retry[16];

	if (!r) {
		free(answer->body);
		if (answer->fd >= 0)
			close(answer->fd);
		return MHD_NO;
	}
	call->client->slow = answer->fd >= 0;
	if (answer->type)
		MHD_add_response_header(r, "Content-Type", answer->type);
	if (answer->allow)
		MHD_add_response_header(r, "Allow", answer->allow);
	snprintf(retry, sizeof(retry), "%u", answer->retry);
	if (answer->retry)
		MHD_add_response_header(r, "Retry-After", retry);
	if (answer->status == 401)
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer realm=\"mgpu-poold\"");
	add_headers(call, r, false);
	crash_point("reply");
	return send_response(call, answer->status, r);
}

/*
 * Send an error when the body has come, if it is of a size that may: a client that still sends
 * would see a broken connection in place of the answer.
 */
static enum MHD_Result send_refusal(struct call *call, struct api_answer *answer)
{
	const char *size = header(call, "Content-Length");
	unsigned long long bytes = size ? strtoull(size, NULL, 10) : 0;

	if (call->state != CALL_BEGIN || bytes > API_BODY_MAX ||
	    (!bytes && !header(call, "Transfer-Encoding")))
		return send_answer(call, answer);
	call->refusal = *answer;
	call->state = CALL_REFUSED;
	return MHD_YES;
}

/* Send the error that waited for the body. */
static enum MHD_Result send_held(struct call *call)
{
	struct api_answer answer = call->refusal;

	call->refusal.body = NULL;
	return send_answer(call, &answer);
}

#define REFUSE(call, status, code, ...)					\
	do {								\
		struct api_answer answer_ = { .fd = -1 };		\
									\
		api_error(&answer_, status, code, __VA_ARGS__);		\
		return send_refusal(call, &answer_);			\
	} while (0)

static enum MHD_Result refuse_rate(struct call *call, unsigned int seconds)
{
	struct api_answer answer = { .fd = -1 };

	api_error(&answer, 429, "rate", "too many calls; ask again in %u seconds", seconds);
	answer.retry = seconds;
	return send_refusal(call, &answer);
}

static enum MHD_Result send_page(struct call *call, const struct page_file *f)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer((size_t)(f->end - f->data), (void *)f->data,
						MHD_RESPMEM_PERSISTENT);

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", f->type);
	add_headers(call, r, true);
	return send_response(call, 200, r);
}

/* ---- the caller ---- */

/* The token of "Authorization: Bearer TOKEN". */
static const char *bearer(struct call *call)
{
	const char *text = header(call, "Authorization");

	if (!text || strncasecmp(text, "Bearer ", 7))
		return text ? "" : NULL;
	return text + 7 + strspn(text + 7, " ");
}

/* Find the caller: 0, or -EACCES with @why, -EIO. */
static int who(struct call *call, char *why)
{
	const union MHD_ConnectionInfo *info;
	const char *token = bearer(call);
	int ret;

	snprintf(why, POOL_TEXT_MAX, "no token and no certificate; send Authorization: Bearer TOKEN, or use a client certificate");
	if (token) {
		snprintf(why, POOL_TEXT_MAX, "the token is unknown or expired; ask an admin for a new one");
		return auth_token(call->http->api->store, token, call->http->now, &call->actor);
	}
	if (!call->client->tls) {
		call->actor = call->client->actor;
		snprintf(why, POOL_TEXT_MAX, "this user has no rights at the socket; join the group that admin_group names, or send a token");
		return call->client->known ? 0 : -EACCES;
	}
	info = MHD_get_connection_info(call->c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (!info)
		return -EACCES;
	ret = auth_certificate(info->tls_session, call->http->config.clients,
			       call->http->config.nr_clients, &call->actor, why);
	return ret ? -EACCES : 0;
}

static void log_refused(struct call *call, const char *why)
{
	const struct client *client = call->client;
	char address[2 * HTTP_ADDRESS + 16] = "user ";
	uint32_t uid;

	if (!client->tls) {
		memcpy(&uid, client->address, sizeof(uid));
		snprintf(address, sizeof(address), "user %u", uid);
	} else if (client->address_size == 4) {
		snprintf(address, sizeof(address), "%u.%u.%u.%u", client->address[0],
			 client->address[1], client->address[2], client->address[3]);
	} else {
		auth_hex(client->address, client->address_size, address);
	}
	api_refused(call->http->api, "nobody", address, why, call->http->now);
}

/* The address or name that a caller's calls are counted by. */
static size_t caller(const struct call *call, char name[2 * POOL_NAME_MAX])
{
	return (size_t)snprintf(name, 2 * POOL_NAME_MAX, "%u:%s", call->actor.role,
				call->actor.name);
}

/* Whether the call may go on; else it was answered. */
static bool admitted(struct call *call, enum MHD_Result *result)
{
	struct http *http = call->http;
	const struct client *client = call->client;
	unsigned int wait = limit_look(&http->failures, client->address, client->address_size,
				       http->now_ms);
	char why[POOL_TEXT_MAX], name[2 * POOL_NAME_MAX];
	struct api_answer answer = { .fd = -1 };
	int ret;

	if (wait) {
		*result = refuse_rate(call, wait);
		return false;
	}
	ret = who(call, why);
	if (ret == -EIO) {
		api_error(&answer, 503, "database", "the database failed; ask again");
		answer.retry = 5;
	} else if (ret) {
		limit_take(&http->failures, client->address, client->address_size, http->now_ms);
		log_refused(call, why);
		api_error(&answer, 401, "unauthorized", "%s", why);
	}
	if (ret) {
		*result = send_refusal(call, &answer);
		return false;
	}
	wait = limit_take(&http->calls_limit, name, caller(call, name), http->now_ms);
	if (wait)
		*result = refuse_rate(call, wait);
	return !wait;
}

/*
 * A page of another site makes the browser send its certificate along: no change may come from
 * there.
 */
static bool other_site(struct call *call)
{
	const char *origin = header(call, "Origin"), *site = header(call, "Sec-Fetch-Site");
	const char *host = header(call, "Host"), *own;

	if (site && strcmp(site, "same-origin") && strcmp(site, "none"))
		return true;
	if (!origin)
		return false;
	own = strstr(origin, "://");
	return !own || !host || strcasecmp(own + 3, host);
}

/*
 * Whether the Host of a call at the Unix socket is one that no other site can have. A browser gets
 * to the socket through a forwarded port, and has all rights there. A site whose DNS leads to that
 * port (rebinding) is of the same origin for the browser, but its name has a dot.
 */
static bool host_is_own(const char *host)
{
	static const char local[] = ".localhost";
	size_t len = host ? strcspn(host, ":") : 0, end = sizeof(local) - 1;

	if (!host || *host == '[' || !memchr(host, '.', len) ||
	    strspn(host, "0123456789.") == len)
		return true;
	return len > end && !strncasecmp(host + len - end, local, end);
}

static bool is_json(const char *type)
{
	size_t len = strlen("application/json");

	return type && !strncasecmp(type, "application/json", len) &&
	       (!type[len] || type[len] == ';' || isspace((unsigned char)type[len]));
}

/* ---- streams and waits ---- */

static void list_add(struct call *call)
{
	struct http *http = call->http;

	call->next = http->calls;
	call->prev = &http->calls;
	if (call->next)
		call->next->prev = &call->next;
	http->calls = call;
	http->nr_calls++;
}

static void list_drop(struct call *call)
{
	if (!call->prev)
		return;
	*call->prev = call->next;
	if (call->next)
		call->next->prev = call->prev;
	call->prev = NULL;
	call->http->nr_calls--;
}

static void suspend(struct call *call)
{
	call->suspended = true;
	MHD_suspend_connection(call->c);
}

void call_wake(struct call *call)
{
	if (!call->suspended)
		return;
	call->suspended = false;
	call->client->since_ms = call->http->now_ms;
	if (call->state == CALL_WAITS)
		call->state = CALL_WOKEN;
	MHD_resume_connection(call->c);
}

/* Whether there is room for another call that lasts; a caller gets a part of it only. */
static bool room(const struct call *call)
{
	const struct http *http = call->http;
	size_t own = 0, max = http->config.streams;

	if (call->actor.role != STORE_ADMIN)
		max = max / 8 + 1;
	for (const struct call *other = http->calls; other; other = other->next)
		own += other->actor.role == call->actor.role &&
		       !strcmp(other->actor.name, call->actor.name);
	return !http->closing && http->nr_calls < http->config.streams && own < max;
}

static ssize_t more(struct call *call)
{
	struct http *http = call->http;
	ssize_t size;

	free(call->text);
	call->text = NULL;
	call->text_size = call->text_sent = 0;
	size = api_stream(http->api, &call->actor, &call->after, &call->text);
	if (size < 0)
		return size;
	if (!size && http->now_ms >= call->until_ms) {
		free(call->text);
		call->text = strdup(":\n\n");
		size = call->text ? (ssize_t)strlen(call->text) : -ENOMEM;
	}
	if (size > 0)
		call->until_ms = http->now_ms + HTTP_BEAT_MS;
	call->text_size = size > 0 ? (size_t)size : 0;
	return size;
}

/* libmicrohttpd asks for more of a stream. */
static ssize_t stream_read(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct call *call = arg;
	size_t len;

	(void)pos;
	if (call->over || call->http->closing)
		return MHD_CONTENT_READER_END_OF_STREAM;
	call->client->since_ms = call->http->now_ms;
	if (call->text_sent == call->text_size && more(call) < 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!call->text_size) {
		/* None of these events was for this client: look at those behind them. */
		if (call->after < call->http->api->last_event)
			http_event(call->http);
		suspend(call);
		return 0;
	}
	len = call->text_size - call->text_sent;
	len = len < max ? len : max;
	memcpy(buf, call->text + call->text_sent, len);
	call->text_sent += len;
	return (ssize_t)len;
}

static enum MHD_Result begin_stream(struct call *call, const struct api_answer *answer)
{
	const char *last = header(call, "Last-Event-ID");
	struct MHD_Response *r;
	enum MHD_Result ret;

	call->after = answer->after;
	if (last && isdigit((unsigned char)*last))
		call->after = strtoull(last, NULL, 10);
	if (!room(call))
		REFUSE(call, 503, "busy", "too many streams; close some, or raise streams in [limits]");
	call->text = strdup("retry: 2000\n\n");
	if (!call->text)
		return MHD_NO;
	call->text_size = strlen(call->text);
	call->until_ms = call->http->now_ms + HTTP_BEAT_MS;
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, stream_read, call, NULL);
	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", answer->type);
	add_headers(call, r, false);
	list_add(call);
	ret = send_response(call, 200, r);
	call->state = CALL_STREAM;
	return ret;
}

static enum MHD_Result begin_wait(struct call *call, struct api_answer *answer)
{
	if (!room(call))
		return send_answer(call, answer);
	call->request = answer->request;
	call->seen = answer->seen;
	call->until_ms = call->http->now_ms + answer->wait * 1000ull;
	free(answer->body);
	call->state = CALL_WAITS;
	list_add(call);
	suspend(call);
	return MHD_YES;
}

/* ---- libmicrohttpd ---- */

void *call_begin(void *arg, const char *uri, struct MHD_Connection *c)
{
	struct call *call = calloc(1, sizeof(*call));
	const union MHD_ConnectionInfo *info;

	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (!call || !info || !info->socket_context) {
		free(call);
		return NULL;
	}
	call->http = arg;
	call->c = c;
	call->client = info->socket_context;
	call->uri = strdup(uri);
	if (call->uri)
		return call;
	free(call);
	return NULL;
}

/*
 * A call that takes long, such as the use of a week, holds up all others: it counts as so many
 * calls that a caller takes a part of the time only. Admins answer for the service.
 */
static void charge(struct call *call, uint64_t ns)
{
	struct http *http = call->http;
	uint64_t nr = ns * http->config.rate * TIME_PART / NSEC;
	char name[2 * POOL_NAME_MAX];

	if (!nr || call->actor.role == STORE_ADMIN)
		return;
	limit_charge(&http->calls_limit, name, caller(call, name), http->now_ms,
		     nr < UINT32_MAX ? (unsigned int)nr : UINT32_MAX);
}

/* Whether so many files are being sent that another must wait. */
static bool many_files(const struct http *http)
{
	unsigned int nr = 0;

	for (const struct client *c = http->clients; c; c = c->next)
		nr += c->slow;
	return nr >= HTTP_FILES;
}

static enum MHD_Result run(struct call *call, const char *method)
{
	char *query = strchr(call->uri, '?');
	struct api_call c = {
		.method = method, .path = call->uri, .query = query ? query + 1 : "",
		.body = call->body, .body_size = call->size, .actor = call->actor,
		.now = call->http->now, .no_file = many_files(call->http),
	};
	struct api_answer answer;
	bool woken = call->state == CALL_WOKEN;
	uint64_t begin = now_ns();

	if (query)
		*query = '\0';
	api_handle(call->http->api, &c, &answer);
	charge(call, now_ns() - begin);
	if (query)
		*query = '?';
	if (answer.stream)
		return begin_stream(call, &answer);
	if (answer.wait && !woken)
		return begin_wait(call, &answer);
	return send_answer(call, &answer);
}

/* Check the head of a call; answers where it is wrong. */
static enum MHD_Result check_head(struct call *call, const char *method)
{
	const char *size = header(call, "Content-Length"), *type = header(call, "Content-Type");
	bool get = !strcmp(method, "GET");

	if (!get && strcmp(method, "POST") && strcmp(method, "PUT") && strcmp(method, "DELETE"))
		REFUSE(call, 405, "method", "use GET, POST, PUT or DELETE");
	if (!get && other_site(call)) {
		log_refused(call, "a change from a page of another site");
		REFUSE(call, 403, "forbidden", "a change from a page of another site; use the page of this service");
	}
	if (!get && type && !is_json(type))
		REFUSE(call, 400, "invalid", "the body must be JSON; send Content-Type: application/json");
	if (size && strtoull(size, NULL, 10) > API_BODY_MAX) {
		struct api_answer answer = { .fd = -1 };

		/* At once: the body would be too much. */
		api_error(&answer, 413, "too_large", "the body has more than %d bytes; send less",
			  API_BODY_MAX);
		return send_answer(call, &answer);
	}
	call->state = CALL_BODY;
	return MHD_YES;
}

/* The head of a call is there. */
static enum MHD_Result begin(struct call *call, const char *method)
{
	bool read = !strcmp(method, "GET") || !strcmp(method, "HEAD");
	const struct page_file *page = read ? page_find(call->uri) : NULL;
	enum MHD_Result result;

	if (!call->client->tls && !host_is_own(header(call, "Host"))) {
		log_refused(call, "a call for another host");
		REFUSE(call, 403, "forbidden", "a call for another host; without TLS use localhost, an IP address, or a name without a dot");
	}
	if (page)
		return send_page(call, page);
	return admitted(call, &result) ? check_head(call, method) : result;
}

/* A part of the body. */
static enum MHD_Result add_body(struct call *call, const char *upload, size_t size)
{
	char *body;

	if (call->size + size > API_BODY_MAX)
		return MHD_NO;	/* a body without a length, which gets no answer */
	if (call->state == CALL_REFUSED) {
		call->size += size;
		return MHD_YES;
	}
	body = realloc(call->body, call->size + size);
	if (!body)
		return MHD_NO;
	memcpy(body + call->size, upload, size);
	call->body = body;
	call->size += size;
	return MHD_YES;
}

enum MHD_Result call_run(void *arg, struct MHD_Connection *c, const char *url, const char *method,
			 const char *version, const char *upload, size_t *upload_size,
			 void **state)
{
	struct call *call = *state;
	enum MHD_Result ret;

	(void)arg;
	(void)c;
	(void)url;
	(void)version;
	if (!call)
		return MHD_NO;
	if (call->state == CALL_BEGIN)
		return begin(call, method);
	if (call->state == CALL_DONE)
		return MHD_YES;
	if (*upload_size) {
		ret = add_body(call, upload, *upload_size);
		*upload_size = 0;
		return ret;
	}
	return call->state == CALL_REFUSED ? send_held(call) : run(call, method);
}

void call_end(void *arg, struct MHD_Connection *c, void **state,
	      enum MHD_RequestTerminationCode why)
{
	struct call *call = *state;

	(void)arg;
	(void)c;
	(void)why;
	if (!call)
		return;
	list_drop(call);
	call->client->since_ms = call->http->now_ms;
	call->client->slow = false;
	free(call->uri);
	free(call->body);
	free(call->text);
	free(call->refusal.body);
	free(call);
	*state = NULL;
}

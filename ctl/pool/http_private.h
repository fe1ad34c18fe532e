/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the files of the HTTP server. */
#ifndef POOL_HTTP_PRIVATE_H
#define POOL_HTTP_PRIVATE_H

#include <microhttpd.h>
#include <netinet/in.h>

#include "http.h"
#include "limit.h"

#define HTTP_MEMORY	(16 * 1024)	/* of a connection: the head of a call, and buffers */
#define HTTP_TICK_MS	500		/* between two looks for what is late */
#define HTTP_BEAT_MS	15000		/* between two comments of a stream */
#define HTTP_STREAM_MS	100		/* a stream's events come together */
#define HTTP_FILES	4		/* files that are sent at a time: each takes room on disk */
#define HTTP_FAILURES	20		/* wrong tokens and certificates of an address at once */
#define HTTP_ADDRESS	16

/**
 * struct client - a connection
 * @fd: its socket
 * @since_ms: when it began, or its last call ended, or a stream's client last read; CLOCK_MONOTONIC
 * @tls: it came by TLS
 * @address: IPv4 address, or network of an IPv6 address, or number of a user
 * @address_size: size of @address, bytes
 * @known: at the Unix socket: @actor is its user
 * @actor: see @known
 * @slow: an answer is sent that may take long
 * @next: next one of the server
 * @prev: where the pointer to this one is
 */
struct client {
	int fd;
	uint64_t since_ms;
	bool tls;
	unsigned char address[HTTP_ADDRESS];
	size_t address_size;
	bool known;
	struct api_actor actor;
	bool slow;
	struct client *next;
	struct client **prev;
};

/**
 * enum call_state - what a call is doing
 * @CALL_BEGIN: only its first line is there
 * @CALL_BODY: its body comes
 * @CALL_REFUSED: it gets an error when its body has come
 * @CALL_WAITS: a long poll, suspended
 * @CALL_WOKEN: a long poll that is answered now
 * @CALL_STREAM: a stream, see @suspended
 * @CALL_DONE: it was answered
 */
enum call_state {
	CALL_BEGIN, CALL_BODY, CALL_REFUSED, CALL_WAITS, CALL_WOKEN, CALL_STREAM, CALL_DONE,
};

/**
 * struct call - a call
 * @http: the server
 * @c: libmicrohttpd's connection
 * @client: connection
 * @uri: path and query, encoded
 * @body: body
 * @size: its size, bytes
 * @state: what it is doing
 * @refusal: the error that waits for the body
 * @actor: the caller
 * @request: long poll: the request
 * @seen: long poll: the version that the client has
 * @until_ms: long poll: its end; a stream: its next comment; CLOCK_MONOTONIC
 * @suspended: libmicrohttpd does not look at the connection
 * @over: a stream or long poll that ends now
 * @after: a stream: the last event
 * @text: a stream: what is to be sent
 * @text_size: its size, bytes
 * @text_sent: bytes of it that were sent
 * @next: next one that waits or streams
 * @prev: where the pointer to this one is; NULL if it is in no list
 */
struct call {
	struct http *http;
	struct MHD_Connection *c;
	struct client *client;
	char *uri;
	char *body;
	size_t size;
	enum call_state state;
	struct api_answer refusal;
	struct api_actor actor;
	uint64_t request;
	uint64_t seen;
	uint64_t until_ms;
	bool suspended;
	bool over;
	uint64_t after;
	char *text;
	size_t text_size;
	size_t text_sent;
	struct call *next;
	struct call **prev;
};

/**
 * struct http - the server
 * @api: the API
 * @config: settings
 * @plain: libmicrohttpd's server of the Unix socket, NULL for none
 * @tls: that of TLS, NULL for none
 * @plain_fd: listening Unix socket, -1 for none
 * @tls_fd: listening socket of TLS, -1 for none
 * @lock_fd: locked file beside the Unix socket
 * @unix_rules: rights at the Unix socket
 * @now: time of the last http_run(), seconds
 * @now_ms: the same of CLOCK_MONOTONIC, milliseconds
 * @clients: connections
 * @calls: calls that wait or stream
 * @nr_calls: their number
 * @closing: a server ends: no call may begin to wait
 * @changed: a request changed since the waits were looked at
 * @stream_ms: when streams get new events, 0: there are none
 * @calls_limit: calls of each caller
 * @opens: TLS connections of each address
 * @failures: wrong tokens and certificates of each address
 */
struct http {
	struct api *api;
	struct config config;
	struct MHD_Daemon *plain;
	struct MHD_Daemon *tls;
	int plain_fd;
	int tls_fd;
	int lock_fd;
	struct auth_unix unix_rules;
	int64_t now;
	uint64_t now_ms;
	struct client *clients;
	struct call *calls;
	size_t nr_calls;
	bool closing;
	bool changed;
	uint64_t stream_ms;
	struct limit calls_limit;
	struct limit opens;
	struct limit failures;
};

/* libmicrohttpd's callbacks for a call; @arg is the server. */
void *call_begin(void *arg, const char *uri, struct MHD_Connection *c);
enum MHD_Result call_run(void *arg, struct MHD_Connection *c, const char *url, const char *method,
			 const char *version, const char *upload, size_t *upload_size,
			 void **state);
void call_end(void *arg, struct MHD_Connection *c, void **state,
	      enum MHD_RequestTerminationCode why);

/* Let libmicrohttpd go on with a call. */
void call_wake(struct call *call);

/* Listen at a Unix socket with a lock beside it. Return the socket or -errno with @why. */
int listen_unix(const char *path, const struct auth_unix *rules, int *lock_fd, char *why);

#endif /* POOL_HTTP_PRIVATE_H */

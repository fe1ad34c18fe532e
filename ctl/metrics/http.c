// SPDX-License-Identifier: GPL-2.0-only
/* Answers to HTTP clients, by libmicrohttpd. */
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "complain.h"
#include "http.h"
#include "pipe.h"
#include "privileges.h"

#define TICK_MS		500	/* between two looks for connections that are too old */

#define OPENMETRICS	"application/openmetrics-text"

/**
 * struct answer - a text that clients are sent
 * @http: the text, for libmicrohttpd, which counts the clients that are sent it
 * @read_ns: when the other process last answered, with a text or without, CLOCK_MONOTONIC
 */
struct answer {
	struct MHD_Response *http;
	uint64_t read_ns;
};

/**
 * struct client - a connection
 * @fd: its socket; 0 for none
 * @since_ns: when it began, CLOCK_MONOTONIC
 */
struct client {
	int fd;
	uint64_t since_ns;
};

/**
 * struct http - the server
 * @daemon: libmicrohttpd's
 * @pipe: socket to the process that reads the sources
 * @last: the last text of each format; @http NULL for none
 * @texts: texts in memory
 * @clients: connections
 * @error: why no text came from the other process, -errno; 0 for none
 */
static struct http {
	struct MHD_Daemon *daemon;
	int pipe;
	struct answer last[2];
	unsigned int texts;
	struct client clients[HTTP_CLIENTS];
	int error;
} http;

/* ---- texts ---- */

static void free_text(void *bytes)
{
	free(bytes);
	http.texts--;
}

static struct MHD_Response *simple(const char *text)
{
	return MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
}

/* Read the sources again. The text belongs to the response, which its last client frees. */
static void renew(struct answer *a, enum expose_format format)
{
	struct text text = { 0 };

	if (a->http)
		MHD_destroy_response(a->http);
	a->http = NULL;
	if (http.texts >= HTTP_TEXTS || http.error)
		return;
	http.error = pipe_ask(http.pipe, format, &text);
	a->read_ns = now_ns();
	if (http.error || !text.len)
		return;
	a->http = MHD_create_response_from_buffer_with_free_callback(text.len, text.bytes,
								     free_text);
	if (!a->http) {
		text_free(&text);
		return;
	}
	http.texts++;
	MHD_add_response_header(a->http, "Content-Type", format == EXPOSE_TEXT ?
				"text/plain; version=0.0.4; charset=utf-8" :
				OPENMETRICS "; version=1.0.0; charset=utf-8");
	MHD_add_response_header(a->http, "Connection", "close");
}

/* ---- requests ---- */

static enum MHD_Result send_once(struct MHD_Connection *c, unsigned int status,
				 struct MHD_Response *r, const char *header, const char *value)
{
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Connection", "close");
	if (header)
		MHD_add_response_header(r, header, value);
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result send_metrics(struct MHD_Connection *c)
{
	const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept");
	enum expose_format format = accept && strstr(accept, OPENMETRICS) ? EXPOSE_OPENMETRICS :
				    EXPOSE_TEXT;
	struct answer *a = &http.last[format];

	if (now_ns() - a->read_ns >= HTTP_FRESH_MS * 1000000ull)
		renew(a, format);
	if (a->http)
		return MHD_queue_response(c, MHD_HTTP_OK, a->http);
	return send_once(c, MHD_HTTP_SERVICE_UNAVAILABLE,
			 simple("The metrics cannot be read now: ask again.\n"), "Retry-After", "1");
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	(void)arg;
	(void)version;
	(void)upload;
	(void)upload_size;
	(void)state;
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return send_once(c, MHD_HTTP_METHOD_NOT_ALLOWED,
				 simple("Only GET and HEAD are answered.\n"), "Allow", "GET, HEAD");
	if (!strcmp(url, "/metrics"))
		return send_metrics(c);
	if (!strcmp(url, "/"))
		return send_once(c, MHD_HTTP_OK, simple("mgpu-exporter: see /metrics\n"), NULL,
				 NULL);
	return send_once(c, MHD_HTTP_NOT_FOUND, simple("There is only /metrics.\n"), NULL, NULL);
}

/* ---- connections ---- */

static void connection(void *arg, struct MHD_Connection *c, void **state,
		       enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;

	(void)arg;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*state)
			((struct client *)*state)->fd = 0;
		return;
	}
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (size_t i = 0; info && i < HTTP_CLIENTS; i++)
		if (!http.clients[i].fd) {
			http.clients[i] = (struct client){ info->connect_fd, now_ns() };
			*state = &http.clients[i];
			break;
		}
}

/* A client that reads or writes a little now and then is not idle, but it is late. */
static void end_late_clients(void)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < HTTP_CLIENTS; i++)
		if (http.clients[i].fd && now - http.clients[i].since_ns >= HTTP_SECONDS * NSEC)
			shutdown(http.clients[i].fd, SHUT_RDWR);
}

/* Time until libmicrohttpd has work again, milliseconds: it may know of some that came already. */
static int patience(void)
{
	MHD_UNSIGNED_LONG_LONG ms;

	return MHD_get_timeout(http.daemon, &ms) == MHD_YES && ms < TICK_MS ? (int)ms : TICK_MS;
}

int http_serve(int listener, int pipe)
{
	const union MHD_DaemonInfo *info;
	struct pollfd p[2] = { { .events = POLLIN }, { .fd = pipe } };

	http.pipe = pipe;
	http.daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, NULL,
				       MHD_OPTION_LISTEN_SOCKET, listener,
				       MHD_OPTION_CONNECTION_LIMIT, HTTP_CLIENTS,
				       MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_SECONDS,
				       MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				       (size_t)HTTP_REQUEST_MAX,
				       MHD_OPTION_NOTIFY_CONNECTION, connection, NULL,
				       MHD_OPTION_END);
	info = http.daemon ? MHD_get_daemon_info(http.daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		complain("libmicrohttpd does not start");
		return 1;
	}
	if (!privileges_drop())
		return 1;
	p[0].fd = info->epoll_fd;
	while (!http.error) {
		if (poll(p, 2, patience()) < 0 && errno != EINTR)
			http.error = -errno;
		if (p[1].revents)
			return 0;	/* the other process has ended */
		end_late_clients();
		MHD_run(http.daemon);
	}
	complain("no text from the process that reads the sources: %s", strerror(-http.error));
	return 1;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The API and the page over HTTP: at a Unix socket, and with TLS 1.3.  libmicrohttpd runs in the
 * caller's loop.  Clients are hostile: connections, calls, bodies, time, and rates before and
 * after authentication are bounded.
 */
#ifndef POOL_HTTP_H
#define POOL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "config.h"

#define HTTP_FDS	2	/* of http_fds() */

struct http;

/**
 * http_new() - begin to serve
 * @config: settings, copied; its clients must stay until the next http_reload() has returned
 * @api: the API
 * @why: why not, and how to mend it, of POOL_TEXT_MAX bytes
 *
 * Return: the server, or NULL.
 */
struct http *http_new(const struct config *config, struct api *api, char *why);
void http_free(struct http *http);

/**
 * http_reload() - take new settings, certificates and keys
 *
 * The sockets stay. Calls that wait are answered; TLS connections end.
 *
 * Return: 0, or -EINVAL with @why, and all is as before.
 */
int http_reload(struct http *http, const struct config *config, char *why);

/* Descriptors to poll for reading; returns their number. */
size_t http_fds(const struct http *http, int fds[HTTP_FDS]);
/* Milliseconds after which http_run() has work without a readable descriptor. */
int http_patience(struct http *http);
/* Serve what is due; @now: time, seconds. */
void http_run(struct http *http, int64_t now);

/* A request changed: answer the calls that wait for it. */
void http_changed(struct http *http);
/* There are new events for streams. */
void http_event(struct http *http);
/* Rights changed: end streams and long polls, which their clients begin again. */
void http_end_streams(struct http *http);

/* The port of TLS, 0 for none. */
unsigned int http_port(const struct http *http);

#endif /* POOL_HTTP_H */

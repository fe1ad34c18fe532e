/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The HTTP side.  No client can hold it: there are at most HTTP_CLIENTS connections, each ends
 * after its answer and after HTTP_SECONDS at the latest, a request has at most
 * HTTP_REQUEST_MAX bytes, only GET and HEAD are answered, the sources are read at most once
 * per HTTP_FRESH_MS for each format, and at most HTTP_TEXTS answers are in memory.
 */
#ifndef METRICS_HTTP_H
#define METRICS_HTTP_H

#define HTTP_CLIENTS		32
#define HTTP_SECONDS		10
#define HTTP_IDLE_SECONDS	3
#define HTTP_REQUEST_MAX	4096
#define HTTP_FRESH_MS		1000
#define HTTP_TEXTS		4

/* Open a TCP socket at "ADDRESS:PORT" or "[ADDRESS]:PORT"; complains. -1: no socket */
int http_listen(const char *where, int any_address);

/* Open a UNIX socket that owner and group may use; complains. -1: no socket */
int http_listen_unix(const char *path);

/*
 * Answer clients at the socket @listener with texts from @pipe, for ever. Gives up all
 * privileges first.  Returns the exit status.
 */
int http_serve(int listener, int pipe);

#endif /* METRICS_HTTP_H */

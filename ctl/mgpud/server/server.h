/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The local socket: a UNIX stream with one JSON object per line. No client can make
 * mgpud wait or grow: reads and writes never block; a line has at most SERVER_LINE_MAX
 * bytes; the next request of a client is read after it has read the last answer; a
 * watcher that does not read misses states and, beyond SERVER_EVENTS_MAX bytes, events,
 * and is told so; and there are at most SERVER_CLIENTS clients.
 */
#ifndef MGPUD_SERVER_H
#define MGPUD_SERVER_H

#include "config/settings.h"

#define SERVER_CLIENTS		32
#define SERVER_LINE_MAX		8192
#define SERVER_EVENTS_MAX	16384

struct json_object;
struct server;

/**
 * struct server_ops - callbacks for requests
 * @state: return the state as a new object, NULL when out of memory
 * @set: change settings, all or none; return 0, or -errno and fill @err
 */
struct server_ops {
	struct json_object *(*state)(void *arg);
	int (*set)(void *arg, struct json_object *settings,
		   struct settings_error *err);
};

/*
 * Open the socket, and replace one that a killed mgpud left. Returns 0, or -errno with a
 * sentence in @why; -EBUSY: another mgpud serves this path.
 */
int server_open(struct server **server, const char *path,
		const struct server_ops *ops, void *arg, char *why, size_t len);
void server_close(struct server *s);

/* For poll(): readable when server_run() must be called. */
int server_fd(const struct server *s);
void server_run(struct server *s);

/* Send the state to the watchers; must be called at the end of a period. */
void server_publish(struct server *s);

/* Send an event to the watchers. Takes over @event. */
void server_event(struct server *s, struct json_object *event);

#endif /* MGPUD_SERVER_H */

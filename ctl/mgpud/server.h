/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The local socket: a UNIX stream with one JSON object per line. Nothing a
 * client does or leaves undone makes mgpud wait or grow: reads and writes never
 * block, a line is at most SERVER_LINE_MAX bytes, a client's next request is
 * looked at when its last answer has been read, a watcher that does not read
 * misses states, and beyond SERVER_EVENTS_MAX bytes of them events, of which it is
 * told, and there are at most SERVER_CLIENTS.
 */
#ifndef MGPUD_SERVER_H
#define MGPUD_SERVER_H

#include "settings.h"

#define SERVER_CLIENTS		32
#define SERVER_LINE_MAX		8192
#define SERVER_EVENTS_MAX	16384

struct json_object;
struct server;

/**
 * struct server_ops - where requests end
 * @state: the state as a new object, NULL when out of memory
 * @set: change settings, all or none; 0 or -errno with @err filled
 */
struct server_ops {
	struct json_object *(*state)(void *arg);
	int (*set)(void *arg, struct json_object *settings,
		   struct settings_error *err);
};

/*
 * @why gets a sentence when it fails; -EBUSY: another mgpud serves this path. A
 * socket that a dead one left behind is replaced.
 */
int server_open(struct server **server, const char *path,
		const struct server_ops *ops, void *arg, char *why, size_t len);
void server_close(struct server *s);

/* Readable when server_run() has something to do. */
int server_fd(const struct server *s);
void server_run(struct server *s);

/* A period is over: tell the watchers. */
void server_publish(struct server *s);

/* Something happened: one line to each watcher. Takes over @event. */
void server_event(struct server *s, struct json_object *event);

#endif /* MGPUD_SERVER_H */

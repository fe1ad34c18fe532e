/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The local socket: a UNIX stream with one JSON object per line. No client can make
 * mgpud wait or grow: reads and writes never block; a line has at most SERVER_LINE_MAX
 * bytes; the next request of a client is read after it has read the last answer; a
 * watcher that does not read misses states and, beyond SERVER_EVENTS_MAX bytes, events,
 * and is told so; and there are at most SERVER_CLIENTS clients, SERVER_UID_CLIENTS of
 * each user.
 *
 * Nor can clients take mgpud's time: the state is serialised at most once per period, a
 * client has one request answered per turn, and the work for all users but root takes
 * at most 1 / SERVER_PART of the time (budget.h).
 */
#ifndef MGPUD_SERVER_H
#define MGPUD_SERVER_H

#include "config/settings.h"
#include "server/access.h"

#define SERVER_CLIENTS		128
#define SERVER_UID_CLIENTS	16	/* of a user that is neither root nor mgpud's own */
#define SERVER_LINE_MAX		8192
#define SERVER_EVENTS_MAX	16384

#define SERVER_PART		50	/* 2 % of the time for all users but root */
#define SERVER_ROOT_PART	2	/* half of it for root and mgpud's own user */

struct json_object;
struct server;

/* Change that a client asks for. */
enum server_change {
	SERVER_SET,		/* settings: an object of values by their names */
	SERVER_RESET,		/* an array of names, NULL for all settings */
};

/**
 * struct server_ops - callbacks for requests
 * @name: name of the service, for sentences
 * @state: return the state as a new object, NULL when out of memory; called at most
 *	once per period, and after a change
 * @fresh: write members of the state that change within a period, as JSON without
 *	braces, for each answer; NULL for none
 * @change: change settings, all or none. Return -errno and fill @err, or 0: then @err's
 *	text is a warning for the client, or "". If @ticket is not 0 then, the answer waits
 *	for server_done().
 */
struct server_ops {
	const char *name;
	struct json_object *(*state)(void *arg);
	void (*fresh)(void *arg, char *text, size_t size);
	int (*change)(void *arg, const struct peer *peer, enum server_change what,
		      struct json_object *value, uint64_t *ticket,
		      struct settings_error *err);
};

/*
 * Open the socket, and replace one that a killed mgpud left; only its owner may use it
 * until server_access() is called. Returns 0, or -errno with a sentence in @why; -EBUSY:
 * another mgpud serves this path.
 */
int server_open(struct server **server, const char *path,
		const struct server_ops *ops, void *arg, char *why, size_t len);
void server_close(struct server *s);

/*
 * Set the users that may connect, and the ranks of those that are connected; those that may
 * not connect any more are disconnected.
 */
int server_access(struct server *s, const struct access *access, char *why, size_t len);

/* For poll(): readable when server_run() must be called. */
int server_fd(const struct server *s);
void server_run(struct server *s);

/* Return true if requests wait because the work for clients took its part of the time. */
bool server_rests(const struct server *s);

/*
 * The state has changed. At the end of a period: @period, and the watchers get it from
 * the next server_run().
 */
void server_publish(struct server *s, bool period);

/* Send an event to the watchers, from the next server_run() on. Takes over @event. */
void server_event(struct server *s, struct json_object *event);

/*
 * Answer the changes whose tickets are at most @ticket. @warning: a sentence that the
 * clients get with the answer, or "".
 */
void server_done(struct server *s, uint64_t ticket, const char *warning);

#endif /* MGPUD_SERVER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client of mgpud's local socket: a UNIX stream with one JSON object per line.  Part of
 * libmgpu; link with json-c.
 *
 * Requests are {"request":"get"}, {"request":"set","settings":{...}},
 * {"request":"reset","keys":[...]} and {"request":"watch"}.  Answers are
 * {"ok":true,"state":{...}}, with "warning":"a sentence" if a change does not last, or
 * {"ok":false,"error":"a sentence","key":"what it is about"}.  A watcher also gets
 * {"event":"name",...}: sla-shortfall, sla-met, and lost if it missed events.
 */
#ifndef LIBMGPU_MGPUD_CLIENT_H
#define LIBMGPU_MGPUD_CLIENT_H

#include "mgpu.h"

/*
 * "version" of mgpud's state, events and log records, and of what gpuctl prints, which
 * Documentation/mgpu.schema.json describes.  It is raised when a key changes its name,
 * meaning or unit, or goes; not for a further key.
 */
#define MGPU_JSON_VERSION	1

#define MGPUD_SOCKET_DEFAULT	"/run/mgpu/mgpud.sock"
#define MGPUD_SOCKET_ENV	"MGPUD_SOCKET"

struct json_object;
struct mgpud;

/* Connect. @path: NULL for the environment's MGPUD_SOCKET or else the default. */
int mgpud_connect(struct mgpud **client, const char *path,
		  struct mgpu_error *err);

/**
 * struct mgpud_service - a service whose socket is like mgpud's
 * @name: its name, for sentences
 * @path: where its socket is
 * @env: environment variable that says where it is instead
 */
struct mgpud_service {
	const char *name;
	const char *path;
	const char *env;
};

extern const struct mgpud_service remoted_service;	/* mgpu-remoted */

/* Connect to another service, whose description must stay. @path: NULL, as with mgpud. */
int mgpud_connect_to(struct mgpud **client, const struct mgpud_service *service,
		     const char *path, struct mgpu_error *err);
/* Take over a connected socket. */
int mgpud_from_fd(struct mgpud **client, int fd, struct mgpu_error *err);
void mgpud_close(struct mgpud *client);

/* Get the state, which the caller must put. */
int mgpud_get(struct mgpud *client, struct json_object **state,
	      struct mgpu_error *err);

/* The same; -ETIMEDOUT if the answer takes longer than @timeout_ms milliseconds. */
int mgpud_get_within(struct mgpud *client, struct json_object **state, int timeout_ms,
		     struct mgpu_error *err);

/*
 * Change settings, all or none.  @settings: an object, which the caller keeps; @state: the
 * state afterwards, may be NULL.
 */
int mgpud_set(struct mgpud *client, struct json_object *settings,
	      struct json_object **state, struct mgpu_error *err);

/*
 * Remove what was set at run time.  @keys: an array of names of settings, "sla", or UUIDs
 * or "default" for one agreement each, which the caller keeps; NULL for all.  @state: the
 * state afterwards, may be NULL.
 */
int mgpud_reset(struct mgpud *client, struct json_object *keys,
		struct json_object **state, struct mgpu_error *err);

/* The warning of the last answer, which is valid until the next call; NULL: none. */
const char *mgpud_warning(const struct mgpud *client);

/*
 * Ask for the state at the end of each period.  Afterwards only mgpud_next(), which skips
 * events, and mgpud_next_any(), which sets either *state or *event and the other one to
 * NULL, may be called.
 */
int mgpud_watch(struct mgpud *client, struct mgpu_error *err);
int mgpud_next(struct mgpud *client, struct json_object **state,
	       int timeout_ms, struct mgpu_error *err);
int mgpud_next_any(struct mgpud *client, struct json_object **state,
		   struct json_object **event, int timeout_ms,
		   struct mgpu_error *err);

int mgpud_fd(const struct mgpud *client);

#endif /* LIBMGPU_MGPUD_CLIENT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client of mgpud's local socket: a UNIX stream with one JSON object per line,
 * for what only the controller knows.  Part of libmgpu; link with json-c.
 *
 * Requests are {"request":"get"}, {"request":"set","settings":{...}} and
 * {"request":"watch"}.  Answers are {"ok":true,"state":{...}} or
 * {"ok":false,"error":"a sentence","key":"what it is about"}.  Who watches also
 * gets {"event":"name",...}: sla-shortfall, sla-met, and lost when there were more
 * than it read.
 */
#ifndef LIBMGPU_MGPUD_CLIENT_H
#define LIBMGPU_MGPUD_CLIENT_H

#include "mgpu.h"

#define MGPUD_SOCKET_DEFAULT	"/run/mgpu/mgpud.sock"
#define MGPUD_SOCKET_ENV	"MGPUD_SOCKET"

struct json_object;
struct mgpud;

/* @path: NULL for the environment's MGPUD_SOCKET or else the default. */
int mgpud_connect(struct mgpud **client, const char *path,
		  struct mgpu_error *err);
/* Take over a connected socket. */
int mgpud_from_fd(struct mgpud **client, int fd, struct mgpu_error *err);
void mgpud_close(struct mgpud *client);

/* The caller puts *state. */
int mgpud_get(struct mgpud *client, struct json_object **state,
	      struct mgpu_error *err);

/*
 * All settings or none.  @settings: an object, left to the caller; @state: as
 * it is afterwards, NULL if nobody wants it.
 */
int mgpud_set(struct mgpud *client, struct json_object *settings,
	      struct json_object **state, struct mgpu_error *err);

/*
 * Ask for the state at the end of each period; only mgpud_next(), which passes
 * over events, and mgpud_next_any() then, which sets one of *state and *event and
 * the other one to NULL.
 */
int mgpud_watch(struct mgpud *client, struct mgpu_error *err);
int mgpud_next(struct mgpud *client, struct json_object **state,
	       int timeout_ms, struct mgpu_error *err);
int mgpud_next_any(struct mgpud *client, struct json_object **state,
		   struct json_object **event, int timeout_ms,
		   struct mgpu_error *err);

int mgpud_fd(const struct mgpud *client);

#endif /* LIBMGPU_MGPUD_CLIENT_H */

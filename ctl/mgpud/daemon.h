/* SPDX-License-Identifier: GPL-2.0-only */
/* The loop: observe, estimate, decide, apply, tell; once a period. */
#ifndef MGPUD_DAEMON_H
#define MGPUD_DAEMON_H

#include <stdio.h>

#include "apply.h"
#include "observe.h"
#include "server.h"
#include "settings.h"

/**
 * struct options - what is fixed from the start
 * @set: the settings to begin with
 * @socket: path of the socket
 * @json_log: path of a file that gets one JSON object per period, or NULL
 * @dry_run: set no limits, print what would be set
 * @once: end after the first period that was measured
 */
struct options {
	struct settings set;
	const char *socket;
	const char *json_log;
	bool dry_run;
	bool once;
};

struct daemon {
	const struct options *opt;
	struct settings set;
	struct mgpu *mgpu;
	struct observer *observer;
	struct server *server;
	struct estimate estimate;
	struct control control;
	struct plan plan;
	struct applier applier;
	FILE *json_log;
	int timer;
	int signals;
	uint64_t start_ns;
	uint64_t periods;
	double took_ms;		/* work of the period before */
	size_t changed;		/* limits set in the period before */
	char trouble[512];	/* what did not work last time, "" for nothing */
};

/* Returns main()'s result. */
int daemon_run(const struct options *opt);

/* state.c: what is told about a period */
struct json_object *daemon_state(const struct daemon *d);
void daemon_log(const struct daemon *d, FILE *to);
void daemon_log_json(const struct daemon *d, FILE *to);

#endif /* MGPUD_DAEMON_H */

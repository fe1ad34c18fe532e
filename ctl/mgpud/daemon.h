/* SPDX-License-Identifier: GPL-2.0-only */
/* The loop: observe, estimate, decide, apply, tell; once a period. */
#ifndef MGPUD_DAEMON_H
#define MGPUD_DAEMON_H

#include <stdio.h>

#include "apply.h"
#include "config.h"
#include "observe.h"
#include "server.h"
#include "settings.h"
#include "sla_watch.h"
#include "statefile.h"
#include "watchdog.h"

/* Exit statuses; mgpud(8) says the same, and the unit which ones are final. */
enum {
	END_OK = 0,		/* a signal, or --once */
	END_FAILED = 1,		/* anything else */
	END_USAGE = 2,		/* the command line */
	END_CONFIG = 3,		/* the configuration file */
	END_PERMISSION = 4,	/* may not set limits */
	END_MODULE = 5,		/* the kernel module is not there */
	END_RUNNING = 6,	/* another mgpud serves the socket */
};

/**
 * struct options - what is fixed from the start
 * @source: where the configuration comes from
 * @config: what it was in the beginning; daemon_run() takes it over
 * @dry_run: set no limits, print what would be set
 * @once: end after the first period that was measured
 */
struct options {
	struct config_source source;
	struct config config;
	bool dry_run;
	bool once;
};

struct daemon {
	struct options *opt;
	struct config config;
	struct mgpu *mgpu;
	struct observer *observer;
	struct server *server;
	struct preempter *preempter;	/* NULL: the module knows no contexts */
	struct analyse learned;	/* as in the state file, while there is no preempter */
	struct estimate estimate;
	struct control control;
	struct plan plan;
	struct applier applier;
	struct sla_watch sla_watch;
	struct watchdog watchdog;
	struct statefile_writer *writer;
	FILE *json_log;
	char boot[64];
	int timer;
	int signals;
	uint64_t start_ns;
	uint64_t due_ns;	/* when the period under way is to end */
	uint64_t saved_ns;	/* when the state file was written last */
	uint64_t saved_learned;	/* observations that it has, or that were read */
	uint64_t periods;
	uint64_t reloads;
	size_t restored;	/* vGPUs in the state file that was read */
	size_t restored_kinds;	/* kinds of work in it */
	double took_ms;		/* work of the period before */
	size_t changed;		/* limits set in the period before */
	char trouble[512];	/* what did not work last time, "" for nothing */
	char not_saved[256];	/* why the state file was not written, likewise */
};

/* Returns main()'s result. */
int daemon_run(struct options *opt);

/* state.c: what is told about a period */
struct json_object *daemon_state(const struct daemon *d);
struct json_object *daemon_event(const struct daemon *d, const struct sla_event *event);
void daemon_log(const struct daemon *d, FILE *to);
void daemon_log_json(const struct daemon *d, FILE *to);

#endif /* MGPUD_DAEMON_H */

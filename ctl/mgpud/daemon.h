/* SPDX-License-Identifier: GPL-2.0-only */
/* Both control loops in one thread: the rate loop, once a period, and preemption. */
#ifndef MGPUD_DAEMON_H
#define MGPUD_DAEMON_H

#include <stdio.h>

#include "frames/apply.h"
#include "config/config.h"
#include "frames/observe.h"
#include "server/server.h"
#include "config/settings.h"
#include "frames/sla_watch.h"
#include "config/statefile.h"
#include "server/watchdog.h"

/* Exit statuses, as in mgpud(8); mgpud.service names the final ones. */
enum {
	END_OK = 0,		/* a signal, or --once */
	END_FAILED = 1,		/* any other failure */
	END_USAGE = 2,		/* invalid command line */
	END_CONFIG = 3,		/* invalid configuration file */
	END_PERMISSION = 4,	/* no permission to set limits */
	END_MODULE = 5,		/* the kernel module is not loaded */
	END_RUNNING = 6,	/* another mgpud serves the socket */
};

/**
 * struct options - options of the command line
 * @source: origin of the configuration
 * @config: configuration at start; daemon_run() takes it over
 * @dry_run: set no limits and preempt no contexts; print the limits
 * @once: end after the first measured period
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
	struct preempter *preempter;	/* NULL: the module has no contexts */
	struct analyse learned;	/* from the state file, while preempter is NULL */
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
	uint64_t due_ns;	/* end of the period under way */
	uint64_t saved_ns;	/* last write of the state file */
	uint64_t saved_learned;	/* observations in the state file */
	uint64_t periods;
	uint64_t reloads;
	size_t restored;	/* vGPUs in the state file at start */
	size_t restored_kinds;	/* kinds of work in the state file at start */
	double took_ms;		/* duration of mgpud's work in the last period */
	size_t changed;		/* limits set in the last period */
	char trouble[512];	/* last failure, "" for none */
	char not_saved[256];	/* why the state file was not written, "" if it was */
};

/* Returns main()'s result. */
int daemon_run(struct options *opt);

/* server/state.c: state, events and log lines */
struct json_object *daemon_state(const struct daemon *d);
struct json_object *daemon_event(const struct daemon *d, const struct sla_event *event);
void daemon_log(const struct daemon *d, FILE *to);
void daemon_log_json(const struct daemon *d, FILE *to);

#endif /* MGPUD_DAEMON_H */

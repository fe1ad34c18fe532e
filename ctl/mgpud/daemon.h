/* SPDX-License-Identifier: GPL-2.0-only */
/* Both control loops in one thread: the rate loop, once a period, and preemption. */
#ifndef MGPUD_DAEMON_H
#define MGPUD_DAEMON_H

#include <stdio.h>

#include "frames/apply.h"
#include "config/config.h"
#include "config/overlay.h"
#include "frames/model.h"
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
	END_PERMISSION = 4,	/* no permission to set targets */
	END_MODULE = 5,		/* with --once: the kernel module is not loaded */
	END_RUNNING = 6,	/* another mgpud serves the socket */
};

/**
 * struct options - options of the command line
 * @source: origin of the configuration
 * @config: configuration at start; daemon_run() takes it over
 * @dry_run: set no targets and preempt no contexts; print the targets
 * @once: end after the first measured period
 */
struct options {
	struct config_source source;
	struct config config;
	bool dry_run;
	bool once;
};

/* Parts of mgpud that fail and recover by themselves. */
enum trouble {
	TROUBLE_CONTROL,	/* the rate loop */
	TROUBLE_CONTEXTS,	/* the preemption loop */
	TROUBLE_DEVICES,	/* more devices than are controlled */
	TROUBLE_STATE_FILE,
	TROUBLE_SOCKET,		/* its group */
	TROUBLE_JSON_LOG,
	TROUBLE_MODEL,
	TROUBLE_PAIRS,		/* their file */
	TROUBLES,
};

struct daemon {
	struct options *opt;
	struct config base;	/* file and command line */
	struct json_object *overlay;	/* set at run time; NULL for nothing */
	struct config config;	/* in force: @base and @overlay */
	struct mgpu *mgpu;
	struct observer *observer;
	struct server *server;
	struct preempter *preempter;	/* NULL: no contexts are watched */
	bool no_contexts;	/* the module has none */
	uint64_t contexts_ns;	/* when to try again to watch contexts */
	unsigned int contexts_failures;	/* in a row */
	struct analyse learned;	/* from the state file, while preempter is NULL */
	struct estimate estimate;
	struct model model;
	struct control control;
	struct plan plan;
	struct sla_watch sla_watch;
	struct watchdog watchdog;
	struct statefile_writer *writer;
	FILE *json_log;
	char boot[64];
	int timer;
	int signals;
	uint64_t start_ns;
	uint64_t due_ns;	/* end of the period under way */
	bool began;		/* control was in force once */
	bool stopped;		/* a signal ended the loop */
	uint64_t changes;	/* changes of @overlay, and of the file's place */
	uint64_t writing;	/* changes in the write in flight, or the last one */
	bool in_flight;		/* @writer writes */
	uint64_t answer_ns;	/* when to answer clients that wait for a write; 0: none */
	uint64_t saved_ns;	/* last write of the state file */
	uint64_t saved_learned;	/* observations in the state file */
	uint64_t periods;
	uint64_t reloads;
	size_t restored;	/* vGPUs in the state file at start */
	size_t restored_kinds;	/* kinds of work in the state file at start */
	double took_ms;		/* duration of mgpud's work in the last period */
	size_t changed;		/* targets set in the last period */
	bool ignores_weights;	/* weights differ and the allocator ignores them: logged */
	char trouble[TROUBLES][512];	/* what is wrong, a sentence; "" for nothing */
	uint64_t failures[TROUBLES];	/* in a row */
};

/* Returns main()'s result. */
int daemon_run(struct options *opt);

/* Log a failure once, and its end: @text "". */
void daemon_trouble(struct daemon *d, enum trouble what, const char *text);
/*
 * Bring settings into force, which are taken over. @reread: the file of the model may have
 * changed, too.
 */
void daemon_use(struct daemon *d, struct config *config, bool reread);
void daemon_log_settings(const struct daemon *d, const char *event, const char *more);

/* keep.c: what outlives this process */
/* Read the state file, and bring into force what was set at run time. */
void keep_restore(struct daemon *d);
/* Write the state file when it is due and there is state to keep. */
void keep_save(struct daemon *d);
/* Write it as the last thing, and answer the clients that wait for this. */
void keep_last(struct daemon *d);
/* Write it now, for a change of what it has or of its place. */
void keep_now(struct daemon *d);
/* A write may have ended. */
void keep_ended(struct daemon *d);
/* Answer clients that wait for a slow write. */
void keep_late(struct daemon *d, uint64_t now_ns);
/* struct server_ops' callback; @arg: struct daemon. */
int keep_change(void *arg, const struct peer *peer, enum server_change what,
		struct json_object *value, uint64_t *ticket, struct settings_error *err);

/* server/state.c: state, events and log lines */
struct json_object *daemon_state(const struct daemon *d);
/* Members of the state that change within a period, as JSON without braces. */
void daemon_fresh(const struct daemon *d, char *text, size_t size);
struct json_object *daemon_event(const struct daemon *d, const struct sla_event *event);
/* @event: model-loaded, model-acts or model-failed. */
struct json_object *daemon_model_event(const struct daemon *d, const char *event);
void daemon_log(const struct daemon *d, FILE *to);
void daemon_log_json(const struct daemon *d, FILE *to);

#endif /* MGPUD_DAEMON_H */

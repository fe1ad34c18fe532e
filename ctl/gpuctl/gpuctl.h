/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the files of gpuctl. */
#ifndef GPUCTL_H
#define GPUCTL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "cmdline.h"
#include "mgpu.h"
#include "vm_name.h"

struct json_object;
struct mgpud_setting;

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_OK = 3,	/* status: a part does not work */
};

#define GPUCTL_VGPUS	64	/* that --vgpu may name */

/**
 * struct gpuctl - options
 * @json: print JSON
 * @pretty: print JSON over several lines
 * @batch: file of settings, NULL for none
 * @count: number of refreshes or events, 0 for no limit
 * @seconds: time between two refreshes, seconds
 * @completion: help: print the script for bash
 * @table: help: print the commands, one per line
 * @yes: ask nothing
 * @plain: top: print, also on a terminal
 * @output: trace record, report: the file to write, NULL for none
 * @duration: trace record: seconds, 0 for no limit
 * @max_size: trace record: of the file, bytes
 * @vgpus: trace record: the vGPUs to record, by name, UUID or id
 * @nr_vgpus: number of @vgpus, 0 for all vGPUs
 */
struct gpuctl {
	bool json;
	bool pretty;
	const char *batch;
	uint32_t count;
	double seconds;
	bool completion;
	bool table;
	bool yes;
	bool plain;
	const char *output;
	double duration;
	uint64_t max_size;
	const char *vgpus[GPUCTL_VGPUS];
	size_t nr_vgpus;
};

/**
 * struct command - an entry of the command table
 * @object: first word
 * @verb: second word, NULL for none
 * @args: further words, for the help
 * @options: letters of its options, besides those that all commands have
 * @keys: words that it knows, NULL at the end; may be NULL
 * @help: effect, in one line
 * @run: run the command with its further words; returns the exit status
 */
struct command {
	const char *object;
	const char *verb;
	const char *args;
	const char *options;
	const char *const *keys;
	const char *help;
	int (*run)(const struct gpuctl *ctl, int argc, char **argv);
};

/* Prefix of /sys, /proc and /run; "" but in tests. */
extern const char *gpuctl_root;

/* Set by SIGINT and SIGTERM, after stop_on_signals(). */
extern volatile sig_atomic_t gpuctl_stop;
void stop_on_signals(void);
/*
 * Wait until @fd is readable (-1: none), for @timeout at most (NULL: for ever), or until
 * gpuctl_stop is set.  A signal that comes just before the wait ends it, too.  0, or a
 * negative errno if it cannot wait.
 */
int wait_or_stop(int fd, const struct timespec *timeout, struct mgpu_error *err);

/* Print an error on stderr; return the exit status. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int failed(const struct mgpu_error *err);

/* ---- parse.c ---- */

/* 0, or -EINVAL or -ERANGE */
int parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value);
/* Parse decimal frames per second, or "none" (0), to millihertz. */
int parse_fps(const char *text, uint32_t *millihertz);
/* Parse "30.5%", "305000ppm" or "none" (0) to parts per million. */
int parse_share(const char *text, uint32_t *ppm);
/*
 * Parse a number with us, ms or s to a whole number of units of @unit_us microseconds; 0
 * needs no unit.
 */
int parse_time(const char *text, uint32_t unit_us, uint32_t min, uint32_t max,
	       uint32_t *value);
/* Parse "1280x720", or "max" (0 and 0), to two numbers of pixels. */
int parse_mode(const char *text, uint32_t size[2]);
int parse_double(const char *text, double *value);
/* Parse a whole number with K, M or G, or without a unit, to bytes. */
int parse_bytes(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* ---- out.c ---- */

/* Add a field under its key; an unknown value is null, an unknown limit is left out. */
void out_field(struct json_object *object, const struct mgpu_field *field,
	       const void *info);
/* Add to a vGPU whether its target is stale, as control_is_stale(). */
void out_stale(struct json_object *object, bool stale);
/*
 * Return whether, of the operator's limit and the controller's target, 0 for none, the target
 * is in force: of two equal ones the limit is.
 */
bool out_target_holds(uint32_t limit, uint32_t target);
/* Make an object with all fields. */
struct json_object *out_object(const struct mgpu_field *fields,
			       const void *info);
/*
 * Print and put an object, with the version of the format, on one line unless pretty.
 * Returns EXIT_OK.
 */
int out_json(const struct gpuctl *ctl, struct json_object *object);
/* Print one object: JSON, or "name: value" for all fields. Returns EXIT_OK. */
int out_info(const struct gpuctl *ctl, const struct mgpu_field *fields,
	     const void *info);
/* Print an event on one line. @vm: name of its vGPU, "-" for none */
void out_event(const struct mgpu_event *event, const char *vm);

#define OUT_CELL	160

/* Millihertz as frames per second. */
const char *out_fps(char *buf, size_t size, uint64_t millihertz);
/* As parse_share() and parse_time() read them: "30.5%", "10ms". */
const char *out_share(char *buf, size_t size, uint64_t ppm);
const char *out_us(char *buf, size_t size, uint64_t us);
const char *out_bytes(char *buf, size_t size, uint64_t bytes);
/* Three digits with a unit prefix: "1.23M". */
const char *out_rate(char *buf, size_t size, double rate);
/* Name of a context's state; "?" if it is unknown. */
const char *out_state(const struct mgpu_ctx *ctx);
/* Slots that it holds, and that its job can use: "2/4"; "-" without a job. */
const char *out_slots(char *buf, size_t size, const struct mgpu_ctx *ctx);
/* Part of its job that is done, 0 to 1; NAN if it is unknown. */
double out_progress(const struct mgpu_ctx *ctx);
/* The current time with milliseconds, as in RFC 3339. */
const char *out_time(char *buf, size_t size);

/* Whether text has colours: on terminals, without NO_COLOR. */
bool out_colours(void);

#define OUT_BAD		"red"		/* needs the operator */
#define OUT_STALE	"yellow"	/* may not be in force as shown */

#define OUT_COLUMNS	24
#define OUT_RIGHT	'>'	/* marks a column that is aligned to the right */
#define OUT_CUT		'~'	/* one whose text is cut on a terminal that is too narrow */
#define OUT_DROP	'-'	/* one that is dropped there if that is not enough */
#define OUT_MARKS	">~-"
#define OUT_CUT_MIN	8	/* what stays of a text that is cut: enough of a UUID */

/**
 * struct table - rows of text in columns
 * @columns: titles with marks before them, NULL at the end, OUT_COLUMNS at most
 * @cells: cells of all rows, with their colours, NULL for none
 * @nr: number of cells
 * @room: number of cells allocated
 */
struct table {
	const char *const *columns;
	struct cell {
		char text[OUT_CELL];
		const char *colour;
	} *cells;
	size_t nr;
	size_t room;
};

/**
 * struct listing - how objects of one type are listed
 * @columns: of the table
 * @key: of the array in JSON
 * @fields: for JSON
 * @size: of one object, bytes
 * @add_row: add the cells of an object
 * @add_json: add further members to an object; may be NULL
 * @arg: argument of both
 */
struct listing {
	const char *const *columns;
	const char *key;
	const struct mgpu_field *fields;
	size_t size;
	void (*add_row)(struct table *table, const void *info, const void *arg);
	void (*add_json)(struct json_object *object, const void *info, const void *arg);
	const void *arg;
};

/* Print @nr objects: JSON, or a table. */
void out_list(const struct gpuctl *ctl, const struct listing *listing,
	      const void *objects, size_t nr);

void table_cell(struct table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Colour the cell that was added last: OUT_BAD, OUT_STALE. */
void table_colour(struct table *table, const char *colour);
/* Print the rows, and free the cells. */
void table_print(struct table *table);

/* ---- names.c ---- */

/**
 * struct vgpu_names - names of a vGPU
 * @vm: name of the VM whose VMM has the vGPU open, "" if there is none
 * @given: name that "vgpu create" gave it, "" for none
 */
struct vgpu_names {
	char vm[VM_NAME_LEN];
	char given[VM_NAME_LEN];
};

void names_read(struct vgpu_names *names, const struct mgpu_vgpu_info *vgpu);
/* The name for a table: that of the VM, or else the given one, or else "-". */
const char *names_shown(const struct vgpu_names *names);
/* The same of a vGPU. */
const char *vgpu_name(const struct mgpu_vgpu_info *vgpu, char name[VM_NAME_LEN]);
/* Add both to a vGPU, or to what is said of one. */
void out_names(struct json_object *object, const struct vgpu_names *names);

/**
 * struct names_list - names of all vGPUs, for output that has only UUIDs
 * @vgpus: the vGPUs
 * @nr: number of vGPUs
 */
struct names_list {
	struct mgpu_vgpu_info *vgpus;
	size_t nr;
};

/* Never fails: without the module, or the right to ask it, there are no names. */
void names_list_read(struct names_list *list);
void names_list_free(struct names_list *list);
/* Names of the vGPU with a UUID; false, and no names, if it is unknown. */
bool names_find(const struct names_list *list, const char *uuid, struct vgpu_names *names);

/**
 * struct names_cache - names of the vGPUs of a list that is read again and again
 * @entries: of each vGPU of the list, in its order
 * @nr: number of vGPUs
 *
 * A name is read when a vGPU is new, or another process has it: a refresh without such
 * changes reads no file.
 */
struct names_cache {
	struct names_entry {
		uint32_t id;
		uint32_t tgid;
		char uuid[MGPU_UUID_LEN];
		struct vgpu_names names;
	} *entries;
	size_t nr;
};

/* @vgpus: sorted by ID. Returns 0, or -ENOMEM and changes nothing. */
int names_cache_update(struct names_cache *cache, const struct mgpu_vgpu_info *vgpus, size_t nr,
		       struct mgpu_error *err);
void names_cache_free(struct names_cache *cache);

/* ---- vgpu.c ---- */

/*
 * Parse "fps 30 weight 200" and set a vGPU, as "vgpu set" does. @name: the vGPU, for errors.
 * Returns 0 or -errno.
 */
int vgpu_set_text(struct mgpu *mgpu, const char *uuid, const char *name, const char *text,
		  struct mgpu_error *err);

/**
 * vgpu_parse_settings() - parse the settings at the beginning of some words
 * @set: settings, to which these are added
 * @target: the vGPU, for errors
 * @argc: number of words
 * @argv: words: "fps 30 weight 200"
 * @where: prefix of an error, as in "FILE:LINE: "
 * @err: sentence about an error
 *
 * Return: the number of words up to the first that is no setting, or -EINVAL.
 */
int vgpu_parse_settings(struct mgpu_vgpu_setting *set, const char *target, int argc,
			char *const *argv, const char *where, struct mgpu_error *err);
/* Write the sentence for a word that is no setting, NULL for a missing one; -EINVAL. */
int vgpu_no_setting(const char *target, const char *word, const char *where,
		    struct mgpu_error *err);

/* ---- commands ---- */

extern const char *const dev_set_keys[];
extern const char *const dev_policies[];	/* for the completion */
extern const char *const dev_bind_keys[];
extern const char *const dev_unbind_keys[];
extern const char *const render_start_keys[];
extern const char *const render_stop_keys[];
extern const char *const vgpu_list_keys[];
extern const char *const vgpu_set_keys[];
extern const char *const vgpu_create_keys[];
extern const char *const vgpu_remove_keys[];
extern const char *const ctx_list_keys[];
extern const char *const ctx_preempt_keys[];
extern const char *const ctx_resume_keys[];
extern const char *const monitor_keys[];
extern const char *const remote_set_keys[];
#define CTL_SETTINGS_MAX	32
extern const char *ctl_set_keys[CTL_SETTINGS_MAX + 1];	/* filled by ctl_init() */
/* The same, "sla", "descriptions" and "default"; filled by ctl_init(). */
extern const char *ctl_reset_keys[CTL_SETTINGS_MAX + 4];
extern const char *const ctl_sla_keys[];
extern const char *const ctl_describe_keys[];
void ctl_init(void);
/* The setting of mgpud that a word of ctl_set_keys[] names; NULL: there is none. */
const struct mgpud_setting *ctl_setting(const char *word);

int dev_list(const struct gpuctl *ctl, int argc, char **argv);
int dev_show(const struct gpuctl *ctl, int argc, char **argv);
int dev_set(const struct gpuctl *ctl, int argc, char **argv);
int dev_bind(const struct gpuctl *ctl, int argc, char **argv);
int dev_unbind(const struct gpuctl *ctl, int argc, char **argv);
int type_list(const struct gpuctl *ctl, int argc, char **argv);
int render_list(const struct gpuctl *ctl, int argc, char **argv);
int render_start(const struct gpuctl *ctl, int argc, char **argv);
int render_stop(const struct gpuctl *ctl, int argc, char **argv);
int remote_list(const struct gpuctl *ctl, int argc, char **argv);
int remote_show(const struct gpuctl *ctl, int argc, char **argv);
int remote_stats(const struct gpuctl *ctl, int argc, char **argv);
int remote_accounts(const struct gpuctl *ctl, int argc, char **argv);
int remote_set(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_list(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_show(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_create(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_remove(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_set(const struct gpuctl *ctl, int argc, char **argv);
int ctx_list(const struct gpuctl *ctl, int argc, char **argv);
int ctx_show(const struct gpuctl *ctl, int argc, char **argv);
int ctx_preempt(const struct gpuctl *ctl, int argc, char **argv);
int ctx_resume(const struct gpuctl *ctl, int argc, char **argv);
int monitor(const struct gpuctl *ctl, int argc, char **argv);
int status(const struct gpuctl *ctl, int argc, char **argv);
int top(const struct gpuctl *ctl, int argc, char **argv);
int ctl_show(const struct gpuctl *ctl, int argc, char **argv);
int ctl_set(const struct gpuctl *ctl, int argc, char **argv);
int ctl_reset(const struct gpuctl *ctl, int argc, char **argv);
int ctl_sla(const struct gpuctl *ctl, int argc, char **argv);
int ctl_describe(const struct gpuctl *ctl, int argc, char **argv);
int ctl_watch(const struct gpuctl *ctl, int argc, char **argv);
int trace_record(const struct gpuctl *ctl, int argc, char **argv);
int report(const struct gpuctl *ctl, int argc, char **argv);

#endif /* GPUCTL_H */

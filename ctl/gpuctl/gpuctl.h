/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of gpuctl share. */
#ifndef GPUCTL_H
#define GPUCTL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "mgpu.h"

struct json_object;

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

/**
 * struct gpuctl - what was asked for, besides the words
 * @json: print JSON
 * @pretty: over several lines
 * @batch: file of settings, NULL for none
 * @count: how many refreshes or events, 0 for no end
 * @seconds: between two refreshes
 * @completion: help: print the script for bash
 * @table: help: print the commands, one per line
 */
struct gpuctl {
	bool json;
	bool pretty;
	const char *batch;
	uint32_t count;
	double seconds;
	bool completion;
	bool table;
};

/**
 * struct command - an entry of the command table
 * @object: first word
 * @verb: second word, NULL for none
 * @args: what follows, for people
 * @options: letters of the options that it takes, besides those that all take
 * @keys: words that it knows, NULL at the end; may be NULL
 * @help: what it does, in one line
 * @run: does it with the words that follow; returns the exit status
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

/* Set by ^C and SIGTERM in commands that run until then. */
extern volatile sig_atomic_t gpuctl_stop;
void stop_on_signals(void);

/* Complain on stderr; return the exit status. */
int usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int failed(const struct mgpu_error *err);

/* ---- parse.c ---- */

/* 0, or -EINVAL or -ERANGE */
int parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value);
/* Decimal frames per second, or "none" (0), to millihertz. */
int parse_fps(const char *text, uint32_t *millihertz);
/* "30.5%", "305000ppm" or "none" (0), to parts per million. */
int parse_share(const char *text, uint32_t *ppm);
/*
 * A number with us, ms or s, to a whole number of units of @unit_us
 * microseconds; 0 needs no unit.
 */
int parse_time(const char *text, uint32_t unit_us, uint32_t min, uint32_t max,
	       uint32_t *value);
/* "1280x720", or "max" (0 and 0), to two numbers of pixels. */
int parse_mode(const char *text, uint32_t size[2]);
int parse_double(const char *text, double *value);
/* The word of @words most like @word, NULL if none is. */
const char *suggest(const char *word, const char *const *words);
bool is_word(const char *word, const char *const *words);

/* ---- out.c ---- */

/* An object with all fields; those that are unknown are null. */
struct json_object *out_object(const struct mgpu_field *fields,
			       const void *info);
/* Print and put it; on one line unless pretty. */
int out_json(const struct gpuctl *ctl, struct json_object *object);
/* "name: value" for all fields, for people. */
void out_fields(const struct mgpu_field *fields, const void *info);
/* What became of a vGPU, a device or a context, on one line. */
void out_event(const struct mgpu_event *event);

#define OUT_CELL	80

/* Millihertz as frames per second. */
const char *out_fps(char *buf, size_t size, uint64_t millihertz);
/* As parse_share() and parse_time() read it: "30.5%", "10ms". */
const char *out_share(char *buf, size_t size, uint64_t ppm);
const char *out_us(char *buf, size_t size, uint64_t us);
const char *out_bytes(char *buf, size_t size, uint64_t bytes);
/* To three digits, in thousands, millions and so on: "1.23M". */
const char *out_rate(char *buf, size_t size, double rate);
/* What it is doing; "?" if that is not known. */
const char *out_state(const struct mgpu_ctx *ctx);
/* That it has and that its job can use: "2/4"; "-" without a job. */
const char *out_slots(char *buf, size_t size, const struct mgpu_ctx *ctx);
/* The part of its job that is done, 0 to 1; NAN if that is not known. */
double out_progress(const struct mgpu_ctx *ctx);
/* Now, with milliseconds, as RFC 3339. */
const char *out_time(char *buf, size_t size);

/**
 * struct table - rows of text in columns
 * @columns: titles, NULL at the end; a title that begins with '>' is aligned to
 *	the right
 * @cells: of all rows
 * @nr: how many cells
 * @room: how many fit
 */
struct table {
	const char *const *columns;
	char (*cells)[OUT_CELL];
	size_t nr;
	size_t room;
};

void table_cell(struct table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Print at most @rows rows, and free the cells. */
void table_print(struct table *table, size_t rows);

/* ---- commands ---- */

extern const char *const dev_set_keys[];
extern const char *const dev_policies[];	/* for the completion */
extern const char *const dev_bind_keys[];
extern const char *const dev_unbind_keys[];
extern const char *const vgpu_list_keys[];
extern const char *const vgpu_set_keys[];
extern const char *const ctx_list_keys[];
extern const char *const ctx_preempt_keys[];
extern const char *const ctx_resume_keys[];
extern const char *const monitor_keys[];
extern const char *const ctl_set_keys[];
extern const char *const ctl_sla_keys[];
extern const char *const ctl_policies[];	/* for the completion */
extern const char *const ctl_preempt_policies[];

int dev_list(const struct gpuctl *ctl, int argc, char **argv);
int dev_show(const struct gpuctl *ctl, int argc, char **argv);
int dev_set(const struct gpuctl *ctl, int argc, char **argv);
int dev_bind(const struct gpuctl *ctl, int argc, char **argv);
int dev_unbind(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_list(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_show(const struct gpuctl *ctl, int argc, char **argv);
int vgpu_set(const struct gpuctl *ctl, int argc, char **argv);
int ctx_list(const struct gpuctl *ctl, int argc, char **argv);
int ctx_show(const struct gpuctl *ctl, int argc, char **argv);
int ctx_preempt(const struct gpuctl *ctl, int argc, char **argv);
int ctx_resume(const struct gpuctl *ctl, int argc, char **argv);
int monitor(const struct gpuctl *ctl, int argc, char **argv);
int top(const struct gpuctl *ctl, int argc, char **argv);
int ctl_show(const struct gpuctl *ctl, int argc, char **argv);
int ctl_set(const struct gpuctl *ctl, int argc, char **argv);
int ctl_sla(const struct gpuctl *ctl, int argc, char **argv);
int ctl_watch(const struct gpuctl *ctl, int argc, char **argv);

#endif /* GPUCTL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contents of the screen of gpuctl top: rows, their order, filter and history; and the
 * effects of keys. No clock and no I/O: top_screen.c reads keys and draws.
 */
#ifndef GPUCTL_TOP_MODEL_H
#define GPUCTL_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mgpu.h"
#include "vm_name.h"

#define TOP_HISTORY	120	/* refreshes that a graph goes back */
#define TOP_INPUT	128	/* of a line that is typed, bytes, with the end */
#define TOP_CELL	48	/* of a cell, bytes, with the end */
#define TOP_LINE	1024	/* of a line, bytes, with the end */

/**
 * struct top_row - a vGPU in the last interval; NAN is unknown
 * @id: ID of the vGPU
 * @uuid: its UUID
 * @name: name of its VM, or its own, "-" for none
 * @dev: name of its device
 * @type: its type
 * @open: a VMM has it
 * @quarantine: its jobs fail
 * @weight: its weight
 * @fps: frames per second
 * @target: frames per second that the controller allocated, NAN also for no limit
 * @floor: floor in force
 * @granted: part of the floor that it is granted
 * @fps_limit: limit in force, millihertz, 0 for none
 * @fps_stale: @fps_limit is a target that is not updated
 * @gpu_limit: limit in force, parts per million, 0 for none
 * @gpu_stale: @gpu_limit is a target that is not updated
 * @p50: time between two frames, median, microseconds
 * @p99: that which 99 % do not exceed
 * @gpu: part of the device's engines
 * @cpu: part of the CPUs that VMs share
 * @held: part of the time in which a frame was held back: it is throttled
 * @mem: memory, bytes
 * @mem_limit: most that it may have, bytes
 */
struct top_row {
	uint32_t id;
	char uuid[MGPU_UUID_LEN];
	char name[VM_NAME_LEN];
	char dev[MGPU_NAME_LEN];
	char type[MGPU_NAME_LEN];
	bool open;
	bool quarantine;
	uint32_t weight;
	double fps;
	double target;
	double floor;
	double granted;
	uint32_t fps_limit;
	bool fps_stale;
	uint32_t gpu_limit;
	bool gpu_stale;
	double p50;
	double p99;
	double gpu;
	double cpu;
	double held;
	uint64_t mem;
	uint64_t mem_limit;
};

/**
 * struct top_history - a vGPU in the last TOP_HISTORY intervals
 * @id: ID of the vGPU
 * @uuid: its UUID: the ID may be another one's later
 * @fps: frames per second; the last one is at the end
 * @gpu: part of the device's engines, likewise
 * @nr: number of intervals
 */
struct top_history {
	uint32_t id;
	char uuid[MGPU_UUID_LEN];
	float fps[TOP_HISTORY];
	float gpu[TOP_HISTORY];
	size_t nr;
};

enum top_column {
	TOP_ID, TOP_NAME, TOP_UUID, TOP_STATE, TOP_FPS, TOP_TARGET, TOP_FLOOR, TOP_LIMIT, TOP_P50,
	TOP_P99, TOP_GPU, TOP_GPU_LIMIT, TOP_CPU, TOP_HELD, TOP_MEM, TOP_WEIGHT, TOP_GRAPH,
	TOP_COLUMNS
};

enum top_mode {
	TOP_LIST,	/* keys move, sort and so on */
	TOP_FILTER,	/* a filter is typed */
	TOP_EDIT,	/* settings of the selected vGPU are typed */
	TOP_HELP,	/* the keys are explained */
};

enum top_pane {
	TOP_GRAPHS,	/* history of the selected vGPU */
	TOP_CONTEXTS,	/* its contexts */
	TOP_NO_PANE,
};

enum top_action {
	TOP_NOTHING,
	TOP_REDRAW,
	TOP_APPLY,	/* set what top_model.input says; then top_model_said() */
	TOP_QUIT,
};

/* Keys that are no characters; a screen translates its own to these. */
enum top_key {
	TOP_KEY_UP = 0x110000, TOP_KEY_DOWN, TOP_KEY_PAGE_UP, TOP_KEY_PAGE_DOWN, TOP_KEY_HOME,
	TOP_KEY_END, TOP_KEY_ENTER, TOP_KEY_ESCAPE, TOP_KEY_BACKSPACE,
};

/**
 * struct top_model - all that is shown
 * @rows: vGPUs, sorted by ID
 * @nr: number of vGPUs
 * @history: of each vGPU, in the order of @rows
 * @view: indices of the rows that are shown, in their order
 * @nr_view: number of those
 * @sort: column by which they are sorted
 * @reverse: in the other order than the column's own
 * @filter: text that a row must have, "" for all rows
 * @paused: the screen stays as it is
 * @mode: what keys do
 * @pane: what is shown below the rows
 * @selected: UUID of the selected vGPU, "" without rows
 * @at: place of it in @view
 * @first: place of the first row on the screen
 * @page: rows that fit on the screen, 1 or more
 * @input: line that is typed
 * @said: result of the last command, "" for none
 * @bad: @said is an error
 */
struct top_model {
	struct top_row *rows;
	size_t nr;
	struct top_history *history;
	size_t *view;
	size_t nr_view;
	enum top_column sort;
	bool reverse;
	char filter[TOP_INPUT];
	bool paused;
	enum top_mode mode;
	enum top_pane pane;
	char selected[MGPU_UUID_LEN];
	size_t at;
	size_t first;
	size_t page;
	char input[TOP_INPUT];
	char said[256];
	bool bad;
};

void top_model_init(struct top_model *m);
void top_model_free(struct top_model *m);

/**
 * top_model_update() - take the rows of a new interval
 * @m: the model
 * @rows: rows, sorted by ID, which become the model's also after an error
 * @nr: number of rows
 *
 * Return: 0, or -ENOMEM, and then the model has no rows.
 */
int top_model_update(struct top_model *m, struct top_row *rows, size_t nr);

/* Append an interval; the oldest one goes when there are TOP_HISTORY. */
void top_history_add(struct top_history *h, double fps, double gpu);

/* Tell how many rows fit; keeps the selected one among them. */
void top_model_fit(struct top_model *m, size_t page);

/* Do what a key says: a character of Unicode, or an enum top_key. */
enum top_action top_model_key(struct top_model *m, uint32_t key);

/* The selected row, and its history; NULL without rows. */
const struct top_row *top_model_selected(const struct top_model *m);
const struct top_history *top_model_history(const struct top_model *m, size_t row);

/* Tell the result of TOP_APPLY; @error: NULL if it was set. */
void top_model_said(struct top_model *m, const char *error);

/**
 * top_columns() - choose the columns that fit
 * @width: columns of the terminal
 * @widths: set to the width of each column, 0 for one that is not shown
 *
 * The less important ones go first; what is left over goes to the name and to the graph.
 */
void top_columns(size_t width, size_t widths[TOP_COLUMNS]);

/* Write the title line, or a row's, for columns of these widths. Returns @text. */
char *top_titles(const struct top_model *m, const size_t widths[TOP_COLUMNS],
		 char text[TOP_LINE]);
char *top_line(const struct top_row *row, const struct top_history *history,
	       const size_t widths[TOP_COLUMNS], bool utf8, char text[TOP_LINE]);

/* Name of the column by which rows are sorted: "fps". */
const char *top_sort_name(enum top_column column);

/**
 * top_fit() - cut a text to a width, or fill it up with blanks
 * @text: text in UTF-8, or of any bytes, which are '?' then
 * @width: columns of the terminal
 * @right: align it to the right
 * @utf8: the terminal shows UTF-8; without it each other character is '?'
 * @out: result, of @size bytes: 4 for each column, and the end
 * @size: size of @out
 *
 * Return: @out.
 */
char *top_fit(const char *text, size_t width, bool right, bool utf8, char *out, size_t size);

/**
 * top_graph() - draw a line of a graph
 * @values: values, the last one at the end; NAN leaves a gap
 * @nr: number of values
 * @max: the largest value that is drawn; larger ones are as this one
 * @width: columns; the last of the values are drawn, to the right
 * @line: the line from the bottom, 0 to @lines - 1
 * @lines: lines of the graph
 * @utf8: with block characters, else with '.', ':' and '#'
 * @out: result, of 3 * @width + 1 bytes
 *
 * A value above 0 is never drawn as nothing.
 *
 * Return: @out.
 */
char *top_graph(const float *values, size_t nr, double max, size_t width, size_t line,
		size_t lines, bool utf8, char *out);

/* A round number, 1, 2 or 5 times a power of ten, that no value exceeds; 1 at least. */
double top_graph_max(const float *values, size_t nr);

#endif /* GPUCTL_TOP_MODEL_H */

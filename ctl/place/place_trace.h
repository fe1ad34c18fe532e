/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traces of clusters: nodes and tasks as CSV, with the columns of Alibaba's
 * cluster-trace-gpu-v2023. Documentation/placement.rst has the format.
 */
#ifndef MGPU_PLACE_TRACE_H
#define MGPU_PLACE_TRACE_H

#include <stdio.h>

#include "place.h"
#include "potential.h"

#define TRACE_NAME_LEN		64
#define TRACE_MAX_TASKS		1000000
#define TRACE_MAX_TIME		INT64_C(1000000000000)	/* s */

/**
 * struct place_task - a task of a trace
 * @r: what it wants
 * @creation_s: time of its creation, 0 to TRACE_MAX_TIME
 * @deletion_s: time of its end, at least @creation_s
 */
struct place_task {
	struct place_request r;
	int64_t creation_s;
	int64_t deletion_s;
};

/**
 * struct place_trace - a cluster and its tasks
 * @nodes: nodes, all of them free
 * @names: a name for each node
 * @nr_nodes: nodes, up to PLACE_MAX_NODES
 * @models: names of GPU models
 * @nr_models: models, up to PLACE_MAX_MODELS
 * @tasks: tasks in the order of the file
 * @nr_tasks: tasks, up to TRACE_MAX_TASKS
 * @timed: the tasks have times
 */
struct place_trace {
	struct place_node *nodes;
	char (*names)[TRACE_NAME_LEN];
	size_t nr_nodes;
	char models[PLACE_MAX_MODELS][TRACE_NAME_LEN];
	size_t nr_models;
	struct place_task *tasks;
	size_t nr_tasks;
	bool timed;
};

/**
 * trace_read_nodes() - read the nodes of a cluster
 * @t: result, zeroed before
 * @f: where to read
 * @file: its name, for errors
 * @why: the error as a sentence with file, line and column; empty on success
 * @size: size of @why
 *
 * Return: 0, -EINVAL or -ENOMEM. The caller calls place_trace_free() in any case.
 */
int trace_read_nodes(struct place_trace *t, FILE *f, const char *file, char *why, size_t size);

/* Read tasks likewise, after the nodes: names of models are looked up among theirs. */
int trace_read_tasks(struct place_trace *t, FILE *f, const char *file, char *why, size_t size);

void place_trace_free(struct place_trace *t);

/* Return the mask of the models that @spec names, separated by |; all for an empty one. */
uint32_t trace_models(const struct place_trace *t, const char *spec);

/**
 * trace_classes() - count the tasks that want the same
 * @t: the trace
 * @nr: result: number of classes
 *
 * Return: the classes, for free(), the most frequent first; NULL if there is no memory.
 */
struct place_class *trace_classes(const struct place_trace *t, size_t *nr);

#endif /* MGPU_PLACE_TRACE_H */

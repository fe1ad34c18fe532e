/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's events, from the BPF programs of bpf/jobs.bpf.c. */
#ifndef GPUCTL_TRACE_SOURCE_H
#define GPUCTL_TRACE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "mgpu.h"

struct mgpu_trace_event;
struct trace_source;

/* Take an event. Returns 0, or a negative errno that ends the reading. */
typedef int (*trace_source_fn)(void *data, const struct mgpu_trace_event *e);

/**
 * trace_source_open() - begin to receive events
 * @source: result
 * @fn: takes each event
 * @data: its first argument
 * @err: for an error, a sentence that says what to do
 *
 * Return: 0 or a negative errno.
 */
int trace_source_open(struct trace_source **source, trace_source_fn fn, void *data,
		      struct mgpu_error *err);
void trace_source_close(struct trace_source *source);

/* Take the events that are there. Returns 0 or what trace_source_fn returned. */
int trace_source_read(struct trace_source *source);

/* Receive no events of a vGPU but that it opens, or receive all. */
void trace_source_skip(struct trace_source *source, uint32_t vgpu, bool skip);

/* Events that did not fit into the ring buffer so far. */
uint64_t trace_source_lost(const struct trace_source *source);

/* Events for which the kernel ran no program so far. */
uint64_t trace_source_missed(const struct trace_source *source);

#endif /* GPUCTL_TRACE_SOURCE_H */

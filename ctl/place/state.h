/* SPDX-License-Identifier: GPL-2.0-only */
/* The present state of a cluster, as JSON. mgpu-place(1) has the format. */
#ifndef MGPU_PLACE_STATE_H
#define MGPU_PLACE_STATE_H

#include "place_trace.h"

#define STATE_MAX_CAPABILITIES	32
#define STATE_MAX_BYTES		(64 << 20)

/**
 * struct place_state - a cluster, its vGPU types and its capabilities
 * @trace: nodes, with what is free of them
 * @types: vGPU types in ascending order of gpu_milli
 * @type_names: a name for each
 * @nr_types: how many
 * @capabilities: names of capabilities, by bit
 * @nr_capabilities: how many
 */
struct place_state {
	struct place_trace trace;
	struct place_type types[PLACE_MAX_TYPES];
	char type_names[PLACE_MAX_TYPES][TRACE_NAME_LEN];
	size_t nr_types;
	char capabilities[STATE_MAX_CAPABILITIES][TRACE_NAME_LEN];
	size_t nr_capabilities;
};

/* Read JSON. Return and errors as trace_read_nodes(); the caller calls place_trace_free(). */
int state_read(struct place_state *s, FILE *f, const char *file, char *why, size_t size);

#endif /* MGPU_PLACE_STATE_H */

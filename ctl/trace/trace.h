/* SPDX-License-Identifier: GPL-2.0-only */
/* mgpu-trace: main.c has the command line, record.c the recorder. */
#ifndef MGPU_TRACE_H
#define MGPU_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#define TRACE_SECONDS_MAX	100000.0	/* limit of mgpu-sim */

/**
 * struct record - options of a recording
 * @path: output file
 * @seconds: duration, seconds; 0: until a signal comes
 * @vgpus: UUIDs, their beginnings, or IDs
 * @nr_vgpus: number of entries of @vgpus; 0: record all vGPUs
 * @verbose: print messages of libbpf
 */
struct record {
	const char *path;
	double seconds;
	char **vgpus;
	size_t nr_vgpus;
	bool verbose;
};

/* Record. Returns 0, or -errno after it has printed the reason. */
int record(const struct record *r);

#endif /* MGPU_TRACE_H */

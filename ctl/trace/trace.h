/* SPDX-License-Identifier: GPL-2.0-only */
/* mgpu-trace: main.c is the command line, record.c what it does. */
#ifndef MGPU_TRACE_H
#define MGPU_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#define TRACE_SECONDS_MAX	100000.0	/* what mgpu-sim reads */

/**
 * struct record - what to record
 * @path: file to write
 * @seconds: for how long; 0 until a signal comes
 * @vgpus: UUIDs, or their beginnings, or ids; none for all
 * @nr_vgpus: number of them
 * @verbose: show what libbpf says
 */
struct record {
	const char *path;
	double seconds;
	char **vgpus;
	size_t nr_vgpus;
	bool verbose;
};

void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Returns 0 or -errno, having said why. */
int record(const struct record *r);

#endif /* MGPU_TRACE_H */

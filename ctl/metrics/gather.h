/* SPDX-License-Identifier: GPL-2.0-only */
/* Read the sources of metrics. */
#ifndef METRICS_GATHER_H
#define METRICS_GATHER_H

#include <stdbool.h>

#include "mgpu.h"
#include "snapshot.h"

/**
 * struct gather - what is kept between two readings
 * @root: prefix of /run and /sys, "" for the machine
 * @hists: read histograms, a request for each vGPU
 * @verbose: complain about a source when it ceases to answer
 * @mgpu: handle of the module; NULL: not open
 * @told: for each source, the last error that was told of
 */
struct gather {
	const char *root;
	bool hists;
	bool verbose;
	struct mgpu *mgpu;
	int told[NR_SOURCES];
};

/*
 * Read all sources.  The part of a source that does not answer is missing; mgpud and mgpu-remoted
 * have a second each.
 */
void gather(struct gather *g, struct snapshot *s);
void gather_close(struct gather *g);

/* Read all sources and write them to an empty text. */
void gather_text(struct gather *g, struct text *text, enum expose_format format);

#endif /* METRICS_GATHER_H */

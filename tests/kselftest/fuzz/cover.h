/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Coverage of the modules by the kernel's KCOV, where they are instrumented for it.
 */
#ifndef KSELFTEST_FUZZ_COVER_H
#define KSELFTEST_FUZZ_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "prog.h"

/*
 * Blocks and edges that were covered, in memory that processes share.  Entries are added,
 * never removed.
 */
#define SET_BLOCKS	(1u << 16)
#define SET_EDGES	(1u << 20)

struct cover_sets {
	uint32_t blocks[SET_BLOCKS];	/* addresses, without the upper half; 0: free */
	uint32_t edges[SET_EDGES];	/* hashes of two addresses; 0: free */
	uint32_t nr_blocks;
	uint32_t nr_edges;
};

/* The buffer of a thread.  Its thread alone uses it, but for the counter. */
struct cover {
	int fd;			/* -1 when there is no KCOV */
	uint64_t *area;
	bool remote;
};

/* Return whether the kernel has KCOV. */
bool cover_available(void);
/* Collect what the calling thread executes from now on. */
int cover_open(struct cover *c);
/*
 * Collect what kernel threads execute for the vGPUs that the calling thread opens
 * from now on.  @id is another one for each thread, from 1.
 */
int cover_open_remote(struct cover *c, uint32_t id);
void cover_reset(struct cover *c);
/* Add what was covered since the reset; return how many edges are new. */
unsigned int cover_collect(struct cover *c, struct cover_sets *sets);
/*
 * Collect the constants with which the thread compares, from cover_compare() to
 * cover_constants(), instead of what it executes.
 */
int cover_compare(struct cover *c);
void cover_constants(struct cover *c, struct dictionary *dict);

#endif /* KSELFTEST_FUZZ_COVER_H */

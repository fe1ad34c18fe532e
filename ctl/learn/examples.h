/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From histories to samples: questions as the learner makes them in a period, with the shares
 * that the plan of a later period had, which knows its costs (learning by hindsight).
 */
#ifndef MGPU_LEARN_EXAMPLES_H
#define MGPU_LEARN_EXAMPLES_H

#include "fds.h"
#include "history.h"
#include "training.h"

/* The state of the VM that a question is about. */
enum example_kind {
	EXAMPLE_NEW,		/* a VM of which nothing is known: one that was not active
				 * before, or one that is asked for as if it were not
				 */
	EXAMPLE_WAKES,		/* a VM that was active before, and is not now, or is asked
				 * for as if it were not
				 */
	EXAMPLE_ACTIVE,		/* a VM that is active */
	EXAMPLE_KINDS,
};

extern const char *const example_kind_name[EXAMPLE_KINDS];

/**
 * struct example_options - which samples are made
 * @horizon: periods from the question to the plan, at least 1
 * @kinds: set of enum example_kind, as bits
 * @part: part of the VMs that are active that is asked for as if they were not, 0 to 1;
 *	those that come really are all asked for
 * @seed: of what is drawn
 * @fds: parameters of f
 */
struct example_options {
	unsigned int horizon;
	unsigned int kinds;
	double part;
	uint64_t seed;
	struct fds_param fds;
};

/**
 * struct examples - samples
 * @nr: number of samples
 * @room: samples that there is memory for
 * @sample: samples
 * @kind: enum example_kind of each
 * @run: of each, the number of the run that it is from: runs begin with each file, and where
 *	a history begins anew
 * @runs: number of runs
 * @digest: sum of all bytes that were read, checksum_add()
 */
struct examples {
	size_t nr;
	size_t room;
	struct learn_sample *sample;
	unsigned char *kind;
	uint32_t *run;
	uint32_t runs;
	uint64_t digest;
};

/**
 * examples_add() - add the samples of a history
 * @x: samples so far; all zero at first
 * @f: the history
 * @name: its name, for errors
 * @o: which samples
 * @why: the error as a sentence
 * @len: size of @why
 *
 * Return: 0, -EINVAL, -EIO or -ENOMEM. Samples of what was read before an error stay.
 */
int examples_add(struct examples *x, FILE *f, const char *name,
		 const struct example_options *o, char *why, size_t len);

void examples_free(struct examples *x);

#endif /* MGPU_LEARN_EXAMPLES_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands of mgpu-learn. */
#ifndef MGPU_LEARN_COMMAND_H
#define MGPU_LEARN_COMMAND_H

#include "examples.h"
#include "file.h"
#include "learner.h"

#define STATUS_USAGE	2
#define OPTIONS_MAX	16	/* weights, and horizons */

/**
 * struct learn_options - the options of all commands, as they are named on the command line
 * @words: words behind the command: files
 * @nr_words: number of them
 */
struct learn_options {
	const char *model;
	const char *output;
	const char *form;
	const char *weights[OPTIONS_MAX];
	size_t nr_weights;
	unsigned int horizons[OPTIONS_MAX];
	size_t nr_horizons;
	uint64_t seed;
	unsigned int epochs;
	double part;
	bool json;
	bool quiet;
	char **words;
	int nr_words;
};

/* Each prints its own errors and returns the exit status. */
int command_train(const struct learn_options *o);
int command_evaluate(const struct learn_options *o);
int command_inspect(const struct learn_options *o);

/* ---- shared by commands ---- */

/* Read histories; complains. Return 0 or -1. */
int read_histories(const struct learn_options *o, const struct example_options *which,
		   struct examples *x);

/* Read a file of weights; complains. Return 0 or -1. */
int read_weights(struct learn_file *file, const char *path);

/*
 * Write a file of weights, made at the time that SOURCE_DATE_EPOCH has, or now; complains. Return
 * 0 or -1.
 */
int write_weights(struct learn_file *file, const char *path);

/**
 * struct score - errors of a model
 * @n: number of answers
 * @error: mean absolute error of each resource, parts of it
 * @both: mean of both
 */
struct score {
	size_t n;
	double error[LEARN_RESOURCES];
	double both;
};

/**
 * score_of() - let a model answer samples
 * @m: the model
 * @x: samples
 * @kind: enum example_kind of those that count, EXAMPLE_KINDS for all
 * @every: of the runs each so many-th counts, 1 for all
 */
struct score score_of(const struct learner_model *m, const struct examples *x,
		      enum example_kind kind, unsigned int every);

#endif /* MGPU_LEARN_COMMAND_H */

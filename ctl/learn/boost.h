/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trains forests by gradient boosting (XGBoost). Only programs that train need this and the
 * library: forest.c evaluates what was trained.
 */
#ifndef MGPU_LEARN_BOOST_H
#define MGPU_LEARN_BOOST_H

#include <stdint.h>

#include "forest.h"

/**
 * struct boost_options - how a forest is trained
 * @seed: of what is drawn
 * @rounds: trees at most, 1 to FOREST_TREES_MAX
 * @depth: of a tree at most, 1 to 12
 * @rate: learning rate, above 0, at most 1
 * @patience: rounds without an improvement on the rows for validation after which training
 *	stops, 0: never
 * @rows_part: part of the rows that each tree sees, above 0, at most 1
 * @columns_part: part of the features that each tree sees, above 0, at most 1
 * @least_weight: rows of a leaf at least
 */
struct boost_options {
	uint64_t seed;
	unsigned int rounds;
	unsigned int depth;
	double rate;
	unsigned int patience;
	double rows_part;
	double columns_part;
	double least_weight;
};

#define BOOST_DEFAULT ((struct boost_options){				\
	.seed = 1, .rounds = 400, .depth = 5, .rate = 0.08,		\
	.patience = 30, .rows_part = 0.8, .columns_part = 0.8,		\
	.least_weight = 4,						\
})

/**
 * struct boost_rows - rows of features with the value of each
 * @n: number of rows
 * @features: features of a row
 * @x: @n times @features values, NAN where missing
 * @y: @n values
 */
struct boost_rows {
	size_t n;
	unsigned int features;
	const float *x;
	const float *y;
};

/**
 * boost_train() - train a forest
 * @f: result, to be freed with forest_free() on success
 * @rows: rows to train on, at least one
 * @check: rows for validation, NULL or none: all rounds are done
 * @o: options
 * @error: result: root of the mean squared error on @check, or else on @rows
 * @why: the error as a sentence
 * @len: size of @why, bytes
 *
 * Takes one thread. The same input gives the same forest.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int boost_train(struct forest *f, const struct boost_rows *rows, const struct boost_rows *check,
		const struct boost_options *o, double *error, char *why, size_t len);

#endif /* MGPU_LEARN_BOOST_H */

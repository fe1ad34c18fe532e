/* SPDX-License-Identifier: GPL-2.0-only */
/* Trains and evaluates predictors of pairs. Pure, but for the library behind boost.h. */
#ifndef MGPU_LEARN_PAIRS_FIT_H
#define MGPU_LEARN_PAIRS_FIT_H

#include "boost.h"
#include "pairs.h"

/**
 * struct pairs_options - how a model is trained
 * @seed: of what is drawn
 * @use: utilisation alone is a feature; all jobs must have it
 * @folds: parts for cross-validation, 2 to 20
 * @boost: trees
 */
struct pairs_options {
	uint64_t seed;
	bool use;
	unsigned int folds;
	struct boost_options boost;
};

#define PAIRS_DEFAULT ((struct pairs_options){				\
	.seed = 1, .folds = 5,						\
	.boost = {							\
		.seed = 1, .rounds = 120, .depth = 4, .rate = 0.08,	\
		.rows_part = 0.8, .columns_part = 0.6, .least_weight = 4, \
	},								\
})

/**
 * struct pairs_score - a predictor on pairs that it was not trained on
 * @n: predicted speeds
 * @median_err: median of |predicted - measured| / measured
 * @p90_err: 90th percentile of the same
 * @spearman: rank correlation of the sums of both speeds, mean over the parts that were held
 *	out; NAN for a predictor that gives the same for all
 * @coverage_90: part of the measured speeds that are in the interval for nine of ten
 * @width: median width of that interval
 */
struct pairs_score {
	size_t n;
	double median_err;
	double p90_err;
	double spearman;
	double coverage_90;
	double width;
};

/**
 * pairs_estimate_use() - estimate each job's utilisation alone from that of pairs
 * @t: the table, with the utilisation of pairs; jobs without their own get one
 *
 * By least squares: that of a pair is the sum of both, 0 to 1.
 *
 * Return: 0, -ENODATA if pairs lack it, or -ENOMEM.
 */
int pairs_estimate_use(struct pairs_table *t);

/**
 * pairs_train() - train a model
 * @p: result, to be freed with learn_pairs_free()
 * @t: pairs
 * @o: options
 * @why: the error as a sentence
 * @len: size of @why, bytes
 *
 * Everything that is chosen is chosen by cross-validation within @t: parts of the pairs, for
 * jobs that were seen, and whole models of jobs, for others.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int pairs_train(struct learn_pairs **p, const struct pairs_table *t,
		const struct pairs_options *o, char *why, size_t len);

/**
 * pairs_evaluate() - train on a part of the pairs, and predict the others
 * @score: result, by predictor
 * @t: pairs
 * @o: options
 * @models: hold out each model of jobs in turn, with all pairs that have it; else each of
 *	@o->folds parts of the pairs
 * @why: the error as a sentence
 * @len: size of @why, bytes
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int pairs_evaluate(struct pairs_score score[PAIRS_PREDICTORS], const struct pairs_table *t,
		   const struct pairs_options *o, bool models, char *why, size_t len);

#endif /* MGPU_LEARN_PAIRS_FIT_H */

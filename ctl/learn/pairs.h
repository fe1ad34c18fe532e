/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Speed of two jobs that share a GPU, learned from measured pairs, with its uncertainty. Pure.
 * Training is in pairs_fit.h. Documentation/learned-pairs.rst has the predictors.
 */
#ifndef MGPU_LEARN_PAIRS_H
#define MGPU_LEARN_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "forest.h"

#define PAIRS_NAME		48	/* bytes of a name, with the NUL at its end */
#define PAIRS_JOBS_MAX		512
#define PAIRS_ROWS_MAX		20000
#define PAIRS_WORDS_MAX		64	/* words that a model knows */
#define PAIRS_WORD		24	/* bytes of a word, with the NUL at its end */
#define PAIRS_SPEED_MIN		0.01
#define PAIRS_SPEED_MAX		4.0
#define PAIRS_NUMBER_MAX	1e6	/* GPUs, and samples of a batch */

/* Part of its time that a memory-intensive job keeps the memory busy, as in preemption.rst. */
#define PAIRS_BOUND		0.5

/**
 * struct pairs_job - what is known of a job that runs on a GPU
 * @model: name of what is trained, such as "ResNet18"; see pairs_name()
 * @dataset: name of its data, likewise
 * @gpus: number of GPUs, 1 to PAIRS_NUMBER_MAX
 * @batch: samples of a batch, 1 to PAIRS_NUMBER_MAX
 * @amp: it computes in mixed precision
 * @gpu_use: part of the time that it keeps the GPU busy when it is alone, 0 to 1; NAN if unknown
 * @memory_use: the same of the GPU's memory
 */
struct pairs_job {
	char model[PAIRS_NAME];
	char dataset[PAIRS_NAME];
	double gpus;
	double batch;
	bool amp;
	double gpu_use;
	double memory_use;
};

/**
 * struct pairs_row - a measured pair
 * @job: both jobs, places in the table
 * @speed: of each beside the other, relative to its speed alone
 * @gpu_use: part of the time that both together keep the GPU busy, 0 to 1; NAN if unknown
 * @memory_use: the same of the GPU's memory
 */
struct pairs_row {
	size_t job[2];
	double speed[2];
	double gpu_use;
	double memory_use;
};

/**
 * struct pairs_table - measured pairs
 * @job: jobs, each once
 * @jobs: number of jobs, up to PAIRS_JOBS_MAX
 * @row: pairs
 * @rows: number of pairs, up to PAIRS_ROWS_MAX
 */
struct pairs_table {
	struct pairs_job *job;
	size_t jobs;
	struct pairs_row *row;
	size_t rows;
};

/*
 * Take the name of a model or of data: blanks and control characters become underscores, so that
 * it is a word in a file of weights. Return false for a name that is empty or too long.
 */
bool pairs_name(char name[PAIRS_NAME], const char *text);

/* Return whether two jobs are the same by name, batch, GPUs and precision. */
bool pairs_same(const struct pairs_job *a, const struct pairs_job *b);

void pairs_table_free(struct pairs_table *t);

enum pairs_predictor {
	PAIRS_CONSTANT,		/* mean of all */
	PAIRS_ADDITIVE,		/* sensitivity of one job and pressure of the other */
	PAIRS_NEAREST,		/* similar pairs, by their distance */
	PAIRS_RIDGE,		/* linear in features of both jobs, their products, and each job */
	PAIRS_TREES,		/* gradient-boosted trees on features of both jobs */
	PAIRS_BLEND,		/* weighted mean of the others */
	PAIRS_PREDICTORS,
};

extern const char *const pairs_predictor_name[PAIRS_PREDICTORS];

/* Which of both jobs the model has seen. */
enum pairs_novelty {
	PAIRS_SEEN,		/* both */
	PAIRS_NEW_OTHER,	/* all but the job beside the one that is asked for */
	PAIRS_NEW_JOB,		/* all but the job whose speed is asked for */
	PAIRS_NEW_BOTH,		/* none */
	PAIRS_NOVELTIES,
};

/* The numeric features of a job. */
enum {
	PAIRS_Q_BATCH,		/* logarithm of the batch, base 2, less 6 */
	PAIRS_Q_AMP,
	PAIRS_Q_GPUS,		/* logarithm, base 2 */
	PAIRS_Q_GPU_USE,	/* 0 if the model uses no utilisation */
	PAIRS_Q_MEMORY_USE,
	PAIRS_Q_IMAGE,		/* its words are of images, text or control: 0 or 1 each */
	PAIRS_Q_TEXT,
	PAIRS_Q_CONTROL,
	PAIRS_QUANTITIES,
};

#define PAIRS_SUMS	6	/* of both jobs' utilisation, beyond steps */

/**
 * struct pairs_seen - a training observation
 * @job: the job, its place among the model's
 * @other: the job beside it
 * @speed: logarithm of its speed
 */
struct pairs_seen {
	size_t job;
	size_t other;
	double speed;
};

/**
 * struct learn_pairs - what was learned from pairs
 * @use: utilisation alone is a feature: jobs that the model has not seen need it
 * @words: number of words
 * @word: words of models and data sets
 * @jobs: number of jobs that were seen
 * @job: the jobs
 * @constant: mean logarithm of speeds
 * @additive: weights of pairs_additive_row()
 * @ridge: weights of pairs_ridge_row()
 * @reach: distance over which the weight of a neighbour falls to 1/e
 * @seen: observations, for neighbours
 * @nr_seen: number of observations
 * @forest: on the first pairs_tree_columns() features of pairs_ridge_row()
 * @blend: weight of each predictor in the blend, by novelty
 * @off: error of the logarithm that a tenth of the errors exceed, by novelty
 * @slow: time that a job of the second class adds to one of the first (compute, memory),
 *	relative to its time alone
 * @weight: observations that @slow counts as, 0: unknown
 */
struct learn_pairs {
	bool use;
	size_t words;
	char word[PAIRS_WORDS_MAX][PAIRS_WORD];
	size_t jobs;
	struct pairs_job *job;
	double constant;
	double *additive;
	double *ridge;
	double reach;
	struct pairs_seen *seen;
	size_t nr_seen;
	struct forest forest;
	double blend[PAIRS_NOVELTIES][PAIRS_BLEND];
	double off[PAIRS_NOVELTIES][PAIRS_PREDICTORS];
	double slow[2][2];
	double weight[2][2];
};

/**
 * struct pairs_guess - a prediction
 * @speed: of a job beside the other, relative to its speed alone
 * @low: the speed is at least this
 * @high: and at most this, for nine of ten pairs
 * @novelty: which of both jobs the model has seen
 */
struct pairs_guess {
	double speed;
	double low;
	double high;
	enum pairs_novelty novelty;
};

/**
 * learn_pairs_predict() - predict the speed of a job beside another
 * @p: the model
 * @job: the job
 * @other: the job beside it
 * @by: the predictor, usually PAIRS_BLEND
 * @g: result
 *
 * No memory is allocated. Return: 0, or -ENODATA if the model needs the utilisation alone
 * of a job that it has not seen.
 */
int learn_pairs_predict(const struct learn_pairs *p, const struct pairs_job *job,
			const struct pairs_job *other, enum pairs_predictor by,
			struct pairs_guess *g);

/*
 * Return the part of its time that a job keeps the memory busy while it is alone: as measured, of
 * a job that was seen, or else of similar ones; NAN if nothing is known. PAIRS_BOUND divides
 * classes.
 */
double learn_pairs_bound(const struct learn_pairs *p, const struct pairs_job *job);

struct preempt_norm;

/**
 * learn_pairs_prior() - take the values before any observation from a model
 * @p: the model
 * @norm: table of norm_ipc. Class pairs that were observed keep their values, and get the
 *	model's weight; class pairs that the model does not know stay as they are
 */
void learn_pairs_prior(const struct learn_pairs *p, struct preempt_norm *norm);

/**
 * learn_pairs_load() - read a payload, which is not trusted
 * @p: result, to be freed with learn_pairs_free()
 * @payload: the text
 * @size: its size, bytes
 * @why: the error as a sentence
 * @len: size of @why, bytes
 *
 * Return: 0, -EINVAL or -ENOMEM; NULL in @p on error.
 */
int learn_pairs_load(struct learn_pairs **p, const char *payload, size_t size, char *why,
		     size_t len);

/* Write a payload. */
void learn_pairs_write(const struct learn_pairs *p, FILE *out);

void learn_pairs_free(struct learn_pairs *p);

/* ---- for training ---- */

/* Add the words of a job that the model does not know yet, as far as there is room. */
void pairs_learn_words(struct learn_pairs *p, const struct pairs_job *job);

/* Sizes of rows. */
size_t pairs_additive_columns(const struct learn_pairs *p);
size_t pairs_ridge_columns(const struct learn_pairs *p);
size_t pairs_tree_columns(const struct learn_pairs *p);

/* Return the place of a job among those that were seen, or the number of these. */
size_t pairs_find(const struct learn_pairs *p, const struct pairs_job *job);

/* Write the features of a pair; places as by pairs_find(). */
void pairs_additive_row(const struct learn_pairs *p, size_t job, size_t other, double *x);
void pairs_ridge_row(const struct learn_pairs *p, const struct pairs_job *job,
		     const struct pairs_job *other, size_t at, size_t other_at, double *x);

/* Return the mean over neighbours, the constant if there is none. */
double pairs_nearest(const struct learn_pairs *p, const struct pairs_job *job,
		     const struct pairs_job *other, double reach);

enum pairs_novelty pairs_novelty(const struct learn_pairs *p, size_t job, size_t other);

#endif /* MGPU_LEARN_PAIRS_H */

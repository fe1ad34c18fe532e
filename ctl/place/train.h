/* SPDX-License-Identifier: GPL-2.0-only */
/* Learns the weights of a potential from replays of a trace. */
#ifndef MGPU_PLACE_TRAIN_H
#define MGPU_PLACE_TRAIN_H

#include "replay.h"

#define TRAIN_MAX_POPULATION	64

/**
 * struct train - how to train
 * @trace: nodes and tasks to learn from
 * @seed: of everything that is drawn
 * @generations: generations, from 1
 * @population: candidates of a generation, 4 to TRAIN_MAX_POPULATION
 * @replays: replays for each candidate, from 1
 * @part: each @part-th node is in the cluster of a replay, from 1
 * @churn_pct: weight of the loss with churn, per cent of that of inflation; 0: no such replays
 * @threads: threads, from 1; the result is the same for any number
 * @progress: called after each generation with the generation, and with the mean cost of its
 *	candidates, relative to weights of 0; NULL: not called
 */
struct train {
	const struct place_trace *trace;
	uint64_t seed;
	unsigned int generations;
	unsigned int population;
	unsigned int replays;
	unsigned int part;
	unsigned int churn_pct;
	unsigned int threads;
	void (*progress)(unsigned int generation, double cost);
};

/**
 * struct train_result - the result of training, measured on replays that it did not learn from
 * @weights: the weights; all 0 if nothing was better
 * @cost: cost with the weights, relative to weights of 0; 1 if nothing was better
 */
struct train_result {
	struct place_weights weights;
	double cost;
};

/* Train. Return 0, or -errno. */
int train(const struct train *t, struct train_result *result);

#endif /* MGPU_PLACE_TRAIN_H */

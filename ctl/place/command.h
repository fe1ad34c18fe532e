/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands of mgpu-place. */
#ifndef MGPU_PLACE_COMMAND_H
#define MGPU_PLACE_COMMAND_H

#include "train.h"

#define STATUS_USAGE	2
#define OPTIONS_MAX	16	/* policies, and capabilities */

/**
 * struct place_options - the options of all commands, as they are named on the command line
 * @part: 0: the command's own
 * @word: the word behind the command, NULL: none
 */
struct place_options {
	const char *nodes;
	const char *tasks;
	const char *weights;
	const char *state;
	const char *output;
	const struct place_policy *policies[OPTIONS_MAX];
	size_t nr_policies;
	uint64_t seed;
	unsigned int seeds;
	unsigned int points[REPLAY_MAX_POINTS];
	size_t nr_points;
	bool by_time;
	unsigned int churn;
	unsigned int part;
	unsigned int generations;
	unsigned int population;
	unsigned int replays;
	unsigned int churn_weight;
	unsigned int threads;
	struct place_request r;
	const char *spec;
	const char *capabilities[OPTIONS_MAX];
	size_t nr_capabilities;
	bool json;
	const char *word;
};

/* Each prints its own errors and returns the exit status. */
int command_replay(struct place_options *o);
int command_place(struct place_options *o);
int command_train(struct place_options *o);
int command_inspect(struct place_options *o);
int command_policies(struct place_options *o);

/* ---- shared by commands ---- */

int read_nodes(struct place_trace *t, const char *path);
int read_tasks(struct place_trace *t, const char *path);
int read_weights(struct place_weights *w, const char *path);

#endif /* MGPU_PLACE_COMMAND_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Examples that models learn from. */
#ifndef MGPU_LEARN_TRAINING_H
#define MGPU_LEARN_TRAINING_H

#include "learn.h"

/**
 * struct learn_sample - a question and its answer
 * @in: the question
 * @label: share of each VM of @in->task in the plan, for each resource; at least 0. The first
 *	@in->n of a row add up to 1; a row that adds up to 0 is not learned from
 */
struct learn_sample {
	struct learn_input in;
	float label[LEARN_RESOURCES][LEARN_CLIENTS];
};

#endif /* MGPU_LEARN_TRAINING_H */

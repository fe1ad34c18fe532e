/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VM as words of a small vocabulary: its figures, then its description.
 *
 * A figure or a number lies between two words of a scale. Both words count, in proportion to
 * how near they are, so that values between those of the training generalise.
 */
#ifndef MGPU_LEARN_WORDS_H
#define MGPU_LEARN_WORDS_H

#include "learn.h"

#define LEARN_VOCABULARY	512
#define LEARN_WORDS_FIGURES	4	/* places for figures, which come first */
#define LEARN_WORDS_TEXT	8	/* places for the description */
#define LEARN_WORDS		(LEARN_WORDS_FIGURES + LEARN_WORDS_TEXT)

/**
 * struct learn_word - a place of a VM
 * @id: word, below LEARN_VOCABULARY; 0 for a place that is empty
 * @next: the word after @id on its scale; @id if there is none
 * @part: how much of the place is @next, 0 to 1
 */
struct learn_word {
	uint16_t id;
	uint16_t next;
	float part;
};

/**
 * learn_words() - describe a VM in words
 * @t: the VM; bytes of its description beyond ASCII are letters
 * @mean_weight: mean weight of the VMs of the question
 * @word: result. Places 0 to 3 are never empty: what a frame costs of the engines and of the
 *	CPUs, frames per second, and weight over the mean
 */
void learn_words(const struct learn_task *t, double mean_weight,
		 struct learn_word word[LEARN_WORDS]);

/* Compare the words of two VMs place by place. Return less than, equal to or more than 0. */
int learn_words_compare(const struct learn_word *a, const struct learn_word *b);

#endif /* MGPU_LEARN_WORDS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A question as a row of numbers, for trees. Pure. Unknown values are NAN.
 *
 * Numbers of a description are runs of digits, with a point between digits; words are runs of
 * letters, in lower case. Numbers count by their magnitude, words by the bin that a hash
 * gives them.
 */
#ifndef MGPU_LEARN_FEATURE_H
#define MGPU_LEARN_FEATURE_H

#include "learn.h"

#define FEATURES_WORDS	64	/* bins for words */

/* Features that do not belong to one resource. Costs and magnitudes are natural logarithms. */
enum {
	FEATURE_WEIGHT,		/* weight over the mean of all VMs */
	FEATURE_VMS,		/* number of VMs */
	FEATURE_PERIODS,	/* measured periods */
	FEATURE_ACTIVE,		/* 1 if active in the last period, else 0 */
	FEATURE_FPS,		/* frames per second in the last period */
	FEATURE_OTHERS_ACTIVE,	/* part of the others that were active */
	FEATURE_OTHERS_KNOWN,	/* part of the others that were measured */
	FEATURE_NUMBERS,	/* numbers in the description */
	FEATURE_MAGNITUDE,	/* sum of the logarithms of 1 + number */
	FEATURE_LARGEST,	/* largest of these logarithms */
	FEATURE_OTHERS_MAGNITUDE,	/* mean of FEATURE_MAGNITUDE over the others */
	FEATURE_OTHERS_LARGEST,	/* largest FEATURE_MAGNITUDE of the others */
	FEATURE_WORDS,		/* words per bin */
	FEATURE_RESOURCES = FEATURE_WORDS + FEATURES_WORDS,
};

/* Features of each resource, behind the others. */
enum {
	FEATURE_COST,		/* cost of a frame, logarithm of seconds */
	FEATURE_USE,		/* use in the last period */
	FEATURE_SMOOTH,		/* use, averaged */
	FEATURE_PART,		/* its averaged use over that of all VMs */
	FEATURE_SUM_COST,	/* of the others: logarithm of the sum of costs */
	FEATURE_MEAN_COST,	/* mean of the logarithms */
	FEATURE_MAX_COST,	/* largest logarithm */
	FEATURE_SUM_USE,
	FEATURE_MEAN_USE,
	FEATURE_MAX_USE,
	FEATURE_SUM_SMOOTH,
	FEATURE_MEAN_SMOOTH,
	FEATURE_MAX_SMOOTH,
	FEATURE_NOW,		/* part that is to be divided */
	FEATURE_IDLE,		/* idle part at present */
	FEATURE_PAST_MEAN,	/* its mean over the past */
	FEATURE_PAST_SLOPE,	/* slope of a line through it, per period */
	FEATURES_PER_RESOURCE,
};

#define LEARN_FEATURES	(FEATURE_RESOURCES + LEARN_RESOURCES * FEATURES_PER_RESOURCE)

/* Place of a feature of a resource. */
#define FEATURE_OF(resource, feature) \
	(FEATURE_RESOURCES + (resource) * FEATURES_PER_RESOURCE + (feature))

/**
 * struct feature_words - what a text has of words and numbers
 * @numbers: how many numbers
 * @magnitude: sum of the logarithms of 1 + number
 * @largest: largest of these logarithms, 0 without numbers
 * @bin: number of words by hash
 */
struct feature_words {
	unsigned int numbers;
	double magnitude;
	double largest;
	unsigned int bin[FEATURES_WORDS];
};

/* Count the words and numbers of a text. */
void feature_words(const char *text, struct feature_words *w);

/* Write the LEARN_FEATURES features of a question. No memory is allocated. */
void learn_features(const struct learn_input *in, float *x);

#endif /* MGPU_LEARN_FEATURE_H */

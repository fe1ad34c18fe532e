/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The response network: its weights, and questions to it.
 * Documentation/learned-network.rst has the formulas.
 */
#ifndef MGPU_LEARN_NETWORK_H
#define MGPU_LEARN_NETWORK_H

#include "learn.h"
#include "words.h"

/* Tests of the gradient compile it with double. */
#ifdef LEARN_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#define NETWORK_MODEL	8				/* width of a word */
#define NETWORK_HEADS	2
#define NETWORK_HEAD	(NETWORK_MODEL / NETWORK_HEADS)
#define NETWORK_INNER	32				/* feed-forward */
#define NETWORK_WIDTH	(LEARN_WORDS * NETWORK_MODEL)	/* of a client */
#define NETWORK_KERNEL	5				/* of the convolution over time */
#define NETWORK_TIMES	(LEARN_CLIENTS + NETWORK_KERNEL - 1)
#define NETWORK_CHANNELS 8
#define NETWORK_POOLED	(NETWORK_CHANNELS / 2)
#define NETWORK_TAPS	9				/* of a 3x3 kernel */

/* The response factor of availability a and need b. */
enum network_form {
	NETWORK_FORM_B,		/* (a + b)^2 (a + b + 1) / (a b) */
	NETWORK_FORM_A,		/* 1 / B, times a learned factor */
	NETWORK_FORM_C,		/* 1 / a + 1 / b */
	NETWORK_FORMS,
};

/**
 * struct network_cnn - weights of a small convolutional network
 * @wide: kernels from the input to each channel
 * @wide_bias: of each channel
 * @narrow: kernel from each pair of channels to the output
 * @narrow_bias: of the output
 */
struct network_cnn {
	real wide[NETWORK_CHANNELS][NETWORK_TAPS];
	real wide_bias[NETWORK_CHANNELS];
	real narrow[NETWORK_POOLED][NETWORK_TAPS];
	real narrow_bias[1];
};

/* All that is learned: only reals, which training treats as one vector. */
struct network_parameters {
	real embedding[LEARN_VOCABULARY][NETWORK_MODEL];
	real position[LEARN_WORDS][NETWORK_MODEL];
	/* attention; a bias of keys would change nothing */
	real query[NETWORK_MODEL][NETWORK_MODEL];
	real query_bias[NETWORK_MODEL];
	real key[NETWORK_MODEL][NETWORK_MODEL];
	real value[NETWORK_MODEL][NETWORK_MODEL];
	real value_bias[NETWORK_MODEL];
	real heads[NETWORK_MODEL][NETWORK_MODEL];
	real heads_bias[NETWORK_MODEL];
	real norm1[NETWORK_MODEL];
	real norm1_bias[NETWORK_MODEL];
	real inner[NETWORK_INNER][NETWORK_MODEL];
	real inner_bias[NETWORK_INNER];
	real outer[NETWORK_MODEL][NETWORK_INNER];
	real outer_bias[NETWORK_MODEL];
	real norm2[NETWORK_MODEL];
	real norm2_bias[NETWORK_MODEL];
	/* time */
	real times[NETWORK_TIMES][LEARN_PAST];
	real times_bias[NETWORK_TIMES];
	real filter[NETWORK_KERNEL];
	real filter_bias[1];
	struct network_cnn clients;
	struct network_cnn distances;
	real gain[LEARN_RESOURCES][NETWORK_WIDTH];	/* of the query, for each resource */
	real factor[1];			/* of form A, as a logarithm */
};

#define NETWORK_PARAMETERS	(sizeof(struct network_parameters) / sizeof(real))
#define NETWORK_MAX_WEIGHT	1000	/* absolute value: no product overflows */
#define NETWORK_MAX_FACTOR	20	/* of the logarithm of form A's factor */

/**
 * struct network_weights - a network
 * @form: how the response factor is computed
 * @p: what was learned, each within NETWORK_MAX_WEIGHT of 0
 */
struct network_weights {
	enum network_form form;
	struct network_parameters p;
};

/**
 * struct network_block - a block of parameters
 * @name: its name in files
 * @offset: first of its reals in struct network_parameters
 * @rows: number of rows
 * @columns: reals of a row
 */
struct network_block {
	const char *name;
	size_t offset;
	size_t rows;
	size_t columns;
};

extern const struct network_block network_blocks[];
extern const size_t network_nr_blocks;

/* Return the letter of a form in files. */
char network_form_letter(enum network_form form);

/**
 * learn_network_write() - make the payload of a file
 * @w: the network
 * @size: bytes of the payload, without the NUL that follows it
 *
 * Return: the payload, for free(); NULL if memory ran out.
 */
char *learn_network_write(const struct network_weights *w, size_t *size);

/**
 * learn_network_serve() - answer for each VM of a group
 * @data: what learn_network.load() made; one thread at a time may use it
 * @in: the group
 * @share: for each of its @in->n VMs the share that learn_network.share() writes if that VM
 *	comes first; most of the work is done once for all of them. No memory is allocated
 */
void learn_network_serve(void *data, const struct learn_input *in,
			 double share[][LEARN_RESOURCES]);

#endif /* MGPU_LEARN_NETWORK_H */

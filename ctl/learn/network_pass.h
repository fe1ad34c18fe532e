/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values on the way through the network, for network.c and network_train.c.
 *
 * Clients are the innermost dimension of the encoder, so that one instruction does the same
 * for several of them. Matrices of the convolutional networks have a border of zeros.
 */
#ifndef MGPU_LEARN_NETWORK_PASS_H
#define MGPU_LEARN_NETWORK_PASS_H

#include "network.h"

/*
 * Loops over vectors are compiled for several processors; the loader chooses. The resolvers
 * run too early for a sanitizer.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
	!defined(__SANITIZE_ADDRESS__)
#define NETWORK_CLONES									\
	__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NETWORK_CLONES
#endif

typedef real lanes[LEARN_CLIENTS];

/* A matrix with a border, and what a kernel reads beyond it. */
#define NETWORK_MARGIN		16
#define NETWORK_STRIDE(width)	((width) + 2)
#define NETWORK_CELLS(width)	((LEARN_CLIENTS + 2) * NETWORK_STRIDE(width))
#define NETWORK_BUFFER(width)	(NETWORK_CELLS(width) + 2 * NETWORK_MARGIN)

/**
 * struct network_question - a question as the network sees it
 * @n: number of clients
 * @word: of each client; the served one is the first, the others are in canonical order
 * @distance: between them
 * @idle: as in struct learn_input
 * @prior: of each client, the logarithm of its weight over the mean
 */
struct network_question {
	size_t n;
	struct learn_word word[LEARN_CLIENTS][LEARN_WORDS];
	float distance[LEARN_CLIENTS][LEARN_CLIENTS];
	float idle[LEARN_RESOURCES][LEARN_PAST];
	float prior[LEARN_CLIENTS];
};

/**
 * struct network_encoder - values in the encoder of clients
 * @mask: 1 for a place of a client that has a word, else 0
 * @x: word and position
 * @query: of each place, as are @key and @value
 * @attention: how much a place looks at another, for each head
 * @head: what the heads see
 * @centred1: before the first norm's weights, with mean 0 and variance 1
 * @scale1: 1 / standard deviation before that
 * @y: after the first norm
 * @inner: after ReLU
 * @centred2: like @centred1, of the second norm
 * @scale2: like @scale1
 * @out: result
 */
struct network_encoder {
	lanes mask[LEARN_WORDS];
	lanes x[LEARN_WORDS][NETWORK_MODEL];
	lanes query[LEARN_WORDS][NETWORK_MODEL];
	lanes key[LEARN_WORDS][NETWORK_MODEL];
	lanes value[LEARN_WORDS][NETWORK_MODEL];
	lanes attention[NETWORK_HEADS][LEARN_WORDS][LEARN_WORDS];
	lanes head[LEARN_WORDS][NETWORK_MODEL];
	lanes centred1[LEARN_WORDS][NETWORK_MODEL];
	lanes scale1[LEARN_WORDS];
	lanes y[LEARN_WORDS][NETWORK_MODEL];
	lanes inner[LEARN_WORDS][NETWORK_INNER];
	lanes centred2[LEARN_WORDS][NETWORK_MODEL];
	lanes scale2[LEARN_WORDS];
	lanes out[LEARN_WORDS][NETWORK_MODEL];
};

/**
 * struct network_wide - values in CNN1
 * @in: clients by width
 * @pooled: after the pooling of pairs of channels
 * @won: 1 where a channel gave the value of its pair, else 0
 * @out: result
 */
struct network_wide {
	real in[NETWORK_BUFFER(NETWORK_WIDTH)];
	real pooled[NETWORK_POOLED][NETWORK_BUFFER(NETWORK_WIDTH)];
	real won[NETWORK_CHANNELS][NETWORK_BUFFER(NETWORK_WIDTH)];
	real out[NETWORK_BUFFER(NETWORK_WIDTH)];
};

/* The same of CNN2: clients by clients. */
struct network_square {
	real in[NETWORK_BUFFER(LEARN_CLIENTS)];
	real pooled[NETWORK_POOLED][NETWORK_BUFFER(LEARN_CLIENTS)];
	real won[NETWORK_CHANNELS][NETWORK_BUFFER(LEARN_CLIENTS)];
	real out[NETWORK_BUFFER(LEARN_CLIENTS)];
};

/**
 * struct network_positive - a vector that was made positive and has mean 1
 * @raw: before
 * @mean: after softplus
 * @value: result
 */
struct network_positive {
	real raw[LEARN_CLIENTS];
	real mean;
	real value[LEARN_CLIENTS];
};

/**
 * struct network_answer - values behind M1 and Mt
 * @times: after the fully connected layer over time
 * @available: v1 of each resource
 * @asked: M1 q of each resource
 * @needed: v3 of each resource
 * @response: v4, times the learned factor
 * @prior: logarithm of each weight over the mean
 * @log_p: logarithm of the probabilities
 */
struct network_answer {
	real times[LEARN_RESOURCES][NETWORK_TIMES];
	struct network_positive available[LEARN_RESOURCES];
	real asked[LEARN_RESOURCES][LEARN_CLIENTS];
	struct network_positive needed[LEARN_RESOURCES];
	real response[LEARN_RESOURCES][LEARN_CLIENTS];
	real prior[LEARN_CLIENTS];
	real log_p[LEARN_RESOURCES][LEARN_CLIENTS];
};

/* All of it. Begins as zeros; borders stay so. */
struct network_pass {
	struct network_encoder e;
	struct network_wide wide;
	struct network_square square;
	struct network_answer a;
};

/* Return where row @r, counted from 0, of a matrix begins. */
static __always_inline size_t network_row(size_t r, size_t width)
{
	return NETWORK_MARGIN + (r + 1) * NETWORK_STRIDE(width) + 1;
}

/* Return how far a tap of a kernel is from its centre. */
static __always_inline ptrdiff_t network_tap(int k, size_t width)
{
	return (k / 3 - 1) * (ptrdiff_t)NETWORK_STRIDE(width) + k % 3 - 1;
}

/* Make the question of the first VM of @in; @order gets the place in @in of each client. */
void network_ask(const struct learn_input *in, struct network_question *q,
		 uint8_t order[LEARN_CLIENTS]);

/* Compute all of @pass but @pass->wide.won and square.won, and those with @train. */
void network_forward(const struct network_weights *w, struct network_question *q,
		     bool train, struct network_pass *pass);

#endif /* MGPU_LEARN_NETWORK_PASS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rates of clients: token buckets in a table of fixed size.  A client that is not in the full
 * table takes the place of the one that was idle for longest, whose bucket is the fullest of all,
 * so that many clients cannot reset the bucket of one that is at its limit.
 */
#ifndef POOL_LIMIT_H
#define POOL_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_CLIENTS	1024
#define LIMIT_WAYS	8	/* places that a client may take */

/**
 * struct limit_client - a bucket
 * @key: hash of the client's name, 0 for none
 * @tokens: what is in it, thousandths; below 0 after a call that took long
 * @ms: when @tokens was true, CLOCK_MONOTONIC
 */
struct limit_client {
	uint64_t key;
	int64_t tokens;
	uint64_t ms;
};

/**
 * struct limit - buckets of all clients
 * @rate: tokens a second
 * @burst: tokens that a bucket holds
 * @seed: makes the place of a client unforeseeable
 * @client: the buckets
 */
struct limit {
	unsigned int rate;
	unsigned int burst;
	uint64_t seed;
	struct limit_client client[LIMIT_CLIENTS];
};

void limit_init(struct limit *limit, unsigned int rate, unsigned int burst);

/**
 * limit_take() - take a token out of a client's bucket
 * @name: the client, of @size bytes
 * @now_ms: CLOCK_MONOTONIC, milliseconds
 *
 * Return: 0, or the seconds until there is a token again, at least 1.
 */
unsigned int limit_take(struct limit *limit, const void *name, size_t size, uint64_t now_ms);

/* The same without taking: 0 if there is a token. */
unsigned int limit_look(struct limit *limit, const void *name, size_t size, uint64_t now_ms);

/**
 * limit_charge() - take more out of a client's bucket for a call that cost much
 * @nr: so many
 *
 * The bucket may be empty by a minute of tokens at most.
 */
void limit_charge(struct limit *limit, const void *name, size_t size, uint64_t now_ms,
		  unsigned int nr);

#endif /* POOL_LIMIT_H */

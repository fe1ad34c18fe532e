/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups: a loop's requests, sent as those of one iteration and what each further iteration adds to
 * words of them.
 */
#ifndef REMOTE_GROUP_H
#define REMOTE_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_BYTES	(16u << 10)	/* of one iteration */
#define GROUP_CALLS	65536u		/* of all iterations */

/**
 * struct group_step - a word that changes from iteration to iteration
 * @word: its number, from the start of the iteration's requests
 * @step: what is added, modulo 2^64
 */
struct group_step {
	uint64_t word;
	uint64_t step;
};

/**
 * struct request_group - requests of a loop
 * @count: iterations
 * @requests: those of the first one, each with its header
 * @size: their bytes
 * @steps: words that change, by ascending numbers
 * @nr_steps: their number
 */
struct request_group {
	uint64_t count;
	const uint8_t *requests;
	uint64_t size;
	const struct group_step *steps;
	uint64_t nr_steps;
};

/**
 * group_check() - find out whether a group is one that a front end sends
 * @g: the group, of which nothing is known
 * @itself: number of the function that executes groups, since none is in another
 *
 * Of a good group the headers are the same in all iterations, but for the numbers of requests; no
 * request in it waits for a reply.
 *
 * Return: its requests in an iteration, or 0.
 */
unsigned int group_check(const struct request_group *g, uint16_t itself);

/* Make the requests of an iteration those of the one that is @iterations later, or earlier. */
void group_move(uint8_t *requests, const struct group_step *steps, uint64_t nr_steps,
		int64_t iterations);

#endif /* REMOTE_GROUP_H */

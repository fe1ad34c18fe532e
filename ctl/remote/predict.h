/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prediction of a loop's requests.  Two iterations are looked at; each word of the third and of all
 * that follow is to differ from that of the iteration before as it did in the second.  Requests
 * that are as predicted need not be kept.
 */
#ifndef REMOTE_PREDICT_H
#define REMOTE_PREDICT_H

#include "group.h"

#define PREDICT_CALLS	64u	/* of an iteration */

enum predict_state {
	PREDICT_FIRST,		/* the first iteration is kept */
	PREDICT_SECOND,		/* the second one is compared with it */
	PREDICT_MATCH,		/* what follows is predicted */
};

/**
 * struct predict - a loop that is being looked at; zeroed it has no request
 * @state: what is done with the next request
 * @nr_calls: requests of an iteration, or those of the first one so far
 * @call: of them the next one
 * @at: its place in @requests
 * @size: bytes of @requests
 * @count: whole iterations that were as predicted, since the last group was taken
 * @steps: words that change
 * @nr_steps: their number
 * @requests: of the iteration, as they are predicted
 */
struct predict {
	enum predict_state state;
	unsigned int nr_calls;
	unsigned int call;
	size_t at;
	size_t size;
	uint64_t count;
	unsigned int nr_steps;
	struct group_step steps[GROUP_BYTES / 8];
	uint8_t requests[GROUP_BYTES] __attribute__((aligned(8)));
};

void predict_reset(struct predict *p);

/* Return whether there are requests that were as predicted, and that no group has yet. */
static inline bool predict_holds(const struct predict *p)
{
	return p->state == PREDICT_MATCH && (p->count || p->call);
}

/* How predict_request() took a request. */
enum predicted {
	PREDICTED_AS_IS,	/* it is as predicted */
	PREDICTED_KEPT,		/* it is not predicted, but sent */
	PREDICTED_WRONG,	/* it differs, or there is no room: nothing was done with it */
};

/**
 * predict_request() - look at a request
 * @p: the loop
 * @request: with its header, aligned to 8 bytes
 * @len: bytes, a multiple of 8
 * @again: it may begin an iteration: the request that the first one began with came from the same
 *	place
 */
enum predicted predict_request(struct predict *p, const uint8_t *request, size_t len, bool again);

/**
 * predict_group() - take the whole iterations that were as predicted
 * @p: the loop, of which @requests are then those of the first one of the group
 * @g: the group
 *
 * After the group is sent, predict_sent() goes on.
 */
void predict_group(struct predict *p, struct request_group *g);
void predict_sent(struct predict *p);

#endif /* REMOTE_PREDICT_H */

// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include <sys/random.h>

#include "checksum.h"
#include "limit.h"

#define TOKEN	1000
#define DEBT_S	60	/* of tokens that may be missing */

void limit_init(struct limit *limit, unsigned int rate, unsigned int burst)
{
	memset(limit, 0, sizeof(*limit));
	limit->rate = rate ? rate : 1;
	limit->burst = burst ? burst : 1;
	if (getrandom(&limit->seed, sizeof(limit->seed), 0) != sizeof(limit->seed))
		limit->seed = CHECKSUM_START;
}

/* Tokens of a bucket now. */
static int64_t tokens(const struct limit *limit, const struct limit_client *c, uint64_t now_ms)
{
	int64_t full = (int64_t)limit->burst * TOKEN, now;
	uint64_t ms = now_ms > c->ms ? now_ms - c->ms : 0;

	if (!c->key || ms >= (uint64_t)full / limit->rate + 1 + DEBT_S * 1000)
		return full;
	now = c->tokens + (int64_t)(ms * limit->rate);
	return now < full ? now : full;
}

/* The client's bucket; else the fullest one of its places. */
static struct limit_client *find(struct limit *limit, uint64_t key, uint64_t now_ms)
{
	size_t way = key % (LIMIT_CLIENTS / LIMIT_WAYS) * LIMIT_WAYS;
	struct limit_client *first = &limit->client[way], *best = first;

	for (struct limit_client *c = first; c < first + LIMIT_WAYS; c++) {
		if (c->key == key)
			return c;
		if (tokens(limit, c, now_ms) > tokens(limit, best, now_ms))
			best = c;
	}
	/* A client that is new in a crowd has no more than the one whose place it takes. */
	best->tokens = tokens(limit, best, now_ms);
	best->ms = now_ms;
	best->key = key;
	return best;
}

static struct limit_client *bucket(struct limit *limit, const void *name, size_t size,
				   uint64_t now_ms)
{
	uint64_t key = checksum_add(CHECKSUM_START ^ limit->seed, name, size) | 1;
	struct limit_client *c = find(limit, key, now_ms);

	c->tokens = tokens(limit, c, now_ms);
	c->ms = now_ms;
	return c;
}

static unsigned int take(struct limit *limit, const void *name, size_t size, uint64_t now_ms,
			 int64_t cost)
{
	struct limit_client *c = bucket(limit, name, size, now_ms);

	if (c->tokens < TOKEN)
		return (unsigned int)((TOKEN - 1 - c->tokens) / limit->rate / 1000) + 1;
	c->tokens -= cost;
	return 0;
}

unsigned int limit_take(struct limit *limit, const void *name, size_t size, uint64_t now_ms)
{
	return take(limit, name, size, now_ms, TOKEN);
}

unsigned int limit_look(struct limit *limit, const void *name, size_t size, uint64_t now_ms)
{
	return take(limit, name, size, now_ms, 0);
}

void limit_charge(struct limit *limit, const void *name, size_t size, uint64_t now_ms,
		  unsigned int nr)
{
	struct limit_client *c = bucket(limit, name, size, now_ms);
	int64_t least = -(int64_t)limit->rate * DEBT_S * TOKEN;

	c->tokens -= (int64_t)nr * TOKEN;
	if (c->tokens < least)
		c->tokens = least;
}

// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include <sys/random.h>

#include "checksum.h"
#include "limit.h"

#define TOKEN	1000

void limit_init(struct limit *limit, unsigned int rate, unsigned int burst)
{
	memset(limit, 0, sizeof(*limit));
	limit->rate = rate ? rate : 1;
	limit->burst = burst ? burst : 1;
	if (getrandom(&limit->seed, sizeof(limit->seed), 0) != sizeof(limit->seed))
		limit->seed = CHECKSUM_START;
}

/* Tokens of a bucket now. */
static uint64_t tokens(const struct limit *limit, const struct limit_client *c, uint64_t now_ms)
{
	uint64_t full = (uint64_t)limit->burst * TOKEN;
	uint64_t ms = now_ms > c->ms ? now_ms - c->ms : 0;

	if (!c->key || ms >= full / limit->rate + 1)
		return full;
	ms = c->tokens + ms * limit->rate;
	return ms < full ? ms : full;
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

static unsigned int take(struct limit *limit, const void *name, size_t size, uint64_t now_ms,
			 uint64_t cost)
{
	uint64_t key = checksum_add(CHECKSUM_START ^ limit->seed, name, size) | 1;
	struct limit_client *c = find(limit, key, now_ms);

	c->tokens = tokens(limit, c, now_ms);
	c->ms = now_ms;
	if (c->tokens < TOKEN)
		return (unsigned int)((TOKEN - 1 - c->tokens) / limit->rate / 1000 + 1);
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

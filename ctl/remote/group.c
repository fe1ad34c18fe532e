// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "group.h"
#include "wire.h"

/* Words of a header, by their numbers from its start. */
#define WORD_LEN	(offsetof(struct remote_request, len) / 8)
#define WORD_SEQ	(offsetof(struct remote_request, seq) / 8)
#define HEADER_WORDS	(sizeof(struct remote_request) / 8)

/* Return whether steps leave a header at word @at alone, but for the request's number. */
static bool keeps_header(const struct request_group *g, uint64_t *step, uint64_t at, uint32_t seq)
{
	for (; *step < g->nr_steps && g->steps[*step].word < at + HEADER_WORDS; (*step)++) {
		uint64_t more = g->steps[*step].step;

		if (g->steps[*step].word < at)
			continue;
		if (g->steps[*step].word != at + WORD_SEQ || more > UINT32_MAX ||
		    more * (g->count - 1) > UINT32_MAX - seq)
			return false;
	}
	return true;
}

unsigned int group_check(const struct request_group *g, uint16_t itself)
{
	struct remote_request h;
	unsigned int calls = 0;
	uint64_t step = 0;

	if (!g->count || g->count > GROUP_CALLS || !g->size || g->size % 8 ||
	    g->size > GROUP_BYTES || g->nr_steps > g->size / 8)
		return 0;
	for (uint64_t i = 0; i < g->nr_steps; i++)
		if (g->steps[i].word >= g->size / 8 ||
		    (i && g->steps[i].word <= g->steps[i - 1].word))
			return 0;
	for (uint64_t at = 0; at < g->size; at += sizeof(h) + h.len, calls++) {
		if (g->size - at < sizeof(h))
			return 0;
		memcpy(&h, g->requests + at, sizeof(h));
		if (h.len % 8 || h.len > g->size - at - sizeof(h) || h.flags ||
		    h.function == itself || !keeps_header(g, &step, at / 8, h.seq))
			return 0;
	}
	return calls * g->count > GROUP_CALLS ? 0 : calls;
}

void group_move(uint8_t *requests, const struct group_step *steps, uint64_t nr_steps,
		int64_t iterations)
{
	for (uint64_t i = 0; i < nr_steps; i++) {
		uint64_t v;

		memcpy(&v, requests + 8 * steps[i].word, 8);
		v += steps[i].step * (uint64_t)iterations;
		memcpy(requests + 8 * steps[i].word, &v, 8);
	}
}

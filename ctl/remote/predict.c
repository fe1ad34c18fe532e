// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "predict.h"
#include "wire.h"

void predict_reset(struct predict *p)
{
	memset(p, 0, offsetof(struct predict, steps));
}

static size_t request_len(const uint8_t *request)
{
	struct remote_request h;

	memcpy(&h, request, sizeof(h));
	return sizeof(h) + h.len;
}

static bool same_call(const uint8_t *request, const uint8_t *other)
{
	struct remote_request a, b;

	memcpy(&a, request, sizeof(a));
	memcpy(&b, other, sizeof(b));
	return a.len == b.len && a.function == b.function && a.flags == b.flags;
}

static enum predicted keep_first(struct predict *p, const uint8_t *request, size_t len)
{
	if (len > GROUP_BYTES - p->size || p->nr_calls == PREDICT_CALLS)
		return PREDICTED_WRONG;
	memcpy(p->requests + p->size, request, len);
	p->size += len;
	p->nr_calls++;
	return PREDICTED_KEPT;
}

/* Note what differs, and have the second iteration's request in the place of the first's. */
static enum predicted keep_second(struct predict *p, const uint8_t *request, size_t len)
{
	uint8_t *before = p->requests + p->at;
	uint64_t a, b;

	if (!same_call(before, request))
		return PREDICTED_WRONG;
	for (size_t i = 0; i < len; i += 8) {
		memcpy(&a, before + i, 8);
		memcpy(&b, request + i, 8);
		if (a != b)
			p->steps[p->nr_steps++] = (struct group_step){
				.word = (p->at + i) / 8, .step = b - a,
			};
	}
	memcpy(before, request, len);
	return PREDICTED_KEPT;
}

/* Return whether it was the last request of an iteration. */
static bool next_call(struct predict *p, size_t len)
{
	p->at += len;
	if (++p->call < p->nr_calls)
		return false;
	p->call = 0;
	p->at = 0;
	group_move(p->requests, p->steps, p->nr_steps, 1);
	return true;
}

enum predicted predict_request(struct predict *p, const uint8_t *request, size_t len, bool again)
{
	if (p->state == PREDICT_FIRST && p->nr_calls && again)
		p->state = PREDICT_SECOND;
	if (p->state == PREDICT_FIRST)
		return keep_first(p, request, len);
	if (p->state == PREDICT_SECOND) {
		if (keep_second(p, request, len) == PREDICTED_WRONG)
			return PREDICTED_WRONG;
		if (next_call(p, len))
			p->state = PREDICT_MATCH;
		return PREDICTED_KEPT;
	}
	if (len != request_len(p->requests + p->at) || memcmp(p->requests + p->at, request, len))
		return PREDICTED_WRONG;
	if (next_call(p, len))
		p->count++;
	return PREDICTED_AS_IS;
}

void predict_group(struct predict *p, struct request_group *g)
{
	group_move(p->requests, p->steps, p->nr_steps, -(int64_t)p->count);
	*g = (struct request_group){
		.count = p->count, .requests = p->requests, .size = p->size,
		.steps = p->steps, .nr_steps = p->nr_steps,
	};
}

void predict_sent(struct predict *p)
{
	group_move(p->requests, p->steps, p->nr_steps, (int64_t)p->count);
	p->count = 0;
}

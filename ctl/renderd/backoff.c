// SPDX-License-Identifier: GPL-2.0-only
/* When the next worker of a vGPU may start. */
#include "backoff.h"

void backoff_started(struct backoff *b, uint64_t now_ms)
{
	b->started_ms = now_ms;
}

uint64_t backoff_ended(struct backoff *b, uint64_t now_ms)
{
	if (now_ms - b->started_ms >= BACKOFF_LIVED_MS) {
		*b = (struct backoff){ .again_ms = now_ms };
		return 0;
	}
	b->short_lives++;
	if (!b->rest_ms)
		b->rest_ms = BACKOFF_MIN_MS;
	else if (b->rest_ms < BACKOFF_MAX_MS / 2)
		b->rest_ms *= 2;
	else
		b->rest_ms = BACKOFF_MAX_MS;
	b->again_ms = b->started_ms + b->rest_ms;
	return b->again_ms > now_ms ? b->again_ms - now_ms : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* When the next worker of a vGPU may start. Pure code: times are parameters. */
#ifndef RENDERD_BACKOFF_H
#define RENDERD_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MIN_MS		1000	/* between two starts, at least */
#define BACKOFF_MAX_MS		60000	/* the same after many short lives */
#define BACKOFF_LIVED_MS	10000	/* a life of this length is not short */

/**
 * struct backoff - pause between the workers of a vGPU; all zeros: none has started
 * @started_ms: time of the last start, or of the last attempt
 * @again_ms: time of the next start at the earliest
 * @rest_ms: pause between the last start and the next one, milliseconds
 * @short_lives: number of workers in a row that ended within BACKOFF_LIVED_MS
 */
struct backoff {
	uint64_t started_ms;
	uint64_t again_ms;
	uint32_t rest_ms;
	uint32_t short_lives;
};

/**
 * backoff_started() - note that a worker starts
 * @b: of its vGPU
 * @now_ms: monotonic time, milliseconds
 */
void backoff_started(struct backoff *b, uint64_t now_ms);

/**
 * backoff_ended() - note that the last worker has ended, or could not start
 * @b: of its vGPU
 * @now_ms: monotonic time, milliseconds
 *
 * After a worker with a short life, the next one starts at the earliest a pause after that
 * worker's start. The pause doubles with each short life, from BACKOFF_MIN_MS to
 * BACKOFF_MAX_MS. Any longer life ends the pauses.
 *
 * Return: time to wait, milliseconds; 0 for none
 */
uint64_t backoff_ended(struct backoff *b, uint64_t now_ms);

#endif /* RENDERD_BACKOFF_H */

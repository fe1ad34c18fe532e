// SPDX-License-Identifier: GPL-2.0-only
/* Measure the time of a decision, in user space, without a device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../ctl/preempt/preempt.h"
#include "preempt.h"

#define SLOTS		2u
#define SNAPSHOTS	64u	/* that differ */
#define BATCH_NS	(100 * US)	/* that one reading of the clock is spread over */

static const unsigned int sizes[] = { 2, 16, 256 };

/* Runs and waits as on a busy device; half of it computes. */
static void make(struct preempt_ctx *c, size_t n, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++) {
		bool runs = i < SLOTS, memory = uniform(seed) < 0.5;
		double inst = 1e6 + 1e8 * uniform(seed);

		c[i] = (struct preempt_ctx){
			.id = i + 1,
			.vgpu = (uint32_t)(i % 8),
			.state = runs ? PREEMPT_RUNNING :
				 uniform(seed) < 0.3 ? PREEMPT_PREEMPTED :
				 PREEMPT_WAITING,
			.class = uniform(seed) < 0.1 ? PREEMPT_UNKNOWN :
				 memory ? PREEMPT_MEMORY : PREEMPT_COMPUTE,
			.held = runs,
			.wanted = 1 + (uniform(seed) < 0.2),
			.ipc = memory ? 0.5 : 2.0,
			.rest_inst = inst,
			.done_inst = runs ? inst * uniform(seed) : 0,
			.miss = memory ? 0.7 : 0.05,
			.bytes = 1024 * (1 + 128 * uniform(seed)),
			.tile_cycles = 3e5,
			.idempotent = uniform(seed) < 0.8,
			.arrival_ns = (uint64_t)(900e6 * uniform(seed)),
			.since_ns = (uint64_t)(900e6 + 100e6 * uniform(seed)),
		};
	}
}

static int measure(struct bench *b, unsigned int waiting, int fd)
{
	const struct preempt_param param = PREEMPT_PARAM_DEFAULT;
	static struct preempt_ctx ctx[SNAPSHOTS][SLOTS + 256];
	static struct preempt_plan plan;
	unsigned int k, i, batch, rounds = b->quick ? 3 : 31;
	double *ns = calloc(rounds * SNAPSHOTS, sizeof(*ns)), instructions = 0, calls = 0;
	uint64_t seed = 3, decisions = 0, t, from;
	struct preempt_norm norm;
	size_t n = 0;
	char text[32] = "null";

	if (!ns)
		return -ENOMEM;
	preempt_norm_cold(&norm);
	for (k = 0; k < SNAPSHOTS; k++)
		make(ctx[k], SLOTS + waiting, &seed);
	batch = (unsigned int)(BATCH_NS / (500 + 30 * (uint64_t)waiting)) + 1;
	for (i = 0; i <= rounds; i++) {
		for (k = 0; k < SNAPSHOTS; k++) {
			const struct preempt_snapshot s = {
				.now_ns = SEC, .slots = SLOTS, .ctx = ctx[k],
				.n = SLOTS + waiting, .norm = &norm,
			};

			from = instructions_read(fd);
			t = now_ns();
			for (unsigned int j = 0; j < batch; j++)
				if (preempt_decide(&preempt_mgpu, &s, &param, &plan)) {
					complain("decide: the snapshot is refused: %s",
						 preempt_snapshot_check(&s));
					free(ns);
					return -EINVAL;
				}
			/* the first round warms up */
			if (i) {
				ns[n++] = (double)(now_ns() - t) / batch;
				instructions += (double)(instructions_read(fd) - from);
				calls += batch;
				decisions += plan.n;
			}
		}
	}
	if (fd >= 0)
		snprintf(text, sizeof(text), "%.0f", instructions / calls);
	result(b, "decide",
	       "\"waiting\": %u, \"ns\": %.0f, \"p10_ns\": %.0f, \"p90_ns\": %.0f, \"instructions\": %s, \"snapshots\": %u, \"samples\": %zu, \"decisions_mean\": %.2f, \"slots\": %u",
	       waiting, stats_median(ns, n), stats_percentile(ns, n, 0.1),
	       stats_percentile(ns, n, 0.9), text, SNAPSHOTS, n,
	       (double)decisions / (double)n, SLOTS);
	free(ns);
	return 0;
}

int part_decide(struct bench *b)
{
	int ret = 0, fd = instructions_open();

	for (size_t i = 0; i < ARRAY_LEN(sizes) && !ret; i++)
		ret = measure(b, sizes[i], fd);
	if (fd >= 0)
		close(fd);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulator's clairvoyant as a policy of mgpud's preempter: it knows the jobs' times
 * alone and the future arrivals, and reads the jobs' places from the device.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "play.h"

/*
 * It looks an eighth as far as in the simulator: here its search takes time of the
 * processors that are the slots.
 */
#define HORIZON_MS	20.0

/* A policy is a function of its snapshot: the rest of what it knows is here. */
static struct {
	const struct play *play;
	struct psim_stream *stream;
	struct psim_setup setup;
	struct psim_sharing sharing;
	struct psim_oracle *oracle;
	uint64_t start_ns;
	uint64_t took_ns;
	unsigned long decisions;
	size_t job[PREEMPT_CTX_MAX];
	double done[PREEMPT_CTX_MAX];
} o;

double play_oracle_horizon_ms(void)
{
	return HORIZON_MS;
}

static void fill(struct psim_stream *to, const struct play *p)
{
	to->n = p->n;
	for (size_t i = 0; i < p->n; i++) {
		const struct line *l = &p->line[i];
		double cycles = l->alone_ns * 1e-9 * PSIM_HZ;

		to->job[i] = (struct psim_job){
			.arrival = (double)l->at_ns * 1e-9 * PSIM_HZ,
			.vgpu = l->guest->id,
			.kind = l->job.cmd.op,
			.size = (double)l->job.bytes,
			.width = l->width,
			.inst = cycles * l->width,
			.ipc = 1,
			.bound = play_memory(&l->job),
			.miss = play_memory(&l->job),
			.bytes = l->job.live,
			.tile = cycles * l->width / l->job.tiles,
			.idempotent = l->job.idempotent,
		};
	}
}

int play_simulated(const struct play *p, const struct speeds *s, const struct preempt_ops *ops,
		   const struct preempt_param *param, unsigned int slots, double *norm_ipc)
{
	const struct psim_setup setup = {
		.policy = ops == &play_clairvoyant ? NULL : ops,
		.param = *param,
		.truth = { .a = 0, .b = s->cost },
		.slots = slots,
		.sharing = &s->sharing,
		.horizon = PSIM_HORIZON / 4 * p->stretch,
	};
	struct psim_stream *stream = calloc(1, sizeof(*stream));
	struct psim_result r;
	int ret;

	if (!stream)
		return -ENOMEM;
	fill(stream, p);
	ret = psim_run(stream, &setup, &r);
	*norm_ipc = ret ? 0 : r.norm_ipc;
	free(stream);
	return ret;
}

int play_oracle_open(const struct play *p, const struct speeds *s,
		     const struct preempt_param *param, unsigned int slots)
{
	o.play = p;
	o.took_ns = 0;
	o.decisions = 0;
	o.sharing = s->sharing;
	o.setup = (struct psim_setup){
		.param = *param,
		.truth = { .a = 0, .b = s->cost },
		.slots = slots,
		.sharing = &o.sharing,
		.horizon = HORIZON_MS * 1e-3 * p->stretch * PSIM_HZ,
	};
	o.setup.param.cost = o.setup.truth;
	o.stream = calloc(1, sizeof(*o.stream));
	if (!o.stream)
		return -ENOMEM;
	fill(o.stream, p);
	o.oracle = psim_oracle_new(o.stream, &o.setup);
	if (o.oracle)
		return 0;
	free(o.stream);
	return -ENOMEM;
}

void play_oracle_start(uint64_t start_ns)
{
	__atomic_store_n(&o.start_ns, start_ns, __ATOMIC_RELEASE);
}

double play_oracle_close(unsigned long *decisions)
{
	*decisions = o.decisions;
	psim_oracle_free(o.oracle);
	free(o.stream);
	o.oracle = NULL;
	o.stream = NULL;
	return o.decisions ? (double)o.took_ns / 1e6 / (double)o.decisions : 0;
}

static void decide(const struct preempt_snapshot *s, const struct preempt_param *p,
		   struct preempt_plan *plan)
{
	uint64_t t = now_ns(), start = __atomic_load_n(&o.start_ns, __ATOMIC_ACQUIRE);
	double now = s->now_ns > start ? (double)(s->now_ns - start) : 0;
	size_t next = 0, i;

	(void)p;
	plan->n = 0;
	if (!start)
		return;
	while (next < o.play->n && (double)o.play->line[next].at_ns <= now)
		next++;
	for (i = 0; i < s->n; i++) {
		/* a context's number is that of its line, from 1 */
		size_t line = (uint32_t)s->ctx[i].id - 1u;
		const struct psim_job *j;

		o.job[i] = PSIM_NO_JOB;
		if (line >= next)
			continue;
		j = &o.stream->job[line];
		o.job[i] = line;
		o.done[i] = fmin(s->ctx[i].done_inst / (double)o.play->line[line].job.inst,
				 1) * j->inst;
	}
	psim_oracle_decide(o.oracle, s, o.job, o.done, now * 1e-9 * PSIM_HZ, next, plan);
	o.took_ns += now_ns() - t;
	o.decisions++;
}

const struct preempt_ops play_clairvoyant = {
	.name = PSIM_CLAIRVOYANT,
	.summary = "knows what jobs take and what is still to come",
	.decide = decide,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure the cost of a job beside its work: CPU time of the engine's thread, less
 * the accounted engine time, for 1 to 1,024 vGPUs that all have work; with
 * the BPF programs and without.
 */
#include <errno.h>
#include <stdio.h>

#include "sched.h"

#define JOB_DIM		16	/* pixels: nearly all of it is overhead */
#define COMMANDS	4096	/* in all rings together, at most */
#define MAX_DEPTH	32
#define MIN_DEPTH	4
#define SETTLE_NS	(200 * MS)
#define ROUNDS		2

static const unsigned int vgpus[] = { 1, 4, 16, 64, 256, 1024 };

#define NR		ARRAY_LEN(vgpus)

struct sum {
	double thread_ns;
	double engine_ns;
	double self_ns;
	double jobs;
	double kicks;
	double seconds;
};

struct reading {
	uint64_t at;
	uint64_t thread_ns;
	uint64_t self_ns;
	uint64_t engine_ns;
	uint64_t jobs;
	uint64_t kicks;
};

/* Read the device's own totals: one message, however many vGPUs there are. */
static int read_all(struct bench *b, unsigned int n, struct reading *r)
{
	struct nl_dev d;
	int ret;

	ret = nl_dev_get(&b->nl, VMM_PARENT, &d);
	r->thread_ns = engine_cpu_ns();
	r->engine_ns = d.engine_ns;
	r->jobs = bench_answers(b, n);
	r->kicks = bench_kicks(b, n);
	r->self_ns = self_cpu_ns();
	r->at = now_ns();
	return ret;
}

static int measure(struct bench *b, unsigned int n, struct sum *s)
{
	struct reading from, to;
	unsigned int i, depth = COMMANDS / n;
	int ret = 0;

	/* More would only take longer to drain. */
	depth = depth > MAX_DEPTH ? MAX_DEPTH :
		depth < MIN_DEPTH ? MIN_DEPTH : depth;
	for (i = 0; i < n && !ret; i++)
		ret = machine_load(&b->m[i], depth, JOB_DIM, JOB_DIM);
	if (!ret) {
		bench_pump(b, n, now_ns() + SETTLE_NS);
		ret = read_all(b, n, &from);
	}
	if (!ret) {
		bench_pump(b, n, now_ns() + (b->quick ? SEC / 5 : SEC));
		ret = read_all(b, n, &to);
	}
	if (bench_stop(b, n) || ret)
		return ret ? ret : -EIO;
	s->thread_ns += (double)(to.thread_ns - from.thread_ns);
	s->engine_ns += (double)(to.engine_ns - from.engine_ns);
	s->self_ns += (double)(to.self_ns - from.self_ns);
	s->jobs += (double)(to.jobs - from.jobs);
	s->kicks += (double)(to.kicks - from.kicks);
	s->seconds += (double)(to.at - from.at) / 1e9;
	return 0;
}

static void report(struct bench *b, unsigned int n, bool bpf,
		   const struct sum *s)
{
	if (s->jobs <= 0)
		return;
	result(b, "cost",
	       "\"vgpus\": %u, \"bpf\": \"%s\", \"ns_per_job\": %.0f, \"engine_ns_per_job\": %.0f, \"client_cpu_ns_per_job\": %.0f, \"jobs_per_s\": %.0f, \"engine_thread_busy\": %.4f, \"doorbells_per_job\": %.4f",
	       n, bpf ? "attached" : "detached",
	       (s->thread_ns - s->engine_ns) / s->jobs, s->engine_ns / s->jobs,
	       s->self_ns / s->jobs, s->jobs / s->seconds,
	       s->thread_ns / 1e9 / s->seconds, s->kicks / s->jobs);
}

int part_cost(struct bench *b)
{
	struct sum sums[2][NR] = { { { 0 } } };
	size_t k, steps = NR, turn;
	int ret, bpf;

	while (steps > 1 && vgpus[steps - 1] > b->max)
		steps--;
	ret = bench_open(b, vgpus[steps - 1], JOB_DIM, JOB_DIM);

	/* Without, with, with, without. */
	for (turn = 0; turn < 2 * ROUNDS && !ret; turn++) {
		bpf = turn % 4 == 1 || turn % 4 == 2;
		if (!bpf)
			bench_detach(b);
		else if (bench_attach(b))
			continue;
		for (k = 0; k < steps && !ret; k++)
			ret = measure(b, vgpus[k], &sums[bpf][k]);
	}
	for (bpf = 0; bpf < 2 && !ret; bpf++)
		for (k = 0; k < steps; k++)
			report(b, vgpus[k], bpf, &sums[bpf][k]);
	return ret;
}

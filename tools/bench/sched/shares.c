// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivered engine time against what was promised, over windows of 1 s and of
 * 100 ms.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched.h"
#include "../common/stats.h"

#define MAX_VGPUS	64
#define DEPTH		64
#define SAMPLE_NS	(100 * MS)
#define WINDOW		10		/* samples to 1 s */
#define SETTLE_NS	(500 * MS)
#define WEIGHT		100		/* of each vGPU when all are equal */
#define TRIES		3		/* when the bench was late too often */

#define BIG_W		1024		/* ten base jobs in one */
#define BIG_H		640
#define NR_BIG		2		/* machines whose screen is so large */

/**
 * struct shares - a case
 * @name: it
 * @policies: under which it runs, separated by blanks
 * @n: vGPUs
 * @by: weight of each, or its gpu_limit in percent; 0 in the first: all equal
 * @limit: it is the gpu_limit
 * @period_ms: the gpu_period, 0 for the module's own
 * @idle: weight of one more vGPU that does nothing
 * @big: machines whose jobs are ten times larger, by number from bit 0 on
 * @wall: targets are parts of the engines' time, not of what was delivered
 */
struct shares {
	const char *name;
	const char *policies;
	unsigned int n;
	unsigned int by[8];
	bool limit;
	unsigned int period_ms;
	unsigned int idle;
	unsigned int big;
	bool wall;
};

static const struct shares cases[] = {
	{ .name = "30/70", .policies = "weighted fixed",
	  .n = 2, .by = { 30, 70 } },
	{ .name = "1/2/4/8", .policies = "weighted fixed",
	  .n = 4, .by = { 1, 2, 4, 8 } },
	{ .name = "10/20/30/40", .policies = "weighted",
	  .n = 4, .by = { 10, 20, 30, 40 } },
	{ .name = "2 equal", .policies = "equal", .n = 2 },
	{ .name = "8 equal", .policies = "equal", .n = 8 },
	{ .name = "64 equal", .policies = "equal fixed", .n = 64 },
	{ .name = "30/70, 30 with jobs ten times larger",
	  .policies = "weighted", .n = 2, .by = { 30, 70 }, .big = 1 },
	{ .name = "30/70, 70 with jobs ten times larger",
	  .policies = "weighted", .n = 2, .by = { 30, 70 }, .big = 2 },
	{ .name = "2 equal, one with jobs ten times larger",
	  .policies = "equal", .n = 2, .big = 1 },
	{ .name = "15/35, 50 idle", .policies = "fixed",
	  .n = 2, .by = { 15, 35 }, .idle = 50, .wall = true },
	{ .name = "gpu_limit 21 %/49 %", .policies = "best-effort",
	  .n = 2, .by = { 21, 49 }, .limit = true, .wall = true },
	{ .name = "gpu_limit 21 %/49 %, gpu_period 10 ms",
	  .policies = "best-effort", .n = 2, .by = { 21, 49 }, .limit = true,
	  .period_ms = 10, .wall = true },
	{ .name = "gpu_limit 15 %/35 %", .policies = "best-effort",
	  .n = 2, .by = { 15, 35 }, .limit = true, .wall = true },
};

struct run {
	uint64_t *at_ns;
	uint64_t *engine_ns;
	uint64_t *jobs;		/* first and last, of each vGPU */
	bool *dry;		/* since the reading before, a VM had no work */
	double *targets;
};

static void targets(const struct shares *c, double *t)
{
	unsigned int i, sum = c->idle;

	for (i = 0; i < c->n; i++)
		sum += c->by[0] ? c->by[i] : 1;
	for (i = 0; i < c->n; i++)
		t[i] = (c->by[0] ? c->by[i] : 1.0) / (c->limit ? 100 : sum);
}

/* Settings of one; 0 for the limit takes it away. */
static int set(struct bench *b, const struct shares *c, unsigned int i,
	       unsigned int limit)
{
	int64_t period_us = c->period_ms ? c->period_ms * 1000 :
				MGPU_GPU_PERIOD_DEFAULT;

	if (c->limit)
		return bench_set(b, &b->m[i], WEIGHT, NL_KEEP, limit * 10000,
				 period_us);
	return bench_set(b, &b->m[i], c->by[0] ? c->by[i] : WEIGHT, NL_KEEP,
			 NL_KEEP, NL_KEEP);
}

/* Settings of all, and the load of those that work. */
static int begin(struct bench *b, const struct shares *c)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < c->n && !ret; i++)
		ret = set(b, c, i, c->by[0] ? c->by[i] : 0);
	if (!ret && c->idle)
		ret = bench_set(b, &b->m[c->n], c->idle, NL_KEEP, NL_KEEP,
				NL_KEEP);
	for (i = 0; i < c->n && !ret; i++)
		ret = machine_load(&b->m[i], DEPTH,
				   c->big >> i & 1 ? BIG_W : BENCH_BASE_W,
				   c->big >> i & 1 ? BIG_H : BENCH_BASE_H);
	return ret;
}

static int end(struct bench *b, const struct shares *c)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < c->n && c->limit && !ret; i++)
		ret = set(b, c, i, 0);
	return ret ? ret : bench_stop(b, c->n);
}

static void sample(struct bench *b, const struct shares *c, struct run *r,
		   size_t nr)
{
	unsigned int i;

	r->at_ns[nr] = now_ns();
	for (i = 0; i < c->n; i++)
		bench_usage(b, &b->m[i], &r->engine_ns[nr * c->n + i],
			    nr ? &r->jobs[c->n + i] : &r->jobs[i]);
}

/* Appends a number to a list. */
static void list(char *to, size_t room, const char *fmt, double v)
{
	size_t at = strlen(to);

	if (at)
		at += (size_t)snprintf(to + at, room - at, ", ");
	snprintf(to + at, room - at, fmt, v);
}

static int report(struct bench *b, const struct shares *c, const char *policy,
		  const struct run *r, const struct stats_run *s,
		  uint64_t kicks)
{
	const uint64_t *last = &r->engine_ns[(s->samples - 1) * c->n];
	unsigned int i, basis = c->wall ? 1 : 0;
	struct stats_err sec, tenth, all_sec, all_tenth;
	uint64_t ns, sum_ns = 0, sum_jobs = 0, jobs;
	char got[256] = "", each[256] = "";
	struct stats_run all = *s;
	double secs;
	int ret;

	all.spoilt = NULL;
	ret = stats_shares(&all, WINDOW, r->targets, basis, &all_sec);
	if (!ret)
		ret = stats_shares(&all, 1, r->targets, basis, &all_tenth);
	if (ret)
		return ret;
	if (stats_shares(s, 1, r->targets, basis, &tenth) ||
	    stats_shares(s, WINDOW, r->targets, basis, &sec) ||
	    sec.windows < (all_sec.windows + 1) / 2) {
		complain("%s, %s: the machine is so busy that VMs were often without work",
			 c->name, policy);
		return -EAGAIN;
	}
	for (i = 0; i < c->n; i++) {
		ns = last[i] - r->engine_ns[i];
		jobs = r->jobs[c->n + i] - r->jobs[i];
		sum_ns += ns;
		sum_jobs += jobs;
		if (c->n > 8)
			continue;
		list(got, sizeof(got), "%.3f", stats_share(s, i, basis) * 100);
		list(each, sizeof(each), "%.1f",
		     jobs ? (double)ns / 1e3 / (double)jobs : 0);
	}
	if (c->n > 8 && sum_jobs)
		list(each, sizeof(each), "%.1f",
		     (double)sum_ns / 1e3 / (double)sum_jobs);
	secs = (double)(s->at_ns[s->samples - 1] - s->at_ns[0]) / 1e9;
	result(b, "shares",
	       "\"case\": \"%s\", \"policy\": \"%s\", \"share_of\": \"%s\", \"err_1s_pp\": %.3f, \"err_100ms_pp\": %.3f, \"err_1s_median_pp\": %.3f, \"err_100ms_p95_pp\": %.3f, \"err_100ms_median_pp\": %.3f, \"windows_1s\": %zu, \"windows_100ms\": %zu, \"err_1s_all_pp\": %.3f, \"err_100ms_all_pp\": %.3f, \"windows_1s_all\": %zu, \"windows_100ms_all\": %zu, \"shares_pct\": [%s], \"job_us\": [%s], \"job_kib\": [%u, %u], \"jobs_per_s\": %.0f, \"engine_busy\": %.4f, \"doorbells_per_job\": %.4f",
	       c->name, policy, c->wall ? "engine" : "delivered", sec.max_pp,
	       tenth.max_pp, sec.median_pp, tenth.p95_pp, tenth.median_pp,
	       sec.windows, tenth.windows, all_sec.max_pp, all_tenth.max_pp,
	       all_sec.windows, all_tenth.windows, got, each,
	       BENCH_BASE_W * BENCH_BASE_H * 4 / 1024,
	       c->big ? BIG_W * BIG_H * 4 / 1024 :
			BENCH_BASE_W * BENCH_BASE_H * 4 / 1024,
	       (double)sum_jobs / secs, (double)sum_ns / 1e9 / secs,
	       sum_jobs ? (double)kicks / (double)sum_jobs : 0);
	return 0;
}

static int measure(struct bench *b, const struct shares *c, const char *policy)
{
	size_t samples = (b->quick ? 1 : 6) * WINDOW + 1, i;
	struct run r = {
		.at_ns = calloc(samples, sizeof(*r.at_ns)),
		.engine_ns = calloc(samples * c->n, sizeof(*r.engine_ns)),
		.jobs = calloc(2 * c->n, sizeof(*r.jobs)),
		.dry = calloc(samples, sizeof(*r.dry)),
		.targets = calloc(c->n, sizeof(*r.targets)),
	};
	struct stats_run s = {
		c->n, samples, r.at_ns, r.engine_ns, r.dry
	};
	uint64_t at, kicks = 0, dry;
	int ret = -ENOMEM;

	if (!r.at_ns || !r.engine_ns || !r.jobs || !r.dry || !r.targets)
		goto out;
	targets(c, r.targets);
	ret = begin(b, c);
	if (ret)
		goto stop;
	at = now_ns() + SETTLE_NS;
	bench_pump(b, c->n, at);
	kicks = bench_kicks(b, c->n);
	for (i = 0; i < samples; i++) {
		dry = bench_dry(b, c->n);
		if (i)
			bench_pump(b, c->n, at + i * SAMPLE_NS);
		sample(b, c, &r, i);
		r.dry[i] = bench_dry(b, c->n) != dry;
	}
	kicks = bench_kicks(b, c->n) - kicks;
stop:
	ret = end(b, c) ? -EIO : ret;
	if (!ret)
		ret = report(b, c, policy, &r, &s, kicks);
out:
	free(r.at_ns);
	free(r.engine_ns);
	free(r.jobs);
	free(r.dry);
	free(r.targets);
	return ret;
}

static int try_to_measure(struct bench *b, const struct shares *c,
			  const char *policy)
{
	int ret = -EAGAIN, try;

	for (try = 0; try < TRIES && ret == -EAGAIN; try++)
		ret = measure(b, c, policy);
	return ret;
}

/* The vGPUs that a case uses, and no others: fixed shares count all. */
static int people(struct bench *b, const struct shares *c)
{
	unsigned int want = c->n + !!c->idle, i;
	int ret = bench_create(b, want);

	for (i = want; i < b->max; i++)
		machine_remove(&b->m[i]);
	for (i = 0; i < want && !ret; i++)
		if (!b->m[i].open)
			ret = machine_open(&b->m[i],
					   i < NR_BIG ? BIG_W : BENCH_BASE_W,
					   i < NR_BIG ? BIG_H : BENCH_BASE_H);
	return ret;
}

int part_shares(struct bench *b)
{
	char names[64], *policy, *rest;
	int ret, failed = 0;
	size_t i;

	/* The normal case; and counters that can be read all at once. */
	ret = bench_attach(b);
	if (ret)
		complain("shares: without the BPF programs the counters of many vGPUs are not read at one moment");
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		if (cases[i].n + !!cases[i].idle > b->max)
			continue;
		snprintf(names, sizeof(names), "%s", cases[i].policies);
		for (policy = strtok_r(names, " ", &rest); policy;
		     policy = strtok_r(NULL, " ", &rest)) {
			ret = people(b, &cases[i]);
			if (!ret)
				ret = bench_policy(b, policy);
			if (!ret)
				ret = try_to_measure(b, &cases[i], policy);
			if (!ret)
				continue;
			failed = ret;
			result(b, "shares",
			       "\"case\": \"%s\", \"policy\": \"%s\", \"failed\": \"%s\"",
			       cases[i].name, policy, strerror(-ret));
			/* Buffers that are still in a ring go with its machine. */
			bench_close(b, 0);
		}
	}
	bench_policy(b, "weighted");
	return failed;
}

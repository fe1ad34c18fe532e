// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure a switch: from the decision to the newcomer's first tile, and its engine
 * time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preempt.h"

#define TRACING		"/sys/kernel/tracing/instances/mgpu_bench"

#define VICTIM		1u
#define NEIGHBOUR	2u
#define NEWCOMER	3u

#define SAMPLES		90	/* for each kind of victim */
#define PAIRS		31
#define TAKES		40	/* of a run with preemptions, at most */
#define APART_NS	(300 * US)	/* beside a tile, from one request to the next */

#define IN		(64 * MIB)
#define OUT		(192 * MIB)
#define AT_NEIGHBOUR	(96 * MIB)
#define AT_NEWCOMER	(OUT - 4096)

/* By what is live on a slot. */
static const struct job_shape victims[] = {
	{ MGPU_COMPUTE_COPY, 1, 0, 1 },			/* nothing */
	{ MGPU_COMPUTE_GATHER, 1, 0, 1 },		/* 8 bytes */
	{ MGPU_COMPUTE_MANDELBROT, 1, 1023, 1 },	/* 8 KiB */
	{ MGPU_COMPUTE_MANDELBROT, 1, 4095, 1 },	/* 32 KiB */
	{ MGPU_COMPUTE_MATMUL, 1, 0, 1 },		/* 128 bytes for each row */
};

#define NR	ARRAY_LEN(victims)

/* ---- the module's events ---- */

static int trace_write(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TRACING "/%s", file);
	return sysfs_write(path, text);
}

static int trace_begin(const struct guest *g)
{
	char filter[32];
	int ret;

	if (mkdir(TRACING, 0700) && errno != EEXIST) {
		complain("cannot make %s: %s", TRACING, strerror(errno));
		return -errno;
	}
	snprintf(filter, sizeof(filter), "vgpu == %u", g->id);
	ret = trace_write("trace_clock", "mono");
	if (!ret)
		ret = trace_write("buffer_size_kb", "2048");
	if (!ret)
		ret = trace_write("events/mgpu/mgpu_job_start/filter", filter);
	if (!ret)
		ret = trace_write("events/mgpu/mgpu_job_submit/filter", filter);
	if (!ret)
		ret = trace_write("events/mgpu/mgpu_job_submit/enable", "1");
	if (!ret)
		ret = trace_write("events/mgpu/mgpu_job_start/enable", "1");
	if (!ret)
		ret = trace_write("trace", "");
	if (ret)
		complain("cannot trace mgpu_job_start: %s", strerror(-ret));
	return ret;
}

static void trace_end(void)
{
	trace_write("events/mgpu/mgpu_job_start/enable", "0");
	trace_write("events/mgpu/mgpu_job_submit/enable", "0");
	rmdir(TRACING);
}

/* The time of an event: "... [001] d..2. 123.456789: mgpu_...". */
static uint64_t time_of(const char *line, const char *event)
{
	const char *p = event;
	double t;

	while (p > line && (p[-1] == ' ' || p[-1] == ':'))
		p--;
	while (p > line && p[-1] != ' ')
		p--;
	t = strtod(p, NULL);
	return (uint64_t)(t * 1e9);
}

/*
 * When each job of @bytes was first on an engine, in the order in which they were
 * submitted; then the trace is empty.
 */
static size_t trace_starts(uint64_t bytes, uint64_t *at, size_t max)
{
	char line[512], *e, *p;
	uint64_t job = 0;
	bool started = true;
	size_t n = 0;
	FILE *f = fopen(TRACING "/trace", "r");

	while (f && n < max && fgets(line, sizeof(line), f)) {
		e = strstr(line, "mgpu_job_submit:");
		if (e) {
			p = strstr(e, "bytes=");
			if (!p || strtoull(p + 6, NULL, 10) != bytes)
				continue;
			p = strstr(e, "job=");
			job = p ? strtoull(p + 4, NULL, 10) : 0;
			started = !job;
			continue;
		}
		e = started ? NULL : strstr(line, "mgpu_job_start:");
		p = e ? strstr(e, "job=") : NULL;
		if (!p || strtoull(p + 4, NULL, 10) != job)
			continue;
		at[n++] = time_of(line, e);
		started = true;
	}
	if (f)
		fclose(f);
	trace_write("trace", "");
	return n;
}

/* ---- how fast this machine is ---- */

/*
 * A shape that takes about so long on one slot, or as long as fits; @tile_us gets a
 * tile's time.
 */
static int shape_for(struct bench *b, struct guest *g, struct job_shape *s, double ms,
		     double *tile_us)
{
	struct mgpu_ctx from, to;
	double units = 4e5, ns;
	struct job j;
	int ret;

	for (;;) {
		s->units = units;
		ret = job_make(&j, s, 0, g->in_size, AT_NEIGHBOUR);
		if (!ret)
			ret = bench_ctx(b, g, VICTIM, &from);
		if (!ret)
			ret = guest_run(g, VICTIM, &j);
		if (!ret)
			ret = bench_ctx(b, g, VICTIM, &to);
		if (ret)
			return ret;
		ns = (double)(to.engine_ns - from.engine_ns);
		*tile_us = ns / 1e3 / j.tiles;
		s->units = 4 * units;
		if (ns > 20e6 || job_make(&j, s, 0, g->in_size, AT_NEIGHBOUR))
			break;
		units *= 4;
	}
	s->units = units * ms * 1e6 / ns;
	while (s->units > units && job_make(&j, s, 0, g->in_size, AT_NEIGHBOUR))
		s->units *= 0.8;
	return 0;
}

/* ---- from the decision to the newcomer's first tile ---- */

struct long_job {
	uint32_t ctx;
	struct job job;
	int head;
};

/* Has a slot; submitted again if it had ended. */
static int keep_going(struct bench *b, struct guest *g, struct long_job *l)
{
	int ret, answer;

	if (l->head >= 0 && guest_done(g, l->head, &answer)) {
		l->head = -1;
		if (answer)
			return answer;
	}
	if (l->head < 0) {
		l->head = guest_submit(g, l->ctx, &l->job);
		if (l->head < 0)
			return l->head;
	}
	ret = bench_wait_running(b, g, l->ctx, l->head);
	return ret == -ENODATA ? 0 : ret;
}

static int finish(struct bench *b, struct guest *g, struct long_job *l)
{
	int ret = 0;

	bench_resume(b, g, l->ctx);
	if (l->head >= 0)
		ret = guest_wait(g, l->head);
	l->head = -1;
	return ret;
}

/* Make an attempt; 1 when the newcomer's slot was the victim's, else 0. */
static int attempt(struct bench *b, struct guest *g, const struct job *newcomer,
		   uint64_t *seed, uint64_t *decided)
{
	struct mgpu_ctx before, c;
	int head, ret, asked, answer;

	head = guest_submit(g, NEWCOMER, newcomer);
	if (head < 0)
		return head;
	/* Wait until it is in the queue, and the victim anywhere in a tile. */
	do {
		ret = bench_ctx(b, g, NEWCOMER, &c);
		if (ret || guest_done(g, head, &answer))
			return ret ? ret : answer;	/* a slot was free */
	} while (c.state != MGPU_CTX_STATE_WAITING);
	sleep_until(now_ns() + (uint64_t)(uniform(seed) * 5e6));
	ret = bench_ctx(b, g, VICTIM, &before);
	if (ret)
		return ret;
	*decided = now_ns();
	asked = bench_preempt(b, g, VICTIM, 0, MGPU_PREEMPT_METHOD_SWITCH, false);
	ret = guest_wait(g, head);
	if (!ret)
		ret = bench_resume(b, g, VICTIM);
	if (!ret)
		ret = bench_ctx(b, g, VICTIM, &c);
	if (ret)
		return ret;
	return !asked && before.slots && c.preemptions > before.preemptions;
}

static int latencies(struct bench *b, struct guest *g, const struct job_shape *shape,
		     double tile_us, double *us, size_t *n, size_t want)
{
	const struct job_shape tiny = { MGPU_COMPUTE_FILL, 1, 0, 1 };
	struct job_shape beside = { MGPU_COMPUTE_MANDELBROT, 0, 255, 1 };
	struct long_job victim = { .ctx = VICTIM, .head = -1 };
	struct long_job neighbour = { .ctx = NEIGHBOUR, .head = -1 };
	uint64_t *decided = calloc(2 * want, sizeof(*decided));
	uint64_t *started = calloc(2 * want, sizeof(*started));
	bool *good = calloc(2 * want, sizeof(*good));
	uint64_t seed = 11;
	size_t tries, got = 0, i, first = *n;
	double p50, p99, ignored;
	struct job newcomer;
	int ret = -ENOMEM;

	if (!decided || !started || !good)
		goto out;
	ret = job_make(&victim.job, shape, 0, g->in_size, AT_NEIGHBOUR);
	if (!ret)
		ret = shape_for(b, g, &beside, 2000, &ignored);
	if (!ret)
		ret = job_make(&neighbour.job, &beside, AT_NEIGHBOUR, g->in_size,
			       AT_NEWCOMER);
	if (!ret)
		ret = job_make(&newcomer, &tiny, AT_NEWCOMER, g->in_size, g->out_size);
	if (!ret)
		ret = trace_begin(g);
	for (tries = 0; !ret && tries < 2 * want && got < want; tries++) {
		ret = keep_going(b, g, &neighbour);
		if (!ret)
			ret = keep_going(b, g, &victim);
		if (!ret)
			ret = attempt(b, g, &newcomer, &seed, &decided[tries]);
		if (ret < 0)
			break;
		good[tries] = ret;
		got += (size_t)ret;
		ret = 0;
	}
	if (!ret && trace_starts(newcomer.bytes, started, tries) != tries) {
		complain("the trace does not have all newcomers");
		ret = -EIO;
	}
	for (i = 0; !ret && i < tries; i++)
		if (good[i] && started[i] > decided[i])
			us[(*n)++] = (double)(started[i] - decided[i]) / 1e3;
	trace_end();
	if (finish(b, g, &victim) || finish(b, g, &neighbour))
		ret = ret ? ret : -EIO;
	if (!ret && *n == first) {
		complain("switch: no newcomer got a slot from the victim");
		ret = -ENODATA;
	}
	if (!ret) {
		double *part = malloc((*n - first) * sizeof(*part));

		if (part) {
			memcpy(part, us + first, (*n - first) * sizeof(*part));
			p50 = stats_median(part, *n - first);
			p99 = stats_percentile(part, *n - first, 0.99);
			result(b, "switch_latency",
			       "\"op\": \"%s\", \"live_bytes\": %u, \"tile_us\": %.0f, \"samples\": %zu, \"p50_us\": %.0f, \"p99_us\": %.0f",
			       mgpu_ctx_op_name(shape->op), victim.job.live, tile_us, *n - first,
			       p50, p99);
		}
		free(part);
	}
out:
	free(decided);
	free(started);
	free(good);
	return ret;
}

/* ---- engine time ---- */

struct run {
	double engine_ns;
	double switch_ns;
	double takes;
};

/*
 * The job, with slots taken again and again; or with as many requests at the same
 * distances that take nothing.
 */
static int run_once(struct bench *b, struct guest *g, const struct job *j, bool preempted,
		    double tile_us, struct run *r)
{
	uint64_t tile_ns = (uint64_t)(tile_us * 1e3);
	int ret, head, answer = 0, i;
	bool done = false;
	struct mgpu_ctx from, to;

	ret = bench_ctx(b, g, VICTIM, &from);
	if (ret)
		return ret;
	head = guest_submit(g, VICTIM, j);
	if (head < 0)
		return head;
	for (i = 0; i < TAKES && !done; i++) {
		sleep_until(now_ns() + tile_ns + APART_NS);
		if (preempted)
			bench_preempt(b, g, VICTIM, 0, MGPU_PREEMPT_METHOD_SWITCH, true);
		else
			bench_resume(b, g, VICTIM);
		/* asleep, so that the processors are as idle in both */
		sleep_until(now_ns() + tile_ns + APART_NS);
		bench_resume(b, g, VICTIM);
		done = guest_done(g, head, &answer);
	}
	ret = done ? answer : guest_wait(g, head);
	if (!ret)
		ret = bench_ctx(b, g, VICTIM, &to);
	if (ret)
		return ret;
	r->engine_ns = (double)(to.engine_ns - from.engine_ns);
	r->switch_ns = (double)(to.switch_ns - from.switch_ns);
	r->takes = (double)(to.preemptions - from.preemptions);
	return 0;
}

static int costs(struct bench *b, struct guest *g, const struct job_shape *shape,
		 double tile_us, double *us, double *copy_us, size_t *n,
		 unsigned int pairs)
{
	struct run r[2] = { { 0 } };
	size_t first = *n;
	double takes = 0, own[PAIRS], copied[PAIRS];
	struct job j;
	unsigned int i, k;
	int ret;

	ret = job_make(&j, shape, 0, g->in_size, AT_NEIGHBOUR);
	for (i = 0; i < pairs && !ret; i++) {
		/* which is first takes turns */
		for (k = 0; k < 2 && !ret; k++)
			ret = run_once(b, g, &j, (k ^ i) & 1, tile_us, &r[(k ^ i) & 1]);
		if (ret || !r[1].takes)
			continue;
		us[*n] = (r[1].engine_ns - r[0].engine_ns) / r[1].takes / 1e3;
		copy_us[(*n)++] = r[1].switch_ns / r[1].takes / 1e3;
		takes += r[1].takes;
	}
	if (!ret && *n == first) {
		complain("switch: no slot was taken from %s", mgpu_ctx_op_name(shape->op));
		ret = -ENODATA;
	}
	if (ret)
		return ret;
	memcpy(own, us + first, (*n - first) * sizeof(*own));
	memcpy(copied, copy_us + first, (*n - first) * sizeof(*own));
	result(b, "switch_cost",
	       "\"op\": \"%s\", \"live_bytes\": %u, \"job_ms\": %.1f, \"pairs\": %zu, \"takes\": %.0f, \"cost_us\": %.1f, \"cost_p25_us\": %.1f, \"cost_p75_us\": %.1f, \"copy_us\": %.1f",
	       mgpu_ctx_op_name(shape->op), j.live, r[0].engine_ns / 1e6, *n - first, takes,
	       stats_median(own, *n - first), stats_percentile(own, *n - first, 0.25),
	       stats_percentile(own, *n - first, 0.75),
	       stats_median(copied, *n - first));
	return 0;
}

int part_switch(struct bench *b)
{
	unsigned int pairs = b->quick ? 2 : PAIRS;
	size_t want = b->quick ? 8 : SAMPLES, n = 0, nr_costs = 0, i;
	double us[NR * 2 * SAMPLES], cost[NR * PAIRS], copy[NR * PAIRS], tile_us[NR];
	struct job_shape shape[NR];
	struct guest g;
	int ret;

	ret = guest_open(b, &g, IN, OUT);
	if (ret)
		return ret;
	for (i = VICTIM; i <= NEWCOMER && !ret; i++)
		ret = guest_context(&g, (uint32_t)i);
	for (i = 0; i < NR && !ret; i++) {
		/* of those with little or nothing live one is enough */
		if (!i)
			continue;
		shape[i] = victims[i];
		ret = shape_for(b, &g, &shape[i], 100, &tile_us[i]);
		if (!ret)
			ret = costs(b, &g, &shape[i], tile_us[i], cost, copy, &nr_costs,
				    pairs);
	}
	for (i = 0; i < NR && !ret; i++) {
		shape[i] = victims[i];
		ret = shape_for(b, &g, &shape[i], 1500, &tile_us[i]);
		if (!ret)
			ret = latencies(b, &g, &shape[i], tile_us[i], us, &n, want);
	}
	guest_close(&g);
	if (ret)
		return ret;
	result(b, "switch",
	       "\"p50_us\": %.0f, \"p99_us\": %.0f, \"cost_us\": %.1f, \"copy_us\": %.1f, \"samples\": %zu, \"pairs\": %zu",
	       stats_median(us, n), stats_percentile(us, n, 0.99),
	       stats_median(cost, nr_costs), stats_median(copy, nr_costs), n, nr_costs);
	return 0;
}

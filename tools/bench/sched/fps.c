// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure how exactly fps_limit is kept, as the module shows frames (its own event,
 * mgpu_frame) and as the VM gets its answers; alone, and with a neighbour that
 * keeps the engine busy.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sched.h"
#include "../common/stats.h"

#define TRACING		"/sys/kernel/tracing/instances/mgpu_bench"
#define MAX_FRAMES	4096
#define DEPTH		2	/* frames that the client has ready */
#define FLOOD_DEPTH	64
#define SKIP		4	/* answers that came while tracing was set up */

/* ---- the module's event ---- */

static int trace_write(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), TRACING "/%s", file);
	return sysfs_write(path, text);
}

static int trace_begin(const struct machine *m)
{
	char filter[32];
	int ret;

	if (mkdir(TRACING, 0700) && errno != EEXIST) {
		complain("cannot make %s: %s", TRACING, strerror(errno));
		return -errno;
	}
	snprintf(filter, sizeof(filter), "vgpu == %u", m->id);
	ret = trace_write("trace_clock", "mono");
	if (!ret)
		ret = trace_write("buffer_size_kb", "512");
	if (!ret)
		ret = trace_write("events/mgpu/mgpu_frame/filter", filter);
	if (!ret)
		ret = trace_write("trace", "");
	if (!ret)
		ret = trace_write("events/mgpu/mgpu_frame/enable", "1");
	if (ret)
		complain("cannot trace mgpu_frame: %s", strerror(-ret));
	return ret;
}

/* Intervals from the second frame on; the first one's reaches back too far. */
static size_t trace_end(uint64_t *interval_ns, size_t max)
{
	char line[512], *p;
	bool first = true;
	size_t n = 0;
	FILE *f;

	trace_write("events/mgpu/mgpu_frame/enable", "0");
	f = fopen(TRACING "/trace", "r");
	while (f && n < max && fgets(line, sizeof(line), f)) {
		p = strstr(line, "interval_ns=");
		if (!p)
			continue;
		if (!first)
			interval_ns[n++] = strtoull(p + 12, NULL, 10);
		first = false;
	}
	if (f)
		fclose(f);
	rmdir(TRACING);
	return n;
}

/* ---- the client: waits for its interrupts ---- */

struct client {
	pthread_t thread;
	struct machine *m;
	uint64_t until_ns;
	uint64_t *interval_ns;
	size_t n;
	unsigned int skip;
};

static void *client(void *arg)
{
	struct client *c = arg;
	uint64_t last = 0, now;
	unsigned int got;

	while (now_ns() < c->until_ns) {
		irq_wait(c->m->vm.irq[VMM_CONTROL + 1], 100);
		got = machine_reap(c->m);
		if (!got)
			continue;
		if (c->skip) {
			c->skip -= got < c->skip ? got : c->skip;
			continue;
		}
		now = now_ns();
		/* Two at once: the first one's time is not known. */
		if (last && c->n + got <= MAX_FRAMES) {
			while (--got)
				c->interval_ns[c->n++] = 0;
			c->interval_ns[c->n++] = now - last;
		}
		last = now;
	}
	return NULL;
}

/* ---- a case ---- */

static void report(struct bench *b, unsigned int fps, const char *load,
		   const uint64_t *frames, size_t n, const struct client *c)
{
	struct stats_pace at, seen;

	if (stats_pace(frames, n, fps, &at) ||
	    stats_pace(c->interval_ns, c->n, fps, &seen)) {
		result(b, "fps",
		       "\"target\": %u, \"load\": \"%s\", \"failed\": \"no frames\"",
		       fps, load);
		return;
	}
	result(b, "fps",
	       "\"target\": %u, \"load\": \"%s\", \"rate_err\": %.7f, \"p50_dev_us\": %.1f, \"p99_dev_us\": %.1f, \"max_dev_us\": %.1f, \"frames\": %zu, \"client_rate_err\": %.7f, \"client_p50_dev_us\": %.1f, \"client_p99_dev_us\": %.1f",
	       fps, load, at.rate_err, at.p50_dev_us, at.p99_dev_us,
	       at.max_dev_us, n, seen.rate_err, seen.p50_dev_us,
	       seen.p99_dev_us);
}

static int measure(struct bench *b, unsigned int fps, bool flood)
{
	const uint64_t length = b->quick ? SEC : 10 * SEC;
	uint64_t *frames = calloc(MAX_FRAMES, sizeof(*frames));
	struct client c = {
		.m = &b->m[0],
		.interval_ns = calloc(MAX_FRAMES, sizeof(*c.interval_ns)),
	};
	int ret = -ENOMEM;
	size_t n = 0;

	if (!frames || !c.interval_ns)
		goto out;
	ret = bench_set(b, c.m, NL_KEEP, fps * 1000, NL_KEEP, NL_KEEP);
	if (!ret && flood)
		ret = machine_load(&b->m[1], FLOOD_DEPTH, BENCH_BASE_W,
				   BENCH_BASE_H);
	if (!ret)
		ret = machine_load(c.m, DEPTH, BENCH_BASE_W, BENCH_BASE_H);
	if (ret)
		goto stop;

	/* Its first frames, and the flood's. */
	c.until_ns = now_ns() + SEC / 2;
	client(&c);
	c.n = 0;
	c.skip = SKIP;
	ret = trace_begin(c.m);
	if (ret)
		goto stop;
	c.until_ns = now_ns() + length + length / 50;
	ret = -pthread_create(&c.thread, NULL, client, &c);
	if (!ret) {
		/* From the second machine on: the first one is the client's. */
		struct bench rest = *b;

		rest.m = &b->m[1];
		bench_pump(&rest, flood ? 1 : 0, c.until_ns);
		pthread_join(c.thread, NULL);
	}
	n = trace_end(frames, MAX_FRAMES);
stop:
	bench_set(b, c.m, NL_KEEP, 0, NL_KEEP, NL_KEEP);
	ret = bench_stop(b, 2) ? -EIO : ret;
	if (!ret)
		report(b, fps, flood ? "flood" : "idle", frames, n, &c);
out:
	free(frames);
	free(c.interval_ns);
	return ret;
}

int part_fps(struct bench *b)
{
	static const unsigned int fps[] = { 30, 60 };
	int ret, flood;
	size_t i;

	ret = bench_open(b, 2, BENCH_BASE_W, BENCH_BASE_H);
	bench_attach(b);
	for (flood = 0; flood < 2; flood++)
		for (i = 0; i < ARRAY_LEN(fps) && !ret; i++)
			ret = measure(b, fps[i], flood);
	return ret;
}

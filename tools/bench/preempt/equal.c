// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random preemptions of the contexts of two vGPUs on two slots: every job's result
 * against that of the same job undisturbed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preempt.h"

#define GUESTS		2u
#define EACH		3u		/* contexts of a guest */
#define CTXS		(GUESTS * EACH)

#define TAKEN		10200u		/* slots that are to be taken */
#define TAKEN_QUICK	100u
#define LIMIT_NS	(170 * SEC)

#define IN		(8 * MIB)
#define AREA		(4 * MIB)	/* of a context's result */

/* Units: some tiles of each. */
static const struct job_shape shapes[] = {
	{ MGPU_COMPUTE_FILL, 500e3, 0, 0 },
	{ MGPU_COMPUTE_COPY, 400e3, 0, 1 },
	{ MGPU_COMPUTE_COPY, 500e3, 0, 0 },
	{ MGPU_COMPUTE_SCALE, 3e6, 0, 0 },
	{ MGPU_COMPUTE_MATMUL, 3.4e6, 0, 0 },
	{ MGPU_COMPUTE_MATMUL, 4e6, 0, 1 },
	{ MGPU_COMPUTE_MANDELBROT, 4e6, 1023, 0 },
	{ MGPU_COMPUTE_MANDELBROT, 3e6, 4095, 1 },
	{ MGPU_COMPUTE_HASH, 1e6, 0, 0 },
	{ MGPU_COMPUTE_GATHER, 400e3, 0, 0 },
	{ MGPU_COMPUTE_GATHER, 200e3, 16, 1 },
	{ MGPU_COMPUTE_ACCUMULATE, 400e3, 0, 1 },
	{ MGPU_COMPUTE_ACCUMULATE, 500e3, 0, 0 },
};

#define NR	ARRAY_LEN(shapes)

/* A context and the job that it has. */
struct busy {
	struct guest *g;
	uint32_t ctx;
	size_t at;
	size_t shape;
	struct job job;
	int head;
};

struct all {
	struct guest g[GUESTS];
	struct busy c[CTXS];
	uint8_t *want[NR];
	uint64_t seed;
	uint64_t jobs, differ, requests, asked[3], refused;
};

/* Of all contexts, by the kernel. */
struct counts {
	uint64_t taken, resumed, flushed;
};

/* ACCUMULATE adds to it; the others write it all. */
static void before(uint8_t *p, size_t n, bool sums)
{
	if (sums)
		for (size_t i = 0; i < n / 8; i++)
			((uint64_t *)p)[i] = i * 0x9e3779b97f4a7c15ull;
	else
		memset(p, 0x5a, n);
}

static int start(struct busy *c, size_t shape)
{
	int ret;

	c->shape = shape;
	ret = job_make(&c->job, &shapes[shape], c->at, c->g->in_size, c->at + AREA);
	if (ret) {
		complain("equal_bytes: job %zu does not fit", shape);
		return ret;
	}
	before(c->g->out + c->at, c->job.out, !c->job.idempotent);
	c->head = guest_submit(c->g, c->ctx, &c->job);
	return c->head < 0 ? c->head : 0;
}

/* Each job once, with nothing beside it. */
static int references(struct all *a)
{
	struct busy *c = &a->c[0];
	int ret;

	for (size_t i = 0; i < NR; i++) {
		ret = start(c, i);
		if (!ret)
			ret = guest_wait(c->g, c->head);
		if (ret)
			return ret;
		a->want[i] = malloc(c->job.out);
		if (!a->want[i])
			return -ENOMEM;
		memcpy(a->want[i], c->g->out + c->at, c->job.out);
	}
	return 0;
}

static int next_job(struct all *a, struct busy *c)
{
	return start(c, (size_t)(uniform(&a->seed) * NR));
}

static void compare(struct bench *b, struct all *a, struct busy *c)
{
	const uint8_t *got = c->g->out + c->at, *want = a->want[c->shape];
	size_t i = 0;

	a->jobs++;
	if (!memcmp(got, want, c->job.out))
		return;
	a->differ++;
	while (got[i] == want[i])
		i++;
	result(b, "equal_bytes_differ",
	       "\"op\": \"%s\", \"slots\": %u, \"byte\": %zu, \"of\": %zu, \"vgpu\": %u, \"ctx\": %u",
	       mgpu_ctx_op_name(c->job.cmd.op), c->job.cmd.slots, i, c->job.out, c->g->id,
	       c->ctx);
}

/* Pick a context, preferably with slots; the list is that of a moment ago. */
static size_t pick(struct all *a, const struct mgpu_ctx *list, size_t n)
{
	size_t run[CTXS], nr = 0, i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < CTXS; k++)
			if (list[i].slots && list[i].vgpu_id == a->c[k].g->id &&
			    list[i].id == a->c[k].ctx)
				run[nr++] = k;
	if (nr && uniform(&a->seed) < 0.9)
		return run[(size_t)(uniform(&a->seed) * (double)nr)];
	return (size_t)(uniform(&a->seed) * CTXS);
}

/* Take slots from a random context, give them back, or leave it alone. */
static void disturb(struct bench *b, struct all *a, const struct mgpu_ctx *list, size_t n)
{
	struct busy *c = &a->c[pick(a, list, n)];
	double what = uniform(&a->seed);
	enum mgpu_preempt_method method;
	uint32_t keep;
	bool hold;

	if (what < 0.1) {
		bench_resume(b, a->c[(size_t)(what * 10 * CTXS)].g,
			     a->c[(size_t)(what * 10 * CTXS)].ctx);
		return;
	}
	method = what < 0.70 ? MGPU_PREEMPT_METHOD_SWITCH :
		 what < 0.85 ? MGPU_PREEMPT_METHOD_DRAIN : MGPU_PREEMPT_METHOD_FLUSH;
	keep = method != MGPU_PREEMPT_METHOD_FLUSH && uniform(&a->seed) < 0.3;
	hold = uniform(&a->seed) < 0.3;
	a->requests++;
	/* no job at the moment, or one that cannot be flushed */
	if (bench_preempt(b, c->g, c->ctx, keep, method, hold)) {
		a->refused++;
		return;
	}
	a->asked[method]++;
	if (!hold && uniform(&a->seed) < 0.5)
		return;
	/* for some tiles, or not even for one; a held job would never end */
	if (uniform(&a->seed) < 0.5)
		sleep_until(now_ns() + (uint64_t)(uniform(&a->seed) * 1e6));
	bench_resume(b, c->g, c->ctx);
}

static int counters(struct bench *b, struct counts *n, struct mgpu_ctx **list, size_t *nr)
{
	struct mgpu_error err = { 0 };
	int ret;

	free(*list);
	*list = NULL;
	ret = mgpu_ctx_dump(b->mgpu, NULL, list, nr, &err);
	if (ret) {
		complain("equal_bytes: %s", err.text);
		return ret;
	}
	memset(n, 0, sizeof(*n));
	for (size_t i = 0; i < *nr; i++) {
		const struct mgpu_ctx *c = &(*list)[i];

		n->taken += c->preemptions;
		n->resumed += c->resumes;
		n->flushed += c->flushes;
		if (!c->job_errors)
			continue;
		complain("equal_bytes: %llu jobs failed", (unsigned long long)c->job_errors);
		return -EIO;
	}
	return 0;
}

static int torment(struct bench *b, struct all *a, uint64_t want, struct counts *n)
{
	uint64_t end = now_ns() + LIMIT_NS;
	struct mgpu_ctx *list = NULL;
	int ret = 0, answer;
	size_t nr = 0;

	for (size_t i = 0; i < CTXS && !ret; i++)
		ret = next_job(a, &a->c[i]);
	while (!ret && n->taken < want && now_ns() < end) {
		ret = counters(b, n, &list, &nr);
		if (!ret)
			disturb(b, a, list, nr);
		for (size_t i = 0; i < CTXS && !ret; i++) {
			struct busy *c = &a->c[i];

			if (!guest_done(c->g, c->head, &answer))
				continue;
			if (!answer)
				compare(b, a, c);
			ret = answer ? answer : next_job(a, c);
		}
	}
	for (size_t i = 0; i < CTXS; i++)
		bench_resume(b, a->c[i].g, a->c[i].ctx);
	for (size_t i = 0; i < CTXS && !ret; i++) {
		ret = guest_wait(a->c[i].g, a->c[i].head);
		if (!ret)
			compare(b, a, &a->c[i]);
	}
	if (!ret)
		ret = counters(b, n, &list, &nr);
	free(list);
	return ret;
}

int part_equal_bytes(struct bench *b)
{
	uint64_t want = b->quick ? TAKEN_QUICK : TAKEN, t = now_ns();
	struct counts n = { 0 };
	struct all *a = calloc(1, sizeof(*a));
	int ret = 0;

	if (!a)
		return -ENOMEM;
	a->seed = 7;
	for (size_t i = 0; i < GUESTS && !ret; i++)
		ret = guest_open(b, &a->g[i], IN, EACH * AREA);
	for (size_t i = 0; i < CTXS && !ret; i++) {
		struct busy *c = &a->c[i];

		c->g = &a->g[i % GUESTS];
		c->ctx = 1 + (uint32_t)(i / GUESTS);
		c->at = i / GUESTS * AREA;
		ret = guest_context(c->g, c->ctx);
	}
	if (!ret)
		ret = references(a);
	if (!ret)
		ret = torment(b, a, want, &n);
	if (!ret)
		result(b, "equal_bytes",
		       "\"tried\": %llu, \"differ\": %llu, \"jobs\": %llu, \"requests\": %llu, \"refused\": %llu, \"switch\": %llu, \"drain\": %llu, \"flush\": %llu, \"resumed\": %llu, \"begun_anew\": %llu, \"seconds\": %.1f",
		       (unsigned long long)n.taken, (unsigned long long)a->differ,
		       (unsigned long long)a->jobs, (unsigned long long)a->requests,
		       (unsigned long long)a->refused,
		       (unsigned long long)a->asked[MGPU_PREEMPT_METHOD_SWITCH],
		       (unsigned long long)a->asked[MGPU_PREEMPT_METHOD_DRAIN],
		       (unsigned long long)a->asked[MGPU_PREEMPT_METHOD_FLUSH],
		       (unsigned long long)n.resumed, (unsigned long long)n.flushed,
		       (double)(now_ns() - t) / 1e9);
	if (!ret && a->differ) {
		complain("equal_bytes: %llu of %llu jobs had other results",
			 (unsigned long long)a->differ, (unsigned long long)a->jobs);
		ret = -EILSEQ;
	}
	if (!ret && n.taken < (b->quick ? TAKEN_QUICK : 10000)) {
		complain("equal_bytes: only %llu slots were taken in %llu s",
			 (unsigned long long)n.taken, (unsigned long long)(LIMIT_NS / SEC));
		ret = -ETIME;
	}
	for (size_t i = 0; i < GUESTS; i++)
		guest_close(&a->g[i]);
	for (size_t i = 0; i < NR; i++)
		free(a->want[i]);
	free(a);
	return ret;
}

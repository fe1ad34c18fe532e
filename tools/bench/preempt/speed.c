// SPDX-License-Identifier: GPL-2.0-only
/* Measure this machine's speed of operations, alone and beside each other. */
#include <errno.h>
#include <math.h>

#include "../../../ctl/mgpud/contexts/ctx_view.h"
#include "play.h"

#define CTX_A		1u
#define CTX_B		2u
#define ENOUGH_NS	30e6	/* engine time of a measurement */
#define PAIR_MS		60.0
#define BESIDE_MS	240.0
#define BESIDE_JOBS	12u
#define REPEAT		5u

/*
 * The streams' kinds as operations, by what bounds them. A kind of the stream that
 * is not idempotent need not be so here, and the other way round.
 */
static const struct job_shape kinds[PLAY_KINDS] = {
	[1] = { MGPU_COMPUTE_MATMUL, 0, 0, 0 },		/* products of matrices */
	[2] = { MGPU_COMPUTE_MANDELBROT, 0, 4095, 0 },	/* fractals */
	[3] = { MGPU_COMPUTE_HASH, 0, 0, 0 },		/* digests */
	[4] = { MGPU_COMPUTE_MANDELBROT, 0, 1023, 0 },	/* simulations */
	[5] = { MGPU_COMPUTE_COPY, 0, 0, 0 },		/* copies */
	[6] = { MGPU_COMPUTE_GATHER, 0, 22, 0 },	/* random walks, 32 MiB */
	[7] = { MGPU_COMPUTE_ACCUMULATE, 0, 0, 0 },	/* sums in place */
	[8] = { MGPU_COMPUTE_SCALE, 0, 0, 0 },		/* pictures */
};

/* Those that stand for a class when pairs are measured. */
static const uint32_t of_class[2][2] = { { 1, 2 }, { 6, 7 } };
static const char *const class_name[2] = { "compute", "memory" };

const struct job_shape *play_kind(uint32_t kind)
{
	return kind && kind < PLAY_KINDS ? &kinds[kind] : NULL;
}

bool play_memory(const struct job *j)
{
	return (double)j->bytes >= PREEMPT_THRESHOLD *
	       ((double)j->bytes + CTX_BALANCE * (double)j->inst);
}

static int make(struct job *j, uint32_t kind, double units, size_t at, struct guest *g)
{
	struct job_shape s = kinds[kind];

	s.units = units;
	s.slots = 1;
	return job_make(j, &s, at, g->in_size, g->out_size);
}

/* Engine time of one run, nanoseconds per work unit. */
static int speed(struct bench *b, struct guest *g, const struct job *j, double *ns_unit,
		 double *ns)
{
	struct mgpu_ctx from, to;
	int ret;

	ret = bench_ctx(b, g, CTX_A, &from);
	if (!ret)
		ret = guest_run(g, CTX_A, j);
	if (!ret)
		ret = bench_ctx(b, g, CTX_A, &to);
	if (ret)
		return ret;
	*ns = (double)(to.engine_ns - from.engine_ns);
	*ns_unit = *ns / (double)(to.inst - from.inst);
	return 0;
}

static int calibrate(struct bench *b, struct guest *g, uint32_t kind, double *ns_unit)
{
	double units = 4e5, ns = 0, v[3];
	struct job j, larger;
	size_t i;
	int ret;

	for (;;) {
		ret = make(&j, kind, units, 0, g);
		if (!ret)
			ret = speed(b, g, &j, ns_unit, &ns);
		if (ret || ns > ENOUGH_NS || make(&larger, kind, 3 * units, 0, g))
			break;
		units *= 3;
	}
	for (i = 0; i < ARRAY_LEN(v) && !ret; i++)
		ret = speed(b, g, &j, &v[i], &ns);
	if (ret)
		return ret;
	*ns_unit = stats_median(v, ARRAY_LEN(v));
	stream_result(b, "speed",
		      "\"kind\": %u, \"op\": \"%s\", \"class\": \"%s\", \"ns_per_unit\": %.4f, \"tile_us\": %.0f, \"live_bytes\": %u",
		      kind, mgpu_ctx_op_name(kinds[kind].op), class_name[play_memory(&j)],
		      *ns_unit, ns / j.tiles / 1e3, j.live);
	return 0;
}

static int sized(struct job *j, const struct speeds *s, uint32_t kind, double ms, size_t at,
		 struct guest *g)
{
	double units = ms * 1e6 / s->ns_unit[kind];
	int ret = make(j, kind, units, at, g);

	while (ret == -ERANGE && units > 1) {
		units *= 0.8;
		ret = make(j, kind, units, at, g);
	}
	return ret;
}

/* Speed of kind @a beside kind @c, as a part of its speed alone just before. */
static int beside(struct bench *b, struct guest *g, const struct speeds *s, uint32_t a,
		  uint32_t c, double *norm)
{
	double alone, shared, ns, left = BESIDE_MS * 1e6;
	int ret, head[BESIDE_JOBS], answer = 0;
	struct job ja, jc;
	size_t n = 0;

	ret = sized(&ja, s, a, PAIR_MS, 0, g);
	if (!ret)
		ret = sized(&jc, s, c, BESIDE_MS, g->out_size / 2, g);
	if (!ret)
		ret = speed(b, g, &ja, &alone, &ns);
	if (ret)
		return ret;
	/* those that cannot be as long as that several times */
	for (; n < BESIDE_JOBS && left > 0; left -= (double)jc.inst * s->ns_unit[c]) {
		head[n] = guest_submit(g, CTX_B, &jc);
		if (head[n] < 0)
			return head[n];
		n++;
	}
	ret = bench_wait_running(b, g, CTX_B, head[n - 1]);
	if (!ret)
		ret = speed(b, g, &ja, &shared, &ns);
	*norm = ret ? 0 : alone / shared;
	while (n)
		answer |= guest_wait(g, head[--n]);
	return answer ? -EIO : ret;
}

static int pairs(struct bench *b, struct guest *g, struct speeds *s)
{
	unsigned int repeat = b->quick ? 1 : REPEAT;
	double v[2][2][4 * REPEAT], any, median;
	size_t n[2][2] = { { 0 } };
	int ret = 0;

	/* all of them in turn, so that none has a quiet machine for itself */
	for (unsigned int r = 0; r < repeat && !ret; r++)
		for (unsigned int k = 0; k < 16 && !ret; k++) {
			unsigned int x = k & 1, y = k >> 1 & 1;

			ret = beside(b, g, s, of_class[x][k >> 2 & 1],
				     of_class[y][k >> 3 & 1], &v[x][y][n[x][y]]);
			n[x][y]++;
		}
	for (unsigned int x = 0; x < 2 && !ret; x++)
		for (unsigned int y = 0; y < 2; y++) {
			median = stats_median(v[x][y], n[x][y]);
			s->norm[x][y] = median;
			stream_result(b, "pair",
				      "\"of\": \"%s\", \"beside\": \"%s\", \"norm\": %.4f, \"p25\": %.4f, \"p75\": %.4f, \"samples\": %zu",
				      class_name[x], class_name[y], median,
				      stats_percentile(v[x][y], n[x][y], 0.25),
				      stats_percentile(v[x][y], n[x][y], 0.75), n[x][y]);
		}
	if (ret)
		return ret;
	/* jobs are bound by one or the other, so that psim_norm() is the table */
	any = ((1 / s->norm[0][1] - 1) + (1 / s->norm[1][0] - 1)) / 2;
	s->sharing.any = fmax(any, 0);
	s->sharing.compute = fmax(1 / s->norm[0][0] - 1 - s->sharing.any, 0);
	s->sharing.memory = fmax(1 / s->norm[1][1] - 1 - s->sharing.any, 0);
	return 0;
}

/* Measure the time to save and restore a byte. */
static int copying(struct bench *b, struct guest *g, struct speeds *s)
{
	struct mgpu_ctx from, to;
	struct job j;
	int ret, head;

	ret = sized(&j, s, 1, BESIDE_MS, 0, g);
	if (!ret)
		ret = bench_ctx(b, g, CTX_A, &from);
	if (ret)
		return ret;
	head = guest_submit(g, CTX_A, &j);
	if (head < 0)
		return head;
	for (unsigned int i = 0; i < 20; i++) {
		sleep_until(now_ns() + 3 * MS);
		bench_preempt(b, g, CTX_A, 0, MGPU_PREEMPT_METHOD_SWITCH, true);
		sleep_until(now_ns() + 3 * MS);
		bench_resume(b, g, CTX_A);
	}
	ret = guest_wait(g, head);
	if (!ret)
		ret = bench_ctx(b, g, CTX_A, &to);
	if (ret)
		return ret;
	if (to.preemptions == from.preemptions) {
		complain("streams: no slot was taken from %s", mgpu_ctx_op_name(j.cmd.op));
		return -ENODATA;
	}
	s->cost = (double)(to.switch_ns - from.switch_ns) * 1e-9 * PSIM_HZ /
		((double)(to.preemptions - from.preemptions) * j.live);
	return 0;
}

int speeds_measure(struct bench *b, struct guest *g, struct speeds *s)
{
	int ret;

	ret = guest_context(g, CTX_A);
	if (!ret)
		ret = guest_context(g, CTX_B);
	for (uint32_t k = 1; k < PLAY_KINDS && !ret; k++)
		ret = calibrate(b, g, k, &s->ns_unit[k]);
	if (!ret)
		ret = copying(b, g, s);
	if (!ret)
		ret = pairs(b, g, s);
	if (!ret)
		ret = guest_context_end(g, CTX_A);
	return ret ? ret : guest_context_end(g, CTX_B);
}

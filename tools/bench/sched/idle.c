// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what idle neighbours cost an active vGPU: its rate with 0, 63 and
 * 1,023 of them open and started, in turns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sched.h"
#include "../common/stats.h"

#define DEPTH		64
#define ROUNDS		7
#define JOB_W		256	/* 64 KiB: short enough to show what is between */
#define JOB_H		64
#define SETTLE_NS	(200 * MS)
#define PIECE_NS	(50 * MS)
#define PIECES		20	/* in a turn */

static const unsigned int neighbours[] = { 0, 63, 1023 };

#define NR		ARRAY_LEN(neighbours)

/* Neighbours have no picture: as VMs whose guest has not drawn yet. */
static int company(struct bench *b, unsigned int n)
{
	unsigned int i;
	int ret = 0;

	for (i = 1; i < b->max && !ret; i++) {
		if (i > n)
			machine_close(&b->m[i]);
		else if (!b->m[i].open)
			ret = machine_open(&b->m[i], 0, 0);
	}
	return ret;
}

/* Jobs per second in each of some short pieces of time. */
static int rates(struct bench *b, unsigned int pieces, double *to)
{
	uint64_t n, from, at;
	unsigned int i;
	int ret;

	ret = machine_load(&b->m[0], DEPTH, JOB_W, JOB_H);
	if (ret)
		return ret;
	bench_pump(b, 1, now_ns() + SETTLE_NS);
	at = now_ns();
	for (i = 0; i < pieces; i++) {
		from = at;
		n = b->m[0].answers;
		bench_pump(b, 1, from + PIECE_NS);
		at = now_ns();
		to[i] = (double)(b->m[0].answers - n) * 1e9 /
			(double)(at - from);
	}
	return machine_stop(&b->m[0]);
}

static void report(struct bench *b, size_t k, double *v, size_t n,
		   double alone, double none)
{
	double mid = stats_median(v, n);

	result(b, "idle",
	       "\"neighbours\": %u, \"loss\": %.5f, \"jobs_per_s\": %.1f, \"jobs_per_s_p25\": %.1f, \"jobs_per_s_p75\": %.1f, \"jobs_per_s_none_made\": %.1f, \"pieces\": %zu, \"piece_ms\": %llu, \"job_kib\": %u",
	       neighbours[k], 1 - mid / alone, mid,
	       stats_percentile(v, n, 0.25), stats_percentile(v, n, 0.75), none,
	       n, PIECE_NS / MS, JOB_W * JOB_H * 4 / 1024);
}

int part_idle(struct bench *b)
{
	const unsigned int pieces = b->quick ? 4 : PIECES;
	const unsigned int rounds = b->quick ? 1 : ROUNDS;
	double v[NR][ROUNDS * PIECES], none[PIECES], alone;
	size_t k, steps = NR;
	unsigned int i;
	uint64_t at;
	int ret;

	while (steps > 1 && neighbours[steps - 1] >= b->max)
		steps--;
	bench_attach(b);
	ret = bench_open(b, 1, JOB_W, JOB_H);
	/* No neighbours. */
	if (!ret)
		ret = rates(b, pieces, none);
	at = now_ns();
	if (!ret)
		ret = bench_create(b, neighbours[steps - 1] + 1);
	if (ret)
		return ret;
	result(b, "made", "\"vgpus\": %u, \"seconds\": %.2f",
	       neighbours[steps - 1] + 1, (double)(now_ns() - at) / 1e9);

	/* Up in one round, down in the next: no order is always first. */
	for (i = 0; i < rounds && !ret; i++) {
		for (k = 0; k < steps && !ret; k++) {
			size_t s = i % 2 ? steps - 1 - k : k;

			ret = company(b, neighbours[s]);
			if (!ret)
				ret = rates(b, pieces, &v[s][i * pieces]);
		}
	}
	if (ret)
		return ret;
	alone = stats_median(v[0], (size_t)rounds * pieces);
	for (k = 0; k < steps; k++)
		report(b, k, v[k], (size_t)rounds * pieces, alone,
		       stats_median(none, pieces));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Test what the preemption policy learns: costs, instructions, speeds, and its state. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>

#include "config/learned.h"
#include "cost.h"
#include "tap.h"

static uint64_t seed = 3;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

static double normal(void)
{
	double u = uniform(), v = uniform();

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* ---- cost ---- */

#define SAMPLES	400

static struct cost_sample sample[SAMPLES];
static double scratch[SAMPLES];

static void measure(double a, double b, double noise)
{
	for (int i = 0; i < SAMPLES; i++) {
		struct cost_sample *s = &sample[i];

		s->miss = uniform();
		s->bytes = 1024 * pow(300, uniform());
		s->cycles = (a * s->miss + b) * s->bytes * exp(noise * normal());
	}
}

static void recovers(void)
{
	struct cost_fit fit;

	measure(PREEMPT_COST_A, PREEMPT_COST_B, 0);
	TAP_CHECK(!cost_fit(sample, SAMPLES, scratch, &fit));
	TAP_NEAR(fit.cost.a, PREEMPT_COST_A, 1e-12);
	TAP_NEAR(fit.cost.b, PREEMPT_COST_B, 1e-12);
	TAP_NEAR(fit.r2, 1, 1e-12);
	TAP_NEAR(fit.median_error, 0, 1e-12);
	TAP_EQ(fit.samples, SAMPLES);
	measure(PREEMPT_COST_A, PREEMPT_COST_B, 0.1);
	TAP_CHECK(!cost_fit(sample, SAMPLES, scratch, &fit));
	tap_diag("10 %% noise: a %.5f b %.5f r2 %.4f median error %.3f", fit.cost.a,
		 fit.cost.b, fit.r2, fit.median_error);
	TAP_NEAR(fit.cost.a, PREEMPT_COST_A, 0.05 * PREEMPT_COST_A);
	TAP_NEAR(fit.cost.b, PREEMPT_COST_B, 0.15 * PREEMPT_COST_B);
	TAP_CHECK(fit.r2 > 0.9 && fit.r2 < 1);
	TAP_CHECK(fit.median_error > 0.03 && fit.median_error < 0.1);
}

/* The machine was elsewhere in some of them, for as long as it liked. */
static void passes_over_outliers(void)
{
	struct cost_fit fit;

	measure(PREEMPT_COST_A, PREEMPT_COST_B, 0.1);
	for (int i = 0; i < SAMPLES; i += 10)
		sample[i].cycles += 1e5 * pow(1e4, uniform());
	TAP_CHECK(!cost_fit(sample, SAMPLES, scratch, &fit));
	tap_diag("10 %% outliers: a %.5f b %.5f r2 %.4f median error %.3f, %zu left out",
		 fit.cost.a, fit.cost.b, fit.r2, fit.median_error, fit.outliers);
	TAP_NEAR(fit.cost.a, PREEMPT_COST_A, 0.1 * PREEMPT_COST_A);
	TAP_NEAR(fit.cost.b, PREEMPT_COST_B, 0.3 * PREEMPT_COST_B);
	TAP_CHECK(fit.median_error < 0.12);
	TAP_CHECK(fit.outliers >= SAMPLES / 20 && fit.outliers <= SAMPLES / 10);
	/* few that miss much are no outliers for that they cost more */
	measure(1, 0.001, 0.1);
	for (int i = 0; i < SAMPLES; i++)
		if (i % 20) {
			sample[i].cycles = sample[i].bytes * 0.002;
			sample[i].miss = 0.001;
		}
	TAP_CHECK(!cost_fit(sample, SAMPLES, scratch, &fit));
	TAP_EQ(fit.outliers, 0);
	TAP_NEAR(fit.cost.a, 1, 0.1);
}

static void not_negative(void)
{
	struct cost_fit fit;

	for (int i = 0; i < SAMPLES; i++)
		sample[i] = (struct cost_sample){ i % 2, 1000, i % 2 ? 500 : 1000 };
	TAP_CHECK(!cost_fit(sample, SAMPLES, scratch, &fit));
	TAP_NEAR(fit.cost.a, 0, 0);
	TAP_NEAR(fit.cost.b, 0.75, 1e-12);
	for (int i = 0; i < SAMPLES; i++)
		sample[i] = (struct cost_sample){ i % 2 ? 1 : 0.5, 1000, i % 2 ? 1000 : 1 };
	TAP_CHECK(!cost_fit(sample, SAMPLES, scratch, &fit));
	TAP_NEAR(fit.cost.b, 0, 0);
	TAP_NEAR(fit.cost.a, (1 + 0.5 * 0.001) / 1.25, 1e-12);
}

static void no_fit(void)
{
	struct cost_fit fit = { .samples = 77 };

	measure(1, 1, 0);
	TAP_CHECK(cost_fit(sample, COST_SAMPLES_MIN - 1, scratch, &fit));
	TAP_CHECK(!cost_fit(sample, COST_SAMPLES_MIN, scratch, &fit));
	fit.samples = 77;
#define BAD(field, value) do {						\
		measure(1, 1, 0);					\
		sample[5].field = (value);				\
		TAP_CHECK(cost_fit(sample, SAMPLES, scratch, &fit));	\
	} while (0)
	BAD(miss, -0.1);
	BAD(miss, NAN);
	BAD(bytes, 0);
	BAD(bytes, INFINITY);
	BAD(cycles, 0);
	BAD(cycles, NAN);
#undef BAD
	measure(1e6, 1, 0);
	TAP_CHECK(cost_fit(sample, SAMPLES, scratch, &fit));
	for (int i = 0; i < SAMPLES; i++)
		sample[i].miss = 0.5;
	TAP_CHECK(cost_fit(sample, SAMPLES, scratch, &fit));
	TAP_EQ(fit.samples, 77);	/* the old ones are kept */
}

/* ---- norm_ipc ---- */

static void learns_norm(void)
{
	struct preempt_norm t;
	double one[3] = { 0, 1, 0 }, both[3] = { 1, 1, 0 }, none[3] = { 0 };

	preempt_norm_cold(&t);
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_COMPUTE, none), 1, 0);
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_COMPUTE, one), PREEMPT_COLD_CM, 1e-12);
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_MEMORY, one), PREEMPT_COLD_MM, 1e-12);
	for (int i = 0; i < 200; i++)
		preempt_norm_observe(&t, PREEMPT_MEMORY, one, 0.5 * exp(0.1 * normal()));
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_MEMORY, one), 0.5, 0.03);
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_COMPUTE, one), PREEMPT_COLD_CM, 1e-12);
	/* what is beside it together is told apart by what is known of one */
	for (int i = 0; i < 500; i++)
		preempt_norm_observe(&t, PREEMPT_MEMORY, both, 1 / 2.5);
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_MEMORY, both), 0.4, 0.02);
	preempt_norm_observe(&t, PREEMPT_MEMORY, one, NAN);
	preempt_norm_observe(&t, PREEMPT_MEMORY, one, 0);
	preempt_norm_observe(&t, PREEMPT_UNKNOWN, one, 0.1);
	preempt_norm_observe(&t, PREEMPT_MEMORY, none, 0.1);
	for (int i = 0; i < 5000; i++)
		preempt_norm_observe(&t, PREEMPT_COMPUTE, one, 1e9);
	TAP_CHECK(!preempt_norm_check(&t));
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_COMPUTE, one), 1, 0);
}

static void prior_of_norm(void)
{
	double one[3] = { 0, 1, 0 };
	struct preempt_norm t, cold;

	/* half of it comes from the prior once there are as many observations */
	preempt_norm_cold(&t);
	preempt_norm_prior(&t, PREEMPT_MEMORY, PREEMPT_MEMORY, 1, 20);
	TAP_NEAR(preempt_norm_ipc(&t, PREEMPT_MEMORY, one), 0.5, 1e-12);
	for (int i = 0; i < 20; i++)
		preempt_norm_observe(&t, PREEMPT_MEMORY, one, 1 / 1.5);
	TAP_NEAR(t.slow[PREEMPT_MEMORY][PREEMPT_MEMORY], 0.75, 1e-9);
	/* history overrules it */
	for (int i = 0; i < 2000; i++)
		preempt_norm_observe(&t, PREEMPT_MEMORY, one, 1 / 1.5);
	TAP_NEAR(t.slow[PREEMPT_MEMORY][PREEMPT_MEMORY], 0.5, 0.01);
	/* what was observed stays */
	preempt_norm_prior(&t, PREEMPT_MEMORY, PREEMPT_MEMORY, 7, 1);
	TAP_NEAR(t.slow[PREEMPT_MEMORY][PREEMPT_MEMORY], 0.5, 0.01);
	TAP_NEAR(t.prior[PREEMPT_MEMORY][PREEMPT_MEMORY], 1, 0);
	/* one of no weight is replaced by the first observation */
	preempt_norm_prior(&t, PREEMPT_COMPUTE, PREEMPT_MEMORY, 3, 0);
	preempt_norm_observe(&t, PREEMPT_COMPUTE, one, 0.8);
	TAP_NEAR(t.slow[PREEMPT_COMPUTE][PREEMPT_MEMORY], 0.25, 1e-9);
	/* no value breaks the table */
	preempt_norm_cold(&t);
	cold = t;
	preempt_norm_prior(&t, PREEMPT_UNKNOWN, PREEMPT_MEMORY, 1, 4);
	preempt_norm_prior(&t, PREEMPT_MEMORY, PREEMPT_UNKNOWN, 1, 4);
	preempt_norm_prior(&t, PREEMPT_MEMORY, PREEMPT_MEMORY, NAN, 4);
	preempt_norm_prior(&t, PREEMPT_MEMORY, PREEMPT_MEMORY, 1, NAN);
	TAP_MEM(&t, &cold, sizeof(t));
	preempt_norm_prior(&t, PREEMPT_MEMORY, PREEMPT_MEMORY, 1e9, 1e9);
	preempt_norm_prior(&t, PREEMPT_COMPUTE, PREEMPT_MEMORY, -1e9, -1e9);
	TAP_CHECK(!preempt_norm_check(&t));
	t.prior[0][0] = NAN;
	TAP_CHECK(preempt_norm_check(&t) != NULL);
}

/* ---- instructions ---- */

static const struct {
	double factor, exponent;
} truth[] = { { 20, 1 }, { 3, 1.5 }, { 500, 0.5 }, { 1, 1.2 } };

#define NR_KINDS 4

static double size_of(void)
{
	return floor(pow(10, 3 + 4 * uniform()));
}

static double takes(int kind, double size)
{
	return truth[kind].factor * pow(size, truth[kind].exponent) * exp(0.1 * normal());
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median and 90th percentile of the relative error for jobs that were not seen. */
static void errors(const struct analyse *a, double *median, double *p90)
{
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	static double error[1000];

	for (int i = 0; i < 1000; i++) {
		double size = size_of(), inst = takes(i % NR_KINDS, size);
		struct analyse_guess g;

		analyse_guess(a, &p, (uint32_t)(i % NR_KINDS), size, &g);
		TAP_CHECK(g.known);
		error[i] = fabs(g.inst - inst) / inst;
	}
	qsort(error, 1000, sizeof(error[0]), by_value);
	*median = error[500];
	*p90 = error[900];
}

static void held_out(void)
{
	static struct analyse a;
	double median, p90;

	analyse_init(&a);
	for (int i = 0; i < 200; i++) {
		double size = size_of();

		analyse_done(&a, (uint32_t)(i % NR_KINDS), size, takes(i % NR_KINDS, size));
	}
	errors(&a, &median, &p90);
	tap_diag("50 jobs a kind, 10 %% noise: error %.3f median, %.3f 90th percentile",
		 median, p90);
	TAP_CHECK(median < 0.12 && p90 < 0.35);
	/* every tenth is off by a factor of 30 */
	for (int i = 0; i < 400; i++) {
		double size = size_of(), inst = takes(i % NR_KINDS, size);

		analyse_done(&a, (uint32_t)(i % NR_KINDS), size,
			     i % 10 == 7 ? inst * 30 : inst);
	}
	errors(&a, &median, &p90);
	tap_diag("with outliers: error %.3f median, %.3f 90th percentile", median, p90);
	TAP_CHECK(median < 0.2 && p90 < 0.5);
	/* and a real change gets through */
	for (int i = 0; i < 150; i++) {
		double size = size_of();

		analyse_done(&a, 0, size, 10 * takes(0, size));
	}
	{
		const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
		struct analyse_guess g;

		analyse_guess(&a, &p, 0, 1e5, &g);
		TAP_NEAR(g.inst, 200e5, 60e5);
	}
}

/* Observations of another host are a kind's prior until this host has observed it. */
static void prior_of_kinds(void)
{
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	static struct analyse a, other;
	struct analyse_guess g;

	analyse_init(&other);
	for (int i = 0; i < 10; i++) {
		analyse_done(&other, 3, 1000, 50e3);
		analyse_alone(&other, 3, 2);
		analyse_memory(&other, 3, 0.9, 0.7);
	}
	analyse_init(&a);
	analyse_guess(&a, &p, 3, 1000, &g);
	TAP_CHECK(!g.known && g.class == PREEMPT_UNKNOWN);
	a.prior = &other;
	analyse_guess(&a, &p, 3, 1000, &g);
	TAP_CHECK(g.known && g.class == PREEMPT_MEMORY);
	TAP_NEAR(g.inst, 50e3, 1);
	TAP_NEAR(g.ipc, 2, 1e-9);
	TAP_NEAR(g.bound, 0.9, 1e-9);
	TAP_NEAR(g.miss, 0.7, 1e-9);
	/* a kind that it does not know is a stranger still */
	analyse_guess(&a, &p, 4, 1000, &g);
	TAP_CHECK(!g.known && g.class == PREEMPT_UNKNOWN);
	TAP_NEAR(g.inst, 1000 * ANALYSE_COLD_INST, 1e-6);
	/* as many observations as it counts as make half of it */
	for (int i = 0; i < (int)ANALYSE_PRIOR; i++) {
		analyse_done(&a, 3, 1000, 50e3 * 4);
		analyse_alone(&a, 3, 1);
		analyse_memory(&a, 3, 0.1, 0.1);
	}
	analyse_guess(&a, &p, 3, 1000, &g);
	TAP_NEAR(g.inst, 50e3 * 2, 10);
	TAP_NEAR(g.ipc, 1.5, 1e-9);
	TAP_NEAR(g.bound, 0.5, 1e-9);
	TAP_NEAR(g.miss, 0.4, 1e-9);
	for (int i = 0; i < 200; i++) {
		analyse_done(&a, 3, 1000, 50e3 * 4);
		analyse_memory(&a, 3, 0.1, 0.1);
	}
	analyse_guess(&a, &p, 3, 1000, &g);
	TAP_NEAR(g.inst, 50e3 * 4, 50e3 * 0.4);
	TAP_CHECK(g.class == PREEMPT_COMPUTE && g.bound < 0.16);
	/* one that knows little weighs little */
	analyse_init(&other);
	analyse_memory(&other, 3, 1, 1);
	analyse_init(&a);
	a.prior = &other;
	analyse_memory(&a, 3, 0, 0);
	analyse_memory(&a, 3, 0, 0);
	analyse_memory(&a, 3, 0, 0);
	analyse_guess(&a, &p, 3, 1000, &g);
	TAP_NEAR(g.bound, 0.25, 1e-9);
	TAP_CHECK(!g.known);
}

static void strangers(void)
{
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	static struct analyse a;
	struct analyse_guess g;

	analyse_init(&a);
	analyse_guess(&a, &p, 9, 1000, &g);
	TAP_CHECK(!g.known && g.class == PREEMPT_UNKNOWN && isnan(g.bound));
	TAP_NEAR(g.inst, 1000 * ANALYSE_COLD_INST, 1e-6);
	TAP_NEAR(g.ipc, ANALYSE_COLD_IPC, 0);
	TAP_NEAR(g.miss, ANALYSE_COLD_MISS, 0);
	for (int i = 0; i < 10; i++)
		analyse_done(&a, 1, 1000 + i, 50 * (1000 + i));
	analyse_alone(&a, 1, 2);
	analyse_memory(&a, 1, 0.9, 0.7);
	analyse_guess(&a, &p, 1, 1000, &g);
	TAP_CHECK(g.known && g.class == PREEMPT_MEMORY);
	TAP_NEAR(g.inst, 50e3, 10);
	TAP_NEAR(g.miss, 0.7, 1e-12);
	/* equal sizes give no slope: it is 1 */
	analyse_guess(&a, &p, 1, 1e6, &g);
	TAP_NEAR(g.inst, 50e6, 5e5);
	/* a stranger is like the others, but of no class */
	analyse_guess(&a, &p, 9, 1000, &g);
	TAP_CHECK(!g.known && g.class == PREEMPT_UNKNOWN);
	TAP_NEAR(g.inst, 50e3, 10);
	TAP_NEAR(g.ipc, 2, 0);
	/* nothing breaks it */
	analyse_done(&a, 1, NAN, 1);
	analyse_done(&a, 1, 1, -1);
	analyse_done(&a, 1, 1e300, 1);
	analyse_alone(&a, 1, INFINITY);
	analyse_memory(&a, 1, 2, 0);
	for (double s = 1e-3; s < 1e30; s *= 1000) {
		analyse_guess(&a, &p, 1, s > 1e28 ? NAN : s < 1 ? -1 : s, &g);
		TAP_CHECK(g.inst >= 1 && g.inst <= ANALYSE_NUMBER_MAX);
	}
	for (uint32_t k = 100; k < 1000; k++)
		analyse_done(&a, k, 10, 10);
	TAP_EQ(a.n, ANALYSE_KINDS_MAX);
	analyse_guess(&a, &p, 999, 10, &g);
	TAP_CHECK(g.known);
	analyse_guess(&a, &p, 100, 10, &g);
	TAP_CHECK(!g.known);
	TAP_NEAR(analyse_rest(100, 30), 70, 0);
	TAP_NEAR(analyse_rest(100, 200), 20, 1e-12);
}

static void shared_time(void)
{
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	static struct analyse a;
	double one[3] = { 0, 1, 0 };
	struct analyse_guess g;

	analyse_init(&a);
	analyse_memory(&a, 1, 0.9, 0.5);
	analyse_shared(&a, &p, 1, one, 0.6);
	analyse_guess(&a, &p, 1, 1, &g);
	TAP_NEAR(g.ipc, 0.6 / PREEMPT_COLD_MM, 1e-12);
	TAP_NEAR(a.norm.count[PREEMPT_MEMORY][PREEMPT_MEMORY], 0, 0);
	analyse_alone(&a, 1, 2);
	for (int i = 0; i < 300; i++)
		analyse_shared(&a, &p, 1, one, 1.5);
	analyse_guess(&a, &p, 1, 1, &g);
	TAP_NEAR(g.ipc, 2, 0);
	TAP_NEAR(preempt_norm_ipc(&a.norm, PREEMPT_MEMORY, one), 0.75, 0.01);
}

/* ---- the guard ---- */

#define MS	1000000ULL
#define WINDOW	(10 * MS)	/* of each preemption; one is wanted in each */
#define RUNS	300

/* A gain of noise around a mean, both relative to no preemption. */
struct gains {
	double mean, noise;
};

/**
 * struct guarded - a method under the guard for some time
 * @done: preemptions
 * @first: preemptions until it was forbidden first; 0 if it never was
 * @lost: what the preemptions cost, as a part of the time
 * @closed: part of the time in which it was forbidden
 */
struct guarded {
	double done, first, lost, closed;
};

static struct guarded live(struct guard *g, uint64_t *now, uint64_t for_ns, struct gains x)
{
	const struct guard_method *m = &g->method[PREEMPT_SWITCH];
	uint64_t from = *now, closings = m->closings;
	double windows = (double)(for_ns / WINDOW);
	struct guard_watch w = { 0 };
	struct guarded r = { 0 };

	for (; *now < from + for_ns; *now += WINDOW) {
		struct preempt_guard allowed;
		double got = x.mean + x.noise * normal();

		r.closed += m->closed / windows;
		guard_allow(g, &w, *now, &allowed);
		if (allowed.closed[PREEMPT_SWITCH])
			continue;
		r.done++;
		r.lost -= got / windows;
		guard_learn(g, PREEMPT_SWITCH, *now, 0.1, got, 1e6);
		if (!r.first && m->closings > closings)
			r.first = r.done;
	}
	return r;
}

/* Preemptions that lose a tenth of their window each: 24 at most, and 1 % of a minute. */
static void never_pays(void)
{
	double most = 0, lost = 0;

	for (int k = 0; k < RUNS; k++) {
		struct guard g = { 0 };
		uint64_t now = 1;
		struct guarded r = live(&g, &now, 60000 * MS,
					(struct gains){ -0.1, 0.1 });

		TAP_CHECK(r.first >= GUARD_MIN);
		most = fmax(most, r.first);
		lost = fmax(lost, r.lost);
		TAP_CHECK(!guard_check(&g));
	}
	tap_diag("forbidden after %.0f preemptions at most; lost %.2f %% of a minute at most",
		 most, 100 * lost);
	TAP_CHECK(most <= 24);
	TAP_CHECK(lost < 0.01);
}

/* Preemptions that gain: how often the guard is wrong, and for how long. */
static void false_alarms(void)
{
	static const struct {
		struct gains x;
		double closed;	/* at most, as a part of the time */
	} pays[] = {
		{ { 0.1, 0.1 }, 0.001 },
		{ { 0.1, 0.2 }, 0.01 },
		{ { 0.05, 0.2 }, 0.05 },
	};

	for (size_t i = 0; i < sizeof(pays) / sizeof(pays[0]); i++) {
		double closed = 0, wrong = 0;

		for (int k = 0; k < RUNS; k++) {
			struct guard g = { 0 };
			uint64_t now = 1;
			struct guarded r = live(&g, &now, 60000 * MS, pays[i].x);

			closed += r.closed / RUNS;
			wrong += (double)g.method[PREEMPT_SWITCH].closings / RUNS;
		}
		tap_diag("gain %.2f, noise %.2f: forbidden %.3f times a minute, %.2f %% of the time",
			 pays[i].x.mean, pays[i].x.noise, wrong, 100 * closed);
		TAP_CHECK(closed < pays[i].closed);
	}
}

/* Work for which a method does not pay, then other work for which it does, and back. */
static void other_work(void)
{
	const struct guard_method *m;
	struct guard g = { 0 };
	uint64_t now = 1, wait;

	m = &g.method[PREEMPT_SWITCH];
	live(&g, &now, 10000 * MS, (struct gains){ -0.2, 0.05 });
	TAP_CHECK(m->closed);
	wait = m->wait_ns;
	TAP_CHECK(wait > GUARD_WAIT_NS && wait <= GUARD_WAIT_MAX_NS);
	/* one wait and one probe suffice */
	live(&g, &now, wait + (GUARD_PROBES + 1) * WINDOW, (struct gains){ 0.2, 0.05 });
	TAP_CHECK(!m->closed && !m->wait_ns);
	TAP_CHECK(m->got > 0);
	TAP_EQ(m->closings, 1);
	live(&g, &now, 1000 * MS, (struct gains){ -0.2, 0.05 });
	TAP_CHECK(m->closed);
	/* the other methods go their own way */
	TAP_CHECK(!g.method[PREEMPT_DRAIN].closed && !g.method[PREEMPT_FLUSH].closed);
	/* waits are bounded */
	live(&g, &now, 1000000 * MS, (struct gains){ -0.2, 0.05 });
	TAP_EQ(m->wait_ns, GUARD_WAIT_MAX_NS);
	TAP_CHECK(!guard_check(&g));
}

/* From looks: a device of two slots at 2 cycles/ns, and a preemption that gains a third. */
static void trials(void)
{
	const struct preempt_decision d = {
		.action = PREEMPT_DO_PREEMPT, .method = PREEMPT_FLUSH, .window = 2e7,
		.before = 1.2 * 2e7, .gain = 0.4 * 2e7, .reason = PREEMPT_GAIN,
	};
	const struct guard_method *m;
	struct preempt_guard allowed;
	struct guard_watch w = { 0 };
	struct guard g = { 0 };
	uint64_t now = MS;

	m = &g.method[PREEMPT_FLUSH];
	/* speeds are not known yet */
	guard_look(&g, &w, now, 1.2, 0, true);
	guard_begin(&w, now, &d, d.gain);
	TAP_CHECK(!w.trying);
	for (int i = 0; i < 20; i++) {
		now += MS;
		guard_look(&g, &w, now, 1.2, 1.2 * 2e6, true);
	}
	guard_begin(&w, now, &d, d.gain);
	TAP_CHECK(w.trying);
	TAP_EQ(w.until_ns, now + 10 * MS);
	/* a second one within the window belongs to it */
	guard_begin(&w, now, &d, 2 * d.gain);
	for (int i = 0; i < 10; i++) {
		now += MS;
		guard_look(&g, &w, now, 1.6, 1.6 * 2e6, true);
	}
	TAP_CHECK(!w.trying);
	TAP_EQ(m->measured, 1);
	TAP_NEAR(m->expected, 1.0 / 3, 1e-9);
	TAP_NEAR(m->got, 1.0 / 3, 1e-9);
	TAP_NEAR(m->extra, 0, 1);
	/* half of it came: the other half is extra cost */
	guard_look(&g, &w, now, 1.2, 0, true);
	guard_begin(&w, now, &d, d.gain);
	now += 10 * MS;
	guard_look(&g, &w, now, 1.4, 1.4 * 2e7, true);
	TAP_EQ(m->measured, 2);
	TAP_NEAR(m->got, 0.25, 1e-9);
	TAP_NEAR(m->extra, 0.2 * 2e7 / (2 + GUARD_PRIOR), 1);
	guard_allow(&g, &w, now, &allowed);
	TAP_NEAR(allowed.extra[PREEMPT_FLUSH], m->extra, 1e-9);
	TAP_NEAR(allowed.extra[PREEMPT_SWITCH], 0, 0);
	/* it is forgotten */
	now += (uint64_t)GUARD_FORGET_NS;
	guard_look(&g, &w, now, 0, 0, false);
	TAP_NEAR(m->extra, 0, 0);
	/* no context waits any more, too soon for a result */
	guard_begin(&w, now, &d, d.gain);
	TAP_CHECK(!w.trying);	/* nor is the speed of long ago known */
	for (int i = 0; i < 20; i++) {
		now += MS;
		guard_look(&g, &w, now, 1.2, 1.2 * 2e6, true);
	}
	guard_begin(&w, now, &d, d.gain);
	now += MS;
	guard_look(&g, &w, now, 1.2, 0, false);
	TAP_CHECK(!w.trying);
	TAP_EQ(m->measured, 2);
	/* a look that comes too late says nothing of the window */
	guard_begin(&w, now, &d, d.gain);
	now += 100 * MS;
	guard_look(&g, &w, now, 1.2, 1, true);
	TAP_CHECK(!w.trying);
	TAP_EQ(m->measured, 2);
}

/* An extra cost is forgotten in the same time, however many devices there are. */
static void forgotten(void)
{
	double extra[2];

	for (size_t devices = 1; devices <= 2; devices++) {
		struct guard_watch w[2] = { { .dev = 0 }, { .dev = 1 } };
		struct guard g = { .method[PREEMPT_SWITCH].extra = 1000 };

		for (uint64_t t = 1; t <= 1000; t++)
			for (size_t i = 0; i < devices; i++)
				guard_look(&g, &w[i], t * MS, 0, 0, false);
		extra[devices - 1] = g.method[PREEMPT_SWITCH].extra;
	}
	TAP_NEAR(extra[0], 1000 * exp(-1e9 / GUARD_FORGET_NS), 1);
	TAP_NEAR(extra[1], extra[0], 1e-6);
}

/* The price of the bound on waiting is no loss, but what it costs beyond that is. */
static void bounded(void)
{
	const struct preempt_decision d = {
		.action = PREEMPT_DO_PREEMPT, .method = PREEMPT_SWITCH, .window = 2e7,
		.before = 1.6 * 2e7, .gain = -0.4 * 2e7, .reason = PREEMPT_STARVED,
	};
	struct guard_watch w = { 0 };
	struct guard g = { 0 };
	const struct guard_method *m;
	uint64_t now = MS;

	m = &g.method[PREEMPT_SWITCH];
	guard_look(&g, &w, now, 1.6, 0, true);
	for (int k = 0; k < 40; k++) {
		for (int i = 0; i < 20; i++) {
			now += MS;
			guard_look(&g, &w, now, 1.6, 1.6 * 2e6, true);
		}
		guard_begin(&w, now, &d, d.gain);
		now += 10 * MS;
		/* the first 20 take what was expected of them, the others half of a slot more */
		guard_look(&g, &w, now, 1.6, (k < 20 ? 1.2 : 0.7) * 2e7, true);
		if (k < 20)
			TAP_NEAR(m->got, 0, 1e-9);
		TAP_CHECK(!(k < 20 && m->closed));
	}
	TAP_EQ(m->closings, 1);
	TAP_CHECK(m->closed);
}

/* A probe makes one trial at a time. */
static void probes(void)
{
	struct guard g = { .method[PREEMPT_DRAIN] = {
		.trials = 8, .got = -0.5, .closed = true, .wait_ns = GUARD_WAIT_NS,
		.probe_ns = 100, .extra = 5,
	} };
	struct guard_watch w = { 0 };
	struct preempt_guard allowed;

	guard_allow(&g, &w, 99, &allowed);
	TAP_CHECK(allowed.closed[PREEMPT_DRAIN] && !allowed.closed[PREEMPT_SWITCH]);
	guard_allow(&g, &w, 100, &allowed);
	TAP_CHECK(!allowed.closed[PREEMPT_DRAIN]);
	/* an extra cost that nothing could exceed would prevent the probe */
	TAP_NEAR(allowed.extra[PREEMPT_DRAIN], 0, 0);
	w.trying = true;
	guard_allow(&g, &w, 100, &allowed);
	TAP_CHECK(allowed.closed[PREEMPT_DRAIN]);
	/* nonsense teaches nothing */
	guard_learn(&g, PREEMPT_SWITCH, 1, NAN, 0, 1);
	guard_learn(&g, PREEMPT_SWITCH, 1, 0, INFINITY, 1);
	guard_learn(&g, PREEMPT_SWITCH, 1, 0, 0, NAN);
	TAP_EQ(g.method[PREEMPT_SWITCH].measured, 0);
	guard_learn(&g, PREEMPT_SWITCH, 1, 1e9, -1e9, 1e300);
	TAP_CHECK(!guard_check(&g));
}

/* ---- JSON ---- */

static struct analyse *experienced(void)
{
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	double others[3] = { 1, 2, 0 };
	static struct analyse a;

	analyse_init(&a);
	for (int i = 0; i < 100; i++) {
		uint32_t kind = (uint32_t)(i % 3) * 2000000000u;
		double size = size_of();

		analyse_done(&a, kind, size, takes(i % 3, size));
		if (i % 4)
			analyse_alone(&a, kind, 1 + uniform());
		analyse_memory(&a, kind, uniform(), uniform());
		analyse_shared(&a, &p, kind, others, uniform() + 0.1);
		guard_learn(&a.guard, (enum preempt_method)(i % 2), 0, uniform() / 8,
			    i % 2 ? -uniform() / 4 : uniform() / 4, 1e6 * uniform());
	}
	return &a;
}

static void round_trip(void)
{
	struct analyse *a = experienced();
	struct json_object *o = learned_to_json(a), *again;
	static struct analyse b;
	char why[200];

	/* a method that was forbidden is probed at once */
	TAP_CHECK(a->guard.method[PREEMPT_DRAIN].closed);
	for (int i = 0; i < PREEMPT_METHODS; i++) {
		a->guard.method[i].probe_ns = 0;
		a->guard.method[i].since_ns = 0;
		a->guard.method[i].probes = 0;
		a->guard.method[i].probed = 0;
	}
	again = json_tokener_parse(json_object_to_json_string(o));
	TAP_EQ(learned_from_json(again, &b, why, sizeof(why)), 0);
	TAP_MEM(&b, a, sizeof(b));
	/* a file of an mgpud without a guard */
	json_object_object_del(again, "guard");
	TAP_EQ(learned_from_json(again, &b, why, sizeof(why)), 0);
	TAP_EQ(b.guard.method[PREEMPT_DRAIN].measured, 0);
	TAP_CHECK(!b.guard.method[PREEMPT_DRAIN].closed);
	json_object_object_add(again, "guard", json_object_new_int(3));
	TAP_EQ(learned_from_json(again, &b, why, sizeof(why)), -EBADMSG);
	json_object_put(o);
	json_object_put(again);
}

/* Whatever is done to the text, what is taken from it can be worked with. */
static void garbled(void)
{
	static const char *const bad[] = {
		"null", "[]", "{}", "3", "{\"now\":1}",
		"{\"now\":1,\"kinds\":[],\"any\":{},\"norm\":[]}",
		"{\"now\":-1,\"kinds\":{},\"any\":[],\"norm\":3}",
	};
	const struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	struct json_object *o = learned_to_json(experienced());
	char *text = strdup(json_object_to_json_string(o));
	static struct analyse b, before;
	size_t len = strlen(text), taken = 0, wrong = 0;
	char why[200];

	json_object_put(o);
	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		b = before;
		o = json_tokener_parse(bad[i]);
		TAP_EQ(learned_from_json(o, &b, why, sizeof(why)), -EBADMSG);
		TAP_MEM(&b, &before, sizeof(b));
		json_object_put(o);
	}
	for (int k = 0; k < 4000; k++) {
		size_t at = (size_t)(uniform() * (double)len);
		char old = text[at];

		text[at] = "0123456789-.eE{}[],\"xn"[(size_t)(uniform() * 22)];
		o = json_tokener_parse(text);
		b = before;
		if (o && !learned_from_json(o, &b, why, sizeof(why))) {
			struct analyse_guess g;

			taken++;
			TAP_CHECK(!preempt_norm_check(&b.norm));
			TAP_CHECK(!guard_check(&b.guard));
			for (uint32_t kind = 0; kind < 3; kind++) {
				analyse_guess(&b, &p, kind * 2000000000u, 1e6, &g);
				TAP_CHECK(g.inst >= 1 && g.inst <= ANALYSE_NUMBER_MAX &&
					  g.ipc > 0 && g.miss >= 0 && g.miss <= 1);
				analyse_done(&b, kind, 1e6, 1e7);
			}
		} else {
			wrong++;
			TAP_MEM(&b, &before, sizeof(b));
		}
		json_object_put(o);
		text[at] = old;
	}
	tap_diag("%zu taken, %zu refused", taken, wrong);
	TAP_CHECK(taken && wrong);
	free(text);
}

int main(void)
{
	tap_run(recovers, "known coefficients are found in measured switches");
	tap_run(not_negative, "no coefficient is below 0");
	tap_run(no_fit, "samples that say nothing are refused, and the old fit is kept");
	tap_run(learns_norm, "norm_ipc of pairs is learned from shared time");
	tap_run(prior_of_norm, "a prior of pairs counts as many observations as it weighs");
	tap_run(prior_of_kinds, "a prior of kinds is expected until history overrules it");
	tap_run(held_out, "instructions of jobs that were not seen are guessed");
	tap_run(strangers, "kinds that were never seen, and more than can be kept");
	tap_run(shared_time, "shared time teaches speed alone until that is seen");
	tap_run(trials, "a trial compares what was expected of a preemption with what came");
	tap_run(forgotten, "an extra cost is forgotten in the same time on any number of devices");
	tap_run(never_pays, "a method that never pays is soon forbidden, and costs little");
	tap_run(false_alarms, "a method that pays is rarely forbidden, and not for long");
	tap_run(other_work, "a method is allowed again when other work makes it pay");
	tap_run(bounded, "what the bound on waiting costs is no loss");
	tap_run(probes, "a probe is a few trials, one after the other");
	tap_run(round_trip, "learned values are the same after a restart");
	tap_run(garbled, "garbled state is refused, or can be worked with");
	tap_run(passes_over_outliers, "switches in which something else happened do not count");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure how well mgpud's model describes this machine: the cost of a switch and the
 * work units of a job, each fitted to some samples and compared with others.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../ctl/mgpud/contexts/ctx_view.h"
#include "preempt.h"

#define IN		(32 * MIB)
#define OUT		(64 * MIB)
#define AT_NEIGHBOUR	(32 * MIB)

#define SWITCHED	1u
#define NEIGHBOUR	2u

#define EACH		12u	/* switches of a live size beside a neighbour */
#define PIXELS		6e6	/* of MANDELBROT: as many as there is room for */

/* ---- what a switch costs ---- */

/* Live sizes; every other one is used to fit. */
static const struct job_shape live[] = {
	{ MGPU_COMPUTE_MANDELBROT, 1, 255, 1 },		/* 2 KiB */
	{ MGPU_COMPUTE_MANDELBROT, 1, 511, 1 },
	{ MGPU_COMPUTE_MANDELBROT, 1, 1023, 1 },
	{ MGPU_COMPUTE_MANDELBROT, 1, 2047, 1 },
	{ MGPU_COMPUTE_MANDELBROT, 1, 4095, 1 },	/* 32 KiB */
	{ MGPU_COMPUTE_MATMUL, 200, 0, 1 },		/* rows: 25 KiB */
	{ MGPU_COMPUTE_MATMUL, 300, 0, 1 },
	{ MGPU_COMPUTE_MATMUL, 450, 0, 1 },
	{ MGPU_COMPUTE_MATMUL, 600, 0, 1 },
	{ MGPU_COMPUTE_MATMUL, 900, 0, 1 },		/* 112 KiB */
};

/* Beside it; 0: nothing. The first three are used to fit. */
static const uint32_t beside[] = {
	0, MGPU_COMPUTE_MANDELBROT, MGPU_COMPUTE_GATHER,
	MGPU_COMPUTE_MATMUL, MGPU_COMPUTE_SCALE,
};

#define NR_LIVE		ARRAY_LEN(live)
#define NR_BESIDE	ARRAY_LEN(beside)
#define FIT_BESIDE	3u

struct switches {
	struct cost_sample fit[NR_LIVE * NR_BESIDE * EACH];
	struct cost_sample other[NR_LIVE * NR_BESIDE * EACH];
	size_t nr_fit, nr_other;
};

/* Make a job that does not end soon. */
static int endless(struct job *j, uint32_t op, size_t at)
{
	struct job_shape s = { .op = op, .knob = 0, .slots = 1 };

	s.units = op == MGPU_COMPUTE_MANDELBROT ? PIXELS * 8 * 1023 :
		  op == MGPU_COMPUTE_MATMUL ? 1e9 :
		  op == MGPU_COMPUTE_GATHER ? 2e8 : 1.2e8;
	if (op == MGPU_COMPUTE_MANDELBROT)
		s.knob = 1023;
	return job_make(j, &s, at, IN, at + 32 * MIB);
}

/* Its miss rate as mgpud takes it to be. */
static double miss_of(const struct job *j)
{
	return (double)j->bytes / ((double)j->bytes + CTX_BALANCE * (double)j->inst);
}

static int switches(struct bench *b, struct guest *g, size_t l, size_t n,
		    struct switches *s, unsigned int each)
{
	struct cost_sample *to = l % 2 == 0 && n < FIT_BESIDE ? s->fit : s->other;
	size_t *nr = l % 2 == 0 && n < FIT_BESIDE ? &s->nr_fit : &s->nr_other;
	struct job_shape shape = live[l];
	struct job j, neighbour = { 0 };
	struct mgpu_ctx from, c;
	int head, other = -1, ret, answer;
	unsigned int i;
	uint64_t done;

	shape.units = shape.op == MGPU_COMPUTE_MATMUL ? pow(shape.units, 3) :
		PIXELS * 8 * shape.knob;
	ret = job_make(&j, &shape, 0, IN, AT_NEIGHBOUR);
	if (!ret && beside[n])
		ret = endless(&neighbour, beside[n], AT_NEIGHBOUR);
	head = ret ? -1 : guest_submit(g, SWITCHED, &j);
	if (!ret && head < 0)
		ret = head;
	for (i = 0; !ret && i < each; i++) {
		if (guest_done(g, head, &answer)) {
			head = answer ? -1 : guest_submit(g, SWITCHED, &j);
			ret = answer ? answer : head < 0 ? head : 0;
		}
		if (!ret && beside[n] && (other < 0 || guest_done(g, other, &answer))) {
			other = guest_submit(g, NEIGHBOUR, &neighbour);
			ret = other < 0 ? other : 0;
		}
		if (!ret && beside[n])
			ret = bench_wait_running(b, g, NEIGHBOUR, other);
		if (!ret)
			ret = bench_wait_running(b, g, SWITCHED, head);
		if (ret == -ENODATA) {
			ret = 0;
			continue;
		}
		if (!ret)
			ret = bench_ctx(b, g, SWITCHED, &from);
		if (ret || !from.slots)
			continue;
		bench_preempt(b, g, SWITCHED, 0, MGPU_PREEMPT_METHOD_SWITCH, true);
		do {
			ret = bench_ctx(b, g, SWITCHED, &c);
		} while (!ret && c.slots);
		done = c.job_inst_done;
		bench_resume(b, g, SWITCHED);
		/* it was restored when it has done another tile */
		do {
			sleep_until(now_ns() + MS / 4);
			ret = ret ? ret : bench_ctx(b, g, SWITCHED, &c);
		} while (!ret && c.queued && c.job_inst_done == done);
		if (ret || c.preemptions != from.preemptions + 1 ||
		    c.resumes != from.resumes + 1 || c.arrived_ns != from.arrived_ns ||
		    c.switch_ns == from.switch_ns || !c.engine_ns)
			continue;
		to[(*nr)++] = (struct cost_sample){
			.miss = beside[n] ? miss_of(&neighbour) : 0,
			.bytes = c.live_bytes,
			.cycles = (double)(c.switch_ns - from.switch_ns) *
				(double)c.engine_cycles / (double)c.engine_ns,
		};
	}
	if (guest_context_end(g, SWITCHED) || guest_context(g, SWITCHED) ||
	    guest_context_end(g, NEIGHBOUR) || guest_context(g, NEIGHBOUR))
		return ret ? ret : -EIO;
	/* An ended job is answered with an error, as expected. */
	if (head >= 0 && g->vm.vq[VMM_CONTROL].owned[head])
		vq_wait(&g->vm, VMM_CONTROL, (uint16_t)head, BENCH_TIMEOUT_MS);
	if (other >= 0 && g->vm.vq[VMM_CONTROL].owned[other])
		vq_wait(&g->vm, VMM_CONTROL, (uint16_t)other, BENCH_TIMEOUT_MS);
	return ret;
}

static double relative(double is, double should)
{
	return fabs(is - should) / should;
}

/* A fit to some, and how far it is from the others. */
static int judge(struct bench *b, const char *samples, const struct cost_sample *fit,
		 size_t nr_fit, const struct cost_sample *other, size_t nr_other, double *err)
{
	double *e = calloc(nr_fit + nr_other + 1, sizeof(*e)), p90;
	struct cost_fit f;
	const char *why;

	if (!e)
		return -ENOMEM;
	why = cost_fit(fit, nr_fit, e, &f);
	if (why || !nr_other) {
		complain("model: %s (%zu switches to fit, %zu others)",
			 why ? why : "none are left to judge by", nr_fit, nr_other);
		free(e);
		return -ENODATA;
	}
	for (size_t i = 0; i < nr_other; i++)
		e[i] = relative(preempt_cost_cycles(&f.cost, other[i].miss, other[i].bytes),
				other[i].cycles);
	*err = stats_median(e, nr_other);
	p90 = stats_percentile(e, nr_other, 0.9);
	free(e);
	result(b, "model_cost",
	       "\"samples\": \"%s\", \"cost_err\": %.4f, \"p90\": %.4f, \"a\": %.5f, \"b\": %.5f, \"fitted\": %zu, \"others\": %zu, \"fit_median_error\": %.4f, \"fit_r2\": %.4f",
	       samples, *err, p90, f.cost.a, f.cost.b, nr_fit, nr_other, f.median_error,
	       f.r2);
	return 0;
}

/* The median of each kind of switch in place of all of it; how many there are. */
static size_t medians(struct cost_sample *s, size_t n)
{
	double cycles[EACH];
	size_t from, k, nr = 0;

	for (from = 0; from < n; from += k) {
		for (k = 0; from + k < n && k < EACH && s[from + k].bytes == s[from].bytes &&
		     s[from + k].miss == s[from].miss; k++)
			cycles[k] = s[from + k].cycles;
		s[nr] = s[from];
		s[nr++].cycles = stats_median(cycles, k);
	}
	return nr;
}

static int cost_errors(struct bench *b, struct guest *g, double *err, double *single)
{
	struct switches *s = calloc(1, sizeof(*s));
	int ret = 0;

	if (!s)
		return -ENOMEM;
	for (size_t n = 0; n < NR_BESIDE && !ret; n++)
		for (size_t l = 0; l < NR_LIVE && !ret; l++)
			ret = switches(b, g, l, n, s, b->quick ? 2 : EACH);
	if (!ret)
		ret = judge(b, "single", s->fit, s->nr_fit, s->other, s->nr_other, single);
	if (!ret) {
		s->nr_fit = medians(s->fit, s->nr_fit);
		s->nr_other = medians(s->other, s->nr_other);
		ret = judge(b, "medians", s->fit, s->nr_fit, s->other, s->nr_other, err);
	}
	free(s);
	return ret;
}

/* ---- what a job takes ---- */

#define TRAIN		12u	/* jobs of an operation to learn from */
#define JUDGE		8u	/* and others to judge by */

/* Return a job of random size and with random data. */
static struct job_shape random_shape(uint32_t op, bool judge, uint64_t *seed)
{
	/* those to judge by lie between and beyond those learned from */
	double span = judge ? 2.3 * uniform(seed) - 0.15 :
		      2 * (uniform(seed) < 0.5 ? 0.35 * uniform(seed) :
			   0.65 + 0.35 * uniform(seed));
	double units = 1e5 * pow(10, span);
	struct job_shape s = { .op = op, .units = units };

	switch (op) {
	case MGPU_COMPUTE_FILL:
	case MGPU_COMPUTE_COPY:
	case MGPU_COMPUTE_ACCUMULATE:
		s.units /= 4;
		break;
	case MGPU_COMPUTE_MANDELBROT:
		s.units *= 4;
		s.knob = 200 + (uint32_t)(200 * uniform(seed));
		break;
	case MGPU_COMPUTE_HASH:
		s.knob = 1024u << (unsigned int)(4 * uniform(seed));
		break;
	case MGPU_COMPUTE_GATHER:
		s.knob = 12 + (uint32_t)(8 * uniform(seed));
		break;
	}
	return s;
}

static int run_one(struct bench *b, struct guest *g, const struct job *j, double *inst)
{
	struct mgpu_ctx from, to;
	int ret;

	ret = bench_ctx(b, g, SWITCHED, &from);
	if (!ret)
		ret = guest_run(g, SWITCHED, j);
	if (!ret)
		ret = bench_ctx(b, g, SWITCHED, &to);
	*inst = (double)(to.inst - from.inst);
	return ret;
}

static int inst_errors(struct bench *b, struct guest *g, double *err)
{
	const struct preempt_param param = PREEMPT_PARAM_DEFAULT;
	struct analyse *a = malloc(sizeof(*a));
	double e[MGPU_COMPUTE_NR_OPS * JUDGE], one[JUDGE], inst;
	struct analyse_guess guess;
	uint64_t seed = 17;
	size_t n = 0, k;
	struct job j;
	int ret = 0;

	if (!a)
		return -ENOMEM;
	analyse_init(a);
	for (unsigned int i = 0; i < TRAIN && !ret; i++) {
		for (uint32_t op = 1; op < MGPU_COMPUTE_NR_OPS && !ret; op++) {
			struct job_shape s = random_shape(op, false, &seed);

			ret = job_make(&j, &s, 0, IN, OUT);
			if (!ret)
				ret = run_one(b, g, &j, &inst);
			if (!ret)
				analyse_done(a, op,
					     (double)j.bytes, inst);
		}
	}
	for (uint32_t op = 1; op < MGPU_COMPUTE_NR_OPS && !ret; op++) {
		for (k = 0; k < JUDGE && !ret; k++) {
			struct job_shape s = random_shape(op, true, &seed);

			ret = job_make(&j, &s, 0, IN, OUT);
			if (!ret)
				ret = run_one(b, g, &j, &inst);
			if (ret)
				break;
			analyse_guess(a, &param, op,
				      (double)j.bytes, &guess);
			one[k] = relative(guess.inst, inst);
			e[n++] = one[k];
		}
		if (!ret)
			result(b, "model_inst_op", "\"op\": \"%s\", \"inst_err\": %.4f",
			       mgpu_ctx_op_name(op), stats_median(one, k));
	}
	free(a);
	if (ret)
		return ret;
	*err = stats_median(e, n);
	result(b, "model_inst",
	       "\"inst_err\": %.4f, \"p90\": %.4f, \"jobs_learned_from\": %u, \"jobs_judged\": %zu",
	       *err, stats_percentile(e, n, 0.9), TRAIN * (MGPU_COMPUTE_NR_OPS - 1), n);
	return 0;
}

int part_model(struct bench *b)
{
	double cost = 0, single = 0, inst = 0;
	struct guest g;
	int ret;

	ret = guest_open(b, &g, IN, OUT);
	if (ret)
		return ret;
	ret = guest_context(&g, SWITCHED);
	if (!ret)
		ret = guest_context(&g, NEIGHBOUR);
	if (!ret)
		ret = inst_errors(b, &g, &inst);
	if (!ret)
		ret = cost_errors(b, &g, &cost, &single);
	guest_close(&g);
	if (!ret)
		result(b, "model", "\"cost_err\": %.4f, \"cost_err_single\": %.4f, \"inst_err\": %.4f",
		       cost, single, inst);
	return ret;
}

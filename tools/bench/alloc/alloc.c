// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cost and quality of the allocators: exact against Ipopt, FEA against the exact
 * optimum, on the random problems of tests/unit/random_problem.h, with other seeds
 * than the tests use.
 *
 *   bench-alloc --json FILE [--reference FILE]
 *
 * --reference: output of mgpu-sim --scenario reference --json; its means and standard
 * deviations are added.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <json-c/json.h>

#include "decide.h"
#include "../common/bench.h"
#include "../common/stats.h"
#include "fea_printed.h"
#include "ipopt_fds.h"
#include "random_problem.h"

#define NR(a)		(sizeof(a) / sizeof((a)[0]))
#define ITERATIONS	10	/* per period, the default */
#define PERIODS		100

/* CPU time, seconds */
static double now(void)
{
	return (double)self_cpu_ns() * 1e-9;
}

static void *need(void *p)
{
	if (p)
		return p;
	complain("out of memory");
	exit(1);
}

static double value(const struct fds_problem *p, const double *x)
{
	double *y = need(calloc(p->n, sizeof(*y))), f;

	for (size_t j = 0; j < p->n; j++)
		y[j] = fds_mu(p, j) * x[j];
	f = fds_value(&p->param, p->n, p->weight, y);
	free(y);
	return f;
}

/* Five significant digits. */
static struct json_object *number(double v)
{
	char text[32];

	if (!isfinite(v))
		return NULL;
	snprintf(text, sizeof(text), "%.5g", v);
	return json_object_new_double_s(v, text);
}

/* ---- exact ---- */

struct config {
	const char *name;
	struct fds_param param;
	double demand, floor;
	size_t most;		/* tasks */
};

static const struct config configs[] = {
	{ "default", { 2, -0.5 }, 0, 0, 100000 },
	{ "default, 40 % limited demand, 30 % floors", { 2, -0.5 }, 0.4, 0.3, 100000 },
	{ "beta 0.5, lambda 1.5, 40 % limited demand", { 0.5, 1.5 }, 0.4, 0, 10000 },
	{ "beta 3, lambda -1, 40 % limited demand", { 3, -1 }, 0.4, 0, 10000 },
};

static void exact_one(struct json_object *all, const struct config *c, size_t n)
{
	unsigned int repeats = n <= 1000 ? 101 : n <= 10000 ? 31 : 11;
	unsigned int compared = n <= 100 ? 20 : n <= 1000 ? 10 : n <= 10000 ? 3 : 1;
	double *us = need(calloc(3 * repeats, sizeof(*us))), *warm = us + repeats;
	double *ratio = us + 2 * repeats, gap = 0, proven = 0, behind = 0;
	struct random_problem r = { .seed = 7000 + n };
	unsigned int solved = 0, infeasible = 0;
	struct json_object *o;

	if (c != configs && n > 10000)
		compared = 0;
	for (unsigned int k = 0; k < repeats; k++) {
		double price[MGPU_MAX_RES] = { 0 }, left, t, *x, *other;

		if (!random_problem(&r, n, 2, c->demand, c->floor))
			need(NULL);
		r.p.param = c->param;
		x = need(calloc(2 * n, sizeof(*x)));
		other = x + n;
		t = now();
		if (fds_best_from(&r.p, price, x, &left)) {
			complain("no optimum for n = %zu", n);
			exit(1);
		}
		us[k] = (now() - t) * 1e6;
		proven = fmax(proven, left);
		infeasible += !fds_feasible(&r.p, x, 1e-12);
		if (k < compared) {
			double ours = value(&r.p, x), theirs, took;
			int status;

			t = now();
			status = ipopt_fds(&r.p, other);
			took = (now() - t) * 1e6;
			theirs = value(&r.p, other);
			behind = fmax(behind, (theirs - ours) / fabs(ours));
			if (status == 0 || status == 1) {
				gap = fmax(gap, fabs(ours - theirs) / fabs(ours));
				ratio[solved++] = took / us[k];
			}
		}
		/* the next period: costs a few percent off, prices of this one */
		for (size_t j = 0; j < n * r.p.m; j++)
			r.need[j] *= 1 + 0.05 * (random_uniform(&r.seed) - 0.5);
		if (r.p.floor)
			sla_floors(&r.p, r.floor, r.floor);
		t = now();
		fds_best_from(&r.p, price, x, &left);
		warm[k] = (now() - t) * 1e6;
		free(x);
		random_problem_free(&r);
	}
	o = json_object_new_object();
	json_object_object_add(o, "n", json_object_new_int64((int64_t)n));
	json_object_object_add(o, "us", number(stats_median(us, repeats)));
	json_object_object_add(o, "rel_gap", solved ? number(gap) : NULL);
	json_object_object_add(o, "vs_ipopt",
			       solved ? number(stats_median(ratio, solved)) : NULL);
	json_object_object_add(o, "behind_ipopt", compared ? number(behind) : NULL);
	json_object_object_add(o, "proven_gap", number(proven));
	json_object_object_add(o, "us_next_period", number(stats_median(warm, repeats)));
	json_object_object_add(o, "infeasible", json_object_new_int64(infeasible));
	json_object_object_add(o, "problems", json_object_new_int64(repeats));
	json_object_object_add(o, "ipopt_tried", json_object_new_int64(compared));
	json_object_object_add(o, "ipopt_solved", json_object_new_int64(solved));
	json_object_object_add(o, "config", json_object_new_string(c->name));
	json_object_array_add(all, o);
	printf("%7zu %9.1f %9.1f %9.1e", n, us[repeats / 2], warm[repeats / 2], proven);
	if (solved)
		printf(" %9.1e %9.0f %3u/%u", gap, stats_median(ratio, solved), solved, compared);
	else
		printf(" %9s %9s %3u/%u", "-", "-", solved, compared);
	printf("  %s\n", c->name);
	fflush(stdout);
	free(us);
}

static struct json_object *bench_exact(void)
{
	static const size_t sizes[] = { 10, 100, 1000, 10000, 100000 };
	struct json_object *all = json_object_new_array();

	puts("exact: CPU time of a solve from scratch and of the next period's, median; the most\n"
	     "that log |f| can still be improved, proven; distance to Ipopt where that solved\n"
	     "it, and how many times its time is");
	printf("%7s %9s %9s %9s %9s %9s\n", "n", "us", "next us", "proven", "to Ipopt",
	       "its time");
	for (size_t c = 0; c < NR(configs); c++)
		for (size_t k = 0; k < NR(sizes); k++)
			if (sizes[k] <= configs[c].most)
				exact_one(all, &configs[c], sizes[k]);
	return all;
}

/* ---- FEA ---- */

/*
 * A problem over 100 periods. Steady: the rates that a period starts from are
 * those that the one before planned, cut to what is feasible as a machine does.
 * Moving: before each period every cost has moved by up to 5 %, and every demand
 * by up to 20 %, away from where they were.
 */
struct course {
	double gap[3];		/* after 1, 10, 100 periods, relative */
	double us;		/* per period */
	unsigned int iterates, infeasible;
};

static void move(struct random_problem *r, double *base)
{
	size_t n = r->p.n;

	for (size_t j = 0; j < n * r->p.m; j++)
		r->need[j] = base[j] * (1 + 0.1 * (random_uniform(&r->seed) - 0.5));
	for (size_t j = 0; j < n; j++)
		r->demand[j] = base[n * r->p.m + j] *
			(1 + 0.4 * (random_uniform(&r->seed) - 0.5));
}

static void course(struct random_problem *r, bool moving, bool printed, struct course *c)
{
	size_t n = r->p.n, at = 0;
	double *x = need(calloc(3 * n, sizeof(*x))), *best = x + n, *y = x + 2 * n;
	double *base = need(calloc(n * (r->p.m + 1), sizeof(*base)));
	struct alloc_state state = { 0 };
	double took = 0;

	memcpy(base, r->need, n * r->p.m * sizeof(*base));
	memcpy(base + n * r->p.m, r->demand, n * sizeof(*base));
	memcpy(x, r->rate, n * sizeof(*x));
	for (unsigned int k = 1; k <= PERIODS; k++) {
		struct fea_problem *fp;
		double start;

		if (moving)
			move(r, base);
		start = now();
		fp = need(fea_problem_new(&r->p));
		fea_start(fp, &state, x);
		took += now() - start;
		for (unsigned int i = 0; i < ITERATIONS; i++) {
			start = now();
			if (printed)
				fea_printed_iterate(fp, &state);
			else
				fea_iterate(fp, &state);
			took += now() - start;
			fea_result(fp, y);
			c->iterates++;
			c->infeasible += !fds_feasible(&r->p, y, 1e-9);
		}
		fea_result(fp, x);
		fea_problem_free(fp);
		if (k == 1 || k == 10 || k == PERIODS) {
			double want, got, most = 1;

			if (fds_best(&r->p, best))
				exit(1);
			/* rates beyond the capacity are not delivered */
			for (size_t i = 0; i < r->p.m; i++) {
				double use = 0;

				for (size_t j = 0; j < n; j++)
					use += fds_need(&r->p, i, j) * x[j];
				most = fmax(most, use / r->p.capacity[i]);
			}
			for (size_t j = 0; j < n; j++)
				y[j] = fmin(x[j] / most, r->p.demand[j]);
			want = value(&r->p, best);
			got = value(&r->p, y);
			c->gap[at++] = (want - got) / fabs(want);
		}
	}
	c->us = took * 1e6 / PERIODS;
	free(base);
	free(x);
}

static void fea_one(struct json_object *all, size_t n, bool moving, bool printed)
{
	unsigned int problems = n <= 100 ? 200 : n <= 1000 ? 40 : n <= 10000 ? 6 : 2;
	double *gap = need(calloc(4 * problems, sizeof(*gap)));
	double sum[3] = { 0 }, worst[3] = { 0 };
	struct random_problem r = { .seed = 9000 + n };
	struct course c = { .iterates = 0 };
	struct json_object *o;

	for (unsigned int k = 0; k < problems; k++) {
		if (!random_problem(&r, n, 2, moving ? 0.4 : 0, 0))
			need(NULL);
		course(&r, moving, printed, &c);
		for (size_t i = 0; i < 3; i++) {
			sum[i] += c.gap[i] / problems;
			worst[i] = fmax(worst[i], c.gap[i]);
		}
		gap[k] = c.us;
		random_problem_free(&r);
	}
	o = json_object_new_object();
	json_object_object_add(o, "n", json_object_new_int64((int64_t)n));
	json_object_object_add(o, "us", number(stats_median(gap, problems)));
	json_object_object_add(o, "gap_1", number(sum[0]));
	json_object_object_add(o, "gap_10", number(sum[1]));
	json_object_object_add(o, "gap_100", number(sum[2]));
	json_object_object_add(o, "worst_1", number(worst[0]));
	json_object_object_add(o, "worst_10", number(worst[1]));
	json_object_object_add(o, "worst_100", number(worst[2]));
	json_object_object_add(o, "infeasible",
			       number((double)c.infeasible / c.iterates));
	json_object_object_add(o, "policy",
			       json_object_new_string(printed ? "fea-printed" : "fea"));
	json_object_object_add(o, "demand",
			       json_object_new_string(moving ? "moving" : "steady"));
	json_object_object_add(o, "problems", json_object_new_int64(problems));
	json_object_array_add(all, o);
	printf("%7zu %9.1f %9.4f %9.4f %9.4f %9.2f  %s, %s\n", n, gap[problems / 2],
	       sum[0] * 100, sum[1] * 100, sum[2] * 100,
	       100.0 * c.infeasible / c.iterates, printed ? "as printed" : "fea",
	       moving ? "moving" : "steady");
	fflush(stdout);
	free(gap);
}

static struct json_object *bench_fea(void)
{
	static const size_t sizes[] = { 3, 10, 100, 1000, 10000, 100000 };
	struct json_object *all = json_object_new_array();

	puts("\nfea, 10 iterations a period: CPU time per period; mean distance from the optimum\n"
	     "after 1, 10 and 100 periods, %; infeasible iterates, %");
	printf("%7s %9s %9s %9s %9s %9s\n", "n", "us", "1", "10", "100", "infeasible");
	for (int printed = 0; printed < 2; printed++)
		for (int moving = 0; moving < 2; moving++)
			for (size_t k = 0; k < NR(sizes); k++)
				if (!printed || sizes[k] <= 1000)
					fea_one(all, sizes[k], moving, printed);
	return all;
}

/* ---- a period of mgpud, without the kernel's part ---- */

static void period_one(struct json_object *all, size_t n)
{
	const struct decide_param param = {
		.allocator = &alloc_exact, .iterations = ITERATIONS,
		.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct sample_vgpu *vgpus = need(calloc(n, sizeof(*vgpus)));
	struct sample_vmm *vmms = need(calloc(n, sizeof(*vmms)));
	struct sample_dev dev = { .id = 0, .engines = 1 };
	struct sample s = {
		.now_ns = 1000000000, .cpus = 4, .vgpus = vgpus, .nr_vgpus = n,
		.vmms = vmms, .nr_vmms = n, .devs = &dev, .nr_devs = 1,
	};
	double estimate[PERIODS], plan[PERIODS];
	struct control control = { 0 };
	struct estimate e = { 0 };
	struct json_object *o;
	uint64_t seed = 5;

	for (size_t j = 0; j < n; j++) {
		vgpus[j] = (struct sample_vgpu){
			.id = (uint32_t)j, .open = true, .tgid = (uint32_t)j + 1,
		};
		snprintf(vgpus[j].uuid, sizeof(vgpus[j].uuid), "%036zu", j);
		vmms[j].tgid = (uint32_t)j + 1;
	}
	for (unsigned int k = 0; k < PERIODS; k++) {
		struct plan p;
		double t;

		s.now_ns += 1000000000;
		s.idle_ns += 500000000;
		for (size_t j = 0; j < n; j++) {
			vgpus[j].frames += 1 + (uint64_t)(5 * random_uniform(&seed));
			vgpus[j].engine_ns += (uint64_t)(2e9 * random_uniform(&seed) / (double)n);
			vgpus[j].throttled_ns += random_uniform(&seed) < 0.5 ? 100000000 : 0;
			vmms[j].cpu_ns += (uint64_t)(7e9 * random_uniform(&seed) / (double)n);
		}
		t = now();
		if (estimate_update(&e, &s, ESTIMATE_HEADROOM))
			need(NULL);
		estimate[k] = (now() - t) * 1e6;
		t = now();
		if (decide(&e, &param, NULL, NULL, &control, &p))
			need(NULL);
		plan[k] = (now() - t) * 1e6;
		plan_free(&p);
	}
	estimate_free(&e);
	o = json_object_new_object();
	json_object_object_add(o, "n", json_object_new_int64((int64_t)n));
	json_object_object_add(o, "estimate_us", number(stats_median(estimate, PERIODS)));
	json_object_object_add(o, "decide_us", number(stats_median(plan, PERIODS)));
	json_object_array_add(all, o);
	printf("%7zu %9.1f %9.1f\n", n, estimate[PERIODS / 2], plan[PERIODS / 2]);
	free(vgpus);
	free(vmms);
}

static struct json_object *bench_period(void)
{
	static const size_t sizes[] = { 3, 100, 1000, 1024 };
	struct json_object *all = json_object_new_array();

	puts("\na period under the policy exact, all vGPUs active: CPU time, median");
	printf("%7s %9s %9s\n", "n", "estimate", "decide");
	for (size_t k = 0; k < NR(sizes); k++)
		period_one(all, sizes[k]);
	return all;
}

/* ---- the reference experiment ---- */

static struct json_object *reference(const char *path)
{
	struct json_object *o = json_object_from_file(path), *all = NULL;

	if (!o || !json_object_object_get_ex(o, "reference", &all) ||
	    !json_object_is_type(all, json_type_array)) {
		complain("%s has no \"reference\"; run: mgpu-sim --scenario reference --json %s",
			 path, path);
		exit(1);
	}
	json_object_get(all);
	json_object_put(o);
	return all;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "reference", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *json = NULL, *ref = NULL;
	struct json_object *all;
	int opt;

	/* one processor for both: Ipopt's linear algebra would take all */
	if (!getenv("OMP_NUM_THREADS")) {
		setenv("OMP_NUM_THREADS", "1", 1);
		execv("/proc/self/exe", argv);
	}
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = optarg;
			break;
		case 'r':
			ref = optarg;
			break;
		case 'h':
			puts("usage: bench-alloc [--json FILE] [--reference FILE]");
			return 0;
		default:
			return 2;
		}
	}
	all = json_object_new_object();
	if (ref)
		json_object_object_add(all, "reference", reference(ref));
	json_object_object_add(all, "exact", bench_exact());
	json_object_object_add(all, "fea", bench_fea());
	json_object_object_add(all, "period", bench_period());
	if (json && json_object_to_file_ext(json, all, JSON_C_TO_STRING_PRETTY)) {
		complain("cannot write %s: %s", json, strerror(errno));
		return 1;
	}
	json_object_put(all);
	return 0;
}

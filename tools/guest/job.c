// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-compute: run compute jobs on a vGPU, check their results, say how long they
 * took.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmdline.h"
#include "job.h"

const char *const program_name = "mgpu-compute";

#define MAX_COUNT	1000000

struct options {
	const char *device;
	const char *op;
	uint32_t size;
	uint32_t count;
	uint32_t slots;
	uint32_t timeout_ms;
	bool verify;
	bool json;
};

struct totals {
	uint32_t jobs;
	uint32_t failed;
	uint64_t ns;
	uint64_t min_ns;
	uint64_t max_ns;
};

static const char usage[] =
"usage: mgpu-compute [options]\n"
"\n"
"Run compute jobs on a vGPU of a render type, one after the other.\n"
"\n"
"  --device PATH    the vGPU's device (/dev/dri/card0)\n"
"  --op NAME        fill, copy, scale, matmul, mandelbrot, hash, gather,\n"
"                   accumulate, or all of them (all)\n"
"  --size N         a picture or a matrix of N times N, and for the others as\n"
"                   many bytes: 4 N^2; 1 to 16384, matmul up to 2048 (512)\n"
"  --count N        jobs of each operation (3)\n"
"  --slots N        parts of a job that may run at once; 0 is as many as the\n"
"                   device has (0)\n"
"  --timeout S      how long to wait for a job, seconds (60)\n"
"  --verify         compute each result here, too, and compare\n"
"  --json           a JSON object on each line instead of key=value\n"
"  --help           this text\n"
"\n"
"Prints a line per job: the operation, which job, its time from submission to\n"
"the end in microseconds, and with --verify whether its result was right.  The\n"
"last line has the number of jobs, how many of them failed, and the shortest,\n"
"mean and longest time.\n"
"\n"
"Exit status: 0 when all is well, 1 when a job failed, took too long or had a\n"
"wrong result, 2 when there was nothing to run it on or a wrong option.\n";

static bool chosen(const struct options *o, const struct kind *kind)
{
	return !strcmp(o->op, "all") || !strcmp(o->op, work_name(kind));
}

static int check_op(const struct options *o)
{
	const struct kind *kind;
	unsigned int i;

	for (i = 0; (kind = work_kind(i)); i++)
		if (chosen(o, kind))
			return 0;
	explain("--op '%s': there is no such operation; try --help\n", o->op);
	return -EINVAL;
}

/* Returns 0, 1 when there is nothing left to do, or -EINVAL. */
static int parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "op", required_argument, NULL, 'o' },
		{ "size", required_argument, NULL, 'n' },
		{ "count", required_argument, NULL, 'c' },
		{ "slots", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 't' },
		{ "verify", no_argument, NULL, 'v' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, ret = 0;

	while (!ret && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			o->device = optarg;
			break;
		case 'o':
			o->op = optarg;
			break;
		case 'n':
			ret = option_u32("size", optarg, 1, WORK_MAX_SIZE,
					 &o->size);
			break;
		case 'c':
			ret = option_u32("count", optarg, 1, MAX_COUNT,
					 &o->count);
			break;
		case 's':
			ret = option_u32("slots", optarg, 0,
					 MGPU_COMPUTE_MAX_SLOTS, &o->slots);
			break;
		case 't':
			ret = option_u32("timeout", optarg, 1, 3600,
					 &o->timeout_ms);
			o->timeout_ms *= 1000;
			break;
		case 'v':
			o->verify = true;
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		default:
			ret = -EINVAL;
			break;
		}
	}
	if (!ret && optind < argc) {
		explain("'%s' is no option; try --help\n", argv[optind]);
		ret = -EINVAL;
	}
	return ret ? ret : check_op(o);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void print_job(const struct options *o, const char *op, uint32_t job,
		      uint64_t ns, bool right)
{
	const char *verified = right ? "true" : "false";

	if (o->json)
		printf("{\"op\": \"%s\", \"job\": %u, \"us\": %.1f%s%s}\n", op,
		       job, (double)ns / 1000,
		       o->verify ? ", \"right\": " : "",
		       o->verify ? verified : "");
	else
		printf("op=%s job=%u us=%.1f%s%s\n", op, job,
		       (double)ns / 1000, o->verify ? " right=" : "",
		       o->verify ? verified : "");
	fflush(stdout);
}

static void print_totals(const struct options *o, const struct totals *t)
{
	uint32_t done = t->jobs - t->failed;
	double mean = done ? (double)t->ns / done / 1000 : 0;
	double min = (double)t->min_ns / 1000, max = (double)t->max_ns / 1000;

	if (o->json)
		printf("{\"jobs\": %u, \"failed\": %u, \"min_us\": %.1f, \"mean_us\": %.1f, \"max_us\": %.1f}\n",
		       t->jobs, t->failed, min, mean, max);
	else
		printf("jobs=%u failed=%u min_us=%.1f mean_us=%.1f max_us=%.1f\n",
		       t->jobs, t->failed, min, mean, max);
}

/* Returns 0, also when its result was wrong; or an error, and no more will go. */
static int run_job(const struct options *o, struct compute *c, struct work *w,
		   uint32_t number, struct totals *t)
{
	const char *op = work_name(w->kind);
	uint64_t ns;
	size_t at;
	bool right;
	int ret;

	work_before(w);
	ns = now_ns();
	ret = compute_run(c, &w->job, (int)o->timeout_ms);
	ns = now_ns() - ns;
	t->jobs++;
	if (ret) {
		t->failed++;
		explain("%s: %s\n", op, compute_message(c));
		/* It may still write. */
		if (ret == -ETIME && compute_settle(c, &w->out))
			explain("%s: %s\n", op, compute_message(c));
		return ret;
	}

	right = work_right(w, &at);
	if (!right) {
		t->failed++;
		explain("%s: job %u is wrong from byte %zu on; the kernel's log says if the device refused it\n",
			op, number, at);
	} else {
		t->ns += ns;
		if (ns > t->max_ns)
			t->max_ns = ns;
		if (!t->min_ns || ns < t->min_ns)
			t->min_ns = ns;
	}
	print_job(o, op, number, ns, right);
	return 0;
}

static int run_kind(const struct options *o, struct compute *c,
		    const struct kind *kind, struct totals *t)
{
	struct work w;
	uint32_t i;
	int ret;

	ret = work_open(&w, c, kind, o->size, o->verify);
	if (ret) {
		explain("%s: %s\n", work_name(kind), compute_message(c));
	} else {
		compute_job_slots(&w.job, o->slots);
		for (i = 1; !ret && i <= o->count; i++)
			ret = run_job(o, c, &w, i, t);
	}
	work_close(&w, c);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = {
		.device = "/dev/dri/card0", .op = "all", .size = 512,
		.count = 3, .timeout_ms = 60000,
	};
	struct totals t = { 0 };
	const struct kind *kind;
	struct compute c;
	unsigned int i;
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;
	if (compute_open(&c, o.device)) {
		explain("%s\n", compute_message(&c));
		return 2;
	}
	for (i = 0; !ret && (kind = work_kind(i)); i++)
		if (chosen(&o, kind))
			ret = run_kind(&o, &c, kind, &t);
	print_totals(&o, &t);
	compute_close(&c);
	return ret || t.failed ? 1 : 0;
}

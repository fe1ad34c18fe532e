// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-compute: run compute jobs on a vGPU, check their results, say how long they
 * took.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
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
	uint32_t timeout;	/* seconds */
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
"  --slots N        slots that a job may use at once; 0 for all slots of the\n"
"                   device (0)\n"
"  --timeout S      longest wait for a job, seconds (60)\n"
"  --verify         compute each result here, too, and compare\n"
"  --json           a JSON object on each line instead of key=value\n"
"  --help           this text\n"
"\n"
"Prints a line per job: the operation, the job's number, its time from submission\n"
"to completion in microseconds, and with --verify whether its result is right.\n"
"The last line has the number of jobs, that of failed ones, and the shortest, mean\n"
"and longest time.\n"
"\n"
"Exit status: 0 for success, 1 if a job failed, timed out or had a wrong result,\n"
"2 for a missing device or an invalid option.\n";

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
	explain("--op '%s': unknown operation; try --help\n", o->op);
	return -EINVAL;
}

static int parse(struct options *o, int argc, char **argv)
{
	const struct cmdline_option options[] = {
		TEXT("device", &o->device),
		TEXT("op", &o->op),
		U32("size", &o->size, 1, WORK_MAX_SIZE),
		U32("count", &o->count, 1, MAX_COUNT),
		U32("slots", &o->slots, 0, MGPU_COMPUTE_MAX_SLOTS),
		U32("timeout", &o->timeout, 1, 3600),
		FLAG("verify", &o->verify),
		FLAG("json", &o->json),
		{ 0 },
	};
	int ret = cmdline_parse(options, usage, argc, argv);

	return ret ? ret : check_op(o);
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
	ret = compute_run(c, &w->job, (int)o->timeout * 1000);
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
		.count = 3, .timeout = 60,
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

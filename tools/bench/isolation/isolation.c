// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what a hostile guest leaves its neighbours.  Four machines keep their rings
 * full; a fifth, of the same weight, is the attacker or, in the run that each run is
 * compared with, a machine that keeps its ring full, too.  So the neighbours are
 * promised four fifths of the engine in both.
 *
 * Runs in the test host, as root, with the modules loaded; tools/bench/isolation/run
 * calls it.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/stats.h"
#include "../sched/sched.h"
#include "isolation.h"

#define NEIGHBOURS	4
#define DEPTH		4
#define MAX_PAIRS	15
#define MAX_TIMES	65536
#define TIMEOUT_MS	1000	/* a job that hangs ends after it */

/* What the neighbours got in one run. */
struct got {
	double frames;		/* a second, all together */
	double p99_us;		/* time from frame to frame */
};

static struct bench bench;
static struct machine machines[NEIGHBOURS + 1];
static double times[MAX_TIMES];

/* ---- the fifth machine ---- */

/* Be the fifth machine; @a is NULL for one that behaves. */
static int be_fifth(const struct attack *a, int ready)
{
	const struct sched_param idle = { 0 };
	struct machine *m = &machines[NEIGHBOURS];
	struct bench alone = { .m = m, .max = 1 };
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Before the open: the vGPU's worker has the nice value of then. */
	if (a)
		setpriority(PRIO_PROCESS, 0, 19);
	ret = machine_open(m, BENCH_BASE_W, BENCH_BASE_H);
	if (ret)
		return ret;
	if (!a) {
		/* As the neighbours' client: its frames must be ready. */
		ret = machine_load(m, DEPTH, BENCH_BASE_W, BENCH_BASE_H);
		if (!ret && write(ready, "", 1) == 1)
			bench_pump(&alone, 1, UINT64_MAX);
		return -EIO;
	}
	if (sched_setscheduler(0, SCHED_IDLE, &idle))
		return -errno;
	if (write(ready, "", 1) != 1)
		return -EIO;
	return a->run(&m->vm, m->id);
}

static pid_t start_fifth(const struct attack *a)
{
	int pipes[2];
	pid_t child;
	char c;

	if (pipe(pipes))
		return -errno;
	child = fork();
	if (!child)
		_exit(-be_fifth(a, pipes[1]) & 0x7f);
	close(pipes[1]);
	if (child > 0 && read(pipes[0], &c, 1) != 1) {
		waitpid(child, NULL, 0);
		child = -EIO;
	}
	close(pipes[0]);
	return child;
}

/* Return 0 if the fifth machine went on to the end. */
static int end_fifth(pid_t child)
{
	int status;

	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? 0 : -WEXITSTATUS(status);
}

/* ---- the neighbours ---- */

static void measure(uint64_t length, struct got *g)
{
	uint64_t last[NEIGHBOURS] = { 0 }, start = now_ns(), next = start, now;
	unsigned int i, got;
	size_t n = 0;
	uint64_t frames = 0;

	do {
		next += BENCH_TICK_NS;
		sleep_until(next);
		for (i = 0; i < NEIGHBOURS; i++) {
			got = machine_reap(&machines[i]);
			now = now_ns();
			frames += got;
			/* Of several at once, each took as long. */
			if (got && last[i] && n < MAX_TIMES)
				times[n++] = (double)(now - last[i]) / got / 1000;
			if (got)
				last[i] = now;
		}
	} while (now_ns() - start < length);
	/* The frame that has not come counts with the time that it has taken. */
	for (i = 0; i < NEIGHBOURS && n < MAX_TIMES; i++)
		times[n++] = (double)(now_ns() - (last[i] ? last[i] : start)) / 1000;
	g->frames = (double)frames * 1e9 / (double)(now_ns() - start);
	g->p99_us = stats_percentile(times, n, 0.99);
}

static int run_once(const struct attack *a, struct got *g)
{
	const uint64_t length = bench.quick ? SEC / 4 : 3 * SEC / 2;
	int ret, status, stopped;
	unsigned int i;
	pid_t child;

	child = start_fifth(a);
	if (child < 0)
		return child;
	for (i = 0; i < NEIGHBOURS; i++) {
		ret = machine_load(&machines[i], DEPTH, BENCH_BASE_W, BENCH_BASE_H);
		if (ret)
			break;
	}
	if (!ret) {
		bench_pump(&bench, NEIGHBOURS, now_ns() + SEC / 5);
		measure(length, g);
	}
	stopped = bench_stop(&bench, NEIGHBOURS);
	status = end_fifth(child);
	sysfs_write("/sys/module/mgpu_soft/parameters/hang", "0");
	if (!ret)
		ret = status;
	return ret ? ret : stopped;
}

static int row(const struct attack *a)
{
	double kept[MAX_PAIRS], p99[MAX_PAIRS], least, most;
	const unsigned int pairs = bench.quick ? 1 : 5;
	struct got with, without;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < pairs && !ret; i++) {
		/* In turns, so that a machine that gets slower spoils neither. */
		if (i % 2)
			ret = run_once(a, &with);
		if (!ret)
			ret = run_once(NULL, &without);
		if (!ret && !(i % 2))
			ret = run_once(a, &with);
		if (ret)
			break;
		kept[i] = with.frames / without.frames;
		p99[i] = with.p99_us / without.p99_us;
	}
	if (ret) {
		result(&bench, "rows", "\"attacker\": \"%s\", \"failed\": \"%s\"",
		       a->name, strerror(-ret));
		return ret;
	}
	stats_median(kept, pairs);
	least = kept[0];
	most = kept[pairs - 1];
	result(&bench, "rows",
	       "\"attacker\": \"%s\", \"kept\": %.3f, \"kept_least\": %.3f, \"kept_most\": %.3f, \"p99_ratio\": %.3f, \"pairs\": %u, \"frames\": %.0f",
	       a->name, stats_median(kept, pairs), least, most,
	       stats_median(p99, pairs), pairs, without.frames);
	return 0;
}

/* ---- the whole ---- */

static int set_up(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	struct nl_dev d;
	int ret;

	/* The last processor is ours; the engine keeps clear of it by itself. */
	CPU_ZERO(&set);
	CPU_SET((unsigned int)(cpus > 0 ? cpus - 1 : 0), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return -errno;
	prctl(PR_SET_TIMERSLACK, 1);
	setpriority(PRIO_PROCESS, 0, -15);
	bench.m = machines;
	bench.max = NEIGHBOURS + 1;
	ret = nl_open(&bench.nl);
	if (!ret)
		ret = nl_dev_set(&bench.nl, VMM_PARENT, "weighted", TIMEOUT_MS);
	/* One engine, for which all contend. */
	if (!ret)
		ret = nl_dev_get(&bench.nl, VMM_PARENT, &d);
	if (!ret)
		ret = nl_dev_set_slots(&bench.nl, d.id, 1);
	if (!ret)
		ret = bench_create(&bench, NEIGHBOURS + 1);
	if (!ret)
		ret = bench_open(&bench, NEIGHBOURS, BENCH_BASE_W, BENCH_BASE_H);
	return ret;
}

int main(int argc, char **argv)
{
	struct bench_part part[16] = { { 0 } };
	struct bench_options o = {
		.usage = "usage: bench-isolation [--quick] [--json FILE] [ATTACK]...\n",
		.parts = part,
		.json = stdout,
	};
	unsigned int i;
	int ret, err;

	for (i = 0; i < nr_attacks; i++)
		part[i].name = attacks[i].name;
	o.nr_parts = nr_attacks;
	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	bench.json = o.json;
	bench.quick = o.quick;
	conditions_to(bench.json, bench.quick, "\"neighbours\": %u, \"depth\": %u",
		      NEIGHBOURS, DEPTH);
	ret = set_up();
	if (ret)
		complain("cannot set the machines up: %s", strerror(-ret));
	err = ret;
	for (i = 0; i < nr_attacks && !ret; i++) {
		if (!(o.wanted & (1u << i)))
			continue;
		if (row(&attacks[i]))
			err = -EIO;
	}
	bench_close(&bench, 0);
	bench_remove(&bench);
	ret = results_end(bench.json);
	return err || ret ? 1 : 0;
}

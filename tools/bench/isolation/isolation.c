// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure what a hostile guest leaves its neighbours.  Four machines keep their rings
 * full; a fifth, of the same weight, is the attacker or, in the run that each run is
 * compared with, a machine that keeps its ring full, too.  So the neighbours are
 * promised four fifths of the engine in both.
 *
 * Runs in the test host, as root, with the modules loaded; tools/bench/isolation/run
 * calls it.  In a test host with a GPU ($MGPU_GPU) all machines draw on it, and the
 * attacks are those whose name begins with "gl-"; elsewhere they are the others.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/stats.h"
#include "isolation.h"

#define NEIGHBOURS	4
#define DEPTH		4
/* A GPU that finds all rings empty takes a job of the attacker's, to its end. */
#define GL_DEPTH	32
#define MAX_PAIRS	15
#define MAX_TIMES	262144

/* Results of a run: the neighbours', and the fifth machine's. */
struct got {
	double frames;		/* a second, all together */
	double engine;		/* engine time, seconds of a second */
	double dry;		/* part of the time in which a ring was empty */
	double p99_us;		/* time from frame to frame */
	double longest_us;	/* the same, the longest */
	double share;		/* the fifth's part of all engine time */
	uint64_t hangs;		/* of the fifth */
};

static struct bench bench;
static struct machine machines[NEIGHBOURS + 1];
static double times[MAX_TIMES];
static bool gpu;		/* the device is a physical GPU */
static unsigned long *did;	/* shared with the attacker; see attack_did() */

/* ---- machines ---- */

static int open_machine(struct machine *m, uint32_t w, uint32_t h)
{
	return gpu ? machine_open_with(m, GL_FEATURES, w, h, gl_furnish) :
		     machine_open(m, w, h);
}

static int load_machine(struct machine *m)
{
	return gpu ? gl_load(m, GL_DEPTH) :
		     machine_load(m, DEPTH, BENCH_BASE_W, BENCH_BASE_H);
}

void attack_did(void)
{
	__atomic_fetch_add(did, 1, __ATOMIC_RELAXED);
}

static unsigned long jobs_done(void)
{
	return __atomic_load_n(did, __ATOMIC_RELAXED);
}

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
	ret = open_machine(m, a && !gpu ? ATTACK_W : BENCH_BASE_W,
			   a && !gpu ? ATTACK_H : BENCH_BASE_H);
	if (ret)
		return ret;
	if (!a) {
		/* As the neighbours' client: its frames must be ready. */
		ret = load_machine(m);
		if (!ret && write(ready, "", 1) == 1)
			bench_pump(&alone, 1, UINT64_MAX);
		return -EIO;
	}
	if (sched_setscheduler(0, SCHED_IDLE, &idle))
		return -errno;
	ret = a->prepare ? a->prepare(&m->vm) : 0;
	if (ret)
		return ret;
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

static uint64_t fifth_stat(unsigned int attr)
{
	return nl_stat(&bench.nl, machines[NEIGHBOURS].uuid, attr);
}

static uint64_t engine_ns(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < NEIGHBOURS; i++)
		sum += nl_stat(&bench.nl, machines[i].uuid, MGPU_A_STATS_ENGINE_NS);
	return sum;
}

/* Keep the rings full until a job of the attacker's ends, or for @ns. */
static void until_job(uint64_t ns)
{
	const uint64_t end = now_ns() + ns;
	const unsigned long before = jobs_done();

	while (jobs_done() == before && now_ns() < end)
		bench_pump(&bench, NEIGHBOURS, now_ns() + 2 * BENCH_TICK_NS);
}

/* @whole: as in struct attack; a run is at most twice as long then */
static void measure(uint64_t length, bool whole, struct got *g)
{
	uint64_t last[NEIGHBOURS] = { 0 }, used = engine_ns();
	uint64_t fifth = fifth_stat(MGPU_A_STATS_ENGINE_NS);
	unsigned long jobs = 0;
	bool over;
	uint64_t dry = bench_dry(&bench, NEIGHBOURS), ticks = 0;
	uint64_t start = now_ns(), next = start, now;
	unsigned int i, got;
	size_t n = 0;
	uint64_t frames = 0;

	do {
		next += BENCH_TICK_NS;
		ticks++;
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
		over = now_ns() - start >= length;
		if (whole && !over)
			jobs = jobs_done();
	} while (!over || (whole && jobs_done() == jobs &&
			   now_ns() - start < 2 * length));
	/* The frame that has not come counts with the time that it has taken. */
	for (i = 0; i < NEIGHBOURS && n < MAX_TIMES; i++)
		times[n++] = (double)(now_ns() - (last[i] ? last[i] : start)) / 1000;
	g->frames = (double)frames * 1e9 / (double)(now_ns() - start);
	used = engine_ns() - used;
	g->engine = (double)used / (double)(now_ns() - start);
	fifth = fifth_stat(MGPU_A_STATS_ENGINE_NS) - fifth;
	g->share = fifth + used ? (double)fifth / (double)(fifth + used) : 0;
	g->hangs = fifth_stat(MGPU_A_STATS_HANGS);
	g->dry = (double)(bench_dry(&bench, NEIGHBOURS) - dry) /
		 (double)(ticks * NEIGHBOURS);
	g->p99_us = stats_percentile(times, n, 0.99);
	g->longest_us = times[n - 1];	/* sorted */
}

/* @a: the attack, or NULL; @seconds: as in struct attack */
static int run_once(const struct attack *a, unsigned int seconds, struct got *g)
{
	const uint64_t length = bench.quick ? SEC / 4 : seconds ? seconds * SEC : SEC;
	int ret, status, stopped;
	uint64_t hangs;
	unsigned int i;
	pid_t child;

	/* Of each attack it is the first time. */
	ret = nl_vgpu_set_quarantine(&bench.nl, machines[NEIGHBOURS].uuid, 0);
	if (ret)
		return ret;
	hangs = fifth_stat(MGPU_A_STATS_HANGS);
	child = start_fifth(a);
	if (child < 0)
		return child;
	for (i = 0; i < NEIGHBOURS; i++) {
		ret = load_machine(&machines[i]);
		if (ret)
			break;
	}
	if (!ret) {
		bench_pump(&bench, NEIGHBOURS, now_ns() + SEC / 5);
		if (a && a->whole)
			until_job(length);
		measure(length, a && a->whole, g);
		g->hangs -= hangs;
	}
	stopped = bench_stop(&bench, NEIGHBOURS);
	status = end_fifth(child);
	if (!gpu)
		sysfs_write("/sys/module/mgpu_soft/parameters/hang", "0");
	if (!ret)
		ret = status;
	return ret ? ret : stopped;
}

static int row(const struct attack *a)
{
	double kept[MAX_PAIRS], engine[MAX_PAIRS], p99[MAX_PAIRS], least, most;
	double dry[2][MAX_PAIRS], longest[2][MAX_PAIRS], share[MAX_PAIRS], hangs[MAX_PAIRS];
	const unsigned int pairs = bench.quick ? 1 : a->pairs ? a->pairs : a->seconds ? 3 : 11;
	struct got with, without;
	unsigned int i;
	int ret;

	ret = nl_dev_set(&bench.nl, vmm_parent(), NULL,
			 a->timeout_ms ? a->timeout_ms : TIMEOUT_MS);
	for (i = 0; i < pairs && !ret; i++) {
		/* In turns, so that a machine that gets slower spoils neither. */
		if (i % 2)
			ret = run_once(a, a->seconds, &with);
		if (!ret)
			ret = run_once(NULL, a->seconds, &without);
		if (!ret && !(i % 2))
			ret = run_once(a, a->seconds, &with);
		if (ret)
			break;
		kept[i] = with.frames / without.frames;
		engine[i] = with.engine / without.engine;
		dry[0][i] = with.dry;
		dry[1][i] = without.dry;
		p99[i] = with.p99_us / without.p99_us;
		longest[0][i] = with.longest_us / 1000;
		longest[1][i] = without.longest_us / 1000;
		share[i] = with.share;
		hangs[i] = (double)with.hangs;
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
	       "\"attacker\": \"%s\", \"kept\": %.3f, \"kept_least\": %.3f, \"kept_most\": %.3f, \"engine_kept\": %.3f, \"p99_ratio\": %.3f, \"dry\": %.4f, \"dry_without\": %.4f, \"longest_ms\": %.1f, \"longest_without_ms\": %.1f, \"share\": %.3f, \"hangs\": %.0f, \"pairs\": %u, \"frames\": %.0f",
	       a->name, stats_median(kept, pairs), least, most,
	       stats_median(engine, pairs), stats_median(p99, pairs),
	       stats_median(dry[0], pairs), stats_median(dry[1], pairs),
	       stats_median(longest[0], pairs), stats_median(longest[1], pairs),
	       stats_median(share, pairs), stats_median(hangs, pairs), pairs,
	       without.frames);
	return 0;
}

/* ---- the whole ---- */

/* Return whether the attack is one on the device that there is. */
static bool is_possible(const struct attack *a)
{
	return gpu == !strncmp(a->name, "gl-", 3);
}

static int set_up(uint32_t slots)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	struct nl_dev d;
	unsigned int i;
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
	bench.type = gpu ? "small-render" : "small";
	did = mmap(NULL, sizeof(*did), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		   -1, 0);
	if (did == MAP_FAILED)
		return -errno;
	ret = nl_open(&bench.nl);
	if (!ret)
		ret = nl_dev_set_policy(&bench.nl, vmm_parent(), "weighted");
	if (!ret)
		ret = nl_dev_get(&bench.nl, vmm_parent(), &d);
	if (!ret)
		ret = nl_dev_set_slots(&bench.nl, d.id, slots);
	if (!ret)
		ret = bench_create(&bench, NEIGHBOURS + 1);
	for (i = 0; i < NEIGHBOURS && !ret; i++)
		ret = open_machine(&machines[i], BENCH_BASE_W, BENCH_BASE_H);
	return ret;
}

int main(int argc, char **argv)
{
	struct bench_part part[24] = { { 0 } };
	struct bench_options o = {
		.usage = "usage: bench-isolation [--quick] [--slots N] [--json FILE] [ATTACK]...\n",
		.parts = part,
		/* One engine, for which all contend. */
		.option = "slots",
		.value = "1",
		.json = stdout,
	};
	const char *address = getenv("MGPU_GPU");
	unsigned int i, slots;
	int ret, err;

	gpu = address && *address;
	if (gpu)
		setenv("MGPU_PARENT", address, 1);

	for (i = 0; i < nr_attacks; i++)
		part[i].name = attacks[i].name;
	o.nr_parts = nr_attacks;
	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	bench.json = o.json;
	bench.quick = o.quick;
	slots = (unsigned int)strtoul(o.value, NULL, 10);
	conditions_to(bench.json, bench.quick,
		      "\"neighbours\": %u, \"depth\": %u, \"slots\": %u", NEIGHBOURS,
		      gpu ? GL_DEPTH : DEPTH, slots);
	ret = set_up(slots);
	if (ret)
		complain("cannot set the machines up: %s", strerror(-ret));
	err = ret;
	for (i = 0; i < nr_attacks && !ret; i++) {
		if (!(o.wanted & (1u << i)) || !is_possible(&attacks[i]))
			continue;
		if (row(&attacks[i]))
			err = -EIO;
	}
	bench_close(&bench, 0);
	bench_remove(&bench);
	ret = results_end(bench.json);
	return err || ret ? 1 : 0;
}

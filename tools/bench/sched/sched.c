// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler's bench.  Runs in the test host, as root, with the modules
 * loaded; tools/bench/sched/run calls it.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sched.h"

#define MAX_MACHINES	1024
#define FDS_EACH	8	/* container, group, device, interrupts */

/* ---- the module ---- */

int bench_attach(struct bench *b)
{
	char why[512];
	int ret;

	if (b->counters)
		return 0;
	ret = counters_open(&b->counters, why, sizeof(why));
	if (ret)
		return ret;
	if (why[0])
		complain("%s", why);
	if (counters_charge(b->counters))
		return 0;
	bench_detach(b);
	return -ENOTSUP;
}

void bench_detach(struct bench *b)
{
	counters_close(b->counters);
	b->counters = NULL;
}

void bench_usage(struct bench *b, const struct machine *m, uint64_t *engine_ns,
		 uint64_t *jobs)
{
	const struct mgpu_account *a;
	struct nl_vgpu v;

	*engine_ns = *jobs = 0;
	if (b->counters) {
		a = counters_vgpu(b->counters, m->id);
		*engine_ns = __atomic_load_n(&a->engine_ns, __ATOMIC_RELAXED);
		*jobs = __atomic_load_n(&a->jobs, __ATOMIC_RELAXED);
	} else if (!nl_vgpu_get(&b->nl, m->uuid, &v)) {
		*engine_ns = v.stats[MGPU_A_STATS_ENGINE_NS];
		*jobs = v.stats[MGPU_A_STATS_JOBS];
	}
}

int bench_policy(struct bench *b, const char *name)
{
	struct nl_dev d;
	int ret;

	ret = nl_dev_get(&b->nl, VMM_PARENT, &d);
	if (!ret && !strcmp(d.policy, name))
		return 0;
	if (!ret)
		ret = nl_dev_set_policy(&b->nl, VMM_PARENT, name);
	if (ret)
		complain("policy %s: %s %s", name, strerror(-ret), b->nl.text);
	return ret;
}

int bench_set(struct bench *b, const struct machine *m, int64_t weight,
	      int64_t fps_mhz, int64_t limit_ppm, int64_t period_us)
{
	int ret = nl_vgpu_set_full(&b->nl, m->uuid, weight, fps_mhz, limit_ppm,
				   period_us, NL_KEEP);

	if (ret)
		complain("vGPU %u: cannot set weight %lld, fps_limit %lld mHz, gpu_limit %lld ppm: %s %s",
			 m->id, (long long)weight, (long long)fps_mhz,
			 (long long)limit_ppm, strerror(-ret), b->nl.text);
	return ret;
}

/* The first field of /proc/PID/schedstat is the CPU time; it lags by at most a tick. */
static uint64_t task_cpu_ns(pid_t pid)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	if (sysfs_read(path, text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

uint64_t engine_cpu_ns(void)
{
	static struct engine_thread thread[64];
	static unsigned int n;
	uint64_t sum = 0;
	unsigned int i;

	if (!n)
		n = engine_threads(thread, ARRAY_LEN(thread));
	for (i = 0; i < n; i++)
		sum += task_cpu_ns(thread[i].pid);
	return sum;
}

/* ---- the whole ---- */

static const struct bench_part parts[] = {
	{ .name = "shares", .run = part_shares },
	{ .name = "fps", .run = part_fps },
	{ .name = "idle", .run = part_idle },
	{ .name = "cost", .run = part_cost },
};

static const char usage[] =
	"usage: bench-sched [--quick] [--machines N] [--json FILE] [PART]...\n"
	"\n"
	"Measures the scheduler of the loaded mgpu module.\n"
	"PART is shares, fps, idle or cost; all of them by default.\n"
	"\n"
	"  --quick       short runs, to check that everything works; discard the figures\n"
	"  --machines N  at most N vGPUs, 2 to 1024 (1024)\n"
	"  --json FILE   results, one JSON object a line\n";

static int init(struct bench *b)
{
	struct rlimit fds = { .rlim_cur = b->max * FDS_EACH + 256 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	int ret;

	fds.rlim_max = fds.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &fds)) {
		complain("cannot have %llu open files: %s; run as root",
			 (unsigned long long)fds.rlim_cur, strerror(errno));
		return -errno;
	}
	/* The last processor is ours; the engine keeps clear of it by itself. */
	b->cpu = (int)(cpus > 0 ? cpus - 1 : 0);
	CPU_ZERO(&set);
	CPU_SET(b->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return -errno;
	prctl(PR_SET_TIMERSLACK, 1);
	/* Nothing else here may keep the VMs from having work. */
	setpriority(PRIO_PROCESS, 0, -15);

	b->m = calloc(b->max, sizeof(*b->m));
	if (!b->m)
		return -ENOMEM;
	ret = nl_open(&b->nl);
	if (ret)
		complain("the mgpu module does not answer (%s); is it loaded?",
			 strerror(-ret));
	return ret;
}

static void conditions(struct bench *b)
{
	char lazy[32] = "none", engines[32] = "?";

	sysfs_read("/sys/module/mgpu_soft/parameters/scanout", lazy,
		   sizeof(lazy));
	sysfs_read("/sys/module/mgpu_soft/parameters/engines", engines,
		   sizeof(engines));
	conditions_to(b->json, b->quick,
		      "\"engines\": %s, \"scanout\": \"%s\", \"client_cpu\": %d, \"client_tick_us\": %llu",
		      engines, lazy, b->cpu, BENCH_TICK_NS / 1000);
}

static int run(struct bench *b, const struct bench_part *p)
{
	uint64_t start = now_ns(), bad;
	int ret;

	b->late_ns = 0;
	ret = p->run(b);
	bench_detach(b);
	bad = bench_bad(b, b->max);
	bench_remove(b);
	memset(b->m, 0, b->max * sizeof(*b->m));
	if (bad) {
		complain("%s: %llu answers were wrong or out of order", p->name,
			 (unsigned long long)bad);
		ret = ret ? ret : -EPROTO;
	}
	result(b, "took", "\"what\": \"%s\", \"seconds\": %.1f, \"late_max_us\": %.0f, \"status\": %d",
	       p->name, (double)(now_ns() - start) / 1e9,
	       (double)b->late_ns / 1e3, ret);
	return ret;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.usage = usage, .parts = parts, .nr_parts = ARRAY_LEN(parts),
		.option = "machines", .value = "1024", .json = stdout,
	};
	struct bench b = { 0 };
	int ret, failed = 0;
	size_t p;

	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	b.json = o.json;
	b.quick = o.quick;
	b.max = (unsigned int)strtoul(o.value, NULL, 10);
	if (b.max < 2 || b.max > MAX_MACHINES) {
		complain("--machines takes 2 to %u, not '%s'", MAX_MACHINES, o.value);
		return 2;
	}

	ret = init(&b);
	if (ret)
		return 1;
	conditions(&b);
	for (p = 0; p < ARRAY_LEN(parts); p++)
		if (o.wanted & 1u << p && run(&b, &parts[p]))
			failed = 1;
	nl_close(&b.nl);
	free(b.m);
	return failed || results_end(b.json);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The preemption bench. Runs in the test host, as root, with the modules loaded;
 * tools/bench/run-preempt calls it. The part `decide' needs neither.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "preempt.h"

/* ---- chance ---- */

double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

/* ---- the module ---- */

int bench_ctx(struct bench *b, const struct guest *g, uint32_t ctx, struct mgpu_ctx *c)
{
	struct mgpu_error err = { 0 };
	int ret = mgpu_ctx_get(b->mgpu, g->id, ctx, c, &err);

	if (ret)
		complain("context %u of vGPU %u: %s", ctx, g->id, err.text);
	return ret;
}

int bench_wait_running(struct bench *b, struct guest *g, uint32_t ctx, int head)
{
	uint64_t end = now_ns() + BENCH_TIMEOUT_MS * MS;
	struct mgpu_ctx c;
	int ret;

	do {
		ret = bench_ctx(b, g, ctx, &c);
		if (ret)
			return ret;
		if (c.slots)
			return 0;
		vq_collect(&g->vm, VMM_CONTROL);
		if (g->vm.vq[VMM_CONTROL].done[head])
			return -ENODATA;
		sleep_until(now_ns() + MS / 2);
	} while (now_ns() < end);
	complain("context %u of vGPU %u got no slot for %u s", ctx, g->id,
		 BENCH_TIMEOUT_MS / 1000);
	return -ETIMEDOUT;
}

int bench_preempt(struct bench *b, const struct guest *g, uint32_t ctx, uint32_t keep,
		  enum mgpu_preempt_method method, bool hold)
{
	return mgpu_ctx_preempt(b->mgpu, g->id, ctx, keep, method, hold, NULL);
}

int bench_resume(struct bench *b, const struct guest *g, uint32_t ctx)
{
	return mgpu_ctx_resume(b->mgpu, g->id, ctx, false, NULL);
}

int bench_policy(struct bench *b, const char *policy)
{
	struct mgpu_dev_setting set = {
		.id = b->dev.id, .mask = MGPU_DEV_SETTING_POLICY,
	};
	struct mgpu_error err = { 0 };
	int ret;

	snprintf(set.policy, sizeof(set.policy), "%s", policy);
	ret = mgpu_dev_set(b->mgpu, &set, &err);
	if (ret)
		complain("policy %s: %s", policy, err.text);
	return ret;
}

static int job_timeout(struct bench *b, uint32_t ms)
{
	struct mgpu_dev_setting set = {
		.id = b->dev.id, .mask = MGPU_DEV_SETTING_JOB_TIMEOUT, .job_timeout = ms,
	};
	struct mgpu_error err = { 0 };
	int ret = mgpu_dev_set(b->mgpu, &set, &err);

	if (ret)
		complain("job timeout: %s", err.text);
	return ret;
}

/* ---- the whole ---- */

static const struct part {
	const char *name;
	int (*run)(struct bench *b);
	bool device;
} parts[] = {
	{ "switch", part_switch, true },
	{ "equal_bytes", part_equal_bytes, true },
	{ "model", part_model, true },
	{ "streams", part_streams, true },
	{ "decide", part_decide, false },
};

static void usage(FILE *to)
{
	fputs("usage: bench-preempt [--quick] [--json FILE] [--streams DIR] [PART]...\n"
	      "\n"
	      "Measures preemption on the mgpu module that is loaded here, with two slots.\n"
	      "PART is switch, equal_bytes, model, streams or decide; all of them by\n"
	      "default. decide needs no module.\n"
	      "\n"
	      "  --quick        short runs: shows that it works, no figures to keep\n"
	      "  --json FILE    results, one JSON object a line\n"
	      "  --streams DIR  where tuned.csv and untuned.csv are\n",
	      to);
}

/* The processor @nr, counted around, of those that this program may run on. */
static int our_cpu(const cpu_set_t *ours, unsigned int nr)
{
	int cpu = -1;

	nr %= (unsigned int)CPU_COUNT(ours);
	do {
		while (!CPU_ISSET(++cpu, ours))
			;
	} while (nr--);
	return cpu;
}

/* Each slot a processor of its own, as far as there are enough. */
static void spread_engines(const struct bench *b)
{
	char path[288], comm[32];
	cpu_set_t ours, set;
	unsigned int nr;
	struct dirent *e;
	DIR *d;

	if (sched_getaffinity(0, sizeof(ours), &ours)) {
		complain("engines keep their processors: %s", strerror(errno));
		return;
	}
	d = opendir("/proc");
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		if (e->d_name[0] < '0' || e->d_name[0] > '9' ||
		    sysfs_read(path, comm, sizeof(comm)) <= 0 ||
		    sscanf(comm, "mgpu_soft/%u", &nr) != 1 || nr >= b->dev.engines)
			continue;
		CPU_ZERO(&set);
		CPU_SET(our_cpu(&ours, nr), &set);
		if (sched_setaffinity(atoi(e->d_name), sizeof(set), &set))
			complain("engine %u keeps its processors: %s", nr, strerror(errno));
	}
	if (d)
		closedir(d);
}

static int open_device(struct bench *b)
{
	struct mgpu_error err = { 0 };
	int ret;

	/* Nothing else here may keep guests and decisions waiting. */
	prctl(PR_SET_TIMERSLACK, 1);
	setpriority(PRIO_PROCESS, 0, -15);
	ret = mgpu_open(&b->mgpu, &err);
	if (!ret)
		ret = mgpu_dev_find(b->mgpu, VMM_PARENT, &b->dev, &err);
	if (ret) {
		complain("%s", err.text);
		return ret;
	}
	if (b->dev.engines != 2) {
		complain("%s has %u slots, not 2: load mgpu_soft with engines=2",
			 VMM_PARENT, b->dev.engines);
		return -EINVAL;
	}
	spread_engines(b);
	ret = job_timeout(b, BENCH_TIMEOUT_MS);
	/* First come, first served: nothing but preemption moves a context. */
	return ret ? ret : bench_policy(b, "best-effort");
}

static void conditions(struct bench *b)
{
	struct utsname u;

	uname(&u);
	result(b, "conditions",
	       "\"kernel\": \"%s\", \"host_cpus\": %ld, \"host_mem_mib\": %ld, \"slots\": %u, \"policy\": \"best-effort\", \"quick\": %s",
	       u.release, sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_PHYS_PAGES) / 256,
	       b->dev.engines, b->quick ? "true" : "false");
}

static int run(struct bench *b, const struct part *p)
{
	uint64_t start = now_ns();
	int ret = p->run(b);

	result(b, "took", "\"what\": \"%s\", \"seconds\": %.1f, \"status\": %d", p->name,
	       (double)(now_ns() - start) / 1e9, ret);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "json", required_argument, NULL, 'j' },
		{ "streams", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct bench b = { .json = stdout, .streams = "tools/bench/streams" };
	bool wanted[ARRAY_LEN(parts)], device = false;
	int c, i, failed = 0;
	size_t p;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'q':
			b.quick = true;
			break;
		case 's':
			b.streams = optarg;
			break;
		case 'j':
			b.json = fopen(optarg, "w");
			if (b.json)
				break;
			complain("%s: %s", optarg, strerror(errno));
			return 2;
		default:
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	for (p = 0; p < ARRAY_LEN(parts); p++)
		wanted[p] = optind == argc;
	for (i = optind; i < argc; i++) {
		for (p = 0; p < ARRAY_LEN(parts) && strcmp(argv[i], parts[p].name); p++)
			;
		if (p == ARRAY_LEN(parts)) {
			complain("there is no part '%s'; see --help", argv[i]);
			return 2;
		}
		wanted[p] = true;
	}
	for (p = 0; p < ARRAY_LEN(parts); p++)
		device |= wanted[p] && parts[p].device;
	if (device) {
		if (open_device(&b))
			return 1;
		conditions(&b);
	}
	for (p = 0; p < ARRAY_LEN(parts); p++)
		if (wanted[p] && run(&b, &parts[p]))
			failed = 1;
	if (device) {
		job_timeout(&b, b.dev.job_timeout);
		bench_policy(&b, b.dev.builtin_policy);
		mgpu_close(b.mgpu);
	}
	if (fflush(b.json) || ferror(b.json)) {
		complain("results could not be written: %s", strerror(errno));
		failed = 1;
	}
	return failed;
}

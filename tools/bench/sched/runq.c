// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cost of the run queue: pick, wake and charge of a job, for each policy and 1 to
 * 1,024 vGPUs that always have work.  In user space, without locks.
 *
 *   runq			JSON on standard output
 *   runq --json FILE		JSON to a file, a table on standard output
 *
 * Instructions are counted by the processor where it can, else by callgrind
 * where that is installed, which runs this program again for each figure.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sched/runq.h"
#include "sched/sched_policy.h"
#include "../common/bench.h"
#include "../common/stats.h"

#define MAX_VGPUS	1024
#define JOBS		20000
#define COUNTED		5000
#define REPEATS		15
#define NR_TIMES	4096	/* a power of two */

static const u32 vgpus[] = { 1, 4, 16, 64, 256, 1024 };
static const u32 weights[] = { 50, 100, 200, 400 };

static struct mgpu_runq rq;
static struct mgpu_sched_entity entity[MAX_VGPUS];
static u64 times[NR_TIMES];	/* lengths of jobs, ns */
static u64 now, seq;

static void set_up(const struct mgpu_policy_ops *policy, u32 n)
{
	u32 i;

	srand(1);
	for (i = 0; i < NR_TIMES; i++)
		times[i] = 100 * US + rand() % (2000 * US);
	memset(entity, 0, sizeof(entity));
	now = 1000000 * US;
	seq = 0;
	mgpu_runq_init(&rq, 1, 1, policy);
	for (i = 0; i < n; i++) {
		entity[i].id = i + 1;
		entity[i].weight = weights[i % 4];
		mgpu_runq_attach(&rq, &entity[i], now);
	}
	for (i = 0; i < n; i++) {
		entity[i].head_seq = ++seq;
		mgpu_runq_wake(&rq, &entity[i], now);
	}
}

/* Run jobs on an engine that is busy unless a policy leaves it idle. */
static noinline void serve(u32 jobs)
{
	struct mgpu_sched_entity *e;
	u64 ns;

	while (jobs) {
		e = mgpu_runq_pick(&rq, now);
		if (!e) {
			now = mgpu_runq_due(&rq);
			continue;
		}
		ns = times[seq % NR_TIMES];
		e->head_seq = ++seq;
		e->head_ns = now;
		mgpu_runq_wake(&rq, e, now);
		now += ns;
		mgpu_runq_charge(&rq, e, ns, now);
		jobs--;
	}
}

static double ns_per_job(const struct mgpu_policy_ops *policy, u32 n)
{
	double ns[REPEATS];
	u64 begin;
	int i;

	set_up(policy, n);
	serve(JOBS);
	for (i = 0; i < REPEATS; i++) {
		begin = self_cpu_ns();
		serve(JOBS);
		ns[i] = (double)(self_cpu_ns() - begin) / JOBS;
	}
	return stats_median(ns, REPEATS);
}

/* The processor's counter of instructions in user space, or -1. */
static int open_counter(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static double by_processor(const struct mgpu_policy_ops *policy, u32 n, int fd)
{
	u64 count = 0;

	set_up(policy, n);
	serve(JOBS);
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	serve(COUNTED);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &count, sizeof(count)) != sizeof(count) || !count)
		return -1;
	return (double)count / COUNTED;
}

static double by_callgrind(const struct mgpu_policy_ops *policy, u32 n)
{
	unsigned long long count = 0;
	char self[256], cmd[512], line[256];
	ssize_t len;
	FILE *f;

	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		return -1;
	self[len] = 0;
	snprintf(cmd, sizeof(cmd),
		 "valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='serve*' '%s' --once %s %u 2>&1",
		 self, policy->name, n);
	f = popen(cmd, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "Collected : ");

		if (at)
			sscanf(at, "Collected : %llu", &count);
	}
	if (pclose(f) || !count)
		return -1;
	return (double)count / COUNTED;
}

/* For callgrind, which counts what serve() does. */
static int once(const char *name, u32 n)
{
	const struct mgpu_policy_ops * const *p;

	for (p = mgpu_policies; *p; p++) {
		if (strcmp((*p)->name, name) || !n || n > MAX_VGPUS)
			continue;
		set_up(*p, n);
		serve(COUNTED);
		return 0;
	}
	complain("--once takes the name of a policy and 1 to %u", MAX_VGPUS);
	return 2;
}

int main(int argc, char **argv)
{
	const struct mgpu_policy_ops * const *p;
	double ns, count;
	const char *by = "none";
	bool table = argc > 1, first = true;
	FILE *json = stdout;
	size_t i;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "--once"))
		return once(argv[2], atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "--json")) {
		json = fopen(argv[2], "w");
		if (!json) {
			complain("cannot write %s: %s", argv[2], strerror(errno));
			return 1;
		}
	} else if (argc != 1) {
		fprintf(stderr, "usage: runq [--json FILE]\n");
		return 2;
	}

	fd = open_counter();
	if (fd >= 0)
		by = "processor";
	else if (!system("valgrind --version >/dev/null 2>&1"))
		by = "callgrind";

	if (table)
		printf("%-12s %6s %10s %13s\n", "policy", "vGPUs", "ns/job",
		       "instructions");
	fprintf(json, "{\"what\": \"pick, wake and charge of a job in user space, median of %d\", \"instructions_by\": \"%s\", \"cost\": [",
		REPEATS, by);
	for (p = mgpu_policies; *p; p++)
		for (i = 0; i < sizeof(vgpus) / sizeof(vgpus[0]); i++) {
			ns = ns_per_job(*p, vgpus[i]);
			count = fd >= 0 ? by_processor(*p, vgpus[i], fd) :
				by[0] == 'c' ? by_callgrind(*p, vgpus[i]) : -1;
			fprintf(json, "%s\n {\"policy\": \"%s\", \"vgpus\": %u, \"ns_per_job\": %.1f, \"instructions_per_job\": ",
				first ? "" : ",", (*p)->name, vgpus[i], ns);
			first = false;
			if (count < 0)
				fprintf(json, "null}");
			else
				fprintf(json, "%.0f}", count);
			if (table)
				printf("%-12s %6u %10.1f %13.0f\n", (*p)->name,
				       vgpus[i], ns, count);
		}
	fprintf(json, "\n]}\n");
	return results_end(json) ? 1 : 0;
}

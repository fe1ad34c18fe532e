// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cost of a scrape: mgpu-exporter's reading and writing, on the played module of the unit tests.
 * The module's own time is not counted.  With "exporter" and further words it is mgpu-exporter on
 * that module; METRICS_VGPUS is the number of vGPUs.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/bench.h"
#include "../common/stats.h"
#include "gather.h"
#include "metrics_kernel.h"

#define RUNS		21
#define QUICK_RUNS	3

static const char usage_text[] =
	"usage: bench-scrape [--quick] [--json FILE] [PART]...\n"
	"       bench-scrape exporter WORD...\n"
	"\n"
	"Measures the reading of the module, and the writing of metrics. Prints a JSON object per line.\n"
	"\n"
	"  --quick      few runs; shows that it works, and measures little\n"
	"  --json FILE  write the results there too\n"
	"  scrape       all of it\n";

int exporter_main(int argc, char **argv);
int __real_clock_getcpuclockid(pid_t pid, clockid_t *clock);
int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *clock);
int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

static uint64_t clock_calls;	/* about clocks of processes, which need the kernel */

int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	clock_calls++;
	return __real_clock_getcpuclockid(pid, clock);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	clock_calls += clock < 0;
	return __real_clock_gettime(clock, ts);
}

/**
 * struct bench - what the part needs
 * @json: results
 * @runs: runs of each case
 */
struct bench {
	FILE *json;
	unsigned int runs;
};

static uint64_t calls(void)
{
	return metrics_kernel.calls + clock_calls;
}

static void measure(struct bench *b, uint32_t vgpus, bool hists)
{
	struct gather g = { .root = "/nonexistent", .hists = hists };
	double read_ms[RUNS], write_ms[RUNS];
	uint64_t before = 0, lines = 0;
	struct text text = { 0 };

	metrics_kernel.vgpus = vgpus;
	/* the first one opens the socket */
	for (unsigned int i = 0; i <= b->runs; i++) {
		uint64_t begin = self_cpu_ns(), played = metrics_kernel.ns, middle;
		struct snapshot s;

		before = calls();
		gather(&g, &s);
		middle = self_cpu_ns();
		text.len = 0;
		metrics_write(&text, &s, EXPOSE_OPENMETRICS);
		if (i) {
			played = metrics_kernel.ns - played;
			read_ms[i - 1] = (double)(middle - begin - played) / MS;
			write_ms[i - 1] = (double)(self_cpu_ns() - middle) / MS;
		}
		snapshot_free(&s);
	}
	for (size_t i = 0; i < text.len; i++)
		lines += text.bytes[i] == '\n';
	result(b, "scrape",
	       "\"vgpus\": %u, \"histograms\": %s, \"runs\": %u, \"read_cpu_ms\": %.3f, \"write_cpu_ms\": %.3f, \"bytes\": %zu, \"lines\": %llu, \"netlink_and_clock_calls\": %llu",
	       vgpus, hists ? "true" : "false", b->runs, stats_median(read_ms, b->runs),
	       stats_median(write_ms, b->runs), text.len, (unsigned long long)lines,
	       (unsigned long long)(calls() - before));
	text_free(&text);
	gather_close(&g);
}

static int run(struct bench *b)
{
	static const uint32_t sizes[] = { 10, 100, 1000, 4096 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		measure(b, sizes[i], true);
		measure(b, sizes[i], false);
	}
	return 0;
}

#undef main
int main(int argc, char **argv)
{
	static const struct bench_part parts[] = { { "scrape", run, true } };
	struct bench_options o = {
		.usage = usage_text, .parts = parts, .nr_parts = sizeof(parts) / sizeof(*parts),
		.json = stdout,
	};
	const char *vgpus = getenv("METRICS_VGPUS");
	struct bench b;
	int ret;

	if (vgpus)
		metrics_kernel.vgpus = (uint32_t)strtoul(vgpus, NULL, 10);
	if (argc > 1 && !strcmp(argv[1], "exporter"))
		return exporter_main(argc - 1, argv + 1);
	/* services of this machine are not a part of it */
	setenv("MGPUD_SOCKET", "/nonexistent", 1);
	setenv("MGPU_REMOTE_CONTROL", "/nonexistent", 1);
	ret = bench_options(&o, argc, argv);
	if (ret >= 0)
		return ret;
	b = (struct bench){ .json = o.json, .runs = o.quick ? QUICK_RUNS : RUNS };
	conditions_to(b.json, o.quick, "\"module\": \"played\"");
	run(&b);
	return results_end(b.json) ? 1 : 0;
}

// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* ---- clocks ---- */

uint64_t self_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
}

void sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / SEC), (long)(ns % SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* ---- the processor's counters ---- */

int instructions_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

uint64_t instructions_read(int fd)
{
	uint64_t n = 0;

	return fd >= 0 && read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* ---- output ---- */

void complain(const char *fmt, ...)
{
	va_list ap;

	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void result_to(FILE *json, const char *part, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(json, "{\"part\": \"%s\", %s}\n", part, line);
	fflush(json);
	if (json != stdout)
		printf("%s: %s\n", part, line);
	fflush(stdout);
}

int results_end(FILE *json)
{
	if (!fflush(json) && !ferror(json))
		return 0;
	complain("cannot write the results: %s", strerror(errno));
	return -EIO;
}

/* ---- command line ---- */

static int want(struct bench_options *o, const char *name)
{
	size_t i;

	for (i = 0; i < o->nr_parts; i++) {
		if (strcmp(o->parts[i].name, name))
			continue;
		o->wanted |= 1u << i;
		return 0;
	}
	complain("unknown part '%s'; see --help", name);
	return -EINVAL;
}

int bench_options(struct bench_options *o, int argc, char **argv)
{
	const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ o->option, required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'q':
			o->quick = true;
			break;
		case 'o':
			o->value = optarg;
			break;
		case 'j':
			o->json = fopen(optarg, "w");
			if (o->json)
				break;
			complain("cannot write %s: %s", optarg, strerror(errno));
			return 2;
		default:
			fputs(o->usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind == argc)
		o->wanted = (uint32_t)((1ull << o->nr_parts) - 1);
	for (; optind < argc; optind++)
		if (want(o, argv[optind]))
			return 2;
	return -1;
}

/* ---- the test host ---- */

unsigned int engine_threads(struct engine_thread *t, unsigned int max)
{
	char path[288], comm[32];
	unsigned int n = 0;
	struct dirent *e;
	DIR *d;
	FILE *f;

	d = opendir("/proc");
	while (d && n < max && (e = readdir(d))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) &&
		    sscanf(comm, "mgpu_soft/%u", &t[n].engine) == 1)
			t[n++].pid = (pid_t)strtol(e->d_name, NULL, 10);
		fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

void conditions_to(FILE *json, bool quick, const char *fmt, ...)
{
	struct utsname u;
	char more[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(more, sizeof(more), fmt, ap);
	va_end(ap);
	uname(&u);
	result_to(json, "conditions",
		  "\"kernel\": \"%s\", \"host_cpus\": %ld, \"host_mem_mib\": %ld, \"quick\": %s, %s",
		  u.release, sysconf(_SC_NPROCESSORS_ONLN),
		  sysconf(_SC_PHYS_PAGES) / 256, quick ? "true" : "false", more);
}

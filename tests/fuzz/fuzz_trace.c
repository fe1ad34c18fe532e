// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the reader of traces.  The input is a trace, or two with a byte 0xff between them.
 * The jobs of a trace that the reader takes are in their ranges and in the order of time,
 * and their costs can be replayed.
 */
#include <errno.h>
#include <math.h>

#include "fuzz.h"
#include "costs.h"
#include "machine.h"
#include "tracefile.h"

#define FRAMES_MAX	1000000	/* of a trace whose costs are replayed */

static void check_trace(const struct trace *t)
{
	double last = 0;

	FUZZ_ASSERT(t->nr && t->nr <= TRACE_MAX_FRAMES && t->nr <= t->room);
	FUZZ_ASSERT(t->nr_vms && t->nr_vms <= TRACE_MAX_VMS);
	FUZZ_ASSERT(t->engines <= TRACE_MAX_ENGINES && t->cpus <= 65536);
	FUZZ_ASSERT(t->seconds >= 0 && t->seconds <= TRACE_MAX_SECONDS);
	for (size_t i = 0; i < t->nr_vms; i++)
		FUZZ_ASSERT(t->names[i][0] && memchr(t->names[i], 0, SAMPLE_UUID_LEN));
	for (size_t i = 0; i < t->nr; i++) {
		const struct trace_frame *f = &t->frames[i];

		FUZZ_ASSERT(f->vm < t->nr_vms && f->frames >= 1);
		FUZZ_ASSERT(f->time_s >= last && f->time_s <= t->seconds);
		FUZZ_ASSERT(f->cpu_s >= 0 && f->cpu_s <= TRACE_MAX_COST);
		FUZZ_ASSERT(f->engine_s >= 0 && f->engine_s <= TRACE_MAX_COST);
		last = f->time_s;
	}
}

static void check_costs(const struct trace *t)
{
	struct machine_frame f, std;
	struct costs *c;
	size_t frames = 0;

	for (size_t i = 0; i < t->nr; i++)
		frames += t->frames[i].frames;
	FUZZ_ASSERT(frames <= TRACE_MAX_FRAMES);
	FUZZ_ASSERT((double)t->nr_vms * t->seconds <= TRACE_MAX_VM_SECONDS);
	if (frames > FRAMES_MAX)
		return;
	c = costs_replay(t);
	FUZZ_ASSERT(c);
	for (size_t j = 0; j < t->nr_vms; j++) {
		for (uint64_t k = 0; k < 20; k++) {
			costs_frame(c, j, k * MACHINE_NSEC, &f);
			FUZZ_ASSERT(f.cpu_ns >= 0 && f.cpu_ns <= TRACE_MAX_COST * 1e9);
			FUZZ_ASSERT(f.engine_ns >= 0 && f.engine_ns <= TRACE_MAX_COST * 1e9);
			costs_wants(c, j, k * MACHINE_NSEC);
		}
		costs_describe(c, j, &f, &std);
		FUZZ_ASSERT(isfinite(f.cpu_ns) && isfinite(std.engine_ns));
	}
	costs_free(c);
}

static int read_part(struct trace *t, const uint8_t *data, size_t size, const char *file)
{
	char why[256];
	FILE *f = size ? fmemopen((void *)data, size, "r") : fopen("/dev/null", "r");
	int ret;

	FUZZ_ASSERT(f);
	ret = trace_read(t, f, file, why, sizeof(why));
	fclose(f);
	FUZZ_ASSERT(!ret == !why[0]);
	if (ret)
		FUZZ_ASSERT(ret == -EINVAL && !strncmp(why, file, strlen(file)));
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *second = memchr(data, 0xff, size);
	size_t first = second ? (size_t)(second - data) : size;
	struct trace t = { 0 };
	int ret;

	ret = read_part(&t, data, first, "first");
	if (!ret) {
		check_trace(&t);
		if (second)
			ret = read_part(&t, second + 1, size - first - 1, "second");
	}
	if (!ret) {
		check_trace(&t);
		check_costs(&t);
	}
	trace_free(&t);
	return 0;
}

#define HEAD "time_s,vgpu,frame,frames,cpu_s,engine_s,held_s\n"

static void seeds(const char *dir)
{
	static const char *const traces[] = {
		"# mgpu-trace cpus=2 engines=1 seconds=45.0\n" HEAD
		"0.016,01234567-89ab-cdef-0123-456789abcdef,1,1,0.010,0.005,0\n"
		"0.033,other,1,2,0.020,0.004,0.001\n"
		"1.500,01234567-89ab-cdef-0123-456789abcdef,2,1,0.011,0.006,0\n",
		"vgpu,time_s,engine_s,cpu_s\r\na,0,1e-3,2e-3\r\nb,0,0,0\r\n\r\n# end",
		HEAD "0.5,a,1,1,0.01,0.01,0\n\xff" HEAD "0.1,a,1,1,0.02,0.01,0\n",
		HEAD, "", "time_s\n", HEAD "2,a,1,1,1,1,0\n1,a,2,1,1,1,0\n",
	};
	char name[16];

	for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, traces[i], strlen(traces[i]));
	}
}

FUZZ_SEEDS(seeds)

// SPDX-License-Identifier: GPL-2.0-only
/* Engine time of a worker: what drivers tell in fdinfo, and the processors' without a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "drm_usage.h"
#include "engine_clock.h"
#include "tap.h"

static void engines_add_up(void)
{
	struct drm_usage u;

	/* As amdgpu writes it. */
	TAP_CHECK(drm_usage_parse("pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t1284\n"
				  "drm-driver:\tamdgpu\ndrm-client-id:\t17\n"
				  "drm-pdev:\t0000:03:00.0\n"
				  "drm-memory-vram:\t4096 KiB\n"
				  "drm-engine-gfx:\t30 ns\ndrm-engine-dec:\t12 ns\n",
				  &u));
	TAP_EQ(u.client, 17);
	TAP_EQ(u.engine_ns, 42);
}

static void other_lines_do_not_count(void)
{
	struct drm_usage u;

	/* As i915 writes it: how many engines of a class there are is no time. */
	TAP_CHECK(drm_usage_parse("drm-client-id: 3\ndrm-engine-render: 9 ns\n"
				  "drm-engine-video:\t1 ns\n"
				  "drm-engine-capacity-video:\t2\n"
				  "drm-cycles-rcs:\t5\ndrm-total-cycles-rcs:\t7\n"
				  "drm-engine-gpu: 6 cycles\n"
				  "xdrm-engine-render: 100 ns\n", &u));
	TAP_EQ(u.client, 3);
	TAP_EQ(u.engine_ns, 10);
}

static void a_driver_may_tell_nothing(void)
{
	struct drm_usage u;

	TAP_CHECK(!drm_usage_parse("pos:\t0\nflags:\t02\n", &u));
	TAP_EQ(u.client, 0);
	TAP_EQ(u.engine_ns, 0);
	TAP_CHECK(!drm_usage_parse("", &u));
	TAP_CHECK(!drm_usage_parse("drm-engine-", &u));
	TAP_CHECK(!drm_usage_parse("drm-engine-gfx:\t\n", &u));
}

static void files_that_are_no_gpu_count_nothing(void)
{
	struct engine_clock c;

	TAP_CHECK(!engine_clock_start(&c, "/proc/self/fdinfo"));
	TAP_EQ(c.nr, 0);
	TAP_EQ(engine_clock_ns(&c), 0);
}

/* Write what the kernel has of an open file. */
static void file_of(const char *dir, int fd, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d", dir, fd);
	f = fopen(path, "w");
	TAP_NEED(f);
	fputs(text, f);
	fclose(f);
}

static void clients_of_a_process_add_up(void)
{
	char dir[] = "/tmp/fdinfoXXXXXX", command[64];
	struct engine_clock c;

	TAP_NEED(mkdtemp(dir));
	TAP_CHECK(!engine_clock_start(&c, dir));
	file_of(dir, 0, "pos:\t0\n");
	file_of(dir, 3, "drm-client-id:\t1\ndrm-engine-gfx:\t5 ns\n");
	file_of(dir, 4, "drm-client-id:\t2\ndrm-engine-gfx:\t6 ns\n");
	/* A copy of file 3. */
	file_of(dir, 12, "drm-client-id:\t1\ndrm-engine-gfx:\t5 ns\n");
	/* The channel's time comes from this clock. */
	file_of(dir, 13, "drm-driver:\tmgpu\ndrm-client-id:\t3\ndrm-engine-render:\t9 ns\n");
	/* A client of another device has numbers of its own. */
	file_of(dir, 5, "drm-pdev:\t0000:03:00.0\ndrm-client-id:\t2\ndrm-engine-gfx:\t100 ns\n");
	TAP_CHECK(engine_clock_start(&c, dir));
	TAP_EQ(engine_clock_ns(&c), 111);
	file_of(dir, 4, "drm-client-id:\t2\ndrm-engine-gfx:\t60 ns\n");
	TAP_EQ(engine_clock_ns(&c), 165);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	TAP_EQ(system(command), 0);
	TAP_EQ(engine_clock_ns(&c), 0);
}

static void processors_in_place_of_a_gpu(void)
{
	struct engine_clock c;
	uint64_t begin, ns;

	engine_clock_start_cpu(&c);
	begin = engine_clock_ns(&c);
	while ((ns = engine_clock_ns(&c)) < begin + 1000000)
		;
	TAP_CHECK(ns >= begin + 1000000);
	/* Sleep is no work. */
	begin = engine_clock_ns(&c);
	usleep(100000);
	TAP_CHECK(engine_clock_ns(&c) < begin + 90000000);
}

int main(void)
{
	tap_run(engines_add_up, "times of all engines add up");
	tap_run(other_lines_do_not_count, "capacities, cycles and other keys do not count");
	tap_run(a_driver_may_tell_nothing, "a driver may tell nothing");
	tap_run(files_that_are_no_gpu_count_nothing, "files that are no GPU count nothing");
	tap_run(clients_of_a_process_add_up, "clients of a process add up, each once");
	tap_run(processors_in_place_of_a_gpu, "without a GPU, the processors' time counts");
	return tap_done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-defer's work on the programs that the tests have: how many times the analysis executes a
 * block, and how often it computes what it computed before.  These are counts, which do not depend
 * on the machine.
 */
#include <stdlib.h>
#include <unistd.h>

#include "classify.h"
#include "tap.h"

/* Executions of a block for each execution of the code that it is in. */
#define TIMES		5
/* The same for all programs of a test. */
#define TIMES_ON_AVERAGE 3
/* Of operations on values the share whose result was not in the cache, of all programs. */
#define COMPUTED_PERCENT 25
/* Merges of two values for each block that was executed, of all programs. */
#define MERGED		10
/* Of instructions the share that Capstone decoded. */
#define DECODED_PERCENT	75

/* Compile a program to a library, whose functions of the API need not be there, and look at it. */
static void look_at(const char *source, const char *level, struct work_done *all)
{
	const struct classify_options o = { .assume_success = true };
	char command[512], name[] = "/tmp/test_defer_work-XXXXXX";
	int fd = mkstemp(name), status;
	struct image img;
	struct report r;

	TAP_NEED(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "gcc -std=gnu17 -D_GNU_SOURCE -w -shared -fPIC %s -o %s '%s/%s'", level, name,
		 TESTS, source);
	status = system(command);
	TAP_NEED(!status);
	status = image_open(&img, name);
	unlink(name);
	TAP_NEED(!status);
	TAP_EQ(classify(&r, &img, &o), 0);
	tap_diag("%s %s: %u loops, %" PRIu64 " blocks, executed %" PRIu64 " times", source, level,
		 r.nr_loops, r.work.blocks, r.work.executed);
	TAP_CHECK(r.nr_loops && r.work.blocks);
	TAP_CHECK(r.work.executed <= TIMES * r.work.blocks);
	all->blocks += r.work.blocks;
	all->executed += r.work.executed;
	all->operations += r.work.operations;
	all->computed += r.work.computed;
	all->merged += r.work.merged;
	all->insns += r.work.insns;
	all->decoded += r.work.decoded;
	report_free(&r);
	image_close(&img);
}

static void look_at_all(const char *const *sources)
{
	static const char *const levels[] = { "-O0", "-O2" };
	struct work_done all = { 0 };
	unsigned int i;

	for (; *sources; sources++)
		for (i = 0; i < sizeof(levels) / sizeof(*levels); i++)
			look_at(*sources, levels[i], &all);
	tap_diag("executed %.2f times; %.1f %% of operations computed, %.2f merges for a block; "
		 "%.1f %% of instructions decoded", (double)all.executed / (double)all.blocks,
		 100.0 * (double)all.computed / (double)all.operations,
		 (double)all.merged / (double)all.executed,
		 100.0 * (double)all.decoded / (double)all.insns);
	TAP_CHECK(all.executed <= TIMES_ON_AVERAGE * all.blocks);
	TAP_CHECK(100 * all.computed <= COMPUTED_PERCENT * all.operations);
	TAP_CHECK(all.merged <= MERGED * all.executed);
	TAP_CHECK(100 * all.decoded <= DECODED_PERCENT * all.insns);
}

static void loops(void)
{
	look_at_all((const char *const []){
		"defer/loops.c", "defer/loops_held_out.c", "defer/loops_fresh.c", NULL });
}

static void programs(void)
{
	look_at_all((const char *const []){
		"remote/bfs.c", "remote/cg.c", "remote/fft.c", "remote/images.c", "remote/kmeans.c",
		"remote/launches.c", "remote/lstm.c", "remote/nbody.c", "remote/stencil.c",
		"remote/vecadd.c", NULL });
}

int main(void)
{
	tap_run(loops, "little of the work on loops is done again");
	tap_run(programs, "so it is with that on programs");
	return tap_done();
}

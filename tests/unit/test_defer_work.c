// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-defer's work: how many times the analysis executes a block of the programs that the tests
 * have.  It is a count, which does not depend on the machine.
 */
#include <stdlib.h>
#include <unistd.h>

#include "classify.h"
#include "tap.h"

/* Executions of a block for each execution of the code that it is in. */
#define TIMES		5
/* The same for all programs of a test. */
#define TIMES_ON_AVERAGE 3

struct work {
	uint64_t blocks, executed;
};

/* Compile a program to a library, whose functions of the API need not be there, and look at it. */
static void look_at(const char *source, const char *level, struct work *all)
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
		 r.nr_loops, r.blocks, r.executed);
	TAP_CHECK(r.nr_loops && r.blocks);
	TAP_CHECK(r.executed <= TIMES * r.blocks);
	all->blocks += r.blocks;
	all->executed += r.executed;
	report_free(&r);
	image_close(&img);
}

static void look_at_all(const char *const *sources)
{
	static const char *const levels[] = { "-O0", "-O2" };
	struct work all = { 0 };
	unsigned int i;

	for (; *sources; sources++)
		for (i = 0; i < sizeof(levels) / sizeof(*levels); i++)
			look_at(*sources, levels[i], &all);
	tap_diag("executed %.2f times", (double)all.executed / (double)all.blocks);
	TAP_CHECK(all.executed <= TIMES_ON_AVERAGE * all.blocks);
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
	tap_run(loops, "blocks of loops are executed a few times");
	tap_run(programs, "so are those of programs");
	return tap_done();
}

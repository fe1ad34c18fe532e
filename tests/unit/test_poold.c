// SPDX-License-Identifier: GPL-2.0-only
/*
 * Points where mgpu-poold can be made to crash.
 *
 * With words on the command line it is mgpu-poold with those points and the libvirt of
 * pool_persist.c, for test_poold.py and test_pool_crash.py; with the word points it prints their
 * names.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "crash.h"
#include "tap.h"

#define main poold_main
int poold_main(int argc, char **argv);
#include "../../ctl/pool/main.c"
#undef main

static int status_of(const char *want, const char *name, int times)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setenv("MGPU_POOL_CRASH", want, 1);
		while (times--)
			crash_point(name);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void counts(void)
{
	TAP_EQ(status_of("commit:3", "commit", 2), 0);
	TAP_EQ(status_of("commit:3", "commit", 3), 99);
	TAP_EQ(status_of("commit", "commit", 1), 99);
	TAP_EQ(status_of("commit", "committed", 5), 0);
	TAP_EQ(status_of("committed", "commit", 5), 0);
}

static void unique(void)
{
	for (size_t i = 0; crash_points[i]; i++)
		for (size_t j = 0; j < i; j++)
			TAP_CHECK(strcmp(crash_points[i], crash_points[j]));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "points")) {
		for (size_t i = 0; crash_points[i]; i++)
			puts(crash_points[i]);
		return 0;
	}
	if (argc > 1)
		return poold_main(argc, argv);
	tap_run(counts, "a point ends the process the given time that it is reached");
	tap_run(unique, "points have names of their own");
	return tap_done();
}

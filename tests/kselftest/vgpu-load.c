// SPDX-License-Identifier: GPL-2.0-only
/*
 * vgpu-load [SIDE]: a VMM that shows frames as fast as it may, until it is told
 * to end. Each copies a square of SIDE pixels (256). Its vGPU's UUID is its first
 * line, and the vGPU goes with it. At SIGUSR1 it prints how many frames were shown, and
 * the time (ms): read by a single program, so that a busy machine cannot pull the two
 * apart.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"

static volatile sig_atomic_t stopped, asked;

static void hear(int signal)
{
	if (signal == SIGUSR1)
		asked = 1;
	else
		stopped = 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = hear };
	static struct load load;
	int ret;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	ret = load_open(&load, argc > 1 ? (uint32_t)atoi(argv[1]) : 256);
	if (ret) {
		fprintf(stderr, "vgpu-load: no vGPU: %d\n", ret);
		return 1;
	}
	/* few in flight: a VMM that is held back does not wait long at its end */
	load.depth = 4;
	printf("%s\n", load.vm.uuid);
	fflush(stdout);
	while (!stopped && !ret) {
		ret = load_run(&load, 1, 100);
		if (asked) {
			asked = 0;
			load_reap(&load);
			printf("%" PRIu64 " %" PRIu64 "\n", load.done, now_ms());
			fflush(stdout);
		}
	}
	vm_delete(&load.vm);
	return ret ? 1 : 0;
}

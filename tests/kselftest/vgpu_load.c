// SPDX-License-Identifier: GPL-2.0-only
/*
 * vgpu_load [SIDE]: a VMM that shows frames as fast as it may, until it is told
 * to end. Each copies a square of SIDE pixels (256). Its vGPU's UUID is its first
 * line, and the vGPU goes with it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop };
	static struct load load;
	int ret;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	ret = load_open(&load, argc > 1 ? (uint32_t)atoi(argv[1]) : 256);
	if (ret) {
		fprintf(stderr, "vgpu_load: no vGPU: %d\n", ret);
		return 1;
	}
	/* few in flight: who is held back does not wait long for its end */
	load.depth = 4;
	printf("%s\n", load.vm.uuid);
	fflush(stdout);
	while (!stopped && !ret)
		ret = load_run(&load, 1, 100);
	vm_delete(&load.vm);
	return ret ? 1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server of Venus: virglrenderer executes a guest's Vulkan in a process of its own for each
 * context.
 */
#ifndef RENDERD_VENUS_H
#define RENDERD_VENUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "engine_clock.h"

#define VENUS_SERVER	"/usr/libexec/virgl_render_server"
#define VENUS_PROCESSES	128
#define VENUS_LOOK_NS	1000000u
#define VENUS_FIND_NS	50000000u

/**
 * struct venus_process - process of a context
 * @pid: its ID
 * @clock: its CPU time
 * @engines: its engine time, where that counts
 * @found_ns: when its files of the GPU were looked for, CLOCK_MONOTONIC
 * @ns: its time at the last look
 * @seen: it was there at the last look
 */
struct venus_process {
	pid_t pid;
	clockid_t clock;
	struct engine_clock engines;
	uint64_t found_ns;
	uint64_t ns;
	bool seen;
};

/**
 * struct venus - a server
 * @server: its process, the first of its group; 0 for none
 * @engines: the GPU's driver tells engine time (drm fdinfo), which counts; else CPU time does
 * @looked_ns: time of the last look at its contexts, CLOCK_MONOTONIC
 * @ns: time of all contexts until then
 * @gone_ns: time of contexts that have ended; CPU time of those that no look saw, to 10 ms
 * @process: processes of contexts
 * @nr: their number
 */
struct venus {
	pid_t server;
	bool engines;
	uint64_t looked_ns;
	uint64_t ns;
	uint64_t gone_ns;
	struct venus_process process[VENUS_PROCESSES];
	size_t nr;
};

/**
 * venus_start() - start the server
 * @vs: result
 * @sandbox: give up what it does not need
 * @memory: with @sandbox: bytes that each context may allocate for itself
 *
 * The server ends with this process.
 *
 * Return: a socket to it for virglrenderer; a negative errno after a message on standard error.
 */
int venus_start(struct venus *vs, bool sandbox, uint64_t memory);

/* Stop the server and its contexts, or have them go on. */
void venus_stop(const struct venus *vs);
void venus_continue(const struct venus *vs);

/*
 * Return the time that all contexts have used, nanoseconds; as of up to VENUS_LOOK_NS ago, since a
 * look at each process takes some system calls. A context opens the GPU some time after it has
 * begun: files are looked for every VENUS_FIND_NS.
 */
uint64_t venus_ns(struct venus *vs);

#endif /* RENDERD_VENUS_H */

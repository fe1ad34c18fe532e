/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that execute for a worker what its guest sends: a server, and a child of it for each
 * context or program.
 */
#ifndef RENDERD_PROCESSES_H
#define RENDERD_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process_clock.h"

#define PROCESSES		128
#define PROCESSES_LOOK_NS	1000000u

/**
 * struct process - a child of the server
 * @clock: its clock
 * @ns: its time at the last look
 * @seen: it was there at the last look
 */
struct process {
	struct process_clock clock;
	uint64_t ns;
	bool seen;
};

/**
 * struct processes - a server, and its children
 * @server: its process, the first of its group; 0 for none
 * @engines: the GPU's driver tells engine time (drm fdinfo), which counts; else CPU time does
 * @looked_ns: time of the last look at the children, CLOCK_MONOTONIC
 * @ns: time of all children until then
 * @gone_ns: time of children that have ended; CPU time of those that no look saw, to 10 ms
 * @process: the children
 * @nr: their number
 */
struct processes {
	pid_t server;
	bool engines;
	uint64_t looked_ns;
	uint64_t ns;
	uint64_t gone_ns;
	struct process process[PROCESSES];
	size_t nr;
};

/**
 * processes_start() - start a server
 * @ps: result
 * @type: SOCK_STREAM or SOCK_SEQPACKET
 * @run: called in the server's process with its end of a socket; if it returns, the process ends
 * @arg: for @run
 *
 * The server ends with this process.
 *
 * Return: this process's end of the socket, or a negative errno.
 */
int processes_start(struct processes *ps, int type, void (*run)(int fd, const void *arg),
		    const void *arg);

/* Stop the server and its children, or have them go on. */
void processes_stop(const struct processes *ps);
void processes_continue(const struct processes *ps);

/*
 * Return whether a child has work, though its time may not show that: where CPU time counts, and a
 * thread of it runs, or waits for a processor.
 */
bool processes_are_ready(const struct processes *ps);

/*
 * Return the time that all children have used, nanoseconds; as of up to PROCESSES_LOOK_NS ago,
 * since a look at each process takes some system calls.
 */
uint64_t processes_ns(struct processes *ps);

#endif /* RENDERD_PROCESSES_H */

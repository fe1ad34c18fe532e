/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common parts of the benches: clocks, output, the command line and the test host's
 * conditions.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "../../../tests/kselftest/lib/clock.h"

#define US		1000ull		/* nanoseconds */
#define MS		1000000ull
#define SEC		1000000000ull

/* ---- clocks ---- */

uint64_t self_cpu_ns(void);		/* CPU time of this process */
void sleep_until(uint64_t ns);		/* CLOCK_MONOTONIC */

/* ---- the processor's counters ---- */

/* Count this process's instructions from now on. Return a descriptor, -1 without counters. */
int instructions_open(void);

/* Return the count of instructions_open()'s descriptor, 0 for -1. */
uint64_t instructions_read(int fd);

/* ---- output ---- */

/* Print a line to standard error. */
__attribute__((format(printf, 1, 2)))
void complain(const char *fmt, ...);

/*
 * Write one JSON object with the given members and the name of the part; print them
 * on standard output, too.
 */
#define result(b, part, ...)	result_to((b)->json, part, __VA_ARGS__)
__attribute__((format(printf, 3, 4)))
void result_to(FILE *json, const char *part, const char *fmt, ...);

/* Flush the results. Return: 0, or -errno after a complaint. */
int results_end(FILE *json);

/* ---- command line ---- */

struct bench;

/**
 * struct bench_part - a part of a bench
 * @name: name on the command line
 * @run: measures the part; returns 0 or -errno
 * @no_device: the part runs without the kernel modules
 */
struct bench_part {
	const char *name;
	int (*run)(struct bench *b);
	bool no_device;
};

/**
 * struct bench_options - command line of a bench that has parts
 * @usage: text of --help
 * @parts: the bench's parts
 * @nr_parts: number of @parts, at most 32
 * @option: name of one more option, which has a value
 * @value: value of @option; unchanged if the option is not given
 * @json: file for the results; unchanged if --json is not given
 * @quick: --quick is given
 * @wanted: bit i is set if @parts[i] is to run
 */
struct bench_options {
	const char *usage;
	const struct bench_part *parts;
	size_t nr_parts;
	const char *option;
	const char *value;
	FILE *json;
	bool quick;
	uint32_t wanted;
};

/**
 * bench_options - parse a bench's command line
 * @o: input and result
 * @argc: of main()
 * @argv: of main()
 *
 * Return: -1 to go on, or the status to exit with.
 */
int bench_options(struct bench_options *o, int argc, char **argv);

/* ---- the test host ---- */

/**
 * struct engine_thread - a thread of mgpu_soft that runs jobs
 * @pid: process ID
 * @engine: number of the engine, from 0
 */
struct engine_thread {
	pid_t pid;
	unsigned int engine;
};

/* Find at most @max engine threads. Return: their number. */
unsigned int engine_threads(struct engine_thread *t, unsigned int max);

/*
 * Write the part "conditions": kernel, processors, memory, @quick, and the members
 * given.
 */
__attribute__((format(printf, 3, 4)))
void conditions_to(FILE *json, bool quick, const char *fmt, ...);

#endif /* BENCH_H */

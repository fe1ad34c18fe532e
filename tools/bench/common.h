/* SPDX-License-Identifier: GPL-2.0-only */
/* Time and output of the benches that run in the test host. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdint.h>
#include <stdio.h>

#define US		1000ull		/* nanoseconds */
#define MS		1000000ull
#define SEC		1000000000ull

uint64_t now_ns(void);			/* CLOCK_MONOTONIC */
uint64_t self_cpu_ns(void);		/* processor time of this process */
void sleep_until(uint64_t ns);

__attribute__((format(printf, 1, 2)))
void complain(const char *fmt, ...);

/*
 * Members of one JSON object; the part's name is put before them.  Also to standard
 * output, to be looked at.
 */
#define result(b, part, ...)	result_to((b)->json, part, __VA_ARGS__)
__attribute__((format(printf, 3, 4)))
void result_to(FILE *json, const char *part, const char *fmt, ...);

#endif /* BENCH_COMMON_H */

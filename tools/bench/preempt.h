/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The preemption bench: guests that compute, and slots that are taken from them.
 * Documentation/benchmarks.rst says what is measured and how.
 */
#ifndef BENCH_PREEMPT_H
#define BENCH_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../../ctl/lib/mgpu.h"
#include "../../include/uapi/linux/mgpu_compute.h"
#include "../../tests/kselftest/vmm.h"
#include "common.h"
#include "sched_stats.h"

#define MIB		(1024ul * 1024)

/* A job is on slots for less than this, whatever the machine; milliseconds. */
#define BENCH_TIMEOUT_MS	60000

/**
 * struct bench - what the parts share
 * @mgpu: the kernel module
 * @dev: the device, before anything was changed
 * @json: where results go, one object a line
 * @streams: folder of the recorded streams
 * @quick: short runs, to see that everything works
 */
struct bench {
	struct mgpu *mgpu;
	struct mgpu_dev_info dev;
	FILE *json;
	const char *streams;
	bool quick;
};

/* ---- jobs ---- */

/**
 * struct job - a job to submit, and what is known of it beforehand
 * @cmd: as it goes to the device
 * @inst: work units
 * @bytes: memory traffic
 * @live: bytes to save for each slot
 * @tiles: that it is cut into
 * @idempotent: it may be flushed
 * @out: bytes of the result, from where it begins
 */
struct job {
	struct mgpu_compute_cmd cmd;
	uint64_t inst;
	uint64_t bytes;
	uint32_t live;
	uint32_t tiles;
	bool idempotent;
	size_t out;
};

/**
 * struct job_shape - what a job is made from
 * @op: enum mgpu_compute_op
 * @units: work units that it should have, about
 * @knob: MANDELBROT: iterations; HASH: bytes of a chunk; GATHER: log2 of the table's
 *	entries; 0: the usual
 * @slots: that it may use, 0 for all
 */
struct job_shape {
	uint32_t op;
	double units;
	uint32_t knob;
	uint32_t slots;
};

/*
 * With the result at @at of a guest's second resource. -ERANGE when it needs more
 * than @in bytes of the first, or reaches beyond @out of the second.
 */
int job_make(struct job *j, const struct job_shape *shape, size_t at, size_t in,
	     size_t out);

/* ---- guests ---- */

/**
 * struct guest - a VM whose contexts share two resources
 * @vm: the machine
 * @id: of its vGPU
 * @in: what jobs read, random numbers
 * @out: where results go
 * @in_size: bytes
 * @out_size: bytes
 */
struct guest {
	struct vm vm;
	uint32_t id;
	uint8_t *in;
	uint8_t *out;
	size_t in_size;
	size_t out_size;
};

/* 0 or -errno, with a sentence on standard error. Sizes are whole pages. */
int guest_open(struct bench *b, struct guest *g, size_t in, size_t out);
void guest_close(struct guest *g);
int guest_context(struct guest *g, uint32_t ctx);
int guest_context_end(struct guest *g, uint32_t ctx);
/* The head, without a wait; or -errno. */
int guest_submit(struct guest *g, uint32_t ctx, const struct job *j);
/*
 * Whether what was submitted is answered; @answer is 0, or -EREMOTEIO when the job
 * was refused or ended.
 */
bool guest_done(struct guest *g, int head, int *answer);
int guest_wait(struct guest *g, int head);
/* Submit and wait. */
int guest_run(struct guest *g, uint32_t ctx, const struct job *j);

/* ---- the module ---- */

int bench_ctx(struct bench *b, const struct guest *g, uint32_t ctx, struct mgpu_ctx *c);
/* Until it has a slot; -ENODATA when what was submitted as @head is answered. */
int bench_wait_running(struct bench *b, struct guest *g, uint32_t ctx, int head);
int bench_preempt(struct bench *b, const struct guest *g, uint32_t ctx, uint32_t keep,
		  enum mgpu_preempt_method method, bool hold);
int bench_resume(struct bench *b, const struct guest *g, uint32_t ctx);
int bench_policy(struct bench *b, const char *policy);

/* ---- chance ---- */

/* 0 to 1, the same for a seed always. */
double uniform(uint64_t *seed);

/* ---- parts; 0 or -errno ---- */

int part_switch(struct bench *b);
int part_equal_bytes(struct bench *b);
int part_model(struct bench *b);
int part_streams(struct bench *b);
int part_decide(struct bench *b);

#endif /* BENCH_PREEMPT_H */

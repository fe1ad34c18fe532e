/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The preemption bench: guests that compute, and slots that are preempted.
 * Documentation/benchmarks.rst says what is measured and how.
 */
#ifndef BENCH_PREEMPT_H
#define BENCH_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../../../ctl/lib/mgpu.h"
#include "../../../include/uapi/linux/mgpu_compute.h"
#include "../../../tests/kselftest/lib/vmm.h"
#include "../common/bench.h"
#include "../common/stats.h"

#define MIB		(1024ul * 1024)

/* Longest time that a job may run on any machine, milliseconds. */
#define BENCH_TIMEOUT_MS	60000

/**
 * struct bench - state that the parts share
 * @mgpu: the kernel module
 * @dev: the device with its original settings
 * @json: file for results, one object a line
 * @streams: folder of the recorded streams
 * @quick: short runs, to check that everything works
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
 * struct job - a job to submit, with its known properties
 * @cmd: command for the device
 * @inst: number of work units
 * @bytes: memory traffic, bytes
 * @live: state to save for each slot, bytes
 * @tiles: number of tiles
 * @idempotent: the job may be flushed
 * @out: size of the result, bytes
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
 * struct job_shape - parameters of a job
 * @op: enum mgpu_compute_op
 * @units: approximate number of work units
 * @knob: MANDELBROT: iterations; HASH: bytes of a chunk; GATHER: log2 of the table's
 *	entries; 0 for the default
 * @slots: slots that the job may use, 0 for all
 */
struct job_shape {
	uint32_t op;
	double units;
	uint32_t knob;
	uint32_t slots;
};

/*
 * Make a job with the result at @at of a guest's second resource. -ERANGE when it needs
 * more than @in bytes of the first, or reaches beyond @out of the second.
 */
int job_make(struct job *j, const struct job_shape *shape, size_t at, size_t in,
	     size_t out);

/* ---- guests ---- */

/**
 * struct guest - a VM whose contexts share two resources
 * @vm: the machine
 * @id: ID of its vGPU
 * @in: input of jobs, random numbers
 * @out: results of jobs
 * @in_size: size of @in, bytes
 * @out_size: size of @out, bytes
 */
struct guest {
	struct vm vm;
	uint32_t id;
	uint8_t *in;
	uint8_t *out;
	size_t in_size;
	size_t out_size;
};

/* Return 0, or -errno with a message on standard error. Sizes are whole pages. */
int guest_open(struct bench *b, struct guest *g, size_t in, size_t out);
void guest_close(struct guest *g);
int guest_context(struct guest *g, uint32_t ctx);
int guest_context_end(struct guest *g, uint32_t ctx);
/* Submit a job and return its head at once, or -errno. */
int guest_submit(struct guest *g, uint32_t ctx, const struct job *j);
/*
 * Return whether a submitted job is answered; @answer is 0, or -EREMOTEIO when the job
 * was refused or ended.
 */
bool guest_done(struct guest *g, int head, int *answer);
int guest_wait(struct guest *g, int head);
/* Submit a job and wait for it. */
int guest_run(struct guest *g, uint32_t ctx, const struct job *j);

/* ---- the module ---- */

int bench_ctx(struct bench *b, const struct guest *g, uint32_t ctx, struct mgpu_ctx *c);
/* Wait until the context has a slot; -ENODATA when the job of @head is answered first. */
int bench_wait_running(struct bench *b, struct guest *g, uint32_t ctx, int head);
int bench_preempt(struct bench *b, const struct guest *g, uint32_t ctx, uint32_t keep,
		  enum mgpu_preempt_method method, bool hold);
int bench_resume(struct bench *b, const struct guest *g, uint32_t ctx);
int bench_policy(struct bench *b, const char *policy);

/* ---- random numbers ---- */

/* Return the seed's next number, from 0 to 1. */
double uniform(uint64_t *seed);

/* ---- parts; 0 or -errno ---- */

int part_switch(struct bench *b);
int part_equal_bytes(struct bench *b);
int part_model(struct bench *b);
int part_streams(struct bench *b);
int part_decide(struct bench *b);

#endif /* BENCH_PREEMPT_H */

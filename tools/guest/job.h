/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-compute: compute jobs from the command line.  job.c is the main program,
 * work.c makes the jobs and knows their results, compute.c is the library.
 */
#ifndef MGPU_GUEST_JOB_H
#define MGPU_GUEST_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute.h"

#define WORK_MAX_SIZE		16384

struct kind;

/**
 * struct work - one job, to be run again and again
 * @kind: operation
 * @job: the job to submit
 * @out: result of the job
 * @in: inputs of the job
 * @want: expected content of @out after the next run; NULL without --verify
 */
struct work {
	const struct kind *kind;
	struct compute_job job;
	struct compute_buffer out;
	struct compute_buffer in[2];
	uint8_t *want;
};

const struct kind *work_kind(unsigned int i);
const char *work_name(const struct kind *kind);
int work_open(struct work *w, struct compute *c, const struct kind *kind,
	      uint32_t size, bool verify);
void work_close(struct work *w, struct compute *c);
void work_before(struct work *w);
bool work_right(const struct work *w, size_t *at);

#endif /* MGPU_GUEST_JOB_H */

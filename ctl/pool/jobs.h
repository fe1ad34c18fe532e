/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads of hosts: each takes jobs in order and answers in a queue that the main thread empties.
 * A host that hangs holds up itself only.
 */
#ifndef POOL_JOBS_H
#define POOL_JOBS_H

#include "host.h"

struct jobs;

/**
 * struct jobs_answer - what a host's thread says
 * @kind: JOBS_UP after each (re)connection with @found, JOBS_GPU and JOBS_VM for each that is new
 *	or changed, JOBS_GONE for a GPU or VM that libvirt no longer has, JOBS_DOWN, JOBS_USE, and
 *	the answer to a job
 */
enum jobs_answer_kind {
	JOBS_UP, JOBS_DOWN, JOBS_GPU, JOBS_VM, JOBS_GPU_GONE, JOBS_VM_GONE, JOBS_USE,
	JOBS_ATTACHED, JOBS_DETACHED, JOBS_FAILED, JOBS_REFUSED,
};

struct jobs_answer {
	enum jobs_answer_kind kind;
	char host[POOL_NAME_MAX];
	uint64_t request;
	struct pool_gpu gpu;
	struct pool_vm vm;
	struct pool_use use;
	char uuid[POOL_UUID_MAX];
	char text[POOL_TEXT_MAX];
	double seconds;
	struct pool_found *found;	/* the receiver frees it */
	size_t nr_found;
};

struct jobs *jobs_new(const struct pool_host *hosts, size_t nr);
void jobs_free(struct jobs *jobs);
/* Readable while there are answers. */
int jobs_fd(const struct jobs *jobs);
bool jobs_next(struct jobs *jobs, struct jobs_answer *answer);
void jobs_add(struct jobs *jobs, const struct pool_job *job);

#endif /* POOL_JOBS_H */

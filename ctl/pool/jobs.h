/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads of hosts: each host takes its jobs in order (jobs of different VMs and GPUs at the same
 * time), and answers in a queue that the main thread empties.  A host that hangs holds up itself
 * only.
 */
#ifndef POOL_JOBS_H
#define POOL_JOBS_H

#include "host.h"

#define JOBS_USE_SECONDS	10	/* between two looks at the use of a device */

struct jobs;

/**
 * struct jobs_answer - what a host's thread says
 * @kind: JOBS_UP with @found after each (re)connection, and after an event that may have taken a
 *	device; JOBS_GPU and JOBS_VM for each that is new or changed, JOBS_GPU_GONE and JOBS_VM_GONE
 *	for what libvirt no longer has, JOBS_DOWN, JOBS_USE, and the answer to a job: JOBS_ATTACHED,
 *	JOBS_DETACHED, JOBS_FAILED (HOST_RETRY) or JOBS_REFUSED (HOST_FAILED)
 *
 * GPUs and VMs come before the JOBS_UP that refers to them. JOBS_DOWN drops the jobs that are not
 * answered yet; pool_reconcile() asks for them again after the next JOBS_UP.
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
/*
 * The same for a host whose URI changed: connects when the threads of @former, which is taken, have
 * ended, 5 s after jobs_stop() at the latest.
 */
struct jobs *jobs_new_after(const struct pool_host *host, struct jobs *former);
/* Begin no more jobs, and end those that wait for a guest. Does not block. */
void jobs_stop(struct jobs *jobs);
/* Stop, and free; a thread that a host holds up frees the rest later. Does not block. */
void jobs_leave(struct jobs *jobs);
/* The same; blocks until the threads have ended, for 5 s after jobs_stop() at the most. */
void jobs_free(struct jobs *jobs);
/* Readable while there are answers. */
int jobs_fd(const struct jobs *jobs);
bool jobs_next(struct jobs *jobs, struct jobs_answer *answer);
void jobs_add(struct jobs *jobs, const struct pool_job *job);

#endif /* POOL_JOBS_H */

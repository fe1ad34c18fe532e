/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine that executes programs: a VMM and a guest, of a vGPU of its own, with two
 * threads that do as they like.
 */
#ifndef KSELFTEST_FUZZ_EXEC_H
#define KSELFTEST_FUZZ_EXEC_H

#include <pthread.h>
#include <semaphore.h>

#include "cover.h"
#include "nl.h"
#include "prog.h"
#include "vmm.h"

#define CHUNKS		8	/* of the guest's memory; each is mapped for itself */
#define EVENTFDS	4
#define QUEUE		64	/* records that wait for the second thread */

struct worker {
	pthread_t thread;
	struct cover cover;
	int error;		/* why it does not collect coverage */
	struct nl nl;		/* of this thread alone */
	sem_t start;
	sem_t done;
};

/* State of a machine that other processes read. */
struct progress {
	uint64_t beat;		/* increased by whatever goes on */
	uint32_t op[2];		/* that each thread executes, + 1 */
	uint64_t programs;
	uint64_t ops;
	uint64_t answers;
	uint64_t reopened;
	uint32_t vgpu;		/* its ID */
};

struct exec {
	struct vm vm;
	unsigned int index;
	bool gpu;		/* the vGPU is on a physical GPU */
	struct progress *progress;
	const struct progress *all;	/* of all machines */
	unsigned int nr_all;
	uint32_t dev;		/* ID of the device */
	bool mapped[CHUNKS + 1];	/* the last one is a second mapping of a chunk */
	int fds[EVENTFDS];
	uint16_t sent[VMM_NR_VQS];	/* the rings' available index */

	/* The thread that opens the vGPU: kernel threads' coverage is its. */
	struct worker opener;
	int (*request)(struct exec *x);
	int result;

	/* The second thread, and the records for it. */
	struct worker second;
	struct record queue[QUEUE];
	unsigned int queued;	/* by the first thread */
	unsigned int finished;	/* by the second thread */

	struct cover cover;	/* the first thread's */
	struct nl nl;
};

/* Prepare a machine for an existing vGPU, and open it.  @cover: collect coverage */
int exec_init(struct exec *x, const char *uuid, bool cover);
/* Execute a program on the vGPU, which is reset before. */
int exec_run(struct exec *x, const struct prog *p);
/* Return NULL if the vGPU works as one that nothing has happened to, else what is wrong. */
const char *exec_well(struct exec *x);
/* Close all of it and open it anew. */
int exec_reopen(struct exec *x);
void exec_exit(struct exec *x);

#endif /* KSELFTEST_FUZZ_EXEC_H */

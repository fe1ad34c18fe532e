/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machines that keep their rings full of flushes, and check that each is
 * answered once, in order.
 */
#ifndef KSELFTEST_LOAD_H
#define KSELFTEST_LOAD_H

#include "vmm.h"

/* ID of the vGPU whose next job does not end by itself, 0 for none. */
#define HANG	"/sys/module/mgpu_soft/parameters/hang"

/*
 * Commands in flight per machine, the ring's worth.  With jobs of half a
 * millisecond or more the engine is busy even while the test does not get to run.
 */
#define LOAD_DEPTH	30

struct load {
	struct vm vm;
	struct gpu_screen screen;
	struct virtio_gpu_rect job;
	unsigned int depth;	/* commands in flight, LOAD_DEPTH at most */
	uint16_t order[LOAD_DEPTH];	/* their heads, oldest first */
	unsigned int first;
	unsigned int in_flight;
	uint64_t sent;
	uint64_t done;
	uint64_t wrong;		/* out of order, or not OK */
	uint64_t dry;		/* times that load_run() found nothing in flight */
};

/* Open a machine whose jobs are squares of @side pixels; vm_delete() closes it. */
int load_open(struct load *l, uint32_t side);
int load_send(struct load *l);
void load_reap(struct load *l);

/* Keep rings full for a time; wait until nothing is in flight, all answered in order. */
int load_run(struct load *l, unsigned int nr, unsigned int ms);
bool load_drain(struct load *l, unsigned int nr);

/* Send a job of vGPU @id that hangs; return when an engine has it. */
int load_hang(struct load *l, uint32_t id);
int hang_next(uint32_t id);

#endif /* KSELFTEST_LOAD_H */

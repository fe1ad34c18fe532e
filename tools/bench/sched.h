/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's bench: one process plays many VMs.  Documentation/benchmarks.rst
 * says what is measured and how.
 */
#ifndef BENCH_SCHED_H
#define BENCH_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../ctl/mgpud/counters.h"
#include "../../tests/kselftest/nl.h"
#include "../../tests/kselftest/vmm.h"
#include "common.h"

#define BENCH_TICK_NS	(MS / 2)	/* how often rings are refilled */
#define BENCH_BASE_W	256		/* a job of 256 KiB, unless said */
#define BENCH_BASE_H	256

/* ---- machines ---- */

/**
 * struct machine - one VM and the load it makes: a ring full of FLUSHes
 * @uuid: of its vGPU
 * @id: of its vGPU
 * @made: the vGPU exists
 * @open: the device is open and the driver started
 * @on: what is answered goes into the ring again
 * @vm: the machine
 * @screen: its picture
 * @cmd: the command, in guest memory; all buffers of the ring share it
 * @resp: an answer for each buffer
 * @head: the buffers, in the order in which they go around
 * @buffers: how many there are
 * @depth: how many go around
 * @next: which is answered next
 * @queued: buffers in the ring
 * @answers: answers so far
 * @bad: of these, not OK, or not in the order of the commands
 * @kicks: doorbells so far
 * @dry: how often all of the ring was answered when it was looked at, so that
 *	the VM may have been without work
 */
struct machine {
	char uuid[VMM_UUID_LEN + 1];
	uint32_t id;
	bool made;
	bool open;
	bool on;
	struct vm vm;
	struct gpu_screen screen;
	struct virtio_gpu_resource_flush *cmd;
	struct virtio_gpu_ctrl_hdr *resp;
	uint16_t head[VMM_MAX_VQ];
	unsigned int buffers;
	unsigned int depth;
	unsigned int next;
	unsigned int queued;
	uint64_t answers;
	uint64_t bad;
	uint64_t kicks;
	uint64_t dry;
};

/**
 * struct bench - everything that the parts share
 * @nl: netlink
 * @counters: BPF programs and what they count, NULL while not attached
 * @m: room for machines
 * @max: how many
 * @json: where results go, one object a line
 * @quick: short runs, to see that everything works
 * @cpu: processor that this process is pinned to
 * @late_ns: longest that a tick of bench_pump() was late
 */
struct bench {
	struct nl nl;
	struct counters *counters;
	struct machine *m;
	unsigned int max;
	FILE *json;
	bool quick;
	int cpu;
	uint64_t late_ns;
};

/*
 * A vGPU of the small type; the device opened and started, with a screen unless
 * @w is 0; the load, of which any number may follow each other.  0 or -errno,
 * with a sentence on standard error.
 */
int machine_create(struct bench *b, struct machine *m);
int machine_open(struct machine *m, uint32_t w, uint32_t h);
int machine_load(struct machine *m, unsigned int depth, uint32_t w, uint32_t h);
/* Stops filling the ring and waits until it is empty. */
int machine_stop(struct machine *m);
void machine_close(struct machine *m);
void machine_remove(struct machine *m);

/* Takes answers and refills the ring; number of answers. */
unsigned int machine_reap(struct machine *m);

/* The first @n of bench's machines exist, and are open. */
int bench_create(struct bench *b, unsigned int n);
int bench_open(struct bench *b, unsigned int n, uint32_t w, uint32_t h);
int bench_stop(struct bench *b, unsigned int n);
void bench_close(struct bench *b, unsigned int from);
void bench_remove(struct bench *b);

/* Keeps the rings of the first @n full until then, CLOCK_MONOTONIC. */
void bench_pump(struct bench *b, unsigned int n, uint64_t until_ns);

/* Sums over the first @n. */
uint64_t bench_answers(const struct bench *b, unsigned int n);
uint64_t bench_kicks(const struct bench *b, unsigned int n);
uint64_t bench_bad(const struct bench *b, unsigned int n);
uint64_t bench_dry(const struct bench *b, unsigned int n);

/* ---- the module ---- */

int bench_attach(struct bench *b);	/* the BPF programs */
void bench_detach(struct bench *b);
/* Engine time and jobs of vGPU @m, from BPF's counters if attached. */
void bench_usage(struct bench *b, const struct machine *m, uint64_t *engine_ns,
		 uint64_t *jobs);
int bench_policy(struct bench *b, const char *name);
/* NL_KEEP leaves a setting as it is. */
int bench_set(struct bench *b, const struct machine *m, int64_t weight,
	      int64_t fps_mhz, int64_t limit_ppm, int64_t period_us);
uint64_t engine_cpu_ns(void);		/* CPU time of all engine threads */

/* ---- parts; 0 or -errno ---- */

int part_shares(struct bench *b);
int part_fps(struct bench *b);
int part_idle(struct bench *b);
int part_cost(struct bench *b);

#endif /* BENCH_SCHED_H */

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

#include "../../../ctl/mgpud/frames/counters.h"
#include "../../../tests/kselftest/lib/nl.h"
#include "../../../tests/kselftest/lib/vmm.h"
#include "../common/bench.h"

#define BENCH_TICK_NS	(MS / 2)	/* interval at which rings are refilled */
#define BENCH_BASE_W	256		/* default job: 256 KiB */
#define BENCH_BASE_H	256
#define MACHINE_CMD	4096u		/* longest command of a load, bytes */

/* ---- machines ---- */

/**
 * struct machine - one VM and the load it makes: a ring full of one command
 * @uuid: UUID of its vGPU
 * @id: ID of its vGPU
 * @made: the vGPU exists
 * @open: the device is open and the driver started
 * @on: answered buffers go into the ring again
 * @vm: the machine
 * @screen: its picture
 * @cmd: the command, in guest memory; all buffers of the ring share it
 * @cmd_len: length of @cmd, bytes
 * @resp: an answer for each buffer
 * @head: the buffers, in the order in which they go around
 * @buffers: number of buffers
 * @depth: number of buffers that go around
 * @next: index of the buffer that is answered next
 * @queued: buffers in the ring
 * @answers: answers so far
 * @bad: answers that were not OK, or not in the order of the commands
 * @kicks: doorbells so far
 * @dry: number of ticks that found the ring without an unanswered buffer, so that
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
	uint8_t *cmd;
	size_t cmd_len;
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
 * struct bench - state that the parts share
 * @nl: netlink
 * @counters: BPF programs and their counters, NULL while not attached
 * @type: type of the vGPUs, NULL for the small one
 * @m: machines
 * @max: size of @m
 * @json: file for results, one object a line
 * @quick: short runs, to check that everything works
 * @cpu: processor that this process is pinned to
 * @late_ns: longest delay of a tick of bench_pump()
 */
struct bench {
	struct nl nl;
	struct counters *counters;
	const char *type;
	struct machine *m;
	unsigned int max;
	FILE *json;
	bool quick;
	int cpu;
	uint64_t late_ns;
};

/*
 * Create a vGPU; open and start the device, with a screen unless @w is 0; start a load of
 * FLUSHes, as often as needed.  Return 0, or -errno with a message on standard error.
 */
int machine_create(struct bench *b, struct machine *m);
int machine_open(struct machine *m, uint32_t w, uint32_t h);
int machine_load(struct machine *m, unsigned int depth, uint32_t w, uint32_t h);
/* The same for a guest with other features, a picture of its own, another command. */
int machine_open_with(struct machine *m, uint64_t features, uint32_t w, uint32_t h,
		      int (*furnish)(struct machine *m, uint32_t w, uint32_t h));
int machine_load_with(struct machine *m, unsigned int depth, const void *cmd, size_t len);
/* Stop filling the ring and wait until it is empty. */
int machine_stop(struct machine *m);
void machine_close(struct machine *m);
void machine_remove(struct machine *m);

/* Take answers and refill the ring. Return the number of answers. */
unsigned int machine_reap(struct machine *m);

/* Create, and open, the first @n machines of @b. */
int bench_create(struct bench *b, unsigned int n);
int bench_open(struct bench *b, unsigned int n, uint32_t w, uint32_t h);
int bench_stop(struct bench *b, unsigned int n);
void bench_close(struct bench *b, unsigned int from);
void bench_remove(struct bench *b);

/* Keep the rings of the first @n full until @until_ns, CLOCK_MONOTONIC. */
void bench_pump(struct bench *b, unsigned int n, uint64_t until_ns);

/* Sums over the first @n. */
uint64_t bench_answers(const struct bench *b, unsigned int n);
uint64_t bench_kicks(const struct bench *b, unsigned int n);
uint64_t bench_bad(const struct bench *b, unsigned int n);
uint64_t bench_dry(const struct bench *b, unsigned int n);

/* ---- the module ---- */

int bench_attach(struct bench *b);	/* the BPF programs */
void bench_detach(struct bench *b);
/* Read engine time and jobs of vGPU @m, from BPF's counters if attached. */
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

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine with VMs that share a GPU, event by event in simulated time. Pure:
 * no clock, no random numbers, no input or output.
 *
 * A VM makes frames one after the other: first CPU work, on some of the CPUs'
 * time, then engine work. Of its frames at most @depth are under way at a time,
 * the one that it works on included. The module's own code does the module's part:
 * frame pacing by kmod/sched/throttle.c, the engines' order by kmod/sched/runq.c and
 * its policies.
 *
 *   CPUs     threads that are busy share them equally, none has more than one
 *            CPU: the fluid limit of a fair scheduler
 *   engines  run a job a tile at a time; between two tiles the run queue is
 *            asked whether another VM's job goes first
 *   pacing   a frame whose time has not come is held before its engine work
 */
#ifndef MGPU_SIM_MACHINE_H
#define MGPU_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample.h"

#define MACHINE_NSEC		1000000000ULL
#define MACHINE_MAX_VM		1024
#define MACHINE_MAX_DEPTH	4
#define MACHINE_MAX_ENGINES	64

/* Frames and jobs take so long at least, nanoseconds. */
#define MACHINE_COST_MIN	1000.0

/**
 * struct machine_frame - what one frame costs
 * @cpu_ns: CPU time, nanoseconds
 * @engine_ns: engine time, nanoseconds
 */
struct machine_frame {
	double cpu_ns;
	double engine_ns;
};

/**
 * struct machine_vm - a VM
 * @uuid: of its vGPU
 * @threads: busy while it works on a frame; at least 1, at most its virtual CPUs
 * @depth: frames under way at most, 1 to MACHINE_MAX_DEPTH; with 1 a frame is
 *	begun only when the one before is shown
 * @patience_ns: how long a guest waits for its frame to be shown before it
 *	begins the next one, if @depth lets it; 0 for not at all
 * @rate: frames per second that its program begins at most, INFINITY for any
 * @background: CPU time that it uses beside its frames, CPUs
 * @weight: of its vGPU
 */
struct machine_vm {
	char uuid[SAMPLE_UUID_LEN];
	unsigned int threads;
	unsigned int depth;
	uint64_t patience_ns;
	double rate;
	double background;
	uint32_t weight;
};

/**
 * struct machine_config - a machine
 * @cpus: number of CPUs
 * @host: of these, used by the host for itself
 * @engines: jobs that the device runs at once
 * @order: whose job is next: weighted, equal or best-effort, as the module has
 *	them; NULL for the module's default
 * @tile_ns: longest part of a job after which another may go first; 0 for jobs
 *	that cannot be interrupted
 * @engines_on_cpus: engines are threads of the host, which go before those of VMs
 * @vms: all closed in the beginning
 * @nr_vms: at least 1
 * @frame: says what the frame costs that a VM begins now; only then
 * @data: for @frame
 */
struct machine_config {
	unsigned int cpus;
	double host;
	unsigned int engines;
	const char *order;
	uint64_t tile_ns;
	bool engines_on_cpus;
	const struct machine_vm *vms;
	size_t nr_vms;
	void (*frame)(void *data, size_t vm, uint64_t now_ns,
		      struct machine_frame *frame);
	void *data;
};

/**
 * struct machine_use - what was used since the beginning, exactly
 * @cpu_ns: CPU time of VMs
 * @engine_cpu_ns: CPU time of engines, with @engines_on_cpus
 * @host_ns: CPU time of the host for itself
 * @idle_ns: CPU time that nobody used
 * @engine_ns: engine time
 * @events: that the machine went through
 * @now_ns: how far it got
 */
struct machine_use {
	double cpu_ns;
	double engine_cpu_ns;
	double host_ns;
	double idle_ns;
	double engine_ns;
	uint64_t events;
	uint64_t now_ns;
};

struct machine;

/* NULL, or a sentence that says what is wrong. */
const char *machine_check(const struct machine_config *cfg);

/* Copies @cfg, and @cfg->vms; NULL when out of memory or @cfg is wrong. */
struct machine *machine_new(const struct machine_config *cfg);
void machine_free(struct machine *m);

/* Go on until @until_ns, nanoseconds since the beginning. */
void machine_run(struct machine *m, uint64_t until_ns);

/*
 * The VM starts, or ends: what it has under way is dropped, except for a job that
 * runs, and its VMM is another one the next time.
 */
void machine_open(struct machine *m, size_t vm, bool open);

/* While it pauses it begins no frame; what is under way is finished. */
void machine_pause(struct machine *m, size_t vm, bool pause);

/* Millihertz, 0 for none; a frame that is held is looked at again. */
void machine_set_limit(struct machine *m, size_t vm, uint32_t limit);

/* Set the limit of engine time of a VM, parts per million of all engines; 0 for none. */
void machine_set_gpu_limit(struct machine *m, size_t vm, uint32_t ppm);

/* Counters as mgpud would see them. They stay @m's, and valid until the next. */
void machine_sample(struct machine *m, struct sample *s);

const struct machine_use *machine_use(const struct machine *m);

/* Frames of a VM that were shown, so far. */
uint64_t machine_frames(const struct machine *m, size_t vm);

/*
 * The rate that a VM @v reaches alone on the machine, without a limit, when all its
 * frames cost @frame; frames per second.
 */
double machine_rate_alone(const struct machine_config *cfg, const struct machine_vm *v,
			  const struct machine_frame *frame);

#endif /* MGPU_SIM_MACHINE_H */

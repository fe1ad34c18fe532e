/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traces of what frames cost, as `mgpu-trace record` writes them: CSV, a line per
 * frame. mgpu-trace(8) describes the columns.
 */
#ifndef MGPU_SIM_TRACE_H
#define MGPU_SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sample.h"

#define TRACE_MAX_VMS		1024
#define TRACE_MAX_FRAMES	20000000	/* those that were lost included */
#define TRACE_MAX_VM_SECONDS	10000000	/* seconds times vGPUs */
#define TRACE_MAX_LINE		1024
#define TRACE_MAX_ENGINES	64
#define TRACE_MAX_SECONDS	100000.0
#define TRACE_MAX_COST		1000.0	/* seconds */

/**
 * struct trace_frame - a line
 * @time_s: when the frame was shown, seconds since the trace began
 * @cpu_s: CPU time of its VMM since the frame before, seconds
 * @engine_s: engine time, likewise
 * @vm: whose it is
 * @frames: frames that the line stands for; more than 1 where some were lost
 */
struct trace_frame {
	double time_s;
	double cpu_s;
	double engine_s;
	uint32_t vm;
	uint32_t frames;
};

/**
 * struct trace - frames in the order of time
 * @names: of the VMs: the vgpu column, in the order of appearance
 * @nr_vms: number of them
 * @frames: all frames
 * @nr: number of them
 * @room: that are allocated
 * @all_frames: frames that the lines stand for
 * @seconds: from the trace's beginning to its last frame; or as long as its
 *	first line says
 * @cpus: of the machine, 0 if the trace does not say
 * @engines: of the device, 0 if it does not say
 */
struct trace {
	char (*names)[SAMPLE_UUID_LEN];
	size_t nr_vms;
	struct trace_frame *frames;
	size_t nr, room;
	uint64_t all_frames;
	double seconds;
	unsigned int cpus, engines;
};

/*
 * Read a file, or add it to what is there: its VMs are others then. Returns 0 or
 * -errno with a sentence in @why that names file and line; @t is to be freed in
 * any case.
 */
int trace_read(struct trace *t, FILE *f, const char *file, char *why, size_t len);
void trace_free(struct trace *t);

#endif /* MGPU_SIM_TRACE_H */

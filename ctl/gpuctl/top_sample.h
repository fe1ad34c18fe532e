/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples of top: what is read of module and mgpud, and rates between two of them. */
#ifndef GPUCTL_TOP_SAMPLE_H
#define GPUCTL_TOP_SAMPLE_H

#include "control.h"
#include "mgpu.h"

/**
 * struct sample_state - a vGPU in the state of mgpud
 * @uuid: its UUID
 * @entry: what mgpud says of it
 */
struct sample_state {
	const char *uuid;
	struct json_object *entry;
};

/**
 * struct sample - values read at one moment
 * @time: CLOCK_MONOTONIC, seconds
 * @vgpus: vGPUs, sorted by ID
 * @nr: number of vGPUs
 * @devs: devices, sorted by ID
 * @nr_devs: number of devices
 * @ctxs: contexts, sorted by the IDs of vGPU and context
 * @nr_ctxs: number of contexts
 * @control: mgpud
 * @states: vGPUs in the state of mgpud, sorted by UUID
 * @nr_states: number of @states
 */
struct sample {
	double time;
	struct mgpu_vgpu_info *vgpus;
	size_t nr;
	struct mgpu_dev_info *devs;
	size_t nr_devs;
	struct mgpu_ctx *ctxs;
	size_t nr_ctxs;
	struct control control;
	struct sample_state *states;
	size_t nr_states;
};

/**
 * struct rates - rates of a vGPU; NAN is unknown
 * @told: mgpud has the vGPU in its list, and tells target and floor
 * @fps: frames shown per second
 * @target: frames per second that mgpud allocated; NAN with @told is no limit
 * @floor: floor in force, frames per second
 * @granted: part of the floor that it is granted, frames per second
 * @gpu: part of the device's engines
 * @cpu: part of the CPUs that VMs share
 * @held: part of the time in which a frame was held back
 * @limited: part of the time in which jobs waited for want of engine time
 */
struct rates {
	bool told;
	double fps;
	double target;
	double floor;
	double granted;
	double gpu;
	double cpu;
	double held;
	double limited;
};

/**
 * struct ctx_rates - rates of a context; NAN is unknown
 * @done: part of its job that is done
 * @inst: work units per second
 * @gpu: part of the device's engines
 */
struct ctx_rates {
	double done;
	double inst;
	double gpu;
};

void sample_free(struct sample *sample);

/*
 * Read a sample. It takes a dump of devices, one of vGPUs and one of contexts, and a question
 * to mgpud, whatever their number. Returns 0 or -errno, and then @sample is empty.
 */
int sample_read(struct sample *sample, struct mgpu *mgpu, struct mgpu_error *err);

/*
 * Sort the vGPUs in the state of mgpud, whose order need not be the module's, so that none is
 * looked for in the whole list. Returns 0 or -ENOMEM.
 */
int sample_sort_states(struct sample *sample, struct mgpu_error *err);

/* The vGPU with an ID; NULL if there is none. */
const struct mgpu_vgpu_info *sample_vgpu(const struct sample *sample, uint32_t id);

/* Rates of the vGPU at an index of @now. */
void get_rates(struct rates *rates, const struct sample *now, const struct sample *before,
	       size_t i);
void get_ctx_rates(struct ctx_rates *rates, const struct sample *now,
		   const struct sample *before, const struct mgpu_ctx *ctx);

#endif /* GPUCTL_TOP_SAMPLE_H */

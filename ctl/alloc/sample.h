/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters (not rates) of all devices, vGPUs and VMMs at one moment, as plain structs.
 * observe.c fills them in, or a test.
 */
#ifndef MGPU_SAMPLE_H
#define MGPU_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_UUID_LEN	37

/* Weight of a vGPU whose weight is not known. */
#define SAMPLE_WEIGHT	100

/**
 * struct sample_vgpu - a vGPU
 * @id: given to another vGPU once this one is removed; @uuid tells them apart
 * @uuid: text
 * @dev: id of its device
 * @open: a VMM has it open
 * @tgid: of the VMM, 0 when closed
 * @weight: of its share, 1 to 10000; 0 where that is not known
 * @fps_limit: the operator's limit, millihertz, 0 for none
 * @fps_target: the controller's limit, millihertz, 0 for none
 * @fps_floor: rate promised by a setting of the vGPU, millihertz, 0 for none
 * @gpu_target: the controller's limit of engine time, parts per million, 0 for none
 * @frames_total: shown since the vGPU was created
 * @frames: counter of frames shown
 * @engine_ns: counter of engine time
 * @throttled_ns: counter of time that frames were held back
 * @queue_ns: counter of time that jobs waited for an engine
 * @limited_ns: counter of the part of @queue_ns in which a limit of engine time held them
 *	back
 * @charged_bpf_ns: counter of engine time charged by eBPF
 * @charged_self_ns: counter of engine time charged by the module itself
 *
 * Counters only rise, but begin anywhere.
 */
struct sample_vgpu {
	uint32_t id;
	char uuid[SAMPLE_UUID_LEN];
	uint32_t dev;
	bool open;
	uint32_t tgid;
	uint32_t weight;
	uint32_t fps_limit;
	uint32_t fps_target;
	uint32_t fps_floor;
	uint32_t gpu_target;
	uint64_t frames_total;
	uint64_t frames;
	uint64_t engine_ns;
	uint64_t throttled_ns;
	uint64_t queue_ns;
	uint64_t limited_ns;
	uint64_t charged_bpf_ns;
	uint64_t charged_self_ns;
};

/**
 * struct sample_vmm - a thread group that has a vGPU open
 * @tgid: its id
 * @cpu_ns: counter of the CPU time of all its threads
 * @wait_ns: counter of the time that its threads were ready and waited for a CPU
 * @wait_known: @wait_ns counts
 */
struct sample_vmm {
	uint32_t tgid;
	uint64_t cpu_ns;
	uint64_t wait_ns;
	bool wait_known;
};

/**
 * struct sample_dev - a device
 * @id: its id
 * @engines: jobs that it runs at once
 * @on_cpus: its engines are threads on the CPUs
 */
struct sample_dev {
	uint32_t id;
	uint32_t engines;
	bool on_cpus;
};

/**
 * struct sample - everything, at one moment
 * @now_ns: CLOCK_MONOTONIC
 * @cpus: CPUs online
 * @idle_ns: counter of idle time of all CPUs together
 * @source: which counters these are; those of another source have nothing in
 *	common with them
 * @vgpus: in the order of ids
 * @vmms: in the order of ids
 * @devs: in the order of ids
 */
struct sample {
	uint64_t now_ns;
	unsigned int cpus;
	uint64_t idle_ns;
	unsigned int source;
	struct sample_vgpu *vgpus;
	size_t nr_vgpus;
	struct sample_vmm *vmms;
	size_t nr_vmms;
	struct sample_dev *devs;
	size_t nr_devs;
};

#endif /* MGPU_SAMPLE_H */

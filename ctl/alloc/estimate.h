/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From counters to rates, costs, capacities and demand: what each vGPU did in
 * the period between two samples. Pure.
 */
#ifndef MGPU_ESTIMATE_H
#define MGPU_ESTIMATE_H

#include "sample.h"

/* Documentation/allocation.rst says why. */
#define ESTIMATE_HEADROOM	2.0	/* demand over rate where nothing holds back */
#define ESTIMATE_THROTTLED	0.02	/* of the time held: held back */
#define ESTIMATE_KEEP		0.25	/* weight of the periods before this one */
#define ESTIMATE_RISE		1.25	/* of an average cost in one period, at first */
#define ESTIMATE_WORKING	0.5	/* of a frame's CPU time: works on a frame */
#define ESTIMATE_IDLE_NS	3000000000ULL /* without a frame: idle in any case */
#define ESTIMATE_SPARE_CPU	0.1	/* CPUs that a VMM uses beside its VM's */
#define ESTIMATE_CPU_MIN	0.1	/* cores for VMs, at least */
#define ESTIMATE_PERIOD_MIN_NS	1000000	/* shorter ones are no measurement */

enum vgpu_state {
	VGPU_CLOSED,		/* no VMM has it open */
	VGPU_IDLE,		/* shows no frames, or there is no measurement yet */
	VGPU_ACTIVE,		/* showed a frame, or works on one */
};

/**
 * struct estimate_vgpu - a vGPU in the period
 * @last: its counters at the period's end
 * @state: see enum vgpu_state; all that follows is 0 unless it is VGPU_ACTIVE
 * @fps: frames per second
 * @cpu_use: CPU time per second, seconds; its part of what its VMM used
 * @gpu_use: engine time per second, seconds
 * @cpu_share: the same as a share of what there is for VMs
 * @gpu_share: the same as a share of its device's engines
 * @cpu_cost: CPU time per frame, seconds, this period's; without a frame in
 *	it the average
 * @gpu_cost: engine time per frame, likewise
 * @share: dominant share, the larger of @cpu_share and @gpu_share
 * @cpu_cost_smooth: @cpu_cost averaged over periods
 * @gpu_cost_smooth: @gpu_cost averaged over periods
 * @queue: time for which its jobs waited for an engine, seconds per second; the waits of
 *	jobs that wait at once add up
 * @cpu_wait: time for which its threads waited for a CPU, seconds per second, at most
 *	the time in which no CPU was idle
 * @reach: the rate that it could have reached alone on the machine, without a target but
 *	within the operator's limit, over the rate measured: at least 1, INFINITY when
 *	nothing bounds it
 * @unheld: the same beside the others, if it had waited for CPUs and engines as it did
 * @held: its limit held frames back
 * @demand: rate that it has use for, INFINITY when not known
 * @idle_ns: for how long it has shown no frame; kept in all states
 * @kept: the averages, the frames that they are made of, the costs of the last period
 *	with frames, and the most CPUs used in a period; kept while it is open
 * @planned: of the last plan, which only decide.c reads and writes: the factor of
 *	its limit over its target while limits do not rest (lead), the target that limits it,
 *	frames per second or 0 for none, and the factor of its planned floor over the
 *	promised one (margin), or 0 without a promise; kept while it is open
 */
struct estimate_vgpu {
	struct sample_vgpu last;
	enum vgpu_state state;
	double fps;
	double cpu_use, gpu_use;
	double cpu_share, gpu_share;
	double cpu_cost, gpu_cost;
	double share;
	double cpu_cost_smooth, gpu_cost_smooth;
	double queue, cpu_wait;
	double reach, unheld;
	bool held;
	double demand;
	uint64_t idle_ns;
	struct {
		double frames, cpu, gpu;
		double cpu_last, gpu_last;
		double cpus_most;
	} kept;
	struct {
		double lead, target, margin;
	} planned;
};

/**
 * struct estimate_dev - a device in the period
 * @id: its id
 * @engines: its capacity, seconds per second
 * @on_cpus: its engines are threads on the CPUs
 */
struct estimate_dev {
	uint32_t id;
	double engines;
	bool on_cpus;
};

/**
 * struct estimate - a period
 * @now_ns: its end; 0 before the first sample
 * @seconds: its length; 0 when there is no measurement
 * @cpu_capacity: cores available to active VMs in the period
 * @cpu_capacity_smooth: averaged over periods
 * @cpu_full: the largest part of the period in which no CPU was idle
 * @charged_bpf: engine time was charged by eBPF in the period, seconds
 * @charged_self: engine time was charged by the module, seconds
 * @vgpus: in the order of ids
 * @devs: in the order of ids
 */
struct estimate {
	uint64_t now_ns;
	double seconds;
	double cpu_capacity;
	double cpu_capacity_smooth;
	double cpu_full;
	double charged_bpf;
	double charged_self;
	struct estimate_vgpu *vgpus;
	size_t nr_vgpus;
	struct estimate_dev *devs;
	size_t nr_devs;
	/* the sample before */
	unsigned int source;
	uint64_t idle_ns;
	struct sample_vmm *vmms;
	size_t nr_vmms;
};

/*
 * The next period ends with @s; @headroom: demand of a
 * vGPU that no limit holds back, in measured rates. Returns 0
 * or -ENOMEM, with @e as it was.
 */
int estimate_update(struct estimate *e, const struct sample *s, double headroom);
void estimate_free(struct estimate *e);

#endif /* MGPU_ESTIMATE_H */

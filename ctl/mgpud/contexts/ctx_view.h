/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpud's view of compute contexts. Inputs are the kernel module's lists of contexts
 * and the BPF program's counters; outputs are snapshots for the preemption policy,
 * requests to the kernel, and what the analyser learns. Pure.
 */
#ifndef MGPUD_CTX_VIEW_H
#define MGPUD_CTX_VIEW_H

#include <linux/types.h>

#include "analyse.h"
#include "contexts.h"
#include "cost.h"
#include "mgpu.h"

/*
 * Bytes per work unit at which a job is bound by computing and by memory alike: it waits
 * for memory for bytes / (bytes + CTX_BALANCE * units) of its time.
 * Documentation/compute.rst, "Operations".
 */
#define CTX_BALANCE	4.0

/* Relative deviation from its share within which a vGPU counts as even. */
#define CTX_SHARE_SLACK	0.05
/* Use of all slots, as a part, below which no vGPU counts as short of its share. */
#define CTX_BUSY	0.9
/* Part of the time held back by a limit from which on a vGPU counts as limited. */
#define CTX_LIMITED	0.02

/* Devices that the guard watches; on others preemption is not guarded. */
#define CTX_DEVS	16

#define CTX_SAMPLES	512	/* measured switches that a fit uses */

/**
 * struct ctx_track - state of a context, kept from one look to the next
 * @dev: ID of its device
 * @vgpu: ID of its vGPU
 * @id: ID of the context in that vGPU
 * @arrived_ns: submission of its job, ns; 0 without a job
 * @kind: kind of work of the job: kind_of() its operation
 * @size: input size of the job: bytes that it moves, known at submission
 * @inst: work units expected at submission
 * @job_inst: work units that the job has
 * @done: work units of the job that were done at the last look
 * @slots: slots held at the last look
 * @since_ns: time since which the context has been waiting or running, ns
 * @preemptions: preemption count of the context at the submission of the job
 * @keep_until_ns: time before which the context must not be preempted, ns
 * @coming: slots that were promised to it and are not free yet
 * @draining: slots that go to another context when its job is complete
 * @switch_ns: time spent on switches up to the last look, ns
 * @copies: saves and restores up to the last look
 * @seen: the look in progress has found the context
 */
struct ctx_track {
	uint32_t dev;
	uint32_t vgpu, id;
	uint64_t arrived_ns;
	uint32_t kind;
	double size, inst, job_inst, done;
	uint32_t slots;
	uint64_t since_ns;
	uint64_t preemptions;
	uint64_t keep_until_ns;
	unsigned int coming;
	unsigned int draining;
	uint64_t switch_ns, copies;
	bool seen;
};

/**
 * struct ctx_vgpu - use of its share by a vGPU
 * @id: ID of the vGPU
 * @engine_ns: engine time up to @at_ns, ns
 * @limited_ns: time held back by a limit up to @at_ns, ns
 * @at_ns: time of both counters, ns
 * @share: engine time compared with the share
 */
struct ctx_vgpu {
	uint32_t id;
	uint64_t engine_ns, limited_ns, at_ns;
	enum preempt_share share;
};

/**
 * struct ctx_view - mgpud's view of all contexts
 * @param: parameters of the preemption policy
 * @analyse: what was learned of kinds of work
 * @tracks: @nr_tracks contexts, sorted by vGPU and ID
 * @vgpus: @nr_vgpus vGPUs, sorted by ID
 * @ctx: contexts of the last ctx_view_snapshot()
 * @if_ended: copy of @ctx in which the first job is complete, for choose_next()
 * @info: for each context of @ctx its entry in the kernel's list
 * @plan: the policy's plan for @if_ended
 * @watch: the first @nr_watched devices that were seen
 * @work: of each of them, work since its last snapshot, in cycles that it takes alone
 * @sample: the last CTX_SAMPLES of @nr_samples measured switches
 */
struct ctx_view {
	struct preempt_param param;
	struct analyse analyse;
	struct ctx_track *tracks;
	size_t nr_tracks;
	struct ctx_vgpu *vgpus;
	size_t nr_vgpus;
	struct preempt_ctx *ctx, *if_ended;
	const struct mgpu_ctx **info;
	struct preempt_plan plan;
	struct guard_watch watch[CTX_DEVS];
	double work[CTX_DEVS];
	size_t nr_watched;
	struct cost_sample sample[CTX_SAMPLES];
	uint64_t nr_samples;
};

void ctx_view_init(struct ctx_view *v, const struct preempt_param *param);
void ctx_view_free(struct ctx_view *v);

/* Update the view from the list of all contexts of all devices. Returns 0 or -ENOMEM. */
int ctx_view_look(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
		  uint64_t now_ns);

/* Learn from what a context did since the last call, alone or beside one other. */
void ctx_view_ran(struct ctx_view *v, const struct mgpu_run_key *key,
		  const struct mgpu_run *more);

/* Compare the engine time of vGPUs with their shares. Returns 0 or -ENOMEM. */
int ctx_view_shares(struct ctx_view *v, const struct mgpu_vgpu_info *vgpus, size_t n,
		    const struct mgpu_dev_info *devs, size_t nr_devs, uint64_t now_ns);

/*
 * True if the device's scheduling policy promises vGPUs shares of the engine time, so
 * that the kernel chooses among vGPUs and mgpud keeps none of them off the device.
 */
bool ctx_view_promises(const struct mgpu_dev_info *dev);

/*
 * Make a snapshot of the contexts of one device that are not idle. @list is that of the
 * last ctx_view_look() and must stay valid until ctx_view_orders(). Returns 0 or -ENOMEM;
 * or -EAGAIN if a slot moved from one context to another while the kernel listed them, so
 * that the list has more slots than the device: look again soon.
 */
int ctx_view_snapshot(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
		      const struct mgpu_dev_info *dev, uint64_t now_ns,
		      struct preempt_snapshot *s);

/**
 * struct ctx_order - a request to the kernel
 * @vgpu: ID of the vGPU
 * @id: ID of the context
 * @preempt: preempt the context; else let it have all slots that its job can use
 * @keep: slots that it may keep
 * @method: method of the preemption
 * @first: resume it ahead of its vGPU's other contexts
 */
struct ctx_order {
	uint32_t vgpu, id;
	bool preempt;
	uint32_t keep;
	enum preempt_method method;
	bool first;
};

/**
 * ctx_view_orders() - turn a plan into requests
 * @v: view with the last snapshot; keeps what is promised
 * @ops: preemption policy
 * @s: last snapshot
 * @promises: ctx_view_promises() of the device
 * @plan: plan for @s
 * @order: requests, to be made in this order; room for two per context of @s
 * @n: number of requests
 *
 * Return: number of decisions of the plan that are not carried out.
 */
size_t ctx_view_orders(struct ctx_view *v, const struct preempt_ops *ops,
		       const struct preempt_snapshot *s, bool promises,
		       const struct preempt_plan *plan, struct ctx_order *order,
		       size_t *n);

/*
 * Time at which the trial of a preemption ends that is in progress on the device, ns;
 * UINT64_MAX: there is none.
 */
uint64_t ctx_view_trial_ns(const struct ctx_view *v, uint32_t dev);

/*
 * True if slots are being taken, so that another look is due soon. Slots that are drained
 * do not count: the kernel tells when a job is complete.
 */
bool ctx_view_unsettled(const struct ctx_view *v, const struct preempt_snapshot *s);

#endif /* MGPUD_CTX_VIEW_H */

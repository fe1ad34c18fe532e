/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What mgpud knows of compute contexts: lists from the kernel module and counts of
 * the BPF program go in, snapshots for the preemption policy and what is to be asked
 * of the kernel come out, and what was learned on the way. Pure.
 */
#ifndef MGPUD_CTX_VIEW_H
#define MGPUD_CTX_VIEW_H

#include <linux/types.h>

#include "analyse.h"
#include "contexts.h"
#include "cost.h"
#include "mgpu.h"

/*
 * Bytes per work unit at which a job is bound by both: what it waits for memory is
 * bytes / (bytes + CTX_BALANCE * units). Documentation/compute.rst, "Operations".
 */
#define CTX_BALANCE	4.0

/* A vGPU's use of engine time that is still about its share, either way. */
#define CTX_SHARE_SLACK	0.05
/* Use of all slots from which on one has what another lacks. */
#define CTX_BUSY	0.9
/* Part of the time without engine time, from which on a limit holds a vGPU. */
#define CTX_LIMITED	0.02

#define CTX_SAMPLES	512	/* switches that a fit is made of */

/**
 * struct ctx_track - what is remembered of a context from one look to the next
 * @vgpu: its vGPU
 * @id: its number there
 * @arrived_ns: of its job; 0 when it has none
 * @kind: of that: kind_of() its operation
 * @size: of its input: bytes that it moves, which are known when it is submitted
 * @inst: work units that were expected when it came
 * @job_inst: work units that it turned out to have
 * @slots: that it had at the last look
 * @since_ns: since when it has been waiting or running
 * @preemptions: of the context when the job came
 * @keep_until_ns: nothing is taken from it before
 * @coming: slots that were promised to it and are not free yet
 * @draining: slots that are to be another's when its job ends
 * @switch_ns: of the context at the last look
 * @copies: how often that was, then
 * @seen: in the look under way
 */
struct ctx_track {
	uint32_t vgpu, id;
	uint64_t arrived_ns;
	uint32_t kind;
	double size, inst, job_inst;
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
 * struct ctx_vgpu - a vGPU, for its share
 * @id: its id
 * @engine_ns: counter, at @at_ns
 * @limited_ns: likewise
 * @at_ns: when that was
 * @share: how it stands
 */
struct ctx_vgpu {
	uint32_t id;
	uint64_t engine_ns, limited_ns, at_ns;
	enum preempt_share share;
};

/**
 * struct ctx_view - all of it
 * @param: of the policy
 * @analyse: what was learned
 * @tracks: @nr_tracks contexts, by vGPU and id
 * @vgpus: @nr_vgpus vGPUs, by id
 * @ctx: of the last ctx_view_snapshot()
 * @if_ended: the same, for a question
 * @info: of each of these, in the list that the snapshot is made of
 * @plan: the answer to the question
 * @sample: switches that were measured, the last CTX_SAMPLES of @nr_samples
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
	struct cost_sample sample[CTX_SAMPLES];
	uint64_t nr_samples;
};

void ctx_view_init(struct ctx_view *v, const struct preempt_param *param);
void ctx_view_free(struct ctx_view *v);

/* A look at all contexts, of all devices. Returns 0 or -ENOMEM. */
int ctx_view_look(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
		  uint64_t now_ns);

/* What a context did since the last time, beside one other or alone. */
void ctx_view_ran(struct ctx_view *v, const struct mgpu_run_key *key,
		  const struct mgpu_run *more);

/* How vGPUs stand against what they were promised. Returns 0 or -ENOMEM. */
int ctx_view_shares(struct ctx_view *v, const struct mgpu_vgpu_info *vgpus, size_t n,
		    const struct mgpu_dev_info *devs, size_t nr_devs, uint64_t now_ns);

/* Whether a device's scheduling policy promises shares, so that nobody is kept off. */
bool ctx_view_promises(const struct mgpu_dev_info *dev);

/*
 * Of the contexts of one device that are not idle, from the list of the last
 * ctx_view_look(), which must stay until the orders were made. Returns 0 or -ENOMEM;
 * or -EAGAIN, to look again soon: a slot went from one to another while the kernel
 * listed them, and is in the list twice, so that more are held than there are.
 */
int ctx_view_snapshot(struct ctx_view *v, const struct mgpu_ctx *list, size_t n,
		      const struct mgpu_dev_info *dev, uint64_t now_ns,
		      struct preempt_snapshot *s);

/**
 * struct ctx_order - what is to be asked of the kernel
 * @vgpu: of the context
 * @id: the context
 * @preempt: keep slots from it; else it may have all that its job can use
 * @keep: that it may have
 * @method: how those are taken that it has
 * @first: ahead of its vGPU's other contexts
 */
struct ctx_order {
	uint32_t vgpu, id;
	bool preempt;
	uint32_t keep;
	enum preempt_method method;
	bool first;
};

/**
 * ctx_view_orders() - from a plan to what is to be asked
 * @v: what is known, with the last snapshot; remembers what was promised
 * @ops: the policy
 * @s: the last snapshot
 * @promises: ctx_view_promises() of the device
 * @plan: the plan for it
 * @order: room for two for each context of the snapshot
 * @n: how many there are, to be asked in their order
 *
 * Return: decisions of the plan that are left undone.
 */
size_t ctx_view_orders(struct ctx_view *v, const struct preempt_ops *ops,
		       const struct preempt_snapshot *s, bool promises,
		       const struct preempt_plan *plan, struct ctx_order *order,
		       size_t *n);

/*
 * Slots are on their way, so that another look is due soon. Not for those that are
 * drained: when a job ends, the kernel says so.
 */
bool ctx_view_unsettled(const struct ctx_view *v, const struct preempt_snapshot *s);

#endif /* MGPUD_CTX_VIEW_H */

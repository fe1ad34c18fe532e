/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption: watches compute contexts, asks the policy and has the kernel module
 * carry out what it says. Documentation/preemption.rst, "What mgpud does", says how.
 */
#ifndef MGPUD_PREEMPTER_H
#define MGPUD_PREEMPTER_H

#include "analyse.h"
#include "cost.h"
#include "mgpu.h"
#include "preempt.h"

struct preempter;

/**
 * struct preempter_config - what a preempter goes by
 * @ops: the policy
 * @param: its parameters, which preempt_param_check() has nothing against; with
 *	@fit their cost is what counts until there is a fit
 * @fit: switches that were measured say what one costs
 */
struct preempter_config {
	const struct preempt_ops *ops;
	struct preempt_param param;
	bool fit;
};

#define PREEMPTER_CONFIG_DEFAULT ((struct preempter_config){		\
	.ops = &preempt_mgpu, .param = PREEMPT_PARAM_DEFAULT, .fit = true,	\
})

/**
 * struct preempter_stats - what it did so far, and what it goes by
 * @looks: how often it looked at all contexts
 * @decisions: of the policy, by enum preempt_action
 * @by: of these that took slots, by enum preempt_method
 * @left: decisions that were not carried out: for the share that a VM is promised,
 *	or because the kernel was faster than mgpud
 * @contexts: at the last look
 * @waiting: of these, contexts that had work and no slot
 * @cost: in force
 * @fit: the last one that could be made; no samples when there is none
 * @no_fit: why there is none since, NULL when it is of now
 * @bpf: the kernel's counters are read; else nothing is learned of speeds
 */
struct preempter_stats {
	uint64_t looks;
	uint64_t decisions[3];
	uint64_t by[PREEMPT_METHODS];
	uint64_t left;
	size_t contexts;
	size_t waiting;
	struct preempt_cost cost;
	struct cost_fit fit;
	const char *no_fit;
	bool bpf;
};

/**
 * preempter_open() - watch contexts
 * @p: result
 * @config: copied
 * @act: false to decide only, and change nothing
 * @why: what does not work and how to mend it, "" when all does: without eBPF
 *	nothing is learned of speeds
 * @len: of @why
 * @err: what failed
 *
 * Return: 0; -ENOENT, the module is not there, or too old to know contexts; another
 * negative errno.
 */
int preempter_open(struct preempter **p, const struct preempter_config *config,
		   bool act, char *why, size_t len, struct mgpu_error *err);
/* What was taken and not given back goes on by itself within MGPU_PREEMPT_MAX_MS. */
void preempter_close(struct preempter *p);
void preempter_configure(struct preempter *p, const struct preempter_config *config);

/* For poll(): readable when preempter_run() is to be called. */
int preempter_fd(const struct preempter *p);
/* When to call it at the latest, CLOCK_MONOTONIC nanoseconds; UINT64_MAX: never. */
uint64_t preempter_wake_ns(const struct preempter *p);
/* Look, decide, act. Returns 0, or what a request failed with. */
int preempter_run(struct preempter *p, struct mgpu_error *err);
/*
 * Learn from what was counted since the last time, see what vGPUs are promised and
 * get, and have preempter_run() called. To be called once a period. Returns 0, or what
 * a request failed with.
 */
int preempter_learn(struct preempter *p, struct mgpu_error *err);

/* What was learned. The state file keeps it; to be set before the first look. */
struct analyse *preempter_analyse(struct preempter *p);
const struct preempter_stats *preempter_stats(struct preempter *p);

#endif /* MGPUD_PREEMPTER_H */

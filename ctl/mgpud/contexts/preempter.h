/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The preemption loop: watches compute contexts, asks the preemption policy, and has the
 * kernel module carry out its plan. Documentation/preemption.rst, "What mgpud does".
 */
#ifndef MGPUD_PREEMPTER_H
#define MGPUD_PREEMPTER_H

#include "analyse.h"
#include "cost.h"
#include "mgpu.h"
#include "preempt.h"

struct preempter;

/**
 * struct preempter_config - settings of the preemption loop
 * @ops: preemption policy
 * @param: its parameters, which preempt_param_check() accepts; with @fit, param.cost is
 *	in force until there is a fit
 * @fit: take the cost of a switch from measured switches
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
 * struct preempter_stats - statistics of the preemption loop
 * @looks: number of looks at all contexts
 * @put_off: number of times that the next look was put off, as the processor time was spent
 * @cpu_ns: processor time of the loop, ns
 * @decisions: decisions of the policy, by enum preempt_action
 * @by: preemptions among @decisions, by enum preempt_method
 * @left: decisions that were not carried out, because a vGPU is promised a share or
 *	because the context had changed meanwhile
 * @contexts: number of contexts at the last look
 * @waiting: contexts at the last look that had work and no slot
 * @cost: cost of a switch that is in force
 * @fit: last successful fit; no samples if there is none
 * @no_fit: why the last attempt to fit failed, NULL if it succeeded
 * @bpf: the BPF program's counters are read; else nothing is learned of speeds
 */
struct preempter_stats {
	uint64_t looks;
	uint64_t put_off;
	uint64_t cpu_ns;
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
 * preempter_open() - start to watch contexts
 * @p: result
 * @config: settings; copied
 * @act: carry out decisions; else only decide
 * @why: why the BPF program is missing and what to do, "" if it is not; without it nothing
 *	is learned of speeds
 * @len: size of @why
 * @err: what failed
 *
 * Return: 0; -ENOENT if the module is not loaded, or too old to have contexts; another
 * negative errno.
 */
int preempter_open(struct preempter **p, const struct preempter_config *config,
		   bool act, char *why, size_t len, struct mgpu_error *err);
/* Contexts that are preempted at this time wait for slots again after MGPU_PREEMPT_MAX_MS. */
void preempter_close(struct preempter *p);
void preempter_configure(struct preempter *p, const struct preempter_config *config);

/*
 * For poll(): readable when preempter_run() must be called. -1, which poll() ignores, while
 * no event changes anything: until preempter_wake_ns(), or with the policy none. Ask again
 * after each call of a function above or below.
 */
int preempter_fd(const struct preempter *p);
/* Latest time to call preempter_run(), CLOCK_MONOTONIC ns; UINT64_MAX: none. */
uint64_t preempter_wake_ns(const struct preempter *p);
/* Look, decide, act. Returns 0 or the error of a request. */
int preempter_run(struct preempter *p, struct mgpu_error *err);
/*
 * Learn from the counters, compare vGPUs with their shares, and have preempter_run()
 * called. Must be called once a period. Returns 0 or the error of a request.
 */
int preempter_learn(struct preempter *p, struct mgpu_error *err);

/*
 * Return the learned figures, which the state file keeps. The caller sets them before the
 * first look.
 */
struct analyse *preempter_analyse(struct preempter *p);
const struct preempter_stats *preempter_stats(struct preempter *p);

#endif /* MGPUD_PREEMPTER_H */

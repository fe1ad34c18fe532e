/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From estimates to expectations: what is known of each vGPU over its life, the questions to
 * a model, and the watch over its answers. Pure: no clock, no input or output.
 *
 * A model that is wrong costs VMs their shares, so nothing depends on it alone:
 *
 *  - answers change by a bounded factor per period, are kept within the vGPU's own floor and
 *    ceiling, and are projected on what there is beside the floors of others: those of all
 *    vGPUs that start together;
 *  - an answer that is not finite, an error that drifts above that of the control "static",
 *    and a model that is older than it may be end its use, within the period: nothing is
 *    expected then, and the allocator works as without a model;
 *  - new weights only predict (LEARNER_SHADOW) until they are let act.
 */
#ifndef MGPU_LEARN_LEARNER_H
#define MGPU_LEARN_LEARNER_H

#include "expect.h"
#include "estimate.h"
#include "learn.h"
#include "sla.h"

#define LEARNER_QUESTIONS	64	/* to a model in a period, at most; more wait their turn */
#define LEARNER_GONE		256	/* removed vGPUs that are remembered, the last ones */
#define LEARNER_KEEP		32	/* active periods that smooth use is the average of */
#define LEARNER_STEP		1.5	/* factor by which an expectation changes in a period */
#define LEARNER_PART_MIN	0.01	/* least expectation, a part of a resource */
#define LEARNER_ROUNDING	1e-6	/* of an answer, beyond 0 and 1 */
#define LEARNER_STARTING	3	/* periods for which a vGPU is starting, at most */

/* The use of a model's answers. */
enum learner_mode {
	LEARNER_OFF,		/* there is no model */
	LEARNER_SHADOW,		/* it predicts, and errors are measured */
	LEARNER_ACTS,		/* expectations are for decide() */
	LEARNER_FAILED,		/* as LEARNER_SHADOW, because of what struct learner_report has */
};

/**
 * struct learner_model - a model in use
 * @ops: its kind, NULL for none
 * @data: what @ops->load() made; the caller's
 * @acts: its answers are for decide(), else it is in shadow
 */
struct learner_model {
	const struct learn_model_ops *ops;
	void *data;
	bool acts;
};

/**
 * struct learner_report - how a model does
 * @mode: the use of its answers
 * @why: sentence about the failure, "" without one
 * @answers: number of answers so far
 * @checked: answers that were compared with the allocator's plan
 * @error: mean absolute error of these, parts of a resource; NAN before there is one.
 *	Averages forget with 1/256 per answer
 * @control: the same of the control "static" on the same questions
 */
struct learner_report {
	enum learner_mode mode;
	char why[160];
	uint64_t answers;
	uint64_t checked;
	double error;
	double control;
};

/**
 * struct learner_known - what is known of a vGPU over its life
 * @uuid: UUID of the vGPU, text in lower case
 * @periods: periods in which it was active
 * @cost: what a frame costs of each resource, seconds; averaged, 0 unless @periods
 * @smooth: part of each resource that it used, averaged over these periods
 */
struct learner_known {
	char uuid[SAMPLE_UUID_LEN];
	double periods;
	double cost[LEARN_RESOURCES];
	double smooth[LEARN_RESOURCES];
};

struct learner;

/* NULL when out of memory. */
struct learner *learner_new(void);
void learner_free(struct learner *l);

/*
 * Use another model from now on; errors are counted anew, what is known of vGPUs stays. This
 * also ends a failure.
 */
void learner_use(struct learner *l, const struct learner_model *model);

/* End the use of the model, because of @why, a sentence. There may be none. */
void learner_fail(struct learner *l, const char *why);

/*
 * Return what is known of a vGPU: those of the last period come first, in their order, and
 * then those that were removed. NULL behind the last one.
 */
const struct learner_known *learner_known(const struct learner *l, size_t i);

/*
 * Begin with what another learner knew, before the first period. Numbers that are negative or
 * not finite are refused. Return 0, -EINVAL or -ENOMEM, with @l as it was.
 */
int learner_know(struct learner *l, const struct learner_known *known, size_t n);

/**
 * learner_update() - learn from a period, and say what is expected of vGPUs
 * @l: what is known; updated. Of vGPUs that are no longer in @e the last LEARNER_GONE are
 *	remembered, since a vGPU may be made anew, with its UUID, each time its VM starts
 * @e: the estimate of the period
 * @text: descriptions of the vGPUs, in their order; NULL for none, as each may be
 * @sla: agreements of the vGPUs, in their order; NULL for none
 * @param: parameters of f, for the plan that answers are compared with
 * @expect: result, one per vGPU of @e: EXPECT_NONE for all unless the model acts
 *
 * At most LEARNER_QUESTIONS questions are asked. While the set of vGPUs and of devices is the
 * same, memory is only allocated by the solver of the plan, for the time of the call.
 *
 * Return: 0 or -ENOMEM, with EXPECT_NONE for all.
 */
int learner_update(struct learner *l, const struct estimate *e, const char *const *text,
		   const struct sla *sla, const struct fds_param *param,
		   struct expect *expect);

/**
 * learner_question() - make the question for a vGPU, as after learner_update()
 * @l: what is known
 * @e: the estimate that learner_update() was given last
 * @text: descriptions, as there
 * @vgpu: index of the vGPU, active or not
 * @in: result
 * @who: result: index of each VM of @in in @e
 */
void learner_question(struct learner *l, const struct estimate *e, const char *const *text,
		      size_t vgpu, struct learn_input *in, size_t who[LEARN_CLIENTS]);

const struct learner_report *learner_report(const struct learner *l);

#endif /* MGPU_LEARN_LEARNER_H */

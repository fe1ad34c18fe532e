/* SPDX-License-Identifier: GPL-2.0-only */
/* Replays of traces: tasks arrive, a policy places them, and the cluster's state is measured. */
#ifndef MGPU_PLACE_REPLAY_H
#define MGPU_PLACE_REPLAY_H

#include "place_trace.h"

#define REPLAY_MAX_POINTS	16
#define REPLAY_MAX_DEMAND	300	/* per cent */
#define REPLAY_TURNOVERS	3	/* with churn; the first is not measured */

/**
 * struct replay - what is replayed
 * @trace: nodes and tasks
 * @classes: the target workload of policies with a potential, and of the fragmentation
 * @nr_classes: its classes
 * @policy: the policy
 * @weights: learned weights, NULL: none
 * @seed: of the order of arrival, and of the policy random
 * @part: each @part-th node is in the cluster, from 1
 * @points: arrived GPU demand at which the cluster is measured, per cent of its GPUs,
 *	ascending, 1 to REPLAY_MAX_DEMAND
 * @nr_points: points, 1 to REPLAY_MAX_POINTS
 * @clock: nanoseconds of a clock, NULL: decisions are not timed
 */
struct replay {
	const struct place_trace *trace;
	const struct place_class *classes;
	size_t nr_classes;
	const struct place_policy *policy;
	const struct place_weights *weights;
	uint64_t seed;
	unsigned int part;
	const unsigned int *points;
	size_t nr_points;
	uint64_t (*clock)(void);
};

/**
 * struct replay_result - what was measured
 * @gpus: GPUs of the cluster
 * @unallocated_pct: GPU that is not allocated at each point, per cent of the cluster's
 * @fragmentation_pct: fragmentation at each point, per cent of the cluster's GPU
 * @placed: tasks placed
 * @refused: tasks that no node could take, which are dropped
 * @refused_gpu_pct: their GPU demand (over their life, in a replay by time), per cent of all;
 *	with churn, after the first turnover
 * @peak_pct: largest allocated GPU, per cent of the cluster's
 * @median_ns: time of a decision and of its account, median
 * @p99_ns: 99th percentile of that time
 *
 * A replay by time, or with churn, has one value in @unallocated_pct and @fragmentation_pct
 * each, the mean over time or over arrivals.
 */
struct replay_result {
	double gpus;
	double unallocated_pct[REPLAY_MAX_POINTS];
	double fragmentation_pct[REPLAY_MAX_POINTS];
	size_t placed;
	size_t refused;
	double refused_gpu_pct;
	double peak_pct;
	double median_ns;
	double p99_ns;
};

/*
 * Draw tasks from the trace with replacement until their GPU demand has passed the last
 * point. No task ends. Return 0, -ENOMEM, or -EINVAL if the cluster or the tasks have no GPU.
 */
int replay_inflate(const struct replay *rp, struct replay_result *result);

/*
 * Draw tasks likewise, and have a random one end whenever the GPU demand of those that have
 * not ended exceeds @points[0]. A task that was refused takes part, as if it ran elsewhere. When
 * the arrived demand is REPLAY_TURNOVERS times the cluster's GPU the replay ends. Return as
 * replay_inflate().
 */
int replay_churn(const struct replay *rp, struct replay_result *result);

/* Replay the tasks from creation to deletion, each once. Return as replay_inflate(). */
int replay_times(const struct replay *rp, struct replay_result *result);

#endif /* MGPU_PLACE_REPLAY_H */

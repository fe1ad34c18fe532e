/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run queue picks the vGPU that an engine serves next.  Pure: no lock, no clock,
 * no jobs; builds unchanged in user space, where tests check the invariants of
 * Documentation/scheduling.rst.
 *
 * A waiting entity (a vGPU) is in one of two places.  Eligible entities are with the
 * policy, which orders them.  Entities that have used up their engine time for now
 * are in the delayed queue, ordered by the time at which they become eligible.
 *
 * The caller must hold sched->lock and passes the time, CLOCK_MONOTONIC nanoseconds.
 * Time may stand still or jump forward.  A time before the latest one seen by the run
 * queue is read as the latest one.
 */
#ifndef MGPU_RUNQ_H
#define MGPU_RUNQ_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <uapi/linux/mgpu.h>

#include "sched/bucket.h"
#include "pure.h"

struct mgpu_policy_ops;

#define MGPU_WEIGHT_DEFAULT	100

/* Ordered queues that a policy may use; the built-in ones use the first. */
#define MGPU_RUNQ_QUEUES	8

/**
 * enum mgpu_entity_state - state of an entity
 * @MGPU_ENTITY_IDLE: no job of the entity waits
 * @MGPU_ENTITY_READY: the entity waits with the policy
 * @MGPU_ENTITY_DELAYED: the entity is out of engine time until its @due_ns
 */
enum mgpu_entity_state {
	MGPU_ENTITY_IDLE,
	MGPU_ENTITY_READY,
	MGPU_ENTITY_DELAYED,
};

/**
 * struct mgpu_sched_entity - one vGPU as a policy sees it
 * @id: ID of the vGPU, 1 to 4095
 * @weight: share relative to the device's other vGPUs, MGPU_WEIGHT_MIN to _MAX
 * @fps_limit: frames that the vGPU may show in 1000 seconds, by the stricter of its
 *	limit and its target; 0 for no limit
 * @head_ns: when the vGPU's oldest waiting job was submitted, CLOCK_MONOTONIC
 * @head_seq: sequence number of that job, over all vGPUs of the device
 * @head_frame: that job completes a frame
 * @ready_ns: when the entity became ready last, CLOCK_MONOTONIC; valid while it is
 *	ready
 * @state: state of the entity
 * @vtime: engine nanoseconds charged, scaled by MGPU_WEIGHT_MAX / @vweight; used by
 *	the weighted, equal and fixed policies
 * @vweight: weight that scales @vtime
 * @left_ns: when a job of the vGPU left an engine last, CLOCK_MONOTONIC
 * @running: number of the vGPU's jobs on engines
 * @limit: bucket of the stricter of the vGPU's gpu_limit and gpu_target
 * @share: bucket of the fixed policy
 * @due_ns: when the entity becomes eligible, CLOCK_MONOTONIC; valid while delayed
 * @delayed_ns: when the entity was delayed, CLOCK_MONOTONIC; 0 while it is not
 * @limited: number of times that the entity was delayed
 * @limited_ns: time for which the entity was delayed, nanoseconds, without a delay
 *	that has not ended
 * @queue: number of the queue that holds the entity; valid while @queued
 * @queued: the entity is in a queue of the run queue
 * @key: position in that queue, smaller first; keys wrap, so the keys of one queue
 *	must be within 2^63 of each other
 * @node: in that queue, or in the delayed queue
 * @list: in the run queue's @entities
 *
 * BPF policies may rely on the fields down to @ready_ns.
 */
struct mgpu_sched_entity {
	u32 id;
	u32 weight;
	u32 fps_limit;
	bool head_frame;
	u64 head_ns;
	u64 head_seq;
	u64 ready_ns;

	enum mgpu_entity_state state;
	u64 vtime;
	u32 vweight;
	u64 left_ns;
	u32 running;
	struct mgpu_bucket limit;
	struct mgpu_bucket share;
	u64 due_ns;
	u64 delayed_ns;
	u64 limited;
	u64 limited_ns;
	u32 queue;
	bool queued;
	u64 key;
	struct rb_node node;
	struct list_head list;
};

/**
 * struct mgpu_runq - a device's run queue
 * @dev: ID of the device
 * @engines: number of jobs that the device runs at once
 * @policy: policy in force
 * @policy_data: private data of the policy
 * @entities: attached entities
 * @weights: sum of the weights of @entities
 * @nr_ready: number of ready entities
 * @queues: queues for the policy, ordered by key; equal keys are in the order of
 *	insertion
 * @vtime: highest @vtime of the entities that were served; used by the weighted,
 *	equal and fixed policies
 * @delayed: delayed entities, ordered by @due_ns
 * @now: latest time seen, CLOCK_MONOTONIC nanoseconds
 */
struct mgpu_runq {
	u32 dev;
	u32 engines;
	const struct mgpu_policy_ops *policy;
	void *policy_data;
	struct list_head entities;
	u64 weights;
	u32 nr_ready;
	struct rb_root_cached queues[MGPU_RUNQ_QUEUES];
	u64 vtime;
	struct rb_root_cached delayed;
	u64 now;
};

void mgpu_runq_init(struct mgpu_runq *rq, u32 dev, u32 engines,
		    const struct mgpu_policy_ops *policy);

void mgpu_runq_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 now);
void mgpu_runq_detach(struct mgpu_runq *rq, struct mgpu_sched_entity *e);

void mgpu_runq_wake(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		    u64 now);

void mgpu_runq_sleep(struct mgpu_runq *rq, struct mgpu_sched_entity *e);

void mgpu_runq_move(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now);

struct mgpu_sched_entity *mgpu_runq_pick(struct mgpu_runq *rq, u64 now);

void mgpu_runq_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 ns, u64 now);

bool mgpu_runq_should_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			    u64 ran, u64 now);

void mgpu_runq_advance(struct mgpu_runq *rq, u64 now);

u64 mgpu_runq_due(const struct mgpu_runq *rq);

void mgpu_runq_set_policy(struct mgpu_runq *rq,
			  const struct mgpu_policy_ops *policy, void *data,
			  u64 now);

void mgpu_runq_set_weight(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u32 weight, u64 now);

void mgpu_runq_set_limit(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u32 ppm, u32 period_us, u32 burst_us, u64 now);

/* ---- for policies ---- */

void mgpu_runq_insert(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u32 queue, u64 key);
void mgpu_runq_erase(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
struct mgpu_sched_entity *mgpu_runq_first(const struct mgpu_runq *rq,
					  u32 queue);

#endif /* MGPU_RUNQ_H */

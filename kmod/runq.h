/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run queue: which vGPU an engine serves next.  Pure: no lock, no clock, no
 * jobs; builds unchanged in user space, where the invariants of
 * Documentation/scheduling.rst are tested.
 *
 * An entity (a vGPU) waits in one of two places.  Eligible ones are with the
 * policy, which orders them; those that have used up their engine time for now
 * are in the delayed queue, ordered by when they may go on.
 *
 * The caller serialises (sched->lock) and passes the time, CLOCK_MONOTONIC
 * nanoseconds.  Time may stand still or jump; it never goes back within a run
 * queue: an earlier time is read as the latest one seen.
 */
#ifndef MGPU_RUNQ_H
#define MGPU_RUNQ_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <uapi/linux/mgpu.h>

#include "bucket.h"
#include "pure.h"

struct mgpu_policy_ops;

#define MGPU_WEIGHT_DEFAULT	100

/* Ordered queues that a policy may use; the built-in ones use the first. */
#define MGPU_RUNQ_QUEUES	8

/**
 * enum mgpu_entity_state - where an entity is
 * @MGPU_ENTITY_IDLE: nothing of it waits
 * @MGPU_ENTITY_READY: with the policy
 * @MGPU_ENTITY_DELAYED: out of engine time until @due_ns
 */
enum mgpu_entity_state {
	MGPU_ENTITY_IDLE,
	MGPU_ENTITY_READY,
	MGPU_ENTITY_DELAYED,
};

/**
 * struct mgpu_sched_entity - one vGPU as a policy sees it
 * @id: of the vGPU, 1 to 4095
 * @weight: share relative to its neighbours, MGPU_WEIGHT_MIN..MAX
 * @fps_limit: frames per 1000 seconds that it may show, 0 for no limit
 * @head_ns: when its oldest waiting job was submitted
 * @head_seq: that job's number: counts up over all vGPUs of the device
 * @head_frame: that job completes a frame
 * @ready_ns: since when it has been with the policy, unserved
 * @state: where it is
 * @vtime: engine nanoseconds charged, scaled by MGPU_WEIGHT_MAX / @vweight; of
 *	policies that order by it
 * @vweight: weight that @vtime was scaled with
 * @left_ns: when its last job left the engine
 * @running: how many of its jobs are on engines
 * @limit: gpu_limit's allowance
 * @share: fixed share's allowance
 * @due_ns: when it may go on, while delayed
 * @delayed_ns: since when it has been delayed, 0 when it is not
 * @limited: how often it was delayed
 * @limited_ns: for how long in all, up to the last time that it ended
 * @queue: which of the run queue's queues it is in
 * @queued: it is in one
 * @key: its place there, smaller first; keys wrap, so those of one queue must
 *	be within 2^63 of each other
 * @node: there, or in the delayed queue
 * @list: in the run queue's @entities
 *
 * The fields down to @ready_ns are what BPF policies may rely on.
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
 * @dev: id of the device
 * @engines: jobs that it runs at once
 * @policy: who orders
 * @policy_data: the policy's own
 * @entities: all that are attached
 * @weights: sum of their weights
 * @nr_ready: how many are with the policy
 * @queues: for the policy; key order, first come first among equals
 * @vtime: the highest of all entities that were served; of policies that
 *	order by it
 * @delayed: by @due_ns
 * @now: latest time seen
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

/* An entity comes into being, weight set and all else 0; or goes, idle. */
void mgpu_runq_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 now);
void mgpu_runq_detach(struct mgpu_runq *rq, struct mgpu_sched_entity *e);

/*
 * A job of @e waits: to be called with head_* set when @e is idle and gets a
 * job, and after mgpu_runq_pick() when @e has another.  No effect unless idle.
 */
void mgpu_runq_wake(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		    u64 now);

/* No job of @e waits any more. */
void mgpu_runq_sleep(struct mgpu_runq *rq, struct mgpu_sched_entity *e);

/*
 * Another job of @e is its oldest that waits; head_* say which.  Unlike sleep and
 * wake, it keeps what @e is owed.  No effect while idle.
 */
void mgpu_runq_move(struct mgpu_runq *rq, struct mgpu_sched_entity *e, u64 now);

/* Whose oldest job is to run now; idle afterwards.  NULL for nobody's. */
struct mgpu_sched_entity *mgpu_runq_pick(struct mgpu_runq *rq, u64 now);

/* @e used an engine for @ns nanoseconds, up to now. */
void mgpu_runq_charge(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u64 ns, u64 now);

/* Whether @e, on an engine for @ran ns uncharged, should let another go first. */
bool mgpu_runq_should_yield(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			    u64 ran, u64 now);

/* Delayed entities whose time has come become eligible. */
void mgpu_runq_advance(struct mgpu_runq *rq, u64 now);

/* When a delayed entity becomes eligible, U64_MAX for never. */
u64 mgpu_runq_due(const struct mgpu_runq *rq);

/* Takes effect on what waits already.  @policy may be the one in force. */
void mgpu_runq_set_policy(struct mgpu_runq *rq,
			  const struct mgpu_policy_ops *policy, void *data,
			  u64 now);

void mgpu_runq_set_weight(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u32 weight, u64 now);

/* @ppm 0: no limit.  See mgpu_bucket_set(). */
void mgpu_runq_set_limit(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			 u32 ppm, u32 period_us, u32 burst_us, u64 now);

/* ---- for policies ---- */

/* Put @e into a queue, or move it there. */
void mgpu_runq_insert(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
		      u32 queue, u64 key);
void mgpu_runq_erase(struct mgpu_runq *rq, struct mgpu_sched_entity *e);
struct mgpu_sched_entity *mgpu_runq_first(const struct mgpu_runq *rq,
					  u32 queue);

#endif /* MGPU_RUNQ_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compute contexts of a vGPU, executed by the back end's engines.
 */
#ifndef MGPU_CONTEXT_H
#define MGPU_CONTEXT_H

#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/xarray.h>
#include <uapi/linux/mgpu.h>

#include "compute/compute.h"
#include "gpu/ring.h"
#include "sched/sched.h"

struct mgpu_context;
struct mgpu_resource;

/* Most contexts of a vGPU, and most resources attached to a context. */
#define MGPU_MAX_CONTEXTS	256
#define MGPU_MAX_ATTACHED	4096

/**
 * struct mgpu_work - a compute job that a guest submitted to a context
 * @node: in ctx->works until it begins, then in vgpu->works_ending
 * @done: in vgpu->works_done
 * @ctx: number of the context
 * @in_order: the queue waits for its completion
 * @job: the checked command
 * @res: resources of the job, each with a reference
 * @slots: number of slots that the job can use
 * @next: first tile that no shard has taken
 * @inst_done: work units done
 * @prepared: mgpu_compute_prepare() was called; ctx->merge
 * @error: 0 or the first negative errno
 * @live: size of a slot's live state, which is saved at a preemption, bytes
 * @save: memory for @live bytes of each slot
 * @charged: bytes charged for @save against the memory limit
 * @arrived_ns: when the guest submitted the job, CLOCK_MONOTONIC
 * @reply: reply to the guest
 * @segs: segments of @reply
 */
struct mgpu_work {
	struct list_head node;
	struct llist_node done;
	u32 ctx;
	bool in_order;
	struct mgpu_compute job;
	struct mgpu_resource *res[MGPU_COMPUTE_MAX_BUFS];
	u32 slots;
	atomic64_t next;
	atomic64_t inst_done;
	bool prepared;
	int error;
	u32 live;
	void *save;
	u64 charged;
	u64 arrived_ns;
	struct mgpu_reply reply;
	struct mgpu_seg segs[];
};

/**
 * enum mgpu_shard_place - place of a shard
 * @MGPU_SHARD_NONE: the work does not use the shard, or does not need it any more
 * @MGPU_SHARD_QUEUED: the shard is in vgpu->jobs
 * @MGPU_SHARD_RUNNING: the shard is on an engine
 * @MGPU_SHARD_PARKED: the shard is not queued: the context may not have more slots
 */
enum mgpu_shard_place {
	MGPU_SHARD_NONE,
	MGPU_SHARD_QUEUED,
	MGPU_SHARD_RUNNING,
	MGPU_SHARD_PARKED,
};

/**
 * struct mgpu_shard - a context's share in one slot
 * @job: job of the shard
 * @ctx: the context
 * @place: place of the shard; sched->lock
 * @resample: another context came to or left the engines since the last sample;
 *	sched->lock
 * @begun: the shard has live state, in the slot's memory or saved
 * @local: the slot's memory while the shard is on an engine
 * @usage: cost of the tiles that the shard executed since the work began
 * @sampled: part of @usage that the context's counters include
 * @sampled_ns: engine time since an engine took the shard that the counters include,
 *	nanoseconds
 * @sampled_cycles: the same in TSC ticks
 * @peer_vgpu: ID of the vGPU of another context that has run since the last sample,
 *	or 0
 * @peer: number of that context
 */
struct mgpu_shard {
	struct mgpu_job job;
	struct mgpu_context *ctx;
	enum mgpu_shard_place place;
	bool resample;
	bool begun;
	void *local;
	struct mgpu_compute_usage usage;
	struct mgpu_compute_usage sampled;
	u64 sampled_ns;
	u64 sampled_cycles;
	u32 peer_vgpu;
	u32 peer;
};

#define to_mgpu_shard(j) container_of(j, struct mgpu_shard, job)

/**
 * struct mgpu_context_stats - a context's counters; names as in netlink
 */
struct mgpu_context_stats {
	atomic64_t jobs;
	atomic64_t job_errors;
	atomic64_t inst;
	atomic64_t bytes;
	atomic64_t engine_ns;
	atomic64_t engine_cycles;
	atomic64_t preemptions;
	atomic64_t resumes;
	atomic64_t flushes;
	atomic64_t switch_ns;
	atomic64_t copies;
};

/**
 * struct mgpu_context - a context that a guest made
 * @vgpu: vGPU of the guest
 * @id: the guest's number of the context
 * @capset: capability set of the context; a context with 0 accepts no submission
 * @name: the guest's name of the context
 * @attached: resources by id, each with a reference; ring_lock
 * @merge: mutex; protects the results that the context's shards share
 * @works: submitted works that have not begun, oldest first
 * @queued: number of works that are not complete, including @work
 * @work: work in progress, or NULL
 * @out: number of shards of @work that are not done
 * @running: number of shards on engines
 * @allowed: number of shards that may be queued or on engines
 * @held: @work goes on only after a resume
 * @dying: the context is being destroyed; no work begins
 * @draining: the context loses slots when @work is complete
 * @flushing: @work restarts when none of its shards is on an engine
 * @hold_next: draining: hold the context afterwards
 * @keep: draining: number of slots that the context keeps
 * @parked: in sched->parked while the context has lost slots and may get idle ones
 * @stats: counters
 * @shards: one shard for each engine of the device
 *
 * sched->lock protects the fields from @works to @parked.
 */
struct mgpu_context {
	struct mgpu_vgpu *vgpu;
	u32 id;
	u32 capset;
	char name[MGPU_CMD_NAME_LEN];
	struct xarray attached;
	struct mutex merge;	/* see above */
	struct list_head works;
	u32 queued;
	struct mgpu_work *work;
	u32 out;
	u32 running;
	u32 allowed;
	bool held;
	bool dying;
	bool draining;
	bool flushing;
	bool hold_next;
	u32 keep;
	struct mgpu_parked parked;
	struct mgpu_context_stats stats;
	struct mgpu_shard shards[];
};

/**
 * struct mgpu_context_info - a context's state and counters; names as in netlink
 */
struct mgpu_context_info {
	u32 id;
	char name[MGPU_CMD_NAME_LEN];
	enum mgpu_ctx_state state;
	u32 op;			/* 0 for no job */
	u32 slots;
	u32 slots_allowed;
	u32 slots_wanted;
	u32 queued;
	bool idempotent;
	u64 job_inst;
	u64 job_inst_done;
	u64 job_bytes;
	u32 live_bytes;
	u64 arrived_ns;
	u64 jobs;
	u64 job_errors;
	u64 inst;
	u64 bytes;
	u64 engine_ns;
	u64 engine_cycles;
	u64 preemptions;
	u64 resumes;
	u64 flushes;
	u64 switch_ns;
	u64 copies;
};

void mgpu_context_init(struct mgpu_vgpu *vgpu);
u32 mgpu_context_create(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_context_destroy(struct mgpu_vgpu *vgpu, u32 id);
u32 mgpu_context_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_context_detach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_context_submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			enum mgpu_cmd_next *next);
void mgpu_context_end_all(struct mgpu_vgpu *vgpu);
void mgpu_work_free_all(struct mgpu_vgpu *vgpu);
void mgpu_work_free(struct mgpu_vgpu *vgpu, struct mgpu_work *work);
int mgpu_context_preempt(struct mgpu_vgpu *vgpu, u32 id, u32 keep,
			 enum mgpu_preempt_method method, bool hold,
			 const char **why);
int mgpu_context_resume(struct mgpu_vgpu *vgpu, u32 id, bool first);
int mgpu_context_info(struct mgpu_vgpu *vgpu, unsigned long from, bool exact,
		      struct mgpu_context_info *info);

#endif /* MGPU_CONTEXT_H */

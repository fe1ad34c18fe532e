/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler of a device: jobs, and the order in which engines get them.
 *
 * The scheduler sees a job as struct mgpu_job and reaches what the job does only
 * through struct mgpu_job_ops.
 */
#ifndef MGPU_SCHED_H
#define MGPU_SCHED_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/mgpu.h>

#include "backend.h"
#include "gpu_work.h"
#include "sched/sched_policy.h"

struct mgpu_bpf_policy_state;	/* policy_bpf.c */
struct mgpu_settings;

/**
 * enum mgpu_job_kind - what a job does, as tracepoints tell it
 * @MGPU_JOB_FLUSH: show a rectangle of a resource on the scanout
 * @MGPU_JOB_TRANSFER: copy a rectangle from guest memory to a 2D resource
 * @MGPU_JOB_CURSOR: redraw the scanout at the cursor's old and new position
 * @MGPU_JOB_COMPUTE: a context's share of a compute job in one slot
 * @MGPU_JOB_DEVICE: virtio-gpu commands that the device executes
 */
enum mgpu_job_kind {
	MGPU_JOB_FLUSH = 1,
	MGPU_JOB_TRANSFER,
	MGPU_JOB_CURSOR,
	MGPU_JOB_COMPUTE,
	MGPU_JOB_DEVICE,
};

/**
 * struct mgpu_job_ops - what the scheduler asks of a kind of job
 *
 * The scheduler owns a job from mgpu_sched_submit() or mgpu_sched_enqueue() until
 * it calls @done, or @left returned false, or mgpu_sched_dequeue().
 *
 * @background: the job queues behind those jobs of its vGPU that are not, and
 *	leaves its engine between two tiles for them
 * @in_device: the job waits in the device's own queue behind those that were posted
 *	before, and cannot be taken back
 * @begin: optional; an engine starts or resumes the job; see mgpu_cpu_engine_begin()
 *	for @local.  Task context; may sleep.  Returns 0 or a negative errno that ends
 *	the job.
 * @step: execute one tile, and add what a GPU would have to do for it to job->work.  Task
 *	context; may sleep.  Returns 1 when the job has more tiles, 0
 *	after the last one, or a negative errno that ends the job.
 * @msgs: @in_device only: the messages that the device gets, in this order
 * @taken: optional; the job goes to an engine.  Must hold sched->lock.
 * @tile_done: optional; the job is between two tiles, @engine_ns and @engine_cycles
 *	after an engine took it.  Task context.
 * @leave: optional; the job is about to leave its engine between two tiles; what the
 *	engine's memory has must be saved.  Task context.  Returns the nanoseconds of
 *	engine time that this took.
 * @left: optional; the job has left its engine between two tiles and is in no list.
 *	Must hold sched->lock.  Returns true to requeue the job; after false its owner
 *	has it.  Without @left a job is requeued unless it was cancelled.
 * @ended: optional; the job's last tile has ended, before it is accounted for.  Task
 *	context.
 * @done: complete the job, whose @error is valid.  Called in the engine's thread,
 *	which must not wait for one VM.  The scheduler does not touch the job
 *	afterwards.
 */
struct mgpu_job_ops {
	bool background;
	bool in_device;
	int (*begin)(struct mgpu_job *job, void *local);
	int (*step)(struct mgpu_job *job);
	struct mgpu_msg *(*msgs)(struct mgpu_job *job, u32 *nr);
	void (*taken)(struct mgpu_job *job);
	void (*tile_done)(struct mgpu_job *job, u64 engine_ns,
			  u64 engine_cycles);
	u64 (*leave)(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles);
	bool (*left)(struct mgpu_job *job, u64 now);
	void (*ended)(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles);
	void (*done)(struct mgpu_job *job);
};

/**
 * struct mgpu_job - one piece of work for an engine
 * @node: in the vGPU's list while the job waits, in sched->running while it is in
 *	flight; sched->lock
 * @vgpu: the vGPU that the job is executed and charged for; outlives the job
 * @ops: callbacks of its kind
 * @id: unique on this device since the device was registered, never 0
 * @kind: for tracepoints
 * @bytes: bytes that the job moves, for accounting
 * @slice: the job is a part of work that was cut: while it waits or runs, at most
 *	MGPU_SLICE_DEPTH jobs of its vGPU are in flight, however many slots there are
 * @frame: the job's completion completes a frame
 * @cancelled: the guest reset the device; the job stops at the next tile
 * @stop: the job leaves its engine at the end of this tile; sched->lock
 * @late: the watchdog found the job beyond its time once; sched->lock
 * @expired: the watchdog found it twice; the job stops at the next tile
 * @alone: no other job is in flight beside it; sched->lock
 * @lost: the device was reset while it had the job; sched->lock
 * @guilty: the device was reset because of the job; sched->lock
 * @error: result, 0 or negative errno; valid in @ops->done, and with @executed
 * @arrived_ns: when its command was taken from the ring, CLOCK_MONOTONIC
 * @submit_ns: when it was queued last, CLOCK_MONOTONIC
 * @seq: number in the order of submission to the device
 * @start_ns: when an engine took it last, CLOCK_MONOTONIC
 * @ran_ns: how long it had been on engines before that, nanoseconds
 * @held_ns: for how long pacing held it back, nanoseconds
 * @charged_ns: nanoseconds that mgpu_sched_charge() charged
 * @work: what executed tiles would have a GPU do, since a modelled engine priced it;
 *	engine thread
 * @owed_ns: nanoseconds of a modelled engine that executed tiles still have to take;
 *	engine thread
 * @executed: all tiles are executed, with result @error, but @owed_ns is not over;
 *	engine thread
 *
 * A job is embedded in what it belongs to: a lane's draw job, a context's shard, a
 * device command.
 */
struct mgpu_job {
	struct list_head node;
	struct mgpu_vgpu *vgpu;
	const struct mgpu_job_ops *ops;
	u64 id;
	enum mgpu_job_kind kind;
	u64 bytes;
	bool slice;
	bool frame;
	bool cancelled;
	bool stop;
	bool late;
	bool expired;
	bool alone;
	bool lost;
	bool guilty;
	int error;
	u64 arrived_ns;
	u64 submit_ns;
	u64 seq;
	u64 start_ns;
	u64 ran_ns;
	u64 held_ns;
	u64 charged_ns;
	struct mgpu_gpu_work work;
	u64 owed_ns;
	bool executed;
};

/*
 * One slice is executed while the next one waits in the device: a job of another vGPU waits
 * for no more.
 */
#define MGPU_SLICE_DEPTH	2

/* Forget what an earlier execution of a job left, before it is executed from its beginning. */
static inline void mgpu_job_begin_anew(struct mgpu_job *job)
{
	job->ran_ns = 0;
	job->late = false;
	job->work = (struct mgpu_gpu_work){ .commands = 1 };
	job->owed_ns = 0;
	job->executed = false;
}

/**
 * struct mgpu_parked - work that lost slots, and may have slots that are idle
 * @node: in sched->parked, the longest parked first; sched->lock
 * @vgpu: the vGPU that the work belongs to
 * @since_ns: when it lost slots, CLOCK_MONOTONIC
 * @unpark: queue one more job of the work; with @all as many as the device has
 *	engines.  Must hold sched->lock.  Returns whether a job was queued.
 */
struct mgpu_parked {
	struct list_head node;
	struct mgpu_vgpu *vgpu;
	u64 since_ns;
	bool (*unpark)(struct mgpu_parked *parked, bool all, u64 now);
};

/**
 * struct mgpu_policy_exit - why a BPF policy is no longer in force
 * @kind: enum mgpu_policy_exit_kind of the uapi header; MGPU_POLICY_EXIT_KIND_NONE
 *	while there has been none
 * @code: negative errno, or 0
 * @vgpu: ID of the vGPU that was starved, or 0
 * @policy: the policy's name
 * @message: the reason, a sentence
 */
struct mgpu_policy_exit {
	u32 kind;
	s32 code;
	u32 vgpu;
	char policy[MGPU_POLICY_NAME_LEN];
	char message[MGPU_POLICY_EXIT_MSG_LEN];
};

/**
 * struct mgpu_sched - scheduler of a device
 * @lock: protects all fields but @builtin, @exit, @job_timeout_ms and @hang_limit, the
 *	entities, and the scheduling fields of their jobs; taken with interrupts off,
 *	since timers take it
 * @rq: run queue
 * @timer: wakes the engines when a delayed entity becomes eligible
 * @running: jobs in flight
 * @nr_running: length of @running
 * @left_ns: when the first job of @running left it last, CLOCK_MONOTONIC
 * @recent: the vGPU that submitted a job last, and the last one other than that, with
 *	the times of their latest jobs, CLOCK_MONOTONIC; @vgpu is an ID, 0 for none
 * @slots: upper bound on @nr_running, 1 to mgpu_max_slots()
 * @next_alone: job of a vGPU that hung the device recently: goes there when no other job
 *	is in flight, and no other job does before; NULL for none
 * @parked: work that lost slots, see struct mgpu_parked
 * @next_seq: sequence number of the job that was submitted last
 * @next_job: id of the job that was made last
 * @timer_due: when @timer fires, U64_MAX while it is not armed
 * @watching: @watchdog is queued
 * @builtin: built-in policy that was chosen last; in force unless a BPF policy
 *	is; mgpu_registry_lock
 * @bpf: BPF policy in force, or NULL
 * @exit: how the last BPF policy ended; mgpu_registry_lock
 * @job_timeout_ms: longest time that a job may be on an engine, milliseconds
 * @hang_limit: hangs within MGPU_HANG_WINDOW that put a vGPU under quarantine; 0 for
 *	no quarantine
 * @watchdog: finds jobs beyond that, while jobs are in flight
 * @tell: tells user space of quarantines
 * @idle: woken when a job leaves its engine
 */
struct mgpu_sched {
	spinlock_t lock;	/* see above */
	struct mgpu_runq rq;
	struct hrtimer timer;
	struct list_head running;
	u32 nr_running;
	u64 left_ns;
	struct {
		u32 vgpu;
		u64 ns;
	} recent[2];
	u32 slots;
	struct mgpu_job *next_alone;
	struct list_head parked;
	u64 next_seq;
	atomic64_t next_job;
	u64 timer_due;
	bool watching;
	const struct mgpu_policy_ops *builtin;
	struct mgpu_bpf_policy_state *bpf;
	struct mgpu_policy_exit exit;
	u32 job_timeout_ms;
	u32 hang_limit;
	struct delayed_work watchdog;
	struct work_struct tell;
	wait_queue_head_t idle;
};

/* sched.c */
void mgpu_sched_init(struct mgpu_device *mdev);
void mgpu_sched_exit(struct mgpu_device *mdev);
void mgpu_sched_attach(struct mgpu_vgpu *vgpu);
void mgpu_sched_detach(struct mgpu_vgpu *vgpu);
void mgpu_sched_submit(struct mgpu_job *job);
bool mgpu_sched_contended(struct mgpu_vgpu *vgpu);
void mgpu_sched_enqueue(struct mgpu_job *job, bool first, u64 now);
void mgpu_sched_dequeue(struct mgpu_job *job, u64 now);
void mgpu_sched_first(struct mgpu_job *job, u64 now);
void mgpu_sched_slots(struct mgpu_device *mdev, u32 slots);
bool mgpu_sched_charge(u32 vgpu, u64 id, u64 ns);
void mgpu_sched_lost(struct mgpu_device *mdev, const struct mgpu_vgpu *vgpu,
		     struct mgpu_job *culprit);
void mgpu_sched_cancel_job(struct mgpu_job *job);
void mgpu_sched_cancel(struct mgpu_vgpu *vgpu);
void mgpu_sched_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set);
void mgpu_sched_use(struct mgpu_device *mdev,
		    const struct mgpu_policy_ops *policy, void *data);
const struct mgpu_policy_ops *mgpu_policy_find(const char *name);

/* engine.c */
void mgpu_cpu_clock_start(struct mgpu_cpu_clock *clock);
u64 mgpu_cpu_clock_lap(struct mgpu_cpu_clock *clock, u64 *cycles);

/* policy_bpf.c, policy_bpf_ops.c: stubs on kernels without struct_ops for modules */
int mgpu_policy_bpf_init(void);
void mgpu_policy_bpf_exit(void);
bool mgpu_policy_bpf_supported(void);
void mgpu_policy_bpf_evict(struct mgpu_device *mdev,
			   const struct mgpu_policy_exit *why);
void mgpu_policy_bpf_device_added(struct mgpu_device *mdev);
void mgpu_policy_bpf_device_gone(struct mgpu_device *mdev);

#endif /* MGPU_SCHED_H */

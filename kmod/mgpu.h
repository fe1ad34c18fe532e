/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Core structures and the prototypes of every file, grouped by the file that
 * owns them.
 *
 * Locks, outermost first; Documentation/locking.rst says more:
 *
 *   mgpu_registry_lock	mutex; the device list, each device's vGPU list and the
 *			settings that user space makes.  Held by netlink
 *			requests, registration, and vGPU add and remove.
 *   vgpu->lock		mutex; configuration space, the virtio transport
 *			registers and reset.  Never taken while the ring runs,
 *			so that a reset can wait for that.
 *   vgpu->ring_lock	mutex; vrings, lanes, the resource table and the
 *			throttle.  Taken by trylock, but for reset.
 *   context->merge	mutex; what the shards of a work have in common.
 *   readback.lock	mutex; what the module has on the GPU to see a vGPU's
 *			screen.
 *   vgpu->screen.lock	mutex; the scanout and cursor state and the display
 *			buffer.
 *   sched->lock		spinlock; the run queue and every entity's and job's
 *			scheduling fields.
 *   vgpu->mem.lock	spinlock; the list of guest memory in use.
 *   vgpu->irq_lock	spinlock; eventfds, interrupt state and display events.
 *
 * The ring runs in whatever thread has cause to run it; see ring.c.
 */
#ifndef MGPU_MGPU_H
#define MGPU_MGPU_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mdev.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/vfio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <uapi/linux/mgpu.h>

#include "backend.h"
#include "cmd_decode.h"
#include "compute.h"
#include "device.h"
#include "sched_policy.h"
#include "throttle.h"
#include "virgl.h"
#include "vring.h"

struct eventfd_ctx;

/**
 * struct mgpu_type_desc - what a vGPU type fixes
 * @name: what sysfs appends to the parent driver's name
 * @pretty: what people read
 * @weight: initial scheduling weight
 * @mem_limit: bytes of resources a vGPU may hold
 * @max_width: width of the largest mode, pixels
 * @max_height: height of the largest mode, pixels
 * @max_instances: how many of the type may exist on a parent
 * @render: its guests may create contexts; only of a back end that computes
 */
struct mgpu_type_desc {
	const char *name;
	const char *pretty;
	u32 weight;
	u64 mem_limit;
	u32 max_width;
	u32 max_height;
	u32 max_instances;
	bool render;
};

struct mgpu_type {
	struct mdev_type mtype;
	const struct mgpu_type_desc *desc;
	struct mgpu_device *mdev;
	u32 used;		/* mgpu_registry_lock */
};

/* ---- scheduler ---- */

/**
 * struct mgpu_policy_exit - why a BPF policy is no longer in force
 * @kind: enum mgpu_policy_exit_kind of the uapi header; MGPU_POLICY_EXIT_KIND_NONE
 *	while there has been none
 * @code: negative errno, or 0
 * @vgpu: whom it treated badly, 0 for nobody
 * @policy: its name
 * @message: what happened, a sentence
 */
struct mgpu_policy_exit {
	u32 kind;
	s32 code;
	u32 vgpu;
	char policy[MGPU_POLICY_NAME_LEN];
	char message[MGPU_POLICY_EXIT_MSG_LEN];
};

struct mgpu_bpf_policy_state;	/* policy_bpf.c */

/**
 * struct mgpu_sched - scheduler of a device
 * @lock: everything here but @builtin, @exit, @job_timeout_ms; the entities and
 *	their jobs.  Taken with interrupts off: timers do so too
 * @rq: run queue
 * @timer: wakes the engines when a delayed entity becomes eligible
 * @running: jobs on the engines
 * @nr_running: how many they are
 * @left_ns: when one was done that was the first of @running
 * @slots: how many they may be, 1 to mgpu_max_slots()
 * @parked: contexts from which slots were taken and that may have them again
 *	when nobody else wants them, oldest first
 * @next_seq: number of the job that was submitted last
 * @next_job: id of the job that was made last
 * @timer_due: when @timer fires, U64_MAX when it is not armed
 * @watching: @watchdog is queued
 * @builtin: built-in policy that was chosen last; in force unless a BPF policy
 *	is, mgpu_registry_lock
 * @bpf: BPF policy in force, or NULL
 * @exit: how the last BPF policy ended, mgpu_registry_lock
 * @job_timeout_ms: longest that a job may be on an engine
 * @watchdog: looks for jobs beyond that, while any runs
 * @idle: a job of some vGPU is done
 */
struct mgpu_sched {
	spinlock_t lock;	/* see above */
	struct mgpu_runq rq;
	struct hrtimer timer;
	struct list_head running;
	u32 nr_running;
	u64 left_ns;
	u32 slots;
	struct list_head parked;
	u64 next_seq;
	atomic64_t next_job;
	u64 timer_due;
	bool watching;
	const struct mgpu_policy_ops *builtin;
	struct mgpu_bpf_policy_state *bpf;
	struct mgpu_policy_exit exit;
	u32 job_timeout_ms;
	struct delayed_work watchdog;
	wait_queue_head_t idle;
};

/**
 * struct mgpu_job - one piece of work for an engine
 * @node: in the vGPU's list while it waits, in sched->running while it runs;
 *	sched->lock
 * @vgpu: whose it is; outlives the job
 * @id: unique on this device since it was registered, never 0
 * @kind: what to do
 * @bytes: bytes that it moves, for accounting
 * @res: resource that it reads or writes, holds a reference; NULL for none
 * @rect: rectangle in the resource
 * @offset: TRANSFER: first byte in the backing
 * @row: rows done, so that a job can stop and go on between tiles
 * @frame: completing it completes a frame
 * @cancelled: the guest reset the device; stop at the next tile
 * @late: it has been on the engine for too long; sched->lock
 * @expired: it still was when it was looked at again; stop at the next tile
 * @error: result, 0 or negative errno; valid once done
 * @arrived_ns: when its command was taken from the ring, CLOCK_MONOTONIC
 * @submit_ns: when it began to wait for an engine; later if it was preempted
 * @seq: number in the order of submission
 * @start_ns: when an engine began with it, or went on
 * @ran_ns: how long it was on engines before that
 * @held_ns: for how long pacing held it back
 * @charge: @id while its completion is being accounted and nobody has charged
 *	it, else 0
 * @charged_ns: what mgpu_charge() charged
 * @shard: COMPUTE: the context's share in a slot that this is, else NULL
 * @stop: COMPUTE: leave the engine at the next tile's end; sched->lock
 * @resample: COMPUTE: other contexts came or went; sched->lock
 *
 * Lives inside its vGPU's lane, one in flight per queue, in a context's shard or
 * in a device's command.  The scheduler owns it from mgpu_sched_submit() to mgpu_job_done().
 */
struct mgpu_job {
	struct list_head node;
	struct mgpu_vgpu *vgpu;
	u64 id;
	enum mgpu_job_kind kind;
	u64 bytes;
	struct mgpu_resource *res;
	struct mgpu_rect rect;
	u64 offset;
	u32 row;
	bool frame;
	bool cancelled;
	bool late;
	bool expired;
	int error;
	u64 arrived_ns;
	u64 submit_ns;
	u64 seq;
	u64 start_ns;
	u64 ran_ns;
	u64 held_ns;
	atomic64_t charge;
	u64 charged_ns;
	struct mgpu_shard *shard;
	bool stop;
	bool resample;
};

/* ---- answers that are given later ---- */

/**
 * struct mgpu_reply - the answer to a command that does not hold up the queue
 * @hdr: the answer, but for its type
 * @chain: where it goes
 */
struct mgpu_reply {
	struct virtio_gpu_ctrl_hdr hdr;
	struct mgpu_chain chain;
};

/* ---- compute contexts ---- */

/**
 * struct mgpu_work - a job that a guest submitted to a context
 * @node: in ctx->works while it waits, then in vgpu->works_ending
 * @done: in vgpu->works_done
 * @ctx: number of the context
 * @in_order: the queue waits for it
 * @job: the checked command
 * @res: the resources that it names, each with a reference
 * @slots: how many it can use
 * @next: first tile that nobody has taken
 * @inst_done: work units done
 * @prepared: mgpu_compute_prepare() was called; ctx->merge
 * @error: 0 or the first negative errno
 * @live: bytes that are saved when a slot is taken away
 * @save: room for that, @slots times
 * @charged: bytes that @save counts for against the memory limit
 * @arrived_ns: when it was submitted
 * @reply: to the submission
 * @segs: @reply's
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
 * enum mgpu_shard_place - where a shard is
 * @MGPU_SHARD_NONE: its work does not use it, or is done with it
 * @MGPU_SHARD_QUEUED: in vgpu->jobs
 * @MGPU_SHARD_RUNNING: on an engine
 * @MGPU_SHARD_PARKED: may not run
 */
enum mgpu_shard_place {
	MGPU_SHARD_NONE,
	MGPU_SHARD_QUEUED,
	MGPU_SHARD_RUNNING,
	MGPU_SHARD_PARKED,
};

/**
 * struct mgpu_shard - a context's share in one slot
 * @job: what the scheduler sees of it
 * @ctx: whose it is
 * @place: sched->lock
 * @begun: it has live state, in the slot's memory or saved
 * @local: the slot's memory, while it runs
 * @usage: work done since its work began
 * @sampled: of that, told to who counts
 * @sampled_ns: engine time since it was taken, told
 * @sampled_cycles: the same in TSC ticks
 * @peer_vgpu: vGPU of another context that has run beside it since then, or 0
 * @peer: that context
 */
struct mgpu_shard {
	struct mgpu_job job;
	struct mgpu_context *ctx;
	enum mgpu_shard_place place;
	bool begun;
	void *local;
	struct mgpu_compute_usage usage;
	struct mgpu_compute_usage sampled;
	u64 sampled_ns;
	u64 sampled_cycles;
	u32 peer_vgpu;
	u32 peer;
};

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
 * @vgpu: whose it is
 * @id: the guest's number for it
 * @capset: what it was made for; 0 for nothing that can be submitted
 * @name: the guest's name for it
 * @attached: resources by id, each with a reference; ring_lock
 * @merge: mutex; results that its shards have in common
 * @works: submitted and not begun, oldest first
 * @queued: how many works there are, the one in progress included
 * @work: in progress
 * @out: shards of it that are not done
 * @running: shards on engines
 * @allowed: shards that may be queued or run
 * @held: it goes on only when it is resumed
 * @dying: nothing begins any more
 * @draining: slots are taken when @work is done
 * @flushing: @work begins anew once none of its shards runs
 * @hold_next: draining: it is held then
 * @keep: draining: how many slots stay
 * @parked: in sched->parked
 * @parked_ns: when slots were taken
 * @stats: counters
 * @shards: as many as the device has engines
 *
 * Fields from @works to @parked_ns are under sched->lock.
 */
struct mgpu_context {
	struct mgpu_vgpu *vgpu;
	u32 id;
	u32 capset;
	char name[MGPU_CMD_NAME_LEN];
	struct xarray attached;
	struct mutex merge;	/* results */
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
	struct list_head parked;
	u64 parked_ns;
	struct mgpu_context_stats stats;
	struct mgpu_shard shards[];
};

/* As many contexts may a vGPU have, and resources a context. */
#define MGPU_MAX_CONTEXTS	256
#define MGPU_MAX_ATTACHED	4096

/* ---- memory as the device sees it ---- */

/**
 * struct mgpu_mem_chunk - bytes that follow each other
 * @start: offset in the memory
 * @at: offset from the first page
 */
struct mgpu_mem_chunk {
	u64 start;
	u64 at;
};

/**
 * struct mgpu_dma - pages as the device sees them
 * @sgt: the pages; empty while they are not mapped
 * @dev: whom they are mapped for, NULL for physical addresses
 */
struct mgpu_dma {
	struct sg_table sgt;
	struct device *dev;
};

/* ---- commands that the device carries out ---- */

/**
 * struct mgpu_msg - a command on its way to the device
 * @buf: the command in the device's own terms (VIRTIO 1.2, section 5.7.6); from
 *	kvmalloc
 * @len: bytes
 * @resp: where the device answers; from kmalloc
 * @resp_len: bytes there
 * @fenced: answered when all that it began is finished
 * @cmd: whose last message it is; the others have NULL
 * @begin: what the core wants to know when it is posted, see mgpu_devcmd_begin()
 * @node: the back end's
 * @done: the back end's: somebody waits
 * @error: the back end's: -EIO when the device lost it
 * @sent_ns: the back end's: when it was posted
 */
struct mgpu_msg {
	void *buf;
	size_t len;
	struct virtio_gpu_ctrl_hdr *resp;
	size_t resp_len;
	bool fenced;
	struct mgpu_devcmd *cmd;
	struct mgpu_devcmd *begin;
	struct list_head node;
	struct completion *done;
	int error;
	u64 sent_ns;
};

#define MGPU_DEVCMD_MSGS	4

/**
 * struct mgpu_devcmd - a guest's command that the device carries out
 * @job: what the scheduler sees of it; unless it is @local
 * @node: in vgpu->devcmds, in the ring's order, until it is answered
 * @done_node: in vgpu->devcmds_done
 * @vgpu: whose it is
 * @type: VIRTIO_GPU_CMD_*; 0 for a readback
 * @local: nothing for the device: it waits for its turn to be answered
 * @done: to be answered; ring_lock
 * @fenced: the guest wants a fence: answered after all before it that are, too
 * @guest_ctx: the guest's number of the context, 0 for none
 * @ctx: CTX_CREATE, CTX_DESTROY: the context
 * @mem: ATTACH_BACKING, DETACH_BACKING: the memory
 * @answer: VIRTIO_GPU_RESP_*
 * @nr_msgs: how many there are
 * @msgs: what the device gets, in this order; the last is answered last
 * @resp: their answers
 * @reply: to the guest
 * @segs: @reply's
 */
struct mgpu_devcmd {
	struct mgpu_job job;
	struct list_head node;
	struct llist_node done_node;
	struct mgpu_vgpu *vgpu;
	u32 type;
	bool local;
	bool done;
	bool fenced;
	u32 guest_ctx;
	struct mgpu_devctx *ctx;
	struct mgpu_mem *mem;
	u32 answer;
	u32 nr_msgs;
	struct mgpu_msg msgs[MGPU_DEVCMD_MSGS];
	struct virtio_gpu_ctrl_hdr resp[MGPU_DEVCMD_MSGS];
	struct mgpu_reply reply;
	struct mgpu_seg segs[];
};

#define to_mgpu_devcmd(j) container_of(j, struct mgpu_devcmd, job)

/**
 * struct mgpu_devctx - a context that a guest has on the device
 * @ref: the table's and that of each command that makes or ends it
 * @vgpu: whose it is
 * @id: the guest's number for it
 * @dev_id: the device's
 * @dev_gen: of the device when it got to know the context, 0 before and after
 * @attached: resources by the guest's id, without references: a resource that
 *	goes is taken out; ring_lock
 * @nr_attached: how many
 * @subs: sub-contexts by the guest's number; ring_lock
 * @nr_subs: how many
 */
struct mgpu_devctx {
	struct kref ref;
	struct mgpu_vgpu *vgpu;
	u32 id;
	u32 dev_id;
	u32 dev_gen;
	struct xarray attached;
	u32 nr_attached;
	struct xarray subs;
	u32 nr_subs;
};

/**
 * enum mgpu_readback_state - how far a picture has come
 * @MGPU_READBACK_IDLE: nothing is under way
 * @MGPU_READBACK_BUSY: the device has been asked
 * @MGPU_READBACK_READY: the picture is there
 */
enum mgpu_readback_state {
	MGPU_READBACK_IDLE,
	MGPU_READBACK_BUSY,
	MGPU_READBACK_READY,
};

/**
 * struct mgpu_readback - how a picture comes from the device to the screen
 * @lock: mutex, outside of screen.lock; held while the device is waited for
 * @state: BUSY to READY by an engine
 * @cmd: what the device has been asked, unless IDLE
 * @pixels: B8G8R8X8, rows of @width pixels; the device writes there
 * @dma: the same for the device
 * @size: bytes of it
 * @width: of the picture, pixels
 * @height: rows
 * @rect: the part that is read, in the scanout's pixels
 * @res: the device's number of the resource that @pixels belongs to
 * @ctx: of the context in which it is drawn
 * @gen: of the device then, 0 when there are none
 * @looked_ns: when somebody looked last
 * @wait: @state changed
 */
struct mgpu_readback {
	struct mutex lock;	/* all of it, but for @state from BUSY on */
	enum mgpu_readback_state state;
	struct mgpu_devcmd *cmd;
	void *pixels;
	struct mgpu_dma dma;
	size_t size;
	u32 width;
	u32 height;
	struct mgpu_rect rect;
	u32 res;
	u32 ctx;
	u32 gen;
	u64 looked_ns;
	wait_queue_head_t wait;
};

/* ---- devices ---- */

/**
 * struct mgpu_device - a GPU that is shared
 * @node: in mgpu_devices, mgpu_registry_lock
 * @id: number
 * @name: of @dev
 * @dev: mdev parent
 * @ops: back end
 * @caps: what it says of its hardware
 * @priv: the back end's own
 * @vgpus: mgpu_registry_lock
 * @nr_vgpus: how many, mgpu_registry_lock
 * @types: what vGPUs there can be
 * @mtypes: the same for the mdev core
 * @parent: for the mdev core
 * @sched: scheduler
 * @gen: how often the hardware has begun anew, from 1; what it was told before
 *	is forgotten
 * @res_ids: the device's numbers of resources
 * @ctx_ids: of contexts
 * @next_res: where to look for the next number
 * @next_ctx: the same for contexts
 */
struct mgpu_device {
	struct list_head node;	/* mgpu_registry_lock */
	u32 id;
	const char *name;
	struct device *dev;
	const struct mgpu_backend_ops *ops;
	struct mgpu_device_caps caps;
	void *priv;
	struct list_head vgpus;	/* mgpu_registry_lock */
	u32 nr_vgpus;		/* mgpu_registry_lock */
	struct mgpu_type *types;
	struct mdev_type **mtypes;
	struct mdev_parent parent;
	struct mgpu_sched sched;
	atomic_t gen;
	struct xarray res_ids;
	struct xarray ctx_ids;
	u32 next_res;
	u32 next_ctx;
};

/* Jobs that may be with the device at once, at most. */
static inline u32 mgpu_max_slots(const struct mgpu_device *mdev)
{
	return max(mdev->caps.engines, mdev->caps.depth);
}

/* ---- guest memory ---- */

/**
 * struct mgpu_mem - guest memory that is pinned and mapped
 * @node: in the vGPU's list until the pages are released, mem.lock
 * @vgpu: whose guest it is
 * @len: bytes
 * @nr_pages: entries of @pages and @iova
 * @nr_pinned: how many of them are pinned
 * @pages: the pages, in order
 * @iova: their guest addresses
 * @base: kernel address of the first page
 * @nr_chunks: entries of @chunks
 * @chunks: where the bytes are; one chunk unless the guest's entries begin or
 *	end inside of pages
 * @dma: the pages as the device sees them, if it is to use them
 * @dev_gen: of the device when it was told of the memory; 0 when it does not use
 *	it, mem.lock
 * @dev_res: the device's number of the resource that it belongs to
 * @users: who uses the mapping right now, mem.lock
 * @pinning: vfio_pin_pages() is under way, mem.lock
 * @dead: the guest unmapped a part of it: no new users, mem.lock
 * @claimed: somebody is releasing the pages, mem.lock
 * @gone: they are released, mem.lock
 */
struct mgpu_mem {
	struct list_head node;
	struct mgpu_vgpu *vgpu;
	u64 len;
	u32 nr_pages;
	u32 nr_pinned;
	struct page **pages;
	dma_addr_t *iova;
	void *base;
	u32 nr_chunks;
	struct mgpu_mem_chunk *chunks;
	struct mgpu_dma dma;
	u32 dev_gen;
	u32 dev_res;
	u32 users;
	bool pinning;
	bool dead;
	bool claimed;
	bool gone;
};

#define MGPU_PIN_CACHE		256	/* single pages for commands; a power of 2 */

struct mgpu_guest_mem {
	spinlock_t lock;	/* list, and state of what is in it */
	struct list_head list;
	wait_queue_head_t wait;	/* users, pinning or gone changed */
	struct mgpu_mem *cache[MGPU_PIN_CACHE]; /* ring_lock */
	struct mgpu_unmapping {
		u64 first;
		u64 last;
		unsigned long until;	/* jiffies */
	} unmapping[4];		/* ranges that VFIO is taking away, lock */
	u32 next_unmapping;
	atomic64_t pinned;	/* pages */
	atomic64_t used;	/* bytes charged against the type's limit */
};

/* ---- resources ---- */

/**
 * struct mgpu_resource - a virtio-gpu resource
 * @ref: the table's, a scanout's, the cursor's and each job's reference
 * @id: the guest's name for it
 * @blob: a guest blob: pixels live in the backing, there is no host copy
 * @format: enum virtio_gpu_formats; of a blob: from SET_SCANOUT_BLOB
 * @width: pixels, 0 for a blob that no scanout has used
 * @height: rows
 * @stride: bytes from one row to the next
 * @size: bytes of pixels (2D) or of the blob
 * @host: 2D: the host's copy
 * @backing: guest pages, NULL when detached; changed by the ring worker while
 *	no job uses the resource
 * @charged: bytes that it counts for against the memory limit
 * @backing_charged: bytes that an attached backing counts for
 * @dev: what is on the device, and its number there; 0 when it is not
 * @dev_gen: of the device when it got to know the resource, 0 before and after
 * @dev_leaving: the device has been told that it goes
 */
struct mgpu_resource {
	struct kref ref;
	struct mgpu_vgpu *vgpu;
	u32 id;
	bool blob;
	u32 format;
	u32 width;
	u32 height;
	u32 stride;
	u64 size;
	void *host;
	struct mgpu_mem *backing;
	u64 charged;
	u64 backing_charged;
	struct mgpu_virgl_res dev;
	u32 dev_gen;
	bool dev_leaving;
};

/* ---- screen ---- */

/**
 * struct mgpu_view - how a resource's bytes form a picture
 * @res: the resource, holds a reference; NULL for none
 * @rect: part of it that is shown, in pixels
 * @format: enum virtio_gpu_formats
 * @width: of the whole picture
 * @height: of the whole picture
 * @stride: bytes
 * @offset: of the first pixel in the resource's bytes
 */
struct mgpu_view {
	struct mgpu_resource *res;
	struct mgpu_rect rect;
	u32 format;
	u32 width;
	u32 height;
	u32 stride;
	u32 offset;
};

#define MGPU_CURSOR_DIM		64	/* pixels, both ways */

/**
 * struct mgpu_screen - scanout, cursor and the picture that the VMM sees
 * @lock: covers all of it
 * @view: what the scanout shows
 * @display: XRGB8888, rows of view.rect.width pixels; allocated when first
 *	needed, as large as the type's largest mode
 * @cursor: ARGB8888, premultiplied, MGPU_CURSOR_DIM squared; allocated when
 *	first needed, with @under
 * @under: what the cursor covers
 * @shown: @display has the cursor drawn, at @shown_x, @shown_y
 * @damage: with a lazy scanout: what was flushed since the VMM looked last, in
 *	the resource's pixels; width 0 for nothing
 * @visible: the guest wants it drawn
 * @x: of the cursor image's left column on the screen, may be negative
 * @y: of its top row
 * @readback: of what is shown from the device's memory
 */
struct mgpu_screen {
	struct mutex lock;	/* all of it */
	struct mgpu_view view;
	u32 *display;
	u32 *cursor;
	u32 *under;
	struct mgpu_rect damage;
	bool shown;
	s32 shown_x;
	s32 shown_y;
	bool visible;
	s32 x;
	s32 y;
	u32 hot_x;
	u32 hot_y;
	struct mgpu_readback readback;
};

/* ---- counters ---- */

/**
 * struct mgpu_stats - counters since the vGPU was created
 *
 * Names are those of the netlink attributes.  Written by one context each,
 * read by anyone.
 */
struct mgpu_stats {
	atomic64_t frames;		/* frames shown */
	atomic64_t jobs;		/* jobs done */
	atomic64_t job_errors;		/* of these, with an error */
	atomic64_t bytes;		/* moved by jobs */
	atomic64_t engine_ns;		/* engine time, as the back end measured */
	atomic64_t engine_cycles;	/* the same in TSC ticks */
	atomic64_t charged_bpf_ns;	/* charged by mgpu_charge() */
	atomic64_t charged_self_ns;	/* charged by the module itself */
	atomic64_t throttled_ns;	/* frames held back */
	atomic64_t throttled;		/* number of frames held back */
	atomic64_t limited_ns;		/* out of engine time, with jobs waiting */
	atomic64_t limited;		/* how often that was so */
	atomic64_t queue_ns;		/* jobs waiting for an engine */
	atomic64_t preempted;		/* jobs stopped between tiles for others */
	atomic64_t timeouts;		/* jobs that took too long */
	atomic64_t commands;		/* virtio-gpu commands */
	atomic64_t command_errors;	/* answered with an error */
	atomic64_t doorbells;		/* queue notifications by the guest */
	atomic64_t interrupts;		/* sent to the guest */
	atomic64_t resets;		/* of the device */
};

/**
 * struct mgpu_hist - a histogram of times
 * @count: bucket 0 counts what is below 2 us, bucket i from 2^i us up to
 *	2^(i + 1) us, the last one everything above
 */
struct mgpu_hist {
	atomic64_t count[MGPU_HIST_BUCKETS];
};

/**
 * struct mgpu_hists - a vGPU's histograms, allocated when it is first opened
 * @interval: from frame to frame
 * @latency: from the command in the ring to its answer
 */
struct mgpu_hists {
	struct mgpu_hist interval;
	struct mgpu_hist latency;
};

/* ---- vGPUs ---- */

/**
 * enum mgpu_lane_state - what happens to a queue's oldest command
 * @MGPU_LANE_IDLE: there is none
 * @MGPU_LANE_HELD: a frame waits for its time
 * @MGPU_LANE_BUSY: its job is with the scheduler, or a context has it and the
 *	queue waits
 * @MGPU_LANE_DONE: the job is done, the answer is not sent
 */
enum mgpu_lane_state {
	MGPU_LANE_IDLE,
	MGPU_LANE_HELD,
	MGPU_LANE_BUSY,
	MGPU_LANE_DONE,
};

/**
 * struct mgpu_lane - a queue and the command that is being worked on
 * @vring: the queue
 * @mem: descriptor table, available ring, used ring
 * @ready: @vring is set up
 * @broken: the guest broke the ring; nothing more until a reset
 * @state: written under ring_lock, except HELD to BUSY, which the timer does,
 *	and BUSY to DONE, which mgpu_job_done() does
 * @cmd: the command, unless IDLE
 * @chain: where its answer goes
 * @buf: the copy of the guest's bytes that @cmd points into
 * @buf_size: bytes allocated at @buf
 * @answered: there are answers for which the guest got no interrupt
 * @awaited: and somebody may be waiting for one of them
 * @held_ns: when it was first held back, 0 when it was not
 * @job: its job
 */
struct mgpu_lane {
	struct mgpu_vring vring;
	struct mgpu_mem *mem[3];
	bool ready;
	bool broken;
	enum mgpu_lane_state state;
	struct mgpu_cmd cmd;
	struct mgpu_chain chain;
	void *buf;
	size_t buf_size;
	bool answered;
	bool awaited;
	u64 held_ns;
	struct mgpu_job job;
};

struct mgpu_irq {
	struct eventfd_ctx *msix[MGPU_MSIX_VECTORS];
	struct eventfd_ctx *intx;
	struct eventfd_ctx *err;	/* to the VMM; no back end fails so yet */
	struct eventfd_ctx *req;
	struct virqfd *intx_unmask;
	bool use_msix;		/* the VMM set up MSI-X */
	bool intx_disabled;	/* PCI_COMMAND_INTX_DISABLE */
	bool intx_masked;
	u8 isr;
	u16 config_vector;
	u16 vq_vector[MGPU_NR_VQS];
};

struct mgpu_vq_regs {
	u16 size;
	bool enabled;
	u64 desc;
	u64 avail;
	u64 used;
};

struct mgpu_vgpu {
	struct vfio_device vdev;	/* first: vfio_alloc_device() */
	struct list_head node;		/* in mdev->vgpus, mgpu_registry_lock */
	struct mgpu_device *mdev;
	struct mgpu_type *type;
	u32 id;
	guid_t uuid;
	u32 tgid;			/* of the VMM, 0 when closed */
	struct file *hold;		/* while it is open; see mgpu_vfio_hold() */

	/* transport */
	struct mutex lock;		/* this section; reset */
	u8 config[MGPU_CFG_SIZE];
	u64 guest_features;
	u32 feature_select;
	u32 driver_feature_select;
	u16 queue_select;
	u8 status;
	bool needs_reset;		/* set by the worker, cleared by reset */
	struct mgpu_vq_regs vq_regs[MGPU_NR_VQS];
	spinlock_t irq_lock;		/* irq, and the three below it */
	struct mgpu_irq irq;
	u8 config_generation;
	u32 events_read;
	u32 events_new;			/* of them, not read yet */

	/* ring: under ring_lock, unless said */
	struct mutex ring_lock;
	bool ring_pending;		/* somebody wants it run; see ring.c */
	bool ring_nowait;		/* its holder must not wait for VFIO */
	struct work_struct ring_work;
	bool live;			/* DRIVER_OK and not in reset or closing */
	struct mgpu_lane lane[MGPU_NR_VQS];
	void *resp;			/* answers with data: MGPU_MAX_RESP bytes */
	struct mgpu_throttle throttle;
	struct hrtimer hold_timer;
	struct xarray resources;
	struct xarray bad_contexts;	/* refused since a job of theirs hung */
	u32 nr_bad_contexts;
	struct xarray contexts;		/* looked up under sched->lock, too */
	u32 nr_contexts;
	struct llist_head works_done;	/* no lock: engines add */
	struct list_head works_ending;	/* done, not answered, oldest first */
	struct xarray devctxs;
	u32 nr_devctxs;
	struct list_head devcmds;	/* not answered, in the ring's order */
	struct llist_head devcmds_done;	/* no lock: engines add */
	u32 dev_gen;			/* device that its resources are on, 0 for none */

	struct mgpu_guest_mem mem;
	struct mgpu_screen screen;

	/* scheduler: sched->lock */
	struct mgpu_sched_entity entity;
	struct list_head jobs;		/* that wait, oldest first */
	u32 running;			/* jobs on the engine */
	u64 last_frame_ns;

	/* settings: written under mgpu_registry_lock, read with READ_ONCE */
	u32 fps_limit;			/* millihertz, 0 = none */
	u32 gpu_limit;			/* ppm of engine time, 0 = none */
	u32 gpu_period;			/* microseconds */
	u32 gpu_burst;			/* microseconds */
	u32 mode;			/* MGPU_MODE(), 0 = the type's largest */

	bool last_charge_bpf;
	struct mgpu_stats stats;
	struct mgpu_hists *hists;	/* NULL until the first open */
};

#define to_mgpu_vgpu(v) container_of(v, struct mgpu_vgpu, vdev)

/* main.c */
extern struct mutex mgpu_registry_lock;
extern struct list_head mgpu_devices;		/* mgpu_registry_lock */
extern struct xarray mgpu_vgpus;		/* by id; RCU for readers */
extern struct workqueue_struct *mgpu_wq;

/*
 * What user space may set.  Checked first and applied then, both under
 * mgpu_registry_lock, so that a batch changes all or nothing.  Ranges are those
 * of include/uapi/linux/mgpu.h.
 */
#define MGPU_SET_WEIGHT		BIT(0)
#define MGPU_SET_FPS_LIMIT	BIT(1)
#define MGPU_SET_GPU_LIMIT	BIT(2)
#define MGPU_SET_GPU_PERIOD	BIT(3)
#define MGPU_SET_GPU_BURST	BIT(4)
#define MGPU_SET_MODE		BIT(5)

/* Both in one, so that nobody sees half of a change. */
#define MGPU_MODE(width, height)	((width) << 16 | (height))

struct mgpu_settings {
	u32 mask;
	u32 weight;
	u32 fps_limit;		/* millihertz, 0 = none */
	u32 gpu_limit;		/* ppm of the device's engine time, 0 = none */
	u32 gpu_period;		/* microseconds */
	u32 gpu_burst;		/* microseconds of engine time */
	u32 mode;		/* MGPU_MODE(), 0 = the type's largest */
};

#define MGPU_DEV_SET_POLICY		BIT(0)
#define MGPU_DEV_SET_JOB_TIMEOUT	BIT(1)
#define MGPU_DEV_SET_SLOTS		BIT(2)

struct mgpu_dev_settings {
	u32 mask;
	const struct mgpu_policy_ops *policy;	/* a built-in one */
	u32 job_timeout_ms;
	u32 slots;
};

struct mgpu_vgpu *mgpu_vgpu_find(u32 id);
struct mgpu_vgpu *mgpu_vgpu_find_uuid(const guid_t *uuid);
struct mgpu_device *mgpu_device_find(u32 id);
void mgpu_vgpu_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set);
void mgpu_vgpu_mode(const struct mgpu_vgpu *vgpu, u32 *width, u32 *height);
void mgpu_device_apply(struct mgpu_device *mdev,
		       const struct mgpu_dev_settings *set);

/* mdev.c: types, vGPU creation and removal */
int mgpu_mdev_init(void);
void mgpu_mdev_exit(void);
int mgpu_mdev_register(struct mgpu_device *mdev);
void mgpu_mdev_unregister(struct mgpu_device *mdev);

/* vfio.c */
extern const struct vfio_device_ops mgpu_vfio_ops;

/* pci_config.c */
void mgpu_config_init(struct mgpu_vgpu *vgpu);
void mgpu_config_reset(struct mgpu_vgpu *vgpu);
int mgpu_config_read(struct mgpu_vgpu *vgpu, u32 off, void *buf, u32 len);
int mgpu_config_write(struct mgpu_vgpu *vgpu, u32 off, const void *buf,
		      u32 len);

/* virtio_pci.c: the transport */
int mgpu_bar_read(struct mgpu_vgpu *vgpu, u32 off, void *buf, u32 len);
int mgpu_bar_write(struct mgpu_vgpu *vgpu, u32 off, const void *buf, u32 len);
void mgpu_virtio_reset(struct mgpu_vgpu *vgpu);
void mgpu_virtio_broken(struct mgpu_vgpu *vgpu, u32 vq, const char *why);
void mgpu_virtio_needs_reset(struct mgpu_vgpu *vgpu, const char *why);

/* irq.c */
int mgpu_irq_set(struct mgpu_vgpu *vgpu, u32 flags, u32 index, u32 start,
		 u32 count, void *data);
void mgpu_irq_release(struct mgpu_vgpu *vgpu);
void mgpu_irq_reset(struct mgpu_vgpu *vgpu);
void mgpu_irq_queue(struct mgpu_vgpu *vgpu, u32 vq);
void mgpu_irq_config(struct mgpu_vgpu *vgpu);
void mgpu_irq_event(struct mgpu_vgpu *vgpu, u32 event);
u32 mgpu_irq_events(struct mgpu_vgpu *vgpu);
void mgpu_irq_clear_events(struct mgpu_vgpu *vgpu, u32 events);
void mgpu_irq_intx_disable(struct mgpu_vgpu *vgpu, bool disable);
u8 mgpu_irq_read_isr(struct mgpu_vgpu *vgpu);
void mgpu_irq_request(struct mgpu_vgpu *vgpu);

/* guest_mem.c */
void mgpu_mem_init(struct mgpu_vgpu *vgpu);
u64 mgpu_mem_cmd_bytes(const struct mgpu_cmd *cmd);
struct mgpu_mem *mgpu_mem_pin_range(struct mgpu_vgpu *vgpu, u64 addr, u32 len);
struct mgpu_mem *mgpu_mem_pin_cmd(struct mgpu_vgpu *vgpu,
				  const struct mgpu_cmd *cmd);
void mgpu_mem_free(struct mgpu_mem *mem);
void *mgpu_mem_get(struct mgpu_mem *mem);
void mgpu_mem_put(struct mgpu_mem *mem);
void mgpu_mem_copy(const struct mgpu_mem *mem, u64 off, void *to, size_t len);
int mgpu_guest_read(struct mgpu_vgpu *vgpu, u64 addr, void *buf, size_t len);
int mgpu_guest_write(struct mgpu_vgpu *vgpu, u64 addr, const void *buf,
		     size_t len);
bool mgpu_guest_ready(struct mgpu_vgpu *vgpu, u64 addr, size_t len);
void mgpu_mem_drop_cache(struct mgpu_vgpu *vgpu);
void mgpu_mem_unmap(struct mgpu_vgpu *vgpu, u64 iova, u64 len);
int mgpu_mem_charge(struct mgpu_vgpu *vgpu, u64 bytes);
void mgpu_mem_uncharge(struct mgpu_vgpu *vgpu, u64 bytes);

/* ring.c: commands in, answers out */
void mgpu_ring_init(struct mgpu_vgpu *vgpu);
int mgpu_ring_open(struct mgpu_vgpu *vgpu);
void mgpu_ring_close(struct mgpu_vgpu *vgpu);
void mgpu_ring_start(struct mgpu_vgpu *vgpu);
void mgpu_ring_enable_vq(struct mgpu_vgpu *vgpu, u32 vq);
void mgpu_ring_stop(struct mgpu_vgpu *vgpu);
void mgpu_ring_kick(struct mgpu_vgpu *vgpu);
void mgpu_ring_doorbell(struct mgpu_vgpu *vgpu);
void mgpu_ring_job_done(struct mgpu_job *job);
void mgpu_ring_work_done(struct mgpu_vgpu *vgpu, struct mgpu_work *work);
void mgpu_ring_devcmd_done(struct mgpu_devcmd *cmd);
u32 mgpu_reply_segs(const struct mgpu_lane *lane);
void mgpu_reply_init(struct mgpu_reply *reply, const struct mgpu_lane *lane,
		     struct mgpu_seg *segs);

/**
 * enum mgpu_cmd_next - how a command goes on
 * @MGPU_CMD_ANSWER: it is done
 * @MGPU_CMD_JOB: the lane's job is ready; its end answers the command
 * @MGPU_CMD_WORK: a context has it; its end answers the command, and as a rule
 *	the queue goes on meanwhile
 */
enum mgpu_cmd_next {
	MGPU_CMD_ANSWER,
	MGPU_CMD_JOB,
	MGPU_CMD_WORK,
};

/* devcmd.c: commands that the device carries out */

/* Whether the vGPU's contexts and resources are on the device. */
static inline bool mgpu_on_device(const struct mgpu_vgpu *vgpu)
{
	return vgpu->type->desc->render && vgpu->mdev->caps.nr_capsets;
}

u32 mgpu_devcmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		    size_t *resp_len, enum mgpu_cmd_next *next);
bool mgpu_devcmd_refuse(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			u32 answer);
bool mgpu_devcmd_fence_waits(const struct mgpu_vgpu *vgpu);
bool mgpu_devcmd_mem_waits(const struct mgpu_devcmd *dc);
void mgpu_devcmd_job_done(struct mgpu_job *job);
bool mgpu_devcmd_lighten(struct mgpu_devcmd *dc);
void mgpu_devcmd_end(struct mgpu_devcmd *dc);
void mgpu_devcmd_stop(struct mgpu_vgpu *vgpu);
void mgpu_devcmd_init(struct mgpu_devcmd *dc, struct mgpu_vgpu *vgpu);
void *mgpu_devcmd_msg(struct mgpu_devcmd *dc, u32 type, size_t len);
void mgpu_devcmd_submit(struct mgpu_devcmd *dc);
void mgpu_devcmd_free(struct mgpu_devcmd *dc);
u32 mgpu_devcmd_exec(struct mgpu_device *mdev, void *buf, size_t len);
void mgpu_devcmd_forget(struct mgpu_device *mdev, u32 type, u32 ctx, u32 res);
void mgpu_devres_release(struct mgpu_resource *res);
void mgpu_devres_release_all(struct mgpu_vgpu *vgpu);
void mgpu_devmem_release(struct mgpu_mem *mem);
void mgpu_devctx_release_all(struct mgpu_vgpu *vgpu);

/* readback.c: pictures from the device's memory */
void mgpu_readback_init(struct mgpu_vgpu *vgpu);
void mgpu_readback_update(struct mgpu_vgpu *vgpu);
void mgpu_readback_done(struct mgpu_devcmd *dc);
void mgpu_readback_quiesce(struct mgpu_vgpu *vgpu);
void mgpu_readback_stop(struct mgpu_vgpu *vgpu);

/* guest_dma.c: memory as the device sees it */
int mgpu_dma_map(struct mgpu_dma *dma, struct page **pages, u32 nr,
		 struct device *dev);
void mgpu_dma_unmap(struct mgpu_dma *dma);
u32 mgpu_dma_entries(const struct mgpu_dma *dma,
		     const struct mgpu_mem_chunk *chunks, u32 nr_chunks, u64 len,
		     struct virtio_gpu_mem_entry *entries, u32 max);

/* cmd.c: a checked command against the vGPU's state */
u32 mgpu_cmd_run(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane, void *resp,
		 size_t *resp_len, enum mgpu_cmd_next *next);
bool mgpu_cmd_offered(const struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);

/* context.c: compute contexts */
u32 mgpu_context_create(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_context_destroy(struct mgpu_vgpu *vgpu, u32 id);
u32 mgpu_context_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_context_detach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_context_submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane);
void mgpu_context_end_all(struct mgpu_vgpu *vgpu);
void mgpu_work_free_all(struct mgpu_vgpu *vgpu);
void mgpu_work_free(struct mgpu_vgpu *vgpu, struct mgpu_work *work);
int mgpu_context_step(struct mgpu_job *job);
void mgpu_context_sample(struct mgpu_job *job, u64 engine_ns,
			 u64 engine_cycles);
bool mgpu_context_sample_due(const struct mgpu_job *job, u64 engine_ns);
u64 mgpu_context_save(struct mgpu_job *job);
void mgpu_context_taken(struct mgpu_job *job);
bool mgpu_context_left(struct mgpu_job *job, u64 now);
void mgpu_context_job_done(struct mgpu_job *job);
bool mgpu_context_unpark(struct mgpu_sched *sched, u64 now);
void mgpu_context_watch(struct mgpu_sched *sched, u64 now);
int mgpu_context_preempt(struct mgpu_vgpu *vgpu, u32 id, u32 keep,
			 enum mgpu_preempt_method method, bool hold,
			 const char **why);
int mgpu_context_resume(struct mgpu_vgpu *vgpu, u32 id, bool first);

/**
 * struct mgpu_context_info - what is told of a context; names as in netlink
 */
struct mgpu_context_info {
	u32 id;
	char name[MGPU_CMD_NAME_LEN];
	enum mgpu_ctx_state state;
	u32 op;			/* 0: no job */
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

int mgpu_context_info(struct mgpu_vgpu *vgpu, unsigned long from, bool exact,
		      struct mgpu_context_info *info);

#define MGPU_MAX_RESP	(sizeof(struct virtio_gpu_resp_capset) + MGPU_MAX_CAPSET)

/* resource.c */
struct mgpu_resource *mgpu_resource_find(struct mgpu_vgpu *vgpu, u32 id);
struct mgpu_resource *mgpu_resource_new(struct mgpu_vgpu *vgpu, u32 id,
					u64 size, u32 *err);
u32 mgpu_resource_add(struct mgpu_resource *res);
u32 mgpu_resource_create_2d(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_resource_create_blob(struct mgpu_vgpu *vgpu,
			      const struct mgpu_cmd *cmd);
u32 mgpu_resource_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
u32 mgpu_resource_detach(struct mgpu_vgpu *vgpu, u32 id);
u32 mgpu_resource_unref(struct mgpu_vgpu *vgpu, u32 id);
void mgpu_resource_get(struct mgpu_resource *res);
void mgpu_resource_put(struct mgpu_resource *res);
bool mgpu_resource_put_unless_last(struct mgpu_resource *res);
void mgpu_resource_release_all(struct mgpu_vgpu *vgpu);

/* screen.c: scanout, cursor, display buffer */
void mgpu_screen_init(struct mgpu_vgpu *vgpu);
void mgpu_screen_reset(struct mgpu_vgpu *vgpu);
void mgpu_screen_release(struct mgpu_vgpu *vgpu);
int mgpu_screen_alloc(struct mgpu_vgpu *vgpu);
size_t mgpu_screen_size(const struct mgpu_vgpu *vgpu);
int mgpu_screen_mmap(struct mgpu_vgpu *vgpu, struct vm_area_struct *vma);
ssize_t mgpu_screen_read(struct mgpu_vgpu *vgpu, char __user *buf, size_t len,
			 u64 off);
int mgpu_screen_query(struct mgpu_vgpu *vgpu,
		      struct vfio_device_gfx_plane_info *plane);
u32 mgpu_screen_set(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
void mgpu_screen_forget(struct mgpu_vgpu *vgpu,
			const struct mgpu_resource *res);
u32 mgpu_screen_cursor(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);

/* draw.c: what a 2D job does to bytes; for back ends that run jobs on CPUs */
void mgpu_screen_update(struct mgpu_vgpu *vgpu);
bool mgpu_screen_damage(const struct mgpu_screen *s, struct mgpu_rect *r);
void mgpu_screen_show(struct mgpu_screen *s, const struct mgpu_rect *r,
		      const u32 *pixels);
int mgpu_job_step(struct mgpu_job *job);

/* edid.c */
void mgpu_edid(u8 *edid, u32 width, u32 height, u32 serial);

/* sched.c */
void mgpu_sched_init(struct mgpu_device *mdev);
void mgpu_sched_exit(struct mgpu_device *mdev);
void mgpu_sched_attach(struct mgpu_vgpu *vgpu);
void mgpu_sched_detach(struct mgpu_vgpu *vgpu);
void mgpu_sched_submit(struct mgpu_job *job);
void mgpu_sched_enqueue(struct mgpu_job *job, bool first, u64 now);
void mgpu_sched_dequeue(struct mgpu_job *job, u64 now);
void mgpu_sched_first(struct mgpu_job *job, u64 now);
void mgpu_sched_slots(struct mgpu_device *mdev, u32 slots);
void mgpu_hist_add(struct mgpu_hist *h, u64 ns);
void mgpu_sched_cancel(struct mgpu_vgpu *vgpu);
void mgpu_sched_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set);
void mgpu_sched_use(struct mgpu_device *mdev,
		    const struct mgpu_policy_ops *policy, void *data);
const struct mgpu_policy_ops *mgpu_policy_find(const char *name);

/* policy_bpf.c, policy_bpf_ops.c: policies in BPF; nothing where the kernel has no way for them */
int mgpu_policy_bpf_init(void);
void mgpu_policy_bpf_exit(void);
bool mgpu_policy_bpf_supported(void);
void mgpu_policy_bpf_evict(struct mgpu_device *mdev,
			   const struct mgpu_policy_exit *why);
void mgpu_policy_bpf_device_added(struct mgpu_device *mdev);
void mgpu_policy_bpf_device_gone(struct mgpu_device *mdev);

/* bpf.c */
int mgpu_bpf_init(void);
int mgpu_charge(u32 vgpu, u64 job, u64 ns);	/* kfunc */

/* netlink.c */
enum mgpu_event {
	MGPU_EVENT_ADDED,
	MGPU_EVENT_REMOVED,
	MGPU_EVENT_OPENED,
	MGPU_EVENT_CLOSED,
	MGPU_EVENT_HUNG,	/* a job of it took too long */
};

enum mgpu_dev_event {
	MGPU_DEV_EVENT_POLICY,		/* another policy is in force */
	MGPU_DEV_EVENT_POLICY_EXIT,	/* a BPF policy ended, see sched.exit */
};

int mgpu_netlink_init(void);
void mgpu_netlink_exit(void);
void mgpu_netlink_event(struct mgpu_vgpu *vgpu, enum mgpu_event event);
void mgpu_netlink_dev_event(struct mgpu_device *mdev,
			    enum mgpu_dev_event event);
void mgpu_netlink_ctx_event(struct mgpu_vgpu *vgpu, u32 ctx);

#endif /* MGPU_MGPU_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the core and a back end, which executes jobs.
 *
 * The core decodes and validates a guest's commands, paces frames and queues jobs
 * with the scheduler.  A back end owns one or more engines.  An engine takes a job
 * with mgpu_sched_next().  A job for which mgpu_job_msgs() returns messages goes to the
 * device, and mgpu_job_done() completes it.  Any other job is executed by a CPU:
 * mgpu_cpu_engine_begin(), then mgpu_cpu_engine_step() until it returns false.
 *
 * Back ends include this header, with gpu_work.h, and compat.h and pure.h of the core, and
 * no other.
 */
#ifndef MGPU_BACKEND_H
#define MGPU_BACKEND_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "gpu_work.h"

struct completion;
struct device;
struct dma_buf;
struct module;
struct page;
struct mgpu_device;
struct mgpu_devcmd;
struct mgpu_job;
struct mgpu_mem;
struct mgpu_msg;
struct mgpu_vgpu;
struct virtio_gpu_ctrl_hdr;

/**
 * struct mgpu_backend_ops - callbacks of a back end
 *
 * @name: the back end's name for user space.
 * @owner: the back end's module; the core holds a reference on it while a
 *	vGPU of the device is open.
 * @kick: work may be waiting.  Called with no lock of the core held, in any
 *	context, a timer's interrupt among them: must not sleep.  A back end
 *	answers by calling mgpu_sched_next() until it returns NULL.  A back end with
 *	several engines may wake one idle engine only: mgpu_sched_next() kicks again
 *	while another engine may have a job, too.
 * @job_timeout: optional; @job has been on an engine for too long: have the engine
 *	complete it, with any error.  Called once per job with sched->lock held: must
 *	not sleep, and must not call the core.  An engine that is a CPU does not need
 *	this: mgpu_cpu_engine_step() refuses the next tile.
 * @vgpu_open: optional; a VMM opened @vgpu.  May sleep.  Returning a negative
 *	errno refuses the open.
 * @vgpu_close: optional; the last job of @vgpu is done and none will come.
 * @exec: with capsets: have the device execute commands now, ahead of the scheduler's
 *	jobs, and wait until it has answered all.  May sleep; never called in an
 *	engine's thread.  Returns 0 if the device has answered, also with errors; -EIO
 *	if it was lost; -EALREADY if mgpu_msg_begin() says so for a message.
 */
struct mgpu_backend_ops {
	const char *name;
	struct module *owner;
	void (*kick)(struct mgpu_device *mdev);
	void (*job_timeout)(struct mgpu_job *job);
	int (*vgpu_open)(struct mgpu_vgpu *vgpu);
	void (*vgpu_close)(struct mgpu_vgpu *vgpu);
	int (*exec)(struct mgpu_device *mdev, struct mgpu_msg *msgs, u32 nr);
};

/**
 * struct mgpu_capset - a capability set of the device
 * @id: VIRTIO_GPU_CAPSET_*
 * @version: latest version of the set
 * @size: length of @data, up to MGPU_MAX_CAPSET bytes
 * @data: the set for guests
 */
struct mgpu_capset {
	u32 id;
	u32 version;
	u32 size;
	void *data;
};

#define MGPU_MAX_CAPSET		8192	/* bytes */

/**
 * struct mgpu_export - a resource's memory as a dma-buf
 * @width: width of the resource, pixels
 * @height: height of the resource, rows
 * @buf: set by the back end, with a reference for the core: at least @stride times @height
 *	bytes, one plane from offset 0, four bytes a pixel; stays NULL if the device cannot
 *	export the resource
 * @red_first: set with @buf: a pixel's bytes are red, green, blue; else blue, green, red.  The
 *	fourth is alpha.
 * @stride: set with @buf: bytes from one row to the next, at least four times @width
 * @modifier: set with @buf: DRM_FORMAT_MOD_*
 */
struct mgpu_export {
	u32 width;
	u32 height;
	struct dma_buf *buf;
	bool red_first;
	u32 stride;
	u64 modifier;
};

/**
 * struct mgpu_msg - a command for the device
 * @buf: the command in the device's own terms (VIRTIO 1.2, section 5.7.6), up to
 *	MGPU_MSG_MAX bytes in memory from kvmalloc
 * @len: length of @buf, bytes
 * @resp: buffer for the device's answer, from kmalloc
 * @resp_len: length of @resp, bytes
 * @fenced: the device answers when all work that the command began is finished
 * @zeros: the message attaches memory that is all zeros and shared by vGPUs: it must not be
 *	written
 * @host: RESOURCE_MAP_BLOB: set by the back end to the memory of the blob, from
 *	mgpu_host_pages_take(), which is the core's from then on
 * @export: the message makes a resource that the device exports before it answers; NULL for
 *	other messages
 * @turn: the message has no command: the back end answers it at the end of the turn; see
 *	mgpu_vgpu_turn()
 * @job: job whose last message this is; NULL for other messages
 * @vgpu: vGPU that a message without a job is for; private to the core
 * @begin: private to the core: command whose first message this is
 * @mem: private to the core: memory that a message without a job detaches
 * @node: for the back end
 * @done: for the back end: completed when the device has answered, or NULL
 * @error: for the back end: -EIO if the device lost the message, else 0
 * @sent_ns: for the back end: when the message was posted, CLOCK_MONOTONIC
 * @sent_cycles: for the back end: the same in TSC ticks
 * @engine_ns: for the back end: engine time of the message, nanoseconds
 */
struct mgpu_msg {
	void *buf;
	size_t len;
	struct virtio_gpu_ctrl_hdr *resp;
	size_t resp_len;
	bool fenced;
	bool zeros;
	bool turn;
	struct mgpu_host_pages *host;
	struct mgpu_export *export;
	struct mgpu_job *job;
	struct mgpu_vgpu *vgpu;
	struct mgpu_devcmd *begin;
	struct mgpu_mem *mem;
	struct list_head node;
	struct completion *done;
	int error;
	u64 sent_ns;
	u64 sent_cycles;
	u64 engine_ns;
};

#define MGPU_MSG_MAX		(0x100000 + 64)	/* bytes */
#define MGPU_JOB_MSGS		32	/* messages of a job, at most */

/**
 * struct mgpu_cpu_clock - clocks of a thread at a moment; private to the core
 * @ns: CLOCK_MONOTONIC, nanoseconds
 * @delay: time for which the thread was ready while another task ran, nanoseconds
 * @cycles: TSC ticks
 */
struct mgpu_cpu_clock {
	u64 ns;
	u64 delay;
	u64 cycles;
};

struct mgpu_cpu_engine;

/**
 * struct mgpu_engine_model - has an engine take the time of another GPU than the CPU
 * @price: return for how long the GPU is busy with @work, nanoseconds
 * @spend: return when the GPU would have worked for @ns more, nanoseconds.  May sleep.
 *
 * Both are called in the engine's thread.
 */
struct mgpu_engine_model {
	u64 (*price)(struct mgpu_cpu_engine *e,
		     const struct mgpu_gpu_work *work);
	void (*spend)(struct mgpu_cpu_engine *e, u64 ns);
};

/**
 * struct mgpu_cpu_engine - an engine that is a CPU
 * @model: NULL for an engine that takes the time of the CPU; set by the back end
 * @job: the job that the engine executes, NULL for none
 * @local: memory of MGPU_JOB_LOCAL_SIZE bytes, aligned to 64, that jobs use from
 *	mgpu_cpu_engine_begin() on; NULL if the back end has no @compute
 * @ns: engine time of the job since the engine took it, nanoseconds
 * @cycles: the same in TSC ticks
 * @cpu_ns: with @model: CPU time that tiles took, all jobs together, nanoseconds
 * @error: private to the core, like @from
 * @from: clocks from which engine time is measured next
 */
struct mgpu_cpu_engine {
	const struct mgpu_engine_model *model;
	struct mgpu_job *job;
	void *local;
	u64 ns;
	u64 cycles;
	u64 cpu_ns;
	int error;
	struct mgpu_cpu_clock from;
};

#define MGPU_JOB_LOCAL_SIZE	(256 << 10)	/* bytes */

/**
 * struct mgpu_device_caps - a back end's description of its hardware
 * @engines: number of jobs that the hardware can execute at once, at least 1
 * @engine_on_cpu: engine time is CPU time of the host too, so the CPU
 *	capacity left for VMs excludes it
 * @lazy_scanout: a FLUSH only records the changed rectangle; the pixels are copied
 *	when the VMM reads the screen, in the VMM's thread
 * @compute: the back end executes compute jobs: its CPU engines have local memory, and
 *	it has render types
 * @exports: with capsets: the device exports resources as dma-bufs, see struct mgpu_export
 * @max_vgpus: upper bound on vGPUs of all types together
 * @depth: upper bound on jobs in flight, of which @engines execute; 0 for @engines
 * @depth_default: jobs in flight until user space sets slots; 0 for @depth
 * @vgpu_depth: upper bound on jobs in flight of one vGPU; 0 for no other bound than @depth.
 *	Not together with @compute.
 * @capsets: capability sets of a device with virgl contexts; the back end then has
 *	render types and must have @exec; must stay valid.  Not together with @compute.
 * @nr_capsets: length of @capsets, 0 for none
 * @context_init: a context of a guest has a capset, and fences of rings of its own; with
 *	@capsets
 * @blobs: the device has blobs, and maps those in its memory for guests; with @capsets
 * @vgpu_nums: the back end executes each vGPU's commands apart from the others': numbers
 *	of contexts and resources are the guest's own, and a stream whose capset has another
 *	protocol than virgl's is not checked
 * @dma_dev: device that guest memory is mapped for; NULL if the device uses
 *	physical addresses
 */
struct mgpu_device_caps {
	u32 engines;
	u32 depth;
	u32 depth_default;
	u32 vgpu_depth;
	const struct mgpu_capset *capsets;
	u32 nr_capsets;
	bool context_init;
	bool blobs;
	bool vgpu_nums;
	struct device *dma_dev;
	bool engine_on_cpu;
	bool lazy_scanout;
	bool compute;
	bool exports;
	u32 max_vgpus;
};

struct mgpu_device *mgpu_device_register(struct device *parent,
					 const struct mgpu_backend_ops *ops,
					 const struct mgpu_device_caps *caps,
					 void *priv);
void mgpu_device_unregister(struct mgpu_device *mdev);
void mgpu_device_free(struct mgpu_device *mdev);
void *mgpu_device_priv(struct mgpu_device *mdev);
void mgpu_device_lost(struct mgpu_device *mdev, struct mgpu_job *culprit);
u32 mgpu_device_gen(const struct mgpu_device *mdev);
void mgpu_vgpu_lost(struct mgpu_vgpu *vgpu, struct mgpu_job *culprit);
struct mgpu_device *mgpu_vgpu_device(const struct mgpu_vgpu *vgpu);
u32 mgpu_vgpu_id(const struct mgpu_vgpu *vgpu);
u64 mgpu_vgpu_mem_limit(const struct mgpu_vgpu *vgpu);
u64 mgpu_vgpu_mem_used(const struct mgpu_vgpu *vgpu);
u64 mgpu_vgpu_engine_ns(const struct mgpu_vgpu *vgpu);
const guid_t *mgpu_vgpu_uuid(const struct mgpu_vgpu *vgpu);
int mgpu_vgpu_turn(struct mgpu_vgpu *vgpu);

bool mgpu_capset_mask(struct mgpu_capset *capset, bool blobs);
struct mgpu_host_pages *mgpu_host_pages_take(unsigned long addr, u32 nr, u32 cache);
void mgpu_host_pages_put(struct mgpu_host_pages *hp);
int mgpu_msg_begin(struct mgpu_msg *msg);
void mgpu_msg_unbegin(struct mgpu_msg *msg);
void mgpu_msg_account(struct mgpu_msg *msg, u64 ns);

struct mgpu_job *mgpu_sched_next(struct mgpu_device *mdev);
struct mgpu_msg *mgpu_job_msgs(struct mgpu_job *job, u32 *nr);
u32 mgpu_job_vgpu(const struct mgpu_job *job);
struct mgpu_device *mgpu_job_device(const struct mgpu_job *job);
bool mgpu_job_must_end(const struct mgpu_job *job);
bool mgpu_job_expired(const struct mgpu_job *job);
bool mgpu_job_yield(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles);
void mgpu_job_done(struct mgpu_job *job, int error, u64 engine_ns,
		   u64 engine_cycles);

void mgpu_cpu_engine_begin(struct mgpu_cpu_engine *e, struct mgpu_job *job);
bool mgpu_cpu_engine_step(struct mgpu_cpu_engine *e);
void mgpu_cpu_engine_resume(struct mgpu_cpu_engine *e);

#endif /* MGPU_BACKEND_H */

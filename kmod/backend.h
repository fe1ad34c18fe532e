/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the core and a back end: who runs jobs.
 *
 * The core decodes and validates what a guest submits, paces it and queues it
 * with the scheduler.  A back end owns one or more engines; it takes jobs with
 * mgpu_sched_next(), runs them and hands each back with mgpu_job_done().  One
 * that can stop in the middle of a job asks mgpu_job_yield() now and then.
 */
#ifndef MGPU_BACKEND_H
#define MGPU_BACKEND_H

#include <linux/types.h>

struct device;
struct module;
struct mgpu_device;
struct mgpu_job;
struct mgpu_msg;
struct mgpu_vgpu;

/**
 * enum mgpu_job_kind - what a job does
 * @MGPU_JOB_FLUSH: show a rectangle of a resource on the scanout
 * @MGPU_JOB_TRANSFER: copy a rectangle from guest memory to a 2D resource
 * @MGPU_JOB_CURSOR: redraw the scanout where the cursor was and is
 * @MGPU_JOB_COMPUTE: a context's share of a compute job, see compute.h; comes
 *	only to a back end whose caps say that it computes
 * @MGPU_JOB_DEVICE: virtio-gpu commands for the device, see struct mgpu_devcmd;
 *	comes only to a back end whose caps have capsets
 */
enum mgpu_job_kind {
	MGPU_JOB_FLUSH = 1,
	MGPU_JOB_TRANSFER,
	MGPU_JOB_CURSOR,
	MGPU_JOB_COMPUTE,
	MGPU_JOB_DEVICE,
};

/**
 * struct mgpu_backend_ops - callbacks of a back end
 *
 * @name: what user space sees as the back end's name.
 * @owner: the back end's module; the core holds a reference on it while a
 *	vGPU of the device is open.
 * @kick: work may be waiting.  Called with no lock of the core held, in any
 *	context, a timer's interrupt among them: must not sleep.  A back end
 *	answers by calling mgpu_sched_next() until it returns NULL.
 * @job_timeout: optional; @job, which is on an engine, has been there for too
 *	long: see that the engine gives it back, with whatever error.  Called once
 *	per job with the scheduler's lock held: must not sleep, and must not call
 *	back.  A back end that runs tiles needs none: mgpu_job_step() refuses the
 *	next one.
 * @vgpu_open: optional; a VMM opened @vgpu.  May sleep.  Returning a negative
 *	errno refuses the open.
 * @vgpu_close: optional; the last job of @vgpu is done and none will come.
 * @exec: with capsets: have the device carry out commands now, ahead of what the
 *	scheduler has, and wait until it has answered all.  May sleep; not called by
 *	who runs jobs.  0 when it has, whatever it said; -EIO when it was lost.
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
 * @version: the latest one
 * @size: bytes, up to MGPU_MAX_CAPSET
 * @data: what guests get
 */
struct mgpu_capset {
	u32 id;
	u32 version;
	u32 size;
	void *data;
};

#define MGPU_MAX_CAPSET		8192	/* bytes */

/**
 * struct mgpu_device_caps - what a back end says of its hardware
 * @engines: number of jobs it can run at once, at least 1
 * @engine_on_cpu: engine time is CPU time of the host too, so the CPU
 *	capacity left for VMs excludes it
 * @lazy_scanout: a FLUSH only notes what changed; the copy is made when the
 *	VMM looks at the screen, in its own time
 * @compute: it runs compute jobs: calls mgpu_job_begin() for each job that it
 *	takes, and has render types
 * @max_vgpus: upper bound on vGPUs of all types together
 * @depth: jobs that may be with the device at once, of which it runs @engines;
 *	0 for as many as that
 * @depth_default: how many it is until somebody sets slots; 0 for @depth
 * @capsets: virgl contexts that the device has itself; then it has render types
 *	and @exec; must stay valid.  Not together with @compute.
 * @nr_capsets: how many, 0 for none
 * @dma_dev: whom guest memory is mapped for; NULL when the device uses physical
 *	addresses
 */
struct mgpu_device_caps {
	u32 engines;
	u32 depth;
	u32 depth_default;
	const struct mgpu_capset *capsets;
	u32 nr_capsets;
	struct device *dma_dev;
	bool engine_on_cpu;
	bool lazy_scanout;
	bool compute;
	u32 max_vgpus;
};

struct mgpu_device *mgpu_device_register(struct device *parent,
					 const struct mgpu_backend_ops *ops,
					 const struct mgpu_device_caps *caps,
					 void *priv);
void mgpu_device_unregister(struct mgpu_device *mdev);
void mgpu_device_free(struct mgpu_device *mdev);
void *mgpu_device_priv(struct mgpu_device *mdev);
void mgpu_device_lost(struct mgpu_device *mdev);
u32 mgpu_device_gen(const struct mgpu_device *mdev);

bool mgpu_capset_mask(struct mgpu_capset *capset);
int mgpu_devcmd_begin(struct mgpu_msg *msg);

struct mgpu_job *mgpu_sched_next(struct mgpu_device *mdev);
int mgpu_job_begin(struct mgpu_job *job, void *local);
bool mgpu_job_yield(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles);
void mgpu_job_done(struct mgpu_job *job, int error, u64 engine_ns,
		   u64 engine_cycles);

#endif /* MGPU_BACKEND_H */

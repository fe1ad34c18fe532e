/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Devices, vGPUs and their settings: definitions that the directories of kmod/ share.
 * The headers of a directory have the definitions of that directory.
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
 *   unmappings_lock	mutex; threads that unmap guest memory.  VFIO holds locks of
 *			its own when dma_unmap() takes it.
 *   context->merge	mutex; results that the shards of a work share.
 *   readback.lock	mutex; the module's context and resource on the GPU for
 *			reading a vGPU's screen.
 *   vgpu->turns.lock	mutex; the submission of a turn.
 *   vgpu->hostmem.lock	mutex; the BAR with memory of the device, and what the VMM has mapped
 *			of it.  Faults of the VMM take it, under mmap_lock.
 *   host_pages.lock	mutex; what of a driver's memory the VMM has mapped.  MMU notifiers
 *			take it, in reclaim among others: nothing allocates under it.
 *   vgpu->screen.lock	mutex; the display buffer.  Engines only try to take it.
 *   sched->lock		spinlock; the run queue and every entity's and job's
 *			scheduling fields.
 *   vgpu->screen.state_lock spinlock; the state of scanout and cursor.
 *   vgpu->mem.lock	spinlock; the tree of guest memory in use.
 *   vgpu->irq_lock	spinlock; eventfds, interrupt state and display events.
 *
 * ring_lock is held by the thread that runs the ring; see gpu/ring.c.
 */
#ifndef MGPU_MGPU_H
#define MGPU_MGPU_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mdev.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/vfio.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <uapi/linux/mgpu.h>

#include "backend.h"
#include "gpu/hostmem.h"
#include "gpu/ring.h"
#include "gpu/screen.h"
#include "sched/hangs.h"
#include "sched/sched.h"
#include "sched/throttle.h"
#include "sched/turn.h"
#include "vfio/device.h"
#include "vfio/guest_mem.h"
#include "vfio/irq.h"
#include "vfio/transport.h"
#include "vfio/worker.h"
#include "virgl/clear.h"
#include "virgl/devnums.h"

/**
 * struct mgpu_type_desc - the properties of a vGPU type
 * @name: name in sysfs, which is appended to the parent driver's name
 * @pretty: name for display
 * @weight: initial scheduling weight
 * @mem_limit: bytes of resources that a vGPU may hold
 * @max_resources: number of resources, blobs too, that a vGPU may hold
 * @max_width: width of the largest mode, pixels
 * @max_height: height of the largest mode, rows
 * @max_instances: number of vGPUs of the type that may exist on a parent
 * @render: guests may create contexts; only on devices with contexts
 */
struct mgpu_type_desc {
	const char *name;
	const char *pretty;
	u32 weight;
	u64 mem_limit;
	u32 max_resources;
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

/* ---- devices ---- */

/**
 * struct mgpu_device - a GPU that is shared
 * @node: in mgpu_devices, mgpu_registry_lock
 * @id: ID of the device for user space, from 1
 * @name: name of @dev
 * @dev: mdev parent
 * @ops: callbacks of the back end
 * @caps: the back end's description of its hardware
 * @priv: private data of the back end
 * @vgpus: vGPUs of the device, mgpu_registry_lock
 * @nr_vgpus: length of @vgpus, mgpu_registry_lock
 * @types: vGPU types
 * @mtypes: the same for the mdev core
 * @parent: for the mdev core
 * @sched: scheduler
 * @gen: generation of the hardware, from 1; a reset starts the next one, in which the
 *	hardware has no contexts and resources of the previous one
 * @res_nums: the device's numbers of resources
 * @ctx_nums: the device's numbers of contexts
 * @zeros: memory that new resources on the device are filled from
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
	struct mgpu_devnums res_nums;
	struct mgpu_devnums ctx_nums;
	struct mgpu_zeros zeros;
};

/* Return the upper bound on jobs in flight. */
static inline u32 mgpu_max_slots(const struct mgpu_device *mdev)
{
	return max(mdev->caps.engines, mdev->caps.depth);
}

/* ---- counters ---- */

/**
 * struct mgpu_stats - counters since the vGPU was created
 *
 * Names are those of the netlink attributes.  Readers need no lock.
 */
struct mgpu_stats {
	atomic64_t frames;		/* frames shown */
	atomic64_t jobs;		/* jobs done */
	atomic64_t job_errors;		/* jobs done with an error */
	atomic64_t bytes;		/* bytes moved by jobs */
	atomic64_t engine_ns;		/* engine time that the back end measured */
	atomic64_t engine_cycles;	/* the same in TSC ticks */
	atomic64_t charged_bpf_ns;	/* engine time that mgpu_charge() charged */
	atomic64_t charged_self_ns;	/* engine time that the module charged */
	atomic64_t throttled_ns;	/* time for which frames were held back */
	atomic64_t throttled;		/* number of frames held back */
	atomic64_t limited_ns;		/* time waited while out of engine time */
	atomic64_t limited;		/* number of such waits */
	atomic64_t queue_ns;		/* time that jobs waited for an engine */
	atomic64_t preempted;		/* jobs preempted between two tiles */
	atomic64_t timeouts;		/* jobs that took too long */
	atomic64_t hangs;		/* the same, and resets of the GPU for its jobs */
	atomic64_t lost;		/* jobs that the GPU had when it was reset */
	atomic64_t commands;		/* virtio-gpu commands */
	atomic64_t command_errors;	/* commands answered with an error */
	atomic64_t doorbells;		/* queue notifications by the guest */
	atomic64_t interrupts;		/* interrupts sent to the guest */
	atomic64_t resets;		/* resets of the virtio device */
};

/**
 * struct mgpu_hist - a histogram of times
 * @count: bucket 0 counts times below 2 us, bucket i times from 2^i us to below
 *	2^(i + 1) us, the last bucket all longer times
 */
struct mgpu_hist {
	atomic64_t count[MGPU_HIST_BUCKETS];
};

/**
 * struct mgpu_hists - a vGPU's histograms, allocated when it is first opened
 * @interval: time from frame to frame
 * @latency: time from the command in the ring to its answer
 */
struct mgpu_hists {
	struct mgpu_hist interval;
	struct mgpu_hist latency;
};

/* ---- vGPUs ---- */

/**
 * struct mgpu_bound - bound of a vGPU, which two parties set
 * @limit: the operator's; 0 for none
 * @target: a controller's; 0 for none
 * @limit_by: command name of the process that set @limit, "" while there is none
 * @target_by: likewise for @target
 */
struct mgpu_bound {
	u32 limit;
	u32 target;
	char limit_by[TASK_COMM_LEN];
	char target_by[TASK_COMM_LEN];
};

/* Return the stricter one; 0 for none. */
static inline u32 mgpu_bound_in_force(const struct mgpu_bound *b)
{
	return min_not_zero(b->limit, b->target);
}

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
	bool needs_reset;		/* set under ring_lock or lock, cleared by reset */
	struct mgpu_vq_regs vq_regs[MGPU_NR_VQS];
	spinlock_t irq_lock;		/* irq, and the three below it */
	struct mgpu_irq irq;
	u8 config_generation;
	u32 events_read;
	u32 events_new;			/* events_read that the guest has not read */

	/* ring: ring_lock, unless a comment names another lock */
	struct mutex ring_lock;
	bool ring_pending;		/* no lock; the ring has to run; see ring.c */
	bool live;			/* DRIVER_OK and not in reset or closing */
	struct mgpu_lane lane[MGPU_NR_VQS];
	struct mgpu_cmdbufs cmdbufs;
	void *resp;			/* answers with data: MGPU_MAX_RESP bytes */
	struct mgpu_throttle throttle;
	struct hrtimer hold_timer;
	struct xarray resources;
	atomic_t nr_resources;		/* not freed; only the lock's holder adds */
	struct xarray bad_contexts;	/* refused, since a job of theirs hung */
	u32 nr_bad_contexts;
	struct xarray contexts;		/* looked up under sched->lock, too */
	u32 nr_contexts;
	struct llist_head works_done;	/* no lock: engines add */
	struct list_head works_ending;	/* done, not answered, oldest first */
	struct xarray devctxs;
	u32 nr_devctxs;
	struct list_head devcmds;	/* not answered, in the ring's order */
	struct list_head devcmds_kept;	/* for the commands to come */
	u32 nr_devcmds_kept;
	u32 slices;			/* of streams, in devcmds */
	u64 devcmd_ended_ns;		/* when the device ended a command last; READ_ONCE */
	struct llist_head devcmds_done;	/* no lock: engines add */
	atomic_t losses;		/* see mgpu_vgpu_lost() */
	u32 dev_gen;			/* mgpu_vgpu_gen() when DRIVER_OK was set */

	struct mgpu_worker worker;
	struct mgpu_guest_mem mem;
	struct mgpu_screen screen;
	struct mgpu_hostmem hostmem;

	/* scheduler: sched->lock */
	struct mgpu_sched_entity entity;
	struct list_head jobs;		/* waiting, in the order of service */
	u32 running;			/* jobs in flight */
	struct mgpu_hangs hangs;
	bool quarantine;		/* jobs end with an error; read with READ_ONCE */
	bool quarantine_changed;	/* user space has not been told */
	u64 last_frame_ns;		/* engine thread; when a frame was complete */
	struct mgpu_turns turns;	/* have their own lock */

	/*
	 * Settings: written under mgpu_registry_lock, read with READ_ONCE; @fps and @gpu:
	 * under sched->lock.
	 */
	struct mgpu_bound fps;		/* millihertz; entity has the stricter */
	struct mgpu_bound gpu;		/* ppm of engine time */
	u32 gpu_period;			/* microseconds */
	u32 gpu_burst;			/* microseconds */
	u32 fps_floor;			/* millihertz, 0 = none; for controllers */
	u32 mode;			/* MGPU_MODE(), 0 = the type's largest */

	/* events of contexts: no lock; see mgpu_netlink_ctx_event() */
	struct delayed_work ctx_event;
	u32 ctx_event_id;		/* context that the next event is about */
	u64 ctx_event_ns;		/* when the last event was made */

	bool last_charge_bpf;
	atomic64_t owed_ns;		/* see charge_owed() */
	struct mgpu_stats stats;
	struct mgpu_hists *hists;	/* NULL until the first open */
};

#define to_mgpu_vgpu(v) container_of(v, struct mgpu_vgpu, vdev)

/* registry.c, main.c */
extern struct mutex mgpu_registry_lock;
extern struct list_head mgpu_devices;		/* mgpu_registry_lock */
extern struct xarray mgpu_vgpus;		/* by id; RCU for readers */
extern struct workqueue_struct *mgpu_wq;	/* watchdogs; no work of a guest */

/*
 * Settings of a vGPU.  Netlink checks and applies a batch under one
 * mgpu_registry_lock section, so that it changes all or nothing.  An attribute in sysfs
 * is one setting.  Ranges are those of include/uapi/linux/mgpu.h.
 */
#define MGPU_SET_WEIGHT		BIT(0)
#define MGPU_SET_FPS_LIMIT	BIT(1)
#define MGPU_SET_GPU_LIMIT	BIT(2)
#define MGPU_SET_GPU_PERIOD	BIT(3)
#define MGPU_SET_GPU_BURST	BIT(4)
#define MGPU_SET_MODE		BIT(5)
#define MGPU_SET_QUARANTINE	BIT(6)
#define MGPU_SET_FPS_TARGET	BIT(7)
#define MGPU_SET_GPU_TARGET	BIT(8)
#define MGPU_SET_FPS_FLOOR	BIT(9)

/* Width and height in one word, so that a reader never sees half of a change. */
#define MGPU_MODE(width, height)	((width) << 16 | (height))

struct mgpu_settings {
	u32 mask;
	const char *by;		/* command name of the process that orders them */
	u32 weight;
	u32 fps_limit;		/* of the operator, millihertz, 0 = none */
	u32 fps_target;		/* of a controller, millihertz, 0 = none */
	u32 fps_floor;		/* promise for a controller to keep, millihertz, 0 = none */
	u32 gpu_limit;		/* of the operator, ppm of engine time, 0 = none */
	u32 gpu_target;		/* of a controller, ppm of engine time, 0 = none */
	u32 gpu_period;		/* microseconds */
	u32 gpu_burst;		/* microseconds of engine time */
	u32 mode;		/* MGPU_MODE(), 0 = the type's largest */
	u32 quarantine;		/* 1 to begin it, 0 to lift it */
};

#define MGPU_DEV_SET_POLICY		BIT(0)
#define MGPU_DEV_SET_JOB_TIMEOUT	BIT(1)
#define MGPU_DEV_SET_SLOTS		BIT(2)
#define MGPU_DEV_SET_HANG_LIMIT		BIT(3)

struct mgpu_dev_settings {
	u32 mask;
	const struct mgpu_policy_ops *policy;	/* a built-in policy */
	u32 job_timeout_ms;
	u32 slots;
	u32 hang_limit;		/* 0 = no quarantine */
};

struct mgpu_vgpu *mgpu_vgpu_find(u32 id);
struct mgpu_vgpu *mgpu_vgpu_find_uuid(const guid_t *uuid);
struct mgpu_device *mgpu_device_find(u32 id);
void mgpu_vgpu_apply(struct mgpu_vgpu *vgpu, const struct mgpu_settings *set);
u32 mgpu_vgpu_gen(const struct mgpu_vgpu *vgpu);
void mgpu_vgpu_mode(const struct mgpu_vgpu *vgpu, u32 *width, u32 *height);
void mgpu_device_apply(struct mgpu_device *mdev,
		       const struct mgpu_dev_settings *set);

/* settings.c: ranges of settings */
u32 *mgpu_setting_value(struct mgpu_settings *set, u32 bit);
const char *mgpu_settings_check(const struct mgpu_settings *set, u32 *bad);
const char *mgpu_mode_check(const struct mgpu_type_desc *d, u32 width, u32 height, u32 *mode,
			    bool *is_width);

/* sysfs.c: settings as attributes */
extern const struct attribute_group *mgpu_vgpu_groups[];

/* mdev.c: types, vGPU creation and removal */
int mgpu_mdev_init(void);
void mgpu_mdev_exit(void);
int mgpu_mdev_register(struct mgpu_device *mdev);
void mgpu_mdev_unregister(struct mgpu_device *mdev);

/* vgpu.c: the life cycle of a vGPU */
void mgpu_vgpu_init(struct mgpu_vgpu *vgpu);
void mgpu_vgpu_exit(struct mgpu_vgpu *vgpu);
int mgpu_vgpu_open(struct mgpu_vgpu *vgpu);
void mgpu_vgpu_close(struct mgpu_vgpu *vgpu);
void mgpu_vgpu_reset(struct mgpu_vgpu *vgpu);
void mgpu_hist_add(struct mgpu_hist *h, u64 ns);

/* Return whether the vGPU's contexts and resources are on the device. */
static inline bool mgpu_on_device(const struct mgpu_vgpu *vgpu)
{
	return vgpu->type->desc->render && vgpu->mdev->caps.nr_capsets;
}

/* bpf.c */
int mgpu_bpf_init(void);
int mgpu_charge(u32 vgpu, u64 job, u64 ns);	/* kfunc */

/* netlink.c */
enum mgpu_event {
	MGPU_EVENT_ADDED,
	MGPU_EVENT_REMOVED,
	MGPU_EVENT_OPENED,
	MGPU_EVENT_CLOSED,
	MGPU_EVENT_HUNG,	/* the watchdog ended a job of the vGPU */
	MGPU_EVENT_QUARANTINE,	/* a quarantine began or was lifted */
};

enum mgpu_dev_event {
	MGPU_DEV_EVENT_POLICY,		/* another scheduling policy is in force */
	MGPU_DEV_EVENT_POLICY_EXIT,	/* a BPF policy ended, see sched.exit */
};

int mgpu_netlink_init(void);
void mgpu_netlink_exit(void);
void mgpu_netlink_init_vgpu(struct mgpu_vgpu *vgpu);
void mgpu_netlink_stop(struct mgpu_vgpu *vgpu);
void mgpu_netlink_event(struct mgpu_vgpu *vgpu, enum mgpu_event event);
void mgpu_netlink_dev_event(struct mgpu_device *mdev,
			    enum mgpu_dev_event event);
void mgpu_netlink_ctx_event(struct mgpu_vgpu *vgpu, u32 ctx);

#endif /* MGPU_MGPU_H */

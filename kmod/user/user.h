/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The back end whose engines are processes: what its files share.
 */
#ifndef MGPU_USER_H
#define MGPU_USER_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <uapi/linux/mgpu_user.h>

#include "backend.h"

struct platform_device;

/* Commands in a channel; a power of 2. */
#define USER_ENTRIES	256
/* Room for commands: that of the longest message, several times. */
#define USER_ARENA	(4U << 20)
/* Each memory has a range of offsets of its own, larger than any type's memory. */
#define USER_MEM_SHIFT	36
#define USER_MEM_IDS	0x100000U
#define USER_NO_MEM	U32_MAX

/**
 * struct user_cmd - command in a channel
 * @msg: message that it was made of; NULL for a notice
 * @arena_end: end of its room in the arena
 * @mem: ID of memory that the command attaches or detaches; USER_NO_MEM for none
 * @attaches: it attaches @mem
 * @sent_cycles: when it was put there, TSC ticks
 * @done: answered, or taken if it is a notice
 */
struct user_cmd {
	struct mgpu_msg *msg;
	u32 arena_end;
	u32 mem;
	bool attaches;
	u64 sent_cycles;
	bool done;
};

/**
 * struct user_channel - the way to a worker and back
 * @ref: references: of the worker's file, and of the vGPU
 * @user: device
 * @vgpu: vGPU; valid until ->vgpu_close()
 * @id: its ID
 * @uuid: its UUID
 * @mem_limit: size of the resources that it may have, bytes
 * @lock: protects the fields down to @cmds; the order of messages is that of the lock's
 *	sections
 * @dead: no command is put any more
 * @ring: rings, shared with the worker
 * @arena: commands, which the worker can read
 * @tail: number of commands that were put
 * @oldest: number of commands before the oldest that is not done
 * @answered: number of answers that were taken
 * @arena_tail: number of bytes of the arena that were given out, modulo 2^32
 * @arena_head: number of those that are free again
 * @cmds: commands from @oldest to @tail
 * @busy_ns: when the last job of the vGPU was done, CLOCK_MONOTONIC; user->lock
 * @taking: serialises the worker's threads that bring answers
 * @killing: serialises user_channel_kill(); whoever holds it has the vGPU as long as the
 *	channel is not dead
 * @wait: the worker, which waits for commands
 * @room: threads that wait for room
 * @mem_lock: protects @mems and what is mapped of it
 * @mems: struct user_mem by ID
 * @next_mem: where the search for an ID begins
 * @mem_of_res: ID of the memory that each resource has, by the commands that were put;
 *	changed under @lock or @mem_lock
 * @dump: page in place of memory that was released
 * @mapping: of the worker's file
 */
struct user_channel {
	struct kref ref;
	struct mgpu_user *user;
	struct mgpu_vgpu *vgpu;
	u32 id;
	guid_t uuid;
	u64 mem_limit;
	spinlock_t lock;	/* see above */
	bool dead;
	struct mgpu_user_ring *ring;
	u8 *arena;
	u32 tail;
	u32 oldest;
	u32 answered;
	u32 arena_tail;
	u32 arena_head;
	struct user_cmd cmds[USER_ENTRIES];
	u64 busy_ns;
	struct mutex taking;	/* see above */
	struct mutex killing;	/* see above */
	wait_queue_head_t wait;
	wait_queue_head_t room;
	struct mutex mem_lock;	/* see above */
	struct xarray mems;
	u32 next_mem;
	struct xarray mem_of_res;
	struct page *dump;
	struct address_space mapping;
};

/**
 * struct user_vgpu - vGPU that a VMM has open
 * @vgpu: the core's vGPU
 * @id: its ID
 * @vmm: the VMM's main thread, whose cgroups a worker may join
 * @channel: channel to its worker; NULL while it has none; user->lock
 */
struct user_vgpu {
	struct mgpu_vgpu *vgpu;
	u32 id;
	struct task_struct *vmm;
	struct user_channel *channel;
};

/**
 * struct user_event - event that the supervisor has not read
 * @node: in user->events
 * @event: the event
 */
struct user_event {
	struct list_head node;
	struct mgpu_user_event event;
};

/**
 * struct mgpu_user - a device
 * @id: N of /dev/mgpu-userN
 * @engines: jobs that workers execute at once
 * @ref: references: of the table of devices, and of open files
 * @name: of @misc
 * @misc: character device
 * @pdev: the device in sysfs; the driver core unbinds it before the driver of @gpu
 * @gpu: PCI function that is the parent of the mediated devices, holds a reference; NULL if
 *	@pdev is
 * @mdev: the core's device
 * @task: the engine's thread: it hands jobs out, and executes those of 2D guests
 * @kicks: count of wakeups of the engine
 * @wait: the engine
 * @expired: a job has been with a worker for too long
 * @held: last messages of jobs that wait for room in their workers' channels
 * @cpu: the engine's thread as an engine for jobs that the CPU executes
 * @lock: protects the fields below
 * @vgpus: struct user_vgpu by ID
 * @workers: open files with a channel
 * @gone: the device has ended: no vGPU gets a worker
 * @supervisor: file that reads events, or NULL
 * @events: events
 * @nr_events: length of @events
 * @overflow: events were dropped
 * @readers: threads that wait for events
 * @attached: threads that wait for a worker, or for the end of all
 * @busy_ns: when the last command of all vGPUs was done, CLOCK_MONOTONIC
 * @capsets: capability sets
 * @nr_capsets: length of @capsets
 */
struct mgpu_user {
	u32 id;
	u32 engines;
	struct kref ref;
	char name[24];
	struct miscdevice misc;
	struct platform_device *pdev;
	struct device *gpu;
	struct mgpu_device *mdev;
	struct task_struct *task;
	atomic_t kicks;
	wait_queue_head_t wait;
	bool expired;
	struct list_head held;
	struct mgpu_cpu_engine cpu;
	spinlock_t lock;	/* see above */
	struct xarray vgpus;
	u32 workers;
	bool gone;
	struct file *supervisor;
	struct list_head events;
	u32 nr_events;
	bool overflow;
	wait_queue_head_t readers;
	wait_queue_head_t attached;
	u64 busy_ns;
	struct mgpu_capset capsets[MGPU_USER_MAX_CAPSETS];
	u32 nr_capsets;
};

/* user.c */
void user_wake(struct mgpu_user *user);
void user_channel_gone(struct user_channel *ch);

/* channel.c */
struct user_channel *user_channel_new(struct mgpu_user *user, u32 id);
void user_channel_of(struct user_channel *ch, struct mgpu_vgpu *vgpu);
void user_channel_put(struct user_channel *ch);
int user_channel_post(struct user_channel *ch, struct mgpu_msg *msgs, u32 nr);
int user_channel_exec(struct user_channel *ch, struct mgpu_msg *msg);
int user_channel_enter(struct user_channel *ch, struct mgpu_user_enter *enter);
int user_channel_export(struct user_channel *ch, const struct mgpu_user_export *e);
void user_channel_kill(struct user_channel *ch, struct mgpu_job *culprit);
struct mgpu_job *user_channel_expired(struct user_channel *ch);
u32 user_channel_ready(struct user_channel *ch);
int user_channel_map(struct user_channel *ch, const struct mgpu_user_map *m);
int user_channel_turn(struct user_channel *ch);
int user_channel_mmap(struct user_channel *ch, struct vm_area_struct *vma);
u32 user_ring_len(void);

/* mem.c */
struct user_mem;
struct user_mem *user_mem_make(const struct mgpu_msg *msg);
int user_mem_reserve(struct user_channel *ch, struct user_mem *mem);
void user_mem_publish(struct user_channel *ch, struct user_mem *mem);
void user_mem_drop(struct user_channel *ch, struct user_mem *mem);
u32 user_mem_id(const struct user_mem *mem);
u32 user_mem_detach(struct user_channel *ch, u32 res);
bool user_mem_attaches(const struct mgpu_msg *msg);
u64 user_mem_rewrite(const struct user_mem *mem, void *cmd, u64 *len);
void user_mem_revoke(struct user_channel *ch, u32 id);
void user_mem_revoke_all(struct user_channel *ch);
int user_mem_mmap(struct user_channel *ch, struct vm_area_struct *vma);

#endif /* MGPU_USER_H */

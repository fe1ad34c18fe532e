// SPDX-License-Identifier: GPL-2.0-only
/*
 * Back end whose engines are processes, for GPUs whose drivers are in user space.
 *
 * A device has a thread, the engine, that takes jobs from the scheduler and puts their
 * messages into the channel of the vGPU's worker; workers bring the answers themselves.
 * Jobs of guests without contexts are executed by the CPU, in the engine's thread.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/virtio_gpu.h>

#include "compat.h"
#include "user/user.h"

#define ENGINE_NICE	(-10)
#define FEED_MAX	(2 * MGPU_USER_MAX_ENGINES)	/* jobs taken in one round */
#define ATTACH_MS	30000	/* wait for the first worker */
#define WORKERS_MS	10000	/* wait for the end of the workers */
#define MAX_EVENTS	8192	/* that the supervisor has not read */

static DEFINE_MUTEX(devices_lock);	/* protects devices */
static DEFINE_XARRAY_ALLOC(devices);

static void user_free(struct kref *ref)
{
	struct mgpu_user *user = container_of(ref, struct mgpu_user, ref);
	u32 i;

	for (i = 0; i < user->nr_capsets; i++)
		kfree(user->capsets[i].data);
	put_device(user->gpu);
	xa_destroy(&user->vgpus);
	kfree(user);
}

static void user_put(struct mgpu_user *user)
{
	kref_put(&user->ref, user_free);
}

void user_wake(struct mgpu_user *user)
{
	atomic_inc(&user->kicks);
	wake_up(&user->wait);
}

/* ---- vGPUs and their channels ---- */

/* Return the vGPU's channel, with a reference; NULL if it has no worker. */
static struct user_channel *channel_get(struct mgpu_user *user, u32 id)
{
	struct user_channel *ch = NULL;
	struct user_vgpu *uv;

	spin_lock(&user->lock);
	uv = xa_load(&user->vgpus, id);
	if (uv && uv->channel) {
		ch = uv->channel;
		kref_get(&ch->ref);
	}
	spin_unlock(&user->lock);
	return ch;
}

/* Queue an event; without a supervisor there is nobody to tell. */
static void add_event(struct mgpu_user *user, u32 type, u32 vgpu, const guid_t *uuid)
{
	struct user_event *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (e) {
		e->event.type = type;
		e->event.vgpu = vgpu;
		snprintf(e->event.uuid, sizeof(e->event.uuid), "%pUl", uuid);
	}
	spin_lock(&user->lock);
	if (!user->supervisor) {
		spin_unlock(&user->lock);
		kfree(e);
		return;
	}
	if (e && user->nr_events < MAX_EVENTS) {
		list_add_tail(&e->node, &user->events);
		user->nr_events++;
		e = NULL;
	} else {
		user->overflow = true;
	}
	spin_unlock(&user->lock);
	kfree(e);
	wake_up_all(&user->readers);
}

/* A channel is dead: its vGPU needs another worker, if it is open. */
void user_channel_gone(struct user_channel *ch)
{
	struct mgpu_user *user = ch->user;
	struct user_vgpu *uv;
	bool told = false;

	spin_lock(&user->lock);
	uv = xa_load(&user->vgpus, ch->id);
	if (uv && uv->channel == ch) {
		uv->channel = NULL;
		told = true;
	}
	spin_unlock(&user->lock);
	if (!told)
		return;
	add_event(user, MGPU_USER_EVENT_LOST, ch->id, &ch->uuid);
	user_channel_put(ch);
	user_wake(user);
}

static void user_vgpu_close(struct mgpu_vgpu *vgpu)
{
	struct mgpu_user *user = mgpu_device_priv(mgpu_vgpu_device(vgpu));
	u32 id = mgpu_vgpu_id(vgpu);
	struct user_channel *ch;
	struct user_vgpu *uv;

	/* From here on no worker is attached, and user_channel_gone() finds nothing. */
	spin_lock(&user->lock);
	uv = xa_erase(&user->vgpus, id);
	ch = uv->channel;
	uv->channel = NULL;
	spin_unlock(&user->lock);
	/* Before the worker ends: else a supervisor takes its end for a loss. */
	add_event(user, MGPU_USER_EVENT_CLOSED, id, mgpu_vgpu_uuid(vgpu));
	if (ch) {
		user_channel_kill(ch, NULL);
		user_channel_put(ch);
	}
	put_task_struct(uv->vmm);
	kfree(uv);
}

/*
 * Wait for the first worker, so that the guest finds a GPU that works.  Later ones may come
 * when they can: the guest has a lost GPU until then.
 */
static int wait_for_worker(struct mgpu_user *user, struct user_vgpu *uv)
{
	long left = wait_event_killable_timeout(user->attached,
						READ_ONCE(uv->channel) ||
						!READ_ONCE(user->supervisor),
						msecs_to_jiffies(ATTACH_MS));

	if (left < 0)
		return left;
	if (READ_ONCE(uv->channel))
		return 0;
	/* A VMM may try again and again. */
	dev_err_ratelimited(&user->pdev->dev, "vGPU %u has no worker: %s\n", uv->id,
			    left ? "start a supervisor, which reads events of the device" :
			    "the supervisor attached none in 30 s; see its log");
	return left ? -ENODEV : -ETIMEDOUT;
}

static int user_vgpu_open(struct mgpu_vgpu *vgpu)
{
	struct mgpu_user *user = mgpu_device_priv(mgpu_vgpu_device(vgpu));
	struct user_vgpu *uv = kzalloc(sizeof(*uv), GFP_KERNEL);
	int ret;

	if (!uv)
		return -ENOMEM;
	uv->vgpu = vgpu;
	uv->id = mgpu_vgpu_id(vgpu);
	uv->vmm = get_task_struct(current->group_leader);
	ret = xa_err(xa_store(&user->vgpus, uv->id, uv, GFP_KERNEL));
	if (ret) {
		put_task_struct(uv->vmm);
		kfree(uv);
		return ret;
	}
	add_event(user, MGPU_USER_EVENT_OPENED, uv->id, mgpu_vgpu_uuid(vgpu));
	ret = wait_for_worker(user, uv);
	if (ret)
		user_vgpu_close(vgpu);
	return ret;
}

/* ---- the engine ---- */

/* Put a job into its worker's channel; return false if that has no room for it. */
static bool user_post(struct mgpu_user *user, struct mgpu_job *job)
{
	struct user_channel *ch;
	struct mgpu_msg *msgs;
	int ret = -EIO;
	u32 nr;

	msgs = mgpu_job_msgs(job, &nr);
	ch = channel_get(user, mgpu_job_vgpu(job));
	if (ch) {
		ret = user_channel_post(ch, msgs, nr);
		user_channel_put(ch);
	}
	if (ret == -EAGAIN)
		return false;
	if (ret)
		mgpu_job_done(job, ret, 0, 0);
	return true;
}

/* Return whether a job of the vGPU is held; with @before, one ahead of that. */
static bool is_held(const struct mgpu_user *user, u32 vgpu, const struct mgpu_msg *before)
{
	const struct mgpu_msg *msg;

	list_for_each_entry(msg, &user->held, node) {
		if (msg == before)
			return false;
		if (mgpu_job_vgpu(msg->job) == vgpu)
			return true;
	}
	return false;
}

/* Hand a job out, or hold it until its worker's channel has room. */
static void user_start(struct mgpu_user *user, struct mgpu_job *job)
{
	struct mgpu_msg *msgs;
	u32 nr;

	msgs = mgpu_job_msgs(job, &nr);
	if (!msgs)
		mgpu_cpu_engine_begin(&user->cpu, job);
	else if (is_held(user, mgpu_job_vgpu(job), NULL) || !user_post(user, job))
		list_add_tail(&msgs[nr - 1].node, &user->held);
}

/* Hand out the held jobs that have room now; those of one vGPU keep their order. */
static void user_start_held(struct mgpu_user *user)
{
	struct mgpu_msg *msg, *next;

	list_for_each_entry_safe(msg, next, &user->held, node) {
		if (is_held(user, mgpu_job_vgpu(msg->job), msg))
			continue;
		list_del_init(&msg->node);
		if (!user_post(user, msg->job))
			list_add_tail(&msg->node, &next->node);
	}
}

/*
 * Take jobs from the scheduler while workers and the CPU have room for more.  Jobs fail at
 * once while a vGPU has no worker: FEED_MAX bounds how many are taken.
 */
static void user_feed(struct mgpu_user *user)
{
	struct mgpu_job *job;
	u32 nr;

	user_start_held(user);
	for (nr = 0; !user->cpu.job; nr++) {
		if (nr == FEED_MAX) {
			user_wake(user);
			return;
		}
		job = mgpu_sched_next(user->mdev);
		if (!job)
			return;
		user_start(user, job);
	}
}

/* Take the channels from workers that have had a job for too long. */
static void user_watch(struct mgpu_user *user)
{
	struct user_channel *ch;
	struct user_vgpu *uv;
	struct mgpu_job *job;
	struct mgpu_msg *msg;
	unsigned long id = 0;

	if (!xchg(&user->expired, false))
		return;
	list_for_each_entry(msg, &user->held, node) {
		if (!mgpu_job_expired(msg->job))
			continue;
		ch = channel_get(user, mgpu_job_vgpu(msg->job));
		if (ch) {
			user_channel_kill(ch, msg->job);
			user_channel_put(ch);
		}
	}
	for (;;) {
		ch = NULL;
		spin_lock(&user->lock);
		xa_for_each_start(&user->vgpus, id, uv, id + 1) {
			if (!uv->channel)
				continue;
			ch = uv->channel;
			kref_get(&ch->ref);
			break;
		}
		spin_unlock(&user->lock);
		if (!ch)
			return;
		job = user_channel_expired(ch);
		if (job)
			user_channel_kill(ch, job);
		user_channel_put(ch);
	}
}

static int user_engine(void *data)
{
	struct mgpu_user *user = data;
	int seen;

	set_user_nice(current, ENGINE_NICE);
	for (;;) {
		seen = atomic_read(&user->kicks);
		user_watch(user);
		user_feed(user);
		cond_resched();
		if (user->cpu.job) {
			/* The job is not charged for the time since its last tile. */
			mgpu_cpu_engine_resume(&user->cpu);
			mgpu_cpu_engine_step(&user->cpu);
			continue;
		}
		if (kthread_should_stop() && list_empty(&user->held))
			return 0;
		wait_event_interruptible(user->wait,
					 atomic_read(&user->kicks) != seen ||
					 kthread_should_stop());
	}
}

static void user_kick(struct mgpu_device *mdev)
{
	user_wake(mgpu_device_priv(mdev));
}

/* Called with sched->lock held: the engine finds the job. */
static void user_job_timeout(struct mgpu_job *job)
{
	struct mgpu_user *user = mgpu_device_priv(mgpu_job_device(job));

	WRITE_ONCE(user->expired, true);
	user_wake(user);
}

static int user_exec(struct mgpu_device *mdev, struct mgpu_msg *msgs, u32 nr)
{
	struct mgpu_user *user = mgpu_device_priv(mdev);
	struct user_channel *ch;
	int ret = 0;
	u32 i;

	for (i = 0; i < nr && !ret; i++) {
		ch = channel_get(user, mgpu_vgpu_id(msgs[i].vgpu));
		if (!ch)
			return -EIO;
		ret = user_channel_exec(ch, &msgs[i]);
		user_channel_put(ch);
	}
	return ret;
}

static const struct mgpu_backend_ops user_ops = {
	.name = "user",
	.owner = THIS_MODULE,
	.kick = user_kick,
	.job_timeout = user_job_timeout,
	.vgpu_open = user_vgpu_open,
	.vgpu_close = user_vgpu_close,
	.exec = user_exec,
};

/* ---- /dev/mgpu-userN ---- */

/**
 * struct user_file - open file of a device
 * @user: the device
 * @lock: protects @channel against a second MGPU_USER_ATTACH
 * @channel: the channel that the file has become; NULL for none
 */
struct user_file {
	struct mgpu_user *user;
	struct mutex lock;	/* see above */
	struct user_channel *channel;
};

static struct user_channel *file_channel(const struct user_file *uf)
{
	/* Pairs with the release in user_attach(). */
	return smp_load_acquire(&uf->channel);
}

static int user_open(struct inode *inode, struct file *file)
{
	struct mgpu_user *user = container_of(file->private_data, struct mgpu_user, misc);
	struct user_file *uf = kzalloc(sizeof(*uf), GFP_KERNEL_ACCOUNT);

	if (!uf)
		return -ENOMEM;
	/* misc_open() holds the lock under which the device is removed. */
	kref_get(&user->ref);
	uf->user = user;
	mutex_init(&uf->lock);
	file->private_data = uf;
	return stream_open(inode, file);
}

static void drop_events(struct mgpu_user *user)
{
	struct user_event *e, *next;
	LIST_HEAD(events);

	spin_lock(&user->lock);
	list_splice_init(&user->events, &events);
	user->nr_events = 0;
	user->overflow = false;
	user->supervisor = NULL;
	spin_unlock(&user->lock);
	wake_up_all(&user->attached);
	list_for_each_entry_safe(e, next, &events, node)
		kfree(e);
}

static int user_release(struct inode *inode, struct file *file)
{
	struct user_file *uf = file->private_data;
	struct mgpu_user *user = uf->user;

	if (uf->channel) {
		user_channel_kill(uf->channel, NULL);
		user_channel_put(uf->channel);
		spin_lock(&user->lock);
		user->workers--;
		spin_unlock(&user->lock);
		wake_up_all(&user->attached);
	}
	if (READ_ONCE(user->supervisor) == file)
		drop_events(user);
	kfree(uf);
	user_put(user);
	return 0;
}

/* Move the caller into the cgroups of a vGPU's VMM. */
static int join_cgroups(struct mgpu_user *user, u32 vgpu)
{
	struct task_struct *vmm = NULL;
	struct user_vgpu *uv;
	int ret;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* Other threads would stay where they are. */
	if (!thread_group_empty(current))
		return -EINVAL;
	spin_lock(&user->lock);
	uv = xa_load(&user->vgpus, vgpu);
	if (uv)
		vmm = get_task_struct(uv->vmm);
	spin_unlock(&user->lock);
	if (!vmm)
		return -ENODEV;
	ret = cgroup_attach_task_all(vmm, current);
	put_task_struct(vmm);
	return ret;
}

static int user_attach(struct file *file, struct mgpu_user_attach *a)
{
	struct user_file *uf = file->private_data;
	struct mgpu_user *user = uf->user;
	struct user_channel *ch;
	struct user_vgpu *uv;
	int ret;

	if (a->flags & ~MGPU_USER_ATTACH_CGROUPS)
		return -EINVAL;
	if (uf->channel || READ_ONCE(user->supervisor) == file)
		return -EBUSY;
	if (a->flags & MGPU_USER_ATTACH_CGROUPS) {
		ret = join_cgroups(user, a->vgpu);
		if (ret)
			return ret;
	}
	ch = user_channel_new(user, a->vgpu);
	if (!ch)
		return -ENOMEM;
	spin_lock(&user->lock);
	uv = xa_load(&user->vgpus, a->vgpu);
	if (!uv || user->gone)
		ret = -ENODEV;
	else if (uv->channel)
		ret = -EBUSY;
	else
		ret = 0;
	if (!ret) {
		user_channel_of(ch, uv->vgpu);
		a->mem_limit = mgpu_vgpu_mem_limit(uv->vgpu);
		uv->channel = ch;
		user->workers++;
		kref_get(&ch->ref);
	}
	spin_unlock(&user->lock);
	if (ret) {
		user_channel_put(ch);
		return ret;
	}
	/* Mappings of this file are found, and unmapped, by the channel. */
	ch->mapping.host = file_inode(file);
	ch->mapping.a_ops = &empty_aops;
	file->f_mapping = &ch->mapping;
	/* Pairs with file_channel(). */
	smp_store_release(&uf->channel, ch);
	a->entries = USER_ENTRIES;
	a->ring_len = user_ring_len();
	a->arena_len = USER_ARENA;
	wake_up_all(&user->attached);
	user_wake(user);
	return 0;
}

/*
 * Copy a structure whose first field is its size from user space.  Bytes that this
 * module does not know must be 0; those that user space does not have are.
 */
static int get_struct(void *to, size_t size, const void __user *from)
{
	u32 given;

	if (get_user(given, (const u32 __user *)from))
		return -EFAULT;
	if (given < sizeof(u32) || given > PAGE_SIZE)
		return -EINVAL;
	return copy_struct_from_user(to, size, from, given);
}

/* Copy a structure back, as much as user space has. */
static int put_struct(void __user *to, const void *from, size_t size)
{
	u32 given = *(const u32 *)from;

	return copy_to_user(to, from, min_t(size_t, given, size)) ? -EFAULT : 0;
}

static long user_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct user_file *uf = file->private_data;
	void __user *p = (void __user *)arg;
	struct mgpu_user_attach attach;
	struct mgpu_user_export export;
	struct mgpu_user_enter enter;
	struct mgpu_user_turn turn;
	struct mgpu_user_map map;
	struct user_channel *ch;
	int ret;

	switch (cmd) {
	case MGPU_USER_ATTACH:
		ret = get_struct(&attach, sizeof(attach), p);
		if (ret)
			return ret;
		mutex_lock(&uf->lock);
		ret = user_attach(file, &attach);
		mutex_unlock(&uf->lock);
		return ret ?: put_struct(p, &attach, sizeof(attach));
	case MGPU_USER_ENTER:
		ret = get_struct(&enter, sizeof(enter), p);
		if (ret)
			return ret;
		ch = file_channel(uf);
		if (!ch)
			return -ENOTCONN;
		if (enter.flags & ~MGPU_USER_WAIT)
			return -EINVAL;
		ret = user_channel_enter(ch, &enter);
		return ret ?: put_struct(p, &enter, sizeof(enter));
	case MGPU_USER_MAP:
		ret = get_struct(&map, sizeof(map), p);
		if (ret)
			return ret;
		ch = file_channel(uf);
		return ch ? user_channel_map(ch, &map) : -ENOTCONN;
	case MGPU_USER_EXPORT:
		ret = get_struct(&export, sizeof(export), p);
		if (ret)
			return ret;
		ch = file_channel(uf);
		return ch ? user_channel_export(ch, &export) : -ENOTCONN;
	case MGPU_USER_TURN:
		ret = get_struct(&turn, sizeof(turn), p);
		if (ret)
			return ret;
		ch = file_channel(uf);
		if (!ch)
			return -ENOTCONN;
		return turn.flags ? -EINVAL : user_channel_turn(ch);
	default:
		return -ENOTTY;
	}
}

/* Become the supervisor: queue an event of each vGPU without a worker. */
static int supervise(struct user_file *uf, struct file *file)
{
	struct mgpu_user *user = uf->user;
	struct user_vgpu *uv;
	unsigned long id;
	bool is;

	spin_lock(&user->lock);
	is = user->supervisor == file;
	if (!is && user->supervisor) {
		spin_unlock(&user->lock);
		return -EBUSY;
	}
	user->supervisor = file;
	if (!is) {
		struct user_event *e;

		xa_for_each(&user->vgpus, id, uv) {
			if (uv->channel)
				continue;
			e = kzalloc(sizeof(*e), GFP_ATOMIC);
			if (!e) {
				user->overflow = true;
				break;
			}
			e->event.type = MGPU_USER_EVENT_OPENED;
			e->event.vgpu = uv->id;
			snprintf(e->event.uuid, sizeof(e->event.uuid), "%pUl",
				 mgpu_vgpu_uuid(uv->vgpu));
			list_add_tail(&e->node, &user->events);
			user->nr_events++;
		}
	}
	spin_unlock(&user->lock);
	return 0;
}

static bool has_events(struct mgpu_user *user)
{
	return READ_ONCE(user->nr_events) || READ_ONCE(user->overflow) ||
	       READ_ONCE(user->gone);
}

static ssize_t user_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct user_file *uf = file->private_data;
	struct mgpu_user *user = uf->user;
	struct user_event *e;
	int ret;

	if (file_channel(uf))
		return -EINVAL;
	if (len < sizeof(e->event))
		return -EINVAL;
	ret = supervise(uf, file);
	if (ret)
		return ret;
	for (;;) {
		spin_lock(&user->lock);
		e = list_first_entry_or_null(&user->events, struct user_event, node);
		if (e) {
			list_del(&e->node);
			user->nr_events--;
		}
		spin_unlock(&user->lock);
		if (e)
			break;
		if (READ_ONCE(user->overflow))
			return -EOVERFLOW;	/* events are lost: open the file anew */
		if (READ_ONCE(user->gone))
			return 0;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(user->readers, has_events(user));
		if (ret)
			return ret;
	}
	ret = copy_to_user(buf, &e->event, sizeof(e->event)) ? -EFAULT : 0;
	kfree(e);
	return ret ?: sizeof(e->event);
}

static __poll_t user_poll(struct file *file, poll_table *wait)
{
	struct user_file *uf = file->private_data;
	struct user_channel *ch = file_channel(uf);
	u32 ready;

	if (ch) {
		poll_wait(file, &ch->wait, wait);
		ready = user_channel_ready(ch);
		return ready == U32_MAX ? EPOLLHUP | EPOLLERR : ready ? EPOLLIN : 0;
	}
	poll_wait(file, &uf->user->readers, wait);
	return has_events(uf->user) ? EPOLLIN : 0;
}

static int user_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct user_file *uf = file->private_data;
	struct user_channel *ch = file_channel(uf);

	return ch ? user_channel_mmap(ch, vma) : -ENOTCONN;
}

#ifdef CONFIG_PROC_FS
/* Show the vGPU of a worker as Documentation/gpu/drm-usage-stats.rst has DRM clients. */
static void user_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct user_file *uf = file->private_data;
	struct user_channel *ch = file_channel(uf);
	struct mgpu_user *user = uf->user;
	u64 engine_ns = 0, mem = 0;
	struct user_vgpu *uv;
	bool served = false;

	if (!ch)
		return;
	spin_lock(&user->lock);
	uv = xa_load(&user->vgpus, ch->id);
	if (uv && uv->channel == ch) {
		engine_ns = mgpu_vgpu_engine_ns(uv->vgpu);
		mem = mgpu_vgpu_mem_used(uv->vgpu);
		served = true;
	}
	spin_unlock(&user->lock);
	/* The vGPU has another worker now, or none. */
	if (!served)
		return;
	seq_printf(m, "drm-driver:\tmgpu\ndrm-client-id:\t%u\n", ch->id);
	seq_printf(m, "drm-engine-render:\t%llu ns\n", engine_ns);
	seq_printf(m, "drm-memory-vram:\t%llu KiB\n", DIV_ROUND_UP_ULL(mem, 1024));
}
#endif

static const struct file_operations user_fops = {
	.owner = THIS_MODULE,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = user_show_fdinfo,
#endif
	.open = user_open,
	.release = user_release,
	.read = user_read,
	.poll = user_poll,
	.unlocked_ioctl = user_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = user_mmap,
	.llseek = noop_llseek,
};

/* ---- /dev/mgpu-user-control ---- */

static int get_capset(struct mgpu_user *user, const struct mgpu_user_capset __user *from,
		      u32 flags)
{
	struct mgpu_capset *to = &user->capsets[user->nr_capsets];
	struct mgpu_user_capset c;
	void *data;

	if (copy_from_user(&c, from, sizeof(c)))
		return -EFAULT;
	if (!c.len || c.len > MGPU_USER_MAX_CAPSET || c.reserved ||
	    !c.id || c.id > VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK)
		return -EINVAL;
	data = memdup_user(u64_to_user_ptr(c.data), c.len);
	if (IS_ERR(data))
		return PTR_ERR(data);
	to->id = c.id;
	to->version = c.version;
	to->size = c.len;
	to->data = data;
	/* A worker may have other capsets than the module knows. */
	if (flags & MGPU_USER_CREATE_CONTEXT_INIT && c.id != VIRTIO_GPU_CAPSET_VIRGL &&
	    c.id != VIRTIO_GPU_CAPSET_VIRGL2) {
		user->nr_capsets++;
		return 0;
	}
	if (!mgpu_capset_mask(to, flags & MGPU_USER_CREATE_BLOB)) {
		kfree(data);
		to->data = NULL;
		return -EOPNOTSUPP;
	}
	user->nr_capsets++;
	return 0;
}

static bool create_ok(const struct mgpu_user_create *c)
{
	const u32 known = MGPU_USER_CREATE_CONTEXT_INIT | MGPU_USER_CREATE_BLOB |
			  MGPU_USER_CREATE_PCI | MGPU_USER_CREATE_EXPORT;
	bool pci = c->flags & MGPU_USER_CREATE_PCI;

	return !(c->flags & ~known) && c->vgpu_depth <= c->depth && c->engines &&
	       c->engines <= MGPU_USER_MAX_ENGINES && c->depth >= c->engines &&
	       c->depth <= MGPU_USER_MAX_ENGINES && c->max_vgpus &&
	       c->max_vgpus <= 4095 && c->nr_capsets &&
	       c->nr_capsets <= MGPU_USER_MAX_CAPSETS && !c->reserved &&
	       (pci || (!c->pci_domain && !c->pci_bus && !c->pci_devfn));
}

/* Find the GPU of a request; user->gpu stays NULL if the request names none. */
static int user_find_gpu(struct mgpu_user *user, const struct mgpu_user_create *c)
{
	struct pci_dev *pci;

	if (!(c->flags & MGPU_USER_CREATE_PCI))
		return 0;
	if (c->pci_domain > INT_MAX)
		return -ENODEV;
	pci = pci_get_domain_bus_and_slot(c->pci_domain, c->pci_bus, c->pci_devfn);
	if (!pci)
		return -ENODEV;
	user->gpu = &pci->dev;
	return 0;
}

/*
 * Have the driver core unbind the platform device before the GPU's driver.  It holds no lock
 * of the GPU while user_end() waits for VMMs: a notifier of the bus would be called with
 * the GPU's device lock and the lock of the notifiers held.
 */
static int user_follow_gpu(struct mgpu_user *user)
{
	struct device *gpu = user->gpu;
	int ret = 0;

	if (!gpu)
		return 0;
	/* An unbinding that has begun would find a link that it does not expect. */
	device_lock(gpu);
	if (!gpu->driver || gpu->links.status != DL_DEV_DRIVER_BOUND)
		ret = -ENODEV;
	else if (to_pci_driver(gpu->driver)->driver_managed_dma)
		ret = -EBUSY;	/* such as vfio-pci */
	else if (!device_link_add(&user->pdev->dev, gpu, DL_FLAG_AUTOREMOVE_CONSUMER))
		ret = -ENOMEM;
	device_unlock(gpu);
	/* From here on, unbinding the GPU waits for the lock of the platform device. */
	return ret;
}

/*
 * Wait until the workers have closed their files, as they do behind their last use of the GPU: a
 * driver may not be prepared to lose a GPU that is in use.  The wait has a limit, since a worker
 * may be unable to end within that driver.
 */
static void user_wait_for_workers(struct mgpu_user *user)
{
	if (user->gpu && !wait_event_timeout(user->attached, !READ_ONCE(user->workers),
					     msecs_to_jiffies(WORKERS_MS)))
		dev_warn(&user->pdev->dev, "%u workers use the GPU still, and lose it\n",
			 READ_ONCE(user->workers));
}

/*
 * End a device, once its VMMs have closed their vGPUs: the driver core unbinds the platform
 * device, which it does before it unbinds the GPU's driver.  The lock of the platform device
 * is held, and a thread that has devices_lock may wait for it.
 */
static void user_end(void *data)
{
	struct mgpu_user *user = data;

	misc_deregister(&user->misc);
	/* This waits for the VMMs; engine and workers must run meanwhile. */
	mgpu_device_unregister(user->mdev);
	kthread_stop(user->task);
	mgpu_device_free(user->mdev);
	spin_lock(&user->lock);
	WRITE_ONCE(user->gone, true);
	spin_unlock(&user->lock);
	wake_up_all(&user->readers);
	user_wait_for_workers(user);
}

/* Make what guests and workers need; the caller holds the lock of the platform device. */
static int user_begin(struct mgpu_user *user, const struct mgpu_user_create *c)
{
	const struct mgpu_device_caps caps = {
		.engines = c->engines,
		.depth = c->depth,
		.vgpu_depth = c->vgpu_depth,
		.lazy_scanout = true,
		.exports = c->flags & MGPU_USER_CREATE_EXPORT,
		.max_vgpus = c->max_vgpus,
		.capsets = user->capsets,
		.nr_capsets = user->nr_capsets,
		.context_init = c->flags & MGPU_USER_CREATE_CONTEXT_INIT,
		.blobs = c->flags & MGPU_USER_CREATE_BLOB,
		.vgpu_nums = true,
	};
	int ret;

	ret = user_follow_gpu(user);
	if (ret)
		return ret;
	user->task = kthread_create(user_engine, user, "mgpu_user/%u", user->id);
	if (IS_ERR(user->task))
		return PTR_ERR(user->task);
	user->mdev = mgpu_device_register(user->gpu ?: &user->pdev->dev, &user_ops, &caps, user);
	if (IS_ERR(user->mdev)) {
		ret = PTR_ERR(user->mdev);
		goto err_task;
	}
	wake_up_process(user->task);
	snprintf(user->name, sizeof(user->name), "mgpu-user%u", user->id);
	user->misc.minor = MISC_DYNAMIC_MINOR;
	user->misc.name = user->name;
	user->misc.fops = &user_fops;
	user->misc.parent = &user->pdev->dev;
	user->misc.mode = 0660;
	ret = misc_register(&user->misc);
	if (ret)
		goto err_device;
	return devm_add_action_or_reset(&user->pdev->dev, user_end, user);
err_device:
	mgpu_device_unregister(user->mdev);
	kthread_stop(user->task);
	mgpu_device_free(user->mdev);
	return ret;
err_task:
	kthread_stop(user->task);
	return ret;
}

/* Make the device in sysfs, and start it; it has a number. */
static int user_start_device(struct mgpu_user *user, const struct mgpu_user_create *c)
{
	int ret;

	user->pdev = platform_device_register_simple("mgpu_user", user->id, NULL, 0);
	if (IS_ERR(user->pdev))
		return PTR_ERR(user->pdev);
	device_lock(&user->pdev->dev);
	ret = user->pdev->dev.driver ? user_begin(user, c) : -ENOMEM;
	device_unlock(&user->pdev->dev);
	if (ret)
		platform_device_unregister(user->pdev);
	return ret;
}

/* Remove a device and give up its number. */
static void user_destroy(struct mgpu_user *user)
{
	lockdep_assert_held(&devices_lock);

	platform_device_unregister(user->pdev);
	xa_erase(&devices, user->id);
	user_put(user);
}

/*
 * Remove the devices that ended with the driver of their GPU, and that no supervisor has
 * open, which would remove its device by its number.
 */
static void user_reap(void)
{
	struct mgpu_user *user;
	unsigned long id;

	xa_for_each(&devices, id, user) {
		if (READ_ONCE(user->gone) && kref_read(&user->ref) == 1)
			user_destroy(user);
	}
}

static int user_create(struct mgpu_user_create *c)
{
	const struct mgpu_user_capset __user *capsets = u64_to_user_ptr(c->capsets);
	struct mgpu_user *user;
	int ret = 0;
	u32 i;

	if (!create_ok(c))
		return -EINVAL;
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return -ENOMEM;
	kref_init(&user->ref);
	init_waitqueue_head(&user->wait);
	init_waitqueue_head(&user->readers);
	init_waitqueue_head(&user->attached);
	spin_lock_init(&user->lock);
	xa_init(&user->vgpus);
	INIT_LIST_HEAD(&user->events);
	INIT_LIST_HEAD(&user->held);
	user->engines = c->engines;
	for (i = 0; i < c->nr_capsets && !ret; i++)
		ret = get_capset(user, &capsets[i], c->flags);
	if (!ret)
		ret = user_find_gpu(user, c);
	if (ret)
		goto err;
	user_reap();
	ret = xa_alloc(&devices, &user->id, NULL, XA_LIMIT(0, MGPU_USER_MAX_DEVICES - 1),
		       GFP_KERNEL);
	if (ret)
		goto err;
	ret = user_start_device(user, c);
	if (ret)
		goto err_id;
	xa_store(&devices, user->id, user, GFP_KERNEL);
	c->id = user->id;
	return 0;
err_id:
	xa_erase(&devices, user->id);
err:
	user_put(user);
	return ret;
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *p = (void __user *)arg;
	struct mgpu_user_destroy destroy;
	struct mgpu_user_create create;
	struct mgpu_user *user;
	int ret;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	switch (cmd) {
	case MGPU_USER_CREATE:
		ret = get_struct(&create, sizeof(create), p);
		if (ret)
			return ret;
		mutex_lock(&devices_lock);
		ret = user_create(&create);
		mutex_unlock(&devices_lock);
		return ret ?: put_struct(p, &create, sizeof(create));
	case MGPU_USER_DESTROY:
		ret = get_struct(&destroy, sizeof(destroy), p);
		if (ret)
			return ret;
		mutex_lock(&devices_lock);
		user = xa_load(&devices, destroy.id);
		if (user)
			user_destroy(user);
		mutex_unlock(&devices_lock);
		return user ? 0 : -ENODEV;
	default:
		return -ENOTTY;
	}
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice control = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "mgpu-user-control",
	.fops = &control_fops,
	.mode = 0600,
};

/* Types are named after the driver of their parent. */
static struct platform_driver user_driver = {
	.driver = {
		.name = "mgpu_user",
		.suppress_bind_attrs = true,
		.probe_type = PROBE_FORCE_SYNCHRONOUS,
	},
};

static int __init user_init(void)
{
	int ret;

	ret = platform_driver_register(&user_driver);
	if (ret)
		return ret;
	ret = misc_register(&control);
	if (ret)
		platform_driver_unregister(&user_driver);
	return ret;
}

static void __exit user_exit(void)
{
	struct mgpu_user *user;
	unsigned long id;

	misc_deregister(&control);
	mutex_lock(&devices_lock);
	xa_for_each(&devices, id, user)
		user_destroy(user);
	mutex_unlock(&devices_lock);
	xa_destroy(&devices);
	platform_driver_unregister(&user_driver);
}

module_init(user_init);
module_exit(user_exit);

MODULE_DESCRIPTION("Mediated GPU: back end in user space");
MODULE_AUTHOR("The mgpu developers");
MODULE_LICENSE("GPL");

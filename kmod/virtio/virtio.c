// SPDX-License-Identifier: GPL-2.0-only
/*
 * Back end on a physical virtio-gpu: true mediated passthrough.
 *
 * This is a virtio driver that is bound by hand, in place of the distribution's.
 * Jobs of guests with contexts come from the core as messages in the device's own
 * terms and go to its control queue.  Jobs of other guests are executed by the CPU,
 * in the same thread.
 *
 * That thread, the engine, takes jobs from the scheduler and answers from the
 * queue.  At most as many jobs are in the queue as the device has slots: a job there
 * cannot be taken back, so the number of slots bounds how long one VM waits for
 * another one's jobs.
 *
 * The device signals a fence only when it polls for finished work: QEMU does so every
 * 10 ms and at each notification.  So the engine notifies the device periodically
 * while fences are pending.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timex.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_ring.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "backend.h"
#include "compat.h"

#define MAX_DEPTH	64
#define ENGINE_NICE	(-10)
#define MAX_CAPSETS	8
#define SILENCE_MS	250	/* period of the check for a silent device */
#define ASK_MS		5000	/* timeout of an answer during setup */
#define FEED_MAX	(2 * MAX_DEPTH)	/* jobs taken before answers are read */
#define REMIND_US	20000	/* period of notifications without fences */

/* Pages of the longest message, which may begin inside of a page. */
#define SG_MAX		(MGPU_MSG_MAX / PAGE_SIZE + 2)

static unsigned int depth = 2;
module_param(depth, uint, 0444);
MODULE_PARM_DESC(depth, "Jobs in flight on the GPU until user space sets slots (1 to 64; default 2): a VM waits for at most so many jobs of other VMs");

static unsigned int max_vgpus = 64;
module_param(max_vgpus, uint, 0444);
MODULE_PARM_DESC(max_vgpus, "vGPUs of all types together (1 to 4095; default 64)");

static unsigned int poll_us = 500;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "Period of notifications to the GPU while fences are pending, microseconds (50 to 10000; default 500; 0: 20 ms, as without fences)");

/* Below the 5 s for which Linux guests wait for some answers. */
static unsigned int reset_ms = 4000;
module_param(reset_ms, uint, 0644);
MODULE_PARM_DESC(reset_ms, "Reset the GPU when it has not answered for so many milliseconds (1000 to 60000; default 4000)");

#ifdef MGPU_TEST
static unsigned int hang;
module_param(hang, uint, 0644);
MODULE_PARM_DESC(hang, "For tests, until the GPU is reset: 1: do not notify the GPU; 2: send it no message with a fence (default 0: neither)");
#else
static const unsigned int hang;
#endif

/**
 * struct mgpu_virtio - a GPU
 * @vdev: the virtio device
 * @mdev: the core's device
 * @task: the engine's thread
 * @wait: wait queue of the engine's thread
 * @kicks: count of wakeups of the engine
 * @lock: protects the fields from @vq to @looked_ns
 * @vq: control queue
 * @sg: scatterlist of the message that is being posted
 * @posted: messages in the queue, oldest first
 * @nr_fenced: number of messages in @posted with a fence
 * @dead: the device gets no messages any more
 * @safe: the device is dead, and does not access memory any more
 * @resets: woken when @safe is set
 * @stuck: the device must be reset
 * @next_fence: number of the next fence; numbers rise over all vGPUs, because QEMU
 *	compares them
 * @progress_ns: when the oldest message of @posted became the oldest, CLOCK_MONOTONIC;
 *	moved forward by the time for which the host stood still
 * @posted_ns: when a message was posted last, CLOCK_MONOTONIC
 * @polled_ns: when the engine last notified the device to poll for finished work,
 *	CLOCK_MONOTONIC
 * @looked_ns: when the engine last checked for a silent device, CLOCK_MONOTONIC
 * @changed: the device's configuration changed
 * @busy_ns: time up to which the device's time is accounted for, CLOCK_MONOTONIC
 * @busy_cycles: the same in TSC ticks
 * @exec_end_ns: when the device answered a message of ->exec() last, CLOCK_MONOTONIC
 * @exec_ns: time of such messages that is not a part of the next job's
 * @held: job that waits for room in the queue, or NULL
 * @cpu: the engine's thread as an engine for jobs that the CPU executes
 * @capsets: capability sets for guests
 * @nr_capsets: length of @capsets
 */
struct mgpu_virtio {
	struct virtio_device *vdev;
	struct mgpu_device *mdev;
	struct task_struct *task;
	wait_queue_head_t wait;
	atomic_t kicks;
	spinlock_t lock;	/* see above */
	struct virtqueue *vq;
	struct scatterlist sg[SG_MAX];
	struct list_head posted;
	u32 nr_fenced;
	bool dead;
	bool safe;
	wait_queue_head_t resets;
	bool stuck;
	u32 next_fence;
	u64 progress_ns;
	u64 posted_ns;
	u64 polled_ns;
	u64 looked_ns;
	bool changed;
	u64 busy_ns;
	u64 busy_cycles;
	u64 exec_end_ns;
	u64 exec_ns;
	struct mgpu_job *held;
	struct mgpu_cpu_engine cpu;
	struct mgpu_capset capsets[MAX_CAPSETS];
	u32 nr_capsets;
};

static void virtio_wake(struct mgpu_virtio *v)
{
	atomic_inc(&v->kicks);
	wake_up(&v->wait);
}

/* ---- the queue ---- */

static void virtio_answered(struct virtqueue *vq)
{
	virtio_wake(vq->vdev->priv);
}

/* Fill the scatterlist of a buffer from kvmalloc(). */
static void fill_sg(struct scatterlist *sg, void *buf, size_t len)
{
	size_t part;

	if (!is_vmalloc_addr(buf)) {
		sg_init_one(sg, buf, len);
		return;
	}
	sg_init_table(sg, DIV_ROUND_UP(offset_in_page(buf) + len, PAGE_SIZE));
	for (; len; sg++) {
		part = min_t(size_t, len, PAGE_SIZE - offset_in_page(buf));
		sg_set_page(sg, vmalloc_to_page(buf), part, offset_in_page(buf));
		buf += part;
		len -= part;
	}
}

/* For tests: return whether the device gets no notifications. */
static bool is_silenced(void)
{
	return READ_ONCE(hang) == 1;
}

/* For tests: return whether the device does not get this message. */
static bool is_kept(const struct mgpu_msg *msg)
{
	return READ_ONCE(hang) == 2 && msg->fenced;
}

/* For tests: the GPU is reset. */
static void stop_hanging(void)
{
#ifdef MGPU_TEST
	WRITE_ONCE(hang, 0);
#endif
}

static int virtio_add(struct mgpu_virtio *v, struct mgpu_msg *msg)
{
	struct scatterlist resp, *sgs[2] = { v->sg, &resp };
	struct virtio_gpu_ctrl_hdr *hdr = msg->buf;
	int ret;

	lockdep_assert_held(&v->lock);

	memset(msg->resp, 0, sizeof(*msg->resp));
	if (msg->fenced) {
		hdr->flags = cpu_to_le32(VIRTIO_GPU_FLAG_FENCE);
		hdr->fence_id = cpu_to_le64(v->next_fence);
	}
	fill_sg(v->sg, msg->buf, msg->len);
	sg_init_one(&resp, msg->resp, msg->resp_len);
	ret = is_kept(msg) ? 0 :
	      virtqueue_add_sgs(v->vq, sgs, 1, 1, msg, GFP_ATOMIC);
	if (ret)
		return ret;

	v->next_fence += msg->fenced;
	v->nr_fenced += msg->fenced;
	msg->error = 0;
	msg->sent_ns = ktime_get_ns();
	v->posted_ns = msg->sent_ns;
	if (list_empty(&v->posted))
		v->progress_ns = msg->sent_ns;
	list_add_tail(&msg->node, &v->posted);
	return 0;
}

/*
 * Return whether the fence numbers of 32 bits are used up.  They restart from 1 when
 * no fence is pending: to the host, a number signals all lower numbers.
 */
static bool out_of_fences(struct mgpu_virtio *v)
{
	if (v->next_fence <= U32_MAX - MGPU_JOB_MSGS)
		return false;
	if (v->nr_fenced)
		return true;
	v->next_fence = 1;
	return false;
}

/*
 * Put messages into the queue, all or none, and notify the device.  Return 0, -EAGAIN
 * if the queue has no room now, -EIO if the device is lost, -ENODEV if it is lost and
 * does not access memory any more, or an error of mgpu_msg_begin().
 */
static int virtio_post(struct mgpu_virtio *v, struct mgpu_msg *msgs, u32 nr)
{
	int ret = 0;
	u32 i;

	spin_lock(&v->lock);
	if (v->dead || v->stuck)
		ret = v->safe ? -ENODEV : -EIO;
	else if (v->vq->num_free < nr || out_of_fences(v))
		ret = -EAGAIN;
	else
		ret = mgpu_msg_begin(&msgs[0]);
	for (i = 0; i < nr && !ret; i++) {
		ret = virtio_add(v, &msgs[i]);
		if (ret && !i)
			mgpu_msg_unbegin(&msgs[0]);
		if (!ret || !i)
			continue;
		/* The messages before it cannot be taken back: reset the device. */
		v->stuck = true;
		ret = 0;
		msgs[i].error = -EIO;
		list_add_tail(&msgs[nr - 1].node, &v->posted);
		break;
	}
	if (!ret && !is_silenced())
		virtqueue_kick(v->vq);
	spin_unlock(&v->lock);
	return ret == -ENOSPC || ret == -ENOMEM ? -EAGAIN : ret;
}

/* Remove the next answered message from the queue and return it, or NULL. */
static struct mgpu_msg *virtio_reap(struct mgpu_virtio *v)
{
	struct mgpu_msg *msg;
	unsigned int len;

	spin_lock(&v->lock);
	msg = v->dead ? NULL : virtqueue_get_buf(v->vq, &len);
	if (msg) {
		/*
		 * Only the oldest message counts as progress: others pass a
		 * message whose fence is never signalled.
		 */
		if (list_is_first(&msg->node, &v->posted))
			v->progress_ns = ktime_get_ns();
		list_del_init(&msg->node);
		v->nr_fenced -= msg->fenced;
	}
	spin_unlock(&v->lock);
	return msg;
}

/* ---- jobs ---- */

/*
 * Compute the engine time of a job that ends now: since the device got the job, or
 * since the previous job ended, whichever is later.  So the device's busy time is
 * accounted for once, at any depth.
 */
static void virtio_account(struct mgpu_virtio *v, const struct mgpu_msg *msg, u64 *ns,
			   u64 *cycles)
{
	u64 now = ktime_get_ns(), ticks = get_cycles();
	u64 from = max(msg->sent_ns, v->busy_ns), span;

	*ns = now - min(from, now);
	/* Messages of ->exec() between the jobs' are charged on their own. */
	if (msg->sent_ns < v->exec_end_ns)
		*ns -= min(*ns, v->exec_ns);
	v->exec_ns = 0;
	span = now - v->busy_ns;
	/* Ticks and nanoseconds run at the same rate meanwhile. */
	*cycles = v->busy_ns && span ?
		mul_u64_u64_div_u64(ticks - v->busy_cycles, *ns, span) : 0;
	v->busy_ns = now;
	v->busy_cycles = ticks;
}

/*
 * Compute the time for which a message of ->exec() kept the device: since the device got
 * it, or since it answered the one before.
 */
static u64 virtio_account_exec(struct mgpu_virtio *v, const struct mgpu_msg *msg)
{
	u64 now = ktime_get_ns();
	u64 ns = now - min(now, max3(msg->sent_ns, v->busy_ns, v->exec_end_ns));

	v->exec_end_ns = now;
	v->exec_ns += ns;
	return ns;
}

/* Complete the job or wake the caller of ->exec() that posted a message. */
static void virtio_complete(struct mgpu_virtio *v, struct mgpu_msg *msg)
{
	struct mgpu_msg *msgs;
	u64 ns, cycles;
	int error = 0;
	u32 nr, i;

	if (msg->done) {
		/* Of a GPU that did not answer, the guest did not have the time. */
		if (!msg->error)
			mgpu_msg_account(msg, virtio_account_exec(v, msg));
		complete(msg->done);
		return;
	}
	if (!msg->job)
		return;
	msgs = mgpu_job_msgs(msg->job, &nr);
	for (i = 0; i < nr; i++) {
		if (msgs[i].error)
			error = msgs[i].error;
		else if (!error && le32_to_cpu(msgs[i].resp->type) !=
				   VIRTIO_GPU_RESP_OK_NODATA)
			error = -EREMOTEIO;
	}
	virtio_account(v, msg, &ns, &cycles);
	mgpu_job_done(msg->job, error, ns, cycles);
}

/* Start a job; return false if the queue has no room for it. */
static bool virtio_start(struct mgpu_virtio *v, struct mgpu_job *job)
{
	struct mgpu_msg *msgs;
	u32 nr;
	int ret;

	msgs = mgpu_job_msgs(job, &nr);
	if (!msgs) {
		mgpu_cpu_engine_begin(&v->cpu, job);
		return true;
	}
	ret = virtio_post(v, msgs, nr);
	if (ret == -EAGAIN)
		return false;
	if (ret)
		mgpu_job_done(job, ret, 0, 0);
	return true;
}

/*
 * Take jobs from the scheduler while the device and the CPU have room for more.  Jobs
 * fail at once while the device is lost: FEED_MAX bounds how many are taken.
 */
static void virtio_feed(struct mgpu_virtio *v)
{
	struct mgpu_job *job;
	u32 nr;

	for (nr = 0; !v->cpu.job; nr++) {
		if (nr == FEED_MAX) {
			virtio_wake(v);
			return;
		}
		job = v->held ?: mgpu_sched_next(v->mdev);
		v->held = NULL;
		if (!job)
			return;
		if (!virtio_start(v, job)) {
			v->held = job;
			return;
		}
	}
}

/* ---- when the device does not answer ---- */

/*
 * Complete all messages with an error.  The device does not access memory any more and
 * will not answer.
 */
static void virtio_give_up(struct mgpu_virtio *v, struct mgpu_job *culprit)
{
	struct mgpu_msg *msg, *next;
	LIST_HEAD(lost);

	spin_lock(&v->lock);
	WRITE_ONCE(v->safe, true);
	spin_unlock(&v->lock);
	/* A thread that reads the new generation gets -ENODEV from virtio_post(). */
	smp_mb();
	mgpu_device_lost(v->mdev, culprit);
	wake_up_all(&v->resets);

	spin_lock(&v->lock);
	while (virtqueue_detach_unused_buf(v->vq))
		;
	list_splice_init(&v->posted, &lost);
	v->nr_fenced = 0;
	spin_unlock(&v->lock);

	list_for_each_entry_safe(msg, next, &lost, node) {
		list_del_init(&msg->node);
		msg->error = -EIO;
		virtio_complete(v, msg);
	}
	/* The queue has room for the held job and for callers of ->exec(). */
	virtio_wake(v);
}

static int find_queue(struct mgpu_virtio *v)
{
	struct virtqueue *vq;

	vq = virtio_find_single_vq(v->vdev, virtio_answered, "control");
	if (IS_ERR(vq))
		return PTR_ERR(vq);
	v->vq = vq;
	return 0;
}

/*
 * Set the device up as the bus does before a probe; not all kernels export
 * virtio_device_restore().
 */
static int start_again(struct mgpu_virtio *v)
{
	struct virtio_device *vdev = v->vdev;
	int ret;

	virtio_add_status(vdev, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	virtio_add_status(vdev, VIRTIO_CONFIG_S_DRIVER);
	ret = vdev->config->finalize_features(vdev);
	if (ret)
		return ret;
	virtio_add_status(vdev, VIRTIO_CONFIG_S_FEATURES_OK);
	if (!(vdev->config->get_status(vdev) & VIRTIO_CONFIG_S_FEATURES_OK))
		return -ENODEV;
	ret = find_queue(v);
	if (!ret)
		virtio_device_ready(vdev);
	return ret;
}

/*
 * Return whether the device was unplugged.  It must not be reset then: the reset would
 * wait for ever.
 */
static bool is_gone(const struct mgpu_virtio *v)
{
	struct device *bus = v->vdev->dev.parent;

	return dev_is_pci(bus) && !pci_device_is_present(to_pci_dev(bus));
}

/*
 * Reset the device and set it up again.  Its messages complete with an error, and the
 * contexts and resources of guests are lost.
 */
static void virtio_recover(struct mgpu_virtio *v, const char *why,
			   struct mgpu_job *culprit)
{
	struct virtio_device *vdev = v->vdev;
	bool gone = is_gone(v);
	int ret;

	dev_err(&vdev->dev, "%s: %s; guests lose their contexts and resources\n", why,
		gone ? "the GPU is gone" : "resetting the GPU");
	spin_lock(&v->lock);
	v->dead = true;
	spin_unlock(&v->lock);

	if (gone) {
		virtio_give_up(v, NULL);
		return;
	}
	virtio_reset_device(vdev);
	stop_hanging();
	virtio_give_up(v, culprit);
	vdev->config->del_vqs(vdev);

	ret = start_again(v);
	if (ret) {
		dev_err(&vdev->dev, "the GPU failed to restart (error %d): unbind it and bind it again\n",
			ret);
		v->vq = NULL;
		return;
	}
	spin_lock(&v->lock);
	v->stuck = false;
	v->safe = false;
	v->dead = false;
	spin_unlock(&v->lock);
}

/* Return the job of the oldest message; NULL if the message is not of a job. */
static struct mgpu_job *oldest_job(struct mgpu_virtio *v)
{
	struct mgpu_job *job = NULL;
	struct mgpu_msg *msg;

	spin_lock(&v->lock);
	list_for_each_entry(msg, &v->posted, node) {
		job = msg->job;
		/* The last message of a job names it. */
		if (job || msg->done)
			break;
	}
	spin_unlock(&v->lock);
	return job;
}

/* Return the job of all messages; NULL if the device has none, or several. */
static struct mgpu_job *only_job(struct mgpu_virtio *v)
{
	struct mgpu_job *job = NULL;
	struct mgpu_msg *msg;
	u32 nr = 0;

	spin_lock(&v->lock);
	list_for_each_entry(msg, &v->posted, node) {
		if (msg->job)
			job = msg->job;
		nr += msg->job || msg->done;
	}
	spin_unlock(&v->lock);
	return nr == 1 ? job : NULL;
}

/* Return whether the device has not answered the oldest message for too long. */
static bool is_silent(struct mgpu_virtio *v)
{
	u32 limit = clamp(READ_ONCE(reset_ms), 1000U, 60000U);
	bool silent;
	u64 now, gap;

	spin_lock(&v->lock);
	now = ktime_get_ns();
	/* Exclude the time for which the host was suspended or stopped. */
	gap = now - v->looked_ns;
	if (gap > 2 * SILENCE_MS * NSEC_PER_MSEC)
		v->progress_ns = min(now, v->progress_ns + gap);
	v->looked_ns = now;
	silent = !v->dead && !list_empty(&v->posted) &&
		 now - v->progress_ns > (u64)limit * NSEC_PER_MSEC;
	spin_unlock(&v->lock);
	return silent;
}

static bool wants_reset(struct mgpu_virtio *v)
{
	if (!READ_ONCE(v->changed))
		return false;
	WRITE_ONCE(v->changed, false);
	return v->vdev->config->get_status(v->vdev) &
	       VIRTIO_CONFIG_S_NEEDS_RESET;
}

static void virtio_watch(struct mgpu_virtio *v)
{
	if (v->dead)
		return;
	if (virtqueue_is_broken(v->vq) || READ_ONCE(v->stuck))
		virtio_recover(v, "the GPU's queue is broken", NULL);
	else if (wants_reset(v))
		virtio_recover(v, "the GPU asks for a reset", only_job(v));
	else if (is_silent(v))
		virtio_recover(v, "the GPU does not answer", oldest_job(v));
}

/* ---- the engine ---- */

/*
 * Notify the device if that is due: with pending fences, to poll for finished work;
 * else rarely, in case a notification was lost.  Return the time until the next
 * notification in microseconds, or 0 if no message is pending.
 */
static u32 virtio_poll(struct mgpu_virtio *v)
{
	u32 us = READ_ONCE(poll_us);
	u64 now = ktime_get_ns();
	bool ask;

	spin_lock(&v->lock);
	us = us && v->nr_fenced ? clamp(us, 50U, 10000U) : REMIND_US;
	ask = !v->dead && !list_empty(&v->posted);
	if (ask && now - v->polled_ns >= us * NSEC_PER_USEC &&
	    now - v->posted_ns >= us * NSEC_PER_USEC && !is_silenced()) {
		v->polled_ns = now;
		virtqueue_notify(v->vq);
	}
	spin_unlock(&v->lock);
	return ask ? us : 0;
}

static int virtio_engine(void *data)
{
	struct mgpu_virtio *v = data;
	struct mgpu_msg *msg;
	int seen;

	set_user_nice(current, ENGINE_NICE);
	for (;;) {
		ktime_t wait = KTIME_MAX;
		u32 us;

		seen = atomic_read(&v->kicks);
		while ((msg = virtio_reap(v)))
			virtio_complete(v, msg);
		virtio_feed(v);
		/* Watch in each round: guests without GL may keep the CPU busy. */
		virtio_watch(v);
		us = virtio_poll(v);
		if (v->cpu.job) {
			/* The job is not charged for the time since its last tile. */
			mgpu_cpu_engine_resume(&v->cpu);
			mgpu_cpu_engine_step(&v->cpu);
			cond_resched();
			continue;
		}
		cond_resched();
		if (kthread_should_stop() && !v->held)
			break;
		if (us)
			wait = ns_to_ktime((u64)us * NSEC_PER_USEC);
		else if (v->held || !list_empty(&v->posted))
			wait = ms_to_ktime(SILENCE_MS);
		wait_event_interruptible_hrtimeout(v->wait,
						   atomic_read(&v->kicks) !=
						   seen || kthread_should_stop(),
						   wait);
	}
	return 0;
}

static void virtio_kick(struct mgpu_device *mdev)
{
	virtio_wake(mgpu_device_priv(mdev));
}

static int virtio_exec(struct mgpu_device *mdev, struct mgpu_msg *msgs, u32 nr)
{
	struct mgpu_virtio *v = mgpu_device_priv(mdev);
	DECLARE_COMPLETION_ONSTACK(done);
	u32 gen = mgpu_device_gen(mdev), posted, i;
	int ret = 0;

	for (posted = 0; posted < nr; posted++) {
		msgs[posted].done = &done;
		while ((ret = virtio_post(v, &msgs[posted], 1)) == -EAGAIN) {
			/* If the GPU hangs, only a reset by the engine makes room. */
			virtio_wake(v);
			usleep_range(200, 1000);
		}
		if (ret)
			break;
	}
	/* Have the engine poll for the messages. */
	virtio_wake(v);
	if (ret == -EIO) {
		/* The caller may free memory of the device next: wait for the reset. */
		wait_event(v->resets, READ_ONCE(v->safe) ||
			   mgpu_device_gen(mdev) != gen);
	}
	for (i = 0; i < posted; i++)
		wait_for_completion(&done);
	for (i = 0; i < posted && !ret; i++)
		ret = msgs[i].error;
	return ret && ret != -EALREADY ? -EIO : ret;
}

static const struct mgpu_backend_ops virtio_ops = {
	.name = "virtio",
	.owner = THIS_MODULE,
	.kick = virtio_kick,
	.exec = virtio_exec,
};

/* ---- setting up ---- */

/* Have the device execute a command before the engine runs. */
static int virtio_ask(struct mgpu_virtio *v, struct mgpu_msg *msg, u32 expected)
{
	int ret;

	ret = virtio_post(v, msg, 1);
	if (ret)
		return ret;
	if (!wait_event_timeout(v->wait, virtio_reap(v), msecs_to_jiffies(ASK_MS)))
		return -ETIMEDOUT;
	return le32_to_cpu(msg->resp->type) == expected ? 0 : -EREMOTEIO;
}

static int virtio_get_capset(struct mgpu_virtio *v, u32 index)
{
	struct mgpu_capset *capset = &v->capsets[v->nr_capsets];
	struct virtio_gpu_resp_capset_info *info;
	struct virtio_gpu_get_capset_info *ask_info;
	struct virtio_gpu_resp_capset *data = NULL;
	struct virtio_gpu_get_capset *ask_data;
	struct mgpu_msg msg = {};
	u32 size;
	int ret;

	ask_info = kzalloc(sizeof(*ask_info), GFP_KERNEL);
	ask_data = kzalloc(sizeof(*ask_data), GFP_KERNEL);
	info = kzalloc(sizeof(*info), GFP_KERNEL);
	ret = -ENOMEM;
	if (!ask_info || !ask_data || !info)
		goto out;

	ask_info->hdr.type = cpu_to_le32(VIRTIO_GPU_CMD_GET_CAPSET_INFO);
	ask_info->capset_index = cpu_to_le32(index);
	msg.buf = ask_info;
	msg.len = sizeof(*ask_info);
	msg.resp = &info->hdr;
	msg.resp_len = sizeof(*info);
	ret = virtio_ask(v, &msg, VIRTIO_GPU_RESP_OK_CAPSET_INFO);
	if (ret)
		goto out;

	size = le32_to_cpu(info->capset_max_size);
	ret = -EMSGSIZE;
	if (!size || size > MGPU_MAX_CAPSET)
		goto out;
	ret = -ENOMEM;
	data = kzalloc(sizeof(*data) + size, GFP_KERNEL);
	if (!data)
		goto out;
	ask_data->hdr.type = cpu_to_le32(VIRTIO_GPU_CMD_GET_CAPSET);
	ask_data->capset_id = info->capset_id;
	ask_data->capset_version = info->capset_max_version;
	msg.buf = ask_data;
	msg.len = sizeof(*ask_data);
	msg.resp = &data->hdr;
	msg.resp_len = sizeof(*data) + size;
	ret = virtio_ask(v, &msg, VIRTIO_GPU_RESP_OK_CAPSET);
	if (ret)
		goto out;

	capset->id = le32_to_cpu(info->capset_id);
	capset->version = le32_to_cpu(info->capset_max_version);
	capset->size = size;
	capset->data = kmemdup(data->capset_data, size, GFP_KERNEL);
	ret = -ENOMEM;
	if (!capset->data)
		goto out;
	ret = 0;
	if (mgpu_capset_mask(capset, false)) {
		v->nr_capsets++;
	} else {
		kfree(capset->data);
		capset->data = NULL;
	}
out:
	/* A device that does not answer may still write to the buffers. */
	if (ret == -ETIMEDOUT)
		virtio_reset_device(v->vdev);
	kfree(data);
	kfree(info);
	kfree(ask_data);
	kfree(ask_info);
	return ret;
}

static int virtio_get_capsets(struct mgpu_virtio *v)
{
	u32 nr = 0, i;
	int ret;

	if (!virtio_has_feature(v->vdev, VIRTIO_GPU_F_VIRGL))
		return 0;
	virtio_cread_le(v->vdev, struct virtio_gpu_config, num_capsets, &nr);
	for (i = 0; i < min_t(u32, nr, MAX_CAPSETS); i++) {
		ret = virtio_get_capset(v, i);
		if (ret)
			return ret;
	}
	return 0;
}

static void virtio_free(struct mgpu_virtio *v)
{
	u32 i;

	for (i = 0; i < v->nr_capsets; i++)
		kfree(v->capsets[i].data);
	kfree(v);
}

static int virtio_probe(struct virtio_device *vdev)
{
	struct mgpu_device_caps caps = {
		.engines = 1,
		.depth = MAX_DEPTH,
		.depth_default = depth,
		.lazy_scanout = true,
		.max_vgpus = max_vgpus,
	};
	struct mgpu_virtio *v;
	int ret;

	if (!virtio_has_feature(vdev, VIRTIO_F_VERSION_1)) {
		dev_err(&vdev->dev, "a legacy virtio device cannot be shared: make it a modern one\n");
		return -ENODEV;
	}
	/* A long message would need more descriptors than the queue has, for ever. */
	if (!virtio_has_feature(vdev, VIRTIO_RING_F_INDIRECT_DESC)) {
		dev_err(&vdev->dev, "a GPU without indirect descriptors cannot be shared: turn them on where it is made (QEMU: indirect_desc=on)\n");
		return -ENODEV;
	}
	v = kzalloc(sizeof(*v), GFP_KERNEL);
	if (!v)
		return -ENOMEM;
	v->vdev = vdev;
	vdev->priv = v;
	init_waitqueue_head(&v->wait);
	init_waitqueue_head(&v->resets);
	spin_lock_init(&v->lock);
	INIT_LIST_HEAD(&v->posted);
	v->next_fence = 1;

	ret = find_queue(v);
	if (ret)
		goto err_free;
	if (virtqueue_get_vring_size(v->vq) < MGPU_JOB_MSGS) {
		dev_err(&vdev->dev, "a GPU with a control queue of %u cannot be shared: it needs %u\n",
			virtqueue_get_vring_size(v->vq), MGPU_JOB_MSGS);
		ret = -ENODEV;
		goto err_queue;
	}
	virtio_device_ready(vdev);
	ret = virtio_get_capsets(v);
	if (ret) {
		dev_err(&vdev->dev, "cannot read the GPU's capability sets (error %d): see the log of its host\n",
			ret);
		goto err_queue;
	}
	if (!v->nr_capsets)
		dev_info(&vdev->dev, "the GPU has no OpenGL: only 2D types are available\n");

	caps.capsets = v->capsets;
	caps.nr_capsets = v->nr_capsets;
	if (!virtio_has_dma_quirk(vdev))
		caps.dma_dev = vdev->dev.parent;
	/* Make the engine first: guests may come as soon as the device is registered. */
	v->task = kthread_create(virtio_engine, v, "mgpu_virtio/%u", vdev->index);
	if (IS_ERR(v->task)) {
		ret = PTR_ERR(v->task);
		goto err_queue;
	}
	v->mdev = mgpu_device_register(vdev->dev.parent, &virtio_ops, &caps, v);
	if (IS_ERR(v->mdev)) {
		ret = PTR_ERR(v->mdev);
		goto err_task;
	}
	wake_up_process(v->task);
	return 0;

err_task:
	kthread_stop(v->task);
err_queue:
	virtio_reset_device(vdev);
	vdev->config->del_vqs(vdev);
err_free:
	virtio_free(v);
	return ret;
}

static void virtio_remove(struct virtio_device *vdev)
{
	struct mgpu_virtio *v = vdev->priv;

	virtio_wake(v);
	/* This waits for the VMMs; the engine must run meanwhile. */
	mgpu_device_unregister(v->mdev);
	kthread_stop(v->task);
	if (v->vq) {
		if (!is_gone(v))
			virtio_reset_device(vdev);
		vdev->config->del_vqs(vdev);
	}
	mgpu_device_free(v->mdev);
	virtio_free(v);
}

static void virtio_changed(struct virtio_device *vdev)
{
	struct mgpu_virtio *v = vdev->priv;

	WRITE_ONCE(v->changed, true);
	virtio_wake(v);
}

#ifdef CONFIG_PM
/* Refuse to suspend: guests would lose their contexts and resources. */
static int virtio_freeze(struct virtio_device *vdev)
{
	dev_err(&vdev->dev, "a shared GPU cannot be suspended: unbind it first\n");
	return -EBUSY;
}
#endif

/* No MODULE_DEVICE_TABLE(): the module is not loaded for every virtio-gpu. */
static const struct virtio_device_id virtio_ids[] = {
	{ VIRTIO_ID_GPU, VIRTIO_DEV_ANY_ID },
	{ },
};

static const unsigned int virtio_features[] = {
	VIRTIO_GPU_F_VIRGL,
};

static struct virtio_driver virtio_gpu_driver = {
	.driver.name = "mgpu_virtio",
	.driver.owner = THIS_MODULE,
	.id_table = virtio_ids,
	.feature_table = virtio_features,
	.feature_table_size = ARRAY_SIZE(virtio_features),
	.probe = virtio_probe,
	.remove = virtio_remove,
	.config_changed = virtio_changed,
#ifdef CONFIG_PM
	.freeze = virtio_freeze,
#endif
};

static int __init virtio_init(void)
{
	if (!depth || depth > MAX_DEPTH) {
		pr_err("mgpu_virtio: depth=%u: must be 1 to %u\n", depth,
		       MAX_DEPTH);
		return -EINVAL;
	}
	if (!max_vgpus || max_vgpus > 4095) {
		pr_err("mgpu_virtio: max_vgpus=%u: must be 1 to 4095\n",
		       max_vgpus);
		return -EINVAL;
	}
	return register_virtio_driver(&virtio_gpu_driver);
}

static void __exit virtio_exit(void)
{
	unregister_virtio_driver(&virtio_gpu_driver);
}

module_init(virtio_init);
module_exit(virtio_exit);

MODULE_DESCRIPTION("Mediated GPU: back end on a physical virtio-gpu");
MODULE_AUTHOR("The mgpu developers");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Back end on a physical virtio-gpu: true mediated passthrough.
 *
 * A virtio driver that is bound by hand, in place of the distribution's.  What
 * guests with contexts submit comes from the core in the device's own terms and
 * goes to its control queue; what guests without submit is done by the CPU, in
 * the same thread.
 *
 * That thread, the engine, takes jobs from the scheduler and takes answers from
 * the queue.  At most as many jobs are in the queue as the device has slots:
 * what is there cannot be taken back, so this is what bounds how long one VM
 * waits for another's.
 *
 * A fence is signalled when the device happens to look at what it has finished:
 * QEMU does so every 10 ms and whenever it is notified.  So while fences are
 * outstanding, it is notified now and then.
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
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "../mgpu.h"

#define MAX_DEPTH	64
#define ENGINE_NICE	(-10)
#define MAX_CAPSETS	8
#define SILENCE_MS	250	/* between looks whether it answers at all */
#define ASK_MS		5000	/* for an answer while the device is set up */
#define FEED_MAX	(2 * MAX_DEPTH)	/* jobs taken before answers are looked at */
#define REMIND_US	20000	/* until it is asked to look for the rest */

/* Pages of the longest message, which need not begin with one. */
#define SG_MAX		(MGPU_MAX_STREAM / PAGE_SIZE + 2)

static unsigned int depth = 2;
module_param(depth, uint, 0444);
MODULE_PARM_DESC(depth, "Jobs that may be with the GPU at once, until slots is set for it (1 to 64; 2): a VM waits for that many of others' at most");

static unsigned int max_vgpus = 64;
module_param(max_vgpus, uint, 0444);
MODULE_PARM_DESC(max_vgpus, "vGPUs of all types together (1 to 4095; 64)");

static unsigned int poll_us = 500;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "While fences are outstanding, have the GPU look every so many microseconds (50 to 10000; 500; 0: after 20 ms, as for all else)");

static unsigned int reset_ms = 10000;
module_param(reset_ms, uint, 0644);
MODULE_PARM_DESC(reset_ms, "Reset a GPU that has owed an answer for so many milliseconds (1000 to 60000; 10000)");

static unsigned int hang;
module_param(hang, uint, 0644);
MODULE_PARM_DESC(hang, "For tests, until the GPU is reset: 1: it gets no more messages; 2: none with a fence (0: it gets all)");

/**
 * struct mgpu_virtio - a GPU
 * @vdev: the virtio device
 * @mdev: what the core knows it by
 * @task: the engine
 * @wait: where it sleeps
 * @kicks: reasons to look
 * @lock: the fields from @vq to @looked_ns
 * @vq: control queue
 * @sg: of the message that is being posted
 * @posted: messages that are in the queue, oldest first
 * @nr_fenced: how many of them are fenced
 * @dead: it gets no messages any more
 * @safe: and reads and writes no memory
 * @resets: who waits for that
 * @stuck: it is to be reset
 * @next_fence: fence numbers rise over all vGPUs: QEMU compares them
 * @progress_ns: since when it owes the oldest of @posted an answer
 * @posted_ns: when it was given something last
 * @polled_ns: when it was last asked to look
 * @looked_ns: when it was last looked whether it is silent
 * @changed: its configuration changed
 * @busy_ns: up to when its time has been accounted
 * @busy_cycles: the same in TSC ticks
 * @held: a job for which the queue had no room
 * @step: a job that the CPU does
 * @step_ns: engine time of that
 * @step_cycles: the same in TSC ticks
 * @capsets: what it has for guests
 * @nr_capsets: how many
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
	struct mgpu_job *held;
	struct mgpu_job *step;
	u64 step_ns;
	u64 step_cycles;
	struct mgpu_capset capsets[MAX_CAPSETS];
	u32 nr_capsets;
};

static void look(struct mgpu_virtio *v)
{
	atomic_inc(&v->kicks);
	wake_up(&v->wait);
}

/* ---- the queue ---- */

static void answered(struct virtqueue *vq)
{
	look(vq->vdev->priv);
}

/* Scatterlist of a kvmalloc()ed buffer. */
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

/* For tests: the device gets no notice of anything, or not this message. */
static bool is_silenced(void)
{
	return READ_ONCE(hang) == 1;
}

static bool is_kept(const struct mgpu_msg *msg)
{
	return READ_ONCE(hang) == 2 && msg->fenced;
}

static int add(struct mgpu_virtio *v, struct mgpu_msg *msg)
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
 * Fence numbers of 32 bits are used up: they begin anew when none is out, since
 * the host takes a number for all below it.
 */
static bool out_of_fences(struct mgpu_virtio *v)
{
	if (v->next_fence <= U32_MAX - MGPU_DEVCMD_MSGS)
		return false;
	if (v->nr_fenced)
		return true;
	v->next_fence = 1;
	return false;
}

/*
 * Puts messages into the queue, all or none, and notifies the device.  -EAGAIN
 * when there is no room now, -EIO when the device is lost, -ENODEV when it also
 * reads and writes no memory any more.
 */
static int post(struct mgpu_virtio *v, struct mgpu_msg *msgs, u32 nr)
{
	int ret = 0;
	u32 i;

	spin_lock(&v->lock);
	if (v->dead || v->stuck)
		ret = v->safe ? -ENODEV : -EIO;
	else if (v->vq->num_free < nr || out_of_fences(v))
		ret = -EAGAIN;
	else if (msgs[0].begin)
		ret = mgpu_devcmd_begin(&msgs[0]);
	for (i = 0; i < nr && !ret; i++) {
		ret = add(v, &msgs[i]);
		if (!ret || !i)
			continue;
		/* There is no way back for those before it. */
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

/* The next message that the device has answered, or NULL. */
static struct mgpu_msg *reap(struct mgpu_virtio *v)
{
	struct mgpu_msg *msg;
	unsigned int len;

	spin_lock(&v->lock);
	msg = v->dead ? NULL : virtqueue_get_buf(v->vq, &len);
	if (msg) {
		/* One whose fence does not come may have others pass it. */
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
 * Engine time of a job that ends now: since the device got it, or, when it had
 * others before, since the last of those ended.  So the time in which the device
 * has something to do is accounted once, whatever its depth.
 */
static void account(struct mgpu_virtio *v, const struct mgpu_msg *msg, u64 *ns,
		    u64 *cycles)
{
	u64 now = ktime_get_ns(), ticks = get_cycles();
	u64 from = max(msg->sent_ns, v->busy_ns), span;

	*ns = now - min(from, now);
	span = now - v->busy_ns;
	/* Ticks and nanoseconds run at the same rate meanwhile. */
	*cycles = v->busy_ns && span ?
		mul_u64_u64_div_u64(ticks - v->busy_cycles, *ns, span) : 0;
	v->busy_ns = now;
	v->busy_cycles = ticks;
}

/* What a message's end means to who has posted it. */
static void end(struct mgpu_virtio *v, struct mgpu_msg *msg)
{
	struct mgpu_devcmd *dc = msg->cmd;
	u64 ns, cycles;
	int error = 0;
	u32 i;

	if (msg->done) {
		complete(msg->done);
		return;
	}
	if (!dc)
		return;
	for (i = 0; i < dc->nr_msgs; i++) {
		if (dc->msgs[i].error)
			error = dc->msgs[i].error;
		else if (!error && le32_to_cpu(dc->msgs[i].resp->type) !=
				   VIRTIO_GPU_RESP_OK_NODATA)
			error = -EREMOTEIO;
	}
	account(v, msg, &ns, &cycles);
	mgpu_job_done(&dc->job, error, ns, cycles);
}

/* One tile of a job that the CPU does. */
static void step(struct mgpu_virtio *v)
{
	struct mgpu_job *job = v->step;
	u64 start = ktime_get_ns(), ticks = get_cycles();
	int ret;

	ret = mgpu_job_step(job);
	v->step_ns += ktime_get_ns() - start;
	v->step_cycles += get_cycles() - ticks;
	if (ret > 0 && !mgpu_job_yield(job, v->step_ns, v->step_cycles))
		return;
	v->step = NULL;
	if (ret <= 0)
		mgpu_job_done(job, ret, v->step_ns, v->step_cycles);
}

/* Takes a job to the device; false when there is no room for it. */
static bool start(struct mgpu_virtio *v, struct mgpu_job *job)
{
	struct mgpu_devcmd *dc;
	int ret;

	if (job->kind != MGPU_JOB_DEVICE) {
		v->step_ns = 0;
		v->step_cycles = 0;
		v->step = job;
		return true;
	}
	dc = to_mgpu_devcmd(job);
	ret = post(v, dc->msgs, dc->nr_msgs);
	if (ret == -EAGAIN)
		return false;
	if (ret)
		mgpu_job_done(job, ret, 0, 0);
	return true;
}

/*
 * Takes what there is, as long as the device and the CPU can do with more.  What
 * fails at once, since the device is lost, may be followed by more for ever.
 */
static void feed(struct mgpu_virtio *v)
{
	struct mgpu_job *job;
	u32 nr;

	for (nr = 0; !v->step; nr++) {
		if (nr == FEED_MAX) {
			look(v);
			return;
		}
		job = v->held ?: mgpu_sched_next(v->mdev);
		v->held = NULL;
		if (!job)
			return;
		if (!start(v, job)) {
			v->held = job;
			return;
		}
	}
}

/* ---- when the device does not answer ---- */

/*
 * The device, which reads and writes no memory now, will not answer: hands back
 * what it was asked.
 */
static void give_up(struct mgpu_virtio *v)
{
	struct mgpu_msg *msg, *next;
	LIST_HEAD(lost);

	spin_lock(&v->lock);
	WRITE_ONCE(v->safe, true);
	spin_unlock(&v->lock);
	/* Who knows of this generation is told by post() that it is safe. */
	smp_mb();
	mgpu_device_lost(v->mdev);
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
		end(v, msg);
	}
	/* There is room for what waited for theirs. */
	look(v);
}

static int find_queue(struct mgpu_virtio *v)
{
	struct virtqueue *vq;

	vq = virtio_find_single_vq(v->vdev, answered, "control");
	if (IS_ERR(vq))
		return PTR_ERR(vq);
	v->vq = vq;
	return 0;
}

/* As the bus does before a probe; virtio_device_restore() is not in all kernels. */
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
 * Whether it was pulled out.  Then there is nothing to reset: it would say for
 * ever that it is not yet.
 */
static bool is_gone(const struct mgpu_virtio *v)
{
	struct device *bus = v->vdev->dev.parent;

	return dev_is_pci(bus) && !pci_device_is_present(to_pci_dev(bus));
}

/*
 * Resets the device and begins anew.  What it was asked is lost, and what guests
 * had there is gone.
 */
static void recover(struct mgpu_virtio *v, const char *why)
{
	struct virtio_device *vdev = v->vdev;
	bool gone = is_gone(v);
	int ret;

	dev_err(&vdev->dev, "%s: %s; what guests had on it is lost\n", why,
		gone ? "the GPU is gone" : "resetting the GPU");
	spin_lock(&v->lock);
	v->dead = true;
	spin_unlock(&v->lock);

	if (gone) {
		give_up(v);
		return;
	}
	virtio_reset_device(vdev);
	/* Before anybody is told of the reset. */
	WRITE_ONCE(hang, 0);
	give_up(v);
	vdev->config->del_vqs(vdev);

	ret = start_again(v);
	if (ret) {
		dev_err(&vdev->dev, "the GPU did not come back: %d; unbind it and bind it again\n",
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

/* Whether the device has owed an answer for too long. */
static bool is_silent(struct mgpu_virtio *v)
{
	u32 limit = clamp(READ_ONCE(reset_ms), 1000U, 60000U);
	bool silent;
	u64 now, gap;

	spin_lock(&v->lock);
	now = ktime_get_ns();
	/* While the host stood still nobody heard it. */
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

static void watch(struct mgpu_virtio *v)
{
	if (v->dead)
		return;
	if (virtqueue_is_broken(v->vq) || READ_ONCE(v->stuck))
		recover(v, "its queue is broken");
	else if (wants_reset(v))
		recover(v, "it asks for a reset");
	else if (is_silent(v))
		recover(v, "it does not answer");
}

/* ---- the engine ---- */

/*
 * Has the device look for what it has finished, when that is due, and, when it
 * has not been heard of for long, for what it was given: a notification may get
 * lost.  Returns when to look again, in microseconds; 0 for not at all.
 */
static u32 poll(struct mgpu_virtio *v)
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

static int engine(void *data)
{
	struct mgpu_virtio *v = data;
	struct mgpu_msg *msg;
	int seen;

	set_user_nice(current, ENGINE_NICE);
	for (;;) {
		ktime_t wait = KTIME_MAX;
		u32 us;

		seen = atomic_read(&v->kicks);
		while ((msg = reap(v)))
			end(v, msg);
		feed(v);
		/* Guests without GL may keep the CPU busy all the time. */
		watch(v);
		us = poll(v);
		if (v->step) {
			step(v);
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
	look(mgpu_device_priv(mdev));
}

static int virtio_exec(struct mgpu_device *mdev, struct mgpu_msg *msgs, u32 nr)
{
	struct mgpu_virtio *v = mgpu_device_priv(mdev);
	DECLARE_COMPLETION_ONSTACK(done);
	u32 gen = mgpu_device_gen(mdev), posted, i;
	int ret = 0;

	for (posted = 0; posted < nr; posted++) {
		msgs[posted].done = &done;
		while ((ret = post(v, &msgs[posted], 1)) == -EAGAIN) {
			/* Of a GPU that hangs, only the engine makes room. */
			look(v);
			usleep_range(200, 1000);
		}
		if (ret)
			break;
	}
	/* The engine looks after what is posted. */
	look(v);
	if (ret == -EIO) {
		/* Who asks may be about to take memory from the device. */
		wait_event(v->resets, READ_ONCE(v->safe) ||
			   mgpu_device_gen(mdev) != gen);
	}
	for (i = 0; i < posted; i++)
		wait_for_completion(&done);
	for (i = 0; i < posted && !ret; i++)
		ret = msgs[i].error;
	return ret ? -EIO : 0;
}

static const struct mgpu_backend_ops virtio_ops = {
	.name = "virtio",
	.owner = THIS_MODULE,
	.kick = virtio_kick,
	.exec = virtio_exec,
};

/* ---- setting up ---- */

/* Has the device answer before there is an engine. */
static int ask(struct mgpu_virtio *v, struct mgpu_msg *msg, u32 expected)
{
	int ret;

	ret = post(v, msg, 1);
	if (ret)
		return ret;
	if (!wait_event_timeout(v->wait, reap(v), msecs_to_jiffies(ASK_MS)))
		return -ETIMEDOUT;
	return le32_to_cpu(msg->resp->type) == expected ? 0 : -EREMOTEIO;
}

static int get_capset(struct mgpu_virtio *v, u32 index)
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
	ret = ask(v, &msg, VIRTIO_GPU_RESP_OK_CAPSET_INFO);
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
	ret = ask(v, &msg, VIRTIO_GPU_RESP_OK_CAPSET);
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
	if (mgpu_capset_mask(capset)) {
		v->nr_capsets++;
	} else {
		kfree(capset->data);
		capset->data = NULL;
	}
out:
	/* A device that does not answer may still write there. */
	if (ret == -ETIMEDOUT)
		virtio_reset_device(v->vdev);
	kfree(data);
	kfree(info);
	kfree(ask_data);
	kfree(ask_info);
	return ret;
}

static int get_capsets(struct mgpu_virtio *v)
{
	u32 nr = 0, i;
	int ret;

	if (!virtio_has_feature(v->vdev, VIRTIO_GPU_F_VIRGL))
		return 0;
	virtio_cread_le(v->vdev, struct virtio_gpu_config, num_capsets, &nr);
	for (i = 0; i < min_t(u32, nr, MAX_CAPSETS); i++) {
		ret = get_capset(v, i);
		if (ret)
			return ret;
	}
	return 0;
}

static void free_all(struct mgpu_virtio *v)
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
		dev_err(&vdev->dev, "a legacy device cannot be shared\n");
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
	virtio_device_ready(vdev);
	ret = get_capsets(v);
	if (ret) {
		dev_err(&vdev->dev, "it does not say what it can do: %d\n", ret);
		goto err_queue;
	}
	if (!v->nr_capsets)
		dev_info(&vdev->dev, "it has no OpenGL: 2D types only\n");

	caps.capsets = v->capsets;
	caps.nr_capsets = v->nr_capsets;
	if (!virtio_has_dma_quirk(vdev))
		caps.dma_dev = vdev->dev.parent;
	/* There are guests as soon as it is registered. */
	v->task = kthread_create(engine, v, "mgpu_virtio/%u", vdev->index);
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
	free_all(v);
	return ret;
}

static void virtio_remove(struct virtio_device *vdev)
{
	struct mgpu_virtio *v = vdev->priv;

	look(v);
	/* Waits for the VMMs; until then, jobs must go on. */
	mgpu_device_unregister(v->mdev);
	kthread_stop(v->task);
	if (v->vq) {
		if (!is_gone(v))
			virtio_reset_device(vdev);
		vdev->config->del_vqs(vdev);
	}
	mgpu_device_free(v->mdev);
	free_all(v);
}

static void virtio_changed(struct virtio_device *vdev)
{
	struct mgpu_virtio *v = vdev->priv;

	WRITE_ONCE(v->changed, true);
	look(v);
}

#ifdef CONFIG_PM
/* What guests have on it would be lost. */
static int virtio_freeze(struct virtio_device *vdev)
{
	dev_err(&vdev->dev, "a GPU that is shared cannot be suspended\n");
	return -EBUSY;
}
#endif

/* Not for modprobe to find: who wants it binds it. */
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

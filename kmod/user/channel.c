// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels: commands to a worker, and its answers.
 *
 * The worker is not trusted: the module keeps its own counters, and reads what the worker
 * writes once.  An answer that is not one kills the channel, and costs the worker's own
 * vGPU its contexts and resources.
 */
#include <linux/completion.h>
#include <linux/dma-buf.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/timex.h>
#include <linux/virtio_gpu.h>
#include <linux/vmalloc.h>
#include <drm/drm_fourcc.h>

#include "compat.h"
#include "user/user.h"

MGPU_IMPORT_DMA_BUF();

static_assert(USER_ARENA / 2 > MGPU_MSG_MAX, "a message fits wherever others begin");
static_assert(USER_ENTRIES > MGPU_JOB_MSGS, "a job fits");

/* Answers that are taken before their jobs are completed. */
#define BATCH		64

/* Longest wait for room, and for an answer to a command that goes ahead of jobs. */
#define EXEC_MS		5000

static struct mgpu_user_cmd *ring_cmds(const struct user_channel *ch)
{
	return (void *)(ch->ring + 1);
}

static struct mgpu_user_answer *ring_answers(const struct user_channel *ch)
{
	return (void *)(ring_cmds(ch) + USER_ENTRIES);
}

u32 user_ring_len(void)
{
	return PAGE_ALIGN(sizeof(struct mgpu_user_ring) +
			  USER_ENTRIES * (sizeof(struct mgpu_user_cmd) +
					  sizeof(struct mgpu_user_answer)));
}

static struct user_cmd *cmd_of(struct user_channel *ch, u32 seq)
{
	return &ch->cmds[seq % USER_ENTRIES];
}

/**
 * user_channel_new - make a channel
 * @user: device
 * @id: ID of a vGPU
 *
 * Return: the channel, with a reference; NULL if out of memory.
 */
struct user_channel *user_channel_new(struct mgpu_user *user, u32 id)
{
	struct user_channel *ch = kvzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);

	if (!ch)
		return NULL;
	kref_init(&ch->ref);
	ch->user = user;
	ch->id = id;
	spin_lock_init(&ch->lock);
	mutex_init(&ch->taking);
	mutex_init(&ch->killing);
	init_waitqueue_head(&ch->wait);
	init_waitqueue_head(&ch->room);
	mutex_init(&ch->mem_lock);
	xa_init_flags(&ch->mems, XA_FLAGS_ALLOC);
	xa_init(&ch->mem_of_res);
	address_space_init_once(&ch->mapping);
	ch->ring = vmalloc_user(user_ring_len());
	ch->arena = vmalloc_user(USER_ARENA);
	ch->dump = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!ch->ring || !ch->arena || !ch->dump) {
		user_channel_put(ch);
		return NULL;
	}
	return ch;
}

/* Say whose channel it is, before the vGPU gets it. */
void user_channel_of(struct user_channel *ch, struct mgpu_vgpu *vgpu)
{
	ch->vgpu = vgpu;
	ch->uuid = *mgpu_vgpu_uuid(vgpu);
	ch->mem_limit = mgpu_vgpu_mem_limit(vgpu);
}

static void channel_free(struct kref *ref)
{
	struct user_channel *ch = container_of(ref, struct user_channel, ref);

	WARN_ON(!xa_empty(&ch->mems) || !xa_empty(&ch->mem_of_res));
	xa_destroy(&ch->mems);
	xa_destroy(&ch->mem_of_res);
	if (ch->dump)
		__free_page(ch->dump);
	vfree(ch->arena);
	vfree(ch->ring);
	kvfree(ch);
}

void user_channel_put(struct user_channel *ch)
{
	kref_put(&ch->ref, channel_free);
}

/* ---- putting commands ---- */

/* Take room in the arena for a command that fits, by has_room(), and return its offset. */
static u32 arena_take(struct user_channel *ch, size_t len)
{
	u32 need = ALIGN(len, 8), at = ch->arena_tail % USER_ARENA;
	u32 skip = USER_ARENA - at < need ? USER_ARENA - at : 0;

	lockdep_assert_held(&ch->lock);
	ch->arena_tail += skip + need;
	return skip ? 0 : at;
}

/* Return whether the messages fit. */
static bool has_room(const struct user_channel *ch, const struct mgpu_msg *msgs, u32 nr)
{
	size_t len = 0, longest = 0;
	u32 i;

	if (USER_ENTRIES - (ch->tail - ch->oldest) < nr)
		return false;
	for (i = 0; i < nr; i++) {
		len += ALIGN(msgs[i].len, 8);
		longest = max_t(size_t, longest, ALIGN(msgs[i].len, 8));
	}
	/* At the end of the arena, less than the longest is skipped, once. */
	return USER_ARENA - (ch->arena_tail - ch->arena_head) >= len + longest;
}

static u32 type_of(const struct mgpu_msg *msg)
{
	const struct virtio_gpu_ctrl_hdr *hdr = msg->buf;

	return le32_to_cpu(hdr->type);
}

/* Return the memory that a command takes from its resource, or USER_NO_MEM. */
static u32 detached_by(struct user_channel *ch, const struct mgpu_msg *msg)
{
	const struct virtio_gpu_resource_unref *c = msg->buf;

	static_assert(offsetof(struct virtio_gpu_resource_detach_backing, resource_id) ==
		      offsetof(struct virtio_gpu_resource_unref, resource_id));
	switch (type_of(msg)) {
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return user_mem_detach(ch, le32_to_cpu(c->resource_id));
	default:
		return USER_NO_MEM;
	}
}

/*
 * Put a command that fits.  @mem: memory of one that attaches some, else NULL.  Return the
 * command's record.
 */
static struct user_cmd *put_cmd(struct user_channel *ch, struct mgpu_msg *msg, u32 flags,
				struct user_mem *mem)
{
	struct mgpu_user_cmd *wire = &ring_cmds(ch)[ch->tail % USER_ENTRIES];
	struct user_cmd *cmd = cmd_of(ch, ch->tail);
	u32 at = arena_take(ch, msg->len);
	u64 offset = 0, mem_len = 0;

	memcpy(ch->arena + at, msg->buf, msg->len);
	*cmd = (struct user_cmd){
		.arena_end = ch->arena_tail, .sent_cycles = get_cycles(), .attaches = mem,
	};
	if (mem) {
		offset = user_mem_rewrite(mem, ch->arena + at, &mem_len);
		user_mem_publish(ch, mem);
		cmd->mem = user_mem_id(mem);
	} else {
		cmd->mem = detached_by(ch, msg);
	}
	*wire = (struct mgpu_user_cmd){
		.seq = ch->tail, .flags = flags, .offset = at, .len = msg->len,
		.mem = offset, .mem_len = mem_len,
	};
	ch->tail++;
	return cmd;
}

static void publish(struct user_channel *ch)
{
	/* The worker sees the commands behind its own acquire. */
	smp_store_release(&ch->ring->cmd_tail, ch->tail);
	wake_up_all(&ch->wait);
}

/* Put a command that the worker answers. */
static void put_msg(struct user_channel *ch, struct mgpu_msg *msg, struct user_mem *mem)
{
	u32 flags = msg->fenced ? MGPU_USER_CMD_FENCED : 0;

	if (msg->export)
		flags |= MGPU_USER_CMD_EXPORT;
	if (msg->turn)
		flags |= MGPU_USER_CMD_TURN;
	put_cmd(ch, msg, flags, mem)->msg = msg;
	memset(msg->resp, 0, sizeof(*msg->resp));
	msg->error = -EINPROGRESS;
	msg->engine_ns = 0;
	msg->sent_ns = ktime_get_ns();
}

static int post(struct user_channel *ch, struct mgpu_msg *msgs, u32 nr,
		struct user_mem *mem)
{
	int ret;
	u32 i;

	spin_lock(&ch->lock);
	if (ch->dead)
		ret = -EIO;
	else if (!has_room(ch, msgs, nr))
		ret = -EAGAIN;
	else
		ret = mgpu_msg_begin(&msgs[0]);
	for (i = 0; i < nr && !ret; i++)
		put_msg(ch, &msgs[i], user_mem_attaches(&msgs[i]) ? mem : NULL);
	if (!ret)
		publish(ch);
	spin_unlock(&ch->lock);
	return ret;
}

/**
 * user_channel_post - put messages, all or none
 * @ch: channel
 * @msgs: messages; at most one attaches memory
 * @nr: their number
 *
 * Context: may sleep.
 * Return: 0; -EAGAIN if there is no room now; -EIO if the channel is dead; -ENOMEM; or an
 * error of mgpu_msg_begin().
 */
int user_channel_post(struct user_channel *ch, struct mgpu_msg *msgs, u32 nr)
{
	struct user_mem *mem = NULL;
	u32 i;
	int ret;

	for (i = 0; i < nr && !mem; i++) {
		if (!user_mem_attaches(&msgs[i]))
			continue;
		mem = user_mem_make(&msgs[i]);
		if (!mem)
			return -ENOMEM;
		ret = user_mem_reserve(ch, mem);
		if (ret) {
			kvfree(mem);
			return ret;
		}
	}
	ret = post(ch, msgs, nr, mem);
	if (ret)
		user_mem_drop(ch, mem);
	return ret;
}

/* ---- answers ---- */

static bool is_answer(u32 type)
{
	return type == VIRTIO_GPU_RESP_OK_NODATA ||
	       (type >= VIRTIO_GPU_RESP_ERR_UNSPEC &&
		type <= VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
}

/* Free the room of commands that are done. */
static void advance(struct user_channel *ch)
{
	lockdep_assert_held(&ch->lock);

	while (ch->oldest != ch->tail && cmd_of(ch, ch->oldest)->done) {
		ch->arena_head = cmd_of(ch, ch->oldest)->arena_end;
		ch->oldest++;
	}
	wake_up_all(&ch->room);
}

/* Free the room of notices that the worker has taken. */
static int take_notices(struct user_channel *ch)
{
	u32 head = READ_ONCE(ch->ring->cmd_head), seq;

	lockdep_assert_held(&ch->lock);

	if (ch->tail - head > USER_ENTRIES)
		return -EPROTO;
	for (seq = ch->oldest; seq != ch->tail; seq++) {
		if ((s32)(head - seq) <= 0)
			break;
		if (!cmd_of(ch, seq)->msg)
			cmd_of(ch, seq)->done = true;
	}
	return 0;
}

/* Return whether all messages of a job are answered. */
static bool job_answered(struct mgpu_job *job)
{
	struct mgpu_msg *msgs;
	u32 nr, i;

	msgs = mgpu_job_msgs(job, &nr);
	for (i = 0; i < nr; i++) {
		if (msgs[i].error == -EINPROGRESS)
			return false;
	}
	return true;
}

/**
 * struct taken - what answers have completed
 * @done: messages that complete a job or a command that goes ahead of jobs
 * @mem: memory that the worker must lose before
 * @nr_mem: length of @mem
 */
struct taken {
	struct list_head done;
	u32 mem[BATCH];
	u32 nr_mem;
};

static int take_answer(struct user_channel *ch, const struct mgpu_user_answer *a,
		       struct taken *t)
{
	struct mgpu_msg *msg;
	struct user_cmd *cmd;

	if (a->seq - ch->oldest >= ch->tail - ch->oldest || !is_answer(a->type))
		return -EPROTO;
	cmd = cmd_of(ch, a->seq);
	msg = cmd->msg;
	if (cmd->done || !msg)
		return -EPROTO;
	msg->error = 0;
	if (msg->job && !job_answered(msg->job)) {
		msg->error = -EINPROGRESS;
		return -EPROTO;
	}
	msg->resp->type = cpu_to_le32(a->type);
	msg->engine_ns = a->engine_ns;
	msg->sent_cycles = cmd->sent_cycles;
	cmd->done = true;
	/* Memory that was detached, or could not be attached. */
	if (cmd->mem != USER_NO_MEM &&
	    (!cmd->attaches || a->type != VIRTIO_GPU_RESP_OK_NODATA))
		t->mem[t->nr_mem++] = cmd->mem;
	if (msg->job || msg->done)
		list_add_tail(&msg->node, &t->done);
	return 0;
}

/* Take up to BATCH answers.  Return 1 if there are more, 0, or a negative errno. */
static int take_answers(struct user_channel *ch, struct taken *t)
{
	struct mgpu_user_answer a;
	int ret = -EIO;
	u32 tail, n;

	t->nr_mem = 0;
	/* Pairs with the worker's release, after its answers. */
	tail = smp_load_acquire(&ch->ring->answer_tail);
	spin_lock(&ch->lock);
	if (ch->dead)
		goto out;
	ret = tail - ch->answered > USER_ENTRIES ? -EPROTO : take_notices(ch);
	for (n = 0; n < BATCH && ch->answered != tail && !ret; n++) {
		/* The worker may write to it meanwhile. */
		memcpy(&a, &ring_answers(ch)[ch->answered % USER_ENTRIES], sizeof(a));
		barrier();
		ret = take_answer(ch, &a, t);
		ch->answered++;
	}
	advance(ch);
	WRITE_ONCE(ch->ring->answer_head, ch->answered);
out:
	spin_unlock(&ch->lock);
	return ret ?: ch->answered != tail;
}

/*
 * Compute the engine time of a job that ends now.  Where one job runs at a time, it is at
 * most the time since the device got the job or ended the one before, whichever is later;
 * else the same of the vGPU's jobs.  A turn is beside the jobs that other workers execute
 * meanwhile: it is at most its length, and shortens none of them.  The worker says how much of
 * it the GPU worked.  It is believed down to a half: a worker that lies must not have the GPU
 * for nothing.
 */
static void account(struct user_channel *ch, const struct mgpu_msg *msg,
		    const struct mgpu_msg *first, u64 said, u64 *ns, u64 *cycles)
{
	u64 now = ktime_get_ns(), ticks = get_cycles(), *busy, from = first->sent_ns, passed;
	struct mgpu_user *user = ch->user;

	if (!msg->turn) {
		spin_lock(&user->lock);
		busy = user->engines == 1 ? &user->busy_ns : &ch->busy_ns;
		from = max(from, *busy);
		*busy = now;
		spin_unlock(&user->lock);
	}
	*ns = now - min(from, now);
	if (said)
		*ns = clamp(said, *ns / 2, *ns);
	passed = now - msg->sent_ns;
	/* Ticks and nanoseconds run at the same rate meanwhile. */
	*cycles = passed ? mul_u64_u64_div_u64(ticks - msg->sent_cycles, *ns, passed) : 0;
}

static void complete_job(struct user_channel *ch, struct mgpu_msg *last)
{
	u64 said = 0, ns, cycles;
	struct mgpu_msg *msgs;
	int error = 0;
	u32 nr, i;

	msgs = mgpu_job_msgs(last->job, &nr);
	for (i = 0; i < nr; i++) {
		if (check_add_overflow(said, msgs[i].engine_ns, &said))
			said = U64_MAX;
		if (msgs[i].error)
			error = msgs[i].error;
		else if (!error &&
			 le32_to_cpu(msgs[i].resp->type) != VIRTIO_GPU_RESP_OK_NODATA)
			error = -EREMOTEIO;
	}
	account(ch, last, &msgs[0], said, &ns, &cycles);
	mgpu_job_done(last->job, error, ns, cycles);
}

static void complete_msgs(struct user_channel *ch, struct list_head *done)
{
	struct mgpu_msg *msg, *next;

	list_for_each_entry_safe(msg, next, done, node) {
		list_del_init(&msg->node);
		if (msg->done)
			complete(msg->done);
		else
			complete_job(ch, msg);
	}
}

/**
 * user_channel_ready - count the commands that the worker has not taken
 * @ch: channel
 *
 * Return: their number; U32_MAX if the channel is dead.
 */
u32 user_channel_ready(struct user_channel *ch)
{
	u32 nr;

	spin_lock(&ch->lock);
	nr = ch->dead ? U32_MAX : ch->tail - READ_ONCE(ch->ring->cmd_head);
	spin_unlock(&ch->lock);
	return nr;
}

/**
 * user_channel_enter - take a worker's answers, and wait for commands
 * @ch: channel
 * @enter: argument of MGPU_USER_ENTER, checked
 *
 * Context: the worker's thread; may sleep.
 * Return: 0 or the negative errno of the system call.
 */
int user_channel_enter(struct user_channel *ch, struct mgpu_user_enter *enter)
{
	struct taken t = { .done = LIST_HEAD_INIT(t.done) };
	long wait;
	int ret;
	u32 i;

	mutex_lock(&ch->taking);
	do {
		ret = take_answers(ch, &t);
		for (i = 0; i < t.nr_mem; i++)
			user_mem_revoke(ch, t.mem[i]);
		complete_msgs(ch, &t.done);
	} while (ret > 0);
	mutex_unlock(&ch->taking);
	/* The engine has slots for other jobs. */
	user_wake(ch->user);
	if (ret == -EPROTO)
		user_channel_kill(ch, NULL);
	if (ret)
		return ret == -EIO ? -ENODEV : ret;
	if (enter->flags & MGPU_USER_WAIT) {
		wait = wait_event_interruptible_timeout(ch->wait, user_channel_ready(ch),
							msecs_to_jiffies(enter->timeout_ms));
		if (wait < 0)
			return wait;
	}
	enter->ready = user_channel_ready(ch);
	return enter->ready == U32_MAX ? -ENODEV : 0;
}

/* ---- blobs ---- */

/**
 * user_channel_map - take the memory of a blob from the worker
 * @ch: channel
 * @m: argument of MGPU_USER_MAP
 *
 * Context: the worker's thread; may sleep.
 * Return: 0 or the negative errno of the system call.
 */
int user_channel_map(struct user_channel *ch, const struct mgpu_user_map *m)
{
	u32 cache = m->cache ?: VIRTIO_GPU_MAP_CACHE_CACHED;
	struct mgpu_host_pages *pages;
	struct mgpu_msg *msg = NULL;
	int ret = 0;

	if (m->reserved || cache > VIRTIO_GPU_MAP_CACHE_WC || !m->len || !PAGE_ALIGNED(m->addr) ||
	    !PAGE_ALIGNED(m->len) || m->len > PAGE_ALIGN(ch->mem_limit))
		return -EINVAL;
	pages = mgpu_host_pages_take(m->addr, m->len >> PAGE_SHIFT, cache);
	if (IS_ERR(pages))
		return PTR_ERR(pages);
	spin_lock(&ch->lock);
	if (m->seq - ch->oldest < ch->tail - ch->oldest && !cmd_of(ch, m->seq)->done)
		msg = cmd_of(ch, m->seq)->msg;
	if (ch->dead)
		ret = -ENODEV;
	else if (!msg || type_of(msg) != VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB)
		ret = -EINVAL;
	else if (msg->host)
		ret = -EEXIST;
	else
		msg->host = pages;
	spin_unlock(&ch->lock);
	if (ret)
		mgpu_host_pages_put(pages);
	return ret;
}

/* ---- dma-bufs ---- */

/* Return where the dma-buf of a resource goes, or NULL. */
static struct mgpu_export *export_of(struct user_channel *ch, u32 res)
{
	const struct virtio_gpu_resource_create_3d *c;
	struct user_cmd *cmd;
	u32 seq;

	lockdep_assert_held(&ch->lock);

	for (seq = ch->oldest; seq != ch->tail; seq++) {
		cmd = cmd_of(ch, seq);
		if (cmd->done || !cmd->msg || !cmd->msg->export)
			continue;
		c = cmd->msg->buf;
		if (le32_to_cpu(c->resource_id) == res)
			return cmd->msg->export;
	}
	return NULL;
}

static bool red_first(u32 fourcc)
{
	return fourcc == DRM_FORMAT_XBGR8888 || fourcc == DRM_FORMAT_ABGR8888;
}

/* Return whether a dma-buf may be a picture, as far as the module can see. */
static bool has_picture(const struct dma_buf *buf, const struct mgpu_export *x,
			const struct mgpu_user_export *e)
{
	if (e->stride / 4 < x->width)
		return false;
	/* Only the driver knows where the memory is: virtio_gpu's dma-bufs may have one page. */
	if (e->modifier == DRM_FORMAT_MOD_INVALID)
		return true;
	return (u64)e->stride * x->height <= buf->size;
}

static bool export_ok(const struct mgpu_user_export *e)
{
	return !e->flags && !e->offset && !e->reserved &&
	       (e->fourcc == DRM_FORMAT_XRGB8888 || e->fourcc == DRM_FORMAT_ARGB8888 ||
		red_first(e->fourcc));
}

/**
 * user_channel_export - take the dma-buf of a resource that a worker makes
 * @ch: channel
 * @e: argument of MGPU_USER_EXPORT
 *
 * Context: the worker's thread; may sleep.
 * Return: 0 or the negative errno of the system call.
 */
int user_channel_export(struct user_channel *ch, const struct mgpu_user_export *e)
{
	struct mgpu_export *x;
	struct dma_buf *buf;
	int ret = 0;

	if (!export_ok(e))
		return -EINVAL;
	buf = dma_buf_get(e->fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	spin_lock(&ch->lock);
	x = ch->dead ? NULL : export_of(ch, e->resource);
	if (!x)
		ret = ch->dead ? -ENODEV : -ENOENT;
	else if (x->buf)
		ret = -EEXIST;
	else if (!has_picture(buf, x, e))
		ret = -EINVAL;
	if (!ret) {
		/* The thread that waits for the answer, which comes later, owns it. */
		x->buf = buf;
		x->red_first = red_first(e->fourcc);
		x->stride = e->stride;
		x->modifier = e->modifier;
	}
	spin_unlock(&ch->lock);
	if (ret)
		dma_buf_put(buf);
	return ret;
}

/* ---- commands that go ahead of jobs ---- */

/* Wait until a command may fit; return false if that takes too long. */
static bool wait_room(struct user_channel *ch, const struct mgpu_msg *msg)
{
	return wait_event_timeout(ch->room, READ_ONCE(ch->dead) || has_room(ch, msg, 1),
				  msecs_to_jiffies(EXEC_MS));
}

/* Return whether a command only releases something. */
static bool releases(const struct mgpu_msg *msg)
{
	switch (type_of(msg)) {
	case VIRTIO_GPU_CMD_CTX_DESTROY:
	case VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING:
	case VIRTIO_GPU_CMD_RESOURCE_UNREF:
		return true;
	default:
		return false;
	}
}

/* Release something without waiting for the worker, and tell it. */
static int notify(struct user_channel *ch, struct mgpu_msg *msg)
{
	u32 mem = USER_NO_MEM;
	int ret;

	do {
		spin_lock(&ch->lock);
		if (ch->dead)
			ret = -EIO;
		else if (!has_room(ch, msg, 1))
			ret = -EAGAIN;
		else
			ret = mgpu_msg_begin(msg);
		if (!ret) {
			mem = put_cmd(ch, msg, MGPU_USER_CMD_NOTICE, NULL)->mem;
			publish(ch);
		}
		spin_unlock(&ch->lock);
	} while (ret == -EAGAIN && wait_room(ch, msg));
	if (ret)
		return ret;
	msg->error = 0;
	msg->resp->type = cpu_to_le32(VIRTIO_GPU_RESP_OK_NODATA);
	user_mem_revoke(ch, mem);
	return 0;
}

static int ask(struct user_channel *ch, struct mgpu_msg *msg)
{
	DECLARE_COMPLETION_ONSTACK(done);
	int ret;

	msg->done = &done;
	do {
		ret = user_channel_post(ch, msg, 1);
	} while (ret == -EAGAIN && wait_room(ch, msg));
	if (ret)
		return ret;
	if (!wait_for_completion_timeout(&done, msecs_to_jiffies(EXEC_MS))) {
		user_channel_kill(ch, NULL);
		/* Whichever thread kills it completes the message. */
		wait_for_completion(&done);
	}
	return msg->error;
}

/**
 * user_channel_exec - have the worker execute a command ahead of jobs
 * @ch: channel, with a reference of the caller's
 * @msg: message without a job
 *
 * A worker that does not answer, or takes no commands, within EXEC_MS loses the channel.
 *
 * Context: may sleep.
 * Return: as ->exec() of struct mgpu_backend_ops.
 */
int user_channel_exec(struct user_channel *ch, struct mgpu_msg *msg)
{
	int ret = releases(msg) ? notify(ch, msg) : ask(ch, msg);

	if (ret == -EAGAIN)
		user_channel_kill(ch, NULL);
	return ret && ret != -EALREADY ? -EIO : ret;
}

/* ---- turns ---- */

/**
 * user_channel_turn - ask for engine time that no command stands for
 * @ch: channel
 *
 * Context: the worker's thread; may sleep.
 * Return: 0 or the negative errno of the system call.
 */
int user_channel_turn(struct user_channel *ch)
{
	int ret;

	/* The vGPU is there until the channel is dead. */
	mutex_lock(&ch->killing);
	ret = READ_ONCE(ch->dead) ? -ENODEV : mgpu_vgpu_turn(ch->vgpu);
	mutex_unlock(&ch->killing);
	return ret;
}

/* ---- the end of a channel ---- */

/* Return a job that has been with the worker for too long, or NULL. */
struct mgpu_job *user_channel_expired(struct user_channel *ch)
{
	struct mgpu_job *job = NULL;
	struct mgpu_msg *msg;
	u32 seq;

	spin_lock(&ch->lock);
	for (seq = ch->oldest; seq != ch->tail && !ch->dead && !job; seq++) {
		msg = cmd_of(ch, seq)->done ? NULL : cmd_of(ch, seq)->msg;
		if (msg && msg->job && mgpu_job_expired(msg->job))
			job = msg->job;
	}
	spin_unlock(&ch->lock);
	return job;
}

/**
 * user_channel_kill - put no more commands into a channel, and complete what is there
 * @ch: channel; nothing happens if it is dead
 * @culprit: job that it is killed for, or NULL
 *
 * Context: may sleep; must hold a reference of the caller's own.
 */
void user_channel_kill(struct user_channel *ch, struct mgpu_job *culprit)
{
	struct user_cmd *cmd;
	LIST_HEAD(lost);
	bool was;

	/* The second caller waits: the vGPU may be gone when it returns. */
	mutex_lock(&ch->killing);
	spin_lock(&ch->lock);
	was = ch->dead;
	WRITE_ONCE(ch->dead, true);
	spin_unlock(&ch->lock);
	if (was)
		goto out;
	/* The core unpins memory of a lost generation without asking: first of all, take it. */
	user_mem_revoke_all(ch);
	/* Before another worker can be attached. */
	mgpu_vgpu_lost(ch->vgpu, culprit);
	/* A thread that has taken answers completes them. */
	mutex_lock(&ch->taking);
	spin_lock(&ch->lock);
	for (; ch->oldest != ch->tail; ch->oldest++) {
		cmd = cmd_of(ch, ch->oldest);
		if (cmd->done || !cmd->msg)
			continue;
		cmd->msg->error = -EIO;
		cmd->msg->sent_cycles = cmd->sent_cycles;
		if (cmd->msg->job || cmd->msg->done)
			list_add_tail(&cmd->msg->node, &lost);
	}
	spin_unlock(&ch->lock);
	mutex_unlock(&ch->taking);
	complete_msgs(ch, &lost);
	wake_up_all(&ch->wait);
	wake_up_all(&ch->room);
	user_channel_gone(ch);
out:
	mutex_unlock(&ch->killing);
}

/* ---- mapping ---- */

/* Map the rings, commands or guest memory. */
int user_channel_mmap(struct user_channel *ch, struct vm_area_struct *vma)
{
	u64 first = (u64)vma->vm_pgoff << PAGE_SHIFT;

	if (first == MGPU_USER_OFF_RING) {
		if (!(vma->vm_flags & VM_SHARED))
			return -EINVAL;
		return remap_vmalloc_range(vma, ch->ring, 0);
	}
	if (first == MGPU_USER_OFF_ARENA) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		vm_flags_clear(vma, VM_MAYWRITE);
		return remap_vmalloc_range(vma, ch->arena, 0);
	}
	return user_mem_mmap(ch, vma);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute contexts: what a guest submits to them, how a job of theirs is spread
 * over slots, and how slots are taken from them and given back.
 *
 * A slot is an engine's capacity for one job at a time.  A job that a guest
 * submits (struct mgpu_work) is cut into tiles; each slot that works on it holds
 * a shard, which takes tile by tile.  What a shard computes beside the resources'
 * bytes is its live state, in memory that belongs to the slot.  Between two tiles
 * a shard can leave the engine: its live state is saved, and restored in whatever
 * slot it goes on.
 *
 * The scheduler sees a shard as a job of the vGPU: whose turn it is, quotas and
 * pacing are its business.  Which contexts may have slots is decided here, on
 * behalf of user space: ctx->allowed is how many.  One from which slots were taken
 * does not wait for ever: it gets slots that nobody else wants, and after
 * MGPU_PREEMPT_MAX_MS it waits as if nothing had been.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>
#include <uapi/linux/mgpu_compute.h>

#include "mgpu.h"
#include "trace.h"

/* Engine time after which a shard's counters are told, nanoseconds. */
#define SAMPLE_NS	(50 * NSEC_PER_MSEC)

#define NO_JOB	"the context has no job: there is nothing to take; " \
		"add hold to keep it from starting one"
#define FLUSH_ALL "a flush takes all slots: leave slots out"
#define NO_FLUSH "the context's job changes what it reads and cannot begin " \
		"anew: use switch or drain"

static struct mgpu_sched *sched_of(const struct mgpu_context *ctx)
{
	return &ctx->vgpu->mdev->sched;
}

/* ---- slots: sched->lock held ---- */

static u32 count(const struct mgpu_context *ctx, enum mgpu_shard_place place)
{
	u32 i, n = 0;

	for (i = 0; i < ctx->vgpu->mdev->caps.engines; i++)
		n += ctx->shards[i].place == place;
	return n;
}

static u32 active(const struct mgpu_context *ctx)
{
	return count(ctx, MGPU_SHARD_QUEUED) + ctx->running;
}

/* In sched->parked if it may have slots again that nobody wants. */
static void update_parked(struct mgpu_context *ctx, u64 now)
{
	bool parked = !ctx->held && !ctx->flushing &&
		      count(ctx, MGPU_SHARD_PARKED);

	if (parked && list_empty(&ctx->parked)) {
		ctx->parked_ns = now;
		list_add_tail(&ctx->parked, &sched_of(ctx)->parked);
	} else if (!parked) {
		list_del_init(&ctx->parked);
	}
}

/* Queues what may run; whether there was something. */
static bool refill(struct mgpu_context *ctx, bool first, u64 now)
{
	u32 i, n = active(ctx), before = n;

	if (ctx->flushing || ctx->dying)
		return false;
	for (i = 0; i < ctx->vgpu->mdev->caps.engines && n < ctx->allowed; i++) {
		struct mgpu_shard *shard = &ctx->shards[i];

		if (shard->place != MGPU_SHARD_PARKED)
			continue;
		shard->place = MGPU_SHARD_QUEUED;
		mgpu_sched_enqueue(&shard->job, first, now);
		if (shard->begun)
			atomic64_inc(&ctx->stats.resumes);
		n++;
	}
	update_parked(ctx, now);
	return n > before;
}

/* Sees to it that no more shards than allowed run, at the latest a tile later. */
static void drain_off(struct mgpu_context *ctx, u64 now)
{
	u32 i, n = active(ctx);

	for (i = 0; i < ctx->vgpu->mdev->caps.engines; i++) {
		struct mgpu_shard *shard = &ctx->shards[i];

		if (shard->place != MGPU_SHARD_QUEUED || n <= ctx->allowed)
			continue;
		mgpu_sched_dequeue(&shard->job, now);
		shard->place = MGPU_SHARD_PARKED;
		n--;
	}
	for (i = ctx->vgpu->mdev->caps.engines; i-- > 0;) {
		struct mgpu_shard *shard = &ctx->shards[i];

		if (shard->place != MGPU_SHARD_RUNNING)
			continue;
		WRITE_ONCE(shard->job.stop, n > ctx->allowed);
		if (n > ctx->allowed)
			n--;
	}
	update_parked(ctx, now);
}

/* Takes the next work, if there is none in progress. */
static void start_work(struct mgpu_context *ctx, u64 now)
{
	struct mgpu_device *mdev = ctx->vgpu->mdev;
	struct mgpu_work *work;
	u32 i;

	if (ctx->work || ctx->dying || list_empty(&ctx->works))
		return;
	work = list_first_entry(&ctx->works, struct mgpu_work, node);
	list_del_init(&work->node);
	ctx->work = work;
	ctx->out = work->slots;
	if (!ctx->held)
		ctx->allowed = ctx->draining ? ctx->keep : mdev->caps.engines;
	ctx->draining = false;

	for (i = 0; i < work->slots; i++) {
		struct mgpu_shard *shard = &ctx->shards[i];
		struct mgpu_job *job = &shard->job;

		memset(shard, 0, sizeof(*shard));
		shard->ctx = ctx;
		shard->place = MGPU_SHARD_PARKED;
		INIT_LIST_HEAD(&job->node);
		job->vgpu = ctx->vgpu;
		job->shard = shard;
		job->kind = MGPU_JOB_COMPUTE;
		job->id = atomic64_inc_return(&mdev->sched.next_job);
		job->arrived_ns = work->arrived_ns;
		trace_mgpu_job_submit(ctx->vgpu->id, job->id, job->kind,
				      div_u64(work->job.bytes, work->slots));
	}
	refill(ctx, false, now);
}

/* Ends the work in progress, of which no shard is out. */
static struct mgpu_work *end_work(struct mgpu_context *ctx, u64 now)
{
	struct mgpu_work *work = ctx->work;

	ctx->work = NULL;
	ctx->queued--;
	ctx->flushing = false;
	if (ctx->draining && ctx->hold_next) {
		ctx->held = true;
		ctx->allowed = ctx->keep;
	}
	atomic64_inc(&ctx->stats.jobs);
	if (work->error)
		atomic64_inc(&ctx->stats.job_errors);
	start_work(ctx, now);
	update_parked(ctx, now);
	return work;
}

/* The work has failed: what does not run will not. */
static void abort_work(struct mgpu_context *ctx, int error, u64 now)
{
	struct mgpu_work *work = ctx->work;
	u32 i;

	if (!work->error)
		WRITE_ONCE(work->error, error);
	for (i = 0; i < work->slots; i++) {
		struct mgpu_shard *shard = &ctx->shards[i];

		if (shard->place == MGPU_SHARD_QUEUED)
			mgpu_sched_dequeue(&shard->job, now);
		else if (shard->place != MGPU_SHARD_PARKED)
			continue;
		shard->place = MGPU_SHARD_NONE;
		ctx->out--;
	}
	update_parked(ctx, now);
}

/* The last shard of a work to be flushed has left. */
static void begin_anew(struct mgpu_context *ctx, u64 now)
{
	struct mgpu_work *work = ctx->work;
	u32 i;

	ctx->flushing = false;
	if (atomic64_read(&work->next))
		atomic64_inc(&ctx->stats.flushes);
	atomic64_set(&work->next, 0);
	atomic64_set(&work->inst_done, 0);
	work->prepared = false;
	ctx->out = work->slots;
	for (i = 0; i < work->slots; i++) {
		ctx->shards[i].begun = false;
		ctx->shards[i].place = MGPU_SHARD_PARKED;
		/* What was for nothing is not held against it. */
		ctx->shards[i].job.ran_ns = 0;
		ctx->shards[i].job.late = false;
	}
	refill(ctx, false, now);
	update_parked(ctx, now);
}

/* Another context that has a slot now; or none. */
static void find_peer(struct mgpu_shard *shard)
{
	struct mgpu_job *job;

	shard->peer_vgpu = 0;
	shard->peer = 0;
	list_for_each_entry(job, &sched_of(shard->ctx)->running, node) {
		if (!job->shard || job->shard->ctx == shard->ctx)
			continue;
		shard->peer_vgpu = job->vgpu->id;
		shard->peer = job->shard->ctx->id;
		return;
	}
}

/* Contexts that run beside this one have another neighbour. */
static void tell_peers(struct mgpu_context *ctx)
{
	struct mgpu_job *job;

	list_for_each_entry(job, &sched_of(ctx)->running, node) {
		if (job->shard && job->shard->ctx != ctx)
			WRITE_ONCE(job->resample, true);
	}
}

/**
 * mgpu_context_taken - a shard's job goes to an engine
 * @job: in sched->running
 *
 * Context: sched->lock held.
 */
void mgpu_context_taken(struct mgpu_job *job)
{
	struct mgpu_shard *shard = job->shard;

	shard->place = MGPU_SHARD_RUNNING;
	shard->ctx->running++;
	job->stop = false;
	job->resample = false;
	shard->sampled_ns = 0;
	shard->sampled_cycles = 0;
	find_peer(shard);
	tell_peers(shard->ctx);
}

static void off_engine(struct mgpu_shard *shard)
{
	shard->ctx->running--;
	shard->job.stop = false;
	tell_peers(shard->ctx);
}

/**
 * mgpu_context_left - a shard's job has left its engine between two tiles
 * @job: in no list
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Context: sched->lock held.
 * Return: true when it is to be queued again.
 */
bool mgpu_context_left(struct mgpu_job *job, u64 now)
{
	struct mgpu_shard *shard = job->shard;
	struct mgpu_context *ctx = shard->ctx;

	off_engine(shard);
	if (ctx->work->error) {
		shard->place = MGPU_SHARD_NONE;
		if (!--ctx->out) {
			llist_add(&end_work(ctx, now)->done,
				  &ctx->vgpu->works_done);
			mgpu_ring_kick(ctx->vgpu);
		}
		return false;
	}
	shard->place = MGPU_SHARD_PARKED;
	if (ctx->flushing) {
		atomic64_inc(&ctx->stats.preemptions);
		if (!ctx->running)
			begin_anew(ctx, now);
		return false;
	}
	if (active(ctx) < ctx->allowed) {
		shard->place = MGPU_SHARD_QUEUED;
		return true;
	}
	atomic64_inc(&ctx->stats.preemptions);
	update_parked(ctx, now);
	return false;
}

/**
 * mgpu_context_unpark - give a slot that nobody wants to a context that lost one
 * @sched: scheduler
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Context: sched->lock held.
 * Return: whether a shard was queued.
 */
bool mgpu_context_unpark(struct mgpu_sched *sched, u64 now)
{
	struct mgpu_context *ctx, *next;

	list_for_each_entry_safe(ctx, next, &sched->parked, parked) {
		/* Its turn has not come; another's may have. */
		if (ctx->vgpu->entity.state == MGPU_ENTITY_DELAYED)
			continue;
		ctx->allowed = active(ctx) + 1;
		if (refill(ctx, false, now))
			return true;
	}
	return false;
}

/**
 * mgpu_context_watch - let contexts wait again that were kept off for too long
 * @sched: scheduler
 * @now: CLOCK_MONOTONIC nanoseconds
 *
 * Context: sched->lock held.
 */
void mgpu_context_watch(struct mgpu_sched *sched, u64 now)
{
	struct mgpu_context *ctx, *next;

	list_for_each_entry_safe(ctx, next, &sched->parked, parked) {
		if (now - ctx->parked_ns < MGPU_PREEMPT_MAX_MS * NSEC_PER_MSEC)
			continue;
		ctx->allowed = ctx->vgpu->mdev->caps.engines;
		refill(ctx, false, now);
	}
}

/* ---- a shard on an engine ---- */

static void unmap(struct mgpu_work *work, u32 n)
{
	while (n--)
		mgpu_mem_put(work->res[n]->backing);
}

/* Where the work's resources are, until unmap(); false when one is gone. */
static bool map(struct mgpu_work *work, struct mgpu_compute_buf *bufs)
{
	u32 i;

	for (i = 0; i < work->job.nr_bufs; i++) {
		bufs[i].size = work->res[i]->size;
		bufs[i].base = mgpu_mem_get(work->res[i]->backing);
		if (!bufs[i].base) {
			unmap(work, i);
			return false;
		}
	}
	return true;
}

static void *save_area(const struct mgpu_shard *shard)
{
	const struct mgpu_context *ctx = shard->ctx;

	return ctx->work->save + (size_t)(shard - ctx->shards) * ctx->work->live;
}

static void count_copy(struct mgpu_shard *shard, u64 ns)
{
	atomic64_add(ns, &shard->ctx->stats.switch_ns);
	atomic64_inc(&shard->ctx->stats.copies);
}

/**
 * mgpu_job_begin - an engine starts on a job, or goes on with it
 * @job: from mgpu_sched_next()
 * @local: the slot's memory, MGPU_COMPUTE_LOCAL_MAX bytes, aligned to 64; its
 *	content is the job's until mgpu_job_yield() takes it back or
 *	mgpu_job_done() was called
 *
 * Context: task context; may sleep.
 * Return: 0, or a negative errno to hand to mgpu_job_done().
 */
int mgpu_job_begin(struct mgpu_job *job, void *local)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_shard *shard = job->shard;
	struct mgpu_work *work;
	int ret = 0;
	u64 t;

	if (!shard)
		return 0;
	work = shard->ctx->work;
	shard->local = local;

	mutex_lock(&shard->ctx->merge);
	if (!work->prepared) {
		if (map(work, bufs)) {
			mgpu_compute_prepare(&work->job, bufs);
			unmap(work, work->job.nr_bufs);
			work->prepared = true;
		} else {
			ret = -EFAULT;
		}
	}
	mutex_unlock(&shard->ctx->merge);
	if (ret)
		return ret;

	if (!shard->begun) {
		mgpu_compute_begin(&work->job, local);
		shard->begun = true;
		return 0;
	}
	t = ktime_get_ns();
	memcpy(local, save_area(shard), work->live);
	count_copy(shard, ktime_get_ns() - t);
	return 0;
}
EXPORT_SYMBOL_GPL(mgpu_job_begin);

/**
 * mgpu_context_step - a shard takes a tile
 * @job: the shard's
 *
 * Return: as mgpu_job_step().
 */
int mgpu_context_step(struct mgpu_job *job)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_shard *shard = job->shard;
	struct mgpu_work *work = shard->ctx->work;
	u64 before = shard->usage.inst, tile;
	int error = READ_ONCE(work->error);

	if (error)
		return error;
	tile = atomic64_fetch_inc(&work->next);
	if (tile >= work->job.tiles)
		return 0;
	if (!map(work, bufs))
		return -EFAULT;
	mgpu_compute_tile(&work->job, bufs, shard->local, tile, &shard->usage);
	unmap(work, work->job.nr_bufs);
	atomic64_add(shard->usage.inst - before, &work->inst_done);
	return 1;
}

/* Whether mgpu_context_sample() is due. */
bool mgpu_context_sample_due(const struct mgpu_job *job, u64 engine_ns)
{
	return READ_ONCE(job->resample) ||
	       engine_ns - job->shard->sampled_ns > SAMPLE_NS;
}

/**
 * mgpu_context_sample - tell what a shard did, if it is time
 * @job: the shard's
 * @engine_ns: engine time since the engine took it, nanoseconds
 * @engine_cycles: the same in TSC ticks
 *
 * A sample covers a time in which the shard had one set of neighbours.
 *
 * Context: task context.
 */
void mgpu_context_sample(struct mgpu_job *job, u64 engine_ns,
			 u64 engine_cycles)
{
	struct mgpu_shard *shard = job->shard;
	struct mgpu_context *ctx = shard->ctx;
	struct mgpu_context_stats *st = &ctx->stats;
	struct mgpu_compute_usage used = {
		.inst = shard->usage.inst - shard->sampled.inst,
		.bytes = shard->usage.bytes - shard->sampled.bytes,
	};
	u64 ns = engine_ns - min(shard->sampled_ns, engine_ns);
	u64 cycles = engine_cycles - min(shard->sampled_cycles, engine_cycles);

	shard->sampled = shard->usage;
	shard->sampled_ns = engine_ns;
	shard->sampled_cycles = engine_cycles;
	atomic64_add(used.inst, &st->inst);
	atomic64_add(used.bytes, &st->bytes);
	atomic64_add(ns, &st->engine_ns);
	atomic64_add(cycles, &st->engine_cycles);
	trace_mgpu_context_run(ctx->vgpu->id, ctx->id, ctx->work->job.op,
			       shard->peer_vgpu, shard->peer, used.inst,
			       used.bytes, ns, cycles);

	spin_lock_irq(&sched_of(ctx)->lock);
	job->resample = false;
	find_peer(shard);
	spin_unlock_irq(&sched_of(ctx)->lock);
}

/**
 * mgpu_context_save - keep a shard's live state; its slot gets another job
 * @job: the shard's, which is to leave its engine
 *
 * Context: task context.
 * Return: nanoseconds that it took.
 */
u64 mgpu_context_save(struct mgpu_job *job)
{
	struct mgpu_shard *shard = job->shard;
	u64 t = ktime_get_ns();

	memcpy(save_area(shard), shard->local, shard->ctx->work->live);
	t = ktime_get_ns() - t;
	count_copy(shard, t);
	return t;
}

/**
 * mgpu_context_job_done - a shard found no more tiles, or failed
 * @job: the shard's, with its error; not the caller's any more
 *
 * Context: task context; may sleep.
 */
void mgpu_context_job_done(struct mgpu_job *job)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_shard *shard = job->shard;
	struct mgpu_context *ctx = shard->ctx;
	struct mgpu_sched *sched = sched_of(ctx);
	struct mgpu_work *work = ctx->work, *ended = NULL;
	struct mgpu_vgpu *vgpu = ctx->vgpu;
	u32 id = ctx->id;
	u64 now;

	if (!job->error) {
		mutex_lock(&ctx->merge);
		if (map(work, bufs)) {
			mgpu_compute_end(&work->job, bufs, shard->local);
			unmap(work, work->job.nr_bufs);
		} else {
			job->error = -EFAULT;
		}
		mutex_unlock(&ctx->merge);
	}

	now = ktime_get_ns();
	spin_lock_irq(&sched->lock);
	off_engine(shard);
	if (ctx->flushing && !job->error && !ctx->dying) {
		shard->place = MGPU_SHARD_PARKED;
		if (!ctx->running)
			begin_anew(ctx, now);
	} else {
		shard->place = MGPU_SHARD_NONE;
		ctx->out--;
		if (job->error)
			abort_work(ctx, job->error, now);
		if (!ctx->out)
			ended = end_work(ctx, now);
		else
			refill(ctx, false, now);
	}
	spin_unlock_irq(&sched->lock);
	/* The context may be gone from here on. */

	if (ended) {
		mgpu_ring_work_done(vgpu, ended);
		mgpu_netlink_ctx_event(vgpu, id);
	}
}

/* ---- commands: ring_lock held ---- */

static struct mgpu_context *find(struct mgpu_vgpu *vgpu, u32 id)
{
	return xa_load(&vgpu->contexts, id);
}

u32 mgpu_context_create(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	u32 i, engines = vgpu->mdev->caps.engines;
	struct mgpu_context *ctx;

	if (cmd->capset && cmd->capset != MGPU_CAPSET_COMPUTE)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (find(vgpu, cmd->ctx_id))
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (vgpu->nr_contexts >= MGPU_MAX_CONTEXTS)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

	ctx = kzalloc(struct_size(ctx, shards, engines), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	ctx->vgpu = vgpu;
	ctx->id = cmd->ctx_id;
	ctx->capset = cmd->capset;
	memcpy(ctx->name, cmd->name, sizeof(ctx->name));
	xa_init(&ctx->attached);
	mutex_init(&ctx->merge);
	INIT_LIST_HEAD(&ctx->works);
	INIT_LIST_HEAD(&ctx->parked);
	ctx->allowed = engines;
	for (i = 0; i < engines; i++)
		ctx->shards[i].ctx = ctx;

	if (xa_err(xa_store(&vgpu->contexts, ctx->id, ctx,
			    GFP_KERNEL_ACCOUNT))) {
		kfree(ctx);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	vgpu->nr_contexts++;
	return VIRTIO_GPU_RESP_OK_NODATA;
}

static bool is_quiet(struct mgpu_context *ctx)
{
	bool quiet;

	spin_lock_irq(&sched_of(ctx)->lock);
	quiet = !ctx->running && !ctx->work;
	spin_unlock_irq(&sched_of(ctx)->lock);
	return quiet;
}

/* Ends a context.  Its works are answered, with an error, by who runs the ring. */
static void context_end(struct mgpu_context *ctx)
{
	struct mgpu_vgpu *vgpu = ctx->vgpu;
	struct mgpu_sched *sched = sched_of(ctx);
	struct mgpu_work *work, *next, *ended = NULL;
	struct mgpu_resource *res;
	LIST_HEAD(works);
	unsigned long id;

	spin_lock_irq(&sched->lock);
	ctx->dying = true;
	ctx->flushing = false;
	list_splice_init(&ctx->works, &works);
	if (ctx->work) {
		abort_work(ctx, -ECANCELED, ktime_get_ns());
		if (!ctx->out)
			ended = end_work(ctx, ktime_get_ns());
	}
	spin_unlock_irq(&sched->lock);

	/* A tile at most. */
	wait_event(sched->idle, is_quiet(ctx));

	xa_erase(&vgpu->contexts, ctx->id);
	vgpu->nr_contexts--;
	/* Who found it before holds the lock. */
	spin_lock_irq(&sched->lock);
	list_del_init(&ctx->parked);
	spin_unlock_irq(&sched->lock);

	if (ended)
		llist_add(&ended->done, &vgpu->works_done);
	list_for_each_entry_safe(work, next, &works, node) {
		list_del_init(&work->node);
		work->error = -ECANCELED;
		llist_add(&work->done, &vgpu->works_done);
	}
	xa_for_each(&ctx->attached, id, res)
		mgpu_resource_put(res);
	xa_destroy(&ctx->attached);
	kfree(ctx);
}

u32 mgpu_context_destroy(struct mgpu_vgpu *vgpu, u32 id)
{
	struct mgpu_context *ctx = find(vgpu, id);

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	context_end(ctx);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/* Reset: the ring is stopped. */
void mgpu_context_end_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_context *ctx;
	unsigned long id;

	xa_for_each(&vgpu->contexts, id, ctx)
		context_end(ctx);
	xa_destroy(&vgpu->contexts);
}

/* After that, once no engine is at work for the vGPU: what will not be answered. */
void mgpu_work_free_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_work *work, *next;

	list_for_each_entry_safe(work, next, &vgpu->works_ending, node)
		mgpu_work_free(vgpu, work);
	INIT_LIST_HEAD(&vgpu->works_ending);
	llist_for_each_entry_safe(work, next, llist_del_all(&vgpu->works_done),
				  done)
		mgpu_work_free(vgpu, work);
}

u32 mgpu_context_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	struct mgpu_context *ctx = find(vgpu, cmd->ctx_id);
	struct mgpu_resource *res = mgpu_resource_find(vgpu, cmd->res_id);
	unsigned long id;
	void *entry;
	u32 n = 0;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	/* The guest may have made another resource with this number. */
	entry = xa_load(&ctx->attached, res->id);
	if (entry == res)
		return VIRTIO_GPU_RESP_OK_NODATA;
	if (!entry) {
		xa_for_each(&ctx->attached, id, entry)
			n++;
		if (n >= MGPU_MAX_ATTACHED)
			return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}

	mgpu_resource_get(res);
	entry = xa_store(&ctx->attached, res->id, res, GFP_KERNEL_ACCOUNT);
	if (xa_err(entry)) {
		mgpu_resource_put(res);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	if (entry)
		mgpu_resource_put(entry);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

u32 mgpu_context_detach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	struct mgpu_context *ctx = find(vgpu, cmd->ctx_id);
	struct mgpu_resource *res;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	res = xa_erase(&ctx->attached, cmd->res_id);
	if (!res)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	mgpu_resource_put(res);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/**
 * mgpu_work_free - let go of what a work holds
 * @vgpu: whose it is
 * @work: in no list
 *
 * Context: may sleep: a resource that goes unpins guest memory.
 */
void mgpu_work_free(struct mgpu_vgpu *vgpu, struct mgpu_work *work)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(work->res); i++) {
		if (work->res[i])
			mgpu_resource_put(work->res[i]);
	}
	kvfree(work->save);
	mgpu_mem_uncharge(vgpu, work->charged);
	kfree(work);
}

/* The resources that the work names: attached, and memory of the guest's. */
static u32 take_resources(struct mgpu_context *ctx, struct mgpu_work *work)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_resource *res;
	u32 i;
	int ret;

	for (i = 0; i < work->job.nr_bufs; i++) {
		res = xa_load(&ctx->attached, work->job.res[i]);
		if (!res)
			return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
		/* Contiguous for us: a stock guest's blobs are whole pages. */
		if (!res->blob || !res->backing ||
		    res->backing->nr_chunks != 1 ||
		    res->backing->chunks[0].at % sizeof(u64))
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		mgpu_resource_get(res);
		work->res[i] = res;
	}
	if (!map(work, bufs))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	ret = mgpu_compute_check(&work->job, bufs);
	unmap(work, work->job.nr_bufs);
	return ret ? VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER : 0;
}

/**
 * mgpu_context_submit - a guest submits a job
 * @vgpu: vGPU
 * @lane: control queue, with the decoded SUBMIT_3D
 *
 * Fences with a ring index are in order within the context's ring.  One without is
 * in order with those of all other commands, since a guest takes a later one's
 * signal for its own (VIRTIO 1.2, section 5.7.6.7): the queue waits for it.
 *
 * Context: ring_lock held.
 * Return: 0 when the context has it, or VIRTIO_GPU_RESP_ERR_* to answer with.
 */
u32 mgpu_context_submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_context *ctx = find(vgpu, cmd->ctx_id);
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u32 err = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	struct mgpu_work *work;
	bool waits;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (ctx->capset != MGPU_CAPSET_COMPUTE)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	work = kzalloc(struct_size(work, segs, mgpu_reply_segs(lane)),
		       GFP_KERNEL_ACCOUNT);
	if (!work)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (mgpu_compute_decode(cmd->payload, cmd->size, &work->job))
		goto refuse;
	err = take_resources(ctx, work);
	if (err)
		goto refuse;

	work->slots = min3(work->job.slots ?: U32_MAX, work->job.tiles,
			   vgpu->mdev->caps.engines);
	work->live = mgpu_compute_live(&work->job);
	work->charged = (u64)work->live * work->slots;
	err = VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	if (mgpu_mem_charge(vgpu, work->charged)) {
		work->charged = 0;
		goto refuse;
	}
	if (work->charged) {
		work->save = kvmalloc(work->charged, GFP_KERNEL_ACCOUNT);
		if (!work->save)
			goto refuse;
	}
	work->ctx = ctx->id;
	work->in_order = (cmd->flags & VIRTIO_GPU_FLAG_FENCE) &&
			 !(cmd->flags & VIRTIO_GPU_FLAG_INFO_RING_IDX);
	work->arrived_ns = ktime_get_ns();
	mgpu_reply_init(&work->reply, lane, work->segs);

	spin_lock_irq(&sched->lock);
	list_add_tail(&work->node, &ctx->works);
	ctx->queued++;
	start_work(ctx, work->arrived_ns);
	waits = sched->nr_running >= sched->slots;
	spin_unlock_irq(&sched->lock);
	if (work->in_order)
		WRITE_ONCE(lane->state, MGPU_LANE_BUSY);

	vgpu->mdev->ops->kick(vgpu->mdev);
	if (waits)
		mgpu_netlink_ctx_event(vgpu, ctx->id);
	return 0;

refuse:
	mgpu_work_free(vgpu, work);
	return err;
}

/* ---- user space ---- */

/**
 * mgpu_context_preempt - take slots from a context
 * @vgpu: vGPU
 * @id: context
 * @keep: slots that it may keep; FLUSH: 0
 * @method: how
 * @hold: it goes on only when it is resumed
 * @why: set when it is refused: what to do about it
 *
 * Context: mgpu_registry_lock held.
 * Return: 0; -ENOENT, there is no such context; -EINVAL or -EOPNOTSUPP with @why.
 */
int mgpu_context_preempt(struct mgpu_vgpu *vgpu, u32 id, u32 keep,
			 enum mgpu_preempt_method method, bool hold,
			 const char **why)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u64 now = ktime_get_ns();
	struct mgpu_context *ctx;
	int ret = 0;

	spin_lock_irq(&sched->lock);
	ctx = find(vgpu, id);
	if (!ctx) {
		ret = -ENOENT;
		goto unlock;
	}
	if (!ctx->work && !hold) {
		*why = NO_JOB;
		ret = -EINVAL;
		goto unlock;
	}
	if (method == MGPU_PREEMPT_METHOD_FLUSH && ctx->work &&
	    (keep || !ctx->work->job.idempotent)) {
		*why = keep ? FLUSH_ALL : NO_FLUSH;
		ret = keep ? -EINVAL : -EOPNOTSUPP;
		goto unlock;
	}

	if (method == MGPU_PREEMPT_METHOD_DRAIN && ctx->work &&
	    (ctx->running || atomic64_read(&ctx->work->next))) {
		ctx->draining = true;
		ctx->hold_next = hold;
		ctx->keep = keep;
		goto unlock;
	}
	ctx->held = hold;
	ctx->allowed = keep;
	if (method == MGPU_PREEMPT_METHOD_FLUSH && ctx->work)
		ctx->flushing = true;
	drain_off(ctx, now);
	if (ctx->flushing && !ctx->running)
		begin_anew(ctx, now);
unlock:
	spin_unlock_irq(&sched->lock);
	vgpu->mdev->ops->kick(vgpu->mdev);
	return ret;
}

/**
 * mgpu_context_resume - let a context have slots again
 * @vgpu: vGPU
 * @id: context
 * @first: ahead of the vGPU's other contexts
 *
 * Context: mgpu_registry_lock held.
 * Return: 0, or -ENOENT when there is no such context.
 */
int mgpu_context_resume(struct mgpu_vgpu *vgpu, u32 id, bool first)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u64 now = ktime_get_ns();
	struct mgpu_context *ctx;
	u32 i;

	spin_lock_irq(&sched->lock);
	ctx = find(vgpu, id);
	if (ctx) {
		ctx->held = false;
		ctx->draining = false;
		ctx->allowed = vgpu->mdev->caps.engines;
		for (i = 0; first && i < vgpu->mdev->caps.engines; i++) {
			struct mgpu_shard *shard = &ctx->shards[i];

			if (shard->place == MGPU_SHARD_QUEUED)
				mgpu_sched_first(&shard->job, now);
		}
		drain_off(ctx, now);
		refill(ctx, first, now);
	}
	spin_unlock_irq(&sched->lock);
	vgpu->mdev->ops->kick(vgpu->mdev);
	return ctx ? 0 : -ENOENT;
}

static enum mgpu_ctx_state state_of(const struct mgpu_context *ctx)
{
	if (ctx->running)
		return MGPU_CTX_STATE_RUNNING;
	if (ctx->held)
		return MGPU_CTX_STATE_HELD;
	if (!ctx->work)
		return MGPU_CTX_STATE_IDLE;
	return !list_empty(&ctx->parked) ? MGPU_CTX_STATE_PREEMPTED :
					   MGPU_CTX_STATE_WAITING;
}

/**
 * mgpu_context_info - what there is to know of a context
 * @vgpu: vGPU
 * @from: its number
 * @exact: that one; else the first with this or a greater number
 * @info: result
 *
 * Context: any; the caller keeps the vGPU.
 * Return: 0, or -ENOENT when there is none.
 */
int mgpu_context_info(struct mgpu_vgpu *vgpu, unsigned long from, bool exact,
		      struct mgpu_context_info *info)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	const struct mgpu_context_stats *st;
	const struct mgpu_work *work;
	struct mgpu_context *ctx;
	unsigned long flags;

	memset(info, 0, sizeof(*info));
	spin_lock_irqsave(&sched->lock, flags);
	ctx = exact ? xa_load(&vgpu->contexts, from) :
		      xa_find(&vgpu->contexts, &from, U32_MAX, XA_PRESENT);
	if (!ctx) {
		spin_unlock_irqrestore(&sched->lock, flags);
		return -ENOENT;
	}
	st = &ctx->stats;
	info->id = ctx->id;
	memcpy(info->name, ctx->name, sizeof(info->name));
	info->state = state_of(ctx);
	info->slots = ctx->running;
	info->slots_allowed = ctx->allowed;
	info->queued = ctx->queued;
	work = ctx->work;
	if (work) {
		info->op = work->job.op;
		info->slots_wanted = work->slots;
		info->idempotent = work->job.idempotent;
		info->job_inst = work->job.inst;
		info->job_inst_done = atomic64_read(&work->inst_done);
		info->job_bytes = work->job.bytes;
		info->live_bytes = work->live;
		info->arrived_ns = work->arrived_ns;
	}
	info->jobs = atomic64_read(&st->jobs);
	info->job_errors = atomic64_read(&st->job_errors);
	info->inst = atomic64_read(&st->inst);
	info->bytes = atomic64_read(&st->bytes);
	info->engine_ns = atomic64_read(&st->engine_ns);
	info->engine_cycles = atomic64_read(&st->engine_cycles);
	info->preemptions = atomic64_read(&st->preemptions);
	info->resumes = atomic64_read(&st->resumes);
	info->flushes = atomic64_read(&st->flushes);
	info->switch_ns = atomic64_read(&st->switch_ns);
	info->copies = atomic64_read(&st->copies);
	spin_unlock_irqrestore(&sched->lock, flags);
	return 0;
}

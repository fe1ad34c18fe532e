// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute contexts: the jobs that a guest submits to them, how a job is spread over
 * slots, and how slots are taken from a context and given back.
 *
 * A slot is an engine's capacity for one job at a time.  A job that a guest
 * submits (struct mgpu_work) is cut into tiles.  Each slot that works on it holds
 * a shard, which takes tile by tile.  The state that a shard computes beside the
 * resources' bytes is its live state, in memory that belongs to the slot.  Between
 * two tiles a shard can leave the engine: its live state is saved, and restored in
 * the slot where it goes on.
 *
 * The scheduler sees a shard as a job of the vGPU, and applies order, quotas and
 * pacing to it.  User space decides which contexts may have slots: ctx->allowed is
 * how many.  A context that lost slots does not wait for ever: it gets idle slots
 * (struct mgpu_parked), and after MGPU_PREEMPT_MAX_MS it is queued again.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/virtio_gpu.h>
#include <uapi/linux/mgpu_compute.h>

#include "compute/context.h"
#include "gpu/resource.h"
#include "mgpu.h"
#include "trace.h"

static_assert(MGPU_COMPUTE_LOCAL_MAX <= MGPU_JOB_LOCAL_SIZE,
	      "an engine has room for the live state of a shard");

/* Engine time after which a shard's counters are updated, nanoseconds. */
#define SAMPLE_NS	(50 * NSEC_PER_MSEC)

#define NO_JOB	"the context has no job to preempt: " \
		"add hold to keep it from starting one"
#define FLUSH_ALL "a flush takes all slots: leave slots out"
#define NO_FLUSH "the context's job overwrites its input and cannot be " \
		"restarted: use switch or drain"

static const struct mgpu_job_ops context_job_ops;

static struct mgpu_sched *sched_of(const struct mgpu_context *ctx)
{
	return &ctx->vgpu->mdev->sched;
}

/* ---- slots: must hold sched->lock ---- */

static u32 context_count(const struct mgpu_context *ctx, enum mgpu_shard_place place)
{
	u32 i, n = 0;

	for (i = 0; i < ctx->vgpu->mdev->caps.engines; i++)
		n += ctx->shards[i].place == place;
	return n;
}

static u32 context_active(const struct mgpu_context *ctx)
{
	return context_count(ctx, MGPU_SHARD_QUEUED) + ctx->running;
}

/* Put the context into sched->parked while it may have idle slots. */
static void update_parked(struct mgpu_context *ctx, u64 now)
{
	bool parked = !ctx->held && !ctx->flushing &&
		      context_count(ctx, MGPU_SHARD_PARKED);

	if (parked && list_empty(&ctx->parked.node)) {
		ctx->parked.since_ns = now;
		list_add_tail(&ctx->parked.node, &sched_of(ctx)->parked);
	} else if (!parked) {
		list_del_init(&ctx->parked.node);
	}
}

/* Queue the shards that may run; return whether any was queued. */
static bool context_refill(struct mgpu_context *ctx, bool first, u64 now)
{
	u32 i, n = context_active(ctx), before = n;

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

/* Park or stop shards beyond ctx->allowed; running shards stop after their tile. */
static void context_drain_off(struct mgpu_context *ctx, u64 now)
{
	u32 i, n = context_active(ctx);

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

/* Begin the next work, if none is in progress. */
static void context_start_work(struct mgpu_context *ctx, u64 now)
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
		job->ops = &context_job_ops;
		job->kind = MGPU_JOB_COMPUTE;
		job->id = atomic64_inc_return(&mdev->sched.next_job);
		job->arrived_ns = work->arrived_ns;
		trace_mgpu_job_submit(ctx->vgpu->id, job->id, job->kind,
				      div_u64(work->job.bytes, work->slots));
	}
	context_refill(ctx, false, now);
}

/* End the work in progress, whose shards are all done. */
static struct mgpu_work *context_end_work(struct mgpu_context *ctx, u64 now)
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
	context_start_work(ctx, now);
	update_parked(ctx, now);
	return work;
}

/* Fail the work in progress, and take back its shards that do not run. */
static void context_abort_work(struct mgpu_context *ctx, int error, u64 now)
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

/* Restart a flushed work, after its last shard left its engine. */
static void context_begin_anew(struct mgpu_context *ctx, u64 now)
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
		/* Discarded work does not count against the job's time limit. */
		mgpu_job_begin_anew(&ctx->shards[i].job);
	}
	context_refill(ctx, false, now);
	update_parked(ctx, now);
}

/* Set the shard's peer to another context that runs now, or to none. */
static void find_peer(struct mgpu_shard *shard)
{
	struct mgpu_job *job;

	shard->peer_vgpu = 0;
	shard->peer = 0;
	list_for_each_entry(job, &sched_of(shard->ctx)->running, node) {
		if (job->ops != &context_job_ops ||
		    to_mgpu_shard(job)->ctx == shard->ctx)
			continue;
		shard->peer_vgpu = job->vgpu->id;
		shard->peer = to_mgpu_shard(job)->ctx->id;
		return;
	}
}

/* Have the contexts that run beside this one take a sample. */
static void tell_peers(struct mgpu_context *ctx)
{
	struct mgpu_job *job;

	list_for_each_entry(job, &sched_of(ctx)->running, node) {
		if (job->ops == &context_job_ops &&
		    to_mgpu_shard(job)->ctx != ctx)
			WRITE_ONCE(to_mgpu_shard(job)->resample, true);
	}
}

/* ops->taken: the shard's job is in sched->running. */
static void shard_taken(struct mgpu_job *job)
{
	struct mgpu_shard *shard = to_mgpu_shard(job);

	shard->place = MGPU_SHARD_RUNNING;
	shard->ctx->running++;
	job->stop = false;
	shard->resample = false;
	shard->sampled_ns = 0;
	shard->sampled_cycles = 0;
	find_peer(shard);
	tell_peers(shard->ctx);
}

static void context_off_engine(struct mgpu_shard *shard)
{
	shard->ctx->running--;
	shard->job.stop = false;
	tell_peers(shard->ctx);
}

/* ops->left: park, requeue or end the shard. */
static bool shard_left(struct mgpu_job *job, u64 now)
{
	struct mgpu_shard *shard = to_mgpu_shard(job);
	struct mgpu_context *ctx = shard->ctx;

	context_off_engine(shard);
	if (ctx->work->error) {
		shard->place = MGPU_SHARD_NONE;
		if (!--ctx->out) {
			llist_add(&context_end_work(ctx, now)->done,
				  &ctx->vgpu->works_done);
			mgpu_ring_kick(ctx->vgpu);
		}
		return false;
	}
	shard->place = MGPU_SHARD_PARKED;
	if (ctx->flushing) {
		atomic64_inc(&ctx->stats.preemptions);
		if (!ctx->running)
			context_begin_anew(ctx, now);
		return false;
	}
	if (context_active(ctx) < ctx->allowed) {
		shard->place = MGPU_SHARD_QUEUED;
		return true;
	}
	atomic64_inc(&ctx->stats.preemptions);
	update_parked(ctx, now);
	return false;
}

/* parked->unpark: allow the context one more slot than it has, or all. */
static bool context_unpark(struct mgpu_parked *parked, bool all, u64 now)
{
	struct mgpu_context *ctx = container_of(parked, struct mgpu_context,
						parked);

	ctx->allowed = all ? ctx->vgpu->mdev->caps.engines : context_active(ctx) + 1;
	return context_refill(ctx, false, now);
}

/* ---- a shard on an engine ---- */

static void work_unmap(struct mgpu_work *work, u32 n)
{
	while (n--)
		mgpu_mem_put(work->res[n]->backing);
}

/* Use the work's resources until work_unmap(); false if the VMM unmapped one. */
static bool work_map(struct mgpu_work *work, struct mgpu_compute_buf *bufs)
{
	u32 i;

	for (i = 0; i < work->job.nr_bufs; i++) {
		bufs[i].size = work->res[i]->size;
		if (!mgpu_mem_get(work->res[i]->backing)) {
			work_unmap(work, i);
			return false;
		}
		bufs[i].base = mgpu_mem_addr(work->res[i]->backing);
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

/* ops->begin: prepare or restore @local, which the shard owns while on the engine. */
static int shard_begin(struct mgpu_job *job, void *local)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_shard *shard = to_mgpu_shard(job);
	struct mgpu_work *work = shard->ctx->work;
	int ret = 0;
	u64 t;

	shard->local = local;

	mutex_lock(&shard->ctx->merge);
	if (!work->prepared) {
		if (work_map(work, bufs)) {
			mgpu_compute_prepare(&work->job, bufs);
			work_unmap(work, work->job.nr_bufs);
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

/* ops->step: execute a tile. */
static int shard_step(struct mgpu_job *job)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_shard *shard = to_mgpu_shard(job);
	struct mgpu_work *work = shard->ctx->work;
	struct mgpu_compute_usage before = shard->usage;
	u64 tile;
	int error = READ_ONCE(work->error);

	if (error)
		return error;
	tile = atomic64_fetch_inc(&work->next);
	if (tile >= work->job.tiles)
		return 0;
	if (!work_map(work, bufs))
		return -EFAULT;
	mgpu_compute_tile(&work->job, bufs, shard->local, tile, &shard->usage);
	work_unmap(work, work->job.nr_bufs);
	atomic64_add(shard->usage.inst - before.inst, &work->inst_done);
	job->work.inst += shard->usage.inst - before.inst;
	job->work.traffic += shard->usage.bytes - before.bytes;
	return 1;
}

/*
 * Add a shard's work since the last sample to the context's counters.  A sample covers
 * a time in which the shard had one set of neighbours.
 */
static void shard_sample(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	struct mgpu_shard *shard = to_mgpu_shard(job);
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
	shard->resample = false;
	find_peer(shard);
	spin_unlock_irq(&sched_of(ctx)->lock);
}

/* ops->tile_done: take a sample if one is due. */
static void shard_tile_done(struct mgpu_job *job, u64 engine_ns,
			    u64 engine_cycles)
{
	const struct mgpu_shard *shard = to_mgpu_shard(job);

	if (READ_ONCE(shard->resample) ||
	    engine_ns - shard->sampled_ns > SAMPLE_NS)
		shard_sample(job, engine_ns, engine_cycles);
}

/* ops->leave: save the live state, since the slot's next job overwrites it. */
static u64 shard_leave(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	struct mgpu_shard *shard = to_mgpu_shard(job);
	u64 t = ktime_get_ns();

	memcpy(save_area(shard), shard->local, shard->ctx->work->live);
	t = ktime_get_ns() - t;
	count_copy(shard, t);
	shard_sample(job, engine_ns + t, engine_cycles);
	return t;
}

/* ops->ended: take the last sample. */
static void shard_ended(struct mgpu_job *job, u64 engine_ns, u64 engine_cycles)
{
	job->bytes = to_mgpu_shard(job)->usage.bytes;
	shard_sample(job, engine_ns, engine_cycles);
}

/* ops->done: the shard found no more tiles, or failed. */
static void shard_done(struct mgpu_job *job)
{
	struct mgpu_compute_buf bufs[MGPU_COMPUTE_MAX_BUFS];
	struct mgpu_shard *shard = to_mgpu_shard(job);
	struct mgpu_context *ctx = shard->ctx;
	struct mgpu_sched *sched = sched_of(ctx);
	struct mgpu_work *work = ctx->work, *ended = NULL;
	struct mgpu_vgpu *vgpu = ctx->vgpu;
	u32 id = ctx->id;
	u64 now;

	if (!job->error) {
		mutex_lock(&ctx->merge);
		if (work_map(work, bufs)) {
			mgpu_compute_end(&work->job, bufs, shard->local);
			work_unmap(work, work->job.nr_bufs);
		} else {
			job->error = -EFAULT;
		}
		mutex_unlock(&ctx->merge);
	}

	now = ktime_get_ns();
	spin_lock_irq(&sched->lock);
	context_off_engine(shard);
	if (ctx->flushing && !job->error && !ctx->dying) {
		shard->place = MGPU_SHARD_PARKED;
		if (!ctx->running)
			context_begin_anew(ctx, now);
	} else {
		shard->place = MGPU_SHARD_NONE;
		ctx->out--;
		if (job->error)
			context_abort_work(ctx, job->error, now);
		if (!ctx->out)
			ended = context_end_work(ctx, now);
		else
			context_refill(ctx, false, now);
	}
	spin_unlock_irq(&sched->lock);
	/* The context may be freed from here on. */

	if (ended) {
		mgpu_ring_work_done(vgpu, ended);
		mgpu_netlink_ctx_event(vgpu, id);
	}
}

static const struct mgpu_job_ops context_job_ops = {
	.background = true,
	.begin = shard_begin,
	.step = shard_step,
	.taken = shard_taken,
	.tile_done = shard_tile_done,
	.leave = shard_leave,
	.left = shard_left,
	.ended = shard_ended,
	.done = shard_done,
};

/* ---- commands: must hold ring_lock ---- */

void mgpu_context_init(struct mgpu_vgpu *vgpu)
{
	xa_init(&vgpu->contexts);
	init_llist_head(&vgpu->works_done);
	INIT_LIST_HEAD(&vgpu->works_ending);
}

static struct mgpu_context *context_find(struct mgpu_vgpu *vgpu, u32 id)
{
	return xa_load(&vgpu->contexts, id);
}

u32 mgpu_context_create(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	u32 i, engines = vgpu->mdev->caps.engines;
	struct mgpu_context *ctx;

	if (cmd->capset && cmd->capset != MGPU_CAPSET_COMPUTE)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (context_find(vgpu, cmd->ctx_id))
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
	INIT_LIST_HEAD(&ctx->parked.node);
	ctx->parked.vgpu = vgpu;
	ctx->parked.unpark = context_unpark;
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

/* End a context.  The thread that runs the ring answers its works with an error. */
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
		context_abort_work(ctx, -ECANCELED, ktime_get_ns());
		if (!ctx->out)
			ended = context_end_work(ctx, ktime_get_ns());
	}
	spin_unlock_irq(&sched->lock);

	/* This waits for one tile at most. */
	wait_event(sched->idle, is_quiet(ctx));

	xa_erase(&vgpu->contexts, ctx->id);
	vgpu->nr_contexts--;
	/* A reader that found the context before holds the lock. */
	spin_lock_irq(&sched->lock);
	list_del_init(&ctx->parked.node);
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
	struct mgpu_context *ctx = context_find(vgpu, id);

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	context_end(ctx);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/* End all contexts, for a reset: the ring is stopped. */
void mgpu_context_end_all(struct mgpu_vgpu *vgpu)
{
	struct mgpu_context *ctx;
	unsigned long id;

	xa_for_each(&vgpu->contexts, id, ctx)
		context_end(ctx);
	xa_destroy(&vgpu->contexts);
}

/* Free the works that will not be answered, for a reset: no job is in flight. */
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

/* Return whether jobs can use a resource. */
static bool can_compute(const struct mgpu_resource *res)
{
	/* Tiles need contiguous memory; blobs of Linux are whole pages. */
	return res->blob && res->backing && res->backing->nr_chunks == 1 &&
	       !(res->backing->chunks[0].at % sizeof(u64));
}

u32 mgpu_context_attach(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	struct mgpu_context *ctx = context_find(vgpu, cmd->ctx_id);
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

	/* Jobs need the address.  Memory that the VMM unmapped makes them fail. */
	if (can_compute(res) && mgpu_mem_map(res->backing) == -ENOMEM)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;

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
	struct mgpu_context *ctx = context_find(vgpu, cmd->ctx_id);
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
 * mgpu_work_free - free a work and release what it holds
 * @vgpu: vGPU of the guest
 * @work: work that is in no list
 *
 * Context: may sleep, because freeing a resource unpins guest memory.
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

/* Get references to the work's resources, which must be attached guest blobs. */
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
		if (!can_compute(res))
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		mgpu_resource_get(res);
		work->res[i] = res;
	}
	if (!work_map(work, bufs))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	ret = mgpu_compute_check(&work->job, bufs);
	work_unmap(work, work->job.nr_bufs);
	return ret ? VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER : 0;
}

/**
 * mgpu_context_submit - submit a guest's job to a context
 * @vgpu: vGPU
 * @lane: control queue, with the decoded SUBMIT_3D
 * @next: set to MGPU_CMD_AGAIN if an engine's thread has no memory for it now
 *
 * Fences with a ring index are in order within the context's ring.  A fence without
 * a ring index is in order with the fences of all other commands, since to a guest a
 * signalled fence signals all earlier ones (VIRTIO 1.2, section 5.7.6.7).  So the queue
 * waits for it.
 *
 * Context: must hold ring_lock; may sleep.
 * Return: 0 if the job was submitted, or the VIRTIO_GPU_RESP_ERR_* to answer with.
 */
u32 mgpu_context_submit(struct mgpu_vgpu *vgpu, struct mgpu_lane *lane,
			enum mgpu_cmd_next *next)
{
	const struct mgpu_cmd *cmd = &lane->cmd;
	struct mgpu_context *ctx = context_find(vgpu, cmd->ctx_id);
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u32 err = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	struct mgpu_work *work;
	bool waits;

	if (!ctx)
		return VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID;
	if (ctx->capset != MGPU_CAPSET_COMPUTE)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	work = kzalloc(struct_size(work, segs, mgpu_reply_segs(lane)), lane->gfp);
	if (!work)
		return mgpu_lane_no_memory(lane, next);
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
		work->save = kvmalloc(work->charged, lane->gfp);
		if (!work->save) {
			err = mgpu_lane_no_memory(lane, next);
			goto refuse;
		}
	}
	work->ctx = ctx->id;
	work->in_order = (cmd->flags & VIRTIO_GPU_FLAG_FENCE) &&
			 !(cmd->flags & VIRTIO_GPU_FLAG_INFO_RING_IDX);
	work->arrived_ns = ktime_get_ns();
	mgpu_reply_init(&work->reply, lane, work->segs);

	spin_lock_irq(&sched->lock);
	list_add_tail(&work->node, &ctx->works);
	ctx->queued++;
	context_start_work(ctx, work->arrived_ns);
	waits = sched->nr_running >= sched->slots;
	spin_unlock_irq(&sched->lock);
	if (work->in_order)
		mgpu_lane_wait_context(lane);

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
 * @id: number of the context
 * @keep: number of slots that the context may keep; 0 for FLUSH
 * @method: method of preemption
 * @hold: the context goes on only after mgpu_context_resume()
 * @why: set to an error message if the request is refused
 *
 * Context: must hold mgpu_registry_lock.
 * Return: 0; -ENOENT if there is no such context; -EINVAL or -EOPNOTSUPP with @why.
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
	ctx = context_find(vgpu, id);
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
	context_drain_off(ctx, now);
	if (ctx->flushing && !ctx->running)
		context_begin_anew(ctx, now);
unlock:
	spin_unlock_irq(&sched->lock);
	vgpu->mdev->ops->kick(vgpu->mdev);
	return ret;
}

/**
 * mgpu_context_resume - let a context have slots again
 * @vgpu: vGPU
 * @id: number of the context
 * @first: queue the context ahead of the vGPU's other contexts
 *
 * Context: must hold mgpu_registry_lock.
 * Return: 0, or -ENOENT if there is no such context.
 */
int mgpu_context_resume(struct mgpu_vgpu *vgpu, u32 id, bool first)
{
	struct mgpu_sched *sched = &vgpu->mdev->sched;
	u64 now = ktime_get_ns();
	struct mgpu_context *ctx;
	u32 i;

	spin_lock_irq(&sched->lock);
	ctx = context_find(vgpu, id);
	if (ctx) {
		ctx->held = false;
		ctx->draining = false;
		ctx->allowed = vgpu->mdev->caps.engines;
		for (i = 0; first && i < vgpu->mdev->caps.engines; i++) {
			struct mgpu_shard *shard = &ctx->shards[i];

			if (shard->place == MGPU_SHARD_QUEUED)
				mgpu_sched_first(&shard->job, now);
		}
		context_drain_off(ctx, now);
		context_refill(ctx, first, now);
	}
	spin_unlock_irq(&sched->lock);
	vgpu->mdev->ops->kick(vgpu->mdev);
	return ctx ? 0 : -ENOENT;
}

static enum mgpu_ctx_state context_state_of(const struct mgpu_context *ctx)
{
	if (ctx->running)
		return MGPU_CTX_STATE_RUNNING;
	if (ctx->held)
		return MGPU_CTX_STATE_HELD;
	if (!ctx->work)
		return MGPU_CTX_STATE_IDLE;
	return !list_empty(&ctx->parked.node) ? MGPU_CTX_STATE_PREEMPTED :
					   MGPU_CTX_STATE_WAITING;
}

/**
 * mgpu_context_info - get a context's state and counters
 * @vgpu: vGPU
 * @from: number of the context
 * @exact: get the context @from; else the first context from @from on
 * @info: result
 *
 * Context: any; the caller keeps the vGPU alive.
 * Return: 0, or -ENOENT if there is no such context.
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
	info->state = context_state_of(ctx);
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

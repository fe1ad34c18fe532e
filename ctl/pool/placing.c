// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which request gets which GPU.
 *
 * A pass tries requests in the order of the queue, the first of each class only: when no GPU has
 * room for it, the class is blocked until a GPU that could do it has room again.  So a pass costs
 * as much as there are classes and placements, however long the queue is.
 *
 * A request that takes few slots may be placed before one that takes many and waits.  After
 * QUEUE_OVERTAKES such placements on GPUs that could do the waiting request, a GPU is kept for it:
 * no other request is placed on it until the waiting one is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

/* ---- classes ---- */

static void class_free(struct class *class)
{
	LIST_REMOVE(class, link);
	free(class);
}

void place_forget(struct host *host)
{
	struct class *class, *next;

	for (class = LIST_FIRST(&host->classes); class; class = next) {
		next = LIST_NEXT(class, link);
		if (LIST_EMPTY(&class->q.lines))
			class_free(class);
	}
}

/* Slots of each GPU of the host that the request takes. */
static void needs(const struct host *host, const struct pool_request *r, uint32_t *need)
{
	for (size_t i = 0; i < host->nr; i++)
		if (choice_fit(&host->gpus[i]->g, r, NULL, &need[i]) != CHOICE_FITS)
			need[i] = 0;
}

static struct class *class_new(struct host *host)
{
	struct class *class = calloc(1, sizeof(*class) + host->nr * sizeof(*class->need));

	if (!class)
		return NULL;
	queue_class_init(&class->q);
	class->host = host;
	class->nr = host->nr;
	return class;
}

/* Find or make the class of a request. */
static struct class *class_of(struct host *host, const struct pool_request *r)
{
	struct class *class = class_new(host), *same;

	if (!class)
		return NULL;
	needs(host, r, class->need);
	LIST_FOREACH(same, &host->classes, link) {
		if (same->nr != class->nr ||
		    memcmp(same->need, class->need, class->nr * sizeof(*class->need)))
			continue;
		free(class);
		return same;
	}
	LIST_INSERT_HEAD(&host->classes, class, link);
	return class;
}

bool place_possible(const struct vm *vm, const struct pool_request *r)
{
	uint32_t slots;

	for (size_t i = 0; i < vm->host->nr; i++)
		if (choice_fit(&vm->host->gpus[i]->g, r, NULL, &slots) == CHOICE_FITS)
			return true;
	return false;
}

int place_queue(struct pool *pool, struct request *q, int64_t now)
{
	struct class *class = class_of(q->vm->host, &q->r);

	if (!class)
		return -ENOMEM;
	pool->dirty = true;
	return queue_add(&pool->queue, &q->item, &q->project->flow, &class->q, now);
}

void place_room(struct pool *pool, struct gpu *gpu)
{
	struct class *class;

	pool->dirty = true;
	if (gpu->host->stale)
		return;
	LIST_FOREACH(class, &gpu->host->classes, link)
		if (gpu->index < class->nr && class->need[gpu->index])
			class->q.blocked = false;
}

void place_host(struct pool *pool, struct host *host)
{
	struct class *class;

	pool->dirty = true;
	LIST_FOREACH(class, &host->classes, link)
		class->q.blocked = false;
}

/* ---- what a GPU can take now ---- */

/* Two GPUs of an IOMMU group go together unless both are parents of vGPUs. */
static bool same_group(const struct gpu *a, const struct gpu *b)
{
	return a != b && a->g.group >= 0 && a->g.group == b->g.group &&
		(a->g.target == POOL_WHOLE || b->g.target == POOL_WHOLE);
}

static bool group_used(const struct gpu *gpu)
{
	for (size_t i = 0; gpu->grouped && i < gpu->host->nr; i++) {
		const struct gpu *other = gpu->host->gpus[i];

		if (same_group(gpu, other) && (other->g.used || other->foreign))
			return true;
	}
	return false;
}

static void find_groups(struct host *host)
{
	for (size_t i = 0; i < host->nr; i++) {
		host->gpus[i]->grouped = false;
		for (size_t k = 0; k < host->nr; k++)
			host->gpus[i]->grouped |= same_group(host->gpus[i], host->gpus[k]);
	}
}

/* Give the requests of hosts whose GPUs changed their new classes. */
static int refresh(struct pool *pool)
{
	bool stale = false;

	for (size_t i = 0; i < pool->hosts.nr; i++) {
		struct host *host = pool->hosts.at[i];
		struct class *class;

		stale |= host->stale;
		if (!host->stale)
			continue;
		find_groups(host);
		/* No class fits until it is made anew. */
		LIST_FOREACH(class, &host->classes, link)
			class->nr = SIZE_MAX;
	}
	for (size_t i = 0; stale && i < pool->requests.nr; i++) {
		struct request *q = pool->requests.at[i];
		struct class *class;

		if (!q->item.line || !q->vm->host->stale)
			continue;
		class = class_of(q->vm->host, &q->r);
		if (!class || queue_move(&pool->queue, &q->item, &class->q))
			return -ENOMEM;
	}
	for (size_t i = 0; stale && i < pool->hosts.nr; i++) {
		struct host *host = pool->hosts.at[i];

		place_forget(host);
		host->stale = false;
	}
	return 0;
}

/* Why a GPU cannot take @slots more for @q now. */
static enum choice_reason usable(const struct gpu *gpu, const struct request *q, uint32_t slots)
{
	if (gpu->g.offline)
		return CHOICE_OFFLINE;
	if (!gpu->g.present)
		return CHOICE_ABSENT;
	/* A parent's slots are without the vGPUs of others. */
	if (gpu->foreign && gpu->g.target == POOL_WHOLE)
		return CHOICE_FOREIGN;
	if (gpu->g.used + slots > gpu->g.slots)
		return CHOICE_FULL;
	if (group_used(gpu))
		return CHOICE_GROUP;
	return gpu->kept && gpu->kept != q ? CHOICE_KEPT : CHOICE_FITS;
}

/* ---- keeping a GPU for a request that waits ---- */

void place_unkeep(struct pool *pool, struct request *q)
{
	struct gpu *gpu = q->kept;

	if (!gpu)
		return;
	gpu->kept = NULL;
	q->kept = NULL;
	pool->nr_kept--;
	place_room(pool, gpu);
}

/* Keep that of the GPUs that could do the request with the most room. */
static void keep(struct pool *pool, struct request *q, const struct class *class)
{
	struct gpu *best = NULL;
	double most = -1;

	for (size_t i = 0; i < class->nr; i++) {
		struct gpu *gpu = class->host->gpus[i];
		enum choice_reason reason = usable(gpu, q, class->need[i]);
		double room = (gpu->g.slots - (double)gpu->g.used) / class->need[i];

		if (!class->need[i] || gpu->kept || reason != CHOICE_FULL || room <= most)
			continue;
		best = gpu;
		most = room;
	}
	if (!best)
		return;
	best->kept = q;
	q->kept = best;
	pool->nr_kept++;
}

/* @q is placed on @gpu: count that for those who wait longer. */
static void overtake(struct pool *pool, const struct request *q, const struct gpu *gpu)
{
	struct queue_line *line;
	struct class *class;

	LIST_FOREACH(class, &gpu->host->classes, link) {
		if (!class->q.blocked || !class->need[gpu->index])
			continue;
		LIST_FOREACH(line, &class->q.lines, in_class) {
			struct queue_item *first = TAILQ_FIRST(&line->items);
			struct request *late = whole(first, struct request, item);

			if (queue_at_limit(line->flow) || !queue_before(first, &q->item) ||
			    ++line->overtaken < QUEUE_OVERTAKES || late->kept)
				continue;
			keep(pool, late, class);
		}
	}
}

/* ---- a pass ---- */

/* Choose a GPU for a request. NULL: none has room. */
static struct gpu *choose(struct pool *pool, const struct request *q, const struct class *class,
			  char why[POOL_TEXT_MAX])
{
	struct choice_candidate *c = pool->candidates;
	size_t nr = 0, best;

	for (size_t i = 0; class->host->up && i < class->nr; i++) {
		const struct gpu *gpu = class->host->gpus[i];

		if (!class->need[i] || usable(gpu, q, class->need[i]) != CHOICE_FITS)
			continue;
		c[nr++] = (struct choice_candidate){
			.gpu = &gpu->g,
			.need = class->need[i],
			.free = gpu->g.slots - gpu->g.used,
			.failed = gpu->failed,
		};
	}
	if (!nr)
		return NULL;
	best = choice_pick(pool->choice, &pool->settings, &q->r, c, nr, why);
	return whole((struct pool_gpu *)(uintptr_t)c[best].gpu, struct gpu, g);
}

/* Give a GPU to a request: store it, then attach. */
static int start(struct pool *pool, struct request *q, struct gpu *gpu, const char *why,
		 int64_t now)
{
	struct pool_request next = q->r;
	uint32_t slots;

	choice_fit(&gpu->g, &q->r, next.type, &slots);
	next.state = POOL_ATTACHING;
	next.chosen = now;
	next.tries = 0;
	memcpy(next.gpu, gpu->g.name, sizeof(next.gpu));
	snprintf(next.why, sizeof(next.why), "%s", why);
	if (core_change(pool, q, &next))
		return -EIO;
	overtake(pool, q, gpu);
	core_gpu_take(pool, q, gpu, slots, now);
	queue_serve(&pool->queue, &q->item);
	queue_remove(&pool->queue, &q->item);
	place_unkeep(pool, q);
	core_tell(pool, "service", "choose", q->r.id, q->r.gpu, now, "%s", why);
	core_begin_job(pool, q, POOL_JOB_ATTACH);
	return 0;
}

/* Try a request. Return 0, -EIO if the database failed, or 1 if nothing has room. */
static int try(struct pool *pool, struct request *q, int64_t now)
{
	struct class *class = whole(q->item.line->class, struct class, q);
	char why[POOL_TEXT_MAX];
	struct gpu *gpu = choose(pool, q, class, why);

	return gpu ? start(pool, q, gpu, why, now) : 1;
}

/* Requests that a GPU is kept for come first. */
static int serve_kept(struct pool *pool, int64_t now)
{
	for (size_t i = 0; pool->nr_kept && i < pool->gpus.nr; i++) {
		struct gpu *gpu = pool->gpus.at[i];
		struct request *q = gpu->kept;
		enum choice_reason reason;
		uint32_t slots = 0;

		if (!q)
			continue;
		if (choice_fit(&gpu->g, &q->r, NULL, &slots) != CHOICE_FITS || !gpu->host->up ||
		    queue_at_limit(&q->project->flow)) {
			place_unkeep(pool, q);
			continue;
		}
		reason = usable(gpu, q, slots);
		if (reason != CHOICE_FITS && reason != CHOICE_FULL)
			place_unkeep(pool, q);
		else if (reason == CHOICE_FITS && try(pool, q, now) == -EIO)
			return -EIO;
	}
	return 0;
}

static int serve(struct pool *pool, int64_t now)
{
	struct queue_item *item;
	int ret;

	if (refresh(pool))
		return -ENOMEM;
	queue_begin(&pool->queue, now);
	ret = serve_kept(pool, now);
	while (!ret && (item = queue_next(&pool->queue))) {
		ret = try(pool, whole(item, struct request, item), now);
		if (ret != 1)
			continue;
		item->line->class->blocked = true;
		ret = 0;
	}
	return ret;
}

void place_pass(struct pool *pool, int64_t now)
{
	if (!pool->dirty || (pool->again && now < pool->again))
		return;
	pool->again = 0;
	pool->dirty = false;
	if (!serve(pool, now))
		return;
	/* The database failed, or there is no memory. */
	pool->dirty = true;
	pool->again = now + pool->settings.retry;
	core_wake(pool, pool->again);
}

/* ---- why a request waits ---- */

/* Write to what is left of a text that has @at bytes. Return its bytes. */
__attribute__((format(printf, 3, 4)))
static int add(char *text, int at, const char *fmt, ...)
{
	va_list args;

	if (at >= POOL_TEXT_MAX)
		return at;
	va_start(args, fmt);
	at += vsnprintf(text + at, POOL_TEXT_MAX - (size_t)at, fmt, args);
	va_end(args);
	return at;
}

static void tell_gpus(const struct request *q, char *text)
{
	const struct host *host = q->vm->host;
	unsigned int counts[CHOICE_REASONS] = { 0 };
	int at = 0;

	for (size_t i = 0; i < host->nr; i++) {
		uint32_t slots;
		enum choice_reason reason = choice_fit(&host->gpus[i]->g, &q->r, NULL, &slots);

		if (reason == CHOICE_FITS)
			reason = usable(host->gpus[i], q, slots);
		counts[reason]++;
	}
	if (!counts[CHOICE_FITS])
		at = add(text, at, "no GPU that fits is free: ");
	if (host->nr == 1)
		at = add(text, at, "the GPU of %s", host->name);
	else
		at = add(text, at, "of the %zu GPUs of %s", host->nr, host->name);
	for (unsigned int i = CHOICE_REASONS; i-- > 0;) {
		if (!counts[i])
			continue;
		if (host->nr > 1)
			at = add(text, at, ", %u", counts[i]);
		at = add(text, at, " %s", choice_reason_text(i, q->r.target, counts[i]));
	}
	if (q->kept)
		add(text, at, "; %s is kept for it", q->kept->g.name);
}

void pool_where(const struct pool *pool, uint64_t id, struct pool_place *place)
{
	const struct request *q = core_find_request(pool, id);
	/* Places are numbered when they are read. */
	struct queue *queue = (struct queue *)(uintptr_t)&pool->queue;

	*place = (struct pool_place){ 0 };
	if (!q || !q->item.line)
		return;
	queue_number(queue);
	place->place = q->item.place;
	if (!q->vm->host->up)
		snprintf(place->reason, sizeof(place->reason), "host %s is not connected",
			 q->vm->host->name);
	else if (queue_at_limit(&q->project->flow))
		snprintf(place->reason, sizeof(place->reason),
			 "project %s holds %" PRIu32 " of the %" PRIu32 " GPUs that it may hold",
			 q->project->p.name, q->project->flow.held, q->project->flow.limit);
	else
		tell_gpus(q, place->reason);
}

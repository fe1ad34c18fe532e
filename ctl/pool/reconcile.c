// SPDX-License-Identifier: GPL-2.0-only
/* Libvirt's truth about a host meets the pool's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

#define SETTLE	120	/* s: a host that came up, and its agents, report use within */

/* Return the device of a request; only that of its VM and GPU counts. */
static const struct pool_found *device_of(const struct request *q, const struct pool_found *found,
					  size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (found[i].request == q->r.id && !strcmp(found[i].vm, q->r.vm) &&
		    !strcmp(found[i].gpu, q->r.gpu))
			return &found[i];
	return NULL;
}

static int by_request(const void *a, const void *b)
{
	uint64_t x = ((const struct pool_found *)a)->request;
	uint64_t y = ((const struct pool_found *)b)->request;

	return x < y ? -1 : x > y;
}

static int meet_active(struct pool *pool, struct request *q, bool there, int64_t now)
{
	struct pool_request next = q->r;

	if (!there)
		return core_begin_release(pool, q, false, "service",
					  "the VM does not have the whole GPU any more", now);
	if (q->idle.start)
		return 0;
	/* After a start nothing is known of its use: the looks begin anew. */
	idle_start(&q->idle, &pool->settings, q->r.attached, now);
	core_wake(pool, now);
	next.warned = 0;
	return q->r.warned ? core_change(pool, q, &next) : 0;
}

/* Also of what is not there: a detach job leaves no definition and no mdev behind. */
static int meet(struct pool *pool, struct request *q, const struct pool_found *device, int64_t now)
{
	bool there = device && !device->partial;

	switch (q->r.state) {
	case POOL_ATTACHING:
		if (there)
			return core_become_active(pool, q, device->uuid, now);
		if (q->r.cancel)
			return core_begin_release(pool, q, false, "service",
						  "released while it was being attached", now);
		core_begin_job(pool, q, POOL_JOB_ATTACH);
		return 0;
	case POOL_ACTIVE:
		return meet_active(pool, q, there, now);
	default:
		core_begin_job(pool, q, POOL_JOB_DETACH);
		return 0;
	}
}

/* Whether an open request explains the device. */
static bool is_known(const struct pool *pool, const struct pool_found *found)
{
	const struct request *q = core_find_holder(pool, found->request);

	return q && !strcmp(found->vm, q->r.vm) && !strcmp(found->gpu, q->r.gpu);
}

static int add_stray(struct pool *pool, const char *host, const struct pool_found *found)
{
	struct stray *s = calloc(1, sizeof(*s));
	const struct vm *vm = core_find_vm(pool, found->vm);

	if (!s)
		return -ENOMEM;
	s->job.kind = POOL_JOB_DETACH;
	s->job.request.id = found->request;
	memcpy(s->job.request.vm, found->vm, sizeof(found->vm));
	memcpy(s->job.request.gpu, found->gpu, sizeof(found->gpu));
	memcpy(s->job.request.uuid, found->uuid, sizeof(found->uuid));
	memcpy(s->job.vm.name, found->vm, sizeof(found->vm));
	strncpy(s->job.vm.host, host, sizeof(s->job.vm.host) - 1);
	memcpy(s->job.gpu.name, found->gpu, sizeof(found->gpu));
	strncpy(s->job.gpu.host, host, sizeof(s->job.gpu.host) - 1);
	/* Another host may have a VM of this name. */
	if (vm && !strcmp(vm->v.host, host))
		s->job.vm = vm->v;
	s->gpu = core_find_gpu(pool, found->gpu);
	if (s->gpu) {
		s->job.gpu = s->gpu->g;
		s->gpu->g.used++;
	}
	TAILQ_INSERT_TAIL(&pool->strays, s, link);
	/*
	 * A copy of a VM has the alias and the vGPU of the request: it is detached once that is
	 * over, by the next reconciliation.
	 */
	if (!core_find_holder(pool, found->request))
		core_stray_job(pool, s);
	return 0;
}

/* A device without a number is not the pool's to take away: its GPU is in use. */
static void count_foreign(struct pool *pool, const char *host, const struct pool_found *found,
			  size_t nr)
{
	struct host *h = core_find_host(pool, host);

	for (size_t i = 0; i < h->nr; i++)
		h->gpus[i]->foreign = 0;
	for (size_t i = 0; i < nr; i++) {
		struct gpu *gpu = found[i].request ? NULL : core_find_gpu(pool, found[i].gpu);

		if (gpu && gpu->host == h)
			gpu->foreign++;
	}
}

/* Strays of before: what is still there is found again. */
static void forget_strays(struct pool *pool, const char *host)
{
	struct stray *s, *next;

	for (s = TAILQ_FIRST(&pool->strays); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!strcmp(s->job.gpu.host, host))
			core_stray_free(pool, s);
	}
}

/* Return the devices of a request among @sorted, which is sorted by request. */
static const struct pool_found *first_of(const struct pool_found *sorted, size_t nr, uint64_t id,
					 size_t *count)
{
	const struct pool_found key = { .request = id };
	const struct pool_found *at = nr ? bsearch(&key, sorted, nr, sizeof(key), by_request) :
		NULL;

	*count = 0;
	if (!at)
		return NULL;
	while (at > sorted && at[-1].request == id)
		at--;
	while (at + *count < sorted + nr && at[*count].request == id)
		++*count;
	return at;
}

static int meet_all(struct pool *pool, const char *host, const struct pool_found *sorted,
		    size_t nr, int64_t now)
{
	struct request *q, *next;
	int ret = 0;

	for (q = TAILQ_FIRST(&pool->held); q; q = next) {
		const struct pool_found *first;
		size_t count;
		int one;

		next = TAILQ_NEXT(q, in_held);
		if (strcmp(q->gpu->host->name, host))
			continue;
		first = first_of(sorted, nr, q->r.id, &count);
		one = meet(pool, q, device_of(q, first, count), now);
		ret = ret ? ret : one;
	}
	return ret;
}

/* Looks for work wait until the host's samples can be there. */
static void come_up(struct pool *pool, struct host *h, int64_t now)
{
	uint32_t settle = pool->settings.look2 < SETTLE ? pool->settings.look2 : SETTLE;

	if (h->came || !h->up)
		h->looks = now + settle;
	h->came = false;
	h->up = true;
	core_wake(pool, now);
}

int pool_reconcile(struct pool *pool, const char *host, const struct pool_found *found, size_t nr,
		   int64_t now)
{
	struct pool_found *sorted = calloc(nr + 1, sizeof(*sorted));
	struct host *h = core_host_of(pool, host);
	int ret = sorted && h ? 0 : -ENOMEM;

	if (ret)
		goto out;
	if (nr)
		memcpy(sorted, found, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), by_request);
	count_foreign(pool, host, sorted, nr);
	forget_strays(pool, host);
	/* First what no request explains: a request's own device is not among it. */
	for (size_t i = 0; i < nr && !ret; i++)
		if (sorted[i].request && !is_known(pool, &sorted[i]))
			ret = add_stray(pool, host, &sorted[i]);
	if (ret)
		goto out;
	come_up(pool, h, now);
	ret = meet_all(pool, host, sorted, nr, now);
	place_host(pool, h);
	place_pass(pool, now);
out:
	free(sorted);
	return ret;
}

void pool_host_up(struct pool *pool, const char *host, bool up)
{
	struct host *h = core_host_of(pool, host);

	if (!h)
		return;
	h->came |= up && !h->up;
	h->up = up;
	if (up)
		place_host(pool, h);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Projects, VMs, hosts, GPUs and requests of a pool: loading, finding, reading. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

#define WEIGHT_MAX	10000

static int compare_project(const void *key, const void *thing)
{
	return strcmp(key, ((const struct project *)thing)->p.name);
}

static int compare_vm(const void *key, const void *thing)
{
	return strcmp(key, ((const struct vm *)thing)->v.name);
}

static int compare_gpu(const void *key, const void *thing)
{
	return strcmp(key, ((const struct gpu *)thing)->g.name);
}

static int compare_host(const void *key, const void *thing)
{
	return strcmp(key, ((const struct host *)thing)->name);
}

static int compare_request(const void *key, const void *thing)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct request *)thing)->r.id;

	return a < b ? -1 : a > b;
}

static int compare_key(const void *key, const void *thing)
{
	const struct key *a = key;
	const struct pool_request *b = &((const struct request *)thing)->r;
	int order = strcmp(a->project, b->project);

	return order ? order : strcmp(a->key, b->key);
}

struct project *core_find_project(const struct pool *pool, const char *name)
{
	return table_find(&pool->projects, name);
}

struct vm *core_find_vm(const struct pool *pool, const char *name)
{
	return table_find(&pool->vms, name);
}

struct gpu *core_find_gpu(const struct pool *pool, const char *name)
{
	return table_find(&pool->gpus, name);
}

struct host *core_find_host(const struct pool *pool, const char *name)
{
	return table_find(&pool->hosts, name);
}

struct request *core_find_request(const struct pool *pool, uint64_t id)
{
	return table_find(&pool->requests, &id);
}

struct request *core_find_holder(const struct pool *pool, uint64_t id)
{
	struct request *q = core_find_request(pool, id);

	return q && q->gpu ? q : NULL;
}

/* ---- life of a pool ---- */

void pool_settings_default(struct pool_settings *settings)
{
	*settings = (struct pool_settings){
		.look1 = 3600,
		.look2 = 1200,
		.grace = 300,
		.agent_silent = 600,
		.extend_max = 14400,
		.attach_tries = 5,
		.retry = 2,
		.max_queue = 10000,
		.max_queue_project = 1000,
		.history_min = 5,
		.policy = "history",
	};
}

static bool settings_ok(const struct pool_settings *s)
{
	static const char *const policies[] = { "history", "best-fit", "first-fit" };

	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		if (!strcmp(s->policy, policies[i]))
			return s->look1 && s->look2 && s->attach_tries && s->retry;
	return false;
}

struct pool *pool_new(const struct pool_settings *settings, const struct pool_hooks *hooks)
{
	struct pool *pool = settings_ok(settings) ? calloc(1, sizeof(*pool)) : NULL;

	if (!pool)
		return NULL;
	pool->settings = *settings;
	pool->hooks = *hooks;
	pool->projects.compare = compare_project;
	pool->vms.compare = compare_vm;
	pool->gpus.compare = compare_gpu;
	pool->hosts.compare = compare_host;
	pool->requests.compare = compare_request;
	pool->keys.compare = compare_key;
	queue_init(&pool->queue);
	TAILQ_INIT(&pool->held);
	TAILQ_INIT(&pool->strays);
	pool->next = INT64_MAX;
	pool->choice = choice_new();
	if (!pool->choice) {
		free(pool);
		return NULL;
	}
	return pool;
}

static void free_all(struct table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->at[i]);
	table_free(t);
}

void pool_free(struct pool *pool)
{
	struct stray *s;

	if (!pool)
		return;
	while (pool->requests.nr)
		core_request_free(pool, pool->requests.at[pool->requests.nr - 1]);
	while ((s = TAILQ_FIRST(&pool->strays)))
		core_stray_free(pool, s);
	for (size_t i = 0; i < pool->hosts.nr; i++) {
		struct host *host = pool->hosts.at[i];

		place_forget(host);
		free(host->gpus);
	}
	free_all(&pool->hosts);
	free_all(&pool->gpus);
	free_all(&pool->vms);
	free_all(&pool->projects);
	table_free(&pool->requests);
	table_free(&pool->keys);
	choice_free(pool->choice);
	free(pool->candidates);
	free(pool);
}

int pool_set_settings(struct pool *pool, const struct pool_settings *settings)
{
	struct request *q;

	if (!settings_ok(settings))
		return -EINVAL;
	pool->settings = *settings;
	/* First looks are due by the new settings; those that began go on by the old ones. */
	TAILQ_FOREACH(q, &pool->held, in_held)
		if (q->idle.phase == IDLE_FIRST)
			q->idle.look = 0;
	pool->next = 0;
	return 0;
}

/* ---- putting ---- */

struct host *core_host_of(struct pool *pool, const char *name)
{
	struct host *host = core_find_host(pool, name);

	if (host)
		return host;
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	snprintf(host->name, sizeof(host->name), "%s", name);
	LIST_INIT(&host->classes);
	if (table_add(&pool->hosts, name, host)) {
		free(host);
		return NULL;
	}
	return host;
}

int pool_put_project(struct pool *pool, const struct pool_project *project)
{
	struct project *p = core_find_project(pool, project->name);

	if (!pool_name_ok(project->name) || !project->weight || project->weight > WEIGHT_MAX)
		return -EINVAL;
	pool->dirty = true;
	if (p) {
		p->p = *project;
		p->flow.weight = project->weight;
		p->flow.limit = project->max_gpus;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->p = *project;
	queue_flow_init(&p->flow, project->weight, project->max_gpus);
	if (table_add(&pool->projects, project->name, p)) {
		free(p);
		return -ENOMEM;
	}
	return 0;
}

int pool_put_vm(struct pool *pool, const struct pool_vm *vm)
{
	struct vm *v = core_find_vm(pool, vm->name);
	struct host *host = core_host_of(pool, vm->host);
	struct request *q;

	if (!host)
		return -ENOMEM;
	if (!v) {
		v = calloc(1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		TAILQ_INIT(&v->requests);
		if (table_add(&pool->vms, vm->name, v)) {
			free(v);
			return -ENOMEM;
		}
	} else if (v->host != host) {
		/* The GPUs that the VM waits for are on the other host now. */
		TAILQ_FOREACH(q, &v->requests, in_vm)
			place_unkeep(pool, q);
		host->stale = true;
		pool->dirty = true;
	}
	v->v = *vm;
	v->host = host;
	return 0;
}

/* Whether requests could be placed otherwise than before. */
static bool differs(const struct pool_gpu *a, const struct pool_gpu *b)
{
	return a->target != b->target || a->slots != b->slots || a->group != b->group ||
		a->memory_mib != b->memory_mib || a->capabilities != b->capabilities ||
		a->offline != b->offline || a->present != b->present || strcmp(a->types, b->types);
}

static int host_add_gpu(struct host *host, struct gpu *gpu)
{
	size_t room = host->room ? host->room * 2 : 8;
	struct gpu **more;

	if (host->nr == host->room) {
		more = realloc(host->gpus, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		host->gpus = more;
		host->room = room;
	}
	gpu->host = host;
	gpu->index = (unsigned int)host->nr;
	host->gpus[host->nr++] = gpu;
	return 0;
}

static int make_candidates(struct pool *pool, size_t nr)
{
	struct choice_candidate *more;

	if (nr <= pool->room)
		return 0;
	more = realloc(pool->candidates, nr * 2 * sizeof(*more));
	if (!more)
		return -ENOMEM;
	pool->candidates = more;
	pool->room = nr * 2;
	return 0;
}

static int add_gpu(struct pool *pool, struct host *host, const struct pool_gpu *gpu)
{
	struct gpu *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	TAILQ_INIT(&g->requests);
	g->g = *gpu;
	g->g.used = 0;
	if (make_candidates(pool, host->nr + 1) || table_add(&pool->gpus, gpu->name, g)) {
		free(g);
		return -ENOMEM;
	}
	if (host_add_gpu(host, g)) {
		free(table_remove(&pool->gpus, gpu->name));
		return -ENOMEM;
	}
	return 0;
}

int pool_put_gpu(struct pool *pool, const struct pool_gpu *gpu)
{
	struct gpu *g = core_find_gpu(pool, gpu->name);
	struct host *host = core_host_of(pool, gpu->host);
	int ret;

	if (!host)
		return -ENOMEM;
	/* A parent of vGPUs has no slots while others have all of its vGPUs. */
	if ((gpu->target != POOL_WHOLE && gpu->target != POOL_VGPU) || (g && g->host != host) ||
	    (!gpu->slots && gpu->target == POOL_WHOLE))
		return -EINVAL;
	if (g) {
		uint32_t used = g->g.used;
		bool other = differs(&g->g, gpu);

		g->g = *gpu;
		g->g.used = used;
		if (!other)
			return 0;
	} else {
		ret = add_gpu(pool, host, gpu);
		if (ret)
			return ret;
	}
	host->stale = true;
	pool->dirty = true;
	return 0;
}

int pool_learn(struct pool *pool, const struct pool_outcome *outcome)
{
	return choice_learn(pool->choice, outcome);
}

/* ---- dropping ---- */

int pool_drop_project(struct pool *pool, const char *name)
{
	struct project *p = core_find_project(pool, name);

	if (!p)
		return -ENOENT;
	if (p->open)
		return -EBUSY;
	for (size_t i = 0; i < pool->vms.nr; i++)
		if (!strcmp(((struct vm *)pool->vms.at[i])->v.project, name))
			return -EBUSY;
	free(table_remove(&pool->projects, name));
	return 0;
}

int pool_drop_vm(struct pool *pool, const char *name)
{
	struct vm *v = core_find_vm(pool, name);

	if (!v)
		return -ENOENT;
	if (v->open)
		return -EBUSY;
	free(table_remove(&pool->vms, name));
	return 0;
}

/* ---- requests ---- */

int core_request_add(struct pool *pool, struct request *q)
{
	struct key key = { q->r.project, q->r.key };
	int ret = table_add(&pool->requests, &q->r.id, q);

	if (ret)
		return ret;
	ret = table_add(&pool->keys, &key, q);
	if (ret) {
		table_remove(&pool->requests, &q->r.id);
		return ret;
	}
	TAILQ_INSERT_TAIL(&q->vm->requests, q, in_vm);
	q->project->open++;
	q->vm->open++;
	return 0;
}

void core_request_free(struct pool *pool, struct request *q)
{
	struct key key = { q->r.project, q->r.key };

	place_unkeep(pool, q);
	queue_remove(&pool->queue, &q->item);
	if (q->gpu)
		core_gpu_give(pool, q, q->holding.start);
	table_remove(&pool->requests, &q->r.id);
	table_remove(&pool->keys, &key);
	TAILQ_REMOVE(&q->vm->requests, q, in_vm);
	q->project->open--;
	q->vm->open--;
	free(q);
}

void core_gpu_take(struct pool *pool, struct request *q, struct gpu *gpu, uint32_t slots,
		   int64_t since)
{
	q->gpu = gpu;
	q->slots = slots;
	gpu->g.used += slots;
	q->holding.share = slots < gpu->g.slots ? (double)slots / gpu->g.slots : 1;
	q->holding.start = since;
	queue_hold(&pool->queue, &q->project->flow, &q->holding);
	TAILQ_INSERT_TAIL(&pool->held, q, in_held);
	TAILQ_INSERT_TAIL(&gpu->requests, q, in_gpu);
}

void core_gpu_give(struct pool *pool, struct request *q, int64_t now)
{
	q->gpu->g.used -= q->slots;
	queue_drop(&pool->queue, &q->holding, now);
	TAILQ_REMOVE(&pool->held, q, in_held);
	TAILQ_REMOVE(&q->gpu->requests, q, in_gpu);
	place_room(pool, q->gpu);
	q->gpu = NULL;
}

static int load_held(struct pool *pool, struct request *q)
{
	struct gpu *gpu = core_find_gpu(pool, q->r.gpu);
	uint32_t slots = 1;

	if (!gpu)
		return -ENOENT;
	if (gpu->g.target == POOL_VGPU)
		slots = choice_type_slots(&gpu->g, q->r.type);
	/* The types may have changed since. */
	if (!slots || slots > gpu->g.slots)
		slots = 1;
	core_gpu_take(pool, q, gpu, slots, q->r.chosen);
	return 0;
}

int pool_load_request(struct pool *pool, const struct pool_request *r)
{
	struct request *q;
	int ret;

	if (pool_over(r->state))
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->r = *r;
	q->item.id = r->id;
	q->project = core_find_project(pool, r->project);
	q->vm = core_find_vm(pool, r->vm);
	ret = q->project && q->vm ? core_request_add(pool, q) : -ENOENT;
	if (ret) {
		free(q);
		return ret;
	}
	ret = r->state == POOL_QUEUED ? place_queue(pool, q, r->asked) : load_held(pool, q);
	if (ret)
		core_request_free(pool, q);
	return ret;
}

/* ---- reading ---- */

const struct pool_request *pool_request(const struct pool *pool, uint64_t id)
{
	const struct request *q = core_find_request(pool, id);

	return q ? &q->r : NULL;
}

const struct pool_vm *pool_vm(const struct pool *pool, const char *name)
{
	const struct vm *v = core_find_vm(pool, name);

	return v ? &v->v : NULL;
}

const struct pool_gpu *pool_gpu(const struct pool *pool, const char *name)
{
	const struct gpu *g = core_find_gpu(pool, name);

	return g ? &g->g : NULL;
}

const struct pool_project *pool_project(const struct pool *pool, const char *name)
{
	const struct project *p = core_find_project(pool, name);

	return p ? &p->p : NULL;
}

const struct pool_request *pool_request_at(const struct pool *pool, size_t i)
{
	const struct request *q = table_at(&pool->requests, i);

	return q ? &q->r : NULL;
}

const struct pool_vm *pool_vm_at(const struct pool *pool, size_t i)
{
	const struct vm *v = table_at(&pool->vms, i);

	return v ? &v->v : NULL;
}

const struct pool_gpu *pool_gpu_at(const struct pool *pool, size_t i)
{
	const struct gpu *g = table_at(&pool->gpus, i);

	return g ? &g->g : NULL;
}

const struct pool_project *pool_project_at(const struct pool *pool, size_t i)
{
	const struct project *p = table_at(&pool->projects, i);

	return p ? &p->p : NULL;
}

const struct pool_request *pool_request_of_vm(const struct pool *pool, const char *name,
					      const struct pool_request *after)
{
	const struct vm *v = core_find_vm(pool, name);
	const struct request *q = v ? TAILQ_FIRST(&v->requests) : NULL;

	if (after)
		q = TAILQ_NEXT(whole((uintptr_t)after, const struct request, r), in_vm);
	return q ? &q->r : NULL;
}

const struct pool_request *pool_request_of_gpu(const struct pool *pool, const char *name,
					       const struct pool_request *after)
{
	const struct gpu *g = core_find_gpu(pool, name);
	const struct request *q = g ? TAILQ_FIRST(&g->requests) : NULL;

	if (after)
		q = TAILQ_NEXT(whole((uintptr_t)after, const struct request, r), in_gpu);
	return q ? &q->r : NULL;
}

// SPDX-License-Identifier: GPL-2.0-only
/* The life of requests: asked, attached, used, released; and what is due when. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

#define BACKOFF_MAX	300	/* s */
#define VGPU_WEIGHT_MAX	10000
#define FLOOR_MHZ_MAX	1000000

/* ---- effects ---- */

__attribute__((format(printf, 2, 3)))
static void explain(char *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, POOL_TEXT_MAX, fmt, args);
	va_end(args);
}

void core_tell(struct pool *pool, const char *actor, const char *what, uint64_t request,
	       const char *object, int64_t now, const char *fmt, ...)
{
	struct pool_event event = { .time = now, .request = request };
	va_list args;

	snprintf(event.actor, sizeof(event.actor), "%s", actor);
	snprintf(event.what, sizeof(event.what), "%s", what);
	snprintf(event.object, sizeof(event.object), "%s", object);
	va_start(args, fmt);
	vsnprintf(event.text, sizeof(event.text), fmt, args);
	va_end(args);
	pool->hooks.event(pool->hooks.arg, &event);
}

int core_change(struct pool *pool, struct request *q, const struct pool_request *next)
{
	if (pool->hooks.store_request(pool->hooks.arg, next))
		return -EIO;
	q->r = *next;
	return 0;
}

void core_wake(struct pool *pool, int64_t time)
{
	if (time < pool->next)
		pool->next = time;
}

int64_t core_backoff(const struct pool *pool, uint32_t tries)
{
	uint64_t wait = (uint64_t)pool->settings.retry << (tries > 1 ? (tries - 1) % 32 : 0);

	return tries > 16 || wait > BACKOFF_MAX ? BACKOFF_MAX : (int64_t)wait;
}

static void set_due(struct pool *pool, struct request *q, int64_t time)
{
	q->due = time;
	core_wake(pool, time);
}

void core_begin_job(struct pool *pool, struct request *q, enum pool_job_kind kind)
{
	struct pool_job job = { .kind = kind, .request = q->r, .gpu = q->gpu->g, .vm = q->vm->v };

	q->due = 0;
	pool->hooks.job(pool->hooks.arg, &job);
}

/* ---- steps ---- */

int core_become_active(struct pool *pool, struct request *q, const char *uuid, int64_t now)
{
	struct pool_request next = q->r;

	next.state = POOL_ACTIVE;
	next.attached = now;
	next.until = next.lease ? now + next.lease : 0;
	next.tries = 0;
	next.warned = 0;
	snprintf(next.uuid, sizeof(next.uuid), "%s", uuid);
	if (core_change(pool, q, &next)) {
		/* Attached again, which changes nothing but has an answer. */
		set_due(pool, q, now + pool->settings.retry);
		return -EIO;
	}
	q->due = 0;
	q->gpu->failed = false;
	idle_start(&q->idle, &pool->settings, now, now);
	core_wake(pool, q->idle.look);
	if (next.until)
		core_wake(pool, next.until - pool->settings.grace);
	core_tell(pool, "service", "attached", next.id, next.gpu, now, "attached to VM %s",
		  next.vm);
	return q->r.cancel ? core_begin_release(pool, q, false, "service",
						"released while it was being attached", now) : 0;
}

/* A row of the history: what the work took. */
static void learn(struct pool *pool, const struct request *q, bool done, int64_t now)
{
	const struct pool_request *r = &q->r;
	struct pool_outcome row = {
		.request = r->id,
		.target = q->gpu->g.target,
		.precision = r->precision,
		.size_mib = r->size_mib,
		/* The clock may have been set back. */
		.seconds = now > r->attached ? (double)(now - r->attached) : 0,
		.busy_ns = idle_busy(&q->idle),
		.energy_mj = q->idle.energy_mj,
		.memory_mib = q->idle.memory_mib,
		.ended = now,
		.done = done,
	};

	memcpy(row.project, r->project, sizeof(row.project));
	memcpy(row.kind, r->kind, sizeof(row.kind));
	memcpy(row.model, q->gpu->g.model, sizeof(row.model));
	/* A lost row is a worse choice later, and nothing else. */
	if (!pool->hooks.outcome(pool->hooks.arg, &row))
		choice_learn(pool->choice, &row);
	else
		core_tell(pool, "service", "history", r->id, r->gpu, now,
			  "the outcome is not stored");
}

int core_begin_release(struct pool *pool, struct request *q, bool done, const char *actor,
		       const char *why, int64_t now)
{
	struct pool_request next = q->r;
	bool was_active = q->r.state == POOL_ACTIVE;

	next.state = POOL_RELEASING;
	next.tries = 0;
	if (why)
		explain(next.why, "%s", why);
	if (core_change(pool, q, &next))
		return -EIO;
	if (was_active)
		learn(pool, q, done, now);
	core_tell(pool, actor, "release", next.id, next.gpu, now, "%s", next.why);
	core_begin_job(pool, q, POOL_JOB_DETACH);
	return 0;
}

/* A request that was never attached, and not taken back, failed. */
static enum pool_state last_state(const struct pool_request *r)
{
	if (r->state == POOL_QUEUED)
		return POOL_CANCELLED;
	return r->attached || r->cancel ? POOL_RELEASED : POOL_FAILED;
}

int core_finish(struct pool *pool, struct request *q, const char *why, int64_t now)
{
	struct pool_request next = q->r;

	next.state = last_state(&q->r);
	next.ended = now;
	if (why)
		explain(next.why, "%s", why);
	if (core_change(pool, q, &next)) {
		/* Detached again, which changes nothing but has an answer. */
		if (q->gpu)
			set_due(pool, q, now + pool->settings.retry);
		return -EIO;
	}
	core_tell(pool, "service", pool_state_name(next.state), next.id,
		  next.gpu[0] ? next.gpu : next.vm, now, "%s", next.why);
	if (q->gpu)
		core_gpu_give(pool, q, now);
	core_request_free(pool, q);
	return 0;
}

void core_stray_job(struct pool *pool, struct stray *s)
{
	s->due = 0;
	pool->hooks.job(pool->hooks.arg, &s->job);
}

void core_stray_free(struct pool *pool, struct stray *s)
{
	TAILQ_REMOVE(&pool->strays, s, link);
	if (s->gpu) {
		s->gpu->g.used--;
		place_room(pool, s->gpu);
	}
	free(s);
}

/* ---- asking ---- */

static bool printable(const char *text)
{
	for (; *text; text++)
		if (!isgraph((unsigned char)*text) || (unsigned char)*text > '~')
			return false;
	return true;
}

static const char *bad_wish(const struct pool_request *r, const struct pool_settings *s)
{
	if (!r->key[0] || !printable(r->key))
		return "key: 1 to 63 visible ASCII characters name the request";
	if (!r->kind[0] || r->kind[strspn(r->kind, "abcdefghijklmnopqrstuvwxyz0123456789._-")])
		return "kind: 1 to 63 of a-z, 0-9, '.', '_' and '-' name the kind of work";
	if ((unsigned int)r->target >= POOL_TARGETS)
		return "target: any, whole or vgpu";
	if ((unsigned int)r->precision >= POOL_PRECISIONS)
		return "precision: any, fp64, fp32, fp16 or fp8";
	if (r->capabilities & ~(uint32_t)(POOL_3D | POOL_COMPUTE))
		return "capabilities: 3d and compute";
	if (!printable(r->type) || strchr(r->type, ':'))
		return "type: the name of a vGPU type";
	if (r->type[0] && r->target == POOL_WHOLE)
		return "type: a whole GPU has no vGPU type; leave it out, or ask for a vGPU";
	if (r->weight > VGPU_WEIGHT_MAX)
		return "weight: at most 10000";
	if (r->floor_mhz > FLOOR_MHZ_MAX)
		return "floor_fps: at most 1000 frames per second";
	if (s->max_lease && r->lease > s->max_lease)
		return "lease_s: longer than leases may be; ask for less";
	return NULL;
}

/*
 * Whether a request asks for the same as before. The type may have been filled in since, and the
 * lease extended.
 */
static bool same_wishes(const struct pool_request *a, const struct pool_request *before)
{
	return !strcmp(a->vm, before->vm) && !strcmp(a->kind, before->kind) &&
		(!*before->vm_uuid || !strcmp(a->vm_uuid, before->vm_uuid)) &&
		a->target == before->target && a->precision == before->precision &&
		a->size_mib == before->size_mib && a->memory_mib == before->memory_mib &&
		a->capabilities == before->capabilities && a->weight == before->weight &&
		a->floor_mhz == before->floor_mhz &&
		(!a->type[0] || !strcmp(a->type, before->type));
}

static int former(struct pool_request *r, const struct pool_request *before, char *text)
{
	if (!same_wishes(r, before)) {
		explain(text,
			"key %s is that of request %" PRIu64 " with other wishes; use a new key",
			r->key, before->id);
		return -EEXIST;
	}
	*r = *before;
	return 0;
}

/* Whether there is room in the queue. */
static int room_in_queue(const struct pool *pool, const struct project *p, char *text)
{
	const struct pool_settings *s = &pool->settings;

	if (p->flow.nr >= s->max_queue_project) {
		explain(text,
			"%zu requests of project %s wait, which is the most; release GPUs or ask later",
			p->flow.nr, p->p.name);
		return -EBUSY;
	}
	if (pool->queue.nr >= s->max_queue) {
		explain(text, "%zu requests wait, which is the most; ask later", pool->queue.nr);
		return -EBUSY;
	}
	return 0;
}

/* Find the VM and the project of a request, and fill the project in. */
static int find_asker(struct pool *pool, struct pool_request *r, struct vm **vm,
		      struct project **project, char *text)
{
	*vm = core_find_vm(pool, r->vm);
	if (!*vm) {
		explain(text, "no VM %s; see the VMs of the pool for its name", r->vm);
		return -ENOENT;
	}
	memcpy(r->vm_uuid, (*vm)->v.uuid, sizeof(r->vm_uuid));
	if (!r->project[0])
		memcpy(r->project, (*vm)->v.project, sizeof(r->project));
	*project = core_find_project(pool, r->project);
	if (!*project) {
		explain(text,
			"no project '%s'; an administrator makes projects and gives VMs to them",
			r->project);
		return -ENOENT;
	}
	if (strcmp((*vm)->v.project, r->project)) {
		explain(text, "VM %s is not of project %s", r->vm, r->project);
		return -EPERM;
	}
	return 0;
}

/* Make a request of the service's own from a wish. */
static void begin_request(struct pool *pool, struct pool_request *r, int64_t now)
{
	const struct pool_settings *s = &pool->settings;

	r->id = 0;
	r->state = POOL_QUEUED;
	r->gpu[0] = r->uuid[0] = r->why[0] = '\0';
	r->asked = now;
	r->chosen = r->attached = r->ended = r->until = r->warned = 0;
	r->tries = 0;
	r->cancel = false;
	if (s->max_lease && !r->lease)
		r->lease = s->max_lease;
}

/* Store a new request and queue it. */
static int take(struct pool *pool, struct pool_request *r, struct vm *vm, struct project *project,
		int64_t now, char *text)
{
	struct request *q = calloc(1, sizeof(*q));
	struct pool_request wish = *r;
	int ret;

	if (!q)
		return -ENOMEM;
	begin_request(pool, r, now);
	ret = pool->hooks.add_request(pool->hooks.arg, r);
	if (ret) {
		free(q);
		if (ret != -EEXIST) {
			explain(text,
				"the database does not store the request; see the log of mgpu-poold");
			return -EIO;
		}
		ret = former(&wish, r, text);
		*r = wish;
		return ret;
	}
	q->r = *r;
	q->item.id = r->id;
	q->vm = vm;
	q->project = project;
	ret = core_request_add(pool, q);
	if (ret)
		free(q);
	else
		ret = place_queue(pool, q, now);
	if (ret)
		explain(text,
			"out of memory: request %" PRIu64 " is stored, and is queued when mgpu-poold starts again",
			r->id);
	return ret ? -ENOMEM : 1;
}

/* A request that is refused may be one of before, which is over. */
static int refuse(struct pool *pool, struct pool_request *r, int ret, char *text)
{
	struct pool_request before = *r;

	if (!pool->hooks.find_request || pool->hooks.find_request(pool->hooks.arg, &before))
		return ret;
	text[0] = '\0';
	return former(r, &before, text);
}

int pool_ask(struct pool *pool, struct pool_request *r, int64_t now, const char *actor, char *text)
{
	const char *bad = bad_wish(r, &pool->settings);
	const struct request *before;
	struct project *project;
	uint64_t id;
	struct vm *vm;
	int ret;

	text[0] = '\0';
	if (bad) {
		explain(text, "%s", bad);
		return -EINVAL;
	}
	ret = find_asker(pool, r, &vm, &project, text);
	if (ret)
		return ret;
	before = table_find(&pool->keys, &(struct key){ r->project, r->key });
	if (before)
		return former(r, &before->r, text);
	if (!place_possible(vm, r)) {
		explain(text, "no GPU of host %s can do it, free or not; ask for less",
			vm->host->name);
		return refuse(pool, r, -ENOSPC, text);
	}
	ret = room_in_queue(pool, project, text);
	if (ret)
		return refuse(pool, r, ret, text);
	ret = take(pool, r, vm, project, now, text);
	if (ret != 1)
		return ret;
	id = r->id;
	core_tell(pool, actor, "request", id, r->vm, now, "%s on %s, %" PRIu64 " MiB", r->kind,
		  pool_target_name(r->target), r->size_mib);
	place_pass(pool, now);
	*r = core_find_request(pool, id)->r;
	return 1;
}

/* ---- releasing and extending ---- */

static int no_such(uint64_t id, char *text)
{
	explain(text, "no open request %" PRIu64, id);
	return -ENOENT;
}

static int failed_to_store(int ret, char *text)
{
	if (ret)
		explain(text, "the database does not store it; see the log of mgpu-poold");
	return ret;
}

/* Take back a request that is being attached. */
static int cancel(struct pool *pool, struct request *q, const char *actor, int64_t now)
{
	struct pool_request next = q->r;
	bool waits = q->due;

	if (q->r.cancel)
		return 0;
	next.cancel = true;
	if (core_change(pool, q, &next))
		return -EIO;
	core_tell(pool, actor, "cancel", next.id, next.gpu, now,
		  "released while it is being attached");
	/* Between attempts no answer will come. */
	return waits ? core_begin_release(pool, q, false, actor,
					  "released while it was being attached", now) : 0;
}

static int release(struct pool *pool, struct request *q, bool done, const char *actor, int64_t now)
{
	char why[POOL_TEXT_MAX];

	explain(why, "released by %s", actor);
	switch (q->r.state) {
	case POOL_QUEUED:
		return core_finish(pool, q, why, now);
	case POOL_ATTACHING:
		return cancel(pool, q, actor, now);
	case POOL_ACTIVE:
		return core_begin_release(pool, q, done, actor, why, now);
	default:
		return 0;
	}
}

int pool_release(struct pool *pool, uint64_t id, bool done, int64_t now, const char *actor,
		 char *text)
{
	struct request *q = core_find_request(pool, id);
	int ret;

	text[0] = '\0';
	if (!q)
		return no_such(id, text);
	ret = failed_to_store(release(pool, q, done, actor, now), text);
	place_pass(pool, now);
	return ret;
}

/* Whether an extension may keep a GPU that may be idle. */
static bool may_extend(struct pool *pool, struct request *q, int64_t now)
{
	return !q->idle.start || q->vm->v.pinned ||
	       idle_may_extend(&q->idle, &pool->settings, q->vm->v.seen, now);
}

int pool_extend(struct pool *pool, uint64_t id, uint32_t seconds, int64_t now, const char *actor,
		char *text)
{
	struct request *q = core_find_request(pool, id);
	uint32_t most = pool->settings.max_lease;
	struct pool_request next;

	text[0] = '\0';
	if (!q)
		return no_such(id, text);
	if (most && (!seconds || seconds > most)) {
		explain(text, "a lease may be %" PRIu32 " s at most; ask for less", most);
		return -EINVAL;
	}
	if (q->r.state == POOL_RELEASING) {
		explain(text, "request %" PRIu64 " is being released; make a new request", id);
		return -EBUSY;
	}
	if (!may_extend(pool, q, now)) {
		explain(text,
			"request %llu has not used its GPU for %lld s, and extensions keep an idle GPU for %u s at most; use it, or ask an administrator to pin the VM",
			(unsigned long long)id, (long long)(now - q->idle.used),
			pool->settings.extend_max);
		return -EPERM;
	}
	next = q->r;
	next.lease = seconds;
	next.warned = 0;
	if (next.state == POOL_ACTIVE)
		next.until = seconds ? now + seconds : 0;
	if (core_change(pool, q, &next))
		return failed_to_store(-EIO, text);
	if (q->idle.start)
		idle_keep(&q->idle, &pool->settings, now);
	q->lease_warned = false;
	if (next.until)
		core_wake(pool, next.until - pool->settings.grace);
	core_tell(pool, actor, "extend", id, next.gpu, now, "%" PRIu32 " s", seconds);
	return 0;
}

/* ---- a host that is gone for good ---- */

static bool is_on(const struct request *q, const struct host *host)
{
	return q->gpu ? q->gpu->host == host : q->vm->host == host;
}

static int forget(struct pool *pool, struct request *q, const char *actor, int64_t now)
{
	char why[POOL_TEXT_MAX];

	explain(why, "%s took host %s out of the pool", actor,
		q->gpu ? q->gpu->host->name : q->vm->host->name);
	if (q->r.state == POOL_ACTIVE)
		learn(pool, q, false, now);
	return core_finish(pool, q, why, now);
}

int pool_forget_host(struct pool *pool, const char *name, int64_t now, const char *actor)
{
	const struct host *host = core_find_host(pool, name);
	bool found = false;
	int ret = 0;

	/* The last one first: those that are over leave the table. */
	for (size_t i = host ? pool->requests.nr : 0; i-- > 0 && !ret;) {
		struct request *q = pool->requests.at[i];

		if (!is_on(q, host))
			continue;
		found = true;
		ret = forget(pool, q, actor, now);
	}
	if (ret || !found)
		return ret ? ret : -ENOENT;
	place_pass(pool, now);
	return 0;
}

/* ---- answers to jobs ---- */

int pool_attached(struct pool *pool, uint64_t id, const char *uuid, int64_t now)
{
	struct request *q = core_find_request(pool, id);

	if (!q)
		return -ENOENT;
	/* A late answer to a job that was begun twice. */
	if (q->r.state != POOL_ATTACHING)
		return 0;
	return core_become_active(pool, q, uuid, now);
}

static struct stray *find_stray(const struct pool *pool, uint64_t id)
{
	struct stray *s;

	TAILQ_FOREACH(s, &pool->strays, link)
		if (s->job.request.id == id)
			return s;
	return NULL;
}

int pool_detached(struct pool *pool, uint64_t id, int64_t now)
{
	struct request *q = core_find_holder(pool, id);
	struct stray *s = q ? NULL : find_stray(pool, id);
	int ret = 0;

	if (s)
		core_stray_free(pool, s);
	else if (!q)
		return -ENOENT;
	else if (q->r.state == POOL_RELEASING)
		ret = core_finish(pool, q, NULL, now);
	place_pass(pool, now);
	return ret;
}

static void stray_failed(struct pool *pool, struct stray *s, const char *text, int64_t now)
{
	s->tries++;
	s->due = now + core_backoff(pool, s->tries);
	core_wake(pool, s->due);
	core_tell(pool, "service", "fail", s->job.request.id, s->job.request.gpu, now, "detach: %s",
		  text);
}

static int attach_failed(struct pool *pool, struct request *q, bool retry, const char *text,
			 int64_t now)
{
	struct pool_request next = q->r;

	next.tries++;
	explain(next.why, "%s", text);
	if (next.cancel || !retry || next.tries >= pool->settings.attach_tries) {
		/* Remains of the attempt are detached before another VM gets the GPU. */
		q->gpu->failed = !next.cancel;
		set_due(pool, q, now + pool->settings.retry);
		return core_begin_release(pool, q, false, "service", text, now);
	}
	set_due(pool, q, now + core_backoff(pool, next.tries));
	return core_change(pool, q, &next);
}

static int detach_failed(struct pool *pool, struct request *q, int64_t now)
{
	struct pool_request next = q->r;

	/* A GPU that is not back is not given to another VM: this goes on until it is. */
	next.tries++;
	set_due(pool, q, now + core_backoff(pool, next.tries));
	return core_change(pool, q, &next);
}

int pool_failed(struct pool *pool, uint64_t id, bool retry, const char *text, int64_t now)
{
	struct request *q = core_find_holder(pool, id);
	struct stray *s = q ? NULL : find_stray(pool, id);

	if (s) {
		stray_failed(pool, s, text, now);
		return 0;
	}
	if (!q)
		return -ENOENT;
	if (q->r.state == POOL_ATTACHING) {
		core_tell(pool, "service", "fail", id, q->r.gpu, now, "attach: %s", text);
		return attach_failed(pool, q, retry, text, now);
	}
	if (q->r.state == POOL_RELEASING) {
		core_tell(pool, "service", "fail", id, q->r.gpu, now, "detach: %s", text);
		return detach_failed(pool, q, now);
	}
	return 0;
}

/* ---- use ---- */

int pool_use(struct pool *pool, const struct pool_use *use)
{
	struct request *q = core_find_request(pool, use->request);
	unsigned int lies;
	int ret;

	if (!q)
		return -ENOENT;
	if (q->r.state != POOL_ACTIVE || !q->idle.start)
		return 0;
	lies = q->idle.lies;
	ret = idle_use(&q->idle, use);
	if (lies < IDLE_LIES && q->idle.lies >= IDLE_LIES)
		core_tell(pool, "service", "lie", q->r.id, q->r.vm, use->time,
			  "the agent of VM %s reports what cannot be, and does not count any more",
			  q->r.vm);
	return ret;
}

void pool_agent_seen(struct pool *pool, const char *vm, int64_t now)
{
	struct vm *v = core_find_vm(pool, vm);

	if (v)
		v->v.seen = now;
}

/* ---- what is due ---- */

static void set_warned(struct pool *pool, struct request *q, int64_t warned)
{
	struct pool_request next = q->r;

	if (next.warned == warned)
		return;
	next.warned = warned;
	core_change(pool, q, &next);
}

/* Return the time of the next look. */
static int64_t look(struct pool *pool, struct request *q, int64_t now)
{
	const struct host *host = q->gpu->host;
	const struct pool_vm *vm = &q->vm->v;
	char why[POOL_TEXT_MAX] = "";
	enum idle_verdict verdict;

	if (!q->idle.start)
		return INT64_MAX;
	if (now < q->idle.look)
		return q->idle.look;
	/* No counter is read of a host that is down: the GPU may work. */
	if (!host->up)
		return INT64_MAX;
	if (now < host->looks)
		return host->looks;
	verdict = idle_look(&q->idle, &pool->settings, vm->seen, now, why);
	if (verdict == IDLE_KEEP || vm->pinned) {
		if (verdict != IDLE_KEEP)
			idle_pinned(&q->idle, &pool->settings, now);
		set_warned(pool, q, 0);
	} else if (verdict == IDLE_STOPPED) {
		core_tell(pool, "service", "idle", q->r.id, q->r.gpu, now, "%s", why);
	} else if (verdict == IDLE_WARN) {
		set_warned(pool, q, now);
		core_tell(pool, "service", "warn", q->r.id, q->r.vm, now,
			  "%s; the GPU goes back in %" PRId64 " s unless it works",
			  why, q->idle.look - now);
	} else if (!core_begin_release(pool, q, false, "service", why, now)) {
		return INT64_MAX;
	}
	return q->idle.look;
}

/* Return when the lease needs something next. */
static int64_t lease(struct pool *pool, struct request *q, int64_t now)
{
	int64_t until = q->r.until, warn = until - pool->settings.grace;

	if (!until)
		return INT64_MAX;
	if (now >= until)
		return core_begin_release(pool, q, false, "service", "the lease is over", now) ?
			now + pool->settings.retry : INT64_MAX;
	if (now < warn)
		return warn;
	if (!q->lease_warned)
		core_tell(pool, "service", "warn", q->r.id, q->r.vm, now,
			  "the lease is over in %" PRId64 " s; extend it to keep the GPU",
			  until - now);
	q->lease_warned = true;
	return until;
}

static int64_t retry(struct pool *pool, struct request *q, int64_t now)
{
	if (!q->due)
		return INT64_MAX;
	if (now < q->due)
		return q->due;
	/* Without the host, reconciliation goes on when it is back. */
	if (!q->gpu->host->up)
		q->due = 0;
	else
		core_begin_job(pool, q, q->r.state == POOL_RELEASING ? POOL_JOB_DETACH :
			       POOL_JOB_ATTACH);
	return INT64_MAX;
}

/* Do what is due of a request. Return when the next thing is. */
static int64_t run_one(struct pool *pool, struct request *q, int64_t now)
{
	int64_t next, after;

	if (q->r.state != POOL_ACTIVE)
		return retry(pool, q, now);
	next = lease(pool, q, now);
	if (q->r.state != POOL_ACTIVE)
		return INT64_MAX;
	after = look(pool, q, now);
	return after < next ? after : next;
}

static int64_t run_strays(struct pool *pool, int64_t now)
{
	int64_t next = INT64_MAX;
	struct stray *s;

	TAILQ_FOREACH(s, &pool->strays, link) {
		if (s->due && now >= s->due)
			core_stray_job(pool, s);
		if (s->due && s->due < next)
			next = s->due;
	}
	return next;
}

int64_t pool_run(struct pool *pool, int64_t now)
{
	struct request *q, *after;

	place_pass(pool, now);
	if (now < pool->next)
		return pool->next;
	pool->next = INT64_MAX;
	core_wake(pool, run_strays(pool, now));
	for (q = TAILQ_FIRST(&pool->held); q; q = after) {
		after = TAILQ_NEXT(q, in_held);
		core_wake(pool, run_one(pool, q, now));
	}
	if (pool->again)
		core_wake(pool, pool->again);
	return pool->next;
}

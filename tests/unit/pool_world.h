/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A world for a pool: a database and hosts with libvirt, in memory.  Each effect has a number; from
 * a given number on nothing has an effect any more (a crash), or a single store fails.
 *
 * A broken promise is counted at once: a whole GPU in two VMs, more vGPUs than slots, a job that
 * was not stored before.
 */
#ifndef TESTS_UNIT_POOL_WORLD_H
#define TESTS_UNIT_POOL_WORLD_H

#include "pool.h"

#define WORLD_REQUESTS	4096
#define WORLD_JOBS	512
#define WORLD_DEVICES	256
#define NEVER		UINT64_MAX

struct device {
	uint64_t request;
	char vm[POOL_NAME_MAX];
	char gpu[2 * POOL_NAME_MAX];
	bool partial;
};

/**
 * struct world - database, hosts, and what a test wants of them
 * @rows: stored requests by number; @attached: how often each came into a VM
 * @effects: so far; from @crash_at on there are none; @store_fails_at fails
 * @attach_failures: attachments that fail from now on; @attach_refused: for good, half done
 * @twice: broken promises
 */
struct world {
	struct pool *pool;
	struct pool_settings settings;
	struct pool_project projects[8];
	size_t nr_projects;
	struct pool_vm vms[32];
	size_t nr_vms;
	struct pool_gpu gpus[32];
	size_t nr_gpus;
	struct pool_request rows[WORLD_REQUESTS];
	unsigned int attached[WORLD_REQUESTS];
	uint64_t last;
	struct pool_job jobs[WORLD_JOBS];
	size_t first_job, nr_jobs;
	struct device devices[WORLD_DEVICES];
	size_t nr_devices;
	uint64_t effects, crash_at, store_fails_at;
	unsigned int attach_failures, detach_failures;
	bool attach_refused;
	unsigned int broken;
	struct pool_outcome outcomes[WORLD_REQUESTS];
	size_t nr_outcomes;
	unsigned int outcomes_fail;
	char event[32];		/* the last */
	char event_text[POOL_TEXT_MAX];
	unsigned int warnings, lies;
	int64_t now;
};

static struct world w;

/* Return whether the effect takes place. */
static bool effect(void)
{
	return w.effects++ < w.crash_at;
}

static bool crashed(void)
{
	return w.effects > w.crash_at;
}

static void broken(const char *what, uint64_t request)
{
	w.broken++;
	tap_diag("effect %" PRIu64 ", request %" PRIu64 ": %s", w.effects, request, what);
}

/* ---- the database ---- */

static int world_store(void *arg, const struct pool_request *r)
{
	(void)arg;
	if (w.effects == w.store_fails_at) {
		w.effects++;
		return -EIO;
	}
	if (!effect())
		return -EIO;
	if (!r->id || r->id > w.last || strcmp(w.rows[r->id].key, r->key))
		broken("stored without having been added", r->id);
	if (pool_over(w.rows[r->id].state))
		broken("changed after it was over", r->id);
	w.rows[r->id] = *r;
	return 0;
}

static int world_add(void *arg, struct pool_request *r)
{
	(void)arg;
	for (uint64_t i = 1; i <= w.last; i++)
		if (!strcmp(w.rows[i].key, r->key) && !strcmp(w.rows[i].project, r->project)) {
			*r = w.rows[i];
			return -EEXIST;
		}
	if (w.effects == w.store_fails_at) {
		w.effects++;
		return -EIO;
	}
	if (!effect() || w.last + 1 == WORLD_REQUESTS)
		return -EIO;
	r->id = ++w.last;
	w.rows[r->id] = *r;
	return 0;
}

static int world_find(void *arg, struct pool_request *r)
{
	(void)arg;
	for (uint64_t i = 1; i <= w.last; i++)
		if (!strcmp(w.rows[i].key, r->key) && !strcmp(w.rows[i].project, r->project)) {
			*r = w.rows[i];
			return 0;
		}
	return -ENOENT;
}

static int world_outcome(void *arg, const struct pool_outcome *outcome)
{
	(void)arg;
	if (!effect() || w.outcomes_fail)
		return -EIO;
	if (w.nr_outcomes < WORLD_REQUESTS)
		w.outcomes[w.nr_outcomes++] = *outcome;
	return 0;
}

static void world_event(void *arg, const struct pool_event *event)
{
	(void)arg;
	if (!effect())
		return;
	snprintf(w.event, sizeof(w.event), "%s", event->what);
	snprintf(w.event_text, sizeof(w.event_text), "%s", event->text);
	w.warnings += !strcmp(event->what, "warn");
	w.lies += !strcmp(event->what, "lie");
}

/* ---- the hosts ---- */

static void world_job(void *arg, const struct pool_job *job)
{
	const struct pool_request *row = &w.rows[job->request.id];

	(void)arg;
	if (!effect())
		return;
	if (row->id && (row->state == POOL_QUEUED || (job->kind == POOL_JOB_ATTACH &&
						      row->state != POOL_ATTACHING)))
		broken("a job that is not stored", job->request.id);
	if (w.nr_jobs < WORLD_JOBS)
		w.jobs[(w.first_job + w.nr_jobs++) % WORLD_JOBS] = *job;
}

static struct device *find_device(uint64_t request)
{
	for (size_t i = 0; i < w.nr_devices; i++)
		if (w.devices[i].request == request)
			return &w.devices[i];
	return NULL;
}

static unsigned int devices_of(const char *gpu)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < w.nr_devices; i++)
		nr += !strcmp(w.devices[i].gpu, gpu);
	return nr;
}

static void attach(const struct pool_job *job)
{
	struct device *d = find_device(job->request.id);

	if (d) {
		d->partial = false;
		return;
	}
	if (devices_of(job->gpu.name) >= job->gpu.slots)
		broken("its GPU is in another VM", job->request.id);
	d = &w.devices[w.nr_devices++];
	*d = (struct device){ .request = job->request.id };
	memcpy(d->vm, job->request.vm, sizeof(d->vm));
	memcpy(d->gpu, job->gpu.name, sizeof(d->gpu));
	if (++w.attached[job->request.id] > 1 && w.rows[job->request.id].attached)
		broken("attached again after it was active", job->request.id);
}

static void remove_device(uint64_t request)
{
	struct device *d = find_device(request);

	if (d)
		*d = w.devices[--w.nr_devices];
}

/* Do the next job of the hosts, and answer. Return false if there is none. */
static bool world_step(void)
{
	struct pool_job job;
	uint64_t id;

	if (!w.nr_jobs || crashed())
		return false;
	job = w.jobs[w.first_job];
	id = job.request.id;
	w.first_job = (w.first_job + 1) % WORLD_JOBS;
	w.nr_jobs--;
	if (job.kind == POOL_JOB_ATTACH && (w.attach_failures || w.attach_refused)) {
		w.attach_failures -= !w.attach_refused;
		/* The host could not undo what it had done. */
		if (w.attach_refused && effect()) {
			attach(&job);
			find_device(id)->partial = true;
		}
		pool_failed(w.pool, id, !w.attach_refused, "the bus is busy", w.now);
	} else if (job.kind == POOL_JOB_DETACH && w.detach_failures) {
		w.detach_failures--;
		pool_failed(w.pool, id, true, "the guest does not let go", w.now);
	} else if (!effect()) {
		return false;
	} else if (job.kind == POOL_JOB_ATTACH) {
		attach(&job);
		pool_attached(w.pool, id, "", w.now);
	} else {
		remove_device(id);
		pool_detached(w.pool, id, w.now);
	}
	return true;
}

/* Let jobs and what is due within @seconds happen. */
static void world_run(int64_t seconds)
{
	int64_t end = w.now + seconds;

	while (!crashed()) {
		int64_t next;

		while (world_step())
			;
		next = pool_run(w.pool, w.now);
		if (w.nr_jobs)
			continue;
		if (next > end)
			break;
		w.now = next > w.now ? next : w.now + 1;
	}
	if (w.now < end)
		w.now = end;
}

/* ---- making ---- */

static void world_project(const char *name, uint32_t weight, uint32_t max_gpus)
{
	struct pool_project *p = &w.projects[w.nr_projects++];

	*p = (struct pool_project){ .weight = weight, .max_gpus = max_gpus };
	snprintf(p->name, sizeof(p->name), "%s", name);
}

static void world_vm(const char *name, const char *host, const char *project)
{
	struct pool_vm *v = &w.vms[w.nr_vms++];

	*v = (struct pool_vm){ 0 };
	snprintf(v->name, sizeof(v->name), "%s", name);
	snprintf(v->host, sizeof(v->host), "%s", host);
	snprintf(v->project, sizeof(v->project), "%s", project);
}

static struct pool_gpu *world_gpu(const char *host, const char *name, const char *model,
				  uint32_t slots, uint32_t memory_mib)
{
	struct pool_gpu *g = &w.gpus[w.nr_gpus++];

	*g = (struct pool_gpu){
		.slots = slots, .memory_mib = memory_mib, .group = -1, .present = true,
		.target = slots > 1 ? POOL_VGPU : POOL_WHOLE,
		.capabilities = POOL_3D | POOL_COMPUTE,
	};
	if (slots > 1)
		snprintf(g->types, sizeof(g->types), "small medium:2 large:4");
	snprintf(g->host, sizeof(g->host), "%s", host);
	snprintf(g->name, sizeof(g->name), "%s/%s", host, name);
	snprintf(g->model, sizeof(g->model), "%s", model);
	return g;
}

static void world_reconcile(void)
{
	static const char *const hosts[] = { "h1", "h2" };

	for (size_t h = 0; h < 2; h++) {
		struct pool_found found[WORLD_DEVICES];
		size_t nr = 0;

		for (size_t i = 0; i < w.nr_devices; i++) {
			const struct device *d = &w.devices[i];

			if (strncmp(d->gpu, hosts[h], 2))
				continue;
			found[nr] = (struct pool_found){ .request = d->request,
							 .partial = d->partial };
			memcpy(found[nr].vm, d->vm, sizeof(d->vm));
			memcpy(found[nr++].gpu, d->gpu, sizeof(d->gpu));
		}
		pool_reconcile(w.pool, hosts[h], found, nr, w.now);
	}
}

/* Start the service: load what is stored, and meet libvirt's truth. */
static void world_start(void)
{
	const struct pool_hooks hooks = {
		.store_request = world_store, .add_request = world_add, .find_request = world_find,
		.outcome = world_outcome, .event = world_event, .job = world_job,
	};

	pool_free(w.pool);
	w.nr_jobs = 0;
	w.crash_at = NEVER;
	w.pool = pool_new(&w.settings, &hooks);
	for (size_t i = 0; i < w.nr_projects; i++)
		pool_put_project(w.pool, &w.projects[i]);
	for (size_t i = 0; i < w.nr_vms; i++)
		pool_put_vm(w.pool, &w.vms[i]);
	for (size_t i = 0; i < w.nr_gpus; i++)
		pool_put_gpu(w.pool, &w.gpus[i]);
	for (uint64_t i = 1; i <= w.last; i++)
		if (!pool_over(w.rows[i].state))
			TAP_EQ(pool_load_request(w.pool, &w.rows[i]), 0);
	world_reconcile();
}

static void world_new(void)
{
	memset(&w, 0, sizeof(w));
	w.crash_at = NEVER;
	w.store_fails_at = NEVER;
	w.now = 1000000;
	pool_settings_default(&w.settings);
}

static int ask_for(const char *key, const char *vm, const char *kind, enum pool_target target,
		   const char *type)
{
	struct pool_request r = { .target = target };
	char text[POOL_TEXT_MAX];

	snprintf(r.key, sizeof(r.key), "%s", key);
	snprintf(r.vm, sizeof(r.vm), "%s", vm);
	snprintf(r.kind, sizeof(r.kind), "%s", kind);
	snprintf(r.type, sizeof(r.type), "%s", type);
	return pool_ask(w.pool, &r, w.now, "vm:test", text);
}

/* Ask for any GPU. */
static int ask(const char *key, const char *vm)
{
	return ask_for(key, vm, "training", POOL_ANY, "");
}

static int give_back(uint64_t id)
{
	char text[POOL_TEXT_MAX];

	return pool_release(w.pool, id, true, w.now, "vm:test", text);
}

#endif /* TESTS_UNIT_POOL_WORLD_H */

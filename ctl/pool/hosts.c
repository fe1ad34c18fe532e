// SPDX-License-Identifier: GPL-2.0-only
/* The hosts of the service. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "complain.h"
#include "crash.h"
#include "hosts.h"
#include "jobs.h"
#include "utf8.h"

#define BATCH	64	/* answers in one transaction */

/**
 * struct claims - VMs that a host has
 * @vm: as it reported them
 * @nr: their number
 */
struct claims {
	struct pool_vm *vm;
	size_t nr;
};

/**
 * struct entry - a host
 * @config: name and URI
 * @jobs: its thread
 * @vms: VMs that it reported since the connection began
 */
struct entry {
	struct pool_host config;
	struct jobs *jobs;
	struct claims vms;
};

/**
 * struct hosts - the hosts
 * @pool: the pool
 * @store: its database
 * @effects: its hooks
 * @default_project: project of new VMs
 * @epoll: descriptor of all jobs
 * @entry: the hosts
 * @list: the same for the API
 * @nr: their number
 */
struct hosts {
	struct pool *pool;
	struct store *store;
	struct effects *effects;
	char default_project[POOL_NAME_MAX];
	int epoll;
	struct entry entry[CONFIG_HOSTS];
	struct api_host list[CONFIG_HOSTS];
	size_t nr;
};

/* ---- VMs that a host has ---- */

static struct pool_vm *claims_find(const struct claims *claims, const char *name)
{
	for (size_t i = 0; i < claims->nr; i++)
		if (!strcmp(claims->vm[i].name, name))
			return &claims->vm[i];
	return NULL;
}

static void claims_add(struct claims *claims, const struct pool_vm *vm)
{
	struct pool_vm *at = claims_find(claims, vm->name);
	struct pool_vm *more;

	if (at) {
		*at = *vm;
		return;
	}
	more = reallocarray(claims->vm, claims->nr + 1, sizeof(*more));
	if (!more)
		return;
	claims->vm = more;
	more[claims->nr++] = *vm;
}

static void claims_drop(struct claims *claims, const char *name)
{
	struct pool_vm *at = claims_find(claims, name);

	if (at)
		*at = claims->vm[--claims->nr];
}

static void claims_free(struct claims *claims)
{
	free(claims->vm);
	*claims = (struct claims){ 0 };
}

/* ---- hosts ---- */

struct hosts *hosts_new(struct pool *pool, struct store *store, struct effects *effects)
{
	struct hosts *hosts = calloc(1, sizeof(*hosts));

	if (!hosts)
		return NULL;
	hosts->pool = pool;
	hosts->store = store;
	hosts->effects = effects;
	hosts->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (hosts->epoll >= 0 && !host_init())
		return hosts;
	if (hosts->epoll >= 0)
		close(hosts->epoll);
	free(hosts);
	return NULL;
}

/* A host takes no job any more; its threads may end later. */
static void stop(struct hosts *hosts, size_t i)
{
	struct entry *e = &hosts->entry[i];

	pool_host_up(hosts->pool, e->config.name, false);
	/* A thread that hangs is left behind, and has the descriptor open. */
	epoll_ctl(hosts->epoll, EPOLL_CTL_DEL, jobs_fd(e->jobs), NULL);
	jobs_stop(e->jobs);
	claims_free(&e->vms);
}

void hosts_free(struct hosts *hosts)
{
	if (!hosts)
		return;
	/* All end at the same time. */
	for (size_t i = 0; i < hosts->nr; i++)
		stop(hosts, i);
	for (size_t i = 0; i < hosts->nr; i++)
		jobs_free(hosts->entry[i].jobs);
	close(hosts->epoll);
	free(hosts);
}

static struct entry *find(struct hosts *hosts, const char *name, size_t *at)
{
	for (size_t i = 0; i < hosts->nr; i++)
		if (!strcmp(hosts->entry[i].config.name, name)) {
			*at = i;
			return &hosts->entry[i];
		}
	return NULL;
}

/* @former: threads of the host by its former URI, which are taken; NULL for none. */
static int add(struct hosts *hosts, const struct pool_host *config, struct jobs *former)
{
	struct entry *e = &hosts->entry[hosts->nr];
	struct epoll_event event = { .events = EPOLLIN };

	*e = (struct entry){ .config = *config };
	e->jobs = former ? jobs_new_after(config, former) : jobs_new(config, 1);
	if (!e->jobs)
		return -ENOMEM;
	if (epoll_ctl(hosts->epoll, EPOLL_CTL_ADD, jobs_fd(e->jobs), &event)) {
		jobs_leave(e->jobs);
		return -ENOMEM;
	}
	hosts->list[hosts->nr] = (struct api_host){ .why = "the service connects" };
	strcpy(hosts->list[hosts->nr++].name, config->name);
	return 0;
}

static bool is_configured(const struct config *config, const struct pool_host *host)
{
	for (size_t n = 0; n < config->nr_hosts; n++)
		if (!strcmp(config->hosts[n].name, host->name) &&
		    !strcmp(config->hosts[n].uri, host->uri))
			return true;
	return false;
}

/**
 * struct leaver - a host that is not configured as it was
 * @name: its name
 * @jobs: its threads, which are stopped; NULL: taken
 */
struct leaver {
	char name[POOL_NAME_MAX];
	struct jobs *jobs;
};

/* Stop hosts that are gone or have another URI; @left: room for all. Return their number. */
static size_t stop_old(struct hosts *hosts, const struct config *config, struct leaver *left)
{
	size_t nr = 0, i = 0;

	while (i < hosts->nr) {
		struct entry *e = &hosts->entry[i];

		if (is_configured(config, &e->config)) {
			i++;
			continue;
		}
		stop(hosts, i);
		left[nr] = (struct leaver){ .jobs = e->jobs };
		strcpy(left[nr++].name, e->config.name);
		hosts->nr--;
		*e = hosts->entry[hosts->nr];
		hosts->list[i] = hosts->list[hosts->nr];
	}
	return nr;
}

static struct jobs *take_former(struct leaver *left, size_t nr, const char *name)
{
	struct jobs *former = NULL;

	for (size_t i = 0; i < nr && !former; i++)
		if (!strcmp(left[i].name, name)) {
			former = left[i].jobs;
			left[i].jobs = NULL;
		}
	return former;
}

int hosts_set(struct hosts *hosts, const struct config *config)
{
	struct leaver left[CONFIG_HOSTS];
	size_t nr, at;
	int ret = 0;

	strcpy(hosts->default_project, config->default_project);
	nr = stop_old(hosts, config, left);
	for (size_t i = 0; i < config->nr_hosts && !ret; i++) {
		const struct pool_host *host = &config->hosts[i];

		if (!find(hosts, host->name, &at))
			ret = add(hosts, host, take_former(left, nr, host->name));
	}
	/* The API does not wait for a host that hangs. */
	for (size_t i = 0; i < nr; i++)
		jobs_leave(left[i].jobs);
	return ret;
}

const struct api_host *hosts_list(const struct hosts *hosts, size_t *nr)
{
	*nr = hosts->nr;
	return hosts->list;
}

int hosts_fd(const struct hosts *hosts)
{
	return hosts->epoll;
}

void hosts_add(struct hosts *hosts, const struct pool_job *job)
{
	char name[2 * POOL_NAME_MAX];
	struct entry *e;
	size_t at;

	/* A device of no request has its GPU's name alone. */
	snprintf(name, sizeof(name), "%s", *job->gpu.host ? job->gpu.host : *job->vm.host ?
		 job->vm.host : job->request.gpu);
	name[strcspn(name, "/")] = '\0';
	e = find(hosts, name, &at);
	/* A host that is not configured any more: reconciled when it is there again. */
	if (e)
		jobs_add(e->jobs, job);
}

/* ---- what hosts say ---- */

static void tell(struct hosts *hosts, const char *what, const char *object, const char *text,
		 int64_t now)
{
	struct pool_event event = { .time = now, .actor = "service" };

	snprintf(event.what, sizeof(event.what), "%s", what);
	snprintf(event.object, sizeof(event.object), "%s", object);
	snprintf(event.text, sizeof(event.text), "%s", text);
	effects_log(hosts->effects, &event);
}

static void broken(struct hosts *hosts, int ret)
{
	if (ret == -EIO)
		hosts->effects->failed = true;
	else if (ret)
		complain("what a host said does not fit: %s", strerror(-ret));
}

static void take_gpu(struct hosts *hosts, const struct jobs_answer *a, int64_t now)
{
	const struct pool_gpu *old = pool_gpu(hosts->pool, a->gpu.name);
	struct pool_gpu gpu = a->gpu;
	char text[POOL_TEXT_MAX];
	int ret;

	if (hosts_merge_gpu(&gpu, old)) {
		snprintf(text, sizeof(text), "a %s is in the place of a %s: what was described of that is void",
			 gpu.model, old->model);
		tell(hosts, "gpu-other", gpu.name, text, now);
	}
	gpu.present = true;
	ret = store_put_gpu(hosts->store, &gpu);
	broken(hosts, ret ? ret : pool_put_gpu(hosts->pool, &gpu));
}

static void lose_gpu(struct hosts *hosts, const struct jobs_answer *a)
{
	const struct pool_gpu *old = pool_gpu(hosts->pool, a->gpu.name);
	struct pool_gpu gpu;

	if (!old)
		return;
	gpu = *old;
	gpu.present = false;
	broken(hosts, pool_put_gpu(hosts->pool, &gpu));
}

/* VMs that libvirt does not have now are in the database only. */
static int find_stored(const struct pool_vm *vm, void *arg)
{
	struct pool_vm *wanted = arg;

	if (strcmp(vm->name, wanted->name))
		return 0;
	*wanted = *vm;
	return 1;
}

static void forget_vm(struct hosts *hosts, const char *name)
{
	int ret = store_drop_vm(hosts->store, name);

	if (ret != -ENOENT)
		broken(hosts, ret);
}

/*
 * Whether the VM is @e's now, and no longer @old's host's.  A host that lists a VM of both hosts
 * while it connects is not the one that got it last.
 */
static bool moved(struct hosts *hosts, const struct entry *e, const struct pool_vm *old,
		  bool fresh)
{
	const struct entry *other;
	size_t at;

	if (!strcmp(old->host, e->config.name) || fresh)
		return true;
	other = find(hosts, old->host, &at);
	return !other || (hosts->list[at].up && !claims_find(&other->vms, old->name));
}

/* No host of the configuration has the VM that had the name, and nothing is open for it. */
static bool is_left(struct hosts *hosts, const struct pool_vm *old)
{
	size_t at;

	return !find(hosts, old->host, &at) && !pool_request_of_vm(hosts->pool, old->name, NULL);
}

/* Another VM has the name of @vm: what that asked for is not the other one's. */
static void end_requests(struct hosts *hosts, const struct pool_vm *vm, int64_t now)
{
	const struct pool_request *r = pool_request_of_vm(hosts->pool, vm->name, NULL);
	char why[POOL_TEXT_MAX];

	while (r) {
		bool ends = r->state != POOL_RELEASING && !r->cancel && !pool_is_of(r, vm);

		if (ends && pool_release(hosts->pool, r->id, false, now, "service", why)) {
			broken(hosts, -EIO);
			return;
		}
		/* Those that are over are not in the list any more. */
		r = pool_request_of_vm(hosts->pool, vm->name, ends ? NULL : r);
	}
}

/* @fresh: the host was connected when it got the VM. */
static void take_vm(struct hosts *hosts, const struct entry *e, const struct pool_vm *said,
		    bool fresh, int64_t now)
{
	const struct pool_vm *old = pool_vm(hosts->pool, said->name);
	struct pool_vm vm = *said, stored = *said;
	int ret;

	if (!old) {
		ret = store_vms(hosts->store, find_stored, &stored);
		if (ret < 0) {
			broken(hosts, ret);
			return;
		}
		old = ret ? &stored : NULL;
	}
	ret = hosts_merge_vm(&vm, old, hosts->default_project);
	if (ret == -EEXIST && (old == &stored || is_left(hosts, old)))
		ret = 1;	/* the other host does not have it now */
	if (ret == -EEXIST) {
		tell(hosts, "vm-twice", vm.name, "another host has a VM of this name; rename one",
		     now);
		return;
	}
	if (!ret && old && old != &stored && !moved(hosts, e, old, fresh))
		return;
	if (ret) {
		/* Jobs of the former VM name its UUID. */
		end_requests(hosts, &vm, now);
		forget_vm(hosts, vm.name);
		tell(hosts, "vm-other", vm.name, "another VM of this name: its key and consent are void",
		     now);
	}
	ret = store_put_vm(hosts->store, &vm);
	broken(hosts, ret ? ret : pool_put_vm(hosts->pool, &vm));
}

/* A VM is gone from a host: another may have it, or one of its name. */
static void offer_vm(struct hosts *hosts, const char *name, int64_t now)
{
	for (size_t i = 0; i < hosts->nr && !pool_vm(hosts->pool, name); i++) {
		const struct pool_vm *vm = claims_find(&hosts->entry[i].vms, name);

		if (vm)
			take_vm(hosts, &hosts->entry[i], vm, false, now);
	}
}

/* Its project, key and requests stay in the database. */
static void lose_vm(struct hosts *hosts, struct entry *e, const char *name, int64_t now)
{
	const struct pool_vm *vm = pool_vm(hosts->pool, name);

	claims_drop(&e->vms, name);
	/* A VM that was migrated is another host's by now. */
	if (vm && !strcmp(vm->host, e->config.name) && !pool_drop_vm(hosts->pool, name))
		offer_vm(hosts, name, now);
}

/* Forget VMs that went while the service did not run, or had requests. */
static void lose_old_vms(struct hosts *hosts, struct entry *e, int64_t now)
{
	const struct pool_vm *vm;
	size_t i = 0;

	while ((vm = pool_vm_at(hosts->pool, i))) {
		char name[POOL_NAME_MAX];

		strcpy(name, vm->name);
		if (strcmp(vm->host, e->config.name) || claims_find(&e->vms, name) ||
		    pool_drop_vm(hosts->pool, name))
			i++;
		else
			offer_vm(hosts, name, now);
	}
}

/* VMs of the host that others had, and have no longer. */
static void take_left_vms(struct hosts *hosts, struct entry *e, int64_t now)
{
	for (size_t i = 0; i < e->vms.nr; i++) {
		const struct pool_vm *said = &e->vms.vm[i];
		const struct pool_vm *vm = pool_vm(hosts->pool, said->name);

		if (!vm || (strcmp(vm->host, said->host) &&
			    (!strcmp(vm->uuid, said->uuid) || is_left(hosts, vm))))
			take_vm(hosts, e, said, false, now);
	}
}

static void take_up(struct hosts *hosts, struct entry *e, struct api_host *h,
		    const struct jobs_answer *a, int64_t now)
{
	if (!h->up)
		tell(hosts, "host-up", h->name, "libvirt answers", now);
	h->up = true;
	h->why[0] = '\0';
	lose_old_vms(hosts, e, now);
	take_left_vms(hosts, e, now);
	crash_point("reconcile");
	pool_host_up(hosts->pool, h->name, true);
	broken(hosts, pool_reconcile(hosts->pool, h->name, a->found, a->nr_found, now));
	crash_point("reconcile-done");
}

static void take_down(struct hosts *hosts, struct api_host *h, const struct jobs_answer *a,
		      int64_t now)
{
	if (h->up || strcmp(h->why, a->text))
		tell(hosts, "host-down", h->name, a->text, now);
	h->up = false;
	snprintf(h->why, sizeof(h->why), "%s", a->text);
	pool_host_up(hosts->pool, h->name, false);
}

static void take_use(struct hosts *hosts, const struct jobs_answer *a, int64_t now)
{
	struct pool_use use = a->use;

	use.time = now;
	/* A sample that does not count, or is of a request that is over, is not kept. */
	if (!pool_use(hosts->pool, &use))
		broken(hosts, store_add_use(hosts->store, &use));
}

static void take(struct hosts *hosts, size_t i, const struct jobs_answer *a, int64_t now)
{
	struct entry *e = &hosts->entry[i];
	struct pool *pool = hosts->pool;
	int ret = 0;

	switch (a->kind) {
	case JOBS_UP:
		take_up(hosts, e, &hosts->list[i], a, now);
		break;
	case JOBS_DOWN:
		take_down(hosts, &hosts->list[i], a, now);
		break;
	case JOBS_GPU:
		take_gpu(hosts, a, now);
		break;
	case JOBS_GPU_GONE:
		lose_gpu(hosts, a);
		break;
	case JOBS_VM:
		claims_add(&e->vms, &a->vm);
		take_vm(hosts, e, &a->vm, hosts->list[i].up, now);
		break;
	case JOBS_VM_GONE:
		lose_vm(hosts, e, a->vm.name, now);
		break;
	case JOBS_USE:
		take_use(hosts, a, now);
		break;
	case JOBS_ATTACHED:
		ret = pool_attached(pool, a->request, a->uuid, now);
		break;
	case JOBS_DETACHED:
		ret = pool_detached(pool, a->request, now);
		break;
	case JOBS_FAILED:
	case JOBS_REFUSED:
		ret = pool_failed(pool, a->request, a->kind == JOBS_FAILED, a->text, now);
		break;
	}
	/* The answer to a job that was lost and asked for again comes twice. */
	if (ret != -ENOENT)
		broken(hosts, ret);
}

static void run_one(struct hosts *hosts, size_t i, struct jobs_answer *a, int64_t now)
{
	crash_point("answer");
	/* The database takes UTF-8 only. */
	utf8_clean(a->text);
	utf8_clean(a->gpu.why);
	utf8_clean(a->gpu.model);
	take(hosts, i, a, now);
	free(a->found);
}

int hosts_run(struct hosts *hosts, int64_t now)
{
	struct jobs_answer *a;
	struct epoll_event event;
	unsigned int n = 0;

	if (epoll_wait(hosts->epoll, &event, 1, 0) < 1)
		return 0;
	/* An answer that is taken from the queue is taken into the database, too. */
	a = malloc(sizeof(*a));
	if (!a || effects_begin(hosts->effects)) {
		free(a);
		return -EIO;
	}
	for (size_t i = 0; i < hosts->nr; i++)
		while (n < BATCH && jobs_next(hosts->entry[i].jobs, a)) {
			run_one(hosts, i, a, now);
			n++;
		}
	free(a);
	effects_commit(hosts->effects);
	crash_point("answer-done");
	return n > 0;
}

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
 * struct names - VMs that a host has
 * @name: their names
 * @nr: their number
 */
struct names {
	char (*name)[POOL_NAME_MAX];
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
	struct names vms;
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

static bool names_has(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->nr; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

static void names_add(struct names *names, const char *name)
{
	void *more;

	if (names_has(names, name))
		return;
	more = reallocarray(names->name, names->nr + 1, sizeof(*names->name));
	if (!more)
		return;
	names->name = more;
	strcpy(names->name[names->nr++], name);
}

static void names_drop(struct names *names, const char *name)
{
	for (size_t i = 0; i < names->nr; i++)
		if (!strcmp(names->name[i], name)) {
			strcpy(names->name[i], names->name[--names->nr]);
			return;
		}
}

static void names_free(struct names *names)
{
	free(names->name);
	*names = (struct names){ 0 };
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

static void end(struct hosts *hosts, size_t i)
{
	pool_host_up(hosts->pool, hosts->entry[i].config.name, false);
	jobs_free(hosts->entry[i].jobs);
	names_free(&hosts->entry[i].vms);
}

void hosts_free(struct hosts *hosts)
{
	if (!hosts)
		return;
	for (size_t i = 0; i < hosts->nr; i++)
		end(hosts, i);
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

static int add(struct hosts *hosts, const struct pool_host *config)
{
	struct entry *e = &hosts->entry[hosts->nr];
	struct epoll_event event = { .events = EPOLLIN };

	*e = (struct entry){ .config = *config, .jobs = jobs_new(config, 1) };
	if (!e->jobs)
		return -ENOMEM;
	if (epoll_ctl(hosts->epoll, EPOLL_CTL_ADD, jobs_fd(e->jobs), &event)) {
		jobs_free(e->jobs);
		return -ENOMEM;
	}
	hosts->list[hosts->nr] = (struct api_host){ .why = "the service connects" };
	strcpy(hosts->list[hosts->nr++].name, config->name);
	return 0;
}

int hosts_set(struct hosts *hosts, const struct config *config)
{
	int ret = 0;
	size_t i;

	strcpy(hosts->default_project, config->default_project);
	for (i = 0; i < hosts->nr; ) {
		const struct pool_host *own = &hosts->entry[i].config;
		size_t n = 0;

		while (n < config->nr_hosts && (strcmp(config->hosts[n].name, own->name) ||
						strcmp(config->hosts[n].uri, own->uri)))
			n++;
		if (n < config->nr_hosts) {
			i++;
			continue;
		}
		end(hosts, i);
		hosts->nr--;
		hosts->entry[i] = hosts->entry[hosts->nr];
		hosts->list[i] = hosts->list[hosts->nr];
	}
	for (i = 0; i < config->nr_hosts && !ret; i++) {
		size_t at;

		if (!find(hosts, config->hosts[i].name, &at))
			ret = add(hosts, &config->hosts[i]);
	}
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

static void take_gpu(struct hosts *hosts, const struct jobs_answer *a)
{
	const struct pool_gpu *old = pool_gpu(hosts->pool, a->gpu.name);
	struct pool_gpu gpu = a->gpu;
	int ret;

	hosts_merge_gpu(&gpu, old);
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

static void take_vm(struct hosts *hosts, struct entry *e, const struct jobs_answer *a, int64_t now)
{
	const struct pool_vm *old = pool_vm(hosts->pool, a->vm.name);
	struct pool_vm vm = a->vm, stored = a->vm;
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
	if (ret == -EEXIST && old == &stored)
		ret = 1;	/* the other host does not have it now */
	if (ret == -EEXIST) {
		tell(hosts, "vm-twice", vm.name, "another host has a VM of this name; rename one",
		     now);
		return;
	}
	if (ret) {
		forget_vm(hosts, vm.name);
		tell(hosts, "vm-other", vm.name, "another VM of this name: its key and consent are void",
		     now);
	}
	names_add(&e->vms, vm.name);
	ret = store_put_vm(hosts->store, &vm);
	broken(hosts, ret ? ret : pool_put_vm(hosts->pool, &vm));
}

/* Its project, key and requests stay in the database. */
static void lose_vm(struct hosts *hosts, struct entry *e, const char *name)
{
	names_drop(&e->vms, name);
	pool_drop_vm(hosts->pool, name);
}

/* Forget VMs that went while the service did not run. */
static void lose_old_vms(struct hosts *hosts, struct entry *e)
{
	const struct pool_vm *vm;
	size_t i = 0;

	while ((vm = pool_vm_at(hosts->pool, i))) {
		char name[POOL_NAME_MAX];

		strcpy(name, vm->name);
		if (strcmp(vm->host, e->config.name) || names_has(&e->vms, name) ||
		    pool_drop_vm(hosts->pool, name))
			i++;
	}
}

static void take_up(struct hosts *hosts, struct entry *e, struct api_host *h,
		    const struct jobs_answer *a, int64_t now)
{
	if (!h->up)
		tell(hosts, "host-up", h->name, "libvirt answers", now);
	h->up = true;
	h->why[0] = '\0';
	lose_old_vms(hosts, e);
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

static void take_use(struct hosts *hosts, const struct jobs_answer *a)
{
	/* A sample that does not count, or is of a request that is over, is not kept. */
	if (!pool_use(hosts->pool, &a->use))
		broken(hosts, store_add_use(hosts->store, &a->use));
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
		take_gpu(hosts, a);
		break;
	case JOBS_GPU_GONE:
		lose_gpu(hosts, a);
		break;
	case JOBS_VM:
		take_vm(hosts, e, a, now);
		break;
	case JOBS_VM_GONE:
		lose_vm(hosts, e, a->vm.name);
		break;
	case JOBS_USE:
		take_use(hosts, a);
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

bool hosts_run(struct hosts *hosts, int64_t now)
{
	struct jobs_answer *a = NULL;
	unsigned int n = 0;

	for (size_t i = 0; i < hosts->nr; i++) {
		a = a ? a : malloc(sizeof(*a));
		while (a && n < BATCH && jobs_next(hosts->entry[i].jobs, a)) {
			crash_point("answer");
			if (!n++ && effects_begin(hosts->effects)) {
				free(a->found);
				free(a);
				return false;
			}
			/* The database takes UTF-8 only. */
			utf8_clean(a->text);
			utf8_clean(a->gpu.why);
			utf8_clean(a->gpu.model);
			take(hosts, i, a, now);
			free(a->found);
		}
	}
	free(a);
	if (n)
		effects_commit(hosts->effects);
	crash_point("answer-done");
	return n;
}

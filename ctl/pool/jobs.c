// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads of hosts.  A host has a manager, which connects, looks at GPUs, VMs and devices when
 * libvirt says that they changed, and asks for use; and workers, which do its jobs.  Answers to
 * jobs and what looks at devices saw come in the order in which they were true.
 *
 * Lock order: struct host's lock, then struct site's, then struct jobs's.  Functions of host.h are
 * called without the latter two.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "jobs.h"
#include "thread.h"

#define WORKERS		8		/* of a host, at most */
#define BACKOFF_MIN	1		/* seconds between two attempts to connect */
#define BACKOFF_MAX	60
#define SETTLE_MS	200		/* events come in swarms */
#define BUSY_MS		5000		/* node devices change by the jobs' own doing */
#define LOOK_SECONDS	300		/* look at all, whatever events came */
#define FAILED_SECONDS	5		/* look at all again after a look that failed */
#define LOOKS		3		/* looks beside jobs, before one without */
#define ALIVE_SECONDS	15
#define STOP_SECONDS	5		/* for threads to end; one that hangs is left behind */

struct item {
	struct item *next;
	struct pool_job job;
	bool runs;
};

struct reply {
	struct reply *next;
	struct jobs_answer answer;
};

/* A device whose use is asked for. */
struct watched {
	struct watched *next;
	struct pool_request request;
};

/**
 * struct site - a host and its threads
 * @lock: of all that follows, but for what is the manager's own
 * @wake: for the manager
 * @work: for workers
 * @items: jobs that wait or run, the oldest first
 * @up: connected; jobs are taken
 * @quiet: no job may begin
 * @running: jobs that run
 * @ended: jobs that ran
 * @gpus_at: when @news_gpus was set, ms
 * @gpus: as they were told last; the manager's
 * @vms: likewise
 */
struct site {
	struct jobs *jobs;
	struct host *host;
	char name[POOL_NAME_MAX];

	pthread_mutex_t lock;
	pthread_cond_t wake, work;
	struct item *items;
	struct watched *watched;
	bool up, quiet, stop;
	bool news_gpus, news_vms, news_devices, news_closed;
	unsigned int running, workers, idle;
	uint64_t ended;
	int64_t gpus_at;

	struct pool_gpu *gpus;
	size_t nr_gpus;
	struct pool_vm *vms;
	size_t nr_vms;
	int64_t look_at, use_at, alive_at;
};

/**
 * struct jobs - all hosts
 * @references: of the receiver, and of the sites' threads
 * @former: jobs of the same host, which end before these begin
 * @lock: of the rest
 * @until: time until which jobs_free() waits, ms of now_ms(); 0: not stopped
 * @ended: a thread ended
 * @fd: readable while there are replies
 */
struct jobs {
	struct site *sites;
	size_t nr;
	unsigned int references;
	struct jobs *former;
	pthread_mutex_t lock;
	int64_t until;
	pthread_cond_t ended;
	struct reply *first, **last;
	int fd;
};

/* ---- answers ---- */

/* @answer is copied; without memory it is lost, and the next look makes up for it. */
static void push(struct jobs *jobs, const struct jobs_answer *answer)
{
	struct reply *r = malloc(sizeof(*r));

	if (!r) {
		free(answer->found);
		return;
	}
	r->next = NULL;
	r->answer = *answer;
	pthread_mutex_lock(&jobs->lock);
	*jobs->last = r;
	jobs->last = &r->next;
	eventfd_write(jobs->fd, 1);
	pthread_mutex_unlock(&jobs->lock);
}

static void reply(struct site *site, struct jobs_answer *answer)
{
	strcpy(answer->host, site->name);
	push(site->jobs, answer);
}

bool jobs_next(struct jobs *jobs, struct jobs_answer *answer)
{
	eventfd_t count;
	struct reply *r;

	pthread_mutex_lock(&jobs->lock);
	r = jobs->first;
	if (r)
		jobs->first = r->next;
	if (!jobs->first) {
		jobs->last = &jobs->first;
		eventfd_read(jobs->fd, &count);
	}
	pthread_mutex_unlock(&jobs->lock);
	if (!r)
		return false;
	*answer = r->answer;
	free(r);
	return true;
}

int jobs_fd(const struct jobs *jobs)
{
	return jobs->fd;
}

/* ---- time ---- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* With the lock held. */
static void wait_until(struct site *site, int64_t ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	pthread_cond_timedwait(&site->wake, &site->lock, &t);
}

/* ---- use ---- */

static void watch(struct site *site, const struct pool_request *request)
{
	struct watched *w;

	pthread_mutex_lock(&site->lock);
	for (w = site->watched; w && w->request.id != request->id; w = w->next)
		;
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (w) {
			w->next = site->watched;
			site->watched = w;
		}
	}
	if (w)
		w->request = *request;
	pthread_mutex_unlock(&site->lock);
}

static void unwatch(struct site *site, uint64_t request)
{
	struct watched **at = &site->watched, *w;

	pthread_mutex_lock(&site->lock);
	while ((w = *at)) {
		if (request && w->request.id != request) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
	pthread_mutex_unlock(&site->lock);
}

/* Copies of all that are watched; the manager alone asks the host. */
static size_t list_watched(struct site *site, struct pool_request **list)
{
	struct watched *w;
	size_t nr = 0;

	pthread_mutex_lock(&site->lock);
	for (w = site->watched; w; w = w->next)
		nr++;
	*list = calloc(nr + 1, sizeof(**list));
	nr = 0;
	for (w = site->watched; *list && w; w = w->next)
		(*list)[nr++] = w->request;
	pthread_mutex_unlock(&site->lock);
	return nr;
}

static void report_use(struct site *site)
{
	struct pool_request *list;
	size_t nr = list_watched(site, &list), i;

	for (i = 0; i < nr; i++) {
		struct jobs_answer answer = { .kind = JOBS_USE, .request = list[i].id };

		if (!host_use(site->host, &list[i], &answer.use))
			reply(site, &answer);
	}
	free(list);
}

/* ---- looks ---- */

/**
 * struct list - copies of what a look found
 * @size: size of an entry
 */
struct list {
	char *entries;
	size_t nr, room, size;
};

static int add(struct list *list, const void *entry)
{
	if (list->nr == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		char *grown = reallocarray(list->entries, room, list->size);

		if (!grown)
			return -ENOMEM;
		list->entries = grown;
		list->room = room;
	}
	memcpy(list->entries + list->nr++ * list->size, entry, list->size);
	return 0;
}

static int add_gpu(const struct pool_gpu *gpu, void *arg)
{
	return add(arg, gpu);
}

static int add_vm(const struct pool_vm *vm, void *arg)
{
	return add(arg, vm);
}

static int add_found(const struct pool_found *found, void *arg)
{
	return add(arg, found);
}

static const struct pool_gpu *find_gpu(const struct pool_gpu *gpus, size_t nr, const char *name)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(gpus[i].name, name))
			return &gpus[i];
	return NULL;
}

static const struct pool_vm *find_vm(const struct pool_vm *vms, size_t nr, const char *name)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(vms[i].name, name))
			return &vms[i];
	return NULL;
}

/* Tell what is new, changed or gone. */
static enum host_result look_at_gpus(struct site *site, char *text)
{
	struct list list = { .size = sizeof(struct pool_gpu) };
	const struct pool_gpu *gpus, *known;
	enum host_result result;
	size_t i;

	result = host_gpus(site->host, add_gpu, &list, text);
	if (result != HOST_OK) {
		free(list.entries);
		return result;
	}
	gpus = (const struct pool_gpu *)list.entries;
	for (i = 0; i < list.nr; i++) {
		struct jobs_answer answer = { .kind = JOBS_GPU, .gpu = gpus[i] };

		known = find_gpu(site->gpus, site->nr_gpus, gpus[i].name);
		if (!known || memcmp(known, &gpus[i], sizeof(*known)))
			reply(site, &answer);
	}
	for (i = 0; i < site->nr_gpus; i++) {
		struct jobs_answer answer = { .kind = JOBS_GPU_GONE, .gpu = site->gpus[i] };

		if (!find_gpu(gpus, list.nr, site->gpus[i].name))
			reply(site, &answer);
	}
	free(site->gpus);
	site->gpus = (struct pool_gpu *)list.entries;
	site->nr_gpus = list.nr;
	return HOST_OK;
}

/* Likewise; @gone: set if a VM is gone. */
static enum host_result look_at_vms(struct site *site, bool *gone, char *text)
{
	struct list list = { .size = sizeof(struct pool_vm) };
	const struct pool_vm *vms, *known;
	enum host_result result;
	size_t i;

	result = host_vms(site->host, add_vm, &list, text);
	if (result != HOST_OK) {
		free(list.entries);
		return result;
	}
	vms = (const struct pool_vm *)list.entries;
	for (i = 0; i < list.nr; i++) {
		struct jobs_answer answer = { .kind = JOBS_VM, .vm = vms[i] };

		known = find_vm(site->vms, site->nr_vms, vms[i].name);
		if (!known || memcmp(known, &vms[i], sizeof(*known)))
			reply(site, &answer);
	}
	for (i = 0; i < site->nr_vms; i++) {
		struct jobs_answer answer = { .kind = JOBS_VM_GONE, .vm = site->vms[i] };

		if (find_vm(vms, list.nr, site->vms[i].name))
			continue;
		*gone = true;
		reply(site, &answer);
	}
	free(site->vms);
	site->vms = (struct pool_vm *)list.entries;
	site->nr_vms = list.nr;
	return HOST_OK;
}

static void watch_found(struct site *site, const struct pool_found *found, size_t nr)
{
	struct pool_request request = { 0 };
	size_t i;

	unwatch(site, 0);
	for (i = 0; i < nr; i++) {
		request.id = found[i].request;
		strcpy(request.vm, found[i].vm);
		strcpy(request.gpu, found[i].gpu);
		strcpy(request.uuid, found[i].uuid);
		watch(site, &request);
	}
}

static enum host_result look_at_devices(struct site *site, struct jobs_answer *up)
{
	struct list list = { .size = sizeof(struct pool_found) };
	enum host_result result;

	*up = (struct jobs_answer){ .kind = JOBS_UP };
	result = host_found(site->host, add_found, &list, up->text);
	if (result != HOST_OK) {
		free(list.entries);
		return result;
	}
	up->found = (struct pool_found *)list.entries;
	up->nr_found = list.nr;
	watch_found(site, up->found, up->nr_found);
	return HOST_OK;
}

static enum host_result look_once(struct site *site, struct jobs_answer *up, char *text)
{
	enum host_result result;
	bool gone;

	/* Devices first: a GPU that others gave to a VM is offline. */
	result = look_at_devices(site, up);
	if (result != HOST_OK) {
		strcpy(text, up->text);
		return result;
	}
	result = look_at_gpus(site, text);
	if (result == HOST_OK)
		result = look_at_vms(site, &gone, text);
	if (result != HOST_OK)
		free(up->found);
	return result;
}

/* Hold jobs back until the look is over. */
static void be_quiet(struct site *site)
{
	site->quiet = true;
	while (site->running && !site->stop)
		pthread_cond_wait(&site->wake, &site->lock);
}

/*
 * A job that ends while the look goes on may be answered before the look, and after what the look
 * saw: then look again. A job that runs on is answered after the look, and changes no more then.
 */
static enum host_result look_at_all(struct site *site, char *text)
{
	enum host_result result = HOST_OK;
	struct jobs_answer up;
	uint64_t before;
	bool told = false;
	int try;

	for (try = 0; result == HOST_OK && !told; try++) {
		pthread_mutex_lock(&site->lock);
		if (try == LOOKS)
			be_quiet(site);
		before = site->ended;
		pthread_mutex_unlock(&site->lock);
		result = look_once(site, &up, text);
		pthread_mutex_lock(&site->lock);
		if (result == HOST_OK && (before == site->ended || site->stop)) {
			reply(site, &up);
			told = true;
		} else if (result == HOST_OK) {
			free(up.found);
		}
		pthread_mutex_unlock(&site->lock);
	}
	pthread_mutex_lock(&site->lock);
	site->quiet = false;
	pthread_cond_broadcast(&site->work);
	pthread_mutex_unlock(&site->lock);
	site->look_at = now_ms() + LOOK_SECONDS * 1000;
	return result;
}

/* ---- jobs ---- */

static bool is_after(const struct pool_job *job, const struct pool_job *former)
{
	return job->request.id == former->request.id ||
	       !strcmp(job->request.vm, former->request.vm) ||
	       (job->gpu.target != POOL_VGPU && *job->request.gpu &&
		!strcmp(job->request.gpu, former->request.gpu));
}

/* The first job that need not wait for one before it; with the lock held. */
static struct item *next_item(struct site *site)
{
	struct item *item, *former;

	for (item = site->items; item; item = item->next) {
		if (item->runs)
			continue;
		for (former = site->items; former != item; former = former->next)
			if (is_after(&item->job, &former->job))
				break;
		if (former == item)
			return item;
	}
	return NULL;
}

static void remove_item(struct site *site, struct item *item)
{
	struct item **at = &site->items;

	while (*at != item)
		at = &(*at)->next;
	*at = item->next;
	free(item);
}

/* Jobs that wait are dropped: the next look finds out what to do. */
static void drop_items(struct site *site)
{
	struct item **at = &site->items, *item;

	while ((item = *at)) {
		if (item->runs) {
			at = &item->next;
			continue;
		}
		*at = item->next;
		free(item);
	}
}

static void run(struct site *site, const struct pool_job *job, struct jobs_answer *answer)
{
	struct pool_request request = job->request;
	enum host_result result;

	memset(answer, 0, sizeof(*answer));
	answer->request = job->request.id;
	if (job->kind == POOL_JOB_ATTACH) {
		result = host_attach(site->host, job, answer->uuid, &answer->seconds, answer->text);
		answer->kind = JOBS_ATTACHED;
		strcpy(request.uuid, answer->uuid);
		if (result == HOST_OK)
			watch(site, &request);
	} else {
		result = host_detach(site->host, job, &answer->seconds, answer->text);
		answer->kind = JOBS_DETACHED;
		if (result == HOST_OK)
			unwatch(site, job->request.id);
	}
	if (result == HOST_OK)
		*answer->text = '\0';
	else
		answer->kind = result == HOST_RETRY ? JOBS_FAILED : JOBS_REFUSED;
}

static void release(struct jobs *jobs);

static void *worker(void *arg)
{
	struct site *site = arg;
	struct jobs *jobs = site->jobs;
	struct jobs_answer answer;
	struct item *item;

	pthread_mutex_lock(&site->lock);
	while (!site->stop) {
		item = site->up && !site->quiet ? next_item(site) : NULL;
		if (!item) {
			site->idle++;
			pthread_cond_wait(&site->work, &site->lock);
			site->idle--;
			continue;
		}
		item->runs = true;
		site->running++;
		pthread_mutex_unlock(&site->lock);
		run(site, &item->job, &answer);
		pthread_mutex_lock(&site->lock);
		remove_item(site, item);
		/* A job of a connection that is lost has no answer; the next look has. */
		if (site->up && !site->stop)
			reply(site, &answer);
		site->running--;
		site->ended++;
		pthread_cond_broadcast(&site->work);
		pthread_cond_broadcast(&site->wake);
	}
	pthread_mutex_unlock(&site->lock);
	release(jobs);
	return NULL;
}

static int begin_thread(struct site *site, void *(*fn)(void *))
{
	int ret;

	pthread_mutex_lock(&site->jobs->lock);
	ret = thread_begin(fn, site);
	if (!ret)
		site->jobs->references++;
	pthread_mutex_unlock(&site->jobs->lock);
	return ret;
}

static struct site *site_of(struct jobs *jobs, const struct pool_job *job)
{
	const char *name = *job->request.gpu ? job->request.gpu : job->vm.host;
	size_t len = strcspn(name, "/"), i;

	for (i = 0; i < jobs->nr; i++)
		if (strlen(jobs->sites[i].name) == len && !strncmp(jobs->sites[i].name, name, len))
			return &jobs->sites[i];
	return NULL;
}

static void refuse(struct jobs *jobs, const struct pool_job *job, const char *why)
{
	struct jobs_answer answer = { .kind = JOBS_REFUSED, .request = job->request.id };

	snprintf(answer.text, sizeof(answer.text), "%s", why);
	snprintf(answer.host, sizeof(answer.host), "%s", job->vm.host);
	push(jobs, &answer);
}

/*
 * Whether the last job of a request's device is the same, and waits or runs: its answer is that of
 * both.  A look beside a job has the pool ask again; a second attachment that fails would undo the
 * first.  With the lock held.
 */
static bool is_under_way(const struct site *site, const struct pool_job *job)
{
	const struct item *item, *last = NULL;

	for (item = site->items; item; item = item->next)
		if (item->job.request.id == job->request.id &&
		    !strcmp(item->job.request.vm, job->request.vm) &&
		    !strcmp(item->job.request.gpu, job->request.gpu))
			last = item;
	return last && last->job.kind == job->kind;
}

void jobs_add(struct jobs *jobs, const struct pool_job *job)
{
	struct site *site = site_of(jobs, job);
	struct item *item, **at;

	if (!site) {
		refuse(jobs, job, "the GPU's host is not in the configuration any more");
		return;
	}
	item = calloc(1, sizeof(*item));
	if (!item) {
		refuse(jobs, job, "out of memory");
		return;
	}
	item->job = *job;
	pthread_mutex_lock(&site->lock);
	if (!site->up || is_under_way(site, job)) {
		free(item);
	} else {
		for (at = &site->items; *at; at = &(*at)->next)
			;
		*at = item;
		if (!site->idle && site->workers < WORKERS && !begin_thread(site, worker))
			site->workers++;
		pthread_cond_broadcast(&site->work);
	}
	pthread_mutex_unlock(&site->lock);
}

/* ---- the manager ---- */

/* From libvirt's event loop. */
static void on_news(void *arg, enum host_news news)
{
	struct site *site = arg;

	pthread_mutex_lock(&site->lock);
	switch (news) {
	case HOST_NEWS_GPUS:
		if (!site->news_gpus)
			site->gpus_at = now_ms();
		site->news_gpus = true;
		break;
	case HOST_NEWS_VMS:
		site->news_vms = true;
		break;
	case HOST_NEWS_DEVICES:
		site->news_devices = true;
		break;
	case HOST_NEWS_CLOSED:
		site->news_closed = true;
		break;
	}
	pthread_cond_broadcast(&site->wake);
	pthread_mutex_unlock(&site->lock);
}

static void set_up(struct site *site, bool up)
{
	pthread_mutex_lock(&site->lock);
	site->up = up;
	site->news_gpus = site->news_vms = site->news_devices = site->news_closed = false;
	if (!up)
		drop_items(site);
	/* Those that run end with the connection. */
	while (!up && site->running && !site->stop)
		pthread_cond_wait(&site->wake, &site->lock);
	pthread_mutex_unlock(&site->lock);
}

static void go_down(struct site *site, const char *why)
{
	struct jobs_answer answer = { .kind = JOBS_DOWN };

	snprintf(answer.text, sizeof(answer.text), "%s", why);
	set_up(site, false);
	unwatch(site, 0);
	reply(site, &answer);
}

static bool is_stopping(struct site *site)
{
	bool stop;

	pthread_mutex_lock(&site->lock);
	stop = site->stop;
	pthread_mutex_unlock(&site->lock);
	return stop;
}

/* Connect, again and again; the reason is told when it changes. */
static bool come_up(struct site *site)
{
	char told[POOL_TEXT_MAX] = "", text[POOL_TEXT_MAX] = "";
	int64_t until;
	int backoff;

	for (backoff = BACKOFF_MIN; !is_stopping(site);
	     backoff = 2 * backoff < BACKOFF_MAX ? 2 * backoff : BACKOFF_MAX) {
		if (host_connect(site->host, text) == HOST_OK) {
			/* Changes from now on are news. */
			set_up(site, true);
			if (look_at_all(site, text) == HOST_OK)
				return true;
			set_up(site, false);
		}
		if (strcmp(told, text)) {
			strcpy(told, text);
			go_down(site, text);
		}
		until = now_ms() + backoff * 1000;
		pthread_mutex_lock(&site->lock);
		while (!site->stop && now_ms() < until)
			wait_until(site, until);
		pthread_mutex_unlock(&site->lock);
	}
	return false;
}

/**
 * struct news - changes that the manager of a host acts on
 * @gpus: node devices changed
 * @vms: domains changed
 * @devices: devices of domains changed
 * @closed: libvirt closed the connection
 * @stop: the service ends
 */
struct news {
	bool gpus, vms, devices, closed, stop;
};

static int64_t earliest(const struct site *site)
{
	int64_t at = site->look_at;

	at = site->use_at < at ? site->use_at : at;
	return site->alive_at < at ? site->alive_at : at;
}

/*
 * A look at GPUs reads all node devices, and each vGPU that is made or removed changes some: while
 * there are jobs, it waits, so that they need not wait for it. With the lock held.
 */
static bool gpus_due(const struct site *site)
{
	return site->news_gpus && (!site->items || now_ms() >= site->gpus_at + BUSY_MS);
}

static bool has_news(const struct site *site)
{
	return gpus_due(site) || site->news_vms || site->news_devices;
}

/* Wait for news, which gets a moment to become complete, or for the time of a look. */
static void wait_for_news(struct site *site, struct news *news)
{
	int64_t until, settled;

	pthread_mutex_lock(&site->lock);
	until = earliest(site);
	while (!site->stop && !site->news_closed && !has_news(site) && now_ms() < until)
		wait_until(site, site->news_gpus && site->gpus_at + BUSY_MS < until ?
			   site->gpus_at + BUSY_MS : until);
	settled = now_ms() + SETTLE_MS;
	while (!site->stop && !site->news_closed && has_news(site) && now_ms() < settled)
		wait_until(site, settled);
	*news = (struct news){ gpus_due(site), site->news_vms, site->news_devices,
			       site->news_closed, site->stop };
	site->news_gpus &= !news->gpus;
	site->news_vms = site->news_devices = false;
	pthread_mutex_unlock(&site->lock);
}

static enum host_result look(struct site *site, struct news *news, char *text)
{
	enum host_result result = HOST_OK;

	if (news->vms && !news->devices)
		result = look_at_vms(site, &news->devices, text);
	if (result == HOST_OK && (news->devices || now_ms() >= site->look_at))
		result = look_at_all(site, text);
	else if (result == HOST_OK && news->gpus)
		result = look_at_gpus(site, text);
	if (result == HOST_OK && now_ms() >= site->use_at) {
		report_use(site);
		site->use_at = now_ms() + JOBS_USE_SECONDS * 1000;
	}
	return result;
}

/* Returns when the connection is lost, or the service stops. */
static void stay_up(struct site *site)
{
	char text[POOL_TEXT_MAX] = "";
	struct news news;

	site->use_at = now_ms();
	site->alive_at = now_ms() + ALIVE_SECONDS * 1000;
	for (;;) {
		wait_for_news(site, &news);
		if (news.stop)
			return;
		if (news.closed) {
			snprintf(text, sizeof(text), "%s: libvirt closed the connection",
				 site->name);
			break;
		}
		if (look(site, &news, text) != HOST_OK) {
			if (!host_alive(site->host))
				break;
			/* The news is gone, and what it was about is not seen yet. */
			site->look_at = now_ms() + FAILED_SECONDS * 1000;
		}
		if (now_ms() < site->alive_at)
			continue;
		site->alive_at = now_ms() + ALIVE_SECONDS * 1000;
		if (!host_alive(site->host)) {
			snprintf(text, sizeof(text), "%s: libvirt does not answer", site->name);
			break;
		}
	}
	go_down(site, text);
}

static void *manager(void *arg)
{
	struct site *site = arg;
	struct jobs *jobs = site->jobs;

	/* It may still change devices of the VMs. */
	jobs_free(jobs->former);
	jobs->former = NULL;
	while (come_up(site))
		stay_up(site);
	release(jobs);
	return NULL;
}

/* ---- life ---- */

static void site_free(struct site *site)
{
	struct item *item;

	host_free(site->host);
	unwatch(site, 0);
	while ((item = site->items)) {
		site->items = item->next;
		free(item);
	}
	free(site->gpus);
	free(site->vms);
	pthread_cond_destroy(&site->wake);
	pthread_cond_destroy(&site->work);
	pthread_mutex_destroy(&site->lock);
}

/* The last of the receiver and the threads frees all. */
static void release(struct jobs *jobs)
{
	struct reply *r;
	bool last;
	size_t i;

	pthread_mutex_lock(&jobs->lock);
	last = !--jobs->references;
	pthread_cond_broadcast(&jobs->ended);
	pthread_mutex_unlock(&jobs->lock);
	if (!last)
		return;
	for (i = 0; i < jobs->nr; i++)
		site_free(&jobs->sites[i]);
	free(jobs->sites);
	/* Without memory for threads. */
	jobs_leave(jobs->former);
	while ((r = jobs->first)) {
		jobs->first = r->next;
		free(r->answer.found);
		free(r);
	}
	pthread_cond_destroy(&jobs->ended);
	pthread_mutex_destroy(&jobs->lock);
	close(jobs->fd);
	free(jobs);
}

static void init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

static int site_init(struct jobs *jobs, struct site *site, const struct pool_host *config)
{
	site->jobs = jobs;
	strcpy(site->name, config->name);
	pthread_mutex_init(&site->lock, NULL);
	init_cond(&site->wake);
	init_cond(&site->work);
	jobs->nr++;
	site->host = host_new(config);
	if (!site->host)
		return -ENOMEM;
	host_watch(site->host, on_news, site);
	return 0;
}

static struct jobs *new(const struct pool_host *hosts, size_t nr, struct jobs *former)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));
	int ret = -ENOMEM;
	size_t i;

	if (!jobs) {
		jobs_leave(former);
		return NULL;
	}
	jobs->references = 1;
	jobs->former = former;
	jobs->last = &jobs->first;
	pthread_mutex_init(&jobs->lock, NULL);
	init_cond(&jobs->ended);
	jobs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	jobs->sites = calloc(nr + 1, sizeof(*jobs->sites));
	if (jobs->fd >= 0 && jobs->sites)
		ret = 0;
	for (i = 0; i < nr && !ret; i++)
		ret = site_init(jobs, &jobs->sites[i], &hosts[i]);
	for (i = 0; i < nr && !ret; i++)
		ret = begin_thread(&jobs->sites[i], manager);
	if (!ret)
		return jobs;
	jobs_free(jobs);
	return NULL;
}

struct jobs *jobs_new(const struct pool_host *hosts, size_t nr)
{
	return new(hosts, nr, NULL);
}

struct jobs *jobs_new_after(const struct pool_host *host, struct jobs *former)
{
	return new(host, 1, former);
}

void jobs_stop(struct jobs *jobs)
{
	size_t i;

	pthread_mutex_lock(&jobs->lock);
	if (!jobs->until)
		jobs->until = now_ms() + STOP_SECONDS * 1000;
	pthread_mutex_unlock(&jobs->lock);
	for (i = 0; i < jobs->nr; i++) {
		struct site *site = &jobs->sites[i];

		pthread_mutex_lock(&site->lock);
		site->stop = true;
		pthread_cond_broadcast(&site->wake);
		pthread_cond_broadcast(&site->work);
		pthread_mutex_unlock(&site->lock);
		if (site->host)
			host_stop(site->host);
	}
}

void jobs_leave(struct jobs *jobs)
{
	if (!jobs)
		return;
	jobs_stop(jobs);
	release(jobs);
}

void jobs_free(struct jobs *jobs)
{
	struct timespec t;

	if (!jobs)
		return;
	jobs_stop(jobs);
	t = (struct timespec){ jobs->until / 1000, jobs->until % 1000 * 1000000 };
	pthread_mutex_lock(&jobs->lock);
	while (jobs->references > 1 && now_ms() < jobs->until)
		pthread_cond_timedwait(&jobs->ended, &jobs->lock, &t);
	pthread_mutex_unlock(&jobs->lock);
	release(jobs);
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of the pool: objects.c has projects, VMs, hosts and GPUs, pool.c the life
 * of requests, placing.c which request gets which GPU, reconcile.c libvirt's truth.
 */
#ifndef POOL_INSIDE_H
#define POOL_INSIDE_H

#include <sys/queue.h>

#include "choice.h"
#include "idle.h"
#include "pool.h"
#include "queue.h"
#include "table.h"

/* @open: its requests that are not over */
struct project {
	struct pool_project p;
	struct queue_flow flow;
	unsigned int open;
};

struct vm {
	TAILQ_HEAD(, request) requests;
	struct pool_vm v;
	struct host *host;
	unsigned int open;
};

/**
 * struct gpu - a GPU
 * @index: its place in @host->gpus
 * @foreign: devices of it that are in VMs, but not of the pool
 * @failed: the last attachment failed for good
 * @grouped: others of its IOMMU group go with it
 * @kept: request that waits for room on it: no other is placed on it
 */
struct gpu {
	TAILQ_HEAD(, request) requests;
	struct pool_gpu g;
	struct host *host;
	unsigned int index;
	unsigned int foreign;
	bool failed;
	bool grouped;
	struct request *kept;
};

/**
 * struct class - requests of a host that the same GPUs could do
 * @nr: GPUs of the host
 * @need: slots that a request takes of each, 0: it does not fit
 */
struct class {
	LIST_ENTRY(class) link;
	struct queue_class q;
	struct host *host;
	size_t nr;
	uint32_t need[];
};

/**
 * struct host - a host, by the name that VMs and GPUs have
 * @up: libvirt answers
 * @came: it came up, and was not reconciled since
 * @looks: time from which looks for work count: the samples of a host that was down come first
 * @stale: its GPUs changed: classes are to be made anew
 */
struct host {
	char name[POOL_NAME_MAX];
	bool up;
	bool came;
	bool stale;
	int64_t looks;
	struct gpu **gpus;
	size_t nr;
	size_t room;
	LIST_HEAD(, class) classes;
};

/**
 * struct request - a request that is not over
 * @item: in the queue
 * @holding: of the project, from ATTACHING on
 * @slots: that it takes of @gpu
 * @due: time of the next attempt, 0: a job is under way, or the host is down
 * @kept: GPU that is kept for it
 * @lease_warned: the VM was told that the lease ends
 */
struct request {
	TAILQ_ENTRY(request) in_held;
	TAILQ_ENTRY(request) in_vm;
	TAILQ_ENTRY(request) in_gpu;
	struct pool_request r;
	struct queue_item item;
	struct queue_holding holding;
	struct project *project;
	struct vm *vm;
	struct gpu *gpu;
	struct gpu *kept;
	uint32_t slots;
	int64_t due;
	struct idle idle;
	bool lease_warned;
};

/* A device that libvirt has and no open request explains: it takes a slot, and is detached. */
struct stray {
	TAILQ_ENTRY(stray) link;
	struct pool_job job;
	struct gpu *gpu;
	uint32_t tries;
	int64_t due;
};

/**
 * struct pool - the pool
 * @requests: struct request by number
 * @keys: the same by project and key
 * @held: requests with a GPU
 * @nr_kept: GPUs that are kept
 * @dirty: something changed: a pass is needed
 * @again: time of a pass after the database failed, 0: none
 * @next: when the next thing is due, as far as known
 */
struct pool {
	TAILQ_HEAD(, request) held;
	TAILQ_HEAD(, stray) strays;
	struct pool_settings settings;
	struct pool_hooks hooks;
	struct table projects;
	struct table vms;
	struct table gpus;
	struct table hosts;
	struct table requests;
	struct table keys;
	struct queue queue;
	struct choice *choice;
	struct choice_candidate *candidates;
	size_t room;
	unsigned int nr_kept;
	bool dirty;
	int64_t again;
	int64_t next;
};

/* Turn a pointer to a member into one to the whole. */
#define whole(at, type, member) ((type *)((char *)(at) - offsetof(type, member)))

/* ---- objects.c ---- */

/* Key of a request in pool->keys. */
struct key {
	const char *project;
	const char *key;
};

struct project *core_find_project(const struct pool *pool, const char *name);
struct vm *core_find_vm(const struct pool *pool, const char *name);
struct gpu *core_find_gpu(const struct pool *pool, const char *name);
struct host *core_find_host(const struct pool *pool, const char *name);
/* Find or make; NULL: no memory. */
struct host *core_host_of(struct pool *pool, const char *name);
struct request *core_find_request(const struct pool *pool, uint64_t id);
/* Only one with a GPU: jobs with its number, and their answers, are its own. */
struct request *core_find_holder(const struct pool *pool, uint64_t id);

/* Put a request into the tables; take it out of everything and free it. */
int core_request_add(struct pool *pool, struct request *q);
void core_request_free(struct pool *pool, struct request *q);
/* Account for the GPU of a request; the opposite. */
void core_gpu_take(struct pool *pool, struct request *q, struct gpu *gpu, uint32_t slots,
		   int64_t since);
void core_gpu_give(struct pool *pool, struct request *q, int64_t now);

/* ---- placing.c ---- */

/* Queue a request. -ENOMEM. */
int place_queue(struct pool *pool, struct request *q, int64_t now);
/* A GPU has room again: what waits for it is tried in the next pass. */
void place_room(struct pool *pool, struct gpu *gpu);
void place_host(struct pool *pool, struct host *host);
/* A GPU is not kept for the request any more. */
void place_unkeep(struct pool *pool, struct request *q);
/* Serve what can be served. */
void place_pass(struct pool *pool, int64_t now);
/* Free classes of a host. */
void place_forget(struct host *host);
/* Whether a GPU of the request's host could ever do it. */
bool place_possible(const struct vm *vm, const struct pool_request *r);

/* ---- pool.c ---- */

/* Store a request as it will be, then change it in memory. 0 or -EIO. */
int core_change(struct pool *pool, struct request *q, const struct pool_request *next);
__attribute__((format(printf, 7, 8)))
void core_tell(struct pool *pool, const char *actor, const char *what, uint64_t request,
	       const char *object, int64_t now, const char *fmt, ...);
/* The next pool_run() is at @time at the latest. */
void core_wake(struct pool *pool, int64_t time);
/* Seconds before the attempt after @tries. */
int64_t core_backoff(const struct pool *pool, uint32_t tries);
void core_begin_job(struct pool *pool, struct request *q, enum pool_job_kind kind);
/* The device is in the VM. */
int core_become_active(struct pool *pool, struct request *q, const char *uuid, int64_t now);
/* The device is on its way back. @why NULL: as it is. */
int core_begin_release(struct pool *pool, struct request *q, bool done, const char *actor,
		       const char *why, int64_t now);
/* The device is not in the VM: the request is over. @why NULL: as it is. */
int core_finish(struct pool *pool, struct request *q, const char *why, int64_t now);
/* Detach a stray. */
void core_stray_job(struct pool *pool, struct stray *s);
void core_stray_free(struct pool *pool, struct stray *s);

#endif /* POOL_INSIDE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool in memory, and its rules: a state machine without clock, input or output of its own.
 * The caller gives the time, stores what changes (hooks), and does the jobs.  One thread uses a
 * pool.
 *
 * Order of effects: pool.c calls hooks->store with the new state BEFORE it calls hooks->job, so
 * that a crash in between leaves a stored intention that reconcile() meets with libvirt's truth.
 * If hooks->store fails, the change is undone in memory and the call fails.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "model.h"

struct pool;

/* A job for a host: an effect outside the service, done by jobs.c in a thread of the host. */
enum pool_job_kind { POOL_JOB_ATTACH, POOL_JOB_DETACH };

struct pool_job {
	enum pool_job_kind kind;
	struct pool_request request;
	struct pool_gpu gpu;
	struct pool_vm vm;
};

/**
 * struct pool_hooks - effects
 * @store_request: store a request; an error is -EIO
 * @add_request: store a new request and number it; -EEXIST with the former one in @r, over or not
 * @find_request: find the request with the project and key of @r, over or not, for a request that
 *	would be refused; -ENOENT: none; NULL: none ever
 * @outcome: store a row of the history
 * @event: a line of the log
 * @job: begin a job; pool_attached(), pool_detached() or pool_failed() answers it later
 *
 * A hook does not call the pool. Pointers that the functions for reading returned are good until
 * the next call that changes something: a request that is over is not in the pool any more.
 */
struct pool_hooks {
	int (*store_request)(void *arg, const struct pool_request *r);
	int (*add_request)(void *arg, struct pool_request *r);
	int (*find_request)(void *arg, struct pool_request *r);
	int (*outcome)(void *arg, const struct pool_outcome *outcome);
	void (*event)(void *arg, const struct pool_event *event);
	void (*job)(void *arg, const struct pool_job *job);
	void *arg;
};

/**
 * struct pool_settings - what an administrator sets; pool_settings_default() has the defaults
 * @look1: seconds between looks at a GPU that works (3600)
 * @look2: seconds to the second look when the first found no work (1200)
 * @grace: seconds between the warning and the release (300)
 * @agent_silent: seconds without a message after which an agent counts as dead (600)
 * @extend_max: seconds after the last work for which extensions keep an idle GPU (14400)
 * @attach_tries: attempts before a request fails (5)
 * @retry: seconds before the second attempt, doubled each time (2)
 * @max_queue: requests that may wait, of all projects (10000)
 * @max_queue_project: of one project (1000)
 * @max_lease: seconds, 0: no limit
 * @history_min: rows of a kind on a model below which history is thin (5)
 * @policy: "history", "best-fit", "first-fit"
 */
struct pool_settings {
	uint32_t look1;
	uint32_t look2;
	uint32_t grace;
	uint32_t agent_silent;
	uint32_t extend_max;
	uint32_t attach_tries;
	uint32_t retry;
	uint32_t max_queue;
	uint32_t max_queue_project;
	uint32_t max_lease;
	uint32_t history_min;
	char policy[16];
};

void pool_settings_default(struct pool_settings *settings);

struct pool *pool_new(const struct pool_settings *settings, const struct pool_hooks *hooks);
void pool_free(struct pool *pool);
int pool_set_settings(struct pool *pool, const struct pool_settings *settings);

/* Load and change; copies are kept. Loading calls no hook. */
int pool_put_project(struct pool *pool, const struct pool_project *project);
int pool_put_vm(struct pool *pool, const struct pool_vm *vm);
int pool_put_gpu(struct pool *pool, const struct pool_gpu *gpu);
int pool_load_request(struct pool *pool, const struct pool_request *r);
int pool_learn(struct pool *pool, const struct pool_outcome *outcome);
/* -EBUSY: something open refers to it. */
int pool_drop_project(struct pool *pool, const char *name);
int pool_drop_vm(struct pool *pool, const char *name);

/**
 * pool_ask() - take a request
 * @r: in: key, project, vm, kind and the other wishes; out: the whole request
 * @now: time, seconds
 * @actor: for the log
 * @text: why not, for people, of POOL_TEXT_MAX bytes
 *
 * A key that the project used before gives the former request and changes nothing; the wishes
 * must be the same. Context: stores, then may begin a job.
 *
 * Return: 1 for a new request, 0 for a former one, -EINVAL for bad wishes, -ENOENT without such
 * a VM or project, -EEXIST if the key is another wish's, -EPERM if the VM is another project's,
 * -ENOSPC if no GPU of the pool could ever do it, -EDQUOT if the project's limit can never allow
 * it, -EBUSY if the queue is full, -EIO, -ENOMEM.
 */
int pool_ask(struct pool *pool, struct pool_request *r, int64_t now, const char *actor, char *text);
/*
 * Release, or cancel what is queued; again, while it is not over: no change, 0. @done: the work
 * ended with success. -ENOENT: no open request has this number (the store knows those that are
 * over).
 */
int pool_release(struct pool *pool, uint64_t id, bool done, int64_t now, const char *actor,
		 char *text);
/*
 * Set the end of the lease to @now + @seconds; 0: no end; of a request that waits, its length.
 * Answers a warning, too: the looks for work begin anew.
 * -EINVAL: longer than max_lease, -EBUSY: it is being released, -EPERM: the GPU did no work for
 * longer than extensions keep it.
 */
int pool_extend(struct pool *pool, uint64_t id, uint32_t seconds, int64_t now, const char *actor,
		char *text);

/*
 * End the requests of a host that will not be there again, without a job: attached ones are
 * released, others cancelled or failed. -ENOENT: there is none. If the host does come back, its
 * devices are of no open request, and are detached.
 */
int pool_forget_host(struct pool *pool, const char *name, int64_t now, const char *actor);

/* Answers to jobs. @retry: the fault may pass (busy, unplug right after plug). */
int pool_attached(struct pool *pool, uint64_t id, const char *uuid, int64_t now);
int pool_detached(struct pool *pool, uint64_t id, int64_t now);
int pool_failed(struct pool *pool, uint64_t id, bool retry, const char *text, int64_t now);

/**
 * struct pool_found - a device of the pool that libvirt has in a domain
 * @request: number in the device's alias (ua-mgpu-N...), 0: none
 * @partial: a function of the GPU is missing, or the running VM or its definition lacks a part
 */
struct pool_found {
	uint64_t request;
	char vm[POOL_NAME_MAX];
	char gpu[2 * POOL_NAME_MAX];
	char uuid[POOL_UUID_MAX];
	bool partial;
};

/**
 * pool_reconcile() - meet libvirt's truth about a host, after a start or a lost connection
 *
 * ATTACHING and there: ACTIVE. ATTACHING and not there, or partial: attached again, with its
 * place kept. ACTIVE and not there, or partial: RELEASING ("the VM gave it back" or is gone),
 * with a detach job, which leaves no definition and no mdev behind. RELEASING, there or not:
 * detached again. There, but of no open request: a detach job of a request that only has @id,
 * @vm, @gpu and @uuid. There, with the number of a request that holds another device: so, but
 * not before that is over. Jobs that the host had before are lost: a second answer changes
 * nothing.
 */
int pool_reconcile(struct pool *pool, const char *host, const struct pool_found *found, size_t nr,
		   int64_t now);
void pool_host_up(struct pool *pool, const char *host, bool up);

/*
 * A look at use; from the agent only with the VM's consent (the caller checks). -ENOENT, or the
 * errors of idle_use(): the sample does not count.
 */
int pool_use(struct pool *pool, const struct pool_use *use);
/* An agent's message came: not dead. */
void pool_agent_seen(struct pool *pool, const char *vm, int64_t now);

/**
 * pool_run() - do what is due: placement, retries, leases, looks, warnings
 *
 * Return: time of the next thing that is due, INT64_MAX for none. Placement is not among it: it
 * is done when something is released, asked, added or comes up.
 */
int64_t pool_run(struct pool *pool, int64_t now);

/* ---- reading ---- */

/**
 * struct pool_place - where a queued request stands
 * @place: from 1, 0: not queued
 * @reason: why it waits
 */
struct pool_place {
	unsigned int place;
	char reason[POOL_TEXT_MAX];
};

const struct pool_request *pool_request(const struct pool *pool, uint64_t id);
const struct pool_vm *pool_vm(const struct pool *pool, const char *name);
const struct pool_gpu *pool_gpu(const struct pool *pool, const char *name);
const struct pool_project *pool_project(const struct pool *pool, const char *name);
void pool_where(const struct pool *pool, uint64_t id, struct pool_place *place);
/* The first request that is not over of a VM or GPU, or that after another; NULL: no more. */
const struct pool_request *pool_request_of_vm(const struct pool *pool, const char *name,
					      const struct pool_request *after);
const struct pool_request *pool_request_of_gpu(const struct pool *pool, const char *name,
					       const struct pool_request *after);
/* In order: @i from 0; NULL behind the last. */
const struct pool_request *pool_request_at(const struct pool *pool, size_t i);
const struct pool_vm *pool_vm_at(const struct pool *pool, size_t i);
const struct pool_gpu *pool_gpu_at(const struct pool *pool, size_t i);
const struct pool_project *pool_project_at(const struct pool *pool, size_t i);

#endif /* POOL_POOL_H */

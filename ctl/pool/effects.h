/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hooks of a pool: they store, then act.  Between effects_begin() and effects_commit() all
 * that is stored is one transaction, and jobs wait for its end, so that no job begins before its
 * request is on disk.
 *
 * A transaction that fails leaves memory ahead of the database: the service must then end
 * (effects_failed()), and the next one loads what the database has.
 */
#ifndef POOL_EFFECTS_H
#define POOL_EFFECTS_H

#include "pool.h"
#include "store.h"

/**
 * struct effects - where effects go
 * @store: the database
 * @job: begin a job; NULL: jobs are dropped
 * @event: called for each event after it was stored; may be NULL
 * @changed: called after each change of a request; may be NULL
 * @arg: for the callbacks
 * @depth: nested effects_begin()
 * @failed: a transaction failed
 * @jobs: jobs that wait for the commit
 * @nr_jobs: their number
 * @room: allocated
 */
struct effects {
	struct store *store;
	void (*job)(void *arg, const struct pool_job *job);
	void (*event)(void *arg, const struct pool_event *event);
	void (*changed)(void *arg, uint64_t request);
	void *arg;
	unsigned int depth;
	bool failed;
	struct pool_job *jobs;
	size_t nr_jobs;
	size_t room;
};

void effects_hooks(struct effects *e, struct pool_hooks *hooks);
void effects_free(struct effects *e);

/* Return 0 or -EIO. */
int effects_begin(struct effects *e);
/* Return 0; -EIO: nothing of the transaction is in the database, see effects_failed(). */
int effects_commit(struct effects *e);

static inline bool effects_failed(const struct effects *e)
{
	return e->failed;
}

/* Store a line of the log; @request 0 for none. */
void effects_log(struct effects *e, const struct pool_event *event);

#endif /* POOL_EFFECTS_H */

// SPDX-License-Identifier: GPL-2.0-only
/* The hooks of a pool. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "crash.h"
#include "effects.h"

/*
 * Inside a transaction an error cannot be undone in memory and database alike.  -ESTALE: an earlier
 * one was done that memory does not know of.
 */
static int checked(struct effects *e, int ret)
{
	if ((ret == -EIO && e->depth) || ret == -ESTALE)
		e->failed = true;
	return ret;
}

static void tell(struct effects *e, uint64_t request)
{
	if (e->changed)
		e->changed(e->arg, request);
}

static int on_store(void *arg, const struct pool_request *r)
{
	struct effects *e = arg;
	int ret;

	crash_point("change-store");
	ret = checked(e, store_put_request(e->store, r));
	if (ret)
		return -EIO;
	crash_point("change-stored");
	tell(e, r->id);
	return 0;
}

static int on_add(void *arg, struct pool_request *r)
{
	struct effects *e = arg;
	int ret;

	crash_point("request-store");
	ret = checked(e, store_add_request(e->store, r));
	if (ret)
		return ret == -EEXIST ? ret : -EIO;
	crash_point("request-stored");
	tell(e, r->id);
	return 0;
}

static int on_find(void *arg, struct pool_request *r)
{
	struct effects *e = arg;
	int ret = checked(e, store_find_request(e->store, r));

	return ret && ret != -ENOENT ? -EIO : ret;
}

static int on_outcome(void *arg, const struct pool_outcome *outcome)
{
	struct effects *e = arg;

	if (checked(e, store_add_outcome(e->store, outcome)))
		return -EIO;
	crash_point("outcome-stored");
	return 0;
}

void effects_log(struct effects *e, const struct pool_event *event)
{
	struct pool_event stored = *event;

	if (checked(e, store_add_event(e->store, &stored))) {
		complain("an event is not in the log (%s): %s %s: %s", store_error(e->store),
			 event->actor, event->what, event->text);
		return;
	}
	crash_point("event-stored");
	if (e->event)
		e->event(e->arg, &stored);
}

static void on_event(void *arg, const struct pool_event *event)
{
	effects_log(arg, event);
}

static void begin_job(struct effects *e, const struct pool_job *job)
{
	crash_point("job");
	if (e->job)
		e->job(e->arg, job);
	crash_point("job-begun");
}

static void on_job(void *arg, const struct pool_job *job)
{
	struct effects *e = arg;
	struct pool_job *jobs;

	if (!e->depth) {
		begin_job(e, job);
		return;
	}
	if (e->nr_jobs == e->room) {
		jobs = reallocarray(e->jobs, e->room * 2 + 8, sizeof(*jobs));
		if (!jobs) {
			e->failed = true;
			return;
		}
		e->jobs = jobs;
		e->room = e->room * 2 + 8;
	}
	e->jobs[e->nr_jobs++] = *job;
}

void effects_hooks(struct effects *e, struct pool_hooks *hooks)
{
	*hooks = (struct pool_hooks){
		.store_request = on_store, .add_request = on_add, .find_request = on_find,
		.outcome = on_outcome,
		.event = on_event, .job = on_job, .arg = e,
	};
}

void effects_free(struct effects *e)
{
	free(e->jobs);
	e->jobs = NULL;
	e->nr_jobs = e->room = 0;
}

int effects_begin(struct effects *e)
{
	if (e->failed || (!e->depth && checked(e, store_begin(e->store)))) {
		if (e->failed && !e->depth)
			complain("the database: %s", store_error(e->store));
		return -EIO;
	}
	e->depth++;
	return 0;
}

int effects_commit(struct effects *e)
{
	if (--e->depth)
		return e->failed ? -EIO : 0;
	crash_point("commit");
	e->failed = e->failed || store_commit(e->store);
	if (e->failed) {
		complain("the database failed: %s; the service ends, and the next one begins with what the database has",
			 store_error(e->store));
		store_rollback(e->store);
		e->nr_jobs = 0;
		return -EIO;
	}
	crash_point("committed");
	for (size_t i = 0; i < e->nr_jobs; i++)
		begin_job(e, &e->jobs[i]);
	e->nr_jobs = 0;
	return 0;
}

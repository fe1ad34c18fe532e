// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-agent watch: jobs of a work queue, one after another, with a GPU while there are jobs. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "child.h"
#include "clock.h"
#include "complain.h"
#include "jobs.h"
#include "notify.h"
#include "reporter.h"

#define RELEASE_S	60
#define SCAN_MS		60000	/* between two looks at the queue, should the kernel tell nothing */
#define PAUSE_MS	30000	/* after a request that the service refused */

/**
 * struct watch - the daemon
 * @conf: settings
 * @link: connection
 * @jobs: the queue
 * @job: the job that is next
 * @hold: its GPU
 * @held: there is one, or a request for it
 * @ready: the GPU is in the guest
 * @wish: what it was asked for
 * @done: all jobs that it had were successful
 * @signals: descriptor of signals
 * @stop: a signal to end came
 */
struct watch {
	struct conf conf;
	struct link link;
	struct jobs jobs;
	struct job job;
	struct hold hold;
	bool held;
	bool ready;
	struct wish wish;
	bool done;
	int signals;
	bool stop;
};

static void release(struct watch *w)
{
	if (!w->held)
		return;
	hold_release(&w->hold, w->done, RELEASE_S);
	w->held = false;
	w->ready = false;
}

/*
 * Ask for a GPU for the job that is next. The name of what is kept is the same at each start, so
 * that a request survives a restart.
 */
static int take_gpu(struct watch *w)
{
	struct hold *h = &w->hold;
	int ret;

	if (!w->held) {
		memset(h, 0, sizeof(*h));
		h->conf = &w->conf;
		h->link = &w->link;
		h->say = true;
		if (kept_open(&h->kept, &w->conf, "watch"))
			return -EACCES;
		w->held = true;
		w->done = true;
		w->wish = w->job.wish;
	}
	ret = hold_ask(h, &w->wish);
	/* The kept key is that of a job with other wishes. */
	if (ret == -EACCES && !strcmp(link_code(&w->link), "exists") && !kept_renew(&h->kept))
		ret = hold_ask(h, &w->wish);
	if (!ret)
		ret = hold_wait(h, true);
	if (!ret)
		ret = hold_device(h);
	w->ready = !ret;
	return ret;
}

static void run_job(struct watch *w)
{
	int status = CHILD_AGENT_FAILED;
	char name[sizeof(w->job.name)];
	pid_t pid;

	strcpy(name, w->job.name);
	notify("STATUS=Job %s runs with the GPU at %s", name, w->hold.kept.device);
	complain("job %s begins with the GPU at %s", name, w->hold.kept.device);
	if (!jobs_start(&w->jobs, &w->job, &w->hold, &pid))
		status = child_follow(&w->hold, pid, w->signals, &w->stop);
	/* A job that the agent's own end cut off runs again at the next start. */
	if (w->stop && status)
		return;
	complain("job %s ended with status %d", name, status);
	w->done &= !status;
	jobs_end(&w->jobs, name, !status);
}

/* Wait for jobs, signals, or a while. */
static void rest(struct watch *w, int ms)
{
	struct pollfd p[] = {
		{ .fd = w->signals, .events = POLLIN },
		{ .fd = w->jobs.watch, .events = POLLIN },
		{ .fd = w->jobs.pipe, .events = POLLIN },
	};

	poll(p, 3, ms);
	w->stop |= child_stopped(w->signals);
	jobs_drain(&w->jobs);
}

/*
 * A signal that ended a wait, or a refusal: the job stays, for another try. A job whose wishes are
 * none that a service knows would hold up all others for good.
 */
static void not_now(struct watch *w, int error)
{
	bool invalid = error == -EACCES && !strcmp(link_code(&w->link), "invalid");

	if (error == -EINTR) {
		w->stop |= child_stopped(w->signals);
		if (w->stop)
			return;
	}
	w->done = false;
	release(w);
	if (invalid) {
		jobs_end(&w->jobs, w->job.name, false);
		return;
	}
	notify("STATUS=No GPU for job %s; trying again", w->job.name);
	rest(w, PAUSE_MS);
}

static void serve(struct watch *w)
{
	while (!w->stop) {
		int ret;

		jobs_drain(&w->jobs);
		if (!jobs_next(&w->jobs, &w->job)) {
			release(w);
			notify("STATUS=The queue is empty");
			rest(w, SCAN_MS);
			continue;
		}
		if (w->held && (!wish_alike(&w->wish, &w->job.wish) || hold_lost(&w->hold)))
			release(w);
		notify("STATUS=Job %s waits for a GPU", w->job.name);
		ret = w->ready ? 0 : take_gpu(w);
		if (ret)
			not_now(w, ret);
		else
			run_job(w);
	}
	/* Jobs that wait keep their request: the next start goes on with it. */
	if (w->held && !jobs_next(&w->jobs, &w->job))
		release(w);
	else if (w->held)
		kept_close(&w->hold.kept, false);
}

int run_watch(const struct options *o)
{
	struct watch *w = calloc(1, sizeof(*w));
	int status = STATUS_FAILED;

	if (!w) {
		complain("out of memory");
		return STATUS_FAILED;
	}
	w->signals = child_signals();
	if (w->signals >= 0 && !conf_read(&w->conf, o->config, o->service) &&
	    !link_init(&w->link, &w->conf, w->signals)) {
		if (!kept_folder(&w->conf) && !jobs_open(&w->jobs, &w->conf)) {
			pid_t reporter = reporter_start(&w->conf);

			notify("READY=1");
			hold_finish_all(&w->conf, &w->link);
			serve(w);
			notify("STOPPING=1");
			reporter_stop(reporter);
			status = 0;
		}
		jobs_close(&w->jobs);
		link_free(&w->link);
	}
	conf_forget(&w->conf);
	free(w);
	return status;
}

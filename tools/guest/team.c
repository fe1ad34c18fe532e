// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that share the work of a frame.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "game.h"

struct member {
	struct team *team;
	pthread_t thread;
	int part;
};

struct team {
	int parts;
	pthread_barrier_t begin, end;
	void (*fn)(void *arg, int part, int parts);
	void *arg;
	struct member member[];
};

static void *member_run(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	for (;;) {
		pthread_barrier_wait(&t->begin);
		if (!t->fn)
			return NULL;
		t->fn(t->arg, m->part, t->parts);
		pthread_barrier_wait(&t->end);
	}
}

/* Runs fn() once for each part, at the same time; returns when all are done. */
void team_run(struct team *t, void (*fn)(void *arg, int part, int parts),
	      void *arg)
{
	if (!t) {
		fn(arg, 0, 1);
		return;
	}
	t->fn = fn;
	t->arg = arg;
	pthread_barrier_wait(&t->begin);
	fn(arg, 0, t->parts);
	pthread_barrier_wait(&t->end);
}

/* A team of n, the caller included; for one, there is none. 0 or -errno. */
int team_open(struct team **team, int n)
{
	struct team *t;
	int ret;

	*team = NULL;
	if (n < 2)
		return 0;
	t = calloc(1, sizeof(*t) + (size_t)n * sizeof(t->member[0]));
	if (!t)
		return -ENOMEM;
	t->parts = n;
	pthread_barrier_init(&t->begin, NULL, (unsigned int)n);
	pthread_barrier_init(&t->end, NULL, (unsigned int)n);
	for (int i = 1; i < n; i++) {
		t->member[i].team = t;
		t->member[i].part = i;
		ret = pthread_create(&t->member[i].thread, NULL, member_run,
				     &t->member[i]);
		/* The barriers wait for all: without one, there is no team. */
		if (ret)
			return -ret;
	}
	*team = t;
	return 0;
}

void team_close(struct team *t)
{
	if (!t)
		return;
	t->fn = NULL;
	pthread_barrier_wait(&t->begin);
	for (int i = 1; i < t->parts; i++)
		pthread_join(t->member[i].thread, NULL);
	pthread_barrier_destroy(&t->begin);
	pthread_barrier_destroy(&t->end);
	free(t);
}

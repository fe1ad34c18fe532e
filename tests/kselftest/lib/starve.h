/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that hardly run: SCHED_IDLE, on a processor that hogs keep busy.
 */
#ifndef KSELFTEST_STARVE_H
#define KSELFTEST_STARVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MAX_HOGS	16

/* Threads that keep a processor busy. */
struct hogs {
	pthread_t thread[MAX_HOGS];
	unsigned int n;
	int cpu;
	atomic_bool stop;
};

int hogs_start(struct hogs *h, int cpu, unsigned int n);
void hogs_stop(struct hogs *h);

/* Find two processors that this thread may run on; false if there is one only. */
bool two_processors(int *first, int *second);
int stay_on(int cpu);
int be_starved_on(int cpu);

/* The calls of a thread; it says when one begins and ends. */
struct calls {
	atomic_uint ended;
	atomic_bool in_call;
};

static inline void call_begin(struct calls *c)
{
	atomic_store(&c->in_call, true);
}

static inline void call_end(struct calls *c)
{
	atomic_store(&c->in_call, false);
	atomic_fetch_add(&c->ended, 1);
}

/*
 * Wait until the thread stands still in a call, and return the number of the call, or -1;
 * return whether it is still in that call.
 */
long stands_in_a_call(struct calls *c);
bool still_stands(struct calls *c, long call);

#endif /* KSELFTEST_STARVE_H */

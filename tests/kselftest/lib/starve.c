// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that hardly run.
 */
#include <sched.h>

#include "starve.h"
#include "vmm.h"

int stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

int be_starved_on(int cpu)
{
	const struct sched_param none = { 0 };

	return stay_on(cpu) || sched_setscheduler(0, SCHED_IDLE, &none);
}

bool two_processors(int *first, int *second)
{
	cpu_set_t all;
	int cpu;

	*first = *second = -1;
	if (sched_getaffinity(0, sizeof(all), &all))
		return false;
	for (cpu = 0; cpu < CPU_SETSIZE && *second < 0; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		if (*first < 0)
			*first = cpu;
		else
			*second = cpu;
	}
	return *second >= 0;
}

static void *hog(void *arg)
{
	struct hogs *h = arg;

	stay_on(h->cpu);
	while (!atomic_load(&h->stop))
		;
	return NULL;
}

int hogs_start(struct hogs *h, int cpu, unsigned int n)
{
	int ret = 0;

	h->cpu = cpu;
	atomic_store(&h->stop, false);
	for (h->n = 0; h->n < n && !ret; h->n += !ret)
		ret = pthread_create(&h->thread[h->n], NULL, hog, h);
	return ret;
}

void hogs_stop(struct hogs *h)
{
	atomic_store(&h->stop, true);
	while (h->n)
		pthread_join(h->thread[--h->n], NULL);
}

bool still_stands(struct calls *c, long call)
{
	return atomic_load(&c->in_call) && atomic_load(&c->ended) == call;
}

long stands_in_a_call(struct calls *c)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	long call;

	while (now_ms() < end) {
		call = atomic_load(&c->ended);
		sleep_ms(300);
		if (still_stands(c, call))
			return call;
	}
	return -1;
}

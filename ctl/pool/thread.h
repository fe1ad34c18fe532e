/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads of hosts, which nobody joins: one that hangs in libvirt is left behind. */
#ifndef POOL_THREAD_H
#define POOL_THREAD_H

#include <pthread.h>

#define THREAD_STACK	(512 * 1024)

/* Begin a detached thread. Return 0 or -errno. */
static inline int thread_begin(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int ret;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	ret = pthread_create(&thread, &attributes, fn, arg);
	pthread_attr_destroy(&attributes);
	return -ret;
}

#endif /* POOL_THREAD_H */
